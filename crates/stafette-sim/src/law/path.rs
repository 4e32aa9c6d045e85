//! Laws about the path of work.

use std::collections::{BTreeMap, BTreeSet};

use stafette_core::run::propose::HandoffAdmitted;
use stafette_core::team::council;
use stafette_core::team::phase::REASON;
use stafette_core::workflow::{self, Loop};
use stafette_core::{HandoffId, Party, Run, Time, TurnKey, Workflow};

use super::{LawResult, must};

const ROUNDS: &str = "a loop has a limit of rounds";

/// The path of work, counted independently.
#[derive(Debug, Default)]
pub(super) struct Paths {
    pub(super) counted: u32,
    pub(super) per_item: BTreeMap<String, u32>,
    /// The turns in which a handoff gave work to another of its loop and waited for it.
    delegated: BTreeMap<(HandoffId, Party), BTreeSet<u32>>,
    /// Every party that had the request of a handoff, oldest first, counted independently.
    ways: BTreeMap<HandoffId, Vec<Party>>,
    /// The number of times that a person restarted a loop.
    laps: u32,
    last_use: BTreeMap<(Party, Party), Time>,
}

impl Paths {
    /// A person restarts a handoff: what was before no longer counts.
    pub(super) fn begin_afresh(&mut self, id: HandoffId) {
        self.laps += 1;
        if let Some(way) = self.ways.get_mut(&id) {
            way.drain(..way.len().saturating_sub(1));
        }
    }

    /// A turn is given out: the first of a counted handoff uses its path, not before the cooldown
    /// since its last use has passed.
    pub(super) fn use_one(&mut self, run: &Run, at: Time, turn: TurnKey) -> LawResult {
        let Some(handoff) = run.handoff(turn.handoff) else { return Ok(()) };
        let offer = &handoff.offer;
        if offer.from == Party::Human || council::is_turn(&handoff.constraints) {
            return Ok(());
        }
        let last = self.last_use.insert((offer.from.clone(), offer.to.clone()), at);
        let cooldown = run.workflow.limits.cooldown;
        let apart = turn.turn > 1 || last.is_none_or(|last| last + cooldown <= at);
        must(apart, "two uses of a path are a cooldown apart", || {
            format!("{turn} at {at:?} after {last:?}: {} → {}", offer.from, offer.to)
        })
    }

    /// Checks the admission of a handoff.
    pub(super) fn admit(&mut self, run: &Run, e: &HandoffAdmitted) -> LawResult {
        let workflow = &run.workflow;
        let (from, to) = (&e.offer.from, &e.offer.to);
        // A phase begins with what it is given: the path so far does not count.
        let before = e.cause.filter(|_| e.offer.reason.as_str() != REASON);
        let mut way = before.and_then(|id| self.ways.get(&id)).cloned().unwrap_or_default();
        let constraints = e.terms.as_ref().and_then(|terms| terms.constraints);
        if constraints.is_some_and(|it| council::is_turn(&it)) {
            self.ways.insert(e.id, way);
            return is_heard_as_often_as_allowed(run, to);
        }
        let moves = matches!(to, Party::Agent(_));
        if moves {
            way.push(to.clone());
        }
        if *from != Party::Human && moves {
            self.is_within_limits(workflow, e)?;
            self.goes_round_as_declared(workflow, &way)?;
            follows_a_route(workflow, e)?;
        }
        self.ways.insert(e.id, way);
        let waiting = e.returns_to.filter(|id| Some(*id) == e.cause);
        let waiting = waiting.and_then(|id| run.handoff(id));
        if let Some(waiting) = waiting.filter(|_| shares_loop(workflow, from, to)) {
            let turns = self.delegated.entry((waiting.id, to.clone())).or_default();
            turns.insert(waiting.turn);
            let (times, allowed) = (turns.len(), self.rounds(workflow, to));
            must(times <= allowed as usize, ROUNDS, || {
                format!("{} has waited for {to} {times} times of {allowed}", waiting.id)
            })?;
        }
        Ok(())
    }

