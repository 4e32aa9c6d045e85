//! `[server]`: the TCP listener of the daemon, besides its socket.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The TCP listener of the daemon. Without an address there is none until a user opens the web
/// page.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Server {
    /// The address to listen on, such as `127.0.0.1:7400`. A non-loopback address requires TLS and
    /// a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind: Option<String>,
    /// The path of the certificate chain, as a PEM file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_cert: Option<String>,
    /// The path of the private key, as a PEM file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<String>,
    /// The host names that browsers and programs may use, besides those of this machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The addresses on this machine or in its network that A2A push notifications may go to, such
    /// as `http://127.0.0.1:9000`. Others have to be public and use TLS.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub push: Vec<String>,
}
