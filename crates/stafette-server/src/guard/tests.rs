//! Hostile requests over a real socket: what a browser, or a program that plays one, can send.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::routing::get;
use futures_util::stream;
use stafette_core::{Millis, Time};
use stafette_engine::Scope;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{Credential, Door, Guard, guard};
use crate::clock::now;
use crate::launch::{Launches, STAY};
use crate::principal::Principal;
use crate::stream::pour;
use crate::tokens::Tokens;

/// A guarded listener, with a handler that counts the requests that get through.
struct Front {
    address: SocketAddr,
    passed: Arc<AtomicUsize>,
    tokens: Arc<Tokens>,
    launches: Arc<Launches>,
    words: Vec<(&'static str, String)>,
    _folder: tempfile::TempDir,
}

impl Front {
    async fn open() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let tokens = Tokens::open(&folder.path().join("tokens.json")).expect("none yet");
        let token = |name, scope| tokens.create(now(), name, scope, None).expect("made").token;
        let (act, look) = (token("act", Scope::Act), token("look", Scope::Observe));
        let launches = Launches::default();
        let key = launches.key(now(), Scope::Act).expect("a key");
        let session = launches.redeem(now(), &key).expect("chance").expect("a session");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let door = Door { address, tls: false, hosts: vec!["team.example".to_owned()] };
        let words = vec![
            ("PORT", address.port().to_string()),
            ("TOKEN", act),
            ("LOOK", look),
            ("SESSION", session),
        ];
        let passed = Arc::new(AtomicUsize::new(0));
        let counter = passed.clone();
        let live = async |upgrade: WebSocketUpgrade, credential: Credential| {
            upgrade.on_upgrade(|socket| pour(socket, stream::pending(), credential))
        };
        let lines = async || Body::from_stream(stream::pending::<Result<String, Infallible>>());
        let behind = Router::new().route("/v1/live", get(live)).route("/mcp", get(lines));
        let behind = behind.fallback(async move |principal: Principal| {
            counter.fetch_add(1, Ordering::SeqCst);
            format!("{} is in", principal.name)
        });
        let tokens = Arc::new(tokens);
        let launches = Arc::new(launches);
        let guarding = Arc::new(Guard::new(&door, tokens.clone(), launches.clone()));
        let asked = axum::middleware::from_fn_with_state(guarding, guard);
        let router = Router::new().fallback_service(behind).layer(asked);
        tokio::spawn(crate::serve::port(listener, None, router));
        Front { address, passed, tokens, launches, words, _folder: folder }
    }

    /// Sends lines as they are, with `{PORT}` and the like filled in, and returns the whole
    /// response.
    async fn send(&self, lines: &[&str], body: &str) -> String {
        let mut text = lines.join("\r\n");
        for (word, value) in &self.words {
            text = text.replace(&format!("{{{word}}}"), value);
        }
        let length = match body.is_empty() || text.contains("ontent-Length") {
            true => String::new(),
            false => format!("Content-Length: {}\r\n", body.len()),
        };
        let text = format!("{text}\r\nConnection: close\r\n{length}\r\n{body}");
        let talk = async {
            let mut stream = TcpStream::connect(self.address).await.expect("a connection");
            // A server that refuses early need not read the whole request.
            let _ = stream.write_all(text.as_bytes()).await;
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            String::from_utf8_lossy(&answer).into_owned()
        };
        tokio::time::timeout(Duration::from_secs(120), talk).await.expect("an answer in time")
    }

    fn passed(&self) -> usize {
        self.passed.load(Ordering::SeqCst)
    }
}

const HOST: &str = "Host: 127.0.0.1:{PORT}";
const TOKEN: &str = "Authorization: Bearer {TOKEN}";
const PAGE: &str = "Authorization: Bearer {SESSION}";
const NAMED: &str = "Sec-WebSocket-Protocol: stafette, session.{SESSION}";
const OURS: &str = "Origin: http://127.0.0.1:{PORT}";
const EVIL: &str = "Origin: https://evil.example";
const JSON: &str = "Content-Type: application/json";
const GET: &str = "GET /v1/runs HTTP/1.1";
const POST: &str = "POST /v1/runs HTTP/1.1";
const SOCKET: &str = "GET /v1/events/live HTTP/1.1";
const UPGRADE: &str = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";

