//! The evidence for the next stage that a person's answer gives.

use serde_json::json;
use stafette_core::handoff::State;
use stafette_core::{Fields, Handoff, HandoffId, Run, RunId, Time};
use stafette_engine::Answered;
use stafette_knowledge::calendar::entry;
use stafette_knowledge::calendar::proposal::{Proposal, Stand};
use stafette_knowledge::graph::NodeKey;

use super::APPROVE;
use crate::planner::{PlanView, Planned};
use crate::ranking::Ranked;
use crate::stages::{read, value};
use crate::{Stages, clock};

/// Returns the id of the decision that a question's answer makes.
pub(crate) fn decided(run: RunId, question: HandoffId) -> String {
    format!("{run}.{question}")
}

/// Returns the id of a block of a plan.
pub(crate) fn block(run: RunId, question: HandoffId, place: usize) -> String {
    format!("{run}.{question}.b{}", place + 1)
}

/// Returns the id of a task of a plan.
pub(crate) fn task(run: RunId, question: HandoffId, id: &str) -> String {
    format!("{run}.{question}.{id}")
}

/// Returns the blocks of a plan, as proposals that wait for a person.
pub(crate) fn blocks(run: RunId, question: HandoffId, plan: &PlanView) -> Vec<Proposal> {
    let moment = |text: &str| Time::parse(text).unwrap_or_default();
    let block = |(place, block): (usize, &Planned)| {
        let id = self::block(run, question, place);
        let wish = plan.tasks.iter().find(|wish| wish.id == block.task);
        let key = |wish: &String| NodeKey::task(&task(run, question, wish));
        Proposal {
            entry: entry::name(&id),
            id,
            state: Stand::Proposed,
            run,
            handoff: question,
            task: key(&block.task),
            title: block.title.clone(),
            kind: wish.and_then(|wish| wish.kind.clone()),
            start: moment(&block.start),
            end: moment(&block.end),
            planned_end: moment(&block.end),
            after: wish.map(|wish| wish.after.iter().map(key).collect()).unwrap_or_default(),
            deadline: wish.and_then(|wish| Time::parse(wish.deadline.as_deref()?)),
            done_at: None,
            trouble: None,
        }
    };
    plan.blocks.iter().enumerate().map(block).collect()
}

pub(super) async fn of(
    stages: &Stages,
    run: &Run,
    answered: Answered<'_>,
) -> Result<Fields, String> {
    let Some(question) = run.handoff(answered.handoff) else { return Ok(Fields::new()) };
    if !matches!(question.state, State::Asked { .. }) {
        return Ok(Fields::new());
    }
    let outputs = &question.offer.outputs;
    if let Ok(ranked) = read::<Ranked>(outputs, "ranking") {
        return Ok(chosen(run, question, &ranked, answered).unwrap_or_default());
    }
    match read::<PlanView>(outputs, "plan") {
        Ok(plan) if answered.text.trim().eq_ignore_ascii_case(APPROVE) => {
            let booked = stages.book(run, question.id, &plan).await;
            booked.map_err(|fault| fault.to_string())?;
            Ok(planned(stages, run, question, plan).await)
        }
        _ => Ok(Fields::new()),
    }
}

/// Returns the option that a person chose, with all that the next stage requires.
fn chosen(
    run: &Run,
    question: &Handoff,
    ranked: &Ranked,
    answered: Answered<'_>,
) -> Option<Fields> {
    let word = answered.text.trim();
    let option = ranked.options.iter().find(|option| option.id.eq_ignore_ascii_case(word))?;
    let scored = ranked.ranking.ranked.iter().find(|scored| scored.id == option.id);
    let goals: Vec<&str> = option.goals.iter().map(|link| link.goal.as_str()).collect();
    let evidence = json!({
        "decision_id": decided(run.id, question.id),
        "option": option.id,
        "roi": scored.map(value).unwrap_or_else(|| json!({ "id": option.id, "missing": true })),
        "goals": goals,
        "provenance": {
            "run": run.id, "handoff": question.id, "asked_by": question.offer.from,
            "approved_by": answered.by, "at": clock::now().rfc3339(),
            "parameters": ranked.version, "learned": ranked.learned,
        },
    });
    match evidence {
        serde_json::Value::Object(fields) => Some(fields),
        _ => None,
    }
}

/// Returns the tasks and events of a plan as it is now: a person may have moved and rejected
/// blocks.
async fn planned(stages: &Stages, run: &Run, question: &Handoff, plan: PlanView) -> Fields {
    let names = plan.tasks.iter().map(|wish| task(run.id, question.id, &wish.id));
    let task_ids: Vec<String> = names.collect();
    let kept = stages.0.proposals.of(run.id, question.id).await.unwrap_or_default();
    let events: Vec<String> = (0..plan.blocks.len())
        .map(|place| block(run.id, question.id, place))
        .filter(|id| !kept.iter().any(|one| one.id == *id && one.state == Stand::Dropped))
        .map(|id| entry::name(&id))
        .collect();
    let mut fields = Fields::new();
    fields.insert("task_ids".into(), value(&task_ids));
    fields.insert("calendar_events".into(), value(&events));
    fields.insert("plan".into(), value(&plan));
    fields
}
