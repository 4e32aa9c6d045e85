//! A generation that is over hands over to the next: what comes, by which rule, and whether it comes
//! by itself.

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
    /// Which one, from 1.
    pub number: u32,
    /// What the team does next.
    pub phase: TeamPhase,
    /// How it goes on.
    pub action: NextActionType,
    /// Why that.
    pub reason: String,
    /// What made it hand over, when it was one of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Whose turn it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_agent: Option<String>,
    /// What about, when it is something new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// What the generation did.
    pub summary: String,
    /// What it cost.
    pub cost: Usd,
    /// What all have cost so far.
    pub total_cost: Usd,
    /// The one that follows by itself, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextGeneration>,
    /// Why one follows, or none.
    pub why: String,
    /// What keeps the next one from following automatically; none when one follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Ends>,
}

/// What keeps the next generation from following automatically.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    /// A person begins each one.
    Unplanned,
    /// Nothing is left to do.
    Done,
    /// A person has to look first.
    NeedsPerson,
    /// The planned number of generations is reached.
    Limit,
    /// The planned cost is reached.
    Ceiling,
}

/// The generation that follows by itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NextGeneration {
    /// Its run.
    pub run: RunId,
    /// Not before then.
    pub not_before: Time,
    /// Whether a person is asked first.
    pub check_in: bool,
}

/// Decided once, and only when the run is over.
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

/// A generation of a series in which nobody can go on before a person has spoken ends, whoever asks,
/// and the next one begins with what the person says. What a person allows or refuses is answered
/// where it is, and work that has just been passed on waits where it is.
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
    // Its work is not done, and nothing of it failed.
    close::end_awaiting(draft, Status::Cancelled, &why, awaits);
}

/// How long after it another generation may follow, or what keeps it from that.
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

/// The pause before the next one, if one follows; and why.
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

/// A run begins: a person is asked first what the last one could not go on without, and when it is
/// time for that, whether the team goes on. Those who would begin wait for the answer, all of them.
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
    // What the generation before asked a person for is not asked for a second time.
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

/// Those who wait for the answer to a question before they begin.
fn waiting_for(run: &Run, question: HandoffId) -> Vec<HandoffId> {
    let waits = |handoff: &&Handoff| matches!(&handoff.state, State::Blocked { on } if on.contains(&question));
    run.open().filter(waits).map(|handoff| handoff.id).collect()
}

/// Whether the team goes on.
fn whether(lineage: &Lineage, request: &str) -> Question {
    Question {
        reason: "check_in".into(),
        details: format!(
            "{} generations have followed each other and cost {}. Should generation {} go on with \
             “{}”? Anything else than stop is a note for it",
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

/// A person has checked in, or said what the last generation could not go on without. What they would
/// have decided there they decide here: to stop, to take what there is, or to try again; anything else
/// goes into the work.
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
            // Also those after it know what was asked, and what was said.
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
    // What was left while it waited is for it, too.
    said.extend(draft.run.team.lineage.iter().flat_map(|lineage| lineage.said()));
    for entry in first {
        resume::resume(draft, entry, said.clone());
    }
}

/// A person takes what the last generation had: nothing of it is done again.
fn settle(draft: &mut Draft, first: &[HandoffId], asked: &Awaited, outcome: Outcome) {
    for entry in first {
        match &asked.verdict {
            Some(verdict) => council::accepted(draft, *entry, (**verdict).clone()),
            None => close::answered(draft, *entry, Response::new(Party::Human, outcome)),
        }
    }
}

/// What a person gave because the last generation lacked it: those after this one have it as well.
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
