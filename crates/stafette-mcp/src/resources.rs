//! Resources: runs, handoffs, briefings, schemas.

use serde_json::json;
use stafette_core::schema;
use stafette_core::{AgentName, RunId};
use stafette_engine::HandoffRow;

use crate::ToolError;
use crate::call_context::CallContext;
use crate::tools::Briefing;

const JSON: &str = "application/json";
const TEXT: &str = "text/markdown";

/// Maximum number of runs in the list.
const RUNS: usize = 20;

/// A resource in the list.
pub(crate) struct Item {
    pub(crate) uri: String,
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) about: String,
    pub(crate) mime: &'static str,
}

/// A URI template of resources.
pub(crate) struct Template {
    pub(crate) uri: &'static str,
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
    pub(crate) mime: &'static str,
}

/// Content of a resource.
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) mime: &'static str,
}

/// All resources, by URI template.
pub(crate) const TEMPLATES: [Template; 4] = [
    Template {
        uri: "stafette://runs/{run}",
        name: "run",
        title: "A run",
        about: "How a run stands: status, who works, what it has spent. `run` may be `latest`.",
        mime: JSON,
    },
    Template {
        uri: "stafette://runs/{run}/handoffs",
        name: "handoffs",
        title: "The handoffs of a run",
        about: "Every handoff of a run in order, with what was asked and how it came out.",
        mime: JSON,
    },
    Template {
        uri: "stafette://runs/{run}/briefings/{agent}",
        name: "briefing",
        title: "An agent's briefing",
        about: "What the turn is about that an agent of a run has at the moment.",
        mime: TEXT,
    },
    Template {
        uri: "stafette://schemas/{name}",
        name: "schema",
        title: "A JSON Schema",
        about: "The schema of a document that Stafette reads or writes.",
        mime: JSON,
    },
];

/// Returns the resources that exist now and that the caller may see.
pub(crate) async fn list(context: &CallContext) -> Result<Vec<Item>, ToolError> {
    let mut items = Vec::new();
    for view in context.engine.overview(RUNS).await? {
        if context.may_see(view.run).await.is_err() {
            continue;
        }
        let (run, short) = (view.run, view.run.short());
        let title = view.request.chars().take(80).collect::<String>();
        items.push(Item {
            uri: format!("stafette://runs/{run}"),
            name: format!("run {short}"),
            title: title.clone(),
            about: format!("The run {short}: {}", view.status),
            mime: JSON,
        });
        items.push(Item {
            uri: format!("stafette://runs/{run}/handoffs"),
            name: format!("handoffs of {short}"),
            title,
            about: format!("The handoffs of run {short}"),
            mime: JSON,
        });
        for agent in
            view.working.iter().chain(&view.offered).filter(|agent| context.may_be(agent).is_ok())
        {
            items.push(Item {
                uri: format!("stafette://runs/{run}/briefings/{agent}"),
                name: format!("briefing of {agent} in {short}"),
                title: format!("What {agent} works on"),
                about: format!("The turn of {agent} in run {short}"),
                mime: TEXT,
            });
        }
    }
    items.extend(schema::list().into_iter().map(|name| Item {
        uri: format!("stafette://schemas/{name}"),
        name: format!("schema {name}"),
        title: format!("JSON Schema of {name}"),
        about: format!("The JSON Schema of a {name} document"),
        mime: JSON,
    }));
    Ok(items)
}

/// Reads the resource at a URI.
pub(crate) async fn read(context: &CallContext, uri: &str) -> Result<Text, ToolError> {
    let nothing = || {
        ToolError::new("no_resource", format!("There is nothing at {uri}"))
            .fix("List the resources and their templates to see what there is.")
    };
    let path = uri.strip_prefix("stafette://").ok_or_else(nothing)?;
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["runs", run] => {
            let (view, trouble) = context.engine.view(find(context, run).await?).await?;
            let mut value = json!(view);
            value["trouble"] = json!(trouble);
            Ok(pretty(&value))
        }
        ["runs", run, "handoffs"] => {
            let rows = context.engine.log().handoffs(find(context, run).await?).await?;
            // An agent sees what it gave and what it was given.
            let own = |row: &&HandoffRow| {
                context.may_be(&row.from).is_ok() || context.may_be(&row.to).is_ok()
            };
            let all: Vec<serde_json::Value> = rows
                .iter()
                .filter(own)
                .map(|row| {
                    let whole: serde_json::Value =
                        serde_json::from_str(&row.body).unwrap_or_default();
                    json!({ "id": row.id, "state": row.state, "handoff": whole })
                })
                .collect();
            Ok(pretty(&json!(all)))
        }
        ["runs", run, "briefings", agent] => {
            context.may_be(agent)?;
            let state = context.engine.state(find(context, run).await?).await?;
            let order = state.outbox().find(|order| order.agent.as_str() == *agent);
            let order = order.ok_or_else(|| {
                ToolError::new("no_turn", format!("{agent} has no turn in this run at the moment"))
                    .fix("Call `wait`, which returns as soon as there is one.")
            })?;
            Ok(Text { text: Briefing::of(order).text(), mime: TEXT })
        }
        ["schemas", name] => {
            let name: schema::Name = name.parse().map_err(|error: schema::UnknownName| {
                ToolError::new("no_schema", error.to_string())
                    .fix("List the resources: they name every schema.")
            })?;
            Ok(pretty(&schema::schema(name)))
        }
        _ => Err(nothing()),
    }
}

/// Returns completions for a part of a URI, or for an argument of a prompt.
pub(crate) async fn complete(
    context: &CallContext,
    name: &str,
    begun: &str,
    run: Option<&str>,
) -> Vec<String> {
    let found: Vec<String> = match name {
        "run" => {
            let runs = context.engine.overview(100).await.unwrap_or_default();
            let mut found = vec!["latest".to_owned()];
            for view in runs {
                if context.may_see(view.run).await.is_ok() {
                    found.push(view.run.to_string());
                }
            }
            found
        }
        "agent" => agents(context, run).await,
        "name" => schema::names().into_iter().map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    found.into_iter().filter(|value| value.starts_with(begun)).collect()
}

/// Returns the agents of a run, or of the project.
async fn agents(context: &CallContext, run: Option<&str>) -> Vec<String> {
    if let Some(own) = context.caller.who.agent() {
        return vec![own.to_string()];
    }
    let names = |agents: &std::collections::BTreeMap<AgentName, _>| {
        agents.keys().map(ToString::to_string).collect()
    };
    if let Some(run) = run
        && let Ok(run) = find(context, run).await
        && let Ok(state) = context.engine.state(run).await
    {
        return names(&state.workflow.agents);
    }
    (context.workflow)().map(|workflow| names(&workflow.agents)).unwrap_or_default()
}

/// Finds a run that the caller may see.
async fn find(context: &CallContext, text: &str) -> Result<RunId, ToolError> {
    let run = context.run(Some(text)).await?;
    context.may_see(run).await.map(|()| run)
}

fn pretty(value: &serde_json::Value) -> Text {
    Text { text: serde_json::to_string_pretty(value).unwrap_or_default(), mime: JSON }
}
