//! The caller of a request and its permissions.

use std::convert::Infallible;

use aide::OperationInput;
use axum::extract::FromRequestParts;
use axum::http::Method;
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::AgentName;
use stafette_core::change::Author;

use crate::{Edge, Problem};

/// Access level; each includes the one before.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Read everything, change nothing.
    Observe,
    /// Start and steer runs, answer questions, take part as an agent.
    Act,
    /// Stop the daemon, create and revoke tokens.
    Admin,
}

impl Scope {
    /// Returns the name used in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Observe => "observe",
            Scope::Act => "act",
            Scope::Admin => "admin",
        }
    }

    /// Returns the minimum scope of a request: reading observes, everything else acts, and routes
    /// of the daemon itself need admin. A route may require more, never less.
    pub(crate) fn needed(method: &Method, path: &str) -> Scope {
        const ADMIN: [&str; 4] = ["/v1/stop", "/v1/continue", "/v1/tokens", "/v1/launch"];
        match method {
            _ if ADMIN.iter().any(|root| is_under(path, root)) => Scope::Admin,
            &Method::GET | &Method::HEAD => Scope::Observe,
            _ => Scope::Act,
        }
    }
}

/// Permissions of a caller, and its role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Scope of the caller.
    pub scope: Scope,
    /// Agent that the caller is; `None` for a person.
    pub agent: Option<AgentName>,
}

impl From<Scope> for Standing {
    /// Standing of a person.
    fn from(scope: Scope) -> Self {
        Standing { scope, agent: None }
    }
}

/// Way in which a caller connected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Via {
    /// Over the Unix socket, which belongs to the user.
    Socket {
        /// Process id of the peer, as reported by the operating system.
        pid: Option<i32>,
    },
    /// With a bearer token.
    Bearer,
    /// With a session of the page.
    Page,
    /// Without credentials, where none are needed.
    Nobody,
}

/// The caller of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Principal {
    /// Name of the token, or the way of connecting.
    pub name: String,
    /// Scope of the caller.
    pub scope: Scope,
    /// Agent that the token belongs to; `None` for a person.
    pub agent: Option<AgentName>,
    /// Way in which the caller connected.
    pub via: Via,
}

impl Principal {
    /// The user on the Unix socket.
    pub(crate) fn at_socket(pid: Option<i32>) -> Self {
        Principal::person("socket", Scope::Admin, Via::Socket { pid })
    }

    /// A caller without credentials.
    pub(crate) fn nobody() -> Self {
        Principal::person("", Scope::Observe, Via::Nobody)
    }

    /// A person, or one of their programs.
    pub(crate) fn person(name: &str, scope: Scope, via: Via) -> Self {
        Principal { name: name.to_owned(), scope, agent: None, via }
    }

    /// Process id of the caller, if known.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        match self.via {
            Via::Socket { pid } => pid,
            _ => None,
        }
    }

    /// Checks that the caller has at least `scope`.
    ///
    /// # Errors
    /// When the scope is insufficient.
    pub fn may(&self, scope: Scope) -> Result<(), Problem> {
        if self.scope >= scope {
            return Ok(());
        }
        let title = format!("This needs the scope `{}`", scope.as_str());
        let why = format!("`{}` has the scope `{}`", self.name, self.scope.as_str());
        Err(Problem::new(403, "scope", title).because(why))
    }

    /// Checks that the caller may use the path: an agent's token gives access to the routes for
    /// agents and nothing else.
    ///
    /// # Errors
    /// When the path is not for agents.
    pub(crate) fn may_go(&self, path: &str) -> Result<(), Problem> {
        match &self.agent {
            Some(agent) if !is_for_agents(path) => {
                tracing::warn!(token = self.name, %agent, path, "that is for people");
                let title = format!("`{}` is a token of the agent `{agent}`", self.name);
                let problem = Problem::new(403, "not_for_agents", title);
                Err(problem.because("this is for people and their programs"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the name that the caller gave; the caller's own name if it is empty.
    #[must_use]
    pub fn signed(&self, name: String) -> String {
        match name.is_empty() {
            true => self.name.clone(),
            false => name,
        }
    }
}

/// Returns true for routes that external agents may use: their turns, and knowledge as far as their
/// role allows.
fn is_for_agents(path: &str) -> bool {
    const ROOTS: [&str; 4] = ["/mcp", "/v1/turns", "/v1/schemas", "/openapi.json"];
    if ROOTS.iter().chain(&crate::knowledge::ROOTS).any(|root| is_under(path, root)) {
        return true;
    }
    let parts: Vec<&str> = path.split('/').collect();
    matches!(
        parts.as_slice(),
        ["", "v1", "runs", _, "handoffs", _, "accept" | "report" | "complete" | "reject"]
    )
}

fn is_under(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl<S: Sync> FromRequestParts<S> for Principal {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Principal>().cloned().unwrap_or_else(Principal::nobody))
    }
}

impl OperationInput for Principal {}

impl Edge {
    /// Returns the agent that sends the request, if any: identified by its token or its process.
    pub(crate) fn agent(&self, principal: &Principal) -> Option<Author> {
        if let Some(agent) = &principal.agent {
            let agent = Some(agent.clone());
            return Some(Author { run: None, agent, handoff: None, person: String::new() });
        }
        principal.pid().and_then(|pid| self.engine.agent_of(pid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_13_a_token_of_an_agent_opens_turns_and_what_is_known_and_nothing_else() {
        let agent = Some("mind".parse().expect("a name"));
        let mind = Principal { agent, ..Principal::person("mind-1", Scope::Act, Via::Bearer) };
        for path in ["/mcp", "/v1/turns", "/v1/runs/4f/handoffs/h2/accept", "/v1/threads/search"] {
            assert!(mind.may_go(path).is_ok(), "{path}");
        }
        for path in [
            "/v1/runs",
            "/v1/runs/4f/handoffs",
            "/v1/inbox/h2",
            "/v1/events",
            "/v1/runs/4f/events",
            "/v1/terminals",
            "/v1/runs/4f/terminals/Sam/live",
            "/v1/runs/4f/terminals/Sam/recording",
            "/a2a",
        ] {
            assert_eq!(mind.may_go(path).expect_err(path).code, "not_for_agents");
            assert!(Principal::person("ci", Scope::Act, Via::Bearer).may_go(path).is_ok());
        }
    }

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
