//! One request to a receiver: HTTP with a protocol buffer or JSON, or gRPC; by TLS to whom this
//! system trusts.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, TE};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use stafette_core::workflow::telemetry::{Protocol, Telemetry};
use stafette_dial::{DialError, Speak, dial};
use thiserror::Error;

use crate::trace::{Span, otlp};

/// How long a receiver may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most of an answer that is read, in bytes.
const ANSWER: usize = 64 * 1024;
/// The environment variable with the receiver, for those who say `env`.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Spans were not taken.
#[derive(Debug, Error)]
pub enum SendError {
    /// The receiver's address is not one.
    #[error("`{endpoint}` is not an address that traces can be sent to: {why}")]
    Address {
        /// What was said.
        endpoint: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An environment variable that is named is not there.
    #[error("the environment variable {name} is not set")]
    NoVariable {
        /// Which.
        name: String,
    },
    /// Nobody answers.
    #[error("{endpoint} does not answer: {why}")]
    Away {
        /// Who.
        endpoint: String,
        /// What happened.
        why: String,
    },
    /// It was refused.
    #[error("{endpoint} does not take it: {status}")]
    Refused {
        /// Who.
        endpoint: String,
        /// With which words.
        status: String,
        /// Whether it may be taken later.
        later: bool,
    },
}

impl SendError {
    /// Whether another try would end the same way.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            SendError::Address { .. } | SendError::NoVariable { .. } => true,
            SendError::Away { .. } => false,
            SendError::Refused { later, .. } => !later,
        }
    }
}

/// Somebody who takes spans.
#[derive(Clone, PartialEq, Debug)]
pub struct Receiver {
    endpoint: String,
    authority: String,
    address: (String, u16),
    tls: bool,
    path: String,
    protocol: Protocol,
    headers: Vec<(String, String)>,
}

impl Receiver {
    /// The receiver that a workflow names. `variable` reads the environment.
    ///
    /// # Errors
    /// When the address is not one, or a variable is missing.
    pub fn of(
        telemetry: &Telemetry,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SendError> {
        let variable = |name: &str| {
            variable(name).ok_or_else(|| SendError::NoVariable { name: name.to_owned() })
        };
        let endpoint = match telemetry.otlp.as_deref() {
            None => return Err(SendError::Address { endpoint: String::new(), why: "it is empty" }),
            Some("env") => variable(ENDPOINT)?,
            Some(endpoint) => endpoint.to_owned(),
        };
        let bad = |why| SendError::Address { endpoint: endpoint.clone(), why };
        let uri: Uri = endpoint.parse().map_err(|_| bad("it cannot be read"))?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(bad("it must begin with http:// or https://")),
        };
        let authority = uri.authority().ok_or_else(|| bad("it has no host"))?;
        let plain = match telemetry.protocol {
            // Whoever is elsewhere is where TLS usually is.
            _ if tls => 443,
            Protocol::Grpc => 4317,
            Protocol::HttpProtobuf | Protocol::HttpJson => 4318,
        };
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let address = (host, authority.port_u16().unwrap_or(plain));
        let base = uri.path().trim_end_matches('/');
        let path = match telemetry.protocol {
            Protocol::Grpc => "/opentelemetry.proto.collector.trace.v1.TraceService/Export".into(),
            _ if base.ends_with("/v1/traces") => base.to_owned(),
            _ => format!("{base}/v1/traces"),
        };
        let headers = telemetry.headers.iter();
        let headers = headers.map(|(header, name)| Ok((header.to_lowercase(), variable(name)?)));
        Ok(Receiver {
            authority: format!("{}:{}", authority.host(), address.1),
            address,
            tls,
            path,
            protocol: telemetry.protocol,
            headers: headers.collect::<Result<_, SendError>>()?,
            endpoint,
        })
    }

    /// Sends spans and waits until they are taken.
    ///
    /// # Errors
    /// When they are not.
    pub async fn send(&self, spans: &[Span]) -> Result<(), SendError> {
        match tokio::time::timeout(PATIENCE, self.exchange(spans)).await {
            Ok(answer) => answer,
            Err(_) => Err(self.away("it took too long")),
        }
    }

    fn away(&self, why: impl ToString) -> SendError {
        SendError::Away { endpoint: self.endpoint.clone(), why: why.to_string() }
    }

    fn unreached(&self, error: DialError) -> SendError {
        match error.is_final() {
            true => SendError::Address {
                endpoint: self.endpoint.clone(),
                why: "no certificate can be for that host",
            },
            false => self.away(error),
        }
    }

