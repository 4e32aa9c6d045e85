//! Spans as OpenTelemetry's receivers take them (OTLP 1): as a protocol buffer and as JSON.
//!
//! The message is small and frozen, so it is written by hand: see ADR 0040. Numbers in comments
//! are the fields' numbers in `opentelemetry/proto/trace/v1/trace.proto`.

use serde_json::json;

use super::{Kind, Span, Value};

/// Who says it.
const SERVICE: [(&str, &str); 2] =
    [("service.name", "stafette"), ("service.version", env!("CARGO_PKG_VERSION"))];
const SCOPE: &str = "stafette";
/// `STATUS_CODE_ERROR`.
const ERROR: u64 = 2;
/// The trace is sampled.
const SAMPLED: u32 = 1;

/// The request to export spans, as a protocol buffer.
#[must_use]
pub fn protobuf(spans: &[Span]) -> Vec<u8> {
    let resource = message(|resource| {
        for (key, value) in SERVICE {
            field(resource, 1, &attribute(key, &value.into()));
        }
    });
    let scope = message(|scope| {
        field(scope, 1, SCOPE.as_bytes());
        field(scope, 2, env!("CARGO_PKG_VERSION").as_bytes());
    });
    let scope_spans = message(|out| {
        field(out, 1, &scope);
        spans.iter().for_each(|span| field(out, 2, &span_message(span)));
    });
    let resource_spans = message(|out| {
        field(out, 1, &resource);
        field(out, 2, &scope_spans);
    });
    message(|out| field(out, 1, &resource_spans))
}

fn span_message(span: &Span) -> Vec<u8> {
    message(|out| {
        field(out, 1, &span.trace.0);
        field(out, 2, &span.id.0);
        if let Some(parent) = &span.parent {
            field(out, 4, &parent.0);
        }
        field(out, 5, span.name.as_bytes());
        number(out, 6, kind(span.kind));
        fixed64(out, 7, nanos(span.began));
        fixed64(out, 8, nanos(span.ended));
        for (key, value) in &span.attributes {
            field(out, 9, &attribute(key, value));
        }
        if let Some(error) = &span.error {
            let status = message(|status| {
                field(status, 2, error.as_bytes());
                number(status, 3, ERROR);
            });
            field(out, 15, &status);
        }
        fixed32(out, 16, SAMPLED);
    })
}

/// A `KeyValue` with its `AnyValue`.
fn attribute(key: &str, value: &Value) -> Vec<u8> {
    let any = message(|out| match value {
        Value::Text(text) => field(out, 1, text.as_bytes()),
        Value::Number(whole) => {
            varint(out, 3 << 3);
            // Two's complement, as the format has it.
            varint(out, u64::from_ne_bytes(whole.to_ne_bytes()));
        }
        Value::Float(float) => fixed64(out, 4, float.to_bits()),
    });
    message(|out| {
        field(out, 1, key.as_bytes());
        field(out, 2, &any);
    })
}

fn kind(kind: Kind) -> u64 {
    match kind {
        Kind::Internal => 1,
        Kind::Client => 3,
    }
}

fn nanos(at: stafette_core::Time) -> u64 {
    u64::try_from(at.0).unwrap_or_default().saturating_mul(1_000_000)
}

fn message(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    fill(&mut out);
    out
}

/// A field with a length: text, bytes or a message.
fn field(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    varint(out, number << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn number(out: &mut Vec<u8>, number: u64, value: u64) {
    varint(out, number << 3);
    varint(out, value);
}

fn fixed64(out: &mut Vec<u8>, number: u64, value: u64) {
    varint(out, number << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn fixed32(out: &mut Vec<u8>, number: u64, value: u32) {
    varint(out, number << 3 | 5);
    out.extend_from_slice(&value.to_le_bytes());
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The same request as JSON.
#[must_use]
pub fn json(spans: &[Span]) -> serde_json::Value {
    let any = |value: &Value| match value {
        Value::Text(text) => json!({ "stringValue": text }),
        Value::Number(whole) => json!({ "intValue": whole.to_string() }),
        Value::Float(float) => json!({ "doubleValue": float }),
    };
    let pair = |key: &str, value: &Value| json!({ "key": key, "value": any(value) });
    let span = |span: &Span| {
        let mut out = json!({
            "traceId": span.trace.to_string(),
            "spanId": span.id.to_string(),
            "name": span.name,
            "kind": kind(span.kind),
            "startTimeUnixNano": nanos(span.began).to_string(),
            "endTimeUnixNano": nanos(span.ended).to_string(),
            "attributes": span.attributes.iter().map(|(key, value)| pair(key, value)).collect::<Vec<_>>(),
            "flags": SAMPLED,
        });
        if let Some(parent) = &span.parent {
            out["parentSpanId"] = parent.to_string().into();
        }
        if let Some(error) = &span.error {
            out["status"] = json!({ "code": ERROR, "message": error });
        }
        out
    };
    json!({ "resourceSpans": [{
        "resource": { "attributes": SERVICE.map(|(key, value)| pair(key, &value.into())) },
        "scopeSpans": [{
            "scope": { "name": SCOPE, "version": env!("CARGO_PKG_VERSION") },
            "spans": spans.iter().map(span).collect::<Vec<_>>(),
        }],
    }]})
}
