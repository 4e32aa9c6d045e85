//! Everything in the record of a set besides its edits: a person's decision, comments, and the run
//! that it belongs to.

use stafette_core::change::{Change, ChangeId, ChangeStatus, Comment, Reviser};
use stafette_core::{HandoffId, RunId};

use super::{ChangeError, Changes, now};

impl Changes {
    /// Records that a person approves a change.
    pub async fn approve(&self, id: ChangeId, by: &str) -> Result<Change, ChangeError> {
        self.decide(id, ChangeStatus::Approved, by).await
    }

    /// Records that a person rejects a change.
    pub async fn refuse(&self, id: ChangeId, by: &str) -> Result<Change, ChangeError> {
        self.decide(id, ChangeStatus::Refused, by).await
    }

    async fn decide(
        &self,
        id: ChangeId,
        status: ChangeStatus,
        by: &str,
    ) -> Result<Change, ChangeError> {
        let _hold = self.store.hold().await?;
        self.recover_held().await?;
        let mut change = self.store.get(id)?;
        Self::decidable(&change, status)?;
        change.status = status;
        change.approved_by = (status == ChangeStatus::Approved).then(|| by.to_owned());
        self.store.put(&change)?;
        Ok(change)
    }

    /// Checks that a person can still decide on a change: not after it was applied.
    pub fn decidable(change: &Change, wanted: ChangeStatus) -> Result<(), ChangeError> {
        let wanted = if wanted == ChangeStatus::Refused { "refused" } else { "approved" };
        let (id, status) = (change.id, change.status);
        match status.is_open() {
            true => Ok(()),
            false => Err(ChangeError::Status { id, status, wanted }),
        }
    }

    /// Gives a set to another run to revise it, which receives its outcome from now on. Its author
    /// stays whoever has made it.
    pub async fn give_to(
        &self,
        id: ChangeId,
        run: RunId,
        handoff: Option<HandoffId>,
    ) -> Result<Change, ChangeError> {
        let _hold = self.store.hold().await?;
        let mut change = self.store.get(id)?;
        change.reviser = Some(Reviser { run, handoff });
        self.store.put(&change)?;
        Ok(change)
    }

    /// Makes a comment on a change; its place is checked.
    pub fn remark(
        &self,
        id: ChangeId,
        by: &str,
        place: Option<(String, Option<u32>)>,
        text: &str,
    ) -> Result<Comment, ChangeError> {
        let change = self.store.get(id)?;
        let (file, line) = place.map_or((None, None), |(file, line)| (Some(file), line));
        if let Some(file) = &file
            && !change.paths().any(|path| path.as_str() == file)
        {
            let flaw = "the change does not touch it";
            return Err(ChangeError::Edit { file: file.clone(), flaw });
        }
        if change.comments.len() >= 1000 {
            return Err(ChangeError::Size { flaw: "a change has at most 1000 comments" });
        }
        let (by, text, revision) = (by.to_owned(), text.to_owned(), change.revision);
        Ok(Comment { by, at: now(), file, line, revision, text })
    }

    /// Stores a comment on a change; a repeated one is stored once.
    pub async fn comment(&self, id: ChangeId, comment: Comment) -> Result<Change, ChangeError> {
        let _hold = self.store.hold().await?;
        let mut change = self.store.get(id)?;
        if !change.comments.contains(&comment) {
            change.comments.push(comment);
            self.store.put(&change)?;
        }
        Ok(change)
    }

    /// Records that the run refused a change because its turn had ended.
    pub async fn turned_away(&self, id: ChangeId, why: &str) -> Result<(), ChangeError> {
        let _hold = self.store.hold().await?;
        let mut change = self.store.get(id)?;
        change.status = ChangeStatus::Failed;
        change.failure = Some(why.to_owned());
        self.store.put(&change)
    }
}
