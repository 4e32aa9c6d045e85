//! `threads`: lists the stored conversations.

use serde_json::Value;

use super::{Context, list, moment, text};
use crate::cli;
use crate::commands::{daemon, segment};
use crate::exit::{Exit, Failure};
use crate::output::short;

pub(crate) async fn run(context: &Context, arguments: cli::Threads) -> Result<Exit, Failure> {
    let path = match (&arguments.thread, &arguments.search) {
        (Some(thread), _) => format!("/v1/threads/{}?limit=500", segment(thread)),
        (None, Some(words)) => format!("/v1/threads/search?q={}", segment(words)),
        (None, None) => "/v1/threads".to_owned(),
    };
    let found: Value = daemon(context).await?.get(&path).await?;
    let output = context.output;
    if output.json {
        output.data(&found);
        return Ok(Exit::Ok);
    }
    for message in list(&found, "/messages") {
        output.line(format!("{}  {}", moment(&message["created_at"]), text(message, "/role")));
        output.line(text(message, "/body"));
    }
    let hits = list(&found, "/hits").iter().map(|hit| {
        let words: String =
            list(hit, "/snippet").iter().map(|piece| text(piece, "/text")).collect();
        vec![text(hit, "/thread_id"), text(hit, "/role"), short(&words, 90)]
    });
    let threads = list(&found, "/threads").iter().map(|thread| {
        vec![text(thread, "/id"), text(thread, "/module"), short(&text(thread, "/title"), 90)]
    });
    let rows: Vec<Vec<String>> = hits.chain(threads).collect();
    match (rows.is_empty(), arguments.thread.is_some()) {
        (true, false) => output.say("Nothing was found."),
        (true, true) => {}
        (false, _) => output.table(&["thread", "who", "what"], rows),
    }
    Ok(Exit::Ok)
}
