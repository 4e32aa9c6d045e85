//! Before an agent starts: checks its inputs, and requests those that are missing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::propose::{Proposal, propose};
use super::{Draft, Run, resume};
use crate::workflow::Need;
use crate::{Event, HandoffId, Kind, MissingInput, Offer, Party, Reason};

/// The check of an agent's inputs, in the contract's terms.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InputsAssessed {
    /// The handoff that was checked.
    pub handoff: HandoffId,
    /// True if the agent can start.
    pub can_handle: bool,
    /// The confidence in that result, from 0 to 1.
    pub confidence: f64,
    /// The party that is asked for the missing inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff_to: Option<Party>,
    /// A short explanation for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The names of the missing inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// True if the agent can start now. Otherwise requests the missing inputs from their provider and
/// lets the handoff wait.
pub(super) fn can_start(draft: &mut Draft, id: HandoffId) -> bool {
    let Some((provider, wanted)) = missing(&draft.run, id) else { return true };
    let keys: Vec<String> = wanted.iter().map(|need| need.key.clone()).collect();
    let Some(handoff) = draft.run.handoff(id) else { return true };
    let agent = handoff.offer.to.clone();
    let item = handoff.offer.item.clone();
    let person = provider == Party::Orchestrator || provider == Party::Human;
    let (confidence, reason) =
        if person { (0.5, "Missing user decision") } else { (0.7, "Missing research data") };
    draft.record(Event::InputsAssessed(InputsAssessed {
        handoff: id,
        can_handle: false,
        confidence,
        handoff_to: Some(provider.clone()),
        reason: reason.to_owned(),
        missing: keys.clone(),
    }));
    let offer = Offer {
        detail: reason.to_owned(),
        item,
        summary: format!("{agent} cannot start without {}", keys.join(", ")),
        missing: wanted.iter().map(as_missing).collect(),
        ..Offer::new(agent, provider, Kind::Delegate, Reason::MissingRequiredInput)
    };
    // A need is declared by the workflow: that serves as its route.
    let proposal = Proposal { declared: true, ..Proposal::within(offer, id) };
    match propose(draft, proposal) {
        Ok(child) => {
            resume::block(draft, id, vec![child], Vec::new());
            false
        }
        Err(refusal) if keys.iter().any(|key| is_critical(&draft.run, key)) => {
            super::escalate::about_failure(draft, id, &refusal.to_string());
            false
        }
        Err(_) => {
            draft.record(Event::InputsAssessed(InputsAssessed {
                handoff: id,
                can_handle: true,
                confidence: 0.6,
                handoff_to: None,
                reason: "going on without".to_owned(),
                missing: keys,
            }));
            // Another party may have to be asked for the rest.
            can_start(draft, id)
        }
    }
}

/// Returns the inputs to ask for next, and their provider: questions for a person come first. An
/// input that was requested and not provided is requested again only if it is critical.
fn missing(run: &Run, id: HandoffId) -> Option<(Party, Vec<Need>)> {
    let handoff = run.handoff(id)?;
    let (_, agent) = run.workflow.agent(&handoff.offer.to)?;
    let was_asked = |key: &String| handoff.assessed.contains(key);
    let open: Vec<&Need> = agent
        .needs
        .iter()
        .filter(|need| !handoff.inputs.contains_key(&need.key))
        .filter(|need| !was_asked(&need.key) || is_critical(run, &need.key))
        .collect();
    let provider_of = |need: &Need| {
        // Requested before and not provided: the orchestrator, and so a person, decides.
        let again = was_asked(&need.key);
        let provider = run.workflow.provider(&need.source);
        // No party can provide what it lacks itself.
        if again || provider == handoff.offer.to { Party::Orchestrator } else { provider }
    };
    let first = open
        .iter()
        .map(|need| provider_of(need))
        .min_by_key(|provider| matches!(provider, Party::Agent(_)))?;
    let wanted = open.into_iter().filter(|need| provider_of(need) == first).cloned().collect();
    Some((first, wanted))
}

fn is_critical(run: &Run, key: &str) -> bool {
    run.workflow.recovery.critical.iter().any(|critical| critical == key)
}

fn as_missing(need: &Need) -> MissingInput {
    MissingInput {
        key: need.key.clone(),
        expected_type: need.expected_type.clone(),
        description: need.description.clone(),
        source: Some(need.source.clone()),
    }
}

impl InputsAssessed {
    pub(super) fn apply(&self, run: &mut Run) {
        let Some(handoff) = run.handoff_mut(self.handoff) else { return };
        for key in &self.missing {
            if !handoff.assessed.contains(key) {
                handoff.assessed.push(key.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::run::story::{Story, h};
    use crate::{Outcome, Status};
    use serde_json::json;

    const INTEGRATION: &str = r#"
        workflow = { name = "report", entry = "writer" }
        agents.research.runner = "scripted"
        limits = { cooldown = 0 }
        [agents.writer]
        runner = "scripted"
        needs = [{ key = "market_size", source = "market" }, { key = "audience", source = "user" }]
    "#;

    #[test]
    fn s2_07_what_a_person_must_say_is_asked_first_then_research_then_the_agent_starts() {
        let mut story = Story::new(INTEGRATION);
        assert_eq!(story.status(), Status::WaitingForHuman);
        story.person_says(h(3), "founders");
        story.answers(h(4), Outcome::Resolved, json!({"market_size": "9 bn"}));
        let order = story.run.outbox().next().expect("the writer starts");
        assert_eq!(order.inputs["audience"], "founders");
        assert_eq!(order.inputs["market_size"], "9 bn");
        story.done(h(1));
        insta::assert_snapshot!(story.transcript(), @r#"
        run created: Add user auth
        h1 human → writer (task_handoff)
        h1 can start: false (0.5), missing ["audience"]
        h2 writer → orchestrator (missing_required_input)
        h1 waits for [h2]
        h3 orchestrator → human (missing_required_input)
        h2 waits for [h3]
        h3 answered: founders
        h3 Resolved by human
        h2 goes on
        h2 Resolved by orchestrator
        h1 goes on
        h1 can start: false (0.7), missing ["market_size"]
        h4 writer → research (missing_required_input)
        h1 waits for [h4]
        h4 turn 1.1 ordered
        h4 acknowledged
        h4 turn ended
        h4 Resolved by research
        h1 goes on
        h1 turn 1.1 ordered
        h1 acknowledged
        h1 turn ended
        h1 Resolved by writer
        run succeeded: nothing is left to do
        "#);
    }

    #[test]
    fn s2_07_an_agent_goes_on_without_what_nobody_could_provide_unless_it_is_critical() {
        let only_market = INTEGRATION.replace(", { key = \"audience\", source = \"user\" }", "");
        let mut story = Story::new(&only_market);
        story.answers(h(2), Outcome::Partial, json!({}));
        assert_eq!(story.run.outbox().next().expect("a turn").agent.as_str(), "writer");

        let critical = format!("{only_market}\n[recovery]\ncritical = [\"market_size\"]\n");
        let mut story = Story::new(&critical);
        story.answers(h(2), Outcome::Partial, json!({}));
        assert_eq!(story.status(), Status::WaitingForHuman);
        story.person_says(h(3), "skip");
        assert_eq!(story.status(), Status::WaitingForHuman, "skipping does not make it appear");
    }
}
