//! What redaction does to files that hold no secrets: how fast it is, and what it takes out.
//!
//! `cargo run --release -p stafette-text --example redaction -- FOLDER…`

#![allow(clippy::print_stdout, reason = "its output is its purpose")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use stafette_text::redact::Redactor;

/// Larger files are left out, in bytes.
const LARGEST: usize = 1 << 20;

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let is_made =
            ["target", "node_modules", ".git"].iter().any(|made| entry.file_name() == *made);
        match is_folder {
            true if is_made => {}
            true => collect(&entry.path(), files),
            false => files.push(entry.path()),
        }
    }
}

fn main() {
    let mut files = Vec::new();
    std::env::args().skip(1).for_each(|folder| collect(Path::new(&folder), &mut files));
    let texts: Vec<(PathBuf, String)> = files
        .into_iter()
        .filter_map(|path| Some((path.clone(), std::fs::read_to_string(path).ok()?)))
        .filter(|(_, text)| text.len() <= LARGEST)
        .collect();
    let size: usize = texts.iter().map(|(_, text)| text.len()).sum();
    let redactor = Redactor::new();
    let began = Instant::now();
    let clean: Vec<Cow<'_, str>> = texts.iter().map(|(_, text)| redactor.text(text)).collect();
    let took = began.elapsed().as_secs_f64();
    let megabytes = size as f64 / 1e6;
    println!("{} files, {megabytes:.1} MB, {:.0} MB/s", texts.len(), megabytes / took);
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for ((path, text), clean) in texts.iter().zip(&clean) {
        for (number, (was, is)) in text.lines().zip(clean.lines()).enumerate() {
            if was != is && !was.contains("[redacted:") {
                let kind = is.split("[redacted:").nth(1).and_then(|rest| rest.split(']').next());
                *kinds.entry(kind.unwrap_or_default().to_owned()).or_default() += 1;
                println!("{}:{}: {is}", path.display(), number + 1);
            }
        }
    }
    println!("{kinds:?}");
}
