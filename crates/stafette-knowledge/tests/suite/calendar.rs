//! Calendars in files, and recurrences beside those of another program.

use std::io::Write;
use std::process::{Command, Stdio};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use stafette_core::Time;
use stafette_knowledge::calendar::occurrence::{Drift, Occurrence, agenda, drifts};
use stafette_knowledge::calendar::recurrence::Rule;
use stafette_knowledge::calendar::zone::When;
use stafette_knowledge::calendar::{Calendar, CalendarError, Entry, Folder, Seen, entry};
use stafette_knowledge::graph::NodeKey;

pub(crate) fn time(text: &str) -> Time {
    Time::parse(text).expect("a moment")
}

fn of(text: &str, from: &str, to: &str) -> Vec<Occurrence> {
    let body = text.trim().lines().map(str::trim).collect::<Vec<_>>().join("\r\n");
    let text = format!("BEGIN:VCALENDAR\r\n{body}\r\nEND:VCALENDAR\r\n");
    let entry = Entry { name: "e.ics".into(), etag: "1".into(), text };
    let home = TimeZone::get("Europe/Berlin").expect("a zone");
    let agenda = agenda(&[entry], time(from), time(to), &home);
    assert_eq!(agenda.doubts, [""; 0]);
    agenda.occurrences
}

fn starts(found: &[Occurrence]) -> Vec<String> {
    found.iter().map(|one| one.start.rfc3339()[..16].to_owned()).collect()
}

#[test]
fn s1_14_a_weekly_meeting_keeps_its_hour_over_the_change_of_clocks() {
    let found = of(
        "BEGIN:VEVENT\nUID:a\nSUMMARY:Weekly\nDTSTART;TZID=Europe/Berlin:20261019T090000\n\
         DTEND;TZID=Europe/Berlin:20261019T100000\nRRULE:FREQ=WEEKLY;COUNT=3\nEND:VEVENT",
        "2026-10-01T00:00:00Z",
        "2026-12-01T00:00:00Z",
    );
    assert_eq!(starts(&found), ["2026-10-19T07:00", "2026-10-26T08:00", "2026-11-02T08:00"]);
    assert!(found.iter().all(|one| one.recurrence == Some(one.start)));
}

#[test]
fn s1_14_exceptions_are_left_out_moved_or_cancelled() {
    let found = of(
        "BEGIN:VEVENT\nUID:a\nSUMMARY:Daily\nDTSTART:20261102T080000Z\nDURATION:PT30M\n\
         RRULE:FREQ=DAILY;UNTIL=20261107T080000Z\nEXDATE:20261103T080000Z\nRDATE:20261109T120000Z\n\
         END:VEVENT\n\
         BEGIN:VEVENT\nUID:a\nSUMMARY:Moved\nRECURRENCE-ID:20261104T080000Z\n\
         DTSTART:20261104T150000Z\nDTEND:20261104T160000Z\nEND:VEVENT\n\
         BEGIN:VEVENT\nUID:a\nSTATUS:CANCELLED\nRECURRENCE-ID:20261105T080000Z\n\
         DTSTART:20261105T080000Z\nEND:VEVENT",
        "2026-11-01T00:00:00Z",
        "2026-12-01T00:00:00Z",
    );
    let expected = [
        "2026-11-02T08:00",
        "2026-11-04T15:00",
        "2026-11-06T08:00",
        "2026-11-07T08:00",
        "2026-11-09T12:00",
    ];
    assert_eq!(starts(&found), expected);
    assert_eq!(
        (found[1].title.as_str(), found[1].recurrence),
        ("Moved", Some(time("2026-11-04T08:00:00Z")))
    );
}

#[test]
fn s1_14_whole_days_are_days_of_whoever_looks() {
    let found = of(
        "BEGIN:VEVENT\nUID:a\nSUMMARY:Holiday\nDTSTART;VALUE=DATE:20261024\n\
         DTEND;VALUE=DATE:20261026\nTRANSP:TRANSPARENT\nEND:VEVENT",
        "2026-10-01T00:00:00Z",
        "2026-11-01T00:00:00Z",
    );
    let [day] = &found[..] else { panic!("one: {found:?}") };
    assert!(day.all_day && !day.busy);
    // Two days, of which one has 25 hours.
    assert_eq!((day.start, day.end), (time("2026-10-23T22:00:00Z"), time("2026-10-25T23:00:00Z")));
}

