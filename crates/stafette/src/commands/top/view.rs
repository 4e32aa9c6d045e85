//! Draws the screen. Nothing is expressed by colour alone.

use std::collections::BTreeSet;

use stafette_core::run::session::SessionState;
use stafette_core::{RunId, Usage};
use stafette_engine::{AgentView, Group};

use super::state::{Pane, Prompt, State, heading};
use super::text::{cell, cut, elapsed, remaining, width};
use crate::output::count;
use crate::window::line::{Line, Style};

mod detail;

/// The meaning of a place on the screen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tone {
    Yours,
    Good,
    Bad,
    Quiet,
    Head,
}

/// The choice of colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Theme {
    pub(super) colour: bool,
}

impl Theme {
    fn style(self, tone: Tone) -> Style {
        match (tone, self.colour) {
            (Tone::Yours, true) => "1;33",
            (Tone::Good, true) => "32",
            (Tone::Bad, true) => "1;31",
            (Tone::Yours | Tone::Bad, false) | (Tone::Head, _) => "1",
            (Tone::Quiet, _) => "2",
            (Tone::Good, false) => "",
        }
    }
}

/// Draws everything, a line for each row. Sets in the state how far its detail can be scrolled.
pub(super) fn draw(state: &mut State, theme: Theme, size: (u16, u16)) -> Vec<Line> {
    let (room, rows) = (usize::from(size.0), usize::from(size.1));
    let height = rows.saturating_sub(2);
    let mut lines = match state.pane {
        Pane::Help => help(theme),
        Pane::Detail if state.agent().is_some() => detail(state, theme, room, height),
        Pane::List | Pane::Detail => list(state, theme, room, height),
    };
    lines.resize(height, Line::default());
    lines.insert(0, header(state, theme, room));
    lines.push(footer(state, theme, room));
    lines.truncate(rows);
    lines
}

fn detail(state: &mut State, theme: Theme, room: usize, height: usize) -> Vec<Line> {
    let lines = detail::lines(state, theme, room, height);
    state.scroll = state.scroll.min(lines.len().saturating_sub(height));
    lines.into_iter().skip(state.scroll).collect()
}

fn header(state: &State, theme: Theme, room: usize) -> Line {
    let agents = state.agents();
    let yours = agents.iter().filter(|agent| agent.group == Group::NeedsYou).count();
    let living = agents.iter().filter(|agent| agent.group != Group::Done);
    let runs: BTreeSet<RunId> = living.map(|agent| agent.run).collect();
    let spent = agents.iter().fold(Usage::default(), |sum, agent| sum + agent.spent);
    let need = if yours == 1 { "needs you" } else { "need you" };
    let tone = if yours > 0 { Tone::Yours } else { Tone::Quiet };
    let name = if room >= 60 { "stafette top  " } else { "" };
    let pieces = [
        (Tone::Head, format!("{name}{}", count(runs.len(), "run"))),
        (tone, format!("{yours} {need}")),
        (Tone::Head, crate::commands::cost::spent(spent)),
    ];
    let alerts = state.known.as_ref().map_or(&[][..], |known| &known.alerts);
    let names = alerts.iter().map(|alert| alert.split(':').next().unwrap_or_default());
    let firing = format!("! {}", names.collect::<Vec<_>>().join(", "));
    let pieces = pieces.into_iter().chain((!alerts.is_empty()).then_some((Tone::Bad, firing)));
    let mut line = Line::default();
    for (place, (tone, text)) in pieces.enumerate() {
        line = line.then("", if place > 0 { " · " } else { "" }).then(theme.style(tone), text);
    }
    if state.filter.is_empty() {
        return line;
    }
    line.then(theme.style(Tone::Quiet), format!(" · /{}", cut(&state.filter, 20)))
}

fn list(state: &State, theme: Theme, room: usize, height: usize) -> Vec<Line> {
    let shown = state.shown();
    if shown.is_empty() {
        return nobody(state).into_iter().map(Line::plain).collect();
    }
    let columns = Columns::for_width(room, &shown);
    let mut lines: Vec<Line> = Vec::new();
    let mut pointed = 0;
    let mut group = None;
    for agent in &shown {
        if group != Some(agent.group) {
            group = Some(agent.group);
            let members = shown.iter().filter(|other| other.group == agent.group).count();
            let text = format!("{} {members}", heading(agent.group).to_uppercase());
            let tone = if agent.group == Group::NeedsYou { Tone::Yours } else { Tone::Head };
            lines.push(Line::styled(theme.style(tone), text));
        }
        let here = state.agent() == Some(*agent);
        if here {
            pointed = lines.len();
        }
        lines.push(columns.row(agent, state, here, theme));
    }
    let last = lines.len().saturating_sub(height);
    let first = pointed.saturating_sub(height / 2).min(last);
    lines.into_iter().skip(first).collect()
}

/// The text in place of agents: the commands to type.
fn nobody(state: &State) -> Vec<String> {
    let lines = match (&state.known, state.agents().is_empty()) {
        (None, _) => vec!["Looking …".to_owned()],
        (Some(_), true) => vec![
            "No agents are at work.".to_owned(),
            String::new(),
            "Give them something to do:".to_owned(),
            "  stafette run \"Add a login page\"".to_owned(),
            "See a team at work, without keys:".to_owned(),
            "  stafette demo".to_owned(),
        ],
        (Some(_), false) => vec![
            format!("Nobody fits `{}`.", cut(&state.filter, 20)),
            String::new(),
            "Esc shows everyone.".to_owned(),
        ],
    };
    std::iter::once(String::new()).chain(lines).collect()
}

/// The widths of the columns; those without room are left out.
struct Columns {
    name: usize,
    run: bool,
    cost: bool,
    doing: usize,
}

