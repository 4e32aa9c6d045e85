use stafette_core::workflow::gate::SPAN_ATTRIBUTES;
use stafette_core::{HandoffId, Outcome, Reason};

use super::*;
use crate::story::Story;

fn told(story: &Story) -> Vec<Span> {
    let (_, facts) = story.shown();
    facts.iter().flat_map(|(_, at, fact)| spans(story.run.id, *at, fact)).collect()
}

#[test]
fn s2_10_a_run_is_one_trace_with_a_span_for_each_handoff_and_turn() {
    let story = Story::example();
    let all = told(&story);
    let count = |name: &str| all.iter().filter(|span| span.name.starts_with(name)).count();
    assert_eq!((count("run feature"), count("handoff"), count("invoke_agent")), (1, 5, 5));
    assert!(all.iter().all(|span| span.trace == TraceId::of(story.run.id)));
    let known: Vec<_> = all.iter().map(|span| span.id).collect();
    let whole = known.iter().collect::<std::collections::HashSet<_>>();
    assert_eq!(whole.len(), all.len(), "no name is used twice");
    for span in &all {
        assert!(span.parent.is_none_or(|parent| known.contains(&parent)), "{span:?}");
    }
    assert_eq!(told(&story), all, "told again, it is the same");
}

#[test]
fn s2_10_the_attributes_are_the_protocols() {
    let story = Story::example();
    let all = told(&story);
    let h2 = SpanId::handoff(story.run.id, HandoffId(2));
    let span = all.iter().find(|span| span.id == h2).expect("h2");
    let names: Vec<_> = span.attributes.iter().map(|(name, _)| *name).collect();
    assert_eq!(names[..8], SPAN_ATTRIBUTES);
    let value = |name: &str| {
        span.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    };
    assert_eq!(value("handoff.source_agent"), Some("planner".into()));
    assert_eq!(value("handoff.target_agent"), Some("builder".into()));
    assert_eq!(value("handoff.reason"), Some("task_handoff".into()));
    assert_eq!(value("handoff.status"), Some("resolved".into()));
    assert_eq!(value("handoff.execution_time_ms"), Some(1_020.into()));
    assert_eq!(value("handoff.inputs_provided"), Some(1.into()));
    assert_eq!(value("handoff.inputs_missing"), Some(0.into()));
    let id = HandoffId(2).uuid(story.run.id).to_string();
    assert_eq!(value("handoff.trace_id"), Some(id.into()));
    assert_eq!(span.parent, Some(SpanId::handoff(story.run.id, HandoffId(1))));
}

#[test]
fn what_failed_says_so() {
    let mut story = Story::relay("");
    story.breaks("the model is gone");
    let all = told(&story);
    let turn = all.iter().find(|span| span.kind == Kind::Client).expect("a turn");
    assert_eq!(turn.error.as_deref(), Some("the model is gone"));
    assert!(turn.attributes.contains(&("error.type", "fatal".into())));
    let mut refused = Story::relay("");
    refused.pass("nobody", Reason::TaskHandoff).done(Outcome::Resolved);
    let all = told(&refused);
    let span = all.iter().find(|span| span.name == "handoff" && span.error.is_some());
    assert!(span.expect("refused").attributes.contains(&("handoff.status", "failed".into())));
}

#[test]
fn the_message_is_as_the_format_has_it() {
    let span = Span {
        trace: TraceId([1; 16]),
        id: SpanId([2; 8]),
        parent: None,
        name: "n".into(),
        kind: Kind::Internal,
        began: Time(1),
        ended: Time(300),
        attributes: vec![("k", Value::Number(-1))],
        error: None,
    };
    let bytes = otlp::protobuf(std::slice::from_ref(&span));
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let trace = "01".repeat(16);
    assert!(hex.contains(&format!("0a10{trace}1208{}2a016e3001", "02".repeat(8))), "{hex}");
    assert!(hex.contains("3940420f0000000000"), "one millisecond: {hex}");
    assert!(hex.contains("4a100a016b120b18ffffffffffffffffff01"), "minus one: {hex}");
    assert!(hex.ends_with("850101000000"), "sampled: {hex}");
    let json = otlp::json(&[span]);
    let span = &json["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(span["traceId"], trace);
    assert_eq!(span["attributes"][0]["value"]["intValue"], "-1");
}
