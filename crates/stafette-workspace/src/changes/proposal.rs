//! Proposing a set: it is checked, and stored with all its contents.

use stafette_core::change::{
    Action, Author, BadPath, Change, ChangeId, ChangeRules, ChangeStatus, Content, Digest, Edit,
    FileEdit, FilePath, Gate, GateKind, LARGEST_FILE, MOST_FILES, Proposal, gates,
};

use super::change_store::digest;
use super::confined_dir::Found;
use super::plan::check;
use super::{ChangeError, Changes, now, reach};

/// A proposed edit with arbitrary bytes as content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Draft {
    /// The file, relative to the project.
    pub file: String,
    pub action: Action,
    /// The old path, for a rename.
    pub from: Option<String>,
    /// The digest of the file that it was made against; `None` stands for the current file.
    pub base: Option<Digest>,
    /// The bytes of that file, if known.
    pub base_content: Option<Vec<u8>>,
    /// The new content; `None` for a deletion, or if only the name or the mode changes.
    pub content: Option<Vec<u8>>,
    /// True if the file is executable afterwards; unchanged if `None`.
    pub executable: Option<bool>,
}

/// A file that is no edit of a set, or of none yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// The path, relative to the project.
    pub file: String,
    /// The reason, in a sentence.
    pub why: String,
}

impl From<FileEdit> for Draft {
    fn from(edit: FileEdit) -> Self {
        Draft {
            file: edit.file,
            action: edit.action,
            from: edit.from,
            base: edit.base,
            base_content: None,
            content: edit.content.map(String::into_bytes),
            executable: edit.executable,
        }
    }
}

/// A file of a set, before and after it: its content and bytes; `None` where it does not exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetFile {
    pub path: FilePath,
    pub before: Option<(Content, Vec<u8>)>,
    pub after: Option<(Content, Vec<u8>)>,
}

/// The set that a proposal replaces.
#[derive(Clone, Copy, Debug)]
struct Revises {
    id: ChangeId,
    /// True if the author was asked to.
    granted: bool,
}

/// True if a set, neither rejected nor undone, has the same result as these edits, whatever it was
/// made against.
fn leaves(change: &Change, edits: &[Edit]) -> bool {
    let same = |(one, other): (&Edit, &Edit)| {
        (&one.file, one.action, &one.from, &one.after)
            == (&other.file, other.action, &other.from, &other.after)
    };
    let is_over = matches!(change.status, ChangeStatus::Refused | ChangeStatus::Undone);
    !is_over && change.edits.len() == edits.len() && change.edits.iter().zip(edits).all(same)
}

fn within_limit(edits: usize) -> Result<(), ChangeError> {
    match edits <= MOST_FILES {
        true => Ok(()),
        false => Err(ChangeError::Size { flaw: "a change has at most 2000 edits" }),
    }
}

impl Changes {
    /// Stores a set as a document describes it.
    pub async fn propose(
        &self,
        proposal: Proposal,
        rules: &ChangeRules,
    ) -> Result<Change, ChangeError> {
        let drafts = proposal.changes.into_iter().map(Draft::from).collect();
        let Proposal { author, reason, revises, granted, .. } = proposal;
        let origin = proposal.printed.then_some(GateKind::Printed);
        let revises = revises.map(|id| Revises { id, granted });
        self.keep(drafts, author, reason, revises, rules, origin).await
    }

    /// Stores a set that another orchestrator left: nothing of it is applied before a person
    /// approves it.
    pub async fn propose_foreign(
        &self,
        proposal: Proposal,
        rules: &ChangeRules,
    ) -> Result<Change, ChangeError> {
        let drafts = proposal.changes.into_iter().map(Draft::from).collect();
        self.keep(drafts, proposal.author, proposal.reason, None, rules, Some(GateKind::Foreign))
            .await
    }

    /// Stores the next revision of a set, for the same purpose. What a person has to approve because of
    /// its origin still is of that origin.
    pub async fn revise(
        &self,
        id: ChangeId,
        drafts: Vec<Draft>,
        author: Author,
        rules: &ChangeRules,
    ) -> Result<Change, ChangeError> {
        let earlier = self.store.get(id)?;
        let origin = earlier.gates.iter().map(|gate| gate.kind).find(|kind| kind.is_of_origin());
        let revises = Some(Revises { id, granted: true });
        self.keep(drafts, author, earlier.reason, revises, rules, origin).await
    }

    /// Returns the files of a set, with their contents.
    ///
    /// # Errors
    /// When a content is not known: a set may say against which content it was made, and nobody has it.
    pub fn files(&self, change: &Change) -> Result<Vec<SetFile>, ChangeError> {
        let mut files = Vec::new();
        for (path, before, after) in change.edits.iter().flat_map(Edit::moves) {
            files.push(SetFile { path, before: self.read(before)?, after: self.read(after)? });
        }
        Ok(files)
    }

