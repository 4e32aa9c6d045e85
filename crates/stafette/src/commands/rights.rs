//! `rights`: who may use which operation of the daemon.

use serde_json::{Map, Value, json};
use stafette_server::{Operation, callers, operations};

use super::Context;
use crate::exit::Exit;

pub(crate) fn run(context: &Context) -> Exit {
    let (all, callers) = (operations(), callers());
    if context.output.json {
        let described = |operation: &Operation| {
            let may = callers.iter().map(|(name, caller)| {
                ((*name).to_owned(), Value::Bool(caller.may(operation.right).is_ok()))
            });
            let mut fields = json!(operation);
            fields["may"] = Value::Object(may.collect::<Map<_, _>>());
            fields
        };
        context.output.data(&all.iter().map(described).collect::<Vec<_>>());
        return Exit::Ok;
    }
    let mut head = vec!["operation", "right"];
    head.extend(callers.iter().map(|(name, _)| *name));
    let rows = all.iter().map(|operation| {
        let mut row = vec![
            format!("{} {}", operation.interface, operation.name),
            operation.right.as_str().to_owned(),
        ];
        row.extend(callers.iter().map(|(_, caller)| match caller.may(operation.right) {
            Ok(()) => "yes".to_owned(),
            Err(_) => "-".to_owned(),
        }));
        row
    });
    context.output.table(&head, rows.collect());
    Exit::Ok
}
