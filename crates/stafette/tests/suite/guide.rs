//! The documents are true: every console block in them is typed, and says what it shows.

use std::fs;
use std::path::Path;

use crate::world::{World, copy, program, repository};

/// A command of a document, and what it is said to print.
struct Step {
    line: usize,
    command: String,
    shown: Vec<String>,
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            line => match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step {
                    line: number + 1,
                    command: command.to_owned(),
                    shown: Vec::new(),
                }),
                (None, Some(step)) => step.shown.push(line.to_owned()),
                (None, None) => panic!("line {}: output before a command", number + 1),
            },
        }
    }
    steps
}

/// `…` stands for anything, within a line or, alone, for any lines.
fn fits(shown: &[String], said: &[&str]) -> bool {
    match (shown.split_first(), said.split_first()) {
        (None, None) => true,
        (Some((wild, rest)), _) if wild == "…" => {
            (0..=said.len()).any(|skip| fits(rest, &said[skip..]))
        }
        (Some((line, rest)), Some((text, more))) => line_fits(line, text) && fits(rest, more),
        _ => false,
    }
}

fn line_fits(shown: &str, said: &str) -> bool {
    let parts: Vec<&str> = shown.split('…').collect();
    let [first, middle @ .., last] = parts.as_slice() else { return shown == said };
    let Some(mut rest) = said.strip_prefix(first) else { return false };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn act_out(document: &str) {
    let text = fs::read_to_string(repository().join(document)).expect(document);
    let world = World::new();
    copy(&repository().join("examples"), &world.project().join("examples"));
    let bin = Path::new(program()).parent().expect("a folder").display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap_or_default());
    let mut folder = world.project();
    let steps = steps(&text);
    assert!(!steps.is_empty(), "{document} shows nothing");
    for step in &steps {
        if let Some(into) = step.command.strip_prefix("cd ") {
            folder = folder.join(into);
            continue;
        }
        let output = world
            .command("sh")
            .args(["-c", &format!("{{ {}; }} 2>&1", step.command)])
            .env("PATH", &path)
            .current_dir(&folder)
            .output()
            .expect("sh");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        // Which a busy machine says, and a guide does not show.
        let is_waiting = |line: &&str| line.starts_with("waiting for the daemon");
        let lines = said.lines().map(str::trim_end).filter(|line| !is_waiting(line));
        let lines: Vec<&str> = lines.collect();
        assert!(
            fits(&step.shown, &lines),
            "{document}:{} `{}` said:\n{said}\nand not:\n{}",
            step.line,
            step.command,
            step.shown.join("\n")
        );
    }
    for example in
        ["report", "hooks", "refusals/unknown", "refusals/circular", "refusals/limit", "terminal"]
    {
        let project = world.project().join("examples").join(example);
        let _ = world.command(program()).arg("down").arg("--project").arg(project).output();
    }
}

#[test]
fn the_guide_is_true() {
    act_out("docs/guide.md");
}
