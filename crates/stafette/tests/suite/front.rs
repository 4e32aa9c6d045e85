//! The front of the program: its help, wrong arguments, where a project stands, and how it prints.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::terminal::Terminal;
use crate::world::{ECHO, Said, WAITS, World, program, until_so};

#[test]
fn b_27_wrong_arguments_are_told_as_json_to_those_who_want_it() {
    let world = World::new();
    let wrong: [(&[&str], &str, &str); 5] = [
        (&["--json", "stauts"], "unrecognized subcommand 'stauts'", "'status'"),
        (&["answer", "3", "--json"], "required arguments", "stafette answer --help"),
        (&["run", "x", "--jsno", "--json"], "unexpected argument '--jsno'", "'--json'"),
        (&["token", "--json"], "'stafette token' requires a subcommand", "stafette token --help"),
        (&["init", "--template", "piar", "--json"], "invalid value 'piar'", "'pair'"),
    ];
    for (arguments, what, fix) in wrong {
        let said = world.run(arguments);
        assert_eq!((said.code, said.err.as_str()), (2, ""), "{said:?}");
        let error = &said.json()["error"];
        assert!(error["message"].as_str().is_some_and(|text| text.contains(what)), "{said:?}");
        assert!(error["fix"].as_str().is_some_and(|text| text.contains(fix)), "{said:?}");
        assert_eq!(error["exit"], 2, "{said:?}");
    }
    let by_variable = world.run_with(&["token"], b"", &[("STAFETTE_JSON", "1")]);
    assert_eq!(by_variable.json()["error"]["fix"], "see `stafette token --help`");
    let plain = world.run(&["stauts"]);
    assert_eq!((plain.code, plain.out.as_str()), (2, ""), "{plain:?}");
    assert!(plain.err.contains("a similar subcommand exists: 'status'"), "{plain:?}");
    for (typed, meant) in [("inbxo", "inbox"), ("anwser", "answer"), ("staus", "status")] {
        let said = world.run(&[typed]);
        assert!(said.err.contains(&format!("exists: '{meant}'")), "{said:?}");
    }
    // After `--` it belongs to another command.
    let other = world.run(&["lock", "--nonsense", "--", "make", "--json"]);
    assert!(other.code == 2 && other.out.is_empty(), "{other:?}");
}

#[test]
fn b_27_help_shows_few_commands_first_and_all_when_asked() {
    let world = World::new();
    let short = world.run(&["-h"]).ok().out;
    assert!(short.contains("inbox    List the questions waiting for you"), "{short}");
    assert!(!short.contains("briefing") && short.contains("stafette help all"), "{short}");
    let long = world.run(&["--help"]).ok().out;
    assert!(long.contains("note, briefing, context") && long.contains("Exit codes"), "{long}");
    assert_eq!(world.run(&["help"]).ok().out, long);
    assert_eq!(world.run(&["help", "run"]).ok().out, world.run(&["run", "--help"]).ok().out);
    let nested = world.run(&["help", "changes", "approve"]).ok().out;
    assert!(nested.contains("Usage: stafette changes approve"), "{nested}");
    let unknown = world.run(&["help", "stauts"]);
    assert!(unknown.code == 2 && unknown.err.contains("'status'"), "{unknown:?}");

    // Every manual page is of a command that is in one group, and explained there.
    let groups = world.run(&["help", "all", "--json"]).ok().json();
    let groups = groups.as_array().into_iter().flatten();
    let mut listed: Vec<Value> = groups
        .flat_map(|group| group["commands"].as_array().cloned().unwrap_or_default())
        .collect();
    listed.sort_by_key(|command| command["name"].to_string());
    world.run(&["man", "pages"]).ok();
    let mut pages: Vec<String> = fs::read_dir(world.project().join("pages"))
        .expect("pages")
        .filter_map(|page| page.expect("a page").file_name().into_string().ok())
        .filter_map(|page| Some(page.strip_prefix("stafette-")?.strip_suffix(".1")?.to_owned()))
        .filter(|name| listed.iter().any(|command| name == command["name"].as_str().unwrap_or("?")))
        .collect();
    pages.sort();
    let names: Vec<&str> = listed.iter().filter_map(|command| command["name"].as_str()).collect();
    assert_eq!(names, pages);
    let all = world.run(&["help", "all"]).ok().out;
    for command in &listed {
        let about = command["about"].as_str().expect("a line");
        assert!(about.len() > 10 && all.contains(about), "{command}");
    }
}

