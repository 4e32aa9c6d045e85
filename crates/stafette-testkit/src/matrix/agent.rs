//! The agents, and how each is told where its model is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Runner;
use crate::cli::install::{self, InstallError};
use crate::cli::package::Package;
use crate::tools;

/// A key for a model that needs none, as long as real ones are.
const KEY: &str = "sk-scripted-key-for-a-model-on-loopback";

/// An agent whose command line is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// The agent opencode.
    Opencode,
    /// Qwen Code.
    Qwen,
    /// The agent goose.
    Goose,
    /// The agent aider.
    Aider,
}

impl Agent {
    /// All of them.
    pub const ALL: [Agent; 7] = [
        Agent::Claude,
        Agent::Codex,
        Agent::Gemini,
        Agent::Opencode,
        Agent::Qwen,
        Agent::Goose,
        Agent::Aider,
    ];

    /// Returns the name of its profile, which is also that of its program.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Agent::Claude => "claude",
            Agent::Codex => "codex",
            Agent::Gemini => "gemini",
            Agent::Opencode => "opencode",
            Agent::Qwen => "qwen",
            Agent::Goose => "goose",
            Agent::Aider => "aider",
        }
    }

    /// True if it can be driven in this way.
    #[must_use]
    pub fn has(self, runner: Runner) -> bool {
        self != Agent::Aider || runner != Runner::Acp
    }

    /// True if it takes Stafette's tools. Others can only print frames.
    #[must_use]
    pub fn has_tools(self) -> bool {
        self != Agent::Aider
    }

    /// Returns its programs, installed.
    pub(super) fn programs(self, runner: Runner) -> Result<Vec<PathBuf>, InstallError> {
        let packages: &[Package] = match self {
            Agent::Claude if runner == Runner::Acp => &[Package::CLAUDE, Package::CLAUDE_ACP],
            Agent::Claude => &[Package::CLAUDE],
            Agent::Codex if runner == Runner::Acp => &[Package::CODEX, Package::CODEX_ACP],
            Agent::Codex => &[Package::CODEX],
            Agent::Gemini => &[Package::GEMINI],
            Agent::Opencode => &[Package::OPENCODE],
            Agent::Qwen => &[Package::QWEN],
            Agent::Goose => &[Package::GOOSE],
            Agent::Aider => {
                let folder = tools::python("aider", "aider-chat==0.86.2\n")?;
                return Ok(vec![folder.join("bin/aider")]);
            }
        };
        packages.iter().map(|package| install::program(*package)).collect()
    }

    /// Tells it in its new home where the model is, and returns the variables that do the same. It
    /// trusts nothing, and knows no other setting.
    pub(super) fn point(self, home: &Path, url: &str) -> io::Result<Vec<(&'static str, String)>> {
        let key = |name| (name, KEY.to_owned());
        Ok(match self {
            Agent::Claude => {
                // Its tour ends at a check of the vendor's own servers, which no test reaches.
                let tour = "{\"hasCompletedOnboarding\": true}";
                write(&home.join(".claude.json"), tour)?;
                vec![("ANTHROPIC_BASE_URL", url.to_owned()), key("ANTHROPIC_API_KEY")]
            }
            Agent::Codex => {
                // Later models get their tools in a way that the scripted one does not know.
                let settings = format!(
                    "model = \"gpt-5.5\"\nmodel_provider = \"scripted\"\n\n[model_providers.scripted]\n\
                     name = \"scripted\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\n\
                     env_key = \"OPENAI_API_KEY\"\nsupports_websockets = false\n"
                );
                write(&home.join(".codex/config.toml"), &settings)?;
                vec![key("OPENAI_API_KEY")]
            }
            Agent::Gemini => {
                // Whoever has a key has said once that it is to be used.
                let chosen = "{\"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}}}";
                write(&home.join(".gemini/settings.json"), chosen)?;
                // Without a model it asks another one which to take.
                let model = ("GEMINI_MODEL", "gemini-2.5-pro".to_owned());
                vec![model, ("GOOGLE_GEMINI_BASE_URL", url.to_owned()), key("GEMINI_API_KEY")]
            }
            Agent::Opencode => {
                let settings = format!(
                    "{{\"model\": \"scripted/scripted\", \"provider\": {{\"scripted\": {{\
                     \"npm\": \"@ai-sdk/openai-compatible\", \"name\": \"scripted\", \
                     \"options\": {{\"baseURL\": \"{url}/v1\", \"apiKey\": \"{KEY}\"}}, \
                     \"models\": {{\"scripted\": {{\"name\": \"scripted\"}}}}}}}}}}"
                );
                write(&home.join(".config/opencode/opencode.json"), &settings)?;
                Vec::new()
            }
            Agent::Qwen => vec![
                ("OPENAI_BASE_URL", format!("{url}/v1")),
                ("OPENAI_MODEL", "scripted".to_owned()),
                key("OPENAI_API_KEY"),
            ],
            Agent::Goose => vec![
                ("GOOSE_PROVIDER", "openai".to_owned()),
                ("GOOSE_MODEL", "scripted".to_owned()),
                ("OPENAI_HOST", url.to_owned()),
                key("OPENAI_API_KEY"),
            ],
            Agent::Aider => vec![
                ("OPENAI_API_BASE", format!("{url}/v1")),
                // One that it lets edit parts of a file and suggest commands.
                ("AIDER_MODEL", "openai/gpt-4o".to_owned()),
                key("OPENAI_API_KEY"),
            ],
        })
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    path.parent().map(fs::create_dir_all).transpose()?;
    fs::write(path, text)
}
