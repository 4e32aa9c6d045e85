//! What can be typed about agents' terminals.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Attach {
    /// Whose terminal.
    pub(crate) agent: String,
    /// The run: its id or some of its digits; otherwise the newest one that has the terminal.
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Type into it too, and give it the size of this one.
    #[arg(long, short)]
    pub(crate) write: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Send {
    /// The agent that gets it.
    pub(crate) agent: String,
    /// The text; `-` reads it from standard input.
    pub(crate) text: String,
    /// Run id, or some of its digits [default: the newest run; with --type, the newest run that has the
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
    /// Whose program.
    pub(crate) agent: String,
    /// The run: its id or some of its digits; otherwise the newest one that has the terminal.
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The run: its id, some of its digits, or `latest`.
    pub(crate) run: String,
    /// Whose terminal.
    pub(crate) agent: String,
    /// How many times as fast.
    #[arg(long, default_value_t = 1.0, value_name = "NUMBER", value_parser = speed)]
    pub(crate) speed: f64,
    /// Only print the screen as it was so many milliseconds after the beginning.
    #[arg(long, value_name = "MS", conflicts_with = "export")]
    pub(crate) at: Option<u64>,
    /// Only write it to a file as an asciicast (version 2); `-` is standard output.
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
