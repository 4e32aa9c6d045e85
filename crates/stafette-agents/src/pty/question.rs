//! Questions that a program asks on its screen: answered by its profile, or by a person from the
//! inbox.

use std::time::Duration;

use stafette_core::run::session::SessionState;
use tokio::time::timeout;

use super::glance::{self, Glance};
use super::menu::Menu;
use super::turn::Turn;
use crate::profile::{Press, Pty};
use crate::{Reply, Signal};

/// The keys that a person can press where neither a menu nor the profile says more.
const KEYS: [(&str, &[Press]); 4] = [
    ("Press Enter", &[Press::Enter]),
    ("Press Y", &[Press::Y, Press::Enter]),
    ("Press N", &[Press::N, Press::Enter]),
    ("Press Esc", &[Press::Esc]),
];

/// The answer of a person who sees that the program is ready, though its profile does not.
const READY: &str = "It is ready";

/// The longest way through a menu, in steps.
const STEPS: usize = 24;

/// The most dialogs that are answered by the profile before one turn: one that comes again and again
/// is for a person.
const DIALOGS: u32 = 12;

/// A question that waits for a person.
#[derive(Debug)]
pub(super) struct Question {
    id: String,
    answers: Vec<(String, Action)>,
    default: Option<String>,
}

/// The action for an answer.
#[derive(Clone, PartialEq, Debug)]
enum Action {
    /// The option with this text is chosen from the menu.
    Choose(String),
    /// Keys are pressed.
    Press(Vec<Press>),
    /// The program is taken to be ready.
    Ready,
}

/// The reason why a program is not given its order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Doubt {
    Asks,
    /// It shows nothing that its profile knows.
    Unknown,
}

