//! The small repository that the demonstration works in.

use std::fs;
use std::path::{Path, PathBuf};

use crate::exit::Failure;

const FILES: &[(&str, &str)] = &[
    ("stafette.toml", include_str!("../../../demo/stafette.toml")),
    ("agents/planner.toml", include_str!("../../../demo/agents/planner.toml")),
    ("agents/builder.toml", include_str!("../../../demo/agents/builder.toml")),
    ("agents/reviewer.toml", include_str!("../../../demo/agents/reviewer.toml")),
    ("agents/fixer.toml", include_str!("../../../demo/agents/fixer.toml")),
    (".gitignore", "/.stafette/\n"),
    ("README.md", "# A little program\n\nIt has no users yet.\n"),
];

/// The folder that the user named, or a new one that stays.
pub(super) fn folder(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let failed = |error: std::io::Error| {
        Failure::failed("Cannot create a folder for the demonstration")
            .because(&error)
            .fix("name a folder that you may write to with --dir")
    };
    let folder = match named {
        Some(folder) => {
            fs::create_dir_all(&folder).map_err(failed)?;
            if fs::read_dir(&folder).map_err(failed)?.next().is_some() {
                return Err(Failure::usage(format!("{} is not empty", folder.display()))
                    .fix("name a folder that is empty or does not exist"));
            }
            folder
        }
        None => tempfile::Builder::new().prefix("stafette-demo-").tempdir().map_err(failed)?.keep(),
    };
    fs::canonicalize(folder).map_err(failed)
}

/// Writes the program, its agents and the first commit.
pub(super) async fn lay_out(folder: &Path) -> Result<(), Failure> {
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(folder.join("agents"))?;
        fs::create_dir_all(folder.join(".stafette/ledger"))?;
        FILES.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))
    };
    write().map_err(|error| {
        Failure::failed(format!("Cannot write to {}", folder.display()))
            .because(&error)
            .fix("name a folder that you may write to with --dir")
    })?;
    git(folder, &["init", "--quiet", "--initial-branch=main"]).await?;
    git(folder, &["config", "user.name", "demo"]).await?;
    git(folder, &["config", "user.email", "demo@stafette.local"]).await?;
    git(folder, &["add", "--all"]).await?;
    git(folder, &["commit", "--quiet", "--message", "a little program"]).await?;
    Ok(())
}

/// Runs git and returns its output.
pub(super) async fn git(folder: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let said = stafette_engine::run_git(folder, arguments).await.map_err(|error| {
        Failure::failed("Cannot set up or read the repository")
            .because(&error)
            .fix("see `stafette doctor`, and try again in another folder with --dir")
    })?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}
