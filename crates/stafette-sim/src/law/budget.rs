//! Laws about the budget of turns.

use std::collections::{BTreeMap, BTreeSet};

use stafette_core::run::turn::TurnOrdered;
use stafette_core::{Party, Run, TurnKey, Usage, Usd};

use super::{LawResult, must};

/// Reserved and used amounts, counted independently.
#[derive(Debug, Default)]
pub(super) struct Costs {
    /// The reservation for each turn in progress, and true if its cost was known.
    out: BTreeMap<TurnKey, (Usage, bool)>,
    /// The agents that have ended a turn with a result, and told what it used.
    told: BTreeSet<Party>,
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
        let known = self.is_known(run, e.turn);
        let left = left(run);
        must(
            known || e.reserved == left,
            "a turn of unknown cost reserves all that is left",
            || format!("{} reserves {:?} of {left:?}", e.turn, e.reserved),
        )?;
        let other = self.out.iter().find(|(_, (_, known))| !known).map(|(turn, _)| turn);
        must(known || other.is_none(), "one turn of unknown cost is out at a time", || {
            format!("{} beside {other:?}", e.turn)
        })?;
        self.out.insert(e.turn, (e.reserved, known));
        Ok(())
    }

    /// A turn ended with a result.
    pub(super) fn finished(&mut self, run: &Run, turn: TurnKey, used: Usage) {
        let says_something = used.unknown.tokens == 0 || used.unknown.money == 0;
        let agent = run.handoff(turn.handoff).map(|handoff| handoff.offer.to.clone());
        self.told.extend(agent.filter(|_| says_something || used.money > Usd(0)));
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

    /// True if the cost of a turn of this agent is known: from an earlier turn, the workflow, or
    /// earlier runs.
    fn is_known(&self, run: &Run, turn: TurnKey) -> bool {
        let agent = run.handoff(turn.handoff).and_then(|it| run.workflow.agent(&it.offer.to));
        let Some((name, agent)) = agent else { return true };
        let forecasts = run.purse.forecasts.as_ref();
        let forecast = forecasts.is_none_or(|known| known.contains_key(name.as_str()));
        forecast || agent.estimate.is_some() || self.told.contains(&Party::from(name))
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

/// Returns the amount that is neither spent nor reserved.
fn left(run: &Run) -> Usage {
    let (limit, spent, reserved) = (&run.purse.limit, run.purse.spent, run.purse.reserved);
    let tokens = limit.tokens.saturating_sub(spent.tokens + reserved.tokens);
    Usage::exactly(tokens, Usd(limit.money.0.saturating_sub(spent.money.0 + reserved.money.0)))
}
