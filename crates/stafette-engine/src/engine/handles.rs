//! The parts of the engine's interface, each for one subject.

use super::Engine;
use crate::locks::Locks;

impl Engine {
    /// Locks on files.
    #[must_use]
    pub fn locks(&self) -> Locks<'_> {
        Locks { engine: self }
    }
}
