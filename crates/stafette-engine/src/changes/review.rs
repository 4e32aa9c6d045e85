//! The life of a set from its proposal to its end, recorded in its run.

use std::collections::{BTreeMap, BTreeSet};

use stafette_agents::end_left_behind;
use stafette_core::change::{Change, ChangeId, ChangeRules, ChangeStatus, Proposal};
use stafette_core::team::change::ChangeWork;
use stafette_core::{Input, Reply, RunId, TeamInput, TurnKey};
use stafette_workspace::changes::{Left, Report, mark};
use stafette_workspace::{ChangeError, Changes};

use super::hold::Hand;
use super::{follow, take_in, telling, to_the_end, told};
use crate::{Engine, EngineError, crash};

impl Engine {
    /// Takes the proposal of an agent in its turn.
    ///
    /// # Errors
    /// When the turn has ended, or the set is invalid.
    pub async fn propose_change(
        &self,
        turn: TurnKey,
        proposal: Proposal,
    ) -> Result<Change, EngineError> {
        let state = self.state(turn.run).await?;
        let order = state.order(turn).ok_or(EngineError::Late { turn })?;
        let change =
            take_in(self.settings(), &state.workflow.change_rules(), &order, proposal).await?;
        crash::point();
        let set = Box::new(change.proposed());
        let reply = self
            .send(turn.run, Input::Team(TeamInput::ProposeChange { turn: Some(turn), set }))
            .await?;
        if reply != Reply::Recorded {
            let id = change.id;
            let why = "its turn was over when it was proposed, or its run has too many open sets";
            self.changes(async move |changes| changes.turned_away(id, why).await).await?;
            return Err(EngineError::Late { turn });
        }
        told(self.settings(), change.clone()).await;
        Ok(change)
    }

    /// Takes a proposal from a party without a turn; the run that it names records it.
    ///
    /// # Errors
    /// When the set is invalid, or there is no such run.
    pub async fn propose_aside(
        &self,
        mut proposal: Proposal,
        rules: ChangeRules,
    ) -> Result<Change, EngineError> {
        // It is written to disk before the run receives it.
        proposal.reason = self.redacted(proposal.reason);
        proposal.author.person = self.redacted(proposal.author.person);
        if let Some(run) = proposal.author.run {
            self.view(run).await?;
        }
        self.keep_aside(async move |changes: Changes| changes.propose(proposal, &rules).await).await
    }

    /// Proposes the work that another orchestrator left, in the run that continues from it.
    pub(crate) async fn propose_foreign(
        &self,
        proposal: Proposal,
        rules: ChangeRules,
    ) -> Result<Change, EngineError> {
        let propose = async move |changes: Changes| changes.propose_foreign(proposal, &rules).await;
        self.keep_aside(propose).await
    }

    async fn keep_aside<F>(
        &self,
        propose: impl FnOnce(Changes) -> F + Send + 'static,
    ) -> Result<Change, EngineError>
    where
        F: Future<Output = Result<Change, ChangeError>>,
    {
        let change = self.changes(propose).await?;
        self.introduce(&change).await?;
        told(self.settings(), change.clone()).await;
        Ok(change)
    }

    /// Records a person's approval or rejection of a set. Its run receives the decision first.
    ///
    /// # Errors
    /// When the set is too far along for a decision.
    pub async fn decide_change(
        &self,
        id: ChangeId,
        status: ChangeStatus,
        by: String,
        note: String,
    ) -> Result<Change, EngineError> {
        // The set names the person in the same redacted form as its run.
        let by = self.redacted(by);
        let change = self.changes(async move |changes| changes.get(id)).await?;
        Changes::decidable(&change, status)?;
        let said =
            Input::Team(TeamInput::SettleChange { change: id, status, by: by.clone(), note });
        self.record_of(&change, said).await?;
        let write = async move |changes: Changes| {
            follow(&changes, id, status, &by).await?;
            changes.get(id)
        };
        Ok(self.changes(write).await?)
    }

    /// Applies a set, or rolls it back. The intent is recorded first.
    ///
    /// # Errors
    /// The reason why it was not attempted, for example files locked by another holder.
    pub async fn apply_change(
        &self,
        id: ChangeId,
        rules: ChangeRules,
        by: Hand,
    ) -> Result<Report, EngineError> {
        let engine = self.clone();
        to_the_end(async move {
            let set = engine.changes(async move |changes| changes.get(id)).await?;
            let hold = engine.hold_files(&by.holder, [&set]).await?;
            let apply = async move |changes: Changes| changes.apply(id, &rules).await;
            let report = engine.carry_out(vec![id], ChangeWork::Apply, by.name, apply).await;
            hold.release().await;
            report
        })
        .await
    }

    /// Applies those of these sets that can be applied, in this order. Sets with files locked by
    /// another holder are left out.
    ///
    /// # Errors
    /// The reason why none of them was attempted.
    pub async fn apply_changes(
        &self,
        ids: Vec<ChangeId>,
        rules: ChangeRules,
        by: Hand,
    ) -> Result<Report, EngineError> {
        let engine = self.clone();
        to_the_end(async move {
            let (mut free, mut holds, mut left) = (Vec::new(), Vec::new(), Vec::new());
            for id in ids {
                let held = async {
                    let set = engine.changes(async move |changes| changes.get(id)).await?;
                    engine.hold_files(&by.holder, [&set]).await
                };
                match held.await {
                    Ok(hold) => {
                        free.push(id);
                        holds.push(hold);
                    }
                    Err(error) => {
                        left.push(Left { id, why: error.to_string(), needs_person: false });
                    }
                }
            }
            let batch = free.clone();
            let apply = async move |changes: Changes| changes.land(&batch, &rules).await;
            let report = engine.carry_out(free, ChangeWork::Apply, by.name, apply).await;
            for hold in holds {
                hold.release().await;
            }
            let mut report = report?;
            report.left.append(&mut left);
            Ok(report)
        })
        .await
    }

