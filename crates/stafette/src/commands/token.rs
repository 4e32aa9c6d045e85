//! `token`: manages access by HTTP.
//!
//! A running daemon does it, since it has the tokens in memory. Without one the file is changed
//! directly: a daemon that is to listen on a non-loopback address does not start without a token.

use serde_json::{Value, json};
use stafette_core::AgentName;
use stafette_engine::clock::now;
use stafette_server::{NewToken, Standing, TokenError, TokenView, Tokens};

use super::{Context, segment};
use crate::cli;
use crate::client::Client;
use crate::daemon;
use crate::exit::{Exit, Failure};
use crate::project::Project;

pub(crate) async fn run(context: &Context, arguments: cli::Token) -> Result<Exit, Failure> {
    let project = context.project()?;
    let client = Client::new(&project.socket()?);
    let keeper = match client.is_up().await? {
        true => Keeper::Daemon(client),
        false => Keeper::File(daemon::tokens(&project)?),
    };
    let output = context.output;
    match arguments {
        cli::Token::Create { name, scope, agent, expires } => {
            let agent = agent.map(|name| name.parse()).transpose();
            let agent = agent.map_err(|error: stafette_core::id::BadAgentName| {
                Failure::usage(error.to_string()).fix("name an agent of stafette.toml")
            })?;
            if let Some(agent) = &agent {
                check_agent(&project, agent)?;
            }
            // By default, an agent's token lets it do its work.
            let scope = scope.unwrap_or(cli::Scope::Act).scope();
            let made = keeper.create(&name, Standing { scope, agent }, expires.as_deref()).await?;
            match output.json {
                true => output.data(&made),
                false => {
                    output.line(&made.token);
                    output.say("this is the only time that it is shown");
                }
            }
        }
        cli::Token::List => {
            let tokens = keeper.list().await?;
            match output.json {
                true => output.data(&tokens),
                false => show(context, &tokens),
            }
        }
        cli::Token::Revoke { name } => {
            keeper.revoke(&name).await?;
            match output.json {
                true => output.data(&json!({ "revoked": name })),
                false => output.say(format!("`{name}` is taken back")),
            }
        }
    }
    Ok(Exit::Ok)
}

/// Refuses an agent that the workflow does not have: its token would open nothing. A workflow that
/// cannot be read does not say.
fn check_agent(project: &Project, agent: &AgentName) -> Result<(), Failure> {
    let Ok(loaded) = project.load() else { return Ok(()) };
    let agents = &loaded.workflow.agents;
    if agents.contains_key(agent) {
        return Ok(());
    }
    let names: Vec<&str> = agents.keys().map(AgentName::as_str).collect();
    Err(Failure::usage(format!("The workflow has no agent `{agent}`"))
        .why("the token would open nothing")
        .fix(format!("name one that it has: {}", names.join(", "))))
}

fn show(context: &Context, tokens: &[TokenView]) {
    let rows = tokens.iter().map(|token| {
        let end = token.expires_at.clone().unwrap_or_else(|| "never".to_owned());
        let end = if token.expired { format!("{end} (over)") } else { end };
        let whose = token.agent.as_ref().map(ToString::to_string).unwrap_or_default();
        // What an agent's token opens is its own turns, whatever the scope.
        let scope = match &token.agent {
            Some(_) => "its turns".to_owned(),
            None => token.scope.as_str().to_owned(),
        };
        vec![token.name.clone(), scope, whose, token.created_at.clone(), end]
    });
    context.output.table(&["name", "scope", "agent", "made", "ends"], rows.collect());
}

enum Keeper {
    Daemon(Client),
    File(Tokens),
}

impl Keeper {
    async fn create(
        &self,
        name: &str,
        standing: Standing,
        expires: Option<&str>,
    ) -> Result<NewToken, Failure> {
        let lasts = expires.map(super::time).transpose()?;
        match self {
            Keeper::Daemon(client) => {
                let Standing { scope, agent } = standing;
                let body =
                    json!({ "name": name, "scope": scope, "agent": agent, "expires": lasts });
                client.post("/v1/tokens", &body).await
            }
            Keeper::File(tokens) => {
                tokens.create(now(), name, standing, lasts).map_err(|error| failure(&error))
            }
        }
    }

    async fn list(&self) -> Result<Vec<TokenView>, Failure> {
        match self {
            Keeper::Daemon(client) => client.get("/v1/tokens").await,
            Keeper::File(tokens) => Ok(tokens.list(now())),
        }
    }

    async fn revoke(&self, name: &str) -> Result<(), Failure> {
        match self {
            Keeper::Daemon(client) => {
                let _: Value = client.delete(&format!("/v1/tokens/{}", segment(name))).await?;
                Ok(())
            }
            Keeper::File(tokens) => tokens.revoke(name).map_err(|error| failure(&error)),
        }
    }
}

fn failure(error: &TokenError) -> Failure {
    let (code, fix) = match error {
        TokenError::BadName { .. } => (Exit::Usage, "choose such a name"),
        TokenError::AgentAdmin => (Exit::Usage, "leave --agent out, or choose a smaller --scope"),
        _ => (Exit::Failed, "`stafette token list` shows the tokens that exist"),
    };
    let failure = Failure::new(code, error.to_string()).fix(fix);
    match std::error::Error::source(error) {
        Some(why) => failure.because(why),
        None => failure,
    }
}