impl Turn<'_> {
    /// Answers a question that needs no person. Returns false if there is none, or the profile's
    /// answer does not help.
    pub(super) async fn answer_dialog(&mut self) -> bool {
        let screen = self.terminal.text().join(" \n");
        let mode = self.job.profile.as_ref().and_then(|profile| profile.pty.as_ref());
        let shown = |mode: &'_ Pty| glance::asked(mode, self.terminal);
        let Some(dialog) = mode.and_then(|mode| mode.dialog(&shown(mode))) else { return false };
        if self.dialogs >= DIALOGS {
            return false;
        }
        self.dialogs += 1;
        let answered = match &dialog.choose {
            Some(option) => self.choose(option).await,
            None => self.press(&[Press::Enter]).await,
        };
        if answered {
            self.screen_changes(&screen).await;
        }
        answered
    }

    /// Asks a person what to do about the screen, once.
    pub(super) async fn ask(&mut self, doubt: Doubt) {
        let rows = self.terminal.text();
        let mode = self.job.profile.as_ref().and_then(|profile| profile.pty.as_ref());
        let menu = Menu::read(&rows);
        let known = mode.map(|mode| mode.answers.as_slice()).unwrap_or_default();
        let mut answers: Vec<(String, Action)> = match &menu {
            Some(menu) => {
                let choose = |option: &String| (option.clone(), Action::Choose(option.clone()));
                menu.options.iter().map(choose).collect()
            }
            None if doubt == Doubt::Asks && !known.is_empty() => {
                let press = |answer: &crate::profile::Answer| {
                    (answer.name.clone(), Action::Press(answer.keys.clone()))
                };
                known.iter().map(press).collect()
            }
            None => {
                let press = |(name, keys): &(&str, &[Press])| {
                    ((*name).to_owned(), Action::Press(keys.to_vec()))
                };
                KEYS.iter().map(press).collect()
            }
        };
        if doubt == Doubt::Unknown {
            answers.push((READY.to_owned(), Action::Ready));
        }
        // A screen that only counts the seconds asks the same.
        let names = |answers: &[(String, Action)]| -> Vec<String> {
            answers.iter().map(|(name, _)| name.clone()).collect()
        };
        match &self.question {
            Some(open) if names(&open.answers) == names(&answers) => return,
            Some(_) => self.drop_question().await,
            None => {}
        }
        let default = match &menu {
            Some(menu) => menu.no().map(str::to_owned),
            None => {
                let says_no = |name: &&String| {
                    ["no", "deny", "reject"].iter().any(|no| name.to_lowercase().starts_with(no))
                };
                answers.iter().map(|(name, _)| name).find(says_no).cloned()
            }
        };
        self.questions += 1;
        let id = format!("{}.t{}", self.job.order.deliveries, self.questions);
        let asks = Signal::Asks {
            id: id.clone(),
            title: title(&rows, doubt),
            detail: rows.join("\n"),
            options: names(&answers),
            default: default.clone(),
            within: self.job.permissions.patience,
        };
        self.question = Some(Question { id, answers, default });
        self.link.tell(asks).await;
    }

    /// Takes an answer of a person. Returns true if the program is to be taken for ready.
    pub(super) async fn reply(&mut self, reply: &Reply) -> bool {
        if self.question.as_ref().is_none_or(|question| question.id != reply.id) {
            return false;
        }
        let Some(question) = self.question.take() else { return false };
        let wanted = reply.choice.trim();
        let find = |wanted: &str| {
            let same = |(name, _): &&(String, Action)| name.eq_ignore_ascii_case(wanted);
            question.answers.iter().find(same).cloned()
        };
        // Anything that is not an option means no.
        let chosen = find(wanted).or_else(|| find(question.default.as_deref()?));
        let (choice, action) = match chosen {
            Some((name, action)) => (Some(name), action),
            None => (None, Action::Press(vec![Press::Esc])),
        };
        // A question that was answered at the terminal meanwhile must not be answered twice.
        let glance = self.glance();
        let is_there = !matches!(glance, Glance::Quiet | Glance::Busy);
        let before = self.terminal.text().join("\n");
        match &action {
            Action::Choose(option) if is_there => drop(self.choose(option).await),
            Action::Press(keys) if is_there => drop(self.press(keys).await),
            Action::Choose(_) | Action::Press(_) | Action::Ready => {}
        }
        if is_there && action != Action::Ready {
            self.screen_changes(&before).await;
        }
        self.link.tell(Signal::Settled { id: question.id, choice }).await;
        action == Action::Ready
    }

    /// Drops a question that was answered at the terminal.
    pub(super) async fn drop_question(&mut self) {
        if let Some(question) = self.question.take() {
            self.link.tell(Signal::Settled { id: question.id, choice: None }).await;
            let state = SessionState::Working;
            self.link.tell(Signal::Session { state, note: String::new() }).await;
        }
    }

    /// Chooses the option that begins with this text; returns false if there is none.
    async fn choose(&mut self, option: &str) -> bool {
        for _ in 0..STEPS {
            let rows = self.terminal.text();
            let Some(menu) = Menu::read(&rows) else { return false };
            let Some(place) = menu.find(option) else { return false };
            if place == menu.marked {
                return self.press(&[Press::Enter]).await;
            }
            let key = if place > menu.marked { Press::Down } else { Press::Up };
            if !self.press(&[key]).await {
                return false;
            }
            self.screen_changes(&rows.join(" \n")).await;
        }
        false
    }

    /// Presses keys; returns false if the program does not take them.
    async fn press(&mut self, keys: &[Press]) -> bool {
        for key in keys {
            let typed =
                timeout(self.terminal.setup().arrival, self.terminal.write(key.bytes().to_vec()));
            if !matches!(typed.await, Ok(Ok(()))) {
                return false;
            }
        }
        true
    }

    /// Waits until the screen is another one and has become quiet, for as long as a typed text may
    /// take to show.
    async fn screen_changes(&mut self, before: &str) {
        let differs = async {
            loop {
                self.changes.borrow_and_update();
                let now = self.terminal.text();
                if now.join(" \n") != before && now.join("\n") != before {
                    break;
                }
                if self.changes.changed().await.is_err() {
                    return;
                }
            }
            let quiet = Duration::from_millis(200);
            while let Ok(Ok(())) = timeout(quiet, self.changes.changed()).await {}
        };
        // A program that draws without end must not hold us up.
        let _ = timeout(self.terminal.setup().arrival, differs).await;
    }
}

/// The question in a line: the last row that is one, or what is the matter.
fn title(rows: &[String], doubt: Doubt) -> String {
    let plain = |row: &String| {
        let frame = |c: char| !c.is_alphanumeric() && !"?!.)\"'`".contains(c);
        row.trim_matches(frame).to_owned()
    };
    let question = rows.iter().rev().map(plain).find(|row| row.ends_with('?'));
    match (question, doubt) {
        (Some(question), _) => question,
        (None, Doubt::Asks) => "Its terminal waits for an answer".to_owned(),
        (None, Doubt::Unknown) => {
            "Its terminal shows something unknown and takes no prompt".to_owned()
        }
    }
}
