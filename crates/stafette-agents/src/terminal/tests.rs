use std::fs;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::timeout;

use super::*;
use crate::prompt::tests::job;

/// Longer than anything here takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program in a terminal, with a folder of its own.
struct World {
    home: TempDir,
    terminal: Terminal,
}

fn quick() -> Setup {
    let patience = Patience {
        ready_timeout: PATIENCE,
        first_wait: Duration::from_millis(2),
        longest_wait: Duration::from_millis(4),
        settled: Duration::from_millis(20),
        ..Patience::default()
    };
    Setup { size: (80, 24), patience, ..Setup::default() }
}

impl World {
    async fn new(script: &str) -> Self {
        World::with(script, &quick()).await
    }

    async fn with(script: &str, setup: &Setup) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut job = job();
        job.folder = home.path().to_owned();
        job.scratch = home.path().join("scratch");
        let command = ["sh", "-c", script].map(Into::into);
        let launch = Launch::of_terminal(&job, &command);
        let recording = home.path().join("a.cast");
        let redactor = Redactor::new();
        let recording = Some((recording.as_path(), "a", &redactor));
        let terminal =
            Terminal::start(launch, setup, Word::default(), None, recording, None).await.unwrap();
        World { home, terminal }
    }

    /// Waits until the condition holds.
    async fn until(&self, what: &str, so: impl Fn(&Terminal) -> bool) {
        let mut changes = self.terminal.changes();
        let waiting = async {
            while !so(&self.terminal) {
                changes.changed().await.unwrap();
            }
        };
        let status = || (self.terminal.status(), self.terminal.text());
        timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{what}: {:?}", status()));
    }

    /// Waits until the text is visible.
    async fn shows(&self, text: &str) {
        self.until(text, |terminal| terminal.text().join("\n").contains(text)).await;
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.home.path().join(name)).unwrap()
    }

    /// Waits until the program has written this.
    async fn writes(&self, name: &str, text: &str) {
        let read = || fs::read_to_string(self.home.path().join(name)).unwrap_or_default();
        let waiting = async {
            while read() != text {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{:?}", read()));
    }
}

#[tokio::test]
async fn s1_16_a_program_has_a_terminal_of_the_size_that_is_asked_for() {
    let world = World::new("trap 'stty size' WINCH; stty size; while :; do sleep 0.01; done").await;
    world.shows("24 80").await;
    world.terminal.resize(100, 30).await.unwrap();
    world.shows("30 100").await;
    assert_eq!((world.terminal.snapshot().cols, world.terminal.snapshot().rows), (100, 30));
    assert!(world.terminal.resize(1000, 1000).await.is_err());
    world.terminal.end().await;
}

#[tokio::test]
async fn b_06_a_hundred_kilobytes_of_many_lines_arrive_intact() {
    let world = World::new("cat > got; echo all of it").await;
    let mut text: String = (0..1500)
        .map(|n| format!("line {n}: grüße und ein Krebs 🦀, {}\n", "x".repeat(n % 50)))
        .collect();
    text += &"a very long line ".repeat(1000);
    text += "\nand the end";
    assert!(text.len() > 100 * 1024);
    world.terminal.paste_seen(&text).await.unwrap();
    world.terminal.submit().await.unwrap();
    world.terminal.write(vec![4]).await.unwrap();
    world.shows("all of it").await;
    let got = world.read("got");
    let expected = text.clone() + "\n";
    let same = got.bytes().zip(expected.bytes()).take_while(|(a, b)| a == b).count();
    assert!(got == expected, "{} of {}, alike up to {same}", got.len(), expected.len());
}

#[tokio::test]
async fn b_06_a_program_that_asks_for_brackets_gets_them() {
    let script = "stty raw -echo; printf '\\033[?2004h'; head -c 25 > got; printf seen";
    let world = World::new(script).await;
    world.until("ready", |terminal| terminal.status().state == State::Ready).await;
    let text = Text::Pasted("one\ntwo\x1b[201~x".to_owned());
    world.terminal.type_in(text).await.unwrap();
    world.shows("seen").await;
    assert_eq!(world.read("got"), "\x1b[200~one\rtwo[201~x\x1b[201~");
}

#[tokio::test]
async fn b_06_a_program_that_asks_for_brackets_too_early_is_not_ready() {
    let script = "printf '\\033[?2004hearly'; until [ -e go ]; do sleep 0.01; done; \
                  stty raw -echo; printf late; exec cat";
    let patience = Patience { settled: PATIENCE, ..quick().patience };
    let world = World::with(script, &Setup { patience, ..quick() }).await;
    world.shows("early").await;
    assert_eq!(world.terminal.status().state, State::Starting, "its input is still edited");
    fs::write(world.home.path().join("go"), "").unwrap();
    world.until("ready", |terminal| terminal.status().state == State::Ready).await;
    assert!(world.terminal.text().join("").contains("late"));
    world.terminal.end().await;
}

#[tokio::test]
async fn b_06_a_text_that_is_not_seen_is_tried_twice_and_not_sent_off() {
    let script = "stty raw -echo; printf '\\033[?2004h'; exec cat > got";
    let setup = Setup { arrival: Duration::from_millis(100), ..quick() };
    let world = World::with(script, &setup).await;
    world.until("ready", |terminal| terminal.status().state == State::Ready).await;
    assert_eq!(world.terminal.paste_seen("do it").await, Err(InputError::Unseen));
    let once = "\x1b[200~do it\x1b[201~";
    world.writes("got", &format!("{once}\x15{once}")).await;
    world.terminal.end().await;
    assert_eq!(world.read("got"), format!("{once}\x15{once}"), "and no Enter");
}

#[tokio::test]
async fn b_06_nothing_can_be_typed_into_a_program_that_is_gone() {
    let world = World::new("exit 0").await;
    world.until("ended", |terminal| terminal.status().state == State::Ended).await;
    assert_eq!(world.terminal.write(b"x".to_vec()).await, Err(InputError::Gone));
    assert_eq!(world.terminal.paste_seen("x").await, Err(InputError::Gone));
    world.terminal.end().await;
    assert_eq!(world.terminal.write(b"x".to_vec()).await, Err(InputError::Gone));
}

#[tokio::test]
async fn s1_16_questions_are_answered_and_others_are_not() {
    let script = "stty raw -echo; printf '\\033]52;c;?\\007\\033[21t\\033[3;7H\\033[6n\\033[5n'; \
                  head -c 10 > got; stty sane; printf done";
    let world = World::new(script).await;
    world.shows("done").await;
    assert_eq!(world.read("got"), "\x1b[3;7R\x1b[0n");
}

#[tokio::test]
async fn s1_15_a_killed_program_is_noticed_with_its_last_screen_and_started_again() {
    let world = World::new("echo life $$; exec sleep 1000").await;
    world.shows("life").await;
    let first = world.terminal.status();
    let pid = rustix::process::Pid::from_raw(first.pid.unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    world.until("second life", |terminal| terminal.status().life == 2).await;
    let status = world.terminal.status();
    assert_ne!(status.pid, first.pid);
    let note = status.note.unwrap();
    assert!(note.starts_with("died (killed by signal 9), starts again in"), "{note}");
    assert!(note.contains(&format!("last screen:\nlife {}", pid.as_raw_pid())), "{note}");
    world.until("ready", |terminal| terminal.status().state == State::Ready).await;
    world.terminal.end().await;
    assert_eq!((world.terminal.status().state, world.terminal.status().pid), (State::Ended, None));
}

#[tokio::test]
async fn s1_15_a_program_that_exits_at_once_ten_times_is_given_up() {
    let mut setup = quick();
    setup.patience.restarts = 9;
    let world = World::with("echo life >> lives; echo no key; exit 3", &setup).await;
    world.until("given up", |terminal| terminal.status().state == State::Crashed).await;
    assert_eq!(world.read("lives").lines().count(), 10);
    let status = world.terminal.status();
    let expected = "died 10 times in a row (exit status 3) and is not started again; \
                    last screen:\nno key";
    assert_eq!(status.note.as_deref(), Some(expected));
    world.terminal.restart(None).await.unwrap();
    assert_eq!(world.terminal.status().life, 11, "whoever asks for it gets another");
    world.terminal.end().await;
}

#[tokio::test]
async fn b_02_everyone_in_the_session_goes_with_it() {
    let script = "set -m; sleep 1000 & sleep 1000 & echo $! > last; echo up; wait";
    let world = World::new(script).await;
    world.shows("up").await;
    let last: i32 = world.read("last").trim().parse().unwrap();
    let runs =
        || fs::read_to_string(format!("/proc/{last}/stat")).is_ok_and(|s| !s.contains(") Z "));
    assert!(runs(), "a job with a group of its own");
    world.terminal.end().await;
    assert!(!runs());
}

#[tokio::test]
async fn b_02_a_terminal_whose_last_handle_is_dropped_is_gone() {
    let world = World::new("echo up; sleep 1000").await;
    world.shows("up").await;
    let World { home: _home, terminal } = world;
    let mut drawing = terminal.subscribe(None);
    let pid = terminal.status().pid.unwrap();
    drop(terminal);
    let end = async { while drawing.next().await.is_some() {} };
    timeout(PATIENCE, end).await.unwrap();
    assert!(fs::metadata(format!("/proc/{pid}")).is_err());
}

#[tokio::test]
async fn s1_16_whoever_draws_along_sees_the_same_screen() {
    let script = "read -r go; i=0; while [ $i -lt 300 ]; do i=$((i+1)); \
                  printf '\\033[%d;%dH\\033[3%dm%d Grüße' $((i%24+1)) $((i%70+1)) $((i%8)) $i; done; printf end";
    let world = World::new(script).await;
    let mut drawing = world.terminal.subscribe(None);
    world.terminal.submit().await.unwrap();
    let mut screen = None;
    while let Some(piece) = timeout(PATIENCE, drawing.next()).await.unwrap() {
        match piece {
            Piece::Snapshot(snapshot) => {
                let mut fresh =
                    crate::screen::Screen::new(Word::default(), snapshot.cols, snapshot.rows)
                        .unwrap();
                fresh.feed(snapshot.dump.as_bytes());
                screen = Some(fresh);
            }
            Piece::Bytes { bytes, .. } => drop(screen.as_mut().unwrap().feed(&bytes)),
        }
        if screen.as_ref().unwrap().text().join("\n").contains("end") {
            break;
        }
    }
    let screen = screen.unwrap();
    assert_eq!(screen.text(), world.terminal.text());
    assert!(world.terminal.snapshot().dump.ends_with(&screen.dump()));
}

#[tokio::test]
async fn s1_16_whoever_is_slow_gets_a_fresh_snapshot() {
    let world =
        World::new("read -r go; head -c 400000 /dev/zero | tr '\\0' x; echo; echo end").await;
    let mut drawing = world.terminal.subscribe(None);
    let Some(Piece::Snapshot(start)) = drawing.next().await else { panic!() };
    world.terminal.submit().await.unwrap();
    world.until("ended", |terminal| terminal.status().state == State::Ended).await;
    let Some(Piece::Snapshot(fresh)) = drawing.next().await else { panic!() };
    assert!(fresh.seq > start.seq + 400_000);
    assert!(fresh.dump.contains("end"));
    let mut again = world.terminal.subscribe(Some(fresh.seq - 4));
    let Some(Piece::Bytes { seq, bytes }) = again.next().await else { panic!() };
    assert_eq!((seq, bytes.len()), (fresh.seq, 4));
}

#[tokio::test]
async fn b_12_what_a_terminal_showed_can_be_played_back() {
    let world = World::new("printf 'one\\r\\n\\033[1mtwo'; exit 0").await;
    world.until("ended", |terminal| terminal.status().state == State::Ended).await;
    world.terminal.end().await;
    let recording = Recording::read(&world.home.path().join("a.cast")).unwrap();
    let last = recording.screen_at(recording.length()).unwrap();
    assert_eq!(last.text(), ["one", "two"]);
    let note = RecordedEvent::Note("exit status 0".into());
    assert_eq!(recording.events.last().unwrap().event, note);
}

#[tokio::test]
async fn s1_03_a_ready_frame_makes_it_ready_and_silence_does_not() {
    let world = World::new(
        "printf '<<<ODEI:READY:{\"stage\":\"a\"}>>>'; while :; do printf .; sleep 0.001; done",
    )
    .await;
    world.until("ready", |terminal| terminal.status().state == State::Ready).await;
    let mut setup = quick();
    setup.patience.ready_timeout = Duration::from_millis(30);
    let world = World::with("sleep 1000", &setup).await;
    world.until("not ready", |terminal| terminal.status().state == State::NotReady).await;
}
