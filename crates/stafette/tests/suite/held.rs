//! The files of a set are held while it is applied: by the command line, by HTTP, by a generation.

use serde_json::json;
use stafette_core::{Millis, Time};

use crate::council::{TWO, team_with_a_change};
use crate::locks::{bob, list, start};
use crate::web::Web;
use crate::world::{ECHO, World, until, until_so};

/// A command that says that it was asked, and waits for a word from outside.
const WAITS: &str = "[changes]\nvalidate = [\"sh\", \"-c\", \
     \"touch asked; while [ ! -e go ]; do sleep 0.01; done\"]\ntimeout = \"5m\"\n";

fn world() -> World {
    let world = World::workflow(&format!("{ECHO}{WAITS}"));
    world.write("src/a.txt", "old\n");
    world
}

fn propose(world: &World, file: &str, action: &str, content: &str) -> String {
    let edits = json!([{ "file": file, "action": action, "content": content }]);
    let document = json!({ "codeChanges": edits, "reason": "as asked" }).to_string();
    let said = world.run_with(&["changes", "propose", "-", "--json"], document.as_bytes(), &[]);
    said.ok().json()["id"].as_str().expect("a name").to_owned()
}

fn asked(world: &World) {
    until_so("the project's command is asked", || world.project().join("asked").exists());
}

#[test]
fn b_10_what_is_being_applied_is_held_until_it_is_in() {
    let world = world();
    let id = propose(&world, "src/a.txt", "modify", "new\n");
    bob(&world, &["lock", "src/**"]).ok();
    let said = world.run(&["apply", &id]);
    assert_eq!(said.code, 6, "bob has it: {said:?}");
    assert!(said.err.contains("src/** is locked by bob"), "{said:?}");
    let said = world.run(&["apply", "--all", "--json"]);
    let left = &said.json()["left"][0];
    assert!(left["why"].as_str().is_some_and(|why| why.contains("locked by bob")), "{said:?}");
    assert!(!world.project().join("asked").exists(), "nothing was tried");
    bob(&world, &["unlock", "--all"]).ok();

    // Ada's own lock is not in her way, and stays hers.
    world.run(&["lock", "src/a.txt", "--reason", "mine"]).ok();
    let other = propose(&world, "docs/b.txt", "create", "b\n");
    let applied = start(&world, "ada", &["apply", "--all"]);
    asked(&world);
    let held = list(&world);
    assert_eq!(held.len(), 2, "{held:?}");
    assert_eq!(
        (&held[1]["holder"], &held[1]["patterns"][0]),
        (&json!("ada"), &json!("docs/b.txt"))
    );
    assert_eq!(held[1]["reason"], format!("{other} is being applied or undone"));
    for path in ["docs/**", "src/a.txt"] {
        assert_eq!(bob(&world, &["lock", path, "--wait", "0s"]).code, 6, "{path}");
    }
    world.write("go", "");
    assert!(applied.wait_with_output().expect("it ends").status.success());
    assert_eq!((world.read("src/a.txt"), world.read("docs/b.txt")), ("new\n".into(), "b\n".into()));
    let held = until("one lock", || Some(list(&world)).filter(|held| held.len() == 1));
    assert_eq!(held[0]["reason"], "mine", "{held:?}");

    bob(&world, &["lock", "docs/**", "--wait", "0s"]).ok();
    assert_eq!(world.run(&["undo", &other]).code, 6, "what is undone is written, too");
    assert_eq!(world.read("docs/b.txt"), "b\n");
}

#[test]
fn b_10_over_http_a_set_is_held_too_and_a_crash_frees_it_with_its_lease() {
    let world = world();
    let web = Web::up(&world);
    let id = propose(&world, "src/a.txt", "modify", "new\n");
    bob(&world, &["lock", "src/"]).ok();
    let refused = web.post(&format!("/v1/changes/{id}/apply"), &json!({}));
    assert_eq!((refused.status, refused.code()), (423, "locked".to_owned()));
    bob(&world, &["unlock", "--all"]).ok();
    let bearer = web.bearer();
    let asking = web.send(&format!("POST /v1/changes/{id}/apply"), &[&bearer], "{}");
    asked(&world);
    // Whoever asked goes away: it is done to the end all the same.
    drop(asking);
    assert_eq!(bob(&world, &["lock", "src/a.txt", "--wait", "0s"]).code, 6);
    world.write("go", "");
    until_so("it is given back", || list(&world).is_empty());
    assert_eq!(world.read("src/a.txt"), "new\n");

    for mark in ["go", "asked"] {
        std::fs::remove_file(world.project().join(mark)).expect("removed");
    }
    let id = propose(&world, "src/a.txt", "modify", "newer\n");
    let asking = web.send(&format!("POST /v1/changes/{id}/apply"), &[&bearer], "{}");
    asked(&world);
    web.kill();
    drop(asking);
    world.write("go", "");
    let left = list(&world);
    assert_eq!(left.len(), 1, "{left:?}");
    let time = |name: &str| Time::parse(left[0][name].as_str().expect("a time")).expect("a time");
    assert_eq!(time("until").since(time("since")), Millis::seconds(60), "it is not renewed");
    until_so("it is taken back", || world.read("src/a.txt") == "new\n");
}

#[test]
fn b_10_a_generation_holds_what_it_applies() {
    let world = team_with_a_change();
    let workflow = world.read("stafette.toml");
    world.write("stafette.toml", &format!("{workflow}{WAITS}"));
    world.run(&["trust", "--yes"]).ok();
    let running = start(&world, "ada", &TWO);
    asked(&world);
    let held = list(&world);
    assert_eq!(held[0]["holder"], "generation 1", "{held:?}");
    assert_eq!(bob(&world, &["lock", "notes.txt", "--wait", "0s"]).code, 6);
    world.write("go", "");
    assert!(running.wait_with_output().expect("it ends").status.success());
    assert_eq!(world.read("notes.txt"), "new\n");
    until_so("it is given back", || list(&world).is_empty());
}
