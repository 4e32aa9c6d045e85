//! `attach`: shows an agent's terminal in the user's own.
//!
//! The agent's output goes through a terminal emulator of our own, and only the resulting screen is
//! drawn: it cannot control the user's terminal, and it need not have its size.

use std::io;
use std::time::Duration;

use serde_json::json;
use stafette_agents::screen::Screen;
use stafette_agents::terminal::Keyboard;
use stafette_core::wire::frame::Word;
use stafette_engine::RunView;
use stafette_server::terminals::{Glance, Told, Wish};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::top::text::cell;
use super::{Context, segment};
use crate::cli;
use crate::client::{Client, Live, Piece};
use crate::exit::{Exit, Failure};
use crate::window::{self, Canvas, Keys, Signals, Window, keys};

/// The least time between two drawn frames.
const FRAME: Duration = Duration::from_millis(15);

/// The time to wait for the terminal of an agent that gets a new one for its next turn.
const REOPEN: Duration = Duration::from_secs(3);

/// The least size that an agent's terminal is given, in columns and rows: programs draw nothing
/// sensible below it.
const LEAST: (u16, u16) = (20, 5);

/// The maximum number of typed bytes in one message.
const TYPED: usize = 8 * 1024;

pub(crate) async fn run(context: &Context, arguments: cli::Attach) -> Result<Exit, Failure> {
    let client = crate::daemon::find(&context.project()?).await?;
    let glance: Glance = client.get(&path(arguments.run.as_deref(), &arguments.agent, "")).await?;
    if context.output.json || !window::is_there() {
        return print(context, &client, &glance).await;
    }
    let said = watch(&client, &glance, arguments.write).await?;
    context.output.say(said);
    Ok(Exit::Ok)
}

/// The path of an agent's terminal at the daemon.
pub(crate) fn path(run: Option<&str>, agent: &str, rest: &str) -> String {
    super::run_path(run, &format!("/terminals/{}{rest}", segment(agent)))
}

async fn open(client: &Client, glance: &Glance, write: bool) -> Result<Live, Failure> {
    let run = glance.run.to_string();
    let query = format!("/live?write={write}&history=0");
    client.live(&path(Some(&run), glance.agent.as_str(), &query)).await
}

/// Prints the present screen of the terminal.
async fn print(context: &Context, client: &Client, glance: &Glance) -> Result<Exit, Failure> {
    let mut live = open(client, glance, false).await?;
    let snapshot = async {
        loop {
            if let Piece::Told(told @ Told::Snapshot { .. }) = live.next().await? {
                return Ok(told);
            }
        }
    };
    let told = client.patiently(snapshot).await?;
    live.leave().await;
    let Told::Snapshot { cols, rows, state, title, data } = told else { return Ok(Exit::Ok) };
    let text = picture(cols, rows, &data)?.text();
    if context.output.json {
        context.output.data(&json!({
            "run": glance.run, "agent": glance.agent, "state": state, "title": title,
            "cols": cols, "rows": rows, "pid": glance.pid, "text": text,
        }));
    } else {
        text.iter().for_each(|line| context.output.line(line));
    }
    Ok(Exit::Ok)
}

fn picture(cols: u16, rows: u16, data: &str) -> Result<Screen, Failure> {
    let mut screen = Screen::new(Word::default(), cols, rows)
        .map_err(|error| crate::client::unreadable(&error))?;
    screen.feed(data.as_bytes());
    Ok(screen)
}

/// Shows a terminal until the user leaves or it ends. Returns which of the two happened.
pub(crate) async fn watch(
    client: &Client,
    glance: &Glance,
    write: bool,
) -> Result<String, Failure> {
    let mut live = open(client, glance, write).await?;
    let mut view = View::take(glance, write).map_err(broken)?;
    let client = client.clone().muted();
    let shown = async {
        loop {
            match view.show(&mut live).await? {
                Way::Left => {
                    live.leave().await;
                    return Ok(format!("left; {} goes on", glance.agent));
                }
                Way::Ended(note) => {
                    match timeout(2 * REOPEN, reopened(&client, glance, write)).await {
                        Ok(Some(again)) => live = again,
                        _ => return Ok(ended(glance, note)),
                    }
                }
            }
        }
    };
    let end = tokio::select! {
        end = shown => end,
        failure = client.silence() => Err(failure),
    };
    // The user's terminal is released before anything is printed.
    drop(view);
    end
}

