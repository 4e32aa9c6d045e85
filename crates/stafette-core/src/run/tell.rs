//! An agent reports offers and answers while it still works, through its own channel: it receives
//! the verdict immediately, and accepted reports are not lost if it dies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::propose::{self, HandoffRefused, Proposal, Refusal};
use super::{Draft, Run, receipt};
use crate::fields;
use crate::handoff::{Handoff, Receipt};
use crate::team::Said;
use crate::wire::contract;
use crate::{Event, HandoffId, Offer, Outcome, Reply, Response, TurnKey, TurnResult, Usage};

/// The maximum number of handoffs that one turn may report.
pub const MAX_OFFERS: usize = 32;

/// The agent's reports during the open turn.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TurnReport {
    /// The handoffs that it proposes.
    pub offers: Vec<Offer>,
    /// The answer that it gives.
    pub response: Option<Response>,
    /// The usage that it reports.
    pub usage: Usage,
    /// Additional data for its coordinator.
    #[serde(flatten)]
    pub said: Said,
}

/// A report of an agent was accepted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnTold {
    /// The turn in which it was made.
    pub turn: TurnKey,
    /// The content of the report.
    pub told: TurnReport,
}

pub(crate) fn decide(draft: &mut Draft, turn: TurnKey, told: TurnReport) -> Reply {
    if !draft.run.is_current(turn) {
        return Reply::Late;
    }
    let Some(handoff) = draft.run.handoff(turn.handoff) else { return Reply::Late };
    let agent = handoff.offer.to.clone();
    let room = MAX_OFFERS.saturating_sub(handoff.told.offers.len());
    let constraints = handoff.constraints;
    let (mut taken, mut refused) = (Vec::new(), Vec::new());
    for offer in told.offers {
        let offer = Offer { from: agent.clone(), ..propose::from_outside(offer) };
        let proposal = Proposal::within(offer, turn.handoff);
        let verdict = match taken.len() < room {
            true => propose::judge(&draft.run, &proposal).map(drop),
            false => Err(Refusal::TooMany { limit: MAX_OFFERS }),
        };
        match verdict {
            Ok(()) => taken.push(proposal.offer),
            Err(refusal) => {
                refused.push(refusal.clone());
                let id = HandoffId(draft.run.next_handoff);
                let (offer, cause) = (proposal.offer, Some(turn.handoff));
                let event = HandoffRefused { id, offer, cause, refusal };
                draft.record(Event::HandoffRefused(Box::new(event)));
            }
        }
    }
    let response = match told.response.map(|response| Response { by: agent, ..response }) {
        None => None,
        Some(response) => match fitting(handoff_of(draft, turn), response) {
            Ok(response) => Some(response),
            Err(complaints) => return Reply::Unfit { complaints },
        },
    };
    let said = told.said.bounded(constraints);
    let told = TurnReport { offers: taken, response, usage: told.usage, said };
    // An agent that reports about its turn has received it.
    receipt::decide(draft, turn, Receipt::Acknowledged);
    if told != TurnReport::default() {
        draft.record(Event::TurnTold(Box::new(TurnTold { turn, told })));
    }
    Reply::Reported { refused }
}

fn handoff_of(draft: &Draft, turn: TurnKey) -> Option<&Handoff> {
    draft.run.handoff(turn.handoff)
}

impl Run {
    /// The result that the turn which is out has reported so far; none when it has reported neither an
    /// answer nor a handoff. A turn that is delivered again ends with it instead of being repeated.
    pub fn reported(&self, turn: TurnKey) -> Option<TurnResult> {
        answer(self, turn.handoff).filter(|_| self.is_current(turn))
    }

    /// Checks whether an answer is acceptable for the handoff of `turn` before it is given, so that
    /// its sender can still correct it.
    ///
    /// # Errors
    /// The problems with the answer.
    pub fn check_response(&self, turn: TurnKey, response: &Response) -> Result<(), Vec<String>> {
        fitting(self.handoff(turn.handoff), response.clone()).map(drop)
    }
}

/// Returns the answer with its values converted to the requested form.
///
/// # Errors
/// The problems with it: too large, not what was asked for, or the answer to another request.
pub(crate) fn fitting(
    handoff: Option<&Handoff>,
    mut response: Response,
) -> Result<Response, Vec<String>> {
    let Some(handoff) = handoff else { return Ok(response) };
    let bytes = fields::size(&response.outputs);
    if bytes > fields::MAX {
        return Err(vec![Refusal::TooLarge { bytes, limit: fields::MAX }.to_string()]);
    }
    if let (Some(asked), Some(given)) = (&handoff.offer.foreign, &response.foreign)
        && asked.dialect == contract::DIALECT
        && given.dialect == contract::DIALECT
        && !given.id.is_empty()
        && asked.id != given.id
    {
        return Err(vec![format!("it answers {}, and the request is {}", given.id, asked.id)]);
    }
    fields::fit_all(&handoff.offer.missing, &mut response.outputs)?;
    Ok(response)
}

