//! `pr`: pushes a change as a branch of its own and opens a pull request for it.
//!
//! The project's folder and its index stay as they are: the change is committed in a worktree that exists only
//! for that. What pushes and opens is the user's own `git`, `gh` or `glab`, with the user's own settings
//! but for hooks.

use std::ffi::OsStr;
use std::path::Path;

use serde_json::{Value, json};
use stafette_agents::profile::on_path;
use stafette_engine::{GitError, Repository};

use super::changes::{author, named, path, text};
use super::{Context, STUCK, daemon, diff};
use crate::cli;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::short;

/// The maximum length of a title, in characters.
const TITLE: usize = 72;

/// What to do where a folder cannot be made.
const SPACE: &str = "free some space, or name another place with TMPDIR";

pub(crate) async fn run(context: &Context, arguments: cli::Pr) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let id = match arguments.change {
        Some(change) => change,
        None => diff::newest(&client).await?,
    };
    let view: Value = client.get(&path(&id, "")).await?;
    let change = &view["change"];
    let root = repository(&context.project()?.root).await?;
    let remote = arguments.remote;
    let address = git(&root, &["remote", "get-url", &remote]).await.map_err(|failure| {
        failure
            .fix(format!("add it: git remote add {remote} ADDRESS, or name another with --remote"))
    })?;
    let branch =
        arguments.branch.unwrap_or_else(|| format!("stafette/{}", named(change).replace('@', "-")));
    let body = body(&client, change).await?;
    let title = short(text(change, "reason").lines().next().unwrap_or_default(), TITLE);
    let title = if title.is_empty() { named(change) } else { title };
    let commit = match change["commit"].as_str() {
        // It is applied, and its commit is what the project has of it.
        Some(commit) => commit.to_owned(),
        None => commit_aside(&root, &view, &format!("{title}\n\n{body}")).await?,
    };
    context.output.say(format!("pushing {} to {remote} as {branch}", named(change)));
    // A second one after a revision replaces the first, but only what this machine has pushed before.
    let target = format!("{commit}:refs/heads/{branch}");
    git(&root, &["push", "--force-with-lease", &remote, &target]).await?;
    let request = Request { branch, base: arguments.base, title, body, draft: arguments.draft };
    let tools = [Tool::for_address(&address), Tool::Gh, Tool::Glab];
    let tool = tools.into_iter().find(|tool| tool.is_installed());
    let url = match tool {
        Some(tool) => Some(tool.open(&root, &request).await?),
        None => None,
    };
    let Request { branch, .. } = request;
    match (&url, context.output.json) {
        (_, true) => {
            context.output.data(&json!({ "change": id, "branch": branch, "commit": commit, "url": url }));
        }
        (Some(url), false) => context.output.line(url),
        (None, false) => context.output.say(format!(
            "{branch} is pushed; install gh (GitHub) or glab (GitLab) to have the pull request opened too"
        )),
    }
    Ok(Exit::Ok)
}

/// A pull request to open.
struct Request {
    branch: String,
    base: Option<String>,
    title: String,
    body: String,
    draft: bool,
}

/// The program that opens pull requests.
#[derive(Clone, Copy)]
enum Tool {
    Gh,
    Glab,
}

impl Tool {
    fn for_address(address: &str) -> Self {
        if address.contains("gitlab") { Tool::Glab } else { Tool::Gh }
    }

    fn name(self) -> &'static str {
        match self {
            Tool::Gh => "gh",
            Tool::Glab => "glab",
        }
    }

    fn is_installed(self) -> bool {
        on_path(self.name()).is_some()
    }

    /// Opens the pull request and returns its address.
    async fn open(self, root: &Repository, request: &Request) -> Result<String, Failure> {
        let Request { branch, base, title, body, draft } = request;
        let (mut words, to, text) = match self {
            Tool::Gh => (vec!["pr", "create", "--head"], "--base", "--body"),
            Tool::Glab => (
                vec!["mr", "create", "--yes", "--source-branch"],
                "--target-branch",
                "--description",
            ),
        };
        words.extend([branch, "--title", title, text, body]);
        words.extend(base.iter().flat_map(|base| [to, base]));
        words.extend(draft.then_some("--draft"));
        let said = answer(root, self.name(), &words, b"").await.map_err(|failure| {
            failure.fix(format!("the branch is pushed; see `{} auth status`", self.name()))
        })?;
        // Both print more around it.
        let url = said.split_whitespace().rfind(|word| word.starts_with("http"));
        Ok(url.unwrap_or(said.trim()).to_owned())
    }
}

