//! The measurement counts what it says it counts; how long that takes is nobody's business here.

use stafette_bench::{Pace, handoffs, terminals};

fn counts(pace: &Pace) -> (u32, u64) {
    (pace.runs, pace.handoffs)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_measurement_counts_what_it_reports() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = handoffs(folder.path(), 30, 3).await.expect("a report");

    assert_eq!(counts(&report.one_run), (1, 30));
    assert_eq!(counts(&report.many_runs), (3, 30));
    assert_eq!(counts(&report.one_run_in_memory), (1, 30));
    assert_eq!(counts(&report.many_runs_in_memory), (3, 30));

    // Accepted, finished, admitted, closed, ordered: the same wherever it is kept.
    assert_eq!(report.one_run.events_per_handoff, 5.0);
    assert_eq!(report.many_runs.events_per_handoff, 5.0);
    assert_eq!(report.one_run.bytes_per_handoff, report.one_run_in_memory.bytes_per_handoff);

    // A run that is alone shares its commits with nobody.
    assert_eq!(report.one_run.commits_per_handoff, Some(1.0));
    assert_eq!(report.one_run.largest_group, Some(1));
    assert!(report.many_runs.commits_per_handoff.is_some_and(|commits| commits <= 1.0));
    assert!(report.many_runs.largest_group.is_some_and(|group| (1..=3).contains(&group)));

    let places: Vec<_> =
        report.histories.iter().map(|h| (h.shape, h.early.handoff, h.late.handoff)).collect();
    assert_eq!(places, [("delegations", 2, 150), ("loop", 2, 150)]);
    assert!(report.histories.iter().all(|h| (200..256 + 10).contains(&h.opening.replayed)));

    let found: Vec<_> = report.scanner.iter().map(|row| (row.name, row.frames > 0)).collect();
    assert_eq!(found, [("text", false), ("code", false), ("frames", true)]);
}

#[tokio::test]
async fn people_get_a_table_with_every_part_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = handoffs(folder.path(), 1, 0).await.expect("a report").to_string();
    for part in [
        "on disk, 1 run",
        "in memory, 1 run",
        "decided only",
        "plain file",
        "memmem",
        "metrics",
        "tracing",
    ] {
        assert!(table.contains(part), "{part} is missing:\n{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terminals_are_measured_among_others_and_against_bare_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let costs = terminals(folder.path(), 3, 2).await.expect("costs");
    let crowds: Vec<_> = costs.echoes.iter().map(|crowd| (crowd.idle, crowd.busy)).collect();
    assert_eq!(crowds, [(0, 0), (3, 0), (3, 2)]);
    let measured = |crowd: &stafette_bench::Crowd| crowd.median_us > 0.0 && crowd.to_bare > 0.0;
    assert!(costs.echoes.iter().all(measured), "{costs:?}");
    assert!(costs.busy_bytes > 0.0 && costs.all_busy_mb_per_second > 0.0, "{costs:?}");
    assert!(costs.to_bare > 0.0, "{costs:?}");

    let mut report = handoffs(folder.path(), 1, 1).await.expect("a report");
    report.terminals = Some(costs);
    let table = report.to_string();
    for part in ["A KEY UNTIL IT IS SEEN", "among 3 idle", "and 2 busy", "bytes of memory"] {
        assert!(table.contains(part), "{part} is missing:\n{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}
