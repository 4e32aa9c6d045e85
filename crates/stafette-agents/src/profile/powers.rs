//! What a profile lets a workflow do, for the person who has to trust it. As for the workflow
//! itself, every type is taken apart without `..`.

use std::collections::BTreeMap;

use stafette_core::power::Power;

use super::{
    Acp, Detect, Dialog, Env, Exec, Failures, Level, Levels, Mcp, Messages, Profile, Pty, Quota,
    Record, Sandbox, Sessions, Stream,
};

impl Profile {
    /// Lists everything in the profile that acts, reads or is read; `place` names the profile.
    pub fn powers(&self, place: &str) -> Vec<Power> {
        let Profile {
            name: _,
            title: _,
            // A hint for people.
            install: _,
            detect: Detect { program, version, proven: _ },
            exec,
            pty,
            acp,
            mcp,
            messages,
            permissions: Levels { ask, edits, all },
            env: Env { pass, set },
            // What `init` writes for it, which is shown before it is written.
            sandbox: Sandbox { state, proven: _ },
            // How its output is read.
            stream: Stream { totals: _, input_includes_cached: _, rules: _ },
            session,
            quota: Quota { says: _ },
            failure: Failures { fatal: _, told: _ },
            price: _,
            // Only `doctor --try` uses it, in a home of its own and never for a project's profile.
            trial: _,
        } = self;
        let mut found = vec![command(place, "detect", &[std::slice::from_ref(program), version])];
        if let Some(Exec { command: words, prompt_via: _, output: _, resume, env }) = exec {
            found.push(command(place, "exec", &[words]));
            found.push(command(place, "exec.resume", &[resume]));
            found.extend(variables(place, "exec.env", env));
        }
        if let Some(pty) = pty {
            found.extend(terminal(place, pty));
        }
        if let Some(Acp { command: words, install: _, own_files: _, reports: _, env }) = acp {
            found.push(command(place, "acp", &[words]));
            found.extend(variables(place, "acp.env", env));
        }
        if let Some(Mcp { arguments, env, file }) = mcp {
            found.push(command(place, "mcp.arguments", &[arguments]));
            found.extend(variables(place, "mcp.env", env));
            let file = file.iter();
            found.extend(file.map(|text| Power::instruction(format!("{place} mcp.file"), text)));
        }
        if let Some(Messages { arguments }) = messages {
            found.push(command(place, "messages", &[arguments]));
        }
        for (key, Level { arguments, env, denies: _, dialogs }) in
            [("ask", ask), ("edits", edits), ("all", all)]
        {
            found.extend(answered(place, &format!("permissions.{key}.dialogs"), dialogs));
            found.push(command(place, &format!("permissions.{key}"), &[arguments]));
            found.extend(variables(place, &format!("permissions.{key}.env"), env));
        }
        found.extend(pass.iter().map(|name| Power::secret(format!("{place} env.pass"), name)));
        found.extend(variables(place, "env.set", set));
        found.extend(state.iter().map(|path| Power::path(format!("{place} sandbox.state"), path)));
        if let Some(Record { files, input_includes_cached: _, rules: _ }) = session {
            let place = format!("{place} session.files");
            found.extend(files.iter().map(|path| Power::path(place.clone(), path)));
        }
        found.retain(|power| !power.text.is_empty());
        found
    }
}

fn terminal(place: &str, pty: &Pty) -> Vec<Power> {
    let Pty {
        command: words,
        begin,
        resume,
        sessions,
        env,
        ready: _,
        busy: _,
        asks: _,
        hopeless: _,
        asks_at_cursor: _,
        dialogs,
        answers: _,
        composer: _,
        brackets: _,
        size: _,
        ready_timeout: _,
        quiet: _,
        stall: _,
        restarts: _,
        interrupt: _,
    } = pty;
    let parts = [("pty", words), ("pty.begin", begin), ("pty.resume", resume)];
    let commands = parts.into_iter().map(|(key, words)| command(place, key, &[words]));
    let mut found: Vec<Power> = commands.chain(variables(place, "pty.env", env)).collect();
    found.extend(answered(place, "pty.dialogs", dialogs));
    if let Some(Sessions { folders, id: _, place: _ }) = sessions {
        let place = format!("{place} pty.sessions");
        found.extend(folders.iter().map(|path| Power::path(place.clone(), path)));
    }
    found
}

fn answered(place: &str, key: &str, dialogs: &[Dialog]) -> Vec<Power> {
    let power = |Dialog { shows, choose }: &Dialog| {
        let answer = choose.as_deref().unwrap_or("Enter");
        Power::instruction(format!("{place} {key}"), &format!("{}: {answer}", shows.join(", ")))
    };
    dialogs.iter().map(power).collect()
}

fn command(place: &str, key: &str, parts: &[&[String]]) -> Power {
    Power::command(format!("{place} {key}"), parts.concat())
}

fn variables(place: &str, key: &str, env: &BTreeMap<String, String>) -> Vec<Power> {
    let place = format!("{place} {key}");
    env.iter().map(|(name, value)| Power::variable(place.clone(), name, value)).collect()
}
