//! Draws unusual but valid workflows.

use std::collections::BTreeMap;

use serde_json::json;
use stafette_core::change::ChangeRules;
use stafette_core::wire::phase::Phase;
use stafette_core::workflow::council::{CouncilRules, Exhausted, Mode};
use stafette_core::workflow::phases::{PhaseStep, Rule};
use stafette_core::workflow::{
    Agent, Budget, Denied, Estimate, Header, Limits, Loop, Need, Recovery, RecoveryCause,
    RecoveryRule, Retries, Route, Runner, Strategy,
};
use stafette_core::{AgentName, Fields, Millis, Party, Usd, Workflow};

use super::{KEYS, TYPES};
use crate::chance::Chance;

const NAMES: [&str; 6] = ["planner", "builder", "reviewer", "fixer", "research", "tester"];

pub(super) fn draw(chance: &mut Chance, long: bool) -> Workflow {
    let size = 2 + chance.index(NAMES.len() - 1).max(chance.index(NAMES.len() - 1));
    let mut names: Vec<&str> = NAMES[..size].to_vec();
    if size < 5 && chance.percent(30) {
        names[size - 1] = "research";
    }
    let names: Vec<AgentName> = names.iter().filter_map(|name| name.parse().ok()).collect();
    let loops = loops(chance, &names, long);
    let routes = routes(chance, &names, &loops);
    let council = council(chance, &names, long);
    let phases = if long || council.is_some() { Vec::new() } else { phases(chance, &names) };
    Workflow {
        workflow: Header {
            name: "drawn".into(),
            entry: match &council {
                Some(_) if chance.percent(50) => stafette_core::workflow::council::party(),
                _ => Party::from(&names[0]),
            },
            schema_version: "1.0.0".into(),
            frame_word: "ODEI".into(),
            trust_bare_frames: chance.percent(30),
            worktrees: false,
        },
        agents: names.iter().map(|name| (name.clone(), agent(chance))).collect(),
        deny: deny(chance, &names),
        limits: limits(chance, long),
        retries: Retries {
            max: chance.count(1, 4),
            backoff: Millis(chance.between(50, 5000)),
            max_backoff: Millis(chance.between(1000, 60_000)),
            jitter: chance.one([0.0, 0.2, 1.0]),
        },
        budget: budget(chance, long),
        sources: sources(chance, &names),
        recovery: recovery(chance, &names),
        routes,
        loops,
        council,
        phases,
        changes: ChangeRules {
            commit: false,
            ask_always: chance.percent(15),
            ..ChangeRules::default()
        },
        ..plain()
    }
}

/// Returns a workflow with all defaults: what is not drawn is as in an empty file.
fn plain() -> Workflow {
    let text = "workflow = { name = \"drawn\", entry = \"planner\" }\n[agents.planner]\nrunner = \"scripted\"";
    stafette_workflow::parse(text).expect("it is a workflow")
}

/// Returns a council of three that needs no one else.
pub(super) fn team() -> Workflow {
    let text = r#"
        workflow = { name = "team", entry = "council" }
        agents = { planner.runner = "scripted", builder.runner = "scripted", tester.runner = "scripted" }
        council = { members = ["planner", "builder", "tester"], quorum = "2 of 3" }
        changes = { commit = false }
        limits = { cooldown = 0, handoffs_per_item = 100, handoffs_per_run = 100 }
        retries = { max = 20 }
        budget = { money = "5usd" }
    "#;
    stafette_workflow::parse(text).expect("it is a workflow")
}

/// Draws a council now and then.
fn council(chance: &mut Chance, names: &[AgentName], long: bool) -> Option<CouncilRules> {
    if long || !chance.percent(35) {
        return None;
    }
    let members: Vec<AgentName> = names.iter().filter(|_| chance.percent(70)).cloned().collect();
    let first = names[0].clone();
    Some(CouncilRules {
        members: if members.is_empty() { vec![first.clone()] } else { members },
        mode: chance.one([Mode::InTurn, Mode::Parallel]),
        quorum: chance.one(["4 of 5", "1 of 2", "1 of 1"]).parse().unwrap_or_default(),
        blind_first_vote: chance.percent(30),
        weights: BTreeMap::from([(first, chance.count(1, 3))]),
        turns_per_agent: chance.count(1, 2),
        exhausted: chance.one([Exhausted::Escalate, Exhausted::Escalate, Exhausted::HandOver]),
        then: chance.percent(30).then(|| Party::from(&names[names.len() - 1])),
    })
}

