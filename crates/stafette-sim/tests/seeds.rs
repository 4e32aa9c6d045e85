//! Many seeds hold every law, and broken worlds break them.
//!
//! `STAFETTE_SIM_SEEDS=5000` lives through more of them, `STAFETTE_SIM_FROM=2000` begins later, and
//! `STAFETTE_SIM_SEED=123` and the test `one_seed` with `--nocapture` shows one from its beginning
//! to its end.

use stafette_sim::{Counts, Options, Report, Sabotage, Violation, run};

/// Everything that must have happened somewhere, or the seeds prove less than they seem to.
const KINDS: &[&str] = &[
    "acknowledged",
    "agent breaks",
    "agent hangs",
    "answer that does not fit",
    "begun afresh",
    "budget stop",
    "change_commented",
    "change_proposed",
    "change_returned",
    "closed: answered",
    "closed: cancelled",
    "closed: expired",
    "conflict",
    "council_concluded",
    "council_heard",
    "council_opened",
    "council_reopened",
    "crash after the store",
    "crash about a set",
    "crash before acknowledging",
    "crash before sessions start",
    "crash before the store",
    "crash between two starts",
    "crash while acknowledging",
    "crash while adopting",
    "crash while drawing",
    "crash while idle",
    "default taken",
    "disk full",
    "inputs_assessed",
    "large answer",
    "large offer",
    "generation follows",
    "generation_handed_over",
    "late_result_kept",
    "lease_renewed",
    "loop parked",
    "note_left",
    "message twice",
    "orphan",
    "person gave up",
    "question about a council",
    "question about a failure",
    "question about a generation",
    "part kept, a person asked",
    "part kept, another target",
    "permit_given",
    "phase_begun",
    "phase_ended",
    "picture",
    "power cut",
    "proposals at once",
    "question about a change",
    "question about a permission",
    "question about inputs",
    "question about plain output",
    "question overlooked",
    "recovery: a default",
    "recovery: a person",
    "recovery: another target",
    "recovery: proceed with a part",
    "recovery: skip",
    "redelivery",
    "refused: cycle",
    "refused: denied",
    "refused: item limit",
    "refused: loop exhausted",
    "refused: missing evidence",
    "refused: no progress",
    "refused: no route",
    "refused: repeated",
    "refused: too large",
    "refused: run limit",
    "refused: unknown target",
    "restart",
    "restart from a snapshot",
    "result after its deadline",
    "result of an orphan",
    "result of unknown cost",
    "retry_scheduled",
    "rubbish answer",
    "run cancelled",
    "run failed",
    "run succeeded",
    "run_adopted",
    "run_paused",
    "run_unpaused",
    "set applied",
    "set kept",
    "set moved before",
    "set not moved",
    "set undone",
    "store locked",
    "store unsure",
    "store unreadable",
    "transfer within a delegation",
    "turn of unknown cost",
    "turn taken by another",
    "turn_told",
    "result that was told before",
    "failure after a report",
    "turn_failed",
    "two answers at once",
    "two turns that cost money",
    "value cut",
];

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn lived(seed: u64) -> Report {
    run(seed, Options::default()).unwrap_or_else(|violation| panic!("{violation}"))
}

/// The first law that a broken world breaks.
fn caught(sabotage: Sabotage) -> Box<Violation> {
    let options = Options { sabotage: Some(sabotage), ..Options::default() };
    let broken = (0..50).find_map(|seed| run(seed, options.clone()).err());
    broken.unwrap_or_else(|| panic!("nobody noticed {sabotage:?}"))
}

#[test]
fn b_15_three_hundred_seeds_hold_every_invariant() {
    let seeds = number("STAFETTE_SIM_SEEDS").unwrap_or(300);
    let from = number("STAFETTE_SIM_FROM").unwrap_or(0);
    let mut counts = Counts::default();
    let (mut steps, mut crashes, mut days) = (0, 0, 0);
    let mut broken: Vec<Box<Violation>> = Vec::new();
    for seed in from..from + seeds {
        let report = match run(seed, Options::default()) {
            Ok(report) => report,
            Err(violation) => {
                eprintln!("seed {seed}: {}: {}", violation.law, violation.detail);
                broken.push(violation);
                continue;
            }
        };
        steps += report.steps;
        crashes += report.crashes;
        days += report.virtual_ms / 86_400_000;
        counts.add(&report.counts);
    }
    eprintln!("{seeds} seeds from {from}, {steps} steps, {crashes} crashes, {days} days\n{counts}");
    if let Some(first) = broken.first() {
        panic!("{} of {seeds} seeds broke a law; the first: {first}", broken.len());
    }
    for kind in KINDS {
        assert!(seeds < 200 || counts.of(kind) > 0, "no seed has seen: {kind}\n{counts}");
    }
}

