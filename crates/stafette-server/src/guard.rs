//! Checks in front of every route: who calls, and whether it has the right that the route declares.
//! On TCP there is more to check. A browser on this machine visits untrusted pages, and any
//! of them can send requests here. The guard therefore refuses every request that comes neither
//! from our own page nor from a program with a token, before any route is matched.

mod credential;
mod rate_limit;
mod rules;
mod security_headers;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use stafette_engine::{Caller, Engine, Right, Scope};

use crate::clock::now;
use crate::launch::Launches;
use crate::principal::{Principal, Via};
use crate::rights::Rights;
use crate::serve::Stranger;
use crate::tokens::Tokens;
use crate::{MAX_BODY, Problem, page};
use rate_limit::Pace;

pub(crate) use credential::{Credential, look_again};
pub(crate) use rules::{too_long, unknown};
pub(crate) use security_headers::armour;

/// Time limit for the body of a request to arrive.
const BODY: Duration = Duration::from_secs(30);
/// Header with the token of an agent's turn.
pub(crate) const TURN_TOKEN: &str = "stafette-token";
/// Prefix of the WebSocket protocol that names a session: browsers let a page set no header there.
const SESSION: &str = "session.";

/// Address and host names of a TCP listener.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Door {
    /// Socket address that it listens on.
    pub address: SocketAddr,
    /// True if it uses TLS.
    pub tls: bool,
    /// Accepted host names, in addition to those of this machine.
    pub hosts: Vec<String>,
}

impl Door {
    /// Returns the URL for people and programs.
    #[must_use]
    pub fn url(&self) -> String {
        let name = match (self.hosts.first(), self.address.ip()) {
            (Some(host), _) => host.clone(),
            (None, ip) if ip.is_unspecified() => "localhost".to_owned(),
            (None, IpAddr::V6(ip)) => format!("[{ip}]"),
            (None, IpAddr::V4(ip)) => ip.to_string(),
        };
        format!("{}://{name}:{}", self.scheme(), self.address.port())
    }

    fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    /// Returns every `Host` value that is accepted.
    fn authorities(&self) -> Vec<String> {
        let port = self.address.port();
        let usual = if self.tls { 443 } else { 80 };
        let ours = ["127.0.0.1", "localhost", "[::1]"].map(str::to_owned);
        let own = match self.address.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let names = ours.into_iter().chain([own]);
        let names = names.chain(self.hosts.iter().map(|host| host.to_ascii_lowercase()));
        names
            .flat_map(|name| {
                let bare = (port == usual).then(|| name.clone());
                std::iter::once(format!("{name}:{port}")).chain(bare)
            })
            .collect()
    }
}

/// Checks that apply to every request on TCP.
#[derive(Debug)]
pub(crate) struct Guard {
    authorities: Vec<String>,
    origins: Vec<String>,
    tokens: Arc<Tokens>,
    launches: Arc<Launches>,
    rights: Rights,
    visits: Pace,
    refusals: Pace,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    /// IP address of the peer.
    pub(crate) ip: IpAddr,
    /// True if the connection uses TLS.
    pub(crate) tls: bool,
}

impl Guard {
    pub(crate) fn new(door: &Door, tokens: Arc<Tokens>, launches: Arc<Launches>) -> Self {
        let authorities = door.authorities();
        let origin = |name: &String| format!("{}://{name}", door.scheme());
        Guard {
            origins: authorities.iter().map(origin).collect(),
            authorities,
            tokens,
            launches,
            rights: Rights::new(),
            visits: Pace::new(200.0, 1000.0),
            refusals: Pace::new(50.0, 500.0),
        }
    }

    /// Checks everything but the body, and identifies the caller. `None` is a browser that asks for the
    /// page, which holds no secret: its credentials come with its requests.
    fn look(
        &self,
        peer: IpAddr,
        right: Right,
        request: &Request,
    ) -> Result<Option<Principal>, Problem> {
        let (headers, path) = (request.headers(), request.uri().path());
        rules::size(request.uri(), headers)?;
        rules::host(&self.authorities, request.uri(), headers)?;
        rules::method(request.method(), headers)?;
        rules::origin(&self.origins, headers)?;
        rules::site(request.method(), headers)?;
        let principal = match self.principal(request)? {
            Some(principal) => principal,
            None if right != Right::Public
                && page::is_asked_for(request.method(), path, headers) =>
            {
                let visit = self.visits.take(&peer.to_string(), Instant::now());
                return visit.map(|()| None).map_err(rules::too_fast);
            }
            None => Principal::nobody(),
        };
        principal.may(right)?;
        // Checked after the credentials: an unknown caller always gets the same refusal, whatever
        // it sends.
        rules::content(request.method(), headers)?;
        let name = match principal.via {
            Via::Nobody => peer.to_string(),
            _ => principal.name.clone(),
        };
        match self.visits.take(&name, Instant::now()) {
            Ok(()) => Ok(Some(principal)),
            Err(wait) => Err(rules::too_fast(wait)),
        }
    }

    /// Returns the credential of a request, by which its streams end.
    fn credential(&self, headers: &HeaderMap) -> Credential {
        let shown = headers.get(AUTHORIZATION).map_or_else(|| session(headers), bearer);
        let (tokens, launches) = (self.tokens.clone(), self.launches.clone());
        shown.map_or_else(Credential::default, |shown| Credential::new(tokens, launches, shown))
    }

    fn principal(&self, request: &Request) -> Result<Option<Principal>, Problem> {
        let headers = request.headers();
        if let Some(shown) = rules::only(headers, &AUTHORIZATION)? {
            let token = bearer(shown).unwrap_or_default();
            if let Some((name, standing)) = self.tokens.owner(now(), token) {
                return Ok(Some(Principal { name, caller: standing.into(), via: Via::Bearer }));
            }
            return self.page(token).map(Some).ok_or_else(rules::bad_token);
        }
        Ok(session(headers).and_then(|session| self.page(session)))
    }

