//! Opening a database, and sharing one.

use std::sync::Arc;
use std::time::Duration;

use stafette_store::conformance::Story;
use stafette_store::{ConnectError, PostgresOptions, PostgresStore, Store};
use stafette_testkit::postgres::{GUARDED, PASSWORD, Postgres, Shared};

use super::postgres::{name, other, patient};
use super::witness::{hundred, shared};

async fn refused(url: &str) -> ConnectError {
    PostgresStore::open(url, patient()).await.expect_err("it is refused")
}

/// For those who wait in vain.
fn impatient(options: PostgresOptions) -> PostgresOptions {
    PostgresOptions { first_patience: Duration::from_secs(1), ..options }
}

#[tokio::test]
async fn what_cannot_be_a_store_is_refused_and_left_as_it_is() {
    let server = Shared::get().expect("a server");
    let nobody = "postgres://ada:s3cret@127.0.0.1:1/work";
    let nobody = PostgresStore::open(nobody, impatient(patient())).await.expect_err("nobody");
    assert!(matches!(nobody, ConnectError::Unreachable { .. }), "{nobody:?}");
    assert!(!nobody.to_string().contains("s3cret"));
    let missing = server.url().replace("/postgres", "/no_such_database");
    let missing = refused(&missing).await;
    assert!(matches!(missing, ConnectError::NoDatabase { .. }), "{missing:?}");

    let url = server.fresh();
    let client = other(&url).await;
    let notes = format!("CREATE SCHEMA {0}; CREATE TABLE {0}.notes (line TEXT)", name(&url));
    client.batch_execute(&notes).await.expect("another program's schema");
    let theirs = refused(&url).await;
    assert!(matches!(theirs, ConnectError::NotAStore { .. }), "{theirs:?}");
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = $1";
    let count: i64 = client.query_one(tables, &[&name(&url)]).await.expect("counted").get(0);
    assert_eq!(count, 1);

    let url = server.fresh();
    PostgresStore::open(&url, patient()).await.expect("a store").close().await;
    let future = format!("UPDATE {}.store SET version = 999", name(&url));
    client.batch_execute(&future).await.expect("from the future");
    let newer = refused(&url).await;
    assert!(matches!(newer, ConnectError::Newer { found: 999, .. }), "{newer:?}");
}

#[tokio::test]
async fn a_user_is_let_in_by_a_password_and_a_socket_needs_no_network() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Postgres::start(folder.path()).expect("a server");
    let client = other(&server.url()).await;
    let role = format!("CREATE ROLE {GUARDED} LOGIN PASSWORD '{PASSWORD}'");
    client.batch_execute(&role).await.expect("a user");
    let url = |password| server.url_of(&format!("{GUARDED}:{password}"));
    let silent = refused(&server.url_of(GUARDED)).await;
    assert!(matches!(silent, ConnectError::NotAllowed { .. }), "no password: {silent:?}");
    let wrong = refused(&url("guess")).await;
    assert!(matches!(wrong, ConnectError::NotAllowed { .. }), "{wrong:?}");
    // Who may not make a schema is told so, until somebody makes it.
    let poor = refused(&url(PASSWORD)).await;
    assert!(matches!(poor, ConnectError::NotAllowed { .. }), "{poor:?}");
    let made = format!("CREATE SCHEMA team AUTHORIZATION {GUARDED}");
    client.batch_execute(&made).await.expect("a schema");
    let url = format!("{}?schema=team", url(PASSWORD));
    let store = PostgresStore::open(&url, patient()).await.expect("a store");
    store.append(Story::new(1).tell(&["run_created"])).await.expect("appended");
    assert!(store.place().ends_with("/postgres?schema=team"), "{}", store.place());
    store.close().await;

    let socket = format!("{}?schema=team", server.socket_url());
    let store = PostgresStore::open(&socket, patient()).await.expect("by the socket");
    assert_eq!(store.head().await.expect("readable"), 1);
}

#[tokio::test]
async fn one_daemon_works_on_a_database_and_the_next_takes_over_when_it_is_gone() {
    let server = Shared::get().expect("a server");
    let url = server.fresh();
    let alone = PostgresOptions { alone: true, ..patient() };
    let first = PostgresStore::open(&url, alone.clone()).await.expect("the first");
    let second = PostgresStore::open(&url, impatient(alone.clone())).await;
    let second = second.expect_err("there is one");
    assert!(matches!(second, ConnectError::Taken { .. }), "{second:?}");
    // Who only looks, or tidies, needs not be alone.
    PostgresStore::open(&url, patient()).await.expect("a look").close().await;
    first.close().await;
    PostgresStore::open(&url, alone.clone()).await.expect("the next").close().await;
    let _first = PostgresStore::open(&url, alone.clone()).await.expect("the first again");
    PostgresStore::open(&server.fresh(), alone).await.expect("another schema is free");
}

// One thread, so that yielding once lets every task that was spawned put its batch into the queue.
#[tokio::test(flavor = "current_thread")]
async fn b_01_writers_that_wait_share_a_commit_and_a_conflict_harms_no_one() {
    let server = Shared::get().expect("a server");
    let url = server.fresh();
    let store = Arc::new(PostgresStore::open(&url, patient()).await.expect("a store"));
    // Someone else has the turn, so the writer gets no further than its first group.
    let client = other(&url).await;
    let turn = format!("BEGIN; SELECT head FROM {}.store FOR UPDATE", name(&url));
    client.batch_execute(&turn).await.expect("the turn");
    let tasks = hundred(&store);
    tokio::task::yield_now().await;
    assert_eq!(store.stats().commits, 0);
    client.batch_execute("COMMIT").await.expect("the turn is given back");
    shared(&*store, tasks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b_01_a_reader_misses_nothing_while_two_write_to_one_database() {
    const EACH: u64 = 60;
    let server = Shared::get().expect("a server");
    let url = server.fresh();
    let mut writers = Vec::new();
    for n in 1..=2 {
        let store = PostgresStore::open(&url, patient()).await.expect("a store");
        writers.push(tokio::spawn(async move {
            let mut story = Story::new(n);
            for _ in 0..EACH {
                store.append(story.tell(&["turn_ordered", "turn_accepted"])).await.expect("kept");
            }
        }));
    }
    let store = PostgresStore::open(&url, patient()).await.expect("a store");
    let (mut seen, mut cursor) = (0, 0);
    let look = async {
        while seen < 4 * EACH {
            for stored in store.feed(cursor, 7).await.expect("readable") {
                assert_eq!(stored.position, cursor + 1, "none is skipped");
                cursor = stored.position;
                seen += 1;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(120), look).await.expect("all are seen");
    for writer in writers {
        writer.await.expect("the writer ends");
    }
    assert!(store.check().await.expect("readable").is_sound());
}
