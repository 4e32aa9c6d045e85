//! An HTTP request.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, LOCATION, USER_AGENT};
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::time::{Instant, timeout_at};

use crate::answer::Driver;
use crate::connect::{Speak, connect};
use crate::{Address, Boxed, HttpError, HttpResponse};

/// Default time limit for the headers of the response.
const WITHIN: Duration = Duration::from_secs(30);

/// Value of the header `User-Agent`.
const AGENT: &str = concat!("stafette/", env!("CARGO_PKG_VERSION"));

/// A request to be sent.
#[derive(Clone)]
pub struct HttpRequest {
    method: String,
    address: Address,
    headers: Vec<(String, String)>,
    body: Bytes,
    within: Duration,
    found: Option<Vec<SocketAddr>>,
    speak: Speak,
}

impl fmt::Debug for HttpRequest {
    /// Omits headers and body, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HttpRequest { method, address, within, .. } = self;
        write!(f, "{method} {address} within {within:?}")
    }
}

impl HttpRequest {
    /// Builds a request with any method.
    #[must_use]
    pub fn new(method: &str, address: &Address) -> Self {
        HttpRequest {
            method: method.to_owned(),
            address: address.clone(),
            headers: Vec::new(),
            body: Bytes::new(),
            within: WITHIN,
            found: None,
            speak: Speak::Http1,
        }
    }

    /// Builds a GET request.
    #[must_use]
    pub fn get(address: &Address) -> Self {
        Self::new("GET", address)
    }

    /// Builds a POST request with content type `kind`.
    #[must_use]
    pub fn post(address: &Address, kind: &str, body: impl Into<Bytes>) -> Self {
        Self::new("POST", address).header(CONTENT_TYPE.as_str(), kind).body(body)
    }

    /// Adds a header to the request.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Adds the header `Authorization`, such as `Bearer` and a token; nothing for `None`.
    #[must_use]
    pub fn authorization(self, shown: Option<&str>) -> Self {
        match shown {
            Some(shown) => self.header(AUTHORIZATION.as_str(), shown),
            None => self,
        }
    }

    /// Adds the header for basic authentication.
    #[must_use]
    pub fn basic(self, user: &str, password: &str) -> Self {
        let shown = STANDARD.encode(format!("{user}:{password}"));
        self.header(AUTHORIZATION.as_str(), format!("Basic {shown}"))
    }

    /// Sets the body of the request.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets the time limit for the headers of the response.
    #[must_use]
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// Connects to these addresses only, without another lookup of the name.
    #[must_use]
    pub fn at(mut self, found: Vec<SocketAddr>) -> Self {
        self.found = Some(found);
        self
    }

    /// Uses HTTP/2 instead of HTTP/1.1.
    #[must_use]
    pub fn http2(mut self) -> Self {
        self.speak = Speak::Http2;
        self
    }

    /// Sends the request, and returns once the headers of the response are there. Redirects are not
    /// followed.
    pub async fn send(self) -> Result<HttpResponse, HttpError> {
        let (at, within) = (self.address.authority(), self.within);
        let until = Instant::now() + within;
        // Boxed, so that HTTP and TLS are compiled here and not in each crate that sends something.
        let exchange: Boxed<'_, _> = Box::pin(self.exchange());
        timeout_at(until, exchange).await.unwrap_or(Err(HttpError::Late { at, within }))
    }

    /// Sends the request, and follows at most `most` redirects, only to addresses that `may`
    /// allows. Each request has the full time limit.
    ///
    /// # Errors
    /// When a server does not respond, or a redirect is not allowed or leads in circles.
    pub async fn follow(
        mut self,
        most: usize,
        may: impl Fn(&Address) -> bool,
    ) -> Result<HttpResponse, HttpError> {
        let first = self.address.to_string();
        for _ in 0..=most {
            if !may(&self.address) {
                return Err(HttpError::Elsewhere { to: self.address.to_string() });
            }
            let answer = self.clone().send().await?;
            match (answer.status, answer.header(LOCATION.as_str())) {
                (301 | 302 | 307 | 308, Some(to)) => self.address = self.address.join(to)?,
                _ => return Ok(answer),
            }
        }
        Err(HttpError::Circles { at: first })
    }

    async fn exchange(self) -> Result<HttpResponse, HttpError> {
        let request = self.request()?;
        let found = match self.found {
            Some(found) => found,
            None => self.address.resolve().await?,
        };
        let at = self.address.authority();
        let broken = |error: hyper::Error| {
            // The source of the error says more.
            let why = std::error::Error::source(&error).map(|source| format!(": {source}"));
            HttpError::Broken { at: at.clone(), why: format!("{error}{}", why.unwrap_or_default()) }
        };
        let stream = TokioIo::new(connect(&self.address, &found, self.speak).await?);
        let (answer, driver): (Response<Incoming>, Driver) = match self.speak {
            Speak::Http1 => {
                let (mut sender, connection) = http1::handshake(stream).await.map_err(broken)?;
                let driver = Driver::new(connection);
                (sender.send_request(request).await.map_err(broken)?, driver)
            }
            Speak::Http2 => {
                let made = http2::handshake(TokioExecutor::new(), stream).await;
                let (mut sender, connection) = made.map_err(broken)?;
                let driver = Driver::new(connection);
                (sender.send_request(request).await.map_err(broken)?, driver)
            }
        };
        Ok(HttpResponse::new(at, answer, driver))
    }