    /// Returns the person behind a session of the page.
    fn page(&self, session: &str) -> Option<Principal> {
        let scope = self.launches.scope(now(), session)?;
        let (name, caller) = ("page".to_owned(), Caller::Person(scope));
        Some(Principal { name, caller, via: Via::Page })
    }
}

/// Returns the token in a header.
fn bearer(shown: &HeaderValue) -> Option<&str> {
    let (kind, token) = shown.to_str().ok()?.split_once(' ')?;
    kind.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns the session that a WebSocket of the page names.
fn session(headers: &HeaderMap) -> Option<&str> {
    let named = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let mut protocols =
        named.filter_map(|value| value.to_str().ok()).flat_map(|line| line.split(','));
    protocols.find_map(|protocol| protocol.trim().strip_prefix(SESSION))
}

/// A Unix socket, for people or for agents.
#[derive(Clone, Debug)]
pub(crate) struct LocalGuard {
    engine: Engine,
    rights: Rights,
    /// True for the socket of agents: a caller there shows the token of its turn.
    for_agents: bool,
}

/// The process at the other end of a Unix socket.
#[derive(Clone, Debug)]
pub(crate) struct LocalPeer {
    pid: Option<i32>,
    /// The agent that the process belongs to; `None` for a person's.
    agent: Option<Caller>,
}

impl LocalGuard {
    pub(crate) fn new(engine: Engine, for_agents: bool) -> Self {
        LocalGuard { engine, rights: Rights::new(), for_agents }
    }

    /// Looks once for each connection who is at its other end.
    pub(crate) fn peer(&self, pid: Option<i32>) -> LocalPeer {
        // A process that is not shown may be an agent's.
        let unknown = cfg!(target_os = "linux").then_some(Caller::Nobody);
        LocalPeer { pid, agent: pid.map_or(unknown, |pid| self.engine.sessions().of_process(pid)) }
    }

    fn look(&self, right: Right, request: &Request) -> Result<Principal, Problem> {
        let peer = request.extensions().get::<LocalPeer>();
        let LocalPeer { pid, agent } = peer.cloned().unwrap_or_else(|| self.peer(None));
        let token = rules::only(request.headers(), &HeaderName::from_static(TURN_TOKEN))?;
        let token = token.and_then(|token| token.to_str().ok()).filter(|token| !token.is_empty());
        let caller = match (token, agent, self.for_agents) {
            (Some(token), ..) => self.engine.sessions().of_token(token, pid)?,
            (None, _, true) => Caller::Nobody,
            (None, Some(agent), false) => agent,
            (None, None, false) => Caller::Person(Scope::Admin),
        };
        let principal = Principal::at_socket(caller, pid);
        match principal.may(right) {
            Err(_) if principal.caller == Caller::Nobody => Err(rules::no_turn_token()),
            decided => decided.map(|()| principal),
        }
    }
}

/// Passes a request on a Unix socket on, or answers it with a problem.
pub(crate) async fn guard_socket(
    State(guard): State<LocalGuard>,
    mut request: Request,
    next: Next,
) -> Response {
    let right = guard.rights.of(request.method().clone(), request.uri().clone()).await;
    match guard.look(right, &request) {
        Ok(principal) => {
            // An agent at the socket of people keeps no place there.
            let is_agent = principal.caller.agent().is_some();
            let stranger = request.extensions().get::<Stranger>();
            if let Some(stranger) = stranger.filter(|_| guard.for_agents || !is_agent) {
                stranger.is_known(is_agent);
            }
            request.extensions_mut().insert(principal);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// Passes a request on, or answers it with a problem.
pub(crate) async fn guard(
    State(guard): State<Arc<Guard>>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer =
        request.extensions().get::<Peer>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.ip);
    // Removes what a client could have sent: only the guard sets the principal.
    request.extensions_mut().remove::<Principal>();
    let right = guard.rights.of(request.method().clone(), request.uri().clone()).await;
    let looked = match guard.look(peer, right, &request) {
        Ok(Some(principal)) => {
            let stranger = request.extensions().get::<Stranger>();
            if let Some(stranger) = stranger.filter(|_| principal.via != Via::Nobody) {
                stranger.is_known(principal.caller.agent().is_some());
            }
            hold(request).await.map(|request| (principal, request))
        }
        Ok(None) => {
            let (parts, _) = request.into_parts();
            return armour(page::fallback(parts.method, parts.uri, parts.headers).await);
        }
        Err(problem) => Err(problem),
    };
    let answer = match looked {
        Ok((principal, mut request)) => {
            let credential = match principal.via {
                Via::Nobody => Credential::default(),
                _ => guard.credential(request.headers()),
            };
            request.extensions_mut().insert(principal);
            request.extensions_mut().insert(credential.clone());
            credential.bound(next.run(request).await)
        }
        Err(problem) => match guard.refusals.take(&peer.to_string(), Instant::now()) {
            Ok(()) => problem.into_response(),
            Err(wait) => rules::too_fast(wait).into_response(),
        },
    };
    armour(answer)
}

/// Reads the whole body within its limits, so that no handler waits for it.
async fn hold(request: Request) -> Result<Request, Problem> {
    let (parts, body) = request.into_parts();
    let bytes = tokio::time::timeout(BODY, axum::body::to_bytes(body, MAX_BODY)).await;
    match bytes {
        Ok(Ok(bytes)) => Ok(Request::from_parts(parts, Body::from(bytes))),
        Ok(Err(_)) => Err(rules::too_long(None)),
        Err(_) => Err(Problem::new(408, "slow_body", "The request's body did not arrive in time")),
    }
}
