//! Completions and manual pages.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::{Exit, Failure};

pub(crate) fn completions(shell: Shell) -> Exit {
    clap_complete::generate(shell, &mut Cli::command(), "stafette", &mut std::io::stdout().lock());
    Exit::Ok
}

pub(crate) fn man(folder: &Path) -> Result<Exit, Failure> {
    let write = || {
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(Cli::command(), folder)
    };
    write().map_err(|error| {
        Failure::failed(format!("The manual cannot be written to {}", folder.display()))
            .because(&error)
            .fix("check the folder's permissions and its free space, and try again")
    })?;
    Ok(Exit::Ok)
}
