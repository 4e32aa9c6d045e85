//! A person in an agent's terminal: looks, types, leaves, and sees later what was.

use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use serde_json::Value;

use crate::terminal::Terminal;
use crate::web::{CLOSE, frame, switched};
use crate::world::{PATIENCE, Said, World, program};

/// Ctrl-q.
const LEAVE: &str = "\x11";

/// A shell that stays and says what it hears, and an agent that has no terminal. Nothing is typed
/// before the shell is there.
const WORKFLOW: &str = r#"
[workflow]
name = "shell"
entry = "worker"
trust_bare_frames = true
[agents.worker]
runner = "pty"
command = ["sh", "worker.sh"]
[agents.clerk]
runner = "exec"
result = "exit"
command = ["true"]
[[routes]]
from = "worker"
to = "clerk"
[limits]
ready_timeout = "2m"
accept_timeout = "5m"
[retries]
backoff = "10ms"
"#;

const WORKER: &str = r#"
stty -echo
echo $$ >> pids
echo "up as $$"
while IFS= read -r line; do
    echo "heard $line"
    case $line in
    size) echo "size is $(stty size)" ;;
    echo) stty echo ;;
    flood) yes 0123456789012345678901234567890123456789 | head -c 3000000; echo "all of it" ;;
    deaf) stty raw; echo deaf; sleep 1000 ;;
    finish) echo '<<<ODEI:RESULT:{"status":"resolved","summary":"well done"}>>>' ;;
    esac
done
"#;

fn world() -> World {
    World::with(WORKFLOW, &[("worker.sh", WORKER)])
}

/// A world in which the worker is at work in its terminal.
fn working() -> World {
    let world = world();
    begins(&world);
    world
}

/// Gives the worker its work, and waits until it has heard all of it.
fn begins(world: &World) {
    world.run(&["run", "--detach", "Wait for the bell"]).ok();
    until(world, |said| {
        let heard = said.out.rsplit_once("heard The same key");
        heard.is_some_and(|(_, rest)| rest.contains("not be done twice"))
    });
}

/// Waits until the worker's terminal shows these words; all of it.
fn shows(world: &World, words: &str) -> Value {
    until(world, |said| said.out.contains(words)).json()
}

fn until(world: &World, so: impl Fn(&Said) -> bool) -> Said {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let said = world.run(&["attach", "worker", "--json"]);
        if so(&said) {
            return said;
        }
        assert!(Instant::now() < deadline, "it never came: {said:?}");
    }
}

/// Attaches as a person does, from a shell that tells how its terminal was before and after.
fn attach(world: &World, flags: &str, size: (u16, u16)) -> Terminal {
    let mut shell = world.command("sh");
    let line =
        format!("echo before=$(stty -g); $0 attach worker {flags}; echo left=$? after=$(stty -g)");
    shell.args(["-c", &line, program()]);
    Terminal::start(shell, size.0, size.1)
}

/// Checks that the user has his terminal as it was, and returns what was said to him.
fn is_restored(terminal: Terminal, code: i32) -> String {
    let (_, written) = terminal.ends();
    let (taken, said) = written.rsplit_once("\x1b[?1049l").expect("the screen is given back");
    let word = |text: &str, name: &str| {
        let at = text.find(name).expect(name) + name.len();
        text[at..].split_whitespace().next().unwrap_or_default().to_owned()
    };
    assert_eq!(word(taken, "before="), word(said, "after="), "{written:?}");
    assert_eq!(word(said, "left="), code.to_string(), "{said:?}");
    assert!(taken.ends_with("\x1b[?25h") && taken.contains("\x1b[?1000l"), "{taken:?}");
    said.to_owned()
}

#[test]
fn s1_16_looking_types_nothing_and_ctrl_q_gives_the_terminal_back() {
    let world = working();
    let mut terminal = attach(&world, "", (80, 12));
    terminal.sees("heard The same key");
    terminal.sees("worker · working · read-only · Ctrl-q leaves");
    terminal.sees("80×11 of 120×40");
    terminal.types("never\r");
    terminal.sees("to type, attach with --write");
    world.run(&["send", "--type", "worker", "something else"]).ok();
    terminal.sees("heard something else");
    terminal.types(LEAVE);
    let said = is_restored(terminal, 0);
    assert!(said.contains("left; worker goes on"), "{said}");
    let shown = shows(&world, "something else");
    assert!(!shown.to_string().contains("never"), "{shown}");
    assert_eq!((&shown["cols"], &shown["rows"]), (&120.into(), &40.into()), "it kept its size");
}

