//! Records the talk of a run: the agents' tasks and messages, people's answers, and the output of
//! terminals.

use stafette_core::{AgentName, Event, Fields, HandoffId, Offer, Party, Recorded, Time};
use stafette_engine::Engine;
use stafette_knowledge::history::Thread;
use stafette_telemetry::search::shown_since;

use super::Watch;
use crate::threads::{cut, own_thread};
use crate::{StageError, Stages};

/// The longest title of a thread, in bytes.
const TITLE: usize = 200;

pub(super) async fn record(
    stages: &Stages,
    engine: &Engine,
    watch: &Watch,
    recorded: &Recorded,
) -> Result<(), StageError> {
    let at = recorded.at;
    match &recorded.event {
        Event::HandoffAdmitted(admitted) => {
            let offer = &admitted.offer;
            // A message to a person belongs to the thread of the agent that asks.
            let whose = if offer.to == Party::Human { &offer.from } else { &offer.to };
            say(stages, watch, recorded, whose, &offer.from, &words(offer)).await
        }
        Event::QuestionAnswered(answered) => {
            let Some(offer) = watch.offer(answered.handoff) else { return Ok(()) };
            let said = &answered.answer.text;
            say(stages, watch, recorded, &offer.from, &Party::Human, said).await
        }
        Event::TurnFinished(finished) => {
            let id = finished.turn.handoff;
            shown(stages, engine, watch, id, at).await?;
            let Some(offer) = watch.offer(id) else { return Ok(()) };
            let result = &finished.result;
            let mut said = vec![result.response.summary.clone()];
            let on = result.offers.iter().filter(|on| on.to != Party::Human);
            said.extend(on.map(|on| format!("→ {}: {}", on.to, words(on))));
            said.extend(result.response.failure.clone());
            said.retain(|part| !part.is_empty());
            say(stages, watch, recorded, &offer.to, &offer.to, &said.join("\n")).await
        }
        Event::TurnFailed(failed) => {
            shown(stages, engine, watch, failed.turn.handoff, at).await?;
            let Some(offer) = watch.offer(failed.turn.handoff) else { return Ok(()) };
            let why = &failed.failure.message;
            say(stages, watch, recorded, &offer.to, &Party::Orchestrator, why).await
        }
        _ => Ok(()),
    }
}

fn words(offer: &Offer) -> String {
    let question = offer.question.as_ref().map(|question| question.details.as_str());
    let instructions = offer.instructions.as_deref();
    let parts = [question, Some(&*offer.summary), Some(&*offer.detail), instructions];
    let mut said: Vec<&str> = Vec::new();
    for part in parts.into_iter().flatten().filter(|part| !part.is_empty()) {
        if !said.contains(&part) {
            said.push(part);
        }
    }
    said.join("\n")
}

fn thread(watch: &Watch, whose: &Party, at: Time) -> Thread {
    let title = cut(watch.request.trim(), TITLE);
    let mut meta = Fields::new();
    meta.insert("run".into(), watch.run.to_string().into());
    meta.insert("agent".into(), whose.as_str().into());
    Thread {
        id: own_thread(watch.run, whose.as_str()),
        module: whose.as_str().to_owned(),
        title: if title.is_empty() { "Untitled".to_owned() } else { title.to_owned() },
        created_at: at,
        meta,
    }
}

async fn say(
    stages: &Stages,
    watch: &Watch,
    recorded: &Recorded,
    whose: &Party,
    who: &Party,
    body: &str,
) -> Result<(), StageError> {
    if !matches!(whose, Party::Agent(_)) {
        return Ok(());
    }
    let id = format!("{}/{}", watch.run, recorded.seq);
    stages.record(&thread(watch, whose, recorded.at), id, who, body, recorded.at).await
}

/// Records what an agent's terminal has shown since the last time.
async fn shown(
    stages: &Stages,
    engine: &Engine,
    watch: &Watch,
    id: HandoffId,
    at: Time,
) -> Result<(), StageError> {
    let Some(to) = watch.offer(id).map(|offer| offer.to.clone()) else { return Ok(()) };
    let Ok(agent) = to.as_str().parse::<AgentName>() else { return Ok(()) };
    let path = engine.terminals().recording(watch.run, &agent);
    let thread = thread(watch, &to, at);
    let place = format!("terminal:{}", thread.id);
    let known = stages.0.cursors.get(&place).await?.unwrap_or(0);
    let look = tokio::task::spawn_blocking(move || shown_since(&path, known)).await;
    let Ok(Some(shown)) = look else { return Ok(()) };
    if shown.to > shown.from {
        let name = format!("{}@{}", thread.id, shown.from);
        // A recording that grew after it was stored under this name stays as it was.
        match stages.record(&thread, name, &to, &shown.text, at).await {
            Err(StageError::History {
                source: stafette_knowledge::history::HistoryError::Taken { .. },
            }) => {}
            answer => answer?,
        }
        stages.0.cursors.set(&place, shown.to).await?;
    }
    Ok(())
}
