//! One request to a receiver: HTTP with a protocol buffer or JSON, or gRPC; TLS with the
//! certificates that this system trusts.

use std::time::Duration;

use stafette_core::workflow::telemetry::{Protocol, Telemetry};
use stafette_http::{Address, HttpError, HttpRequest, HttpResponse};
use thiserror::Error;

use crate::trace::otlp::Request;

/// Time limit of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum size of a response that is read, in bytes.
const ANSWER: usize = 64 * 1024;
/// Path of the gRPC method, whatever path the address has.
const GRPC: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// Header or trailer with the gRPC status.
const STATUS: &str = "grpc-status";
/// Environment variable with the receiver's address, used if the setting is `env`.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Spans were not accepted.
#[derive(Debug, Error)]
pub enum SendError {
    #[error("`{endpoint}` is not an address that traces can be sent to: {why}")]
    Address {
        /// Address from the setting.
        endpoint: String,
        why: String,
    },
    #[error("the environment variable {name} is not set")]
    NoVariable { name: String },
    #[error("{endpoint} does not answer: {why}")]
    Away { endpoint: String, why: String },
    #[error("{endpoint} does not take it: {status}")]
    Refused {
        endpoint: String,
        status: String,
        /// True if a later attempt may succeed.
        later: bool,
    },
}

impl SendError {
    /// Returns true if another attempt would fail the same way.
    pub fn is_final(&self) -> bool {
        match self {
            SendError::Address { .. } | SendError::NoVariable { .. } => true,
            SendError::Away { .. } => false,
            SendError::Refused { later, .. } => !later,
        }
    }
}

/// A receiver of spans.
#[derive(Clone, PartialEq, Debug)]
pub struct Receiver {
    endpoint: String,
    address: Address,
    protocol: Protocol,
    headers: Vec<(String, String)>,
}

