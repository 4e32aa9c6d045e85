//! An agent at work: it follows its script, one step at a time, and returns the result of each.
//!
//! Its commits and the acknowledgements that it received are in its ledger and survive every crash,
//! as with the scripted agent that runs as a process.

mod phase;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use stafette_agents::scripted::{Blanks, Script, Step};
use stafette_core::run::tell::TurnReport;
use stafette_core::team::Said as TeamSaid;
use stafette_core::team::council::vote::Vote;
use stafette_core::{
    Failure, FailureKind, Input, Millis, Offer, Outcome, Party, PrintedFrame, Response, TurnKey,
    TurnOrder, TurnResult, Usage, Usd,
};

/// The traces of agents: their files, their commits and the acknowledgements that they received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    files: BTreeMap<String, String>,
    /// The turns that committed: a second commit finds the first.
    commits: BTreeSet<TurnKey>,
    /// Results that were acknowledged as stored, with the session that gave them.
    pub(crate) acknowledged: Vec<(TurnKey, String)>,
}

impl Ledger {
    /// Returns a fingerprint of the work.
    fn fingerprint(&self) -> String {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for (path, text) in &self.files {
            for byte in path.bytes().chain([0]).chain(text.bytes()).chain([0]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        format!("{hash:016x}")
    }

    /// Commits, once for each key.
    fn commit(&mut self, key: TurnKey) -> String {
        self.commits.insert(key);
        format!("commit of {key}")
    }
}

/// The phase of an agent in its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// It works and sends heartbeats.
    Working,
    /// It shows no sign of life any more.
    Hung,
    /// It has sent its result and waits for the acknowledgement.
    Waiting,
}

/// One turn of an agent.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// Its own name, with which the summary of its result begins.
    pub(crate) name: String,
    pub(crate) order: TurnOrder,
    pub(crate) phase: Phase,
    /// The process that it belongs to, as node and life; `None` if it has outlived it.
    pub(crate) home: Option<(usize, u32)>,
    steps: Option<Vec<Step>>,
    next: usize,
    blanks: Blanks,
    bare: bool,
    in_loop: bool,
    /// True if nobody can see what it uses in this turn.
    unseen: bool,
    /// True if it reports through a channel of its own.
    tells: bool,
    response: Option<Response>,
    offers: Vec<Offer>,
    usage: Usage,
    vote: Option<Vote>,
    mistake: bool,
}

/// The result of a step.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    /// The next step follows after this time; may send an input to the engine.
    Next(Millis, Option<Input>),
    /// The agent proposes a set of edits, and the next step follows.
    Proposes {
        /// True if the set needs a person's approval.
        gated: bool,
    },
    /// The agent goes silent.
    Silence,
    /// The turn ended with this result.
    Finished(Input),
    /// The turn failed with this error.
    Failed(Input),
}

/// The circumstances of a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    /// The process that it belongs to, as node and life.
    pub(crate) home: (usize, u32),
    /// True if its handoffs are read from plain output.
    pub(crate) bare: bool,
    pub(crate) in_loop: bool,
    /// True if nobody can see what it uses.
    pub(crate) unseen: bool,
    /// True if it reports through a channel of its own while it works.
    pub(crate) tells: bool,
}

impl Session {
    pub(crate) fn new(
        name: String,
        order: TurnOrder,
        script: Option<&Script>,
        circumstances: Circumstances,
    ) -> Self {
        let Circumstances { home, bare, in_loop, unseen, tells } = circumstances;
        let turn = script.and_then(|script| script.turn_for(&order));
        Session {
            name,
            steps: turn.map(|turn| turn.steps.clone()),
            next: 0,
            blanks: Blanks::of(&order),
            order,
            phase: Phase::Working,
            home: Some(home),
            bare,
            in_loop,
            unseen,
            tells,
            response: None,
            offers: Vec::new(),
            usage: Usage::default(),
            vote: None,
            mistake: false,
        }
    }

    pub(crate) fn key(&self) -> TurnKey {
        self.order.key
    }

    pub(crate) fn heartbeat(&self) -> Input {
        Input::Heartbeat { turn: self.key(), note: None }
    }

