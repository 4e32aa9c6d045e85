//! A council: members speak on a topic, one after another or in parallel, until enough of them
//! agree.
//!
//! Work handed to `council` waits while each member gets a handoff of its own, so that a member's
//! turn
//! can fail, expire or be retried like any other. A speech counts once its turn has ended; a member
//! that says nothing has used its turn.

mod blind_vote;
mod session;
pub mod vote;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Closed, Coordinator, legacy};
use crate::handoff::{About, Constraints, Way};
use crate::run::close::HandoffClosed;
use crate::run::propose::{HandoffAdmitted, Proposal, propose};
use crate::run::{Draft, Run, Status, close, escalate, resume};
use crate::text::clip;
use crate::workflow::council::{CouncilRules, Exhausted, Mode, NAME, Quorum, party};
use crate::{
    AgentName, Event, Fields, Handoff, HandoffId, Kind, Offer, Outcome, Party, Question, Reason,
    Response, TeamAbout, TeamEvent, TurnResult,
};
use vote::Vote;

pub use session::{Council, Decision, Dissent, Position, Speech, Verdict};

/// A council was opened.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CouncilOpened {
    /// The handoff that it decides on.
    pub handoff: HandoffId,
    /// The topic of the discussion.
    pub topic: String,
    /// The members and the weights of their votes.
    pub members: Vec<Seat>,
    /// The order of speaking.
    pub mode: Mode,
    /// True if every member speaks once before any member sees the others' speeches.
    pub blind: bool,
    /// The share of votes that has to agree.
    pub quorum: Quorum,
    /// The maximum number of turns per member.
    pub turns: u32,
}

/// A member and its weight.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Seat {
    /// The name of the member.
    pub member: AgentName,
    /// The weight of its vote.
    pub weight: u32,
}

/// A member has spoken, or passed its turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CouncilHeard {
    /// The handoff that the council decides on.
    pub handoff: HandoffId,
    /// The handoff in which it spoke, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoke_in: Option<HandoffId>,
    /// The name of the member.
    pub member: AgentName,
    /// The number of the member's turn, from 1.
    pub round: u32,
    /// The text of the speech.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
    /// The member's vote; `None` if it gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vote: Option<Vote>,
}

/// The council has ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CouncilConcluded {
    /// The handoff that it decided on.
    pub handoff: HandoffId,
    /// The result of the council.
    pub verdict: Verdict,
}

/// A person lets an exhausted council continue.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CouncilReopened {
    /// The handoff that it decides on.
    pub handoff: HandoffId,
    /// The person's advice, for all members.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub advice: String,
    /// The further turns of each member; `None` in events of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
}

/// True if a council gives a turn to one of its members by a handoff with these rules: only the council
/// gives out what nobody else can do, and no offer can claim that.
pub fn is_turn(constraints: &Constraints) -> bool {
    constraints.fixed_taker
}

/// Lets the members of a council speak until enough of them agree.
pub(super) struct CouncilCoordinator;

impl Coordinator for CouncilCoordinator {
    fn takes(&self, run: &Run, to: &Party) -> bool {
        to.as_str() == NAME && run.workflow.council.is_some()
    }

    fn due(&self, draft: &mut Draft, id: HandoffId) -> bool {
        let is_for_it =
            draft.run.handoff(id).is_some_and(|handoff| handoff.offer.to.as_str() == NAME);
        if is_for_it {
            decide(draft, id);
        }
        is_for_it
    }

    fn holds_back(&self, run: &Run, handoff: &Handoff) -> bool {
        handoff.offer.to.as_str() == NAME && in_session(run, handoff.id)
    }

    fn turn_ended(&self, draft: &mut Draft, id: HandoffId, result: &TurnResult) {
        hear(draft, id, result);
    }

    fn closing(&self, run: &Run, closed: &HandoffClosed, follows: &mut Closed) {
        // Speeches of a blind vote are not passed on.
        follows.withheld = run.votes_blindly()
            && run.handoff(closed.handoff).is_some_and(|handoff| is_turn(&handoff.constraints));
    }

