//! Shell agents with a ledger of their own, whose output nobody reads, while the daemon is killed, stopped
//! and started again and runs are called off: what the ledger says decides.
//!
//! `STAFETTE_LEDGER_KILLS=1000` and `STAFETTE_LEDGER_STOPS=200` with `--nocapture` do it for longer.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::world::{World, program, until};

/// The agents of the chain.
const AGENTS: usize = 5;

/// The runs that are under way at the same time.
const AT_ONCE: usize = 3;

/// The work of each agent: it notes that it starts, works, reports, and notes that the report was taken.
const AGENT: &str = r#"cat >/dev/null
echo "start $STAFETTE_KEY $1" >> ledger
sleep 0.$2
if [ -n "$3" ]; then "$S" emit HANDOFF "$3" >/dev/null 2>&1 || exit 1
else "$S" emit RESULT '{"status":"resolved","summary":"done"}' >/dev/null 2>&1 || exit 1; fi
echo "told $STAFETTE_KEY $1" >> ledger
"#;

fn world() -> World {
    let mut text = "[workflow]\nname = \"chain\"\nentry = \"a1\"\n[limits]\ncooldown = 0\n\
                    handoffs_per_item = 9\n[retries]\nmax = 9\nbackoff = \"10ms\"\n"
        .to_owned();
    for agent in 1..=AGENTS {
        let next = if agent < AGENTS { format!("a{}", agent + 1) } else { String::new() };
        text += &format!(
            "[agents.a{agent}]\nrunner = \"exec\"\nestimate = {{ money = 0 }}\n\
             command = [\"sh\", \"agent.sh\", \"a{agent}\", \"{agent}\", \"{next}\"]\n"
        );
    }
    for agent in 1..AGENTS {
        text += &format!("[[routes]]\nfrom = \"a{agent}\"\nto = \"a{}\"\n", agent + 1);
    }
    World::with(&text, &[("agent.sh", &format!("S='{}'\n{AGENT}", program()))])
}

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Numbers that only need to be spread.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// The runs that were begun.
#[derive(Default)]
struct Runs {
    begun: Vec<String>,
}

impl Runs {
    /// Begins runs until enough are under way.
    fn fill(&mut self, world: &World) {
        let status = world.run(&["status", "--json"]);
        if status.code != 0 {
            return;
        }
        let views = status.json();
        let open = views.as_array().expect("runs").iter().filter(|view| !is_over(view)).count();
        for _ in open..AT_ONCE {
            let said = world.run(&["run", "--detach", "go"]);
            // A daemon that dies meanwhile may have begun it or not; the store knows in the end.
            if said.code == 0 {
                self.begun.push(said.out.trim().to_owned());
            }
        }
    }
}

fn is_over(view: &Value) -> bool {
    ["succeeded", "failed", "cancelled"].contains(&view["status"].as_str().unwrap_or_default())
}

/// What the agents wrote down: the starts of each turn, the turns whose report was taken, and the starts
/// after that.
fn read(world: &World) -> (BTreeMap<String, usize>, BTreeSet<String>, usize) {
    let (mut starts, mut told, mut needless) = (BTreeMap::new(), BTreeSet::new(), 0);
    for line in world.read("ledger").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, key, _] = words[..] else { panic!("a torn line: {line}") };
        match what {
            "start" => {
                *starts.entry(key.to_owned()).or_insert(0) += 1;
                needless += usize::from(told.contains(key));
            }
            _ => drop(told.insert(key.to_owned())),
        }
    }
    (starts, told, needless)
}

#[test]
fn b_01_nothing_is_lost_or_repeated_by_the_ledger_of_foreign_agents() {
    let kills = number("STAFETTE_LEDGER_KILLS", 10);
    let world = world();
    let (mut chance, mut runs, mut killed) = (Chance(0x5eed), Runs::default(), 0);
    while killed < kills {
        let Some(pid) = world.run(&["up", "--json"]).json()["pid"].as_u64() else { continue };
        runs.fill(&world);
        std::thread::park_timeout(Duration::from_millis(chance.below(600)));
        match chance.below(24) {
            0 => drop(world.run(&["down"]).ok()),
            1 | 2 => {
                let run = runs.begun.last().cloned().unwrap_or_default();
                // It may be over by now.
                world.run(&["cancel", &run]);
            }
            _ => {
                let gone = Command::new("kill").args(["-9", &pid.to_string()]).status();
                killed += usize::from(gone.expect("kill").success());
            }
        }
    }
    world.run(&["up"]).ok();
    let ended = |run: &String| {
        until("the run ends", || {
            Some(world.run(&["status", run, "--json"]).ok().json()).filter(is_over)
        })
    };
    let views: Vec<Value> = runs.begun.iter().map(ended).collect();
    let (starts, told, needless) = read(&world);
    let mut lost = Vec::new();
    let mut twice = Vec::new();
    for view in views.iter().filter(|view| view["status"] != "cancelled") {
        let run = view["run"].as_str().expect("an id");
        assert_eq!(view["status"], "succeeded", "{view}");
        let rows = world.run(&["handoffs", run, "--json"]).ok().json();
        for agent in 1..=AGENTS {
            let name = format!("a{agent}");
            let given = rows.as_array().expect("handoffs").iter().filter(|row| row["to"] == *name);
            match given.count() {
                0 => lost.push(format!("{run} never reached {name}")),
                1 => {}
                more => twice.push(format!("{run} reached {name} {more} times")),
            }
        }
    }
    let again: usize = starts.values().map(|count| count - 1).sum();
    eprintln!(
        "{killed} kills, {} runs ({} cancelled), {} turns, {} reports taken, {again} started again ({:.2} a kill), \
         {needless} of them after their report was taken",
        views.len(),
        views.iter().filter(|view| view["status"] == "cancelled").count(),
        starts.len(),
        told.len(),
        again as f64 / killed as f64,
    );
    assert_eq!((lost, twice, needless), (Vec::new(), Vec::new(), 0));
    world.run(&["down"]).ok();
}

#[test]
fn b_22_a_busy_daemon_stops_every_time_it_is_asked() {
    let world = world();
    let (mut chance, mut runs) = (Chance(0xd0), Runs::default());
    let mut longest = Duration::ZERO;
    let stops = number("STAFETTE_LEDGER_STOPS", 5);
    for _ in 0..stops {
        world.run(&["up"]).ok();
        runs.fill(&world);
        std::thread::park_timeout(Duration::from_millis(chance.below(500)));
        let since = Instant::now();
        world.run(&["down"]).ok();
        longest = longest.max(since.elapsed());
    }
    eprintln!("{stops} stops, the longest took {longest:?}");
    let (_, _, needless) = read(&world);
    assert_eq!(needless, 0, "what was taken is not done again");
}
