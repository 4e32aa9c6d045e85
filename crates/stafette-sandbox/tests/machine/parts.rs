//! What this machine offers, as the system itself tells it and not the code under test: where it offers
//! something a test insists on it, and where it does not the test is listed as skipped.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use stafette_sandbox::Report;

/// The version of Landlock in the kernel; zero if it has none, or does not let us use it.
static LANDLOCK: LazyLock<u32> = LazyLock::new(|| {
    let asked = Command::new("perl").args(["-e", "print syscall(444, 0, 0, 1)"]).output();
    let said = asked.expect("perl").stdout;
    String::from_utf8_lossy(&said).trim().parse().unwrap_or_default()
});

/// Whether a process may have mounts and processes of its own.
static NAMESPACES: LazyLock<bool> = LazyLock::new(|| {
    let works = |how: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(how).args(["--mount", "--pid", "--fork", "--mount-proc", "true"]);
        unshare.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    works(&[]) || works(&["--user", "--map-root-user"])
});

/// Whether the kernel has filters for system calls.
static FILTERS: LazyLock<bool> = LazyLock::new(|| {
    let own = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    own.lines().any(|line| line.starts_with("Seccomp_filters:"))
});

/// Whether this machine offers a part of a sandbox.
pub(crate) fn offers(part: &str) -> bool {
    match part {
        "files" => *LANDLOCK >= 3,
        "mounts" => *NAMESPACES,
        "network" => *LANDLOCK >= 4,
        "scope" => *LANDLOCK >= 6,
        "calls" => *FILTERS,
        other => panic!("no part of a sandbox: {other}"),
    }
}

/// Whether a part of a sandbox took effect. It has to where this machine offers it.
#[allow(dead_code, reason = "not all tests look at parts")]
pub(crate) fn holds(report: &Report, name: &str) -> bool {
    let parts = report.parts();
    let (_, part) = parts.iter().find(|(part, _)| *part == name).expect("a part");
    assert!(part.is_whole() || !offers(name), "this machine offers {name}:\n{report}");
    if !part.is_whole() {
        skipped(&format!("{name}: {part}"));
    }
    part.is_whole()
}

/// Whether all parts took effect, as [`holds`] says.
#[allow(dead_code, reason = "not all tests look at parts")]
pub(crate) fn all_hold(report: &Report) -> bool {
    report.parts().iter().filter(|(name, _)| !holds(report, name)).count() == 0
}

/// Whether a whole sandbox was there, of which `gaps` is said to be missing. There are none where this
/// machine offers all of it.
#[allow(dead_code, reason = "not all tests look at the whole")]
pub(crate) fn is_whole(gaps: &[String]) -> bool {
    if gaps.is_empty() {
        return true;
    }
    assert!(!offers_whole(), "this machine offers all: {gaps:?}");
    false
}

/// Whether this machine offers a whole sandbox. A test that asks it runs nothing where it does not.
#[allow(dead_code, reason = "not all tests look at the whole")]
pub(crate) fn offers_whole() -> bool {
    let parts = ["files", "mounts", "scope", "calls"];
    let lacking: Vec<_> = parts.into_iter().filter(|part| !offers(part)).collect();
    if !lacking.is_empty() {
        skipped(&format!("this machine lacks {}", lacking.join(", ")));
    }
    lacking.is_empty()
}

/// Says which test, or part of one, does not run here. `cargo xtask test` lists them at its end. Written
/// past the harness, which shows nothing of a test that holds.
pub(crate) fn skipped(why: &str) {
    let thread = std::thread::current();
    let why = why.lines().next().unwrap_or_default();
    let line = format!("SKIPPED {}: {why}\n", thread.name().unwrap_or("a test"));
    std::io::stderr().write_all(line.as_bytes()).expect("said");
}
