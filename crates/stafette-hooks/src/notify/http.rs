//! One request to another machine: no redirects, no proxies, nothing kept open.

use std::sync::{Arc, OnceLock};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::channel::Failed;

/// Posts JSON; every answer but success is a failure.
pub(super) async fn post(
    url: &str,
    headers: Vec<(String, String)>,
    body: String,
) -> Result<(), Failed> {
    let uri: Uri = url.parse().map_err(|_| Failed::for_good("the address cannot be read"))?;
    let host = uri.host().ok_or_else(|| Failed::for_good("the address names no host"))?;
    let tls = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let named = uri.authority().map_or(host, |authority| authority.as_str());
    let mut request = Request::post(path)
        .header(HOST, named)
        .header(USER_AGENT, concat!("stafette/", env!("CARGO_PKG_VERSION")))
        .header(CONTENT_TYPE, "application/json");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| Failed::for_good(error.to_string()))?;
    let broken = |error: std::io::Error| Failed::now(error.to_string());
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((bare, port)).await.map_err(broken)?;
    match tls {
        false => exchange(stream, request).await,
        true => {
            let name = ServerName::try_from(bare.to_owned())
                .map_err(|error| Failed::for_good(error.to_string()))?;
            let stream = connector()?.connect(name, stream).await.map_err(broken)?;
            exchange(stream, request).await
        }
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<(), Failed> {
    let broken = |error: hyper::Error| Failed::now(error.to_string());
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let talking = tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(broken);
    // What else it says does not matter.
    talking.abort();
    let status = answer?.status();
    match status.as_u16() {
        200..=299 => Ok(()),
        // They ask to be left alone for a while, or have trouble of their own.
        408 | 425 | 429 | 500..=599 => Err(Failed::now(format!("it answered {status}"))),
        _ => Err(Failed::for_good(format!("it answered {status}"))),
    }
}

/// Trusts whom this system trusts.
fn connector() -> Result<TlsConnector, Failed> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(TlsConnector::from(config.clone()));
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(Failed::now("this system trusts no certificates: install ca-certificates"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Failed::for_good(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(CONFIG.get_or_init(|| Arc::new(config)).clone()))
}
