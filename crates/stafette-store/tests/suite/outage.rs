//! A server that dies, goes away, or loses its connections in the middle of a commit.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stafette_model::Time;
use stafette_store::conformance::{Story, run};
use stafette_store::{
    AppendError, LockBatch, LockEntry, LockRow, PostgresOptions, PostgresStore, Store,
};
use stafette_testkit::postgres::{Postgres, Shared};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::postgres::{other, patient};
use super::witness::{body, told};

const RUNS: u64 = 6;

/// Everything that was acknowledged is there once, and nothing else.
async fn whole(store: &PostgresStore, acknowledged: &[u64]) {
    let mut cursor = 0;
    for (n, acked) in (0..).zip(acknowledged) {
        assert_eq!(told(store, n).await, *acked, "run {n}");
        let row = store.run(run(n)).await.expect("readable").expect("the run is there");
        assert_eq!(row.seq, *acked, "run {n}");
    }
    let mut count = 0;
    loop {
        let page = store.feed(cursor, 1000).await.expect("readable");
        let Some(last) = page.last() else { break };
        count += page.len() as u64;
        cursor = last.position;
    }
    assert_eq!(count, acknowledged.iter().sum::<u64>());
    assert_eq!(cursor, count, "positions have no gaps");
    let health = store.check().await.expect("readable");
    assert!(health.is_sound(), "{:?}", health.problems);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b_01_kill_9_of_the_server_while_it_writes_loses_nothing_and_repeats_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Postgres::start(folder.path()).expect("a server");
    let store = Arc::new(PostgresStore::open(&server.url(), patient()).await.expect("a store"));
    let acks = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..RUNS)
        .map(|n| {
            let (store, acks, stop) = (store.clone(), acks.clone(), stop.clone());
            tokio::spawn(async move {
                let mut story = Story::new(n);
                while !stop.load(Ordering::Relaxed) {
                    let mut batch = story.hand(1, "pending", false);
                    batch.entries[0].body = body(n, story.row.seq);
                    batch.snapshot = story.row.seq.is_multiple_of(7).then(|| story.snapshot());
                    store.append(batch).await.expect("the server comes back in time");
                    acks.fetch_add(1, Ordering::Relaxed);
                }
                story.row.seq
            })
        })
        .collect();
    let written = async |more: u64| {
        let goal = acks.load(Ordering::Relaxed) + more;
        let deadline = Instant::now() + Duration::from_secs(120);
        while acks.load(Ordering::Relaxed) < goal {
            assert!(Instant::now() < deadline, "nothing is written any more");
            tokio::task::yield_now().await;
        }
    };
    for round in 0..6 {
        written(40 + 13 * round).await;
        if round % 2 == 0 {
            // The process that the writer talks to; the server throws all out and repairs itself.
            let client = other(&server.url()).await;
            let sql = "SELECT pid FROM pg_stat_activity WHERE application_name = 'stafette' \
                       ORDER BY backend_start LIMIT 1";
            let pid: i32 = client.query_one(sql, &[]).await.expect("it is listed").get(0);
            server.kill_process(pid);
        } else {
            server.kill();
            server.start_again().expect("it starts again");
        }
    }
    written(40).await;
    stop.store(true, Ordering::Relaxed);
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.push(writer.await.expect("the writer ends"));
    }
    whole(&store, &acknowledged).await;
}

#[tokio::test]
async fn b_01_a_server_that_stays_away_is_told_of_and_nothing_is_there_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Postgres::start(folder.path()).expect("a server");
    // Enough for a server that is there, on a busy machine.
    let options = PostgresOptions { patience: Duration::from_secs(5), ..patient() };
    let store = PostgresStore::open(&server.url(), options).await.expect("a store");
    let mut alice = Story::new(0);
    let mut batch = alice.tell(&["run_created"]);
    batch.entries[0].body = body(0, 1);
    store.append(batch).await.expect("appended");
    server.kill();
    let mut batch = alice.tell(&["turn_ordered"]);
    batch.entries[0].body = body(0, 2);
    let away = store.append(batch.clone()).await.expect_err("the server is away");
    assert!(matches!(away, AppendError::Failed { .. }), "{away:?}");
    let why = std::error::Error::source(&away).expect("a reason").to_string();
    assert!(why.contains("postgres://stafette@127.0.0.1"), "{why}");
    store.load(alice.run()).await.expect_err("the server is away");
    server.start_again().expect("it starts again");
    store.append(batch).await.expect("it goes on");
    whole(&store, &[2]).await;
}

