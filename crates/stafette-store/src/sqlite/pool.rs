//! The connections that read.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::ground::Ground;
use super::{fault, open};
use crate::{BackendError, ReadError};

/// A pool of connections, opened on demand.
#[derive(Debug)]
pub(super) struct Pool {
    path: PathBuf,
    ground: Arc<Ground>,
    busy_timeout: Duration,
    size: u32,
    seats: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Pool {
    pub(super) fn new(
        path: PathBuf,
        ground: Arc<Ground>,
        size: usize,
        busy_timeout: Duration,
    ) -> Self {
        let size = u32::try_from(size).unwrap_or(u32::MAX).min(64);
        let seats = Arc::new(Semaphore::new(size as usize));
        Pool { path, ground, busy_timeout, size, seats, idle: Arc::default() }
    }

    /// Runs a query on a blocking thread.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, ReadError> {
        // A store that was closed because it is lost still says so.
        let closed = |_| match self.ground.noted() {
            Some(why) => ReadError::Lost { why: why.to_owned() },
            None => ReadError::Closed,
        };
        let seat = self.seats.clone().acquire_owned().await.map_err(closed)?;
        let (path, busy_timeout) = (self.path.clone(), self.busy_timeout);
        let idle = self.idle.clone();
        let task = spawn_blocking(move || {
            // Held to the end, even if the caller gave up: it limits the number of threads.
            let _seat = seat;
            let waiting = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let conn = match waiting {
                Some(conn) => conn,
                None => open::reader(&path, busy_timeout)?,
            };
            let answer = query(&conn);
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
            answer
        });
        let answer = task.await;
        // A connection that was opened after the file was replaced reads another store.
        if let Some(why) = self.ground.lost() {
            return Err(ReadError::Lost { why: why.to_owned() });
        }
        match answer {
            Ok(answer) => answer.map_err(fault::read),
            Err(error) => Err(ReadError::Failed { source: BackendError::new(error) }),
        }
    }

    /// Waits for running queries, then closes every connection.
    pub(super) async fn close(&self) {
        // An error means that the pool is closed already.
        let seats = self.seats.acquire_many(self.size).await;
        self.seats.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        drop(seats);
    }
}
