//! `open`: opens the page in the user's own browser.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use stafette_server::LaunchLink;

use super::{Context, daemon, segment};
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::project::Project;

pub(crate) async fn run(context: &Context, arguments: &cli::Open) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let scope = arguments.scope.word();
    let link: LaunchLink = client.post("/v1/launch", &json!({ "scope": scope })).await?;
    match context.output.json {
        true => context.output.data(&link),
        false => context.output.line(&link.url),
    }
    let quiet = arguments.print || context.output.json;
    if !quiet && !follow(&context.project()?, &link.url) {
        context.output.say("no browser was found; open the link yourself within two minutes");
    }
    Ok(Exit::Ok)
}

/// Has the desktop follow a link with a key in it. Every user can see the arguments of a process, so
/// the link itself is in a file that only its user can read.
pub(super) fn follow(project: &Project, url: &str) -> bool {
    let Ok(state) = project.state() else { return false };
    let file = state.join("open.html");
    stafette_disk::replace(&file, page(url)).is_ok() && browse(&format!("file://{}", path(&file)))
}

/// A page that leads on at once. The link works once, so it is worth nothing afterwards.
fn page(url: &str) -> String {
    let url = url.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0; url={url}\"><title>Stafette</title>\
         <a href=\"{url}\">Open Stafette</a>\n"
    )
}

/// A path as part of an address.
fn path(file: &Path) -> String {
    file.to_string_lossy().split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// Passes an address to the desktop.
pub(super) fn browse(url: &str) -> bool {
    let programs =
        if cfg!(target_os = "macos") { ["open", "open"] } else { ["xdg-open", "wslview"] };
    programs.iter().any(|program| {
        let started = Command::new(program)
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        // It may live as long as the browser, so it is not waited for.
        started.is_ok()
    })
}

impl cli::Scope {
    /// The name in requests.
    pub(crate) fn word(self) -> &'static str {
        self.scope().as_str()
    }

    /// The corresponding type of the server.
    pub(crate) fn scope(self) -> stafette_server::Scope {
        match self {
            cli::Scope::Observe => stafette_server::Scope::Observe,
            cli::Scope::Assist => stafette_server::Scope::Assist,
            cli::Scope::Act => stafette_server::Scope::Act,
            cli::Scope::Admin => stafette_server::Scope::Admin,
        }
    }
}
