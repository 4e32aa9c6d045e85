//! `[telemetry]`: the export of traces. Off if absent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The export of traces.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Telemetry {
    /// The address of the receiver, such as `http://127.0.0.1:4318`; `env` takes it from
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`. Nothing is sent if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp: Option<String>,
    /// The protocol of the receiver.
    pub protocol: Protocol,
    /// The request headers, each with the environment variable that has its value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// The protocol of a receiver, in OpenTelemetry's terms.
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
