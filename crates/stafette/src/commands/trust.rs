//! `trust`: shows everything that a workflow can do, and allows it.

use serde_json::json;
use stafette_core::clean::Clean;
use stafette_core::power::word;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::Context;
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::output::{Output, Tone};
use crate::trust::{self, Difference, Inspected, Named, Shown};

/// The widest column of places; a wider place has a line of its own.
const WIDEST: usize = 40;

pub(crate) fn run(context: &Context, arguments: &cli::Trust) -> Result<Exit, Failure> {
    let project = context.project()?;
    let loaded = project.load()?;
    let inspected = trust::inspect(&project, &loaded.workflow, &loaded.scripts)?;
    let known = trust::is_trusted(&project, &loaded);
    let difference = trust::difference(&project, &inspected).filter(|_| !known);
    let output = context.output;
    if !output.json {
        show(output, &inspected);
        difference.iter().for_each(|difference| show_difference(output, difference));
    }
    let granted = if arguments.list || known {
        known
    } else {
        let marked = match trust::dangers(&inspected) {
            0 => String::new(),
            marked => format!(" ({marked} marked with !)"),
        };
        let question = format!("Allow all of this{marked} in {}?", project.root.display());
        context.confirm(&question)? && trust::trust(&project, &loaded, &inspected).map(|()| true)?
    };
    if output.json {
        output.data(&json!({
            "trusted": granted, "hash": loaded.hash, "powers": inspected.powers,
            "changed": difference,
        }));
    } else {
        output.say(if granted { "trusted, until something of it changes" } else { "not trusted" });
    }
    Ok(if granted || arguments.list { Exit::Ok } else { Exit::Failed })
}

fn show(output: Output, inspected: &Inspected) {
    for kind in trust::kinds(inspected) {
        output.line(kind.heading().to_uppercase());
        let group = || inspected.powers.iter().filter(|shown| shown.power.kind == kind);
        let width = group().map(|shown| on_one_line(&shown.power.place).width()).max().unwrap_or(0);
        group().for_each(|shown| show_power(output, shown, width.min(WIDEST)));
    }
}

fn show_power(output: Output, shown: &Shown, width: usize) {
    let Shown { power, files } = shown;
    let indent = width + 4;
    let columns = columns().saturating_sub(indent).max(20);
    let place = format!("  {:<width$}", on_one_line(&power.place));
    let mut lines = wrapped(&on_one_line(&power.text), columns);
    // A place that is too wide has a line of its own.
    match place.width() > width + 2 {
        true => output.line(place),
        false => output.line(format!("{place}  {}", lines.remove(0))),
    }
    for Named { path, sha256 } in files {
        let hash = sha256.as_ref().map(|hash| format!("sha256 {}", &hash[..16]));
        let hash = hash.unwrap_or_else(|| "not a regular file, not checked".to_owned());
        lines.extend(wrapped(&format!("file {}  {hash}", word(path)), columns));
    }
    lines.iter().for_each(|line| output.line(format!("{:indent$}{line}", "")));
    for danger in &power.dangers {
        let text = output.paint(Tone::Yours, on_one_line(&format!("! {danger}")));
        output.line(Clean::from(" ".repeat(indent)) + text);
    }
}

fn show_difference(output: Output, difference: &Difference) {
    output.line("CHANGED SINCE YOU TRUSTED IT");
    let Difference { added, removed, files } = difference;
    let lines = |mark: &'static str, lines: &[String], tone: Tone| {
        for line in lines {
            let text = output.paint(tone, on_one_line(&format!("{mark} {line}")));
            output.line(Clean::from("  ") + text);
        }
    };
    lines("-", removed, Tone::Bad);
    lines("+", added, Tone::Good);
    lines("~ file", files, Tone::Yours);
    if added.is_empty() && removed.is_empty() && files.is_empty() {
        output.line(
            "  only what this list does not show, such as a comment, a description or a name",
        );
    }
}

fn on_one_line(text: &str) -> String {
    Clean::from(text).on_one_line().into()
}

/// The columns of the terminal; without one, lines have no end.
fn columns() -> usize {
    rustix::termios::tcgetwinsize(rustix::stdio::stdout())
        .map_or(usize::MAX, |size| usize::from(size.ws_col))
}

/// Cuts a text into lines of at most `columns`; every character stays.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide > columns {
            lines.push(String::new());
            used = 0;
        }
        lines.last_mut().into_iter().for_each(|line| line.push(c));
        used += wide;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_20_a_long_command_is_wrapped_and_never_cut() {
        let text = "x".repeat(95) + "END";
        let cut = wrapped(&text, 40);
        assert_eq!(cut.iter().map(String::len).collect::<Vec<_>>(), [40, 40, 18]);
        assert_eq!(cut.concat(), text);
    }
}
