//! Checks what the stages hand on before it is decided: recommendations against the constitution,
//! options by their return, tasks against the calendar, and evidence that only a person's answer
//! gives.

pub(crate) mod approval;
pub(crate) mod recommendation;

use stafette_core::{Fields, HandoffId, Offer, Party, Question, Run, Workflow};
use stafette_engine::{Answered, Gate, Looked};

use crate::stages::{read, value};
use crate::{Actor, StageError, Stages};

/// The answer that approves a plan.
pub(crate) const APPROVE: &str = "approve";
/// The answer that rejects a plan.
pub(crate) const DROP: &str = "drop";

/// The message for a run whose knowledge settings differ from those that the daemon opened.
pub const CHANGED: &str = "[knowledge] in stafette.toml is not as it was when the daemon started: \
    end it with `stafette down`, and the next command starts one that goes by it";

/// Evidence that only a person's answer gives.
const APPROVED: [&str; 3] = ["decision_id", "task_ids", "calendar_events"];

impl Gate for Stages {
    fn begins(&self, workflow: &Workflow) -> Result<(), String> {
        match &workflow.knowledge {
            Some(wanted) if *wanted != self.0.settings => Err(CHANGED.to_owned()),
            _ => Ok(()),
        }
    }

    fn minds(&self, run: &Run) -> bool {
        run.workflow.knowledge.is_some()
    }

    fn offer<'a>(
        &'a self,
        run: &'a Run,
        cause: Option<HandoffId>,
        offer: Offer,
    ) -> Looked<'a, Offer> {
        Box::pin(async move {
            match &offer.from {
                Party::Agent(_) => self.look(run, cause, offer).await,
                Party::Human | Party::Orchestrator => offer,
            }
        })
    }

    fn answer<'a>(
        &'a self,
        run: &'a Run,
        answered: Answered<'a>,
    ) -> Looked<'a, Result<Fields, String>> {
        Box::pin(approval::of(self, run, answered))
    }
}

/// An offer with the inputs that its giver holds.
pub(crate) struct Hand<'a> {
    pub(crate) run: &'a Run,
    pub(crate) actor: Actor,
    pub(crate) held: &'a Fields,
    pub(crate) offer: Offer,
}

impl Hand<'_> {
    /// Returns the value under this name, from the offer or from earlier inputs.
    fn get(&self, key: &str) -> Option<&serde_json::Value> {
        let given = self.offer.outputs.get(key).or_else(|| self.held.get(key));
        given.filter(|value| !value.is_null())
    }

    /// Returns the same value, parsed.
    fn read<T: serde::de::DeserializeOwned>(&self, key: &str) -> Result<T, String> {
        let mut one = Fields::new();
        one.extend(self.get(key).map(|value| (key.to_owned(), value.clone())));
        read(&one, key)
    }

    fn object(&mut self, objection: impl Into<String>) {
        self.offer.objections.push(objection.into());
    }
}

impl Stages {
    async fn look(&self, run: &Run, cause: Option<HandoffId>, offer: Offer) -> Offer {
        let nothing = Fields::new();
        let held = cause.and_then(|id| run.handoff(id)).map_or(&nothing, |h| &h.inputs);
        let handoff = cause.unwrap_or_default();
        let actor = Actor::of(offer.from.clone(), run.id, handoff);
        let mut hand = Hand { run, actor, held, offer };
        approved_only(&mut hand);
        let recommends = hand.offer.outputs.contains_key("recommendation")
            || required(&hand).is_some_and(|keys| keys.iter().any(|key| key == "recommendation"));
        if recommends {
            recommendation::check(self, &mut hand).await;
        }
        if hand.offer.to == Party::Human {
            if hand.offer.outputs.contains_key("candidates") {
                self.ask_to_choose(&mut hand).await;
            } else if hand.offer.outputs.contains_key("tasks") {
                self.ask_for_time(&mut hand).await;
            }
        }
        begin_again(&mut hand);
        hand.offer
    }

