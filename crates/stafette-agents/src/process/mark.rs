//! A note that a turn runs, for a later delivery after a crash.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, getpgrp};
use serde::{Deserialize, Serialize};
use stafette_core::{AgentName, RunId, TurnKey};

use super::{KEY, table};

/// The note of one turn.
#[derive(Debug)]
pub(super) struct Mark {
    place: PathBuf,
    note: Note,
}

#[derive(PartialEq, Debug, Serialize, Deserialize)]
struct Note {
    /// The id of the process group, which is also that of the leader.
    group: i32,
    /// The start time of the leader, so that another process with the same id is not mistaken for
    /// it; `None` where the system does not show it.
    started: Option<String>,
}

/// The path of a turn's note.
pub(super) fn place(scratch: &Path, key: TurnKey) -> PathBuf {
    scratch.join(format!("{}-{}-{}.{}.pid", key.run, key.handoff, key.attempt, key.turn))
}

/// The turn whose note is at this path.
pub(super) fn turn(place: &Path) -> Option<TurnKey> {
    let name = place.file_name()?.to_str()?.strip_suffix(".pid")?;
    let mut parts = name.rsplitn(3, '-');
    let (turn, handoff, run) = (parts.next()?, parts.next()?, parts.next()?);
    format!("{run}/{handoff}/{turn}").parse().ok()
}

/// The path of a terminal's note, which serves many turns.
pub(super) fn terminal_place(scratch: &Path, run: RunId, agent: &AgentName) -> PathBuf {
    scratch.join(format!("{run}-{agent}.pid"))
}

impl Mark {
    /// A note on the group that `leader` leads.
    pub(super) fn new(place: PathBuf, leader: Pid) -> Self {
        let note = Note { group: leader.as_raw_pid(), started: table::started(leader) };
        Mark { place, note }
    }

    /// Writes the note to its file.
    pub(super) fn write(&self) -> io::Result<()> {
        stafette_disk::folder_of(&self.place)?;
        stafette_disk::write(&self.place, serde_json::to_vec(&self.note)?)
    }

    /// Removes it, unless a later delivery has put its own there.
    pub(super) fn remove(&self) {
        if read(&self.place).as_ref() == Some(&self.note) {
            drop(fs::remove_file(&self.place));
        }
    }
}

/// The group that a note is about.
pub(super) fn group(place: &Path) -> Option<i32> {
    read(place).map(|note| note.group).filter(|group| *group > 1)
}

fn read(place: &Path) -> Option<Note> {
    serde_json::from_slice(&fs::read(place).ok()?).ok()
}

/// The groups that an earlier delivery of this turn has left behind.
///
/// The note names one; it counts only if its leader was started at the same time, or if a process
/// of the group carries the turn's key, so that no stranger is hit. If a daemon died before it
/// could write the note, the key alone finds the group.
pub(super) fn left_behind(place: &Path, key: TurnKey, delivered_before: bool) -> Vec<Pid> {
    let variable = format!("{KEY}={key}");
    let mut groups = Vec::new();
    // A group id of 1 or less would mean all processes.
    if let Some(note) = read(place)
        && note.group > 1
        && let Some(group) = Pid::from_raw(note.group)
    {
        let same = note.started.is_some() && table::started(group) == note.started;
        if same || table::group_carries(group, &variable) {
            groups.push(group);
        }
    }
    if delivered_before {
        groups.extend(table::groups_carrying(&variable));
    }
    groups.sort_by_key(|group| group.as_raw_pid());
    groups.dedup();
    groups.retain(|group| *group != getpgrp());
    groups
}

#[cfg(test)]
mod tests {
    use stafette_core::HandoffId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_note_is_found_again_by_its_name() {
        let run = RunId(Uuid::nil());
        let key = TurnKey { run, handoff: HandoffId(7), attempt: 2, turn: 13 };
        assert_eq!(turn(&place(Path::new("turns"), key)), Some(key));
        let agent: AgentName = "code-reviewer".parse().expect("a name");
        assert_eq!(turn(&terminal_place(Path::new("turns"), run, &agent)), None);
    }
}
