//! Changes as part of a run: proposed by an agent, talked about, revised, allowed, applied, undone,
//! and every step of it recorded.

use serde_json::Value;
use stafette_core::Millis;

use crate::stages::Wall;
use crate::world::{World, until};

const TEAM: &str = r#"
[workflow]
name = "review"
entry = "builder"
[agents.builder]
runner = "scripted"
script = "builder.toml"
"#;

const BUILDER: &str = r##"
[[turn]]
when = { has = ["change"] }
steps = [
  { say = "Keeping it as it was asked" },
  { emit = "CHANGE", payload = { reason = "Mark the old greeting", changes = [
    { file = "greet.py", action = "modify", content = "# old\nprint('hello')\n" } ] } },
]
[[turn]]
steps = [
  { emit = "CHANGE", payload = { reason = "Nobody greets any more", changes = [
    { file = "greet.py", action = "delete" } ] } },
]
"##;

fn world() -> World {
    World::with(TEAM, &[("builder.toml", BUILDER), ("greet.py", "print('hello')\n")])
}

fn change(world: &World) -> Value {
    world.run(&["changes", "--json"]).ok().json()["changes"][0].clone()
}

/// What is recorded of changes, in a word each.
fn story(world: &World) -> Vec<String> {
    let events = world.run(&["log", "--json"]).ok().lines();
    let told = events.iter().filter_map(|event| {
        let name = event["event"].as_str()?.strip_prefix("change_")?;
        Some(match name {
            "settled" => event["status"].as_str()?.to_owned(),
            "proposed" => format!("proposed {}", event["revision"]),
            "ordered" => format!("to {}", event["work"].as_str()?),
            other => other.to_owned(),
        })
    });
    told.collect()
}

#[test]
fn s4_07_a_set_is_asked_about_goes_back_is_revised_applied_and_undone_in_its_run() {
    let world = world();
    let said = world.run(&["run", "Clean up", "--json"]);
    assert_eq!(said.code, 3, "a person is asked: {said:?}");
    let inbox = world.run(&["inbox"]).ok();
    assert!(inbox.out.contains("it deletes greet.py"), "{inbox:?}");
    assert!(!inbox.out.contains("changes approve"), "it is asked about once: {inbox:?}");
    world.run(&["changes", "comment", "c1", "Keep it", "--file", "greet.py", "--line", "1"]).ok();
    let revised =
        until("no revision came", || Some(change(&world)).filter(|change| change["revision"] == 2));
    assert_eq!(
        (revised["status"].as_str(), revised["gates"].as_array().map(Vec::len)),
        (Some("pending"), Some(0))
    );
    assert_eq!(revised["comments"][0]["text"], "Keep it");
    until("the run goes on", || {
        let status = world.run(&["status", "--json"]).json();
        status.to_string().contains("succeeded").then_some(())
    });
    let inbox = world.run(&["inbox"]).ok().out;
    assert!(
        inbox.contains("is yours to apply") && inbox.contains("stafette apply c1@2"),
        "{inbox}"
    );
    let said = world.run(&["changes", "approve", "c1"]);
    assert_eq!(said.code, 1, "who has only seen the first revision: {said:?}");
    assert!(said.err.contains("c1 was revised") && said.err.contains("c1@2"), "{said:?}");
    world.run(&["changes", "approve", "c1@2"]).ok();
    world.run(&["apply", "c1@2"]).ok();
    assert_eq!(world.read("greet.py"), "# old\nprint('hello')\n");
    world.run(&["undo", "c1"]).ok();
    assert_eq!(world.read("greet.py"), "print('hello')\n");
    let expected = [
        "proposed 1",
        "commented",
        "returned",
        "proposed 2",
        "approved",
        "to apply",
        "applied",
        "to undo",
        "undone",
    ];
    assert_eq!(story(&world), expected);
    let why = world.run(&["why", "c1"]).ok();
    assert!(why.out.contains("revised (2)") && why.out.contains("undone by ada"), "{why:?}");
}

