//! The content of the screen, and the effect of each key. Nothing here reads, waits or draws.

use serde::Deserialize;
use stafette_core::{Handoff, HandoffId, RunId, Time};
use stafette_engine::{AgentView, CouncilView, Group};

/// The longest text that can be typed, in bytes.
const LONGEST: usize = 2000;

/// The number of lines that a page key moves.
const PAGE: usize = 8;

/// The number of events of a run that are read.
const EVENTS: u64 = 40;

/// The daemon's knowledge at a moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) agents: Vec<AgentView>,
    pub(super) questions: Vec<Asked>,
    /// The alerts that fire, a sentence for each.
    pub(super) alerts: Vec<String>,
}

/// An open question, in the form of the inbox.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(super) struct Asked {
    pub(super) run: RunId,
    pub(super) handoff: Handoff,
}

impl Asked {
    pub(super) fn options(&self) -> &[String] {
        self.handoff.offer.question.as_ref().map_or(&[], |question| &question.options)
    }
}

/// A key, whichever terminal it came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Key {
    Char(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C, which always leaves.
    Stop,
}

/// The details of a run, as read from the daemon.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Looked {
    pub(super) run: RunId,
    /// Its last events, one per line.
    pub(super) events: Vec<String>,
    /// The state of its council; `None` when none has met.
    pub(super) council: Option<Box<CouncilView>>,
}

/// An input for the state.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Input {
    Key(Key),
    /// The window has another size.
    Resize,
    Tick(Time),
    Snapshot(Box<Snapshot>),
    /// The details of a run.
    Looked(Looked),
    /// The daemon cannot be reached, with the reason.
    Trouble(String),
    /// The outcome of an answer.
    Said(String),
}

/// An action for the caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    Quit,
    /// Read the events of a run after this one.
    Look {
        run: RunId,
        after: u64,
    },
    /// Send an answer to a question.
    Answer(Answer),
    /// Attach to an agent's terminal.
    Attach {
        run: RunId,
        agent: String,
    },
}

/// An answer that waits for a confirmation, and then is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    pub(super) run: RunId,
    pub(super) handoff: HandoffId,
    pub(super) text: String,
    /// True if it was typed, and may be KEY=VALUE; an option is taken as it is.
    pub(super) typed: bool,
}

/// The view that fills the screen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Pane {
    #[default]
    List,
    Detail,
    Help,
}

/// The request on the last line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum Prompt {
    #[default]
    None,
    /// A word that the agents must match.
    Filter,
    /// An answer in the user's own words.
    Write(Answer),
    /// A confirmation of an answer.
    Confirm(Answer),
}

/// The state of the screen.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct State {
    /// The daemon's knowledge; `None` until it has answered once.
    pub(super) known: Option<Snapshot>,
    pub(super) now: Time,
    pub(super) pane: Pane,
    pub(super) prompt: Prompt,
    pub(super) filter: String,
    pub(super) events: Vec<String>,
    /// The state of the council of the selected agent's run.
    pub(super) council: Option<Box<CouncilView>>,
    /// The number of lines of the detail above the screen.
    pub(super) scroll: usize,
    pub(super) trouble: Option<String>,
    pub(super) said: Option<String>,
    selected: Option<(RunId, String)>,
    before_help: Pane,
}

impl State {
    pub(super) fn new(now: Time) -> Self {
        State { now, ..State::default() }
    }

    pub(super) fn update(&mut self, input: Input) -> Option<Effect> {
        match input {
            Input::Key(Key::Stop) => return Some(Effect::Quit),
            Input::Key(key) => {
                self.said = None;
                return self.key(key);
            }
            Input::Resize => {}
            Input::Tick(now) => self.now = now,
            Input::Snapshot(snapshot) => return self.take(*snapshot),
            Input::Looked(looked) => {
                if self.agent().is_some_and(|agent| agent.run == looked.run) {
                    (self.events, self.council) = (looked.events, looked.council);
                }
            }
            Input::Trouble(what) => self.trouble = Some(what),
            Input::Said(what) => self.said = Some(what),
        }
        None
    }

