//! Cost of each call, measured in pages that the server reads instead of time.

use stafette_model::{HandoffId, Time};
use stafette_testkit::postgres::Shared;

use super::fault::PostgresError;
use super::link::Link;
use super::session::{Deed, Session};
use super::{PostgresOptions, PostgresStore, query, upkeep, writer};
use crate::conformance::{Story, run};
use crate::{Reply, Retention, RunFilter, Store};

/// The run that is read, the same in every history.
const ALICE: u64 = 0x1_2345_6789;

/// Pages of tables and indexes that this transaction has read.
const PAGES: &str = "SELECT coalesce(sum(pg_stat_get_xact_blocks_fetched(oid)), 0)::int8 \
     FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace \
                                         WHERE nspname = current_setting('search_path'))";

/// Creates a store with that many other, finished runs of ten events each.
async fn history(server: &Shared, runs: u64) -> (Link, Story, u64) {
    let store = PostgresStore::open(&server.fresh(), PostgresOptions::default()).await;
    let store = store.expect("a store");
    let (address, table) = (store.address.clone(), store.ground.table);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let link = Link::open(&address, deadline).await.expect("a connection");
    let patience = std::time::Duration::from_secs(60);
    let mut session = Session::new(address.clone(), patience, false, link);
    let mut alice = Story::new(ALICE);
    let mut all = vec![alice.hand(1, "pending", true)];
    for n in 1..=runs {
        let mut story = Story::new(n);
        all.push(story.tell(&["turn_ordered"; 8]));
        let mut batch = story.hand(1, "closed", false);
        batch.snapshot = Some(story.snapshot());
        all.push(batch);
        all.push(story.finish(1000));
    }
    for seq in 2..=runs {
        let mut batch = alice.tell(&["turn_ordered"]);
        batch.snapshot = (seq == runs).then(|| alice.snapshot());
        all.push(batch);
    }
    all.push(alice.hand(2, "pending", false));
    for some in all.chunks(500) {
        let mut group = writer::Group::new(some.iter().collect(), table);
        let answers = session.carry_out(&mut group).await.expect("written");
        assert!(answers.iter().all(Result::is_ok), "no conflict");
    }
    store.compact().await.expect("statistics are fresh");
    store.close().await;
    let link = Link::open(&address, deadline).await.expect("a connection");
    // The planner reads small tables whole, which would be fair but show nothing.
    link.plain("SET enable_seqscan = off").await.expect("set");
    (link, alice, table)
}

type Call<'a> = Box<dyn for<'l> Fn(&'l mut Link) -> Reply<'l, Result<usize, PostgresError>> + 'a>;

/// Returns the pages that each call reads.
async fn costs(server: &Shared, runs: u64) -> Vec<(&'static str, u64)> {
    let (mut link, mut alice, table) = history(server, runs).await;
    let (id, last) = (run(ALICE), alice.row.seq);
    let head = query::head(&mut link).await.expect("readable");
    let named = |status: Option<&str>| RunFilter {
        status: status.map(str::to_owned),
        after: None,
        limit: 5,
    };
    let after = |status| RunFilter { after: Some(id), ..named(status) };
    let rule = Retention { finished_before: Some(Time(1000)), keep_last: 3 };
    let list = |filter: RunFilter, expected: usize| -> Call<'_> {
        Box::new(move |link| {
            let filter = filter.clone();
            Box::pin(async move { Ok(query::runs(link, &filter).await?.len() - expected) })
        })
    };
    let calls: Vec<(&str, Call<'_>)> = vec![
        (
            "entries",
            Box::new(|link| {
                Box::pin(async move { Ok(query::entries(link, id, last - 1, 1).await?.len()) })
            }),
        ),
        (
            "feed",
            Box::new(|link| {
                Box::pin(async move { Ok(query::feed(link, head - 1, 1).await?.len()) })
            }),
        ),
        ("head", Box::new(|link| Box::pin(async move { query::head(link).await.map(|_| 1) }))),
        (
            "entries_of",
            Box::new(|link| {
                Box::pin(async move { Ok(query::entries_of(link, id, HandoffId(2)).await?.len()) })
            }),
        ),
        (
            "run",
            Box::new(|link| Box::pin(async move { Ok(query::run(link, id).await?.iter().len()) })),
        ),
        ("runs", list(named(None), 4)),
        ("runs after one", list(after(None), 4)),
        ("runs by status after one", list(after(Some("succeeded")), 4)),
        ("runs by status", list(named(Some("running")), 0)),
        (
            "find_run",
            Box::new(|link| {
                Box::pin(async move { Ok(query::find_run(link, &id.short()).await?.len()) })
            }),
        ),
        (
            "find_run by a part",
            Box::new(|link| {
                Box::pin(
                    async move { Ok(query::find_run(link, &id.short()[..7]).await?.len().min(1)) },
                )
            }),
        ),
        (
            "handoffs",
            Box::new(|link| {
                Box::pin(async move { Ok(query::handoffs(link, id).await?.len() - 1) })
            }),
        ),
        (
            "handoff",
            Box::new(|link| {
                Box::pin(
                    async move { Ok(query::handoff(link, id, HandoffId(1)).await?.iter().len()) },
                )
            }),
        ),
        (
            "questions",
            Box::new(|link| Box::pin(async move { Ok(query::questions(link).await?.len()) })),
        ),
        (
            "unfinished",
            Box::new(|link| Box::pin(async move { Ok(query::unfinished(link).await?.len()) })),
        ),
        (
            "candidates",
            Box::new(|link| {
                Box::pin(async move { Ok(1 + upkeep::candidates(link, rule).await?.len()) })
            }),
        ),
    ];
    let mut costs = Vec::new();
    for (name, call) in calls {
        link.plain("BEGIN").await.expect("begun");
        let before = link.number(PAGES).await.expect("counted");
        assert_eq!(call(&mut link).await.expect(name), 1, "{name}");
        costs.push((name, link.number(PAGES).await.expect("counted") - before));
        link.plain("ROLLBACK").await.expect("ended");
    }
    // These two use transactions of their own, between which the server may reset its counters:
    // then they are repeated.
    for name in ["load", "append"] {
        let mut cost = 0;
        while cost == 0 {
            let before = link.number(PAGES).await.expect("counted");
            if name == "load" {
                let loaded = query::load_at(&mut link, id, u64::MAX).await.expect("readable");
                assert!(loaded.is_some_and(|loaded| loaded.entries.len() < 9), "after a snapshot");
            } else {
                let batch = alice.hand(3, "pending", true);
                let written = writer::Group::new(vec![&batch], table).write(&mut link).await;
                assert!(written.expect("written")[0].is_ok());
            }
            cost = link.number(PAGES).await.expect("counted").saturating_sub(before);
        }
        costs.push((name, cost));
    }
    costs
}

#[tokio::test]
async fn no_call_costs_more_after_a_long_history() {
    let server = Shared::get().expect("a server");
    let (short, long) = (costs(&server, 20).await, costs(&server, 1000).await);
    for ((name, short), (_, long)) in short.into_iter().zip(long) {
        assert!(short > 0, "{name} is counted");
        // A deeper index costs a page or two per row; a scan would cost a hundred times more.
        assert!(long <= 2 * short + 6, "{name}: {short} pages, then {long}");
    }
}
