//! Several sets at once: the culprits are found, the rest lands.

use stafette_core::change::{Action, ChangeId, ChangeStatus};

use crate::world::{World, edit, rules, validated};

#[tokio::test]
async fn s4_06_one_bad_set_of_eight_is_found_and_the_rest_lands() {
    let world = World::new();
    for number in 1..=8 {
        let content = if number == 6 { "bad" } else { "good" };
        let file = format!("agent-{number}.txt");
        world.propose(vec![edit(Action::Create, &file, Some(content))]).await.expect("proposed");
    }
    let report = world.land_all(&validated("! grep -q bad agent-*.txt")).await;
    let report = report.expect("tried");
    let culprits: Vec<ChangeId> = report.rolled_back.iter().map(|set| set.id).collect();
    assert_eq!(culprits, [ChangeId(6)]);
    assert_eq!(report.landed.len(), 7);
    assert!(report.validations <= 7, "found by halves: {}", report.validations);
    assert!(!world.path("agent-6.txt").exists());
    assert!((1..=8).filter(|n| *n != 6).all(|n| world.path(&format!("agent-{n}.txt")).exists()));
    let failed = world.changes().get(ChangeId(6)).expect("there");
    assert_eq!(failed.status, ChangeStatus::Failed);
    world.assert_tidy();
}

#[tokio::test]
async fn s4_06_sets_that_fail_only_together_land_but_for_the_last() {
    let world = World::new();
    for file in ["x.txt", "y.txt", "z.txt"] {
        world.propose(vec![edit(Action::Create, file, Some("1"))]).await.expect("proposed");
    }
    let rules = validated("! { test -f x.txt && test -f z.txt; }");
    let report = world.land_all(&rules).await.expect("tried");
    let landed: Vec<u32> = report.landed.iter().map(|change| change.id.0).collect();
    assert_eq!(landed, [1, 2]);
    assert_eq!(report.rolled_back[0].id, ChangeId(3));
}

#[tokio::test]
async fn s4_06_two_sets_on_one_file_do_not_write_over_each_other() {
    let world = World::new();
    for content in ["bad", "second", "third"] {
        let set = vec![edit(Action::Modify, "a.txt", Some(content))];
        world.propose(set).await.expect("proposed");
    }
    let report = world.land_all(&validated("! grep -q bad a.txt")).await.expect("tried");
    assert_eq!(report.rolled_back[0].id, ChangeId(1), "the first was bad");
    assert_eq!(report.landed[0].id, ChangeId(2), "so the second fits after all");
    assert_eq!(report.left[0].id, ChangeId(3), "and the third does not");
    assert_eq!(world.read("a.txt"), "second");
}

#[tokio::test]
async fn s4_06_a_set_may_stand_on_one_before_it() {
    let world = World::new();
    let first = world.propose(vec![edit(Action::Modify, "a.txt", Some("1"))]).await;
    let first = first.expect("proposed");
    let mut next = edit(Action::Modify, "a.txt", Some("2"));
    next.base = first.edits[0].after.as_ref().map(|after| after.sha256.clone());
    let next = world.propose(vec![next]).await.expect("proposed");
    let before = world.tree();
    assert!(world.changes().apply(next.id, &rules()).await.is_err(), "not without the first");
    assert_eq!(world.tree(), before);
    let report = world.land_all(&rules()).await.expect("applied");
    assert_eq!(report.landed.len(), 2);
    assert_eq!(world.read("a.txt"), "2");
    world.changes().undo(next.id, false, &rules()).await.expect("undone");
    assert_eq!(world.read("a.txt"), "1", "each has its own way back");
}