    fn read(&self, content: Option<Content>) -> Result<Option<(Content, Vec<u8>)>, ChangeError> {
        let Some(content) = content else { return Ok(None) };
        let bytes = self.store.blob(&content.sha256)?;
        Ok(Some((content, bytes)))
    }

    /// True if a set has this edit: after both, the file is the same.
    pub fn has(&self, change: &Change, draft: &Draft) -> bool {
        let digest = draft.content.as_ref().map(|bytes| digest(bytes));
        change.edits.iter().any(|edit| {
            let mode = edit.after.as_ref().map(|after| after.mode & 0o100 != 0);
            edit.file.as_str() == draft.file
                && edit.from.as_ref().map(FilePath::as_str) == draft.from.as_deref()
                && edit.after.as_ref().map(|after| &after.sha256) == digest.as_ref()
                && (mode == draft.executable || draft.executable.is_none())
        })
    }

    /// Splits edits into those that can be in one set, and those that cannot.
    ///
    /// # Errors
    /// When none can be: they are too many, or cannot be looked at now.
    pub async fn fitting(
        &self,
        drafts: Vec<Draft>,
        rules: &ChangeRules,
    ) -> Result<(Vec<Draft>, Vec<LeftOut>), ChangeError> {
        within_limit(drafts.len())?;
        let _hold = self.store.hold().await?;
        self.recover_held().await?;
        let (mut edits, mut fitting, mut left) = (Vec::new(), Vec::new(), Vec::new());
        for draft in drafts {
            let edit = self.edit(&draft);
            match edit.and_then(|edit| check(std::slice::from_ref(&edit), rules).map(|()| edit)) {
                Ok(edit) => {
                    edits.push(edit);
                    fitting.push(draft);
                }
                Err(error) if error.may_pass() => return Err(error),
                Err(ChangeError::Path(BadPath { flaw, .. })) => {
                    left.push(LeftOut { file: draft.file, why: flaw.to_owned() });
                }
                Err(error) => left.push(LeftOut { file: draft.file, why: error.to_string() }),
            }
        }
        // Of files that cannot be beside each other, the first stays.
        while let Err(error @ ChangeError::Collision { .. }) = check(&edits, rules) {
            let ChangeError::Collision { second, .. } = &error else { break };
            let is_it = |edit: &Edit| edit.file == *second || edit.from.as_ref() == Some(second);
            let Some(at) = edits.iter().rposition(is_it) else { break };
            edits.remove(at);
            left.push(LeftOut { file: fitting.remove(at).file, why: error.to_string() });
        }
        Ok((fitting, left))
    }

    /// Stores a set. It is refused as a whole if one edit is invalid.
    pub async fn draft(
        &self,
        drafts: Vec<Draft>,
        author: Author,
        reason: String,
        rules: &ChangeRules,
    ) -> Result<Change, ChangeError> {
        self.keep(drafts, author, reason, None, rules, None).await
    }

    /// Stores a set, as a new one or in place of another. A turn that is delivered again proposes
    /// the same set again, which is stored once.
    async fn keep(
        &self,
        drafts: Vec<Draft>,
        author: Author,
        reason: String,
        revises: Option<Revises>,
        rules: &ChangeRules,
        origin: Option<GateKind>,
    ) -> Result<Change, ChangeError> {
        if drafts.is_empty() {
            return Err(ChangeError::Size { flaw: "a change has at least one edit" });
        }
        within_limit(drafts.len())?;
        if reason.len() > 8 * 1024 {
            return Err(ChangeError::Size { flaw: "a reason has at most 8 KiB" });
        }
        let _hold = self.store.hold().await?;
        self.recover_held().await?;
        let edits = drafts.iter().map(|draft| self.edit(draft));
        let edits = edits.collect::<Result<Vec<Edit>, _>>()?;
        check(&edits, rules)?;
        let earlier = revises.map(|revises| self.revised(revises, &author)).transpose()?;
        let again = match &earlier {
            Some(earlier) => (earlier.reason == reason).then(|| earlier.clone()),
            None if author.handoff.is_some() => {
                let counts = |it: &Change| it.author == author && it.failure.is_none();
                self.store.list()?.into_iter().rev().find(|it| counts(it) && leaves(it, &edits))
            }
            None => None,
        };
        if let Some(again) = again.filter(|again| leaves(again, &edits)) {
            return Ok(again);
        }
        let gate = |edit: &Edit| Some(Gate { kind: origin?, file: edit.file.clone() });
        let origin: Vec<Gate> = edits.iter().filter_map(gate).collect();
        let change = Change {
            id: earlier.as_ref().map_or_else(|| self.store.next_id(), |earlier| Ok(earlier.id))?,
            revision: earlier.as_ref().map_or(1, |earlier| earlier.revision + 1),
            status: ChangeStatus::Pending,
            tried: None,
            author,
            reviser: None,
            reason,
            gates: gates(&edits, rules).into_iter().chain(origin).collect(),
            edits,
            proposed_at: now(),
            approved_by: None,
            applied_at: None,
            validated_at: None,
            undone_at: None,
            order: None,
            commit: None,
            folders: Vec::new(),
            failure: None,
            notes: Vec::new(),
            comments: earlier.map(|earlier| earlier.comments).unwrap_or_default(),
        };
        self.store.put(&change)?;
        Ok(change)
    }

