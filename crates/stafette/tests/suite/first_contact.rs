//! Claude Code and Codex themselves, as a new user has them: the profiles that are shipped, a home that
//! trusts nothing, worktrees, and nobody who has prepared anything but the way to the model.

use std::time::Duration;

use stafette_testkit::matrix::{Agent, Cell, Runner, Verdict, new_home};
use stafette_testkit::tools;

use crate::world::program;

/// Longer than it takes on a machine that does much else.
const LIMIT: Duration = Duration::from_secs(180);

fn meet(agent: Agent, runner: Runner) -> Verdict {
    tools::debian("bwrap", "bubblewrap").expect("bubblewrap");
    let folder = new_home().expect("a folder");
    let home = folder.path().canonicalize().expect("a folder");
    let verdict = Cell { agent, runner }.run(program().as_ref(), &home, LIMIT);
    verdict.unwrap_or_else(|error| panic!("{agent:?}, {runner:?}: {error}"))
}

#[test]
fn b_23_claude_code_asks_once_before_it_runs_a_command_and_that_is_in_the_inbox() {
    for (runner, question) in
        [(Runner::Pty, "Do you want to proceed?"), (Runner::Acp, "sh ./check.sh")]
    {
        let verdict = meet(Agent::Claude, runner);
        assert!(verdict.is_complete(), "{runner:?}: {verdict:?}");
        assert_eq!(verdict.questions, [question], "{runner:?}: our own tools do not ask");
    }
}

#[test]
fn b_23_claude_code_without_a_terminal_tells_what_it_was_denied() {
    let verdict = meet(Agent::Claude, Runner::Exec);
    assert_eq!(verdict.status, "succeeded", "{verdict:?}");
    assert!(verdict.edited && verdict.handed_over && !verdict.ran, "{verdict:?}");
    let denied = |alert: &String| alert.contains("PERMISSION_DENIED was denied Bash");
    assert!(verdict.alerts.iter().any(denied), "{verdict:?}");
}

/// A run whose budget is less than the builder's turn takes.
fn on_a_budget(agent: Agent) -> Verdict {
    let folder = new_home().expect("a folder");
    let home = folder.path().canonicalize().expect("a folder");
    let cell = Cell { agent, runner: Runner::Pty };
    let budget = "[budget]\ntokens = 300\n";
    let verdict = cell.run_with(program().as_ref(), &home, LIMIT, budget);
    verdict.unwrap_or_else(|error| panic!("{agent:?}: {error}"))
}

#[test]
fn b_05_what_claude_code_uses_in_a_terminal_is_counted_and_a_budget_of_tokens_stops_it() {
    let verdict = on_a_budget(Agent::Claude);
    assert!(verdict.is_complete(), "{verdict:?}");
    assert_eq!(verdict.spent, Some(verdict.answered), "{verdict:?}");
    let reached = |asked: &String| asked.contains("480 of 300 tokens used");
    assert!(verdict.questions.iter().any(reached), "{verdict:?}");
    assert!(verdict.cost.contains("≈ $0.01") && !verdict.cost.contains("unknown"), "{verdict:?}");
}

#[test]
fn b_05_what_codex_uses_in_a_terminal_is_counted_and_a_budget_of_tokens_stops_it() {
    let verdict = on_a_budget(Agent::Codex);
    assert!(verdict.is_complete(), "{verdict:?}");
    assert_eq!(verdict.spent, Some(verdict.answered), "{verdict:?}");
    let reached = |asked: &String| asked.contains("480 of 300 tokens used");
    assert!(verdict.questions.iter().any(reached), "{verdict:?}");
    assert!(!verdict.cost.contains("unknown"), "{verdict:?}");
}

#[test]
fn b_23_codex_works_at_first_contact_with_nobody() {
    for runner in Runner::ALL {
        let verdict = meet(Agent::Codex, runner);
        assert!(verdict.is_complete(), "{runner:?}: {verdict:?}");
        assert_eq!(verdict.questions, Vec::<String>::new(), "{runner:?}: {verdict:?}");
    }
}
