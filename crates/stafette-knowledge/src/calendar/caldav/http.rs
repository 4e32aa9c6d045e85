//! HTTP to one server, with its user's word, by TLS wherever the address says so.
//!
//! A redirection is followed a few times, and the user's word goes nowhere but to the server that it
//! is for, or by TLS to another host of the same domain. Every wait has a deadline, and no answer is
//! read beyond a limit.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, ETAG, HOST, LOCATION, USER_AGENT};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::calendar::CalendarError;

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most that is read of an answer.
const LARGEST: usize = 32 << 20;

/// How many redirections are followed.
const HOPS: usize = 5;

/// An address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Url {
    tls: bool,
    host: String,
    port: u16,
    /// With a slash in front.
    path: String,
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

impl Url {
    pub(super) fn parse(text: &str) -> Result<Self, CalendarError> {
        let wrong = |why: &str| CalendarError::Failed { why: format!("`{text}` {why}") };
        let graphic = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        if !graphic || text.len() > 2048 {
            return Err(wrong("is not an address"));
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("is not an address"))?;
        let tls = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(wrong("is neither http nor https")),
        };
        let rest = rest.split(['#', '?']).next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(wrong("names a user, which belongs in its own setting"));
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong("has a port that is none"))?)
            }
            _ => (authority, if tls { 443 } else { 80 }),
        };
        if host.is_empty() {
            return Err(wrong("has no host"));
        }
        let path = if path.is_empty() { "/" } else { path };
        let host = host.to_ascii_lowercase();
        Ok(Url { tls, host, port, path: path.to_owned() })
    }

    /// Another address as this one's answer would name it.
    pub(super) fn join(&self, to: &str) -> Result<Url, CalendarError> {
        if to.contains("://") {
            return Url::parse(to);
        }
        let path = match to.starts_with('/') {
            true => to.to_owned(),
            false => {
                let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
                format!("{folder}/{to}")
            }
        };
        let mut url = self.clone();
        url.path.clear();
        Url::parse(&format!("{url}{path}"))
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn path_is(&self, path: &str) -> bool {
        self.path.trim_matches('/') == path.trim_matches('/')
    }

    fn authority(&self) -> String {
        match (self.tls, self.port) {
            (true, 443) | (false, 80) => self.host.clone(),
            (_, port) => format!("{}:{port}", self.host),
        }
    }

    /// Whether what is for `home` may go here too.
    fn belongs_to(&self, home: &Url) -> bool {
        let domain = |host: &str| {
            let mut labels = host.rsplitn(3, '.');
            let last: Vec<&str> = labels.by_ref().take(2).collect();
            (last.len() == 2).then(|| last.join("."))
        };
        let same = (self.tls, &self.host, self.port) == (home.tls, &home.host, home.port);
        let named = home.host.parse::<std::net::IpAddr>().is_err();
        same || (self.tls && named && domain(&self.host) == domain(&home.host))
    }
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) etag: Option<String>,
    location: Option<String>,
    body: Bytes,
}

impl Answer {
    pub(super) fn text(&self) -> Result<String, CalendarError> {
        let text = String::from_utf8(self.body.to_vec());
        text.map_err(|_| CalendarError::Failed { why: "the answer is not UTF-8".to_owned() })
    }
}

/// Who asks.
pub(super) struct Http {
    home: Url,
    authorization: String,
    tls: Option<TlsConnector>,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("home", &self.home).finish_non_exhaustive()
    }
}

fn away(why: impl fmt::Display) -> CalendarError {
    CalendarError::Away { why: why.to_string() }
}

impl Http {
    pub(super) fn new(home: &Url, user: &str, password: &str) -> Result<Self, CalendarError> {
        let failed = |why: String| CalendarError::Failed { why };
        let tls = match home.tls {
            false => None,
            true => {
                let provider = Arc::new(ring::default_provider());
                let config = ClientConfig::builder_with_provider(provider)
                    .with_safe_default_protocol_versions()
                    .and_then(BuilderVerifierExt::with_platform_verifier)
                    .map_err(|error| failed(format!("there is no TLS: {error}")))?;
                Some(TlsConnector::from(Arc::new(config.with_no_client_auth())))
            }
        };
        let authorization = format!("Basic {}", base64(format!("{user}:{password}").as_bytes()));
        Ok(Http { home: home.clone(), authorization, tls })
    }