/// A request, and the code of its refusal.
const HOSTILE: &[(&[&str], &str)] = &[
    // Foreign names that resolve to this machine.
    (&[GET, "Host: evil.example:{PORT}", PAGE], "host"),
    (&[GET, "Host: evil.example", TOKEN], "host"),
    (&[GET, "Host: 127.0.0.1", TOKEN], "host"),
    (&[GET, "Host: localhost:1", TOKEN], "host"),
    (&[GET, "Host: localhost.evil.example:{PORT}", PAGE], "host"),
    (&[GET, "Host: 127.0.0.1.evil.example:{PORT}", PAGE], "host"),
    (&[GET, "Host: localhost.:{PORT}", PAGE], "host"),
    (&[GET, "Host: 127.0.0.1:{PORT}@evil.example", PAGE], "host"),
    (&[GET, "Host: evil.example@127.0.0.1:{PORT}", PAGE], "host"),
    (&[GET, "Host: 0.0.0.0:{PORT}", PAGE], "host"),
    (&[GET, "Host: 2130706433:{PORT}", PAGE], "host"),
    (&[GET, "Host: 0177.0.0.1:{PORT}", PAGE], "host"),
    (&[GET, "Host: [::ffff:127.0.0.1]:{PORT}", PAGE], "host"),
    (&[GET, "Host:", TOKEN], "host"),
    (&[GET, TOKEN], "host"),
    (&["GET /v1/runs HTTP/1.0", TOKEN], "host"),
    (&["GET http://evil.example/v1/runs HTTP/1.1", HOST, TOKEN], "host"),
    (&["GET /healthz HTTP/1.1", "Host: evil.example:{PORT}"], "host"),
    (&[GET, HOST, "Host: evil.example", TOKEN], "repeated_header"),
    // Foreign pages.
    (&[GET, HOST, TOKEN, EVIL], "origin"),
    (&[GET, HOST, PAGE, EVIL], "origin"),
    (&[GET, HOST, PAGE, "Origin: null"], "origin"),
    (&[GET, HOST, PAGE, "Origin: file://"], "origin"),
    (&[GET, HOST, PAGE, "Origin: http://localhost:3000"], "origin"),
    (&[GET, HOST, PAGE, "Origin: https://127.0.0.1:{PORT}"], "origin"),
    (&[GET, HOST, PAGE, "Origin: http://127.0.0.1"], "origin"),
    (&[GET, HOST, PAGE, "Origin: http://127.0.0.1:{PORT}.evil.example"], "origin"),
    (&[GET, HOST, PAGE, "Origin: http://127.0.0.1:{PORT}/"], "origin"),
    (&[GET, HOST, PAGE, "Origin: HTTP://127.0.0.1:{PORT}"], "origin"),
    (&[GET, HOST, PAGE, "Origin: chrome-extension://abcdefgh"], "origin"),
    (&[POST, HOST, PAGE, EVIL, JSON], "origin"),
    (&[GET, HOST, PAGE, OURS, EVIL], "repeated_header"),
    // Browser headers about the origin of the request.
    (&[GET, HOST, PAGE, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Dest: image"], "site"),
    (&[GET, HOST, PAGE, "Sec-Fetch-Site: same-site", "Sec-Fetch-Dest: script"], "site"),
    (&[GET, HOST, PAGE, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"], "site"),
    (&[POST, HOST, PAGE, JSON, OURS, "Sec-Fetch-Site: cross-site"], "site"),
    (&[POST, HOST, PAGE, JSON, "Sec-Fetch-Site: none"], "site"),
    (&[GET, HOST, PAGE, "Sec-Fetch-Site: same-origin, cross-site"], "site"),
    (
        &[GET, HOST, PAGE, "Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site"],
        "repeated_header",
    ),
    (
        &[
            "GET / HTTP/1.1",
            HOST,
            "Sec-Fetch-Site: cross-site",
            "Sec-Fetch-Mode: navigate",
            "Sec-Fetch-Dest: iframe",
        ],
        "site",
    ),
    // Requests that a form can send without a preflight.
    (&[POST, HOST, PAGE, OURS, "Content-Type: text/plain"], "content_type"),
    (&[POST, HOST, PAGE, OURS, "Content-Type: application/x-www-form-urlencoded"], "content_type"),
    (&[POST, HOST, PAGE, OURS, "Content-Type: multipart/form-data; boundary=x"], "content_type"),
    (&[POST, HOST, PAGE, OURS, "Content-Type: text/plain; application/json"], "content_type"),
    (&[POST, HOST, PAGE, OURS, "Content-Type: application/json; charset=utf-7"], "content_type"),
    (&[POST, HOST, TOKEN, "Content-Type: application/jsonp"], "content_type"),
    (&[POST, HOST, TOKEN], "content_type"),
    (&[POST, HOST, TOKEN, JSON, "Content-Type: text/plain"], "repeated_header"),
    (&[POST, HOST, TOKEN, JSON, "Content-Encoding: gzip"], "content_type"),
    // Preflight requests, and unused methods.
    (
        &[
            "OPTIONS /v1/runs HTTP/1.1",
            HOST,
            EVIL,
            "Access-Control-Request-Method: POST",
            "Access-Control-Request-Headers: authorization",
        ],
        "preflight",
    ),
    (&["OPTIONS /v1/runs HTTP/1.1", HOST, OURS, TOKEN], "preflight"),
    (&["OPTIONS * HTTP/1.1", HOST, TOKEN], "preflight"),
    (&[GET, HOST, TOKEN, "Access-Control-Request-Method: GET"], "preflight"),
    (&["TRACE /v1/runs HTTP/1.1", HOST, TOKEN], "method"),
    (&["PROPFIND /v1/runs HTTP/1.1", HOST, TOKEN], "method"),
    (&["CONNECT evil.example:443 HTTP/1.1", HOST, TOKEN], "host"),
    // Upgrades are requests like any other.
    (&[SOCKET, UPGRADE, HOST, PAGE, EVIL], "origin"),
    (&[SOCKET, UPGRADE, HOST, NAMED, EVIL], "origin"),
    (
        &[SOCKET, UPGRADE, HOST, OURS, "Sec-WebSocket-Protocol: stafette, session.00"],
        "unauthorized",
    ),
    (&[SOCKET, UPGRADE, "Host: evil.example:{PORT}", PAGE, OURS], "host"),
    (&[SOCKET, UPGRADE, HOST, OURS], "unauthorized"),
    (&["POST /mcp HTTP/1.1", HOST, TOKEN, JSON, EVIL], "origin"),
    (&["POST /mcp HTTP/1.1", HOST, JSON], "unauthorized"),
    (&["POST /mcp HTTP/1.1", "Host: evil.example:{PORT}", TOKEN, JSON], "host"),
    // Unknown callers.
    (&[GET, HOST], "unauthorized"),
    (&["GET /v1/runs?token={TOKEN} HTTP/1.1", HOST], "unauthorized"),
    // A cookie opens nothing: browsers send it to every port of this machine.
    (&[GET, HOST, "Cookie: stafette-{PORT}={SESSION}"], "unauthorized"),
    (&[GET, HOST, "Cookie: stafette={TOKEN}"], "unauthorized"),
    (&[GET, HOST, "Authorization: Basic {TOKEN}"], "bad_token"),
    (&[GET, HOST, "Authorization: Bearer"], "bad_token"),
    (&[GET, HOST, "Authorization: Bearer stf_0000", PAGE], "repeated_header"),
    (&[GET, HOST, TOKEN, "Authorization: Bearer x"], "repeated_header"),
    (&[POST, HOST, JSON, "Authorization: Bearer {LOOK}"], "scope"),
    (&["POST /v1/stop HTTP/1.1", HOST, JSON, TOKEN], "scope"),
    (&["GET /v1/tokens HTTP/1.1", HOST, TOKEN], "scope"),
    (&["POST /v1/launch HTTP/1.1", HOST, JSON, PAGE, OURS], "scope"),
    // Oversized requests.
    (&[POST, HOST, TOKEN, JSON, "Content-Length: 3000000"], "too_large"),
    (&[POST, HOST, TOKEN, JSON, "Content-Length: 99999999999999999999"], ""),
];

#[tokio::test]
async fn hostile_requests_are_refused_before_any_handler_runs() {
    let front = Front::open().await;
    assert!(HOSTILE.len() >= 40);
    for (lines, code) in HOSTILE {
        let answer = front.send(lines, "").await;
        let shown = answer.lines().next().unwrap_or_default();
        assert!(shown.contains(" 4") || shown.is_empty(), "{lines:?} → {shown}");
        assert_eq!(front.passed(), 0, "{lines:?} reached a handler");
        if code.is_empty() {
            continue; // Not even HTTP: the connection ends before there is a request.
        }
        let head = answer.to_ascii_lowercase();
        assert!(answer.contains(&format!("\"code\":\"{code}\"")), "{lines:?} → {answer}");
        assert!(head.contains("content-type: application/problem+json"), "{answer}");
        assert_eq!(armour_of(&head), "", "{answer}");
    }
}

/// Returns the security headers that a response lacks, and those it must not have.
fn armour_of(head: &str) -> String {
    let wanted = [
        "content-security-policy: default-src 'none'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-resource-policy: same-origin",
        "cache-control: no-store",
    ];
    let missing = wanted.iter().filter(|line| !head.contains(**line)).copied();
    let loose = head.lines().filter(|line| line.starts_with("access-control-"));
    missing.chain(loose).collect::<Vec<_>>().join("; ")
}

#[tokio::test]
async fn our_own_page_and_programs_with_a_token_pass() {
    let front = Front::open().await;
    let welcome: &[(&[&str], &str)] = &[
        (&[GET, HOST, TOKEN], "act is in"),
        (&[GET, "Host: localhost:{PORT}", "Authorization: bearer {LOOK}"], "look is in"),
        (&[GET, "Host: [::1]:{PORT}", TOKEN], "act is in"),
        (&[GET, "Host: Team.Example:{PORT}", TOKEN], "act is in"),
        (&["GET http://127.0.0.1:{PORT}/v1/runs HTTP/1.1", HOST, TOKEN], "act is in"),
        (&[POST, HOST, TOKEN, JSON], "act is in"),
        (&[GET, HOST, PAGE, "Sec-Fetch-Site: same-origin"], "page is in"),
        (&[GET, HOST, PAGE, "Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate"], "page is in"),
        (&[POST, HOST, PAGE, OURS, "Content-Type: application/json; charset=UTF-8"], "page is in"),
        (&[POST, HOST, PAGE, JSON, "Sec-Fetch-Site: same-origin"], "page is in"),
        (&[SOCKET, UPGRADE, HOST, PAGE, OURS], "page is in"),
        (&[SOCKET, UPGRADE, HOST, NAMED, OURS], "page is in"),
        (&["GET /healthz HTTP/1.1", HOST], " is in"),
    ];
    for (count, (lines, said)) in (1..).zip(welcome) {
        let answer = front.send(lines, "").await;
        assert!(answer.contains(said), "{lines:?} → {answer}");
        assert_eq!(front.passed(), count, "{lines:?}");
        assert_eq!(armour_of(&answer.to_ascii_lowercase()), "", "{answer}");
    }
}

#[tokio::test]
async fn b_20_the_page_itself_is_for_everyone_and_nothing_behind_it_is() {
    let front = Front::open().await;
    let html = "Accept: text/html";
    let clicked =
        ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"];
    for path in ["GET / HTTP/1.1", "GET /runs/4f/track HTTP/1.1", "GET /metrics HTTP/1.1"] {
        let lines = [path, HOST, html, clicked[0], clicked[1], clicked[2]];
        let answer = front.send(&lines, "").await;
        assert!(answer.contains("<title>Stafette</title>"), "{path} → {answer}");
    }
    let answer = front.send(&["GET /v1/runs HTTP/1.1", HOST, html], "").await;
    assert!(answer.contains("\"unauthorized\""), "{answer}");
    assert_eq!(front.passed(), 0, "no handler has seen them");
}

#[tokio::test]
async fn b_16_a_webhook_needs_no_token_and_keeps_every_other_rule() {
    const HOOK: &str = "POST /v1/triggers/issues HTTP/1.1";
    let front = Front::open().await;
    assert!(front.send(&[HOOK, HOST, JSON], "{}").await.contains(" is in"));
    assert_eq!(front.passed(), 1);
    let refused: &[(&[&str], &str)] = &[
        (&["GET /v1/triggers/issues HTTP/1.1", HOST], "unauthorized"),
        (&["GET /v1/triggers HTTP/1.1", HOST], "unauthorized"),
        (&["POST /v1/triggers/ HTTP/1.1", HOST, JSON], "unauthorized"),
        (&["POST /v1/triggers/issues/fire HTTP/1.1", HOST, JSON], "unauthorized"),
        (&["POST /v1/triggers/issues/../../runs HTTP/1.1", HOST, JSON], "unauthorized"),
        (&[HOOK, "Host: elsewhere.example", JSON], "host"),
        (&[HOOK, HOST, JSON, "Origin: https://elsewhere.example"], "origin"),
        (&[HOOK, HOST, JSON, "Sec-Fetch-Site: cross-site"], "site"),
        (&[HOOK, HOST, "Content-Type: text/plain"], "content_type"),
        (&[HOOK, HOST, JSON, "Authorization: Bearer nonsense"], "bad_token"),
    ];
    for (lines, code) in refused {
        let answer = front.send(lines, "{}").await;
        assert!(answer.contains(&format!("\"{code}\"")), "{lines:?} → {answer}");
    }
    assert_eq!(front.passed(), 1);
}

#[tokio::test]
async fn what_is_too_large_is_refused_while_it_arrives() {
    let front = Front::open().await;
    let long = format!("GET /v1/runs?x={} HTTP/1.1", "y".repeat(9000));
    assert!(front.send(&[&long, HOST, TOKEN], "").await.contains("\"long_url\""));
    let wide = format!("X-Padding: {}", "y".repeat(40_000));
    assert!(front.send(&[GET, HOST, TOKEN, &wide], "").await.contains("\"large_headers\""));
    let wider = format!("X-Padding: {}", "y".repeat(400_000));
    assert!(!front.send(&[GET, HOST, TOKEN, &wider], "").await.contains(" 200 "));
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, "y".repeat(1 << 20));
    let chunks = format!("{chunk}{chunk}{chunk}0\r\n\r\n");
    let lines = [POST, HOST, TOKEN, JSON, "Transfer-Encoding: chunked", "X-No: Content-Length"];
    assert!(front.send(&lines, &chunks).await.contains("\"too_large\""));
    assert_eq!(front.passed(), 0);
}

#[tokio::test]
async fn whoever_keeps_being_refused_has_to_wait_and_others_do_not() {
    let front = Front::open().await;
    // In parallel, so that it is fast on a slow machine too.
    let guess = [GET, HOST, "Authorization: Bearer guess"];
    let guesses = vec![guess.as_slice(); 200].join(&"");
    let mut refused = 0;
    loop {
        let answer = front.send(&guesses, "").await;
        refused += answer.matches("\"bad_token\"").count();
        if answer.contains("\"too_fast\"") {
            assert!(answer.to_ascii_lowercase().contains("retry-after: "), "{answer}");
            break;
        }
        assert!(refused < 20_000, "guessing is never slowed down");
    }
    assert!(refused > 100, "{refused}");
    assert!(front.send(&[GET, HOST, TOKEN], "").await.contains("act is in"));
}

/// Opens a stream with a credential, has that end, and returns all that came after the head of the
/// answer.
async fn outlived(path: &str, shown: &str, front: &Front, end: impl FnOnce()) -> Vec<u8> {
    let port = front.address.port();
    let own = format!("Host: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}");
    let head = format!("GET {path} HTTP/1.1\r\n{own}\r\nAuthorization: Bearer {shown}\r\n");
    let asks = match path {
        "/mcp" => format!("{head}Connection: close\r\n\r\n"),
        _ => format!("{head}Connection: Upgrade\r\n{UPGRADE}\r\n\r\n"),
    };
    let mut stream = TcpStream::connect(front.address).await.expect("a connection");
    stream.write_all(asks.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.expect("an answer"));
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.contains(" 200 ") || answer.contains(" 101 "), "it was opened: {answer}");
    end();
    let mut rest = Vec::new();
    let all = tokio::time::timeout(Duration::from_secs(120), stream.read_to_end(&mut rest)).await;
    all.expect("it ends with its credential").expect("read");
    rest
}

/// A WebSocket is closed with the code 1008, and any other answer is seen to be cut off.
fn assert_broken_off(path: &str, rest: &[u8]) {
    let closes = rest.windows(4).any(|four| four[0] == 0x88 && four[2..] == [0x03, 0xf0]);
    assert_eq!(closes, path != "/mcp", "{rest:?}");
    assert!(!rest.ends_with(b"0\r\n\r\n"), "it looks whole: {rest:?}");
}

/// The streams that a client can keep open.
const STREAMS: [&str; 2] = ["/v1/live", "/mcp"];

#[tokio::test]
async fn b_21_no_stream_outlives_the_token_that_it_was_opened_with() {
    let front = Front::open().await;
    for path in STREAMS {
        let made = front.tokens.create(now(), "revoked", Scope::Admin, None).expect("made");
        let revoke = || front.tokens.revoke("revoked").expect("revoked");
        assert_broken_off(path, &outlived(path, &made.token, &front, revoke).await);
    }
}

/// How long a credential lasts that is to end by itself.
const BRIEF: Millis = Millis::seconds(4);

#[tokio::test]
async fn b_21_no_stream_outlives_a_token_that_expires() {
    let front = Front::open().await;
    let made = front.tokens.create(now(), "brief", Scope::Admin, Some(BRIEF)).expect("made");
    let both = STREAMS.map(|path| outlived(path, &made.token, &front, || ()));
    let both = futures_util::future::join_all(both).await;
    STREAMS.iter().zip(both).for_each(|(path, rest)| assert_broken_off(path, &rest));
}

#[tokio::test]
async fn b_21_no_stream_outlives_the_session_of_a_page() {
    let front = Front::open().await;
    // Signed in so long ago that it soon ends.
    let then = Time(now().0.saturating_sub_unsigned(STAY.0 - BRIEF.0));
    let session = |at| {
        let key = front.launches.key(at, Scope::Act).expect("a key");
        front.launches.redeem(at, &key).expect("chance").expect("a session")
    };
    let brief = session(then);
    let both = STREAMS.map(|path| outlived(path, &brief, &front, || ()));
    let both = futures_util::future::join_all(both).await;
    STREAMS.iter().zip(both).for_each(|(path, rest)| assert_broken_off(path, &rest));
    // Signed out by so many others that came after it.
    let oldest = session(now());
    let others = || (0..64).for_each(|_| drop(session(now())));
    assert_broken_off("/v1/live", &outlived("/v1/live", &oldest, &front, others).await);
}
