//! Who takes part in a seed: a workflow, a script for every agent, people with their habits, and
//! the faults that the world has in store for them.

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

/// What values are asked for as; the last is a word of the workflow's own.
const TYPES: [&str; 8] =
    ["string", "string", "string", "number", "string[]", "boolean", "object", "currency"];

/// The inputs that agents need and provide.
const KEYS: [&str; 5] = ["spec", "size", "auth", "commit", "issues"];

/// Everyone and everything in a seed.
#[derive(Clone, Debug)]
pub(crate) struct Cast {
    pub(crate) workflow: Arc<Workflow>,
    pub(crate) inputs: Fields,
    /// What earlier runs have seen of each agent's cost.
    pub(crate) forecasts: BTreeMap<String, Forecast>,
    pub(crate) scripts: BTreeMap<AgentName, Script>,
    /// The agents whose handoffs are read off plain output.
    pub(crate) bare: BTreeSet<AgentName>,
    pub(crate) people: People,
    pub(crate) faults: Faults,
    /// Whether the run goes on for long.
    pub(crate) long: bool,
    /// Whether some values are large.
    pub(crate) large: bool,
}

/// How people answer.
#[derive(Clone, Debug)]
pub(crate) struct People {
    /// How many questions they answer before they go home.
    pub(crate) patience: u32,
    /// How many in a hundred they overlook.
    pub(crate) silent: u64,
    /// How many in a hundred they answer about when the time is over.
    pub(crate) late: u64,
    /// How many in a hundred they answer with rubbish.
    pub(crate) rubbish: u64,
    /// How many things they do unasked: pause, raise, propose, cancel.
    pub(crate) whims: u64,
}

/// How bad the world is; shares are in a thousand, unless said otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    /// A process dies, at each place where it can.
    pub(crate) crash: u64,
    /// So often at most.
    pub(crate) crashes: u64,
    /// In a hundred: an agent outlives the process that started it.
    pub(crate) orphan: u64,
    /// In a hundred: a message comes twice.
    pub(crate) twice: u64,
    /// A message takes so many milliseconds at most.
    pub(crate) delay: u64,
    /// The disk is full for a while.
    pub(crate) full: u64,
    /// The store is locked.
    pub(crate) busy: u64,
    /// The store does not know whether it wrote.
    pub(crate) unsure: u64,
    /// The store cannot be read back.
    pub(crate) unreadable: u64,
    /// Processes that believe the run is theirs.
    pub(crate) nodes: usize,
}

impl Cast {
    /// A world as the seed wants it; one with large values when it is to be `heavy`.
    pub(crate) fn draw(chance: &mut Chance, heavy: bool) -> Self {
        let mood = chance.below(100);
        let faults = match mood {
            0..15 => Faults::none(),
            15..75 => Faults::usual(chance),
            _ => Faults::storm(chance),
        };
        // Some go on for long, so that snapshots are taken and old handoffs are forgotten.
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
            // Half of what fits, so that one answer may be too much; or more than fits.
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
    /// A team that agrees on something and on what to talk about next, for as long as it may, while
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

/// What is known of the agents' costs before the run. Whoever cannot tell what it costs does not.
fn forecasts(
    chance: &mut Chance,
    scripts: &mut BTreeMap<AgentName, Script>,
) -> BTreeMap<String, Forecast> {
    let mut known = BTreeMap::new();
    for (name, script) in scripts {
        let forecast = match chance.below(10) {
            0 => Forecast::Unmetered,
            1 => Forecast::Known(Usage { tokens: 2500, money: Usd(150_000) }),
            2 => Forecast::Known(Usage { tokens: 100, money: Usd(1000) }),
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

/// A value that weighs something, now and then more than a handoff may carry.
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
