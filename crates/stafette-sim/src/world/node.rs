//! A process that drives the run: does the work of the engine's task, with time and the store
//! controlled by the seed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use stafette_core::run::create::RunCreated;
use stafette_core::team::Inheritance;
use stafette_core::team::phase::REASON;
use stafette_core::{
    Event, HandoffId, Input, Millis, Party, Recorded, Run, TeamInput, Time, TurnKey,
};
use stafette_engine::{Driver, Plan, Step};
use stafette_store::AppendError;

use super::{Happening, Message, Passage, Reply, Stop, World};
use crate::Sabotage;
use crate::agent::Phase;
use crate::chance::Chance;
use crate::law::{Breach, Round, keeps_the_baton, must, tick_moves_on};

/// A distant deadline is checked again in an hour, as in the engine.
const LOOK_AGAIN: Millis = Millis::hours(1);

const FIRST_PAUSE: Millis = Millis(200);
const LONGEST_PAUSE: Millis = Millis::seconds(10);

/// A process, running or not.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: &'static str,
    /// The number of times it has died.
    pub(super) life: u32,
    pub(super) stand: Stand,
    /// The error of its clock, in milliseconds.
    skew: i64,
}

/// The state of a process.
#[derive(Debug)]
pub(super) enum Stand {
    /// It does not run.
    Down,
    /// It drives the run.
    Up(Box<Up>),
    /// It knows that the run has ended.
    Done,
}

/// The memory of a process.
#[derive(Debug)]
pub(super) struct Up {
    driver: Driver,
    queue: VecDeque<Message>,
    /// Messages that could not be stored yet.
    in_hand: Vec<Message>,
    pause: Millis,
    /// True if it is going to handle its queue.
    awake: bool,
    /// The time at which it is going to check the clock.
    alarm: Option<Time>,
    sessions: BTreeMap<TurnKey, u64>,
    /// True if it is going to write the team's file.
    pub(super) draws: bool,
}

impl Up {
    /// Returns the run as the process knows it.
    pub(super) fn run(&self) -> &Run {
        self.driver.run()
    }
}

impl Node {
    pub(super) fn new(chance: &mut Chance, number: usize) -> Self {
        let skew = match number {
            0 => 0,
            _ => i64::try_from(chance.below(20_000)).unwrap_or(0) - 10_000,
        };
        let name = if number == 0 { "a" } else { "b" };
        Node { name, life: 0, stand: Stand::Down, skew }
    }
}

impl World {
    /// Returns the time by the clock of that process.
    pub(super) fn clock(&self, node: usize) -> Time {
        Time(self.now.0 + self.nodes[node].skew)
    }

    pub(super) fn up(&mut self, node: usize) -> Option<&mut Up> {
        match &mut self.nodes[node].stand {
            Stand::Up(up) => Some(up),
            Stand::Down | Stand::Done => None,
        }
    }

    /// Starts a process: the first one begins the run, every other takes it over.
    pub(super) fn boot(&mut self, node: usize) -> Passage {
        let now = self.clock(node);
        let begun = self.disk.row(self.run).is_some();
        if !begun && node > 0 {
            self.plan(Millis::seconds(1), Happening::Boot { node });
            return Ok(());
        }
        if begun && !self.disk.is_unfinished(self.run) {
            self.tell_of(node, format_args!("starts and has nothing to do"));
            self.nodes[node].stand = Stand::Done;
            return Ok(());
        }
        let (driver, step) = if begun {
            let restored = self.disk.restore(self.run).ok_or_else(|| Breach {
                law: "what is stored can be read",
                detail: "the run cannot be restored".to_owned(),
            })?;
            let same = Some(restored.run()) == self.witness.run.as_ref();
            must(same, "live state equals replayed state", || "after a restart".to_owned())?;
            self.counts.note("restart");
            if self.disk.has_snapshot(self.run) {
                self.counts.note("restart from a snapshot");
            }
            let by = self.nodes[node].name.to_owned();
            let step = restored.decide(now, [Input::Adopt { by }]);
            (restored, step)
        } else {
            Driver::begin(now, self.created())
        };
        self.tell_of(node, format_args!("starts"));
        self.point(node, "adopting")?;
        let appended = self.append(&step);
        self.check()?;
        if let Err(error) = appended {
            self.tell_of(node, format_args!("cannot: {error}"));
            self.plan(Millis::seconds(2), Happening::Boot { node });
            return Ok(());
        }
        self.nodes[node].stand = Stand::Up(Box::new(Up {
            driver,
            queue: VecDeque::new(),
            in_hand: Vec::new(),
            pause: FIRST_PAUSE,
            awake: false,
            alarm: None,
            sessions: BTreeMap::new(),
            draws: false,
        }));
        if self.cast.faults.crash > 0 {
            let (life, after) = (self.nodes[node].life, self.chance.between(100, 600_000));
            if self.crashes < self.cast.faults.crashes && self.chance.percent(30) {
                self.plan(Millis(after), Happening::Crash { node, life });
            }
        }
        self.point(node, "stored")?;
        self.carry_out(node, step)?;
        self.find_orders(node)?;
        self.plan_a_picture(node);
        self.after_work(node)
    }

