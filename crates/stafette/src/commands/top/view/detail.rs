//! The details of one agent, the most urgent first.

use stafette_engine::{AgentView, CouncilView, Work};

use super::super::state::{Asked, State};
use super::super::text::{cut, elapsed, remaining, wrap};
use super::{Theme, Tone, how};
use crate::commands::status;
use crate::window::line::Line;

/// When there is room for fewer events than this …
const FEW: usize = 3;

/// … this many are shown to a user who scrolls.
const EVENTS: usize = 8;

struct Page {
    lines: Vec<Line>,
    theme: Theme,
    room: usize,
}

impl Page {
    fn head(&mut self, tone: Tone, text: &str) {
        self.lines.push(Line::styled(self.theme.style(tone), cut(text, self.room)));
    }

    fn gap(&mut self) {
        self.lines.push(Line::default());
    }

    fn text(&mut self, text: &str) {
        self.lines.extend(wrap(text, self.room).into_iter().map(Line::plain));
    }

    fn quiet(&mut self, text: &str) {
        let style = self.theme.style(Tone::Quiet);
        self.lines.extend(wrap(text, self.room).into_iter().map(|line| Line::styled(style, line)));
    }

    fn option(&mut self, key: &str, text: &str) {
        let line = Line::styled(self.theme.style(Tone::Yours), format!("  {key} "));
        self.lines.push(line.then("", cut(text, self.room.saturating_sub(4))));
    }
}

pub(super) fn lines(state: &State, theme: Theme, room: usize, height: usize) -> Vec<Line> {
    let mut page = Page { lines: Vec::new(), theme, room };
    let Some(agent) = state.agent() else { return page.lines };
    agent_part(&mut page, agent, state);
    if let Some(asked) = state.question() {
        question_part(&mut page, agent, asked, state);
    }
    if let Some(council) = &state.council {
        council_part(&mut page, council);
    }
    if let Some(work) = &agent.work {
        work_part(&mut page, work);
    }
    page.gap();
    page.head(Tone::Head, "LAST EVENTS");
    let left = height.saturating_sub(page.lines.len());
    let left = if left < FEW { EVENTS } else { left };
    let first = state.events.len().saturating_sub(left);
    for event in &state.events[first..] {
        page.lines.push(Line::plain(cut(event, room)));
    }
    page.lines
}

fn agent_part(page: &mut Page, agent: &AgentView, state: &State) {
    let (mark, word, tone) = how(agent);
    let since = elapsed(&agent.since, state.now);
    page.head(tone, &format!("{mark} {} {word} · {since}", agent.agent));
    page.text(&format!("run {} is {}: {}", agent.short, agent.status, agent.request));
    let session = agent.session.map(|session| format!(" · process {}", session_word(session)));
    page.quiet(&format!(
        "{} · {} tokens{}",
        agent.spent.cost(),
        agent.spent.count(),
        session.unwrap_or_default()
    ));
    if agent.question.is_none() && !agent.doing.is_empty() {
        page.text(&agent.doing);
    }
}

fn session_word(session: stafette_core::run::session::SessionState) -> String {
    let word = serde_json::to_value(session).ok();
    word.as_ref().and_then(|word| word.as_str()).unwrap_or_default().to_owned()
}

fn question_part(page: &mut Page, agent: &AgentView, asked: &Asked, state: &State) {
    let Some(question) = &asked.handoff.offer.question else { return };
    page.gap();
    let left = agent.until.as_deref().and_then(|until| remaining(until, state.now));
    let limit = match (&question.default, left) {
        (Some(default), Some(left)) => format!(" · `{default}` is taken in {left}"),
        (None, Some(left)) => format!(" · {left} left"),
        (_, None) => String::new(),
    };
    page.head(Tone::Yours, &format!("QUESTION {}{limit}", asked.handoff.id));
    page.text(&question.details);
    if !question.context.is_empty() && question.context != question.details {
        page.quiet(&question.context);
    }
    for (place, option) in question.options.iter().take(9).enumerate() {
        page.option(&(place + 1).to_string(), option);
    }
    let missing = &asked.handoff.offer.missing;
    let hint = match missing.len() {
        0 | 1 => "answer in your own words".to_owned(),
        _ => {
            let keys: Vec<String> =
                missing.iter().map(|input| format!("{}=…", input.key)).collect();
            keys.join(" ")
        }
    };
    page.option("a", &hint);
}

fn council_part(page: &mut Page, council: &CouncilView) {
    page.gap();
    page.head(Tone::Head, &format!("COUNCIL {}", council.topic));
    page.text(&status::stands(council));
    let seats: Vec<String> = council.members.iter().map(|it| status::seat(council, it)).collect();
    page.quiet(&seats.join(" · "));
}

fn work_part(page: &mut Page, work: &Work) {
    page.gap();
    page.head(
        Tone::Head,
        &format!("HANDOFF {} {} · from {} · {}", work.handoff, work.state, work.from, work.reason),
    );
    page.text(&work.summary);
    page.quiet(&format!("round {} · attempt {}", work.round, work.attempt));
    if !work.inputs.is_empty() {
        page.quiet(&format!("inputs: {}", work.inputs.join(", ")));
    }
}
