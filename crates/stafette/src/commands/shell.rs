//! Completions and manual pages.

use std::path::Path;

use clap_complete::Shell;

use crate::cli::help;
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn completions(shell: Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut help::command(), "stafette", &mut script);
    output::script(&script);
    Exit::Ok
}

pub(crate) fn man(folder: &Path) -> Result<Exit, Failure> {
    let write = || {
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(help::command(), folder)
    };
    write().map_err(|error| {
        Failure::failed(format!("Cannot write the manual to {}", folder.display()))
            .because(&error)
            .fix("name a folder that you may write to")
    })?;
    Ok(Exit::Ok)
}
