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
mod state;
mod store;
mod trust;
mod window;

use std::process::ExitCode;

use output::{Manner, Output};

/// The first argument that selects the launcher of sandboxes.
const SANDBOXED: &str = "sandboxed";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|word| word == SANDBOXED) {
        // Before anything else: it restricts the only thread that it has.
        return stafette_sandbox::sandboxed(arguments);
    }
    let cli = match cli::help::parse() {
        Ok(cli) => cli,
        Err(exit) => return exit.into(),
    };
    if let Some(cli::Command::Play { script }) = &cli.command {
        // A scripted agent's turn has an exit status of its own.
        return stafette_agents::scripted::play(script);
    }
    let outlives_pipe = cli.command.as_ref().is_some_and(commands::cleans_up);
    Manner { quiet: cli.quiet, verbose: cli.verbose, outlives_pipe }.set();
    let output = Output::new(cli.json);
    match commands::run(cli, output) {
        Ok(code) => code.into(),
        Err(failure) => {
            output.failure(&failure);
            failure.code.into()
        }
    }
}
