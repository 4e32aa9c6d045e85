//! A prompt for each role of the workflow, with what an agent needs to know to take it.

use stafette_core::workflow::Agent;
use stafette_core::{AgentName, Party, Workflow};

use crate::ToolError;
use crate::call_context::CallContext;
use crate::tools::Briefing;

/// Instructions for every role.
const MANNERS: &str = "You take part in a run of Stafette by its tools:\n\
    - `wait` until there is work for you, and `accept` it; if Stafette started you, your turn is \
    yours already.\n\
    - `briefing` says what is asked, what you were given and who you may hand on to.\n\
    - `report` every minute or so what you do and what you used.\n\
    - `escalate` when a person has to decide; `handoff` when someone else goes on.\n\
    - End each turn with `complete`. An error says what to do: read it and try again.";

/// A role in the list of prompts.
pub(crate) struct Role {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) about: String,
}

/// Returns the roles of the workflow, an agent's own alone; none while it is not trusted, since the
/// texts come from it.
pub(crate) fn list(context: &CallContext) -> Vec<Role> {
    let Ok(workflow) = (context.workflow)() else { return Vec::new() };
    let role = |(name, agent): (&AgentName, &Agent)| Role {
        name: name.to_string(),
        title: format!("Be the {name}"),
        about: match agent.role.as_str() {
            "" => format!("Take the turns of {name}."),
            role => role.to_owned(),
        },
    };
    let own = |(name, _): &(&AgentName, &Agent)| context.may_be(name.as_str()).is_ok();
    workflow.agents.iter().filter(own).map(role).collect()
}

/// Returns the prompt of a role, with the briefing of its turn in `run`, if it has one.
pub(crate) async fn get(
    context: &CallContext,
    name: &str,
    run: Option<&str>,
) -> Result<String, ToolError> {
    context.may_be(name)?;
    let workflow = (context.workflow)()?;
    let Some((name, agent)) = workflow.agents.get_key_value(name) else {
        let names: Vec<&str> = workflow.agents.keys().map(AgentName::as_str).collect();
        return Err(ToolError::new("no_role", format!("There is no role `{name}`"))
            .fix(format!("There are: {}.", names.join(", "))));
    };
    let mut parts = vec![role(&workflow, name, agent), MANNERS.to_owned()];
    if let Some(run) = run {
        let run = context.run(Some(run)).await?;
        context.may_see(run).await?;
        let state = context.engine.state(run).await?;
        let order = state.outbox().find(|order| order.agent == *name);
        parts.extend(order.map(|order| Briefing::of(order).text()));
    }
    Ok(parts.join("\n\n"))
}

fn role(workflow: &Workflow, name: &AgentName, agent: &Agent) -> String {
    let targets = workflow.targets(&Party::from(name));
    let targets: Vec<&str> = targets.iter().map(Party::as_str).collect();
    let mut lines = vec![format!("You are {name} in the workflow {}.", workflow.workflow.name)];
    let own = [agent.role.trim(), agent.prompt.trim()];
    lines.extend(own.into_iter().filter(|text| !text.is_empty()).map(str::to_owned));
    lines.push(format!("You may hand to: {}.", targets.join(", ")));
    lines.join("\n")
}
