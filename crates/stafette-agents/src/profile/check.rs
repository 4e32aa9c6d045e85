//! Checks that a profile is valid.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use stafette_config::{Diagnostic, Spans};

use super::{Output, Profile};

/// All mistakes in a profile.
pub(super) fn check(profile: &Profile, spans: &Spans) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut add = |path: &str, message: String| {
        found.push(Diagnostic::error("profile", path, message).at(spans.value(path)));
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if profile.name.is_empty() || !profile.name.chars().all(plain) {
        add("/name", "a name has letters, digits, `-` and `_`".into());
    }
    if profile.detect.program.trim().is_empty() {
        add("/detect/program", "the program has no name".into());
    }
    let modes = [
        ("/exec", profile.exec.as_ref().map(|mode| (&mode.command, &mode.resume))),
        ("/pty", profile.pty.as_ref().map(|mode| (&mode.command, &mode.resume))),
    ];
    for (path, mode) in modes {
        let Some((command, resume)) = mode else { continue };
        started(command, &format!("{path}/command"), &mut add);
        let place = command.iter().skip(1).filter(|word| *word == "{resume}").count();
        let session = resume.iter().any(|word| word.contains("{session}"));
        match (resume.is_empty(), place, session) {
            (true, 0, _) | (false, 1, true) => {}
            (true, ..) => add(&format!("{path}/command"), "`{resume}` stands for nothing".into()),
            (false, _, false) => {
                add(&format!("{path}/resume"), "it does not say which `{session}`".into());
            }
            (false, ..) => {
                add(&format!("{path}/command"), "it needs one place for `{resume}`".into());
            }
        }
    }
    if let Some(pty) = &profile.pty
        && !pty.begin.is_empty()
        && (pty.resume.is_empty() || !pty.begin.iter().any(|word| word.contains("{session}")))
    {
        add("/pty/begin", "it names the `{session}` that `resume` goes on with".into());
    }
    if let Some((columns, rows)) = profile.pty.as_ref().and_then(|pty| pty.size)
        && !crate::terminal::is_size(columns, rows)
    {
        add("/pty/size", format!("no terminal has {columns} columns and {rows} rows"));
    }
    if let Some(acp) = &profile.acp {
        started(&acp.command, "/acp/command", &mut add);
    }
    if profile.exec.is_none() && profile.pty.is_none() && profile.acp.is_none() {
        add("", "it cannot be started: give it [exec], [pty] or [acp]".into());
    }
    if let Some(mcp) = &profile.mcp {
        let asked =
            mcp.arguments.iter().chain(mcp.env.values()).any(|t| t.contains("{config_file}"));
        if asked != mcp.file.is_some() {
            add("/mcp", "`file` and `{config_file}` belong together".into());
        }
    }
    for (index, name) in profile.env.pass.iter().enumerate() {
        if !is_variable(name) {
            add(&format!("/env/pass/{index}"), format!("`{name}` cannot name a variable"));
        }
    }
    for path in profile.trial.files.keys() {
        let inside = |part: Component| matches!(part, Component::Normal(_));
        if !Path::new(path).components().all(inside) {
            add(&format!("/trial/files/{path}"), "it is not a path in the home".into());
        }
    }
    let sets: [(&str, Option<&BTreeMap<String, String>>); 6] = [
        ("/env/set", Some(&profile.env.set)),
        ("/trial/env", Some(&profile.trial.env)),
        ("/exec/env", profile.exec.as_ref().map(|mode| &mode.env)),
        ("/pty/env", profile.pty.as_ref().map(|mode| &mode.env)),
        ("/acp/env", profile.acp.as_ref().map(|mode| &mode.env)),
        ("/mcp/env", profile.mcp.as_ref().map(|mode| &mode.env)),
    ];
    for (path, name) in
        sets.into_iter().flat_map(|(p, set)| set.into_iter().flatten().map(move |s| (p, s.0)))
    {
        if !is_variable(name) {
            add(&format!("{path}/{name}"), format!("`{name}` cannot name a variable"));
        }
    }
    let json = profile.exec.as_ref().is_some_and(|exec| exec.output != Output::Text);
    if json && profile.stream.rules.is_empty() {
        add("/exec/output", "nothing says how to read its JSON: give it [[stream.rules]]".into());
    }
    for (index, rule) in profile.stream.rules.iter().enumerate() {
        for mistake in rule.mistakes() {
            add(&format!("/stream/rules/{index}"), mistake);
        }
    }
    for (index, rule) in profile.session.iter().flat_map(|record| &record.rules).enumerate() {
        for mistake in rule.mistakes() {
            add(&format!("/session/rules/{index}"), mistake);
        }
    }
    for (index, file) in profile.session.iter().flat_map(|record| &record.files).enumerate() {
        if !file.contains("{session}") && !file.contains("{session:8}") {
            add(&format!("/session/files/{index}"), "it does not say which `{session}`".into());
        }
    }
    for (path, words) in
        [("/quota/says", &profile.quota.says), ("/failure/fatal", &profile.failure.fatal)]
    {
        for (index, word) in words.iter().enumerate() {
            if word.replace('*', "").trim().len() < 3 {
                let message = format!("`{word}` would be found in anything");
                add(&format!("{path}/{index}"), message);
            }
        }
    }
    for (model, rate) in &profile.price.models {
        let sane = |dollars: f64| dollars.is_finite() && (0.0..1e6).contains(&dollars);
        if ![rate.input, rate.output, rate.cached].into_iter().all(sane) {
            add(&format!("/price/models/{model}"), "this is not a price".into());
        }
    }
    found
}

fn started(command: &[String], path: &str, add: &mut impl FnMut(&str, String)) {
    let program = command.first().map(|program| program.trim()).unwrap_or_default();
    if program.is_empty() || program.contains('{') {
        add(path, "it begins with a program".into());
    }
}

fn is_variable(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit())
}
