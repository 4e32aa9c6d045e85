//! Converts tools, resources and prompts for listings.

use std::sync::Arc;

use rmcp::model::{Prompt, PromptArgument, Resource, ResourceTemplate, Tool, ToolAnnotations};

use crate::prompts::Role;
use crate::resources::{Item, Template};
use crate::tools::{Effect, Entry};

pub(super) fn tool(entry: &Entry) -> Tool {
    let notes = ToolAnnotations::with_title(entry.title)
        .read_only(entry.effect == Effect::Looks)
        .destructive(false)
        .idempotent(entry.effect != Effect::Adds)
        .open_world(false);
    Tool::new(entry.name, entry.about, Arc::new(entry.input.clone()))
        .with_title(entry.title)
        .with_raw_output_schema(Arc::new(entry.output.clone()))
        .with_annotations(notes)
}

pub(super) fn resource(item: Item) -> Resource {
    Resource::new(item.uri, item.name)
        .with_title(item.title)
        .with_description(item.about)
        .with_mime_type(item.mime)
}

pub(super) fn template(template: &Template) -> ResourceTemplate {
    ResourceTemplate::new(template.uri, template.name)
        .with_title(template.title)
        .with_description(template.about)
        .with_mime_type(template.mime)
}

pub(super) fn prompt(role: Role) -> Prompt {
    let run = PromptArgument::new("run")
        .with_description("A run: its briefing for this role is added when there is one.")
        .with_required(false);
    let title = role.title.clone();
    Prompt::new(role.name, Some(role.about), Some(vec![run])).with_title(title)
}
