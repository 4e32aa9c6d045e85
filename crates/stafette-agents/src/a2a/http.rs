//! Plain HTTP/1.1 to one address: what the runner asks with, and what push notifications are
//! posted with.
//!
//! No redirect is ever followed, every wait has a deadline, and no answer is read beyond a limit.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// The longest address that is understood.
const LONGEST: usize = 2048;

/// Why there was no answer.
#[derive(Debug, Error)]
pub enum HttpError {
    /// The address cannot be used.
    #[error("`{url}` cannot be used: {why}")]
    Address {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Nobody can be reached there.
    #[error("{at} cannot be reached: {why}")]
    Unreachable {
        /// Where.
        at: String,
        /// Why.
        why: String,
    },
    /// It took too long.
    #[error("{at} did not answer within {} s", within.as_secs())]
    Late {
        /// Where.
        at: String,
        /// How long it had.
        within: Duration,
    },
    /// The connection broke.
    #[error("the connection to {at} broke: {why}")]
    Broken {
        /// Where.
        at: String,
        /// How.
        why: String,
    },
    /// The answer is larger than it may be.
    #[error("the answer of {at} is larger than {limit} bytes")]
    TooLarge {
        /// Where.
        at: String,
        /// The most that is read.
        limit: usize,
    },
}

impl HttpError {
    /// Whether another try can go better.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        !matches!(self, HttpError::Address { .. })
    }
}

/// An `http` address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    host: String,
    port: u16,
    /// With its query, and always with a slash in front.
    path: String,
}

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// When it is not one, names a user, or would need TLS.
    pub fn parse(url: &str) -> Result<Address, HttpError> {
        let wrong = |why| HttpError::Address { url: url.chars().take(200).collect(), why };
        if url.len() > LONGEST {
            return Err(wrong("it is too long"));
        }
        if url.bytes().any(|byte| byte <= b' ' || byte == 0x7f || byte == b'\\') {
            return Err(wrong("it has characters that no address has"));
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it is not a URL"))?;
        match scheme.to_ascii_lowercase().as_str() {
            "http" => {}
            "https" => return Err(wrong("https is not supported yet; use http on this machine")),
            _ => return Err(wrong("only http can be spoken")),
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(wrong("it names a user"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or_else(|| wrong("it has no host"))?;
                (host, after.strip_prefix(':').or(after.is_empty().then_some("80")))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, Some("80")),
            },
        };
        let port = port.and_then(|port| port.parse().ok()).ok_or_else(|| wrong("its port"))?;
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Address { host: host.to_ascii_lowercase(), port, path })
    }

    /// The same place with another path below this one.
    #[must_use]
    pub fn below(&self, path: &str) -> Address {
        let base = self.path.split('?').next().unwrap_or_default().trim_end_matches('/');
        Address { path: format!("{base}{path}"), ..self.clone() }
    }

    /// Whether both are the same server; the names of this machine mean the same.
    #[must_use]
    pub fn is_beside(&self, other: &Address) -> bool {
        let own = |address: &Address| {
            let ip = address.host.parse::<IpAddr>();
            address.host == "localhost"
                || ip.is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
        };
        self.port == other.port && (self.host == other.host || (own(self) && own(other)))
    }

    /// The same server as `other`, with this path.
    #[must_use]
    pub fn on(&self, other: &Address) -> Address {
        Address { path: self.path.clone(), ..other.clone() }
    }

    /// The path, without its query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    fn name(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// Every address that its name stands for.
    ///
    /// # Errors
    /// When the name stands for none.
    pub async fn resolve(&self) -> Result<Vec<SocketAddr>, HttpError> {
        let unreachable = |why: String| HttpError::Unreachable { at: self.name(), why };
        let found = timeout(CONNECT, tokio::net::lookup_host((self.host.as_str(), self.port)));
        let found = found.await.map_err(|_| unreachable("its name is not found in time".into()))?;
        let found: Vec<SocketAddr> =
            found.map_err(|error| unreachable(error.to_string()))?.collect();
        match found.is_empty() {
            true => Err(unreachable("its name stands for nothing".into())),
            false => Ok(found),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "http://{}{}", self.name(), self.path)
    }
}

/// One request.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// Where.
    pub address: &'a Address,
    /// The value of `Authorization`, if one is needed.
    pub authorization: Option<&'a str>,
    /// Further headers.
    pub headers: &'a [(&'a str, &'a str)],
    /// What is posted; without it, it is a GET.
    pub body: Option<Vec<u8>>,
    /// How long the head of the answer may take.
    pub within: Duration,
}

