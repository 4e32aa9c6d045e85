//! Whether anybody can tell what an agent uses: what a budget sees.

use stafette_core::Workflow;
use stafette_core::workflow::{Agent, Budget, Runner};

use super::{Output, Profile, Reported};
use crate::stream::{Emit, Rule};

/// The parts of an agent's usage that are reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sight {
    pub tokens: bool,
    pub money: bool,
}

impl Sight {
    /// Everything is reported.
    pub const ALL: Sight = Sight { tokens: true, money: true };
    /// Nothing is reported.
    pub const NONE: Sight = Sight { tokens: false, money: false };

    fn or(self, other: Sight) -> Sight {
        Sight { tokens: self.tokens || other.tokens, money: self.money || other.money }
    }
}

impl Profile {
    /// The parts of its usage that the program reports with a runner.
    fn sight(&self, runner: Runner) -> Sight {
        let rules = |rules: &[Rule]| {
            let counts = |rule: &&Rule| matches!(rule.emit, Emit::Usage | Emit::Final);
            let tokens = rules
                .iter()
                .filter(counts)
                .any(|rule| !rule.input.is_empty() || !rule.output.is_empty());
            let cost = rules.iter().filter(counts).any(|rule| rule.cost.is_some());
            Sight { tokens, money: cost || (tokens && !self.price.models.is_empty()) }
        };
        let record = self.session.as_ref().map_or(Sight::NONE, |record| rules(&record.rules));
        match runner {
            Runner::Exec => match self.exec.as_ref().map_or(Output::Text, |exec| exec.output) {
                Output::Text => Sight::NONE,
                Output::Json | Output::JsonLines => rules(&self.stream.rules),
            },
            Runner::Pty => {
                let is_named = self.pty.as_ref().is_some_and(|pty| {
                    !pty.resume.is_empty() && (!pty.begin.is_empty() || pty.sessions.is_some())
                });
                if is_named { record } else { Sight::NONE }
            }
            Runner::Acp => {
                let told = self.acp.as_ref().map(|acp| acp.reports.as_slice()).unwrap_or_default();
                let tokens = told.contains(&Reported::Tokens);
                let cost = told.contains(&Reported::Cost);
                record.or(Sight { tokens, money: cost })
            }
            Runner::Scripted => Sight::ALL,
            Runner::External | Runner::A2a => Sight::NONE,
        }
    }
}

/// The parts of an agent's usage that a budget sees.
pub fn sight(agent: &Agent, profile: Option<&Profile>) -> Sight {
    match profile {
        _ if agent.estimate.is_some() || agent.runner == Runner::Scripted => Sight::ALL,
        Some(profile) => profile.sight(agent.runner),
        None => Sight::NONE,
    }
}

/// What the budget of a workflow does not see, in a sentence; `None` if it sees everything. Commands
/// of one's own are named only if somebody set a limit on money or tokens, in the workflow or, if
/// `is_set`, for the run.
pub fn unseen<'a>(
    workflow: &Workflow,
    is_set: bool,
    profile: impl Fn(&str) -> Option<&'a Profile>,
) -> Option<String> {
    let usual = Budget::default();
    let limits = |budget: &Budget| (budget.money, budget.tokens);
    let is_set = is_set || limits(&workflow.budget) != limits(&usual);
    let named = |wanted: Sight| -> String {
        let sight = |agent: &Agent| sight(agent, agent.profile.as_deref().and_then(&profile));
        let counts = |agent: &Agent| is_set || agent.profile.is_some();
        let agents = workflow.agents.iter();
        let agents = agents.filter(|(_, agent)| sight(agent) == wanted && counts(agent));
        agents.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let budget = &workflow.budget;
    let others = format!("{} handoffs and {}", budget.handoffs, budget.time);
    let nothing = match named(Sight::NONE) {
        names if names.is_empty() => None,
        names => {
            Some(format!("the budget does not see what {names} may use; {others} are the limit"))
        }
    };
    let no_money = match named(Sight { tokens: true, money: false }) {
        names if names.is_empty() => None,
        names => Some(format!(
            "the budget does not see what {names} may cost; {} tokens, {others} are the limit",
            budget.tokens
        )),
    };
    let parts: Vec<String> = nothing.into_iter().chain(no_money).collect();
    (!parts.is_empty()).then(|| parts.join(", and "))
}

/// What to do about [`unseen`].
pub const UNSEEN_FIX: &str = "give them an `estimate`, such as estimate = { money = \"0.20usd\", tokens = 20000 }: each of their \
     turns counts as that much";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Library;

    fn seen(text: &str) -> Sight {
        let library = Library::built_in();
        let agent: Agent = toml::from_str(text).expect("an agent");
        sight(&agent, agent.profile.as_deref().and_then(|name| library.get(name)))
    }

    #[test]
    fn b_05_a_budget_sees_what_is_reported_or_recorded() {
        let tokens = Sight { tokens: true, money: false };
        for (runner, profile, expected) in [
            ("exec", "claude", Sight::ALL),
            ("pty", "claude", Sight::ALL),
            ("acp", "claude", Sight::ALL),
            ("pty", "codex", Sight::ALL),
            ("acp", "codex", Sight::ALL),
            ("acp", "gemini", Sight::ALL),
            ("pty", "gemini", Sight::NONE),
            ("pty", "qwen", tokens),
            ("exec", "opencode", Sight::ALL),
            ("pty", "opencode", Sight::NONE),
            ("acp", "goose", Sight::NONE),
            ("exec", "goose", tokens),
            ("pty", "goose", Sight::NONE),
            ("exec", "aider", Sight::NONE),
        ] {
            let agent = format!("runner = \"{runner}\"\nprofile = \"{profile}\"");
            assert_eq!(seen(&agent), expected, "{runner} {profile}");
        }
        assert_eq!(seen("runner = \"exec\"\ncommand = [\"./agent\"]"), Sight::NONE);
        assert_eq!(seen("runner = \"external\""), Sight::NONE);
        assert_eq!(seen("runner = \"external\"\nestimate = { money = 0.1 }"), Sight::ALL);
        assert_eq!(seen("runner = \"scripted\"\nscript = \"a.toml\""), Sight::ALL);
    }
}
