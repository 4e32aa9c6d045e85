//! A generation that has ended hands over to the next: the rule that decides, and whether the next
//! one follows automatically.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Awaited, Cause, ChangeCounts, Lineage, note};
use crate::handoff::{About, State};
use crate::run::answer::Answer;
use crate::run::assess::InputsAssessed;
use crate::run::close::HandoffClosed;
use crate::run::{Draft, Run, Status, close, escalate, resume};
use crate::team::{council, generation};
use crate::text::clip;
use crate::wire::context::{NextActionType, TeamPhase};
use crate::{
    Event, Fields, Handoff, HandoffId, Ignored, Outcome, Party, Question, Reply, Response, RunId,
    TeamAbout, TeamEvent, Time, Usd,
};

/// A generation has handed over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GenerationHandedOver {
    /// The number of the generation, from 1.
    pub number: u32,
    /// The next phase of the team.
    pub phase: TeamPhase,
    /// The next action of the team.
    pub action: NextActionType,
    /// The reason for that action.
    pub reason: String,
    /// The trigger of the handover, if it was one of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The agent whose turn is next, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_agent: Option<String>,
    /// The next topic, if it is a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// A summary of the generation's work.
    pub summary: String,
    /// The cost of the generation, in US dollars.
    pub cost: Usd,
    /// The total cost of all generations so far, in US dollars.
    pub total_cost: Usd,
    /// The generation that follows automatically, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextGeneration>,
    /// The reason why one follows, or none.
    pub why: String,
    /// The obstacle to an automatic next generation; `None` if one follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Ends>,
}

/// An obstacle to an automatic next generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    /// A person starts each generation.
    Unplanned,
    /// Nothing is left to do.
    Done,
    /// A person has to look at it first.
    NeedsPerson,
    /// The planned number of generations is reached.
    Limit,
    /// The planned maximum cost is reached.
    Ceiling,
}

/// The generation that follows automatically.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NextGeneration {
    /// The id of its run.
    pub run: RunId,
    /// The earliest time for its start.
    pub not_before: Time,
    /// True if a person is asked first.
    pub check_in: bool,
}

/// Records the handover, once and only after the run has ended.
pub(in crate::team) fn decide(draft: &mut Draft, changes: &ChangeCounts) -> Reply {
    let run = &draft.run;
    if !run.status().is_final() {
        return Reply::Ignored(Ignored::NotEnded);
    }
    let Some(lineage) = run.team.lineage.as_deref().filter(|lineage| lineage.handed_over.is_none())
    else {
        return Reply::Ignored(Ignored::Unchanged);
    };
    let ahead = generation::next(run, changes);
    let cost = run.purse.spent.money;
    let total = Usd(lineage.spent.0.saturating_add(cost.0));
    let (follows, why) = goes_on(run, lineage, &ahead);
    let ends = follows.err();
    let next = follows.ok().map(|pause| NextGeneration {
        run: generation::successor_id(run.id, draft.now),
        not_before: draft.now + pause,
        check_in: check_in(lineage),
    });
    let event = GenerationHandedOver {
        number: lineage.number,
        phase: ahead.phase,
        action: ahead.action,
        reason: ahead.reason,
        cause: ahead.cause,
        target_agent: ahead.target,
        topic: ahead.topic,
        summary: generation::narrative(run),
        cost,
        total_cost: total,
        next,
        why,
        ends,
    };
    draft.record(Event::Team(TeamEvent::GenerationHandedOver(Box::new(event))));
    Reply::Recorded
}

/// Ends a generation of a series in which no agent can continue before a person answers; the next
/// generation begins with the answer. Permissions are answered where they are asked, and work that
/// was just passed on waits where it is.
pub(super) fn if_needed(draft: &mut Draft) {
    let run = &draft.run;
    let Some(lineage) = run.team.lineage.as_deref() else { return };
    if run.status() != Status::WaitingForHuman || may_follow(run, lineage).is_err() {
        return;
    }
    let awaits = generation::awaited(run);
    let Some(first) = awaits.first().filter(|_| generation::can_be_left(run)) else { return };
    let question = clip(&first.question.details, 200);
    let why = format!("a person is needed: {} asks: {question}", first.from);
    // Its work is not done, and none of it failed.
    close::end_awaiting(draft, Status::Cancelled, &why, awaits);
}