    /// The agents that are shown, the most urgent first.
    pub(super) fn shown(&self) -> Vec<&AgentView> {
        let wanted = self.filter.to_lowercase();
        let fits = |agent: &&AgentView| {
            let words = [&agent.agent, &agent.short, &agent.request, &agent.doing, &agent.status];
            wanted.is_empty()
                || words.iter().any(|word| word.to_lowercase().contains(&wanted))
                || heading(agent.group).contains(&wanted)
        };
        let mut shown: Vec<&AgentView> = self.agents().iter().filter(fits).collect();
        shown.sort_by_key(|agent| agent.group);
        shown
    }

    pub(super) fn agents(&self) -> &[AgentView] {
        self.known.as_ref().map_or(&[], |known| &known.agents)
    }

    /// The agent that is selected in the list.
    pub(super) fn agent(&self) -> Option<&AgentView> {
        let (run, name) = self.selected.as_ref()?;
        self.agents().iter().find(|agent| agent.run == *run && agent.agent == *name)
    }

    /// The open question of the selected agent.
    pub(super) fn question(&self) -> Option<&Asked> {
        let agent = self.agent()?;
        let known = self.known.as_ref()?;
        known
            .questions
            .iter()
            .find(|asked| asked.run == agent.run && Some(asked.handoff.id) == agent.question)
    }

    fn take(&mut self, snapshot: Snapshot) -> Option<Effect> {
        let place = self.place();
        let before = self.agent().map(|agent| (agent.run, agent.seq));
        self.known = Some(snapshot);
        self.trouble = None;
        // The selected agent stays selected, wherever it is in the list; if it is gone, the one in
        // its place is selected.
        if self.place().is_none() {
            self.point_at(place.unwrap_or(0));
        }
        let moved = self.agent().map(|agent| (agent.run, agent.seq)) != before;
        (moved && self.pane == Pane::Detail).then(|| self.look()).flatten()
    }

    fn key(&mut self, key: Key) -> Option<Effect> {
        match (std::mem::take(&mut self.prompt), self.pane) {
            (Prompt::Filter, _) => self.filter_key(key),
            (Prompt::Write(answer), _) => self.write_key(answer, key),
            (Prompt::Confirm(answer), _) => return self.confirm_key(answer, key),
            (Prompt::None, Pane::Help) => self.pane = self.before_help,
            (Prompt::None, Pane::List) => return self.list_key(key),
            (Prompt::None, Pane::Detail) => return self.detail_key(key),
        }
        None
    }

    fn list_key(&mut self, key: Key) -> Option<Effect> {
        match key {
            Key::Char('q') => return Some(Effect::Quit),
            Key::Escape if self.filter.is_empty() => return Some(Effect::Quit),
            Key::Escape => {
                self.filter.clear();
                self.settle();
            }
            Key::Char('/') => self.prompt = Prompt::Filter,
            Key::Char('?') => self.help(),
            Key::Enter if self.agent().is_some() => {
                self.pane = Pane::Detail;
                return self.look();
            }
            Key::PageUp => self.go(|place| place.saturating_sub(PAGE)),
            Key::PageDown => self.go(|place| place + PAGE),
            key => self.walk(key),
        }
        None
    }

    fn detail_key(&mut self, key: Key) -> Option<Effect> {
        match key {
            Key::Char('q') => return Some(Effect::Quit),
            Key::Escape | Key::Backspace => self.pane = Pane::List,
            Key::Enter => {
                let agent = self.agent()?;
                return Some(Effect::Attach { run: agent.run, agent: agent.agent.clone() });
            }
            Key::Char('?') => self.help(),
            Key::PageUp => self.scroll = self.scroll.saturating_sub(PAGE),
            Key::PageDown | Key::Char(' ') => self.scroll += PAGE,
            Key::Char('a') => match self.answer(String::new(), true) {
                Some(answer) => self.prompt = Prompt::Write(answer),
                None => self.said = Some("This agent asks nothing.".to_owned()),
            },
            Key::Char(digit @ '1'..='9') => self.choose(digit),
            key => {
                let before = self.selected.clone();
                self.walk(key);
                if self.selected != before {
                    return self.look();
                }
            }
        }
        None
    }

