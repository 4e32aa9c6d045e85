//! `frames`: prints the control frames of any program, as JSON lines.

use stafette_agents::frames::{FramesOptions, scan_command, scan_reader};

use crate::cli;
use crate::exit::{Exit, Failure};
use crate::output::JsonLines;

pub(crate) fn run(arguments: &cli::Frames) -> Result<Exit, Failure> {
    let word = arguments.word.parse().map_err(|error| {
        Failure::usage(format!("`{}` is not a valid frame word", arguments.word))
            .because(&error)
            .fix("use capital letters, such as --word ODEI")
    })?;
    let screen = arguments.screen.as_deref().map(size).transpose()?;
    let options = FramesOptions { word, screen };
    let mut out = JsonLines::default();
    let Some((program, rest)) = arguments.command.split_first() else {
        return scan_reader(&options, std::io::stdin().lock(), &mut out)
            .map(|()| Exit::Ok)
            .map_err(|error| {
                Failure::failed("Cannot read the stream")
                    .because(&error)
                    .fix("pipe the output of a program to it, or name a command after `--`")
            });
    };
    match scan_command(&options, program, rest, &mut out) {
        Ok(0) => Ok(Exit::Ok),
        Ok(status) => Err(Failure::failed(format!("`{program}` ended with status {status}"))
            .fix("run it alone to see what it reports; its frames until then are printed above")),
        Err(error) => Err(Failure::failed(format!("Cannot run `{program}`"))
            .because(&error)
            .fix("install it, or give its path")),
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
