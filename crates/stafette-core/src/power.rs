//! A power: one thing that a file of a project can do once it is trusted, in a form that can be shown
//! to the person who decides.

mod quote;

use std::fmt;
use std::path::{Component, Path};

use serde::Serialize;

use crate::command;

pub use quote::{command_line, plain, word};

/// The kinds of powers, in the order in which they are shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A program that is started.
    Command,
    /// A server that is connected to.
    Address,
    /// An environment variable that is read.
    Secret,
    /// A file or folder that is read or written.
    Path,
    /// A way in which the daemon can be reached.
    Listener,
    /// An event that starts runs.
    Trigger,
    /// What may be spent before a person is asked.
    Spending,
    Sandbox,
    /// A setting that loosens a rule.
    Rule,
    /// A text that agents follow.
    Instruction,
}

impl Kind {
    /// The heading of its group.
    pub fn heading(self) -> &'static str {
        match self {
            Kind::Command => "commands",
            Kind::Address => "addresses",
            Kind::Secret => "environment variables",
            Kind::Path => "files and folders",
            Kind::Listener => "listeners",
            Kind::Trigger => "triggers",
            Kind::Spending => "spending",
            Kind::Sandbox => "sandbox",
            Kind::Rule => "rules",
            Kind::Instruction => "instructions for agents",
        }
    }
}

/// A reason to look twice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Danger {
    /// The path leads out of the project.
    Outside,
    /// The path leads into git's own folder, whose hooks run by themselves.
    Git,
    /// The listener can be reached from other machines.
    Reachable,
    /// Web pages under this name can talk to the daemon.
    Name,
    Sent(String),
    /// The value of the variable is an address that is connected to.
    Connects,
    NotEncrypted,
    /// Text that an agent merely prints moves work.
    Printed,
    /// Nothing limits what all of its runs spend together.
    Endless,
    /// The shell computes the name of a file that the command runs: its content is not checked.
    Computed,
    /// It works where agents work, and may run files that it does not name.
    RunsMore,
    /// The file is a pipe or a device, whose content is not checked.
    Irregular,
    /// A script that it runs has others run, which are not checked.
    Further,
}

impl fmt::Display for Danger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Danger::Outside => f.write_str("outside the project"),
            Danger::Git => f.write_str("in git's own folder"),
            Danger::Reachable => f.write_str("reachable from other machines"),
            Danger::Name => f.write_str("web pages under this name can talk to the daemon"),
            Danger::Sent(to) => write!(f, "its value is sent to {to}"),
            Danger::Connects => f.write_str("its value is connected to"),
            Danger::NotEncrypted => f.write_str("not encrypted"),
            Danger::Computed => f.write_str("the file that it runs cannot be told, or checked"),
            Danger::RunsMore => f.write_str("what else it runs, where agents work, is not checked"),
            Danger::Irregular => f.write_str("a file of it is a pipe or a device, and not checked"),
            Danger::Further => f.write_str("what its script runs further is not checked"),
            Danger::Endless => f.write_str("no limit on what all of these runs spend together"),
            Danger::Printed => f.write_str("text that an agent merely prints moves work"),
        }
    }
}

impl Serialize for Danger {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One thing that a workflow can do once it is trusted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Power {
    pub kind: Kind,
    /// The place in the file, such as `agents.writer.command`.
    pub place: String,
    /// The power itself, complete, with everything invisible made visible.
    pub text: String,
    /// The reasons to look twice.
    pub dangers: Vec<Danger>,
    /// The program and its arguments, for a command.
    #[serde(skip)]
    pub command: Vec<String>,
    /// The path as it is written, for a file or folder.
    #[serde(skip)]
    pub path: Option<String>,
}

impl Power {
    /// A power of any kind.
    #[must_use]
    pub fn new(kind: Kind, place: impl Into<String>, text: String) -> Self {
        let (dangers, command) = (Vec::new(), Vec::new());
        Power { kind, place: place.into(), text, dangers, command, path: None }
    }

