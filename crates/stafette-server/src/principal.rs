//! The caller of a request, and the way in which it connected.

use std::convert::Infallible;

use aide::OperationInput;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use stafette_core::AgentName;
use stafette_engine::{Caller, Denied, Right, Scope};

use crate::Problem;
use crate::guard::unknown;

/// Permissions of a token, and its role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Scope of the token.
    pub scope: Scope,
    /// Agent that the token belongs to; `None` for a person's.
    pub agent: Option<AgentName>,
}

impl From<Scope> for Standing {
    /// Standing of a person.
    fn from(scope: Scope) -> Self {
        Standing { scope, agent: None }
    }
}

impl From<Standing> for Caller {
    fn from(Standing { scope, agent }: Standing) -> Self {
        match agent {
            Some(agent) => Caller::External { agent, scope },
            None => Caller::Person(scope),
        }
    }
}

/// Way in which a caller connected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Via {
    /// Over a Unix socket, which belongs to the user.
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
    /// Name of the token or the agent, or the way of connecting.
    pub name: String,
    /// The caller, which decides what it may do.
    pub caller: Caller,
    /// Way in which the caller connected.
    pub via: Via,
}

impl Principal {
    /// A caller on a Unix socket.
    pub(crate) fn at_socket(caller: Caller, pid: Option<i32>) -> Self {
        let name = caller.agent().map_or_else(|| "socket".to_owned(), ToString::to_string);
        Principal { name, caller, via: Via::Socket { pid } }
    }

    /// A caller without credentials.
    pub(crate) fn nobody() -> Self {
        Principal { name: String::new(), caller: Caller::Nobody, via: Via::Nobody }
    }

    /// Process id of the caller, if known.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        match self.via {
            Via::Socket { pid } => pid,
            _ => None,
        }
    }

    /// Checks that the caller has a right.
    ///
    /// # Errors
    /// When it has not.
    pub fn may(&self, right: Right) -> Result<(), Problem> {
        let Err(denied) = self.caller.may(right) else { return Ok(()) };
        let why = match (denied, &self.caller) {
            (Denied::Unknown, _) => return Err(unknown()),
            (Denied::Scope(_), Caller::Person(scope) | Caller::External { scope, .. }) => {
                format!("`{}` has the scope `{}`", self.name, scope.as_str())
            }
            (_, caller) => {
                tracing::warn!(?caller, ?right, "refused: this is for people");
                let agent = caller.agent().map(ToString::to_string).unwrap_or_default();
                format!("the caller is the agent `{agent}`, which may only take part as itself")
            }
        };
        let code = match denied {
            Denied::Scope(_) => "scope",
            Denied::Unknown | Denied::ForPeople => "not_for_agents",
        };
        Err(Problem::new(403, code, denied.to_string()).because(why))
    }

    /// Returns the name that the caller gave; the caller's own name if it is empty, or the caller has
    /// one: tokens, agents and assistants sign as nobody else.
    #[must_use]
    pub fn signed(&self, name: String) -> String {
        let has_name = self.via == Via::Bearer || self.caller.may(Right::Decide).is_err();
        if name.is_empty() || has_name { self.name.clone() } else { name }
    }

    /// Returns the name under which the caller takes a turn. Several programs may share a token, so
    /// the name that a program gives itself tells them apart.
    pub(crate) fn taker(&self, name: String) -> String {
        let signed = self.signed(name.clone());
        if name.is_empty() || name == signed { signed } else { format!("{name} by {signed}") }
    }
}

impl<S: Sync> FromRequestParts<S> for Principal {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Principal>().cloned().unwrap_or_else(Principal::nobody))
    }
}

impl OperationInput for Principal {}
