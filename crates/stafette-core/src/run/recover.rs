//! A handoff could not be done: the workflow chooses one of five recovery strategies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::propose::{MAX_QUESTION, Proposal, propose};
use super::{Draft, Run, close, escalate};
use crate::fields;
use crate::handoff::{PriorAttempt, Way};
use crate::text::clip;
use crate::workflow::{RecoveryCause, Strategy};
use crate::{Event, Fields, Handoff, HandoffId, Kind, Offer, Outcome, Party, Response};

/// A recovery strategy was chosen.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RecoveryChosen {
    /// The handoff that could not be done.
    pub handoff: HandoffId,
    /// The strategy that was chosen.
    pub action: Strategy,
    /// The reason for the choice.
    pub reason: String,
    /// The party to try instead, if the strategy needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Party>,
    /// The partial answer before the failure: it counts when another party provides the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gathered: Option<Box<Response>>,
}

struct Choice {
    action: Strategy,
    reason: String,
    target: Option<Party>,
    default: Fields,
}

pub(crate) fn decide(draft: &mut Draft, id: HandoffId, response: Response, trouble: RecoveryCause) {
    let Some(handoff) = draft.run.handoff(id) else { return };
    let choice = choose(&draft.run, handoff, &response, trouble);
    take(draft, id, response, choice);
}

/// Gives the work immediately to the next of the route's alternatives. Returns false if none is
/// left.
pub(crate) fn fail_over(draft: &mut Draft, id: HandoffId, failure: &str) -> bool {
    let target = draft.run.handoff(id).and_then(|handoff| listed(&draft.run, handoff));
    let found = target.is_some();
    if found {
        let choice = Choice {
            action: Strategy::RetryDifferentTarget,
            reason: "the target's quota is used up".to_owned(),
            target,
            default: Fields::new(),
        };
        take(draft, id, Response::failed(failure), choice);
    }
    found
}

fn take(draft: &mut Draft, id: HandoffId, response: Response, choice: Choice) {
    let goes_on = matches!(choice.action, Strategy::RetryDifferentTarget | Strategy::Escalate);
    let waits = draft.run.handoff(id).is_some_and(|handoff| handoff.returns_to.is_some());
    let kept = goes_on && waits && !response.outputs.is_empty();
    let kept = kept.then(|| fitting(&draft.run, id, &response)).flatten();
    draft.record(Event::RecoveryChosen(RecoveryChosen {
        handoff: id,
        action: choice.action,
        reason: choice.reason.clone(),
        target: choice.target.clone(),
        gathered: kept.map(Box::new),
    }));
    let failure = response.failure.clone().unwrap_or_else(|| choice.reason.clone());
    match choice.action {
        Strategy::RetryDifferentTarget => match choice.target {
            // Trying a person means asking one.
            Some(Party::Human) => escalate::about_failure(draft, id, &failure),
            target => {
                let target = target.unwrap_or(Party::Orchestrator);
                try_other(draft, id, response, target, &failure);
            }
        },
        Strategy::ProceedPartial => {
            close::answered(draft, id, Response { outcome: Outcome::Partial, ..response });
        }
        Strategy::SkipAndContinue => {
            let skipped =
                Response { outcome: Outcome::Partial, outputs: Fields::new(), ..response };
            close::answered(draft, id, skipped);
        }
        Strategy::FallbackDefault => {
            let mut outputs = response.outputs.clone();
            outputs.extend(choice.default);
            close::answered(
                draft,
                id,
                Response { outcome: Outcome::Resolved, outputs, ..response },
            );
        }
        Strategy::Escalate => escalate::about_failure(draft, id, &failure),
    }
}

/// Returns a partial answer as it fits with those that were gathered before; its handoff has it whole.
fn fitting(run: &Run, id: HandoffId, response: &Response) -> Option<Response> {
    let handoff = run.handoff(id)?;
    let before: usize = handoff.gathered.iter().map(Response::size).sum();
    let mut kept = response.clone();
    if before + kept.words() > fields::MAX {
        kept = close::in_brief(kept);
    }
    let room = fields::MAX.saturating_sub(before + kept.words());
    let surplus = fields::surplus([&kept.outputs], &handoff.offer.missing, room);
    fields::cut(&mut kept.outputs, &surplus.cuts, |_, _| id);
    fields::leave_out(&mut kept.outputs, &surplus.drops, |_, _| id);
    Some(kept)
}

