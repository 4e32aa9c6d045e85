//! A turn ends: its cost is settled, and either its answer closes the handoff or its offers move
//! the work on. A result whose turn is no longer open is kept and changes nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::propose::{self, Proposal, Refusal, propose};
use super::{
    Draft, Run, budget, close, escalate, expire, message, permission, printed, recover, resume,
    tell,
};
use crate::handoff::{About, State, Way};
use crate::team;
use crate::text::clip;
use crate::workflow::RecoveryCause;
use crate::{
    Event, HandoffId, Kind, Offer, Outcome, Party, Reason, Reply, Response, TurnKey, TurnResult,
};

/// The most characters of an agent's last words in the question about them.
const SAID: usize = 500;

/// A turn ended with a result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnFinished {
    /// The turn that ended.
    pub turn: TurnKey,
    /// The result of the turn.
    pub result: TurnResult,
    /// True if a person has to confirm the result, because it was read from plain output.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unconfirmed: bool,
}

/// A result arrived after its turn had ended. It is kept as evidence only.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LateResultKept {
    /// The turn that the result belongs to.
    pub turn: TurnKey,
    /// The result that was not used.
    pub result: TurnResult,
}

pub(super) fn decide(draft: &mut Draft, turn: TurnKey, result: TurnResult) -> Reply {
    if draft.run.is_current(turn) {
        expire::if_overdue(draft, turn.handoff);
    }
    if !draft.run.is_current(turn) {
        return keep_late(draft, turn, result);
    }
    // It has a result, so it has read what it was given.
    message::read_with(draft, turn);
    let mut result = tell::complete(&draft.run, turn.handoff, result);
    result.usage = budget::booked(&draft.run, turn.handoff, result.usage);
    let ignored = printed::ignored(&draft.run, turn.handoff).to_vec();
    let reminds = result.unanswered && is_minded(draft, turn.handoff);
    let trusted = draft.run.workflow.workflow.trust_bare_frames;
    let unconfirmed = result.bare && !trusted && !reminds;
    let settled = TurnFinished { turn, result: result.clone(), unconfirmed };
    draft.record(Event::TurnFinished(Box::new(settled)));
    permission::withdraw(draft, turn);
    if reminds {
        remind(draft, turn.handoff, &result.response.summary, &ignored);
        return Reply::Finished { admitted: Vec::new(), refused: Vec::new() };
    }
    if unconfirmed {
        confirm(draft, turn.handoff, &result);
        return Reply::Finished { admitted: Vec::new(), refused: Vec::new() };
    }
    hand_on(draft, turn.handoff, result)
}

/// True if a turn without an answer is for the kernel to mind. A coordinator that gave the handoff out
/// has rules of its own for silence.
fn is_minded(draft: &Draft, id: HandoffId) -> bool {
    draft.run.handoff(id).is_some_and(|handoff| crate::is_default(&handoff.constraints))
}

/// The turn ended without a handoff, a result or a question. To take that for success would be to guess:
/// the agent is asked once more, then a person is.
fn remind(draft: &mut Draft, id: HandoffId, said: &str, ignored: &[String]) {
    let Some(handoff) = draft.run.handoff(id) else { return };
    let unread = match ignored.is_empty() {
        true => String::new(),
        false => format!("; what it printed as frames cannot be read: {}", ignored.join("; ")),
    };
    if !handoff.reminded {
        return resume::remind(draft, id, &unread);
    }
    let said = clip(said, SAID);
    let last = if said.is_empty() { String::new() } else { format!("; it said: {said}") };
    let why = format!("it ended twice without a handoff, a result or a question{unread}{last}");
    escalate::about_failure(draft, id, &why);
}

/// Keeps the result of a turn that has ended. Also of a turn unknown to this state: if another
/// process ordered it, storing this fails, and the state that knows the turn decides.
pub(super) fn keep_late(draft: &mut Draft, turn: TurnKey, result: TurnResult) -> Reply {
    if turn.run == draft.run.id {
        let late = LateResultKept { turn, result };
        draft.record(Event::LateResultKept(Box::new(late)));
    }
    Reply::Late
}

