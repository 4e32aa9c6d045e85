//! An agent reports offers and answers while it still works, through its own channel: it receives
//! the verdict immediately, and accepted reports are not lost if it dies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::propose::{self, HandoffRefused, Proposal, Refusal};
use super::{Draft, Run, finish, legacy, receipt};
use crate::fields;
use crate::handoff::Receipt;
use crate::team::Said;
use crate::wire::contract;
use crate::{
    Event, Handoff, HandoffId, Offer, Outcome, Reply, Response, Statement, TurnKey, TurnResult,
    Usage,
};

/// The maximum number of handoffs that one turn may report.
pub const MAX_OFFERS: usize = 32;

/// The complaint about a question that would end with its run.
const UNHEARD: &str = "the run ends with this turn, so that nobody would see the question to `human`: \
    wait for its answer, or leave it out";

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
    /// The positions of the turn's earlier offers that these replace; `None` in events of older
    /// releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Vec<usize>>,
}

/// The relation of an offer to those that the turn has reported before.
enum Again {
    /// It is further work.
    No,
    /// It was reported before, with the same words or with more.
    Same,
    /// It says more than the one at this position, or corrects it.
    Replaces(usize),
}

/// Compares an offer with the earlier ones of its turn. An agent that sends the same words twice, or
/// both by a tool and by a bare frame, hands over once; different words are different work, and none
/// of it may be lost.
fn again(standing: &[(Option<usize>, Offer)], offer: &Offer) -> Again {
    let id = |offer: &Offer| offer.foreign.as_ref().map(|f| (f.dialect.clone(), f.id.clone()));
    for (place, (_, known)) in standing.iter().enumerate() {
        if (&known.to, &known.reason, &known.item) != (&offer.to, &offer.reason, &offer.item) {
            continue;
        }
        match (id(known), id(offer)) {
            (Some(one), Some(other)) if one != other => {}
            (Some(_), Some(_)) => return Again::Replaces(place),
            _ if offer.is_bare() || known.says_the_same(offer) => return Again::Same,
            _ if known.is_bare() => return Again::Replaces(place),
            _ => {}
        }
    }
    Again::No
}

/// Returns the run as the end of the turn will find it, with these offers admitted.
fn after<'o>(draft: &Draft, turn: TurnKey, offers: impl Iterator<Item = &'o Offer>) -> Draft {
    let mut trial = draft.clone();
    // One that is refused by now moves nothing.
    offers.for_each(|offer| drop(judge(&mut trial, turn, offer)));
    trial
}

/// Judges an offer as the end of the turn will: after those that the turn has reported before, which
/// the trial has admitted. What is accepted here would otherwise be refused later, when nobody listens
/// any more.
fn judge(trial: &mut Draft, turn: TurnKey, offer: &Offer) -> Result<(), Refusal> {
    let proposal = Proposal::within(offer.clone(), turn.handoff);
    match finish::is_completion(offer) {
        true => propose::judge(&trial.run, &proposal).map(drop),
        false => propose::propose(trial, proposal).map(drop),
    }
}

