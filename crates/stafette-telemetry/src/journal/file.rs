//! The log files: each line is written exactly once, also after a crash.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use stafette_core::clean;

use crate::rotation::{Rotation, numbered, open};

/// Maximum size of the end of a file that is searched for the last line, in bytes.
const TAIL: u64 = 4 << 20;

/// The log, open for appending.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    bytes: u64,
    rotation: Rotation,
    last: u64,
}

impl Journal {
    /// Opens the log. Lines torn by a crash are removed, to be written again.
    ///
    /// # Errors
    /// When the file or its folder cannot be used.
    pub fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        stafette_disk::folder_of(path)?;
        let mut file = open(path)?;
        let (bytes, last) = mend(&mut file)?;
        let last = match last {
            Some(last) => last,
            // Just rotated: the last line is in the newest older file.
            None => match File::open(numbered(path, 1)) {
                Ok(mut older) => last_position(&mut older)?.unwrap_or(0),
                Err(_) => 0,
            },
        };
        Ok(Journal { path: path.to_owned(), file, bytes, rotation, last })
    }

    /// Returns the last position that has lines.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Resets the position: the events behind the lines are gone.
    pub fn begin_again(&mut self) {
        self.last = 0;
    }

    /// Writes the lines of one position, unless they are there already.
    pub fn write(&mut self, position: u64, lines: &[Value]) -> io::Result<()> {
        if position <= self.last || lines.is_empty() {
            return Ok(());
        }
        let mut text = String::new();
        for line in lines {
            text.push_str(&clean::json(line.to_string()));
            text.push('\n');
        }
        if self.rotation.is_due(self.bytes, text.len() as u64) {
            self.rotate()?;
        }
        self.file.write_all(text.as_bytes())?;
        self.bytes += text.len() as u64;
        self.last = position;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.file = self.rotation.begin_anew(&self.path)?;
        self.bytes = 0;
        Ok(())
    }
}

/// Removes a torn line, and the complete lines of the same event. Returns the length and the last
/// position.
fn mend(file: &mut File) -> io::Result<(u64, Option<u64>)> {
    let length = file.metadata()?.len();
    let tail = tail(file, length)?;
    let from = length - tail.len() as u64;
    if tail.is_empty() || tail.ends_with(b"\n") {
        return Ok((length, last_line(&tail)));
    }
    let mut whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let torn = last_line(&tail[..whole]);
    while whole > 0 && last_line(&tail[..whole]) == torn && torn.is_some() {
        let before = &tail[..whole - 1];
        whole = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    }
    file.set_len(from + whole as u64)?;
    let last = last_line(&tail[..whole]).or(torn.map(|torn| torn.saturating_sub(1)));
    Ok((from + whole as u64, last))
}

fn last_position(file: &mut File) -> io::Result<Option<u64>> {
    let length = file.metadata()?.len();
    Ok(last_line(&tail(file, length)?))
}

fn tail(file: &mut File, length: u64) -> io::Result<Vec<u8>> {
    let from = length.saturating_sub(TAIL);
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::new(file.take(TAIL));
    let mut tail = Vec::new();
    if from > 0 {
        // Skips the rest of a partial line.
        reader.read_until(b'\n', &mut tail)?;
        tail.clear();
    }
    reader.read_to_end(&mut tail)?;
    Ok(tail)
}

fn last_line(text: &[u8]) -> Option<u64> {
    let line = text.strip_suffix(b"\n")?.rsplit(|byte| *byte == b'\n').next()?;
    let line: Value = serde_json::from_slice(line).ok()?;
    line["context"]["position"].as_u64()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn line(position: u64, word: &str) -> Value {
        json!({ "event": word, "context": { "position": position } })
    }

    fn words(path: &Path) -> Vec<String> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let word = |line: &str| {
            let line: Value = serde_json::from_str(line).expect("JSON");
            line["event"].as_str().expect("a word").to_owned()
        };
        text.lines().map(word).collect()
    }

    #[test]
    fn s5_09_a_line_is_there_once_however_often_its_event_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("logs/events.jsonl");
        for _ in 0..2 {
            let mut journal = Journal::open(&path, Rotation::default()).expect("opened");
            journal.write(3, &[line(3, "a")]).expect("written");
            journal.write(5, &[line(5, "b"), line(5, "c")]).expect("written");
        }
        assert_eq!(words(&path), ["a", "b", "c"]);
    }

    #[test]
    fn b_17_characters_that_steer_a_terminal_are_written_as_escapes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.jsonl");
        let said = "\u{9b}2J \u{7f} \u{202e} ü";
        let mut journal = Journal::open(&path, Rotation::default()).expect("opened");
        journal.write(1, &[line(1, said)]).expect("written");
        let text = fs::read_to_string(&path).expect("a file");
        assert!(text.contains("\\u009b2J \\u007f \\u202e ü"), "{text}");
        assert_eq!(words(&path), [said], "it means the same");
    }

    #[test]
    fn s5_09_a_torn_line_is_written_again_with_those_of_its_event() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.jsonl");
        let mut journal = Journal::open(&path, Rotation::default()).expect("opened");
        journal.write(3, &[line(3, "a")]).expect("written");
        journal.write(5, &[line(5, "b"), line(5, "c")]).expect("written");
        let length = fs::metadata(&path).expect("a file").len();
        open(&path).expect("opened").set_len(length - 4).expect("torn");
        let mut journal = Journal::open(&path, Rotation::default()).expect("opened");
        assert_eq!((words(&path), journal.last()), (vec!["a".to_owned()], 3));
        journal.write(5, &[line(5, "b"), line(5, "c")]).expect("written");
        assert_eq!(words(&path), ["a", "b", "c"]);
    }

    #[test]
    fn s5_09_the_log_is_put_aside_by_size_and_the_oldest_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.jsonl");
        let rotation = Rotation { bytes: 120, files: 2 };
        for position in 1..=20 {
            let mut journal = Journal::open(&path, rotation).expect("opened");
            assert_eq!(journal.last(), position - 1, "known over files");
            journal.write(position, &[line(position, &position.to_string())]).expect("written");
        }
        let mut all = words(&numbered(&path, 2));
        all.extend(words(&numbered(&path, 1)));
        all.extend(words(&path));
        assert_eq!(all.last().map(String::as_str), Some("20"));
        assert!(all.len() < 10 && !numbered(&path, 3).exists(), "{all:?}");
    }
}
