//! The names of a run, its handoffs and its turns in a trace (W3C Trace Context). They follow from
//! the ids, so that whoever tells of them again tells of the same ones.

use std::fmt;

use uuid::Uuid;

use crate::{HandoffId, RunId, TurnKey};

/// The name of a trace: one for each run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TraceId(pub [u8; 16]);

/// The name of a span within a trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// The trace of a run.
    #[must_use]
    pub fn of(run: RunId) -> Self {
        TraceId(*run.0.as_bytes())
    }
}

impl SpanId {
    /// The span of a run as a whole.
    #[must_use]
    pub fn run(run: RunId) -> Self {
        named(run, "run")
    }

    /// The span of a handoff.
    #[must_use]
    pub fn handoff(run: RunId, handoff: HandoffId) -> Self {
        named(run, &handoff.to_string())
    }

    /// The span of a turn.
    #[must_use]
    pub fn turn(turn: TurnKey) -> Self {
        let TurnKey { run, handoff, attempt, turn } = turn;
        named(run, &format!("{handoff}/{attempt}.{turn}"))
    }
}

fn named(run: RunId, name: &str) -> SpanId {
    let made = Uuid::new_v5(&run.0, name.as_bytes());
    // The version and the variant of a UUID lie in its middle: the first half is never all zero.
    let mut id = [0; 8];
    id.copy_from_slice(&made.as_bytes()[..8]);
    SpanId(id)
}

/// The header by which an agent's own spans become part of the turn.
#[must_use]
pub fn traceparent(turn: TurnKey) -> String {
    format!("00-{}-{}-01", TraceId::of(turn.run), SpanId::turn(turn))
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
        assert_eq!(traceparent(turn), traceparent(turn));
        let (trace, rest) = traceparent(turn)[3..]
            .split_once('-')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .expect("parts");
        assert_eq!(trace, "00000000000000000000000000000007");
        assert_eq!(rest, format!("{}-01", SpanId::turn(turn)));
        assert_ne!(SpanId::turn(turn), SpanId::handoff(run, HandoffId(3)));
        assert_ne!(SpanId::run(run), SpanId::run(RunId(Uuid::from_u128(8))));
    }
}
