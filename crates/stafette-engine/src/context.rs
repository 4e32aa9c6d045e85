//! What all runs of a project share: where they work, who may speak for them, and their terminals.

use std::sync::Arc;

use stafette_agents::terminal::Terminals;

use crate::engine::Settings;
use crate::gate::Gate;
use crate::interceptor::Interceptor;
use crate::locks::LockManager;
use crate::place::Places;
use crate::self_program::ManagedProgram;
use crate::tokens::Tokens;

/// What all runs share. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct EngineContext {
    pub(crate) settings: Arc<Settings>,
    pub(crate) tokens: Tokens,
    pub(crate) places: Places,
    pub(crate) terminals: Terminals,
    pub(crate) locks: LockManager,
    pub(crate) own: ManagedProgram,
    /// Who is asked before something begins.
    pub(crate) warden: Option<Arc<dyn Interceptor>>,
    /// Who looks at what arrives.
    pub(crate) gate: Option<Arc<dyn Gate>>,
}

impl EngineContext {
    pub(crate) fn new(
        settings: Settings,
        locks: LockManager,
        warden: Option<Arc<dyn Interceptor>>,
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
            warden,
            gate,
        }
    }
}
