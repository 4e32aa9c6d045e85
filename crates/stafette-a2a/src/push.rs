//! Push notifications about the state of a task, also after a restart.
//!
//! Each subscription is a file, with the state that was last sent. One task per subscription reads
//! the file, checks the run, and posts each new state, again and again until it is accepted or its
//! time has run out.

mod book;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use a2a_types::{A2AError, StreamResponse, TaskPushNotificationConfig, TaskStatusUpdateEvent};
use stafette_core::RunId;
use stafette_engine::{Engine, EngineError};
use stafette_http::{Address, HttpRequest, is_public};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::ReadWorkflow;
use crate::task::{self, Extent};
use crate::watch::{self, mark};
use book::{Book, Entry};

/// Time limit of one post.
const WITHIN: Duration = Duration::from_secs(10);

/// First and longest wait between two attempts.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// Time after which a notification is dropped.
const DEADLINE: Duration = Duration::from_secs(600);

/// Maximum size of a response that is read, in bytes.
const ANSWER: usize = 64 * 1024;

/// Maximum number of subscriptions per task.
const MOST: usize = 16;

/// Maximum length of a token or other secret, in bytes.
const SECRET: usize = 4096;

/// Keeps the subscriptions, and sends notifications. Cheap to clone.
#[derive(Clone)]
pub(crate) struct PushNotifier {
    engine: Engine,
    workflow: Arc<ReadWorkflow>,
    book: Arc<Book>,
    /// Files of the subscriptions that are being served.
    rounds: Arc<Mutex<HashSet<PathBuf>>>,
}

impl PushNotifier {
    pub(crate) fn new(engine: Engine, workflow: Arc<ReadWorkflow>, folder: PathBuf) -> Self {
        let book = Arc::new(Book::new(folder));
        PushNotifier { engine, workflow, book, rounds: Arc::default() }
    }

    /// Resumes all stored subscriptions.
    pub(crate) fn resume(&self) {
        for (run, id) in self.book.all() {
            self.serve(run, id);
        }
    }

