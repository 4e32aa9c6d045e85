//! State that all runs of a project share: settings, tokens and terminals.

use std::sync::Arc;

use stafette_agents::terminal::Terminals;
use stafette_agents::{Agents, Programs};

use crate::engine::Settings;
use crate::gate::Gate;
use crate::interceptor::Interceptor;
use crate::locks::LockManager;
use crate::messages::Claims;
use crate::place::Places;
use crate::self_program::ManagedProgram;
use crate::tokens::Tokens;

/// What an engine works with, besides its store. By default there are no hooks, nothing is inspected,
/// and agents are processes of this machine.
#[derive(Clone, Debug, Default)]
pub struct Plugins {
    /// Asked before a run or a turn begins.
    pub interceptor: Option<Arc<dyn Interceptor>>,
    /// Inspects inputs before they are decided.
    pub gate: Option<Arc<dyn Gate>>,
    /// Carries turns out.
    pub agents: Option<Arc<dyn Agents>>,
}

/// State that all runs share. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct EngineContext {
    pub(crate) settings: Arc<Settings>,
    pub(crate) tokens: Tokens,
    pub(crate) places: Places,
    pub(crate) terminals: Terminals,
    /// Carries turns out.
    pub(crate) agents: Arc<dyn Agents>,
    pub(crate) locks: LockManager,
    pub(crate) own: ManagedProgram,
    pub(crate) claims: Claims,
    /// Asked before a run or a turn begins; `None` when there are no hooks.
    pub(crate) interceptor: Option<Arc<dyn Interceptor>>,
    /// Inspects inputs before they are decided; `None` when nothing needs inspection.
    pub(crate) gate: Option<Arc<dyn Gate>>,
}

impl EngineContext {
    pub(crate) fn new(settings: Settings, locks: LockManager, plugins: Plugins) -> Self {
        let settings = Arc::new(settings);
        let recordings = settings.recordings();
        let terminals = Terminals::new().recorded_in(recordings, settings.redactor.clone());
        let scratch = settings.scratch.clone();
        let Plugins { interceptor, gate, agents } = plugins;
        EngineContext {
            tokens: Tokens::open(&settings.scratch),
            places: Places::new(Arc::clone(&settings)),
            agents: agents.unwrap_or_else(|| Arc::new(Programs::new(terminals.clone(), scratch))),
            terminals,
            settings,
            locks,
            own: ManagedProgram::default(),
            claims: Claims::default(),
            interceptor,
            gate,
        }
    }
}
