//! Who may do what. Each operation of each interface declares a [`Right`]; each interface finds out
//! who its [`Caller`] is, and [`Caller::may`] decides.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::change::Author;
use stafette_core::handoff::{About, Question};
use stafette_core::workflow::Budget;
use stafette_core::{AgentName, HandoffId, RunId};

/// Scope of what a person gives to a program; each includes the one before.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Read everything, change nothing.
    Observe,
    /// Assist a person: read, start runs, answer questions, propose, take part as an agent.
    Assist,
    /// Decide for a person: approve, apply, cancel, raise budgets, type into terminals.
    Act,
    /// Stop the daemon, create and revoke tokens.
    Admin,
}

impl Scope {
    /// All scopes, the smallest first.
    pub const ALL: [Scope; 4] = [Scope::Observe, Scope::Assist, Scope::Act, Scope::Admin];

    /// Returns the name used in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Observe => "observe",
            Scope::Assist => "assist",
            Scope::Act => "act",
            Scope::Admin => "admin",
        }
    }
}

/// What a caller needs for an operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// No credentials, or others than those of a caller: a launch key, a webhook's signature.
    Public,
    /// Read what agents may read as well, as far as their role allows.
    Shared,
    /// Read what concerns all agents and runs.
    Read,
    /// Take part as an agent: an agent only for itself and as far as its role allows.
    TakePart,
    /// Start runs, and leave word for them.
    Run,
    /// Answer a question to a person.
    Answer,
    /// Decide in a person's place.
    Decide,
    /// Control the daemon, and who has access to it.
    Admin,
}

impl Right {
    /// All rights.
    pub const ALL: [Right; 8] = [
        Right::Public,
        Right::Shared,
        Right::Read,
        Right::TakePart,
        Right::Run,
        Right::Answer,
        Right::Decide,
        Right::Admin,
    ];

    /// Returns the name used in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Right::Public => "public",
            Right::Shared => "shared",
            Right::Read => "read",
            Right::TakePart => "take_part",
            Right::Run => "run",
            Right::Answer => "answer",
            Right::Decide => "decide",
            Right::Admin => "admin",
        }
    }

    /// Returns the right that an answer to this question needs. Questions of the system decide about
    /// money, agents and changes; those of agents ask for information.
    #[must_use]
    pub fn to_answer(question: &Question) -> Right {
        match question.about {
            About::Inputs => Right::Answer,
            _ => Right::Decide,
        }
    }

    /// Returns the right that a run with this budget needs, where another is usual.
    #[must_use]
    pub fn to_begin(budget: &Budget, usual: &Budget) -> Right {
        match budget.money <= usual.money && budget.tokens <= usual.tokens {
            true => Right::Run,
            false => Right::Decide,
        }
    }

    /// Returns the smallest scope that includes the right.
    #[must_use]
    pub fn scope(self) -> Scope {
        match self {
            Right::Public | Right::Shared | Right::Read => Scope::Observe,
            Right::TakePart | Right::Run | Right::Answer => Scope::Assist,
            Right::Decide => Scope::Act,
            Right::Admin => Scope::Admin,
        }
    }
}

/// The caller of an operation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Caller {
    /// A caller without credentials.
    #[default]
    Nobody,
    /// A person at their own socket or page, or a program to which a person gave this scope.
    Person(Scope),
    /// An agent that connects on its own, with a token that a person made for it.
    External {
        /// The agent whose turns it takes.
        agent: AgentName,
        /// Scope of the token.
        scope: Scope,
    },
    /// An agent that Stafette started, known by the token of its turn or by its process.
    Agent {
        /// Run of the agent.
        run: RunId,
        /// Name of the agent.
        agent: AgentName,
        /// Handoff that it works on; `None` between turns.
        handoff: Option<HandoffId>,
    },
}

/// The reason why a caller may not do something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Denied {
    /// The caller has no credentials.
    Unknown,
    /// The caller needs this scope.
    Scope(Scope),
    /// The caller is an agent, and this is for people.
    ForPeople,
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denied::Unknown => f.write_str("This needs credentials"),
            Denied::Scope(scope) => write!(f, "This needs the scope `{}`", scope.as_str()),
            Denied::ForPeople => f.write_str("This is for people and their programs"),
        }
    }
}