    /// Takes the next step; changes nothing but the agent itself and the ledger.
    pub(crate) fn act(&mut self, ledger: &mut Ledger) -> Said {
        let Some(steps) = &self.steps else {
            return self.failed(FailureKind::Fatal, "the script has no turn for this");
        };
        let Some(step) = steps.get(self.next).cloned() else { return self.end(ledger) };
        self.next += 1;
        let turn = self.key();
        let soon = Millis(5);
        match step {
            Step::Say(text) => {
                let note = Some(self.blanks.fill(&text));
                Said::Next(soon, Some(Input::Heartbeat { turn, note }))
            }
            Step::Write { path, text } => {
                ledger.files.insert(path, self.blanks.fill(&text));
                Said::Next(soon, None)
            }
            Step::Append { path, text } => {
                let text = self.blanks.fill(&text);
                ledger.files.entry(path).or_default().push_str(&text);
                Said::Next(soon, None)
            }
            Step::Commit(_) => {
                self.blanks.commit = ledger.commit(turn);
                Said::Next(soon, None)
            }
            Step::Wait(span) => Said::Next(span, None),
            Step::Report { tokens, usd, .. } if self.tells => {
                let usage = Usage::exactly(tokens, Usd(usd.0));
                Said::Next(soon, Some(self.tell(TurnReport { usage, ..TurnReport::default() })))
            }
            Step::Report { tokens, usd, note } => {
                self.usage += Usage::exactly(tokens, Usd(usd.0));
                Said::Next(soon, Some(Input::Heartbeat { turn, note }))
            }
            Step::Emit { kind, payload } if kind == "CHANGE" => {
                Said::Proposes { gated: payload["gated"] == true }
            }
            Step::Emit { kind, payload } => {
                let payload = self.blanks.fill_value(&payload);
                Said::Next(soon, self.emit(&kind, payload))
            }
            Step::Run { .. } => Said::Next(soon, None),
            Step::Crash => self.failed(FailureKind::Recoverable, "killed by signal 9"),
            Step::Exit(status) if status >= 126 => {
                self.failed(FailureKind::Fatal, "a program is missing")
            }
            Step::Exit(_) => self.failed(FailureKind::Recoverable, "exit status 1"),
            Step::Hang => {
                self.phase = Phase::Hung;
                Said::Silence
            }
        }
    }

    /// Sends a frame. The payloads are the model's own documents: parsing the dialects is tested
    /// elsewhere.
    fn emit(&mut self, kind: &str, payload: Value) -> Option<Input> {
        let turn = self.key();
        let me = Party::from(&self.order.agent);
        match kind {
            "HANDOFF" => match serde_json::from_value::<Offer>(payload) {
                Ok(offer) if self.tells => {
                    let offers = vec![Offer { from: me, ..offer }];
                    return Some(self.tell(TurnReport { offers, ..TurnReport::default() }));
                }
                Ok(offer) => self.offers.push(Offer { from: me, ..offer }),
                Err(_) => return self.mistaken(kind),
            },
            "RESULT" => match serde_json::from_value::<Response>(payload) {
                Ok(response) if self.tells => {
                    let summary = self.name.clone();
                    let response = Some(Response { by: me, summary, ..response });
                    return Some(self.tell(TurnReport { response, ..TurnReport::default() }));
                }
                Ok(response) => self.response = Some(Response { by: me, ..response }),
                Err(_) => return self.mistaken(kind),
            },
            "SIGNAL" => match Vote::read(&payload) {
                Ok(vote) if self.tells => {
                    let said = TeamSaid { vote: Some(vote), ..TeamSaid::default() };
                    return Some(self.tell(TurnReport { said, ..TurnReport::default() }));
                }
                Ok(vote) => self.vote = Some(vote),
                Err(_) => return self.mistaken(kind),
            },
            "PHASE" => match phase::answer(&self.order, &self.name, &payload) {
                Some(response) => {
                    self.usage.tokens += response.usage.tokens;
                    self.response = Some(response);
                }
                None => return self.mistaken(kind),
            },
            "ERROR" => {
                let (code, message) = ("AGENT_ERROR".to_owned(), payload.to_string());
                return Some(match self.bare {
                    true => Input::Printed { turn, frame: PrintedFrame::Error { code, message } },
                    false => Input::Alert { code, message },
                });
            }
            _ => return Some(Input::Heartbeat { turn, note: None }),
        }
        None
    }

    fn tell(&self, told: TurnReport) -> Input {
        Input::Tell { turn: self.key(), told: Box::new(told) }
    }

    /// A frame that cannot be read fails the turn, unless it was only printed.
    fn mistaken(&mut self, kind: &str) -> Option<Input> {
        self.mistake |= !self.bare;
        let frame = PrintedFrame::Unreadable { reason: format!("{kind} makes no sense") };
        self.bare.then(|| Input::Printed { turn: self.key(), frame })
    }

    fn end(&mut self, ledger: &Ledger) -> Said {
        if self.mistake {
            return self.failed(FailureKind::Recoverable, "what it handed in is not valid");
        }
        let me = Party::from(&self.order.agent);
        let silent = self.response.is_none() && self.offers.is_empty() && self.vote.is_none();
        let response = self.response.take().unwrap_or(Response::new(me, Outcome::Resolved));
        let offers = std::mem::take(&mut self.offers);
        let summary = match response.foreign {
            Some(_) => response.summary.clone(),
            None => self.name.clone(),
        };
        let result = TurnResult {
            // An agent that prints frames has said nothing without one; a command's exit is its answer.
            unanswered: silent && self.bare,
            response: Response { summary, usage: self.used(), ..response },
            bare: self.bare && (!offers.is_empty() || self.vote.is_some()),
            offers,
            usage: self.used(),
            fingerprint: self.in_loop.then(|| ledger.fingerprint()),
            said: TeamSaid { vote: self.vote.take(), ..TeamSaid::default() },
        };
        self.phase = Phase::Waiting;
        Said::Finished(Input::Finish { turn: self.key(), result: Box::new(result) })
    }

    fn failed(&self, kind: FailureKind, message: &str) -> Said {
        let failure = Failure::new(kind, message);
        Said::Failed(Input::Fail { turn: self.key(), failure, usage: self.used() })
    }

    /// Returns what is known of its usage.
    fn used(&self) -> Usage {
        if self.unseen { Usage::unknown() } else { self.usage }
    }
}
