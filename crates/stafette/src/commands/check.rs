//! `check`: checks that the workflow is valid, and the protocol complete.

use std::path::Path;

use serde_json::json;
use stafette_agents::profile::{Library, UNSEEN_FIX, unseen};
use stafette_config::Diagnostic;
use stafette_core::schema;
use stafette_workflow::{check, gate};

use super::Context;
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::output::count;
use crate::project;

pub(crate) fn run(context: &Context, arguments: &cli::Check) -> Result<Exit, Failure> {
    let path = match &arguments.file {
        Some(path) => path.clone(),
        None => context.project()?.file(),
    };
    let text = project::read(&path)?;
    if path.extension().is_some_and(|ending| ending == "md") {
        return document(context, &path, &text, arguments.gate);
    }
    let name = path.display().to_string();
    let library = Library::of(path.parent());
    let (source, mut diagnostics) = check::examine_with(&text, &library.names());
    if let Some(source) = &source
        && let Some(unseen) = unseen(&source.workflow, false, |name| library.get(name))
    {
        let warning = Diagnostic::warning("unseen-cost", "/budget", unseen).help(UNSEEN_FIX);
        diagnostics.push(warning.at(source.spans.value("/budget")));
    }
    if let Some(source) = &source
        && source.workflow.workflow.worktrees
        && !is_in_repository(&path)
    {
        let what = "`worktrees = true` needs a git repository, and this folder is in none";
        let warning = Diagnostic::warning("no-repository", "/workflow/worktrees", what)
            .help("`git init` and a first commit, or `worktrees = false`");
        diagnostics.push(warning.at(source.spans.value("/workflow/worktrees")));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(source) = &source
        && let Some(what) =
            super::doctor::no_file(&source.workflow, &library, folder.unwrap_or(Path::new(".")))
    {
        let help = "install it, or name another one; `stafette doctor` looks at the rest";
        let warning = Diagnostic::warning("no-program", "/agents", what).help(help);
        diagnostics.push(warning.at(source.spans.value("/agents")));
    }
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    let items = match (&source, arguments.gate) {
        (Some(source), true) => gate::workflow(&source.workflow, &source.spans, provided()),
        _ => Vec::new(),
    };
    let good = errors == 0 && gate::passes(&items);
    if context.output.json {
        let listed: Vec<_> = diagnostics
            .iter()
            .map(|diagnostic| {
                let place = diagnostic.position(&text);
                json!({
                    "severity": diagnostic.severity, "code": diagnostic.code,
                    "path": diagnostic.path, "message": diagnostic.message,
                    "help": diagnostic.help,
                    "line": place.map(|place| place.line), "column": place.map(|place| place.column),
                })
            })
            .collect();
        context
            .output
            .data(&json!({ "file": name, "ok": good, "problems": listed, "gate": items }));
    } else {
        for diagnostic in &diagnostics {
            context.output.line(stafette_config::render(diagnostic, &name, &text));
        }
        for item in &items {
            context.output.line(item.render(&name, &text));
        }
        match good {
            true => context.output.say(format!("{name} is sound")),
            false => context.output.say(format!("{name}: {}", count(errors, "error"))),
        }
    }
    Ok(if good { Exit::Ok } else { Exit::Failed })
}

fn is_in_repository(file: &Path) -> bool {
    let whole = std::path::absolute(file);
    whole.is_ok_and(|whole| whole.parent().is_some_and(project::is_repository))
}

fn document(context: &Context, path: &Path, text: &str, gate_asked: bool) -> Result<Exit, Failure> {
    if !gate_asked {
        return Err(Failure::usage(format!("{} is not a workflow", path.display()))
            .fix("a protocol document is checked with --gate"));
    }
    let project = context.project().ok().and_then(|project| project.load().ok());
    let items = gate::document(text, project.as_ref().map(|loaded| &loaded.workflow));
    let good = gate::passes(&items);
    if context.output.json {
        context.output.data(&json!({ "file": path, "ok": good, "gate": items }));
    } else {
        for item in &items {
            context.output.line(item.render(&path.display().to_string(), text));
        }
    }
    Ok(if good { Exit::Ok } else { Exit::Failed })
}

/// The facilities that this program really gives to every workflow.
fn provided() -> gate::Provided<'static> {
    gate::Provided { schemas: &SCHEMAS, span_attributes: &ATTRIBUTES, metrics: &METRICS }
}

static ATTRIBUTES: std::sync::LazyLock<Vec<&'static str>> =
    std::sync::LazyLock::new(stafette_telemetry::trace::attributes);

static METRICS: std::sync::LazyLock<Vec<&'static str>> = std::sync::LazyLock::new(|| {
    // Leaked once, for as long as the program runs.
    stafette_telemetry::metrics::names().into_iter().map(|name| &*name.leak()).collect()
});

static SCHEMAS: std::sync::LazyLock<Vec<&'static str>> = std::sync::LazyLock::new(schema::names);
