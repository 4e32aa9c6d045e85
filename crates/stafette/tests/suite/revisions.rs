//! Changes that a person sends back where agents work in worktrees: the next revision begins with the
//! change, and is what its agent leaves in the files.

use std::path::Path;

use serde_json::Value;

use crate::world::{World, program, until, until_so};

/// A project in git, whose agents work in worktrees by these scripts.
fn world(agents: &[(&str, &str)]) -> World {
    let world = World::new();
    let entry = agents[0].0;
    let mut workflow =
        format!("[workflow]\nname = \"own\"\nentry = \"{entry}\"\nworktrees = true\n");
    for (name, script) in agents {
        let script = script
            .replace("STAFETTE ", &format!("'{}' ", program()))
            .replace("PROJECT", &world.project().display().to_string());
        // Beside the project: what a command names of it, no change touches without a yes.
        let file = world.home().join(format!("{name}.sh"));
        std::fs::write(&file, format!("cat > /dev/null\n{script}\n")).expect("written");
        workflow.push_str(&format!(
            "[agents.{name}]\nrunner = \"exec\"\nresult = \"exit\"\ncommand = [\"sh\", {file:?}]\n"
        ));
    }
    if let [(giver, _), (taker, _)] = agents {
        workflow.push_str(&format!("[[routes]]\nfrom = \"{giver}\"\nto = \"{taker}\"\n"));
    }
    world.write("stafette.toml", &(workflow + "[retries]\nmax = 1\n"));
    world.write("a.txt", "one\n");
    world.write("b.txt", "b\n");
    for arguments in [
        &["init", "-q", "-b", "main"][..],
        &["config", "user.name", "Mia"],
        &["config", "user.email", "mia@example.org"],
        &["add", "a.txt", "b.txt"],
        &["commit", "-qm", "first"],
    ] {
        assert!(world.command("git").args(arguments).status().expect("git").success());
    }
    world.run(&["trust", "--yes"]).ok();
    world
}

/// Does this when it is asked to revise a change, and that otherwise.
fn revising(revises: &str, makes: &str) -> String {
    format!("if grep -q comments \"$STAFETTE_INPUTS\"; then {revises}; else {makes}; fi")
}

const MAKES: &str = "echo changed >> a.txt; echo new > n.txt";

fn changes(world: &World) -> Vec<Value> {
    world.run(&["changes", "--json"]).ok().json()["changes"].as_array().expect("changes").clone()
}

/// Waits until no run is open.
fn settled(world: &World) {
    until_so("the runs end", || {
        let runs = world.run(&["status", "--json"]).ok().json();
        let is_over = |run: &Value| run["status"] == "succeeded" && run["collecting"] != true;
        runs.as_array().expect("runs").iter().all(is_over)
    });
}

fn comment(world: &World, text: &str) -> String {
    let said = world.run(&["changes", "comment", "c1", text, "--json"]).ok().json();
    said["heard"]["run"].as_str().expect("a run").to_owned()
}

#[test]
fn s4_06_a_revision_begins_with_the_change_and_is_what_its_agent_leaves_in_the_files() {
    let revises = "grep -qx changed a.txt && echo revised >> a.txt; rm n.txt; echo c > c.txt";
    let world = world(&[("one", &revising(revises, MAKES))]);
    world.run(&["run", "Change it"]).ok();
    let first = changes(&world)[0]["author"]["run"].clone();
    // The project goes on meanwhile.
    world.write("b.txt", "mine\n");
    let run = comment(&world, "Say that it is revised, without n.txt");
    let change = until("it is revised", || {
        changes(&world).into_iter().find(|change| change["revision"] == 2)
    });
    settled(&world);
    assert_eq!((&change["id"], &change["reason"]), (&"c1".into(), &"Change it".into()));
    assert_eq!(change["author"]["run"], run.as_str());
    assert_ne!(change["author"]["run"], first);
    assert_eq!(changes(&world).len(), 1, "it is the outcome of the run, and no other is");
    let files: Vec<&str> = change["edits"]
        .as_array()
        .expect("edits")
        .iter()
        .filter_map(|it| it["file"].as_str())
        .collect();
    assert_eq!(files, ["a.txt", "c.txt"]);
    world.run(&["apply", "c1@2"]).ok();
    assert_eq!(world.read("a.txt"), "one\nchanged\nrevised\n");
    assert_eq!(world.read("b.txt"), "mine\n");
    assert!(!world.project().join("n.txt").exists() && world.project().join("c.txt").exists());
}

#[test]
fn s4_06_the_last_one_at_work_revises_what_came_of_a_team() {
    let builder = format!("{MAKES}; STAFETTE emit HANDOFF reviewer");
    let world = world(&[("builder", &builder), ("reviewer", "echo reviewed >> a.txt")]);
    world.run(&["run", "Change it"]).ok();
    world.run(&["changes", "comment", "c1", "More"]).ok();
    until_so("it is revised", || changes(&world)[0]["revision"] == 2);
    settled(&world);
    let all = changes(&world);
    assert_eq!((all.len(), &all[0]["author"]["agent"]), (1, &"reviewer".into()), "{all:?}");
    world.run(&["apply", "c1@2"]).ok();
    assert_eq!(world.read("a.txt"), "one\nchanged\nreviewed\nreviewed\n");
    assert_eq!(world.read("n.txt"), "new\n");
}

