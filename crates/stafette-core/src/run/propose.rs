//! Somebody proposes a handoff: it is admitted, or refused under a rule that is named.
//!
//! The order of the rules is the contract's: limits, circularity, route.

mod circularity;
mod limits;
mod route;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{CLOSED_KEPT, Draft, PathUse, Run, Step, escalate};
use crate::handoff::{About, State, Trail};
use crate::{Event, Handoff, HandoffId, Offer, Outcome, Party, Response, Time, Usage};

pub use circularity::WINDOW;
pub use limits::MAX_PAYLOAD;

/// A handoff was admitted and has its number.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HandoffAdmitted {
    /// Its name within the run.
    pub id: HandoffId,
    /// What is asked.
    pub offer: Offer,
    /// The handoff that the giver was working on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<HandoffId>,
    /// The handoff that waits for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns_to: Option<HandoffId>,
    /// How far the request has come.
    pub trail: Trail,
    /// Where it starts.
    pub state: State,
}

/// A proposal was refused.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HandoffRefused {
    /// Its name within the run.
    pub id: HandoffId,
    /// What was asked.
    pub offer: Offer,
    /// The handoff that the giver was working on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<HandoffId>,
    /// Under which rule.
    pub refusal: Refusal,
}

/// The rule under which a proposal is refused.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum Refusal {
    /// It carries too much.
    TooLarge {
        /// How much.
        bytes: usize,
        /// How much is allowed.
        limit: usize,
    },
    /// The work item was handed over too often.
    ItemLimit {
        /// Which item.
        item: String,
        /// How often is allowed.
        limit: u32,
    },
    /// The run has seen too many handoffs.
    RunLimit {
        /// How many are allowed.
        limit: u32,
    },
    /// The same step was just taken, twice.
    Repeated {
        /// Who gives.
        from: Party,
        /// Who takes.
        to: Party,
    },
    /// The work would come back to someone who had it.
    Cycle {
        /// The way round.
        path: Vec<Party>,
    },
    /// A declared loop has had its rounds.
    LoopExhausted {
        /// Which loop.
        name: String,
        /// How many rounds.
        rounds: u32,
    },
    /// A round of a declared loop changed nothing.
    NoProgress {
        /// Which loop.
        name: String,
        /// Which round.
        round: u32,
    },
    /// Nobody has that name.
    UnknownTarget {
        /// The name.
        to: Party,
    },
    /// The path is forbidden.
    Denied {
        /// Who gives.
        from: Party,
        /// Who takes.
        to: Party,
        /// Why.
        why: String,
    },
    /// The path is not on the list.
    NoRoute {
        /// Who gives.
        from: Party,
        /// Who takes.
        to: Party,
        /// Who would be possible.
        possible: Vec<Party>,
    },
    /// The path requires what is not there.
    MissingEvidence {
        /// Who gives.
        from: Party,
        /// Who takes.
        to: Party,
        /// What is missing.
        missing: Vec<String>,
    },
}