#[test]
fn b_27_names_of_older_releases_still_work() {
    let world = World::example("refusals/unknown");
    world.run(&["run", "--foreground", "x"]).ok();
    let tidy = ["tidy", "--older-than", "0s", "--keep", "0", "--yes", "--json"];
    let removed = world.run(&tidy).ok().json();
    assert_eq!(removed["removed"]["runs"], 1);
    for (old, new) in [("tidy", "prune"), ("renew", "self-update")] {
        assert_eq!(world.run(&["help", old]).ok().out, world.run(&["help", new]).ok().out);
        assert!(!world.run(&["help", "all"]).ok().out.contains(&format!("  {old} ")), "{old}");
    }
    for (old, new) in [("--came", "--actual"), ("--seed-names", "--protocol")] {
        let command = if old == "--came" { &["roi", "d1"][..] } else { &["log"] };
        let with = |flag: &str, value: &[&str]| {
            world.run(&[command, &[flag], value, &["--help"]].concat()).ok().out
        };
        let value: &[&str] = if old == "--came" { &["5"] } else { &[] };
        assert_eq!(with(old, value), with(new, value));
        assert!(!with(old, value).contains(old), "it is not shown any more");
    }
}

/// What `stafette` alone says: the state and the next step, which the text for people has too.
fn stands(world: &World) -> (String, String) {
    let said = world.run(&["--json"]).ok().json();
    let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
    let (state, next) = (text("state"), text("next"));
    let people = world.run(&[]).ok();
    assert!(people.out.contains(&next) && people.err.is_empty(), "{state}: {people:?}");
    assert!(people.out.lines().count() <= 6, "{people:?}");
    (state, next)
}

fn is(state: &str, next: &str) -> (String, String) {
    (state.to_owned(), next.to_owned())
}

const RUN: &str = "stafette run \"…\"";

#[test]
fn b_22_stafette_alone_says_where_one_stands_and_starts_nothing() {
    let world = World::new();
    let nothing_runs = || {
        let down = world.run(&["down"]).ok();
        assert!(down.err.contains("nothing to stop"), "no daemon was started: {down:?}");
    };
    assert_eq!(stands(&world), is("outside", "stafette demo"));
    fs::create_dir(world.project().join(".git")).expect("a repository");
    assert_eq!(stands(&world), is("no_workflow", "stafette init"));
    world.write("stafette.toml", "[workflow]\nname = 5\n");
    assert_eq!(stands(&world), is("invalid_workflow", "stafette check"));
    world.write("stafette.toml", WAITS);
    assert_eq!(stands(&world), is("not_trusted", "stafette trust"));
    world.run(&["trust", "--yes"]).ok();
    assert_eq!(stands(&world), is("no_runs", RUN));
    nothing_runs();
    assert!(!world.state().join("store.db").exists(), "and nothing was written");

    world.run(&["run", "--detach", "hello"]).ok();
    until_so("the agent works", || world.project().join("begun").exists());
    assert_eq!(stands(&world), is("running", "stafette status"));
    world.run(&["down"]).ok();
    assert_eq!(stands(&world), is("daemon_down", "stafette up"));
    nothing_runs();
    world.run(&["status"]).ok();
    assert_eq!(stands(&world), is("stopped", "stafette up"));
    world.run(&["up"]).ok();
    world.run(&["pause"]).ok();
    assert_eq!(stands(&world), is("paused", "stafette resume"));
    let line = || world.run(&["status", "--line"]).ok().out;
    assert_eq!(line(), "stafette: 1 run paused (stafette resume)\n");
    world.write("stafette.toml", &WAITS.replace("begun", "other"));
    let untrusted = "stafette: This workflow is not trusted yet. 1 run paused (stafette trust)\n";
    assert_eq!(line(), untrusted);
    world.write("stafette.toml", WAITS);
    world.write("go", "");
    // It may be over before it is asked to continue.
    let _ = world.run(&["resume"]);
    assert_eq!(stands(&world), is("idle", RUN));
    world.write("stafette.toml", &WAITS.replace("begun", "other"));
    assert_eq!(stands(&world), is("not_trusted", "stafette trust"));
}