#[test]
fn s4_06_what_is_being_revised_is_applied_only_on_request_and_keeps_its_author() {
    let waits = "touch PROJECT/begun; while [ ! -e PROJECT/go ]; do sleep 0.01; done; echo revised >> a.txt";
    let world = world(&[("one", &revising(waits, MAKES))]);
    world.run(&["run", "Change it"]).ok();
    let first = changes(&world)[0]["author"]["run"].as_str().expect("a run").to_owned();
    let run = comment(&world, "More");
    until_so("it is being revised", || world.project().join("begun").exists());
    let said = world.run(&["apply", "c1"]);
    assert_eq!(said.code, 1, "{said:?}");
    let short = &run[run.len() - 8..];
    for part in ["c1 is being revised", &format!("`stafette resume {short}`"), "--as-it-is"] {
        assert!(said.err.contains(part), "{part}: {said:?}");
    }
    let all = world.run(&["apply", "--all"]).ok();
    assert!(all.out.contains("c1 was left: c1 is being revised"), "{all:?}");
    assert_eq!(world.run(&["inbox"]).ok().out, "", "it waits for its agent");
    // Who has made it is known, and who has it.
    let by = format!("one in {}", &first[first.len() - 8..]);
    for said in [world.run(&["changes"]).ok(), world.run(&["why", "c1"]).ok()] {
        assert!(said.out.contains(&by) && said.out.contains(short), "{said:?}");
    }
    assert_eq!(world.read("a.txt"), "one\n");
    world.run(&["apply", "c1", "--as-it-is"]).ok();
    assert_eq!(world.read("a.txt"), "one\nchanged\n");
    world.write("go", "");
    world.run(&["resume", short]).ok();
    settled(&world);
    // What its agent has done meanwhile is not lost.
    let more = changes(&world).into_iter().find(|change| change["id"] == "c2").expect("a change");
    assert_eq!(more["edits"][0]["file"], "a.txt", "{more}");
    world.run(&["apply", "c2"]).ok();
    assert_eq!(world.read("a.txt"), "one\nchanged\nrevised\n");
}

#[test]
fn s4_06_a_change_that_is_right_as_it_is_stays_as_it_is() {
    let world = world(&[("one", &revising("echo fine", MAKES))]);
    world.run(&["run", "Change it"]).ok();
    let before = changes(&world)[0].clone();
    comment(&world, "Is that right?");
    settled(&world);
    let all = changes(&world);
    assert_eq!((all.len(), &all[0]["revision"]), (1, &1.into()), "{all:?}");
    for key in ["author", "edits"] {
        assert_eq!(all[0][key], before[key]);
    }
    world.run(&["apply", "c1"]).ok();
    assert_eq!(world.read("a.txt"), "one\nchanged\n");
}

#[test]
fn s4_06_edits_beside_a_set_that_was_handed_in_are_a_change_too() {
    let set = r#"{"reason":"b","changes":[{"file":"b.txt","action":"modify","content":"set\n"}]}"#;
    let hands_in = format!("STAFETTE emit CHANGE '{set}'; echo set > b.txt; echo more >> a.txt");
    let world = world(&[("one", &hands_in)]);
    let said = world.run(&["run", "Change it"]).ok();
    assert!(said.err.contains("c1: 1 file") && said.err.contains("c2: 1 file"), "{said:?}");
    world.run(&["apply", "--all"]).ok();
    assert_eq!((world.read("a.txt"), world.read("b.txt")), ("one\nmore\n".into(), "set\n".into()));
}

#[test]
fn s4_07_what_is_sent_back_in_its_run_is_revised_in_the_files_too() {
    let set = r#"{"reason":"b","changes":[{"file":"b.txt","action":"delete"}]}"#;
    let revises = "[ ! -e b.txt ] && echo kept > b.txt; echo more >> a.txt";
    let makes = format!("STAFETTE emit CHANGE '{set}'");
    let world = world(&[("one", &revising(revises, &makes))]);
    assert_eq!(world.run(&["run", "Clean up"]).code, 3, "a deletion is asked about");
    world.run(&["changes", "comment", "c1", "Keep it"]).ok();
    let change = until("it is revised", || {
        changes(&world).into_iter().find(|change| change["revision"] == 2)
    });
    settled(&world);
    assert_eq!(changes(&world).len(), 1);
    assert_eq!(change["edits"].as_array().map(Vec::len), Some(2), "{change}");
    world.run(&["apply", "c1@2"]).ok();
    assert_eq!((world.read("a.txt"), world.read("b.txt")), ("one\nmore\n".into(), "kept\n".into()));
}

#[test]
fn b_22_a_change_that_waits_for_a_person_is_in_the_inbox_and_the_next_step() {
    let world = world(&[("one", MAKES)]);
    world.run(&["run", "Change it"]).ok();
    let inbox = world.run(&["inbox"]).ok();
    assert!(inbox.out.contains("stafette apply c1"), "{inbox:?}");
    let alone = world.run(&[]).ok().out;
    assert!(
        alone.contains("1 change waiting for you") && alone.contains("stafette inbox"),
        "{alone}"
    );
    let line = world.run(&["status", "--line"]).ok().out;
    assert_eq!(line, "stafette: 1 change waiting for you (stafette inbox)\n");
    world.run(&["apply", "c1"]).ok();
    assert_eq!(world.run(&["inbox"]).ok().out, "");
    assert!(world.run(&[]).ok().out.contains("Idle"));
}

#[test]
fn b_22_a_question_about_a_failure_says_where_the_edits_are() {
    let world = world(&[("one", "echo half > a.txt; exit 9")]);
    assert_eq!(world.run(&["run", "Change it"]).code, 3);
    let inbox = world.run(&["inbox"]).ok().out;
    let (_, folder) = inbox.split_once("its edits are kept in ").expect(&inbox);
    let folder = folder.lines().next().unwrap_or_default().split("  (").next().unwrap_or_default();
    let kept = std::fs::read_to_string(Path::new(folder).join("a.txt"));
    assert_eq!(kept.expect(folder), "half\n");
}
