//! What a run costs, where nobody can tell.

use crate::world::World;

fn workflow(more: &str) -> String {
    format!(
        "[workflow]\nname = \"one\"\nentry = \"writer\"\n\n[agents.writer]\nrunner = \"exec\"\n\
         command = [\"true\"]\nresult = \"exit\"\n{more}"
    )
}

#[test]
fn b_05_a_cost_that_nobody_tells_is_unknown_and_not_zero() {
    let world = World::workflow(&workflow("\n[budget]\nmoney = \"4usd\"\n"));
    let unseen = "the budget does not see what writer may use; 1000 handoffs and 30d are the limit";
    let checked = world.run(&["check"]).ok();
    assert!(checked.out.contains(&format!("warning[unseen-cost]: {unseen}")), "{}", checked.out);
    let doctor = world.run(&["doctor"]);
    assert!(doctor.out.contains(unseen), "{}", doctor.out);
    let run = world.run(&["run", "Write it"]).ok();
    assert!(run.err.contains(&format!("note: {unseen}")), "{}", run.err);
    assert!(run.err.contains("0 handoffs, cost unknown"), "{}", run.err);
    let status = world.run(&["status", run.out.trim()]).ok();
    assert!(status.out.contains("unknown of $4.00 ("), "{}", status.out);
    assert!(status.out.contains("unknown tokens"), "{}", status.out);
    let cost = world.run(&["cost"]).ok();
    assert!(
        cost.out.contains("1, 1 unknown") && !cost.out.contains("$0.00  unknown"),
        "{}",
        cost.out
    );
    let json = world.run(&["status", run.out.trim(), "--json"]).ok().json();
    assert_eq!(json["purse"]["spent"]["unknown"]["money"], 1);
}

#[test]
fn b_05_a_file_without_a_budget_is_not_warned_of_one_that_is_blind() {
    let world = World::workflow(&workflow(""));
    assert!(!world.run(&["check"]).ok().out.contains("unseen-cost"));
    let plain = world.run(&["run", "Write it"]).ok();
    assert!(!plain.err.contains("note:") && plain.err.contains("cost unknown"), "{}", plain.err);
    let limited = world.run(&["run", "Write it", "--budget", "5usd"]).ok();
    assert!(limited.err.contains("note: the budget does not see what writer"), "{}", limited.err);
}

#[test]
fn b_05_what_nobody_tells_counts_as_the_estimate_of_the_workflow() {
    let world = World::workflow(&workflow("estimate = { money = \"0.20usd\", tokens = 100 }\n"));
    assert!(!world.run(&["check"]).ok().out.contains("unseen-cost"));
    let run = world.run(&["run", "Write it"]).ok();
    assert!(run.err.contains("≈ $0.20 spent") && !run.err.contains("note:"), "{}", run.err);
}