pub(crate) fn decide(draft: &mut Draft, turn: TurnKey, told: TurnReport) -> Reply {
    if !draft.run.is_current(turn) {
        return Reply::Late;
    }
    let Some(handoff) = draft.run.handoff(turn.handoff) else { return Reply::Late };
    let agent = handoff.offer.to.clone();
    let constraints = handoff.constraints;
    let earlier = handoff.told.offers.len();
    // Each with its position among the earlier ones, or none if it is new.
    let mut standing: Vec<(Option<usize>, Offer)> =
        (0..).map(Some).zip(handoff.told.offers.iter().cloned()).collect();
    let mut refused = Vec::new();
    // Made once, and again when one of those that stand goes.
    let mut trial: Option<Draft> = None;
    for offer in told.offers {
        let offer = Offer { from: agent.clone(), ..propose::from_outside(offer) };
        let replaced = match again(&standing, &offer) {
            Again::Same => continue,
            Again::Replaces(place) => Some(place),
            Again::No => None,
        };
        trial = trial.filter(|_| replaced.is_none());
        let others = standing.iter().enumerate().filter(|(place, _)| Some(*place) != replaced);
        let others = others.map(|(_, (_, offer))| offer);
        let verdict = match others.clone().count() < MAX_OFFERS {
            true => judge(trial.get_or_insert_with(|| after(draft, turn, others)), turn, &offer),
            false => Err(Refusal::TooMany { limit: MAX_OFFERS }),
        };
        match verdict {
            Ok(()) => {
                replaced.map(|place| standing.remove(place));
                standing.push((None, offer));
            }
            Err(refusal) => {
                // The one that it was to replace stands.
                trial = trial.filter(|_| replaced.is_none());
                refused.push(refusal.clone());
                let id = HandoffId(draft.run.next_handoff);
                let event = HandoffRefused { id, offer, cause: Some(turn.handoff), refusal };
                draft.record(Event::HandoffRefused(Box::new(event)));
            }
        }
    }
    let stands = |place: &usize| standing.iter().any(|(old, _)| *old == Some(*place));
    let replaces: Vec<usize> = (0..earlier).filter(|place| !stands(place)).collect();
    let new = standing.into_iter().filter(|(old, _)| old.is_none());
    let offers: Vec<Offer> = new.map(|(_, offer)| offer).collect();
    let response = match told.response {
        None => None,
        Some(response) => match fitting(&draft.run, turn.handoff, response) {
            Ok(response) => Some(response),
            Err(complaints) => return Reply::Unfit { complaints },
        },
    };
    let said = told.said.bounded(constraints);
    let told = TurnReport { offers, response, usage: told.usage, said };
    // An agent that reports about its turn has received it.
    receipt::decide(draft, turn, Receipt::Acknowledged);
    if told != TurnReport::default() {
        let replaces = Some(replaces);
        draft.record(Event::TurnTold(Box::new(TurnTold { turn, told, replaces })));
    }
    Reply::Reported { refused }
}

impl Run {
    /// The result that the turn which is out has reported so far; none when it has reported neither an
    /// answer nor a handoff. A turn that is delivered again ends with it instead of being repeated.
    pub fn reported(&self, turn: TurnKey) -> Option<TurnResult> {
        let result = answer(self, turn.handoff).filter(|_| self.is_current(turn))?;
        // Nobody has seen the end of the session that reported it.
        Some(TurnResult { usage: Usage::unknown(), ..result })
    }

    /// Checks whether a result is acceptable for the handoff of `turn` before it is given, so that
    /// its sender can still correct it.
    ///
    /// # Errors
    /// The problems with it.
    pub fn check_result(&self, turn: TurnKey, result: &TurnResult) -> Result<(), Vec<String>> {
        let silent = |offer: &Offer| propose::check_words(offer).err();
        let silent: Vec<String> =
            result.offers.iter().filter_map(silent).map(|it| it.to_string()).collect();
        if !silent.is_empty() {
            return Err(silent);
        }
        let is_current = self.is_current(turn);
        let whole = complete(self, turn.handoff, result.clone());
        if is_current && whole.unanswered {
            return Err(vec![Statement::NOTHING.to_owned()]);
        }
        if is_current && finish::asks_nobody(self, turn.handoff, result, &whole) {
            return Err(vec![UNHEARD.to_owned()]);
        }
        fitting(self, turn.handoff, result.response.clone()).map(drop)
    }
}