fn ended(glance: &Glance, note: Option<String>) -> String {
    let note = note.as_deref().and_then(|note| note.lines().next()).unwrap_or_default();
    match note.is_empty() {
        true => format!("the terminal of {} has ended", glance.agent),
        false => {
            format!("the terminal of {} has ended: {}", glance.agent, note)
        }
    }
}

/// The next terminal of the agent, if it gets one: some agents have one for each turn.
async fn reopened(client: &Client, glance: &Glance, write: bool) -> Option<Live> {
    let until = Instant::now() + REOPEN;
    while Instant::now() < until {
        let run: RunView = client.get(&format!("/v1/runs/{}", glance.run)).await.ok()?;
        if run.is_over() {
            return None;
        }
        if let Ok(live) = open(client, glance, write).await {
            return Some(live);
        }
        sleep(Duration::from_millis(50)).await;
    }
    None
}

pub(crate) fn broken(error: io::Error) -> Failure {
    Failure::failed("The terminal cannot be used")
        .because(&error)
        .fix("without one, the screen is printed as text: add --json")
}

/// The reason why the view of a terminal ended.
enum Way {
    /// The user pressed the key to leave.
    Left,
    /// The terminal ended, with the reason if it is known.
    Ended(Option<String>),
}

/// The user's terminal and its content.
struct View {
    // The reader of keys ends before the terminal is released.
    keys: Keys,
    window: Window,
    canvas: Canvas,
    signals: Signals,
    resized: Signal,
    screen: Screen,
    keyboard: Keyboard,
    write: bool,
    agent: String,
    state: String,
    note: Option<String>,
    /// A hint for the user about a key that had no effect.
    hint: Option<&'static str>,
    /// The typed bytes of an incomplete character.
    half: Vec<u8>,
    /// True if the drawn screen is out of date.
    stale: bool,
    drawn_at: Instant,
    /// The present settings of the keyboard.
    set: String,
}

impl View {
    fn take(glance: &Glance, write: bool) -> io::Result<Self> {
        let signals = Signals::new()?;
        let resized = signal(SignalKind::window_change())?;
        let screen =
            Screen::new(Word::default(), glance.cols, glance.rows).map_err(io::Error::other)?;
        let window = Window::take()?;
        Ok(View {
            canvas: Canvas::new(window.size()),
            window,
            keys: Keys::read(),
            signals,
            resized,
            screen,
            keyboard: Keyboard::default(),
            write,
            agent: glance.agent.to_string(),
            state: glance.state.clone(),
            note: glance.note.clone(),
            hint: None,
            half: Vec::new(),
            stale: true,
            drawn_at: Instant::now(),
            set: String::new(),
        })
    }

    async fn show(&mut self, live: &mut Live) -> Result<Way, Failure> {
        self.draw()?;
        self.give_size(live);
        loop {
            if self.stale && self.drawn_at.elapsed() >= FRAME {
                self.draw()?;
            }
            let due = self.drawn_at + FRAME;
            tokio::select! {
                piece = live.next() => match piece? {
                    Piece::Bytes(bytes) => self.printed(&bytes),
                    Piece::Told(Told::End { note }) => return Ok(Way::Ended(note)),
                    Piece::Told(told) => self.told(told)?,
                },
                typed = self.keys.next() => match typed {
                    // A terminal that went away counts as a key.
                    None => return Ok(Way::Left),
                    Some(typed) => {
                        if self.typed(&typed, live) {
                            return Ok(Way::Left);
                        }
                    }
                },
                _ = self.resized.recv() => {
                    self.canvas.resize(self.window.size());
                    self.stale = true;
                    self.give_size(live);
                }
                () = self.signals.any() => return Ok(Way::Left),
                () = sleep_until(due), if self.stale => {}
            }
        }
    }

