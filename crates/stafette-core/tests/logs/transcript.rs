//! A run as it is seen from outside, after each of its events: nothing here depends on how its state
//! is laid out or stored. Only what changed by an event is listed under it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use stafette_core::handoff::{State, Way};
use stafette_core::run::Stage;
use stafette_core::{
    Closing, Fields, Handoff, HandoffId, Offer, Party, Recorded, Response, Run, Time, TurnOrder,
    Usage,
};

/// What there is to see, by what it is about.
type Picture = BTreeMap<Place, String>;

/// What something is about. The order is that of the lines.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Run(u8, &'static str),
    Handoff(HandoffId),
    Offer(HandoffId),
    Turn(HandoffId),
    Session(String),
    Cost(String),
    Day(String),
    Phases,
    Council(&'static str),
    Change(u32),
    Generation(&'static str),
}

impl Place {
    fn words(&self) -> String {
        match self {
            Place::Run(_, what) => (*what).to_owned(),
            Place::Handoff(id) => id.to_string(),
            Place::Offer(id) => format!("{id} offer"),
            Place::Turn(id) => format!("{id} turn"),
            Place::Session(agent) => format!("session of {agent}"),
            Place::Cost(agent) => format!("cost of {agent}"),
            Place::Day(day) => format!("cost on {day}"),
            Place::Phases => "phases".to_owned(),
            Place::Council(what) => format!("council {what}"),
            Place::Change(number) => format!("change c{number}"),
            Place::Generation(what) => format!("generation {what}"),
        }
    }
}

/// The transcript of a log: every event, and what is to be seen of the run since.
pub(crate) fn of(events: &[Recorded]) -> String {
    let mut text = String::new();
    let Some((first, rest)) = events.split_first() else { return text };
    let mut run = Run::replay([first]).expect("a log begins with its run");
    let begun = first.at;
    let mut before = Picture::new();
    tell(&mut text, first, &mut before, &run, begun);
    for recorded in rest {
        run.apply(recorded.at, &recorded.event);
        assert_eq!(run.seq, recorded.seq);
        tell(&mut text, recorded, &mut before, &run, begun);
    }
    assert_eq!(Run::replay(events), Some(run), "read at once it is the same");
    text
}

fn tell(text: &mut String, recorded: &Recorded, before: &mut Picture, run: &Run, begun: Time) {
    let now = Watch { begun };
    let _ = writeln!(text, "{} {} {}", recorded.seq, now.at(recorded.at), recorded.event.name());
    let after = now.picture(run);
    for (place, what) in &after {
        if before.get(place) != Some(what) {
            let _ = writeln!(text, "  {}: {what}", place.words());
        }
    }
    for place in before.keys().filter(|place| !after.contains_key(place)) {
        match place {
            // How many of those that are over a run remembers is its own business.
            Place::Handoff(id) => {
                let over = run.handoff(*id).map(|handoff| now.closed(handoff));
                let _ = writeln!(text, "  {id}: {}", over.unwrap_or_else(|| "forgotten".into()));
            }
            Place::Offer(_) => {}
            place => {
                let _ = writeln!(text, "  {}: gone", place.words());
            }
        }
    }
    *before = after;
}

/// Tells times as people would who began to count when the run did.
struct Watch {
    begun: Time,
}

impl Watch {
    fn at(&self, time: Time) -> String {
        let millis = time.0 - self.begun.0;
        let sign = if millis < 0 { '-' } else { '+' };
        let millis = millis.unsigned_abs();
        format!("{sign}{}.{:03}s", millis / 1000, millis % 1000)
    }

    fn picture(&self, run: &Run) -> Picture {
        let mut picture = Picture::new();
        self.whole(run, &mut picture);
        for handoff in run.open() {
            picture.insert(Place::Handoff(handoff.id), self.open(handoff));
            picture.insert(Place::Offer(handoff.id), offer(&handoff.offer));
        }
        for order in run.outbox() {
            picture.insert(Place::Turn(order.key.handoff), self.order(run, &order));
        }
        agents(run, &mut picture);
        phases(run, &mut picture);
        council(run, &mut picture);
        changes(run, &mut picture);
        self.generation(run, &mut picture);
        picture
    }

    fn whole(&self, run: &Run, picture: &mut Picture) {
        let mut line = 0;
        let mut put = |what, text: String| {
            line += 1;
            picture.insert(Place::Run(line, what), text);
        };
        put(
            "run",
            match &run.stage {
                Stage::Finished(ending) => format!("{}: {}", run.status(), ending.why),
                _ => run.status().to_string(),
            },
        );
        put("request", run.request.clone());
        put("deadline", run.deadline().map_or("none".into(), |time| self.at(time)));
        let purse = &run.purse;
        put("spent", format!("{}, {} handoffs begun", usage(purse.spent), purse.handoffs));
        put("reserved", usage(purse.reserved));
        let limit = &purse.limit;
        put(
            "limit",
            format!(
                "{}, {} handoffs, {}ms",
                usage(Usage::exactly(limit.tokens, limit.money)),
                limit.handoffs,
                limit.time.0
            ),
        );
        let reached = purse.reached.as_ref().map(|reached| {
            let whose = reached.agent.as_deref().unwrap_or("the run");
            format!("{} of {whose}: {}", reached.part, reached.why)
        });
        put("reached", reached.unwrap_or_else(|| "nothing".into()));
        put("trace", run.trace.as_ref().map_or("none".into(), word));
        let tally = &run.tally;
        let items: Vec<String> =
            tally.per_item.iter().map(|(item, count)| format!("{item} {count}")).collect();
        put(
            "tally",
            format!(
                "handoffs {} ({}), refused {}, circular {}, escalated {}, retries {}, redelivered \
                 {}, rounds {}, late {}",
                tally.handoffs,
                items.join(", "),
                tally.refused,
                tally.circular,
                tally.escalated,
                tally.retries,
                tally.redelivered,
                tally.rounds,
                tally.late,
            ),
        );
        put("next handoff", format!("h{}", run.next_handoff));
    }

    fn open(&self, handoff: &Handoff) -> String {
        let mut text = format!("{} {}.{}", handoff.state.word(), handoff.attempt, handoff.turn);
        match &handoff.state {
            State::Pending { not_before: moment } | State::Parked { until: moment, .. } => {
                let _ = write!(text, " until {}", self.at(*moment));
            }
            State::Asked { until } => {
                let _ = write!(text, " until {}", self.at(*until));
            }
            State::Blocked { on } => {
                let _ = write!(text, " on {}", list(on));
            }
            State::Ordered(turn) | State::Accepted(turn) | State::Running(turn) => {
                let _ = write!(text, " {} due {}", word(&turn.receipt), self.at(turn.due));
                if let Some(taken) = &turn.taken {
                    let _ = write!(text, " taken by {} for {}ms", taken.by, taken.lease.0);
                }
                if let Some(note) = &turn.note {
                    let _ = write!(text, " {note:?}");
                }
            }
            // It was blocked on nothing when these logs were written.
            State::Undecided => text.push_str(" on nobody"),
            State::Closed(_) => {}
        }
        let _ = write!(text, ", {} → {}", handoff.offer.from, handoff.offer.to);
        if let Some(cause) = handoff.cause {
            let _ = write!(text, ", because of {cause}");
        }
        if let Some(waiting) = handoff.returns_to {
            let _ = write!(text, ", awaited by {waiting}");
        }
        let trail = &handoff.trail;
        let _ = write!(text, ", came by {}", list(&trail.held_by));
        if let (Some(name), Some(lap)) = (&trail.within, trail.lap()) {
            let _ = write!(text, ", {name} round {}", lap.round);
        }
        if handoff.usage != Usage::default() {
            let _ = write!(text, ", used {}", usage(handoff.usage));
        }
        if handoff.refusals > 0 {
            let _ = write!(text, ", refused {}", handoff.refusals);
        }
        text
    }

    fn closed(&self, handoff: &Handoff) -> String {
        let State::Closed(closing) = &handoff.state else { return "open".into() };
        let Closing { at, response, way, succeeded_by: _ } = &**closing;
        let way = if *way == Way::Answered { String::new() } else { format!(" ({})", word(way)) };
        format!("{}{way} at {}, {}", handoff.state.word(), self.at(*at), answer(response))
    }

    fn order(&self, run: &Run, order: &TurnOrder) -> String {
        let mut text = format!(
            "{}.{} for {}, delivery {}, round {}, until {}",
            order.key.attempt,
            order.key.turn,
            order.agent,
            order.deliveries,
            order.round,
            self.at(order.finish_by),
        );
        assert_eq!((order.key.run, &order.request), (run.id, &run.request));
        if !order.inputs.is_empty() {
            let _ = write!(text, "; has {}", values(&order.inputs));
        }
        for response in &order.answers {
            let _ = write!(text, "; heard {}", answer(response));
        }
        for permit in &order.permits {
            let _ = write!(text, "; may {}: {}", permit.request, permit.choice);
        }
        if let Some(handoff) = run.handoff(order.key.handoff) {
            let told = &handoff.told;
            let to: Vec<&Party> = told.offers.iter().map(|offer| &offer.to).collect();
            if !to.is_empty() {
                let _ = write!(text, "; told to hand to {}", list(&to));
            }
            if let Some(response) = &told.response {
                let _ = write!(text, "; told {}", answer(response));
            }
            if told.usage != Usage::default() {
                let _ = write!(text, "; told of {}", usage(told.usage));
            }
            if let Some(vote) = &told.said.vote {
                let _ = write!(text, "; told {}", vote.signal);
            }
        }
        let _ = write!(text, "; may hand to {}", order.routes.join(" "));
        text
    }

    fn generation(&self, run: &Run, picture: &mut Picture) {
        let Some(lineage) = &run.team.lineage else { return };
        let mut put = |what, text: String| drop(picture.insert(Place::Generation(what), text));
        put(
            "stands",
            format!(
                "{} since {}, {}, {} before it cost {}, asks {}, awaits {}, settled {}",
                lineage.number,
                self.at(lineage.since),
                word(&lineage.phase),
                lineage.past.len(),
                lineage.spent,
                lineage.asks.len(),
                lineage.awaits.len(),
                quoted(&lineage.decisions),
            ),
        );
        let notes: Vec<String> =
            lineage.notes.iter().map(|note| format!("{}: {}", note.by, note.text)).collect();
        put("notes", quoted(&notes));
        if !lineage.given.is_empty() {
            put("given", values(&lineage.given));
        }
        if let Some(plan) = &lineage.plan {
            put("plan", format!("{} runs, {}, {}", plan.max_runs, plan.max_cost, plan.pause));
        }
        if let Some(over) = &lineage.handed_over {
            let next = over
                .next
                .as_ref()
                .map(|next| format!(", then {} at {}", next.run, self.at(next.not_before)));
            put(
                "handed over",
                format!(
                    "{} {} of {}, {:?}, {}: {}{}",
                    word(&over.action),
                    over.cost,
                    over.total_cost,
                    over.topic.as_deref().unwrap_or_default(),
                    over.reason,
                    over.why,
                    next.unwrap_or_default(),
                ),
            );
        }
    }
}

fn offer(offer: &Offer) -> String {
    let mut text = format!("{} {}", word(&offer.kind), offer.reason.as_str());
    for (what, said) in [
        ("summary", Some(&offer.summary)),
        ("detail", Some(&offer.detail)),
        ("instructions", offer.instructions.as_ref()),
    ] {
        if let Some(said) = said.filter(|said| !said.is_empty()) {
            let _ = write!(text, ", {what} {}", short(said));
        }
    }
    if let Some(item) = &offer.item {
        let _ = write!(text, ", item {item}");
    }
    if !offer.outputs.is_empty() {
        let _ = write!(text, ", with {}", values(&offer.outputs));
    }
    let missing: Vec<&String> = offer.missing.iter().map(|input| &input.key).collect();
    if !missing.is_empty() {
        let _ = write!(text, ", wants {}", list(&missing));
    }
    for prior in &offer.prior_attempts {
        let _ = write!(text, ", before: {}: {}", prior.action, prior.result);
    }
    if let Some(question) = &offer.question {
        let _ = write!(
            text,
            ", asks ({}) {} of {}, default {:?}{}",
            question.reason,
            short(&question.details),
            quoted(&question.options),
            question.default.as_deref().unwrap_or_default(),
            if question.blocking { ", and waits" } else { "" },
        );
    }
    if let Some(foreign) = &offer.foreign {
        let _ = write!(text, ", {} {} {}", foreign.dialect, foreign.id, values(&foreign.fields));
    }
    text
}

fn agents(run: &Run, picture: &mut Picture) {
    for (agent, state) in &run.sessions {
        picture.insert(Place::Session(agent.to_string()), word(state));
    }
    for (agent, account) in &run.purse.agents {
        let text = format!(
            "{} turns of {} handoffs, {}ms, {}; the most {}, next {}, raised {}",
            account.turns,
            account.handoffs,
            account.time.0,
            usage(account.spent),
            usage(account.most),
            usage(account.next),
            account.raised,
        );
        picture.insert(Place::Cost(agent.clone()), text);
    }
    for (day, spent) in &run.purse.days {
        let text = format!("{} turns, {}", spent.turns, usage(spent.spent));
        picture.insert(Place::Day(day.clone()), text);
    }
}

fn phases(run: &Run, picture: &mut Picture) {
    let Some(phases) = &run.team.phases else { return };
    let mut text = format!("{} at {}", phases.task_id, phases.place);
    for part in &phases.parts {
        let _ = write!(text, "; {} of {} is {}", part.handoff, part.agent, part.task_id);
        if let Some(measured) = &part.measured {
            let counts = [measured.request, measured.response, measured.summary];
            let counts = counts.map(|count| count.map_or("?".into(), |count| count.to_string()));
            let _ = write!(text, " measured {}", counts.join("/"));
        }
        if let Some(brought) = &part.brought {
            let good = if brought.passed { "passed" } else { "failed" };
            let _ = write!(text, " {good} {}", short(&brought.summary));
        }
    }
    if let Some(findings) = &phases.findings {
        let _ = write!(text, "; found {}", short(findings));
    }
    for hop in &phases.hops {
        let tokens = hop.tokens;
        let _ = write!(
            text,
            "; {} {} round {}: {} {}, {}/{}/{} tokens, {} for {}",
            hop.place,
            hop.phase,
            hop.rounds,
            hop.decision.as_ref().map_or("goes on".into(), word),
            short(&hop.why),
            tokens.request,
            tokens.response,
            tokens.reported,
            hop.saving.handed_on,
            hop.saving.raw,
        );
    }
    picture.insert(Place::Phases, text);
}

fn council(run: &Run, picture: &mut Picture) {
    let Some(council) = &run.team.council else { return };
    let mut put = |what, text: String| drop(picture.insert(Place::Council(what), text));
    let sitting: Vec<String> =
        council.sitting.iter().map(|(id, member)| format!("{member} in {id}")).collect();
    put(
        "sits",
        format!(
            "on {} about {:?}, {} turns each, the word has {}",
            council.handoff,
            council.topic,
            council.limit,
            list(&sitting)
        ),
    );
    let positions: Vec<String> = council
        .positions
        .iter()
        .map(|(member, position)| {
            let signal = position.signal.map_or("silent".into(), |signal| signal.to_string());
            format!("{member} {signal} in turn {}: {}", position.turns, short(&position.reason))
        })
        .collect();
    put("stands", if positions.is_empty() { "silent".into() } else { positions.join("; ") });
    put("settled", quoted(&council.decisions));
    let said: Vec<String> = council
        .discussion
        .iter()
        .map(|speech| format!("{} {}: {}", speech.by, speech.round, speech.said))
        .collect();
    put("heard", quoted(&said));
    if let Some(verdict) = &council.verdict {
        put(
            "verdict",
            format!("{} {}, next {:?}", word(&verdict.decision), verdict.why, verdict.next_topic),
        );
    }
}

fn changes(run: &Run, picture: &mut Picture) {
    for (id, set) in &run.team.changes {
        let mut text = format!(
            "{} revision {} of {} files, {:?}",
            set.status.as_str(),
            set.revision,
            set.count,
            set.reason,
        );
        for (what, is) in [
            ("of", set.agent.as_ref().map(ToString::to_string)),
            ("in", set.handoff.map(|id| id.to_string())),
            ("to", set.ordered.as_ref().map(word)),
            ("back in", set.returned.map(|id| id.to_string())),
        ] {
            if let Some(is) = is {
                let _ = write!(text, ", {what} {is}");
            }
        }
        if set.asks {
            text.push_str(", to be asked about");
        }
        let gates = set.gates.len();
        let remarks = (set.remarks.len(), set.said.len());
        let _ = write!(text, ", {gates} gates, {} remarks of {}", remarks.0, remarks.1);
        picture.insert(Place::Change(id.0), text);
    }
}

fn answer(response: &Response) -> String {
    let mut text = format!("{} by {}", word(&response.outcome), response.by);
    if !response.outputs.is_empty() {
        let _ = write!(text, " with {}", values(&response.outputs));
    }
    if !response.unresolved.is_empty() {
        let _ = write!(text, " without {}", response.unresolved.join(" "));
    }
    if let Some(failure) = &response.failure {
        let _ = write!(text, " because {}", short(failure));
    }
    if !response.summary.is_empty() {
        let _ = write!(text, " saying {}", short(&response.summary));
    }
    text
}

fn usage(used: Usage) -> String {
    format!("${:.6} {} tokens", used.money.dollars(), used.tokens)
}

/// Names with a mark of their values each: the same values have the same mark.
fn values(fields: &Fields) -> String {
    let mut marks: Vec<String> =
        fields.iter().map(|(key, value)| format!("{key}#{}", mark(&canonical(value)))).collect();
    marks.sort_unstable();
    marks.join(" ")
}

/// A text, or its beginning and a mark of all of it.
fn short(text: &str) -> String {
    const ENOUGH: usize = 60;
    match text.char_indices().nth(ENOUGH) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…#{}", &text[..end], mark(text)),
    }
}

fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| short(text)).collect();
    format!("[{}]", texts.join(", "))
}

fn list(items: &[impl ToString]) -> String {
    match items {
        [] => "nobody".to_owned(),
        items => items.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
    }
}

/// The word that something is stored by.
fn word(thing: &impl Serialize) -> String {
    match serde_json::to_value(thing).expect("it is JSON") {
        Value::String(word) => word,
        other => canonical(&other),
    }
}

/// JSON that does not depend on the order of keys.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            let fields: Vec<String> = sorted
                .into_iter()
                .map(|(key, value)| format!("{:?}:{}", key, canonical(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        plain => plain.to_string(),
    }
}

/// A short mark of a text (FNV-1a).
fn mark(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}
