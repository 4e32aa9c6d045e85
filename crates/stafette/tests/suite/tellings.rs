//! What agents tell by their own channel, from programs in terminals that stay after their turns.

use serde_json::json;

use crate::world::{World, program};

/// Reads an order up to its last line, as it is typed into the terminal.
pub(crate) const HEAR: &str = r#"hear() { while read -r line; do case "$line" in *"done twice.") return;; esac; done; exit; }
echo hi
"#;

/// A planner without a terminal, a builder in one, and a reviewer that counts what it gets.
fn world(planner: &str, builder: &str) -> World {
    let workflow = r#"
[workflow]
name = "three"
entry = "planner"
[agents.planner]
runner = "exec"
command = ["sh", "planner.sh"]
[agents.builder]
runner = "pty"
command = ["sh", "builder.sh"]
[agents.reviewer]
runner = "exec"
result = "exit"
command = ["sh", "-c", "cat >/dev/null; echo x >> reviewed.txt"]
[[routes]]
from = "planner"
to = "builder"
[[routes]]
from = "builder"
to = "reviewer"
[limits]
cooldown = 0
accept_timeout = "5m"
ready_timeout = "2m"
"#;
    let program = format!("S='{}'\n", program());
    let planner = format!("{program}cat >/dev/null\n{planner}");
    let builder = format!("{program}{HEAR}{builder}");
    World::with(workflow, &[("planner.sh", &planner), ("builder.sh", &builder)])
}

#[test]
fn b_07_a_turn_in_a_terminal_that_stays_is_over_when_it_was_told() {
    let world = world(
        "$S emit HANDOFF builder",
        "hear; $S emit HANDOFF reviewer 2> said.txt; exec sleep 1000",
    );
    let view = world.run(&["run", "--foreground", "x", "--json"]).ok().json();
    assert_eq!(view["status"], "succeeded", "{view}");
    assert_eq!(
        (world.read("said.txt"), world.read("reviewed.txt")),
        ("taken\n".into(), "x\n".into())
    );
}

#[test]
fn b_07_a_signed_frame_that_is_shown_again_in_a_later_turn_moves_nothing() {
    // Where its own channel cannot be reached, what it tells is signed and printed.
    let world = world(
        r#"$S emit HANDOFF '{"to":"builder","item":"one"}'
           $S emit HANDOFF '{"to":"builder","item":"two"}'"#,
        "hear; $S emit --print HANDOFF reviewer > sealed.txt; cat sealed.txt
         hear; cat sealed.txt; sleep 0.5; $S emit --print RESULT 'nothing to review'
         exec sleep 1000",
    );
    let view = world.run(&["run", "--foreground", "x", "--json"]).ok().json();
    assert_eq!(view["status"], "succeeded", "{view}");
    assert!(world.read("sealed.txt").contains(";m="), "it was signed");
    assert_eq!(world.read("reviewed.txt"), "x\n", "once, not twice");
    let log = world.run(&["log", "--json"]).ok().lines();
    let ended = |event: &&serde_json::Value| event["event"] == "turn_finished";
    let said = |event: &serde_json::Value| event.to_string().contains("nothing to review");
    assert_eq!(log.iter().filter(ended).filter(|event| said(event)).count(), 1, "{log:#?}");
    assert_eq!(view["tally"]["refused"], json!(0), "{view}");
}

#[test]
fn b_19_what_says_nothing_is_refused_at_the_door() {
    let world = world(
        r#"try() { "$@" 2>> said.txt; echo "exit status $?" >> said.txt; }
           try $S emit RESULT ''
           printf '' | try $S emit RESULT -
           try $S emit RESULT '{}'
           try $S emit RESULT '{"stat":"failed"}'
           try $S emit --print RESULT ' '
           try $S emit HANDOFF '{"to":"human"}'
           try $S emit HANDOFF '{"to":"human","questions":"Which?"}'
           try $S emit REPORT '{"tokens":-5}'
           try $S emit REPORT '{"cost_usd":-1}'
           try $S emit REPORT '{"cost":5}'
           try $S emit DONE x
           $S emit RESULT '{"status":"resolved","summary":"at last"}'"#,
        "hear",
    );
    let view = world.run(&["run", "--foreground", "x", "--json"]).ok().json();
    assert_eq!(view["status"], "succeeded", "{view}");
    assert_eq!(view["tally"]["escalated"], json!(0), "nobody is asked an empty question: {view}");
    let said = world.read("said.txt");
    assert_eq!(said.matches("exit status 2").count(), 11, "{said}");
    assert_eq!(said.matches("exit status").count(), 11, "{said}");
    assert_eq!(said.matches("  fix: correct what it names").count(), 11, "{said}");
    assert_eq!(said.matches("RESULT: it says nothing").count(), 4, "{said}");
    for reason in [
        "did you mean `status`?",
        "/stat: did you mean `status`?",
        "did you mean `question` by `questions`?",
        "/cost: did you mean `cost_usd`?",
        "/tokens: `-5`",
        "/cost_usd: `-1`",
        "`DONE` is not a signal: it is one of READY, HANDOFF, RESULT, REPORT, CHANGE, SIGNAL, ERROR or MESSAGE",
    ] {
        assert!(said.contains(reason), "no `{reason}` in {said}");
    }
}
