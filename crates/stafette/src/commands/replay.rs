//! `replay`: plays the recording of an agent's terminal. Needs no daemon.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use stafette_agents::screen::Screen;
use stafette_agents::terminal::{RecordedEvent, Recording, RecordingLines};
use stafette_core::RunId;
use stafette_core::wire::frame::Word;
use stafette_server::terminals::Moment;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use super::Context;
use super::attach::broken;
use super::top::text::cell;
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::output::JsonLines;
use crate::project::Project;
use crate::window::{self, Canvas, Keys, Signals, Window, keys};

/// The longest pause without output that is kept.
const IDLE: Duration = Duration::from_secs(2);

/// The least time between two drawn frames.
const FRAME: Duration = Duration::from_millis(15);

pub(crate) async fn run(context: &Context, arguments: cli::Replay) -> Result<Exit, Failure> {
    let found = Found::find(&context.project()?, &arguments.run, &arguments.agent)?;
    if let Some(file) = &arguments.export {
        return export(context, &found, file);
    }
    let recording = Recording::read(&found.path).map_err(unreadable)?;
    if let Some(at) = arguments.at {
        return moment(context, &found, &recording, Duration::from_millis(at));
    }
    if context.output.json || !window::is_there() {
        return print(context, &found, &recording);
    }
    let end = play(&found, &recording, arguments.speed).await?;
    end.iter().for_each(|line| context.output.line(line));
    Ok(Exit::Ok)
}

fn unreadable(error: impl std::error::Error) -> Failure {
    Failure::failed("Cannot read the recording")
        .because(&error)
        .fix("restore it from a backup; `stafette log` still shows what the agent did")
}

fn odd(error: stafette_agents::screen::BadSize) -> Failure {
    Failure::failed("Cannot show the recording")
        .because(&error)
        .fix("write it to a file for another player: `--export FILE`")
}

/// A recording of the project.
#[derive(Debug)]
struct Found {
    run: RunId,
    agent: String,
    path: PathBuf,
}

impl Found {
    fn find(project: &Project, run: &str, agent: &str) -> Result<Self, Failure> {
        let all = recorded(&project.state()?.join("turns/recordings"));
        let fits = |id: &RunId| {
            let text = run.replace('-', "").to_lowercase();
            let digits = id.0.simple().to_string();
            run == "latest"
                || !text.is_empty()
                    && (digits.starts_with(&text)
                        || digits.ends_with(&text)
                        || id.short().starts_with(&text))
        };
        let mut runs: Vec<RunId> = all.iter().map(|found| found.run).filter(fits).collect();
        runs.sort_unstable();
        runs.dedup();
        if run == "latest" {
            // The newest one that has the agent, if any.
            let has = |id: &RunId| all.iter().any(|found| found.run == *id && found.agent == agent);
            let newest = runs.iter().rfind(|id| has(id)).or(runs.last()).copied();
            runs = newest.into_iter().collect();
        }
        let run = match runs.as_slice() {
            [] => {
                return Err(Failure::failed(format!("No run {run} has a recording"))
                    .why("only agents with `runner = \"pty\"` are recorded, from their first turn on")
                    .fix("`stafette status` lists the runs"));
            }
            [run] => *run,
            several => {
                return Err(Failure::usage(format!("`{run}` matches {} runs", several.len()))
                    .fix("give more digits"));
            }
        };
        let (found, others): (Vec<Found>, Vec<Found>) = all
            .into_iter()
            .filter(|found| found.run == run)
            .partition(|found| found.agent == agent);
        found.into_iter().next().ok_or_else(|| {
            let names: Vec<&str> = others.iter().map(|found| found.agent.as_str()).collect();
            Failure::failed(format!("There is no recording of {agent} in run {}", run.short()))
                .why(format!("recorded there: {}", names.join(", ")))
                .fix("name one of those")
        })
    }
}

/// All recordings in a folder; empty when it does not exist.
fn recorded(folder: &Path) -> Vec<Found> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all = Vec::new();
    for entry in entries(folder) {
        let name = entry.file_name();
        let Some(run) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        for file in entries(&entry.path()) {
            let name = file.file_name();
            if let Some(agent) = name.to_str().and_then(|name| name.strip_suffix(".cast")) {
                all.push(Found { run, agent: agent.to_owned(), path: file.path() });
            }
        }
    }
    all
}

/// Writes the recording as an asciicast that every player accepts.
fn export(context: &Context, found: &Found, file: &Path) -> Result<Exit, Failure> {
    let mut lines = RecordingLines::open(&found.path).map_err(unreadable)?;
    let unwritten = |error: io::Error| {
        Failure::failed(format!("Cannot write {}", file.display()))
            .because(&error)
            .fix("name a file that you may write to, or `-` for standard output")
    };
    let printed = file == Path::new("-");
    let mut out: Box<dyn Write> = match printed {
        true => Box::new(JsonLines::default()),
        false => Box::new(io::BufWriter::new(File::create(file).map_err(unwritten)?)),
    };
    let mut size = 0;
    while let Some(line) = lines.next_line().map_err(unreadable)? {
        size += line.len();
        out.write_all(&line).map_err(unwritten)?;
    }
    out.flush().map_err(unwritten)?;
    match (printed, context.output.json) {
        (true, _) => {}
        (false, true) => context.output.data(&json!({ "file": file, "bytes": size })),
        (false, false) => {
            context.output.say(format!("{} is written, {size} bytes", file.display()))
        }
    }
    Ok(Exit::Ok)
}

