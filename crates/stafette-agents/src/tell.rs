//! Reports that an agent makes through a channel of its own, and the check that they come from the
//! agent.

use std::path::Path;

use serde_json::Value;
use stafette_core::run::propose::check_words;
use stafette_core::run::tell::TurnReport;
use stafette_core::{AgentName, TurnKey};

use crate::Signal;
use crate::harvest::{Harvest, KINDS};
use crate::process;

/// The kinds that `stafette emit` takes. A message goes to another agent and is no signal of the
/// turn, so that it does not come here.
const NAMED: &str = "READY, HANDOFF, RESULT, REPORT, CHANGE, SIGNAL, ERROR or MESSAGE";

/// A report of an agent: for the run, and for people.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Telling {
    /// The proposals, the answer or the consumption in it.
    pub told: TurnReport,
    /// The signal to report immediately, if any.
    pub signal: Option<Signal>,
}

/// Reads a signal of `agent`: a frame's type and its payload.
///
/// # Errors
/// Every mistake in it, with its path.
pub fn read(agent: &AgentName, kind: &str, payload: Value) -> Result<Telling, Vec<String>> {
    if !KINDS.contains(&kind) {
        return Err(vec![format!("`{kind}` is not a signal: it is one of {NAMED}")]);
    }
    let mut harvest = Harvest::new(agent, false);
    let signal = harvest.signal(kind, payload);
    let told = harvest.told()?;
    let silent = told.offers.iter().filter_map(|offer| check_words(offer).err());
    let silent: Vec<String> = silent.map(|it| format!("HANDOFF: {}", it.detail())).collect();
    if silent.is_empty() { Ok(Telling { told, signal }) } else { Err(silent) }
}

/// True if process `caller` belongs to the turn of `agent`: it is the agent's process, in its group
/// or session, or a descendant. Where the system does not show that, the token alone has to do.
pub fn belongs(caller: i32, scratch: &Path, turn: TurnKey, agent: &AgentName) -> bool {
    match process::leader(scratch, turn, agent) {
        Some(leader) => process::is_kin(caller, leader),
        None => !cfg!(target_os = "linux"),
    }
}

/// True if process `caller` is related to process `leader`: in its group or session, or a
/// descendant.
pub fn is_kin(caller: i32, leader: i32) -> bool {
    process::is_kin(caller, leader)
}

/// The turn and the agent that a process, or one that started it, was started for, if its session
/// reports to this socket. It holds for processes that left their group and session, as long as
/// they keep their environment.
pub fn marked(process: i32, socket: &Path) -> Option<(TurnKey, AgentName)> {
    process::lineage(process).find_map(|ancestor| {
        let given = |name: &str| process::given(ancestor, name);
        let reports_here = given("STAFETTE_SOCKET").is_some_and(|its| Path::new(&its) == socket);
        let turn = given(process::KEY).filter(|_| reports_here)?.parse().ok()?;
        Some((turn, given("STAFETTE_AGENT")?.parse().ok()?))
    })
}

/// True if this process, or one that started it, is an agent's.
pub fn in_session() -> bool {
    let own = rustix::process::getpid().as_raw_pid();
    process::MARKS.iter().any(|mark| std::env::var_os(mark).is_some()) || is_agents(own)
}

