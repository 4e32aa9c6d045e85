//! Streams that were recorded from the programs themselves, cut in every way.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::profile::Library;

fn wall() -> Wall {
    Wall::new(Time::parse("2026-11-15T11:00:00Z").unwrap(), "UTC")
}

fn profile(name: &str) -> Profile {
    static LIBRARY: LazyLock<Library> = LazyLock::new(Library::built_in);
    LIBRARY.get(name).expect("a built-in profile").clone()
}

fn decoded(profile: &Profile, pieces: &[&[u8]]) -> (Vec<Heard>, u64) {
    let mut decoder = Decoder::new(profile);
    let mut heard = Vec::new();
    for piece in pieces {
        decoder.push(piece, &wall(), |it| heard.push(it));
    }
    decoder.end(&wall(), |it| heard.push(it));
    (heard, decoder.ignored())
}

/// The events, one per line, and their total.
fn told(profile: &Profile, heard: &[Heard]) -> String {
    let mut text = String::new();
    let mut meter = Meter::default();
    for it in heard {
        if let Heard::Usage(count) = it {
            meter.take(count);
        }
        let _ = writeln!(text, "{it:?}");
    }
    let _ = writeln!(text, "= {:?}", meter.usage(profile, Totals::default()));
    text
}

fn recordings() -> Vec<(String, PathBuf)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/streams");
    let mut found: Vec<(String, PathBuf)> = fs::read_dir(folder)
        .expect("recordings")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .map(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            (name.split('-').next().expect("a profile").to_owned(), path)
        })
        .collect();
    found.sort();
    assert!(found.len() >= 19);
    found
}

/// Set `UPDATE_GOLDEN=1` to write the files again after an intended change.
#[test]
fn recorded_streams_mean_what_they_meant() {
    for (name, path) in recordings() {
        let profile = profile(&name);
        let bytes = fs::read(&path).expect("a recording");
        let (heard, ignored) = decoded(&profile, &[&bytes]);
        assert_eq!(ignored, 0, "{}", path.display());
        let current = told(&profile, &heard);
        let expected = path.with_extension("txt");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&expected, &current).expect("the file can be written");
        }
        let expected = fs::read_to_string(&expected).unwrap_or_default();
        assert_eq!(current, expected, "{}: run with UPDATE_GOLDEN=1", path.display());
    }
}

#[test]
fn recorded_streams_mean_the_same_however_they_are_cut() {
    for (name, path) in recordings() {
        let profile = profile(&name);
        let bytes = fs::read(&path).expect("a recording");
        let whole = decoded(&profile, &[&bytes]);
        for at in (0..bytes.len()).step_by(23) {
            let (left, right) = bytes.split_at(at);
            assert_eq!(decoded(&profile, &[left, right]), whole, "{} at {at}", path.display());
        }
        let bytewise: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decoded(&profile, &bytewise), whole, "{}", path.display());
    }
}

#[test]
fn a_stream_that_breaks_off_means_what_came_before() {
    for (name, path) in recordings() {
        let profile = profile(&name);
        let bytes = fs::read(&path).expect("a recording");
        let (whole, _) = decoded(&profile, &[&bytes]);
        for at in (0..bytes.len()).step_by(97) {
            let (heard, ignored) = decoded(&profile, &[&bytes[..at]]);
            assert_eq!(heard, whole[..heard.len()], "{} at {at}", path.display());
            assert!(ignored <= 1);
        }
    }
}

#[test]
fn b_09_a_rejected_rate_limit_is_a_quota_and_a_warning_is_none() {
    let claude = profile("claude");
    let event = |status: &str| {
        let info =
            json!({"status": status, "resetsAt": 1_794_823_200, "rateLimitType": "five_hour"});
        let line = json!({"type": "rate_limit_event", "rate_limit_info": info}).to_string();
        decoded(&claude, &[line.as_bytes()]).0
    };
    assert_eq!(event("allowed"), []);
    assert_eq!(event("allowed_warning"), []);
    let until = Time::parse("2026-11-16T10:00:00Z");
    assert_eq!(event("rejected"), [Heard::Quota { until, message: String::new(), ends: false }]);
}

#[test]
fn a_message_that_is_counted_twice_counts_once_and_the_end_decides() {
    let claude = profile("claude");
    let message = |id: &str, output: u64| {
        let usage = json!({"input_tokens": 10, "output_tokens": output});
        json!({"type": "assistant", "message": {"id": id, "content": [], "usage": usage}})
    };
    let mut meter = Meter::default();
    let mut count = |document: serde_json::Value| {
        decode(&claude, &document, &wall(), &mut |it| {
            if let Heard::Usage(count) = it {
                meter.take(&count);
            }
        });
        meter.usage(&claude, Totals::default()).map(|usage| usage.tokens)
    };
    assert_eq!(count(message("a", 1)), Some(11));
    assert_eq!(count(message("a", 5)), Some(15));
    assert_eq!(count(message("b", 1)), Some(26));
    let usage = json!({"input_tokens": 20, "output_tokens": 70});
    assert_eq!(count(json!({"type": "result", "is_error": false, "usage": usage})), Some(90));
}

#[test]
fn a_resumed_session_is_not_paid_for_twice() {
    for (name, tokens, micros) in [("codex", 1580, 3300), ("claude", 1580, 8900)] {
        let profile = profile(name);
        let total = |file: &str| {
            let mut meter = Meter::default();
            let path = format!("../../fixtures/streams/{name}-{file}.jsonl");
            let bytes = fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
            for it in decoded(&profile, &[&bytes]).0 {
                if let Heard::Usage(count) = it {
                    meter.take(&count);
                }
            }
            meter
        };
        let first = if name == "codex" { "tool" } else { "text" };
        let before = total(first).totals().expect("a total");
        let usage = total("resume").usage(&profile, before).expect("a count");
        assert_eq!((usage.tokens, usage.money.0), (tokens, micros), "{name}");
    }
}

#[test]
fn what_is_no_document_is_counted_and_left_out() {
    let codex = profile("codex");
    let deep = format!("{}1{}", "{\"a\":".repeat(70), "}".repeat(70));
    let long = format!("{{\"type\":\"{}\"}}", "x".repeat(LINE));
    let stream = format!(
        "warning: hot\n\n{deep}\n{long}\n[1]\n{{\"type\":\"thread.started\",\"thread_id\":\"t-1\"}}\r\n\u{0}\n\
         {{\"type\":\"thread.started\",\"thread_id\":\"--dangerous\"}}\n"
    );
    let (heard, ignored) = decoded(&codex, &[stream.as_bytes()]);
    assert_eq!(heard, [Heard::Session { id: "t-1".into() }]);
    assert_eq!(ignored, 5);
    assert_eq!(depth(br#"{"a":"{[\"{[","b":[{}]}"#), 3);
}

proptest! {
    #[test]
    fn noise_breaks_nothing(noise in proptest::collection::vec(any::<u8>(), 0..400), at in 0usize..400) {
        let profile = profile("claude");
        let (left, right) = noise.split_at(at.min(noise.len()));
        prop_assert_eq!(decoded(&profile, &[left, right]), decoded(&profile, &[&noise]));
    }
}
