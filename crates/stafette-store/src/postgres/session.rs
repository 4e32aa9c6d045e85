//! The connection that writes: it reconnects after a loss, and never writes anything twice.

use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

use super::address::Address;
use super::fault::PostgresError;
use super::link::Link;

/// Pause between two attempts after a lost connection or a taken lock.
const PAUSE: Duration = Duration::from_millis(20);

/// Advisory lock of a daemon: `STAF`, and the oid of the table, which no other store of the
/// database has.
const CLAIM: &str = "SELECT pg_try_advisory_lock(1398030662, 'store'::regclass::oid::int4)";

/// A write in one transaction.
pub(super) trait Deed: Send {
    /// Result of the write.
    type Done: Send;

    /// Writes it in one transaction.
    fn write(
        &mut self,
        link: &mut Link,
    ) -> impl Future<Output = Result<Self::Done, PostgresError>> + Send;

    /// Returns the result if the write took place; asked on a new connection after one was lost in
    /// [`write`](Self::write).
    fn landed(
        &mut self,
        link: &mut Link,
    ) -> impl Future<Output = Result<Option<Self::Done>, PostgresError>> + Send;
}

/// The connection of a writer.
#[derive(Debug)]
pub(super) struct Session {
    address: Address,
    patience: Duration,
    /// True if only one daemon may use the database.
    claims: bool,
    link: Option<Link>,
}

impl Session {
    pub(super) fn new(address: Address, patience: Duration, claims: bool, link: Link) -> Self {
        Session { address, patience, claims, link: Some(link) }
    }

    /// Writes exactly once: if the connection is lost during the write, the next one checks whether
    /// it took place before it is repeated.
    pub(super) async fn carry_out<D: Deed>(
        &mut self,
        deed: &mut D,
    ) -> Result<D::Done, PostgresError> {
        let deadline = Instant::now() + self.patience;
        let mut begun = false;
        loop {
            let trouble = match self.attempt(deed, &mut begun, deadline).await {
                Ok(done) => return Ok(done),
                Err(trouble) => trouble,
            };
            // The old connection's transaction may still be open: wait for its end.
            let again = trouble.is_lost() || (begun && trouble.is_busy());
            if !again {
                self.roll_back().await;
                return Err(trouble);
            }
            self.link = None;
            if Instant::now() + PAUSE >= deadline {
                let place = self.address.to_string();
                return Err(match begun {
                    true => PostgresError::Unsure { place, source: Box::new(trouble) },
                    false => trouble,
                });
            }
            sleep(PAUSE).await;
        }
    }

    /// Rolls the transaction back, and drops the connection if that fails.
    async fn roll_back(&mut self) {
        if let Some(link) = &self.link {
            let done = timeout(self.patience, link.plain("ROLLBACK")).await;
            if !matches!(done, Ok(Ok(()))) {
                self.link = None;
            }
        }
    }

    async fn attempt<D: Deed>(
        &mut self,
        deed: &mut D,
        begun: &mut bool,
        deadline: Instant,
    ) -> Result<D::Done, PostgresError> {
        let silent =
            PostgresError::Silent { place: self.address.to_string(), after: self.patience };
        let patience = self.patience;
        let work = async {
            let link = self.link(deadline).await?;
            if *begun && let Some(done) = deed.landed(link).await? {
                return Ok(done);
            }
            *begun = true;
            let done = deed.write(link).await;
            // After an error from the server, nothing was written.
            *begun = done.as_ref().is_err_and(PostgresError::is_lost);
            done
        };
        timeout(patience, work).await.unwrap_or(Err(silent))
    }

    /// Returns the connection, or a new one if the last was lost.
    async fn link(&mut self, deadline: Instant) -> Result<&mut Link, PostgresError> {
        let link = match self.link.take() {
            Some(link) if !link.is_closed() => link,
            _ => {
                let mut link = Link::open(&self.address, deadline).await?;
                if self.claims {
                    claim(&mut link, &self.address, deadline).await?;
                }
                link
            }
        };
        Ok(self.link.insert(link))
    }
}

/// Claims the database for this daemon. The lock of a crashed daemon may take a moment to expire.
pub(super) async fn claim(
    link: &mut Link,
    address: &Address,
    deadline: Instant,
) -> Result<(), PostgresError> {
    loop {
        let row = link.one(CLAIM, &[]).await?;
        if row.map_or(Ok(false), |row| row.try_get(0))? {
            return Ok(());
        }
        if Instant::now() + PAUSE >= deadline {
            return Err(PostgresError::Taken { place: address.to_string() });
        }
        sleep(PAUSE).await;
    }
}
