//! The page: its types, its reducers, and itself in a real browser at a real daemon's door.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use stafette_testkit::radicale::{PASSWORD, USER};
use stafette_testkit::tools;

use crate::stages::Office;
use crate::world::{copy, program, repository};

/// How long the flows may take in all.
const FLOWS: Duration = Duration::from_secs(1500);
/// How long a check of the sources may take.
const CHECK: Duration = Duration::from_secs(900);

/// What is copied of `web/`, which is only read.
const SOURCES: [&str; 4] = ["src", "test", "e2e", "public"];
const FILES: [&str; 5] =
    ["index.html", "package.json", "tsconfig.json", "vite.config.ts", "vitest.config.ts"];

/// The sources of the page beside the packages that they need.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let web = repository().join("web");
        let read = |name: &str| fs::read_to_string(web.join(name)).expect("a file of web/");
        let packages = tools::node("web", &read("package.json"), &read("package-lock.json"));
        let packages = packages.unwrap_or_else(|error| panic!("{error}"));
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("web");
        fs::create_dir(&place).expect("a folder");
        for name in SOURCES {
            copy(&web.join(name), &place.join(name));
        }
        for name in FILES {
            fs::copy(web.join(name), place.join(name)).expect("copied");
        }
        link(&packages.join("node_modules"), &place.join("node_modules"));
        link(&repository().join("docs"), &folder.path().join("docs"));
        Bench { folder }
    }

    fn web(&self) -> PathBuf {
        self.folder.path().join("web")
    }

    /// Runs a program of the packages to its end; what it said.
    fn run(&self, words: &[&str], patience: Duration) -> String {
        self.run_with(words, &[], patience)
    }

    /// The same with more in the environment.
    fn run_with(&self, words: &[&str], env: &[(&str, &str)], patience: Duration) -> String {
        let chromium = tools::debian("chromium", "chromium");
        let chromium = chromium.unwrap_or_else(|error| panic!("{error}"));
        let said = self.folder.path().join("said.txt");
        let out = File::create(&said).expect("a file");
        let errors = out.try_clone().expect("the same file");
        let mut child = Command::new(self.web().join("node_modules/.bin").join(words[0]))
            .args(&words[1..])
            .current_dir(self.web())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.folder.path())
            .env("NO_COLOR", "1")
            .env("STAFETTE", program())
            .env("STAFETTE_CHROMIUM", chromium)
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .expect("it starts");
        let group = child.id().to_string();
        let (ended, end) = mpsc::channel();
        std::thread::spawn(move || ended.send(child.wait()));
        let status = end.recv_timeout(patience);
        if status.is_err() {
            // The browser and the daemons are of the same group.
            let _ = Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).status();
        }
        let text = fs::read_to_string(&said).unwrap_or_default();
        let status = status
            .unwrap_or_else(|_| panic!("{words:?} took more than {patience:?}:\n{text}"))
            .expect("a status");
        assert!(status.success(), "{words:?} ended with {status}:\n{text}");
        text
    }
}

fn link(from: &Path, to: &Path) {
    let from = from.canonicalize().expect("it is there");
    std::os::unix::fs::symlink(from, to).expect("a link");
}

#[test]
fn the_page_fits_its_types_and_they_are_those_of_the_api() {
    let bench = Bench::new();
    bench.run(&["openapi-typescript", "../docs/openapi.json", "-o", "src/api/schema.ts"], CHECK);
    bench.run(&["tsc", "--noEmit"], CHECK);
    bench.run(&["vitest", "run"], CHECK);
}

#[test]
fn b_27_the_page_in_the_program_is_built_from_its_sources() {
    let bench = Bench::new();
    bench.run(&["vite", "build"], CHECK);
    let built = bench.web().join("dist");
    let kept = repository().join("crates/stafette-server/page");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::remove_dir_all(&kept).expect("the old page can be removed");
        copy(&built, &kept);
    }
    // What gzip makes of them depends on its version.
    let plain = |folder: &Path| {
        let mut files = files(folder);
        files.retain(|path, _| path.extension().is_none_or(|kind| kind != "gz"));
        files
    };
    let (built, kept) = (plain(&built), plain(&kept));
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    let help = "`UPDATE_GOLDEN=1 cargo test -p stafette --test suite b_27_the_page` builds it anew";
    assert_eq!(names(&kept), names(&built), "{help}");
    assert!(kept == built, "the same names with other contents: {help}");
}

/// Returns the files below a folder with their contents.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(place) = folders.pop() {
        for entry in fs::read_dir(&place).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("it was found there").to_owned();
                found.insert(name, fs::read(&path).expect("a file"));
            }
        }
    }
    found
}

#[test]
fn b_13_the_page_does_what_people_need_in_a_real_browser() {
    measured(&Bench::new().run(&["tsx", "--test", "e2e/flows.ts"], FLOWS));
}

#[test]
fn s1_14_what_is_decided_and_accepted_on_the_page_is_in_a_real_calendar() {
    let bench = Bench::new();
    let office = Office::open(&bench.folder.path().join("radicale"));
    let address = office.address();
    let env = [("STAFETTE_TEST_CALDAV", &*address), ("CAL_USER", USER), ("CAL_PASSWORD", PASSWORD)];
    measured(&bench.run_with(&["tsx", "--test", "e2e/knowledge.ts"], &env, FLOWS));
    // Another program than the page's own sees the same.
    let entries = office.entries();
    assert_eq!(entries.len(), 5, "{entries:?}");
    let text: String = entries.into_iter().map(|entry| entry.text).collect();
    assert!(text.contains("SUMMARY:Read the old invoices"), "{text}");
    assert!(!text.contains("SUMMARY:Number them"), "what was dropped: {text}");
}

#[test]
fn s4_03_a_council_its_generations_and_phases_are_watched_in_a_real_browser() {
    measured(&Bench::new().run(&["tsx", "--test", "e2e/council.ts"], FLOWS));
}

/// Nothing was left out; what was measured is shown to whoever asks for the output.
fn measured(said: &str) {
    assert!(said.contains("# skipped 0"), "{said}");
    for line in said.lines().filter(|line| line.contains("long tasks") || line.contains("axe:")) {
        eprintln!("{line}");
    }
}