impl Receiver {
    /// Returns the receiver that a workflow names. `variable` reads the environment.
    ///
    /// # Errors
    /// When the address is not valid, or a variable is missing.
    pub fn of(
        telemetry: &Telemetry,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SendError> {
        let variable = |name: &str| {
            variable(name).ok_or_else(|| SendError::NoVariable { name: name.to_owned() })
        };
        let endpoint = match telemetry.otlp.as_deref() {
            None => {
                return Err(SendError::Address {
                    endpoint: String::new(),
                    why: "it is empty".into(),
                });
            }
            Some("env") => variable(ENDPOINT)?,
            Some(endpoint) => endpoint.to_owned(),
        };
        // Default ports of receivers without TLS; with TLS the default is 443.
        let plain = match telemetry.protocol {
            Protocol::Grpc => 4317,
            Protocol::HttpProtobuf | Protocol::HttpJson => 4318,
        };
        let address =
            Address::parse_with(&endpoint, plain).map_err(|error| bad(&endpoint, error))?;
        let address = match telemetry.protocol {
            Protocol::Grpc => address.join(GRPC).map_err(|error| bad(&endpoint, error))?,
            _ if address.path().trim_end_matches('/').ends_with("/v1/traces") => address,
            _ => address.below("/v1/traces"),
        };
        let headers = telemetry.headers.iter();
        let headers = headers.map(|(header, name)| Ok((header.to_lowercase(), variable(name)?)));
        Ok(Receiver {
            address,
            protocol: telemetry.protocol,
            headers: headers.collect::<Result<_, SendError>>()?,
            endpoint,
        })
    }

    /// Sends spans and waits until they are accepted.
    pub async fn send(&self, spans: &Request) -> Result<(), SendError> {
        match tokio::time::timeout(PATIENCE, self.exchange(spans)).await {
            Ok(answer) => answer,
            Err(_) => Err(self.away("it took too long")),
        }
    }

    fn away(&self, why: impl ToString) -> SendError {
        SendError::Away { endpoint: self.endpoint.clone(), why: why.to_string() }
    }

    fn failed(&self, error: HttpError) -> SendError {
        match error.may_pass() {
            true => self.away(error),
            false => bad(&self.endpoint, error),
        }
    }

    async fn exchange(&self, spans: &Request) -> Result<(), SendError> {
        let grpc = self.protocol == Protocol::Grpc;
        let (address, body) = (&self.address, spans.body());
        let mut asked = match self.protocol {
            Protocol::Grpc => HttpRequest::post(address, "application/grpc", framed(&body))
                .header("te", "trailers")
                .http2(),
            Protocol::HttpJson => HttpRequest::post(address, "application/json", body),
            Protocol::HttpProtobuf => HttpRequest::post(address, "application/x-protobuf", body),
        };
        for (name, value) in &self.headers {
            asked = asked.header(name, value);
        }
        let answer = asked.within(PATIENCE).send().await.map_err(|error| self.failed(error))?;
        self.http(&answer)?;
        if grpc { self.grpc(answer).await } else { Ok(()) }
    }

    /// OTLP defines the status codes after which a retry makes sense.
    fn http(&self, answer: &HttpResponse) -> Result<(), SendError> {
        if answer.is_success() {
            return Ok(());
        }
        Err(SendError::Refused {
            endpoint: self.endpoint.clone(),
            status: format!("HTTP {}", answer.status),
            later: matches!(answer.status, 429 | 502 | 503 | 504),
        })
    }

    /// Reads the gRPC status, which comes in the trailers or instead of a body.
    async fn grpc(&self, mut answer: HttpResponse) -> Result<(), SendError> {
        answer.whole(ANSWER, PATIENCE).await.map_err(|error| self.failed(error))?;
        let code = answer.header(STATUS).or_else(|| answer.trailer(STATUS));
        let code = code.and_then(|code| code.parse::<u32>().ok());
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

fn bad(endpoint: &str, error: HttpError) -> SendError {
    let why = match error {
        HttpError::Address { why, .. } => why.to_owned(),
        error => error.to_string(),
    };
    SendError::Address { endpoint: endpoint.to_owned(), why }
}

/// Frames a message for a gRPC stream: uncompressed, with its length.
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
        assert_eq!((plain.address.port(), plain.address.path()), (4318, "/v1/traces"));
        let grpc = of("http://[::1]:9", Protocol::Grpc).expect("a receiver");
        assert_eq!((grpc.address.host(), grpc.address.port()), ("::1", 9));
        assert_eq!(of("http://[::1]", Protocol::Grpc).map(|it| it.address.port()).ok(), Some(4317));
        let under = of("http://here:1/otlp/", Protocol::HttpJson).expect("a receiver");
        assert_eq!(under.address.path(), "/otlp/v1/traces");
        let far = of("https://far.example", Protocol::HttpJson).expect("a receiver");
        let ways = (far.address.is_tls(), far.address.port(), under.address.is_tls());
        assert_eq!(ways, (true, 443, false));
        let error = of("ftp://far.example", Protocol::HttpJson).expect_err("nobody speaks that");
        assert!(error.is_final() && error.to_string().contains("https://"), "{error}");
    }

    #[test]
    fn s2_10_the_environment_counts_only_when_the_setting_says_so() {
        let there = |name: &str| (name == ENDPOINT).then(|| "http://there:1".to_owned());
        let by_env = Receiver::of(&telemetry("env", Protocol::HttpJson), there).expect("there");
        assert_eq!(by_env.address.host(), "there");
        let named = Receiver::of(&telemetry("http://here", Protocol::HttpJson), there);
        assert_eq!(named.expect("here").address.host(), "here");
        assert!(Receiver::of(&Telemetry::default(), there).is_err(), "nothing is sent by default");
        let mut with_key = telemetry("http://here", Protocol::HttpJson);
        with_key.headers.insert("X-Key".into(), "KEY".into());
        assert!(Receiver::of(&with_key, there).is_err(), "a secret that is not there");
    }
}