    fn follow(&self, run: &mut Run, event: &Event) {
        if let Event::HandoffAdmitted(admitted) = event {
            seated(run, admitted);
        }
    }
}

/// Handles work for the council that is due: opens it, lets the next member speak, or concludes it.
fn decide(draft: &mut Draft, id: HandoffId) {
    let Some(rules) = draft.run.workflow.council.clone() else {
        return close::answered(draft, id, Response::failed("The workflow has no council"));
    };
    if in_session(&draft.run, id) {
        // It is due again when the other is decided. That never waits for this one: handing work
        // from a member back to the council is a cycle.
        return;
    }
    if draft.run.in_council(id).is_none() {
        open(draft, id, &rules);
    }
    let Some(council) = draft.run.in_council(id) else { return };
    // All members that had a turn have finished it.
    let silent: Vec<(HandoffId, AgentName)> =
        council.sitting.iter().map(|(id, member)| (*id, member.clone())).collect();
    for (spoke_in, member) in silent {
        heard(draft, id, Some(spoke_in), member, String::new(), None);
    }
    let Some(council) = draft.run.in_council(id) else { return };
    if let Some(verdict) = council.consensus(&rules) {
        return conclude(draft, id, &rules, verdict);
    }
    let speakers = council.next(&rules);
    if speakers.is_empty() {
        return exhausted(draft, id, &rules);
    }
    let mut waits = Vec::new();
    for member in speakers {
        let Some(offer) = invitation(&draft.run, id, &rules, &member) else { continue };
        let constraints = Constraints { fixed_taker: true, ..Constraints::default() };
        let proposal = Proposal { declared: true, constraints, ..Proposal::within(offer, id) };
        match propose(draft, proposal) {
            Ok(child) => waits.push(child),
            Err(_) => heard(draft, id, None, member, String::new(), None),
        }
    }
    if !waits.is_empty() {
        resume::block(draft, id, waits, Vec::new());
    }
}

/// True if the council currently decides on another handoff.
fn in_session(run: &Run, id: HandoffId) -> bool {
    let council = run.team.council.as_deref().filter(|council| council.verdict.is_none());
    let other = council.map(|council| council.handoff).filter(|other| *other != id);
    other.and_then(|other| run.handoff(other)).is_some_and(Handoff::is_open)
}

fn open(draft: &mut Draft, id: HandoffId, rules: &CouncilRules) {
    let run = &draft.run;
    let Some(handoff) = run.handoff(id) else { return };
    let offer = &handoff.offer;
    let topic = [&offer.summary, &offer.detail, &run.request];
    let topic = topic.into_iter().find(|text| !text.is_empty()).cloned().unwrap_or_default();
    let seat = |member: &AgentName| Seat { member: member.clone(), weight: rules.weight(member) };
    let opened = CouncilOpened {
        handoff: id,
        topic: clip(&topic, 2000),
        members: rules.members.iter().map(seat).collect(),
        mode: rules.mode,
        blind: rules.blind_first_vote,
        quorum: rules.quorum,
        turns: rules.turns_per_agent,
    };
    draft.record(Event::Team(TeamEvent::CouncilOpened(Box::new(opened))));
}

/// Returns the offer for a member, with the information that it may see.
fn invitation(run: &Run, id: HandoffId, rules: &CouncilRules, member: &AgentName) -> Option<Offer> {
    let council = run.in_council(id)?;
    let (round, blind) = (council.turns_of(member) + 1, !council.may_hear(rules));
    let mut given = json!({
        "topic": council.topic,
        "members": rules.members,
        "quorum": rules.quorum,
        "your_turn": round,
        "turns_per_agent": council.limit,
    });
    if blind {
        given["blind"] = true.into();
        let earlier: Vec<&String> = run.team.lineage.iter().flat_map(|it| &it.decisions).collect();
        given["key_decisions"] = json!(earlier);
    } else {
        given["key_decisions"] = json!(council.decisions);
        given["signals"] = json!(council.signals());
        given["discussion"] = json!(council.discussion);
    }
    let outputs = Fields::from_iter([("council".to_owned(), given)]);
    let instructions = "Speak to the topic as a member of the council, then say where you stand: \
        the signal agree, disagree, building (still working on it) or abstain, with your reason, \
        the key decisions that you hold to be settled, and what should be taken up next, if \
        anything."
        .to_owned();
    Some(Offer {
        summary: council.topic.clone(),
        instructions: Some(instructions),
        outputs,
        item: run.handoff(id)?.offer.item.clone(),
        ..Offer::new(party(), Party::from(member), Kind::Delegate, Reason::Other(NAME.into()))
    })
}

