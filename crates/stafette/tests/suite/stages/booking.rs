//! No time is booked twice: a calendar that changed, and two people who say yes at once.

use std::thread;

use serde_json::{Value, json};
use stafette_core::Time;
use stafette_knowledge::Base;
use stafette_knowledge::calendar::proposal::{Proposal, Proposals, Stand};
use stafette_knowledge::calendar::{CalDav, Calendar, entry};
use stafette_testkit::radicale::{PASSWORD, USER};

use super::{Office, Wall, at, project, wait};
use crate::world::{World, until};

pub(super) const MONDAY: &str = "2026-03-23T07:30:00Z";

/// A project whose calendar is in a real server, its daemon running, and its clock.
pub(super) fn begins(folder: &std::path::Path) -> (World, Office, Wall) {
    let office = Office::open(&folder.join("radicale"));
    let wall = Wall::at(folder, MONDAY);
    let world = project("graph = \"sqlite\"\n", &office.lines);
    up(&world, &wall);
    (world, office, wall)
}

pub(super) fn up(world: &World, wall: &Wall) {
    let env = [("CAL_USER", USER), ("CAL_PASSWORD", PASSWORD), wall.env()];
    world.run_with(&["up"], b"", &env).ok();
}

impl World {
    /// A run that asks for time: it, its question, and its blocks.
    pub(super) fn plans(&self, request: &str) -> (String, Value, Vec<Value>) {
        let run = self.begin(request);
        self.answer(&self.question(&run, "decision_approval"), "a");
        let question = self.question(&run, "plan_approval");
        let blocks =
            until("blocks", || Some(self.blocks(&run, MONDAY)).filter(|all| all.len() == 6));
        (run, question, blocks)
    }

    /// Says yes to a plan; what was said to it.
    pub(super) fn approves(&self, question: &Value) -> crate::world::Said {
        let id = format!("{}:{}", question["run"].as_str().expect("a run"), text(question, "id"));
        self.run(&["answer", &id, "approve"])
    }
}

pub(super) fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of[name].as_str().unwrap_or_else(|| panic!("no {name} in {of}"))
}

pub(super) fn times(of: &Value) -> (i64, i64) {
    (of["start"].as_i64().expect("a start"), of["end"].as_i64().expect("an end"))
}

impl Office {
    /// The times of all events, none of which is in another's.
    pub(super) fn apart(&self) -> Vec<(String, String)> {
        // All of them are told in UTC, so that the texts are in the order of the times.
        let entries = self.entries();
        let value = |text: &str, name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            let found = lines.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned());
            found.filter(|value| value.ends_with('Z')).unwrap_or_else(|| panic!("{name} in {text}"))
        };
        let times = entries.iter().map(|e| (value(&e.text, "DTSTART"), value(&e.text, "DTEND")));
        let mut times: Vec<_> = times.collect();
        times.sort();
        let clash = times.windows(2).find(|pair| pair[1].0 < pair[0].1);
        assert!(clash.is_none(), "booked twice: {clash:?}");
        times
    }

    pub(super) fn adds(&self, title: &str, times: (i64, i64)) {
        add(&self.calendar, title, times);
    }
}

/// Puts an event into a calendar.
pub(super) fn add(calendar: &CalDav, title: &str, (start, end): (i64, i64)) {
    let text = entry::event(title, title, "", (Time(start), Time(end)), None, at(MONDAY));
    wait(calendar.put(&entry::name(title), &text, None)).expect("added");
}