#[test]
fn s1_16_a_writer_types_and_his_window_is_the_size_until_he_leaves() {
    let world = working();
    let mut terminal = attach(&world, "--write", (60, 15));
    terminal.sees("worker · working · writing · Ctrl-q leaves");
    terminal.types("hallo wörld\rsize\r");
    terminal.sees("heard hallo wörld");
    terminal.sees("size is 14 60");
    terminal.resizes(50, 11);
    let deadline = Instant::now() + PATIENCE;
    while shows(&world, "hallo")["cols"] != 50 {
        assert!(Instant::now() < deadline, "the size does not follow");
    }
    terminal.types("size\r");
    terminal.sees("size is 10 50");
    // What comes with Ctrl-q before it still counts.
    terminal.types(&format!("bye\r{LEAVE}"));
    is_restored(terminal, 0);
    shows(&world, "heard bye");
    until(&world, |said| said.json()["cols"] == 120 && said.json()["rows"] == 40);
}

#[test]
fn s1_16_a_signal_gives_the_terminal_back() {
    let world = working();
    for signal in ["-TERM", "-HUP", "-INT", "-QUIT"] {
        let mut command = world.command(program());
        command.args(["attach", "worker", "--write"]);
        let mut terminal = Terminal::start(command, 70, 12);
        terminal.sees("writing");
        let pid = terminal.pid().to_string();
        assert!(world.command("kill").args([signal, &pid]).status().expect("killed").success());
        let (code, written) = terminal.ends();
        assert_eq!(code, Some(0), "{signal}");
        assert!(written.contains("\x1b[?25h\x1b[?1049l"), "{signal}: {written:?}");
    }
}

#[test]
fn s1_15_a_daemon_that_dies_leaves_a_sane_terminal_and_says_so() {
    let world = world();
    let pid = world.run(&["up", "--json"]).ok().json()["pid"].to_string();
    begins(&world);
    let mut terminal = attach(&world, "--write", (70, 12));
    terminal.sees("heard The same key");
    assert!(world.command("kill").args(["-KILL", &pid]).status().expect("killed").success());
    let said = is_restored(terminal, 7);
    assert!(said.contains("The daemon went away") && said.contains("stafette up"), "{said}");
    let said = world.run(&["attach", "worker"]);
    assert_eq!(said.code, 7, "{said:?}");
    assert!(said.err.contains("stafette up"), "{said:?}");
}

#[test]
fn s1_16_a_message_is_sent_when_it_is_there_to_be_seen() {
    let world = working();
    let sent = world.run(&["send", "--type", "worker", "one thing", "--json"]).ok().json();
    assert_eq!((&sent["agent"], &sent["submitted"]), (&"worker".into(), &true.into()));
    shows(&world, "heard one thing");
    world.run(&["send", "worker", "half a", "--no-submit"]).ok();
    world.run_with(&["send", "--type", "worker", "-"], b" sentence\n", &[]).ok();
    shows(&world, "heard half a sentence");
    let said = world.run(&["send", "--type", "worker", " "]);
    assert_eq!(said.code, 2, "{said:?}");
    // A program that shows nothing of it may not have it, so Enter is not pressed.
    world.run(&["send", "--type", "worker", "deaf"]).ok();
    shows(&world, "\"deaf");
    let said = world.run(&["send", "--type", "worker", "do you hear me"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("Enter was not pressed"), "{said:?}");
    assert!(said.err.contains("stafette restart worker"), "{said:?}");
}

#[test]
fn s1_16_who_has_no_terminal_is_told_with_what_to_do() {
    let world = working();
    for command in [vec!["attach"], vec!["restart"], vec!["send", "--no-submit"]] {
        let type_for = |agent: &str| {
            let mut words = vec![command[0], agent];
            words.extend(command[1..].iter().map(|_| "hello"));
            words.extend(&command[1..]);
            world.run(&words)
        };
        let said = type_for("nobody");
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.err.contains("has no agent `nobody`"), "{said:?}");
        assert!(said.err.contains("in a terminal now: worker"), "{said:?}");
        let said = type_for("clerk");
        assert!(said.err.contains("its runner is `exec`"), "{said:?}");
    }
    let said = world.run(&["replay", "latest", "clerk"]);
    assert!(said.err.contains("recorded there: worker"), "{said:?}");
    let said = world.run(&["replay", "ffff", "worker"]);
    assert!(said.err.contains("stafette status"), "{said:?}");
}