/// What a [`Gap`] does with the next commit.
const CUT_BEFORE: u8 = 1;
const CUT_AFTER: u8 = 2;

/// A way to the server that loses a connection in the middle of a commit: before the server has
/// heard of it, or after it is done and before anybody was told.
struct Gap {
    port: u16,
    next: Arc<AtomicU8>,
}

impl Gap {
    async fn to(server: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (next, server) = (Arc::new(AtomicU8::new(0)), server.to_owned());
        let shared = next.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.expect("the server");
                tokio::spawn(pass(client, server, shared.clone()));
            }
        });
        Gap { port, next }
    }
}

async fn pass(mut client: TcpStream, mut server: TcpStream, next: Arc<AtomicU8>) -> io::Result<()> {
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut cut = false;
    let commits = |bytes: &[u8]| bytes.windows(7).any(|word| word == b"COMMIT\0");
    loop {
        tokio::select! {
            count = client.read(&mut asked) => {
                let bytes = &asked[..count?];
                if bytes.is_empty() {
                    return Ok(());
                }
                if commits(bytes) {
                    match next.swap(0, Ordering::SeqCst) {
                        CUT_BEFORE => return Ok(()),
                        CUT_AFTER => cut = true,
                        _ => {}
                    }
                }
                server.write_all(bytes).await?;
            }
            count = server.read(&mut answered) => {
                let bytes = &answered[..count?];
                if bytes.is_empty() || (cut && commits(bytes)) {
                    return Ok(());
                }
                client.write_all(bytes).await?;
            }
        }
    }
}

#[tokio::test]
async fn b_01_a_commit_whose_answer_was_lost_is_found_and_one_that_was_lost_is_done_again() {
    let server = Shared::get().expect("a server");
    let url = server.fresh();
    let address = url.split('@').nth(1).and_then(|rest| rest.split('/').next());
    let address = address.expect("host and port");
    let gap = Gap::to(address).await;
    let url = url.replace(address, &format!("127.0.0.1:{}", gap.port));
    let store = PostgresStore::open(&url, patient()).await.expect("a store");
    let mut alice = Story::new(0);
    for (seq, cut) in (1..).zip([0, CUT_AFTER, CUT_BEFORE, 0, CUT_AFTER, CUT_AFTER, CUT_BEFORE]) {
        let mut batch = alice.hand(1, "pending", false);
        batch.entries[0].body = body(0, seq);
        gap.next.store(cut, Ordering::SeqCst);
        let position = store.append(batch).await.expect("it is written once");
        assert_eq!(position, seq);
        assert_eq!(gap.next.load(Ordering::SeqCst), 0, "the connection was cut");
    }
    for (version, cut) in (0..).zip([0, CUT_AFTER, CUT_BEFORE, 0]) {
        let seq = version + 1;
        let body = format!("{{\"seq\":{seq}}}");
        let change = LockBatch {
            expected_version: version,
            entries: vec![LockEntry { seq, at: Time(1), name: "lock_taken".into(), body }],
            fence: seq,
            put: vec![LockRow { id: seq, held: true, body: "{}".to_owned() }],
            remove: Vec::new(),
        };
        gap.next.store(cut, Ordering::SeqCst);
        assert_eq!(store.write_locks(change).await.expect("it is written once"), seq);
    }
    assert_eq!(store.locks().await.expect("readable").fence, 4);
    whole(&store, &[alice.row.seq]).await;
}