impl Refusal {
    /// The refusal in the contract's words, where it has some.
    #[must_use]
    pub fn headline(&self) -> &'static str {
        match self {
            Refusal::TooLarge { .. } => "Payload too large",
            Refusal::ItemLimit { .. } | Refusal::RunLimit { .. } => "Handoff limit exceeded",
            Refusal::Repeated { .. } | Refusal::Cycle { .. } => "Circular handoff detected",
            Refusal::LoopExhausted { .. } => "Loop limit exceeded",
            Refusal::NoProgress { .. } => "No progress",
            Refusal::UnknownTarget { .. } => "Unknown target",
            Refusal::Denied { .. } | Refusal::NoRoute { .. } => "Route not allowed",
            Refusal::MissingEvidence { .. } => "Missing evidence",
        }
    }

    /// What is wrong, with names and numbers.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Refusal::TooLarge { bytes, limit } => {
                format!("it carries {bytes} bytes, and {limit} are allowed")
            }
            Refusal::ItemLimit { item, limit } => {
                format!("`{item}` was handed over {limit} times, which is its limit")
            }
            Refusal::RunLimit { limit } => {
                format!("the run has had {limit} handoffs, which is its limit")
            }
            Refusal::Repeated { from, to } => {
                format!("{from} → {to} was just tried twice for the same reason")
            }
            Refusal::Cycle { path } => {
                let names: Vec<&str> = path.iter().map(Party::as_str).collect();
                format!("{} and no loop declares it", names.join(" → "))
            }
            Refusal::LoopExhausted { name, rounds } => {
                format!("loop `{name}` has had its {rounds} rounds")
            }
            Refusal::NoProgress { name, round } => {
                format!("round {round} of loop `{name}` changed nothing")
            }
            Refusal::UnknownTarget { to } => format!("the workflow has no agent `{to}`"),
            Refusal::Denied { from, to, why } => format!("{from} → {to} is denied: {why}"),
            Refusal::NoRoute { from, to, possible } => {
                let names: Vec<&str> = possible.iter().map(Party::as_str).collect();
                format!("no route {from} → {to}; possible: {}", names.join(", "))
            }
            Refusal::MissingEvidence { from, to, missing } => {
                format!("{from} → {to} requires {}", missing.join(", "))
            }
        }
    }

    /// Whether it is about going round in circles.
    #[must_use]
    pub fn is_circular(&self) -> bool {
        matches!(self, Refusal::Repeated { .. } | Refusal::Cycle { .. })
    }

    /// Whether only a person can help: trying again cannot.
    pub(super) fn parks(&self) -> bool {
        matches!(self, Refusal::LoopExhausted { .. } | Refusal::NoProgress { .. })
    }

    /// The answer that the proposer gets.
    #[must_use]
    pub fn response(&self) -> Response {
        Response { recommendations: vec![self.detail()], ..Response::failed(self.headline()) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.headline(), self.detail())
    }
}

/// An offer with its place in the run.
pub(super) struct Proposal {
    pub(super) offer: Offer,
    pub(super) cause: Option<HandoffId>,
    pub(super) returns_to: Option<HandoffId>,
    /// What the work looks like, for loops.
    pub(super) fingerprint: Option<String>,
    /// The workflow declares this step by a need or a recovery rule, so no route is asked for.
    pub(super) declared: bool,
}

impl Proposal {
    pub(super) fn of(offer: Offer) -> Self {
        Proposal { offer, cause: None, returns_to: None, fingerprint: None, declared: false }
    }

    /// The giver is at work on `cause`, and waits for the answer when the offer says so.
    pub(super) fn within(offer: Offer, cause: HandoffId) -> Self {
        let waits = match &offer.question {
            Some(question) => question.blocking,
            None => offer.kind == crate::Kind::Delegate,
        };
        Proposal { cause: Some(cause), returns_to: waits.then_some(cause), ..Self::of(offer) }
    }
}

/// Someone outside a turn proposes a handoff.
pub(super) fn decide(draft: &mut Draft, offer: Offer) {
    // A refusal is an event; whoever asked reads it there.
    let _ = propose(draft, Proposal::of(from_outside(offer)));
}

/// What the answer to a question decides is ours to say, never the asker's: otherwise an agent
/// could dress up as the budget.
pub(super) fn from_outside(mut offer: Offer) -> Offer {
    if let Some(question) = &mut offer.question {
        question.about = About::Inputs;
    }
    offer
}