    /// Asks a person to choose between options: ranked, with a table.
    async fn ask_to_choose(&self, hand: &mut Hand<'_>) {
        use stafette_knowledge::rights::{Access, Data};
        let ranked = async {
            hand.actor.may(Access::Write, Data::Decisions)?;
            let options = read(&hand.offer.outputs, "candidates").map_err(StageError::mistaken)?;
            let ranked = self.rank(&hand.actor, options).await?;
            match ranked.options.is_empty() {
                true => Err(StageError::mistaken("`candidates` names no option")),
                false => Ok(ranked),
            }
        };
        match ranked.await {
            Ok(ranked) => {
                let mut options = ranked.choices();
                options.push("none".to_owned());
                ask(&mut hand.offer, "decision_approval", options, ranked.table());
                let discussion = hand.get("thread_id").cloned();
                let outputs = &mut hand.offer.outputs;
                outputs.remove("candidates");
                outputs.insert("ranking".into(), value(&ranked));
                outputs.extend(discussion.map(|thread| ("discussion".to_owned(), thread)));
            }
            Err(fault) => hand.object(fault.to_string()),
        }
    }

    /// Asks a person to approve tasks: with the time that they would take.
    async fn ask_for_time(&self, hand: &mut Hand<'_>) {
        let decision = hand.get("decision_id").and_then(|id| id.as_str()).map(str::to_owned);
        let Some(decision) = decision else {
            return hand.object("there is no approved decision that these tasks belong to");
        };
        let planned = async {
            let tasks = read(&hand.offer.outputs, "tasks").map_err(StageError::mistaken)?;
            let plan = self.plan(&hand.actor, decision, tasks).await?;
            match plan.tasks.is_empty() {
                true => Err(StageError::mistaken("`tasks` names no task")),
                false => Ok(plan),
            }
        };
        match planned.await {
            Ok(plan) => {
                let options = vec![APPROVE.to_owned(), DROP.to_owned()];
                // The question stays as it was asked, although blocks can be moved.
                let table = plan.table() + "\nWhere the blocks are by now: `stafette calendar`";
                ask(&mut hand.offer, "plan_approval", options, table);
                hand.offer.outputs.remove("tasks");
                hand.offer.outputs.insert("plan".into(), value(&plan));
            }
            Err(fault) => hand.object(fault.to_string()),
        }
    }
}

/// Returns what the route of an offer requires.
fn required<'a>(hand: &'a Hand<'_>) -> Option<&'a [String]> {
    let route = hand.run.workflow.route(&hand.offer.from, &hand.offer.to)?;
    Some(&route.requires)
}

/// Turns an offer into a question to a person; no answer does not count as approval.
fn ask(offer: &mut Offer, reason: &str, options: Vec<String>, table: String) {
    let before = offer.question.take().unwrap_or_default();
    let details = match (before.details.is_empty(), offer.detail.is_empty()) {
        (false, _) => before.details,
        (true, false) => offer.detail.clone(),
        (true, true) => offer.summary.clone(),
    };
    offer.kind = stafette_core::Kind::Delegate;
    offer.question = Some(Question {
        reason: reason.to_owned(),
        details,
        options,
        context: table,
        blocking: true,
        ..Question::default()
    });
}

/// Objects to evidence that only a person's answer can give.
fn approved_only(hand: &mut Hand<'_>) {
    for key in APPROVED {
        let claimed = hand.offer.outputs.get(key).filter(|value| !value.is_null());
        if claimed.is_some() && claimed != hand.held.get(key) {
            let ask = match key {
                "decision_id" => "hand `candidates` to human first",
                _ => "hand `tasks` to human first",
            };
            hand.object(format!("`{key}` comes from a person's approval: {ask}"));
        }
    }
}

/// Removes the evidence of the last round from work that returns to the first stage.
fn begin_again(hand: &mut Hand<'_>) {
    let workflow = &hand.run.workflow;
    let first = hand.offer.to.as_str() == workflow.workflow.entry.as_str();
    if !first {
        return;
    }
    let own = required(hand).unwrap_or_default();
    let stale: Vec<String> = workflow
        .routes
        .iter()
        .flat_map(|route| route.requires.iter())
        .chain(["discussion", "ranking", "plan"].map(str::to_owned).iter())
        .filter(|key| hand.held.contains_key(*key) && !hand.offer.outputs.contains_key(*key))
        .filter(|key| !own.contains(key))
        .cloned()
        .collect();
    hand.offer.outputs.extend(stale.into_iter().map(|key| (key, serde_json::Value::Null)));
}
