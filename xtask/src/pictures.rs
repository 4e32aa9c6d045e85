//! The pictures of the documents: a recording of the crash demo as an SVG that plays, and the page in
//! a browser. They are made by a command, so that they can show what the program does today.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::shell;

/// The folder of all pictures.
const FOLDER: &str = "docs/images";

/// The demo, with the same places to kill the daemon at every time.
const DEMO: [&str; 6] = ["demo", "--headless", "--crash", "--crashes=3", "--seed=1", "--dir"];

/// The sizes of the recording, in pixels.
const LINE: usize = 22;
const LETTER: f64 = 8.2;
const EDGE: usize = 20;
const WIDTH: usize = 860;

/// The longest pause that is shown, and the shortest, in seconds.
const PAUSES: [f64; 2] = [0.12, 1.0];

/// Makes all pictures anew.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let program = program(root)?;
    let lines = record(&program)?;
    let file = root.join(FOLDER).join("crash.svg");
    fs::write(&file, drawing(&lines)).map_err(|error| format!("{}: {error}", file.display()))?;
    let web = root.join("web");
    if !web.join("node_modules").exists() {
        shell::run(Command::new("npm").arg("ci").current_dir(&web)).map_err(|it| it.to_string())?;
    }
    let mut npm = Command::new("npm");
    npm.args(["run", "pictures"]).current_dir(&web).env("STAFETTE", &program);
    shell::run(&mut npm).map_err(|error| error.to_string())?;
    eprintln!("The pictures in {FOLDER} are new: look at them before you commit them");
    Ok(())
}

/// Returns the program to show: that of the variable `STAFETTE`, or a new build.
fn program(root: &Path) -> Result<PathBuf, String> {
    if let Some(program) = env::var_os("STAFETTE") {
        return Ok(program.into());
    }
    let mut build = shell::cargo(root);
    build.args(["build", "-p", "stafette"]);
    shell::run(&mut build).map_err(|error| error.to_string())?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("debug/stafette"))
}

/// A line of output, and the seconds since the line before it.
struct Line {
    pause: f64,
    text: String,
}

/// Runs the demo, and returns what it says.
fn record(program: &Path) -> Result<Vec<Line>, String> {
    let folder = env::temp_dir().join(format!("stafette-pictures-{}", std::process::id()));
    let failed = |error: io::Error| format!("the demo: {error}");
    let (said, its) = io::pipe().map_err(failed)?;
    let errors = its.try_clone().map_err(failed)?;
    let mut demo = Command::new(program)
        .args(DEMO)
        .arg(folder.join("demo"))
        .env("XDG_STATE_HOME", folder.join("state"))
        .stdin(Stdio::null())
        .stdout(its)
        .stderr(errors)
        .spawn()
        .map_err(failed)?;
    let mut lines = Vec::new();
    let mut last = Instant::now();
    for text in BufReader::new(said).lines() {
        let pause = last.elapsed().as_secs_f64();
        last = Instant::now();
        let text = text.map_err(failed)?;
        // What it leaves behind, and where, is not there for the reader.
        if !text.contains(&*folder.to_string_lossy()) {
            lines.push(Line { pause, text });
        }
    }
    let status = demo.wait().map_err(failed)?;
    let _ = fs::remove_dir_all(&folder);
    if status.success() { Ok(lines) } else { Err(format!("the demo ended with {status}")) }
}

/// Draws a terminal in which line after line appears. Where nothing moves, all of them are there.
fn drawing(lines: &[Line]) -> String {
    let height = (lines.len() + 1) * LINE + 2 * EDGE;
    let mut body = String::new();
    let mut at = 0.6;
    let command = "$ stafette demo --crash";
    body.push_str(&format!(
        "<text class=\"typed\" x=\"{EDGE}\" y=\"{}\">{command}</text>\n",
        EDGE + LINE
    ));
    for (number, line) in (2..).zip(lines) {
        at += line.pause.clamp(PAUSES[0], PAUSES[1]);
        let y = EDGE + number * LINE;
        let text = crate::site::escaped(&fitting(&line.text));
        body.push_str(&format!(
            "<text class=\"{}\" style=\"animation-delay:{at:.2}s\" x=\"{EDGE}\" y=\"{y}\" \
             xml:space=\"preserve\">{text}</text>\n",
            kind(&line.text)
        ));
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-label=\"stafette demo --crash, as it runs\">\n\
         <style>\n\
         text {{ font: 13.6px ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #d9d6cc; }}\n\
         .typed {{ fill: #ffffff; font-weight: 600; }}\n\
         .killed {{ fill: #f0938a; }}\n\
         .back {{ fill: #f2b75a; }}\n\
         .talk {{ fill: #a09c92; }}\n\
         .end {{ fill: #84cba6; }}\n\
         @keyframes appear {{ from {{ opacity: 0; }} }}\n\
         @media (prefers-reduced-motion: no-preference) {{ text[style] {{ animation: appear 0.01s both; }} }}\n\
         </style>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"8\" fill=\"#181815\"/>\n{body}</svg>\n"
    )
}

/// The end of a line that is too long is left out.
fn fitting(text: &str) -> String {
    let letters = ((WIDTH - 2 * EDGE) as f64 / LETTER) as usize;
    match text.chars().count() > letters {
        true => text.chars().take(letters - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// The colour of a line, by its first sign.
fn kind(text: &str) -> &'static str {
    match text.chars().next() {
        Some('✗') => "killed",
        Some('↻') => "back",
        Some('…') => "talk",
        _ if text.starts_with("succeeded") || text.contains(" crashes, ") => "end",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_shows_every_line_with_its_pause() {
        let line = |pause, text: &str| Line { pause, text: text.to_owned() };
        let svg = drawing(&[line(0.5, "✗ the daemon was <killed>"), line(9.0, &"x".repeat(200))]);
        assert!(svg.contains("class=\"killed\" style=\"animation-delay:1.10s\""), "{svg}");
        assert!(svg.contains("animation-delay:2.10s"), "long pauses are cut: {svg}");
        assert!(svg.contains("&lt;killed&gt;") && svg.contains("x…</text>"), "{svg}");
    }
}
