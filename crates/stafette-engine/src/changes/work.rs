//! Applying sets and taking them back. A caller has the runs of the sets record orders, and waits for
//! their outcome; the runs' tasks have them carried out. An order that a crash interrupted is carried
//! out by the next process, for nobody in particular.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use stafette_core::change::{Change, ChangeId, ChangeRules, ChangeStatus};
use stafette_core::team::change::{ChangeWork, Hand};
use stafette_core::team::order::{OrderBatch, OrderKey, WorkKey};
use stafette_core::workflow::own::Own;
use stafette_core::{Ignored, Input, Reply, TeamInput};
use stafette_store::ReadError;
use stafette_workspace::changes::{Left, Report};
use stafette_workspace::{ChangeError, Renewal};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::review::revised;
use super::{ChangeSets, to_the_end};
use crate::{EngineError, crash};

/// The callers that wait for the outcome of their orders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    /// Held by whoever works on the project, and by a caller until all of its orders are recorded.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Held from reading what people said in a run until it is in the record of its set: a later word
    /// must not be overwritten by an earlier one.
    pub(super) words: Arc<tokio::sync::Mutex<()>>,
    open: Arc<Mutex<Vec<Request>>>,
}

/// Sets that are applied or taken back together.
#[derive(Debug)]
struct Request {
    /// The sets whose runs do not know yet what came of them.
    sets: Vec<Ordered>,
    /// True if those that cannot be applied are left, and the others are applied.
    any: bool,
    means: Means,
    /// What came of it; `None` before the work is done.
    outcome: Option<Result<Outcome, EngineError>>,
    /// The caller that waits for the outcome, if any.
    reply: Option<oneshot::Sender<Result<Outcome, EngineError>>>,
}

/// A set of a request.
#[derive(Clone, Debug)]
struct Ordered {
    id: ChangeId,
    /// The revision that the work is for.
    revision: u32,
    /// The order of its run; `None` when it belongs to no run.
    key: Option<WorkKey>,
    /// The reason, if the work came to nothing.
    note: String,
}

/// What a caller wants done with sets.
#[derive(Clone, Copy, Debug)]
struct Wish {
    work: ChangeWork,
    /// True if sets that cannot be ordered are left.
    any: bool,
    /// True if sets that an agent is revising are applied as they are.
    as_it_is: bool,
}

/// What the work on a set is done by: the rules and the program of a trusted workflow.
#[derive(Clone, Debug)]
struct Means {
    rules: ChangeRules,
    own: Option<Own>,
}

/// The outcome of a request.
#[derive(Debug, Default)]
struct Outcome {
    report: Report,
    renewal: Option<Renewal>,
}

/// A set that is to be worked on.
#[derive(Debug)]
struct Wanted {
    change: Change,
    /// The order of its run; `None` when it belongs to no run.
    key: Option<WorkKey>,
}

impl Requests {
    fn open(&self) -> std::sync::MutexGuard<'_, Vec<Request>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the request that an order belongs to.
    fn take(&self, key: WorkKey) -> Option<Request> {
        let mut requests = self.open();
        let is_it = |request: &Request| request.sets.iter().any(|set| set.key == Some(key));
        let at = requests.iter().position(is_it)?;
        Some(requests.remove(at))
    }
}