    fn created(&self) -> RunCreated {
        let workflow = self.cast.workflow.clone();
        self.created.clone().unwrap_or_else(|| RunCreated {
            inputs: self.cast.inputs.clone(),
            forecasts: Some(self.cast.forecasts.clone()),
            team: Inheritance { lineage: self.lineage() },
            ..RunCreated::new(self.run, workflow, "Whatever the seed wants", "the seed")
        })
    }

    pub(super) fn append(&mut self, step: &Step) -> Result<(), AppendError> {
        let appended =
            self.disk.append(self.now, &self.cast.faults, &mut self.chance, step.batch());
        if let Err(error) = &appended {
            self.counts.note(match error {
                AppendError::Conflict { .. } => "conflict",
                AppendError::Full { .. } => "disk full",
                AppendError::Busy { .. } => "store locked",
                _ => "store unsure",
            });
        }
        appended
    }

    /// Queues a message for a process.
    pub(super) fn push(&mut self, node: usize, message: Message) {
        let life = self.nodes[node].life;
        let Some(up) = self.up(node) else { return };
        up.queue.push_back(message);
        if !up.awake {
            up.awake = true;
            self.plan(Millis(0), Happening::Work { node, life });
        }
    }

    pub(super) fn work(&mut self, node: usize, life: u32) -> Passage {
        if !self.is_up(node, life) {
            return Ok(());
        }
        let at_once = 1 + self.chance.index(4);
        let Some(up) = self.up(node) else { return Ok(()) };
        up.awake = false;
        let mut messages = std::mem::take(&mut up.in_hand);
        if messages.is_empty() {
            messages.extend(up.queue.drain(..at_once.min(up.queue.len())));
        }
        if messages.is_empty() { Ok(()) } else { self.handle(node, messages) }
    }

    pub(super) fn alarm(&mut self, node: usize, life: u32) -> Passage {
        if !self.is_up(node, life) {
            return Ok(());
        }
        let now = self.now;
        let Some(up) = self.up(node) else { return Ok(()) };
        if up.alarm.is_none_or(|at| at > now) {
            return Ok(());
        }
        up.alarm = None;
        if up.in_hand.is_empty() {
            let tick = Message { input: Input::Tick, reply: Reply::Told };
            return self.handle(node, vec![tick]);
        }
        Ok(())
    }

