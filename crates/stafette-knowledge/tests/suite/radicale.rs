//! A real CalDAV server.

use stafette_core::Time;
use stafette_knowledge::calendar::{CalDav, CalDavSettings, Calendar, CalendarError, Seen, entry};
use stafette_testkit::radicale::{PASSWORD, Radicale, USER};

use crate::calendar::moves_and_deletions_are_noticed;

fn settings(url: String, calendar: Option<&str>) -> CalDavSettings {
    CalDavSettings {
        url,
        user: USER.into(),
        password: PASSWORD.into(),
        calendar: calendar.map(str::to_owned),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_14_at_a_real_server_the_calendar_is_found_and_moved_and_deleted_events_are_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Radicale::start(folder.path()).expect("Radicale starts");
    let work = CalDav::new(&settings(server.url(), Some("Work & more"))).expect("an address");
    let none = work.address().await.expect_err("no calendar yet");
    assert!(none.to_string().contains("there is no such calendar"), "{none}");
    server.calendar("work", "Work & more").expect("made");
    let address = work.address().await.expect("found");
    assert!(address.ends_with("/ada/work/"), "{address}");
    moves_and_deletions_are_noticed(&work).await;

    // The only calendar needs no name, and its own address is enough.
    let only = CalDav::new(&settings(server.url(), None)).expect("an address");
    assert_eq!(only.address().await.expect("found"), address);
    let direct = CalDav::new(&settings(address.clone(), None)).expect("an address");
    let all = direct.changes(&Seen::default()).await.expect("all of it");
    assert_eq!(all.changed.len(), 1);
    assert!(all.seen.ctag.is_some(), "the server tells its version as a whole");

    // With two, somebody has to say which.
    server.calendar("home", "Home").expect("made");
    let which = CalDav::new(&settings(server.url(), None)).expect("an address");
    let which = which.address().await.expect_err("two");
    assert!(which.to_string().contains("Home") && which.to_string().contains("Work"), "{which}");

    let mut stranger = settings(server.url(), None);
    stranger.password = "wrong".into();
    let stranger = CalDav::new(&stranger).expect("an address");
    let refused = stranger.address().await.expect_err("a wrong word");
    assert!(matches!(refused, CalendarError::Refused { .. }), "{refused}");

    // Many entries come in several steps.
    for number in 0..60 {
        let uid = format!("many-{number}");
        let at = (Time(number * 3_600_000), Time((number + 1) * 3_600_000));
        let text = entry::event(&uid, "One of many", "", at, None, Time(0));
        direct.put(&entry::name(&uid), &text, None).await.expect("written");
    }
    let more = direct.changes(&all.seen).await.expect("the new ones");
    assert_eq!((more.changed.len(), more.removed.len()), (60, 0));

    server.kill();
    let away = direct.changes(&more.seen).await.expect_err("nobody there");
    assert!(matches!(away, CalendarError::Away { .. }), "{away}");
    server.start_again().expect("Radicale starts again");
    let quiet = direct.changes(&more.seen).await.expect("as before");
    assert_eq!((quiet.changed.len(), quiet.removed.len()), (0, 0));
}
