//! Laws about the budget of turns.

use std::collections::BTreeMap;

use stafette_core::run::turn::TurnOrdered;
use stafette_core::{Run, TurnKey, Usage, Usd};

use super::{LawResult, must};

/// Reserved and used amounts, counted independently.
#[derive(Debug, Default)]
pub(super) struct Costs {
    /// The reservation for each turn in progress, and true if its cost was known.
    out: BTreeMap<TurnKey, (Usage, bool)>,
    /// The amount by which turns have exceeded the known costs of their agents, since the last turn
    /// was given out.
    beyond: Usage,
    /// The largest amount by which one turn of unknown cost has exceeded its reservation, since
    /// then.
    unknown: Usage,
}

impl Costs {
    /// A turn is given out. By another law, all usage is within the budget then, so what earlier
    /// turns have used above it no longer counts.
    pub(super) fn ordered(&mut self, run: &Run, e: &TurnOrdered) -> LawResult {
        (self.beyond, self.unknown) = Default::default();
        let known = is_known(run, e.turn);
        let other = self.out.iter().find(|(_, (_, known))| !known).map(|(turn, _)| turn);
        must(known || other.is_none(), "one turn of unknown cost is out at a time", || {
            format!("{} beside {other:?}", e.turn)
        })?;
        self.out.insert(e.turn, (e.reserved, known));
        Ok(())
    }

    pub(super) fn ended(&mut self, turn: TurnKey, used: Usage) {
        let Some((reserved, known)) = self.out.remove(&turn) else { return };
        let more = Usage::exactly(
            used.tokens.saturating_sub(reserved.tokens),
            Usd(used.money.0.saturating_sub(reserved.money.0)),
        );
        match known {
            true => self.beyond += more,
            false => self.unknown = self.unknown.max(more),
        }
    }

    pub(super) fn called_off(&mut self, turn: TurnKey) {
        self.out.remove(&turn);
    }

    /// As long as no turn uses more than the known cost of its agent, only one turn of unknown cost
    /// can exceed the budget; without such a turn, nothing does.
    pub(super) fn are_within(&self, run: &Run) -> LawResult {
        let (purse, limit) = (&run.purse, &run.purse.limit);
        let used = purse.spent + purse.reserved;
        let limit = Usage::exactly(limit.tokens, limit.money);
        let allowed = limit + self.beyond + self.unknown;
        let kept = used.tokens <= allowed.tokens && used.money <= allowed.money;
        must(kept, "a budget is passed by one turn of unknown cost at most", || {
            let (beyond, unknown) = (self.beyond, self.unknown);
            format!("{used:?} of {limit:?}; {beyond:?} above what was known, {unknown:?} unknown")
        })
    }
}

/// True if the cost of a turn of this agent is known: from an earlier turn, the workflow, or
/// earlier runs.
fn is_known(run: &Run, turn: TurnKey) -> bool {
    let agent = run.handoff(turn.handoff).and_then(|it| run.workflow.agent(&it.offer.to));
    let Some((name, agent)) = agent else { return true };
    let name = name.as_str();
    let had_one = run.purse.agents.get(name).is_some_and(|account| account.finished > 0);
    let forecast = run.purse.forecasts.as_ref().is_none_or(|known| known.contains_key(name));
    let earlier = run.team.lineage.as_ref().and_then(|lineage| lineage.agents.get(name));
    let earlier = earlier.is_some_and(|service| service.turns > 0);
    had_one || agent.estimate.is_some() || forecast || earlier
}
