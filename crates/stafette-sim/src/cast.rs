//! The participants of a seed: a workflow, a script for every agent, people with their habits, and
//! the faults of the world.

mod script;
mod workflow;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use stafette_agents::scripted::{Script, Step};
use stafette_core::fields::MAX;
use stafette_core::run::budget::Forecast;
use stafette_core::{AgentName, Fields, Usage, Usd, Workflow};

use crate::chance::Chance;

/// The types of requested values; the last is a word of the workflow's own.
const TYPES: [&str; 8] =
    ["string", "string", "string", "number", "string[]", "boolean", "object", "currency"];

/// The inputs that agents need and provide.
const KEYS: [&str; 5] = ["spec", "size", "auth", "commit", "issues"];

/// All participants and conditions of a seed.
#[derive(Clone, Debug)]
pub(crate) struct Cast {
    pub(crate) workflow: Arc<Workflow>,
    pub(crate) inputs: Fields,
    /// The costs of each agent in earlier runs.
    pub(crate) forecasts: BTreeMap<String, Forecast>,
    pub(crate) scripts: BTreeMap<AgentName, Script>,
    /// The agents whose handoffs are read from plain output.
    pub(crate) bare: BTreeSet<AgentName>,
    pub(crate) people: People,
    pub(crate) faults: Faults,
    pub(crate) long: bool,
    pub(crate) large: bool,
}

/// The habits of people.
#[derive(Clone, Debug)]
pub(crate) struct People {
    /// The number of questions that they answer before they leave.
    pub(crate) patience: u32,
    /// The percentage of questions that they overlook.
    pub(crate) silent: u64,
    /// The percentage that they answer around the deadline.
    pub(crate) late: u64,
    /// The percentage that they answer with invalid values.
    pub(crate) rubbish: u64,
    /// The number of unrequested actions: pause, raise, propose, cancel.
    pub(crate) whims: u64,
}

/// The fault rates of the world; per mille, unless stated otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    /// A process dies, at each point where it can.
    pub(crate) crash: u64,
    /// The largest number of crashes.
    pub(crate) crashes: u64,
    /// In per cent: an agent outlives the process that started it.
    pub(crate) orphan: u64,
    /// In per cent: a message arrives twice.
    pub(crate) twice: u64,
    /// The longest delay of a message, in milliseconds.
    pub(crate) delay: u64,
    /// The disk is full for a while.
    pub(crate) full: u64,
    /// The store is locked.
    pub(crate) busy: u64,
    /// The store does not know if it has written.
    pub(crate) unsure: u64,
    /// The store cannot be read.
    pub(crate) unreadable: u64,
    /// The number of processes that believe they own the run.
    pub(crate) nodes: usize,
}

impl Cast {
    /// Draws a world from a seed; with large values if `heavy`.
    pub(crate) fn draw(chance: &mut Chance, heavy: bool) -> Self {
        let mood = chance.below(100);
        let faults = match mood {
            0..15 => Faults::none(),
            15..75 => Faults::usual(chance),
            _ => Faults::storm(chance),
        };
        // Some are long, so that snapshots are taken and old handoffs are forgotten.
        let long = chance.percent(9);
        // In a few worlds values are large: they are copied and written again with every step.
        let large = !long && (chance.percent(12) || heavy);
        let workflow = workflow::draw(chance, long);
        let mut scripts = BTreeMap::new();
        let mut bare = BTreeSet::new();
        for name in workflow.agents.keys() {
            let wants = script::Wants { long, large };
            scripts.insert(name.clone(), script::draw(chance, &workflow, name, wants));
            if chance.percent(4) {
                bare.insert(name.clone());
            }
        }
        let mut inputs = Fields::new();
        for key in KEYS {
            if chance.percent(40) {
                inputs.insert(key.to_owned(), json!("given"));
            }
        }
        if large && chance.percent(70) {
            // Half of the limit, so that one answer may exceed it; or more than the limit.
            let bytes = if chance.percent(90) { MAX / 2 } else { MAX + 1 };
            inputs.insert("book".to_owned(), Value::String("x".repeat(bytes)));
        }
        let forecasts = forecasts(chance, &mut scripts);
        let people = People {
            patience: chance.count(0, 25),
            silent: chance.one([0, 5, 30]),
            late: chance.one([0, 10, 40]),
            rubbish: chance.below(40),
            whims: chance.one([0, 0, 1, 2, 3]),
        };
        let workflow = Arc::new(workflow);
        Cast { workflow, inputs, forecasts, scripts, bare, people, faults, long, large }
    }
}

