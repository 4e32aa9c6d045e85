use stafette_core::Reason;

use super::*;
use crate::book::About;
use crate::story::Story;

fn about(to: &str, admitted: Time) -> std::sync::Arc<About> {
    let (_, facts) = Story::example().shown();
    let made = facts.into_iter().rev().find_map(|(_, _, fact)| match fact {
        Fact::Made(about) => Some(about),
        _ => None,
    });
    let made = made.expect("a handoff");
    std::sync::Arc::new(About { to: to.into(), admitted, ..(*made).clone() })
}

fn closed(outcome: Outcome) -> crate::book::Closed {
    crate::book::Closed { way: Way::Answered, outcome, provided: 0, missing: 0, failure: None }
}

const BEGIN: Time = Time(1_700_000_000_000);

fn after(ms: u64) -> Time {
    BEGIN + Millis(ms)
}

fn names(changes: &[Change]) -> Vec<(&'static str, bool)> {
    changes.iter().map(|change| (change.condition.name(), change.firing)).collect()
}

#[test]
fn s2_10_failures_fire_when_there_are_more_than_allowed_and_clear_when_they_are_old() {
    let mut alerts = Alerts::default();
    for number in 0..6 {
        assert_eq!(alerts.evaluate(after(number)), [], "{number} is not more than 5");
        let fact = Fact::Closed(about("builder", after(number)), closed(Outcome::Failed));
        alerts.hear(after(number), &fact);
    }
    assert_eq!(names(&alerts.evaluate(after(10))), [("HandoffFailed", true)]);
    assert_eq!(alerts.evaluate(after(11)), [], "once");
    let fires = &alerts.all()[0];
    assert!(fires.firing && fires.value == 6 && fires.action == "Investigate agent health");
    assert_eq!(alerts.evaluate(after(Millis::minutes(5).0)), [], "still within");
    let over = alerts.evaluate(after(Millis::minutes(6).0));
    assert_eq!(names(&over), [("HandoffFailed", false)]);
    assert_eq!(alerts.changes().count(), 2);
}

#[test]
fn s2_10_escalations_fire_within_the_hour() {
    let mut alerts = Alerts::default();
    for minute in 0..11 {
        let at = after(Millis::minutes(minute).0);
        alerts.hear(at, &Fact::Made(about("human", at)));
    }
    let changes = alerts.evaluate(after(Millis::minutes(10).0));
    assert_eq!(names(&changes), [("HandoffEscalated", true)]);
    assert_eq!(alerts.all()[1].severity, Severity::Info);
    let changes = alerts.evaluate(after(Millis::minutes(62).0));
    assert_eq!(names(&changes), [("HandoffEscalated", false)]);
}

#[test]
fn s2_10_one_circle_is_enough() {
    let mut story = Story::relay("[[routes]]\nfrom = \"builder\"\nto = \"planner\"");
    story.pass("builder", Reason::TaskHandoff).pass("planner", Reason::TaskHandoff);
    let (mut shown, _) = story.shown();
    let changes = shown.alerts.evaluate(story.now);
    assert_eq!(names(&changes), [("HandoffCircularBlocked", true)]);
    assert_eq!(shown.alerts.all()[0].value, 0, "what was refused has not failed");
    let later = story.now + Millis::minutes(6);
    assert_eq!(names(&shown.alerts.evaluate(later)), [("HandoffCircularBlocked", false)]);
}

#[test]
fn s2_10_slow_handoffs_fire_by_the_slowest_of_twenty() {
    let mut alerts = Alerts::default();
    let slow = Millis::hours(2).0;
    for number in 0..20 {
        let took = if number == 0 { slow } else { 1_000 };
        let fact =
            Fact::Closed(about("builder", Time(BEGIN.0 - took as i64)), closed(Outcome::Resolved));
        alerts.hear(BEGIN, &fact);
    }
    assert_eq!(alerts.evaluate(BEGIN), [], "nineteen of twenty were quick");
    for _ in 0..2 {
        let fact =
            Fact::Closed(about("builder", Time(BEGIN.0 - slow as i64)), closed(Outcome::Resolved));
        alerts.hear(BEGIN, &fact);
    }
    assert_eq!(names(&alerts.evaluate(BEGIN)), [("HandoffSlow", true)]);
    assert_eq!(names(&alerts.evaluate(after(Millis::minutes(6).0))), [("HandoffSlow", false)]);
}

#[test]
fn s2_10_thresholds_come_from_the_workflow() {
    let rules = "[alerts]\nfailed = { above = 0, within = \"10s\" }";
    let story = Story::relay(rules);
    let (mut shown, _) = story.shown();
    let fact = Fact::Closed(about("builder", story.now), closed(Outcome::Failed));
    shown.alerts.hear(story.now, &fact);
    assert_eq!(names(&shown.alerts.evaluate(story.now)), [("HandoffFailed", true)]);
    assert_eq!(shown.alerts.all()[0].within, Millis::seconds(10));
    let rules = prometheus(&shown.alerts.rules);
    assert!(rules.contains("expr: increase(handoff_failed_total[10s]) > 0\n"), "{rules}");
    assert_eq!(rules.matches("- alert: ").count(), 4);
}
