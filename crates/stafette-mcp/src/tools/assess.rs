//! `assess`: check whether the agent has all inputs, and whom it may hand on to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Handoff, Party, Run};

use super::{CallContext, Effect, Right, ToolError, Whose};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Inputs that you lack, in addition to those that the workflow requires.
    #[serde(default)]
    lacking: Vec<Lacking>,
    #[serde(flatten)]
    whose: Whose,
}

/// An input that an agent lacks.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Lacking {
    /// Short name of the input, such as `target_audience`.
    key: String,
    /// Source of the input: `user` or `decision` for what a person says, `external` or `market` for
    /// what research finds, or one of the workflow's own sources.
    #[serde(default = "user")]
    source: String,
}

fn user() -> String {
    "user".to_owned()
}

/// Result of an assessment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Assessment {
    /// True if you have everything that is known to be needed.
    can_handle: bool,
    /// Confidence in the result, from 0 to 1.
    confidence: f64,
    /// Party to ask first for the missing inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    handoff_to: Option<String>,
    /// Reason, in a few words.
    reason: String,
    /// Missing inputs, each with its provider.
    missing: Vec<Missing>,
    /// Parties that you may hand on to, with their required inputs.
    targets: Vec<Target>,
    /// Number of handoffs that the run still allows.
    handoffs_left: u32,
    /// Money that the run may still spend, in dollars.
    money_left_usd: f64,
    /// Number of tokens that the run may still use.
    tokens_left: u64,
    /// Recommended next step.
    next: String,
}

/// A missing input.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Missing {
    /// Name of the input.
    key: String,
    /// Party that provides it.
    provider: String,
    /// True if the work cannot continue without it.
    critical: bool,
}

/// A party to hand on to.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Target {
    /// Name to put into `to`.
    name: String,
    /// Role of the party.
    #[serde(skip_serializing_if = "String::is_empty")]
    role: String,
    /// Keys that must be in `outputs` and are not among your inputs yet.
    requires: Vec<String>,
}

impl super::Tool for Tool {
    const NAME: &'static str = "assess";
    const TITLE: &'static str = "Can I do this?";
    const ABOUT: &'static str = "Checks, before you start or before you hand on, whether you have \
        what your turn needs, who provides what is missing, whom you may hand to and what each of \
        them requires, and how many handoffs, dollars and tokens are left. Use it when something \
        seems to be missing, or when you are not sure that a handoff would be taken. Changes \
        nothing. Returns can_handle, the missing inputs with their providers, the targets with \
        their requirements, and what to do next.\n\
        Example: {\"lacking\": [{\"key\": \"target_audience\", \"source\": \"user\"}]}";
    const EFFECT: Effect = Effect::Looks;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Assessment;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Assessment, ToolError> {
        let handle = context.handle(&arguments.whose).await?;
        let run = context.engine.state(handle.turn.run).await?;
        context.order(&handle).await?;
        let handoff = run.handoff(handle.turn.handoff);
        let handoff = handoff.ok_or_else(|| {
            ToolError::new("no_handoff", "It is not there")
                .fix("Call `status` with the run to see its handoffs.")
        })?;
        Ok(assess(&run, handoff, &arguments.lacking))
    }
}

fn assess(run: &Run, handoff: &Handoff, lacking: &[Lacking]) -> Assessment {
    let agent = &handoff.offer.to;
    let workflow = &run.workflow;
    let needs = workflow.agent(agent).map(|(_, agent)| agent.needs.as_slice()).unwrap_or_default();
    let declared = needs.iter().map(|need| (&need.key, &need.source));
    let found = lacking.iter().map(|one| (&one.key, &one.source));
    let mut missing: Vec<Missing> = Vec::new();
    for (key, source) in declared.chain(found) {
        let known = missing.iter().any(|one| one.key == *key);
        if known || handoff.inputs.contains_key(key) {
            continue;
        }
        let provider = match workflow.provider(source) {
            // An agent cannot provide its own missing input.
            provider if provider == *agent => Party::Orchestrator,
            provider => provider,
        };
        missing.push(Missing {
            key: key.clone(),
            provider: provider.to_string(),
            critical: workflow.recovery.critical.contains(key),
        });
    }
    let person = |one: &Missing| matches!(one.provider.as_str(), "human" | "orchestrator");
    // Inputs from a person are asked for first, as before a turn.
    let first = missing.iter().find(|one| person(one)).or(missing.first());
    let handoff_to = first.map(|one| one.provider.clone());
    let (confidence, reason) = match first {
        None => (0.9, "Nothing is known to be missing"),
        Some(one) if person(one) => (0.5, "Missing user decision"),
        Some(_) => (0.7, "Missing research data"),
    };
    let next = match first {
        None => "Do the work, then call `complete`, or `handoff` if someone else goes on.".into(),
        Some(one) if person(one) => "Call `escalate` with one clear question.".to_owned(),
        Some(one) => format!(
            "Call `handoff` with to `{}`, kind `delegate` and what you lack in `missing`.",
            one.provider
        ),
    };
    let spent = run.purse.spent + run.purse.reserved;
    let limit = &run.purse.limit;
    Assessment {
        can_handle: missing.is_empty(),
        confidence,
        handoff_to,
        reason: reason.to_owned(),
        missing,
        targets: targets(run, handoff),
        handoffs_left: workflow.limits.handoffs_per_run.saturating_sub(run.tally.handoffs),
        money_left_usd: (limit.money.dollars() - spent.money.dollars()).max(0.0),
        tokens_left: limit.tokens.saturating_sub(spent.tokens),
        next,
    }
}

fn targets(run: &Run, handoff: &Handoff) -> Vec<Target> {
    let from = &handoff.offer.to;
    let describe = |to: Party| {
        let route = run.workflow.route(from, &to);
        let requires = route.into_iter().flat_map(|route| &route.requires);
        let role = run.workflow.agent(&to).map(|(_, agent)| agent.role.clone());
        Target {
            role: role.unwrap_or_default(),
            requires: requires.filter(|key| !handoff.inputs.contains_key(*key)).cloned().collect(),
            name: to.to_string(),
        }
    };
    run.workflow.targets(from).into_iter().map(describe).collect()
}
