//! Where the daemon can be reached besides its socket.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A door on TCP. Without an address there is none until somebody opens the page.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Server {
    /// Where to listen, such as `127.0.0.1:7400`. Beyond this machine it takes TLS and a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind: Option<String>,
    /// The chain of certificates, as a PEM file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_cert: Option<String>,
    /// The key to it, as a PEM file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<String>,
    /// The names by which browsers and programs may call it, besides those of this machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

impl Server {
    /// Whether it says nothing.
    pub(crate) fn is_silent(&self) -> bool {
        *self == Server::default()
    }
}
