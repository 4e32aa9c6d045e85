//! The command line: parses the arguments, asks the daemon, and prints the result.

mod caller;
mod cli;
mod client;
mod commands;
mod daemon;
mod exit;
mod log;
mod output;
mod project;
mod store;
mod trust;
mod window;

use std::process::ExitCode;

use clap::Parser;

/// The first argument that selects the launcher of sandboxes.
const SANDBOXED: &str = "sandboxed";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|word| word == SANDBOXED) {
        // Before anything else: it restricts the only thread that it has.
        return stafette_sandbox::sandboxed(arguments);
    }
    let cli = cli::Cli::parse();
    if let cli::Command::Play { script } = &cli.command {
        // A scripted agent's turn has an exit status of its own.
        return stafette_agents::scripted::play(script);
    }
    let output = output::Output::new(cli.json);
    match commands::run(cli, output) {
        Ok(code) => code.into(),
        Err(failure) => {
            output.failure(&failure);
            failure.code.into()
        }
    }
}
