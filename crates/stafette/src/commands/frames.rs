//! `frames`: prints the control frames of any program, as JSON lines.

use stafette_agents::frames::{FramesOptions, scan_command, scan_reader};

use crate::cli;
use crate::exit::{Exit, Failure};

pub(crate) fn run(arguments: &cli::Frames) -> Result<Exit, Failure> {
    let word = arguments.word.parse().map_err(|error| {
        Failure::usage(format!("`{}` cannot be the word of a frame", arguments.word))
            .because(&error)
            .fix("choose a word of capital letters, digits and `_`")
    })?;
    let screen = arguments.screen.as_deref().map(size).transpose()?;
    let options = FramesOptions { word, screen };
    let mut out = std::io::stdout().lock();
    let Some((program, rest)) = arguments.command.split_first() else {
        return scan_reader(&options, std::io::stdin().lock(), &mut out)
            .map(|()| Exit::Ok)
            .map_err(|error| {
                Failure::failed("The stream cannot be read")
                    .because(&error)
                    .fix("give it a stream that ends, such as a file or a pipe")
            });
    };
    match scan_command(&options, program, rest, &mut out) {
        Ok(0) => Ok(Exit::Ok),
        Ok(status) => Err(Failure::failed(format!("`{program}` ended with status {status}"))
            .fix("correct the command, and try it alone first")),
        Err(error) => Err(Failure::failed(format!("`{program}` cannot be run"))
            .because(&error)
            .fix("check that the program is installed and in PATH")),
    }
}

fn size(text: &str) -> Result<(u16, u16), Failure> {
    let parse = || {
        let (cols, rows) = text.split_once('x')?;
        let (cols, rows) = (cols.parse().ok()?, rows.parse().ok()?);
        ((1..=1000).contains(&cols) && (1..=1000).contains(&rows)).then_some((cols, rows))
    };
    parse().ok_or_else(|| {
        Failure::usage(format!("`{text}` is not the size of a terminal"))
            .fix("write it as COLSxROWS, such as 80x24, each from 1 to 1000")
    })
}
