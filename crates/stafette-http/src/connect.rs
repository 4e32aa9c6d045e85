//! A connection, plain or with TLS.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::{Address, HttpError};

/// Time limit of one attempt to connect.
const CONNECT: Duration = Duration::from_secs(10);

/// A bidirectional connection.
pub trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// HTTP version to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Speak {
    /// HTTP version 1.1.
    Http1,
    /// HTTP version 2.
    Http2,
}

/// Connects to the first address that accepts; with TLS, the certificate must match the host.
pub(crate) async fn connect(
    address: &Address,
    found: &[SocketAddr],
    speak: Speak,
) -> Result<Box<dyn Wire>, HttpError> {
    let unreachable = |why: String| HttpError::Unreachable { at: address.authority(), why };
    // Checked first, so that no connection is made in vain.
    let tls = match address.is_tls() {
        false => None,
        true => {
            let named = ServerName::try_from(address.host().to_owned());
            let named = named.map_err(|_| HttpError::Address {
                url: address.to_string(),
                why: "no certificate can be for that host",
            })?;
            Some((TlsConnector::from(config(speak)?), named))
        }
    };
    let stream = open(found).await.map_err(unreachable)?;
    let Some((connector, named)) = tls else { return Ok(Box::new(stream)) };
    shake_hands(connector, named, stream).await.map_err(unreachable)
}

/// Starts TLS with `host` on an open connection, for a protocol that begins in plain text.
///
/// # Errors
/// When the peer has no valid certificate for `host`.
pub async fn secure(host: &str, stream: impl Wire + 'static) -> Result<Box<dyn Wire>, HttpError> {
    static PLAIN: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    let at = || host.to_owned();
    let named = ServerName::try_from(at());
    let why = "no certificate can be for that host";
    let named = named.map_err(|_| HttpError::Address { url: at(), why })?;
    let connector = TlsConnector::from(made_once(&PLAIN, None)?);
    let secured = shake_hands(connector, named, stream).await;
    secured.map_err(|why| HttpError::Unreachable { at: at(), why })
}

async fn shake_hands(
    connector: TlsConnector,
    named: ServerName<'static>,
    stream: impl Wire + 'static,
) -> Result<Box<dyn Wire>, String> {
    match timeout(CONNECT, connector.connect(named, stream)).await {
        Ok(Ok(stream)) => Ok(Box::new(stream)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no TLS within {} s", CONNECT.as_secs())),
    }
}

async fn open(found: &[SocketAddr]) -> Result<TcpStream, String> {
    let mut why = "no address".to_owned();
    for address in found {
        match timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => why = error.to_string(),
            Err(_) => why = format!("no connection within {} s", CONNECT.as_secs()),
        }
    }
    Err(why)
}

fn config(speak: Speak) -> Result<Arc<ClientConfig>, HttpError> {
    static HTTP1: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    static HTTP2: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    match speak {
        Speak::Http1 => made_once(&HTTP1, Some("http/1.1")),
        Speak::Http2 => made_once(&HTTP2, Some("h2")),
    }
}

/// Creates the configuration on first use, with the certificates that this system trusts.
fn made_once(
    made: &OnceLock<Arc<ClientConfig>>,
    protocol: Option<&str>,
) -> Result<Arc<ClientConfig>, HttpError> {
    if let Some(config) = made.get() {
        return Ok(config.clone());
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let why = "this system trusts no certificates: install ca-certificates".to_owned();
        return Err(HttpError::NoTls { why });
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| HttpError::NoTls { why: error.to_string() })?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocol.iter().map(|name| name.as_bytes().to_vec()).collect();
    Ok(made.get_or_init(|| Arc::new(config)).clone())
}
