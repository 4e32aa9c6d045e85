//! Traces: one per run, with a span for the run, each handoff, each turn and each change. They are
//! built from the events afterwards, so that a span is exported once, when it has ended.

pub mod otlp;

use stafette_core::trace::{SpanId, TraceId, Traceparent};
use stafette_core::{Party, RunId, Time, TurnKey};

use crate::book::{About, ChangeEnded, Closed, Fact, OpenRun};

/// A span that has ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Span {
    pub trace: TraceId,
    /// Id of the span within the trace.
    pub id: SpanId,
    /// Parent span; `None` for a root.
    pub parent: Option<SpanId>,
    pub name: String,
    pub kind: Kind,
    pub began: Time,
    pub ended: Time,
    /// Related span in another trace, if any.
    pub link: Option<Traceparent>,
    pub attributes: Vec<(&'static str, Value)>,
    /// Error message, if it failed.
    pub error: Option<String>,
}

/// Kind of a span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Internal,
    /// A request to another party.
    Client,
}

/// Value of an attribute.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Text(String),
    /// An integer value.
    Number(i64),
    /// A floating-point value.
    Float(f64),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// Returns the names of the attributes of a handoff's span.
pub fn attributes() -> Vec<&'static str> {
    let any = About {
        run: RunId(uuid::Uuid::nil()),
        id: stafette_core::HandoffId(1),
        asked_in: None,
        given_in: None,
        workflow: "".into(),
        from: Party::Human,
        to: Party::Human,
        reason: String::new(),
        summary: String::new(),
        trace_id: String::new(),
        cause: None,
        missing: Vec::new(),
        spec: None,
        again: false,
        admitted: Time(0),
    };
    bare_handoff(&any, Time(0), "", 0, 0).attributes.into_iter().map(|(name, _)| name).collect()
}

/// Returns the span that ended with a fact, if any.
pub fn span(run: RunId, at: Time, fact: &Fact) -> Option<Span> {
    Some(match fact {
        Fact::RunEnded { run: open, status, why } => whole(run, at, open, status, why),
        Fact::Closed(about, closed) => handoff(about, at, closed),
        Fact::Refused { about, rule, why, .. } => {
            let mut span = bare_handoff(about, at, "failed", 0, about.missing.len());
            span.attributes.push(("stafette.handoff.rule", rule.as_str().into()));
            span.error = Some(why.clone());
            span
        }
        Fact::TurnEnded { about, turn, began, usage, failure, cancelled } => {
            let mut span = turn_span(about, *turn, *began, at);
            // What is not known is left out.
            if usage.unknown.tokens == 0 {
                span.attributes.push(("stafette.usage.tokens", usage.tokens.into()));
            }
            if usage.unknown.money == 0 {
                span.attributes.push(("stafette.usage.usd", Value::Float(usage.money.dollars())));
            }
            if let Some(failure) = failure {
                let kind = serde_json::to_value(failure.kind).ok();
                let kind = kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or("failed");
                span.attributes.push(("error.type", kind.into()));
                span.error = Some(failure.message.clone());
            }
            if *cancelled {
                span.attributes.push(("error.type", "cancelled".into()));
                span.error = Some("it was called off".to_owned());
            }
            span
        }
        Fact::ChangeEnded(ended) => change(ended, at),
        _ => return None,
    })
}

fn whole(run: RunId, at: Time, open: &OpenRun, status: &str, why: &str) -> Span {
    Span {
        trace: Traceparent::trace_of(run, open.asked_in),
        id: SpanId::run(run),
        parent: open.asked_in.map(|asked| asked.span),
        name: format!("run {}", open.workflow),
        kind: Kind::Internal,
        began: open.began,
        ended: at,
        link: None,
        attributes: vec![
            ("stafette.run", run.to_string().into()),
            ("stafette.workflow", Value::from(&*open.workflow)),
            ("stafette.run.status", status.into()),
            ("gen_ai.conversation.id", run.to_string().into()),
            ("stafette.usage.tokens", open.spent.tokens.into()),
            ("stafette.usage.usd", Value::Float(open.spent.money.dollars())),
        ],
        error: (status == "failed").then(|| why.to_owned()),
    }
}

fn handoff(about: &About, at: Time, closed: &Closed) -> Span {
    let status = closed.status();
    let mut span = bare_handoff(about, at, status, closed.provided, closed.missing);
    if status == "failed" {
        span.error = Some(closed.failure.clone().unwrap_or_else(|| "it failed".to_owned()));
    }
    span
}

fn bare_handoff(about: &About, at: Time, status: &str, provided: usize, missing: usize) -> Span {
    let run = about.run;
    let parent = about.cause.map_or(SpanId::run(run), |cause| SpanId::handoff(run, cause));
    Span {
        trace: Traceparent::trace_of(run, about.asked_in),
        id: SpanId::handoff(run, about.id),
        parent: Some(parent),
        name: "handoff".to_owned(),
        kind: Kind::Internal,
        began: about.admitted,
        ended: at,
        link: about.given_in,
        attributes: vec![
            ("handoff.trace_id", about.trace_id.as_str().into()),
            ("handoff.source_agent", about.from.as_str().into()),
            ("handoff.target_agent", about.to.as_str().into()),
            ("handoff.reason", about.reason.as_str().into()),
            ("handoff.status", status.into()),
            ("handoff.execution_time_ms", at.since(about.admitted).0.into()),
            ("handoff.inputs_provided", (provided as u64).into()),
            ("handoff.inputs_missing", (missing as u64).into()),
            ("stafette.run", run.to_string().into()),
            ("stafette.handoff", about.id.to_string().into()),
        ],
        error: None,
    }
}

fn turn_span(about: &About, turn: TurnKey, began: Time, ended: Time) -> Span {
    let run = about.run;
    let agent = about.to.as_str();
    Span {
        trace: Traceparent::trace_of(run, about.asked_in),
        id: SpanId::turn(turn),
        parent: Some(SpanId::handoff(run, about.id)),
        name: format!("invoke_agent {agent}"),
        kind: Kind::Client,
        began,
        ended,
        link: None,
        attributes: vec![
            ("gen_ai.operation.name", "invoke_agent".into()),
            ("gen_ai.agent.name", agent.into()),
            ("gen_ai.conversation.id", run.to_string().into()),
            ("stafette.run", run.to_string().into()),
            ("stafette.handoff", about.id.to_string().into()),
            ("stafette.turn", format!("{}.{}", turn.attempt, turn.turn).into()),
        ],
        error: None,
    }
}

fn change(ended: &ChangeEnded, at: Time) -> Span {
    let ChangeEnded { run, asked_in, id, change, note } = ended;
    let parent = change.handoff.map_or(SpanId::run(*run), |id| SpanId::handoff(*run, id));
    let mut attributes = vec![
        ("stafette.run", run.to_string().into()),
        ("stafette.change", id.to_string().into()),
        ("stafette.change.status", change.status.as_str().into()),
        ("stafette.change.revision", u64::from(change.revision).into()),
        ("stafette.change.files", change.files.into()),
    ];
    attributes.extend(change.handoff.map(|id| ("stafette.handoff", id.to_string().into())));
    attributes.extend(change.agent.as_deref().map(|agent| ("gen_ai.agent.name", agent.into())));
    Span {
        trace: Traceparent::trace_of(*run, *asked_in),
        id: SpanId::of(*run, id, change.began),
        parent: Some(parent),
        name: "change".to_owned(),
        kind: Kind::Internal,
        began: change.began,
        ended: at,
        link: None,
        attributes,
        error: (change.status == "failed").then(|| note.clone()),
    }
}

#[cfg(test)]
mod tests;