/// Draws phases now and then, with or without a way back.
fn phases(chance: &mut Chance, names: &[AgentName]) -> Vec<PhaseStep> {
    if !chance.percent(30) {
        return Vec::new();
    }
    let mut steps: Vec<PhaseStep> = Vec::new();
    for phase in [Phase::Research, Phase::Write, Phase::Validate, Phase::Parallel] {
        if chance.percent(25) && !(phase == Phase::Parallel && steps.is_empty()) {
            continue;
        }
        let size = if phase == Phase::Parallel { 2 + chance.index(names.len() - 1) } else { 1 };
        let first = chance.index(names.len());
        let agents = names.iter().cycle().skip(first).take(size).cloned().collect();
        let earlier: Vec<Phase> = steps.iter().map(|step| step.phase).collect();
        steps.push(PhaseStep {
            phase,
            agents,
            instructions: String::new(),
            constraints: Vec::new(),
            part: chance.one([Phase::Validate, Phase::Validate, Phase::Research, Phase::Write]),
            rule: chance.one([Rule::All, Rule::Any, Rule::Majority]),
            back_to: chance.pick(&earlier).copied().filter(|_| chance.percent(60)),
            rounds: chance.count(1, 3),
        });
    }
    steps
}

fn agent(chance: &mut Chance) -> Agent {
    let needs = KEYS.iter().filter(|_| chance.percent(10)).copied().collect::<Vec<_>>();
    let estimate = match chance.below(3) {
        0 => None,
        1 => Some(Estimate { tokens: 500, money: Usd(20_000) }),
        _ => Some(Estimate { tokens: chance.below(3000), money: Usd(chance.below(200_000)) }),
    };
    let plain = plain().agents.into_values().next().expect("it has an agent");
    let needs = needs.into_iter().map(|key| need(chance, key)).collect();
    // Some agents are external and take their turns on their own.
    let runner = if chance.percent(10) { Runner::External } else { plain.runner };
    Agent { needs, estimate, runner, ..plain }
}

fn need(chance: &mut Chance, key: &str) -> Need {
    Need {
        key: key.to_owned(),
        source: chance.one(["external", "market", "user", "decision", "archive"]).to_owned(),
        expected_type: chance.one(TYPES).to_owned(),
        description: String::new(),
    }
}

fn loops(chance: &mut Chance, names: &[AgentName], long: bool) -> Vec<Loop> {
    let count = if long { 2 } else { chance.one([0, 1, 2, 2]) };
    let mut loops = Vec::new();
    for number in 0..count {
        let size = 2 + chance.index(2);
        let mut between: Vec<AgentName> = Vec::new();
        for _ in 0..size {
            if let Some(name) = chance.pick(names).filter(|name| !between.contains(name)) {
                between.push(name.clone());
            }
        }
        if between.len() > 1 {
            let max_rounds = if long { chance.count(20, 40) } else { chance.count(2, 5) };
            loops.push(Loop { name: format!("loop-{number}"), between, max_rounds });
        }
    }
    loops
}

fn routes(chance: &mut Chance, names: &[AgentName], loops: &[Loop]) -> Vec<Route> {
    let mut pairs: Vec<(AgentName, AgentName)> =
        names.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    for _ in 0..chance.below(names.len() as u64 + 1) {
        if let (Some(from), Some(to)) = (chance.pick(names).cloned(), chance.pick(names).cloned()) {
            pairs.push((from, to));
        }
    }
    for declared in loops {
        for from in &declared.between {
            pairs.extend(declared.between.iter().map(|to| (from.clone(), to.clone())));
        }
    }
    pairs.retain(|(from, to)| from != to);
    pairs.sort();
    pairs.dedup();
    let mut routes = Vec::new();
    for (from, to) in pairs {
        let requires = KEYS.iter().filter(|_| chance.percent(3)).map(|key| (*key).to_owned());
        let requires = requires.collect();
        let mut alternatives = Vec::new();
        if chance.percent(15) {
            alternatives.extend(chance.pick(names).map(Party::from));
        }
        routes.push(Route {
            from: (&from).into(),
            to: (&to).into(),
            reason: String::new(),
            requires,
            alternatives,
        });
    }
    routes
}

