//! Changes that another orchestrator left unapplied are proposed as a set, for a person to approve.

use serde_json::{Value, json};
use stafette_core::change::{Author, Change, FileEdit, GateKind, Proposal};
use stafette_core::wire::context::{ChangeAction, ChangeStatus, CodeChange};
use stafette_core::{Input, Run, redact};

use crate::{Engine, EngineError};

/// Proposes the pending changes of a context, once for a team. Invalid ones are reported in the
/// run, and stay in the context unchanged.
pub(crate) async fn propose(engine: &Engine, run: &Run) -> Result<(), EngineError> {
    let left = run.team.lineage.iter().flat_map(|lineage| &lineage.changes);
    let left: Vec<&CodeChange> = left.filter(|change| is_left(change)).collect();
    if left.is_empty() {
        return Ok(());
    }
    if let Some(there) =
        engine.generations().changes_of(run).await?.iter().find(|it| is_foreign(it))
    {
        // A process that kept it may have had no time to tell its run.
        engine.changes().run_of_set(there).await?;
        return Ok(());
    }
    let edits = left.iter().map(|change| edit(change)).collect::<Result<Vec<_>, _>>();
    let proposed = match edits {
        Ok(changes) => {
            let person = "another orchestrator".to_owned();
            let author = Author { run: Some(run.id), person, ..Author::default() };
            let reason = "It was pending when another orchestrator left it".to_owned();
            let proposal = Proposal { changes, author, reason, ..Proposal::default() };
            let rules = run.workflow.change_rules();
            match engine.changes().propose_foreign(proposal, rules).await {
                Ok(_) => Ok(()),
                Err(EngineError::Change { source }) if !source.may_pass() => {
                    Err(source.to_string())
                }
                Err(error) => return Err(error),
            }
        }
        Err(why) => Err(why),
    };
    if let Err(why) = proposed {
        let code = "IMPORTED_CHANGES".to_owned();
        let message = format!("what another orchestrator left is not proposed: {why}");
        match engine.send(run.id, Input::Alert { code, message }).await {
            Err(EngineError::Over { .. }) | Ok(_) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// True if the change is still to be applied and is complete. Stafette's own sets have their
/// contents with them, not in the context.
fn is_left(change: &CodeChange) -> bool {
    let is_whole = matches!(&change.content, Some(Some(_)))
        || (change.action == ChangeAction::Delete && !change.extra.contains_key("change"));
    change.status == ChangeStatus::Pending && is_whole
}

fn is_foreign(change: &Change) -> bool {
    change.gates.iter().any(|gate| gate.kind == GateKind::Foreign)
}

fn edit(change: &CodeChange) -> Result<FileEdit, String> {
    let content = change.content.clone().flatten();
    let content = content.filter(|_| change.action != ChangeAction::Delete);
    if content.as_deref().is_some_and(redact::is_marked) {
        // The mark in place of a secret must not get into the project.
        let file = &change.file;
        return Err(format!("{file} holds a secret, which is not kept; propose it yourself"));
    }
    let content = content.map(Value::from);
    let edit = json!({ "file": change.file, "action": change.action, "content": content });
    serde_json::from_value(edit).map_err(|error| error.to_string())
}