#[test]
fn s1_14_a_yes_looks_again_at_the_calendar_and_says_what_is_there_and_where_there_is_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let (world, office, _wall) = begins(folder.path());
    let (run, question, blocks) = world.plans("Have a tool");
    // Somebody else fills the calendar between the question and the answer.
    let lost = times(&blocks[1]);
    office.adds("Dentist", (lost.0 + 1_800_000, lost.1 + 600_000));
    let refused = world.approves(&question);
    assert_eq!(refused.code, 1, "{refused:?}");
    for words in ["`Dentist` is there from 2026-03-25T08:30", "`Two` is proposed for 2026-03-25T"] {
        assert!(refused.err.contains(words), "{refused:?}");
    }
    assert_eq!(office.entries().len(), 1, "nothing of the plan is in the calendar");
    let still = world.question(&run, "plan_approval");
    assert_eq!(still["id"], question["id"], "it is open");
    let all = world.blocks(&run, MONDAY);
    let moved = all.iter().find(|one| one["id"] == blocks[1]["id"]).expect("the block");
    assert_eq!(moved["state"], "proposed");
    assert!(times(moved).0 >= lost.1 + 600_000, "after what is there: {moved}");
    assert!(text(moved, "trouble").contains("Dentist"), "{moved}");

    // The same for one block alone; the others stay where they are.
    let lost = times(&blocks[2]);
    office.adds("Visit", lost);
    let refused = world.run(&["calendar", "accept", text(&blocks[2], "id")]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("`Visit` is there"), "{refused:?}");
    // A time that is taken is no place to move to either.
    let (start, end) = (Time(lost.0).rfc3339(), Time(lost.1).rfc3339());
    let refused = world.run(&["calendar", "move", text(&blocks[3], "id"), &start, &end]);
    assert!(refused.code == 1 && refused.err.contains("`Visit` is there"), "{refused:?}");

    // A yes to the new times is taken, and every event has its own time.
    world.approves(&question).ok();
    world.ends(&run);
    until("the events", || (office.entries().len() == 8).then_some(()));
    assert_eq!(office.apart().len(), 8);
    let stands = until("the notes", || {
        let all = world.blocks(&run, MONDAY);
        all.iter().all(|one| one["state"] == "written").then_some(all)
    });
    assert!(stands.iter().all(|one| one["trouble"].is_null()), "{stands:?}");
    world.run(&["down"]).ok();
}

#[test]
fn s1_14_two_plans_for_the_same_time_that_are_approved_at_once_are_never_both_booked() {
    let folder = tempfile::tempdir().expect("a folder");
    let (world, office, wall) = begins(folder.path());
    let (one, first, blocks) = world.plans("Have a tool");
    let (two, second, others) = world.plans("Have another tool");
    // As if both had been planned at the very same moment: neither knew of the other.
    world.run(&["down"]).ok();
    let base = Base::open(&world.state().join("knowledge.db")).expect("the file");
    let proposals = Proposals::new(base);
    for (block, other) in blocks.iter().zip(&others) {
        let (start, end) = times(block);
        let same = move |one: &mut Proposal| (one.start, one.end) = (Time(start), Time(end));
        wait(proposals.change(text(other, "id"), &[Stand::Proposed], same)).expect("moved");
    }
    drop(proposals);
    up(&world, &wall);

    let said = thread::scope(|scope| {
        let yes = [&first, &second].map(|question| scope.spawn(|| world.approves(question)));
        yes.map(|one| one.join().expect("said"))
    });
    let refused: Vec<_> = said.iter().filter(|said| said.code != 0).collect();
    assert_eq!(refused.len(), 1, "{said:?}");
    for title in ["One", "Six"] {
        let words = format!("`{title}` is there");
        assert!(refused[0].err.contains(&words), "each is named: {refused:?}");
    }
    let (won, lost, question) = match said[0].code {
        0 => (&one, &two, &second),
        _ => (&two, &one, &first),
    };
    until("the first one's events", || (office.entries().len() == 6).then_some(()));
    office.apart();
    let held: Vec<_> = world.blocks(won, MONDAY).iter().map(times).collect();
    let free = world.blocks(lost, MONDAY);
    let again = |one: &Value| held.iter().any(|h| h.0 < times(one).1 && times(one).0 < h.1);
    assert!(!free.iter().any(again), "they have other times: {free:?}");
    assert!(free.iter().all(|one| one["state"] == "proposed"), "{free:?}");
    world.approves(question).ok();
    until("all events", || (office.entries().len() == 12).then_some(()));
    assert_eq!(office.apart().len(), 12);
    assert_eq!(world.asked(&["inbox"]), json!([]));
    world.run(&["down"]).ok();
}
