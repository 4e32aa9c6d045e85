//! One request to another machine: no redirects, no proxies, nothing kept open.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use stafette_dial::{DialError, Speak, Wire, dial};

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
    let failed = |error: DialError| match error.is_final() {
        true => Failed::for_good(error.to_string()),
        false => Failed::now(error.to_string()),
    };
    let wire = dial(host, port, tls.then_some(Speak::Http1)).await.map_err(failed)?;
    exchange(wire, request).await
}

async fn exchange(wire: Box<dyn Wire>, request: Request<Full<Bytes>>) -> Result<(), Failed> {
    let broken = |error: hyper::Error| Failed::now(error.to_string());
    let (mut sender, connection) = http1::handshake(TokioIo::new(wire)).await.map_err(broken)?;
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
