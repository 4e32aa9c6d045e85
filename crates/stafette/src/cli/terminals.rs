//! What can be typed about agents' terminals.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Attach {
    /// Agent to attach to.
    pub(crate) agent: String,
    /// Run id, or its first or last digits [default: newest run with this terminal].
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Send keys too, and resize it to this terminal.
    #[arg(long, short)]
    pub(crate) write: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Send {
    /// Agent that receives it.
    pub(crate) agent: String,
    /// Text; `-` reads it from standard input.
    pub(crate) text: String,
    /// Run id, or its first or last digits [default: newest run; with --type, newest run with the
    /// terminal].
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Wait until the agent was given the message, or the run has ended.
    #[arg(long, conflicts_with_all = ["types", "no_submit"])]
    pub(crate) wait: bool,
    /// Type the text into the agent's terminal instead, and press Enter.
    #[arg(long = "type")]
    pub(crate) types: bool,
    /// Type the text into the agent's terminal, and do not press Enter.
    #[arg(long)]
    pub(crate) no_submit: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Restart {
    /// Agent whose program to restart.
    pub(crate) agent: String,
    /// Run id, or its first or last digits [default: newest run with this terminal].
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Run id, its first or last digits, or `latest`.
    pub(crate) run: String,
    /// Agent whose terminal to replay.
    pub(crate) agent: String,
    /// Speed as a factor.
    #[arg(long, default_value_t = 1.0, value_name = "NUMBER", value_parser = speed)]
    pub(crate) speed: f64,
    /// Print the screen as it was this many milliseconds after the start.
    #[arg(long, value_name = "MS", conflicts_with = "export")]
    pub(crate) at: Option<u64>,
    /// Write it to a file as an asciicast (version 2); `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) export: Option<PathBuf>,
}

fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "it is not a number".to_owned())?;
    match (0.01..=1000.0).contains(&speed) {
        true => Ok(speed),
        false => Err("it goes from 0.01 to 1000".to_owned()),
    }
}
