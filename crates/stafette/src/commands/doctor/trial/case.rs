//! What is tried: what the model says, what the workflow sets, and what has to come of it.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use stafette_agents::profile::{Profile, Recommendation};
use stafette_core::workflow::Runner;
use stafette_fake_model::{Reply, Rule, Script};

use super::findings::Findings;
use crate::cli::{TrialCase, TrialRunner};

/// The prompt of the agent that begins.
pub(super) const BUILDER: &str = "You build.";

/// The prompt of the agent that it hands to.
pub(super) const REVIEWER: &str = "You review.";

/// The text that the builder writes and the reviewer has to find.
pub(super) const GREETING: &str = "Hello from the builder";

/// The text that the builder's command prints.
pub(super) const CHECKED: &str = "all checks pass";

/// The seconds without a sign of life after which an agent that hangs is ended.
const STALL: u64 = 20;

/// The tokens of a budget that the builder's turn exceeds.
const BUDGET: u64 = 300;

/// The turns of the work: that of the builder, and that of the reviewer.
const TURNS: usize = 2;

/// The seconds until a quota that is used up is available again.
const RESET: u64 = 2 * 60 * 60;

impl TrialRunner {
    /// All modes.
    pub(super) const ALL: [TrialRunner; 3] =
        [TrialRunner::Exec, TrialRunner::Pty, TrialRunner::Acp];

    pub(super) fn runner(self) -> Runner {
        match self {
            TrialRunner::Exec => Runner::Exec,
            TrialRunner::Pty => Runner::Pty,
            TrialRunner::Acp => Runner::Acp,
        }
    }
}

impl TrialCase {
    /// What the model says to an agent with this profile.
    pub(super) fn script(self, profile: &Profile, may_run: bool) -> Script {
        let builder = || Rule::when(BUILDER);
        let before = match self {
            TrialCase::Handoff | TrialCase::Frame | TrialCase::Budget => None,
            TrialCase::Kill | TrialCase::Hang => Some(builder().once().then(Reply::stall())),
            TrialCase::Limit => Some(builder().then(Reply::limited(now() + RESET))),
            TrialCase::Overload => Some(builder().times(2).then(Reply::broken(529))),
            TrialCase::Key => Some(builder().then(Reply::broken(401))),
        };
        if profile.trial.is_toolless {
            return plain(before, may_run && self != TrialCase::Frame);
        }
        // As its prompt says: by our tools, or a command, or a printed frame.
        let tool = |name: &str, signal: &str, input: Value| {
            let text = format!("<<<ODEI:{signal}:{input}>>>\n");
            let command = format!("\"$STAFETTE_PROGRAM\" emit {signal} '{input}'");
            match self {
                TrialCase::Frame => Reply::text(text),
                _ => Reply::mcp("stafette", name, input).or_shell(command).or_text(text),
            }
        };
        let to_reviewer = json!({ "to": "reviewer", "summary": "See greeting.txt" });
        let good = json!({ "status": "resolved", "summary": "The greeting is good" });
        let script = before.into_iter().fold(Script::new(), Script::rule);
        script
            .rule(
                builder()
                    .then(Reply::shell("sh ./check.sh"))
                    .then(Reply::write("{folder}/greeting.txt", format!("{GREETING}\n")))
                    .then(tool("handoff", "HANDOFF", to_reviewer))
                    .then(Reply::text("The greeting is written and handed over.")),
            )
            .rule(
                Rule::when(REVIEWER)
                    .then(Reply::shell("cat greeting.txt").or_read("{folder}/greeting.txt"))
                    .then(tool("complete", "RESULT", good))
                    .then(Reply::text("The greeting is good.")),
            )
    }

