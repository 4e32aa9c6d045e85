//! The integrations of a workflow: hooks, triggers and notifications.

use std::collections::BTreeSet;

use super::Report;
use stafette_config::Diagnostic;
use stafette_core::workflow::hooks::{BEFORE, MAX_HOOKS, PROTOCOL};
use stafette_core::workflow::notify::{Notify, minutes_of};
use stafette_core::workflow::triggers::{Cron, MAX_TRIGGERS, Template, Trigger};
use stafette_core::{Event, Millis};
use stafette_text::nearest;

/// The longest timeout of a hook: the work waits for it.
const LONGEST: Millis = Millis::minutes(10);

pub(super) fn check(report: &mut Report<'_>) {
    hooks(report);
    triggers(report);
    own(report);
    if let Some(notify) = &report.workflow.notify {
        notification(report, notify);
    }
}

/// Checks that the team's own program can be built and tested, and is part of the project.
fn own(report: &mut Report<'_>) {
    let Some(own) = &report.workflow.own else { return };
    for (name, command) in [("build", &own.build), ("prove", &own.prove)] {
        if command.first().is_none_or(|program| program.trim().is_empty()) {
            let message = format!("`{name}` has no command");
            report.add(Diagnostic::error("no-command", &format!("/self/{name}"), message));
        }
    }
    let inside = |part: &str| !matches!(part, "" | "." | "..");
    if !own.program.split('/').all(inside) {
        let message = format!("`{}` is not a file in the project", own.program);
        report.add(
            Diagnostic::error("not-a-program", "/self/program", message)
                .help("say what the build makes, such as \"target/release/NAME\""),
        );
    }
}

fn hooks(report: &mut Report<'_>) {
    let workflow = report.workflow;
    if workflow.hooks.len() > MAX_HOOKS {
        let message = format!("{} hooks are more than {MAX_HOOKS}", workflow.hooks.len());
        report.add(Diagnostic::error("too-many-hooks", "/hooks", message));
    }
    for (index, hook) in workflow.hooks.iter().enumerate() {
        let at = format!("/hooks/{index}");
        let protocol = PROTOCOL.iter().map(|(name, _)| *name);
        let mut known =
            BEFORE.into_iter().chain(["question"]).chain(protocol).chain(Event::names());
        if !known.clone().any(|name| name == hook.on) {
            let message = format!("nothing is called `{}`", hook.on);
            let help = match nearest(&hook.on, known.by_ref()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "it is `before_run`, `before_turn`, `question` or an event".to_owned(),
            };
            let diagnostic = Diagnostic::error("unknown-event", &format!("{at}/on"), message);
            report.add(diagnostic.help(help));
        }
        if hook.command.first().is_none_or(|program| program.trim().is_empty()) {
            let message = "the hook has no command";
            report.add(Diagnostic::error("no-command", &format!("{at}/command"), message));
        }
        let most = match hook.on.as_str() {
            "before_turn" => workflow.limits.accept_timeout,
            _ => LONGEST,
        };
        if hook.timeout == Millis(0) || hook.timeout >= most {
            let message = format!("a hook here takes less than {most}, not {}", hook.timeout);
            report
                .add_or(Diagnostic::error("hook-timeout", &format!("{at}/timeout"), message), &at);
        }
        for (n, agent) in hook.agents.iter().enumerate() {
            report.knows(agent.as_str(), &format!("{at}/agents/{n}"));
        }
        if hook.on == "before_run" && !hook.agents.is_empty() {
            let message = "before a run there is no agent yet, so that this hook is never asked";
            report.add(Diagnostic::error("no-agent-yet", &format!("{at}/agents"), message));
        }
    }
}