#[test]
fn b_22_stafette_alone_counts_what_waits_for_a_person() {
    let world = World::example("report");
    assert_eq!(world.run(&["run", "Write the market report"]).code, 3);
    assert_eq!(stands(&world), is("waiting_for_you", "stafette inbox"));
    let people = world.run(&[]).ok().out;
    assert!(people.contains("1 question waiting for you, 1 run active."), "{people}");

    let world = World::workflow(ECHO);
    world.write("a.txt", "a\n");
    let edits = json!({ "reason": "x", "codeChanges": [{ "file": "a.txt", "action": "delete" }] });
    world.run_with(&["changes", "propose", "-"], edits.to_string().as_bytes(), &[]).ok();
    assert_eq!(stands(&world), is("waiting_for_you", "stafette inbox"));
    let said = world.run(&["--json"]).ok().json();
    assert_eq!((&said["questions"], &said["changes"]), (&json!(0), &json!(1)));
}

/// Runs it with a standard output whose reader has gone away.
fn unread(world: &World, arguments: &[&str]) -> Said {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = world.command(program());
    command.args(arguments).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
    let output = command.output().expect("it ends");
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::new(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn b_27_a_closed_pipe_ends_a_command_quietly() {
    let world = World::example("refusals/unknown");
    world.run(&["run", "x"]).ok();
    let commands: [&[&str]; 9] = [
        &["log"],
        &["log", "--follow"],
        &["status", "--json"],
        &["status"],
        &[],
        &["--help"],
        &["help", "all"],
        &["completions", "bash"],
        &["stauts", "--json"],
    ];
    for arguments in commands {
        let said = unread(&world, arguments);
        assert_eq!((said.code, said.err.as_str()), (141, ""), "{arguments:?}");
    }
    // A command with something to clean up does its work to the end.
    world.run(&["down"]).ok();
    let said = unread(&world, &["run", "--foreground", "y"]);
    assert!(said.code == 0 && said.err.contains("succeeded"), "{said:?}");
}

#[test]
fn b_27_colours_go_to_the_streams_that_show_them() {
    let world = World::workflow(ECHO);
    let shown = |shell: &str, env: &[(&str, &str)]| {
        let mut command: Command = world.command("sh");
        let line = shell.replace("stafette", program());
        command.args(["-c", &line]).env("TERM", "xterm").envs(env.iter().copied());
        Terminal::start(command, 200, 24).ends().1
    };
    assert!(shown("stafette", &[]).contains("\x1b[32mNext:\x1b[0m"), "a terminal has colours");
    for plain in [("TERM", "dumb"), ("NO_COLOR", "1")] {
        let said = shown("stafette; stafette nonsense; stafette --help; stafette why", &[plain]);
        assert!(said.contains("Next:") && !said.contains('\x1b'), "{plain:?}: {said:?}");
    }
    shown("stafette > out", &[]);
    assert!(world.read("out").contains("Next:") && !world.read("out").contains('\x1b'));
    let with_errors = shown("stafette 2> err; stafette why 2> err", &[]);
    assert!(with_errors.contains("\x1b[32mNext:"), "{with_errors:?}");
    assert!(world.read("err").contains("error:") && !world.read("err").contains('\x1b'));
}

#[test]
fn b_27_quiet_and_verbose_change_what_is_told_beside_the_result() {
    let world = World::workflow(ECHO);
    assert!(world.run(&["status"]).ok().err.contains("No runs yet"));
    assert_eq!(world.run(&["status", "--quiet"]).ok().err, "");
    let said = world.run(&["-v", "status"]).ok();
    assert!(said.err.contains("GET /v1/runs?limit=100: 200 OK, "), "{said:?}");
    let failed = world.run(&["why", "-q"]);
    assert!(failed.code != 0 && failed.err.starts_with("error: "), "{failed:?}");
}