impl ChangeSets<'_> {
    /// Applies a set, or rolls it back; of the revision that the caller has seen, if that is named. A
    /// set that an agent is revising is applied only if the caller wants it `as_it_is`.
    ///
    /// # Errors
    /// The reason why it was not attempted, for example files locked by another holder.
    pub async fn apply(
        self,
        id: ChangeId,
        revision: Option<u32>,
        as_it_is: bool,
        rules: ChangeRules,
        by: Hand,
    ) -> Result<Report, EngineError> {
        let wish = Wish { work: ChangeWork::Apply, any: false, as_it_is };
        self.report_of(vec![(id, revision)], wish, rules, by).await
    }

    /// Applies those of these sets that can be applied, in this order. Sets with files locked by
    /// another holder are left out, and those that an agent is revising unless they are wanted
    /// `as_it_is`.
    ///
    /// # Errors
    /// The reason why none of them was attempted.
    pub async fn apply_all(
        self,
        ids: Vec<ChangeId>,
        as_it_is: bool,
        rules: ChangeRules,
        by: Hand,
    ) -> Result<Report, EngineError> {
        let sets = ids.into_iter().map(|id| (id, None)).collect();
        let wish = Wish { work: ChangeWork::Apply, any: true, as_it_is };
        self.report_of(sets, wish, rules, by).await
    }

    /// Takes a set back.
    ///
    /// # Errors
    /// The reason why it cannot be taken back, for example files locked by another holder.
    pub async fn undo(
        self,
        id: ChangeId,
        with_later: bool,
        rules: ChangeRules,
        by: Hand,
    ) -> Result<Report, EngineError> {
        let work = if with_later { ChangeWork::UndoWithLater } else { ChangeWork::Undo };
        let wish = Wish { work, any: false, as_it_is: true };
        self.report_of(vec![(id, None)], wish, rules, by).await
    }

    /// Gives the team's own program the code of a change and restarts it. If that fails, the old
    /// version is restored and runs.
    ///
    /// # Errors
    /// When the change may not be applied, another holder has locked a file of it, or the rollback
    /// is blocked.
    pub async fn renew(
        self,
        id: ChangeId,
        as_it_is: bool,
        own: &Own,
        rules: &ChangeRules,
        by: &Hand,
    ) -> Result<Renewal, EngineError> {
        let means = Means { rules: rules.clone(), own: Some(own.clone()) };
        let wish = Wish { work: ChangeWork::Renew, any: false, as_it_is };
        let outcome = self.request(vec![(id, None)], wish, means, by.clone()).await?;
        outcome.renewal.ok_or(EngineError::Stopping)
    }

    async fn report_of(
        self,
        sets: Vec<(ChangeId, Option<u32>)>,
        wish: Wish,
        rules: ChangeRules,
        by: Hand,
    ) -> Result<Report, EngineError> {
        let means = Means { rules, own: None };
        Ok(self.request(sets, wish, means, by).await?.report)
    }

    /// Orders the work and waits for its outcome. It goes on if the caller goes away. A set that
    /// cannot be ordered is an error, or left if `any` will do.
    async fn request(
        self,
        sets: Vec<(ChangeId, Option<u32>)>,
        wish: Wish,
        means: Means,
        by: Hand,
    ) -> Result<Outcome, EngineError> {
        let (engine, Wish { work, any, .. }) = (self.engine.clone(), wish);
        to_the_end(async move {
            let turn = engine.requests().turn.lock().await;
            let (mut ordered, mut left) = (Vec::new(), Vec::new());
            let batch = any.then(Uuid::now_v7);
            for (place, (id, revision)) in (0..).zip(sets) {
                let batch = batch.map(|id| OrderBatch { id, place });
                match engine.changes().order_work(id, revision, wish, &by, batch).await {
                    Ok(set) => ordered.push(set),
                    Err(error) if !any => return Err(error),
                    Err(error) => left.push(left_out(id, &error)),
                }
            }
            let is_ordered = ordered.iter().any(|set| set.key.is_some());
            let mut request = Request { sets: ordered, any, means, outcome: None, reply: None };
            let mut outcome = if is_ordered {
                let (reply, outcome) = oneshot::channel();
                engine.requests().open().push(Request { reply: Some(reply), ..request });
                drop(turn);
                crash::point();
                tokio::select! {
                    outcome = outcome => outcome.map_err(|_| EngineError::Stopping)??,
                    // Its order is left for the next process.
                    () = engine.gives_up() => return Err(EngineError::Stopping),
                }
            } else if request.sets.is_empty() {
                Outcome::default()
            } else {
                // No run has an order that would be carried out.
                engine.changes().perform(&mut request, work, &by).await??
            };
            outcome.report.left.append(&mut left);
            Ok(outcome)
        })
        .await
    }

    /// Has the run of a set record an order, if it belongs to one.
    async fn order_work(
        self,
        id: ChangeId,
        revision: Option<u32>,
        wish: Wish,
        by: &Hand,
        batch: Option<OrderBatch>,
    ) -> Result<Ordered, EngineError> {
        let change = self.get(id).await?;
        let seen = revision.unwrap_or(change.revision);
        if seen != change.revision {
            return Err(revised(&change, seen).into());
        }
        let Some(run) = self.run_of_set(&change).await? else {
            return Ok(Ordered { id, revision: seen, key: None, note: String::new() });
        };
        let (revision, by, Wish { work, as_it_is, .. }) = (Some(seen), by.clone(), wish);
        let order = TeamInput::OrderChange { change: id, revision, work, by, batch, as_it_is };
        let seq = match self.engine.record(run, Input::Team(order)).await? {
            Reply::Ordered { seq } => seq,
            Reply::Ignored(Ignored::BeingRevised) => {
                return Err(ChangeError::BeingRevised { id, run }.into());
            }
            reply => return Err(self.not_taken(&change, seen, reply).await),
        };
        Ok(Ordered::by(WorkKey { run, change: id, seq }, seen))
    }

    /// Carries out an order of a run, together with the others that were requested with it, and has
    /// the outcome recorded.
    pub(crate) async fn work_on(
        self,
        key: WorkKey,
        work: ChangeWork,
        revision: u32,
        by: &Hand,
    ) -> Result<(), EngineError> {
        let requests = self.engine.requests();
        let _turn = requests.turn.lock().await;
        let mut request = match requests.take(key) {
            // Nobody has carried it out before, or its outcome could not be recorded.
            Some(request) => request,
            None if !self.is_open(key).await? => return Ok(()),
            None => self.recovered(key, work, revision).await?,
        };
        let ended = self.carry_out(&mut request, work, by).await;
        if ended.is_ok() {
            // The caller may have gone; what came of it is in the runs.
            drop(request.reply.zip(request.outcome).map(|(reply, outcome)| reply.send(outcome)));
        } else if request.reply.is_some() || request.outcome.is_some() {
            requests.open().push(request);
        }
        ended
    }

    /// Does the work of a request, unless that is done, and has the runs record what came of it. An
    /// error means that it has to be tried again.
    async fn carry_out(
        self,
        request: &mut Request,
        work: ChangeWork,
        by: &Hand,
    ) -> Result<(), EngineError> {
        if request.outcome.is_none() {
            let outcome = self.perform(request, work, by).await?;
            if let Err(EngineError::Change { source: ChangeError::Busy }) = outcome {
                // Another process works on the project.
                return outcome.map(drop);
            }
            request.outcome = Some(outcome);
        }
        crash::point();
        while let Some(set) = request.sets.last() {
            if let Some(key) = set.key {
                match self.report_outcome(key, work, by, set.note.clone()).await {
                    Err(error) if is_damage(&error) => {
                        tracing::error!(?key, %error, "its run cannot record its outcome");
                    }
                    reported => reported?,
                }
            }
            request.sets.pop();
        }
        Ok(())
    }

    /// True if a run still wants the order carried out.
    async fn is_open(self, key: WorkKey) -> Result<bool, EngineError> {
        let open = self.engine.state(key.run).await?.orders();
        Ok(open.iter().any(|order| order.key() == OrderKey::Change(key)))
    }

    /// True if an order was carried out before, by a process that could not report it.
    async fn is_carried_out(self, key: WorkKey, work: ChangeWork) -> Result<bool, EngineError> {
        let id = key.change;
        if work == ChangeWork::Renew {
            return Ok(self.engine.runs_on(id).await);
        }
        match self.get(id).await {
            Ok(change) => Ok(change.tried == Some(key)),
            Err(error) if is_lost(&error) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// The request for an order that nobody waits for, with those that were ordered together with it
    /// and are still open: the rules are those of its run.
    async fn recovered(
        self,
        key: WorkKey,
        work: ChangeWork,
        revision: u32,
    ) -> Result<Request, EngineError> {
        let state = self.engine.state(key.run).await?;
        let means = Means { rules: state.workflow.change_rules(), own: state.workflow.own.clone() };
        let (sets, reply) = (vec![Ordered::by(key, revision)], None);
        let alone = Request { sets, any: false, means, outcome: None, reply };
        if self.is_carried_out(key, work).await? {
            return Ok(Request { outcome: Some(Ok(Outcome::default())), ..alone });
        }
        let batch = state.team.changes.get(&key.change).and_then(|known| known.batch);
        let Some(OrderBatch { id: batch, .. }) = batch else { return Ok(alone) };
        let (mut sets, mut runs) = (BTreeMap::new(), self.engine.living());
        runs.retain(|run| run.id == key.run || self.engine.trusts(&run.workflow).is_ok());
        for run in &runs {
            for (id, known) in run.team.changes.iter().filter(|(_, known)| known.ordered.is_some())
            {
                let Some(at) = known.batch.filter(|at| at.id == batch) else { continue };
                let key = WorkKey { run: run.id, change: *id, seq: known.ordered_at };
                // What the earlier process applied is not applied again.
                if !self.is_carried_out(key, ChangeWork::Apply).await? {
                    sets.insert(at.place, Ordered::by(key, known.revision));
                }
            }
        }
        Ok(Request { sets: sets.into_values().collect(), any: true, ..alone })
    }

    /// Does the work on the project, and notes why sets were left. The outer error means that nothing
    /// was tried.
    async fn perform(
        self,
        request: &mut Request,
        work: ChangeWork,
        by: &Hand,
    ) -> Result<Result<Outcome, EngineError>, EngineError> {
        let Request { sets, any, means, .. } = request;
        let (mut wanted, mut left) = (Vec::new(), Vec::new());
        for set in &*sets {
            match self.wanted(set).await? {
                Ok(change) => wanted.push(Wanted { change, key: set.key }),
                Err(error) => left.push((set.id, EngineError::from(error))),
            }
        }
        let outcome = match (wanted.as_slice(), left.pop()) {
            (_, Some((_, error))) if !*any => Err(error),
            ([one], None) if !*any => self.perform_one(one, work, means, by).await,
            (several, last) => {
                let left = left.iter().chain(&last).map(|(id, why)| left_out(*id, why)).collect();
                self.perform_several(several, left, &means.rules, by).await
            }
        };
        for set in sets {
            set.note = match &outcome {
                Err(error) => error.to_string(),
                Ok(Outcome { renewal: Some(renewal), .. }) => renewal.why.clone(),
                Ok(Outcome { report, .. }) => {
                    let left = report.left.iter().find(|left| left.id == set.id);
                    left.map(|left| left.why.clone()).unwrap_or_default()
                }
            };
        }
        Ok(outcome)
    }

    /// Reads a set that is to be worked on, with what people said of it; the inner error is a reason
    /// why there is nothing to be worked on.
    async fn wanted(self, set: &Ordered) -> Result<Result<Change, ChangeError>, EngineError> {
        if let Some(key) = set.key {
            match self.write_words(key.run, set.id).await {
                Err(EngineError::Change { source }) if is_lost(&source) => return Ok(Err(source)),
                written => written?,
            }
        }
        match self.get(set.id).await {
            Ok(change) if change.revision != set.revision => {
                Ok(Err(revised(&change, set.revision)))
            }
            Err(error) if !is_lost(&error) => Err(error.into()),
            read => Ok(read),
        }
    }

    async fn perform_one(
        self,
        wanted: &Wanted,
        work: ChangeWork,
        means: &Means,
        by: &Hand,
    ) -> Result<Outcome, EngineError> {
        let (id, orders) = (wanted.change.id, wanted.key.into_iter().collect::<Vec<_>>());
        let mut touched = match work {
            ChangeWork::UndoWithLater => self.with(async move |changes| changes.later(id)).await?,
            ChangeWork::Apply | ChangeWork::Undo | ChangeWork::Renew => Vec::new(),
        };
        touched.push(wanted.change.clone());
        let hold = self.hold(&by.holder, &touched).await?;
        crash::point();
        let rules = means.rules.clone();
        let outcome = match work {
            ChangeWork::Renew => {
                let renewed = self.renew_held(wanted, means.clone()).await;
                renewed.map(|it| Outcome { renewal: Some(it), ..Outcome::default() })
            }
            ChangeWork::Apply | ChangeWork::Undo | ChangeWork::UndoWithLater => {
                let worked = self.with(async move |changes| {
                    let changes = changes.ordered(orders);
                    match work {
                        ChangeWork::Undo => changes.undo(id, false, &rules).await,
                        ChangeWork::UndoWithLater => changes.undo(id, true, &rules).await,
                        _ => changes.apply(id, &rules).await,
                    }
                });
                let report = worked.await.map_err(EngineError::from);
                report.map(|report| Outcome { report, renewal: None })
            }
        };
        crash::point();
        hold.release().await;
        outcome
    }

    /// Applies several sets, which are validated together.
    async fn perform_several(
        self,
        wanted: &[Wanted],
        mut left: Vec<Left>,
        rules: &ChangeRules,
        by: &Hand,
    ) -> Result<Outcome, EngineError> {
        let (mut free, mut orders, mut holds) = (Vec::new(), Vec::new(), Vec::new());
        for Wanted { change, key } in wanted {
            match self.hold(&by.holder, [change]).await {
                Ok(hold) => {
                    holds.push(hold);
                    free.push(change.id);
                    orders.extend(*key);
                }
                Err(error) => left.push(left_out(change.id, &error)),
            }
        }
        crash::point();
        let rules = rules.clone();
        let worked =
            self.with(async move |changes| changes.ordered(orders).land(&free, &rules).await);
        let report = worked.await;
        crash::point();
        for hold in holds {
            hold.release().await;
        }
        let mut report = report?;
        report.left.append(&mut left);
        Ok(Outcome { report, renewal: None })
    }

    async fn renew_held(self, wanted: &Wanted, means: Means) -> Result<Renewal, EngineError> {
        let Means { rules, own: Some(own) } = means else {
            return Err(EngineError::Objected { why: "the team has no program of its own".into() });
        };
        let renewal = self.engine.replace_program(wanted.change.id, wanted.key, own, rules).await?;
        if let Some(run) = wanted.change.run() {
            // The run that it came from may have ended, and then it notifies no one.
            let (code, message) = crate::self_program::alert(&renewal);
            let _ = self.engine.send(run, Input::Alert { code, message }).await;
        }
        Ok(renewal)
    }

    /// Has the run of a set record that it was taken back by the order of another one.
    async fn report_other(
        self,
        change: &Change,
        key: WorkKey,
        by: &Hand,
    ) -> Result<(), EngineError> {
        let Some(run) = self.run_of_set(change).await? else { return Ok(()) };
        self.engine.record(run, settled(change, key, by, String::new())).await.map(drop)
    }

    /// Has the runs record what an order came to: first those of other sets that it took back, and
    /// then its own, which ends it.
    async fn report_outcome(
        self,
        key: WorkKey,
        work: ChangeWork,
        by: &Hand,
        note: String,
    ) -> Result<(), EngineError> {
        if matches!(work, ChangeWork::UndoWithLater | ChangeWork::Renew) {
            let all = self.list().await?;
            let others = all.into_iter().filter(|it| it.tried == Some(key) && it.id != key.change);
            for change in others {
                match self.report_other(&change, key, by).await {
                    Err(error) if is_damage(&error) => {
                        tracing::error!(id = %change.id, %error, "its run cannot record its outcome");
                    }
                    reported => reported?,
                }
            }
        }
        let id = key.change;
        let outcome = match self.get(id).await {
            Ok(change) => settled(&change, key, by, note),
            Err(error) if is_lost(&error) => {
                let (status, by, note) = (ChangeStatus::Failed, by.name.clone(), error.to_string());
                Input::Team(TeamInput::SettleChange { change: id, order: key, status, by, note })
            }
            Err(error) => return Err(error.into()),
        };
        crash::point();
        self.engine.record(key.run, outcome).await.map(drop)
    }
}

impl Ordered {
    /// A set with an order of its run.
    fn by(key: WorkKey, revision: u32) -> Self {
        Ordered { id: key.change, revision, key: Some(key), note: String::new() }
    }
}

/// True if the record of a set is gone or damaged, so that trying again does not help.
fn is_lost(error: &ChangeError) -> bool {
    matches!(error, ChangeError::NoChange { .. } | ChangeError::Unreadable { .. })
}

/// True if a run cannot be read or written any more.
fn is_damage(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::NoRun { .. }
            | EngineError::Damaged { .. }
            | EngineError::Restore { .. }
            | EngineError::Read { source: ReadError::Damaged { .. } }
    )
}

fn left_out(id: ChangeId, why: &EngineError) -> Left {
    Left { id, why: why.to_string(), needs_person: false }
}

/// The input with the status of a set after an order.
fn settled(change: &Change, order: WorkKey, by: &Hand, note: String) -> Input {
    let note = match (&change.failure, &change.commit) {
        _ if !note.is_empty() => note,
        (Some(failure), _) if change.status == ChangeStatus::Failed => {
            failure.lines().next().unwrap_or_default().to_owned()
        }
        (_, Some(commit)) if change.status.is_in() => format!("commit {commit}"),
        _ => String::new(),
    };
    let (change, status, by) = (change.id, change.status, by.name.clone());
    Input::Team(TeamInput::SettleChange { change, order, status, by, note })
}