/// Asks a person to confirm offers that were read from plain output: any file that an agent prints
/// could imitate them, so they are only proposals.
fn confirm(draft: &mut Draft, id: HandoffId, result: &TurnResult) {
    let targets: Vec<&str> = result.offers.iter().map(|offer| offer.to.as_str()).collect();
    let says = match result.response.outcome {
        _ if !targets.is_empty() => format!("to hand over to {}", targets.join(", ")),
        Outcome::Resolved if let Some(word) = result.said.word() => format!("`{word}`"),
        Outcome::Resolved => "that its work is done".to_owned(),
        Outcome::Partial => "that its work is done in part".to_owned(),
        Outcome::Failed | Outcome::Escalated => "that it failed".to_owned(),
    };
    let question = crate::Question {
        reason: "unconfirmed_frame".into(),
        details: format!("Its output says {says}. Is that meant?"),
        options: vec!["allow".into(), "refuse".into()],
        blocking: true,
        about: About::Unconfirmed(id),
        ..crate::Question::default()
    };
    escalate::park(draft, id, question);
}

/// Moves the work on: proposes every offer, and then closes the handoff, lets it wait or returns
/// the refusals to it.
pub(super) fn hand_on(draft: &mut Draft, id: HandoffId, result: TurnResult) -> Reply {
    team::turn_ended(draft, id, &result);
    let TurnResult { mut response, offers, fingerprint, .. } = result;
    let (mut admitted, mut refused) = (Vec::new(), Vec::new());
    let Some(handoff) = draft.run.handoff(id).filter(|handoff| handoff.is_open()) else {
        return Reply::Finished { admitted, refused };
    };
    let (agent, waiting) = (handoff.offer.to.clone(), handoff.returns_to);
    let keeps = handoff.constraints.keeps;
    let mut waits_for = Vec::new();
    let mut successors = Vec::new();
    for offer in offers {
        if is_completion(&offer) {
            response.outputs.extend(offer.outputs);
            continue;
        }
        let mut offer = Offer { from: agent.clone(), ..propose::from_outside(offer) };
        if keeps {
            offer.kind = Kind::Delegate;
        }
        let mut proposal =
            Proposal { fingerprint: fingerprint.clone(), ..Proposal::within(offer, id) };
        let waits = proposal.returns_to.is_some();
        let aside = !waits && proposal.offer.to == Party::Human;
        if !waits && !aside {
            // The successor owes the answer to the waiting handoff.
            proposal.returns_to = waiting;
        }
        let proposed = propose(draft, proposal);
        admitted.extend(proposed.as_ref().ok());
        match proposed {
            Ok(child) if waits => waits_for.push(child),
            Ok(_) if aside => {}
            Ok(child) => successors.push(child),
            Err(refusal) => refused.push(refusal),
        }
    }
    if !waits_for.is_empty() {
        let answers = refused.iter().map(Refusal::response).collect();
        resume::block(draft, id, waits_for, answers);
    } else if !successors.is_empty() {
        // Its own part is done, whatever outcome it reports for the rest.
        let response = Response { by: agent, outcome: Outcome::Resolved, ..response };
        close::succeeded_by(draft, id, response, Way::Answered, successors);
    } else if !refused.is_empty() {
        give_back(draft, id, &refused);
    } else {
        conclude(draft, id, response);
    }
    Reply::Finished { admitted, refused }
}

/// True if a result asks a person without waiting, in the turn that ends the run: the question would end
/// with it. `whole` is the result with everything that the turn has reported.
pub(super) fn asks_nobody(
    run: &Run,
    id: HandoffId,
    result: &TurnResult,
    whole: &TurnResult,
) -> bool {
    let waits = |offer: &Offer| Proposal::within(offer.clone(), id).returns_to.is_some();
    let aside = |offer: &Offer| offer.to == Party::Human && !waits(offer);
    let goes_on = |offer: &Offer| !aside(offer) && !is_completion(offer);
    let ends = whole.response.outcome == Outcome::Resolved
        && run.open().all(|it| it.id == id || close::is_aside(it));
    result.offers.iter().any(aside) && ends && !whole.offers.iter().any(goes_on)
}

/// True for a completion offered to the orchestrator: that is the answer itself, not another
/// handoff.
pub(super) fn is_completion(offer: &Offer) -> bool {
    offer.to == Party::Orchestrator && offer.reason == Reason::Completion
}

/// Applies the answer of an agent that handed nothing on.
fn conclude(draft: &mut Draft, id: HandoffId, response: Response) {
    let response = match tell::fitting(&draft.run, id, response) {
        Ok(response) => response,
        Err(complaints) => return think_again(draft, id, complaints),
    };
    let Some(response) = team::conclude(draft, id, response) else { return };
    match response.outcome {
        Outcome::Resolved => close::answered(draft, id, response),
        Outcome::Partial => recover::decide(draft, id, response, RecoveryCause::Partial),
        Outcome::Failed | Outcome::Escalated => {
            recover::decide(draft, id, response, RecoveryCause::Failed);
        }
    }
}

