//! Strangers at the door on TCP, in numbers: whoever has a token, or comes by the socket, does not
//! notice them.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::web::Web;
use crate::world::{ECHO, PATIENCE, World, until_so};

/// How many strangers there are at a time, far more than the door has places.
const CROWD: usize = 4000;

/// How many programs of strangers there are.
const PROGRAMS: usize = 4;

/// How long the owner may wait for an answer, which takes milliseconds. It was more than 30 seconds when
/// the places of strangers were given out one after the other.
const SOON: Duration = Duration::from_secs(10);

/// Connects again and again, says `words` each time, and waits for nothing.
fn flood(port: u16, words: &[u8], came: &AtomicUsize, over: &AtomicBool) {
    let mut here = VecDeque::new();
    while !over.load(Ordering::Relaxed) {
        let address = ([127, 0, 0, 1], port).into();
        let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_millis(200))
        else {
            continue;
        };
        // Who was sent away already does not hear it.
        let _ = stream.write_all(words);
        here.push_back(stream);
        came.fetch_add(1, Ordering::Relaxed);
        if here.len() > CROWD / PROGRAMS {
            here.pop_front();
        }
    }
}

/// Asks as the owner, by the door with a token and by the socket; the longer of both waits.
fn owner_waits(world: &World, web: &Web<'_>) -> Duration {
    let began = Instant::now();
    web.get("/v1/runs").ok();
    let by_port = began.elapsed();
    let began = Instant::now();
    let mut socket = UnixStream::connect(world.state().join("daemon.sock")).expect("a socket");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let request = b"GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    socket.write_all(request).expect("sent");
    let mut said = String::new();
    socket.read_to_string(&mut said).expect("an answer in time");
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    by_port.max(began.elapsed())
}

/// Has strangers come all the time and say `words`; how long the owner waits among them.
fn owner_among(words: &dyn Fn(u16) -> String) {
    let limit = getrlimit(Resource::Nofile);
    let files = Rlimit { current: limit.maximum, ..limit };
    setrlimit(Resource::Nofile, files).expect("as many files as there may be");
    let world = World::workflow(ECHO);
    let web = Web::up(&world);
    let (came, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let words = words(web.port).into_bytes();
    let waits = std::thread::scope(|scope| {
        for _ in 0..PROGRAMS {
            scope.spawn(|| flood(web.port, &words, &came, &over));
        }
        let waits = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until_so("a crowd", || came.load(Ordering::Relaxed) > CROWD);
            (0..10).map(|_| owner_waits(&world, &web)).collect::<Vec<_>>()
        }));
        over.store(true, Ordering::Relaxed);
        waits
    });
    let waits = waits.expect("every answer");
    assert!(waits.iter().all(|wait| *wait < SOON), "{waits:?}");
}

#[test]
fn b_20_strangers_without_end_that_say_nothing_keep_the_owner_waiting_nowhere() {
    owner_among(&|_| String::new());
}

#[test]
fn b_20_strangers_without_end_that_never_finish_their_request_keep_the_owner_waiting_nowhere() {
    owner_among(&|_| "GET /healthz HT".into());
}

#[test]
fn b_20_strangers_without_end_that_ask_without_a_token_keep_the_owner_waiting_nowhere() {
    owner_among(&|port| format!("GET /v1/runs HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"));
}

#[test]
fn b_20_strangers_without_end_whose_body_never_comes_keep_the_owner_waiting_nowhere() {
    owner_among(&|port| {
        format!(
            "POST /v1/session HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\
             Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{{"
        )
    });
}
