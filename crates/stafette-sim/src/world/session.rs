//! Agents in the world: they start, work, send messages and die.

use stafette_core::handoff::Receipt;
use stafette_core::run::session::SessionState;
use stafette_core::workflow::Runner;
use stafette_core::{Input, Millis, Question, TurnKey, TurnOrder};

use super::{Happening, Message, Passage, Reply, Stand, World};
use crate::agent::{Circumstances, Phase, Said, Session};

/// The number of times that a message is tried on another process.
const TRIES: u32 = 6;

impl World {
    /// Turns an order into a session.
    pub(super) fn start(&mut self, node: usize, order: TurnOrder) -> u64 {
        self.started += 1;
        let id = self.started;
        let key = order.key;
        // The rest of an earlier delivery is ended first, where it can be found.
        let left: Vec<u64> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.home.is_none() && session.key() == key)
            .map(|(id, _)| *id)
            .collect();
        for orphan in left {
            if self.chance.percent(60) {
                self.sessions.remove(&orphan);
            }
        }
        if order.deliveries > 1 {
            self.counts.note("redelivery");
        }
        if order.deliveries > 1
            && let Some(result) = self.up(node).and_then(|up| up.run().reported(key))
            && self.chance.percent(70)
        {
            self.counts.note("result that was told before");
            let input = Input::Finish { turn: key, result: Box::new(result) };
            self.push(node, Message { input, reply: Reply::Told });
            return id;
        }
        let agent = &order.agent;
        let in_loop = self.cast.workflow.loops.iter().any(|l| l.between.contains(agent));
        let bare = self.cast.bare.contains(agent);
        let home = (node, self.nodes[node].life);
        self.tell(format_args!(
            "s{id} is {agent} at {}/{}.{}, delivery {}",
            key.handoff, key.attempt, key.turn, order.deliveries
        ));
        let script = self.cast.scripts.get(agent);
        let (unseen, tells) = (self.chance.percent(10), self.chance.percent(20));
        let circumstances = Circumstances { home, bare, in_loop, unseen, tells };
        let session = Session::new(format!("s{id}"), order, script, circumstances);
        self.sessions.insert(id, session);
        let after = match self.chance.below(50) {
            0 => self.cast.workflow.limits.accept_timeout.0 * 2,
            _ => self.chance.between(1, 500),
        };
        self.plan(Millis(after), Happening::Start { session: id });
        id
    }

    pub(super) fn begin_session(&mut self, id: u64) -> Passage {
        let Some(session) = self.sessions.get(&id) else { return Ok(()) };
        let turn = session.key();
        let agent = self.cast.workflow.agents.get(&session.order.agent);
        if agent.is_some_and(|agent| agent.runner == Runner::External) {
            self.come_for(turn, session.home);
        } else {
            for receipt in [Receipt::Delivered, Receipt::Acknowledged] {
                self.speak(id, Input::Receipt { turn, receipt });
            }
        }
        self.plan(Millis(1), Happening::Act { session: id });
        self.plan(heartbeat(), Happening::Beat { session: id });
        Ok(())
    }

    /// Lets two external agents claim one turn in the same moment; either of them follows the
    /// script.
    fn come_for(&mut self, turn: TurnKey, home: Option<(usize, u32)>) {
        let Some((node, life)) = home else { return };
        if !self.is_up(node, life) {
            return;
        }
        for by in ["ada", "ben"] {
            let lease = self.chance.one([None, Some(Millis(30_000))]);
            let input = Input::Take { turn, by: by.to_owned(), lease };
            self.push(node, Message { input, reply: Reply::Asked { tries: 0 } });
        }
    }

    /// Takes one step of the script.
    pub(super) fn act(&mut self, id: u64) -> Passage {
        let Some(session) = self.sessions.get_mut(&id) else { return Ok(()) };
        if session.phase != Phase::Working {
            return Ok(());
        }
        match session.act(&mut self.ledger) {
            Said::Next(after, word) => {
                if let Some(word) = word {
                    self.speak(id, word);
                }
                self.plan(after, Happening::Act { session: id });
            }
            Said::Proposes { gated } => {
                self.plan(Millis(5), Happening::Act { session: id });
                return self.propose_set(id, gated);
            }
            Said::Silence => {
                self.counts.note("agent hangs");
                self.tell(format_args!("s{id} hangs"));
            }
            Said::Finished(result) => self.speak(id, result),
            Said::Failed(failure) => {
                self.counts.note("agent breaks");
                self.speak(id, failure);
                self.sessions.remove(&id);
            }
        }
        Ok(())
    }

    pub(super) fn beat(&mut self, id: u64) -> Passage {
        let Some(session) = self.sessions.get(&id) else { return Ok(()) };
        if session.phase == Phase::Working {
            let (alive, turn) = (session.heartbeat(), session.key());
            let agent = session.order.agent.clone();
            self.speak(id, alive);
            match self.chance.below(25) {
                0 => self.speak(id, may_i(turn)),
                1 => {
                    let states = [SessionState::Working, SessionState::Waiting];
                    let (state, note) = (self.chance.one(states), String::new());
                    self.speak(id, Input::Session { agent, state, note });
                }
                _ => {}
            }
            self.plan(heartbeat(), Happening::Beat { session: id });
        }
        Ok(())
    }

    /// Sends an agent's message: late, twice or out of order as the seed decides.
    fn speak(&mut self, id: u64, input: Input) {
        let Some(session) = self.sessions.get(&id) else { return };
        let reply = match &input {
            Input::Finish { .. } => {
                Reply::Kept { session: id, key: session.key(), name: session.name.clone() }
            }
            _ => Reply::Told,
        };
        if session.home.is_none() && matches!(input, Input::Finish { .. }) {
            self.counts.note("result of an orphan");
        }
        let to = session.home;
        let message = Message { input, reply };
        let delay = self.cast.faults.delay;
        if self.chance.percent(self.cast.faults.twice) {
            self.counts.note("message twice");
            let after = Millis(self.chance.below(delay * 4 + 1));
            self.plan(after, Happening::Arrive { to, message: message.clone(), tries: 0 });
        }
        let after = Millis(self.chance.below(delay + 1));
        self.plan(after, Happening::Arrive { to, message, tries: 0 });
    }

    pub(super) fn arrive(&mut self, to: Option<(usize, u32)>, message: Message, tries: u32) {
        match to {
            Some((node, life)) if self.is_up(node, life) => return self.push(node, message),
            // A message on its way to a process that died is lost with it, most of the time.
            Some(_) if !self.chance.percent(self.cast.faults.orphan / 2) => return,
            _ => {}
        }
        let up: Vec<usize> = (0..self.nodes.len())
            .filter(|node| matches!(self.nodes[*node].stand, Stand::Up(_)))
            .collect();
        match self.chance.pick(&up).copied() {
            Some(node) => self.push(node, message),
            None if tries < TRIES => {
                let after = Millis(self.chance.between(1000, 30_000));
                self.plan(after, Happening::Arrive { to: None, message, tries: tries + 1 });
            }
            None => {}
        }
    }
}

/// Returns a request in the middle of a turn. The agent continues meanwhile, as the worst of them
/// do.
fn may_i(turn: TurnKey) -> Input {
    // Now and then it offers far too much to choose from.
    let more =
        (0..if turn.handoff.0 % 7 == 3 { 9000 } else { 0 }).map(|it| format!("or option {it}"));
    let question = Question {
        reason: "permission".into(),
        details: "May I?".into(),
        options: ["yes", "no"].map(str::to_owned).into_iter().chain(more).collect(),
        ..Question::default()
    };
    Input::Ask { turn, request: "delete".into(), question }
}

fn heartbeat() -> Millis {
    let span = stafette_agents::HEARTBEAT.as_millis();
    Millis(u64::try_from(span).unwrap_or(5000))
}
