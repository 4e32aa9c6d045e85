//! `pr`: pushes a change as a branch of its own and opens a pull request for it.
//!
//! The project's folder and its index stay as they are: the change is committed in a worktree that exists only
//! for that. What pushes and opens is the user's own `git`, `gh` or `glab`, with the user's own settings
//! but for hooks.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use stafette_engine::Repository;

use super::changes::{author, named, path, text};
use super::{Context, daemon, diff};
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
    let address = git(&root, &["remote", "get-url", &remote]).map_err(|failure| {
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
    git(&root, &["push", "--force-with-lease", &remote, &target])?;
    let request = Request { branch, base: arguments.base, title, body, draft: arguments.draft };
    let tools = [Tool::for_address(&address), Tool::Gh, Tool::Glab];
    let tool = tools.into_iter().find(|tool| tool.is_installed());
    let url = tool.map(|tool| tool.open(&root, &request)).transpose()?;
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
        let mut probe = Command::new(self.name());
        probe.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    }

    /// Opens the pull request and returns its address.
    fn open(self, root: &Repository, request: &Request) -> Result<String, Failure> {
        let mut command = root.command(self.name());
        let (head, base, body) = match self {
            Tool::Gh => (["pr", "create", "--head"], "--base", "--body"),
            Tool::Glab => (["mr", "create", "--source-branch"], "--target-branch", "--description"),
        };
        command.args(head).arg(&request.branch);
        command.args(["--title", &request.title, body, &request.body]);
        if let Some(branch) = &request.base {
            command.args([base, branch]);
        }
        if request.draft {
            command.arg("--draft");
        }
        if matches!(self, Tool::Glab) {
            command.arg("--yes");
        }
        let said = answer(command, self.name(), None).map_err(|failure| {
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
    git(root, &["worktree", "add", "--quiet", "--detach", &tree, "HEAD"])?;
    let committed = match repository(&place).await {
        Ok(aside) => commit(&aside, &root.inner, &patch, message),
        Err(failure) => Err(failure),
    };
    let removed = git(root, &["worktree", "remove", "--force", &tree]);
    let commit = committed?;
    removed?;
    Ok(commit)
}

/// Commits a patch of a folder in a worktree, and returns the commit.
fn commit(aside: &Repository, inner: &Path, patch: &str, message: &str) -> Result<String, Failure> {
    let mut apply = aside.command("git");
    apply.args(["apply", "--index", "--3way"]);
    if inner.iter().next().is_some() {
        // Paths of a patch are those of the whole repository, wherever git is started.
        apply.arg("--directory").arg(inner);
    }
    answer(apply, "git apply", Some(patch.as_bytes())).map_err(|failure| {
        failure.fix("the project has moved on since the change was made; let its agent revise it")
    })?;
    git(aside, &["commit", "--quiet", "--message", message])?;
    git(aside, &["rev-parse", "HEAD"])
}

fn git(root: &Repository, words: &[&str]) -> Result<String, Failure> {
    let mut command = root.command("git");
    command.args(words);
    answer(command, &format!("git {}", words.first().unwrap_or(&"")), None)
}

/// Runs a program of the user's to its end and returns what it printed.
fn answer(mut command: Command, name: &str, input: Option<&[u8]>) -> Result<String, Failure> {
    let not_started = |error: std::io::Error| {
        Failure::failed(format!("Cannot run {name}"))
            .because(&error)
            .fix("install it, or check that it is in the PATH")
    };
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(not_started)?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // One that has ended says why in its output.
        drop(stdin.write_all(input));
    }
    let output = child.wait_with_output().map_err(not_started)?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(Failure::failed(format!("{name} failed"))
            .why(String::from_utf8_lossy(&output.stderr).trim().to_owned())
            .fix("repair what it names and run the command again")),
    }
}
