//! `open`: opens the page in the user's own browser.

use std::process::{Command, Stdio};

use serde_json::json;
use stafette_server::LaunchLink;

use super::{Context, daemon};
use crate::cli;
use crate::exit::{Exit, Failure};

pub(crate) async fn run(context: &Context, arguments: &cli::Open) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let scope = arguments.scope.word();
    let link: LaunchLink = client.post("/v1/launch", &json!({ "scope": scope })).await?;
    match context.output.json {
        true => context.output.data(&link),
        false => context.output.line(&link.url),
    }
    if !arguments.print && !context.output.json && !browse(&link.url) {
        context.output.say("no browser was found; open the link yourself within two minutes");
    }
    Ok(Exit::Ok)
}

/// Passes the link to the desktop.
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