/// The width of a mark, a space, and the longest word for an agent's state.
const HOW: usize = 11;

impl Columns {
    fn for_width(room: usize, shown: &[&AgentView]) -> Self {
        let longest = shown.iter().map(|agent| width(&agent.agent)).max().unwrap_or(0);
        let name = longest.clamp(6, (room / 5).max(9));
        let (run, cost) = (room >= 70, room >= 56);
        let fixed = 2 + HOW + 1 + name + 1 + 5 + if run { 9 } else { 0 } + if cost { 8 } else { 0 };
        Columns { name, run, cost, doing: room.saturating_sub(fixed) }
    }

    fn row(&self, agent: &AgentView, state: &State, here: bool, theme: Theme) -> Line {
        let (mark, word, tone) = how(agent);
        let mut doing = agent.doing.clone();
        let left = agent.until.as_deref().and_then(|until| remaining(until, state.now));
        if let (Group::Waiting, Some(left)) = (agent.group, left) {
            doing = format!("{doing} in {left}");
        }
        let mut rest = format!(" {} ", cell(&agent.agent, self.name));
        if self.run {
            rest.push_str(&cell(&agent.short, 9));
        }
        rest.push_str(&cell(&doing, self.doing));
        rest.push_str(&format!(" {:>4}", elapsed(&agent.since, state.now)));
        if self.cost {
            rest.push_str(&format!(" {:>7}", agent.spent.cost().replace(' ', "")));
        }
        let pointer = if here { "▸ " } else { "  " };
        let how = cell(&format!("{mark} {word}"), HOW);
        Line::plain(pointer).then(theme.style(tone), how).then("", rest).reversed(here)
    }
}

/// A mark and a word for an agent's state.
fn how(agent: &AgentView) -> (char, &'static str, Tone) {
    match (agent.group, agent.session) {
        (Group::NeedsYou, _) => ('!', "asks", Tone::Yours),
        (Group::Done, _) => match agent.status.as_str() {
            "succeeded" => ('✓', "done", Tone::Quiet),
            "failed" => ('✗', "failed", Tone::Bad),
            _ => ('✗', "cancelled", Tone::Quiet),
        },
        (_, Some(SessionState::Crashed)) => ('✗', "crashed", Tone::Bad),
        (_, Some(SessionState::Restarting)) => ('↻', "restarts", Tone::Bad),
        (_, Some(SessionState::NotReady)) => ('◌', "not ready", Tone::Bad),
        (Group::Working, Some(SessionState::Waiting)) => ('!', "asks", Tone::Yours),
        (Group::Working, Some(SessionState::Starting)) => ('◌', "starts", Tone::Good),
        (Group::Working, _) => ('●', "works", Tone::Good),
        (Group::Waiting, _) => ('○', "waits", Tone::Quiet),
        (Group::Idle, _) => ('·', "idle", Tone::Quiet),
    }
}

fn footer(state: &State, theme: Theme, room: usize) -> Line {
    let (tone, text) = match (&state.prompt, &state.said, &state.trouble) {
        (Prompt::Filter, ..) => (Tone::Head, typed("/", &state.filter, room)),
        (Prompt::Write(answer), ..) => {
            (Tone::Yours, typed(&format!("answer {}: ", answer.handoff), &answer.text, room))
        }
        (Prompt::Confirm(answer), ..) => {
            let end = "? y/n";
            let text = format!("Answer {} with `{}`", answer.handoff, answer.text);
            (Tone::Yours, cut(&text, room.saturating_sub(end.len())) + end)
        }
        (Prompt::None, Some(said), _) => (Tone::Head, cut(said, room)),
        (Prompt::None, None, Some(trouble)) => (Tone::Bad, cut(&format!("! {trouble}"), room)),
        (Prompt::None, None, None) => (Tone::Quiet, hints(state, room)),
    };
    Line::styled(theme.style(tone), text)
}

/// The text that is being typed: of a long text, its end.
fn typed(label: &str, text: &str, room: usize) -> String {
    let mut text = text.to_owned();
    while width(label) + width(&text) + 1 > room && !text.is_empty() {
        text.remove(0);
    }
    format!("{label}{text}▏")
}

/// The keys that matter here, as many as there is room for.
fn hints(state: &State, room: usize) -> String {
    let hints: &[&str] = match state.pane {
        Pane::Help => &["any key: back"],
        Pane::List => &["? help", "q quit", "Enter open", "j/k move", "/ filter"],
        Pane::Detail => match state.question() {
            Some(asked) if asked.options().is_empty() => &["a answer", "Esc back", "? help"],
            Some(_) => &["1-9 choose", "a answer", "Esc back", "? help"],
            None => &["Enter terminal", "Esc back", "j/k next", "? help", "q quit"],
        },
    };
    let mut line = String::new();
    for hint in hints {
        let gap = if line.is_empty() { "" } else { " · " };
        if width(&line) + width(gap) + width(hint) <= room {
            line.push_str(gap);
            line.push_str(hint);
        }
    }
    line
}

fn help(theme: Theme) -> Vec<Line> {
    let keys = [
        ("j k ↑ ↓", "move"),
        ("g G", "first, last"),
        ("Enter", "open; again: its terminal"),
        ("1-9", "choose an option of its question"),
        ("a", "answer in your own words"),
        ("Space", "further down; PgUp, PgDn"),
        ("/", "show only who fits a word"),
        ("Esc", "back"),
        ("q Ctrl-C", "quit; the agents go on"),
    ];
    let line = |(key, what): (&'static str, &'static str)| {
        Line::styled(theme.style(Tone::Head), cell(key, 10)).then("", what)
    };
    keys.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests;
