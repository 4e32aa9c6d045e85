//! Somebody else writes to the calendar between our last look and our write. A server stands between
//! that lets them in at that very moment.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::booking::{MONDAY, add, text, times, up};
use super::{Office, Wall, client, lines, project, until};

/// What is done before an entry of this name is put.
type Before = (String, Box<dyn FnOnce() + Send>);

/// Passes on everything to a server behind it.
struct Between {
    at: SocketAddr,
    before: Arc<Mutex<Option<Before>>>,
    ended: Arc<AtomicBool>,
    door: Option<JoinHandle<()>>,
}

impl Between {
    fn and(server: &str) -> Self {
        let behind = server.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let door = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = door.local_addr().expect("an address");
        let before: Arc<Mutex<Option<Before>>> = Arc::default();
        let ended: Arc<AtomicBool> = Arc::default();
        let (wanted, end) = (before.clone(), ended.clone());
        let door = thread::spawn(move || {
            for visitor in door.incoming().map_while(Result::ok) {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                let (behind, wanted) = (behind.clone(), wanted.clone());
                // One that breaks is one that the other side hears of.
                thread::spawn(move || pass(visitor, &behind, &wanted));
            }
        });
        Between { at, before, ended, door: Some(door) }
    }

    fn url(&self) -> String {
        format!("http://{}/", self.at)
    }

    /// Has somebody add an event the next time that this entry is put.
    fn lets_in(&self, office: &Office, entry: &str, title: &'static str, times: (i64, i64)) {
        let server = office.server.url();
        let act = move || add(&client(&server), title, times);
        *self.before.lock().expect("whole") = Some((entry.to_owned(), Box::new(act)));
    }

    fn let_in(&self) -> bool {
        self.before.lock().expect("whole").is_none()
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.at);
        let _ = self.door.take().map(JoinHandle::join);
    }
}

fn pass(mut visitor: TcpStream, behind: &str, wanted: &Mutex<Option<Before>>) -> Option<()> {
    let patience = Some(Duration::from_secs(60));
    let mut server = TcpStream::connect(behind).ok()?;
    for side in [&visitor, &server] {
        side.set_read_timeout(patience).ok()?;
    }
    let (mut head, mut some) = (Vec::new(), [0; 4096]);
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        let read = visitor.read(&mut some).ok().filter(|read| *read > 0)?;
        head.extend_from_slice(&some[..read]);
    }
    let first = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
    let mut next = wanted.lock().expect("whole");
    if next.as_ref().is_some_and(|(name, _)| first.starts_with("PUT ") && first.contains(name)) {
        let (_, act) = next.take().expect("it was there");
        act();
    }
    drop(next);
    server.write_all(&head).ok()?;
    let (mut there, mut back) = (server.try_clone().ok()?, visitor.try_clone().ok()?);
    let upwards = thread::spawn(move || {
        let _ = std::io::copy(&mut visitor, &mut there);
        let _ = there.shutdown(Shutdown::Write);
    });
    let _ = std::io::copy(&mut server, &mut back);
    let _ = back.shutdown(Shutdown::Both);
    upwards.join().ok()
}

#[test]
fn s1_14_what_gets_into_the_calendar_while_we_write_to_it_keeps_its_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let office = Office::open(&folder.path().join("radicale"));
    let between = Between::and(&office.server.url());
    let wall = Wall::at(folder.path(), MONDAY);
    let world = project("graph = \"sqlite\"\n", &lines(&between.url()));
    up(&world, &wall);
    let (run, question, _) = world.plans("Have a tool");
    let three = world.block(&run, "Three");
    between.lets_in(&office, text(&three, "entry"), "Visit", times(&three));

    // Nothing speaks against the plan; the visit comes in with our own block.
    world.approves(&question).ok();
    world.ends(&run);
    let again = until("the block to wait again", || {
        let three = world.block(&run, "Three");
        (between.let_in() && three["state"] == "proposed").then_some(three)
    });
    assert!(text(&again, "trouble").contains("`Visit` is there"), "{again}");
    assert!(times(&again).0 >= times(&three).1, "another time is proposed: {again}");
    until("the others", || (office.entries().len() == 6).then_some(()));
    office.apart();
    let said = world.run(&["status"]).ok().err;
    assert!(said.contains("waits:") && said.contains("`Visit` is there"), "{said}");

    // A yes to the other time is taken, unless somebody is faster once more.
    between.lets_in(&office, text(&three, "entry"), "Call", times(&again));
    let refused = world.run(&["calendar", "accept", text(&three, "id")]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("`Call` is there"), "{refused:?}");
    world.run(&["calendar", "accept", text(&three, "id")]).ok();
    assert_eq!(world.block(&run, "Three")["state"], "written");
    assert_eq!(office.apart().len(), 8);

    // The same for a block that is in the calendar and is moved there.
    let four = world.block(&run, "Four");
    let (start, end) = ("2026-04-07T08:00:00Z", "2026-04-07T10:00:00Z");
    let there = (super::at(start).0, super::at(end).0);
    between.lets_in(&office, text(&four, "entry"), "Party", there);
    let refused = world.moves(&four, start);
    assert!(refused.code == 1 && refused.err.contains("`Party` is there"), "{refused:?}");
    assert!(office.has("Four", "20260330T070000Z"), "it is where it was: {:?}", office.entries());
    let still = world.block(&run, "Four");
    assert_eq!((times(&still), &still["state"]), (times(&four), &four["state"]));
    assert_eq!(office.apart().len(), 9);
    world.run(&["down"]).ok();
}