/// Admits or refuses. Nothing is asked of the giver: the answer is in the events either way.
pub(super) fn propose(draft: &mut Draft, proposal: Proposal) -> Result<HandoffId, Refusal> {
    let id = HandoffId(draft.run.next_handoff);
    let verdict = judge(&draft.run, &proposal);
    let Proposal { offer, cause, returns_to, .. } = proposal;
    match verdict {
        Err(refusal) => {
            let event = HandoffRefused { id, offer, cause, refusal: refusal.clone() };
            draft.record(Event::HandoffRefused(Box::new(event)));
            Err(refusal)
        }
        Ok(trail) => {
            let offer = escalate::with_question(offer);
            let state = match (&offer.to, &offer.question) {
                (Party::Human, Some(question)) => {
                    let within =
                        question.within.unwrap_or(draft.run.workflow.limits.answer_timeout);
                    State::Asked { until: draft.now + within }
                }
                _ => State::Pending {
                    not_before: limits::cooled_down(&draft.run, &offer, draft.now),
                },
            };
            let event = HandoffAdmitted { id, offer, cause, returns_to, trail, state };
            draft.record(Event::HandoffAdmitted(Box::new(event)));
            Ok(id)
        }
    }
}

pub(super) fn judge(run: &Run, proposal: &Proposal) -> Result<Trail, Refusal> {
    let offer = &proposal.offer;
    let held = proposal.cause.and_then(|id| run.handoff(id)).map(|handoff| &handoff.inputs);
    limits::check_size(offer, held)?;
    // Nobody is ever kept from asking a person, and a person may override every rule but one: the
    // target has to exist.
    let to_person = offer.to == Party::Human;
    let from_person = offer.from == Party::Human;
    if !to_person && !from_person {
        limits::check_counts(run, offer)?;
        circularity::check_window(run, offer)?;
    }
    let trail = circularity::extend(run, proposal, from_person)?;
    route::check(run, proposal)?;
    Ok(trail)
}

impl HandoffAdmitted {
    pub(super) fn apply(&self, run: &mut Run, at: Time) {
        let offer = &self.offer;
        let mut inputs =
            self.cause.and_then(|id| run.handoff(id)).map(|h| h.inputs.clone()).unwrap_or_default();
        inputs.extend(offer.outputs.clone());
        if limits::counts(offer) {
            run.tally.handoffs += 1;
            *run.tally.per_item.entry(limits::item(offer).to_owned()).or_default() += 1;
        }
        match offer.to {
            Party::Human => run.tally.escalated += 1,
            _ => remember(run, offer, at),
        }
        if let Some(lap) = self.trail.lap() {
            run.tally.rounds = run.tally.rounds.max(lap.round);
        }
        if self.returns_to == self.cause
            && let Some(waiting) = self.returns_to.and_then(|id| run.handoff_mut(id))
            && self.trail.within.is_some()
        {
            // The round is the giver's too: the work comes back to it.
            waiting.trail.laps.clone_from(&self.trail.laps);
            waiting.trail.within.clone_from(&self.trail.within);
            waiting.trail.lap_mut().into_iter().for_each(|lap| lap.away = true);
        }
        run.next_handoff = self.id.0 + 1;
        let turn_limit = run.workflow.limits.turns_per_handoff;
        let handoff = Handoff {
            id: self.id,
            offer: offer.clone(),
            cause: self.cause,
            returns_to: self.returns_to,
            state: self.state.clone(),
            attempt: 1,
            turn: 0,
            turn_limit,
            inputs,
            answers: Vec::new(),
            permits: Vec::new(),
            told: super::tell::Told::default(),
            refusals: 0,
            assessed: Vec::new(),
            trail: self.trail.clone(),
            admitted_at: at,
            usage: Usage::default(),
        };
        run.handoffs.insert(self.id, Arc::new(handoff));
        forget_old(run, at);
    }
}

fn remember(run: &mut Run, offer: &Offer, at: Time) {
    run.recent.push_back(Step {
        from: offer.from.clone(),
        to: offer.to.clone(),
        reason: offer.reason.clone(),
    });
    if run.recent.len() > WINDOW {
        run.recent.pop_front();
    }
    match run.last_use.iter_mut().find(|path| path.from == offer.from && path.to == offer.to) {
        Some(path) => path.at = at,
        None => run.last_use.push(PathUse { from: offer.from.clone(), to: offer.to.clone(), at }),
    }
}

