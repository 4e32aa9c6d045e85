//! The life of a set from its proposal to a person's decision, recorded in its run.

use std::time::Duration;

use stafette_core::change::{Change, ChangeId, ChangeRules, ChangeStatus, Proposal};
use stafette_core::team::order::OrderKey;
use stafette_core::{Ignored, Input, Reply, Run, RunId, TeamInput, TurnKey};
use stafette_workspace::{ChangeError, Changes};

use super::{ChangeSets, take_in};
use crate::{EngineError, crash};

/// The time that a caller waits for its words to be in the record of a set.
const WRITTEN: Duration = Duration::from_secs(10);

impl ChangeSets<'_> {
    /// Takes the proposal of an agent in its turn.
    ///
    /// # Errors
    /// When the turn has ended, or the set is invalid.
    pub async fn propose(self, turn: TurnKey, proposal: Proposal) -> Result<Change, EngineError> {
        let engine = self.engine;
        let state = engine.state(turn.run).await?;
        let order = state.order(turn).ok_or(EngineError::Late { turn })?;
        let rules = state.workflow.change_rules();
        let change = take_in(engine.settings(), &rules, &order, proposal).await?;
        crash::point();
        let (by, set) = (Some(turn), Box::new(change.proposed()));
        let proposed = Input::Team(TeamInput::ProposeChange { turn: by, set });
        let reply = engine.send(turn.run, proposed).await?;
        if reply != Reply::Recorded {
            let id = change.id;
            let (why, error) = match reply {
                Reply::Ignored(Ignored::NoRoom) if change.revision == 1 => {
                    ("its run has too many open sets", EngineError::NoRoom { run: turn.run })
                }
                _ => ("its turn was over when it was proposed", EngineError::Late { turn }),
            };
            self.with(async move |changes| changes.turned_away(id, why).await).await?;
            return Err(error);
        }
        Ok(change)
    }

    /// Takes a proposal from a party without a turn; the run that it names records it.
    ///
    /// # Errors
    /// When the set is invalid, or there is no such run.
    pub async fn propose_aside(
        self,
        mut proposal: Proposal,
        rules: ChangeRules,
    ) -> Result<Change, EngineError> {
        // It is written to disk before the run receives it.
        proposal.reason = self.engine.redacted(proposal.reason);
        proposal.author.person = self.engine.redacted(proposal.author.person);
        if let Some(run) = proposal.author.run {
            self.engine.view(run).await?;
        }
        self.keep_aside(async move |changes: Changes| changes.propose(proposal, &rules).await).await
    }

    /// Proposes the work that another orchestrator left, in the run that continues from it.
    pub(crate) async fn propose_foreign(
        self,
        proposal: Proposal,
        rules: ChangeRules,
    ) -> Result<Change, EngineError> {
        let propose = async move |changes: Changes| changes.propose_foreign(proposal, &rules).await;
        self.keep_aside(propose).await
    }

    /// Has the runs record the sets that a crash kept from them: a set is written to disk before its
    /// run receives it. Nobody was told that these were taken.
    pub(crate) async fn recover_proposals(self) -> Result<(), EngineError> {
        let all = self.list().await?.into_iter();
        for change in all.filter(|change| change.status == ChangeStatus::Pending) {
            // A run that is damaged must not stop the others.
            if let Err(error) = self.run_of_set(&change).await {
                tracing::warn!(id = %change.id, %error, "its run does not take it");
            }
        }
        Ok(())
    }

    async fn keep_aside<F>(
        self,
        propose: impl FnOnce(Changes) -> F + Send + 'static,
    ) -> Result<Change, EngineError>
    where
        F: Future<Output = Result<Change, ChangeError>>,
    {
        let change = self.with(propose).await?;
        crash::point();
        match self.run_of_set(&change).await {
            Err(error @ EngineError::Change { source: ChangeError::Busy }) => {
                let (id, why) = (change.id, "it was being applied when it was revised");
                self.with(async move |changes| changes.turned_away(id, why).await).await?;
                Err(error)
            }
            heard => heard.map(|_| change),
        }
    }

    /// Records a person's approval or rejection of a set, of the revision that the person has seen
    /// if that is named.
    ///
    /// # Errors
    /// When the set is too far along for a decision, or was revised since.
    pub async fn decide(
        self,
        id: ChangeId,
        revision: Option<u32>,
        status: ChangeStatus,
        by: String,
        note: String,
    ) -> Result<Change, EngineError> {
        // The set names the person in the same redacted form as its run.
        let by = self.engine.redacted(by);
        let change = self.get(id).await?;
        Changes::decidable(&change, status)?;
        let seen = revision.unwrap_or(change.revision);
        if seen != change.revision {
            return Err(revised(&change, seen).into());
        }
        let Some(run) = self.run_of_set(&change).await? else {
            let write = async move |changes: Changes| match status {
                ChangeStatus::Approved => changes.approve(id, &by).await,
                _ => changes.refuse(id, &by).await,
            };
            return Ok(self.with(write).await?);
        };
        let revision = Some(seen);
        let said = TeamInput::DecideChange { change: id, revision, status, by, note };
        match self.engine.record(run, Input::Team(said)).await? {
            Reply::Recorded => {}
            reply => return Err(self.not_taken(&change, seen, reply).await),
        }
        self.written(run, id).await;
        Ok(self.get(id).await?)
    }

    /// Returns the error that the reply of a run to an input about a set stands for: the run did not
    /// take it.
    pub(super) async fn not_taken(self, change: &Change, seen: u32, reply: Reply) -> EngineError {
        let (id, now) = (change.id, self.get(change.id).await);
        match (reply, now) {
            (_, Err(error)) => error.into(),
            (Reply::Ignored(Ignored::Revised), Ok(now)) => revised(&now, seen).into(),
            (Reply::Ignored(Ignored::NotOpen), Ok(Change { status, .. })) => {
                ChangeError::Status { id, status, wanted: "approved or refused any more" }.into()
            }
            // It is being worked on, or the run has just dropped it to make room.
            _ => ChangeError::Busy.into(),
        }
    }

    /// Returns the run that records what becomes of a set, after it has received the set; `None`
    /// when the set belongs to none, or to one that is gone or never had room for it.
    ///
    /// # Errors
    /// When the run knows another revision of the set and does not take this one now.
    pub(crate) async fn run_of_set(self, change: &Change) -> Result<Option<RunId>, EngineError> {
        let Some(run) = change.run() else { return Ok(None) };
        let state = match self.engine.state(run).await {
            Ok(state) => state,
            Err(EngineError::NoRun { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let (id, seen) = (change.id, change.revision);
        match state.team.changes.get(&id).map(|known| known.revision) {
            Some(revision) if revision == seen => return Ok(Some(run)),
            Some(revision) if revision > seen => {
                return Err(ChangeError::Revised { id, seen, revision }.into());
            }
            _ => {}
        }
        let (turn, set) = (None, Box::new(change.proposed()));
        match self.engine.record(run, Input::Team(TeamInput::ProposeChange { turn, set })).await? {
            Reply::Recorded => Ok(Some(run)),
            Reply::Ignored(Ignored::NoRoom) => Ok(None),
            // It is being worked on, or was just revised.
            _ => Err(ChangeError::Busy.into()),
        }
    }

    /// Waits until the record of a set has what people said of it in its run.
    pub(super) async fn written(self, run: RunId, id: ChangeId) {
        let is_written =
            |run: &Run| run.team.changes.get(&id).is_none_or(|known| known.unwritten.is_none());
        self.engine.shows(run, is_written, WRITTEN).await;
    }

    /// Notes in the record of a set what people decided and said in its run.
    pub(crate) async fn write_down(
        self,
        run: RunId,
        id: ChangeId,
        upto: u64,
    ) -> Result<(), EngineError> {
        match self.write_words(run, id).await {
            // Nobody is left to be told.
            Ok(()) | Err(EngineError::Change { source: ChangeError::NoChange { .. } }) => {}
            Err(error) => return Err(error),
        }
        self.engine.order_done(run, OrderKey::Note { change: id, upto }).await
    }

    /// Writes to the record of a set what its run knows of people's words.
    pub(super) async fn write_words(self, run: RunId, id: ChangeId) -> Result<(), EngineError> {
        let _one = self.engine.requests().words.lock().await;
        let state = self.engine.state(run).await?;
        let Some(known) = state.team.changes.get(&id).cloned() else { return Ok(()) };
        let write = async move |changes: Changes| {
            let change = changes.get(id)?;
            for comment in known.said.into_iter().filter(|it| !change.comments.contains(it)) {
                changes.comment(id, comment).await?;
            }
            let is_news = known.revision == change.revision && known.status != change.status;
            match known.status {
                _ if !is_news || !change.status.is_open() => {}
                ChangeStatus::Approved => drop(changes.approve(id, &known.decided_by).await?),
                ChangeStatus::Refused => drop(changes.refuse(id, &known.decided_by).await?),
                _ => {}
            }
            Ok(())
        };
        Ok(self.with(write).await?)
    }
}

pub(super) fn revised(change: &Change, seen: u32) -> ChangeError {
    ChangeError::Revised { id: change.id, seen, revision: change.revision }
}
