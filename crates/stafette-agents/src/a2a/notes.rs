//! Notes down the remote tasks of an agent in a run before anything is awaited of them: a turn that
//! is delivered again continues with its task instead of having the work done twice.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stafette_core::{RunId, TurnKey};

use crate::Job;

/// The suffix of a note's file name.
const ENDING: &str = ".a2a.json";

/// A remote task that is noted down.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Noted {
    /// The task id of the remote agent.
    pub(super) task: String,
    /// The attempt and the turn that last used it.
    pub(super) attempt: u32,
    pub(super) turn: u32,
    /// True if it may still be in progress.
    pub(super) open: bool,
}

/// The notes on an agent's remote tasks in a run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Page {
    /// The address of the remote agent.
    pub(super) url: String,
    /// The name of the environment variable with the token for it.
    #[serde(default)]
    pub(super) bearer: Option<String>,
    /// The context id that the remote agent gave to these tasks.
    #[serde(default)]
    pub(super) context: Option<String>,
    /// The tasks, by handoff.
    #[serde(default)]
    pub(super) tasks: BTreeMap<String, Noted>,
}

impl Page {
    /// The tasks that may still be in progress.
    pub(super) fn open(&self) -> Vec<String> {
        let open = self.tasks.values().filter(|noted| noted.open);
        open.map(|noted| noted.task.clone()).collect()
    }
}

/// The file with these notes.
#[derive(Clone, Debug)]
pub(super) struct Notes {
    place: PathBuf,
    page: Page,
}

impl Notes {
    /// Opens the notes of a job's agent. Notes about another address are ignored.
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

    /// The context id that the remote agent gave to these tasks.
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
        stafette_disk::replace(&self.place, serde_json::to_vec(&self.page)?)
    }
}

/// All notes of a run.
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