/// True if a process, or one that started it, was started for an agent or by a daemon, of whatever
/// project. A process whose origin cannot be told counts as well.
pub fn is_agents(process: i32) -> bool {
    let is_marked =
        |process: i32| process::MARKS.iter().any(|mark| process::given(process, mark).is_some());
    process::is_daemons(process) || process::lineage(process).any(is_marked)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stafette_core::Outcome;

    use super::*;

    fn mistake(kind: &str, payload: Value) -> String {
        let agent: AgentName = "builder".parse().expect("a name");
        let told = read(&agent, kind, payload);
        told.map_or_else(|mistakes| mistakes.join("; "), |_| "taken".to_owned())
    }

    #[test]
    fn b_19_an_answer_that_says_nothing_is_refused() {
        for empty in [json!(""), json!(" \n"), json!(null), json!({}), json!({ "summary": "" })] {
            let said = mistake("RESULT", empty.clone());
            assert!(said.starts_with("RESULT: it says nothing: give a text"), "{empty}: {said}");
        }
        for (payload, meant) in [
            (json!({ "stat": "failed" }), "RESULT: /stat: did you mean `status`?"),
            (
                json!({ "n": 1, "sumary": "x" }),
                "RESULT: /sumary: it has no `status`, `summary` or `outputs`; did you mean `summary`?",
            ),
            (
                json!({ "verdict": "good" }),
                "RESULT: /verdict: it has no `status`, `summary` or `outputs`; did you mean `status`?",
            ),
        ] {
            let said = mistake("RESULT", payload);
            assert!(said.starts_with(meant), "{said}");
        }
        for said in [
            json!("done"),
            json!({ "status": "resolved" }),
            json!({ "summary": "done" }),
            json!({ "outputs": { "n": 1 }, "commit": "abc" }),
            json!({ "failure": "no space left" }),
        ] {
            assert_eq!(mistake("RESULT", said.clone()), "taken", "{said}");
        }
    }

    #[test]
    fn b_19_a_status_of_another_spelling_is_no_success() {
        let agent: AgentName = "builder".parse().expect("a name");
        let outcome = |payload: Value| {
            let told = read(&agent, "RESULT", payload)?.told;
            Ok::<_, Vec<String>>(told.response.map(|response| response.outcome))
        };
        for failed in [
            json!({ "Status": "failed", "summary": "x" }),
            json!({ "status": "Failed", "summary": "x" }),
            json!({ "state": "failed", "summary": "x" }),
            json!({ "outcome": "FAILED" }),
            json!("Failed"),
        ] {
            assert_eq!(outcome(failed.clone()), Ok(Some(Outcome::Failed)), "{failed}");
        }
        for (unknown, why) in [
            (
                json!({ "status": "error" }),
                "RESULT: /status: `error` is not resolved, partial or failed",
            ),
            (json!({ "state": "error", "summary": "x" }), "RESULT: /state: did you mean `status`?"),
            (
                json!({ "stauts": "failed", "summary": "x" }),
                "RESULT: /stauts: did you mean `status`?",
            ),
        ] {
            let said = outcome(unknown).expect_err(why).join("; ");
            assert!(
                said.starts_with(why) && said.contains("resolved, partial or failed"),
                "{said}"
            );
        }
        let output = json!({ "status": "resolved", "state": "CA", "stats": "all of them fit" });
        let told = read(&agent, "RESULT", output).expect("an answer").told;
        assert_eq!(told.response.expect("an answer").outputs["state"], "CA");
    }

    #[test]
    fn b_18_a_person_is_not_asked_an_empty_question() {
        let nothing =
            "HANDOFF: /question: a person is asked nothing: say it in `question` or `summary`";
        for empty in [
            json!("human"),
            json!({ "to": "human" }),
            json!({ "to": "human", "question": " ", "options": ["a", "b"] }),
        ] {
            assert_eq!(mistake("HANDOFF", empty.clone()), nothing, "{empty}");
        }
        let typo = mistake("HANDOFF", json!({ "to": "human", "questions": "Which?" }));
        assert_eq!(typo, format!("{nothing}; did you mean `question` by `questions`?"));
        for asked in [
            json!({ "to": "human", "question": "Which?" }),
            json!({ "to": "human", "question": { "details": "Which?" } }),
            json!({ "to": "human", "summary": "Have a look" }),
            json!({ "to": "human", "missing": [{ "key": "port", "expectedType": "number" }] }),
            json!({ "to": "reviewer" }),
        ] {
            let said = mistake("HANDOFF", asked.clone());
            assert!(!said.contains("/question"), "{asked}: {said}");
        }
    }

    #[test]
    fn b_18_the_orchestrator_is_told_what_to_ask() {
        let said = mistake("HANDOFF", json!("orchestrator"));
        assert!(said.starts_with("HANDOFF: /summary: the orchestrator is told nothing"), "{said}");
        for told in [
            json!({ "to": "orchestrator", "summary": "Two ways are open" }),
            json!({ "to": "orchestrator", "reason": "completion" }),
        ] {
            assert_eq!(mistake("HANDOFF", told.clone()), "taken", "{told}");
        }
    }

    #[test]
    fn b_05_a_report_has_no_amounts_below_zero() {
        for (payload, wrong) in [
            (json!({ "tokens": -5 }), "REPORT: /tokens: `-5` is not a whole number, 0 or more"),
            (json!({ "tokens": "5" }), "REPORT: /tokens: `\"5\"` is not a whole number, 0 or more"),
            (
                json!({ "cost_usd": -0.5 }),
                "REPORT: /cost_usd: `-0.5` is not an amount of dollars, 0 or more",
            ),
            (json!({ "usd": -1 }), "REPORT: /usd: `-1` is not an amount of dollars, 0 or more"),
        ] {
            assert_eq!(mistake("REPORT", payload), wrong);
        }
        for (name, meant) in [("cost", "cost_usd"), ("Cost_USD", "cost_usd"), ("token", "tokens")] {
            let said = mistake("REPORT", json!({ name: 5 }));
            assert!(
                said.starts_with(&format!("REPORT: /{name}: did you mean `{meant}`?")),
                "{said}"
            );
        }
        let other = "REPORT: /model: a report has `tokens`, `cost_usd` and `note`";
        assert_eq!(mistake("REPORT", json!({ "model": "x" })), other);
        assert_eq!(mistake("REPORT", json!("half way")), "taken");
        let fine = json!({ "tokens": 5, "cost_usd": 0.5, "note": "half way" });
        assert_eq!(mistake("REPORT", fine), "taken");
        assert_eq!(mistake("REPORT", json!({ "tokens": null })), "taken");
    }

    #[test]
    fn the_kinds_are_named_when_one_is_not_known() {
        let said = mistake("DONE", json!("x"));
        assert!(said.contains("READY, HANDOFF,") && said.contains("or MESSAGE"), "{said}");
    }
}
