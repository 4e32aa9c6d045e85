//! Starts a run once, however often it is requested.
//!
//! The key becomes the part of the run's id that is otherwise random, so that the store itself
//! remembers it: nothing is kept beside the runs, and a restart forgets nothing.

use std::sync::Arc;

use stafette_core::run::create::RunCreated;
use stafette_core::team::order::chance_of;
use stafette_core::{Event, RunId};
use tokio::sync::{Mutex, MutexGuard};
use uuid::{Builder, Uuid};

use crate::clock;
use crate::engine::parse;
use crate::{Engine, EngineError};

/// The number of locks that keys share: requests with different keys seldom wait for each other.
const LOCKS: usize = 64;

/// Keeps those apart that would otherwise both find that nothing has begun yet.
#[derive(Clone, Debug)]
pub(crate) struct Once {
    keys: Arc<[Mutex<()>]>,
    generations: Arc<Mutex<()>>,
}

impl Default for Once {
    fn default() -> Self {
        let keys = (0..LOCKS).map(|_| Mutex::default()).collect();
        Once { keys, generations: Arc::default() }
    }
}

impl Once {
    /// Waits until no other caller begins a generation, or leaves a note for one.
    pub(crate) async fn generation(&self) -> MutexGuard<'_, ()> {
        self.generations.lock().await
    }

    /// Waits until no other caller starts a run with this key.
    async fn key(&self, chance: [u8; 10]) -> MutexGuard<'_, ()> {
        self.keys[usize::from(chance[0]) % LOCKS].lock().await
    }
}

impl Engine {
    /// Starts a run, unless `key` started one already. Returns the run's id, and whether it existed
    /// before. The trace context of the request does not count in that comparison.
    ///
    /// # Errors
    /// When the key started a run for another request, or the store fails to write.
    pub async fn start_keyed(
        &self,
        key: &str,
        created: RunCreated,
    ) -> Result<(RunId, bool), EngineError> {
        let name = format!("stafette:run:{key}");
        let chance = chance_of(Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes()));
        let now = u64::try_from(clock::now().0).unwrap_or(0);
        let run = RunId(Builder::from_unix_timestamp_millis(now, &chance).into_uuid());
        // A repeated request is compared with the stored one.
        let created = self.clean_start(RunCreated { run, ..created });
        if let Some(run) = self.repeated(chance, &created).await? {
            return Ok((run, true));
        }
        // The hooks are asked before other callers have to wait: hooks take their time.
        let alerts = self.ask(&created).await?;
        let _turn = self.once.key(chance).await;
        if let Some(run) = self.repeated(chance, &created).await? {
            return Ok((run, true));
        }
        Ok((self.begin_allowed(created, alerts).await?, false))
    }

    /// The run that a key started, if it was for the same request.
    async fn repeated(
        &self,
        chance: [u8; 10],
        wanted: &RunCreated,
    ) -> Result<Option<RunId>, EngineError> {
        let Some(run) = self.began(chance).await? else { return Ok(None) };
        let first = self.store().entries(run, 0, 1).await?;
        let first = first.first().ok_or(EngineError::NoRun { run: run.to_string() })?;
        let event: Event = parse(first.entry.seq, &first.entry.body)?;
        let same = matches!(event, Event::RunCreated(created)
                if created.request == wanted.request
                    && created.inputs == wanted.inputs
                    && created.by == wanted.by);
        match same {
            true => Ok(Some(run)),
            false => Err(EngineError::OtherRequest { run }),
        }
    }

    /// The run that a key started.
    async fn began(&self, chance: [u8; 10]) -> Result<Option<RunId>, EngineError> {
        let like = Builder::from_unix_timestamp_millis(0, &chance).into_uuid();
        let digits = like.simple().to_string();
        let found = self.store().find_run(digits[16..].to_owned()).await?;
        let is_it = |run: &RunId| run.0.as_bytes()[6..] == like.as_bytes()[6..];
        Ok(found.into_iter().find(is_it))
    }
}
