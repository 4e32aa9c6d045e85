//! The agent card: a description of the project and its skills for other agents.

use std::collections::HashMap;

use a2a_types::{
    AgentCapabilities, AgentCard, AgentInterface, AgentSkill, HttpAuthSecurityScheme,
    SecurityScheme, TRANSPORT_PROTOCOL_HTTP_JSON, TRANSPORT_PROTOCOL_JSONRPC,
};
use axum::extract::State;
use axum::http::header::HOST;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::json;
use stafette_core::Workflow;

use crate::{A2a, Caller};

/// Path of the card.
pub(crate) const PLACE: &str = "/.well-known/agent-card.json";

/// Path of the JSON-RPC binding.
pub(crate) const RPC: &str = "/a2a";

/// Path prefix of the HTTP+JSON binding.
pub(crate) const REST: &str = "/a2a/v1";

/// Media types of inputs and outputs.
pub(crate) const MODES: [&str; 2] = ["text/plain", "application/json"];

pub(crate) async fn show(
    State(a2a): State<A2a>,
    caller: Option<Extension<Caller>>,
    headers: HeaderMap,
) -> Response {
    // A client that reached us by this name and scheme can reach the rest by them too.
    let by_tls = caller.is_some_and(|Extension(caller)| caller.by_tls);
    let scheme = if by_tls { "https" } else { "http" };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    match (a2a.workflow)() {
        Ok(workflow) => Json(card(&workflow, &format!("{scheme}://{host}"))).into_response(),
        Err(why) => {
            let problem = json!({
                "code": "no_workflow",
                "title": "There is no workflow to show",
                "status": 409,
                "detail": why,
            });
            (StatusCode::CONFLICT, Json(problem)).into_response()
        }
    }
}

/// Returns the card of a workflow that is served at `base`.
fn card(workflow: &Workflow, base: &str) -> AgentCard {
    let bearer = HttpAuthSecurityScheme {
        scheme: "Bearer".into(),
        description: Some("A token of the project's daemon with the scope to act".into()),
        bearer_format: None,
    };
    let modes = || MODES.map(str::to_owned).to_vec();
    AgentCard {
        name: workflow.workflow.name.clone(),
        description: format!(
            "Agents that pass work to each other: {}. Work begins with {}.",
            workflow.agents.keys().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            workflow.workflow.entry
        ),
        version: env!("CARGO_PKG_VERSION").into(),
        supported_interfaces: vec![
            AgentInterface::new(format!("{base}{RPC}"), TRANSPORT_PROTOCOL_JSONRPC),
            AgentInterface::new(format!("{base}{REST}"), TRANSPORT_PROTOCOL_HTTP_JSON),
        ],
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(true),
            extensions: None,
            extended_agent_card: Some(false),
        },
        default_input_modes: modes(),
        default_output_modes: modes(),
        skills: skills(workflow),
        provider: None,
        documentation_url: None,
        icon_url: None,
        security_schemes: Some(HashMap::from([(
            "bearer".to_owned(),
            SecurityScheme::HttpAuth(bearer),
        )])),
        security_requirements: Some(vec![HashMap::from([("bearer".to_owned(), Vec::new())])]),
        signatures: None,
    }
}

/// Returns the skills: the workflow as a whole first, then the role of each agent.
fn skills(workflow: &Workflow) -> Vec<AgentSkill> {
    let skill = |id: String, name: String, description: String, tag: &str| AgentSkill {
        id,
        name,
        description,
        tags: vec![tag.to_owned()],
        examples: None,
        input_modes: None,
        output_modes: None,
        security_requirements: None,
    };
    let name = &workflow.workflow.name;
    let entry = &workflow.workflow.entry;
    let whole = format!("Takes a request in plain words; {entry} begins with it.");
    let first = skill(name.clone(), name.clone(), whole, "workflow");
    let rest = workflow.agents.iter().map(|(name, agent)| {
        let role = match agent.role.as_str() {
            "" => format!("What {name} does when work comes to it."),
            role => role.to_owned(),
        };
        skill(format!("agent/{name}"), name.to_string(), role, "agent")
    });
    std::iter::once(first).chain(rest).collect()
}