/// Returns the first matching rule of the workflow, or the contract's sequence: another target,
/// then the partial result, then a person. Work that lacks a critical input never continues
/// automatically.
fn choose(run: &Run, handoff: &Handoff, response: &Response, trouble: RecoveryCause) -> Choice {
    let recovery = &run.workflow.recovery;
    let stays = handoff.constraints.fixed_taker;
    let rule = recovery.rules.iter().find(|rule| {
        !(stays && rule.action == Strategy::RetryDifferentTarget)
            && rule.to.as_ref().is_none_or(|to| *to == handoff.offer.to)
            && rule.on.is_none_or(|on| on == trouble)
    });
    let default = rule.map(|rule| rule.default.clone()).unwrap_or_default();
    let lacking = critical_lacking(run, handoff, response, &default);
    let choice = |action, reason: &str, target| Choice {
        action,
        reason: reason.to_owned(),
        target,
        default: default.clone(),
    };
    let action = rule.map(|rule| rule.action);
    if !lacking.is_empty() && action != Some(Strategy::RetryDifferentTarget) {
        let reason = format!("critical input missing: {}", lacking.join(", "));
        return choice(Strategy::Escalate, &reason, None);
    }
    if let Some(rule) = rule {
        let target = (rule.action == Strategy::RetryDifferentTarget)
            .then(|| rule.target.clone().or_else(|| alternative(run, handoff)))
            .flatten();
        let tried = |party: &Party| *party == handoff.offer.to || was_tried(handoff, party);
        if rule.action != Strategy::RetryDifferentTarget
            || target.as_ref().is_some_and(|t| !tried(t))
        {
            return choice(rule.action, "the workflow's rule", target);
        }
    }
    if trouble == RecoveryCause::Partial {
        return choice(
            Strategy::ProceedPartial,
            "only inputs that are not critical are missing",
            None,
        );
    }
    if let Some(target) = alternative(run, handoff) {
        return choice(Strategy::RetryDifferentTarget, "the target could not do it", Some(target));
    }
    if handoff.constraints.optional {
        return choice(Strategy::SkipAndContinue, "the work goes on without it", None);
    }
    choice(Strategy::Escalate, "cannot recover from the failure", None)
}

/// Returns the next alternative of the route that was not tried. For inputs that another handoff
/// waits for, the orchestrator is always one more: it asks a person for them.
fn alternative(run: &Run, handoff: &Handoff) -> Option<Party> {
    let offer = &handoff.offer;
    let for_inputs = offer.kind == Kind::Delegate && !offer.missing.is_empty();
    let orchestrator = for_inputs.then_some(Party::Orchestrator);
    listed(run, handoff).or_else(|| orchestrator.filter(|party| is_new(handoff, party)))
}

/// Returns the next alternative of the route that was not tried. A successor keeps the giver, so
/// its alternatives are those of the route that was first taken.
fn listed(run: &Run, handoff: &Handoff) -> Option<Party> {
    let offer = &handoff.offer;
    if handoff.constraints.fixed_taker {
        return None;
    }
    let first = offer.prior_attempts.iter().find_map(|prior| prior.tried.clone());
    let route = [Some(offer.to.clone()), first]
        .into_iter()
        .flatten()
        .find_map(|to| run.workflow.route(&offer.from, &to));
    let listed = route.map(|route| route.alternatives.as_slice()).unwrap_or_default();
    listed.iter().find(|party| is_new(handoff, party)).cloned()
}

fn is_new(handoff: &Handoff, party: &Party) -> bool {
    *party != handoff.offer.to && !was_tried(handoff, party)
}

fn was_tried(handoff: &Handoff, party: &Party) -> bool {
    handoff.offer.prior_attempts.iter().any(|prior| prior.tried.as_ref() == Some(party))
}

fn critical_lacking<'a>(
    run: &Run,
    handoff: &'a Handoff,
    response: &'a Response,
    default: &Fields,
) -> Vec<&'a str> {
    let asked = handoff.offer.missing.iter().map(|input| input.key.as_str());
    let given = |key: &str| {
        let earlier = handoff.gathered.iter().any(|response| response.outputs.contains_key(key));
        earlier || response.outputs.contains_key(key) || default.contains_key(key)
    };
    let mut lacking: Vec<&str> = Vec::new();
    for key in asked.chain(response.unresolved.iter().map(String::as_str)) {
        let is_critical = run.workflow.recovery.critical.iter().any(|critical| critical == key);
        if is_critical && !given(key) && !lacking.contains(&key) {
            lacking.push(key);
        }
    }
    lacking
}

