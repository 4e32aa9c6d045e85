//! The file: opened again, by two at once, by the wrong version, in the wrong place.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use stafette_store::conformance::Story;
use stafette_store::{AppendError, OpenError, Options, SqliteStore, Store};

fn open(path: impl AsRef<Path>) -> Result<SqliteStore, OpenError> {
    // A disk may be slow, and others may come first.
    let busy_timeout = Duration::from_secs(60);
    SqliteStore::open(path, Options { busy_timeout, ..Options::default() })
}

#[tokio::test]
async fn b_01_a_store_that_was_dropped_or_closed_opens_with_everything_in_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut alice = Story::new(1);
    for close in [false, true, false] {
        let store = open(&path).expect("a store");
        store.append(alice.tell(&["turn_ordered"])).await.expect("appended");
        if close {
            store.close().await;
            let names = fs::read_dir(folder.path()).expect("the folder").count();
            assert_eq!(names, 1, "the log was tidied away");
        }
    }
    let store = open(&path).expect("a store");
    let loaded = store.load(alice.run()).await.expect("readable").expect("the run is there");
    assert_eq!(loaded.entries.len(), 3);
    assert_eq!(store.run(alice.run()).await.expect("readable"), Some(alice.row));
    assert_eq!(store.path().file_name(), path.file_name());
    let mode = fs::metadata(&path).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "for its owner alone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b_01_two_daemons_on_one_file_never_both_write_a_number() {
    const ROUNDS: u64 = 50;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    // Both create the tables, too.
    let open = |path: std::path::PathBuf| tokio::task::spawn_blocking(move || open(path));
    let (one, two) = tokio::join!(open(path.clone()), open(path.clone()));
    let tasks: Vec<_> = [one, two]
        .into_iter()
        .map(|store| Arc::new(store.expect("opening ends").expect("a store")))
        .map(|store| {
            tokio::spawn(async move {
                let mut won = Vec::new();
                let mut story = Story::new(1);
                while story.row.seq < ROUNDS {
                    match store.append(story.tell(&["claimed"])).await {
                        Ok(_) => won.push(story.row.seq),
                        Err(AppendError::Conflict { found, .. }) => story.row.seq = found,
                        Err(error) => panic!("{error:?}"),
                    }
                }
                won
            })
        })
        .collect();
    let mut won = Vec::new();
    for task in tasks {
        won.extend(task.await.expect("the daemon ends"));
    }
    won.sort_unstable();
    assert_eq!(won, (1..=ROUNDS).collect::<Vec<_>>());
}

#[test]
fn daemons_that_start_at_the_same_moment_all_open_the_new_store() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let start = Barrier::new(8);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    open(&path).expect("a store");
                });
            }
        });
    }
}

#[tokio::test]
async fn a_store_of_a_newer_version_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = open(&path).expect("a store");
    store.append(Story::new(1).tell(&["run_created"])).await.expect("appended");
    store.close().await;
    Connection::open(&path)
        .and_then(|conn| conn.pragma_update(None, "user_version", 999))
        .expect("the future");

    let before = fs::read(&path).expect("the file");
    let refused = open(&path).expect_err("it is from the future");
    assert!(matches!(refused, OpenError::Newer { found: 999, known: 5, .. }), "{refused:?}");
    assert!(fs::read(&path).expect("the file") == before, "not a byte has changed");
}

#[tokio::test]
async fn a_newer_store_whose_log_was_left_behind_keeps_file_and_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, copy) = (folder.path().join("store.db"), folder.path().join("copy.db"));
    open(&path).expect("a store").close().await;
    let newer = Connection::open(&path).expect("a connection");
    newer.pragma_update(None, "user_version", 999).expect("the future, in the log alone");
    let log = |path: &Path| path.with_extension("db-wal");
    fs::copy(&path, &copy)
        .and_then(|_| fs::copy(log(&path), log(&copy)))
        .expect("as after a crash");

    let before = (fs::read(&copy).expect("the file"), fs::read(log(&copy)).expect("the log"));
    let refused = open(&copy).expect_err("it is from the future");
    assert!(matches!(refused, OpenError::Newer { found: 999, .. }), "{refused:?}");
    let after = (fs::read(&copy).expect("the file"), fs::read(log(&copy)).expect("the log"));
    assert!(before == after, "not a byte has changed");
}

#[test]
fn what_is_not_a_store_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("notes.txt");
    fs::write(&text, "Dear diary, ".repeat(100)).expect("a file");
    let refused = open(&text).expect_err("it is text");
    assert!(matches!(refused, OpenError::NotAStore { .. }), "{refused:?}");
    assert_eq!(fs::read_to_string(&text).expect("the file"), "Dear diary, ".repeat(100));

    let other = folder.path().join("other.db");
    Connection::open(&other)
        .and_then(|conn| conn.execute_batch("CREATE TABLE notes (line TEXT)"))
        .expect("another program's database");
    let before = fs::read(&other).expect("the file");
    let refused = open(&other).expect_err("it is another program's");
    assert_eq!(
        refused.to_string(),
        format!(
            "{} is not a store: it is another program's database",
            other.canonicalize().expect("a path").display()
        )
    );
    assert!(fs::read(&other).expect("the file") == before);

    let refused = open(folder.path()).expect_err("it is a folder");
    assert!(matches!(refused, OpenError::NotAStore { .. }), "{refused:?}");
}

#[test]
fn a_missing_folder_is_named_and_not_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = open(folder.path().join("missing/store.db")).expect_err("no folder");
    assert!(matches!(&refused, OpenError::NoFolder { folder } if folder.ends_with("missing")));
    assert!(!folder.path().join("missing").exists());

    fs::write(folder.path().join("file"), "").expect("a file");
    let refused = open(folder.path().join("file/store.db")).expect_err("a file is no folder");
    assert!(matches!(refused, OpenError::NoFolder { .. }), "{refused:?}");
}

#[tokio::test]
async fn a_read_only_file_or_folder_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).expect("a folder");
    let path = inner.join("store.db");
    open(&path).expect("a store").close().await;
    let allow = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
    };
    allow(&inner, 0o555);
    allow(&path, 0o444);
    // The superuser may write everywhere: then there is nothing to refuse.
    if fs::write(inner.join("probe"), "").is_err() {
        let refused = open(&path).expect_err("the file is read-only");
        assert!(matches!(refused, OpenError::ReadOnly { .. }), "{refused:?}");
        allow(&path, 0o644);
        let refused = open(&path).expect_err("the folder is read-only");
        assert!(matches!(refused, OpenError::ReadOnly { .. }), "{refused:?}");
        let refused = open(inner.join("new.db")).expect_err("the folder is read-only");
        assert!(matches!(refused, OpenError::ReadOnly { .. }), "{refused:?}");
    }
    allow(&inner, 0o755);
    allow(&path, 0o644);
    open(&path).expect("a store");
}
