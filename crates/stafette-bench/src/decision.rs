//! Measures the core alone: deciding and applying two inputs.

use std::time::Instant;

use stafette_core::{Recorded, Run};

use crate::null::{self, Shape};
use crate::sample::rate;
use crate::{BenchError, Decisions};

pub(crate) fn measure(handoffs: u32) -> Result<Decisions, BenchError> {
    let mut now = null::BEGIN;
    let events = Run::begin(now, null::created(0)?);
    let recorded = (1..).zip(events).map(|(seq, event)| Recorded { seq, at: now, event });
    let mut run = Run::replay(&recorded.collect::<Vec<_>>()).ok_or("a run without beginning")?;
    let mut events = 0;
    let begin = Instant::now();
    for round in 0..handoffs {
        now = now + null::TURN;
        let order = run.outbox().next().ok_or("nobody has a turn")?;
        for input in null::take_turn(&order, null::offer(Shape::Loop, &order, round)) {
            let decided = run.decide(now, input);
            events += decided.events.len() as u64;
            run = decided.next;
        }
    }
    let took = begin.elapsed();
    if run.tally.handoffs != handoffs {
        return Err(format!("{} of {handoffs} handoffs were made", run.tally.handoffs).into());
    }
    Ok(Decisions {
        handoffs_per_second: rate(handoffs.into(), took),
        events_per_second: rate(events, took),
    })
}