/// Returns the answer in the name of the party that the handoff went to, with its values converted to
/// the requested form.
///
/// # Errors
/// The problems with it: too large, not what was asked for, from another party, or the answer to
/// another request.
pub(crate) fn fitting(
    run: &Run,
    id: HandoffId,
    mut response: Response,
) -> Result<Response, Vec<String>> {
    let Some(handoff) = run.handoff(id) else { return Ok(response) };
    let bytes = response.size();
    if bytes > fields::MAX {
        return Err(vec![Refusal::TooLarge { bytes, limit: fields::MAX }.to_string()]);
    }
    let to = &handoff.offer.to;
    // Only a document of the contract names its sender and its request.
    if let Some(given) = response.foreign.as_ref().filter(|it| it.dialect == contract::DIALECT) {
        let mut complaints = Vec::new();
        if response.by != *to {
            let by = &response.by;
            complaints
                .push(format!("/respondingAgent: it is `{by}`, and the handoff went to `{to}`"));
        }
        let asked = trace_id(run, handoff);
        if given.id != asked {
            let given = &given.id;
            complaints.push(format!("/traceId: it is {given}, and that of the request is {asked}"));
        }
        if !complaints.is_empty() {
            return Err(complaints);
        }
    }
    response.by = to.clone();
    fields::fit_all(&handoff.offer.missing, &mut response.outputs)?;
    Ok(response)
}