    /// A program with its arguments.
    #[must_use]
    pub fn command(place: impl Into<String>, words: Vec<String>) -> Self {
        let is_computed = command::mentions(&words).runs_computed;
        let dangers = if is_computed { vec![Danger::Computed] } else { Vec::new() };
        let power = Power::new(Kind::Command, place, command_line(&words));
        Power { command: words, dangers, ..power }
    }

    /// A server.
    #[must_use]
    pub fn address(place: impl Into<String>, url: &str) -> Self {
        let dangers = if is_open_text(url) { vec![Danger::NotEncrypted] } else { Vec::new() };
        Power { dangers, ..Power::new(Kind::Address, place, plain(url)) }
    }

    /// An environment variable.
    #[must_use]
    pub fn secret(place: impl Into<String>, name: &str) -> Self {
        Power::new(Kind::Secret, place, format!("${}", plain(name)))
    }

    /// An environment variable that is set for a program.
    #[must_use]
    pub fn variable(place: impl Into<String>, name: &str, value: &str) -> Self {
        Power::new(Kind::Secret, place, format!("{}={}", plain(name), word(value)))
    }

    /// An environment variable whose value goes to a server.
    #[must_use]
    pub fn sent(place: impl Into<String>, name: &str, url: &str) -> Self {
        Power { dangers: vec![Danger::Sent(plain(url))], ..Power::secret(place, name) }
    }

    /// A file or folder, relative to the project.
    #[must_use]
    pub fn path(place: impl Into<String>, path: &str) -> Self {
        let dangers = dangers_of(path);
        let power = Power::new(Kind::Path, place, plain(path));
        Power { dangers, path: Some(path.to_owned()), ..power }
    }

    /// A text that agents follow.
    #[must_use]
    pub fn instruction(place: impl Into<String>, text: &str) -> Self {
        Power::new(Kind::Instruction, place, word(text))
    }
}

/// True if what is sent there can be read on its way.
fn is_open_text(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let open = ["http", "bolt", "neo4j"].iter().any(|name| scheme.eq_ignore_ascii_case(name));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    open && !is_loopback(host)
}

/// True if a host, perhaps with a port, is this machine. What cannot be told is not.
pub fn is_loopback(host: &str) -> bool {
    let name = match (host.strip_prefix('['), host.split_once(':')) {
        (Some(rest), _) => rest.split(']').next().unwrap_or_default(),
        (None, Some((name, port))) if !port.contains(':') => name,
        _ => host,
    };
    let number = |part: &str| part.parse::<u8>().is_ok();
    let is_v4 = name.split('.').count() == 4 && name.split('.').all(number);
    name.eq_ignore_ascii_case("localhost") || name == "::1" || (is_v4 && name.starts_with("127."))
}

/// The dangers of a path, as it is written.
fn dangers_of(path: &str) -> Vec<Danger> {
    // Some paths begin with the user's own folder, or with a variable.
    let (mut depth, mut outside, mut git) = (0_usize, path.starts_with(['~', '$']), false);
    for part in Path::new(path).components() {
        match part {
            Component::Prefix(_) | Component::RootDir => outside = true,
            Component::CurDir => {}
            Component::ParentDir if depth == 0 => outside = true,
            Component::ParentDir => depth -= 1,
            Component::Normal(name) => {
                depth += 1;
                git |= name.eq_ignore_ascii_case(".git");
            }
        }
    }
    let outside = outside.then_some(Danger::Outside);
    outside.into_iter().chain(git.then_some(Danger::Git)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_20_a_path_is_outside_however_it_is_written() {
        for path in ["/x", "../x", "a/../../x", "./.."] {
            assert_eq!(dangers_of(path), [Danger::Outside], "{path}");
        }
        for path in ["x", "./x/y", "a/../x", "..x"] {
            assert_eq!(dangers_of(path), [], "{path}");
        }
        assert_eq!(dangers_of("sub/.GIT/hooks"), [Danger::Git]);
    }

    #[test]
    fn b_20_only_this_machine_is_this_machine() {
        for host in ["127.0.0.1", "127.0.0.1:80", "localhost:1", "[::1]:80", "::1", "127.1.2.3"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in
            ["0.0.0.0:80", "[::]:80", "127.evil.example", "10.0.0.1", "localhost.evil.example", ""]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