/// Keeps the state bounded: the store has every handoff, the run only those closed last. What was
/// closed this very moment stays, because its row is still to be written.
fn forget_old(run: &mut Run, now: Time) {
    let closed_at = |handoff: &Handoff| match &handoff.state {
        State::Closed(closing) => Some(closing.at),
        _ => None,
    };
    let mut closed: Vec<(Time, HandoffId)> =
        run.handoffs.values().filter_map(|h| Some((closed_at(h)?, h.id))).collect();
    closed.sort_unstable();
    let surplus = closed.len().saturating_sub(CLOSED_KEPT);
    for (at, id) in closed.into_iter().take(surplus) {
        if at < now {
            run.handoffs.remove(&id);
        }
    }
}

impl HandoffRefused {
    pub(super) fn apply(&self, run: &mut Run) {
        run.next_handoff = self.id.0 + 1;
        run.tally.refused += 1;
        if self.refusal.is_circular() {
            run.tally.circular += 1;
        }
    }

    /// The answer that the proposer gets.
    #[must_use]
    pub fn response(&self) -> Response {
        debug_assert_eq!(self.refusal.response().outcome, Outcome::Failed);
        self.refusal.response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::story::{RELAY, Story, ask, fields, h, pass};
    use crate::{Event, Millis, Status};
    use serde_json::json;

    fn refusals(story: &Story) -> Vec<String> {
        story
            .log
            .iter()
            .filter_map(|recorded| match &recorded.event {
                Event::HandoffRefused(e) => Some(e.refusal.to_string()),
                _ => None,
            })
            .collect()
    }

    /// Planner → builder → reviewer, each with a route, nothing else set: the contract's limits.
    const BARE: &str = r#"
        workflow = { name = "bare", entry = "a" }
        agents = { a.runner = "scripted", b.runner = "scripted", c.runner = "scripted" }
        routes = [
            { from = "a", to = "b" }, { from = "b", to = "a" }, { from = "b", to = "c" },
            { from = "c", to = "a" }, { from = "a", to = "c" },
        ]
        limits = { cooldown = 0 }
    "#;

    #[test]
    fn s2_02_only_listed_routes_are_open_and_denied_ones_say_why() {
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![pass("reviewer")]);
        story.hands(h(1), vec![pass("builder")]).hands(h(3), vec![pass("reviewer")]);
        story.hands(h(4), vec![pass("fixer")]).hands(h(5), vec![pass("planner")]);
        insta::assert_snapshot!(refusals(&story).join("\n"), @r"
        Route not allowed: no route planner → reviewer; possible: builder, orchestrator, human
        Circular handoff detected: planner → builder → reviewer → fixer → planner and no loop declares it
        ");
        // Without the cycle, the deny list speaks: its reason beats the plain refusal.
        let mut story = Story::relay_with(
            "[[deny]]\nfrom = \"planner\"\nto = \"fixer\"\nwhy = \"nothing is built yet\"\n",
        );
        story.hands(h(1), vec![pass("fixer")]);
        assert_eq!(
            refusals(&story),
            ["Route not allowed: planner → fixer is denied: nothing is built yet"]
        );
    }

    #[test]
    fn s2_02_every_agent_may_turn_to_a_person_and_to_the_orchestrator() {
        for target in ["human", "orchestrator"] {
            let mut story = Story::new(RELAY);
            story.hands(h(1), vec![ask(target)]);
            assert_eq!(refusals(&story), Vec::<String>::new());
            assert_eq!(story.status(), Status::WaitingForHuman);
        }
    }

    #[test]
    fn s2_03_the_fourth_handoff_of_an_item_is_refused_by_the_contracts_default() {
        let mut story = Story::new(BARE);
        let for_item = |to: &str, item: &str| Offer { item: Some(item.into()), ..pass(to) };
        story.hands(h(1), vec![for_item("b", "x"), for_item("c", "x")]);
        story.hands(h(2), vec![for_item("c", "x")]);
        story.hands(h(4), vec![]);
        story.hands(h(3), vec![for_item("a", "x")]);
        assert_eq!(
            refusals(&story),
            ["Handoff limit exceeded: `x` was handed over 3 times, which is its limit"]
        );
    }

    #[test]
    fn s2_03_the_eleventh_handoff_of_a_run_is_refused_by_the_contracts_default() {
        let mut story = Story::new(BARE);
        let offers: Vec<Offer> = (0..11)
            .map(|n| Offer {
                item: Some(format!("item {n}")),
                reason: crate::Reason::Other(format!("reason {n}")),
                ..pass("b")
            })
            .collect();
        story.hands(h(1), offers);
        assert_eq!(
            refusals(&story),
            ["Handoff limit exceeded: the run has had 10 handoffs, which is its limit"]
        );
    }

    #[test]
    fn s2_03_the_same_path_cools_down_for_five_seconds() {
        let mut story = Story::new(&BARE.replace("limits = { cooldown = 0 }", ""));
        let again = Offer { reason: crate::Reason::ReviewRequest, ..pass("b") };
        story.hands(h(1), vec![pass("b"), again]);
        assert!(story.run.handoff(h(2)).is_some_and(|h| h.state.turn().is_some()));
        assert!(story.run.handoff(h(3)).is_some_and(|h| h.state.turn().is_none()));
        story.done(h(2));
        assert_eq!(story.status(), Status::WaitingForCooldown);
        story.later(Millis(4_999));
        assert!(story.run.handoff(h(3)).is_some_and(|h| h.state.turn().is_none()));
        story.later(Millis(1));
        assert!(story.run.handoff(h(3)).is_some_and(|h| h.state.turn().is_some()));
    }

    #[test]
    fn s2_04_refusals_come_back_as_failed_responses_from_the_orchestrator() {
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![pass("nobody")]);
        let Some(Event::HandoffRefused(refused)) =
            story.log.iter().map(|r| &r.event).find(|e| e.name() == "handoff_refused")
        else {
            panic!("nothing was refused");
        };
        let response = refused.response();
        assert_eq!(response.by, Party::Orchestrator);
        assert_eq!(response.outcome, Outcome::Failed);
        assert_eq!(response.failure.as_deref(), Some("Unknown target"));
        // The planner hears of it and may think again.
        let order = story.run.outbox().next().expect("the planner's next turn");
        assert_eq!(order.key, story.key(h(1)));
        assert_eq!(order.answers[0].failure.as_deref(), Some("Unknown target"));
    }

