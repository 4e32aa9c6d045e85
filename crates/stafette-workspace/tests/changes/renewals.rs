//! A process is killed at every step of a renewal: the program is the old one or the new one, and its
//! sources with it.

use std::path::Path;

use serde_json::json;
use stafette_core::change::{Action, ChangeId, ChangeStatus};
use stafette_core::workflow::own::Own;
use stafette_workspace::changes::crash;
use stafette_workspace::{Changes, Renewals, Stage};

use crate::kills::{Doomed, is_killed, orders, passed};
use crate::world::{World, edit, rules};

const TEST: &str = "renewals::s4_09_what_is_killed_renews_when_it_is_not";

/// A program that is a script, which its build copies.
async fn prepared() -> World {
    let world = World::new();
    world.write("source.sh", "echo old\n");
    world.write("bin/program", "echo old\n");
    let edits = vec![edit(Action::Modify, "source.sh", Some("echo new\n"))];
    world.propose(edits).await.expect("proposed");
    world
}

fn own(proves: bool) -> Own {
    serde_json::from_value(json!({
        "build": ["cp", "source.sh", "bin/program"],
        "program": "bin/program",
        "prove": [if proves { "true" } else { "false" }],
    }))
    .expect("settings")
}

fn open(project: &Path) -> (Changes, Renewals) {
    let home = project.join(".stafette");
    (Changes::open(project, &home).expect("opened"), Renewals::open(project, &home))
}

/// Does it, or mends what is left of it; how many places there were to be killed at.
async fn perform(project: &Path, does: &str, after: i64) -> i64 {
    let (changes, renewals) = open(project);
    crash::arm(after);
    if does == "recover" {
        renewals.recover(&changes, &rules()).await.expect("a way back");
    } else {
        let own = own(does == "renew");
        let renewed =
            renewals.renew(&changes, ChangeId(1), (&own, &rules()), async || Ok(())).await;
        let wanted = if does == "renew" { Stage::Done } else { Stage::Prove };
        assert_eq!(renewed.expect("done or back").stage, wanted);
    }
    let places = after - crash::left();
    crash::arm(i64::MAX);
    places
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// On its own, this shows that a renewal works. With the variables it is the process that dies.
#[test]
fn s4_09_what_is_killed_renews_when_it_is_not() {
    let Some((project, does, after)) = orders() else {
        let world = runtime().block_on(prepared());
        let doomed = Doomed { test: TEST, project: &world.project, does: "renew" };
        assert!(doomed.dies(i64::MAX).success());
        assert!(is_renewed(&world, "renew"));
        return;
    };
    passed(runtime().block_on(perform(&project, &does, after)));
}

/// Whether the new program is there; if not, the old one is.
fn is_renewed(world: &World, at: &str) -> bool {
    let status = world.changes().get(ChangeId(1)).expect("it").status;
    let (source, program) = (world.read("source.sh"), world.read("bin/program"));
    let is_new = status == ChangeStatus::Applied;
    let text = if is_new { "echo new\n" } else { "echo old\n" };
    assert_eq!((source.as_str(), program.as_str()), (text, text), "{at}: {status:?}");
    assert!(!world.path(".stafette/self/renewal.json").exists(), "{at}");
    world.assert_tidy();
    is_new
}

/// One kill, and maybe a second one while the first is mended; whether that one still happened, and
/// whether the new program is there.
async fn round(does: &str, after: i64, again: Option<i64>) -> (bool, bool) {
    let world = prepared().await;
    let doomed = |does| Doomed { test: TEST, project: &world.project, does };
    assert!(is_killed(doomed(does).dies(after)), "{does} was not killed at {after}");
    let killed = again.is_some_and(|again| is_killed(doomed("recover").dies(again)));
    let (changes, renewals) = open(&world.project);
    renewals.recover(&changes, &rules()).await.expect("a way back");
    // What no note speaks of is mended by those who look after changes.
    changes.recover().await.expect("recovered");
    (killed, is_renewed(&world, &format!("{does} killed at {after}, then at {again:?}")))
}

#[test]
fn s4_09_killed_at_any_step_of_a_renewal_the_old_program_is_there_or_the_new_one() {
    let runtime = runtime();
    let (mut old, mut new) = (0, 0);
    for does in ["renew", "fails"] {
        let world = runtime.block_on(prepared());
        let places = Doomed { test: TEST, project: &world.project, does }.counts();
        assert!(places >= 30, "{does} has {places} places");
        for after in 0..places {
            // At some places once more, and then while that is mended.
            let again = (after % 4 == 0).then_some(after % 31);
            let (_, is_new) = runtime.block_on(round(does, after, again));
            *(if is_new { &mut new } else { &mut old }) += 1;
            assert!(!is_new || does == "renew", "what does not prove itself is never there");
        }
    }
    assert!(old > 50 && new > 0, "{old} times the old one, {new} times the new one");
}
