//! The reference: the rate that the disk allows a program that stores nothing but bytes.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::BenchError;

/// A file that is appended to and synced.
#[derive(Debug)]
pub(crate) struct PlainFile {
    file: File,
    appends: u64,
    took: Duration,
}

impl PlainFile {
    pub(crate) fn create(path: &Path) -> Result<Self, BenchError> {
        Ok(PlainFile { file: File::create(path)?, appends: 0, took: Duration::ZERO })
    }

    /// Appends that many bytes that many times, and syncs after each.
    pub(crate) async fn append(mut self, bytes: usize, times: u64) -> Result<Self, BenchError> {
        let work = move || {
            let line = vec![b'x'; bytes];
            let begin = Instant::now();
            for _ in 0..times {
                self.file.write_all(&line)?;
                self.file.sync_data()?;
            }
            self.took += begin.elapsed();
            self.appends += times;
            Ok(self)
        };
        tokio::task::spawn_blocking(work).await?
    }

    /// Returns the number of appends per second.
    pub(crate) fn per_second(&self) -> f64 {
        crate::sample::rate(self.appends, self.took)
    }
}
