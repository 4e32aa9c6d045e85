//! The variables that a workflow passes on.

use super::Variables;
use crate::Workflow;

impl Workflow {
    /// Returns the names of the variables that the workflow gives to agents, commands and servers.
    pub fn variables(&self) -> Variables<'_> {
        let Workflow {
            agents,
            changes,
            hooks,
            knowledge,
            notify,
            own,
            store,
            telemetry,
            triggers,
            ..
        } = self;
        let mut passed: Vec<&str> = Vec::new();
        let mut secret: Vec<&str> = Vec::new();
        for agent in agents.values() {
            passed.extend(agent.env.iter().map(String::as_str));
            secret.extend(agent.bearer.as_deref());
        }
        passed.extend(hooks.iter().flat_map(|hook| &hook.env).map(String::as_str));
        let own = own.iter().flat_map(|own| &own.env);
        passed.extend(changes.env.iter().chain(own).map(String::as_str));
        secret.extend(triggers.iter().filter_map(|trigger| trigger.secret_env.as_deref()));
        secret.extend(telemetry.headers.values().map(String::as_str));
        secret.extend(store.url_env.as_deref());
        if let Some(knowledge) = knowledge {
            let neo4j = knowledge.neo4j.as_ref().and_then(|neo4j| neo4j.password_env.as_deref());
            let calendar =
                knowledge.calendar.as_ref().and_then(|home| home.password_env.as_deref());
            secret.extend(neo4j.into_iter().chain(calendar));
        }
        if let Some(notify) = notify {
            secret.extend(notify.ntfy.as_ref().and_then(|ntfy| ntfy.token_env.as_deref()));
            secret.extend(notify.webhook.as_ref().map(|webhook| webhook.secret_env.as_str()));
        }
        Variables { secret, passed }
    }
}