    #[test]
    fn s2_04_limits_come_before_circularity_and_circularity_before_the_route() {
        // Everything is wrong with this one: the limit speaks first.
        let mut story = Story::relay_with("").clone_with_limits(1, 20);
        story.hands(h(1), vec![pass("builder")]);
        story.hands(h(2), vec![pass("planner")]);
        assert!(refusals(&story)[0].starts_with("Handoff limit exceeded"));
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![pass("builder")]);
        story.hands(h(2), vec![pass("planner")]);
        assert!(refusals(&story)[0].starts_with("Circular handoff detected"));
    }

    #[test]
    fn s2_05_the_contracts_window_fires_on_the_third_try_of_one_path() {
        let mut story = Story::new(BARE);
        story.hands(h(1), vec![ask("b")]).done(h(2));
        story.hands(h(1), vec![ask("b")]).done(h(3));
        story.hands(h(1), vec![ask("b")]);
        assert_eq!(
            refusals(&story),
            ["Circular handoff detected: a → b was just tried twice for the same reason"]
        );
        assert_eq!(story.run.tally.circular, 1);
    }

    #[test]
    fn s2_05_work_never_comes_back_to_someone_who_had_it() {
        let mut story = Story::new(BARE);
        story.hands(h(1), vec![pass("b")]).hands(h(2), vec![pass("a")]);
        let mut longer = Story::new(BARE);
        longer
            .hands(h(1), vec![pass("b")])
            .hands(h(2), vec![pass("c")])
            .hands(h(3), vec![pass("a")]);
        insta::assert_snapshot!([refusals(&story), refusals(&longer)].concat().join("\n"), @r"
        Circular handoff detected: a → b → a and no loop declares it
        Circular handoff detected: a → b → c → a and no loop declares it
        ");
    }

    #[test]
    fn s2_05_a_declared_loop_runs_up_to_its_limit_and_then_a_person_decides() {
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![pass("builder")]).hands(h(2), vec![pass("reviewer")]);
        story.hands(h(3), vec![pass("fixer")]).hands(h(4), vec![pass("reviewer")]);
        story.hands(h(5), vec![pass("fixer")]).hands(h(6), vec![pass("reviewer")]);
        assert_eq!(story.run.tally.rounds, 3);
        story.hands(h(7), vec![pass("fixer")]);
        assert_eq!(refusals(&story), ["Loop limit exceeded: loop `review` has had its 3 rounds"]);
        assert_eq!(story.question(h(9)).options, ["accept", "stop"]);
        story.person_says(h(9), "accept");
        assert_eq!(story.status(), Status::Succeeded);
    }

    #[test]
    fn s2_05_a_loop_is_bounded_for_every_member_and_for_delegations_too() {
        let three = BARE.replace(
            "limits = { cooldown = 0 }",
            "loops = [{ name = \"talk\", between = [\"a\", \"b\", \"c\"], max_rounds = 2 }]
             limits = { cooldown = 0, handoffs_per_item = 99, handoffs_per_run = 99 }",
        );
        let three = three.replace("{ from = \"c\", to = \"a\" }", "{ from = \"c\", to = \"b\" }");
        // b and c never come back to a, who was first.
        let mut story = Story::new(&three);
        story.hands(h(1), vec![pass("b")]).hands(h(2), vec![pass("c")]);
        story
            .hands(h(3), vec![pass("b")])
            .hands(h(4), vec![pass("c")])
            .hands(h(5), vec![pass("b")]);
        assert_eq!(refusals(&story), ["Loop limit exceeded: loop `talk` has had its 2 rounds"]);
        // a asks b again and again instead of handing over.
        let mut story = Story::new(&three);
        story.hands(h(1), vec![ask("b")]).done(h(2)).hands(h(1), vec![ask("b")]);
        assert_eq!(refusals(&story), ["Loop limit exceeded: loop `talk` has had its 2 rounds"]);
    }

    #[test]
    fn s2_05_a_way_round_a_loop_is_not_forgotten_outside_of_it() {
        let one =
            BARE.replace("{ from = \"c\", to = \"a\" }", "{ from = \"c\", to = \"b\" }").replace(
                "limits = { cooldown = 0 }",
                "loops = [{ name = \"one\", between = [\"a\", \"b\"], max_rounds = 9 }]
                 limits = { cooldown = 0, handoffs_per_item = 99, handoffs_per_run = 99 }",
            );
        let mut story = Story::new(&one);
        for (at, to) in (1..).zip(["b", "a", "c", "b"]) {
            story.hands(h(at), vec![pass(to)]);
        }
        assert_eq!(
            refusals(&story),
            ["Circular handoff detected: a → c → b and no loop declares it"]
        );
    }

    #[test]
    fn s2_05_two_loops_that_share_an_agent_do_not_make_an_endless_one() {
        let two =
            BARE.replace("{ from = \"c\", to = \"a\" }", "{ from = \"c\", to = \"b\" }").replace(
                "limits = { cooldown = 0 }",
                "loops = [
                    { name = \"one\", between = [\"a\", \"b\"], max_rounds = 2 },
                    { name = \"two\", between = [\"b\", \"c\"], max_rounds = 2 },
                 ]
                 limits = { cooldown = 0, handoffs_per_item = 99, handoffs_per_run = 99 }",
            );
        let mut story = Story::new(&two);
        for (at, to) in (1..).zip(["b", "c", "b", "a", "b"]) {
            story.hands(h(at), vec![pass(to)]);
        }
        assert_eq!(refusals(&story), ["Loop limit exceeded: loop `one` has had its 2 rounds"]);
        assert!(story.run.open().all(|h| h.trail.held_by.len() <= 3), "and the trail stays short");
    }

    #[test]
    fn b_03_a_round_that_changes_nothing_is_parked_with_one_question() {
        let look = |to: &str, print: &str| crate::TurnResult {
            offers: vec![pass(to)],
            fingerprint: Some(print.into()),
            ..crate::run::story::done()
        };
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![pass("builder")]).hands(h(2), vec![pass("reviewer")]);
        story.ends(h(3), look("fixer", "tree 1")).ends(h(4), look("reviewer", "tree 1"));
        story.ends(h(5), look("fixer", "tree 1"));
        assert_eq!(refusals(&story), ["No progress: round 2 of loop `review` changed nothing"]);
        assert_eq!(story.status(), Status::WaitingForHuman);
        let asked = story.run.open().filter(|h| h.offer.to == Party::Human).count();
        assert_eq!(asked, 1);
        // Advice lets the loop begin again, and the agent hears it.
        story.person_says(h(7), "look at the lock file");
        let order = story.run.outbox().next().expect("a turn");
        assert_eq!(order.inputs["answer"], "look at the lock file");
        story.ends(h(5), look("fixer", "tree 1"));
        assert_eq!(story.state(h(8)), "pending");
    }

    #[test]
    fn s1_06_an_edge_lists_the_evidence_that_is_missing() {
        let mut story = Story::new(
            &RELAY
                .replace("to = \"builder\"", "to = \"builder\"\nrequires = [\"spec\", \"score\"]"),
        );
        story.hands(h(1), vec![Offer { outputs: fields(json!({"score": 1})), ..pass("builder") }]);
        assert_eq!(refusals(&story), ["Missing evidence: planner → builder requires spec"]);
        let outputs = fields(json!({"score": 1, "spec": "specs/auth.md"}));
        story.hands(h(1), vec![Offer { outputs, ..pass("builder") }]);
        assert_eq!(story.state(h(3)), "pending");
        assert_eq!(
            story.run.handoff(h(3)).and_then(|h| h.input("spec")),
            Some(&json!("specs/auth.md"))
        );
    }

    #[test]
    fn a_handoff_that_carries_too_much_is_refused() {
        let mut story = Story::new(RELAY);
        let outputs = fields(json!({ "blob": "x".repeat(MAX_PAYLOAD + 1) }));
        story.hands(h(1), vec![Offer { outputs, ..pass("builder") }]);
        assert!(refusals(&story)[0].starts_with("Payload too large"));
    }

    #[test]
    fn the_state_of_a_long_run_stays_small() {
        let mut story = Story::new(BARE).clone_with_limits(100_000, 100_000);
        for n in 0..100 {
            story.now = story.now + Millis(1);
            let reason = crate::Reason::Other(n.to_string());
            let child = story.run.next_handoff;
            story.hands(h(1), vec![Offer { reason, ..ask("b") }]).done(h(child));
        }
        assert!(story.run.handoffs.len() <= CLOSED_KEPT + 2);
    }

    impl Story {
        fn clone_with_limits(self, per_item: u32, per_run: u32) -> Story {
            let mut workflow = (*self.run.workflow).clone();
            workflow.limits.handoffs_per_item = per_item;
            workflow.limits.handoffs_per_run = per_run;
            workflow.limits.turns_per_handoff = per_run;
            Story::new(&toml::to_string(&workflow).expect("TOML"))
        }
    }
}