/// Returns what a reviewer reads: the reason, the handoffs that led to the change, and what its run cost.
async fn body(client: &Client, change: &Value) -> Result<String, Failure> {
    let mut lines = vec![text(change, "reason"), String::new()];
    let run = text(&change["author"], "run");
    if !run.is_empty() {
        let view: Value = client.get(&format!("/v1/runs/{run}")).await?;
        lines.push(format!("Request: {}", short(&text(&view, "request"), 400)));
        lines.push(String::new());
        let rows: Vec<Value> = client.get(&format!("/v1/runs/{run}/handoffs")).await?;
        for row in &rows {
            let said =
                row.pointer("/handoff/offer/summary").and_then(Value::as_str).unwrap_or_default();
            let cells = ["id", "from", "to", "state"].map(|key| text(row, key));
            let [id, from, to, state] = cells;
            lines.push(format!("- {id} {from} → {to}, {state}: {}", short(said, 100)));
        }
        lines.push(String::new());
    }
    lines.push(format!("Proposed by {}, {}.", author(change), text(change, "status")));
    Ok(lines.join("\n").trim().to_owned())
}

/// Finds the project's repository, which git is told in every call.
async fn repository(folder: &Path) -> Result<Repository, Failure> {
    let failed = || Failure::failed(format!("{} is in no git repository", folder.display()));
    let found = Repository::open(folder).await;
    let found = found.map_err(|error| failed().because(&error).fix("repair it: git status"))?;
    found.ok_or_else(|| failed().fix("a pull request needs one: git init, and a remote"))
}

/// Commits the change on top of the project's commit, without touching its folder, and returns the commit.
async fn commit_aside(root: &Repository, view: &Value, message: &str) -> Result<String, Failure> {
    let patch = diff::patch(view).map_err(|file| {
        Failure::failed(format!("{file} is not text, so there is no patch of it"))
            .fix("apply the change and push it yourself: stafette apply, git push")
    })?;
    let folder = tempfile::Builder::new().prefix("stafette-pr-").tempdir().map_err(|error| {
        Failure::failed("Cannot make a temporary folder").because(&error).fix(SPACE)
    })?;
    let place = folder.path().join("tree");
    let tree = place.to_string_lossy().into_owned();
    git(root, &["worktree", "add", "--quiet", "--detach", &tree, "HEAD"]).await?;
    let committed = match repository(&place).await {
        Ok(aside) => commit(&aside, &root.inner, &patch, message).await,
        Err(failure) => Err(failure),
    };
    let removed = git(root, &["worktree", "remove", "--force", &tree]).await;
    let commit = committed?;
    removed?;
    Ok(commit)
}

/// Commits a patch of a folder in a worktree, and returns the commit.
async fn commit(
    aside: &Repository,
    inner: &Path,
    patch: &str,
    message: &str,
) -> Result<String, Failure> {
    let mut words = ["apply", "--index", "--3way"].map(OsStr::new).to_vec();
    if !inner.as_os_str().is_empty() {
        // Paths of a patch are those of the whole repository, wherever git is started.
        words.extend([OsStr::new("--directory"), inner.as_os_str()]);
    }
    answer(aside, "git", &words, patch.as_bytes()).await.map_err(|failure| {
        failure.fix("the project has moved on since the change was made; let its agent revise it")
    })?;
    git(aside, &["commit", "--quiet", "--message", message]).await?;
    git(aside, &["rev-parse", "HEAD"]).await
}

async fn git(root: &Repository, words: &[&str]) -> Result<String, Failure> {
    answer(root, "git", words, b"").await
}

/// Runs a program of the user's to its end and returns what it printed.
async fn answer<W: AsRef<OsStr>>(
    root: &Repository,
    program: &str,
    words: &[W],
    input: &[u8],
) -> Result<String, Failure> {
    match root.run(program, words, input).await {
        Ok(said) => Ok(String::from_utf8_lossy(&said).trim().to_owned()),
        Err(GitError::NotStarted { source, .. }) => {
            Err(Failure::failed(format!("Cannot run {program}"))
                .because(&source)
                .fix("install it, or check that it is in the PATH"))
        }
        Err(GitError::Failed { command, stderr, .. }) => {
            Err(Failure::failed(format!("{command} failed"))
                .why(stderr)
                .fix("repair what it names and run the command again"))
        }
        Err(stuck) => {
            Err(Failure::failed(format!("{program} did not end")).because(&stuck).fix(STUCK))
        }
    }
}