fn try_other(draft: &mut Draft, id: HandoffId, response: Response, target: Party, failure: &str) {
    let Some(handoff) = draft.run.handoff(id) else { return };
    let mut offer = Offer { to: target, ..handoff.offer.clone() };
    offer.prior_attempts.push(PriorAttempt {
        attempt: u32::try_from(offer.prior_attempts.len()).unwrap_or(u32::MAX).saturating_add(1),
        action: format!("handed to {}", handoff.offer.to),
        result: clip(failure, MAX_QUESTION),
        tried: Some(handoff.offer.to.clone()),
    });
    // Inputs that were already provided are not requested again.
    offer.missing = handoff.lacking();
    let proposal = Proposal {
        cause: handoff.cause,
        returns_to: handoff.returns_to,
        declared: true,
        continues: Some(id),
        constraints: handoff.constraints,
        ..Proposal::of(offer)
    };
    match propose(draft, proposal) {
        Ok(successor) => {
            let response = Response { outcome: Outcome::Failed, ..response };
            close::succeeded_by(draft, id, response, Way::Answered, vec![successor]);
        }
        Err(refusal) => escalate::about_failure(draft, id, &format!("{failure}; {refusal}")),
    }
}

impl RecoveryChosen {
    pub(crate) fn apply(&self, run: &mut Run) {
        if let Some(response) = &self.gathered
            && let Some(handoff) = run.handoff_mut(self.handoff)
        {
            handoff.gathered.push((**response).clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::run::story::{Story, ask, fields, h};
    use crate::{FailureKind, Input, MissingInput, Offer, Outcome, Status};
    use serde_json::json;

    const TRIO: &str = r#"
        workflow = { name = "trio", entry = "writer" }
        agents = { writer.runner = "scripted", research.runner = "scripted", library.runner = "scripted" }
        routes = [{ from = "writer", to = "research" }]
        limits = { cooldown = 0 }
        retries = { max = 1 }
    "#;

    fn wants(keys: &[&str]) -> Offer {
        let missing = keys
            .iter()
            .map(|key| MissingInput {
                key: (*key).to_owned(),
                expected_type: "string".into(),
                description: String::new(),
                source: None,
            })
            .collect();
        Offer { missing, ..ask("research") }
    }

    #[test]
    fn s2_08_what_one_source_gave_is_there_when_the_rest_comes_from_another() {
        let mut story = Story::new(TRIO);
        story.hands(h(1), vec![wants(&["market_size", "competitors"])]);
        story.answers(h(2), Outcome::Failed, json!({ "market_size": "9 bn" }));
        // The orchestrator asks a person for what is left, and for nothing else.
        let asked = story.run.handoff(h(4)).expect("a question");
        let keys: Vec<&str> = asked.offer.missing.iter().map(|it| it.key.as_str()).collect();
        assert_eq!(keys, ["competitors"]);
        assert_eq!(story.question(h(4)).answer_with, "competitors=…");
        story.person_says(h(4), "A and B");
        let order = story.run.outbox().next().expect("the writer goes on");
        assert_eq!(order.inputs["market_size"], "9 bn");
        assert_eq!(order.inputs["competitors"], "A and B");
        let by: Vec<&str> = order.answers.iter().map(|answer| answer.by.as_str()).collect();
        assert_eq!(by, ["research", "orchestrator"], "each with its source");
    }

    #[test]
    fn s2_08_what_was_given_is_there_when_the_rest_is_passed_on() {
        let four = TRIO.replace(
            "to = \"research\" }",
            "to = \"research\", alternatives = [\"library\"] }, { from = \"library\", to = \"archive\" }",
        );
        let runner = "library.runner = \"scripted\"";
        let four = four.replace(runner, &format!("{runner}, archive.runner = \"scripted\""));
        let mut story = Story::new(&four);
        story.hands(h(1), vec![wants(&["market_size", "competitors"])]);
        story.answers(h(2), Outcome::Failed, json!({ "market_size": "9 bn" }));
        story.hands(h(3), vec![crate::run::story::pass("archive")]);
        story.answers(h(4), Outcome::Resolved, json!({ "competitors": "A and B" }));
        let order = story.run.outbox().next().expect("the writer goes on");
        assert_eq!(order.inputs["market_size"], "9 bn");
        assert_eq!(order.inputs["competitors"], "A and B");
    }

    #[test]
    fn s2_08_a_person_who_skips_or_adds_does_not_take_away_what_was_given() {
        let critical = format!("{TRIO}\nrecovery.critical = [\"size\"]");
        for (says, size) in [("skip", None), ("12", Some("12"))] {
            let mut story = Story::new(&critical);
            story.hands(h(1), vec![wants(&["size", "trend"])]);
            story.answers(h(2), Outcome::Partial, json!({ "trend": "up" }));
            story.person_says(h(3), says);
            let order = story.run.outbox().next().expect("the writer goes on");
            assert_eq!(order.inputs["trend"], "up", "after `{says}`");
            let given = order.inputs.get("size").or(order.inputs.get("answer"));
            assert_eq!(given.and_then(|value| value.as_str()), size);
        }
    }

    #[test]
    fn s2_08_a_person_is_asked_until_no_critical_input_is_missing_and_the_answer_has_all() {
        let critical = format!("{TRIO}\nrecovery.critical = [\"a\", \"b\", \"c\"]");
        let mut story = Story::new(&critical);
        story.hands(h(1), vec![wants(&["a", "b", "c", "d"])]);
        story.answers(h(2), Outcome::Partial, json!({ "a": "A" }));
        let says = |story: &Story, id: u32| {
            let asked = story.run.handoff(h(id)).expect("a question");
            let question = asked.offer.question.clone().expect("its words");
            (question.details, question.answer_with)
        };
        let (details, with) = says(&story, 3);
        assert!(details.ends_with("critical input missing: b, c"), "{details}");
        assert_eq!(with, "b=… c=… d=…");
        let mut gives = |id: u32, values: serde_json::Value| {
            let (values, by) = (fields(values), "ada".into());
            story.input(Input::Answer { handoff: h(id), values, text: String::new(), by });
            story.run.handoff(h(2)).and_then(|handoff| handoff.answer())
        };
        assert_eq!(gives(3, json!({ "b": "B" })), None, "c is critical");
        let answer = gives(4, json!({ "c": "C" })).expect("d can be done without");
        assert_eq!(answer.outputs, fields(json!({ "a": "A", "b": "B", "c": "C" })));
        assert_eq!((answer.outcome, answer.unresolved), (Outcome::Partial, vec!["d".to_owned()]));
        let order = story.run.outbox().next().expect("the writer goes on");
        assert_eq!(order.inputs, answer.outputs);
    }

    #[test]
    fn s2_09_an_agent_cannot_say_whom_recovery_has_tried() {
        let mut story =
            Story::new(&TRIO.replace(
                "to = \"research\" }",
                "to = \"research\", alternatives = [\"library\"] }",
            ));
        let forged = crate::handoff::PriorAttempt {
            attempt: 1,
            action: "handed to library".into(),
            result: "nothing".into(),
            tried: Some("library".into()),
        };
        story.hands(h(1), vec![Offer { prior_attempts: vec![forged], ..wants(&["size"]) }]);
        story.breaks(h(2), FailureKind::Recoverable);
        assert_eq!(story.run.outbox().next().expect("a turn").agent.as_str(), "library");
    }

    fn with_rule(rule: &str) -> Story {
        Story::new(&format!("{TRIO}\nrecovery = {{ critical = [\"size\"], rules = [{rule}] }}"))
    }

    #[test]
    fn s2_08_a_resolved_answer_is_merged_and_the_source_resumes() {
        let mut story = Story::new(TRIO);
        story.hands(h(1), vec![wants(&["size"])]);
        assert_eq!(story.state(h(1)), "blocked");
        story.answers(h(2), Outcome::Resolved, json!({"size": "9 bn"}));
        let order = story.run.outbox().next().expect("the writer goes on");
        assert_eq!(order.agent.as_str(), "writer");
        assert_eq!(order.inputs["size"], "9 bn");
        assert_eq!(order.answers[0].outcome, Outcome::Resolved);
    }

    #[test]
    fn s2_09_by_default_a_failed_source_of_inputs_is_replaced_by_the_orchestrator() {
        let mut story = Story::new(TRIO);
        story.hands(h(1), vec![wants(&["size"])]).answers(h(2), Outcome::Failed, json!({}));
        insta::assert_snapshot!(story.transcript(), @r"
        run created: Add user auth
        h1 human → writer (task_handoff)
        h1 turn 1.1 ordered
        h1 acknowledged
        h1 turn ended
        h2 writer → research (missing_required_input)
        h1 waits for [h2]
        h2 turn 1.1 ordered
        h2 acknowledged
        h2 turn ended
        h2 recovery: RetryDifferentTarget
        h3 writer → orchestrator (missing_required_input)
        h2 Failed, [h3] instead
        h4 orchestrator → human (missing_required_input)
        h3 waits for [h4]
        ");
        story.person_says(h(4), "9 bn");
        assert_eq!(story.run.outbox().next().expect("a turn").inputs["size"], "9 bn");
    }

    #[test]
    fn s2_09_another_target_is_tried_first_when_the_workflow_names_one() {
        let mut story = with_rule(
            r#"{ to = "research", action = "retry_different_target", target = "library" }"#,
        );
        story.hands(h(1), vec![wants(&["size"])]).breaks(h(2), FailureKind::Recoverable);
        assert_eq!(story.state(h(2)), "failed");
        story.answers(h(3), Outcome::Resolved, json!({"size": "9 bn"}));
        let order = story.run.outbox().next().expect("a turn");
        assert_eq!((order.agent.as_str(), &order.inputs["size"]), ("writer", &json!("9 bn")));
    }

    #[test]
    fn s2_09_partial_data_is_enough_when_nothing_critical_is_missing() {
        let mut story = with_rule("");
        story.hands(h(1), vec![wants(&["size", "trend"])]);
        story.answers(h(2), Outcome::Partial, json!({"size": "9 bn"}));
        assert_eq!(story.closing(h(2)).response.outcome, Outcome::Partial);
        assert_eq!(story.run.outbox().next().expect("a turn").inputs["size"], "9 bn");
    }

    #[test]
    fn s2_09_a_missing_critical_input_always_blocks() {
        for rule in [
            "",
            r#"{ action = "proceed_partial" }"#,
            r#"{ action = "skip_and_continue" }"#,
            r#"{ action = "fallback_default", default = { trend = "up" } }"#,
        ] {
            let mut story = with_rule(rule);
            story.hands(h(1), vec![wants(&["size", "trend"])]);
            story.answers(h(2), Outcome::Partial, json!({"trend": "up"}));
            assert_eq!(story.status(), Status::WaitingForHuman, "{rule}");
            // The waiting handoff takes the person's result.
            let values = fields(json!({"size": "9 bn"}));
            let (text, by) = (String::new(), "ada".into());
            story.input(crate::Input::Answer { handoff: h(3), values, text, by });
            assert_eq!(story.run.outbox().next().expect("a turn").inputs["size"], "9 bn");
        }
    }

    #[test]
    fn s2_09_skip_goes_on_without_and_fallback_with_the_workflows_value() {
        let mut story = with_rule(r#"{ action = "skip_and_continue" }"#);
        story.hands(h(1), vec![wants(&["trend"])]).answers(
            h(2),
            Outcome::Failed,
            json!({"junk": 1}),
        );
        let order = story.run.outbox().next().expect("a turn");
        assert!(!order.inputs.contains_key("trend") && !order.inputs.contains_key("junk"));

        let mut story =
            with_rule(r#"{ action = "fallback_default", default = { trend = "flat" } }"#);
        story.hands(h(1), vec![wants(&["trend"])]).answers(h(2), Outcome::Failed, json!({}));
        assert_eq!(story.run.outbox().next().expect("a turn").inputs["trend"], "flat");
    }

    #[test]
    fn s2_09_escalate_asks_a_person_who_may_stop_the_run() {
        let mut story = with_rule(r#"{ action = "escalate" }"#);
        story.hands(h(1), vec![wants(&["trend"])]).answers(h(2), Outcome::Failed, json!({}));
        story.person_says(h(3), "stop");
        assert_eq!(story.status(), Status::Failed);
    }

    #[test]
    fn to_try_a_person_instead_is_to_ask_one() {
        let mut story = with_rule(r#"{ action = "retry_different_target", target = "human" }"#);
        story.answers(h(1), Outcome::Failed, json!({}));
        assert_eq!(story.status(), Status::WaitingForHuman);
        assert_eq!(story.question(h(2)).options, ["retry", "skip", "stop"]);
    }
}
