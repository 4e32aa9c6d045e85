//! Long frames in real terminals, drawn in the ways that programs draw: each is one handoff, and
//! its payload is whole.

use std::fmt::Write;
use std::fs;
use std::time::Duration;

use stafette_agents::terminal::{Setup, Terminals};
use stafette_agents::{Signal, start_in};
use stafette_core::workflow::{PromptVia, Runner};
use tokio::task::JoinSet;

use crate::world::{World, next};

const WIDTHS: [u16; 7] = [40, 60, 80, 100, 120, 160, 200];

/// Enough for the longest frame in the narrowest terminal.
const ROWS: u16 = 96;

/// The lengths of the payloads, in characters.
const LENGTHS: [usize; 7] = [20, 66, 140, 300, 600, 1000, 1500];

/// Longer than any turn here.
const FOREVER: Duration = Duration::from_secs(1000);

/// The prompt of a program that draws, below whatever it says.
const PROMPT: &str = "────❯";

/// A summary of so many letters.
type Summary = fn(usize) -> String;

/// Numbers below `limit` without a pattern: a row that is seen twice must not look like another.
fn numbers(limit: usize) -> impl Iterator<Item = usize> {
    let next = |state: &u64| state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    let states = std::iter::successors(Some(6_u64), move |state| Some(next(state)));
    states.map(move |state| usize::try_from(state >> 33).unwrap() % limit)
}

/// Ordinary words. Where a row happens to be full, nobody can tell from a frame of two rows whether a
/// word was cut there; these do not meet in that way.
fn words(length: usize) -> String {
    let words = ["the", "parser", "reads", "a", "src/net/retry.rs", "well-known", "file", "of"];
    let mut text = String::new();
    for word in numbers(words.len()).map(|at| words[at]) {
        if text.len() + word.len() + 2 >= length {
            break;
        }
        write!(text, "{word} ").unwrap();
    }
    text + &"x".repeat(3)
}

/// One word, without any place to break.
fn one_word(length: usize) -> String {
    let letters: Vec<char> = ('a'..='z').collect();
    numbers(letters.len()).map(|at| letters[at]).take(length).collect()
}

/// Letters that take two columns, with a narrow one here and there.
fn wide(length: usize) -> String {
    let letters = ['漢', '字', '世', '界', '日', 'e', '本', '語', '🦀', 'x', '道'];
    numbers(letters.len()).map(|at| letters[at]).take(length).collect()
}

fn columns_of(letter: char) -> usize {
    if letter >= '\u{2e80}' { 2 } else { 1 }
}

/// Cuts a text into rows of at most `width` columns, wherever that is.
fn cut(text: &str, width: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    let mut used = 0;
    for letter in text.chars() {
        if used + columns_of(letter) > width {
            rows.push(String::new());
            used = 0;
        }
        rows.last_mut().unwrap().push(letter);
        used += columns_of(letter);
    }
    rows
}

/// Wraps a text between words, as most programs do; a word that is longer than a row is cut.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut rows: Vec<String> = vec![String::new()];
    let size = |text: &str| text.chars().map(columns_of).sum::<usize>();
    for word in text.split(' ') {
        let row = rows.last_mut().unwrap();
        if !row.is_empty() && size(row) + 1 + size(word) <= width {
            row.push(' ');
            row.push_str(word);
            continue;
        }
        if row.is_empty() {
            rows.pop();
        }
        rows.extend(cut(word, width));
    }
    rows
}

/// The pieces in which a frame is written.
type Drawing = fn(&str, usize) -> Vec<String>;

fn raw(frame: &str, _: usize) -> Vec<String> {
    let (begin, end) = frame.split_at(frame.floor_char_boundary(frame.len() / 2));
    vec!["I am done. ".into(), begin.into(), format!("\x1b[1m{end}\x1b[0m\n")]
}

/// Row by row with the cursor, a prompt below, and back to it after each row.
fn placed(rows: &[String], column: usize) -> Vec<String> {
    let prompt = format!("\x1b[{ROWS};1H\x1b[2K{PROMPT}");
    let draw = |(at, row): (usize, &String)| format!("\x1b[{};{column}H{row}{prompt}", at + 1);
    rows.iter().enumerate().map(draw).collect()
}

fn cut_and_placed(frame: &str, columns: usize) -> Vec<String> {
    placed(&cut(frame, columns), 1)
}

fn cut_with_margins(frame: &str, columns: usize) -> Vec<String> {
    placed(&cut(frame, columns - 4), 3)
}

fn wrapped_and_placed(frame: &str, columns: usize) -> Vec<String> {
    placed(&wrap(frame, columns - 2), 3)
}

/// Line by line with an indent, as programs do that know no cursor.
fn lines(frame: &str, columns: usize) -> Vec<String> {
    wrap(frame, columns - 2).iter().map(|row| format!("  {row}\n")).collect()
}

fn boxed(frame: &str, columns: usize) -> Vec<String> {
    let inner = columns - 4;
    let rule = "─".repeat(columns - 2);
    let mut drawn = format!("╭{rule}╮\n");
    for row in wrap(frame, inner) {
        let blank = inner - row.chars().map(columns_of).sum::<usize>();
        writeln!(drawn, "│ {row}{} │", " ".repeat(blank)).unwrap();
    }
    vec![drawn, format!("╰{rule}╯\n{PROMPT}")]
}

