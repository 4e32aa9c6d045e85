use stafette_core::{Input, Reason};
use stafette_workflow::gate::METRICS;

use super::*;
use crate::observer::Shown;
use crate::story::Story;

#[test]
fn s2_10_the_example_is_counted_under_the_protocols_names() {
    let (shown, _) = Story::example().shown();
    let metrics = &shown.metrics;
    assert_eq!((metrics.total, metrics.success, metrics.failed), (4, 4, 0));
    assert_eq!((metrics.escalated, metrics.circular_blocked), (0, 0));
    assert_eq!((metrics.duration_ms.count(), metrics.duration_ms.sum()), (4, 4 * 1_020));
    let names = names();
    for name in METRICS {
        assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
    }
}

#[test]
fn s5_10_time_per_agent_handoffs_per_workflow_iterations_and_escalations_are_counted() {
    let (shown, _) = Story::example().shown();
    let reviewer = &shown.metrics.agents["reviewer"];
    assert_eq!((reviewer.turns, reviewer.time_ms, reviewer.tokens), (2, 2_040, 200));
    let relay = &shown.metrics.workflows["relay"];
    assert_eq!((relay.runs, relay.handoffs, relay.fix_iterations), (1, 4, 1));
    assert_eq!(shown.metrics.runs["succeeded"], 1);
    assert_eq!(shown.book.runs().count(), 0, "nothing is kept of what is over");

    let mut asked = Story::relay("");
    asked.pass("human", Reason::RequiresHumanDecision);
    let (shown, _) = asked.shown();
    assert_eq!((shown.metrics.total, shown.metrics.escalated), (1, 1));
    assert_eq!(shown.metrics.workflows["relay"].escalations, 1);
}

#[test]
fn s2_10_what_would_go_in_a_circle_is_counted_as_prevented() {
    let mut story = Story::relay("[[routes]]\nfrom = \"builder\"\nto = \"planner\"");
    story.pass("builder", Reason::TaskHandoff).pass("planner", Reason::TaskHandoff);
    let (shown, _) = story.shown();
    assert_eq!((shown.metrics.circular_blocked, shown.metrics.failed), (1, 0));
    assert_eq!(shown.metrics.refused["cycle"], 1);
}

#[test]
fn s2_10_after_a_restart_nothing_is_counted_twice() {
    let seen = Story::example().seen();
    let (whole, _) = Story::example().shown();
    for cut in 0..seen.len() {
        let mut first = Shown::default();
        seen[..cut].iter().for_each(|event| first.apply(event, |_| {}));
        let kept = serde_json::to_vec(&first).expect("JSON");
        let mut second: Shown = serde_json::from_slice(&kept).expect("as it was kept");
        // Repeats more events than are missing, as after a crash.
        seen[cut / 2..].iter().for_each(|event| second.apply(event, |_| {}));
        assert_eq!(second, whole, "killed after event {cut}");
    }
}

#[test]
fn names_beyond_the_limit_are_counted_together() {
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    (0..NAMES * 3).for_each(|number| *named(&mut all, &format!("agent{number}")) += 1);
    assert_eq!(all.len(), NAMES + 1);
    assert_eq!(all["other"], 2 * NAMES as u64);
}

#[test]
fn what_is_called_off_has_neither_failed_nor_taken_time() {
    let mut story = Story::relay("");
    story.pass("builder", Reason::TaskHandoff);
    story.input(Input::Cancel { by: "ada".into(), why: "enough".into() });
    let (shown, _) = story.shown();
    assert_eq!((shown.metrics.cancelled, shown.metrics.failed), (1, 0));
    assert_eq!(shown.metrics.duration_ms.count(), 0);
}