/// Records a speech if the turn that has ended was a member's.
fn hear(draft: &mut Draft, id: HandoffId, result: &TurnResult) {
    let Some(council) = draft.run.team.council.as_deref() else { return };
    let Some(member) = council.sitting.get(&id).cloned() else { return };
    let waits = |offer: &Offer| match &offer.question {
        Some(question) => question.blocking,
        None => offer.kind == Kind::Delegate,
    };
    let failed = matches!(result.response.outcome, Outcome::Failed | Outcome::Escalated);
    // It continues later, or recovery handles its failure.
    if failed || result.offers.iter().any(waits) {
        return;
    }
    let said = clip(&result.response.summary, session::SPEECH);
    let vote = result.said.vote.clone().map(Vote::bounded);
    heard(draft, council.handoff, Some(id), member, said, vote);
}

fn heard(
    draft: &mut Draft,
    handoff: HandoffId,
    spoke_in: Option<HandoffId>,
    member: AgentName,
    said: String,
    vote: Option<Vote>,
) {
    let turns = draft.run.team.council.as_ref().map_or(0, |council| council.turns_of(&member));
    let event = CouncilHeard { handoff, spoke_in, member, round: turns + 1, said, vote };
    draft.record(Event::Team(TeamEvent::CouncilHeard(Box::new(event))));
}

/// Handles a council whose members have used all their turns.
fn exhausted(draft: &mut Draft, id: HandoffId, rules: &CouncilRules) {
    let Some(council) = draft.run.in_council(id) else { return };
    let verdict = council.verdict(rules, Decision::Exhausted);
    if rules.exhausted == Exhausted::HandOver {
        return conclude(draft, id, rules, verdict);
    }
    let question = Question {
        reason: "no_consensus".into(),
        details: format!(
            "The council does not agree: {}. Accept what it has, let it speak again, stop, or say \
             what it should consider",
            verdict.why
        ),
        options: ["accept", "again", "stop"].map(str::to_owned).to_vec(),
        context: verdict.standing(),
        blocking: true,
        about: About::Team(TeamAbout::Council(id)),
        ..Question::default()
    };
    escalate::park(draft, id, question);
}

/// Applies a person's decision about an exhausted council.
pub(super) fn answered(draft: &mut Draft, id: HandoffId, word: &str, text: &str) {
    let Some(rules) = draft.run.workflow.council.clone() else { return };
    let Some(verdict) = draft.run.acceptable(id) else { return };
    match word {
        "accept" => conclude(draft, id, &rules, verdict),
        "stop" => close::end(draft, Status::Failed, "stopped by a person"),
        _ => {
            let advice = if word == "again" { String::new() } else { clip(text, session::SPEECH) };
            let turns = Some(rules.turns_per_agent);
            let event = CouncilReopened { handoff: id, advice, turns };
            draft.record(Event::Team(TeamEvent::CouncilReopened(Box::new(event))));
            resume::resume(draft, id, Fields::new());
        }
    }
}

/// Closes a topic with the result of the last generation's council, which a person accepted.
pub(super) fn accepted(draft: &mut Draft, id: HandoffId, verdict: Verdict) {
    let Some(rules) = draft.run.workflow.council.clone() else { return };
    open(draft, id, &rules);
    conclude(draft, id, &rules, verdict);
}

