//! Finds what a run does not know yet of a set, and a set of its run. These are only the decisions,
//! which the simulation uses too.

use stafette_core::change::{Change, ChangeStatus, Comment};
use stafette_core::{Input, Run, TeamInput};
use stafette_workspace::Changes;

/// True if a run knows a set in its present form.
#[must_use]
pub fn knows(run: &Run, change: &Change) -> bool {
    run.team.changes.get(&change.id).map(|known| known.revision) == Some(change.revision)
}

/// The input for a run that does not know a set, or not in its present form.
#[must_use]
pub fn introduction(run: &Run, change: &Change) -> Option<Input> {
    let set = || Box::new(change.proposed());
    (!knows(run, change)).then(|| Input::Team(TeamInput::ProposeChange { turn: None, set: set() }))
}

/// The input about a set's progress; `None` when the run knows it. `note` adds details for people.
#[must_use]
pub fn outcome(run: &Run, change: &Change, by: &str, note: &str) -> Option<Input> {
    let known = run.team.changes.get(&change.id)?;
    if known.ordered.is_none() && known.status == change.status {
        return None;
    }
    let note = match (&change.failure, &change.commit) {
        _ if !note.is_empty() => note.to_owned(),
        (Some(failure), _) if change.status == ChangeStatus::Failed => {
            failure.lines().next().unwrap_or_default().to_owned()
        }
        (_, Some(commit)) if change.status.is_in() => format!("commit {commit}"),
        _ => String::new(),
    };
    let (change, status, by) = (change.id, change.status, by.to_owned());
    Some(Input::Team(TeamInput::SettleChange { change, status, by, note }))
}

/// True if a set must get the status that a person gave it in its run: not when it is further along
/// already.
#[must_use]
pub fn follows(change: &Change, status: ChangeStatus) -> bool {
    let said = matches!(status, ChangeStatus::Approved | ChangeStatus::Refused);
    said && change.status != status && Changes::decidable(change, status).is_ok()
}

/// The comments in the run of a set that are not written to the set yet.
#[must_use]
pub fn unwritten(run: &Run, change: &Change) -> Vec<Comment> {
    let said = run.team.changes.get(&change.id).into_iter().flat_map(|known| &known.said);
    said.filter(|comment| !change.comments.contains(comment)).cloned().collect()
}
