//! The one test command: every check in order, the cheap ones first, up to the first that fails.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::{deny, machine, packages, shell, suite, tidy};

/// The extent of the checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// All checks, the slow ones included.
    Full,
    /// Only checks of what changes from edit to edit.
    Fast,
}

struct Step {
    name: &'static str,
    act: fn(&Path) -> Result<(), String>,
    /// True if the fast extent leaves it out.
    slow: bool,
    /// The advice if it fails.
    help: &'static str,
}

const STEPS: [Step; 8] = [
    Step {
        name: "tools",
        act: machine::prepare,
        slow: false,
        help: "The tests cannot run without it.",
    },
    Step {
        name: "format",
        act: |root| cargo(root, &["fmt", "--all", "--check"]),
        slow: false,
        help: "`cargo fmt --all` puts it right.",
    },
    Step {
        name: "tidy",
        act: |root| if tidy::run(root) { Ok(()) } else { Err("the tree is not tidy".to_owned()) },
        slow: false,
        help: "Each line above says what to do. `cargo xtask tidy` runs only this.",
    },
    Step {
        name: "lints",
        act: |root| {
            cargo(root, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
        },
        slow: false,
        help: "Mend it, or say why not with `#[expect(…, reason = \"…\")]`.",
    },
    Step {
        name: "docs",
        act: docs,
        slow: true,
        help: "A link or an example in the docs is broken. `cargo doc --no-deps` runs only this.",
    },
    Step {
        name: "licences",
        act: deny::check,
        slow: true,
        help: "Take another crate, or change `deny.toml` and say why.",
    },
    Step {
        name: "tests",
        act: suite::run,
        slow: false,
        help: "Run one again with `cargo test -p CRATE NAME`.",
    },
    // After the tests, which build the program that is packaged.
    Step {
        name: "packages",
        act: packages::check,
        slow: true,
        help: "`cargo xtask dist --binary target/debug/stafette --try` runs only this.",
    },
];

/// Runs every step, up to the first that fails.
pub(crate) fn run(root: &Path, extent: Extent) -> bool {
    let steps: Vec<&Step> =
        STEPS.iter().filter(|step| extent == Extent::Full || !step.slow).collect();
    let mut summary = Vec::new();
    let mut trouble = None;
    for (number, step) in (1..).zip(&steps) {
        if trouble.is_some() {
            summary.push(format!("  {:<9} not run", step.name));
            continue;
        }
        eprintln!("\n=== {number}/{} {} ===", steps.len(), step.name);
        let start = Instant::now();
        let result = (step.act)(root);
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        summary.push(format!("  {:<9} {verdict:<6} {:>8}", step.name, seconds(start.elapsed())));
        trouble = result.err().map(|error| format!("{}: {error}. {}", step.name, step.help));
    }
    eprintln!("\n=== summary ===\n{}", summary.join("\n"));
    match &trouble {
        None => eprintln!("\nEverything holds."),
        Some(trouble) => eprintln!("\n{trouble}"),
    }
    trouble.is_none()
}

fn docs(root: &Path) -> Result<(), String> {
    let mut doc = shell::cargo(root);
    doc.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    shell::run(&mut doc).map_err(|error| error.to_string())
}

fn cargo(root: &Path, words: &[&str]) -> Result<(), String> {
    shell::run(shell::cargo(root).args(words)).map_err(|error| error.to_string())
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
