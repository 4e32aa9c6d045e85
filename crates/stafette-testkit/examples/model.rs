//! A model to try agents by hand: `cargo run -p stafette-kit --example model -- FOLDER`.
//!
//! It says what to set, ends with its standard input, and then tells on standard error what it was
//! asked, one JSON document a line. What the prompt contains decides: `limited`, `broken`, `stall`,
//! `write`, `shell`, `mcp` (the tool `ping` of the server `demo`), `slow`.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use stafette_testkit::cli::Cli;
use stafette_testkit::model::{ModelServer, Reply, Rule, Script};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));
    let folder = folder.canonicalize()?;
    let file = folder.join("written.txt").display().to_string();
    let done = || Reply::text("It is done. `<<<ODEI:RESULT:{\"summary\":\"done\"}>>>`");
    let script = Script::new()
        .rule(Rule::when("limited").then(Reply::limited(1_900_000_000)))
        .rule(Rule::when("broken").then(Reply::broken(500)))
        .rule(Rule::when("stall").then(Reply::stall()))
        .rule(Rule::when("write").then(Reply::write(file, "hello\n")).then(done()))
        .rule(Rule::when("shell").then(Reply::shell("echo hello")).then(done()))
        .rule(
            Rule::when("mcp").then(Reply::mcp("demo", "ping", serde_json::json!({}))).then(done()),
        )
        .rule(Rule::when("slow").then(done().slow(Duration::from_millis(300))))
        .rule(Rule::when("").then(done()));
    let model = ModelServer::start(script)?;
    let mut out = io::stdout();
    for cli in Cli::ALL {
        let ready = cli.prepare(&folder.join("home"), &folder, &model.url())?;
        for (name, value) in &ready.env {
            writeln!(out, "export {name}='{value}'")?;
        }
        writeln!(out, "{}='{}'", cli.name(), ready.program.display())?;
    }
    out.flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    for exchange in model.exchanges() {
        let line = serde_json::json!({
            "method": exchange.method,
            "path": exchange.path,
            "headers": exchange.headers,
            "outcome": format!("{:?}", exchange.outcome),
            "prompt": exchange.ask.as_ref().map(|ask| &ask.prompt),
            "step": exchange.ask.as_ref().map(|ask| ask.step),
            "tools": exchange.ask.as_ref().map(|ask| &ask.tools),
            "model": exchange.ask.as_ref().map(|ask| &ask.model),
            "body": exchange.body,
        });
        writeln!(io::stderr(), "{line}")?;
    }
    Ok(())
}
