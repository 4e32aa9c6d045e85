//! The real engine in a deterministic world: its tasks, dispatch, pumps and stops run unchanged, on one
//! thread and in virtual time.
//!
//! A seed draws a chain of agents, how they work and answer, how slow the store is, and how each life
//! of the daemon ends: it is killed at a moment, at one of its own crash points or at an access to the
//! store, or it is asked to stop. Agents are processes of the world: they live on when a daemon is
//! killed, and report to the next one. The last life has no faults, so that every run has to end.
//!
//! Once a daemon is dead, nothing that it still does reaches the world: the store does not take it, no
//! agent starts, and no reply arrives.

mod crew;
mod life;
mod state;
mod store;

use std::sync::{Arc, Mutex};

use crate::report::{Report, Violation};
use crate::shell::life::Life;
use crate::shell::state::State;

/// A fault of the past, put back to show that the laws notice it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OldFault {
    /// An agent's report counts as delivered without a daemon, and its exit as its answer.
    ReportsToNobody,
    /// A task that stops leaves its queue to the sessions that it waits for.
    WaitsForItself,
    /// A turn that is delivered again does not wait for what the last delivery left at work.
    ForgetsSurvivors,
}

/// Runs a seed to its end.
///
/// # Errors
/// The first broken law, with the end of the trace.
pub fn run(seed: u64, fault: Option<OldFault>) -> Result<Report, Box<Violation>> {
    let state = Arc::new(Mutex::new(State::new(seed, fault)));
    let scratch = tempfile::tempdir().expect("a temporary folder");
    loop {
        let life = Life::draw(&state, scratch.path());
        life.live();
        let mut state = state.lock().expect("nobody panics with it");
        state.between_lives();
        if let Some(violation) = state.violation.take() {
            return Err(Box::new(violation));
        }
        if state.is_over() {
            return Ok(state.report());
        }
    }
}