/// Returns the refusals of all its proposals to the agent, which may try again until a person is
/// asked.
fn give_back(draft: &mut Draft, id: HandoffId, refusals: &[Refusal]) {
    if let Some(parked) = refusals.iter().find(|refusal| refusal.parks()) {
        return escalate::about_loop(draft, id, parked);
    }
    if is_worn_out(draft, id) {
        let said: Vec<String> = refusals.iter().map(ToString::to_string).collect();
        return escalate::about_failure(draft, id, &said.join("; "));
    }
    resume::refused(draft, id, refusals.iter().map(Refusal::response).collect());
}

/// Rejects an answer that does not match the request: the agent receives the reasons and may answer
/// again, until a person is asked.
fn think_again(draft: &mut Draft, id: HandoffId, complaints: Vec<String>) {
    if is_worn_out(draft, id) {
        return escalate::about_failure(draft, id, &complaints.join("; "));
    }
    resume::refused(draft, id, complaints.into_iter().map(Response::failed).collect());
}

/// True if the agent has used up its allowed refusals.
fn is_worn_out(draft: &Draft, id: HandoffId) -> bool {
    let limit = draft.run.workflow.limits.refusals;
    draft.run.handoff(id).is_some_and(|handoff| handoff.refusals >= limit)
}

impl TurnFinished {
    pub(super) fn apply(&self, run: &mut Run) {
        budget::settle(run, self.turn.handoff, Some(self.result.usage));
        let agent = run.handoff(self.turn.handoff).map(|handoff| handoff.offer.to.to_string());
        if let Some(account) = agent.and_then(|agent| run.purse.agents.get_mut(&agent)) {
            account.finish(self.result.usage);
        }
        let Some(handoff) = run.handoff_mut(self.turn.handoff) else { return };
        handoff.answers.clear();
        handoff.permits.clear();
        handoff.told = tell::TurnReport::default();
        handoff.ignored.clear();
        handoff.unconfirmed = self.unconfirmed.then(|| Box::new(self.result.clone()));
        handoff.reminded &= self.result.unanswered;
        handoff.state = State::Undecided;
    }
}

#[cfg(test)]
mod tests {
    use crate::run::story::{RELAY, Story, fields, h, pass};
    use crate::{Kind, Offer, Party, Reason, Status};
    use serde_json::json;

