//! Who asks, and what they may do.

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
        const ADMIN: [&str; 4] = ["/v1/stop", "/v1/continue", "/v1/tokens", "/v1/launch"];
        match method {
            _ if ADMIN.iter().any(|root| is_under(path, root)) => Scope::Admin,
            &Method::GET | &Method::HEAD => Scope::Observe,
            _ => Scope::Act,
        }
    }
}

/// What somebody may do, and in whose role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// How much.
    pub scope: Scope,
    /// The agent that they are; a person otherwise.
    pub agent: Option<AgentName>,
}

impl From<Scope> for Standing {
    /// A person's.
    fn from(scope: Scope) -> Self {
        Standing { scope, agent: None }
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
pub struct Principal {
    /// The token's name, or how they came.
    pub name: String,
    /// What they may do.
    pub scope: Scope,
    /// The agent that they are, by their token.
    pub agent: Option<AgentName>,
    /// How they came.
    pub via: Via,
}

impl Principal {
    /// The user at the socket.
    pub(crate) fn at_socket(pid: Option<i32>) -> Self {
        Principal::person("socket", Scope::Admin, Via::Socket { pid })
    }

    /// Somebody of whom nothing is known.
    pub(crate) fn nobody() -> Self {
        Principal::person("", Scope::Observe, Via::Nobody)
    }

    /// A person, or a program of theirs.
    pub(crate) fn person(name: &str, scope: Scope, via: Via) -> Self {
        Principal { name: name.to_owned(), scope, agent: None, via }
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

    /// Whether they may go there: a token of an agent opens what is for agents and nothing else.
    ///
    /// # Errors
    /// When they may not.
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

    /// What somebody says their name is; their own otherwise.
    #[must_use]
    pub fn signed(&self, name: String) -> String {
        match name.is_empty() {
            true => self.name.clone(),
            false => name,
        }
    }
}

/// What agents of the outside come for: their turns, and what is known as far as their role may.
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
    /// The agent who asks, if one does: by its token, or by the process that it is.
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
