use std::cell::Cell;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::os::unix::fs::symlink;

use serde_json::json;
use stafette_core::Usd;

use super::*;
use crate::profile::Library;

const SESSION: &str = "0a1b2c3d-0000-4000-8000-000000000001";

struct Home {
    folder: tempfile::TempDir,
    transcript: Transcript,
    turns: Cell<u32>,
}

impl Home {
    fn of(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let environment = [("HOME".into(), folder.path().into())];
        let library = Library::built_in();
        let profile = library.get(name).expect("a built-in profile");
        let ledgers = folder.path().join("ledgers");
        let transcript = Transcript::new(profile, &environment, ledgers, turn(0));
        Home { folder, transcript: transcript.expect("it has files"), turns: Cell::new(0) }
    }

    fn claude() -> (Self, PathBuf) {
        let home = Home::of("claude");
        let place = home.place(&format!(".claude/projects/-work/{SESSION}.jsonl"));
        (home, place)
    }

    fn place(&self, path: &str) -> PathBuf {
        let place = self.folder.path().join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        place
    }

    /// What the next turn in the session has used.
    fn read(&self) -> Option<Usage> {
        self.read_of(SESSION)
    }

    fn read_of(&self, session: &str) -> Option<Usage> {
        self.turns.set(self.turns.get() + 1);
        Transcript { turn: turn(self.turns.get()), ..self.transcript.clone() }.read(session)
    }
}

fn turn(number: u32) -> TurnKey {
    format!("{}/h1/1.{}", uuid::Uuid::nil(), number + 1).parse().expect("a turn")
}

fn add(place: &Path, text: &str) {
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).open(place).unwrap();
    io::Write::write_all(&mut file, text.as_bytes()).unwrap();
}

/// A message of Claude Code with these input and output tokens.
fn message(id: &str, input: u64, output: u64) -> String {
    let usage = json!({ "input_tokens": input, "output_tokens": output });
    let message = json!({ "id": id, "model": "claude-sonnet-4-5", "usage": usage });
    format!("{}\n", json!({ "type": "assistant", "message": message }))
}

fn tokens(usage: Option<Usage>) -> Option<u64> {
    usage.map(|usage| usage.tokens)
}

#[test]
fn b_05_each_message_is_counted_once_and_priced_as_an_estimate() {
    let (home, place) = Home::claude();
    assert_eq!(home.read(), None, "there is no file yet");
    add(&place, "{\"type\":\"user\"}\n");
    assert_eq!(home.read(), None, "nothing was used");
    // One message comes on several lines, and others between them.
    add(&place, &(message("a", 100, 1) + &message("b", 10, 5) + &message("a", 100, 20)));
    let money = Usd(330 + 375);
    let expected = Usage { estimated: money, ..Usage::exactly(135, money) };
    assert_eq!(home.read(), Some(expected));
    assert_eq!(home.read(), None, "nothing was added");
    // The last line of a message may come after the turn.
    add(&place, &(message("a", 100, 30) + &message("c", 1, 1)));
    assert_eq!(tokens(home.read()), Some(12));
}

#[test]
fn b_05_a_line_that_is_being_written_counts_when_it_is_whole() {
    let (home, place) = Home::claude();
    let (whole, cut) = (message("a", 10, 1), message("b", 20, 2));
    let (first, rest) = cut.split_at(cut.len() / 2);
    add(&place, &(whole + first));
    assert_eq!(tokens(home.read()), Some(11));
    assert_eq!(home.read(), None);
    add(&place, rest);
    assert_eq!(tokens(home.read()), Some(22));
}

#[test]
fn b_05_other_sessions_in_the_same_folder_do_not_count_and_subagents_do() {
    let (home, place) = Home::claude();
    add(&place, &message("a", 10, 1));
    let other = SESSION.replace("0001", "0002");
    add(&place.with_file_name(format!("{other}.jsonl")), &message("b", 500, 1));
    let sub = home.place(&format!(".claude/projects/-work/{SESSION}/subagents/agent-1.jsonl"));
    add(&sub, &message("c", 30, 3));
    assert_eq!(tokens(home.read()), Some(44));
    assert_eq!(tokens(home.read_of(&other)), Some(501));
    for id in ["", "..", "*", "../x", "a/b"] {
        assert!(!is_id(id) && home.read_of(id).is_none(), "{id}");
    }
}

