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
use rustix::fs::Mode;
use rustix::process::umask;

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
    close_to_others();
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

/// Sees to it that no other user can change what is made here: git, agents and we make files in the
/// project with the umask. One that lets the whole machine write is nobody's wish.
fn close_to_others() {
    let others = Mode::WOTH;
    let before = umask(others | Mode::WGRP);
    if before.contains(others) {
        umask(before);
    } else {
        umask(before | others | Mode::WGRP);
    }
}