/// Returns the pause before another generation may follow, or the obstacle.
fn may_follow(run: &Run, lineage: &Lineage) -> Result<crate::Millis, (Ends, String)> {
    let Some(plan) = &lineage.plan else {
        return Err((Ends::Unplanned, "generations follow when a person begins them".to_owned()));
    };
    if lineage.count() >= plan.max_runs {
        let why = format!("the limit of {} generations is reached", plan.max_runs);
        return Err((Ends::Limit, why));
    }
    let total = lineage.spent.0.saturating_add(run.purse.spent.money.0);
    let spent = Usd(total.saturating_sub(plan.spent.0));
    if spent >= plan.max_cost {
        let why = format!("the ceiling of {} is reached: {spent} spent", plan.max_cost);
        return Err((Ends::Ceiling, why));
    }
    Ok(plan.pause)
}

fn check_in(lineage: &Lineage) -> bool {
    let every = lineage.plan.as_ref().map_or(0, |plan| plan.check_in_every);
    every > 0 && lineage.count().is_multiple_of(every)
}

/// Returns the pause before the next generation, if one follows, and the reason.
fn goes_on(
    run: &Run,
    lineage: &Lineage,
    ahead: &generation::Next,
) -> (Result<crate::Millis, Ends>, String) {
    let asks = !lineage.awaits.is_empty();
    if lineage.plan.is_some() && ahead.done {
        return (Err(Ends::Done), "nothing is left to do".to_owned());
    }
    let stopped = ahead.action == NextActionType::ManualReview || run.status() != Status::Succeeded;
    if lineage.plan.is_some() && stopped && !asks {
        return (Err(Ends::NeedsPerson), "a person is needed".to_owned());
    }
    match may_follow(run, lineage) {
        Err((ends, why)) => (Err(ends), why),
        Ok(pause) => {
            let runs = lineage.plan.as_ref().map_or(0, |plan| plan.max_runs);
            let waits = if asks { ", which waits for the answer" } else { "" };
            (Ok(pause), format!("generation {} of {runs}{waits}", lineage.count() + 1))
        }
    }
}

/// Asks a person, when a run begins, the open questions of the last generation and, if a check-in
/// is due, whether the team continues. All first handoffs wait for the answer.
pub(super) fn ask_first(draft: &mut Draft, first: &[HandoffId]) {
    let Some(lineage) = draft.run.team.lineage.as_deref() else { return };
    let Some((entry, others)) = first.split_first() else { return };
    let (question, missing) = match (lineage.asks.as_slice(), lineage.check_in) {
        ([], false) => return,
        ([], true) => (whether(lineage, &draft.run.request), Vec::new()),
        ([one], _) => (one.question.clone(), one.missing.clone()),
        (several, _) => {
            let lines = several.iter().map(|it| format!("{}: {}", it.from, it.question.details));
            let details = lines.collect::<Vec<_>>().join("\n");
            let reason = several[0].question.reason.clone();
            let missing = several.iter().flat_map(|it| it.missing.clone()).collect();
            let options = several.iter().any(Awaited::decides).then(|| "stop".to_owned());
            let options = options.into_iter().collect();
            (Question { reason, details, options, ..Question::default() }, missing)
        }
    };
    // Inputs that the previous generation requested from a person are not requested a second time.
    let asked: Vec<String> = missing.iter().map(|input| input.key.clone()).collect();
    let about = About::Team(TeamAbout::CheckIn(*entry));
    let question = Question { blocking: true, about, ..question };
    let Some(question) = escalate::park_for(draft, *entry, question, missing) else { return };
    if !asked.is_empty() {
        for id in first {
            draft.record(Event::InputsAssessed(InputsAssessed {
                handoff: *id,
                can_handle: false,
                confidence: 0.5,
                handoff_to: Some(Party::Human),
                reason: "Missing user decision".to_owned(),
                missing: asked.clone(),
            }));
        }
    }
    for other in others {
        resume::block(draft, *other, vec![question], Vec::new());
    }
}