impl Caller {
    /// Decides whether the caller has a right.
    ///
    /// # Errors
    /// The reason why it has not.
    pub fn may(&self, right: Right) -> Result<(), Denied> {
        let needed = right.scope();
        match (self, right) {
            (_, Right::Public) => Ok(()),
            (Caller::Nobody, _) => Err(Denied::Unknown),
            (Caller::Person(scope), _) if *scope >= needed => Ok(()),
            (Caller::Person(_), _) => Err(Denied::Scope(needed)),
            (_, Right::Shared) | (Caller::Agent { .. }, Right::TakePart) => Ok(()),
            (Caller::External { scope, .. }, Right::TakePart) if *scope >= needed => Ok(()),
            (Caller::External { .. }, Right::TakePart) => Err(Denied::Scope(needed)),
            (Caller::External { .. } | Caller::Agent { .. }, _) => Err(Denied::ForPeople),
        }
    }

    /// Returns the same caller through a program that assists: never more than a person's
    /// assistant may do.
    #[must_use]
    pub fn assisted(self) -> Self {
        match self {
            Caller::Person(scope) => Caller::Person(scope.min(Scope::Assist)),
            agent => agent,
        }
    }

    /// Returns the agent that the caller is; `None` for a person.
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Caller::Nobody | Caller::Person(_) => None,
            Caller::External { agent, .. } | Caller::Agent { agent, .. } => Some(agent),
        }
    }

    /// Returns the run that the caller is confined to; `None` for people and external agents.
    pub fn run(&self) -> Option<RunId> {
        match self {
            Caller::Agent { run, .. } => Some(*run),
            _ => None,
        }
    }

    /// Returns the caller as the author of a change, if it is an agent.
    pub fn author(&self) -> Option<Author> {
        let (run, handoff) = match self {
            Caller::Agent { run, handoff, .. } => (Some(*run), *handoff),
            _ => (None, None),
        };
        let agent = self.agent()?.clone();
        Some(Author { run, agent: Some(agent), handoff, person: String::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents() -> [Caller; 2] {
        let agent: AgentName = "builder".parse().expect("a name");
        let run = RunId(uuid::Uuid::nil());
        [
            Caller::Agent { run, agent: agent.clone(), handoff: None },
            Caller::External { agent, scope: Scope::Act },
        ]
    }

    #[test]
    fn b_21_an_agent_takes_part_and_reads_what_is_shared_and_nothing_else() {
        for agent in agents() {
            for right in Right::ALL {
                let may = matches!(right, Right::Public | Right::Shared | Right::TakePart);
                let expected = if may { Ok(()) } else { Err(Denied::ForPeople) };
                assert_eq!(agent.may(right), expected, "{agent:?} {right:?}");
            }
        }
    }

    #[test]
    fn b_21_an_assistant_runs_answers_and_proposes_and_decides_nothing() {
        let person = Caller::Person(Scope::Admin);
        let assistant = person.clone().assisted();
        for right in Right::ALL {
            assert_eq!(person.may(right), Ok(()), "{right:?}");
            assert_eq!(Caller::Nobody.may(right).is_ok(), right == Right::Public, "{right:?}");
            let decides = matches!(right, Right::Decide | Right::Admin);
            assert_eq!(assistant.may(right).is_err(), decides, "{right:?}");
        }
        let looker = Caller::Person(Scope::Observe).assisted();
        assert_eq!(looker.may(Right::Run), Err(Denied::Scope(Scope::Assist)));
    }

    #[test]
    fn b_21_a_right_belongs_to_one_scope_and_all_that_are_larger() {
        for (right, scope) in Right::ALL.into_iter().flat_map(|r| Scope::ALL.map(|s| (r, s))) {
            let may = Caller::Person(scope).may(right).is_ok();
            assert_eq!(may, scope >= right.scope(), "{right:?} {scope:?}");
        }
    }
}