    /// Decides, stores, and carries out, as the engine's task does.
    fn handle(&mut self, node: usize, messages: Vec<Message>) -> Passage {
        let now = self.clock(node);
        let Some(up) = self.up(node) else { return Ok(()) };
        let inputs: Vec<Input> = messages.iter().map(|message| message.input.clone()).collect();
        let mut step = up.driver.decide(now, inputs.clone());
        if step.is_empty() && messages.iter().any(|message| !matches!(message.reply, Reply::Told)) {
            // Before senders learn that it has no effect: the run may have changed without us.
            self.reload(node)?;
            let Some(up) = self.up(node) else { return Ok(()) };
            step = up.driver.decide(now, inputs);
        }
        if self.options.sabotage == Some(Sabotage::MixUpReplies) {
            step.replies.reverse();
        }
        for message in &messages {
            let routine = matches!(message.input, Input::Tick | Input::Heartbeat { .. });
            if !(routine && step.is_empty()) {
                let words = in_short(&message.input);
                self.tell_of(node, format_args!("{words}"));
            }
        }
        self.point(node, "decided")?;
        if self.options.sabotage == Some(Sabotage::AcknowledgeEarly) {
            self.acknowledge_all(node, &messages)?;
        }
        if !step.is_empty() {
            let appended = self.append(&step);
            self.check()?;
            if let Err(error) = appended {
                return self.could_not_store(node, messages, &error);
            }
        }
        self.point(node, "stored")?;
        let inputs: Vec<&Input> = messages.iter().map(|message| &message.input).collect();
        self.laws_of_a_step(node, &inputs, &step)?;
        self.make_true(node, step)?;
        self.point(node, "answering")?;
        self.answer(node, &messages);
        let only_tick = matches!(messages.as_slice(), [Message { input: Input::Tick, .. }]);
        if let Stand::Up(up) = &self.nodes[node].stand
            && only_tick
        {
            tick_moves_on(up.driver.run(), now)?;
            if up.driver.run().seq == self.witness.seq() {
                self.witness.history.deadlines.none_is_past(now)?;
            }
        }
        self.after_work(node)
    }

    /// Carries out a stored step, and plans the team's file.
    fn make_true(&mut self, node: usize, step: Step) -> Passage {
        if step.is_empty() {
            return self.carry_out(node, step);
        }
        self.carry_out(node, step)?;
        self.plan_a_picture(node);
        Ok(())
    }

    /// Gives one input to the run that a process drives. Returns true if it was stored; `None` if
    /// another process was first, and it has to be retried.
    pub(super) fn record_now(&mut self, node: usize, input: &Input) -> Result<Option<bool>, Stop> {
        let now = self.clock(node);
        let Some(up) = self.up(node) else { return Ok(None) };
        let mut step = up.driver.decide(now, [input.clone()]);
        if step.is_empty() {
            self.reload(node)?;
            let Some(up) = self.up(node) else { return Ok(None) };
            step = up.driver.decide(now, [input.clone()]);
        }
        let words = in_short(input);
        self.tell_of(node, format_args!("{words}"));
        self.point(node, "decided")?;
        if !step.is_empty() {
            let appended = self.append(&step);
            self.check()?;
            if let Err(error) = appended {
                self.reload(node)?;
                self.after_work(node)?;
                let conflict = matches!(error, AppendError::Conflict { .. });
                return Ok((!conflict).then_some(false));
            }
        }
        self.point(node, "stored")?;
        self.laws_of_a_step(node, &[input], &step)?;
        self.make_true(node, step)?;
        self.after_work(node)?;
        Ok(Some(true))
    }

    fn laws_of_a_step(&mut self, node: usize, inputs: &[&Input], step: &Step) -> Passage {
        if let Stand::Up(up) = &self.nodes[node].stand {
            let before = up.driver.run();
            let after = self.witness.run.as_ref().filter(|_| !step.is_empty()).unwrap_or(before);
            let round = Round { before, after, events: &step.events };
            round.everyone_hears_their_own(inputs, &step.replies)?;
        }
        self.count_replies(inputs, &step.replies);
        let [Input::Finish { turn, .. }] = inputs else { return Ok(()) };
        let passed_on = passed_on(&step.events, turn.handoff);
        match &self.witness.run {
            Some(run) if !step.is_empty() => Ok(keeps_the_baton(run, passed_on)?),
            _ => Ok(()),
        }
    }

    /// Reports the failure to those who asked; agents' messages are kept and retried on the current
    /// state.
    fn could_not_store(
        &mut self,
        node: usize,
        messages: Vec<Message>,
        error: &AppendError,
    ) -> Passage {
        self.tell_of(node, format_args!("cannot store: {error}"));
        let conflict = matches!(error, AppendError::Conflict { .. });
        let mut kept = Vec::new();
        for message in messages {
            match message.reply {
                Reply::Asked { tries } if !conflict => {
                    let input = message.input;
                    let after = Millis(self.chance.between(1000, 60_000));
                    self.plan(after, Happening::Say { input, tries: tries + 1 });
                }
                _ => kept.push(message),
            }
        }
        self.reload(node)?;
        let life = self.nodes[node].life;
        let Some(up) = self.up(node) else { return Ok(()) };
        let pause = if conflict { Millis(0) } else { up.pause };
        up.pause = Millis(up.pause.0 * 2).min(LONGEST_PAUSE);
        if kept.is_empty() {
            return self.after_work(node);
        }
        up.in_hand = kept;
        up.awake = true;
        self.plan(pause, Happening::Work { node, life });
        Ok(())
    }

