//! The typed bytes, as the terminal sends them.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

/// The number of reads that may wait to be handled.
const QUEUE: usize = 16;

/// The number of bytes in one read.
const CHUNK: usize = 4096;

/// A read that returns empty sooner than this did not wait: the terminal is gone …
const AT_ONCE: Duration = Duration::from_millis(20);

/// … if it happens this often in a row.
const OFTEN: u32 = 20;

/// Ctrl-Q: the key that leaves the view.
pub(crate) const LEAVE: u8 = 0x11;

/// Ctrl-C: leaves as well, where keys do not go to an agent.
pub(crate) const STOP: u8 = 0x03;

/// The bytes typed into a [`super::Window`], read by a thread that ends with this.
#[derive(Debug)]
pub(crate) struct Keys {
    typed: Option<mpsc::Receiver<Vec<u8>>>,
    enough: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Keys {
    pub(crate) fn read() -> Self {
        let (sender, typed) = mpsc::channel(QUEUE);
        let enough = Arc::new(AtomicBool::new(false));
        let told = enough.clone();
        let reader = std::thread::spawn(move || {
            let mut buffer = vec![0; CHUNK];
            let mut empty = 0;
            while !told.load(Ordering::SeqCst) {
                let began = Instant::now();
                match io::stdin().lock().read(&mut buffer) {
                    Ok(0) if began.elapsed() > AT_ONCE => empty = 0,
                    Ok(0) if empty < OFTEN => empty += 1,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => break,
                    Ok(count) => {
                        empty = 0;
                        if sender.blocking_send(buffer[..count].to_vec()).is_err() {
                            break;
                        }
                    }
                }
            }
        });
        Keys { typed: Some(typed), enough, reader: Some(reader) }
    }

    /// Returns the next typed bytes; `None` when the terminal is gone.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        self.typed.as_mut()?.recv().await
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.enough.store(true, Ordering::SeqCst);
        // A reader that waits for room fails then.
        self.typed = None;
        if let Some(reader) = self.reader.take() {
            // It returns within a tenth of a second, and the next reader gets every key.
            let _ = reader.join();
        }
    }
}
