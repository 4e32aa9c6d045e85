//! What all runs of a project share: where they work, who may speak for them, and their terminals.

use std::sync::Arc;

use stafette_agents::terminal::Terminals;

use crate::engine::Settings;
use crate::gate::Gate;
use crate::locks::LockDesk;
use crate::own::OwnProgram;
use crate::place::Places;
use crate::tokens::Tokens;
use crate::warden::Warden;

/// What all runs share. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct House {
    pub(crate) settings: Arc<Settings>,
    pub(crate) tokens: Tokens,
    pub(crate) places: Places,
    pub(crate) terminals: Terminals,
    pub(crate) locks: LockDesk,
    pub(crate) own: OwnProgram,
    /// Who is asked before something begins.
    pub(crate) warden: Option<Arc<dyn Warden>>,
    /// Who looks at what arrives.
    pub(crate) gate: Option<Arc<dyn Gate>>,
}

impl House {
    pub(crate) fn new(
        settings: Settings,
        locks: LockDesk,
        warden: Option<Arc<dyn Warden>>,
        gate: Option<Arc<dyn Gate>>,
    ) -> Self {
        let settings = Arc::new(settings);
        let recordings = settings.recordings();
        House {
            tokens: Tokens::default(),
            places: Places::new(Arc::clone(&settings)),
            terminals: Terminals::new().recorded_in(recordings, settings.redactor.clone()),
            settings,
            locks,
            own: OwnProgram::default(),
            warden,
            gate,
        }
    }
}
