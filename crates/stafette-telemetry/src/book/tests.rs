//! Compares the counts here with those of the core, after every event of recorded runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use stafette_core::run::Tally;
use stafette_core::run::session::SessionState;
use stafette_core::{Event, Party, Recorded, Run, RunId, Time, Usage};

use super::{Book, Fact, Phase};

/// Returns the logs of real runs, including those of the page's tests.
fn logs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["fixtures/logs", "web/test/logs"].map(|folder| root.join(folder));
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let paths = entries.map(|entry| entry.expect("a file").path());
    let is_log = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".jsonl") && !name.ends_with(".changed.jsonl")
    };
    let mut logs: Vec<PathBuf> = paths.filter(is_log).collect();
    logs.sort();
    assert!(logs.len() > 9, "there are logs");
    logs
}

fn recorded(path: &Path) -> Vec<Recorded> {
    let text = fs::read_to_string(path).expect("a log");
    let event = |line: &str| {
        let fields: Value = serde_json::from_str(line).expect("JSON");
        let written = || fields["at"].as_str().and_then(Time::parse);
        let at = fields["at"].as_i64().map(Time).or_else(written).expect("a time");
        let seq = fields["seq"].as_u64().expect("a number");
        let event: Event = serde_json::from_value(fields).expect("an event");
        Recorded { seq, at, event }
    };
    text.lines().filter(|line| !line.is_empty()).map(event).collect()
}

/// Sums over all facts of a run.
#[derive(Debug, Default)]
struct Sums {
    tally: Tally,
    spent: BTreeMap<String, Usage>,
}

impl Sums {
    fn add(&mut self, fact: &Fact) {
        match fact {
            Fact::Made(about) if about.to == Party::Human => self.tally.escalated += 1,
            Fact::Refused { circular, .. } => {
                self.tally.refused += 1;
                self.tally.circular += u32::from(*circular);
            }
            Fact::Retried(_) => self.tally.retries += 1,
            Fact::Late => self.tally.late += 1,
            Fact::TurnEnded { about, usage, .. } => {
                *self.spent.entry(about.to.to_string()).or_default() += *usage;
            }
            _ => {}
        }
    }
}

/// Counts that both keep; the rest of the tally is the core's alone.
fn counts(tally: &Tally) -> [u32; 5] {
    [tally.refused, tally.circular, tally.escalated, tally.retries, tally.late]
}

fn held_against(book: &Book, run: &Run, id: RunId, about: &str) {
    let Some(open) = book.run(id) else {
        return assert!(run.status().is_final(), "{about}: a run that goes on is in the book");
    };
    assert_eq!((open.spent, &open.limit), (run.purse.spent, &run.purse.limit), "{about}");
    let living = run.sessions.iter().filter(|(_, state)| **state != SessionState::Ended);
    let living: BTreeMap<String, SessionState> =
        living.map(|(agent, state)| (agent.to_string(), *state)).collect();
    assert_eq!(open.sessions, living, "{about}");
    let ours = open.handoffs.iter().map(|(id, handoff)| (*id, handoff.state, handoff.turn));
    let theirs = run.open().map(|handoff| {
        let turn = handoff.state.turn().map(|turn| (handoff.key(id), turn.ordered_at));
        (handoff.id, Phase::of(&handoff.state), turn)
    });
    assert_eq!(ours.collect::<Vec<_>>(), theirs.collect::<Vec<_>>(), "{about}");
}

#[test]
fn what_is_told_of_runs_is_what_the_core_knows_of_them() {
    for path in logs() {
        let events = recorded(&path);
        let first = Run::replay(&events[..1]).expect("a run");
        let (mut book, mut sums) = (Book::default(), Sums::default());
        let mut run = first.clone();
        for recorded in &events {
            let about = format!("{} at {}", path.display(), recorded.seq);
            if recorded.seq > 1 {
                run.apply(recorded.at, &recorded.event);
            }
            let facts = book.apply(run.id, recorded.at, &recorded.event);
            facts.iter().for_each(|fact| sums.add(fact));
            held_against(&book, &run, run.id, &about);
            // A fork continues the counts; its spending starts at zero.
            let since = counts(&first.tally).into_iter().zip(counts(&run.tally));
            let since: Vec<u32> = since.map(|(before, now)| now - before).collect();
            assert_eq!(counts(&sums.tally).as_slice(), since, "{about}");
            for (agent, account) in &run.purse.agents {
                let spent = sums.spent.get(agent).copied().unwrap_or_default();
                assert_eq!(spent, account.spent, "{about}: {agent}");
            }
        }
    }
}
