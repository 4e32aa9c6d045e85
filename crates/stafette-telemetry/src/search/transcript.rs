//! The words of a terminal recording, without escape sequences.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;
use stafette_core::HandoffId;
use stafette_core::clean::unescaped;
use stafette_core::redact::Redactor;
use stafette_engine::Seen;
use stafette_store::{FindError, Finder, Text};
use tokio::task::spawn_blocking;

/// Maximum size that is read in one step, in bytes.
const MOST: u64 = 8 << 20;
/// Size of the pieces that a text is split into, in bytes, so that hits are precise.
const PIECE: usize = 16 * 1024;

/// Text of a recording between two offsets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shown {
    /// The text, without escape sequences.
    pub text: String,
    /// Offset where reading began, in bytes.
    pub from: u64,
    /// Offset where the next read begins, in bytes.
    pub to: u64,
}

/// Returns the text of a recording since offset `known`; `None` if there is no recording.
pub fn shown_since(path: &Path, known: u64) -> Option<Shown> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().map_or(0, |file| file.len());
    // A recording that became shorter is a new one.
    let from = Some(known).filter(|known| *known <= length).unwrap_or(0);
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from)).ok()?;
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    // Up to the last complete line; the rest is read next time.
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    Some(Shown { text: unescaped(&printed(&bytes[..whole])), from, to: from + whole as u64 })
}

/// Adds the text of a recording since the last read.
pub(super) async fn take_in(
    finder: &dyn Finder,
    seen: &Seen,
    handoff: HandoffId,
    agent: &str,
    path: PathBuf,
    redactor: &Redactor,
) -> Result<(), FindError> {
    let name = format!("{}/{agent}", seen.run);
    let known = finder.read_of(name.clone()).await?;
    let shown = spawn_blocking(move || shown_since(&path, known)).await;
    // A recording that cannot be read is skipped.
    let Some(Shown { text, to, .. }) = shown.ok().flatten() else { return Ok(()) };
    // Without escape sequences, what stood apart in the recording may be a secret.
    let texts: Vec<Text> = pieces(&redactor.text(&text))
        .map(|piece| Text {
            run: seen.run,
            seq: seen.seq(),
            handoff: Some(handoff),
            at: seen.at(),
            kind: "transcript".into(),
            who: agent.to_owned(),
            body: piece.to_owned(),
        })
        .collect();
    match texts.is_empty() {
        true => Ok(()),
        false => finder.add_of(name, to, texts).await,
    }
}

/// Returns the output of the events of an asciicast.
fn printed(lines: &[u8]) -> String {
    let mut all = String::new();
    for line in lines.split(|byte| *byte == b'\n') {
        let Ok(Value::Array(event)) = serde_json::from_slice(line) else { continue };
        if let [_, kind, Value::String(text)] = &event[..]
            && kind == "o"
        {
            all.push_str(text);
        }
    }
    all
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let piece;
        (piece, rest) = rest.split_at(rest.floor_char_boundary(PIECE));
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_17_the_words_of_a_terminal_are_found_without_its_colours() {
        let lines = b"{\"version\":2}\n[0.1,\"o\",\"\\u001b[1mHel\\u001b[0mlo\\u001b[3;4Hwor\"]\n\
            [0.2,\"i\",\"secret\"]\n[0.3,\"o\",\"ld\\u001b]0;title\\u0007!\\r\\n\"]\n";
        assert_eq!(unescaped(&printed(lines)), "Hello world!\n");
        assert_eq!(pieces(&"é".repeat(PIECE)).map(str::len).sum::<usize>(), 2 * PIECE);
    }
}
