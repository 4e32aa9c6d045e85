//! What is typed, as the terminal sends it.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

/// Reads that may wait to be handled.
const QUEUE: usize = 16;

/// How much is read at once.
const CHUNK: usize = 4096;

/// A read that comes back empty sooner than this did not wait: nobody is there any more …
const AT_ONCE: Duration = Duration::from_millis(20);

/// … if it happens so often in a row.
const OFTEN: u32 = 20;

/// Ctrl-q: the way out.
pub(crate) const LEAVE: u8 = 0x11;

/// Ctrl-c.
pub(crate) const STOP: u8 = 0x03;

/// What is typed into a [`super::Window`], read by a thread that ends with this.
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

    /// What is typed next; nothing when the terminal is gone.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        self.typed.as_mut()?.recv().await
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.enough.store(true, Ordering::SeqCst);
        // A reader that waits for room has none any more.
        self.typed = None;
        if let Some(reader) = self.reader.take() {
            // It comes back within a tenth of a second, and whoever reads next gets every key.
            let _ = reader.join();
        }
    }
}