/// An answer whose head has come.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    at: String,
    stream: bool,
    body: Incoming,
}

impl Answer {
    /// Whether it is a stream of events.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.stream
    }

    /// All of it, when it is no larger than `limit` and there in time.
    ///
    /// # Errors
    /// When it is larger, late or broken.
    pub async fn whole(mut self, limit: usize, within: Duration) -> Result<Vec<u8>, HttpError> {
        let at = self.at.clone();
        let read = async {
            let mut whole = Vec::new();
            while let Some(chunk) = self.chunk().await? {
                if whole.len() + chunk.len() > limit {
                    return Err(HttpError::TooLarge { at: self.at.clone(), limit });
                }
                whole.extend_from_slice(&chunk);
            }
            Ok(whole)
        };
        timeout(within, read).await.unwrap_or(Err(HttpError::Late { at, within }))
    }

    /// The next piece; nothing at the end. May be dropped and called again.
    ///
    /// # Errors
    /// When the connection broke.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Some(Err(error)) => {
                    return Err(HttpError::Broken { at: self.at.clone(), why: error.to_string() });
                }
            }
        }
    }
}

/// Asks, at whatever the address's name stands for.
///
/// # Errors
/// When nobody answers.
pub async fn ask(ask: Ask<'_>) -> Result<Answer, HttpError> {
    let found = ask.address.resolve().await?;
    ask_at(ask, &found).await
}

/// Asks at these addresses and no others, the first that takes the connection.
///
/// # Errors
/// When nobody answers.
pub async fn ask_at(ask: Ask<'_>, found: &[SocketAddr]) -> Result<Answer, HttpError> {
    let at = ask.address.name();
    let stream = connect(&at, found).await?;
    let broken = |why: String| HttpError::Broken { at: at.clone(), why };
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(error.to_string()))?;
    // It ends with the answer, or when that is dropped.
    tokio::spawn(connection);
    let method = if ask.body.is_some() { Method::POST } else { Method::GET };
    let mut request = Request::builder()
        .method(method)
        .uri(ask.address.path.as_str())
        .header(HOST, at.as_str())
        .header(ACCEPT, "application/json, text/event-stream");
    if ask.body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    if let Some(authorization) = ask.authorization {
        request = request.header(AUTHORIZATION, authorization);
    }
    for (name, value) in ask.headers {
        request = request.header(*name, *value);
    }
    let body = Full::new(Bytes::from(ask.body.unwrap_or_default()));
    let request = request.body(body).map_err(|error| broken(error.to_string()))?;
    let answer = timeout(ask.within, sender.send_request(request)).await;
    let answer: Response<Incoming> = answer
        .map_err(|_| HttpError::Late { at: at.clone(), within: ask.within })?
        .map_err(|error| broken(error.to_string()))?;
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    Ok(Answer {
        status: answer.status().as_u16(),
        stream: kind.is_some_and(|kind| kind.starts_with("text/event-stream")),
        body: answer.into_body(),
        at,
    })
}

async fn connect(at: &str, found: &[SocketAddr]) -> Result<TcpStream, HttpError> {
    let mut why = "no address".to_owned();
    for address in found {
        match timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => why = error.to_string(),
            Err(_) => why = format!("no connection within {} s", CONNECT.as_secs()),
        }
    }
    Err(HttpError::Unreachable { at: at.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_11_an_address_is_read_and_odd_ones_are_refused() {
        let address = Address::parse("http://LocalHost:9/a?b=c#d").unwrap();
        assert_eq!(address.to_string(), "http://localhost:9/a?b=c");
        assert_eq!(address.below("/x").to_string(), "http://localhost:9/a/x");
        assert_eq!(Address::parse("http://[::1]").unwrap().to_string(), "http://[::1]:80/");
        for odd in [
            "https://example.org",
            "file:///etc/passwd",
            "http://me@host/",
            "http://",
            "http://host:port/",
            "http://a b/",
            "http://a\\b/",
            "http://[::1/",
            "host",
        ] {
            assert!(Address::parse(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn b_11_the_names_of_this_machine_are_one_server() {
        let parse = |url| Address::parse(url).unwrap();
        let own = parse("http://127.0.0.1:9/");
        assert!(own.is_beside(&parse("http://localhost:9/a2a")));
        assert!(own.is_beside(&parse("http://0.0.0.0:9/a2a")));
        assert!(!own.is_beside(&parse("http://localhost:10/")));
        assert!(!own.is_beside(&parse("http://10.0.0.1:9/")));
    }
}
