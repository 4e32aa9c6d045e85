//! Agents for the tests.

use std::collections::BTreeMap;

use stafette_core::team::council::vote::Stance;
use stafette_core::{
    Handoff, HandoffId, Kind, MissingInput, Offer, Party, Question, Reason, RunId, State, Time,
    Usage, Usd,
};
use stafette_engine::{AgentView, CouncilView, Group, MemberView, Work};

use super::state::{Asked, Input, Looked, Snapshot};

pub(super) const NOW: Time = Time(1_000_000_000);

fn run() -> RunId {
    "01890000-0000-7000-8000-00009c1f2a3b".parse().expect("an id")
}

pub(super) fn agent(name: &str, group: Group, doing: &str) -> AgentView {
    let work = Work {
        handoff: HandoffId(1),
        state: "running".into(),
        from: "human".into(),
        reason: "task_handoff".into(),
        summary: "Write the market report".into(),
        inputs: vec!["market_size".into(), "audience".into()],
        round: 1,
        attempt: 2,
    };
    AgentView {
        run: run(),
        short: run().short(),
        request: "Write the market report".into(),
        status: "running".into(),
        seq: 50,
        agent: name.into(),
        group,
        session: None,
        doing: doing.into(),
        since: Time(NOW.0 - 12_000).rfc3339(),
        until: None,
        work: matches!(group, Group::NeedsYou | Group::Working).then_some(work),
        question: (group == Group::NeedsYou).then_some(HandoffId(3)),
        spent: Usage::exactly(900, Usd(120_000)),
    }
}

pub(super) fn question(options: &[&str]) -> Asked {
    let details = "writer needs audience (who the report is for)";
    let question = Question {
        details: details.into(),
        context: "The market is 9 bn.".into(),
        options: options.iter().map(|option| (*option).to_owned()).collect(),
        ..Question::default()
    };
    let missing = MissingInput {
        key: "audience".into(),
        expected_type: "string".into(),
        description: "who the report is for".into(),
        source: None,
    };
    let offer = Offer {
        question: Some(question),
        missing: vec![missing],
        ..Offer::new("writer".into(), Party::Human, Kind::Delegate, Reason::RequiresHumanDecision)
    };
    let handoff = Handoff {
        id: HandoffId(3),
        offer,
        cause: None,
        returns_to: None,
        state: State::Asked { until: NOW },
        attempt: 1,
        turn: 0,
        turn_limit: 8,
        inputs: stafette_core::Fields::new(),
        replies: std::collections::BTreeSet::new(),
        answers: Vec::new(),
        permits: Vec::new(),
        told: stafette_core::run::tell::TurnReport::default(),
        ignored: Vec::new(),
        unconfirmed: None,
        gathered: Vec::new(),
        answered_by: None,
        deadline: None,
        cools: false,
        constraints: stafette_core::handoff::Constraints::default(),
        refusals: 0,
        reminded: false,
        assessed: Vec::new(),
        trail: stafette_core::handoff::Trail::default(),
        admitted_at: NOW,
        usage: Usage::default(),
    };
    Asked { run: run(), handoff }
}

/// The input with the events of a run without a council.
pub(super) fn looked(run: RunId, events: Vec<String>) -> Input {
    Input::Looked(Looked { run, events, council: None })
}

/// A council in which two of three members have spoken, one of them with double weight.
pub(super) fn council() -> CouncilView {
    let member = |name: &str, weight, signal: Option<Stance>| MemberView {
        member: name.parse().expect("a name"),
        weight,
        turns: u32::from(signal.is_some()),
        signal,
        reason: String::new(),
        speaks_in: None,
    };
    let members = vec![
        member("builder", 2, Some(Stance::Agree)),
        member("fixer", 1, Some(Stance::Disagree)),
        member("writer", 1, None),
    ];
    CouncilView {
        handoff: None,
        limit: 3,
        topic: "Where the cache lives".into(),
        members,
        sealed: false,
        agreed: 2,
        needed: 3,
        total: 4,
        decision: None,
        why: None,
        verdict: None,
        decisions: Vec::new(),
        decided_by: BTreeMap::new(),
        next_topic: None,
    }
}

/// One agent of each group, as the daemon may list them.
pub(super) fn team(options: &[&str]) -> Snapshot {
    let long = "a-reviewer-with-quite-a-long-name";
    let agents = vec![
        agent("fixer", Group::Idle, "had nothing to do yet"),
        agent("builder", Group::Working, "compiles \x1b[31mthe parser\nand runs its tests"),
        AgentView {
            until: Some(Time(NOW.0 + 5_000).rfc3339()),
            ..agent(long, Group::Waiting, "attempt 2 follows")
        },
        agent("writer", Group::NeedsYou, "writer needs audience (who the report is for)"),
        AgentView {
            status: "failed".into(),
            run: "01890000-0000-7000-8000-0000aaaabbbb".parse().expect("an id"),
            short: "aaaabbbb".into(),
            ..agent("planner", Group::Done, "the budget is reached")
        },
    ];
    Snapshot { agents, questions: vec![question(options)], alerts: Vec::new() }
}