impl Cast {
    /// Draws a team that agrees on something and on its next topic, for as long as it may, while
    /// its process is killed five times.
    pub(crate) fn team(chance: &mut Chance) -> Self {
        let workflow = workflow::team();
        let scripts = workflow.agents.keys().map(|name| (name.clone(), script::voice(chance)));
        let people = People { patience: 0, silent: 100, late: 0, rubbish: 0, whims: 0 };
        let scripts = scripts.collect();
        let faults = Faults { crash: chance.between(30, 60), crashes: 5, ..Faults::usual(chance) };
        Cast {
            workflow: Arc::new(workflow),
            inputs: Fields::new(),
            forecasts: BTreeMap::new(),
            scripts,
            bare: BTreeSet::new(),
            people,
            faults,
            long: false,
            large: false,
        }
    }
}

/// Draws the known costs of agents before the run. An unmetered agent reports no usage.
fn forecasts(
    chance: &mut Chance,
    scripts: &mut BTreeMap<AgentName, Script>,
) -> BTreeMap<String, Forecast> {
    let mut known = BTreeMap::new();
    for (name, script) in scripts {
        let forecast = match chance.below(10) {
            0 => Forecast::Unmetered,
            1 => Forecast::Known(Usage::exactly(2500, Usd(150_000))),
            2 => Forecast::Known(Usage::exactly(100, Usd(1000))),
            _ => continue,
        };
        if forecast == Forecast::Unmetered {
            let steps = script.turns.iter_mut().flat_map(|turn| &mut turn.steps);
            for step in steps {
                if let Step::Report { tokens, usd, .. } = step {
                    (*tokens, *usd) = (0, Usd(0));
                }
            }
        }
        known.insert(name.to_string(), forecast);
    }
    known
}

/// Draws a large value, now and then larger than a handoff may carry.
pub(crate) fn weight(chance: &mut Chance) -> Option<Value> {
    let bytes = match chance.below(20) {
        0 => 200_000,
        1 | 2 => MAX / 2 + 1000,
        3 => MAX - 1000,
        4 => MAX + 1000,
        _ => return None,
    };
    Some(Value::String(chance.one(["x", "y"]).repeat(bytes)))
}

impl Faults {
    fn none() -> Self {
        Faults {
            crash: 0,
            crashes: 0,
            orphan: 0,
            twice: 0,
            delay: 20,
            full: 0,
            busy: 0,
            unsure: 0,
            unreadable: 0,
            nodes: 1,
        }
    }

    fn usual(chance: &mut Chance) -> Self {
        Faults {
            crash: chance.between(1, 15),
            crashes: 10,
            orphan: chance.below(60),
            twice: chance.below(10),
            delay: chance.between(1, 1500),
            full: chance.below(6),
            busy: chance.below(6),
            unsure: chance.below(6),
            unreadable: chance.below(100),
            nodes: if chance.percent(20) { 2 } else { 1 },
        }
    }

    fn storm(chance: &mut Chance) -> Self {
        Faults {
            crash: chance.between(10, 60),
            crashes: 40,
            orphan: 50,
            twice: 25,
            delay: chance.between(1, 20_000),
            full: chance.below(30),
            busy: chance.below(30),
            unsure: chance.below(60),
            unreadable: 200,
            nodes: if chance.percent(50) { 2 } else { 1 },
        }
    }
}
