use serde_json::json;
use stafette_core::workflow::telemetry::Protocol;
use stafette_core::{HandoffId, Outcome, Reason};
use stafette_workflow::gate::SPAN_ATTRIBUTES;

use super::*;
use crate::story::Story;

fn told(story: &Story) -> Vec<Span> {
    let (_, facts) = story.shown();
    facts.iter().flat_map(|(_, at, fact)| span(story.run.id, *at, fact)).collect()
}

/// Returns the spans in serialised form.
fn sent(protocol: Protocol, spans: &[Span]) -> Vec<u8> {
    let mut request = otlp::Request::new(protocol);
    spans.iter().for_each(|span| request.add(span));
    assert_eq!(request.count(), spans.len());
    request.body()
}

fn json(spans: &[Span]) -> serde_json::Value {
    serde_json::from_slice(&sent(Protocol::HttpJson, spans)).expect("JSON")
}

/// Returns the spans of a story, with additional events before and after its end.
fn told_with(
    story: &Story,
    more: &[(i64, serde_json::Value)],
    after: &[(i64, serde_json::Value)],
) -> Vec<Span> {
    let mut stored = story.stored();
    let last = stored.pop().expect("an end");
    let entry = |(at, event): &(i64, serde_json::Value)| stafette_engine::Stored {
        entry: stafette_engine::Entry {
            at: Time(*at),
            name: event["event"].as_str().expect("a name").to_owned(),
            body: event.to_string(),
            ..last.entry.clone()
        },
        ..last.clone()
    };
    stored.extend(more.iter().map(entry));
    let after: Vec<_> = after.iter().map(entry).collect();
    stored.push(last.clone());
    stored.extend(after);
    let mut book = crate::book::Book::default();
    let seen = stored.into_iter().map(stafette_engine::Seen::from);
    let spans = seen.flat_map(|seen| {
        let told = |fact: &Fact| span(seen.run, seen.at(), fact);
        book.hear(&seen).iter().flat_map(told).collect::<Vec<_>>()
    });
    spans.collect()
}

#[test]
fn s2_10_a_change_is_a_span_from_its_proposal_until_it_is_settled() {
    let story = Story::example();
    let proposed = json!({
        "event": "change_proposed", "change": "c3", "agent": "builder", "handoff": "h2",
        "revision": 1, "reason": "Add login", "count": 2, "files": [],
    });
    let settled = |status: &str, note: &str| json!({ "event": "change_settled", "change": "c3", "handoff": "h2", "status": status, "note": note });
    let ordered = json!({ "event": "change_ordered", "change": "c3", "handoff": "h2", "work": "undo", "by": "ada" });
    let mut second = proposed.clone();
    second["change"] = "c4".into();
    let events = [
        (2_000_000, proposed),
        (2_000_100, settled("approved", "")),
        (2_000_300, settled("failed", "the tests fail")),
        (2_000_400, ordered),
        (2_000_450, settled("undone", "")),
        (2_000_500, second),
    ];
    let all = told_with(&story, &events, &[]);
    let changes: Vec<&Span> = all.iter().filter(|span| span.name == "change").collect();
    let about = |span: &&Span| {
        let status = span.attributes.iter().find(|(name, _)| *name == "stafette.change.status");
        (span.began.0, span.ended.0, status.expect("a status").1.clone())
    };
    let ends = story.log.last().expect("an end").at.0;
    assert_eq!(
        changes.iter().map(about).collect::<Vec<_>>(),
        [
            (2_000_000, 2_000_300, "failed".into()),
            (2_000_400, 2_000_450, "undone".into()),
            (2_000_500, ends, "pending".into()),
        ]
    );
    let h2 = SpanId::handoff(story.run.id, HandoffId(2));
    assert!(changes.iter().all(|span| span.parent == Some(h2)), "where it was proposed");
    assert_eq!(changes[0].error.as_deref(), Some("the tests fail"));
    for known in [("gen_ai.agent.name", "builder".into()), ("stafette.change.files", 2u64.into())] {
        assert!(changes.iter().all(|span| span.attributes.contains(&known)), "{changes:?}");
    }
    assert_ne!(changes[0].id, changes[1].id, "no name is used twice");
}

