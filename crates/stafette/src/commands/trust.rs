//! `trust`: shows the commands that a workflow would run, and allows them.

use serde_json::json;

use super::Context;
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::trust;

pub(crate) fn run(context: &Context, arguments: &cli::Trust) -> Result<Exit, Failure> {
    let project = context.project()?;
    let loaded = project.load()?;
    let commands = trust::commands(&project, &loaded.workflow);
    let known = trust::is_trusted(&project, &loaded);
    let output = context.output;
    if !output.json {
        let rows = commands.iter().map(|(agent, command)| vec![agent.clone(), command.clone()]);
        output.table(&["agent", "command"], rows.collect());
    }
    let granted = if arguments.list || known {
        known
    } else {
        let question =
            format!("Allow these {} commands in {}?", commands.len(), project.root.display());
        context.confirm(&question)? && trust::trust(&project, &loaded).map(|()| true)?
    };
    if output.json {
        let commands: Vec<_> = commands
            .iter()
            .map(|(agent, command)| json!({ "agent": agent, "command": command }))
            .collect();
        output.data(&json!({ "trusted": granted, "hash": loaded.hash, "commands": commands }));
    } else {
        output.say(if granted { "trusted, until the workflow changes" } else { "not trusted" });
    }
    Ok(if granted || arguments.list { Exit::Ok } else { Exit::Failed })
}