/// As it comes: all of it is erased and drawn anew whenever there is more.
fn streamed(frame: &str, columns: usize) -> Vec<String> {
    let letters: Vec<char> = frame.chars().collect();
    let mut above = 0;
    let mut pieces = Vec::new();
    let step = letters.len() / 8 + 1;
    for end in (step..letters.len() + step).step_by(step) {
        let said: String = letters[..end.min(letters.len())].iter().collect();
        let rows = wrap(&said, columns - 2);
        let erase = "\x1b[2K\x1b[1A".repeat(above);
        let text = format!("⏺ {}", rows.join("\n  "));
        let rule = "─".repeat(columns);
        pieces.push(format!("{erase}\x1b[2K\x1b[G{text}\n{rule}\n{PROMPT}"));
        above = rows.len() + 1;
    }
    pieces
}

/// Drawn over itself, one row further up each time.
fn moved(frame: &str, columns: usize) -> Vec<String> {
    let rows = wrap(frame, columns - 2);
    let mut pieces = Vec::new();
    for top in (1..=5).rev() {
        for (at, row) in rows.iter().enumerate() {
            pieces.push(format!("\x1b[{};1H\x1b[2K  {row}", top + at));
        }
        let below = top + rows.len();
        pieces.push(format!("\x1b[{below};1H\x1b[0J\x1b[{ROWS};1H{PROMPT}"));
    }
    pieces
}

const DRAWINGS: [(&str, Drawing); 8] = [
    ("raw", raw),
    ("cut_and_placed", cut_and_placed),
    ("cut_with_margins", cut_with_margins),
    ("wrapped_and_placed", wrapped_and_placed),
    ("lines", lines),
    ("boxed", boxed),
    ("streamed", streamed),
    ("moved", moved),
];

/// The handoffs of a program that draws these summaries in a terminal of this width, and then does
/// what `last` says.
async fn handed_over(
    width: u16,
    drawing: Drawing,
    summaries: &[String],
    (last, quiet): (&str, Duration),
) -> Vec<String> {
    let world = World::new();
    let folder = world.work().join("drawing");
    fs::create_dir(&folder).unwrap();
    let mut pieces = 0;
    for summary in summaries {
        let frame = format!(r#"<<<ODEI:HANDOFF:{{"to":"reviewer","summary":"{summary}"}}>>>"#);
        let clear = "\x1b[H\x1b[2J".to_owned();
        for piece in std::iter::once(clear).chain(drawing(&frame, width.into())) {
            fs::write(folder.join(format!("{pieces:06}")), piece).unwrap();
            pieces += 1;
        }
    }
    let mut job = world.job(Runner::Pty, "");
    let script = format!("for piece in drawing/*; do cat $piece; done; {last}");
    job.agent.command = ["sh", "-c", &script].map(str::to_owned).to_vec();
    job.agent.prompt_via = PromptVia::Argument;
    let setup = Setup { size: (width, ROWS), quiet, unquiet: FOREVER, ..Setup::default() };
    let terminals = Terminals::new().with_setup(setup);
    let mut session = start_in(job, &terminals);
    let offers = loop {
        match next(&mut session.signals).await {
            Some(Signal::Finished(result)) => break result.offers,
            Some(Signal::Failed { failure, .. }) => panic!("{failure:?}"),
            Some(_) => {}
            None => panic!("it ended without a result"),
        }
    };
    terminals.end_all().await;
    offers.into_iter().map(|offer| offer.summary).collect()
}

async fn every_frame_is_one_handoff(summary: Summary) {
    let mut tries = JoinSet::new();
    let summaries: Vec<String> = LENGTHS.map(summary).to_vec();
    for width in WIDTHS {
        let summaries = summaries.clone();
        tries.spawn(async move {
            let mut wrong = Vec::new();
            for (name, drawing) in DRAWINGS {
                let heard = handed_over(width, drawing, &summaries, ("exit 0", FOREVER)).await;
                if heard != summaries {
                    wrong.push(format!("{name} in {width} columns: {heard:#?}"));
                }
            }
            wrong
        });
    }
    let wrong = tries.join_all().await.concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn s1_02_a_long_frame_of_words_is_one_handoff_however_it_is_drawn() {
    every_frame_is_one_handoff(words).await;
}

#[tokio::test]
async fn s1_02_a_long_frame_of_one_word_is_one_handoff_however_it_is_drawn() {
    every_frame_is_one_handoff(one_word).await;
}

#[tokio::test]
async fn s1_02_a_long_frame_of_wide_letters_is_one_handoff_however_it_is_drawn() {
    every_frame_is_one_handoff(wide).await;
}

#[tokio::test]
async fn s1_02_a_long_frame_is_one_handoff_of_a_program_that_stays_at_its_prompt() {
    let stays = ("exec sleep 1000", Duration::from_millis(600));
    for (name, drawing) in DRAWINGS {
        let summary = [words(400)];
        assert_eq!(handed_over(80, drawing, &summary, stays).await, summary, "{name}");
    }
}