/// Returns the id by which the contract's documents name the handoff: that of the request, or its own
/// where the request was made in other words.
pub(super) fn trace_id(run: &Run, handoff: &Handoff) -> String {
    let asked = handoff.offer.foreign.as_ref().filter(|it| it.dialect == contract::DIALECT);
    asked.map_or_else(|| handoff.id.uuid(run.id).to_string(), |it| it.id.clone())
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
    result.usage = result.usage.and_reported(told.usage);
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
        match &self.replaces {
            Some(replaced) => {
                let mut place = 0..;
                handoff
                    .told
                    .offers
                    .retain(|_| place.next().is_none_or(|it| !replaced.contains(&it)));
                handoff.told.offers.extend(self.told.offers.iter().cloned());
            }
            None => legacy::tell(&mut handoff.told.offers, &self.told.offers),
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
    use crate::handoff::{Foreign, Receipt};
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

    fn about(to: &str, summary: &str) -> Offer {
        Offer { summary: summary.to_owned(), ..pass(to) }
    }

    #[test]
    fn b_01_what_was_taken_is_handed_on_though_it_goes_to_one_target() {
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        assert!(tells(&mut story, vec![pass("builder")]));
        assert!(tells(&mut story, vec![about("builder", "the router")]));
        assert!(tells(&mut story, vec![about("builder", "the tests")]));
        // Words that were sent before, and a bare target, add nothing.
        assert!(!tells(&mut story, vec![about("builder", "the router"), pass("builder")]));
        story.done(h(1));
        let open = story.run.open().map(|handoff| handoff.offer.summary.clone());
        assert_eq!(open.collect::<Vec<String>>(), ["the router", "the tests"]);
    }

    #[test]
    fn b_18_the_end_of_a_turn_refuses_nothing_that_was_taken_in_it() {
        // The contract's window and its limit for an item let two of these pass.
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        let taken: Vec<bool> = ["one", "two", "three", "four"]
            .map(|part| tells(&mut story, vec![about("builder", part)]))
            .into();
        story.done(h(1));
        let open = story.run.open().count();
        assert_eq!(open, taken.iter().filter(|taken| **taken).count(), "{}", story.transcript());
        assert_eq!(taken, [true, true, false, false]);
    }

    #[test]
    fn b_18_the_offers_of_one_report_are_judged_as_if_each_came_alone() {
        let parts = || ["one", "two", "three", "four"].map(|part| about("builder", part));
        let numbered = |summary: &str| Offer { foreign: foreign("1"), ..about("builder", summary) };
        let open = |mut story: Story| {
            story.done(h(1));
            let open = story.run.open().map(|handoff| handoff.offer.summary.clone());
            open.collect::<Vec<String>>()
        };
        let reported = |reports: Vec<Vec<Offer>>| {
            let mut story = Story::new(RELAY);
            story.accept(h(1));
            for offers in reports {
                tells(&mut story, offers);
            }
            open(story)
        };
        let alone = |offers: Vec<Offer>| offers.into_iter().map(|offer| vec![offer]).collect();
        // The second one corrects the first, and the last two are more than an item may have.
        let corrected = || {
            let [one, two, three, _] = parts();
            vec![numbered("draft"), one, numbered("final"), two, pass("nobody"), three]
        };
        assert_eq!(reported(vec![parts().into()]), ["one", "two"]);
        assert_eq!(reported(vec![corrected()]), reported(alone(corrected())));
    }

    fn foreign(id: &str) -> Option<Foreign> {
        Some(Foreign { dialect: "contract".into(), id: id.into(), ..Foreign::default() })
    }

    #[test]
    fn b_18_a_document_that_comes_again_corrects_the_first_one() {
        let numbered =
            |id: &str, summary: &str| Offer { foreign: foreign(id), ..about("builder", summary) };
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        assert!(tells(&mut story, vec![numbered("1", "draft"), numbered("2", "the same words")]));
        assert!(tells(&mut story, vec![numbered("1", "final")]));
        story.done(h(1));
        let open = story.run.open().map(|handoff| handoff.offer.summary.clone());
        assert_eq!(open.collect::<Vec<String>>(), ["the same words", "final"]);
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

    /// An answer of the contract in the name of `by`, to the request `trace`.
    fn document(by: &str, trace: &str) -> Response {
        let document = serde_json::json!({
            "schemaVersion": "1.0.0", "traceId": trace, "timestamp": "2026-01-01T00:00:00Z",
            "respondingAgent": by, "status": "resolved", "executionTimeMs": 1,
        });
        match crate::wire::Document::read(&document).expect("a document") {
            crate::wire::Document::HandoffResponse(response) => response.into_response(),
            other => panic!("a {}", other.name()),
        }
    }

    /// The id by which the contract's documents name the first handoff.
    fn own_trace(story: &Story) -> String {
        h(1).uuid(story.run.id).to_string()
    }

    #[test]
    fn s2_01_an_answer_comes_from_the_agent_that_was_asked() {
        for by in ["builder", "orchestrator", "human", "nobody"] {
            let mut story = Story::new(RELAY);
            let why = format!("/respondingAgent: it is `{by}`, and the handoff went to `planner`");
            let response = document(by, &own_trace(&story));
            is_given_back(&mut story, response, &why);
        }
        let mut story = Story::new(RELAY);
        let response = document("planner", &own_trace(&story));
        story.ends(h(1), TurnResult::new(response));
        assert_eq!(story.status(), Status::Succeeded);
    }

    #[test]
    fn s2_01_an_answer_is_to_the_request_that_was_made_in_whatever_words_that_was() {
        const OTHER: &str = "0190a0a0-0000-7000-8000-000000000002";
        let mut story = Story::new(RELAY);
        let asked = own_trace(&story);
        let why = format!("/traceId: it is {OTHER}, and that of the request is {asked}");
        is_given_back(&mut story, document("planner", OTHER), &why);

        const TRACE: &str = "0190a0a0-0000-7000-8000-000000000001";
        let foreign =
            Foreign { dialect: "contract".into(), id: TRACE.into(), ..Foreign::default() };
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![Offer { foreign: Some(foreign), ..pass("builder") }]);
        story.ends(h(2), TurnResult::new(document("builder", OTHER)));
        assert_eq!(story.state(h(2)), "pending", "it is the answer to something else");
        story.ends(h(2), TurnResult::new(document("builder", TRACE)));
        assert_eq!(story.status(), Status::Succeeded);
    }

    /// The planner answers the first handoff with a document that does not match it.
    fn is_given_back(story: &mut Story, response: Response, why: &str) {
        story.accept(h(1));
        let turn = story.key(h(1));
        let complaints = vec![why.to_owned()];
        let result = TurnResult::new(response.clone());
        assert_eq!(story.run.check_result(turn, &result), Err(complaints.clone()));
        let told = TurnReport { response: Some(response.clone()), ..TurnReport::default() };
        let reply = story.reply(Input::Tell { turn, told: Box::new(told) });
        assert_eq!(reply, crate::Reply::Unfit { complaints });
        // Where nobody listens any more, the agent gets another turn, and reads why.
        story.ends(h(1), TurnResult::new(response));
        assert_eq!((story.state(h(1)), story.key(h(1)).turn), ("pending", 2));
        let order = story.run.outbox().next().expect("its second turn");
        assert_eq!(order.answers[0].failure.as_deref(), Some(why));
    }
}
