//! `graph`: shows its size, and exports or imports it as a file.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::{Context, list};
use crate::cli::{self, GraphCommand};
use crate::client::Client;
use crate::commands::{daemon, segment};
use crate::exit::{Exit, Failure};

/// The number of records in one request.
const STEP: usize = 200;

/// The approximate number of bytes in one request: the daemon takes a little more.
const BYTES: usize = 1 << 20;

/// The longest line that is read, in bytes.
const LINE: usize = 128 << 10;

/// The number of records that were sent.
#[derive(Default)]
struct Counted {
    nodes: u64,
    links: u64,
}

pub(crate) async fn run(context: &Context, arguments: cli::Graph) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let output = context.output;
    let (counted, file) = match &arguments.command {
        None => {
            let size: Value = client.get("/v1/graph").await?;
            let count = |name: &str| size[name].as_u64().unwrap_or(0);
            (Counted { nodes: count("nodes"), links: count("links") }, None)
        }
        Some(GraphCommand::Export { file }) => (export(&client, file).await?, Some(file)),
        Some(GraphCommand::Import { file }) => (import(&client, file).await?, Some(file)),
    };
    let Counted { nodes, links } = counted;
    match (output.json, file) {
        (true, _) => output.data(&json!({ "nodes": nodes, "links": links })),
        (false, None) => output.line(format!("{nodes} nodes, {links} links")),
        (false, Some(file)) => {
            output.line(format!("{}: {nodes} nodes, {links} links", file.display()));
        }
    }
    Ok(Exit::Ok)
}

fn unusable(file: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("Cannot use {}", file.display())).because(error).fix(
        "name a file that does not exist yet for an export, and one that you may read for an import",
    )
}

async fn export(client: &Client, file: &Path) -> Result<Counted, Failure> {
    let failed = |error: std::io::Error| unusable(file, &error);
    let mut out = BufWriter::new(File::create_new(file).map_err(failed)?);
    let mut counted = Counted::default();
    let mut next = Some(String::new());
    while let Some(after) = next {
        let path = format!("/v1/graph/export?limit={STEP}&after={}", segment(&after));
        let page: Value = client.get(&path).await?;
        if after.is_empty() {
            let header = json!({ "stafette_graph": page["stafette_graph"] });
            writeln!(out, "{header}").map_err(failed)?;
        }
        for record in list(&page, "/records") {
            counted.nodes += u64::from(record.get("node").is_some());
            counted.links += u64::from(record.get("link").is_some());
            writeln!(out, "{record}").map_err(failed)?;
        }
        next = page["next"].as_str().map(str::to_owned);
    }
    let out = out.into_inner().map_err(|error| failed(error.into_error()))?;
    out.sync_all().map_err(failed)?;
    Ok(counted)
}

async fn import(client: &Client, file: &Path) -> Result<Counted, Failure> {
    let failed = |error: std::io::Error| unusable(file, &error);
    let mut lines = BufReader::new(File::open(file).map_err(failed)?);
    let header = match next_line(&mut lines, file, 1) {
        Err(failure) if failure.code != Exit::Usage => return Err(failure),
        header => header.ok().flatten().map(|(header, _)| header).unwrap_or_default(),
    };
    let version = &header["stafette_graph"];
    if !version.is_u64() {
        return Err(Failure::usage(format!("{} is no export of a graph", file.display()))
            .fix("make one with `stafette graph export FILE`"));
    }
    let mut counted = Counted::default();
    let (mut number, mut asked) = (2, false);
    loop {
        let (mut records, mut bytes, first) = (Vec::new(), 0, number);
        while records.len() < STEP && bytes < BYTES {
            let Some((record, length)) = next_line(&mut lines, file, number)? else { break };
            records.push(record);
            bytes += length;
            number += 1;
        }
        // Sent once in any case: the daemon decides whether the version matches.
        if records.is_empty() && asked {
            return Ok(counted);
        }
        asked = true;
        let body = json!({ "stafette_graph": version, "records": records });
        let done: Value = client.post("/v1/graph/import", &body).await.map_err(|failure| {
            // Everything before it is stored, and the same file can be imported again.
            let (from, to) = (first, number - 1);
            Failure { what: format!("lines {from} to {to}: {}", failure.what), ..failure }
        })?;
        counted.nodes += done["nodes"].as_u64().unwrap_or(0);
        counted.links += done["links"].as_u64().unwrap_or(0);
    }
}

/// The next line as JSON, with its length.
fn next_line(
    lines: &mut impl BufRead,
    file: &Path,
    number: usize,
) -> Result<Option<(Value, usize)>, Failure> {
    let mut text = Vec::new();
    let read = lines.take(LINE as u64 + 1).read_until(b'\n', &mut text);
    if read.map_err(|error| unusable(file, &error))? == 0 {
        return Ok(None);
    }
    let wrong = |why: String| {
        Failure::usage(format!("{}, line {number}: {why}", file.display()))
            .fix("the file is not as it was exported; export it again")
    };
    if text.len() > LINE {
        return Err(wrong(format!("it is longer than {LINE} bytes")));
    }
    let record = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    Ok(Some((record, text.len())))
}
