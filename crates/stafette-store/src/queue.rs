//! The queue of a writer: all waiting batches are written together.

use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use crate::stats::Counters;
use crate::{AppendError, Batch};

/// Maximum number of batches in one commit.
const GROUP: usize = 256;

/// Size after which a group takes no further batch, in bytes.
const GROUP_BYTES: usize = 4 << 20;

/// A request to the writer.
pub(crate) enum Job<U> {
    Append(Box<Append>),
    /// Any other work, done between two groups.
    Upkeep(U),
    Stop(oneshot::Sender<()>),
}

/// A batch that waits to be written.
pub(crate) struct Append {
    pub(crate) batch: Batch,
    pub(crate) bytes: usize,
    pub(crate) answer: oneshot::Sender<Result<u64, AppendError>>,
}

/// Queues a batch, and waits for its result.
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

/// Stops the writer once the queue is written.
pub(crate) async fn stop<U>(jobs: &mpsc::Sender<Job<U>>) {
    let (answer, answered) = oneshot::channel();
    if jobs.send(Job::Stop(answer)).await.is_ok() {
        // An error means that another caller stopped it first.
        let _ = answered.await;
    }
}

/// Takes the waiting batches, without waiting for more: a single writer is never delayed.
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

/// Sends each writer of a group its result.
pub(crate) fn answer(
    group: Vec<Append>,
    written: Result<Vec<Result<u64, AppendError>>, AppendError>,
    begun: Instant,
    counters: &Counters,
) {
    // A result that nobody waits for is dropped: the batch is written all the same.
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
            // Also to those with a conflict: the batch they conflicted with may have been rolled
            // back.
            for append in group {
                let _ = append.answer.send(Err(error.clone()));
            }
        }
    }
}