#[test]
fn s1_14_what_cannot_be_read_is_told_and_the_rest_is_there() {
    let good = entry::event("u1", "Fine", "", (Time(0), Time(60_000)), None, Time(0));
    let odd = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:x\nDTSTART;TZID=Mars/Base:20260101T100000\n\
               RRULE:FREQ=SOMETIMES\nEND:VEVENT\nEND:VCALENDAR\n";
    let entries = [("a.ics", "rubbish"), ("b.ics", odd), ("c.ics", good.as_str())]
        .map(|(name, text)| Entry { name: name.into(), etag: String::new(), text: text.into() });
    let found = agenda(&entries, Time(0), time("2027-01-01T00:00:00Z"), &TimeZone::UTC);
    assert_eq!(found.occurrences.len(), 1);
    assert_eq!(found.doubts.len(), 3, "{:?}", found.doubts);
}

/// What Python's `dateutil` says to the same rules.
const SCRIPT: &str = r"
import json, sys
from datetime import datetime
from dateutil.rrule import rrulestr
for line in sys.stdin:
    case = json.loads(line)
    start, end = (datetime.fromisoformat(case[name]) for name in ('start', 'end'))
    found = []
    for date in rrulestr(case['rule'], dtstart=start):
        if date > end or len(found) >= case['limit']:
            break
        found.append(date.isoformat())
    print(json.dumps(found))
";

/// Chance from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len() as u64) as usize]
    }

    fn rule(&mut self) -> String {
        let frequency = self.pick(&["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY"]);
        let mut rule = format!("FREQ={frequency};INTERVAL={}", 1 + self.below(4));
        let yearly = frequency == "YEARLY";
        let mut add = |odds: u64, texts: &[&str]| {
            if self.below(odds) == 0 {
                rule.push(';');
                rule.push_str(self.pick(texts));
            }
        };
        add(3, &["BYMONTH=1,3,10", "BYMONTH=2"]);
        match yearly || frequency == "MONTHLY" {
            // Not mixed: `dateutil` takes days with and without a number for a contradiction.
            true => add(2, &["BYDAY=2TU,-1FR", "BYDAY=1MO", "BYDAY=MO,SU"]),
            false => add(2, &["BYDAY=MO,TH,SU", "BYDAY=WE"]),
        }
        add(4, &["WKST=SU"]);
        // A rule that never meets a date would be looked through to the end of all years.
        if self.below(3) == 0 {
            return format!("{rule};COUNT={}", 1 + self.below(30));
        }
        let mut add = |odds: u64, text: &str| {
            if self.below(odds) == 0 {
                rule.push(';');
                rule.push_str(text);
            }
        };
        add(4, "BYMONTHDAY=1,13,-1");
        if yearly {
            add(4, "BYWEEKNO=1,20,-1");
            add(5, "BYYEARDAY=1,100,-1");
        }
        if frequency != "HOURLY" {
            add(4, "BYHOUR=8,17");
        }
        // In the first week, `dateutil` counts positions from the day of the beginning.
        if !["HOURLY", "WEEKLY"].contains(&frequency) {
            add(3, "BYSETPOS=1,-1");
        }
        add(5, "BYMINUTE=0,30");
        format!("{rule};UNTIL=20291231T120000")
    }
}

#[test]
fn s1_14_recurrences_are_those_that_dateutil_gives() {
    let python = stafette_testkit::tools::python("dateutil", "python-dateutil==2.9.0.post0\n")
        .expect("dateutil");
    let mut chance = Chance(7);
    let mut cases = Vec::new();
    for _ in 0..400 {
        let (month, day) = (1 + chance.below(12), 1 + chance.below(28));
        let start = format!("2026-{month:02}-{day:02}T{:02}:15:00", chance.below(24));
        cases.push((chance.rule(), start, "2030-06-30T00:00:00"));
    }
    let mut child = Command::new(python.join("bin/python"))
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut input = child.stdin.take().expect("its input");
    let lines: Vec<String> = cases
        .iter()
        .map(|(rule, start, end)| {
            let case = serde_json::json!({"rule": rule, "start": start, "end": end, "limit": 200});
            case.to_string()
        })
        .collect();
    let writer = std::thread::spawn(move || {
        for line in lines {
            writeln!(input, "{line}").expect("it reads");
        }
    });
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("all was written");
    let answers = String::from_utf8(output.stdout).expect("text");
    assert_eq!(answers.lines().count(), cases.len(), "one answer each");
    let mut dates = 0;
    for ((rule, start, end), answer) in cases.iter().zip(answers.lines()) {
        let civil = |text: &str| text.parse::<DateTime>().expect("a date");
        let expected: Vec<DateTime> = serde_json::from_str::<Vec<String>>(answer)
            .expect("a list")
            .iter()
            .map(|text| civil(text))
            .collect();
        let parsed = Rule::parse(rule).expect("a rule");
        let found = parsed.expand(&When::Clock(civil(start), None), civil(end), 200);
        let differ = found.iter().zip(&expected).find(|(ours, theirs)| ours != theirs);
        assert_eq!(differ, None, "{rule} from {start}");
        assert_eq!(found.len(), expected.len(), "{rule} from {start}");
        dates += found.len();
    }
    assert!(dates > 5_000, "the rules say something: {dates}");
}