fn deny(chance: &mut Chance, names: &[AgentName]) -> Vec<Denied> {
    if chance.percent(75) {
        return Vec::new();
    }
    let (from, to) = (chance.pick(names).cloned(), chance.pick(names).cloned());
    let denied = from.zip(to).map(|(from, to)| Denied {
        from: (&from).into(),
        to: (&to).into(),
        why: "the seed says so".into(),
    });
    denied.into_iter().collect()
}

fn limits(chance: &mut Chance, long: bool) -> Limits {
    let roomy = long || chance.percent(70);
    let most = if long {
        300
    } else if roomy {
        60
    } else {
        6
    };
    Limits {
        handoffs_per_item: chance.count(if roomy { 10 } else { 1 }, most),
        handoffs_per_run: if roomy { chance.count(15, most + 10) } else { chance.count(2, 6) },
        turns_per_handoff: chance.one([2, 8, 20]),
        refusals: chance.count(0, 3),
        cooldown: Millis(chance.one([0, 0, 500, 10_000])),
        accept_timeout: Millis(chance.between(2000, 20_000)),
        lease: Millis(chance.between(4000, 60_000)),
        finish_timeout: Millis(chance.one([20_000, 120_000, 600_000, 600_000])),
        answer_timeout: Millis(chance.one([60_000, 3_600_000, 6 * 3_600_000])),
        ..Limits::default()
    }
}

fn budget(chance: &mut Chance, long: bool) -> Budget {
    let small = !long && chance.percent(30);
    Budget {
        handoffs: Budget::default().handoffs,
        money: Usd(if small { chance.between(50_000, 600_000) } else { 50_000_000 }),
        tokens: if !long && chance.percent(20) { chance.between(1000, 8000) } else { 2_000_000 },
        time: Millis(chance.one([300_000, 7_200_000, 86_400_000, 3 * 86_400_000])),
    }
}

fn sources(chance: &mut Chance, names: &[AgentName]) -> BTreeMap<String, Party> {
    let mut sources = BTreeMap::new();
    for source in ["user", "archive", "external"] {
        let party = match chance.below(6) {
            0 | 1 => chance.pick(names).map(Party::from),
            2 => Some(Party::Human),
            3 => Some(Party::Orchestrator),
            _ => None,
        };
        sources.extend(party.map(|party| (source.to_owned(), party)));
    }
    sources
}

fn recovery(chance: &mut Chance, names: &[AgentName]) -> Recovery {
    let mut rules = Vec::new();
    for _ in 0..chance.below(4) {
        let action = chance.one([
            Strategy::RetryDifferentTarget,
            Strategy::RetryDifferentTarget,
            Strategy::ProceedPartial,
            Strategy::Escalate,
            Strategy::SkipAndContinue,
            Strategy::FallbackDefault,
        ]);
        let default = match action {
            Strategy::FallbackDefault => Fields::from_iter([("spec".to_owned(), json!("usual"))]),
            _ => Fields::new(),
        };
        let on = chance.one([
            None,
            Some(RecoveryCause::Failed),
            Some(RecoveryCause::Partial),
            Some(RecoveryCause::Expired),
        ]);
        let to = chance.pick(names).map(Party::from).filter(|_| chance.percent(40));
        let target = match chance.below(8) {
            0 => Some(Party::Human),
            1 => Some(Party::Orchestrator),
            2..6 => chance.pick(names).map(Party::from),
            _ => None,
        };
        rules.push(RecoveryRule { to, on, action, target, default });
    }
    let critical = KEYS.iter().filter(|_| chance.percent(25)).map(|key| (*key).to_owned());
    Recovery { critical: critical.collect(), rules }
}