/// Combines the result of a turn with its earlier reports: the agent's own channel takes precedence
/// over printed output.
pub(crate) fn complete(run: &Run, id: HandoffId, mut result: TurnResult) -> TurnResult {
    let Some(handoff) = run.handoff(id) else { return result };
    let told = &handoff.told;
    if !told.offers.is_empty() {
        result.offers.clone_from(&told.offers);
        (result.bare, result.unanswered) = (false, false);
    }
    if let Some(response) = &told.response {
        result.response = response.clone();
        (result.bare, result.unanswered) = (false, false);
        if told.offers.is_empty() {
            result.offers.clear();
        }
    }
    result.said.update(&told.said);
    if told.said.is_answer() {
        // Anything that was only printed counts as plain text then.
        result.bare &= !result.offers.is_empty();
    }
    result.usage += told.usage;
    result
}

/// Returns the reports of a turn as its result; `None` if it reported neither an answer nor a
/// handoff.
pub(crate) fn answer(run: &Run, id: HandoffId) -> Option<TurnResult> {
    let handoff = run.handoff(id)?;
    let TurnReport { offers, response, said, .. } = &handoff.told;
    if offers.is_empty() && response.is_none() && !said.is_answer() {
        return None;
    }
    let resolved = || Response::new(handoff.offer.to.clone(), Outcome::Resolved);
    Some(TurnResult {
        response: response.clone().unwrap_or_else(resolved),
        offers: offers.clone(),
        usage: Usage::default(),
        fingerprint: None,
        said: said.clone(),
        bare: false,
        unanswered: false,
    })
}

impl TurnTold {
    pub(crate) fn apply(&self, run: &mut Run) {
        let Some(handoff) = run.handoff_mut(self.turn.handoff) else { return };
        for offer in &self.told.offers {
            // A turn that is delivered again repeats its reports.
            let same = |known: &Offer| {
                known.to == offer.to && known.reason == offer.reason && known.item == offer.item
            };
            handoff.told.offers.retain(|known| !same(known));
            handoff.told.offers.push(offer.clone());
        }
        if self.told.response.is_some() {
            handoff.told.response.clone_from(&self.told.response);
        }
        handoff.told.said.update(&self.told.said);
        handoff.told.usage += self.told.usage;
    }
}

#[cfg(test)]
mod tests {
    use super::TurnReport;
    use crate::handoff::Receipt;
    use crate::run::story::{RELAY, Story, done, h, pass};
    use crate::{
        Failure, FailureKind, Input, Offer, Outcome, Party, Response, Status, TurnResult, Usage,
    };

    fn tells(story: &mut Story, offers: Vec<Offer>) -> bool {
        let turn = story.key(h(1));
        let told = Box::new(TurnReport { offers, ..TurnReport::default() });
        let before = story.log.len();
        story.input(Input::Tell { turn, told });
        story.log[before..].iter().any(|recorded| recorded.event.name() == "turn_told")
    }

    #[test]
    fn b_07_what_is_told_beats_what_is_printed_and_survives_the_daemon() {
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        assert!(tells(&mut story, vec![pass("builder")]));
        let receipt = story.run.handoff(h(1)).and_then(|h| h.state.turn()).map(|turn| turn.receipt);
        assert_eq!(receipt, Some(Receipt::Acknowledged), "who tells has its turn");
        story.input(Input::Adopt { by: "node 2".into() });
        tells(&mut story, vec![pass("builder")]);
        // The agent's output quotes a file with a frame in it.
        let quoted = TurnResult { offers: vec![pass("fixer")], bare: true, ..done() };
        story.ends(h(1), quoted);
        let admitted: Vec<String> = story.run.open().map(|h| h.offer.to.to_string()).collect();
        assert_eq!(admitted, ["builder"]);
        assert_eq!(story.run.tally.escalated, 0, "nobody has to confirm it");
    }

    #[test]
    fn b_07_what_is_told_beats_a_print_that_fails_and_one_that_makes_no_sense() {
        let failed = || Response::new(Party::from("planner"), Outcome::Failed);
        for told in [true, false] {
            let mut story = Story::new(RELAY);
            story.accept(h(1));
            if told {
                let response = Some(Response::new(Party::from("?"), Outcome::Resolved));
                let told = Box::new(TurnReport { response, ..TurnReport::default() });
                story.input(Input::Tell { turn: story.key(h(1)), told });
            }
            let quoted = TurnResult { response: failed(), bare: true, ..done() };
            story.ends(h(1), quoted);
            let expected = if told { Status::Succeeded } else { Status::WaitingForHuman };
            assert_eq!(story.status(), expected);
        }
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        assert!(tells(&mut story, vec![pass("builder")]));
        let failure = Failure::new(FailureKind::Invalid, "HANDOFF: /to is missing");
        let turn = story.key(h(1));
        story.input(Input::Fail { turn, failure, usage: Usage::default() });
        assert_eq!((story.state(h(1)), story.state(h(2))), ("resolved", "pending"));
    }

    #[test]
    fn b_07_a_refusal_is_heard_at_once_and_costs_no_turn() {
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        assert!(!tells(&mut story, vec![pass("nobody")]));
        assert!(story.transcript().contains("Unknown target"));
        assert!(tells(&mut story, vec![pass("builder")]));
        story.done(h(1));
        assert_eq!((story.state(h(1)), story.state(h(3))), ("resolved", "pending"));
    }
}