pub(crate) async fn moves_and_deletions_are_noticed(calendar: &dyn Calendar) {
    let task = NodeKey::task("t1");
    let at = (time("2026-11-16T09:00:00Z"), time("2026-11-16T10:00:00Z"));
    let text = |uid: &str| entry::event(uid, "Write; it, all", "Notes", at, Some(&task), Time(0));
    let (a, b) = (entry::name("uid-a"), entry::name("uid-b"));
    let first = calendar.put(&a, &text("uid-a"), None).await.expect("a new entry");
    calendar.put(&b, &text("uid-b"), None).await.expect("another");
    let again = calendar.put(&a, &text("uid-a"), None).await.expect_err("it is there already");
    assert_eq!(again, CalendarError::Conflict { name: a.clone() });

    let seen = calendar.changes(&Seen::default()).await.expect("all of it");
    let mut names: Vec<_> = seen.changed.iter().map(|entry| entry.name.clone()).collect();
    names.sort();
    assert_eq!(names, [a.clone(), b.clone()]);
    let zone = TimeZone::UTC;
    let window = (time("2026-11-01T00:00:00Z"), time("2026-12-01T00:00:00Z"));
    let planned = agenda(&seen.changed, window.0, window.1, &zone).occurrences;
    assert_eq!(planned[0].title, "Write; it, all");
    assert_eq!(planned[0].task, Some(task));
    assert_eq!((planned[0].start, planned[0].end), at);
    let quiet = calendar.changes(&seen.seen).await.expect("nothing");
    assert_eq!((quiet.changed.len(), quiet.removed.len()), (0, 0));

    // Somebody moves one and deletes the other.
    let found = calendar.get(&a).await.expect("there");
    let later = (time("2026-11-17T09:00:00Z"), time("2026-11-17T10:30:00Z"));
    let moved = entry::moved(&found.text, later.0, later.1, Time(1)).expect("it reads");
    let second = calendar.put(&a, &moved, Some(&found.etag)).await.expect("its version");
    assert_ne!(second.etag, first.etag);
    let other = calendar.get(&b).await.expect("there");
    calendar.remove(&b, &other.etag).await.expect("gone");

    // We still hold the old version, and overwrite nothing.
    let stale = calendar.put(&a, &found.text, Some(&found.etag)).await.expect_err("too late");
    assert_eq!(stale, CalendarError::Conflict { name: a.clone() });
    let stale = calendar.remove(&a, &found.etag).await.expect_err("too late");
    assert_eq!(stale, CalendarError::Conflict { name: a.clone() });
    let gone = calendar.get(&b).await.expect_err("gone");
    assert_eq!(gone, CalendarError::Gone { name: b.clone() });

    let changes = calendar.changes(&seen.seen).await.expect("both");
    assert_eq!(changes.removed, [b]);
    let now = agenda(&changes.changed, window.0, window.1, &zone).occurrences;
    let drifted = drifts(&planned, &now);
    let mut kinds: Vec<String> = drifted
        .iter()
        .map(|drift| match drift {
            Drift::Moved { planned, start, end } => {
                assert_eq!((*start, *end), later);
                format!("moved {}", planned.uid)
            }
            Drift::Deleted { planned } => format!("deleted {}", planned.uid),
        })
        .collect();
    kinds.sort();
    assert_eq!(kinds, ["deleted uid-b", "moved uid-a"]);
    let wrong = calendar.put("../x.ics", &moved, None).await.expect_err("no such name");
    assert!(matches!(wrong, CalendarError::Unusable { .. }));
}

#[tokio::test]
async fn s1_14_in_files_moved_and_deleted_events_are_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let calendar = Folder::open(&folder.path().join("calendar")).expect("a calendar");
    moves_and_deletions_are_noticed(&calendar).await;
    std::fs::write(folder.path().join("calendar/big.ics"), "x".repeat(2 << 20)).expect("written");
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("calendar/link.ics"))
        .expect("a link");
    let all = calendar.changes(&Seen::default()).await.expect("the rest");
    assert_eq!(all.changed.len(), 1, "what is too large or a link is left alone");
}
