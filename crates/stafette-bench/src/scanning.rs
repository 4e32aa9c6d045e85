//! Measures the speed of finding frames in an agent's output, beside a plain search for their
//! beginning.

use std::time::{Duration, Instant};

use memchr::memmem::Finder;
use stafette_core::wire::frame::{Found, Scanner, Word};

use crate::sample::rate;
use crate::{BenchError, Scanning};

/// The most bytes that one read of an agent's output returns.
const READ: usize = 16 * 1024;

/// The least and the most to search, in bytes.
const BYTES: (usize, usize) = (64 << 10, 8 << 20);

/// The number of times that the scanner and the search alternate; the best of each counts.
const TURNS: u32 = 5;

const TEXT: &str = "The tests pass again. Two of them took the clock from the machine, so they \
                    failed around midnight; they are given the time now, as the others are.\n";

const CODE: &str = "fn first<T: Into<Vec<u8>>>(all: &[T]) -> Option<&T> { \
                    if all.len() < 1 << 3 { all.iter().find::<_>(|x| x < &y) } else { None } }\n";

const FRAME: &str = "<<<ODEI:HANDOFF:{\"to\":\"fixer\",\"reason\":\"task_handoff\",\"summary\":\
                     \"Two findings in src/login.rs, both about expiry.\",\"outputs\":{\"commit\":\
                     \"00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee\",\"tests\":true}}>>>\n";

pub(crate) fn measure(handoffs: u32) -> Result<Vec<Scanning>, BenchError> {
    let bytes = (handoffs as usize).saturating_mul(4096).clamp(BYTES.0, BYTES.1);
    [("text", TEXT), ("code", CODE), ("frames", FRAME)]
        .into_iter()
        .map(|(name, line)| one(name, line, bytes))
        .collect()
}

fn one(name: &'static str, line: &str, bytes: usize) -> Result<Scanning, BenchError> {
    let lines = (bytes / line.len()).max(1);
    let output = line.repeat(lines);
    let finder = Finder::new("<<<ODEI:");
    let (mut scanner, mut search) = (Duration::MAX, Duration::MAX);
    let (mut frames, mut hits) = (0, 0);
    for _ in 0..TURNS {
        let begin = Instant::now();
        frames = scan(output.as_bytes())?;
        scanner = scanner.min(begin.elapsed());
        let begin = Instant::now();
        hits = finder.find_iter(output.as_bytes()).count() as u64;
        search = search.min(begin.elapsed());
    }
    if frames != hits {
        return Err(format!("{frames} of {hits} frames were found in {name}").into());
    }
    let megabytes = |within| rate(output.len() as u64, within) / 1e6;
    let (scanner_mb_per_second, memmem_mb_per_second) = (megabytes(scanner), megabytes(search));
    Ok(Scanning {
        name,
        bytes: output.len() as u64,
        frames,
        scanner_mb_per_second,
        memmem_mb_per_second,
        to_memmem: scanner_mb_per_second / memmem_mb_per_second,
    })
}

fn scan(output: &[u8]) -> Result<u64, BenchError> {
    let mut scanner = Scanner::new(Word::default());
    let (mut frames, mut malformed) = (0, 0);
    let mut count = |found| match found {
        Found::Frame { .. } => frames += 1,
        Found::Malformed { .. } => malformed += 1,
    };
    for read in output.chunks(READ) {
        scanner.scan(read, &mut count);
    }
    scanner.finish(&mut count);
    if malformed > 0 { Err("a frame was not understood".into()) } else { Ok(frames) }
}