#[test]
fn b_05_turns_that_alternate_between_two_sessions_pay_each_message_once() {
    let (home, first) = Home::claude();
    let other = SESSION.replace("0001", "0002");
    let second = first.with_file_name(format!("{other}.jsonl"));
    add(&first, &message("a", 10, 1));
    add(&second, &message("b", 20, 2));
    assert_eq!(tokens(home.read()), Some(11));
    assert_eq!(tokens(home.read_of(&other)), Some(22));
    add(&first, &message("c", 30, 3));
    assert_eq!(tokens(home.read()), Some(33));
    assert_eq!(home.read_of(&other), None, "nothing was added");
}

#[test]
fn b_05_a_turn_that_is_delivered_again_has_used_what_its_lost_result_had_counted() {
    let (home, place) = Home::claude();
    add(&place, &message("a", 10, 1));
    assert_eq!(tokens(home.transcript.read(SESSION)), Some(11));
    // The daemon died before it had stored that.
    add(&place, &message("b", 20, 2));
    assert_eq!(tokens(home.transcript.read(SESSION)), Some(33));
    add(&place, &message("c", 30, 3));
    assert_eq!(tokens(home.read()), Some(33), "the next turn");
}

#[test]
fn b_05_a_file_that_was_replaced_makes_the_turn_unknown() {
    let (home, place) = Home::claude();
    add(&place, &(message("a", 10, 1) + &message("b", 10, 1)));
    assert_eq!(tokens(home.read()), Some(22));
    fs::write(&place, message("c", 5, 1)).unwrap();
    assert_eq!(home.read(), Some(Usage::unknown()), "it is shorter");
    add(&place, &message("d", 7, 1));
    assert_eq!(tokens(home.read()), Some(8), "and goes on from there");
    let other = place.with_extension("new");
    fs::write(&other, message("e", 5, 1).repeat(9)).unwrap();
    fs::rename(&other, &place).unwrap();
    assert_eq!(home.read(), Some(Usage::unknown()), "it is another file");
}

#[test]
fn b_05_a_link_a_pipe_and_a_folder_are_not_read() {
    let (home, place) = Home::claude();
    let secret = home.place("secret.jsonl");
    add(&secret, &message("a", 10, 1));
    symlink(&secret, &place).unwrap();
    assert_eq!(home.read(), Some(Usage::unknown()));
    fs::remove_file(&place).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &place, mode).unwrap();
    assert_eq!(home.read(), Some(Usage::unknown()));
    fs::remove_file(&place).unwrap();
    fs::create_dir(&place).unwrap();
    assert_eq!(home.read(), Some(Usage::unknown()));
}

#[test]
fn b_05_of_a_huge_file_only_a_part_is_read_and_the_rest_is_unknown() {
    let (home, place) = Home::claude();
    add(&place, &message("a", 10, 1));
    let file = OpenOptions::new().write(true).open(&place).unwrap();
    file.set_len(READ + 1).unwrap();
    let usage = home.read().expect("a part of it");
    assert_eq!((usage.tokens, usage.unknown), (11, Unknown::TURN));
    add(&place, &(String::from("\n") + &message("b", 5, 1)));
    assert_eq!(tokens(home.read()), Some(6), "and goes on after it");
}

#[test]
fn b_05_a_session_that_counts_all_turns_together_is_not_paid_for_twice() {
    let home = Home::of("codex");
    let place = home.place(&format!(".codex/sessions/2026/11/18/rollout-x-{SESSION}.jsonl"));
    let count = |input: u64, cached: u64, output: u64| {
        let total = json!({
            "input_tokens": input, "cached_input_tokens": cached, "output_tokens": output,
        });
        let payload = json!({ "type": "token_count", "info": { "total_token_usage": total } });
        format!("{}\n", json!({ "type": "event_msg", "payload": payload }))
    };
    let mut text = String::new();
    let model = json!({ "type": "turn_context", "payload": { "model": "gpt-5-mini" } });
    let _ = writeln!(text, "{model}");
    add(&place, &(text + &count(150, 50, 20) + &count(300, 100, 40) + &count(300, 100, 40)));
    let usage = home.read().expect("a count");
    assert_eq!((usage.tokens, usage.unknown), (240, Unknown::default()));
    assert_eq!(usage.money, usage.estimated);
    add(&place, &count(450, 150, 60));
    assert_eq!(tokens(home.read()), Some(120));
}

#[test]
fn a_name_fits_a_pattern_with_any_text_between() {
    let fits = |pattern: &str, name: &str| super::fits(pattern, OsStr::new(name));
    assert!(
        fits("*", "a") && fits("a*c", "abc") && fits("a*", "a") && fits("*-x.jsonl", "r-1-x.jsonl")
    );
    assert!(!fits("a*c", "abd") && !fits("ab*b", "ab") && !fits("a", "ab") && !fits("*x*y", "y-x"));
}
