//! `schema`: the published JSON Schemas.

use stafette_core::schema;

use super::Context;
use crate::cli;
use crate::exit::{Exit, Failure};

pub(crate) fn run(context: &Context, arguments: &cli::Schema) -> Result<Exit, Failure> {
    let Some(name) = arguments.name.as_deref().filter(|_| !arguments.list) else {
        let names = schema::names();
        match context.output.json {
            true => context.output.data(&names),
            false => names.iter().for_each(|name| context.output.line(*name)),
        }
        return Ok(Exit::Ok);
    };
    let schema = schema::schema(parse(name)?);
    match context.output.json {
        true => context.output.data(&schema),
        false => {
            let text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
            context.output.line(&text);
        }
    }
    Ok(Exit::Ok)
}

pub(crate) fn parse(name: &str) -> Result<schema::Name, Failure> {
    name.parse().map_err(|_| {
        Failure::usage(format!("There is no schema `{name}`"))
            .fix(format!("choose one of {}", schema::names().join(", ")))
    })
}
