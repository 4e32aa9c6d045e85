//! Trace and span ids of a run, its handoffs and its turns (W3C Trace Context). They are derived
//! from the ids, so that repeated exports produce the same ones.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use crate::{HandoffId, RunId, Time, TurnKey};

/// The id of a trace: one for each run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TraceId(pub [u8; 16]);

/// The id of a span within a trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// Returns the trace of a run.
    #[must_use]
    pub fn of(run: RunId) -> Self {
        TraceId(*run.0.as_bytes())
    }
}

impl SpanId {
    /// Returns the span of a run as a whole.
    #[must_use]
    pub fn run(run: RunId) -> Self {
        named(run, "run")
    }

    /// Returns the span of a handoff.
    #[must_use]
    pub fn handoff(run: RunId, handoff: HandoffId) -> Self {
        named(run, &handoff.to_string())
    }

    /// Returns the span of a turn.
    #[must_use]
    pub fn turn(turn: TurnKey) -> Self {
        let TurnKey { run, handoff, attempt, turn } = turn;
        named(run, &format!("{handoff}/{attempt}.{turn}"))
    }

    /// Returns the span of a named part of the run that began at that time.
    #[must_use]
    pub fn of(run: RunId, name: &impl fmt::Display, began: Time) -> Self {
        named(run, &format!("{name}@{}", began.0))
    }
}

fn named(run: RunId, name: &str) -> SpanId {
    let made = Uuid::new_v5(&run.0, name.as_bytes());
    // The version and the variant of a UUID are in its middle: the first half is never all zero.
    let mut id = [0; 8];
    id.copy_from_slice(&made.as_bytes()[..8]);
    SpanId(id)
}

/// A span in its trace, as sent between systems: the `traceparent` of W3C Trace Context.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"))]
pub struct Traceparent {
    /// The id of the trace.
    pub trace: TraceId,
    /// The id of the span.
    pub span: SpanId,
}

/// The text is not a valid `traceparent`.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{text}` is not a traceparent")]
pub struct NotATraceparent {
    /// The text that could not be parsed.
    pub text: String,
}

impl Traceparent {
    /// Returns the trace of a run: the requester's, or its own.
    pub fn trace_of(run: RunId, asked_in: Option<Traceparent>) -> TraceId {
        asked_in.map_or_else(|| TraceId::of(run), |asked| asked.trace)
    }

    /// Returns the span of the run as a whole, for its requester.
    #[must_use]
    pub fn of_run(run: RunId, asked_in: Option<Traceparent>) -> Self {
        Traceparent { trace: Self::trace_of(run, asked_in), span: SpanId::run(run) }
    }

    /// Returns the span of a turn, so that its agent's own spans become part of it.
    #[must_use]
    pub fn of_turn(turn: TurnKey, asked_in: Option<Traceparent>) -> Self {
        Traceparent { trace: Self::trace_of(turn.run, asked_in), span: SpanId::turn(turn) }
    }
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-01", self.trace, self.span)
    }
}

impl FromStr for Traceparent {
    type Err = NotATraceparent;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || NotATraceparent { text: text.chars().take(80).collect() };
        let mut parts = text.split('-');
        let mut part = |length: usize| parts.next().filter(|part| part.len() == length);
        let (version, trace, span, flags) =
            (part(2), part(32), part(16), part(2).and_then(bytes::<1>));
        let version = version.and_then(bytes::<1>).filter(|version| *version != [0xff]);
        let (Some(version), Some(trace), Some(span), Some(_)) =
            (version, trace.and_then(bytes), span.and_then(bytes), flags)
        else {
            return Err(bad());
        };
        // Later versions may have more fields; the first does not.
        if (version == [0] && parts.next().is_some()) || trace == [0; 16] || span == [0; 8] {
            return Err(bad());
        }
        Ok(Traceparent { trace: TraceId(trace), span: SpanId(span) })
    }
}

as_text!(Traceparent, NotATraceparent);

/// Parses lowercase hexadecimal digits.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s2_10_the_names_of_a_trace_follow_from_the_ids() {
        let run = RunId(Uuid::from_u128(7));
        let turn = TurnKey { run, handoff: HandoffId(3), attempt: 1, turn: 2 };
        let own = Traceparent::of_turn(turn, None);
        assert_eq!(own, Traceparent::of_turn(turn, None));
        assert_eq!(
            own.to_string(),
            format!("00-00000000000000000000000000000007-{}-01", SpanId::turn(turn))
        );
        assert_ne!(SpanId::turn(turn), SpanId::handoff(run, HandoffId(3)));
        assert_ne!(SpanId::run(run), SpanId::run(RunId(Uuid::from_u128(8))));
    }
    #[test]
    fn s2_10_a_run_lies_in_the_trace_of_whoever_asked_for_it() {
        let theirs = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00";
        let asked: Traceparent = theirs.parse().expect("a traceparent");
        assert_eq!(asked.to_string(), format!("{}01", &theirs[..53]));
        let run = RunId(Uuid::from_u128(7));
        let whole = Traceparent::of_run(run, Some(asked));
        assert_eq!((whole.trace, whole.span), (asked.trace, SpanId::run(run)));
        for bad in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
            "00-0AF7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-more",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-é1",
        ] {
            assert!(bad.parse::<Traceparent>().is_err(), "{bad}");
        }
        let later = "01-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-more";
        assert_eq!(later.parse(), Ok(asked), "of a version to come");
    }
}