    /// Loads the run from the store, unless that cannot be read: then the known state has to do.
    fn reload(&mut self, node: usize) -> Passage {
        if self.chance.per_mille(self.cast.faults.unreadable) {
            self.counts.note("store unreadable");
        } else if let Stand::Up(up) = &mut self.nodes[node].stand {
            self.disk.reload(self.run, &mut up.driver);
        }
        self.agrees(node)
    }

    fn agrees(&self, node: usize) -> Passage {
        match &self.nodes[node].stand {
            Stand::Up(up) => Ok(self.witness.agrees_with(up.driver.run())?),
            Stand::Down | Stand::Done => Ok(()),
        }
    }

    /// Commits a stored step, then starts and stops what it requires.
    fn carry_out(&mut self, node: usize, mut step: Step) -> Passage {
        let now = self.clock(node);
        if self.options.sabotage.is_some_and(Sabotage::is_in_the_kernel)
            && let Stand::Up(up) = &mut self.nodes[node].stand
        {
            self.disk.reload(self.run, &mut up.driver);
            step = up.driver.decide(now, []);
        }
        let Some(up) = self.up(node) else { return Ok(()) };
        let Plan { start, stop, orders, .. } = up.driver.commit(step);
        up.pause = FIRST_PAUSE;
        self.agrees(node)?;
        self.point(node, "committed")?;
        for key in stop {
            let Some(id) = self.up(node).and_then(|up| up.sessions.remove(&key)) else { continue };
            // A session that gave its result ends on its own.
            if self.sessions.get(&id).is_some_and(|session| session.phase != Phase::Waiting) {
                self.tell(format_args!("s{id} is stopped"));
                self.sessions.remove(&id);
            }
        }
        let (life, run) = (self.nodes[node].life, self.run);
        for order in orders {
            let after = Millis(self.chance.below(2000));
            self.plan(after, Happening::Carry { node, life, run, order });
        }
        for order in start {
            self.point(node, "starting")?;
            self.witness.history.is_ordered(order.key)?;
            let key = order.key;
            let id = self.start(node, order);
            if let Some(up) = self.up(node) {
                up.sessions.insert(key, id);
            }
        }
        self.does_what_is_wanted(node)
    }

    /// Every turn in progress has been started by this process, and no other has.
    fn does_what_is_wanted(&mut self, node: usize) -> Passage {
        let Some(up) = self.up(node) else { return Ok(()) };
        let wanted: BTreeSet<TurnKey> = up.driver.run().outbox().map(|order| order.key).collect();
        let same = up.sessions.keys().eq(wanted.iter());
        Ok(must(same, "what is wanted is done, and nothing else", || {
            format!("{wanted:?} is wanted, {:?} is done", up.sessions)
        })?)
    }

    /// Confirms to those who wait that it is stored.
    fn answer(&mut self, node: usize, messages: &[Message]) {
        let life = self.nodes[node].life;
        for message in messages {
            if let Reply::Kept { session, key, name } = &message.reply {
                let (session, key, name) = (*session, *key, name.clone());
                let after = Millis(self.chance.below(50));
                self.plan(after, Happening::Acknowledge { node, life, session, key, name });
            }
        }
    }

    /// A defect: acknowledges to agents immediately, whatever happened to their results.
    fn acknowledge_all(&mut self, node: usize, messages: &[Message]) -> Passage {
        let life = self.nodes[node].life;
        for message in messages {
            if let Reply::Kept { session, key, name } = &message.reply {
                self.acknowledge(node, life, *session, *key, name.clone())?;
            }
        }
        Ok(())
    }

