//! A change: an atomic set of edits to the files of a project, made by somebody for a reason.
//!
//! A set is applied whole or not at all. Each edit names the content that it was made against, so
//! that what somebody else wrote meanwhile is never written over.

mod gate;
mod path;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::team::change::{FILES_TOLD, FileNote, ProposedSet};
use crate::{AgentName, HandoffId, Party, Reason, RunId, TurnOrder};

pub use crate::workflow::changes::ChangeRules;
pub use gate::{Gate, GateKind, gates, is_dependency, protection};
pub use path::{BadPath, FilePath, collisions};

/// The most files that a set may touch.
pub const MOST_FILES: usize = 2_000;

/// The largest file that a set may hold, in bytes.
pub const LARGEST_FILE: usize = 16 * 1024 * 1024;

/// A change, numbered within its project: `c7`.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^c[0-9]+$"))]
pub struct ChangeId(pub u32);

/// The text is not the name of a change.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{text}` is not a change: they are named c1, c2, …")]
pub struct NotAChange {
    /// What was given instead.
    pub text: String,
}

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0)
    }
}

impl fmt::Debug for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ChangeId {
    type Err = NotAChange;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix('c').unwrap_or(text);
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_plain.then(|| digits.parse().ok()).flatten();
        number.map(ChangeId).ok_or_else(|| NotAChange { text: text.to_owned() })
    }
}

impl TryFrom<String> for ChangeId {
    type Error = NotAChange;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ChangeId> for String {
    fn from(id: ChangeId) -> Self {
        id.to_string()
    }
}

/// The SHA-256 of a file's content, in 64 small hexadecimal digits.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^[0-9a-f]{64}$"))]
pub struct Digest(String);

/// The text is not a digest.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{text}` is not a SHA-256 in 64 small hexadecimal digits")]
pub struct NotADigest {
    /// What was given instead.
    pub text: String,
}

impl Digest {
    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// From the 32 bytes of it.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Digest(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl TryFrom<String> for Digest {
    type Error = NotADigest;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match text.len() == 64 && text.bytes().all(is_digit) {
            true => Ok(Digest(text)),
            false => Err(NotADigest { text: text.chars().take(80).collect() }),
        }
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0
    }
}

/// How far a change is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeStatus {
    /// It waits; for a person where it has gates.
    #[default]
    Pending,
    /// A person said yes to its gates.
    Approved,
    /// A person said no.
    Refused,
    /// It is in the project, and nothing was asked about it.
    Applied,
    /// It is in the project, and the project's command said yes.
    Validated,
    /// It was taken out of the project again, or never got in.
    Failed,
    /// It was in the project and is no more.
    Undone,
}

impl ChangeStatus {
    /// Whether the project has it.
    #[must_use]
    pub fn is_in(self) -> bool {
        matches!(self, ChangeStatus::Applied | ChangeStatus::Validated)
    }

    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ChangeStatus::Pending => "pending",
            ChangeStatus::Approved => "approved",
            ChangeStatus::Refused => "refused",
            ChangeStatus::Applied => "applied",
            ChangeStatus::Validated => "validated",
            ChangeStatus::Failed => "failed",
            ChangeStatus::Undone => "undone",
        }
    }
}

/// Who made a change.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Author {
    /// In which run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Which agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// For which handoff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
    /// Which person, when it was no agent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub person: String,
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.agent, &self.run) {
            (Some(agent), Some(run)) => write!(f, "{agent} in {}", run.short()),
            (Some(agent), None) => write!(f, "{agent}"),
            (None, _) if self.person.is_empty() => f.write_str("someone"),
            (None, _) => f.write_str(&self.person),
        }
    }
}

/// What an edit does to its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The file is new.
    Create,
    /// It has other content or another mode.
    Modify,
    /// It goes.
    Delete,
    /// It comes from another path, with other content or the same.
    Rename,
}

/// One edit as it is proposed. The names are those of `codeChanges`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileEdit {
    /// The file, relative to the project.
    pub file: String,
    /// What is done to it.
    pub action: Action,
    /// Where it comes from, for `rename`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The content that it was made against; what is there now when nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Digest>,
    /// Its whole content afterwards, for `create` and `modify`, and for `rename` if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Whether it can be executed afterwards; as before when nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executable: Option<bool>,
}

/// A set of edits as it is proposed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// The edits.
    #[serde(alias = "codeChanges")]
    pub changes: Vec<FileEdit>,
    /// Who made them.
    #[serde(default)]
    pub author: Author,
    /// What for.
    #[serde(default)]
    pub reason: String,
    /// The set that it replaces, when it is a revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revises: Option<ChangeId>,
}