    async fn exchange(&self, spans: &[Span]) -> Result<(), SendError> {
        let (host, port) = &self.address;
        let speak = match self.protocol {
            Protocol::Grpc => Speak::Http2,
            Protocol::HttpProtobuf | Protocol::HttpJson => Speak::Http1,
        };
        let stream = dial(host, *port, self.tls.then_some(speak)).await;
        let stream = TokioIo::new(stream.map_err(|error| self.unreached(error))?);
        if self.protocol == Protocol::Grpc {
            let made = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await;
            let (mut sender, connection) = made.map_err(|error| self.away(error))?;
            let connection = tokio::spawn(connection);
            let asked = self.request(framed(&otlp::protobuf(spans)), "application/grpc")?;
            let answer = sender.send_request(asked).await.map_err(|error| self.away(error));
            let verdict = match answer {
                Ok(answer) => self.grpc(answer).await,
                Err(error) => Err(error),
            };
            connection.abort();
            return verdict;
        }
        let made = hyper::client::conn::http1::handshake(stream).await;
        let (mut sender, connection) = made.map_err(|error| self.away(error))?;
        let connection = tokio::spawn(connection);
        let asked = match self.protocol {
            Protocol::HttpJson => {
                self.request(otlp::json(spans).to_string().into_bytes(), "application/json")?
            }
            _ => self.request(otlp::protobuf(spans), "application/x-protobuf")?,
        };
        let answer = sender.send_request(asked).await.map_err(|error| self.away(error));
        let verdict = answer.and_then(|answer| self.http(answer.status()));
        connection.abort();
        verdict
    }

    fn request(&self, body: Vec<u8>, kind: &str) -> Result<Request<Full<Bytes>>, SendError> {
        let grpc = self.protocol == Protocol::Grpc;
        let mut request = Request::post(match grpc {
            true => {
                let scheme = if self.tls { "https" } else { "http" };
                format!("{scheme}://{}{}", self.authority, self.path)
            }
            false => self.path.clone(),
        });
        request = request.header(CONTENT_TYPE, kind);
        request = match grpc {
            true => request.header(TE, "trailers"),
            false => request.header(HOST, &self.authority),
        };
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let bad = |_| SendError::Address {
            endpoint: self.endpoint.clone(),
            why: "a header or the path cannot be sent",
        };
        request.body(Full::new(Bytes::from(body))).map_err(bad)
    }

    /// OTLP names the answers after which another try makes sense.
    fn http(&self, status: StatusCode) -> Result<(), SendError> {
        if status.is_success() {
            return Ok(());
        }
        let later = matches!(status.as_u16(), 429 | 502 | 503 | 504);
        Err(SendError::Refused {
            endpoint: self.endpoint.clone(),
            status: status.to_string(),
            later,
        })
    }

    /// gRPC says how it went after the answer, or instead of it.
    async fn grpc(&self, answer: Response<Incoming>) -> Result<(), SendError> {
        self.http(answer.status())?;
        let code = |headers: &hyper::HeaderMap| {
            headers.get("grpc-status").and_then(|code| code.to_str().ok()?.parse::<u32>().ok())
        };
        let early = code(answer.headers());
        let body = Limited::new(answer.into_body(), ANSWER).collect().await;
        let body = body.map_err(|error| self.away(error))?;
        let code = early.or_else(|| body.trailers().and_then(code));
        match code {
            Some(0) => Ok(()),
            code => Err(SendError::Refused {
                endpoint: self.endpoint.clone(),
                status: code
                    .map_or("it did not say".to_owned(), |code| format!("gRPC code {code}")),
                // Cancelled, deadline, exhausted, aborted, out of range, unavailable, data loss.
                later: matches!(code, Some(1 | 4 | 8 | 10 | 11 | 14 | 15)),
            }),
        }
    }
}

/// A message on a gRPC stream: not compressed, and its length.
fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut framed = vec![0];
    framed.extend_from_slice(&length.to_be_bytes());
    framed.extend_from_slice(message);
    framed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn telemetry(otlp: &str, protocol: Protocol) -> Telemetry {
        Telemetry { otlp: Some(otlp.to_owned()), protocol, ..Telemetry::default() }
    }

    #[test]
    fn s2_10_a_receiver_is_found_where_opentelemetry_has_it() {
        let none = |_: &str| None;
        let of = |otlp: &str, protocol| Receiver::of(&telemetry(otlp, protocol), none);
        let plain = of("http://127.0.0.1", Protocol::HttpProtobuf).expect("a receiver");
        assert_eq!((plain.address.1, plain.path.as_str()), (4318, "/v1/traces"));
        let grpc = of("http://[::1]:9", Protocol::Grpc).expect("a receiver");
        assert_eq!(grpc.address, ("::1".to_owned(), 9));
        let under = of("http://here:1/otlp/", Protocol::HttpJson).expect("a receiver");
        assert_eq!(under.path, "/otlp/v1/traces");
        let far = of("https://far.example", Protocol::HttpJson).expect("a receiver");
        assert_eq!((far.tls, far.address.1, under.tls), (true, 443, false));
        let error = of("ftp://far.example", Protocol::HttpJson).expect_err("nobody speaks that");
        assert!(error.is_final() && error.to_string().contains("https://"), "{error}");
    }

    #[test]
    fn s2_10_the_environment_counts_only_when_the_setting_says_so() {
        let there = |name: &str| (name == ENDPOINT).then(|| "http://there:1".to_owned());
        let by_env = Receiver::of(&telemetry("env", Protocol::HttpJson), there).expect("there");
        assert_eq!(by_env.address.0, "there");
        let named = Receiver::of(&telemetry("http://here", Protocol::HttpJson), there);
        assert_eq!(named.expect("here").address.0, "here");
        assert!(Receiver::of(&Telemetry::default(), there).is_err(), "nothing is sent by default");
        let mut with_key = telemetry("http://here", Protocol::HttpJson);
        with_key.headers.insert("X-Key".into(), "KEY".into());
        assert!(Receiver::of(&with_key, there).is_err(), "a secret that is not there");
    }
}