fn triggers(report: &mut Report<'_>) {
    let workflow = report.workflow;
    if workflow.triggers.len() > MAX_TRIGGERS {
        let message = format!("{} triggers are more than {MAX_TRIGGERS}", workflow.triggers.len());
        report.add(Diagnostic::error("too-many-triggers", "/triggers", message));
    }
    let mut names = BTreeSet::new();
    for (index, trigger) in workflow.triggers.iter().enumerate() {
        let at = format!("/triggers/{index}");
        if !trigger.is_named_well() {
            let message = format!("`{}` cannot be part of an address", trigger.name);
            let diagnostic = Diagnostic::error("bad-name", &format!("{at}/name"), message);
            report.add(diagnostic.help("use letters, digits, `-` and `_`, 64 at most"));
        }
        if !names.insert(trigger.name.as_str()) {
            let message = format!("`{}` is listed twice", trigger.name);
            report.add(Diagnostic::error("listed-twice", &format!("{at}/name"), message));
        }
        if trigger.cron.is_none() && !trigger.webhook {
            let message = format!("nothing pulls `{}`", trigger.name);
            let diagnostic = Diagnostic::error("no-trigger", &at, message);
            report.add(diagnostic.help("say when: cron = \"@daily\", or webhook = true"));
        }
        if trigger.webhook && trigger.secret_env.as_deref().is_none_or(str::is_empty) {
            let message = "anyone could begin runs: a webhook takes a secret";
            let diagnostic = Diagnostic::error("no-secret", &at, message);
            report.add(diagnostic.help("name a variable with it: secret_env = \"HOOK_SECRET\""));
        }
        if let Some(Err(wrong)) = trigger.cron.as_deref().map(Cron::parse) {
            report.add(Diagnostic::error("bad-cron", &format!("{at}/cron"), wrong.to_string()));
        }
        timezone(report, trigger.timezone.as_deref(), &format!("{at}/timezone"));
        request(report, trigger, &format!("{at}/request"));
    }
}

fn request(report: &mut Report<'_>, trigger: &Trigger, path: &str) {
    match Template::parse(&trigger.request) {
        Err(wrong) => report.add(Diagnostic::error("bad-request", path, wrong.to_string())),
        Ok(template) if template.wants_payload() && trigger.cron.is_some() => {
            let message = "the clock brings no payload, so that this could never be filled in";
            report.add(Diagnostic::error("bad-request", path, message));
        }
        Ok(_) if trigger.request.trim().is_empty() => {
            report.add(Diagnostic::error("empty", path, "the request is empty"));
        }
        Ok(_) => {}
    }
}

pub(super) fn timezone(report: &mut Report<'_>, name: Option<&str>, path: &str) {
    if let Some(name) = name.filter(|name| jiff::tz::TimeZone::get(name).is_err()) {
        let message = format!("there is no time zone `{name}`");
        let diagnostic = Diagnostic::error("bad-timezone", path, message);
        report.add(diagnostic.help("name a place, such as \"Europe/Vienna\", or \"UTC\""));
    }
}

fn notification(report: &mut Report<'_>, notify: &Notify) {
    if !notify.is_heard() {
        let message = "nobody would hear of anything";
        let diagnostic = Diagnostic::warning("not-heard", "/notify", message);
        report.add(
            diagnostic.help("name a channel: desktop = true, [notify.ntfy] or [notify.webhook]"),
        );
    }
    if notify.per_hour == 0 {
        let message = "not one message may be sent";
        report.add(Diagnostic::error("zero-limit", "/notify/per_hour", message));
    }
    let ntfy = notify.ntfy.as_ref().map(|ntfy| (&ntfy.url, "/notify/ntfy/url"));
    let webhook = notify.webhook.as_ref().map(|webhook| (&webhook.url, "/notify/webhook/url"));
    let link = notify.link.as_ref().map(|link| (link, "/notify/link"));
    for (url, path) in [ntfy, webhook, link].into_iter().flatten() {
        if !(url.starts_with("https://") || url.starts_with("http://")) {
            let message = format!("`{url}` is not an address: it begins with https:// or http://");
            report.add(Diagnostic::error("bad-url", path, message));
        } else if url.split('/').nth(2).is_some_and(|authority| authority.contains('@')) {
            let message = "this address holds a password, which does not belong in this file";
            report.add(Diagnostic::error("secret-in-file", path, message));
        }
    }
    if let Some(ntfy) = &notify.ntfy {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if ntfy.topic.is_empty() || ntfy.topic.len() > 64 || !ntfy.topic.chars().all(plain) {
            let message = format!("`{}` cannot be a topic", ntfy.topic);
            report.add(Diagnostic::error("bad-topic", "/notify/ntfy/topic", message));
        }
    }
    if let Some(quiet) = &notify.quiet {
        for (text, path) in [(&quiet.from, "/notify/quiet/from"), (&quiet.to, "/notify/quiet/to")] {
            if minutes_of(text).is_none() {
                let message = format!("`{text}` is not a time of the day, such as 22:00");
                report.add(Diagnostic::error("bad-time", path, message));
            }
        }
        timezone(report, quiet.timezone.as_deref(), "/notify/quiet/timezone");
    }
}
