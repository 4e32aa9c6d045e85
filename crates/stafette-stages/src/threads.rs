//! Access to threads of messages, with a check of rights.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Fields, Party};
use stafette_knowledge::history::{Hit, Message, Said, Thread, ThreadFilter};
use stafette_knowledge::rights::{Access, Data};
use uuid::Uuid;

use crate::{Actor, StageError, Stages, clock};

/// A new message for a thread.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Saying {
    /// The id of the thread; `None` opens a new one.
    #[serde(default)]
    pub thread_id: Option<String>,
    /// The title of a new thread.
    #[serde(default)]
    pub title: Option<String>,
    /// The text of the message.
    pub body: String,
    /// The id of the message: sent again under the same id, it is stored once.
    #[serde(default)]
    pub id: Option<String>,
}

/// Returns the id of the thread that Stafette itself records of an agent in a run.
pub(crate) fn own_thread(run: stafette_core::RunId, agent: &str) -> String {
    format!("{run}.{agent}")
}

impl Stages {
    /// Adds a message to a thread, which is opened if it does not exist.
    ///
    /// # Errors
    /// If the actor lacks the right, or a text is empty or too long.
    pub async fn say(&self, actor: &Actor, saying: Saying) -> Result<Message, StageError> {
        actor.may(Access::Write, Data::History)?;
        let saying = self.redacted(saying)?;
        let (at, role) = (clock::now(), actor.party.as_str().to_owned());
        let id = saying.id.unwrap_or_else(|| Uuid::now_v7().to_string());
        let said = |thread_id| Said {
            id,
            thread_id,
            role: role.clone(),
            body: saying.body,
            created_at: at,
        };
        match saying.thread_id {
            Some(thread_id) if saying.title.is_none() => {
                Ok(self.0.history.append(said(thread_id)).await?)
            }
            given => {
                let thread_id = given.unwrap_or_else(|| Uuid::now_v7().to_string());
                let mut meta = Fields::new();
                meta.extend(actor.run.map(|run| ("run".to_owned(), run.to_string().into())));
                let title = saying.title.unwrap_or_else(|| "Untitled".to_owned());
                let said = said(thread_id.clone());
                let thread = Thread { id: thread_id, module: role, title, created_at: at, meta };
                Ok(self.0.history.begin(thread, said).await?)
            }
        }
    }

    /// Returns threads, newest first.
    ///
    /// # Errors
    /// If the actor lacks the right.
    pub async fn threads(
        &self,
        actor: &Actor,
        filter: ThreadFilter,
        limit: usize,
    ) -> Result<Vec<Thread>, StageError> {
        actor.may(Access::Read, Data::History)?;
        Ok(self.0.history.threads(filter, limit).await?)
    }

    /// Returns a thread and its messages after a number.
    ///
    /// # Errors
    /// If the actor lacks the right, or the thread does not exist.
    pub async fn thread(
        &self,
        actor: &Actor,
        id: &str,
        after: u64,
        limit: usize,
    ) -> Result<(Thread, Vec<Message>), StageError> {
        actor.may(Access::Read, Data::History)?;
        let thread = self.0.history.thread(id).await?;
        Ok((thread, self.0.history.messages(id, after, limit).await?))
    }

    /// Returns messages that contain all of these words.
    ///
    /// # Errors
    /// If the actor lacks the right.
    pub async fn search(
        &self,
        actor: &Actor,
        words: &str,
        module: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Hit>, StageError> {
        actor.may(Access::Read, Data::History)?;
        Ok(self.0.history.search(words, module, 0, limit).await?)
    }

    /// Adds a message to the thread of an agent in a run; a repeated one is stored once.
    pub(crate) async fn record(
        &self,
        thread: &Thread,
        id: String,
        role: &Party,
        body: &str,
        at: stafette_core::Time,
    ) -> Result<(), StageError> {
        // Redacted before it is cut: half of a secret could not be recognised any more.
        let body = self.0.redactor.text(body.trim());
        let body = cut(&body, stafette_knowledge::history::LONGEST_BODY);
        if body.is_empty() {
            return Ok(());
        }
        let (thread_id, role, body) =
            (thread.id.clone(), role.as_str().to_owned(), body.to_owned());
        let said = Said { id, thread_id, role, body, created_at: at };
        self.0.history.begin(thread.clone(), said).await?;
        Ok(())
    }
}

/// Returns the longest beginning of a text with at most `limit` bytes.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}
