use stafette_core::{Party, Time};

use super::parameters::{Cause, Ledger, LedgerError, Parameters};
use super::*;

fn key(id: impl fmt::Display) -> NodeKey {
    NodeKey::task(&format!("t{id}"))
}

fn task(kind: &str, estimated: f64, actual: f64, id: usize) -> Observation {
    Observation::Task { kind: kind.into(), estimated, actual, evidence: key(id) }
}

fn step(from: &str, end: StepEnd, seconds: f64, dollars: f64, id: usize) -> Observation {
    let path = Path { from: from.into(), to: "next".into() };
    Observation::Step { path, end, seconds, dollars, evidence: key(id) }
}

fn only(observations: &[Observation], detector: Detector) -> Vec<Insight> {
    let found = detect(observations, &Limits::default());
    found.into_iter().filter(|insight| insight.detector == detector).collect()
}

#[test]
fn s1_10_work_that_takes_longer_than_estimated_is_told_with_its_factor() {
    let actual = [3.1, 2.9, 3.4, 2.6, 3.0, 3.2];
    let mut seen: Vec<_> =
        actual.iter().enumerate().map(|(id, hours)| task("code", 2.0, *hours, id)).collect();
    seen.extend((10..16).map(|id| task("mail", 1.0, 1.0, id)));
    let found = only(&seen, Detector::Estimate);
    let [insight] = &found[..] else { panic!("one pattern: {found:?}") };
    assert!((insight.effect - 1.5).abs() < 0.05, "{insight:?}");
    assert!(insight.interval.low > 1.2 && insight.interval.high < 1.8, "{insight:?}");
    assert!(insight.confidence > 0.99);
    assert_eq!(insight.evidence[0], key(2), "the longest first");
    assert!(matches!(&insight.change, Some(Change::Estimate { kind, .. }) if kind == "code"));
}

#[test]
fn s1_10_too_few_samples_or_too_much_noise_say_nothing() {
    let few: Vec<_> = (0..4).map(|id| task("code", 1.0, 3.0, id)).collect();
    assert!(detect(&few, &Limits::default()).is_empty());
    let noise = [0.2, 5.0, 0.4, 3.0, 0.3, 4.0];
    let noisy: Vec<_> =
        noise.iter().enumerate().map(|(id, hours)| task("code", 1.0, *hours, id)).collect();
    assert!(detect(&noisy, &Limits::default()).is_empty());
    let small: Vec<_> = (0..50).map(|id| task("code", 1.0, 1.05, id)).collect();
    assert!(detect(&small, &Limits::default()).is_empty(), "sure, and too small to matter");
    let broken = vec![task("code", 0.0, 1.0, 1), task("code", f64::NAN, 1.0, 2)];
    assert!(detect(&broken, &Limits::default()).is_empty());
}

#[test]
fn s1_10_a_path_that_fails_more_than_the_others_is_found() {
    let mut seen = Vec::new();
    for id in 0..20 {
        let end = if id % 2 == 0 { StepEnd::Failed } else { StepEnd::Done };
        seen.push(step("bad", end, 1.0, 0.0, id));
        let end = if id == 7 { StepEnd::Failed } else { StepEnd::Done };
        seen.push(step("good", end, 1.0, 0.0, 100 + id));
    }
    let found = only(&seen, Detector::FailingPath);
    let [insight] = &found[..] else { panic!("one pattern: {found:?}") };
    assert_eq!(insight.subject, "bad → next");
    assert_eq!(insight.pattern, "10 of 20 handoffs bad → next fail");
    assert!(insight.interval.low > 0.0 && insight.effect > 0.4);
    assert_eq!(insight.evidence.len(), 10, "the failures, not the rest");
}

#[test]
fn s1_10_escalations_slow_paths_loops_and_slips_are_found() {
    let mut seen = Vec::new();
    for id in 0..12 {
        seen.push(step("slow", StepEnd::Escalated, 100.0 + id as f64, 0.0, id));
        seen.push(step("quick", StepEnd::Done, 10.0 + id as f64, 0.0, 100 + id));
        let path = Path { from: "review".into(), to: "fix".into() };
        let count = if id < 9 { 4 } else { 1 };
        seen.push(Observation::Rounds { path, count, evidence: key(id) });
        let hours = 1.0 + (id % 3) as f64 / 10.0;
        seen.push(Observation::Slip { kind: "writing".into(), hours, evidence: key(id) });
    }
    let found = detect(&seen, &Limits::default());
    let names: Vec<_> =
        found.iter().map(|found| (found.detector, found.subject.as_str())).collect();
    for expected in [
        (Detector::Escalation, "slow → next"),
        (Detector::SlowPath, "slow → next"),
        (Detector::Loop, "review → fix"),
        (Detector::CalendarSlip, "writing"),
    ] {
        assert!(names.contains(&expected), "{expected:?} in {names:?}");
    }
    assert_eq!(names.len(), 4, "{names:?}");
    assert_eq!(found, detect(&seen, &Limits::default()), "the same again");
}

#[test]
fn s1_10_one_dear_handoff_among_many_is_an_outlier() {
    let mut seen: Vec<_> =
        (0..15).map(|id| step("a", StepEnd::Done, 1.0, 0.10 + id as f64 / 1000.0, id)).collect();
    assert!(only(&seen, Detector::CostOutlier).is_empty());
    seen.push(step("a", StepEnd::Done, 1.0, 2.0, 99));
    let found = only(&seen, Detector::CostOutlier);
    assert_eq!(found[0].evidence, [key(99)]);
    assert!(found[0].effect > 15.0 && found[0].interval.low > 10.0, "{found:?}");
}

#[test]
fn s1_10_accepted_insights_become_versions_and_can_be_taken_back() {
    let by = || Party::Human;
    let mut ledger = Ledger::new(Parameters::default(), Time(0), by());
    let insight = NodeKey::insight("i1");
    let longer = || Change::Estimate { kind: "code".into(), factor: 1.5 };
    ledger.accept(insight.clone(), longer(), Time(1), by()).expect("version 2");
    let less = Change::Weight { term: crate::roi::Term::Benefit, factor: 0.5 };
    ledger.accept(NodeKey::insight("i2"), less, Time(2), by()).expect("version 3");
    assert_eq!(ledger.current().parameters.estimates["code"], 1.5);
    assert_eq!(ledger.current().parameters.weights.benefit, 0.5);
    let twice = ledger.accept(insight.clone(), longer(), Time(3), by());
    assert_eq!(twice, Err(LedgerError::Twice { insight: insight.clone(), number: 2 }));

    ledger.roll_back(1, Time(4), by()).expect("version 4");
    assert_eq!(ledger.current().parameters, Parameters::default());
    assert_eq!(ledger.current().cause, Cause::RolledBack { to: 1 });
    assert_eq!(ledger.in_force(&insight), None, "going back took it away");
    ledger.accept(insight, longer(), Time(5), by()).expect("and it can be accepted again");
    assert_eq!(ledger.versions().len(), 5, "nothing is ever lost");
    assert!(ledger.roll_back(9, Time(6), by()).is_err());

    let text = serde_json::to_string(&ledger).expect("JSON");
    assert_eq!(serde_json::from_str::<Ledger>(&text).expect("reads back"), ledger);
    assert!(serde_json::from_str::<Ledger>("[]").is_err());
}
