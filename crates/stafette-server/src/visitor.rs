//! Who asks, and what they may do.

use std::convert::Infallible;

use aide::OperationInput;
use axum::extract::FromRequestParts;
use axum::http::Method;
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Problem;

/// How much somebody may do; each includes the one before.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Look at everything.
    Observe,
    /// Begin and steer runs, answer, take part as an agent.
    Act,
    /// Stop the daemon, give and take back tokens.
    Admin,
}

impl Scope {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Observe => "observe",
            Scope::Act => "act",
            Scope::Admin => "admin",
        }
    }

    /// What a request needs at least: a look observes, everything else acts, and what concerns the
    /// daemon itself is for admins. A route may ask for more, never for less.
    pub(crate) fn needed(method: &Method, path: &str) -> Scope {
        const ADMIN: [&str; 3] = ["/v1/stop", "/v1/tokens", "/v1/launch"];
        let under = |root: &str| {
            path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match method {
            _ if ADMIN.iter().any(|root| under(root)) => Scope::Admin,
            &Method::GET | &Method::HEAD => Scope::Observe,
            _ => Scope::Act,
        }
    }
}

/// The way somebody came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Via {
    /// By the Unix socket, which belongs to the user.
    Socket {
        /// The process at the other end, as the system tells it.
        pid: Option<i32>,
    },
    /// By a token.
    Bearer,
    /// By the cookie of a launch link.
    Page,
    /// Without anything to show, where that is enough.
    Nobody,
}

/// Who asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Visitor {
    /// The token's name, or how they came.
    pub name: String,
    /// What they may do.
    pub scope: Scope,
    /// How they came.
    pub via: Via,
}

impl Visitor {
    /// The user at the socket.
    pub(crate) fn at_socket(pid: Option<i32>) -> Self {
        Visitor { name: "socket".to_owned(), scope: Scope::Admin, via: Via::Socket { pid } }
    }

    /// Somebody of whom nothing is known.
    pub(crate) fn nobody() -> Self {
        Visitor { name: String::new(), scope: Scope::Observe, via: Via::Nobody }
    }

    /// The process that asks, where that is known.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        match self.via {
            Via::Socket { pid } => pid,
            _ => None,
        }
    }

    /// Whether they may do what needs `scope`.
    ///
    /// # Errors
    /// When they may not.
    pub fn may(&self, scope: Scope) -> Result<(), Problem> {
        if self.scope >= scope {
            return Ok(());
        }
        let title = format!("This needs the scope `{}`", scope.as_str());
        let why = format!("`{}` has the scope `{}`", self.name, self.scope.as_str());
        Err(Problem::new(403, "scope", title).because(why))
    }

    /// What somebody says their name is; their own otherwise.
    #[must_use]
    pub fn signed(&self, name: String) -> String {
        match name.is_empty() {
            true => self.name.clone(),
            false => name,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Visitor {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Visitor>().cloned().unwrap_or_else(Visitor::nobody))
    }
}

impl OperationInput for Visitor {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_needs_follows_from_its_method_and_place() {
        for (method, path, scope) in [
            (Method::GET, "/v1/runs", Scope::Observe),
            (Method::HEAD, "/v1/events", Scope::Observe),
            (Method::POST, "/v1/runs", Scope::Act),
            (Method::DELETE, "/v1/locks/x", Scope::Act),
            (Method::GET, "/v1/tokens", Scope::Admin),
            (Method::DELETE, "/v1/tokens/ci", Scope::Admin),
            (Method::POST, "/v1/stop", Scope::Admin),
            (Method::GET, "/v1/tokensmith", Scope::Observe),
        ] {
            assert_eq!(Scope::needed(&method, path), scope, "{method} {path}");
        }
    }
}