    /// Rolls a set back.
    ///
    /// # Errors
    /// The reason why it cannot be rolled back, for example files locked by another holder.
    pub async fn undo_change(
        &self,
        id: ChangeId,
        with_later: bool,
        rules: ChangeRules,
        by: Hand,
    ) -> Result<Report, EngineError> {
        let engine = self.clone();
        to_the_end(async move {
            let sets = engine.changes(async move |changes| {
                let mut sets = if with_later { changes.later(id)? } else { Vec::new() };
                sets.push(changes.get(id)?);
                Ok(sets)
            });
            let hold = engine.hold_files(&by.holder, &sets.await?).await?;
            let undo = async move |changes: Changes| changes.undo(id, with_later, &rules).await;
            let report = engine.carry_out(vec![id], ChangeWork::Undo, by.name, undo).await;
            hold.release().await;
            report
        })
        .await
    }

    /// Sends the runs the results that a crash kept from them, and the sets the decisions of
    /// people.
    pub(crate) async fn mend_changes(&self) {
        if !self.settings().state.join("changes").is_dir() {
            return;
        }
        // A command that outlived its daemon would write to files that are being repaired.
        end_left_behind(&mark(&self.settings().project)).await;
        let mended = self.changes(async |changes| {
            changes.recover().await?;
            changes.list()
        });
        let all = match mended.await {
            Ok(all) => all,
            Err(error) => return tracing::error!(%error, "changes cannot be looked after"),
        };
        for change in &all {
            self.disown(change).await;
        }
        self.follow_words(&all).await;
        for change in all.into_iter().filter(|change| change.untold) {
            let id = change.id;
            if let Err(error) = self.settle(id, "", "").await {
                tracing::warn!(%id, %error, "its run has yet to hear of it");
            }
        }
    }

    /// Writes to sets the decisions of people in their runs, also in those that have ended.
    async fn follow_words(&self, all: &[Change]) {
        let mut runs: BTreeMap<RunId, Vec<&Change>> = BTreeMap::new();
        for change in all {
            if let Some(run) = change.author.run {
                runs.entry(run).or_default().push(change);
            }
        }
        for (run, sets) in runs {
            let Ok(state) = self.state(run).await else { continue };
            for change in sets {
                let Some(known) = state.team.changes.get(&change.id) else { continue };
                let (id, status) = (change.id, known.status);
                let said = telling::unwritten(&state, change);
                if said.is_empty() && !telling::follows(change, status) {
                    continue;
                }
                let write = async move |changes: Changes| {
                    for comment in said {
                        changes.comment(id, comment).await?;
                    }
                    follow(&changes, id, status, "a person").await
                };
                if let Err(error) = self.changes(write).await {
                    tracing::warn!(%id, %error, "a person's word is not written to it");
                }
            }
        }
    }

    /// Records the intent, does the work, and records the outcome.
    async fn carry_out<F>(
        &self,
        ids: Vec<ChangeId>,
        work: ChangeWork,
        by: String,
        does: impl FnOnce(Changes) -> F + Send + 'static,
    ) -> Result<Report, EngineError>
    where
        F: Future<Output = Result<Report, ChangeError>>,
    {
        for id in ids.iter().copied() {
            let change = self.changes(async move |changes| changes.get(id)).await?;
            if change.author.run.is_none() {
                continue;
            }
            self.changes(async move |changes| changes.untell(id).await).await?;
            let ordered = Input::Team(TeamInput::OrderChange { change: id, work, by: by.clone() });
            self.record_of(&change, ordered).await?;
        }
        crash::point();
        let report = self.changes(does).await;
        crash::point();
        let mut touched: BTreeSet<ChangeId> = ids.into_iter().collect();
        let mut note = String::new();
        match &report {
            Ok(report) => touched.extend(report.landed.iter().map(|change| change.id)),
            Err(error) => note = error.to_string(),
        }
        for id in touched {
            // If recording fails now, the next daemon does it when it starts: the set is marked for
            // that.
            if let Err(error) = self.settle(id, &by, &note).await {
                tracing::warn!(%id, %error, "what came of a change is not recorded yet");
            }
        }
        Ok(report?)
    }

    /// Has the run of a set record the set's progress.
    async fn settle(&self, id: ChangeId, by: &str, note: &str) -> Result<(), EngineError> {
        let change = self.changes(async move |changes| changes.get(id)).await?;
        let Some(run) = change.author.run else { return Ok(()) };
        self.introduce(&change).await?;
        let state = self.state(run).await?;
        if let Some(input) = telling::outcome(&state, &change, by, note) {
            self.record(run, input).await?;
        }
        told(self.settings(), change).await;
        Ok(())
    }

    /// Has the run of a set record an input about it, also when the run has ended; the run receives
    /// the set first. A set without a run is not recorded.
    pub(super) async fn record_of(&self, change: &Change, input: Input) -> Result<(), EngineError> {
        let Some(run) = change.author.run else { return Ok(()) };
        self.introduce(change).await?;
        self.record(run, input).await.map(drop)
    }

    /// Introduces a set to its run, if the run does not know it.
    pub(super) async fn introduce(&self, change: &Change) -> Result<(), EngineError> {
        let Some(run) = change.author.run else { return Ok(()) };
        if let Some(input) = telling::introduction(&*self.state(run).await?, change) {
            self.record(run, input).await?;
        }
        Ok(())
    }
}
