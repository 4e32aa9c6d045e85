//! Homes in which the agents start without questions and connect only to the model server.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;
use thiserror::Error;

/// A key for a model that needs none. Claude Code remembers its last 20 characters.
const KEY: &str = "scripted-key-for-loopback";

/// The variable that carries the key for Codex.
const CODEX_KEY: &str = "SCRIPTED_MODEL_KEY";

/// A model that Codex knows: it warns about others, and gives later ones other tools.
const MODEL: &str = "gpt-5.5";

/// The model that Codex would recommend instead.
const NEWER_MODEL: &str = "gpt-6-sol";

/// A file of a home could not be written.
#[derive(Debug, Error)]
#[error("{} cannot be written: {source}", path.display())]
pub struct HomeError {
    /// The path that could not be written.
    pub path: PathBuf,
    /// The error of the file system.
    pub source: io::Error,
}

/// Writes the settings of Claude Code; returns its environment.
pub(super) fn claude(
    home: &Path,
    project: &Path,
    url: &str,
) -> Result<Vec<(String, String)>, HomeError> {
    let folder = home.join("claude");
    let tail = &KEY[KEY.len() - 20..];
    let mut settings = json!({
        "hasCompletedOnboarding": true,
        "lastOnboardingVersion": super::Cli::Claude.version(),
        "theme": "dark",
        "autoUpdates": false,
        "bypassPermissionsModeAccepted": true,
        "customApiKeyResponses": { "approved": [tail], "rejected": [] },
        "projects": {},
    });
    settings["projects"][real(project)] =
        json!({ "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true });
    write(&folder.join(".claude.json"), &settings.to_string())?;
    let on = |name: &str| (name.to_owned(), "1".to_owned());
    Ok(vec![
        ("CLAUDE_CONFIG_DIR".to_owned(), folder.display().to_string()),
        ("ANTHROPIC_BASE_URL".to_owned(), url.to_owned()),
        ("ANTHROPIC_API_KEY".to_owned(), KEY.to_owned()),
        ("ENABLE_TOOL_SEARCH".to_owned(), "false".to_owned()),
        on("DISABLE_TELEMETRY"),
        on("DISABLE_ERROR_REPORTING"),
        on("DISABLE_AUTOUPDATER"),
        on("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"),
        on("CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL"),
    ])
}

/// Writes the settings of Codex; returns its environment.
pub(super) fn codex(
    home: &Path,
    project: &Path,
    url: &str,
) -> Result<Vec<(String, String)>, HomeError> {
    let folder = home.join("codex");
    let settings = toml::Table::from_iter([
        ("model".to_owned(), MODEL.into()),
        ("model_provider".to_owned(), "scripted".into()),
        ("approval_policy".to_owned(), "never".into()),
        // The tests examine their own isolation, and not every machine supports this one.
        ("sandbox_mode".to_owned(), "danger-full-access".into()),
        ("check_for_update_on_startup".to_owned(), false.into()),
        ("analytics".to_owned(), table([("enabled", false.into())])),
        // Otherwise it would recommend its newest model first, and wait for an answer.
        ("notice".to_owned(), table([("model_migrations", table([(MODEL, NEWER_MODEL.into())]))])),
        (
            "model_providers".to_owned(),
            table([(
                "scripted",
                table([
                    ("name", "scripted".into()),
                    ("base_url", format!("{url}/v1").into()),
                    ("wire_api", "responses".into()),
                    ("env_key", CODEX_KEY.into()),
                    ("supports_websockets", false.into()),
                    ("request_max_retries", 1.into()),
                    ("stream_max_retries", 1.into()),
                ]),
            )]),
        ),
        (
            "features".to_owned(),
            table(
                ["plugins", "remote_plugin", "apps", "daemon_auto_start"]
                    .map(|name| (name, false.into())),
            ),
        ),
        (
            "projects".to_owned(),
            table([(real(project).as_str(), table([("trust_level", "trusted".into())]))]),
        ),
    ]);
    write(&folder.join("config.toml"), &settings.to_string())?;
    Ok(vec![
        ("CODEX_HOME".to_owned(), folder.display().to_string()),
        (CODEX_KEY.to_owned(), KEY.to_owned()),
    ])
}

fn table<const N: usize>(fields: [(&str, toml::Value); N]) -> toml::Value {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<toml::Table>().into()
}

/// Returns the path as a program that works there sees it.
fn real(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}

fn write(path: &Path, text: &str) -> Result<(), HomeError> {
    let failed = |source| HomeError { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, text).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_points_at_the_model_and_nowhere_else() {
        let home = tempfile::tempdir().expect("a folder");
        let url = "http://127.0.0.1:1";
        let claude = claude(home.path(), home.path(), url).expect("written");
        let codex = codex(home.path(), home.path(), url).expect("written");
        assert!(claude.contains(&("ANTHROPIC_BASE_URL".to_owned(), url.to_owned())));
        let config = fs::read_to_string(home.path().join("codex/config.toml")).expect("settings");
        let config: toml::Table = config.parse().expect("TOML");
        assert_eq!(
            config["model_providers"]["scripted"]["base_url"].as_str(),
            Some("http://127.0.0.1:1/v1")
        );
        let names: Vec<&str> = codex.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["CODEX_HOME", CODEX_KEY]);
    }
}
