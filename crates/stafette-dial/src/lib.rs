//! A connection to another machine: plain, or by TLS to whom this system trusts.
//!
//! Invariants: no redirects, no proxies, nothing kept open; every certificate is checked against
//! the name that was asked for.

use std::io;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Nobody was reached.
#[derive(Debug, Error)]
pub enum DialError {
    /// The host's name cannot be in a certificate.
    #[error("`{host}` is not the name of a host")]
    Host {
        /// What was given.
        host: String,
    },
    /// This system trusts nobody.
    #[error("this system trusts no certificates: install ca-certificates")]
    NoTrust,
    /// The protocol cannot be set up.
    #[error("TLS cannot be used")]
    Tls {
        /// Why.
        source: rustls::Error,
    },
    /// The connection was not made.
    #[error(transparent)]
    Broken(#[from] io::Error),
}

impl DialError {
    /// Whether another try would end the same way.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, DialError::Host { .. } | DialError::Tls { .. })
    }
}

/// Both ways of a connection.
pub trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// Which protocol is spoken over TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Speak {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// A connection to `host`, whose brackets do not matter; with `tls` to say what is spoken when it
/// is not plain.
///
/// # Errors
/// When there is none.
pub async fn dial(host: &str, port: u16, tls: Option<Speak>) -> Result<Box<dyn Wire>, DialError> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((host, port)).await?;
    let Some(speak) = tls else { return Ok(Box::new(stream)) };
    shake_hands(host, stream, config(speak)?).await
}

/// Secures a connection to `host` that is there already, for a protocol that begins in the open.
///
/// # Errors
/// When nobody there can prove to be `host`.
pub async fn secure(host: &str, stream: impl Wire + 'static) -> Result<Box<dyn Wire>, DialError> {
    static PLAIN: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    shake_hands(host, stream, made_once(&PLAIN, None)?).await
}

async fn shake_hands(
    host: &str,
    stream: impl Wire + 'static,
    config: Arc<ClientConfig>,
) -> Result<Box<dyn Wire>, DialError> {
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|_| DialError::Host { host: host.to_owned() })?;
    Ok(Box::new(TlsConnector::from(config).connect(name, stream).await?))
}

fn config(speak: Speak) -> Result<Arc<ClientConfig>, DialError> {
    static HTTP1: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    static HTTP2: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    match speak {
        Speak::Http1 => made_once(&HTTP1, Some("http/1.1")),
        Speak::Http2 => made_once(&HTTP2, Some("h2")),
    }
}

/// Reads whom this system trusts when that is first asked.
fn made_once(
    made: &OnceLock<Arc<ClientConfig>>,
    protocol: Option<&str>,
) -> Result<Arc<ClientConfig>, DialError> {
    if let Some(config) = made.get() {
        return Ok(config.clone());
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(DialError::NoTrust);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|source| DialError::Tls { source })?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocol.iter().map(|name| name.as_bytes().to_vec()).collect();
    Ok(made.get_or_init(|| Arc::new(config)).clone())
}
