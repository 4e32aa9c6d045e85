//! Spans in the OpenTelemetry format (OTLP 1): as a protocol buffer and as JSON.
//!
//! The message is small and frozen, so it is written by hand: see ADR 0040. Numbers in comments are
//! the fields' numbers in `opentelemetry/proto/trace/v1/trace.proto`.

use serde_json::json;
use stafette_core::workflow::telemetry::Protocol;

use super::{Kind, Span, Value};

/// Resource attributes that identify the sender.
const SERVICE: [(&str, &str); 2] =
    [("service.name", "stafette"), ("service.version", env!("CARGO_PKG_VERSION"))];
const SCOPE: &str = "stafette";
/// `STATUS_CODE_ERROR` of OTLP.
const ERROR: u64 = 2;
/// Trace flag: the trace is sampled.
const SAMPLED: u32 = 1;

/// A request to export spans, serialised as they are added: a serialised span is compact and in one
/// piece.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    protocol: Protocol,
    spans: Vec<u8>,
    count: usize,
}

impl Request {
    /// Creates a request without spans.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        Request { protocol, spans: Vec::new(), count: 0 }
    }

    /// Returns the number of spans in the request.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds a span to the request.
    pub fn add(&mut self, span: &Span) {
        match self.protocol {
            Protocol::HttpProtobuf | Protocol::Grpc => {
                message(&mut self.spans, 2, |out| span_fields(out, span));
            }
            Protocol::HttpJson => {
                if self.count > 0 {
                    self.spans.push(b',');
                }
                self.spans.extend_from_slice(json_span(span).to_string().as_bytes());
            }
        }
        self.count += 1;
    }

    /// Returns the body to send.
    pub fn body(&self) -> Vec<u8> {
        match self.protocol {
            Protocol::HttpProtobuf | Protocol::Grpc => protobuf(&self.spans),
            Protocol::HttpJson => json(&self.spans),
        }
    }
}

/// Wraps the spans with the resource and the scope.
fn protobuf(spans: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(spans.len() + 128);
    message(&mut out, 1, |resource_spans| {
        message(resource_spans, 1, |resource| {
            for (key, value) in SERVICE {
                attribute(resource, 1, key, &value.into());
            }
        });
        message(resource_spans, 2, |scope_spans| {
            message(scope_spans, 1, |scope| {
                field(scope, 1, SCOPE.as_bytes());
                field(scope, 2, env!("CARGO_PKG_VERSION").as_bytes());
            });
            scope_spans.extend_from_slice(spans);
        });
    });
    out
}

fn span_fields(out: &mut Vec<u8>, span: &Span) {
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
        attribute(out, 9, key, value);
    }
    if let Some(other) = &span.link {
        message(out, 13, |link| {
            field(link, 1, &other.trace.0);
            field(link, 2, &other.span.0);
        });
    }
    if let Some(error) = &span.error {
        message(out, 15, |status| {
            field(status, 2, error.as_bytes());
            number(status, 3, ERROR);
        });
    }
    fixed32(out, 16, SAMPLED);
}

/// Writes a `KeyValue` with its `AnyValue`.
fn attribute(out: &mut Vec<u8>, number: u64, key: &str, value: &Value) {
    message(out, number, |pair| {
        field(pair, 1, key.as_bytes());
        message(pair, 2, |any| match value {
            Value::Text(text) => field(any, 1, text.as_bytes()),
            Value::Number(whole) => {
                varint(any, 3 << 3);
                // Two's complement, as the format requires.
                varint(any, u64::from_ne_bytes(whole.to_ne_bytes()));
            }
            Value::Float(float) => fixed64(any, 4, float.to_bits()),
        });
    });
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

/// Writes a nested message in place: its length is known afterwards.
fn message(out: &mut Vec<u8>, number: u64, fill: impl FnOnce(&mut Vec<u8>)) {
    varint(out, number << 3 | 2);
    // Most are short, so that one byte of length is enough and nothing has to be moved.
    let begin = out.len();
    out.push(0);
    fill(out);
    let length = out.len() - begin - 1;
    match u8::try_from(length) {
        Ok(short @ ..0x80) => out[begin] = short,
        _ => {
            let mut bytes = Vec::new();
            varint(&mut bytes, length as u64);
            out.splice(begin..=begin, bytes);
        }
    }
}

/// Writes a field with a length: text or bytes.
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

/// Wraps the spans as JSON.
fn json(spans: &[u8]) -> Vec<u8> {
    let resource = json!({ "attributes": SERVICE.map(|(key, value)| pair(key, &value.into())) });
    let scope = json!({ "name": SCOPE, "version": env!("CARGO_PKG_VERSION") });
    let before = format!(
        r#"{{"resourceSpans":[{{"resource":{resource},"scopeSpans":[{{"scope":{scope},"spans":["#
    );
    [before.as_bytes(), spans, b"]}]}]}"].concat()
}

fn json_span(span: &Span) -> serde_json::Value {
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
    if let Some(link) = &span.link {
        let (trace, span) = (link.trace.to_string(), link.span.to_string());
        out["links"] = json!([{ "traceId": trace, "spanId": span }]);
    }
    if let Some(error) = &span.error {
        out["status"] = json!({ "code": ERROR, "message": error });
    }
    out
}

fn pair(key: &str, value: &Value) -> serde_json::Value {
    let any = match value {
        Value::Text(text) => json!({ "stringValue": text }),
        Value::Number(whole) => json!({ "intValue": whole.to_string() }),
        Value::Float(float) => json!({ "doubleValue": float }),
    };
    json!({ "key": key, "value": any })
}