    #[test]
    fn s5_06_each_agent_takes_its_handoff_works_and_makes_the_next_one() {
        let mut story = Story::new(RELAY);
        let offer = |to: &str, reason| Offer { reason, ..pass(to) };
        story.hands(h(1), vec![offer("builder", Reason::TaskHandoff)]);
        story.hands(h(2), vec![offer("reviewer", Reason::ReviewRequest)]);
        story.hands(h(3), vec![offer("fixer", Reason::FixRequest)]);
        story.hands(h(4), vec![offer("reviewer", Reason::RereviewRequest)]);
        let completion = Offer {
            outputs: fields(json!({"status": "approved"})),
            ..Offer::new(Party::from("?"), Party::Orchestrator, Kind::Transfer, Reason::Completion)
        };
        story.hands(h(5), vec![completion]);
        assert_eq!(story.closing(h(1)).succeeded_by, [h(2)]);
        assert_eq!(story.status(), Status::Succeeded);
        assert_eq!(story.run.tally.rounds, 2);
        assert_eq!(story.closing(h(5)).response.outputs["status"], "approved");
        insta::assert_snapshot!(story.transcript(), @r"
        run created: Add user auth
        h1 human → planner (task_handoff)
        h1 turn 1.1 ordered
        h1 acknowledged
        h1 turn ended
        h2 planner → builder (task_handoff)
        h1 Resolved by planner
        h2 turn 1.1 ordered
        h2 acknowledged
        h2 turn ended
        h3 builder → reviewer (review_request)
        h2 Resolved by builder
        h3 turn 1.1 ordered
        h3 acknowledged
        h3 turn ended
        h4 reviewer → fixer (fix_request)
        h3 Resolved by reviewer
        h4 turn 1.1 ordered
        h4 acknowledged
        h4 turn ended
        h5 fixer → reviewer (rereview_request)
        h4 Resolved by fixer
        h5 turn 1.1 ordered
        h5 acknowledged
        h5 turn ended
        h5 Resolved by reviewer
        run succeeded: nothing is left to do
        ");
    }

    #[test]
    fn b_19_a_turn_that_says_nothing_is_asked_once_more_and_then_a_person_is() {
        let silent = || crate::TurnResult { unanswered: true, ..crate::run::story::done() };
        let mut story = Story::new(RELAY);
        story.ends(h(1), silent());
        assert_eq!((story.state(h(1)), story.key(h(1)).turn), ("pending", 2));
        let order = story.run.outbox().next().expect("its second turn");
        assert!(order.answers[0].failure.as_ref().is_some_and(|it| it.contains("a result")));
        story.ends(h(1), silent());
        assert_eq!(story.status(), Status::WaitingForHuman);
        assert!(story.question(h(2)).details.contains("it ended twice without"));
        // Once it answers, a later silence is a first one again.
        let mut story = Story::new(RELAY);
        story.ends(h(1), silent()).hands(h(1), vec![crate::run::story::ask("human")]);
        story.person_says(h(2), "JWT").ends(h(1), silent());
        assert_eq!(story.state(h(1)), "pending");
        story.done(h(1));
        assert_eq!(story.status(), Status::Succeeded);
    }

    #[test]
    fn b_19_what_was_reported_is_an_answer_whatever_the_output_says() {
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        let turn = story.key(h(1));
        let told = super::tell::TurnReport { offers: vec![pass("builder")], ..Default::default() };
        story.input(crate::Input::Tell { turn, told: Box::new(told) });
        story.ends(h(1), crate::TurnResult { unanswered: true, ..crate::run::story::done() });
        assert_eq!((story.state(h(1)), story.state(h(2))), ("resolved", "pending"));
    }

    #[test]
    fn an_agent_that_keeps_proposing_what_is_refused_ends_with_a_person() {
        let mut story = Story::new(RELAY);
        for _ in 0..3 {
            story.hands(h(1), vec![pass("nobody")]);
        }
        assert_eq!(story.status(), Status::WaitingForHuman);
        assert_eq!(story.run.tally.refused, 3);
    }

    #[test]
    fn what_one_agent_learns_travels_with_the_work() {
        let mut story = Story::new(RELAY);
        story.hands(
            h(1),
            vec![Offer { outputs: fields(json!({"spec": "a.md"})), ..pass("builder") }],
        );
        story.hands(
            h(2),
            vec![Offer { outputs: fields(json!({"commit": "abc"})), ..pass("reviewer") }],
        );
        let order = story.run.outbox().next().expect("the reviewer's turn");
        assert_eq!(
            (&order.inputs["spec"], &order.inputs["commit"]),
            (&json!("a.md"), &json!("abc"))
        );
    }

    #[test]
    fn a_verdict_that_it_failed_does_not_drop_what_is_handed_on() {
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![pass("builder")]).hands(h(2), vec![pass("reviewer")]);
        let failed = crate::Response::new(Party::from("reviewer"), crate::Outcome::Failed);
        let result = crate::TurnResult {
            response: failed,
            offers: vec![pass("fixer")],
            ..crate::run::story::done()
        };
        story.ends(h(3), result);
        assert_eq!((story.state(h(3)), story.state(h(4))), ("resolved", "pending"));
    }

    #[test]
    fn whoever_gets_delegated_work_passed_on_owes_the_answer() {
        let mut story = Story::new(
            r#"
            workflow = { name = "trio", entry = "a" }
            agents = { a.runner = "scripted", b.runner = "scripted", c.runner = "scripted" }
            routes = [{ from = "a", to = "b" }, { from = "b", to = "c" }]
            "#,
        );
        story.hands(h(1), vec![crate::run::story::ask("b")]).hands(h(2), vec![pass("c")]);
        assert_eq!(story.state(h(1)), "blocked", "a still waits");
        story.answers(h(3), crate::Outcome::Resolved, json!({"size": 9}));
        let order = story.run.outbox().next().expect("a goes on");
        assert_eq!((order.agent.as_str(), &order.inputs["size"]), ("a", &json!(9)));
    }

    #[test]
    fn b_07_an_agent_cannot_dress_its_question_up_as_ours() {
        use crate::handoff::About;
        for about in [About::Budget, About::Loop(h(1)), About::Recovery(h(1))] {
            let question = crate::Question { about, blocking: true, ..crate::Question::default() };
            let offer = Offer { question: Some(question), ..crate::run::story::ask("human") };
            let mut story = Story::new(RELAY);
            story.hands(h(1), vec![offer]);
            assert_eq!(story.question(h(2)).about, About::Inputs);
            assert_eq!(story.status(), Status::WaitingForHuman);
        }
    }
}
