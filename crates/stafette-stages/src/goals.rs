//! The goals of the user: a file that they edit, mirrored into the graph whenever it changes.

use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use stafette_knowledge::graph::{Batch, Entity, Goal, Write};

use crate::{Actor, StageError, Stages, clock};

/// The largest file of goals, in bytes.
const LARGEST: u64 = 256 << 10;

/// The goals that were last written to the graph.
#[derive(Debug, Default)]
pub(crate) struct Goals {
    told: Mutex<Option<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    goals: Vec<Goal>,
}

impl Stages {
    /// Returns the goals of the file, and updates the graph with them.
    pub(crate) async fn known_goals(&self) -> Result<Vec<Goal>, StageError> {
        let Some(path) = &self.0.settings.goals else { return Ok(Vec::new()) };
        let text = self.text(path, LARGEST)?;
        let file: File = toml::from_str(&text).map_err(|error| StageError::File {
            file: path.clone(),
            why: error.message().to_owned(),
        })?;
        let goals = file.goals;
        let writes: Vec<Write> =
            goals.iter().map(|goal| Write::Put(Entity::Goal(goal.clone()))).collect();
        let person = Actor::person();
        let at = clock::now();
        let batch = Batch { key: String::new(), provenance: person.provenance(at), writes };
        let digest = batch.digest();
        let told = self.0.goals.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if told.as_ref() != Some(&digest) && !goals.is_empty() {
            self.write(&person, at, format!("goals:{digest}"), batch.writes).await?;
            *self.0.goals.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(digest);
        }
        Ok(goals)
    }
}
