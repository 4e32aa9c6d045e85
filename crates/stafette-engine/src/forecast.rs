//! The cost of an agent's turn, learned over the runs of the project.

use std::collections::BTreeMap;

use serde::Deserialize;
use stafette_agents::profile::{Sight, sight};
use stafette_core::run::budget::{Forecast, Purse};
use stafette_core::run::create::RunCreated;
use stafette_core::workflow::Runner;
use stafette_core::{Usage, Usd};
use stafette_store::RunFilter;

use crate::dispatch::profile;
use crate::engine::parse;
use crate::{Engine, EngineError};

/// The number of the newest runs that are read: enough to have met every agent, and few enough that
/// a run begins without delay.
const RUNS: usize = 32;

/// The part of a run's view that costs are learned from. The rest may be large, and every start reads
/// it.
#[derive(Deserialize)]
struct Account {
    workflow: String,
    purse: Purse,
}

impl Engine {
    /// The known cost of each agent of a run that is about to begin. Figures from its creator come
    /// first; after that, the maximum of a turn in the newest runs of the same workflow. An agent
    /// that has never finished a turn has no forecast.
    pub(crate) async fn forecasts(
        &self,
        created: &RunCreated,
    ) -> Result<BTreeMap<String, Forecast>, EngineError> {
        let mut known = created.forecasts.clone().unwrap_or_default();
        let agents = &created.workflow.agents;
        for (name, agent) in agents {
            let profile =
                agent.profile.as_deref().and_then(|name| profile(&created.workflow, name));
            // Nobody would ever learn what it costs.
            if agent.runner == Runner::Pty && sight(agent, profile.as_ref()) == Sight::NONE {
                known.insert(name.to_string(), Forecast::Unmetered);
            }
        }
        let unknown = |known: &BTreeMap<String, Forecast>| {
            agents.keys().any(|name| !known.contains_key(name.as_str()))
        };
        if !unknown(&known) {
            return Ok(known);
        }
        let mut seen: BTreeMap<String, Forecast> = BTreeMap::new();
        let newest = RunFilter { limit: RUNS, ..RunFilter::default() };
        for row in self.store().runs(newest).await? {
            let view: Account = parse(row.seq, &row.body)?;
            if view.workflow != created.workflow.workflow.name {
                continue;
            }
            for (name, account) in &view.purse.agents {
                let before = match seen.get(name) {
                    Some(Forecast::Known(most)) => *most,
                    _ => Usage::default(),
                };
                if account.finished > 0 {
                    seen.insert(name.clone(), account.forecast(before));
                }
            }
        }
        // As in earlier generations, on average: a context of another orchestrator has no more
        // details.
        let services = created.team.lineage.iter().flat_map(|lineage| &lineage.agents);
        for (name, service) in services.filter(|(_, service)| service.turns > 0) {
            let money = Usd(service.cost.0.div_ceil(service.turns));
            let average = Forecast::Known(Usage::exactly(0, money));
            seen.entry(name.clone()).or_insert(average);
        }
        seen.retain(|name, _| agents.keys().any(|agent| agent.as_str() == name));
        seen.extend(known);
        Ok(seen)
    }
}
