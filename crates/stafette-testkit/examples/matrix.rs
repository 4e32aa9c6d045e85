//! The first contact with real agents, as a table: `cargo xtask agents` builds Stafette and runs this.
//!
//! `matrix STAFETTE [WORD…]`: the words are those of `stafette doctor --try`. What `--only` and
//! `--runner` leave out is not installed.

use std::path::PathBuf;
use std::process::ExitCode;

use stafette_testkit::matrix::{Agent, command};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let stafette = PathBuf::from(words.next().ok_or("the path of stafette is missing")?);
    let words: Vec<String> = words.collect();
    let is_chosen = |option: &str, name: &str| {
        let value = words.iter().position(|word| word == option).and_then(|at| words.get(at + 1));
        value.is_none_or(|list| list.split(',').any(|one| one == name))
    };
    let mut agents = Agent::ALL.to_vec();
    agents.retain(|agent| is_chosen("--only", agent.name()));
    let home = tempfile::tempdir()?;
    let mut command =
        command(&stafette.canonicalize()?, home.path(), &agents, is_chosen("--runner", "acp"))?;
    let good = command.args(&words).status()?.success();
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
