//! Proposed blocks in SQLite.

use std::fmt;

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use stafette_core::{HandoffId, RunId, Time};

use super::{Base, SqliteError};
use crate::calendar::proposal::{PAGE, Proposal, ProposalError, Stand};

/// A requested change of a block.
pub struct Wish {
    id: String,
    from: &'static [Stand],
    change: Box<dyn FnOnce(&mut Proposal) + Send>,
}

impl Wish {
    /// Requests a change of this block, allowed in these states.
    #[must_use]
    pub fn new(
        id: &str,
        from: &'static [Stand],
        change: impl FnOnce(&mut Proposal) + Send + 'static,
    ) -> Self {
        Wish { id: id.to_owned(), from, change: Box::new(change) }
    }

    fn fulfil(self, tx: &Transaction) -> Result<Proposal, ProposalError> {
        let Wish { id, from, change } = self;
        let mut found = find(tx, &id)?.ok_or(ProposalError::None { id })?;
        if !from.contains(&found.state) {
            return Err(ProposalError::State { id: found.id, state: found.state });
        }
        change(&mut found);
        put(tx, &found)?;
        Ok(found)
    }
}

impl fmt::Debug for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wish").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Proposed blocks with their states, in a SQLite file.
#[derive(Clone, Debug)]
pub struct SqliteProposals {
    base: Base,
}

impl From<rusqlite::Error> for ProposalError {
    fn from(error: rusqlite::Error) -> Self {
        SqliteError::from(error).into()
    }
}

impl From<serde_json::Error> for ProposalError {
    fn from(error: serde_json::Error) -> Self {
        ProposalError::Failed { why: error.to_string() }
    }
}

impl SqliteProposals {
    /// Opens the proposals in this file.
    #[must_use]
    pub fn new(base: Base) -> Self {
        SqliteProposals { base }
    }

    /// Stores new proposals; existing ones stay as they are.
    pub async fn add(&self, proposals: Vec<Proposal>) -> Result<(), ProposalError> {
        let write = move |tx: &Transaction| {
            for proposal in &proposals {
                if find(tx, &proposal.id)?.is_none() {
                    put(tx, proposal)?;
                }
            }
            Ok(())
        };
        self.base.write(write).await
    }

    /// Changes a proposal if it is in one of these states.
    ///
    /// # Errors
    /// If it does not exist, or is in another state.
    pub async fn change(
        &self,
        id: &str,
        from: &'static [Stand],
        change: impl FnOnce(&mut Proposal) + Send + 'static,
    ) -> Result<Proposal, ProposalError> {
        let wish = Wish::new(id, from, change);
        self.base.write(move |tx: &Transaction| wish.fulfil(tx)).await
    }

    /// Changes a proposal that takes its time by it: no other approved block may be there, and of
    /// two competing calls one succeeds.
    ///
    /// # Errors
    /// As [`SqliteProposals::change`], and if another block has that time.
    pub async fn hold(
        &self,
        id: &str,
        from: &'static [Stand],
        change: impl FnOnce(&mut Proposal) + Send + 'static,
    ) -> Result<Proposal, ProposalError> {
        let mut held = self.hold_all(vec![Wish::new(id, from, change)]).await?;
        held.pop().ok_or_else(|| ProposalError::None { id: id.to_owned() })
    }

    /// Changes several proposals like [`SqliteProposals::hold`], all of them or none.
    ///
    /// # Errors
    /// As [`SqliteProposals::hold`], for the first of them that fails.
    pub async fn hold_all(&self, wishes: Vec<Wish>) -> Result<Vec<Proposal>, ProposalError> {
        let write = move |tx: &Transaction| {
            let held: Result<Vec<Proposal>, ProposalError> =
                wishes.into_iter().map(|wish| wish.fulfil(tx)).collect();
            // Checked once all of them are at their new times: one may move to where another was.
            let held = held?;
            held.iter().try_for_each(|one| is_alone(tx, one))?;
            Ok(held)
        };
        self.base.write(write).await
    }

    /// Returns one proposal.
    pub async fn get(&self, id: &str) -> Result<Proposal, ProposalError> {
        let id = id.to_owned();
        let read = move |conn: &Connection| find(conn, &id)?.ok_or(ProposalError::None { id });
        self.base.read(read).await
    }

