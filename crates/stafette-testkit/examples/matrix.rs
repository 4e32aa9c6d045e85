//! The first contact with real agents, as a table: `cargo xtask agents` builds Stafette and runs this.
//!
//! `matrix STAFETTE [--only NAME,…] [--runner NAME,…] [--limit SECONDS] [--keep FOLDER]`

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use stafette_testkit::matrix::{Cell, new_home, table};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let stafette = PathBuf::from(words.next().ok_or("the path of stafette is missing")?);
    let stafette = stafette.canonicalize()?;
    let (mut only, mut runners, mut limit, mut keep) = (None, None, 180, None);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--only" => only = Some(value),
            "--runner" => runners = Some(value),
            "--limit" => limit = value.parse()?,
            "--keep" => keep = Some(PathBuf::from(value)),
            _ => return Err(format!("`{word}` is unknown").into()),
        }
    }
    let is_in = |list: &Option<String>, name: &str| {
        list.as_ref().is_none_or(|list| list.split(',').any(|one| one == name))
    };
    let mut verdicts = Vec::new();
    for cell in Cell::all() {
        let (agent, runner) = (cell.agent.name(), cell.runner.name());
        if !is_in(&only, agent) || !is_in(&runners, runner) {
            continue;
        }
        let folder = new_home()?;
        let home = match &keep {
            Some(keep) => keep.join(format!("{agent}-{runner}")),
            None => folder.path().to_owned(),
        };
        if home.exists() && keep.is_some() {
            std::fs::remove_dir_all(&home)?;
        }
        std::fs::create_dir_all(&home)?;
        let home = home.canonicalize()?;
        let verdict = cell.run(&stafette, &home, Duration::from_secs(limit))?;
        eprintln!("{agent} {runner}: {} in {:.0} s", verdict.status, verdict.time.as_secs_f32());
        verdicts.push((cell, verdict));
    }
    std::io::stdout().write_all(table(&verdicts).as_bytes())?;
    let good = verdicts.iter().all(|(_, verdict)| verdict.is_complete());
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
