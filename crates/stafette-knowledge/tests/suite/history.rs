//! Threads and their messages.

use stafette_core::{Fields, Time};
use stafette_knowledge::Base;
use stafette_knowledge::history::{History, HistoryError, Said, Thread, ThreadFilter};

fn open() -> (History, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let base = Base::open(&folder.path().join("knowledge.db")).expect("a file");
    (History::new(base), folder)
}

fn thread(id: &str, module: &str, at: i64) -> Thread {
    let mut meta = Fields::new();
    meta.insert("run".into(), "r1".into());
    let title = format!("About {id}");
    Thread { id: id.into(), module: module.into(), title, created_at: Time(at), meta }
}

fn said(id: &str, thread: &str, body: &str) -> Said {
    Said {
        id: id.into(),
        thread_id: thread.into(),
        role: "discuss".into(),
        body: body.into(),
        created_at: Time(5),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_11_many_write_into_one_thread_and_its_numbers_have_no_gap() {
    let (history, _folder) = open();
    history.open(thread("a", "discuss", 1)).await.expect("a thread");
    let mut writers = Vec::new();
    for writer in 0..8 {
        let history = history.clone();
        writers.push(tokio::spawn(async move {
            for number in 0..25 {
                let id = format!("{writer}-{number}");
                history.append(said(&id, "a", "words")).await.expect("written");
            }
        }));
    }
    for writer in writers {
        writer.await.expect("it wrote");
    }
    let mut numbers = Vec::new();
    while let Some(page) = {
        let page = history.messages("a", numbers.len() as u64, 60).await.expect("asked");
        (!page.is_empty()).then_some(page)
    } {
        numbers.extend(page.iter().map(|message| message.seq));
    }
    assert_eq!(numbers, (1..=200).collect::<Vec<u64>>());
}

#[tokio::test]
async fn s1_11_the_same_message_twice_is_there_once() {
    let (history, _folder) = open();
    let opened = history.open(thread("a", "discuss", 1)).await.expect("a thread");
    assert_eq!(history.open(thread("a", "discuss", 9)).await, Ok(opened));
    let first = history.append(said("m1", "a", "hello")).await.expect("written");
    assert_eq!(history.append(said("m1", "a", "hello")).await, Ok(first));
    let other = history.append(said("m1", "a", "something else")).await;
    assert_eq!(other, Err(HistoryError::Taken { id: "m1".into() }));
    assert_eq!(history.append(said("m2", "a", "next")).await.expect("written").seq, 2);
}

#[tokio::test]
async fn s1_11_what_was_said_is_found_with_the_words_around_it() {
    let (history, _folder) = open();
    for (id, module) in [("a", "discuss"), ("b", "mind")] {
        history.open(thread(id, module, 1)).await.expect("a thread");
    }
    history.append(said("1", "a", "We weigh the risk of moving.")).await.expect("written");
    history.append(said("2", "b", "Risky moves were rare.")).await.expect("written");
    history.append(said("3", "b", "Über café and \"quotes\".")).await.expect("written");
    let found = |text: &'static str, module: Option<&'static str>| {
        let history = history.clone();
        async move {
            let hits = history.search(text, module, 0, 10).await.expect("asked");
            let mut ids: Vec<String> = hits.iter().map(|hit| hit.message.clone()).collect();
            ids.sort();
            (ids, hits)
        }
    };
    assert_eq!(found("risk", None).await.0, ["1", "2"], "the last word may be a beginning");
    assert_eq!(found("risk ", None).await.0, ["1"]);
    assert_eq!(found("risk", Some("mind")).await.0, ["2"]);
    assert_eq!(found("uber CAFE", None).await.0, ["3"]);
    assert_eq!(found("\" OR NEAR( * -", None).await.0, [""; 0]);
    assert_eq!(found("", None).await.0, [""; 0]);
    let (_, hits) = found("moving", None).await;
    let marked: Vec<_> = hits[0].snippet.iter().filter(|piece| piece.hit).collect();
    assert_eq!((marked.len(), marked[0].text.as_str()), (1, "moving"));
    assert_eq!((hits[0].title.as_str(), hits[0].seq), ("About a", 1));
}

#[tokio::test]
async fn s1_11_threads_come_newest_first_and_page_by_page() {
    let (history, _folder) = open();
    for (id, module, at) in
        [("a", "discuss", 1), ("b", "mind", 2), ("c", "discuss", 3), ("d", "discuss", 3)]
    {
        history.open(thread(id, module, at)).await.expect("a thread");
    }
    let ids = |filter: ThreadFilter, limit: usize| {
        let history = history.clone();
        async move {
            let found = history.threads(filter, limit).await.expect("asked");
            found.into_iter().map(|thread| thread.id).collect::<Vec<_>>()
        }
    };
    assert_eq!(ids(ThreadFilter::default(), 10).await, ["d", "c", "b", "a"]);
    let after = ThreadFilter { after: Some("c".into()), module: None };
    assert_eq!(ids(after, 1).await, ["b"]);
    let module = ThreadFilter { module: Some("discuss".into()), after: None };
    assert_eq!(ids(module, 10).await, ["d", "c", "a"]);
    assert_eq!(history.thread("a").await.expect("there").meta["run"], "r1");
}

#[tokio::test]
async fn s1_11_what_cannot_be_kept_is_refused() {
    let (history, _folder) = open();
    let nowhere = history.append(said("1", "none", "x")).await;
    assert_eq!(nowhere, Err(HistoryError::NoThread { thread: "none".into() }));
    history.open(thread("a", "discuss", 1)).await.expect("a thread");
    let empty = history.append(said("1", "a", "")).await;
    assert!(matches!(empty, Err(HistoryError::Length { what: "body", .. })), "{empty:?}");
    let long = history.append(said("1", "a", &"x".repeat((1 << 20) + 1))).await;
    assert!(matches!(long, Err(HistoryError::Length { .. })));
}