/// Returns the handoffs that wait for the answer to a question before they begin.
fn waiting_for(run: &Run, question: HandoffId) -> Vec<HandoffId> {
    let waits = |handoff: &&Handoff| matches!(&handoff.state, State::Blocked { on } if on.contains(&question));
    run.open().filter(waits).map(|handoff| handoff.id).collect()
}

/// Returns the question whether the team continues.
fn whether(lineage: &Lineage, request: &str) -> Question {
    Question {
        reason: "check_in".into(),
        details: format!(
            "{} generations have ended and cost {}. Should generation {}, which has not begun its \
             work, go on with “{}”? Anything else than stop is a note for it",
            lineage.number.saturating_sub(1),
            lineage.spent,
            lineage.number,
            clip(request, 120),
        ),
        options: vec!["go on".into(), "stop".into()],
        context: lineage.past.last().map(|past| past.summary.clone()).unwrap_or_default(),
        ..Question::default()
    }
}

/// Applies a person's answer to a check-in or to a question of the last generation. The same
/// choices apply as there: stop, accept what there is, or retry; any other text becomes an input.
pub(in crate::team) fn checked_in(
    draft: &mut Draft,
    question: HandoffId,
    answer: &Answer,
    values: Fields,
) {
    let first = waiting_for(&draft.run, question);
    let asks =
        draft.run.team.lineage.as_ref().map(|lineage| lineage.asks.clone()).unwrap_or_default();
    let decides = asks.iter().any(Awaited::decides);
    let mut said = Fields::new();
    match (asks.as_slice(), answer.text.trim().to_lowercase().as_str()) {
        ([], "stop") => {
            return close::end(draft, Status::Cancelled, "stopped by a person at the check-in");
        }
        ([], "" | "go on" | "yes" | "continue") => {}
        ([], _) => {
            note::decide(draft, &answer.text, answer.by.clone());
            said.insert("check_in".into(), answer.text.clone().into());
        }
        (_, "stop") if decides => {
            return close::end(draft, Status::Failed, "stopped by a person");
        }
        ([one], word) if let Some(outcome) = one.settles(word) => {
            return settle(draft, &first, one, outcome);
        }
        ([_], "retry" | "again") if decides => {}
        ([asked, ..], _) => {
            // Later generations, too, receive the question and the answer.
            let question = clip(&asked.question.details, generation::NOTE / 2);
            let spoken = match answer.text.is_empty() {
                true => serde_json::Value::from(values.clone()).to_string(),
                false => answer.text.clone(),
            };
            let text = format!("{} asked: {question} — {spoken}", asked.from);
            note::decide(draft, &text, answer.by.clone());
            said = values;
        }
    }
    // Notes that were left while it waited belong to it, too.
    said.extend(draft.run.team.lineage.iter().flat_map(|lineage| lineage.said()));
    for entry in first {
        resume::resume(draft, entry, said.clone());
    }
}

/// Closes the first handoffs with the result of the last generation: none of the work is repeated.
fn settle(draft: &mut Draft, first: &[HandoffId], asked: &Awaited, outcome: Outcome) {
    for entry in first {
        match &asked.verdict {
            Some(verdict) => council::accepted(draft, *entry, (**verdict).clone()),
            None => close::answered(draft, *entry, Response::new(Party::Human, outcome)),
        }
    }
}

/// Returns the inputs that the last generation lacked and a person gave: later generations get them
/// as well.
pub(super) fn learned(run: &Run, closed: &HandoffClosed) -> Fields {
    let asked = run.handoff(closed.handoff).map(|asked| &asked.offer);
    let is_asked_first =
        |question: &Question| matches!(question.about, About::Team(TeamAbout::CheckIn(_)));
    let asked = asked.filter(|offer| offer.question.as_ref().is_some_and(is_asked_first));
    let missing = asked.into_iter().flat_map(|offer| &offer.missing);
    let outputs = &closed.response.outputs;
    let given = missing.filter_map(|it| Some((it.key.clone(), outputs.get(&it.key)?.clone())));
    given.collect()
}

impl GenerationHandedOver {
    pub(in crate::team) fn apply(&self, run: &mut Run) {
        if let Some(lineage) = &mut run.team.lineage {
            lineage.handed_over = Some(Box::new(self.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