fn conclude(draft: &mut Draft, id: HandoffId, rules: &CouncilRules, verdict: Verdict) {
    let settled = verdict.decision != Decision::Exhausted;
    let outcome = if settled { Outcome::Resolved } else { Outcome::Partial };
    let outputs = Fields::from_iter([
        ("consensus".to_owned(), Value::from(verdict.decision == Decision::Consensus)),
        ("key_decisions".to_owned(), json!(verdict.key_decisions)),
        ("signals".to_owned(), json!(verdict.signals)),
        ("dissent".to_owned(), json!(verdict.dissent)),
    ]);
    let response = Response {
        outputs: outputs.clone(),
        summary: verdict.why.clone(),
        ..Response::new(party(), outcome)
    };
    let summary = verdict.why.clone();
    draft.record(Event::Team(TeamEvent::CouncilConcluded(Box::new(CouncilConcluded {
        handoff: id,
        verdict,
    }))));
    let Some(handoff) = draft.run.handoff(id) else { return };
    // The handoff that waits for the answer carries it out itself.
    let Some(to) = rules.then.clone().filter(|_| settled && handoff.returns_to.is_none()) else {
        return close::answered(draft, id, response);
    };
    let offer = Offer {
        summary,
        outputs,
        item: handoff.offer.item.clone(),
        ..Offer::new(party(), to, Kind::Transfer, Reason::TaskHandoff)
    };
    let proposal = Proposal { cause: Some(id), declared: true, ..Proposal::of(offer) };
    match propose(draft, proposal) {
        Ok(next) => close::succeeded_by(draft, id, response, Way::Answered, vec![next]),
        Err(refusal) => close::answered(
            draft,
            id,
            Response { outcome: Outcome::Partial, failure: Some(refusal.to_string()), ..response },
        ),
    }
}

impl Run {
    /// Returns the council that currently decides on `id`.
    pub fn in_council(&self, id: HandoffId) -> Option<&Council> {
        let council = self.team.council.as_deref()?;
        (council.handoff == id && council.verdict.is_none()).then_some(council)
    }

    /// Returns the current result of the council that decides on `id`, for a person to accept.
    pub(crate) fn acceptable(&self, id: HandoffId) -> Option<Verdict> {
        let rules = self.workflow.council.as_ref()?;
        self.in_council(id).map(|council| council.verdict(rules, Decision::Accepted))
    }
}

impl CouncilOpened {
    pub(super) fn apply(&self, run: &mut Run) {
        let before = run.team.council.take();
        run.team.council = Some(Box::new(Council::new(self, before.map(|council| *council))));
    }
}

impl CouncilHeard {
    pub(super) fn apply(&self, run: &mut Run) {
        if let Some(council) = &mut run.team.council {
            council.hear(self);
        }
    }
}

impl CouncilConcluded {
    pub(super) fn apply(&self, run: &mut Run) {
        if let Some(council) = &mut run.team.council {
            council.sitting.clear();
            council.verdict = Some(self.verdict.clone());
        }
    }
}

impl CouncilReopened {
    pub(super) fn apply(&self, run: &mut Run) {
        let more = self.turns.unwrap_or_else(|| legacy::turns(run));
        if let Some(council) = &mut run.team.council {
            council.limit = council.limit.saturating_add(more);
            if !self.advice.is_empty() {
                let (by, said) = (Party::Human, self.advice.clone());
                council.discuss(Speech { by, round: 0, signal: None, said });
            }
        }
    }
}

/// Records that a member got a turn.
fn seated(run: &mut Run, admitted: &HandoffAdmitted) {
    let HandoffAdmitted { id, offer, cause, .. } = admitted;
    if !run.handoff(*id).is_some_and(|handoff| is_turn(&handoff.constraints)) {
        return;
    }
    // Earlier answers are in the discussion.
    if let Some(waiting) = cause.and_then(|id| run.handoff_mut(id)) {
        waiting.answers.clear();
    }
    if let (Some(council), Ok(member)) = (&mut run.team.council, offer.to.as_str().parse()) {
        council.sitting.insert(*id, member);
    }
}

#[cfg(test)]
pub(super) mod tests;