impl TurnOrder {
    /// The set that a person sent back with this turn, to be revised.
    #[must_use]
    pub fn revises(&self) -> Option<ChangeId> {
        // With a handoff in its run, or with a run of its own.
        let remarks = self.offer.outputs.contains_key("comments");
        let sent_back =
            self.offer.from == Party::Human && (remarks || self.offer.reason == Reason::FixRequest);
        let change = self.offer.outputs.get("change").filter(|_| sent_back)?;
        change.as_str()?.parse().ok()
    }
}

/// A file with its content: what an edit finds, or what it leaves.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Content {
    /// The digest of its bytes.
    pub sha256: Digest,
    /// How many there are.
    pub size: u64,
    /// The permission bits.
    pub mode: u32,
}

impl Content {
    /// Whether both are the same to git: the bytes, and whether they can be executed.
    #[must_use]
    pub fn is_like(&self, other: &Content) -> bool {
        self.sha256 == other.sha256 && (self.mode & 0o100) == (other.mode & 0o100)
    }
}

/// One edit as it is kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Edit {
    /// The file.
    pub file: FilePath,
    /// What is done to it.
    pub action: Action,
    /// Where it comes from, for `rename`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<FilePath>,
    /// What it was made against; nothing when there was no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Content>,
    /// What it leaves; nothing when the file goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Content>,
}

impl Edit {
    /// What it does to each path: a rename takes one away and makes another.
    #[must_use]
    pub fn moves(&self) -> Vec<(FilePath, Option<Content>, Option<Content>)> {
        match &self.from {
            Some(from) => vec![
                (from.clone(), self.before.clone(), None),
                (self.file.clone(), None, self.after.clone()),
            ],
            None => vec![(self.file.clone(), self.before.clone(), self.after.clone())],
        }
    }
}

/// What somebody says about a change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Comment {
    /// Who.
    pub by: String,
    /// When.
    pub at: String,
    /// About which file, if about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// About which line of it as it would be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// About which revision of the set.
    #[serde(default = "first")]
    pub revision: u32,
    /// What.
    pub text: String,
}

impl Comment {
    /// In a line: the place, and what is said about it.
    #[must_use]
    pub fn told(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}: {}", self.text),
            (Some(file), None) => format!("{file}: {}", self.text),
            (None, _) => self.text.clone(),
        }
    }
}

/// A change as it is kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Its name.
    pub id: ChangeId,
    /// How far it is.
    pub status: ChangeStatus,
    /// How often it was proposed: 1 at first, one more with each revision.
    #[serde(default = "first")]
    pub revision: u32,
    /// Who made it.
    pub author: Author,
    /// What for.
    pub reason: String,
    /// The edits.
    pub edits: Vec<Edit>,
    /// What a person has to say yes to.
    #[serde(default)]
    pub gates: Vec<Gate>,
    /// When it was proposed.
    pub proposed_at: String,
    /// Who said yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// When it was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_at: Option<String>,
    /// When the project's command said yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validated_at: Option<String>,
    /// When it was undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_at: Option<String>,
    /// Grows with each set that is applied, so that it is known which came later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<u64>,
    /// The commit that it became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The folders that were made for it, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What is worth knowing about how it went.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What was said about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<Comment>,
    /// Whether its run has yet to hear of something that is written here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untold: bool,
}

fn first() -> u32 {
    1
}

impl Change {
    /// What its run records of it.
    #[must_use]
    pub fn proposed(&self) -> ProposedSet {
        let note = |edit: &Edit| FileNote {
            file: edit.file.clone(),
            action: edit.action,
            from: edit.from.clone(),
            before: edit.before.as_ref().map(|content| content.sha256.clone()),
            after: edit.after.as_ref().map(|content| content.sha256.clone()),
        };
        ProposedSet {
            change: self.id,
            agent: self.author.agent.clone(),
            handoff: self.author.handoff,
            revision: self.revision,
            reason: self.reason.clone(),
            count: self.edits.len(),
            files: self.edits.iter().take(FILES_TOLD).map(note).collect(),
            gates: self.gates.iter().take(FILES_TOLD).cloned().collect(),
        }
    }

    /// Whether a person has to say yes before it can be applied.
    #[must_use]
    pub fn waits_for_person(&self) -> bool {
        self.status == ChangeStatus::Pending && !self.gates.is_empty()
    }

    /// All paths that it touches.
    pub fn paths(&self) -> impl Iterator<Item = &FilePath> {
        self.edits.iter().flat_map(|edit| edit.from.iter().chain([&edit.file]))
    }
}
