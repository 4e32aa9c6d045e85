//! Recordings of real programs in terminals, with what they sent and what was to be seen.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use stafette_agents::screen::{Screen, Tier};
use stafette_core::wire::frame::Word;

#[derive(Deserialize)]
struct Expected {
    cols: u16,
    rows: u16,
    sent: Vec<String>,
    visible: Vec<String>,
    spoofs: Vec<String>,
}

struct Recording {
    name: String,
    expected: Expected,
    bytes: Vec<u8>,
    reads: Vec<usize>,
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/terminals"))
}

fn recordings() -> Vec<Recording> {
    let read = |name: String| std::fs::read(folder().join(name)).unwrap();
    let all: BTreeMap<String, Expected> =
        serde_json::from_slice(&read("expected.json".into())).unwrap();
    let recording = |(name, expected): (String, Expected)| Recording {
        bytes: read(format!("{name}.bin")),
        reads: serde_json::from_slice(&read(format!("{name}.chunks.json"))).unwrap(),
        name,
        expected,
    };
    let recordings: Vec<Recording> = all.into_iter().map(recording).collect();
    assert_eq!(recordings.len(), 8);
    recordings
}

/// What a screen shows of a recording that is read in pieces of these sizes, the last one repeated.
fn seen(recording: &Recording, reads: &[usize]) -> Vec<String> {
    let Expected { cols, rows, .. } = recording.expected;
    let mut screen = Screen::new(Word::default(), cols, rows).unwrap();
    let mut sightings = Vec::new();
    let mut rest = recording.bytes.as_slice();
    let mut sizes = reads.iter().chain(std::iter::repeat(reads.last().unwrap()));
    while !rest.is_empty() {
        let (read, later) = rest.split_at(*sizes.next().unwrap().min(&rest.len()));
        sightings.extend(screen.feed(read));
        rest = later;
    }
    sightings.extend(screen.finish());
    assert!(sightings.iter().all(|sighting| sighting.tier == Tier::Bare));
    let mut frames: Vec<String> =
        sightings.iter().map(|sighting| format!("ODEI:{}", sighting.frame)).collect();
    frames.sort();
    frames
}

/// Everything that was to be seen is there once, and nothing that nobody wrote.
#[track_caller]
fn check(recording: &Recording, reads: &[usize]) {
    let seen = seen(recording, reads);
    let Recording { name, expected, .. } = recording;
    for frame in expected.visible.iter().chain(&expected.spoofs) {
        let times = seen.iter().filter(|other| *other == frame).count();
        assert_eq!(times, 1, "{name}: {frame}");
    }
    for frame in &seen {
        let written = expected.sent.contains(frame) || expected.spoofs.contains(frame);
        assert!(written, "{name}: nobody wrote {frame}");
    }
    let mut once = seen.clone();
    once.dedup();
    assert_eq!(once, seen, "{name}: no frame is seen twice");
}

#[test]
fn s1_02_every_visible_frame_of_real_programs_is_found_once_and_no_other() {
    for recording in recordings() {
        check(&recording, &recording.reads);
    }
}

#[test]
fn s1_02_how_a_recording_is_cut_into_reads_does_not_lose_or_invent_frames() {
    for recording in recordings() {
        for size in [1, 7, 100, 1000, 4096, 65536] {
            check(&recording, &[size]);
        }
    }
}