#[test]
fn s1_15_a_restart_gives_a_new_process_to_the_same_view() {
    let world = working();
    let mut terminal = attach(&world, "", (120, 45));
    terminal.sees("heard The same key");
    let before = shows(&world, "up as")["pid"].clone();
    let again = world.run(&["restart", "worker", "--json"]).ok().json()["pid"].clone();
    assert_ne!(before, again);
    terminal.sees(&format!("up as {again}"));
    let pids = world.read("pids");
    assert!(pids.lines().eq([before.to_string(), again.to_string()]), "{pids}");
    // The turn was interrupted, and is given to the new process.
    terminal.sees("heard The same key");
    terminal.types(LEAVE);
    is_restored(terminal, 0);
}

#[test]
fn b_12_what_a_terminal_showed_can_be_seen_without_a_daemon() {
    let world = working();
    let mut watched = attach(&world, "", (70, 12));
    watched.sees("heard The same key");
    world.run(&["send", "--type", "worker", "finish"]).ok();
    world.run(&["resume"]).ok();
    let said = is_restored(watched, 0);
    assert!(said.contains("the terminal of worker has ended"), "{said}");
    let said = world.run(&["attach", "worker"]);
    assert!(said.err.contains("stafette replay"), "{said:?}");
    world.run(&["down"]).ok();

    let printed = world.run(&["replay", "latest", "worker"]).ok().out;
    assert!(printed.starts_with("up as ") && printed.contains("heard finish"), "{printed}");
    let whole = world.run(&["replay", "latest", "worker", "--json"]).ok().json();
    let length = whole["length"].as_u64().expect("a length");
    let at = |ms: u64| {
        let ms = ms.to_string();
        world.run(&["replay", "latest", "worker", "--at", &ms, "--json"]).ok().json()
    };
    assert!(at(length).to_string().contains("heard finish"));
    assert!(!at(0).to_string().contains("heard finish"));

    world.run(&["replay", "latest", "worker", "--export", "worker.cast"]).ok();
    let exported = world.read("worker.cast");
    let mut lines = exported.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let header = lines.next().expect("a header");
    assert_eq!((&header["version"], &header["width"]), (&2.into(), &120.into()));
    assert!(lines.all(|event| event.as_array().is_some_and(|event| event.len() == 3)));
    let piped = world.run(&["replay", "latest", "worker", "--export", "-"]).ok();
    assert_eq!(piped.out, exported);

    let mut shell = world.command("sh");
    shell.args(["-c", "$0 replay latest worker --speed 20; echo left=$?", program()]);
    let (_, written) = Terminal::start(shell, 80, 20).ends();
    let (shown, after) = written.rsplit_once("\x1b[?1049l").expect("the screen is given back");
    assert!(shown.contains("up as") && shown.contains("Ctrl-q leaves"), "{shown:?}");
    assert!(after.contains("heard finish") && after.contains("left=0"), "{after:?}");
}

#[test]
fn s1_16_the_terminal_of_an_agent_is_two_keys_away_in_top() {
    let world = working();
    let mut top = world.command(program());
    top.arg("top");
    let mut terminal = Terminal::start(top, 80, 24);
    terminal.sees("worker");
    terminal.types("\r");
    terminal.sees("Enter terminal");
    terminal.types("\r");
    terminal.sees("worker · working · read-only · Ctrl-q leaves");
    terminal.types(LEAVE);
    terminal.sees("left; worker goes on");
    // Every key is for the list again.
    terminal.types("\x1b");
    terminal.sees("Enter open");
    terminal.types("q");
    assert_eq!(terminal.ends().0, Some(0));
}

/// A client of the socket, as far as a test needs one.
struct Client(BufReader<UnixStream>);

