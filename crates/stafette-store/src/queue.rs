//! The line in front of a writer: all batches that wait are written together.

use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use crate::stats::Counters;
use crate::{AppendError, Batch};

/// The most batches in one commit.
const GROUP: usize = 256;

/// A group takes no further batch once it has this many bytes.
const GROUP_BYTES: usize = 4 << 20;

/// What a writer is asked to do.
pub(crate) enum Job<U> {
    Append(Box<Append>),
    /// Something else, between two groups.
    Upkeep(U),
    Stop(oneshot::Sender<()>),
}

/// A batch that waits to be written.
pub(crate) struct Append {
    pub(crate) batch: Batch,
    pub(crate) bytes: usize,
    pub(crate) answer: oneshot::Sender<Result<u64, AppendError>>,
}

/// Puts a batch into the line, and waits for what becomes of it.
pub(crate) async fn append<U>(
    jobs: &mpsc::Sender<Job<U>>,
    batch: Batch,
) -> Result<u64, AppendError> {
    batch.check()?;
    let (answer, answered) = oneshot::channel();
    let job = Job::Append(Box::new(Append { bytes: batch.bytes(), batch, answer }));
    jobs.send(job).await.map_err(|_| AppendError::Closed)?;
    answered.await.map_err(|_| AppendError::Closed)?
}

/// Has the writer stop once what is in the line is written.
pub(crate) async fn stop<U>(jobs: &mpsc::Sender<Job<U>>) {
    let (answer, answered) = oneshot::channel();
    if jobs.send(Job::Stop(answer)).await.is_ok() {
        // An error means that another caller's stop came first.
        let _ = answered.await;
    }
}

/// Takes what already waits, without waiting for more: a lone writer is never held up.
pub(crate) fn gather<U>(
    first: Append,
    jobs: &mut mpsc::Receiver<Job<U>>,
) -> (Vec<Append>, Option<Job<U>>) {
    let mut bytes = first.bytes;
    let mut group = vec![first];
    while group.len() < GROUP && bytes < GROUP_BYTES {
        match jobs.try_recv() {
            Ok(Job::Append(append)) => {
                bytes += append.bytes;
                group.push(*append);
            }
            Ok(other) => return (group, Some(other)),
            Err(_) => break,
        }
    }
    (group, None)
}

/// Tells everyone in a group what became of it.
pub(crate) fn answer(
    group: Vec<Append>,
    written: Result<Vec<Result<u64, AppendError>>, AppendError>,
    begun: Instant,
    counters: &Counters,
) {
    // An answer that nobody waits for is dropped: the batch is written all the same.
    match written {
        Ok(answers) => {
            let count = answers.iter().filter(|answer| answer.is_ok()).count() as u64;
            if count > 0 {
                counters.committed(count, begun.elapsed());
            }
            for (append, answer) in group.into_iter().zip(answers) {
                let _ = append.answer.send(answer);
            }
        }
        Err(error) => {
            // Also those that found a conflict: what they conflicted with may be gone again.
            for append in group {
                let _ = append.answer.send(Err(error.clone()));
            }
        }
    }
}