    /// Returns the set to be replaced. An agent can replace only its own sets and one that was
    /// given to it, and none that has been applied.
    fn revised(&self, revises: Revises, by: &Author) -> Result<Change, ChangeError> {
        let Revises { id, granted } = revises;
        let earlier = self.store.get(id)?;
        if earlier.status.is_in() {
            let status = earlier.status;
            return Err(ChangeError::Status { id, status, wanted: "revised" });
        }
        match granted || (earlier.run(), &earlier.author.agent) == (by.run, &by.agent) {
            true => Ok(earlier),
            false => Err(ChangeError::NotYours { id, by: earlier.author.to_string() }),
        }
    }

    fn edit(&self, draft: &Draft) -> Result<Edit, ChangeError> {
        let wrong = |flaw| Err(ChangeError::Edit { file: draft.file.clone(), flaw });
        let file: FilePath = draft.file.parse()?;
        let from = draft.from.as_deref().map(str::parse::<FilePath>).transpose()?;
        match (draft.action, &from, &draft.content) {
            (Action::Rename, None, _) => return wrong("a rename says where the file comes `from`"),
            (Action::Rename, Some(from), _) if *from == file => {
                return wrong("a rename leads to another path");
            }
            (Action::Create | Action::Modify | Action::Delete, Some(_), _) => {
                return wrong("only a rename has a `from`");
            }
            (Action::Create, _, None) => return wrong("a new file has a `content`"),
            (Action::Modify, _, None) if draft.executable.is_none() => {
                return wrong("it says neither `content` nor `executable`");
            }
            (Action::Delete, _, Some(_)) => return wrong("what is deleted has no `content`"),
            (Action::Create, ..) if draft.base.is_some() => {
                return wrong("a new file has no `base`");
            }
            _ => {}
        }
        if draft.content.as_ref().is_some_and(|content| content.len() > LARGEST_FILE) {
            return wrong("a file has at most 16 MiB");
        }
        let source = from.as_ref().unwrap_or(&file);
        let mut bytes = Vec::new();
        let keep = |piece: &[u8]| match bytes.len() + piece.len() <= LARGEST_FILE {
            true => {
                bytes.extend_from_slice(piece);
                Ok(())
            }
            false => Err(std::io::Error::other("it is larger than 16 MiB")),
        };
        let found = self.project.read(source, keep).map_err(|error| reach(source, error))?;
        let found = match found {
            Found::Nothing => None,
            Found::File(content, _) => Some(content),
            Found::Other(kind) => return Err(ChangeError::NotAFile { file: source.clone(), kind }),
        };
        let base = match &draft.base_content {
            Some(base) => Some(self.store.keep(base)?),
            None => draft.base.clone(),
        };
        let before = match (draft.action, base, found) {
            (Action::Create, ..) => None,
            (_, None, None) => return wrong("there is no such file"),
            (_, None, Some(found)) => Some(found),
            (_, Some(base), Some(found)) if base == found.sha256 => Some(found),
            // It was made against another content, which may appear before it is applied.
            (_, Some(base), found) => {
                let size = self.store.blob(&base).map_or(0, |bytes| bytes.len() as u64);
                Some(Content { sha256: base, size, mode: found.map_or(0o644, |it| it.mode) })
            }
        };
        let had = before.as_ref().map_or(0o644, |before| before.mode);
        if before.as_ref().is_some_and(|before| before.size == bytes.len() as u64) {
            self.store.keep(&bytes)?;
        }
        let mode = match draft.executable.unwrap_or(had & 0o100 != 0) {
            true => had & 0o666 | 0o111,
            false => had & 0o666,
        };
        let after = match (draft.action, &draft.content) {
            (Action::Delete, _) => None,
            (_, Some(content)) => Some(Content {
                sha256: self.store.keep(content)?,
                size: content.len() as u64,
                mode,
            }),
            (_, None) => before.clone().map(|before| Content { mode, ..before }),
        };
        Ok(Edit { file, action: draft.action, from, before, after })
    }
}
