//! Applies the changes that a generation has ready before the next one begins.

use stafette_core::Run;
use stafette_core::change::{Change, ChangeStatus, GateKind};
use stafette_core::wire::context::NextActionType;

use crate::{Engine, EngineError, Hand, Left};

/// Applies the changes that are ready, if that is the next action of the handover. Those to the
/// team's own program are applied by its renewal, also when the project has them already and the
/// program does not run on them; those that need a person's approval wait for it. Changes that fail
/// are rolled back and recorded, for the next generation to see.
///
/// # Errors
/// When the changes cannot be read, or the engine stops before they are applied.
pub(crate) async fn land(engine: &Engine, run: &Run) -> Result<(), EngineError> {
    let Some(lineage) = &run.team.lineage else { return Ok(()) };
    // Changes to files locked by another holder stay open, and are ready again after the release.
    let by = Hand::named(&format!("generation {}", lineage.number));
    let sets = engine.generations().changes_of(run).await?.into_iter();
    let (own, others): (Vec<Change>, Vec<Change>) = match lineage.handed_over.as_ref() {
        Some(over) if over.action == NextActionType::ApplyChanges => {
            sets.filter(is_ready).partition(|it| run.workflow.own.is_some() && is_own(it))
        }
        Some(over) if over.action == NextActionType::RestartWithNewCode => {
            let ours = |it: &Change| it.run() == Some(run.id) && it.status.is_in() && is_own(it);
            (sets.filter(ours).collect(), Vec::new())
        }
        _ => return Ok(()),
    };
    let rules = &run.workflow.change_rules();
    if !others.is_empty() {
        let ids = others.iter().map(|change| change.id).collect();
        match engine.changes().apply_all(ids, false, rules.clone(), by.clone()).await {
            Ok(report) => {
                for Left { id, why, .. } in report.left {
                    tracing::warn!(run = %run.id, %id, why, "not applied");
                }
            }
            Err(EngineError::Stopping) => return Err(EngineError::Stopping),
            Err(error) => {
                tracing::warn!(run = %run.id, %error, "changes that are ready are not applied");
            }
        }
    }
    let Some(program) = &run.workflow.own else { return Ok(()) };
    for change in own {
        if engine.runs_on(change.id).await {
            continue;
        }
        match engine.changes().renew(change.id, false, program, rules, &by).await {
            Ok(_) => {}
            Err(EngineError::Stopping) => return Err(EngineError::Stopping),
            Err(error) => {
                tracing::warn!(run = %run.id, id = %change.id, %error, "the team's program stays old");
            }
        }
    }
    Ok(())
}

fn is_ready(change: &Change) -> bool {
    let open = matches!(change.status, ChangeStatus::Pending | ChangeStatus::Approved);
    open && !change.waits_for_person()
}

fn is_own(change: &Change) -> bool {
    change.gates.iter().any(|gate| gate.kind == GateKind::OwnLogic)
}
