//! A client for Bolt, the protocol of Neo4j, in versions 4.4 and 5.
//!
//! It does what the graph needs: queries with parameters in transactions, over connections that are
//! used again. It asks the one server of its address: nothing is routed through a cluster.
//!
//! Invariants:
//! - Every wait has a deadline, and no message is longer than a limit.
//! - A connection is used again only after a transaction that has ended, and after a reset.
//! - Over TLS, the certificate has to be for the host of the address, and trusted by this system.

mod link;
mod message;
mod pack;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use stafette_core::Fields;
use stafette_http::{Address, HttpError, Wire, secure};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use link::Link;
use message::Request;

/// The number of connections.
const CONNECTIONS: usize = 8;

/// The port of an address that names none.
const PORT: u16 = 7687;

/// The time limit for a connection: a server that has just started is slow with its first answers.
const OPEN: Duration = Duration::from_secs(20);

/// The time limit for the sign of life of a connection that was not used for some time.
const ALIVE: Duration = Duration::from_secs(5);

/// The reason why a query failed.
#[derive(Debug, Error)]
pub(super) enum BoltError {
    #[error("the address is not one of Neo4j: {0}")]
    Address(&'static str),
    /// The server has refused a request.
    #[error("{code}: {message}")]
    Refused { code: String, message: String },
    #[error("{0}")]
    Broken(String),
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
    #[error("{what} is longer than {} MiB", link::LONGEST >> 20)]
    TooLong { what: &'static str },
    /// What answers is no server of a version that is known.
    #[error("{0}")]
    Strange(&'static str),
    /// A value is none that can be read.
    #[error("{0}")]
    Malformed(&'static str),
}

/// Who asks, and for which database.
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
    /// The server's default if `None`.
    pub(super) database: Option<String>,
}

/// A server, and the connections to it.
pub(super) struct Driver {
    at: Address,
    tls: bool,
    login: Login,
    places: Semaphore,
    idle: Mutex<Vec<Link>>,
}

impl Driver {
    /// Makes a client without connecting.
    pub(super) fn new(uri: &str, login: Login) -> Result<Driver, BoltError> {
        let (at, tls) = address(uri).map_err(BoltError::Address)?;
        let places = Semaphore::new(CONNECTIONS);
        Ok(Driver { at, tls, login, places, idle: Mutex::default() })
    }

    /// Begins a transaction. It is rolled back unless it is committed.
    pub(super) async fn begin(&self) -> Result<Transaction<'_>, BoltError> {
        let place = timeout(OPEN, self.places.acquire()).await;
        let place = place.map_err(|_| BoltError::Late(OPEN))?;
        let place = place.map_err(|error| BoltError::Broken(error.to_string()))?;
        let mut link = match self.alive().await {
            Some(link) => link,
            None => timeout(OPEN, self.open()).await.map_err(|_| BoltError::Late(OPEN))??,
        };
        link.ask(Request::Begin { database: self.login.database.as_deref() }).await?;
        Ok(Transaction { link, driver: self, _place: place })
    }

    /// Takes a connection that still works. If one does not, none does.
    async fn alive(&self) -> Option<Link> {
        let mut link = self.with_idle(Vec::pop)?;
        match timeout(ALIVE, link.reset()).await {
            Ok(Ok(())) => Some(link),
            Ok(Err(_)) | Err(_) => {
                self.with_idle(Vec::clear);
                None
            }
        }
    }

    async fn open(&self) -> Result<Link, BoltError> {
        let stream = TcpStream::connect((self.at.host(), self.at.port())).await?;
        stream.set_nodelay(true)?;
        let wire: Box<dyn Wire> = match self.tls {
            true => secure(self.at.host(), stream)
                .await
                .map_err(|error| BoltError::Broken(error.to_string()))?,
            false => Box::new(stream),
        };
        Link::open(wire, &self.login).await
    }

    fn with_idle<T>(&self, f: impl FnOnce(&mut Vec<Link>) -> T) -> T {
        f(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Reads the address of a server, and whether it is asked over TLS.
fn address(uri: &str) -> Result<(Address, bool), &'static str> {
    let (scheme, rest) = uri.split_once("://").ok_or("it is not a URL")?;
    let tls = match scheme.to_ascii_lowercase().as_str() {
        "bolt" | "neo4j" => false,
        "bolt+s" | "neo4j+s" => true,
        _ => return Err("it must begin with bolt://, bolt+s://, neo4j:// or neo4j+s://"),
    };
    let at = Address::parse_with(&format!("http://{rest}"), PORT).map_err(|error| match error {
        HttpError::Address { why, .. } => why,
        _ => "it has no host",
    })?;
    match at.path() {
        "/" => Ok((at, tls)),
        _ => Err("it has a path; the database has a setting of its own"),
    }
}

/// An open transaction.
pub(super) struct Transaction<'a> {
    link: Link,
    driver: &'a Driver,
    _place: SemaphorePermit<'a>,
}

impl Transaction<'_> {
    /// Runs a query with named parameters, and returns all its rows.
    pub(super) async fn run(&mut self, text: &str, with: &Value) -> Result<Vec<Fields>, BoltError> {
        self.link.run(text, with).await
    }

    /// Makes everything true that it has written.
    pub(super) async fn commit(mut self) -> Result<(), BoltError> {
        self.link.ask(Request::Commit).await?;
        self.driver.with_idle(|idle| idle.push(self.link));
        Ok(())
    }

    /// Gives up everything that it has written.
    pub(super) async fn roll_back(mut self) -> Result<(), BoltError> {
        self.link.reset().await?;
        self.driver.with_idle(|idle| idle.push(self.link));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_12_addresses_of_servers_are_read_and_odd_ones_refused() {
        let read = |uri: &str| {
            let (at, tls) = address(uri).unwrap_or_else(|why| panic!("{uri}: {why}"));
            (at.host().to_owned(), at.port(), tls)
        };
        assert_eq!(read("bolt://127.0.0.1"), ("127.0.0.1".into(), 7687, false));
        assert_eq!(read("BOLT+S://Graph.example:9"), ("graph.example".into(), 9, true));
        assert_eq!(read("neo4j+s://[::1]/"), ("::1".into(), 7687, true));
        assert_eq!(read("neo4j://here?policy=x"), ("here".into(), 7687, false));
        for (odd, why) in [
            ("127.0.0.1:7687", "not a URL"),
            ("http://here", "must begin"),
            ("bolt+ssc://here", "must begin"),
            ("bolt://", "no host"),
            ("bolt://ada:word@here", "a setting of its own"),
            ("bolt://here/graph", "a setting of its own"),
        ] {
            let refused = address(odd).expect_err(odd);
            assert!(refused.contains(why), "{odd}: {refused}");
        }
    }
}
