//! `validate`: checks that a document is valid.

use std::io::Read;

use serde_json::json;
use stafette_core::schema::{self, MAX_BYTES};

use super::Context;
use crate::cli;
use crate::exit::{Exit, Failure};

pub(crate) fn run(context: &Context, arguments: &cli::Validate) -> Result<Exit, Failure> {
    let path = &arguments.file;
    let unreadable = |error: std::io::Error| {
        Failure::usage(format!("Cannot read {}", path.display()))
            .because(&error)
            .fix("name a file that you may read, or `-` for standard input")
    };
    let mut bytes = Vec::new();
    let reader: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(std::fs::File::open(path).map_err(unreadable)?),
    };
    // One byte more than is allowed is enough to know that it is too large.
    reader.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let named = arguments.schema.as_deref().map(super::schema::parse).transpose()?;
    let value = match schema::read(&bytes) {
        Ok(value) => value,
        Err(error) => {
            let errors = vec![(String::new(), error.to_string())];
            return Ok(report(context, named.map(schema::Name::as_str), &errors));
        }
    };
    let Some(name) = named.or_else(|| schema::recognise(&value)) else {
        let message = "it looks like none of the known documents; name one with --as".to_owned();
        return Ok(report(context, None, &[(String::new(), message)]));
    };
    let errors: Vec<(String, String)> = schema::validate(name, &value)
        .into_iter()
        .map(|violation| (violation.path, violation.message))
        .collect();
    Ok(report(context, Some(name.as_str()), &errors))
}

fn report(context: &Context, name: Option<&str>, errors: &[(String, String)]) -> Exit {
    let valid = errors.is_empty();
    if context.output.json {
        let errors: Vec<_> = errors
            .iter()
            .map(|(path, message)| json!({ "path": path, "message": message }))
            .collect();
        context.output.data(&json!({ "valid": valid, "schema": name, "errors": errors }));
    } else {
        for (path, message) in errors {
            let place = if path.is_empty() { "(the document)" } else { path };
            context.output.line(format!("{place}: {message}"));
        }
        if valid {
            context.output.say(format!("valid: {}", name.unwrap_or("document")));
        }
    }
    if valid { Exit::Ok } else { Exit::Failed }
}