#[test]
fn s4_07_an_answer_in_the_inbox_decides_about_the_set() {
    for (word, status) in [("approve", "approved"), ("refuse", "refused"), ("later", "pending")] {
        let world = world();
        world.run(&["run", "Clean up", "--json"]);
        world.run(&["answer", "h2", word]).ok();
        assert_eq!(change(&world)["status"], status);
        let by = (word == "approve").then_some("ada");
        assert_eq!(change(&world)["approved_by"].as_str(), by);
        assert_eq!(world.run(&["apply", "c1"]).code == 0, word == "approve", "{word}");
    }
}

#[test]
fn s4_06_edits_in_a_json_answer_and_in_a_frame_are_proposed() {
    let answer = r#"{"codeChanges":[{"file":"a.txt","action":"create","content":"a\n"}],"summary":"An a","status":"resolved"}"#;
    let frame =
        r#"<<<ODEI:CHANGE:{"changes":[{"file":"b.txt","action":"create","content":"b\n"}]}>>>"#;
    for (print, format) in [(answer, "result = \"json\""), (frame, "result = \"frames\"")] {
        let world = printing(print, &format!("trust_bare_frames = true\n[agents.one]\n{format}"));
        world.run(&["run", "Write it", "--json"]).ok();
        assert_eq!(change(&world)["author"]["handoff"], "h1", "{print}");
        assert_eq!(story(&world), ["proposed 1"], "{print}");
        world.run(&["apply", "--all"]).ok();
        assert_eq!(story(&world), ["proposed 1", "to apply", "applied"]);
    }
}

/// A team of one, whose command prints this.
fn printing(print: &str, settings: &str) -> World {
    let script = format!("cat > /dev/null; printf '%s\\n' '{print}'");
    World::workflow(&format!(
        "[workflow]\nname = \"one\"\nentry = \"one\"\n{settings}\nrunner = \"exec\"\n\
         command = [\"sh\", \"-c\", {script:?}]\n"
    ))
}

#[test]
fn b_07_edits_that_were_only_printed_wait_for_a_person() {
    let frame =
        r#"<<<ODEI:CHANGE:{"changes":[{"file":"b.txt","action":"create","content":"b\n"}]}>>>"#;
    let world = printing(frame, "[agents.one]");
    world.run(&["run", "Write it", "--json"]);
    assert_eq!(change(&world)["gates"][0]["kind"], "printed");
    assert_ne!(world.run(&["apply", "c1"]).code, 0, "nobody has approved it");
    world.run(&["changes", "approve", "c1"]).ok();
    world.run(&["apply", "c1"]).ok();
    assert!(world.project().join("b.txt").exists());
}

/// Starts the next daemon, which is not armed, and waits until what was left to do is done: the run
/// says of the set what its record says. Returns that.
fn of_one_mind(world: &World, place: i32) -> String {
    world.run(&["down"]);
    world.run(&["up"]).ok();
    until(&format!("set and run agree after a crash at place {place}"), || {
        let status = change(world)["status"].as_str().expect("a status").to_owned();
        (story(world).last() == Some(&status)).then_some(status)
    })
}

#[test]
fn b_01_a_daemon_that_is_killed_anywhere_leaves_the_set_and_its_run_of_one_mind() {
    let world = world();
    world.run(&["run", "Clean up", "--json"]);
    world.run(&["answer", "h2", "approve"]).ok();
    for place in 0..10 {
        let work = if change(&world)["status"] == "applied" { "undo" } else { "apply" };
        world.run(&["down"]).ok();
        let after = place.to_string();
        world.run_with(&[work, "c1"], b"", &[("STAFETTE_CRASH_AFTER", &after)]);
        let status = of_one_mind(&world, place);
        let is_there = world.project().join("greet.py").exists();
        assert_eq!(is_there, status != "applied", "place {place}: {status}");
    }
    let told = story(&world);
    assert!(
        told.contains(&"applied".to_owned()) && told.contains(&"undone".to_owned()),
        "{told:?}"
    );
}

