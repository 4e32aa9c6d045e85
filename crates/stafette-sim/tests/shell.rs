//! The real engine holds its promises in a deterministic world, and old faults break them.
//!
//! `STAFETTE_SIM_SEEDS=10000` lives through more seeds, `STAFETTE_SIM_FROM=2000` begins later, and
//! `STAFETTE_SIM_SEED=123` and the test `one_seed_of_the_shell` with `--nocapture` shows one.

use stafette_sim::shell::{OldFault, run};
use stafette_sim::{Counts, Violation};

/// Everything that must have happened somewhere, or the seeds prove less than they seem to.
const KINDS: &[&str] = &[
    "killed at a point",
    "question answered",
    "redelivery",
    "report acknowledged",
    "run cancelled",
    "run succeeded",
    "stopped",
];

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn b_19_the_engine_itself_holds_its_promises_for_three_hundred_seeds() {
    let seeds = number("STAFETTE_SIM_SEEDS").unwrap_or(300);
    let from = number("STAFETTE_SIM_FROM").unwrap_or(0);
    let (mut counts, mut crashes) = (Counts::default(), 0);
    let mut broken: Vec<Box<Violation>> = Vec::new();
    for seed in from..from + seeds {
        match run(seed, None) {
            Ok(report) => {
                counts.add(&report.counts);
                crashes += report.crashes;
            }
            Err(violation) => {
                eprintln!("seed {seed}: {}: {}", violation.law, violation.detail);
                broken.push(violation);
            }
        }
    }
    eprintln!("{seeds} seeds from {from}, {crashes} kills\n{counts}");
    if let Some(first) = broken.first() {
        panic!("{} of {seeds} seeds broke a law; the first: {first}", broken.len());
    }
    for kind in KINDS {
        assert!(seeds < 200 || counts.of(kind) > 0, "no seed has seen: {kind}\n{counts}");
    }
}

#[test]
fn one_seed_of_the_shell() {
    let seed = number("STAFETTE_SIM_SEED").unwrap_or(1);
    let report = run(seed, None).unwrap_or_else(|violation| {
        eprintln!("{}\n", violation.trace.join("\n"));
        panic!("{violation}")
    });
    eprintln!("{}\n{}", report.trace.join("\n"), report.why);
}

#[test]
fn the_same_seed_lives_the_same_life() {
    for seed in [3, 77, 123] {
        let lived = || run(seed, None).unwrap_or_else(|violation| panic!("{violation}"));
        assert_eq!(lived().trace, lived().trace, "seed {seed}");
    }
}

/// The first law that an old fault breaks.
fn caught(fault: OldFault) -> &'static str {
    let broken = (0..1000).find_map(|seed| run(seed, Some(fault)).err());
    broken.unwrap_or_else(|| panic!("nobody noticed {fault:?}")).law
}

#[test]
fn b_19_a_report_to_nobody_is_caught() {
    assert_eq!(caught(OldFault::ReportsToNobody), "a run succeeds when its work is done");
}

#[test]
fn b_22_a_stop_that_waits_for_itself_is_caught() {
    assert_eq!(caught(OldFault::WaitsForItself), "a stop ends in time");
}

#[test]
fn b_19_survivors_that_are_forgotten_are_caught() {
    assert_eq!(caught(OldFault::ForgetsSurvivors), "no handoff is worked on twice at once");
}