    pub(super) async fn send(
        &self,
        method: &str,
        to: &Url,
        headers: &[(&str, &str)],
        body: impl Into<String>,
    ) -> Result<Answer, CalendarError> {
        let body = Bytes::from(body.into());
        let mut at = to.clone();
        for _ in 0..HOPS {
            if !at.belongs_to(&self.home) {
                let why = format!("{at} belongs to somebody else; it is not followed");
                return Err(CalendarError::Refused { why });
            }
            let asked = self.once(method, &at, headers, body.clone());
            let answer = timeout(PATIENCE, asked)
                .await
                .map_err(|_| away(format!("{at} did not answer in {} s", PATIENCE.as_secs())))??;
            match (answer.status, &answer.location) {
                (301 | 302 | 307 | 308, Some(location)) => at = at.join(location)?,
                _ => return Ok(answer),
            }
        }
        Err(CalendarError::Failed { why: format!("{to} leads in circles") })
    }

    async fn once(
        &self,
        method: &str,
        at: &Url,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Answer, CalendarError> {
        let wrong = |error: &dyn fmt::Display| CalendarError::Failed { why: error.to_string() };
        let method = Method::from_bytes(method.as_bytes()).map_err(|error| wrong(&error))?;
        let mut request = Request::builder()
            .method(method)
            .uri(&at.path)
            .header(HOST, at.authority())
            .header(USER_AGENT, "stafette")
            .header(AUTHORIZATION, &self.authorization);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body)).map_err(|error| wrong(&error))?;
        let host = at.host.trim_matches(['[', ']']);
        let stream = TcpStream::connect((host, at.port)).await.map_err(away)?;
        match (at.tls, &self.tls) {
            (false, _) => exchange(stream, request).await,
            (true, Some(tls)) => {
                let name = ServerName::try_from(host.to_owned()).map_err(|error| wrong(&error))?;
                exchange(tls.connect(name, stream).await.map_err(away)?, request).await
            }
            (true, None) => Err(CalendarError::Refused {
                why: format!("{at} wants TLS, the configured address has none"),
            }),
        }
    }
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Answer, CalendarError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(away)?;
    // It ends with the sender, at the latest when this request has its answer or its deadline.
    let driver = tokio::spawn(connection);
    let answer = async {
        let response = sender.send_request(request).await.map_err(away)?;
        let text = |name| {
            response.headers().get(&name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        let (status, etag, location) = (response.status().as_u16(), text(ETAG), text(LOCATION));
        let body = Limited::new(response.into_body(), LARGEST).collect().await.map_err(away)?;
        Ok(Answer { status, etag, location, body: body.to_bytes() })
    };
    let answer = answer.await;
    driver.abort();
    answer
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place)) as usize & 63];
            out.push(if place > chunk.len() { '=' } else { char::from(letter) });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_14_a_word_goes_only_to_its_own_server_or_its_domain_by_tls() {
        let url = |text| Url::parse(text).expect("an address");
        let home = url("https://caldav.icloud.example/");
        assert!(url("https://p42-caldav.icloud.example/x").belongs_to(&home));
        assert!(!url("http://caldav.icloud.example/x").belongs_to(&home));
        assert!(!url("https://elsewhere.example/x").belongs_to(&home));
        let local = url("http://127.0.0.1:5232/");
        assert!(!url("https://9.9.0.1/").belongs_to(&local));
        assert!(!url("http://127.0.0.1:80/").belongs_to(&local));
    }

    #[test]
    fn s1_14_addresses_are_put_together_as_servers_mean_them() {
        let home = Url::parse("http://Host:5232/ada/cal/").expect("an address");
        assert_eq!(home.join("x.ics").expect("one").to_string(), "http://host:5232/ada/cal/x.ics");
        assert_eq!(home.join("/ada/").expect("one").to_string(), "http://host:5232/ada/");
        assert!(Url::parse("ftp://x/").is_err());
        assert!(Url::parse("http://a:b@x/").is_err());
        assert!(Url::parse("http:// x/").is_err());
    }

    #[test]
    fn base64_is_that_of_the_standard() {
        for (text, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(text.as_bytes()), coded);
        }
    }
}
