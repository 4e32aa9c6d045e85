//! A change: an atomic set of edits to the files of a project, with an author and a reason.
//!
//! A set is applied whole or not at all. Each edit names the content that it was made against, so
//! that concurrent edits by others are never overwritten.

mod gate;
mod own;
mod path;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_model::as_text;
use thiserror::Error;

use crate::team::change::{FILES_TOLD, FileNote, ProposedSet};
use crate::team::order::WorkKey;
use crate::{AgentName, HandoffId, Offer, Party, Reason, RunId, TurnOrder};

pub use crate::workflow::changes::ChangeRules;
pub use gate::{Gate, GateKind, gates, is_dependency, protection};
pub use own::{AUTOMATION, is_integration, is_lever, is_starter, runs};
pub(crate) use path::folded;
pub use path::{BadPath, FilePath, collisions};

/// The maximum number of files in a set.
pub const MOST_FILES: usize = 2_000;

/// The maximum size of a file in a set, in bytes.
pub const LARGEST_FILE: usize = 16 * 1024 * 1024;

/// The id of a change, numbered within its project: `c7`.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^c[0-9]+$"))]
pub struct ChangeId(pub u32);

/// The text is not a valid change id.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{text}` is not a change: they are named c1, c2, …")]
pub struct NotAChange {
    /// The text that could not be parsed.
    pub text: String,
}

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0)
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

as_text!(ChangeId, NotAChange);

/// The SHA-256 of a file's content, as 64 lowercase hexadecimal digits.
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
    /// The invalid text, shortened to 80 characters.
    pub text: String,
}

impl Digest {
    /// Returns the 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Creates a digest from its 32 bytes.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Digest(stafette_text::hex::encode(bytes))
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

/// The status of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeStatus {
    /// Not yet applied; a person has to approve it if it has gates.
    #[default]
    Pending,
    /// A person approved its gates.
    Approved,
    /// A person rejected it.
    Refused,
    /// Applied to the project without validation.
    Applied,
    /// Applied to the project, and the project's validation command succeeded.
    Validated,
    /// Could not be applied, or was rolled back.
    Failed,
    /// Applied earlier and undone since.
    Undone,
}

impl ChangeStatus {
    /// True if the change is currently applied to the project.
    pub fn is_in(self) -> bool {
        matches!(self, ChangeStatus::Applied | ChangeStatus::Validated)
    }

    /// True if a person can still approve or reject the change.
    pub fn is_open(self) -> bool {
        match self {
            ChangeStatus::Pending
            | ChangeStatus::Approved
            | ChangeStatus::Refused
            | ChangeStatus::Failed => true,
            ChangeStatus::Applied | ChangeStatus::Validated | ChangeStatus::Undone => false,
        }
    }

    /// Returns the status as it is written on the wire.
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

/// The author of a change.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Author {
    /// The run in which it was made, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The agent that made it, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// The handoff that it was made for, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
    /// The name of the person; empty if an agent made it.
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

/// A run that was asked to revise a set of another one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reviser {
    /// The run.
    pub run: RunId,
    /// Its handoff that asks for the revision, if the run was started for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
}

/// The effect of an edit on its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Creates a new file.
    Create,
    /// Changes the content or the mode.
    Modify,
    /// Deletes an existing file.
    Delete,
    /// Moves the file from another path, with or without new content.
    Rename,
}

/// One edit of a proposal. The field names are those of `codeChanges`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileEdit {
    /// The path of the file, relative to the project.
    pub file: String,
    /// The effect on the file.
    pub action: Action,
    /// The previous path, for `rename`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The digest of the content that the edit was made against; `None` means the current content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Digest>,
    /// The complete new content, for `create` and `modify`, and for `rename` if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// True if the file becomes executable; `None` keeps the current mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executable: Option<bool>,
}

/// A proposed set of edits.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// The edits of the set.
    #[serde(alias = "codeChanges")]
    pub changes: Vec<FileEdit>,
    /// The author of the set.
    #[serde(default)]
    pub author: Author,
    /// The purpose of the set, for reviewers.
    #[serde(default)]
    pub reason: String,
    /// The set that it replaces, if it is a revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revises: Option<ChangeId>,
    /// True if it was read from plain output, which any printed file can imitate.
    #[serde(skip)]
    pub printed: bool,
    /// True if the turn was given in order to revise that set.
    #[serde(skip)]
    pub granted: bool,
}

impl TurnOrder {
    /// Returns the set that a person sent back for revision with this turn.
    pub fn revises(&self) -> Option<ChangeId> {
        revised_by(&self.offer)
    }
}