    /// Moves the selection along the list.
    fn walk(&mut self, key: Key) {
        match key {
            Key::Char('j') | Key::Down => self.go(|place| place + 1),
            Key::Char('k') | Key::Up => self.go(|place| place.saturating_sub(1)),
            Key::Char('g') | Key::Home => self.point_at(0),
            Key::Char('G') | Key::End => self.point_at(usize::MAX),
            _ => {}
        }
    }

    fn filter_key(&mut self, key: Key) {
        self.prompt = Prompt::Filter;
        match key {
            Key::Enter => self.prompt = Prompt::None,
            Key::Escape => {
                self.filter.clear();
                self.prompt = Prompt::None;
            }
            Key::Up | Key::Down => self.walk(key),
            key => edit(&mut self.filter, key),
        }
        self.settle();
    }

    fn write_key(&mut self, mut answer: Answer, key: Key) {
        match key {
            Key::Escape => return,
            Key::Enter if !answer.text.trim().is_empty() => {
                self.prompt = Prompt::Confirm(answer);
                return;
            }
            key => edit(&mut answer.text, key),
        }
        self.prompt = Prompt::Write(answer);
    }

    fn confirm_key(&mut self, answer: Answer, key: Key) -> Option<Effect> {
        match key {
            Key::Char('y' | 'Y') => {
                self.said = Some(format!("Answering {} …", answer.handoff));
                Some(Effect::Answer(answer))
            }
            Key::Char('n' | 'N') | Key::Escape => {
                self.said = Some("Nothing was answered.".to_owned());
                None
            }
            _ => {
                self.prompt = Prompt::Confirm(answer);
                None
            }
        }
    }

    fn choose(&mut self, digit: char) {
        let place = digit.to_digit(10).map_or(0, |digit| digit as usize - 1);
        let option = self.question().and_then(|asked| asked.options().get(place)).cloned();
        match option.and_then(|option| self.answer(option, false)) {
            Some(answer) => self.prompt = Prompt::Confirm(answer),
            None => self.said = Some(format!("There is no option {digit}.")),
        }
    }

    fn answer(&self, text: String, typed: bool) -> Option<Answer> {
        let asked = self.question()?;
        Some(Answer { run: asked.run, handoff: asked.handoff.id, text, typed })
    }

    fn help(&mut self) {
        self.before_help = self.pane;
        self.pane = Pane::Help;
    }

    /// Forgets the events of another agent and requests those of this one.
    fn look(&mut self) -> Option<Effect> {
        let agent = self.agent()?;
        Some(Effect::Look { run: agent.run, after: agent.seq.saturating_sub(EVENTS) })
    }

    fn place(&self) -> Option<usize> {
        let (run, name) = self.selected.as_ref()?;
        self.shown().iter().position(|agent| agent.run == *run && agent.agent == *name)
    }

    /// Selects an agent that is shown, if there is one.
    fn settle(&mut self) {
        if self.place().is_none() {
            self.point_at(0);
        }
    }

    fn go(&mut self, to: impl Fn(usize) -> usize) {
        self.point_at(self.place().map_or(0, to));
    }

    fn point_at(&mut self, place: usize) {
        let shown = self.shown();
        let place = place.min(shown.len().saturating_sub(1));
        let next = shown.get(place).map(|agent| (agent.run, agent.agent.clone()));
        if next != self.selected {
            self.scroll = 0;
            if next.as_ref().map(|(run, _)| run) != self.selected.as_ref().map(|(run, _)| run) {
                self.events.clear();
                self.council = None;
            }
        }
        self.selected = next;
    }
}

/// The heading of a group.
pub(super) fn heading(group: Group) -> &'static str {
    match group {
        Group::NeedsYou => "needs you",
        Group::Working => "working",
        Group::Waiting => "waiting",
        Group::Idle => "idle",
        Group::Done => "done",
    }
}

fn edit(text: &mut String, key: Key) {
    match key {
        Key::Char(letter) if text.len() < LONGEST => text.push(letter),
        Key::Backspace => drop(text.pop()),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
