//! Full text: the same stories, told to both kinds of index, are found alike.

use std::sync::Arc;

use stafette_model::{HandoffId, Time};
use stafette_store::conformance::{Story, run};
use stafette_store::{Finder, PostgresStore, Retention, SqliteFinder, Store, Text};
use stafette_testkit::postgres::Shared;

use super::postgres::patient;

fn text(n: u64, seq: u64, body: &str) -> Text {
    Text {
        run: run(n),
        seq,
        handoff: Some(HandoffId(2)),
        at: Time(7),
        kind: "handoff_admitted".into(),
        who: "planner".into(),
        body: body.into(),
    }
}

struct World {
    finders: [Arc<dyn Finder>; 2],
    store: PostgresStore,
    _folder: tempfile::TempDir,
    _server: Arc<Shared>,
}

async fn world() -> World {
    let server = Shared::get().expect("a server");
    let store = PostgresStore::open(&server.fresh(), patient()).await;
    let store = store.expect("a store");
    let folder = tempfile::tempdir().expect("a folder");
    let file = SqliteFinder::open(&folder.path().join("find.db"), 99).expect("opened");
    let finders: [Arc<dyn Finder>; 2] = [Arc::new(file), Arc::new(store.finder())];
    World { finders, store, _folder: folder, _server: server }
}

#[tokio::test]
async fn b_17_all_words_are_found_in_any_order_and_the_last_may_be_unfinished() {
    let world = world().await;
    for finder in &world.finders {
        let texts = vec![text(1, 3, "Add JWT login to the café"), text(1, 4, "The login is slow")];
        finder.add(4, texts).await.expect("added");
        let found = finder.find("login jw".into(), 10).await.expect("found");
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].seq, found[0].handoff), (3, Some(HandoffId(2))));
        assert_eq!(found[0].body, "Add [JWT] [login] to the café");
        assert_eq!(finder.find("cafe".into(), 10).await.expect("found").len(), 1);
        assert_eq!(finder.find("login".into(), 1).await.expect("found").len(), 1);
        finder.forget(run(1)).await.expect("forgotten");
        assert_eq!(finder.find("login".into(), 10).await.expect("found"), []);
    }
}

#[tokio::test]
async fn b_17_both_indexes_give_the_same_answers_for_the_same_stories() {
    let world = world().await;
    let [file, database] = &world.finders;
    let bodies = [
        "Write stafette.toml and src/main.rs, then run `cargo test --all`.",
        "The reviewer said: \"not yet\"; see http://example.org/login?user=ada&x=1",
        "Café, CAFÉ, cafe\u{301} and caf\u{e9}s; naïve Straße; 走る 走",
        "error[E0716]: temporary value dropped; while borrowed at 12:34:56.789",
        "mail ada@example.org about -5 and 3.14 and 1e5, o'clock, state-of-the-art",
        "",
        "don't_panic snake_case camelCase HTTP2",
    ];
    let texts: Vec<Text> = (1..).zip(bodies).map(|(seq, body)| text(1, seq, body)).collect();
    for finder in [file, database] {
        finder.add(9, texts.clone()).await.expect("added");
        assert_eq!(finder.position().await.expect("read"), 9);
    }
    let asked = [
        "toml",
        "main.rs",
        "rs main",
        "stafette.to",
        "cargo test",
        "test cargo",
        "all",
        "--all",
        "said not",
        "not yet",
        "\"not yet\"",
        "example",
        "login user",
        "cafe",
        "CAFE",
        "cafés",
        "naive",
        "strasse",
        "straße",
        "走",
        "E0716",
        "e07",
        "dropped while",
        "12:34",
        "789",
        "ada@example.org",
        "3.14",
        "1e5",
        "5",
        "o'clock",
        "art state",
        "state-of",
        "of-the-state",
        "snake",
        "case",
        "snake_case",
        "http2",
        "http",
        "zebra",
        "\"",
        "a AND",
        "NEAR(",
        "-x *",
        "* ^",
        "body:login",
        "' OR 1=1 --",
        "& | !",
        "<->",
        ":*",
        "and",
        "",
    ];
    for words in asked {
        let mut answers = Vec::new();
        for finder in [file, database] {
            let found = finder.find(words.to_owned(), 10).await;
            let mut found = found.unwrap_or_else(|error| panic!("{words}: {error:?}"));
            found.sort_by_key(|text| text.seq);
            answers.push(found);
        }
        assert_eq!(answers[0], answers[1], "{words}");
    }
}

#[tokio::test]
async fn b_17_what_was_taken_in_is_taken_in_once() {
    let world = world().await;
    let store = &world.store;
    for finder in &world.finders {
        let pieces = vec![text(1, 3, "first piece"), text(1, 3, "second piece")];
        assert_eq!(finder.read_of("one".into()).await.expect("read"), 0);
        finder.add_of("one".into(), 50, pieces).await.expect("added");
        assert_eq!(finder.read_of("one".into()).await.expect("read"), 50);
        assert_eq!(finder.read_of("two".into()).await.expect("read"), 0);
        assert_eq!(finder.find("piece".into(), 10).await.expect("found").len(), 2);
    }
    // In a database a page may be written without our hearing of it: then it comes again.
    let finder = store.finder();
    for _ in 0..2 {
        finder.add(7, vec![text(2, 1, "a page")]).await.expect("added");
        finder.add_of("two".into(), 9, vec![text(2, 1, "a page")]).await.expect("added");
    }
    assert_eq!(finder.find("page".into(), 10).await.expect("found").len(), 2);
    assert_eq!(finder.position().await.expect("read"), 7);
    // What is tidied away takes its texts along.
    store.append(Story::new(2).finish(5)).await.expect("appended");
    store.retain(Retention { finished_before: None, keep_last: 0 }).await.expect("tidied");
    assert_eq!(finder.find("page".into(), 10).await.expect("found"), []);
    let long = "word\0".repeat(400_000) + &"x".repeat(5000);
    finder.add(8, vec![text(3, 1, &long)]).await.expect("a long text is taken in");
    assert_eq!(finder.find("word".into(), 10).await.expect("found").len(), 1);
}