    /// Stores a subscription.
    pub(crate) async fn keep(
        &self,
        run: RunId,
        config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, A2AError> {
        self.check(&config).await?;
        let id = match config.id.clone().filter(|id| !id.is_empty()) {
            Some(id) if book::is_name(&id) => id,
            Some(_) => {
                return Err(A2AError::invalid_params("an id is up to 64 letters, digits, - and _"));
            }
            None => Uuid::now_v7().to_string(),
        };
        let others = self.book.of(run).into_iter().filter(|(known, _)| *known != id);
        if others.count() >= MOST {
            return Err(A2AError::invalid_params(format!("{MOST} are notified of it already")));
        }
        let config =
            TaskPushNotificationConfig { id: Some(id.clone()), task_id: run.to_string(), ..config };
        let entry = Entry { config: config.clone(), told: String::new() };
        let kept = self.book.write(run, &id, &entry);
        kept.map_err(|error| A2AError::internal(format!("it cannot be noted: {error}")))?;
        self.serve(run, id);
        Ok(config)
    }

    pub(crate) fn get(&self, run: RunId, id: &str) -> Result<TaskPushNotificationConfig, A2AError> {
        let entry = self.book.read(run, id);
        entry.map(|entry| entry.config).ok_or_else(|| A2AError::task_not_found(id))
    }

    pub(crate) fn list(&self, run: RunId) -> Vec<TaskPushNotificationConfig> {
        self.book.of(run).into_iter().map(|(_, entry)| entry.config).collect()
    }

    pub(crate) fn forget(&self, run: RunId, id: &str) -> Result<(), A2AError> {
        self.book
            .remove(run, id)
            .map_err(|error| A2AError::internal(format!("it cannot be forgotten: {error}")))
    }

    /// Starts a task that serves a subscription, unless one is running.
    fn serve(&self, run: RunId, id: String) {
        let place = self.book.place(run, &id);
        if !self.lock().insert(place.clone()) {
            return;
        }
        let notifier = self.clone();
        tokio::spawn(async move {
            notifier.round(run, &id).await;
            notifier.lock().remove(&place);
            // The subscription may have been changed in the very moment in which it was finished.
            if notifier.book.read(run, &id).is_some_and(|entry| entry.told.is_empty()) {
                notifier.serve(run, id);
            }
        });
    }

    /// Serves a subscription until its task has ended or it is removed.
    async fn round(&self, run: RunId, id: &str) {
        let Ok(head) = self.engine.store().head().await else { return };
        let mut feed = self.engine.feed(head);
        loop {
            let Some(entry) = self.book.read(run, id) else { return };
            let state = match self.engine.state(run).await {
                Ok(state) => state,
                Err(EngineError::NoRun { .. }) => {
                    // The run was removed by retention.
                    drop(self.book.remove(run, id));
                    return;
                }
                // The subscription stays: the next start resumes it.
                Err(_) => return,
            };
            let status = task::status(&state);
            let now = mark(&status);
            if now != entry.told && !self.tell(run, id, &entry, &now).await {
                return;
            }
            if status.state.is_terminal() || !watch::changed(&mut feed, run).await {
                return;
            }
        }
    }

    /// Posts the state of the task until it is accepted, and records that. Returns false if the
    /// subscription is gone.
    async fn tell(&self, run: RunId, id: &str, entry: &Entry, now: &str) -> bool {
        let until = Instant::now() + DEADLINE;
        let mut pause = PAUSE.0;
        let Ok(task) = task::task(&self.engine, run, Extent::whole()).await else { return false };
        let event = match task.status.state.is_terminal() {
            true => StreamResponse::Task(task),
            false => StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
                task_id: task.id,
                context_id: task.context_id,
                status: task.status,
                metadata: None,
            }),
        };
        let Ok(body) = serde_json::to_vec(&event) else { return false };
        loop {
            match self.post(&entry.config, body.clone()).await {
                Ok(()) => break,
                Err(why) if Instant::now() + pause > until => {
                    tracing::warn!(%run, id, why, "a notification is given up");
                    break;
                }
                Err(why) => tracing::debug!(%run, id, why, "a notification is tried again"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
            // A removed or changed subscription gets no outdated notification.
            if self.book.read(run, id).is_none_or(|found| found.config != entry.config) {
                return self.book.read(run, id).is_some();
            }
        }
        let told = Entry { told: now.to_owned(), ..entry.clone() };
        match self.book.read(run, id) {
            Some(found) if found.config == entry.config => {
                // If it cannot be recorded, the notification is sent once more after a restart.
                drop(self.book.write(run, id, &told));
                true
            }
            found => found.is_some(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that notifications can be sent as configured.
    pub(crate) async fn check(&self, config: &TaskPushNotificationConfig) -> Result<(), A2AError> {
        self.target(&config.url).await.map_err(A2AError::invalid_params)?;
        headers(config)
    }

    /// Resolves the target of notifications: with TLS the public internet, or an address that the
    /// workflow names, so that nobody can make us send a request of theirs to a service that only
    /// this machine or its network reaches.
    async fn target(&self, url: &str) -> Result<(Address, Vec<SocketAddr>), String> {
        let address = Address::parse(url).map_err(|error| error.to_string())?;
        let named = (self.workflow)().map(|workflow| workflow.server.push).unwrap_or_default();
        let is_named = named
            .iter()
            .filter_map(|named| Address::parse(named).ok())
            .any(|named| named.is_beside(&address));
        let found = address.resolve().await.map_err(|error| error.to_string())?;
        match is_named || is_open(&address, &found) {
            true => Ok((address, found)),
            false => Err(format!(
                "{address} is not public, or without TLS: the project has to name it in \
                 `[server] push`"
            )),
        }
    }

    async fn post(&self, config: &TaskPushNotificationConfig, body: Vec<u8>) -> Result<(), String> {
        let (address, found) = self.target(&config.url).await?;
        let authorization = config.authentication.as_ref().and_then(|a| {
            a.credentials.as_ref().map(|credentials| format!("{} {credentials}", a.scheme))
        });
        let token = config.token.as_deref().filter(|token| !token.is_empty());
        let mut asked =
            HttpRequest::post(&address, "application/json", body).at(found).within(WITHIN);
        if let Some(token) = token {
            asked = asked.header("X-A2A-Notification-Token", token);
        }
        let answer = asked.authorization(authorization.as_deref()).send().await;
        let mut answer = answer.map_err(|error| error.to_string())?;
        // The body is read so that the peer can finish; its content does not matter.
        drop(answer.whole(ANSWER, WITHIN).await);
        match answer.is_success() {
            true => Ok(()),
            false => Err(format!("it answers HTTP {}", answer.status)),
        }
    }
}

/// True if everybody can reach the address, and nobody can read what is sent there.
fn is_open(address: &Address, found: &[SocketAddr]) -> bool {
    address.is_tls() && found.iter().all(|found| is_public(found.ip()))
}

/// Checks that the secrets of a subscription can be sent.
fn headers(config: &TaskPushNotificationConfig) -> Result<(), A2AError> {
    let authentication = config.authentication.as_ref();
    let secrets = [
        config.token.as_deref(),
        authentication.map(|a| a.scheme.as_str()),
        authentication.and_then(|a| a.credentials.as_deref()),
    ];
    let plain =
        |text: &str| text.len() <= SECRET && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    match secrets.into_iter().flatten().all(plain) {
        true => Ok(()),
        false => {
            Err(A2AError::invalid_params("a token or a credential cannot be sent as a header"))
        }
    }
}