    /// Returns the proposals of one question, by time.
    pub async fn of(&self, run: RunId, handoff: HandoffId) -> Result<Vec<Proposal>, ProposalError> {
        let (run, handoff) = (run.to_string(), handoff.to_string());
        let read = move |conn: &Connection| {
            let mut found = conn.prepare_cached(
                "SELECT proposal FROM proposals WHERE run = ?1 AND handoff = ?2 \
                 ORDER BY start_at, id LIMIT ?3",
            )?;
            parsed(found.query_map(params![run, handoff, PAGE as u64], |row| row.get(0))?)
        };
        self.base.read(read).await
    }

    /// Returns the proposals in a state, by time; the last ones, if there are too many.
    pub async fn in_state(&self, state: Stand) -> Result<Vec<Proposal>, ProposalError> {
        let read = move |conn: &Connection| {
            let mut found = conn.prepare_cached(
                "SELECT proposal FROM proposals WHERE state = ?1 \
                 ORDER BY start_at DESC, id DESC LIMIT ?2",
            )?;
            newest(found.query_map(params![state.word(), PAGE as u64], |row| row.get(0))?)
        };
        self.base.read(read).await
    }

    /// Returns the last proposals by time, in any state.
    pub async fn last(&self) -> Result<Vec<Proposal>, ProposalError> {
        let read = move |conn: &Connection| {
            let mut found = conn.prepare_cached(
                "SELECT proposal FROM proposals ORDER BY start_at DESC, id DESC LIMIT ?1",
            )?;
            newest(found.query_map([PAGE as u64], |row| row.get(0))?)
        };
        self.base.read(read).await
    }

    /// Returns the proposals between two moments, by time; the last ones, if there are too many.
    pub async fn between(&self, from: Time, to: Time) -> Result<Vec<Proposal>, ProposalError> {
        let read = move |conn: &Connection| {
            let mut found = conn.prepare_cached(
                "SELECT proposal FROM proposals INDEXED BY proposals_by_end \
                 WHERE start_at < ?2 AND end_at > ?1 ORDER BY start_at DESC, id DESC LIMIT ?3",
            )?;
            newest(found.query_map(params![from.0, to.0, PAGE as u64], |row| row.get(0))?)
        };
        self.base.read(read).await
    }
}

fn parsed(
    rows: impl Iterator<Item = rusqlite::Result<String>>,
) -> Result<Vec<Proposal>, ProposalError> {
    rows.map(|text| Ok(serde_json::from_str(&text?)?)).collect()
}

/// Reads rows sorted newest first, so that a limit leaves out the oldest.
fn newest(
    rows: impl Iterator<Item = rusqlite::Result<String>>,
) -> Result<Vec<Proposal>, ProposalError> {
    let mut found = parsed(rows)?;
    found.reverse();
    Ok(found)
}

fn find(conn: &Connection, id: &str) -> Result<Option<Proposal>, ProposalError> {
    let text: Option<String> = conn
        .prepare_cached("SELECT proposal FROM proposals WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    text.map(|text| Ok(serde_json::from_str(&text)?)).transpose()
}

/// Checks that no other approved block takes place at that time.
fn is_alone(tx: &Transaction, proposal: &Proposal) -> Result<(), ProposalError> {
    let mut others = tx.prepare_cached(
        "SELECT proposal FROM proposals INDEXED BY proposals_by_end \
         WHERE start_at < ?2 AND end_at > ?1 AND id != ?3 ORDER BY start_at, id",
    )?;
    let (start, end) = (proposal.start.0, proposal.end.0);
    let others = parsed(others.query_map(params![start, end, proposal.id], |row| row.get(0))?)?;
    match others.into_iter().find(|other| other.state.is_agreed()) {
        Some(by) => Err(ProposalError::Taken { id: proposal.id.clone(), by: Box::new(by) }),
        None => Ok(()),
    }
}

fn put(tx: &Transaction, proposal: &Proposal) -> Result<(), ProposalError> {
    tx.prepare_cached(
        "INSERT OR REPLACE INTO proposals (id, state, run, handoff, start_at, end_at, proposal) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        proposal.id,
        proposal.state.word(),
        proposal.run.to_string(),
        proposal.handoff.to_string(),
        proposal.start.0,
        proposal.end.0,
        serde_json::to_string(proposal)?,
    ])?;
    Ok(())
}