    pub(super) fn acknowledge(
        &mut self,
        node: usize,
        life: u32,
        session: u64,
        key: TurnKey,
        name: String,
    ) -> Passage {
        if self.nodes[node].life != life {
            return Ok(());
        }
        if self.is_up(node, life) {
            self.point(node, "acknowledging")?;
        }
        // An agent that is gone receives nothing.
        if self.sessions.remove(&session).is_some() {
            self.tell(format_args!("{name} hears that its result is recorded"));
            self.counts.note("acknowledged");
            self.witness.history.has_result(key, &name)?;
            self.ledger.acknowledged.push((key, name));
        }
        Ok(())
    }

    /// Continues with the queue, or waits for the deadline, or notices that the run has ended.
    fn after_work(&mut self, node: usize) -> Passage {
        let (life, now, skew) = (self.nodes[node].life, self.now, self.nodes[node].skew);
        let no_clock = self.options.sabotage == Some(Sabotage::NoClock);
        let Some(up) = self.up(node) else { return Ok(()) };
        if up.driver.run().status().is_final() {
            self.tell_of(node, format_args!("is done"));
            self.nodes[node].stand = Stand::Done;
            self.sessions.retain(|_, session| {
                session.home != Some((node, life)) || session.phase == Phase::Waiting
            });
            return Ok(());
        }
        let deadline = up.driver.run().deadline().map_or(now + LOOK_AGAIN, |at| Time(at.0 - skew));
        let at = deadline.clamp(now, now + LOOK_AGAIN);
        let set = up.alarm.is_none_or(|alarm| alarm > at) && !no_clock;
        if set {
            up.alarm = Some(at);
        }
        let more = !up.awake && !up.queue.is_empty();
        up.awake |= more;
        if set {
            self.plan(at.since(now), Happening::Alarm { node, life });
        }
        if more {
            self.plan(Millis(0), Happening::Work { node, life });
        }
        Ok(())
    }
}

/// Returns a handoff to another agent that was admitted because of the turn that ended. Only the
/// workflow gives out a phase, with all of its parts or none.
fn passed_on(events: &[Recorded], by: HandoffId) -> Option<HandoffId> {
    events.iter().find_map(|recorded| match &recorded.event {
        Event::HandoffAdmitted(e) => {
            let agent = matches!(e.offer.to, Party::Agent(_)) && e.offer.reason.as_str() != REASON;
            (agent && e.cause == Some(by)).then_some(e.id)
        }
        _ => None,
    })
}

/// Returns an input in a few words.
fn in_short(input: &Input) -> String {
    let of = |turn: &TurnKey| format!("{}/{}.{}", turn.handoff, turn.attempt, turn.turn);
    match input {
        Input::Receipt { turn, receipt } => format!("receipt {}: {receipt:?}", of(turn)),
        Input::Ask { turn, request, .. } => format!("ask {}: {request}", of(turn)),
        Input::Heartbeat { turn, .. } => format!("heartbeat {}", of(turn)),
        Input::Finish { turn, result } => {
            let to: Vec<&str> = result.offers.iter().map(|offer| offer.to.as_str()).collect();
            let (by, outcome) = (&result.response.summary, result.response.outcome);
            format!("finish {} by {by}: {outcome:?}, hands to {to:?}", of(turn))
        }
        Input::Fail { turn, failure, .. } => format!("fail {}: {}", of(turn), failure.message),
        Input::Tell { turn, told } => {
            let to: Vec<&str> = told.offers.iter().map(|offer| offer.to.as_str()).collect();
            let outcome = told.response.as_ref().map(|response| response.outcome);
            format!("tell {}: {outcome:?}, hands to {to:?}", of(turn))
        }
        Input::Answer { handoff, text, values, .. } => {
            format!("answer {handoff}: {text:?} {}", serde_json::Value::Object(values.clone()))
        }
        Input::Team(TeamInput::ProposeChange { set, .. }) => {
            format!("propose {} as {}", set.change, set.revision)
        }
        // The time of a comment is the one thing that no seed decides.
        Input::Team(TeamInput::CommentChange { change, .. }) => format!("comment on {change}"),
        other => format!("{other:?}"),
    }
}
