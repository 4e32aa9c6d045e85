//! The connections that read.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::address::Address;
use super::fault::PostgresError;
use super::link::Link;
use crate::Reply;

/// A pool of connections, opened on demand.
#[derive(Debug)]
pub(super) struct Pool {
    address: Address,
    patience: Duration,
    size: u32,
    seats: Semaphore,
    idle: Mutex<Vec<Link>>,
}

impl Pool {
    pub(super) fn new(address: Address, size: usize, patience: Duration) -> Self {
        let size = u32::try_from(size).unwrap_or(u32::MAX).clamp(1, 64);
        let seats = Semaphore::new(size as usize);
        Pool { address, patience, size, seats, idle: Mutex::default() }
    }

    /// Runs a query, and repeats it if the connection was lost. An unfinished query closes its
    /// connection.
    pub(super) async fn read<T>(
        &self,
        within: Duration,
        query: impl for<'a> Fn(&'a mut Link) -> Reply<'a, Result<T, PostgresError>> + Send + Sync,
    ) -> Result<T, PostgresError> {
        let _seat = self.seats.acquire().await.map_err(|_| PostgresError::Closed)?;
        let deadline = Instant::now() + self.patience;
        loop {
            let mut link = match self.waiting() {
                Some(link) => link,
                None => Link::open(&self.address, deadline).await?,
            };
            let silent =
                |_| PostgresError::Silent { place: self.address.to_string(), after: within };
            match timeout(within, query(&mut link)).await.map_err(silent)? {
                Ok(answer) => {
                    self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(link);
                    return Ok(answer);
                }
                Err(trouble) if trouble.is_lost() && Instant::now() < deadline => {}
                Err(trouble) => return Err(trouble),
            }
        }
    }

    /// Returns the address, without the password.
    pub(super) fn place(&self) -> String {
        self.address.to_string()
    }

    fn waiting(&self) -> Option<Link> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|link| !link.is_closed());
        idle.pop()
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