#[test]
fn s2_10_what_is_done_about_a_change_when_its_run_is_over_is_told_too() {
    let story = Story::example();
    let proposed = json!({
        "event": "change_proposed", "change": "c3", "agent": "builder", "handoff": "h2",
        "revision": 4, "reason": "Add login", "count": 2, "files": [],
    });
    let ends = story.log.last().expect("an end").at.0;
    let ordered = |work: &str| json!({ "event": "change_ordered", "change": "c3", "handoff": "h2", "work": work, "by": "ada" });
    let settled = |status: &str| json!({ "event": "change_settled", "change": "c3", "handoff": "h2", "status": status });
    let after = [
        (ends + 10, ordered("apply")),
        (ends + 20, settled("applied")),
        (ends + 30, ordered("undo")),
        (ends + 45, settled("undone")),
    ];
    let all = told_with(&story, &[(ends - 5, proposed)], &after);
    let changes: Vec<&Span> = all.iter().filter(|span| span.name == "change").collect();
    let times: Vec<_> = changes.iter().map(|span| (span.began.0, span.ended.0)).collect();
    assert_eq!(times, [(ends - 5, ends), (ends + 10, ends + 20), (ends + 30, ends + 45)]);
    for (span, status) in changes.iter().zip(["pending", "applied", "undone"]) {
        for known in [
            ("stafette.change.status", status.into()),
            ("stafette.change.revision", 4u64.into()),
            ("gen_ai.agent.name", "builder".into()),
        ] {
            assert!(span.attributes.contains(&known), "{known:?} in {span:?}");
        }
    }
    let other = told_with(&story, &[], &after);
    let none = other.iter().filter(|span| span.name == "change").count();
    assert_eq!(none, 0, "nobody knows of a change that was never proposed");
}

#[test]
fn s2_10_a_handoff_that_was_given_in_another_trace_is_linked_to_it() {
    let theirs: Traceparent =
        "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01".parse().expect("a traceparent");
    let mut story = Story::example();
    let given = story.log.iter_mut().find_map(|recorded| match &mut recorded.event {
        stafette_core::Event::HandoffAdmitted(admitted) if admitted.id == HandoffId(3) => {
            Some(&mut admitted.offer)
        }
        _ => None,
    });
    given.expect("h3").trace = Some(theirs);
    let all = told(&story);
    let linked: Vec<_> = all.iter().filter(|span| span.link == Some(theirs)).collect();
    assert_eq!(linked.len(), 1, "{all:?}");
    assert_eq!(linked[0].trace, TraceId::of(story.run.id), "it stays in the run's own trace");
    let json = json(&all)["resourceSpans"][0]["scopeSpans"][0]["spans"].to_string();
    let link =
        r#""links":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"00f067aa0ba902b7"}]"#;
    assert_eq!(json.matches(link).count(), 1, "{json}");
    let bytes = sent(Protocol::HttpProtobuf, &all);
    let link =
        [&[13 << 3 | 2, 28, 1 << 3 | 2, 16][..], &theirs.trace.0, &[2 << 3 | 2, 8], &theirs.span.0];
    let found = bytes.windows(30).filter(|window| *window == link.concat()).count();
    assert_eq!(found, 1);
}

#[test]
fn s2_10_a_run_that_was_asked_for_in_a_trace_is_a_part_of_it() {
    let theirs: Traceparent =
        "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01".parse().expect("a traceparent");
    let mut story = Story::example();
    let first = story.log.first_mut().expect("a beginning");
    let stafette_core::Event::RunCreated(created) = &mut first.event else { panic!("a run") };
    created.trace = Some(theirs);
    let all = told(&story);
    assert!(all.len() == 11 && all.iter().all(|span| span.trace == theirs.trace));
    let whole = all.iter().find(|span| span.name.starts_with("run ")).expect("the run");
    assert_eq!((whole.parent, whole.id), (Some(theirs.span), SpanId::run(story.run.id)));
}

#[test]
fn s2_10_a_run_is_one_trace_with_a_span_for_each_handoff_and_turn() {
    let story = Story::example();
    let all = told(&story);
    let count = |name: &str| all.iter().filter(|span| span.name.starts_with(name)).count();
    assert_eq!((count("run relay"), count("handoff"), count("invoke_agent")), (1, 5, 5));
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
        link: None,
        attributes: vec![("k", Value::Number(-1))],
        error: None,
    };
    let bytes = sent(Protocol::HttpProtobuf, std::slice::from_ref(&span));
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let trace = "01".repeat(16);
    assert!(hex.contains(&format!("0a10{trace}1208{}2a016e3001", "02".repeat(8))), "{hex}");
    assert!(hex.contains("3940420f0000000000"), "one millisecond: {hex}");
    assert!(hex.contains("4a100a016b120b18ffffffffffffffffff01"), "minus one: {hex}");
    assert!(hex.ends_with("850101000000"), "sampled: {hex}");
    let json = json(&[span]);
    let span = &json["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(span["traceId"], trace);
    assert_eq!(span["attributes"][0]["value"]["intValue"], "-1");
}