    fn request(&self) -> Result<Request<Full<Bytes>>, HttpError> {
        let wrong = |why: String| HttpError::Request { at: self.address.authority(), why };
        let method = Method::from_bytes(self.method.as_bytes());
        let mut request =
            Request::builder().method(method.map_err(|error| wrong(error.to_string()))?);
        request = match self.speak {
            Speak::Http1 => {
                request.uri(self.address.target()).header(HOST, self.address.authority())
            }
            Speak::Http2 => request.uri(self.address.to_string()),
        };
        request = request.header(USER_AGENT, AGENT);
        for (name, value) in &self.headers {
            // Errors are reported without the value, which may be a secret.
            let named = HeaderName::try_from(name).map_err(|error| wrong(error.to_string()))?;
            request = request.header(named, value);
        }
        request.body(Full::new(self.body.clone())).map_err(|error| wrong(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use tokio::net::TcpListener;

    use super::*;

    /// A server whose responses depend on the path, and that echoes the credentials it got.
    async fn server() -> Address {
        let door = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = format!("http://{}/", door.local_addr().expect("an address"));
        tokio::spawn(async move {
            while let Ok((stream, _)) = door.accept().await {
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let (mut head, mut line) = (String::new(), String::new());
                    while stream.read_line(&mut line).await.is_ok_and(|read| read > 2) {
                        head.push_str(&std::mem::take(&mut line));
                    }
                    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                    let (status, more, body) = match path.as_str() {
                        "/moved" => {
                            ("308 Moved", "location: /here?x\r\n".to_owned(), String::new())
                        }
                        "/around" => {
                            ("302 Moved", "location: around\r\n".to_owned(), String::new())
                        }
                        "/away" => {
                            let to = "location: http://192.0.2.1/x\r\n".to_owned();
                            ("307 Moved", to, String::new())
                        }
                        "/silent" => return std::future::pending().await,
                        "/large" => ("200 Fine", String::new(), "x".repeat(100)),
                        _ => ("200 Fine", String::new(), head),
                    };
                    let text = format!(
                        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{more}\r\n{body}",
                        body.len()
                    );
                    drop(stream.get_mut().write_all(text.as_bytes()).await);
                });
            }
        });
        Address::parse(&at).expect("an address")
    }

    fn below(server: &Address, path: &str) -> HttpRequest {
        HttpRequest::get(&server.below(path)).within(Duration::from_secs(20))
    }

    #[tokio::test]
    async fn b_11_a_request_says_what_it_is_told_to_and_who_we_are() {
        let server = server().await;
        let asked = HttpRequest::post(&server.below("/in?a=b"), "text/plain", "words");
        let mut answer = asked.basic("ada", "open").send().await.expect("an answer");
        assert_eq!((answer.status, answer.is_success(), answer.is_stream()), (200, true, false));
        let told = answer.whole(1000, Duration::from_secs(20)).await.expect("all of it");
        let told = String::from_utf8(told).expect("text");
        for wanted in [
            "POST /in?a=b HTTP/1.1",
            &format!("host: {}", server.authority()),
            "content-type: text/plain",
            "content-length: 5",
            "authorization: Basic YWRhOm9wZW4=",
            "user-agent: stafette/",
        ] {
            assert!(told.contains(wanted), "{wanted} in {told}");
        }
        let odd = below(&server, "/").header("x-key", "two\nlines").send().await;
        let odd = odd.expect_err("no header");
        assert!(!odd.may_pass() && !odd.to_string().contains("lines"), "{odd}");
    }

    #[tokio::test]
    async fn b_11_a_redirection_is_an_answer_unless_it_is_to_be_followed_and_leads_home() {
        let server = server().await;
        assert_eq!(below(&server, "/moved").send().await.expect("an answer").status, 308);
        let home = |to: &Address| to.belongs_to(&server);
        let mut followed = below(&server, "/moved").follow(1, home).await.expect("an answer");
        let told = followed.whole(1000, Duration::from_secs(20)).await.expect("all of it");
        assert!(told.starts_with(b"GET /here?x "), "{told:?}");
        let circles = below(&server, "/around").follow(3, home).await.expect_err("no end");
        assert!(matches!(circles, HttpError::Circles { .. }), "{circles}");
        let away = below(&server, "/away").follow(3, home).await.expect_err("not there");
        assert!(matches!(away, HttpError::Elsewhere { .. }), "{away}");
    }

    #[tokio::test]
    async fn b_11_nobody_is_waited_for_or_listened_to_without_end() {
        let server = server().await;
        let silent = below(&server, "/silent").within(Duration::from_millis(50)).send().await;
        let silent = silent.expect_err("no answer");
        assert!(silent.may_pass() && matches!(silent, HttpError::Late { .. }), "{silent}");
        let mut large = below(&server, "/large").send().await.expect("an answer");
        let large = large.whole(99, Duration::from_secs(20)).await.expect_err("too much");
        assert!(matches!(large, HttpError::TooLarge { limit: 99, .. }), "{large}");
        let nobody = Address::parse("http://127.0.0.1:1/").expect("an address");
        let nobody = HttpRequest::get(&nobody).send().await.expect_err("nobody is there");
        assert!(matches!(nobody, HttpError::Unreachable { .. }), "{nobody}");
    }
}
