//! The one test command: every check in order, the cheap ones first, up to the first that fails.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::{deny, machine, packages, shell, site, suite, tidy};

/// The extent of the checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// All checks, the slow ones included.
    Full,
    /// What shows most mistakes in minutes: no docs, no licences, and only the tests inside of the
    /// crates, without those that drive programs, servers and browsers.
    Fast,
}

struct Step {
    name: &'static str,
    act: fn(&Path) -> Result<(), String>,
    /// The extents that have it.
    of: &'static [Extent],
    /// The advice if it fails.
    help: &'static str,
}

const BOTH: &[Extent] = &[Extent::Full, Extent::Fast];
const FULL: &[Extent] = &[Extent::Full];

const STEPS: [Step; 10] = [
    Step {
        name: "tools",
        act: machine::prepare,
        of: BOTH,
        help: "The tests cannot run without it.",
    },
    Step {
        name: "format",
        act: |root| cargo(root, &["fmt", "--all", "--check"]),
        of: BOTH,
        help: "`cargo fmt --all` puts it right.",
    },
    Step {
        name: "tidy",
        act: |root| if tidy::run(root) { Ok(()) } else { Err("the tree is not tidy".to_owned()) },
        of: BOTH,
        help: "Each line above says what to do. `cargo xtask tidy` runs only this.",
    },
    Step {
        name: "site",
        act: site::run,
        of: BOTH,
        help: "Each line above names a document and its link. `cargo xtask site` runs only this.",
    },
    Step {
        name: "lints",
        act: |root| {
            cargo(root, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
        },
        of: BOTH,
        help: "Mend it, or say why not with `#[expect(…, reason = \"…\")]`.",
    },
    Step {
        name: "docs",
        act: docs,
        of: FULL,
        help: "A link or an example in the docs is broken. `cargo doc --no-deps` runs only this.",
    },
    Step {
        name: "licences",
        act: deny::check,
        of: FULL,
        help: "Take another crate, or change `deny.toml` and say why.",
    },
    Step {
        name: "units",
        act: |root| cargo(root, &["test", "--workspace", "--lib", "--bins", "--no-fail-fast"]),
        of: &[Extent::Fast],
        help: "Run one again with `cargo test -p CRATE --lib NAME`.",
    },
    Step {
        name: "tests",
        act: suite::run,
        of: FULL,
        help: "Run one again with `cargo test -p CRATE NAME`.",
    },
    // After the tests, which build the program that is packaged.
    Step {
        name: "packages",
        act: packages::check,
        of: FULL,
        help: "`cargo xtask dist --binary target/debug/stafette --try` runs only this.",
    },
];

/// Runs every step, up to the first that fails.
pub(crate) fn run(root: &Path, extent: Extent) -> bool {
    let steps: Vec<&Step> = STEPS.iter().filter(|step| step.of.contains(&extent)).collect();
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
