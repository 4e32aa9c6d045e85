//! `handoff`: pass the work on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Fields, Kind, MissingInput, Offer, Party, Priority, Reason};

use super::{CallContext, Effect, Right, ToolError, TurnHandle, Whose, short};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Party that takes the work: one of the targets in your briefing.
    to: String,
    /// Summary for the receiver: what is done, where it is, what is left.
    summary: String,
    /// Instructions for the receiver.
    #[serde(default)]
    instructions: Option<String>,
    /// Reason code: `task_handoff`, `review_request`, `fix_request`, `rereview_request`,
    /// `completion`, `missing_required_input`, `validation_failure`, `expertise_mismatch`,
    /// `resource_exhausted`, or one of the workflow's own.
    #[serde(default)]
    reason: Option<String>,
    /// `transfer` (your part is done) or `delegate` (you wait, and are called again with the
    /// answer). If left out: `delegate` when you list something in `missing` or ask a person, otherwise
    /// `transfer`.
    #[serde(default)]
    kind: Option<Kind>,
    /// Values to pass along, by key: evidence, file names, data.
    #[serde(default)]
    outputs: Fields,
    /// Inputs that you want back.
    #[serde(default)]
    missing: Vec<Want>,
    /// Work item that the handoff belongs to, if the run has several.
    #[serde(default)]
    item: Option<String>,
    /// Urgency of the handoff.
    #[serde(default)]
    priority: Priority,
    #[serde(flatten)]
    whose: Whose,
}

/// An input that the giver wants back.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Want {
    /// Short name of the input: it comes back under this key.
    key: String,
    /// Description of the input.
    #[serde(default)]
    description: String,
    /// Type of the value, such as `string` or `number`.
    #[serde(default = "string")]
    expected_type: String,
}

fn string() -> String {
    "string".to_owned()
}

/// Confirms that the handoff was accepted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// True if the handoff was accepted; a refusal is an error with the reason.
    taken: bool,
    /// Id of the run.
    run: String,
    /// Id of the turn in which it was made.
    turn: String,
    /// Party that gets the work when your turn ends.
    to: String,
    /// `transfer` or `delegate`.
    kind: Kind,
    /// Recommended next step.
    next: String,
}

impl Output {
    /// Confirms that `to` gets the work when the turn ends.
    pub(super) fn new(handle: &TurnHandle, to: Party, kind: Kind) -> Self {
        let then = match kind {
            Kind::Transfer => format!("{to} gets the work when your turn ends"),
            Kind::Delegate => {
                format!(
                    "{to} is asked when your turn ends, and you are called again with the answer"
                )
            }
        };
        let how = match handle.is_session() {
            true => "End your turn now: say in a sentence what you did, and stop.",
            false => "End your turn now with `complete`.",
        };
        Output {
            taken: true,
            run: handle.turn.run.to_string(),
            turn: short(handle.turn),
            to: to.to_string(),
            kind,
            next: format!("{then}. {how}"),
        }
    }
}

impl super::Tool for Tool {
    const NAME: &'static str = "handoff";
    const TITLE: &'static str = "Hand the work on";
    const ABOUT: &'static str = "Passes the work to another agent. Use it when your part is done \
        and someone else goes on (`transfer`), or when you need something from another agent \
        before you can go on (`delegate`). The taker sees only what you write here and the files \
        in the project, so say what is done and what is left, and put evidence into `outputs`. To \
        ask a person, use `escalate`. The handoff is checked at once and goes out when your turn \
        ends. Returns what to do next; a refusal names the rule and everyone that you may hand to \
        instead.\n\
        Example: {\"to\": \"reviewer\", \"summary\": \"Login is built in src/login.rs, 12 tests \
        pass\", \"reason\": \"review_request\", \"outputs\": {\"files\": [\"src/login.rs\"]}}";
    const EFFECT: Effect = Effect::Settles;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let handle = context.handle(&arguments.whose).await?;
        let missing = arguments.missing.into_iter().map(|want| MissingInput {
            key: want.key,
            expected_type: want.expected_type,
            description: want.description,
            source: None,
        });
        let missing: Vec<MissingInput> = missing.collect();
        let (from, to) = (Party::from(&handle.agent), Party::from(arguments.to));
        let waits = !missing.is_empty() || to == Party::Human;
        let kind = arguments.kind.unwrap_or(if waits { Kind::Delegate } else { Kind::Transfer });
        let reason = match arguments.reason {
            Some(word) => reason(word),
            None if !missing.is_empty() => Reason::MissingRequiredInput,
            None => Reason::Stage,
        };
        let offer = Offer {
            summary: arguments.summary,
            instructions: arguments.instructions,
            outputs: arguments.outputs,
            item: arguments.item,
            priority: arguments.priority,
            missing,
            ..Offer::new(from, to.clone(), kind, reason)
        };
        context.propose(&handle, offer).await?;
        Ok(Output::new(&handle, to, kind))
    }
}

/// Parses a reason code; an unknown one is the workflow's own.
fn reason(word: String) -> Reason {
    serde_json::from_value(word.clone().into()).unwrap_or(Reason::Other(word))
}