#[test]
fn s4_06_what_is_said_when_the_run_is_over_begins_a_run_that_revises_the_set() {
    let world = world();
    assert_eq!(world.run(&["run", "Tidy up"]).code, 3, "a deletion is asked about");
    let first = change(&world)["author"]["run"].clone();
    world.run(&["answer", "2", "later"]).ok();
    until("the run is over", || {
        let view = world.run(&["status", "--json"]).ok().json()[0].clone();
        (view["status"] == "succeeded").then_some(())
    });
    let said = world.run(&["changes", "comment", "c1", "Keep it", "--json"]).ok().json();
    assert_eq!(said["heard"]["by"], "revision", "{said}");
    let run = said["heard"]["run"].as_str().expect("a run").to_owned();
    assert_ne!(first, run.as_str());
    // A second word finds the run that is there by now, or the one after it.
    let said = world.run(&["changes", "comment", "c1", "Really"]).ok();
    assert!(said.err.contains("builder"), "{said:?}");
    let revised = until("it is revised", || {
        let change = change(&world);
        (change["revision"].as_u64() >= Some(2)).then_some(change)
    });
    assert_eq!(revised["id"], "c1", "in the place of the first");
    assert_eq!(revised["edits"][0]["action"], "modify", "{revised}");
    assert_ne!(revised["author"]["run"], first);
    let events = world.run(&["log", &run, "--json"]).ok().lines();
    assert_eq!(events[0]["inputs"]["comments"][0]["text"], "Keep it", "{events:?}");
    until("both are over", || {
        let runs = world.run(&["status", "--json"]).ok().json();
        let over = |run: &Value| run["status"] == "succeeded";
        runs.as_array().expect("runs").iter().all(over).then_some(())
    });
    let seen = format!("c1@{}", change(&world)["revision"]);
    world.run(&["apply", &seen]).ok();
    let said = world.run(&["changes", "comment", "c1", "Nice", "--json"]).ok().json();
    assert_eq!(said["heard"]["by"], "nobody", "what the project has is talked about, no more");
    world.run(&["undo", "c1"]).ok();

    // Nobody is left who could hear it: that is said, and what was written is not swallowed.
    world.write("stafette.toml", &TEAM.replace("builder", "mason"));
    world.write("mason.toml", BUILDER);
    world.run(&["trust", "--yes"]).ok();
    let refused = world.run(&["changes", "comment", "c1", "Again"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("there is no agent builder any more"), "{refused:?}");
    assert!(refused.err.contains("fix:"), "{refused:?}");
}

#[test]
fn s4_10_what_is_said_about_the_set_of_an_earlier_generation_reaches_the_one_that_goes_on() {
    let world = crate::council::team_with_a_change();
    let script = world.read("agents/Alex.toml");
    let revises = script.replace("[[turn]]\n", "[[turn]]\nwhen = { has = [\"comments\"] }\n");
    let revises = revises.replace("new\\n", "newer\\n").replace("it was old", "as was said");
    world.write(
        "agents/Alex.toml",
        &format!("{revises}{}", &script[script.find("[[turn]]").expect("a turn")..]),
    );
    world.run(&["trust", "--yes"]).ok();
    // Nobody applies it meanwhile.
    crate::locks::bob(&world, &["lock", "notes.txt"]).ok();
    let flags = ["--max-runs", "3", "--pause", "0s", "--check-in-every", "1", "--json"];
    let said = world.run(&[&["run", "Grow", "--continuous"], &flags[..]].concat());
    assert_eq!(said.code, 3, "a person is asked to check in: {said:?}");
    let second = said.lines()[1]["run"].clone();
    let heard = world.run(&["changes", "comment", "c1", "Newer", "--file", "notes.txt", "--json"]);
    let heard = heard.ok().json()["heard"].clone();
    assert_eq!((&heard["by"], &heard["run"]), (&"agent".into(), &second), "{heard}");
    let revised = until("it is revised", || {
        let change = change(&world);
        (change["revision"] == 2).then_some(change)
    });
    assert_eq!((&revised["author"]["run"], &revised["reason"]), (&second, &"as was said".into()));
}

#[test]
fn s4_10_what_is_said_between_two_generations_is_a_note_for_the_next_one() {
    let world = crate::council::team_with_a_change();
    let begun = stafette_engine::clock::now();
    let wall = Wall::at(world.home(), &begun.rfc3339());
    world.run_with(&["up"], b"", &[wall.env()]).ok();
    // Nobody applies it meanwhile.
    crate::locks::bob(&world, &["lock", "notes.txt"]).ok();
    let flags = ["--max-runs", "2", "--pause", "10m", "--detach"];
    let first = world.run(&[&["run", "Grow", "--continuous"], &flags[..]].concat()).ok().out;
    let first = first.trim();
    until("it hands over", || {
        let events = world.run(&["log", first, "--json"]).ok().lines();
        events.iter().find(|event| event["event"] == "generation_handed_over").map(drop)
    });
    let heard = world.run(&["changes", "comment", "c1", "Newer", "--file", "notes.txt", "--json"]);
    let heard = heard.ok().json()["heard"].clone();
    assert_eq!(heard["by"], "next_generation", "{heard}");
    assert!(heard["after"].as_str().is_some_and(|after| after.contains(first)), "{heard}");
    assert_eq!(change(&world)["comments"][0]["text"], "Newer");
    let file = world.run(&["context", "--json"]).ok().json();
    assert_eq!(file["humanNotes"], "About c1: notes.txt: Newer", "{file}");

    wall.set(begun + Millis::seconds(11 * 60));
    let second = until("the next one begins", || {
        let runs = world.run(&["status", "--json"]).ok().json();
        let is_second = |run: &&Value| run["generation"] == 2;
        let second = runs.as_array().expect("runs").iter().find(is_second)?;
        Some(second["run"].as_str().expect("a run").to_owned())
    });
    let events = world.run(&["log", &second, "--json"]).ok().lines();
    let notes = &events[0]["inputs"]["human_notes"];
    assert_eq!(*notes, serde_json::json!(["About c1: notes.txt: Newer"]));
}

#[test]
fn b_01_a_word_on_a_set_whose_run_is_over_is_kept_wherever_the_daemon_is_killed() {
    let world = world();
    world.run(&["run", "Clean up", "--json"]);
    world.run(&["answer", "h2", "later"]).ok();
    for place in 0..6 {
        let word = if change(&world)["status"] == "approved" { "refuse" } else { "approve" };
        world.run(&["down"]).ok();
        let after = place.to_string();
        world.run_with(&["changes", word, "c1"], b"", &[("STAFETTE_CRASH_AFTER", &after)]);
        of_one_mind(&world, place);
    }
    let told = story(&world);
    let said = |word: &str| told.iter().any(|told| told == word);
    assert!(said("approved") && said("refused"), "{told:?}");
}

#[test]
fn b_01_what_is_said_about_a_set_is_with_it_wherever_the_daemon_is_killed() {
    let mut cut_off = 0;
    for place in 0..12 {
        let world = world();
        world.run(&["run", "Clean up", "--json"]);
        world.run(&["down"]).ok();
        let after = place.to_string();
        let word = ["changes", "comment", "c1", "Keep it"];
        let said = world.run_with(&word, b"", &[("STAFETTE_CRASH_AFTER", &after)]);
        // The next one is not armed, and finds what is left.
        world.run(&["down"]);
        world.run(&["up"]).ok();
        let recorded = story(&world).iter().filter(|told| *told == "commented").count();
        until("what was recorded is with the set", || {
            let kept = change(&world)["comments"].as_array().map_or(0, Vec::len);
            (kept == recorded).then_some(())
        });
        cut_off += usize::from(said.code != 0 && recorded == 1);
    }
    assert!(cut_off > 0, "it was never killed between the record and the set");
}