    /// The project's workflow.
    pub(super) fn workflow(
        self,
        profile: &Profile,
        runner: TrialRunner,
        settings: Recommendation,
    ) -> String {
        let mut text =
            "[workflow]\nname = \"pair\"\nentry = \"builder\"\nworktrees = true\n".to_owned();
        if self == TrialCase::Frame {
            text.push_str("trust_bare_frames = true\n");
        }
        for (name, prompt) in [("builder", BUILDER), ("reviewer", REVIEWER)] {
            let (runner, profile) = (runner.name(), &profile.name);
            let _ = write!(
                text,
                "\n[agents.{name}]\nrunner = \"{runner}\"\nprofile = \"{profile}\"\n{}\
                 prompt = \"{prompt}\"\n",
                settings.lines()
            );
            if self == TrialCase::Hang {
                let _ = writeln!(text, "stall = \"{STALL}s\"");
            }
        }
        if self == TrialCase::Budget {
            let _ = write!(text, "\n[budget]\ntokens = {BUDGET}\n");
        }
        text + "\n[[routes]]\nfrom = \"builder\"\nto = \"reviewer\"\n"
    }

    /// True if no more is to be seen.
    pub(super) fn is_over(self, findings: &Findings) -> bool {
        match self {
            TrialCase::Limit => findings.parked,
            TrialCase::Key => !findings.failures_asked.is_empty(),
            _ => false,
        }
    }

    /// What is missing of an agent whose model `hears` what it did, or not; `None` if all is as it has
    /// to be.
    pub(super) fn missing(self, findings: &Findings, hears: bool) -> Option<String> {
        let unless = |good: bool, what: &str| (!good).then(|| what.to_owned());
        let none_spent = || unless(findings.retries == 0, "attempts were spent");
        match self {
            TrialCase::Limit => unless(findings.parked, "not parked").or_else(none_spent),
            TrialCase::Key => unless(!findings.failures_asked.is_empty(), "no person was told")
                .or_else(none_spent),
            _ if !findings.ready => Some("its model was never asked".to_owned()),
            _ if !findings.handed_over => Some("no handoff".to_owned()),
            _ if findings.status != "succeeded" => Some(format!("the run is {}", findings.status)),
            TrialCase::Hang => {
                let is_stall = |alert: &String| alert.starts_with("AGENT_STALLED");
                unless(findings.alerts.iter().any(is_stall), "no stall was detected")
            }
            TrialCase::Kill => unless(findings.noticed.is_some(), "its death was not noticed"),
            TrialCase::Budget => {
                let counted = findings.tokens() == Some(findings.answered);
                let limit = format!("of {BUDGET} tokens used");
                let stops = findings.asked.iter().any(|asked| asked.contains(&limit));
                unless(counted, "its tokens are not counted")
                    .or_else(|| unless(stops, "the budget did not stop it"))
            }
            // What was lost on the way is said again in a further turn.
            TrialCase::Handoff | TrialCase::Frame if findings.turns > TURNS => {
                Some(format!("{} turns instead of {TURNS}", findings.turns))
            }
            TrialCase::Handoff | TrialCase::Frame | TrialCase::Overload => {
                unless(!hears || findings.ran, "its command did not run")
                    .or_else(|| unless(!hears || findings.edited, "its edit was not found"))
            }
        }
    }
}

/// The same work for an agent that edits and runs what its model writes down.
fn plain(before: Option<Rule>, may_run: bool) -> Script {
    let ending = |signal: &str, payload: &str| match may_run {
        true => format!("\"$STAFETTE_PROGRAM\" emit {signal} '{payload}'\n```\n"),
        false => format!("```\n\n<<<ODEI:{signal}:{payload}>>>\n"),
    };
    let to_reviewer = ending("HANDOFF", r#"{"to":"reviewer","summary":"See greeting.txt"}"#);
    let good = ending("RESULT", r#"{"status":"resolved","summary":"The greeting is good"}"#);
    let message = Rule::when("").told("commit messages").then(Reply::text("feat: greet the user"));
    let script = before.into_iter().fold(Script::new(), Script::rule).rule(message);
    script
        .rule(Rule::when(BUILDER).then(Reply::text(format!(
            "greeting.txt\n```\n<<<<<<< SEARCH\n=======\n{GREETING}\n>>>>>>> REPLACE\n```\n\n\
             ```bash\nsh ./check.sh\n{to_reviewer}"
        ))))
        .rule(Rule::when(REVIEWER).then(Reply::text(format!("```bash\ncat greeting.txt\n{good}"))))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
