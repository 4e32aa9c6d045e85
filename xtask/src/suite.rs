//! Runs all tests, and those that failed once more, alone.
//!
//! Hundreds of tests drive real terminals, browsers and databases in parallel. A real fault shows
//! again when its test has the machine to itself; a failure that does not is chance, in the test or
//! in the program. It is reported as clearly as a fault and has to be fixed like one, but it does
//! not block an unrelated change. More than a few in one run are no chance.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::shell;

/// The most failures that can be chance.
const CHANCE: usize = 3;

/// The time without output after which cargo, once ended, has printed everything.
const QUIET: Duration = Duration::from_secs(1);

/// Runs every test of the workspace.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let (result, skipped) =
        all(root).map_err(|error| format!("cargo cannot be followed: {error}"))?;
    list(&skipped);
    let failed = match result {
        SuiteResult::Good => return Ok(()),
        SuiteResult::Bad(failed) => failed,
    };
    let count = failed.iter().map(|target| target.tests.len()).sum::<usize>();
    if count == 0 || count > CHANCE || failed.iter().any(|target| target.tests.is_empty()) {
        return Err(format!("{count} tests failed"));
    }
    eprintln!("\n=== once more, by itself ===");
    for Failed { target, tests } in &failed {
        // For one package alone cargo would build another program, with other features.
        let kind = target.split_whitespace().skip_while(|word| !word.starts_with("--"));
        let mut again = shell::cargo(root);
        again.args(["test", "--workspace"]).args(kind);
        again.args(["--", "--exact", "--test-threads", "1"]).args(tests);
        shell::run(&mut again).map_err(|error| error.to_string())?;
    }
    for test in failed.iter().flat_map(|target| &target.tests) {
        eprintln!("UNSTEADY: {test} failed, and held when it ran by itself. Mend it.");
    }
    Ok(())
}

/// Lists what this machine could not test: nobody shall take it for tested.
fn list(skipped: &BTreeSet<String>) {
    if !skipped.is_empty() {
        eprintln!("\n=== not tested on this machine ===");
        skipped.iter().for_each(|line| eprintln!("  {line}"));
    }
}

/// The outcome of a run of tests.
#[derive(PartialEq, Eq, Debug)]
enum SuiteResult {
    Good,
    Bad(Vec<Failed>),
}

/// The failed tests of a target.
#[derive(PartialEq, Eq, Debug)]
struct Failed {
    /// The target as cargo arguments: `-p stafette --test suite`.
    target: String,
    tests: Vec<String>,
}

/// Runs all tests with visible output; how they ended, and what was skipped.
fn all(root: &Path) -> io::Result<(SuiteResult, BTreeSet<String>)> {
    let mut cargo = shell::cargo(root);
    cargo.args(["test", "--workspace", "--no-fail-fast"]).stdin(Stdio::null());
    let (said, hers) = io::pipe()?;
    cargo.stdout(hers.try_clone()?).stderr(hers);
    eprintln!("$ cargo test --workspace --no-fail-fast");
    let mut running = cargo.spawn()?;
    // Our own ends of the pipe would keep it open forever.
    drop(cargo);
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(said).split(b'\n').map_while(Result::ok);
        lines.map(|line| tell.send(line)).find(Result::is_err);
    });
    let mut reader = Reader::default();
    let status = loop {
        match told.recv_timeout(QUIET) {
            Ok(line) => {
                let line = String::from_utf8_lossy(&line).into_owned();
                eprintln!("{line}");
                reader.read(&line);
            }
            Err(RecvTimeoutError::Disconnected) => break running.wait()?,
            // A process that a test left behind may hold the pipe: it is not waited for.
            Err(RecvTimeoutError::Timeout) => match running.try_wait()? {
                Some(status) => break status,
                None => continue,
            },
        }
    };
    let result = if status.success() { SuiteResult::Good } else { SuiteResult::Bad(reader.failed) };
    Ok((result, reader.skipped))
}

/// Reads the output of cargo and the tests.
#[derive(Default)]
struct Reader {
    /// The tests that failed in the running target.
    tests: Vec<String>,
    failed: Vec<Failed>,
    /// The tests that said that this machine lacks what they need, each with what that is.
    skipped: BTreeSet<String>,
}

impl Reader {
    fn read(&mut self, line: &str) {
        let test = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"));
        let target = line.split_once("to rerun pass `").and_then(|(_, rest)| rest.split_once('`'));
        // Tests that run by themselves have their name in front of what they say.
        if let Some((_, skipped)) = line.split_once("SKIPPED ") {
            self.skipped.insert(skipped.to_owned());
        } else if let Some(test) = test {
            self.tests.push(test.to_owned());
        } else if let Some((target, _)) = target {
            let tests = std::mem::take(&mut self.tests);
            self.failed.push(Failed { target: target.to_owned(), tests });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_skipped_is_read_with_its_reason() {
        let mut reader = Reader::default();
        let lines = [
            "test sandbox::b_08_one ... ok",
            "SKIPPED sandbox::b_08_two: this machine lacks scope: signals: not enforced",
            "test sandbox::b_08_two ... ok",
            "test b_08_three ... SKIPPED b_08_three: mounts: not enforced",
            "SKIPPED sandbox::b_08_two: this machine lacks scope: signals: not enforced",
        ];
        lines.iter().for_each(|line| reader.read(line));
        assert!(reader.failed.is_empty() && reader.tests.is_empty());
        let skipped: Vec<&str> = reader.skipped.iter().map(String::as_str).collect();
        assert_eq!(
            skipped,
            [
                "b_08_three: mounts: not enforced",
                "sandbox::b_08_two: this machine lacks scope: signals: not enforced",
            ]
        );
    }

    #[test]
    fn what_failed_is_read_with_where_it_is() {
        let said = "\
     Running unittests src/lib.rs (target/debug/deps/stafette_core-1)
test run::tests::a_run ... ok
test run::tests::a_loop ... FAILED
test result: FAILED. 1 passed; 1 failed; 0 ignored
error: test failed, to rerun pass `-p stafette-core --lib`
     Running tests/suite.rs (target/debug/deps/suite-1)
test attach::b_12_a_terminal ... FAILED
test attach::b_12_a_key ... FAILED
error: test failed, to rerun pass `-p stafette --test suite`

Caused by:
  process didn't exit successfully: `target/debug/deps/suite-1` (signal: 9, SIGKILL: kill)
error: 2 targets failed:
    `-p stafette-core --lib`
    `-p stafette --test suite`";
        let mut reader = Reader::default();
        said.lines().for_each(|line| reader.read(line));
        let failed = |target: &str, tests: &[&str]| Failed {
            target: target.to_owned(),
            tests: tests.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(
            reader.failed,
            [
                failed("-p stafette-core --lib", &["run::tests::a_loop"]),
                failed(
                    "-p stafette --test suite",
                    &["attach::b_12_a_terminal", "attach::b_12_a_key"]
                ),
            ]
        );
    }
}
