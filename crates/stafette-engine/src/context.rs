//! State that all runs of a project share: settings, tokens and terminals.

use std::sync::Arc;

use stafette_agents::terminal::Terminals;

use crate::engine::Settings;
use crate::gate::Gate;
use crate::interceptor::Interceptor;
use crate::locks::LockManager;
use crate::place::Places;
use crate::self_program::ManagedProgram;
use crate::tokens::Tokens;

/// State that all runs share. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct EngineContext {
    pub(crate) settings: Arc<Settings>,
    pub(crate) tokens: Tokens,
    pub(crate) places: Places,
    pub(crate) terminals: Terminals,
    pub(crate) locks: LockManager,
    pub(crate) own: ManagedProgram,
    /// Asked before a run or a turn begins; `None` when there are no hooks.
    pub(crate) interceptor: Option<Arc<dyn Interceptor>>,
    /// Inspects inputs before they are decided; `None` when nothing needs inspection.
    pub(crate) gate: Option<Arc<dyn Gate>>,
}

impl EngineContext {
    pub(crate) fn new(
        settings: Settings,
        locks: LockManager,
        interceptor: Option<Arc<dyn Interceptor>>,
        gate: Option<Arc<dyn Gate>>,
    ) -> Self {
        let settings = Arc::new(settings);
        let recordings = settings.recordings();
        EngineContext {
            tokens: Tokens::open(&settings.scratch),
            places: Places::new(Arc::clone(&settings)),
            terminals: Terminals::new().recorded_in(recordings, settings.redactor.clone()),
            settings,
            locks,
            own: ManagedProgram::default(),
            interceptor,
            gate,
        }
    }
}