    fn printed(&mut self, bytes: &[u8]) {
        self.screen.feed(bytes);
        self.keyboard.feed(bytes);
        self.stale = true;
    }

    fn told(&mut self, told: Told) -> Result<(), Failure> {
        match told {
            Told::Snapshot { cols, rows, state, data, .. } => {
                self.screen = picture(cols, rows, &data)?;
                self.keyboard = Keyboard::default();
                self.keyboard.feed(data.as_bytes());
                self.state = state;
            }
            Told::State { state, note, .. } => (self.state, self.note) = (state, note),
            Told::Resize { .. } | Told::End { .. } => {}
        }
        self.stale = true;
        Ok(())
    }

    /// Passes on typed bytes. Returns true if the user wants to leave.
    fn typed(&mut self, typed: &[u8], live: &Live) -> bool {
        let leave = typed.iter().position(|byte| *byte == keys::LEAVE);
        let typed = &typed[..leave.unwrap_or(typed.len())];
        if !self.write {
            if !typed.is_empty() {
                self.hint = Some("to type, attach with --write");
                self.stale = true;
            }
            return leave.is_some() || typed == [keys::STOP];
        }
        self.half.extend_from_slice(typed);
        let whole = whole(&self.half);
        let text = String::from_utf8_lossy(&self.half[..whole]).into_owned();
        self.half.drain(..whole);
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (part, more) = rest.split_at(rest.floor_char_boundary(TYPED));
            if !live.wish(&Wish::Input { data: part.to_owned() }) {
                self.hint = Some("it does not read what is typed");
                self.stale = true;
            }
            rest = more;
        }
        leave.is_some()
    }

    /// Gives the agent's terminal the size of our window, if that is permitted.
    fn give_size(&self, live: &Live) {
        if self.write {
            let (cols, rows) = self.canvas.room();
            let wish = Wish::Resize { cols: cols.max(LEAST.0), rows: rows.max(LEAST.1) };
            live.wish(&wish);
        }
    }

    fn draw(&mut self) -> Result<(), Failure> {
        let (columns, _) = self.canvas.room();
        let line = cell(&self.status(), columns.into());
        let mut text = self.canvas.draw(&self.screen, &line);
        let settings = self.keyboard.settings();
        // Only a user who types needs the keyboard settings that the agent wants.
        if self.write && settings != self.set {
            text.push_str(&settings);
            self.set = settings;
        }
        self.window.write(&text).map_err(broken)?;
        self.stale = false;
        self.drawn_at = Instant::now();
        Ok(())
    }

    fn status(&self) -> String {
        let manner = if self.write { "writing" } else { "read-only" };
        let state = self.state.replace('_', " ");
        let mut parts = vec![self.agent.clone(), state, manner.into(), "Ctrl-q leaves".into()];
        parts.extend(self.hint.map(str::to_owned));
        let (room, size) = (self.canvas.room(), self.screen.size());
        if room.0 < size.0 || room.1 < size.1 {
            let shown = (room.0.min(size.0), room.1.min(size.1));
            parts.push(format!("{}×{} of {}×{}", shown.0, shown.1, size.0, size.1));
        }
        let note = self.note.as_deref().and_then(|note| note.lines().next());
        parts.extend(note.map(str::to_owned));
        format!(" {}", parts.join(" · "))
    }
}

/// The number of bytes that are whole characters, or can never become any.
fn whole(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    let open = (tail..bytes.len()).find(|at| {
        let needed = match bytes[*at] {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 0,
        };
        needed > bytes.len() - at
    });
    open.unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_16_what_is_typed_is_never_cut_within_a_character() {
        let text = "aé語😀";
        for cut in 0..=text.len() {
            let first = whole(&text.as_bytes()[..cut]);
            assert!(text.is_char_boundary(first) && cut - first < 4, "{cut} {first}");
        }
        assert_eq!(whole(b"a\xff\xfe"), 3, "what is no text is not waited for");
    }
}
