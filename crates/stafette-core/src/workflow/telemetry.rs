//! `[telemetry]`: where traces go. Without it they go nowhere.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where traces go.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Telemetry {
    /// The receiver, such as `http://127.0.0.1:4318`; `env` takes it from
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`. Without it nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp: Option<String>,
    /// How it is spoken to.
    pub protocol: Protocol,
    /// Headers for it, each with the environment variable that has its value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// How a receiver is spoken to, in OpenTelemetry's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub enum Protocol {
    /// Protocol buffers over HTTP; usually on port 4318.
    #[default]
    #[serde(rename = "http/protobuf")]
    HttpProtobuf,
    /// JSON over HTTP; usually on port 4318.
    #[serde(rename = "http/json")]
    HttpJson,
    /// gRPC; usually on port 4317.
    #[serde(rename = "grpc")]
    Grpc,
}

impl Telemetry {
    /// Whether it says nothing.
    pub(crate) fn is_silent(&self) -> bool {
        *self == Telemetry::default()
    }
}
