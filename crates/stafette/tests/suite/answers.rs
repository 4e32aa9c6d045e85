//! What a person says to the program, and what it says to them: answers, receipts and refusals.

use crate::mcp_stdio::Talk;
use crate::world::{ECHO, WAITS, World, program, until_so};
use serde_json::json;

/// An agent that asks a person with options, keeps what it was given, and is done with it.
fn asking(options: &str) -> World {
    let asks = r#"
[workflow]
name = "asks"
entry = "asker"
[agents.asker]
runner = "exec"
command = ["sh", "agent.sh"]
"#;
    let agent = r#"
if grep -q '"answer":' "$STAFETTE_INPUTS"; then cp "$STAFETTE_INPUTS" kept.json; STAFETTE emit RESULT done
else STAFETTE emit HANDOFF '{"to":"human","question":"Which?","options":OPTIONS}'; fi
"#;
    let agent = agent.replace("STAFETTE emit", &format!("{} emit", program()));
    let world = World::with(asks, &[("agent.sh", &agent.replace("OPTIONS", options))]);
    assert_eq!(world.run(&["run", "x"]).code, 3);
    world
}

#[test]
fn b_22_a_number_means_the_option_at_its_place_and_no_other_text_is_lost() {
    let plain = r#"["red", "blue", "", "red"]"#;
    for (options, typed, meant) in [
        (plain, "2", "blue"),
        (plain, "green", "green"),
        (r#"["1. yes", "2. no"]"#, "2", "2. no"),
        (r#"["3", "5"]"#, "7", "7"),
    ] {
        let world = asking(options);
        if options == plain {
            let shown = world.run(&["inbox"]).ok();
            assert!(shown.out.contains("options: red · blue\n"), "{shown:?}");
            for wrong in ["3", "0", " "] {
                let said = world.run(&["answer", "2", wrong]);
                assert_eq!(said.code, 2, "{said:?}");
                assert!(wrong == " " || said.err.contains("`red`, `blue`"), "{said:?}");
            }
        }
        world.run(&["answer", "2", typed]).ok();
        world.run(&["resume"]).ok();
        let kept: serde_json::Value =
            serde_json::from_str(&world.read("kept.json")).expect("its inputs");
        assert_eq!(kept["inputs"]["answer"], meant, "{options}: {typed}");
        let run = world.run(&["status", "--json"]).ok().json()[0]["run"].clone();
        let again = world.run(&["answer", &format!("{}:h2", run.as_str().expect("a run")), "x"]);
        assert!(again.err.contains("h2 has its answer already"), "{again:?}");
    }
}

#[test]
fn b_22_a_command_that_could_mean_several_runs_asks_which() {
    let world = World::workflow(WAITS);
    let begin = |text: &str| world.run(&["run", "--detach", text]).ok().out.trim().to_owned();
    let (one, _) = (begin("first"), begin("second"));
    for command in ["cancel", "pause"] {
        let said = world.run(&[command]);
        assert!(said.code == 2 && said.err.contains("first"), "{said:?}");
        assert!(said.err.contains("second") && said.err.contains("2 runs"), "{said:?}");
    }
    world.run(&["cancel", &one]).ok();
    // The only one that is left is meant.
    world.run(&["cancel"]).ok();
    assert!(!world.run(&["status"]).ok().out.contains("running"));
    let forked = world.run(&["fork", "--at", "2"]).ok();
    assert!(forked.err.contains("a new run begins from"), "{forked:?}");
    assert!(forked.err.contains("second"), "{forked:?}");
}

#[test]
fn b_22_a_run_that_is_stopped_is_said_to_be_by_every_door() {
    let world = World::workflow(WAITS);
    world.run(&["run", "--detach", "x"]).ok();
    until_so("it has begun", || world.project().join("begun").exists());
    world.run(&["down"]).ok();
    let run = world.run(&["status", "--json"]).ok().json()[0].clone();
    assert_eq!((&run["status"], &run["working"]), (&json!("stopped"), &json!([])), "{run}");
    let mut talk = Talk::new(&world, &[]);
    // It would wait for all of that time.
    let arguments = json!({ "run": "latest", "within_seconds": 600 });
    let said = talk.call("status", arguments).expect("an answer");
    assert_eq!(said["runs"][0]["status"], "stopped", "{said}");
    assert_eq!(said["runs"][0]["stopped"], true, "{said}");
    assert!(said["next"].as_str().is_some_and(|next| next.contains("stafette up")), "{said}");
}

#[test]
fn b_22_work_that_was_skipped_or_done_in_part_is_said_to_be() {
    let part = |status: &str| {
        ECHO.replace("result = \"exit\"\n", "").replace(
            r#"["sh", "-c", "true"]"#,
            &format!(r#"["sh", "-c", '{} emit RESULT "{{\"status\":\"{status}\"}}"']"#, program()),
        )
    };
    let world = World::workflow(&part("partial"));
    world.run(&["run", "x"]).ok();
    let status = world.run(&["status"]).ok();
    assert!(status.out.contains("succeeded, part of it: h1"), "{status:?}");
    let view = world.run(&["status", "--json"]).ok().json()[0].clone();
    assert!(view["why"].as_str().is_some_and(|why| why.ends_with("in part: h1")), "{view}");
    let fails = ECHO.replace(r#""true""#, r#""exit 1""#);
    let world = World::workflow(&format!("{fails}\n[retries]\nmax = 1\n"));
    assert_eq!(world.run(&["run", "x"]).code, 3);
    world.run(&["answer", "2", "skip"]).ok();
    let said = world.run(&["resume"]);
    assert!(said.code == 1 && said.err.contains("Nothing was done"), "{said:?}");
}

#[test]
fn b_30_a_message_that_nobody_read_is_told_at_the_end_of_the_run() {
    let world = World::workflow(WAITS);
    world.run(&["run", "--detach", "x"]).ok();
    until_so("it has begun", || world.project().join("begun").exists());
    world.run(&["send", "one", "use port 8081"]).ok();
    let nobody = world.run(&["send", "nobody", "hi"]);
    assert!(nobody.code != 0 && nobody.err.contains("it has one"), "{nobody:?}");
    world.write("go", "");
    let said = world.run(&["resume"]).ok();
    assert!(said.err.contains("one never read m1: use port 8081"), "{said:?}");
}

#[test]
fn b_22_refusals_say_what_helps() {
    let world = World::workflow(ECHO);
    for (command, code, says) in [
        (&["down"][..], 0, "nothing to stop"),
        (&["run", "x", "--budget", "0"], 2, "lets no agent begin"),
        (&["run", "x", "--budget", "-5"], 2, "not an amount"),
        (&["check", "nosuch.toml"], 2, "name a file that exists"),
        (&["token", "create", "x", "--agent", "nobody"], 2, "it has: one"),
        (&["top"], 2, "needs a terminal"),
    ] {
        let said = world.run(command);
        assert!(said.code == code && said.err.contains(says), "{command:?}: {said:?}");
    }
    world.run(&["run", "x"]).ok();
    for (command, says) in [
        (&["why", "h99"][..], "stafette handoffs"),
        (&["attach", "nobody"], "stafette top"),
        (&["self-update", "c1"], "[self]"),
    ] {
        let said = world.run(command);
        assert!(said.code != 0 && said.err.contains(says), "{command:?}: {said:?}");
        let said_of = |word: &str| said.err.lines().find_map(|line| line.trim().strip_prefix(word));
        assert_ne!(said_of("why: "), said_of("fix: "), "{command:?}: {said:?}");
    }
}

#[test]
fn b_22_doctor_sees_a_program_that_is_not_there() {
    let sound = |world: &World| {
        let said = world.run(&["doctor", "--json"]).json();
        let all = said["findings"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|one| one["name"] == "workflow").expect("a finding")
    };
    let text = ECHO.replace(r#"["sh", "-c", "true"]"#, r#"["/no/such/program"]"#);
    let world = World::workflow(&text);
    let found = sound(&world);
    assert_eq!(found["ok"], false, "{found}");
    assert!(found["said"].as_str().is_some_and(|said| said.contains("/no/such/program")));
    assert!(world.run(&["check"]).ok().out.contains("does not exist"));
    let text = ECHO.replace(r#"["sh", "-c", "true"]"#, r#"["sh", "work.sh"]"#);
    let world = World::with(&text, &[("work.sh", "true\n")]);
    assert_eq!(sound(&world)["ok"], true);
    std::fs::remove_file(world.project().join("work.sh")).expect("it was there");
    let found = sound(&world);
    assert!(found["said"].as_str().is_some_and(|said| said.contains("work.sh is gone")), "{found}");
}

#[test]
fn b_20_without_a_home_nothing_is_kept_where_others_may_write() {
    let world = World::workflow(ECHO);
    for home in [None, Some("relative")] {
        let mut command = world.command(program());
        command.args(["state", "--json"]).env_remove("HOME").env("TMPDIR", world.home());
        if let Some(home) = home {
            command.env("HOME", home);
        }
        let output = command.output().expect("the program runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        match said["state"].as_str() {
            Some(state) => {
                assert!(!state.starts_with(&*world.home().to_string_lossy()), "{said}");
                assert!(state.contains(".local/state/stafette/projects/"), "{said}");
                std::fs::remove_dir_all(state).expect("nothing is left there");
            }
            // The system knows no home of this user.
            None => assert!(said.to_string().contains("XDG_STATE_HOME"), "{said}"),
        }
    }
}
