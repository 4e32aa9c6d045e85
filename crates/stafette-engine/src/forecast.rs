//! The cost of an agent's turn, learned over the runs of the project.

use std::collections::BTreeMap;

use serde::Deserialize;
use stafette_agents::profile::{Sight, sight};
use stafette_core::run::budget::{Forecast, Purse};
use stafette_core::run::create::RunCreated;
use stafette_core::team::generation::Service;
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
    /// first; after that, the maximum of a turn in the newest runs of the same workflow, and then what
    /// earlier generations have cost. An agent that nobody can see using anything is unmetered; any
    /// other that has never told what a turn used has no forecast.
    pub(crate) async fn forecasts(
        &self,
        created: &RunCreated,
    ) -> Result<BTreeMap<String, Forecast>, EngineError> {
        let known = created.forecasts.clone().unwrap_or_default();
        if created.workflow.agents.keys().all(|name| known.contains_key(name.as_str())) {
            return Ok(known);
        }
        let mut accounts = Vec::new();
        let newest = RunFilter { limit: RUNS, ..RunFilter::default() };
        for row in self.store().runs(newest).await? {
            let view: Account = parse(row.seq, &row.body)?;
            if view.workflow == created.workflow.workflow.name {
                accounts.push(view.purse);
            }
        }
        let mut learned = learn(created, &accounts);
        learned.extend(known);
        Ok(learned)
    }
}

/// The cost of each agent of a run, as far as earlier runs and its runner tell.
fn learn(created: &RunCreated, earlier: &[Purse]) -> BTreeMap<String, Forecast> {
    let mut seen: BTreeMap<String, Forecast> = BTreeMap::new();
    for (name, account) in earlier.iter().flat_map(|purse| &purse.agents) {
        let forecast = account.forecast(seen.get(name).copied());
        seen.extend(forecast.map(|forecast| (name.clone(), forecast)));
    }
    // As in earlier generations, on average: a context of another orchestrator has no more details.
    let services = created.team.lineage.iter().flat_map(|lineage| &lineage.agents);
    let paid = |service: &Service| service.turns > 0 && service.cost > Usd(0);
    for (name, service) in services.filter(|(_, service)| paid(service)) {
        let money = Usd(service.cost.0.div_ceil(service.turns));
        let average = Forecast::Known(Usage::exactly(0, money));
        seen.entry(name.clone()).or_insert(average);
    }
    let agents = &created.workflow.agents;
    for (name, agent) in agents {
        let profile = agent.profile.as_deref().and_then(|name| profile(&created.workflow, name));
        // Nobody would ever learn what it costs.
        if sight(agent, profile.as_ref()) == Sight::NONE {
            seen.entry(name.to_string()).or_insert(Forecast::Unmetered);
        }
    }
    seen.retain(|name, _| agents.keys().any(|agent| agent.as_str() == name));
    seen
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use stafette_core::run::budget;
    use stafette_core::{RunId, Unknown};
    use uuid::Uuid;

    use super::*;

    fn created() -> RunCreated {
        let text = r#"
            workflow = { name = "sight", entry = "shell" }
            [agents]
            shell = { runner = "exec", command = ["./agent"] }
            outside = { runner = "external" }
            elsewhere = { runner = "a2a", url = "https://agents.test" }
            claude = { runner = "exec", profile = "claude" }
            guessed = { runner = "external", estimate = { money = 0.1 } }
        "#;
        let workflow = stafette_workflow::parse(text).expect("a workflow");
        RunCreated::new(RunId(Uuid::nil()), Arc::new(workflow), "Learn", "test")
    }

    #[test]
    fn b_05_a_runner_that_cannot_report_its_cost_never_waits_for_money_from_its_first_run_on() {
        let learned = learn(&created(), &[]);
        let names: Vec<&str> = learned.keys().map(String::as_str).collect();
        assert_eq!(names, ["elsewhere", "outside", "shell"]);
        assert!(learned.values().all(|forecast| *forecast == Forecast::Unmetered));
    }

    #[test]
    fn b_05_what_turns_have_told_counts_and_what_they_have_not_told_does_not() {
        let account = |finished, unseen, most| {
            let unknown = Unknown { tokens: unseen, money: unseen };
            let spent = Usage { unknown, ..most };
            budget::Account { finished, unseen, most, spent, ..budget::Account::default() }
        };
        let told = Usage::exactly(80, Usd(300_000));
        let mut run: Purse = serde_json::from_value(serde_json::json!({
            "limit": created().budget, "spent": {}, "reserved": {}, "agents": {},
        }))
        .expect("a purse");
        for (name, account) in [
            ("claude", account(1, 1, Usage::default())),
            ("shell", account(2, 2, Usage::default())),
            ("outside", account(2, 1, told)),
        ] {
            run.agents.insert(name.to_owned(), account);
        }
        let learned = learn(&created(), &[run]);
        assert_eq!(learned.get("claude"), None, "its cost is unknown, and not nothing");
        assert_eq!(learned["shell"], Forecast::Unmetered);
        assert_eq!(learned["outside"], Forecast::Known(told));
    }
}
