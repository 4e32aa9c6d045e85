//! Killed while it writes.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use stafette_store::conformance::{Story, run};
use stafette_store::{Options, SqliteStore, Store};
use tokio::task::JoinSet;

use super::witness::{body, told};

/// Tells the child where the store is.
const CHILD: &str = "STAFETTE_STORE_TEST_CHILD";
const RUNS: u64 = 6;

/// Not a test by itself: the process that is killed. It goes on where the last one stopped and
/// says which numbers were acknowledged.
#[tokio::test]
async fn child_appends_until_it_is_killed() {
    let Ok(path) = env::var(CHILD) else { return };
    let store = Arc::new(SqliteStore::open(path, Options::default()).expect("a store"));
    let mut tasks = JoinSet::new();
    for n in 0..RUNS {
        let store = store.clone();
        tasks.spawn(async move {
            let mut story = Story::new(n);
            if let Some(row) = store.run(story.run()).await.expect("readable") {
                story.row = row;
            }
            loop {
                let mut batch = story.hand(1, "pending", false);
                batch.entries[0].body = body(n, story.row.seq);
                batch.snapshot = story.row.seq.is_multiple_of(7).then(|| story.snapshot());
                store.append(batch).await.expect("appended");
                // Past the test harness, which may have left its own line unfinished.
                writeln!(io::stdout(), "\nack {n} {}", story.row.seq).expect("the parent reads");
            }
        });
    }
    tasks.join_all().await;
}

fn spawn(path: &Path) -> Child {
    Command::new(env::current_exe().expect("this program"))
        .args(["--exact", "suite::crash::child_appends_until_it_is_killed", "--nocapture"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child")
}

#[tokio::test]
async fn b_01_kill_9_loses_nothing_that_was_acknowledged_and_repeats_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut acknowledged = BTreeMap::new();
    for round in 1..=5 {
        let mut child = spawn(&path);
        let output = child.stdout.take().expect("a pipe");
        let mut acks = 0;
        for line in BufReader::new(output).lines() {
            let line = line.expect("text");
            let mut words = line.split(' ');
            // The last line may have been cut short.
            let (Some("ack"), Some(n), Some(seq)) = (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let (n, seq): (u64, u64) = (n.parse().expect("a run"), seq.parse().expect("a number"));
            let last = acknowledged.insert(n, seq).unwrap_or(0);
            assert!(seq > last, "run {n} went back from {last} to {seq}");
            acks += 1;
            if acks == 60 * round {
                child.kill().expect("killed");
            }
        }
        let status = child.wait().expect("an end");
        assert!(!status.success(), "it was killed, not finished");
        assert!(acks >= 60 * round, "{acks} acknowledged in round {round}");
    }

    let store = SqliteStore::open(&path, Options::default()).expect("a store");
    let health = store.check().await.expect("readable");
    assert!(health.is_sound(), "{:?}", health.problems);
    assert_eq!(acknowledged.len() as u64, RUNS);
    for (n, acked) in acknowledged {
        let row = store.run(run(n)).await.expect("readable").expect("the run is there");
        // What was written but not yet acknowledged when the blow fell may be there: one a round.
        assert!((acked..=acked + 1).contains(&row.seq), "{acked} acknowledged, {} kept", row.seq);
        let seq = told(&store, n).await;
        assert_eq!(seq, row.seq, "as many events as the row says");
    }
}
