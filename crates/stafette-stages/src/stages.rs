//! The opened knowledge base of one project.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use stafette_core::redact::Redactor;
use stafette_core::workflow::knowledge::{GraphHome, Knowledge};
use stafette_core::{Fields, Party, Time};
use stafette_knowledge::calendar::proposal::Proposals;
use stafette_knowledge::calendar::slots::Week;
use stafette_knowledge::calendar::{CalDav, CalDavSettings, Calendar, Folder};
use stafette_knowledge::graph::{Batch, Graph, Queued, Write};
use stafette_knowledge::history::History;
use stafette_knowledge::mind::parameters::{Ledger, Parameters};
use stafette_knowledge::{Base, Cursors, Neo4jGraph, Neo4jSettings, SqliteGraph, Versions, rights};

use crate::booking::Booking;
use crate::goals::Goals;
use crate::insights::Memory;
use crate::planner::CalendarCache;
use crate::{Actor, StageError, clock};

/// The settings for opening the stages.
pub struct StagesSettings<'a> {
    /// The `[knowledge]` section of the workflow.
    pub knowledge: Knowledge,
    /// The root folder of the project.
    pub root: &'a Path,
    /// The folder for Stafette's own files.
    pub state: &'a Path,
    /// Looks up a secret by name.
    pub secret: &'a dyn Fn(&str) -> Option<String>,
    /// Removes secrets from everything that is written.
    pub redactor: Redactor,
}

impl fmt::Debug for StagesSettings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StagesSettings").field("root", &self.root).finish_non_exhaustive()
    }
}

/// The knowledge base and the plans of one project. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Stages(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) settings: Knowledge,
    pub(crate) root: PathBuf,
    pub(crate) history: History,
    pub(crate) graph: Queued,
    pub(crate) versions: Versions,
    pub(crate) cursors: Cursors,
    pub(crate) proposals: Proposals,
    pub(crate) diary: Option<CalendarCache>,
    pub(crate) goals: Goals,
    pub(crate) booking: Booking,
    pub(crate) memory: Memory,
    pub(crate) redactor: Redactor,
}

impl Stages {
    /// Opens all stores without connecting to a server.
    ///
    /// # Errors
    /// If a file cannot be used or an address is invalid.
    pub fn open(settings: StagesSettings<'_>) -> Result<Self, StageError> {
        let StagesSettings { knowledge, root, state, secret, redactor } = settings;
        let file = state.join("knowledge.db");
        let broken = |error: &dyn fmt::Display| StageError::File {
            file: file.display().to_string(),
            why: error.to_string(),
        };
        let base = Base::open(&file).map_err(|error| broken(&error))?;
        let named = |name: &Option<String>| name.as_deref().and_then(secret);
        let home: Arc<dyn Graph> = match (knowledge.graph, &knowledge.neo4j) {
            (GraphHome::Neo4j, Some(neo4j)) => Arc::new(Neo4jGraph::new(&Neo4jSettings {
                uri: neo4j.uri.clone(),
                user: named(&neo4j.user_env).unwrap_or_else(|| "neo4j".to_owned()),
                password: named(&neo4j.password_env).unwrap_or_default(),
                database: neo4j.database.clone(),
            })?),
            _ => Arc::new(SqliteGraph::new(base.clone())),
        };
        let calendar: Option<Arc<dyn Calendar>> = match &knowledge.calendar {
            None => None,
            Some(home) => Some(match (&home.folder, &home.url) {
                (_, Some(url)) => Arc::new(CalDav::new(&CalDavSettings {
                    url: url.clone(),
                    user: named(&home.user_env).unwrap_or_default(),
                    password: named(&home.password_env).unwrap_or_default(),
                    calendar: home.name.clone(),
                })?),
                (folder, None) => {
                    let folder = root.join(folder.as_deref().unwrap_or("calendar"));
                    std::fs::create_dir_all(&folder).map_err(|error| StageError::File {
                        file: folder.display().to_string(),
                        why: error.to_string(),
                    })?;
                    Arc::new(Folder::open(&folder)?)
                }
            }),
        };
        Ok(Stages(Arc::new(Inner {
            root: root.to_owned(),
            history: History::new(base.clone()),
            graph: Queued::new(home, base.clone()),
            versions: Versions::new(base.clone()),
            cursors: Cursors::new(base.clone()),
            proposals: Proposals::new(base),
            diary: calendar.map(CalendarCache::new),
            goals: Goals::default(),
            booking: Booking::default(),
            memory: Memory::default(),
            settings: knowledge,
            redactor,
        })))
    }

    /// Returns the settings it was opened with.
    pub fn settings(&self) -> &Knowledge {
        &self.0.settings
    }

    /// Writes a batch to the graph, if the actor may. The key has to identify what is written, so
    /// that a repeated write has no effect.
    pub(crate) async fn write(
        &self,
        actor: &Actor,
        at: Time,
        key: String,
        writes: Vec<Write>,
    ) -> Result<(), StageError> {
        let writes = self.redacted(writes)?;
        let batch = Batch { key, provenance: actor.provenance(at), writes };
        rights::check_batch(&actor.party, &batch)?;
        self.0.graph.apply(&batch).await?;
        Ok(())
    }

    /// Returns what is to be written without its secrets.
    pub(crate) fn redacted<T: Serialize + DeserializeOwned>(
        &self,
        said: T,
    ) -> Result<T, StageError> {
        let before = value(&said);
        let mut clean = before.clone();
        self.0.redactor.value(&mut clean);
        match clean == before {
            true => Ok(said),
            false => serde_json::from_value(clean).map_err(|error| StageError::Again {
                why: format!("it cannot be stored without the secret in it: {error}"),
            }),
        }
    }

    /// Returns the versions of the parameters.
    pub(crate) async fn ledger(&self) -> Result<Ledger, StageError> {
        Ok(self.0.versions.change(self.first_version(), |_| Ok(())).await?.1)
    }

    /// Returns the ledger with the initial parameters.
    pub(crate) fn first_version(&self) -> Ledger {
        let weights = self.0.settings.roi.clone();
        let parameters = Parameters { weights, ..Parameters::default() };
        Ledger::new(parameters, clock::now(), Party::Human)
    }

    /// Returns the working hours.
    pub(crate) fn week(&self) -> Week {
        let week = &self.0.settings.week;
        Week {
            zone: week.timezone.clone(),
            days: week.pieces(),
            buffer: week.buffer,
            least: week.shortest,
            most: week.longest,
            step: week.step,
        }
    }

    /// Returns the text of a file of the project, within a size limit.
    pub(crate) fn text(&self, path: &str, limit: u64) -> Result<String, StageError> {
        stafette_disk::read_text(&self.0.root.join(path), limit)
            .map_err(|error| StageError::File { file: path.to_owned(), why: error.to_string() })
    }
}

/// Converts a value to JSON to hand it on.
pub(crate) fn value(of: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(of).unwrap_or_default()
}

/// Parses a value; `what` names it in the error.
pub(crate) fn read<T: serde::de::DeserializeOwned>(
    fields: &Fields,
    what: &str,
) -> Result<T, String> {
    let found = fields.get(what).cloned().unwrap_or_default();
    serde_json::from_value(found).map_err(|error| format!("`{what}` cannot be read: {error}"))
}
