//! Blocks stay in their order, whoever moves one, and whatever took its place.

use serde_json::Value;
use stafette_core::Time;
use stafette_knowledge::calendar::{Calendar, entry};

use super::booking::{MONDAY, begins, text, times};
use super::{Office, at, until, wait};
use crate::world::{Said, World};

/// Two hours, as long as each block takes.
const LONG: i64 = 2 * 3_600_000;

impl World {
    /// A block of a run, as it is now.
    pub(super) fn block(&self, run: &str, title: &str) -> Value {
        let all = self.blocks(run, MONDAY);
        all.iter().find(|one| one["title"] == title).unwrap_or_else(|| panic!("{all:?}")).clone()
    }

    /// Moves a block to this moment; what was said to it.
    pub(super) fn moves(&self, block: &Value, to: &str) -> Said {
        let end = Time(at(to).0 + LONG).rfc3339();
        self.run(&["calendar", "move", text(block, "id"), to, &end])
    }

    /// The two blocks of which the second waits for the first.
    fn pair(&self, run: &str) -> (Value, Value) {
        let (one, two) = (self.block(run, "One"), self.block(run, "Two"));
        assert!(times(&one).1 <= times(&two).0, "{one} before {two}");
        (one, two)
    }
}

impl Office {
    /// Whether an event of this title begins at that moment.
    pub(super) fn has(&self, title: &str, start: &str) -> bool {
        let says = |text: &str, line: String| text.lines().any(|one| one == line);
        self.entries().iter().any(|one| {
            says(&one.text, format!("SUMMARY:{title}"))
                && says(&one.text, format!("DTSTART:{start}"))
        })
    }
}

#[test]
fn s1_14_a_block_that_is_moved_stays_between_what_it_waits_for_and_what_waits_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (world, office, _wall) = begins(folder.path());
    let (run, question, _) = world.plans("Have a tool");
    let (one, two) = world.pair(&run);

    // Nobody begins with the second one.
    let refused = world.moves(&two, "2026-03-23T06:00:00Z");
    assert_eq!(refused.code, 1, "{refused:?}");
    let words = "`Two` has to wait for `One`, which ends at 2026-03-23T10:00";
    assert!(refused.err.contains(words), "{refused:?}");
    assert_eq!(world.block(&run, "Two"), two, "it stays");

    // The first one goes where the second one is, which comes along behind it.
    let moved = world.moves(&one, "2026-03-25T08:00:00Z").ok();
    let words = "`Two` has to wait for `One`: it is proposed for 2026-03-25T12:00";
    assert!(moved.out.contains(words), "{moved:?}");
    let (one, two) = world.pair(&run);
    assert_eq!(Time(times(&one).0).rfc3339(), "2026-03-25T08:00:00.000Z");
    assert_eq!(two["state"], "proposed");
    assert!(world.run(&["calendar"]).ok().err.contains(words));

    // Somebody takes the morning: both get other times, in their order, and all of it is told.
    office.adds("Dentist", (times(&one).0, at("2026-03-25T11:30:00Z").0));
    let refused = world.approves(&question);
    assert_eq!(refused.code, 1, "{refused:?}");
    for words in [
        "`Dentist` is there from 2026-03-25T08:00",
        "`One` is proposed for 2026-03-25T12:00",
        "`Two` has to wait for `One`: it is proposed for 2026-03-26T12:00",
    ] {
        assert!(refused.err.contains(words), "{words}: {refused:?}");
    }
    let (_, two) = world.pair(&run);
    assert_eq!(Time(times(&two).0).rfc3339(), "2026-03-26T12:00:00.000Z");
    world.approves(&question).ok();
    world.ends(&run);
    until("the events", || (office.entries().len() == 7).then_some(()));
    office.apart();
    until("the notes", || {
        let all = world.blocks(&run, MONDAY);
        all.iter().all(|one| one["state"] == "written").then_some(())
    });

    // What is in the calendar does not move by itself: whoever wants that is told what to do first.
    let (one, two) = world.pair(&run);
    let refused = world.moves(&one, "2026-03-27T08:00:00Z");
    assert_eq!(refused.code, 1, "{refused:?}");
    let words = "`Two`, which has to wait for `One`, begins at 2026-03-26T12:00";
    assert!(refused.err.contains(words), "{refused:?}");
    assert!(office.has("One", "20260325T120000Z"), "{:?}", office.entries());

    // A calendar program knows nothing of that. It is noticed, and said until it is in order again.
    let entries = office.entries();
    let kept = entries.iter().find(|kept| one["entry"] == kept.name.as_str()).expect("its entry");
    let friday = (at("2026-03-27T08:00:00Z"), at("2026-03-27T10:00:00Z"));
    let later = entry::moved(&kept.text, friday.0, friday.1, at(MONDAY)).expect("an event");
    wait(office.calendar.put(&kept.name, &later, Some(&kept.etag))).expect("moved");
    let words = "`Two` has to wait for `One`, which ends at 2026-03-27T10:00";
    until("word of the order", || {
        let two = world.block(&run, "Two");
        two["trouble"].as_str().is_some_and(|said| said.contains(words)).then_some(())
    });
    assert!(world.run(&["status"]).ok().err.contains(words));
    world.moves(&two, "2026-03-27T12:00:00Z").ok();
    assert!(office.has("Two", "20260327T120000Z"), "{:?}", office.entries());
    world.pair(&run);
    until("no more word", || world.block(&run, "Two")["trouble"].is_null().then_some(()));
    assert!(!world.run(&["status"]).ok().err.contains("has to wait"));
    world.run(&["down"]).ok();
}
