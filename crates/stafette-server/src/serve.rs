//! Connections: their number, time limits, sizes, and the peer.

mod strangers;
mod tls;

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Extensions, Request};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};

use crate::guard::{LocalGuard, Peer, guard_socket};

pub(crate) use strangers::Stranger;
use strangers::{Origin, Strangers};
pub use tls::{Tls, TlsError};

/// Time limit for the headers of a request to arrive.
const HEADERS: Duration = Duration::from_secs(15);
/// Maximum size of a connection's read buffer, in bytes.
const BUFFER: usize = 64 * 1024;
/// Maximum number of headers.
const COUNT: usize = 64;
/// Time limit for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Serves a Unix socket until it is dropped. A process that connects and says nothing keeps nobody
/// else out.
pub(crate) async fn socket(listener: UnixListener, guard: LocalGuard, router: Router) {
    let asked = axum::middleware::from_fn_with_state(guard.clone(), guard_socket);
    // The guard runs before any route is matched.
    let router = Router::new().fallback_service(router).layer(asked);
    let mut strangers = Strangers::new();
    loop {
        match listener.accept().await {
            Err(error) => pass(&error).await,
            Ok((stream, _)) => {
                let pid = stream.peer_cred().ok().and_then(|credentials| credentials.pid());
                let (guard, router) = (guard.clone(), router.clone());
                let stranger = strangers.admit(Origin::Process(pid)).await;
                tokio::spawn(async move {
                    let (peer, known) = (guard.peer(pid), stranger.clone());
                    let introduce = move |request: &mut Extensions| {
                        request.insert(peer.clone());
                        request.insert(known.clone());
                    };
                    tokio::select! {
                        // What has arrived is read first.
                        biased;
                        () = speak(stream, router, introduce) => {}
                        () = stranger.sent_away() => {}
                    }
                    stranger.gone();
                });
            }
        }
    }
}

/// Serves a TCP port until it is dropped. Whoever connects and says nothing keeps nobody else out.
pub(crate) async fn port(listener: TcpListener, tls: Option<Tls>, router: Router) {
    let mut strangers = Strangers::new();
    loop {
        match listener.accept().await {
            Err(error) => pass(&error).await,
            Ok((stream, address)) => {
                let _ = stream.set_nodelay(true);
                // Turns an IPv4-mapped address of an IPv6 socket back into IPv4.
                let peer = Peer { ip: address.ip().to_canonical(), tls: tls.is_some() };
                let (tls, router) = (tls.clone(), router.clone());
                let stranger = strangers.admit(Origin::Address(peer.ip)).await;
                tokio::spawn(async move {
                    let known = stranger.clone();
                    let introduce = move |request: &mut Extensions| {
                        request.insert(peer);
                        request.insert(known.clone());
                    };
                    let served = async {
                        match tls {
                            None => speak(stream, router, introduce).await,
                            Some(tls) => agree(stream, &tls, router, introduce).await,
                        }
                    };
                    tokio::select! {
                        // What has arrived is read first.
                        biased;
                        () = served => {}
                        () = stranger.sent_away() => {}
                    }
                    stranger.gone();
                });
            }
        }
    }
}

async fn agree(stream: TcpStream, tls: &Tls, router: Router, introduce: impl Introduce) {
    let agreed = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await;
    if let Ok(Ok(stream)) = agreed {
        speak(stream, router, introduce).await;
    }
}

/// Adds to each request who sent it.
trait Introduce: Fn(&mut Extensions) + Send + Sync + 'static {}

impl<F: Fn(&mut Extensions) + Send + Sync + 'static> Introduce for F {}

/// Waits after a failed accept; most often the process is out of file descriptors, which passes.
async fn pass(error: &std::io::Error) {
    tracing::warn!(%error, "a connection cannot be accepted");
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// Returns a router's answer to a request that nobody sent.
pub(crate) async fn answer(router: Router, request: Request<Body>) -> Response {
    let Ok(answer) = TowerToHyperService::new(router).call(request).await;
    answer
}

async fn speak<S>(stream: S, router: Router, introduce: impl Introduce)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        introduce(request.extensions_mut());
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_buf_size(BUFFER)
        .max_headers(COUNT)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection broke");
    }
}