    fn is_within_limits(&mut self, workflow: &Workflow, e: &HandoffAdmitted) -> LawResult {
        let item = e.offer.item.clone().unwrap_or_else(|| "global".to_owned());
        self.counted += 1;
        let per_item = self.per_item.entry(item.clone()).or_default();
        *per_item += 1;
        let limits = &workflow.limits;
        must(self.counted <= limits.handoffs_per_run, "a run has a limit of handoffs", || {
            format!("{} is number {} of {}", e.id, self.counted, limits.handoffs_per_run)
        })?;
        must(*per_item <= limits.handoffs_per_item, "an item has a limit of handoffs", || {
            format!("{} is number {per_item} of `{item}`", e.id)
        })
    }

    /// No party gets a request again, except within a declared loop and as often as that allows.
    fn goes_round_as_declared(&self, workflow: &Workflow, way: &[Party]) -> LawResult {
        let Some((last, earlier)) = way.split_last() else { return Ok(()) };
        let Some(start) = earlier.iter().rposition(|party| party == last) else { return Ok(()) };
        let mut steps = way[start..].windows(2);
        let declared = steps.all(|step| shares_loop(workflow, &step[0], &step[1]));
        must(declared, "every cycle is declared", || format!("{way:?}"))?;
        let times = way.iter().filter(|party| *party == last).count();
        let allowed = self.rounds(workflow, last);
        must(times <= allowed as usize, ROUNDS, || {
            format!("{last} has had it {times} times of {allowed}: {way:?}")
        })
    }

    /// Returns how often a party may receive a request, in all its loops together.
    fn rounds(&self, workflow: &Workflow, party: &Party) -> u32 {
        let loops = workflow.loops.iter().filter(|l| is_in(l, party));
        let rounds: u32 = loops.map(|l| l.max_rounds).sum();
        rounds.max(1) * (1 + self.laps)
    }
}

/// A council calls each member as often as its rules and a person allow, and only its members.
fn is_heard_as_often_as_allowed(run: &Run, to: &Party) -> LawResult {
    let council = run.team.council.as_deref();
    let member = run.workflow.agent(to).map(|(name, _)| name);
    let rules = run.workflow.council.as_ref();
    let known = member.filter(|name| rules.is_some_and(|rules| rules.members.contains(name)));
    let allowed = council.zip(known).is_some_and(|(council, name)| {
        council.verdict.is_none() && council.turns_of(name) < council.limit
    });
    must(allowed, "a council hears its members within their turns", || format!("{to}: {council:?}"))
}

/// Work moves between agents by a route, by a need, or by a recovery.
fn follows_a_route(workflow: &Workflow, e: &HandoffAdmitted) -> LawResult {
    let (from, to) = (&e.offer.from, &e.offer.to);
    let agent = workflow.agent(from).map(|(_, agent)| agent);
    let mut needs = agent.into_iter().flat_map(|agent| &agent.needs);
    let declared = *from == Party::Orchestrator
        || *from == workflow::council::party()
        || *to == workflow::council::party()
        || !e.offer.prior_attempts.is_empty()
        || needs.any(|need| workflow.provider(&need.source) == *to);
    let denied = workflow.deny.iter().any(|denied| denied.from == *from && denied.to == *to);
    let routed = workflow.route(from, to).is_some() && !denied;
    must(declared || routed, "work moves by routes", || format!("{}: {from} → {to}", e.id))
}

fn shares_loop(workflow: &Workflow, from: &Party, to: &Party) -> bool {
    workflow.loops.iter().any(|l| is_in(l, from) && is_in(l, to))
}

fn is_in(declared: &Loop, party: &Party) -> bool {
    declared.between.iter().any(|name| name.as_str() == party.as_str())
}