/// Prints the screen at a moment.
fn moment(
    context: &Context,
    found: &Found,
    recording: &Recording,
    at: Duration,
) -> Result<Exit, Failure> {
    let moment = Moment::of(recording, at).map_err(odd)?;
    if context.output.json {
        let mut value = json!(moment);
        value["run"] = json!(found.run);
        value["agent"] = json!(found.agent);
        context.output.data(&value);
    } else {
        moment.text.iter().for_each(|line| context.output.line(line));
    }
    Ok(Exit::Ok)
}

/// Prints all lines that were visible.
fn print(context: &Context, found: &Found, recording: &Recording) -> Result<Exit, Failure> {
    let text = recording.transcript().map_err(odd)?;
    match context.output.json {
        true => {
            let length = recording.milliseconds();
            context.output.data(&json!({
                "run": found.run, "agent": found.agent, "length": length, "text": text,
            }));
        }
        false => text.iter().for_each(|line| context.output.line(line)),
    }
    Ok(Exit::Ok)
}

/// Plays it, faster or slower, and returns the screen at the end.
async fn play(found: &Found, recording: &Recording, speed: f64) -> Result<Vec<String>, Failure> {
    let header = &recording.header;
    let mut screen = Screen::new(Word::default(), header.width, header.height).map_err(odd)?;
    let mut signals = Signals::new().map_err(broken)?;
    let mut resized = signal(SignalKind::window_change()).map_err(broken)?;
    let window = Window::take().map_err(broken)?;
    let mut typed = Keys::read();
    let mut canvas = Canvas::new(window.size());
    let mut clock = Clock::new(speed);
    let mut note = String::new();
    let mut drawn_at: Option<Instant> = None;
    let mut events = recording.events.iter();
    let mut next = events.next();
    loop {
        let due = next.map_or_else(Instant::now, |next| clock.due(next.at));
        // Events within one frame are drawn with the next.
        if next.is_none() || due > Instant::now() || drawn_at.is_none_or(|at| at.elapsed() >= FRAME)
        {
            let line = status(found, recording, &clock, &note);
            let (columns, _) = canvas.room();
            let text = canvas.draw(&screen, &cell(&line, columns.into()));
            window.write(&text).map_err(broken)?;
            drawn_at = Some(Instant::now());
        }
        let Some(timed) = next else { break };
        tokio::select! {
            biased;
            () = signals.any() => break,
            keys = typed.next() => match keys {
                Some(keys) if leaves(&keys) => break,
                Some(keys) if keys.contains(&b' ') => clock.pause(),
                Some(_) => {}
                None => break,
            },
            _ = resized.recv() => {
                canvas.resize(window.size());
                drawn_at = None;
            }
            () = sleep_until(due), if !clock.paused => {
                clock.reach(timed.at);
                if let RecordedEvent::Note(text) = &timed.event {
                    note.clone_from(text);
                }
                timed.event.show(&mut screen).map_err(odd)?;
                next = events.next();
            }
        }
    }
    drop(typed);
    drop(window);
    Ok(screen.text())
}

fn leaves(typed: &[u8]) -> bool {
    typed.iter().any(|key| matches!(*key, keys::LEAVE | keys::STOP | b'q'))
}

fn status(found: &Found, recording: &Recording, clock: &Clock, note: &str) -> String {
    let time = |at: Duration| format!("{}:{:02}", at.as_secs() / 60, at.as_secs() % 60);
    let mut parts = vec![
        found.agent.clone(),
        format!("{} of {}", time(clock.at), time(recording.length())),
        if clock.paused { "paused" } else { "replay" }.to_owned(),
        "space pauses".to_owned(),
        "Ctrl-q leaves".to_owned(),
    ];
    parts.extend((!note.is_empty()).then(|| note.to_owned()));
    format!(" {}", parts.join(" · "))
}

/// The playback time: idle gaps are shortened, and it can be paused.
#[derive(Debug)]
struct Clock {
    speed: f64,
    /// The position in the recording, and the time at which it was reached.
    at: Duration,
    since: Instant,
    paused: bool,
}

impl Clock {
    fn new(speed: f64) -> Self {
        Clock { speed, at: Duration::ZERO, since: Instant::now(), paused: false }
    }

    /// The time at which the next event is due, unless playback changes.
    fn due(&self, next: Duration) -> Instant {
        let gap = next.saturating_sub(self.at).min(IDLE);
        self.since + gap.div_f64(self.speed)
    }

    fn reach(&mut self, moment: Duration) {
        self.since = self.due(moment);
        self.at = moment;
    }

    /// Pauses or continues playback.
    fn pause(&mut self) {
        self.paused = !self.paused;
        self.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_12_idle_gaps_are_short_and_speed_makes_everything_faster() {
        let mut clock = Clock::new(4.0);
        let began = clock.since;
        let seconds = Duration::from_secs;
        assert_eq!(clock.due(seconds(1)) - began, Duration::from_millis(250));
        clock.reach(seconds(1));
        assert_eq!(clock.due(seconds(3600)) - began, Duration::from_millis(750));
        clock.reach(seconds(3600));
        assert_eq!(clock.due(seconds(3600)) - began, Duration::from_millis(750));
    }
}