impl Client {
    fn open(world: &World, query: &str) -> Self {
        let socket = UnixStream::connect(world.state().join("daemon.sock"));
        let mut socket = socket.expect("a daemon");
        socket.set_read_timeout(Some(PATIENCE)).expect("a limit");
        let request = format!(
            "GET /v1/runs/latest/terminals/worker/live{query} HTTP/1.1\r\nHost: localhost\r\n\
             Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).expect("asked");
        let mut stream = BufReader::new(socket);
        switched(&mut stream);
        Client(stream)
    }

    /// Sends a short text, behind a mask that changes nothing.
    fn says(&mut self, text: &str) {
        let length = u8::try_from(text.len()).ok().filter(|length| *length < 126);
        let head = [0x81, 0x80 | length.expect("a short text"), 0, 0, 0, 0];
        self.0.get_mut().write_all(&[&head, text.as_bytes()].concat()).expect("sent");
    }

    /// Reads until these words have come, in how many pieces they ever do, or to the end.
    fn reads(&mut self, words: &str) -> String {
        let mut all = Vec::new();
        loop {
            let (kind, body) = frame(&mut self.0);
            all.extend(body);
            let text = String::from_utf8_lossy(&all);
            if kind == CLOSE || text.contains(words) {
                return text.into_owned();
            }
        }
    }
}

#[test]
fn s1_16_a_reader_who_does_not_read_holds_nobody_up_and_begins_anew() {
    let world = working();
    let mut lazy = Client::open(&world, "");
    lazy.reads("\"type\":\"snapshot\"");
    world.run(&["send", "--type", "worker", "flood"]).ok();
    shows(&world, "all of it");
    let rest = lazy.reads("\"type\":\"snapshot\"");
    assert!(rest.len() < 2_000_000, "3 MB were printed, {} came", rest.len());
    assert!(rest.contains("\"type\":\"snapshot\""));
    // And from there on it is there again.
    world.run(&["send", "--type", "worker", "are you there"]).ok();
    lazy.reads("heard are you there");
}

#[test]
fn s1_16_a_client_that_only_reads_cannot_type() {
    let world = working();
    let mut client = Client::open(&world, "?write=false");
    client.reads("\"type\":\"snapshot\"");
    client.says(r#"{"type":"input","data":"never\r"}"#);
    assert!(client.reads("this client only reads").contains("this client only reads"));
    let mut writer = Client::open(&world, "?write=true");
    writer.reads("\"type\":\"snapshot\"");
    writer.says(r#"{"type":"input","data":"now\r"}"#);
    writer.reads("heard now");
    writer.says("no wish");
    assert!(writer.reads("this is no wish").contains("this is no wish"));
    let shown = shows(&world, "heard now");
    assert!(!shown.to_string().contains("never"), "{shown}");
}

/// Asks the daemon as any program can.
fn ask(world: &World, method: &str, path: &str) -> String {
    let socket = UnixStream::connect(world.state().join("daemon.sock"));
    let mut socket = socket.expect("a daemon");
    socket.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let request =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).expect("asked");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("answered");
    answer
}

/// What is answered as soon as these words are in it.
fn shortly(world: &World, path: &str, words: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = ask(world, "GET", path);
        if answer.contains(words) {
            return answer;
        }
        assert!(Instant::now() < deadline, "{words:?} never came: {answer}");
    }
}

/// All that was printed in a recording, in how many pieces it ever came.
fn printed(recording: &str) -> String {
    let pieces = recording.lines().filter_map(|line| serde_json::from_str(line).ok());
    pieces
        .filter_map(|(_, kind, text): (f64, String, String)| (kind == "o").then_some(text))
        .collect()
}

#[test]
fn b_12_what_the_command_line_can_do_every_program_can() {
    let world = working();
    let all = shortly(&world, "/v1/terminals?run=latest", r#""state":"working""#);
    assert!(all.contains(r#""agent":"worker""#), "{all}");
    let at = |rest: &str| format!("/v1/runs/latest/terminals/worker{rest}");
    // What is recorded may be held back for a moment: a secret could go on there.
    let then = shortly(&world, &at("/recording?until=999999"), "heard Wait for the bell");
    assert!(then.contains(r#""cols":120"#), "{then}");
    let recording = ask(&world, "GET", &at("/recording"));
    assert!(recording.contains("application/x-asciicast"), "{recording}");
    assert!(recording.contains(r#"{"version":2,"width":120"#), "{recording}");
    assert!(printed(&recording).contains("heard Wait for the bell"), "{recording}");
    let none = ask(&world, "GET", "/v1/runs/latest/terminals/clerk/recording");
    assert!(none.contains(r#""code":"no_recording""#), "{none}");
    let plain = ask(&world, "GET", &at("/live"));
    assert!(plain.contains("426") && plain.contains("not_a_websocket"), "{plain}");
    // Ctrl-C ends a shell that reads, and it is started again.
    let before = shows(&world, "up as")["pid"].clone();
    assert!(ask(&world, "POST", &at("/interrupt")).contains("200 OK"));
    until(&world, |said| {
        said.code == 0 && !said.json()["pid"].is_null() && said.json()["pid"] != before
    });
}