#[test]
fn one_seed() {
    let seed = number("STAFETTE_SIM_SEED").unwrap_or(1);
    let report = run(seed, Options::default()).unwrap_or_else(|violation| {
        eprintln!("{}\n", violation.trace.join("\n"));
        panic!("{violation}")
    });
    let Report { trace, ended_as, why, steps, .. } = report;
    eprintln!("{}\n{ended_as} after {steps} steps: {why}", trace.join("\n"));
}

#[test]
fn the_same_seed_tells_the_same_story() {
    for seed in [3, 77, 123, 1234] {
        assert_eq!(lived(seed), lived(seed));
    }
    assert_ne!(lived(3).trace, lived(77).trace);
}

#[test]
fn b_01_an_acknowledgement_before_the_record_is_caught() {
    let violation = caught(Sabotage::AcknowledgeEarly);
    assert_eq!(violation.law, "an acknowledged result is in the store");
    let told = violation.to_string();
    assert!(told.contains(&format!("STAFETTE_SIM_SEED={}", violation.seed)), "{told}");
    assert!(told.lines().count() <= 45, "{told}");
}

#[test]
fn b_01_a_disk_that_loses_results_is_caught() {
    assert_eq!(caught(Sabotage::ForgetResults).law, "nothing is true before it is recorded");
}

#[test]
fn b_04_a_result_that_counts_twice_is_caught() {
    assert_eq!(caught(Sabotage::KeepResultsTwice).law, "a turn has one result");
}

#[test]
fn b_02_a_run_that_nobody_looks_after_is_caught() {
    assert_eq!(caught(Sabotage::NoClock).law, "every run ends");
}

#[test]
fn s4_01_a_disk_that_does_not_sync_is_caught() {
    let law = "the picture is a whole and true one after every power cut";
    assert_eq!(caught(Sabotage::LazyDisk).law, law);
}

#[test]
fn b_18_replies_that_are_mixed_up_are_caught() {
    assert_eq!(caught(Sabotage::MixUpReplies).law, "everyone hears what became of their own");
}

#[test]
fn b_02_answers_that_are_merged_unmeasured_are_caught() {
    caught_by(Sabotage::MergeUnmeasured, "inputs and answers are of bounded size");
}

/// A broken kernel breaks the law that is about what it does wrong.
fn caught_by(sabotage: Sabotage, law: &str) {
    let options = Options { sabotage: Some(sabotage), ..Options::default() };
    let mut broken = (0..200).filter_map(|seed| run(seed, options.clone()).err());
    assert!(broken.any(|violation| violation.law == law), "no seed noticed {sabotage:?}");
}

#[test]
fn s2_03_an_answer_that_counts_after_its_deadline_is_caught() {
    caught_by(Sabotage::TakeLateAnswers, "a result after the deadline is late");
}

#[test]
fn s2_08_a_part_of_an_answer_that_is_lost_is_caught() {
    caught_by(Sabotage::LoseParts, "what was given in part is there when the asker goes on");
}

#[test]
fn b_05_a_turn_of_unknown_cost_that_is_free_is_caught() {
    caught_by(Sabotage::ReserveNothing, "a turn of unknown cost reserves all that is left");
}

#[test]
fn s2_03_a_cooldown_that_is_counted_from_the_admission_is_caught() {
    caught_by(Sabotage::CoolFromAdmission, "two uses of a path are a cooldown apart");
}

#[test]
fn s4_04_ten_generations_killed_five_times_do_no_work_twice_and_lose_none() {
    let mut counts = Counts::default();
    for seed in 0..20 {
        let options = Options { team: true, ..Options::default() };
        let report = run(seed, options).unwrap_or_else(|violation| panic!("{violation}"));
        let of = |name| report.counts.of(name);
        assert_eq!((of("generation follows"), of("run succeeded")), (9, 10), "{}", report.why);
        assert!(report.crashes >= 5, "seed {seed}: {} kills", report.crashes);
        counts.add(&report.counts);
    }
    for kind in ["crash while drawing", "power cut", "set applied", "redelivery"] {
        assert!(counts.of(kind) > 0, "no team has seen: {kind}\n{counts}");
    }
}
