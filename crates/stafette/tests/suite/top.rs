//! All agents at a glance, in a real terminal.

use crate::terminal::Terminal;
use crate::world::{World, program};

/// What a program writes when it gives the screen back.
const SCREEN_BACK: &str = "\x1b[?1049l";

/// A world in which the writer waits for a person.
fn waiting() -> World {
    let world = World::example("report");
    assert_eq!(world.run(&["run", "Write the market report"]).code, 3);
    world
}

#[test]
fn b_13_a_question_is_found_and_answered_without_leaving_the_screen() {
    let world = waiting();
    let mut shell = world.command("sh");
    shell.args(["-c", "$0 top; echo left with $?; stty -a", program()]);
    let mut terminal = Terminal::start(shell, 80, 24);
    terminal.sees("NEEDS YOU 1");
    terminal.sees("1 run · 1 needs you");
    terminal.sees("▸ ! asks      writer");
    terminal.types("j");
    terminal.sees("▸ · idle      research");
    terminal.types("?");
    terminal.sees("quit; the agents go on");
    terminal.types("?k\r");
    terminal.sees("QUESTION h3");
    terminal.sees("writer needs audience (who the report is for)");
    terminal.sees("HANDOFF h1 blocked · from human · task_handoff");
    terminal.sees("handoff_blocked");
    terminal.types("afounders\r");
    terminal.sees("Answer h3 with `founders`? y/n");
    terminal.types("y");
    terminal.sees("✓ writer done");
    terminal.types("q");
    let (code, written) = terminal.ends();
    assert_eq!(code, Some(0));
    let after = written.rsplit(SCREEN_BACK).next().unwrap_or_default();
    assert!(after.contains("left with 0"), "{after}");
    assert!(after.contains(" icanon") && after.contains(" echo "), "{after}");
    assert_eq!(world.run(&["status", "--json"]).json()[0]["status"], "succeeded");
}

#[test]
fn the_terminal_is_given_back_when_the_program_is_told_to_end() {
    let world = waiting();
    let mut top = world.command(program());
    top.arg("top").env("NO_COLOR", "1");
    let mut terminal = Terminal::start(top, 40, 12);
    terminal.sees("▸ ! asks      writer");
    // Another client changes something, and it is seen here.
    world.run(&["cancel"]).ok();
    terminal.sees("✗ cancelled");
    let pid = terminal.pid().to_string();
    assert!(world.command("kill").args(["-TERM", &pid]).status().expect("killed").success());
    let (code, written) = terminal.ends();
    assert_eq!(code, Some(0));
    assert!(written.contains(SCREEN_BACK));
    let coloured = [";31m", ";32m", ";33m", ";38;5"].iter().any(|colour| written.contains(colour));
    assert!(!coloured, "no colours were wanted");
}

#[test]
fn b_13_without_a_terminal_it_is_one_line_of_json() {
    let world = waiting();
    let refused = world.run(&["top"]);
    assert!(refused.code == 2 && refused.err.contains("top --json"), "{refused:?}");
    let said = world.run(&["top", "--json"]).ok();
    assert_eq!(said.out.lines().count(), 1);
    let seen = said.json();
    let writer = &seen["agents"][0];
    assert_eq!((&writer["agent"], &writer["group"]), (&"writer".into(), &"needs_you".into()));
    assert_eq!(writer["question"], seen["questions"][0]["id"]);
    assert_eq!(seen["agents"][1]["doing"], "had nothing to do yet");
}
