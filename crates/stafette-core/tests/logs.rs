//! Logs of real runs, kept for ever: whatever becomes of the kernel, each of them still opens and
//! tells the same. `fixtures/logs/README.md` says what they are.

#[path = "logs/transcript.rs"]
mod transcript;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use stafette_core::{Event, Recorded};

/// A log with its name, a line for each event.
struct Log {
    name: String,
    lines: Vec<String>,
}

impl Log {
    fn events(&self) -> Vec<Recorded> {
        let read = |line: &String| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}", self.name))
        };
        self.lines.iter().map(read).collect()
    }
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/logs"))
}

/// All of them, by name.
fn logs() -> Vec<Log> {
    let mut logs = Vec::new();
    for entry in fs::read_dir(folder()).expect("the logs are there") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|ending| ending == "jsonl") {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).expect("a log");
            logs.push(Log { name, lines: text.lines().map(str::to_owned).collect() });
        }
    }
    logs.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(!logs.is_empty());
    logs
}

/// The first line that differs, with what leads there.
fn difference(kept: &str, told: &str) -> String {
    let (kept, told): (Vec<&str>, Vec<&str>) = (kept.lines().collect(), told.lines().collect());
    let same = kept.iter().zip(&told).take_while(|(kept, told)| kept == told).count();
    let event = kept[..same].iter().rev().find(|line| !line.starts_with(' '));
    format!(
        "after {}\n  kept: {}\n  told: {}",
        event.unwrap_or(&"the beginning"),
        kept.get(same).unwrap_or(&"nothing more"),
        told.get(same).unwrap_or(&"nothing more"),
    )
}

/// Set `UPDATE_GOLDEN=1` to write the transcripts again. That is right for a log that is new; for
/// one that was there before, the transcript is the promise.
#[test]
fn b_12_every_stored_run_opens_and_tells_the_same_after_each_event() {
    let mut wrong = Vec::new();
    for log in logs() {
        let events = log.events();
        let seqs: Vec<u64> = events.iter().map(|recorded| recorded.seq).collect();
        assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>(), "{}", log.name);
        let told = transcript::of(&events);
        let file = folder().join(format!("{}.transcript", log.name));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&file, &told).expect("the file can be written");
        }
        let kept = fs::read_to_string(&file).unwrap_or_default();
        if kept != told {
            wrong.push(format!("{}: {}", log.name, difference(&kept, &told)));
        }
    }
    assert!(wrong.is_empty(), "stored runs tell something else:\n{}", wrong.join("\n"));
}

#[test]
fn b_12_every_event_is_in_some_log() {
    let logs = logs();
    let seen: BTreeSet<&str> =
        logs.iter().flat_map(Log::events).map(|recorded| recorded.event.name()).collect();
    let unseen: Vec<&&str> = Event::NAMES.iter().filter(|name| !seen.contains(*name)).collect();
    assert!(unseen.is_empty(), "no log has {unseen:?}");
}
