//! Questions that a program asks on its screen: answered by its profile, or by a person from the
//! inbox.

use std::time::Duration;

use stafette_core::Usage;
use stafette_core::run::session::SessionState;
use tokio::time::{Instant, timeout};

use super::glance::{self, Glance};
use super::menu::Menu;
use super::turn::Turn;
use crate::profile::Press;
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

/// The most questions that people are asked in one turn: a program that asks more is not waiting for
/// their answers.
const QUESTIONS: u32 = 64;

/// A question that waits for a person.
#[derive(Debug)]
pub(super) struct Question {
    id: String,
    posed: Posed,
    default: Option<String>,
    /// The time at which nobody has answered it.
    pub(super) until: Instant,
}

/// A question as the screen poses it. An answer to one counts for no other.
#[derive(Clone, PartialEq, Debug)]
struct Posed {
    doubt: Doubt,
    /// The rows that say what is asked: those above the menu.
    subject: Vec<String>,
    answers: Vec<(String, Action)>,
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
        let dialog = self.job.profile.as_ref().and_then(|profile| {
            let shown = glance::asked(profile.pty.as_ref()?, self.terminal);
            profile.dialog(self.job.agent.permissions, &shown)
        });
        let Some(dialog) = dialog else { return false };
        if self.dialogs >= DIALOGS {
            return false;
        }
        self.dialogs += 1;
        let answered = match &dialog.choose {
            Some(option) => self.choose(|_, menu| menu.find_beginning(option)).await,
            None => self.press(&[Press::Enter]).await,
        };
        if answered {
            self.screen_changes(&screen).await;
        }
        answered
    }

    /// The question that the screen poses now.
    fn posed(&self, rows: &[String], menu: Option<&Menu>, doubt: Doubt) -> Posed {
        let mode = self.job.profile.as_ref().and_then(|profile| profile.pty.as_ref());
        let known = mode.map(|mode| mode.answers.as_slice()).unwrap_or_default();
        let mut answers: Vec<(String, Action)> = match menu {
            Some(menu) => {
                let choose = |option: &String| (option.clone(), Action::Choose(option.clone()));
                menu.options.iter().map(choose).collect()
            }
            None if doubt == Doubt::Asks && !known.is_empty() => {
                let press = |answer: &crate::profile::DialogAnswer| {
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
        let above = menu.map_or(rows, |menu| &rows[..menu.top]);
        Posed { doubt, subject: above.iter().map(|row| timeless(row, doubt)).collect(), answers }
    }

    /// True if the screen poses this question.
    fn poses(&self, posed: &Posed) -> bool {
        let rows = self.terminal.text();
        self.posed(&rows, Menu::read(&rows).as_ref(), posed.doubt) == *posed
    }

    /// Asks a person what to do about the screen, once. Returns the end of the turn if there were too
    /// many questions.
    pub(super) async fn ask(&mut self, doubt: Doubt) -> Option<Signal> {
        let rows = self.terminal.text();
        let menu = Menu::read(&rows);
        let posed = self.posed(&rows, menu.as_ref(), doubt);
        match &self.question {
            Some(open) if open.posed == posed => return None,
            Some(_) => self.drop_question().await,
            None => {}
        }
        if self.questions >= QUESTIONS {
            self.spoiled = true;
            let screen = rows.join("\n");
            let message =
                format!("asked {QUESTIONS} times in one turn; the screen shows:\n{screen}");
            return Some(Signal::recoverable(message, Usage::default()));
        }
        let options: Vec<String> = posed.answers.iter().map(|(name, _)| name.clone()).collect();
        let default = match &menu {
            Some(menu) => menu.no().map(str::to_owned),
            None => {
                let says_no = |name: &&String| {
                    ["no", "deny", "reject"].iter().any(|no| name.to_lowercase().starts_with(no))
                };
                options.iter().find(says_no).cloned()
            }
        };
        self.questions += 1;
        let id = format!("{}.t{}", self.job.order.deliveries, self.questions);
        let within = self.job.permissions.patience;
        let asks = Signal::Asks {
            id: id.clone(),
            title: title(&rows, doubt),
            detail: rows.join("\n"),
            options,
            default: default.clone(),
            within,
        };
        self.question = Some(Question { id, posed, default, until: Instant::now() + within });
        self.link.tell(asks).await;
        None
    }

    /// Answers no to a question that has expired. Returns true if it has.
    pub(super) async fn expire(&mut self) -> bool {
        let now = Instant::now();
        let late = self.question.as_ref().filter(|question| question.until <= now);
        let Some(id) = late.map(|question| question.id.clone()) else { return false };
        // It is the name of no option.
        self.reply(&Reply { id, choice: String::new() }).await;
        true
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
            question.posed.answers.iter().find(same).cloned()
        };
        // Anything that is not an option means no.
        let chosen = find(wanted).or_else(|| find(question.default.as_deref()?));
        let (choice, action) = match chosen {
            Some((name, action)) => (Some(name), action),
            None => (None, Action::Press(vec![Press::Esc])),
        };
        // A question that was answered at the terminal meanwhile must not be answered twice, and
        // another one not by this answer.
        let glance = self.glance();
        let is_there =
            !matches!(glance, Glance::Quiet | Glance::Busy) && self.poses(&question.posed);
        let before = self.terminal.text().join("\n");
        match &action {
            Action::Choose(option) if is_there => {
                let posed = &question.posed;
                self.choose(|turn, menu| menu.find(option).filter(|_| turn.poses(posed))).await;
            }
            Action::Press(keys) if is_there => drop(self.press(keys).await),
            Action::Choose(_) | Action::Press(_) | Action::Ready => {}
        }
        if is_there && action != Action::Ready {
            self.screen_changes(&before).await;
        }
        let choice = choice.filter(|_| is_there || action == Action::Ready);
        self.link.tell(Signal::Settled { id: question.id, choice }).await;
        // Text that is typed into a question would be taken for its answer.
        action == Action::Ready && !matches!(glance, Glance::Asks | Glance::Dialog)
    }

    /// Drops a question that was answered at the terminal.
    pub(super) async fn drop_question(&mut self) {
        if let Some(question) = self.question.take() {
            self.link.tell(Signal::Settled { id: question.id, choice: None }).await;
            let state = SessionState::Working;
            self.link.tell(Signal::Session { state, note: String::new() }).await;
        }
    }

    /// Chooses the option at the place that is found in the menu; returns false if there is none.
    async fn choose(&mut self, find: impl Fn(&Self, &Menu) -> Option<usize>) -> bool {
        for _ in 0..STEPS {
            let rows = self.terminal.text();
            let Some(menu) = Menu::read(&rows) else { return false };
            let Some(place) = find(self, &menu) else { return false };
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

/// A row without what only tells the time: a screen that counts the seconds asks the same. On a screen
/// that is not known, any number may count something.
fn timeless(row: &str, doubt: Doubt) -> String {
    if doubt == Doubt::Unknown {
        return row.replace(|c: char| c.is_ascii_digit(), "#");
    }
    // Programs show it in brackets, and some with a sign in front that turns.
    let row = row
        .trim_start_matches(|c: char| !c.is_ascii() && !c.is_alphanumeric() || c.is_whitespace());
    let mut inside = false;
    let words = row.split(' ').map(|word| {
        inside |= word.starts_with('(');
        let time = word.trim_matches(['(', ')', ',']);
        let number = time.strip_suffix(['s', 'm', 'h']).unwrap_or_default();
        let is_time = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
        let shown = if inside && is_time { "#" } else { word };
        inside &= !word.ends_with(')');
        shown
    });
    words.collect::<Vec<_>>().join(" ")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_13_a_screen_that_counts_the_seconds_asks_the_same_and_another_command_does_not() {
        let asks = |row| timeless(row, Doubt::Asks);
        assert_eq!(asks("✻ Waiting… (1m 59s • esc)"), asks("✽ Waiting… (2m 1s • esc)"));
        assert_ne!(asks("  rm -rf build1"), asks("  rm -rf build2"));
        assert_ne!(asks("  sleep 1s"), asks("  sleep 2s"));
        assert_ne!(asks("│ rm -rf ./"), asks("│ rm -rf /"));
        let unknown = |row| timeless(row, Doubt::Unknown);
        assert_eq!(unknown("loading 42 %"), unknown("loading 43 %"));
    }
}
