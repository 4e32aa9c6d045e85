use std::sync::Arc;

use stafette_core::handoff::Receipt;
use stafette_core::run::create::RunCreated;
use stafette_core::run::session::SessionState;
use stafette_core::{
    Input, Kind, Offer, Outcome, Party, Question, Reason, Response, Run, RunId, Time, TurnResult,
    Usage, Usd,
};

use super::{AgentView, Group, of_row, of_run};

const TEAM: &str = r#"
workflow = { name = "team", entry = "writer" }
[agents.writer]
runner = "exec"
command = ["true"]
[agents.research]
runner = "exec"
command = ["true"]
[[routes]]
from = "writer"
to = "research"
[limits]
cooldown = "0s"
"#;

struct Team {
    run: Run,
    now: Time,
}

impl Team {
    fn new() -> Self {
        let workflow = stafette_workflow::parse(TEAM).expect("a workflow");
        let run = RunId(uuid::Uuid::nil());
        let created = RunCreated::new(run, Arc::new(workflow), "Write the report", "test");
        let now = Time(1_000_000);
        let (driver, step) = crate::Driver::begin(now, created);
        let mut driver = driver;
        driver.commit(step);
        Team { run: driver.run().clone(), now }
    }

    fn hears(&mut self, input: Input) {
        for event in self.run.decide(self.now, input).events {
            self.run.apply(self.now, &event);
        }
    }

    /// The turn in progress of `agent`.
    fn turn(&self, agent: &str) -> stafette_core::TurnKey {
        let order = self.run.outbox().find(|order| order.agent.as_str() == agent);
        order.expect("a turn").key
    }

    fn hands(&mut self, agent: &str, offer: Offer) {
        let turn = self.turn(agent);
        let result = TurnResult { offers: vec![offer], ..done() };
        self.hears(Input::Finish { turn, result: Box::new(result) });
    }

    fn sees(&self, agent: &str) -> AgentView {
        let views = of_run(self.now, &self.run);
        views.into_iter().find(|view| view.agent == agent).expect("an agent")
    }
}

fn done() -> TurnResult {
    let usage = Usage::exactly(10, Usd(120_000));
    TurnResult { usage, ..TurnResult::new(Response::new(Party::Orchestrator, Outcome::Resolved)) }
}

fn ask(to: &str) -> Offer {
    Offer {
        detail: "How large is it?".into(),
        ..Offer::new("writer".into(), to.into(), Kind::Delegate, Reason::MissingRequiredInput)
    }
}

#[test]
fn b_02_an_agent_at_work_says_what_it_does_and_since_when() {
    let mut team = Team::new();
    assert_eq!(team.sees("writer").doing, "Write the report");
    let turn = team.turn("writer");
    team.hears(Input::Receipt { turn, receipt: Receipt::Acknowledged });
    team.hears(Input::Heartbeat { turn, note: Some("drafts chapter 1".into()) });
    let agent = "writer".parse().expect("a name");
    let note = String::new();
    team.hears(Input::Session { agent, state: SessionState::Working, note });
    let view = team.sees("writer");
    assert_eq!((view.group, view.doing.as_str()), (Group::Working, "drafts chapter 1"));
    assert_eq!(view.session, Some(SessionState::Working));
    assert_eq!(view.since, team.now.rfc3339());
    let work = view.work.expect("work");
    assert_eq!((work.from.as_str(), work.attempt, work.round), ("human", 1, 1));
    assert_eq!(team.sees("research").group, Group::Idle);
}

#[test]
fn b_13_who_waits_for_an_agent_waits_and_who_waits_for_a_person_needs_you() {
    let mut team = Team::new();
    team.hands("writer", ask("research"));
    let view = team.sees("writer");
    assert_eq!((view.group, view.doing.as_str()), (Group::Waiting, "waits for research (h2)"));
    assert_eq!(view.spent.money, Usd(120_000));
    assert_eq!(team.sees("research").group, Group::Working);
    team.hands("research", Offer { from: "research".into(), ..ask("human") });
    let view = team.sees("research");
    assert_eq!((view.group, view.doing.as_str()), (Group::NeedsYou, "How large is it?"));
    assert!(view.question.is_some() && view.until.is_some());
    assert_eq!(team.sees("writer").group, Group::Waiting, "it does not wait for you itself");
}

#[test]
fn b_13_a_permission_asked_for_in_a_turn_comes_before_the_work() {
    let mut team = Team::new();
    let turn = team.turn("writer");
    let question = Question { details: "May I?".into(), ..Question::default() };
    team.hears(Input::Ask { turn, request: "r1".into(), question });
    assert_eq!(team.sees("writer").group, Group::NeedsYou);
}

#[test]
fn b_13_what_the_orchestrator_passes_on_is_still_the_agents_question() {
    let mut team = Team::new();
    let missing = stafette_core::MissingInput {
        key: "audience".into(),
        expected_type: "string".into(),
        description: "who it is for".into(),
        source: Some("decision".into()),
    };
    team.hands("writer", Offer { missing: vec![missing], ..ask("orchestrator") });
    let parties: Vec<String> = of_run(team.now, &team.run).into_iter().map(|v| v.agent).collect();
    assert_eq!(parties, ["research", "writer"], "the orchestrator asks nothing of its own");
    assert_eq!(team.sees("writer").group, Group::NeedsYou);
}

#[test]
fn b_05_a_reached_budget_is_a_question_of_the_orchestrator() {
    let mut team = Team::new();
    team.run.purse.limit.money = Usd(120_000);
    team.hands("writer", ask("research"));
    let view = team.sees("orchestrator");
    assert_eq!(view.group, Group::NeedsYou);
    assert!(view.doing.starts_with("The budget is reached"), "{}", view.doing);
    assert_eq!(team.sees("research").group, Group::Waiting);
}

#[test]
fn a_paused_run_says_so() {
    let mut team = Team::new();
    team.hears(Input::Pause { by: "ada".into() });
    team.hands("writer", ask("research"));
    assert_eq!(team.sees("research").doing, "the run is paused");
}

#[test]
fn of_a_run_that_has_ended_those_who_worked_are_shown() {
    let mut team = Team::new();
    let cancel = || Input::Cancel { by: "ada".into(), why: "not needed".into() };
    let mut other = Team::new();
    other.hears(cancel());
    let names = |team: &Team| {
        let views = of_row(&crate::RunView::of(&team.run));
        assert!(views.iter().all(|view| view.group == Group::Done && view.status == "cancelled"));
        views.into_iter().map(|view| view.agent).collect::<Vec<_>>()
    };
    team.hands("writer", ask("research"));
    team.hears(cancel());
    assert_eq!(names(&team), ["writer"]);
    assert_eq!(names(&other), ["orchestrator"], "nobody has come that far");
}
