//! Which remote tasks an agent has in a run, noted down before anything is awaited of them: a turn
//! that is delivered again goes on with its task instead of having it done twice.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stafette_core::{RunId, TurnKey};

use crate::Job;

/// What is at the end of a note's name.
const ENDING: &str = ".a2a.json";

/// A remote task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Noted {
    /// What the other side calls it.
    pub(super) task: String,
    /// The attempt and the turn that last spoke to it.
    pub(super) attempt: u32,
    pub(super) turn: u32,
    /// Whether it may still be going on.
    pub(super) open: bool,
}

/// What is known about an agent's remote tasks in a run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Page {
    /// Where they are.
    pub(super) url: String,
    /// The environment variable with the token for it.
    #[serde(default)]
    pub(super) bearer: Option<String>,
    /// What the other side calls all that belongs together.
    #[serde(default)]
    pub(super) context: Option<String>,
    /// By handoff.
    #[serde(default)]
    pub(super) tasks: BTreeMap<String, Noted>,
}

impl Page {
    /// The tasks that may still be going on.
    pub(super) fn open(&self) -> Vec<String> {
        let open = self.tasks.values().filter(|noted| noted.open);
        open.map(|noted| noted.task.clone()).collect()
    }
}

/// The place where it is noted.
#[derive(Clone, Debug)]
pub(super) struct Notes {
    place: PathBuf,
    page: Page,
}

impl Notes {
    /// What is noted for a job's agent. Notes about another address mean nothing here.
    pub(super) fn of(job: &Job, url: &str) -> Self {
        let key = job.order.key;
        let place = folder(&job.scratch, key.run).join(format!("{}{ENDING}", job.order.agent));
        let page = read(&place).filter(|page| page.url == url);
        let page = page.unwrap_or_else(|| Page {
            url: url.to_owned(),
            bearer: job.agent.bearer.clone(),
            ..Page::default()
        });
        Notes { place, page }
    }

    /// What the other side calls all that belongs together.
    pub(super) fn context(&self) -> Option<&str> {
        self.page.context.as_deref()
    }

    /// The task of a turn's handoff.
    pub(super) fn task(&self, key: TurnKey) -> Option<&Noted> {
        self.page.tasks.get(&key.handoff.to_string())
    }

    /// Notes that a turn has this task.
    pub(super) fn began(&mut self, key: TurnKey, task: &str, context: &str) -> std::io::Result<()> {
        let noted =
            Noted { task: task.to_owned(), attempt: key.attempt, turn: key.turn, open: true };
        if !context.is_empty() {
            self.page.context = Some(context.to_owned());
        }
        if self.task(key) == Some(&noted) {
            return Ok(());
        }
        self.page.tasks.insert(key.handoff.to_string(), noted);
        self.write()
    }

    /// Notes that the task of a turn has come to its end.
    pub(super) fn ended(&mut self, key: TurnKey) -> std::io::Result<()> {
        match self.page.tasks.get_mut(&key.handoff.to_string()) {
            Some(noted) if noted.open => noted.open = false,
            _ => return Ok(()),
        }
        self.write()
    }

    fn write(&self) -> std::io::Result<()> {
        if let Some(folder) = self.place.parent() {
            fs::create_dir_all(folder)?;
        }
        let fresh = self.place.with_extension("new");
        let mut file = File::create(&fresh)?;
        file.write_all(&serde_json::to_vec(&self.page)?)?;
        file.sync_all()?;
        fs::rename(fresh, &self.place)
    }
}

/// All that is noted about a run.
pub(super) fn of_run(scratch: &Path, run: RunId) -> Vec<Page> {
    let entries = fs::read_dir(folder(scratch, run)).into_iter().flatten().flatten();
    let notes = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(ENDING));
    notes.filter_map(|entry| read(&entry.path())).collect()
}

fn read(place: &Path) -> Option<Page> {
    serde_json::from_slice(&fs::read(place).ok()?).ok()
}

fn folder(scratch: &Path, run: RunId) -> PathBuf {
    scratch.join("sessions").join(run.to_string())
}