/// Returns the set that a person sends back for revision with an offer: to an agent of the set's run, or
/// with a run of its own.
pub(crate) fn revised_by(offer: &Offer) -> Option<ChangeId> {
    let has_comments = offer.outputs.contains_key("comments");
    let is_sent_back =
        offer.from == Party::Human && (has_comments || offer.reason == Reason::FixRequest);
    offer.outputs.get("change").filter(|_| is_sent_back)?.as_str()?.parse().ok()
}

/// The state of a file, before or after an edit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Content {
    /// The digest of the file's bytes.
    pub sha256: Digest,
    /// The size in bytes.
    pub size: u64,
    /// The Unix permission bits of the file.
    pub mode: u32,
}

impl Content {
    /// True if git sees no difference: same bytes and same executable bit.
    pub fn is_like(&self, other: &Content) -> bool {
        self.sha256 == other.sha256 && (self.mode & 0o100) == (other.mode & 0o100)
    }
}

/// One edit as it is stored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Edit {
    /// The path of the file.
    pub file: FilePath,
    /// The effect on the file.
    pub action: Action,
    /// The previous path, for `rename`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<FilePath>,
    /// The file before the edit; `None` if it did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Content>,
    /// The file after the edit; `None` if it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Content>,
}

impl Edit {
    /// Returns the effect on each path: a rename removes one and creates another.
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

/// A comment on a change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Comment {
    /// The author of the comment.
    pub by: String,
    /// The time of the comment, in RFC 3339.
    pub at: String,
    /// The file that it is about; `None` for the whole set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in the new version of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The revision of the set that it is about.
    #[serde(default = "first")]
    pub revision: u32,
    /// The text of the comment.
    pub text: String,
}

impl Comment {
    /// Formats the comment as one line: place and text.
    pub fn told(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}: {}", self.text),
            (Some(file), None) => format!("{file}: {}", self.text),
            (None, _) => self.text.clone(),
        }
    }
}

/// A change as it is stored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The id of the change.
    pub id: ChangeId,
    /// The current status of the change.
    pub status: ChangeStatus,
    /// The number of the revision, from 1.
    #[serde(default = "first")]
    pub revision: u32,
    /// The author of the change.
    pub author: Author,
    /// The run that was asked to revise it, until that proposes a revision and is its author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviser: Option<Reviser>,
    /// The purpose of the change, for reviewers.
    pub reason: String,
    /// The edits of the change.
    pub edits: Vec<Edit>,
    /// The gates that a person has to approve.
    #[serde(default)]
    pub gates: Vec<Gate>,
    /// The time of the proposal, in RFC 3339.
    pub proposed_at: String,
    /// The name of the approver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// The time at which it was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_at: Option<String>,
    /// The time at which the project's validation command succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validated_at: Option<String>,
    /// The time at which it was undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_at: Option<String>,
    /// A number that grows with each applied set, to tell which was applied later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<u64>,
    /// The commit that contains the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The folders that were created for it, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// The cause, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Remarks about how it was applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The comments on the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<Comment>,
    /// The order that was last carried out on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<WorkKey>,
}

fn first() -> u32 {
    1
}

impl Change {
    /// Returns the summary that the run records.
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
            handoff: match &self.reviser {
                Some(reviser) => reviser.handoff,
                None => self.author.handoff,
            },
            revision: self.revision,
            reason: self.reason.clone(),
            count: self.edits.len(),
            files: self.edits.iter().take(FILES_TOLD).map(note).collect(),
            gates: self.gates.iter().take(FILES_TOLD).cloned().collect(),
            status: self.status,
        }
    }

    /// Returns the run that has the set and records what becomes of it, if any.
    pub fn run(&self) -> Option<RunId> {
        self.reviser.as_ref().map(|reviser| reviser.run).or(self.author.run)
    }

    /// True if a run has made the set, or was asked to revise it.
    pub fn is_of(&self, run: RunId) -> bool {
        self.author.run == Some(run) || self.run() == Some(run)
    }

    /// True if it is the outcome of a run, which no agent proposed in a turn.
    pub fn is_outcome(&self) -> bool {
        self.author.agent.is_some() && self.author.handoff.is_none()
    }

    /// True if a person has to approve it before it can be applied.
    pub fn waits_for_person(&self) -> bool {
        self.status == ChangeStatus::Pending && !self.gates.is_empty()
    }

    /// Returns all paths that the change touches.
    pub fn paths(&self) -> impl Iterator<Item = &FilePath> {
        self.edits.iter().flat_map(|edit| edit.from.iter().chain([&edit.file]))
    }
}
