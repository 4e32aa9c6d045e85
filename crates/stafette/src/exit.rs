//! The end of a command: exit codes, and errors with a fix.

use std::process::ExitCode;

/// The documented exit codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Exit {
    /// The command did what it was asked to.
    Ok = 0,
    /// The command failed for any other reason.
    Failed = 1,
    /// The command was called wrongly.
    Usage = 2,
    /// A person has to decide something first.
    NeedsPerson = 3,
    /// The budget is reached.
    Budget = 4,
    /// It was tried and rolled back.
    RolledBack = 5,
    /// Another holder has the lock, or it was lost.
    Lock = 6,
    /// No daemon answers for this project.
    NoDaemon = 7,
    /// A person pressed Ctrl-C.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// A failure that does not say yet what to do, which only [`Unfixed::fix`] makes a [`Failure`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) struct Unfixed(Failure);

impl Unfixed {
    /// Adds the error, with all its causes.
    pub(crate) fn because(self, error: &dyn std::error::Error) -> Self {
        Unfixed(self.0.because(error))
    }

    pub(crate) fn why(self, why: impl Into<String>) -> Self {
        Unfixed(self.0.why(why))
    }

    /// What the user can do about it: a command, or what to change.
    pub(crate) fn fix(self, fix: impl Into<String>) -> Failure {
        self.0.fix(fix)
    }
}

/// A failure: what happened, why, and what to do next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    pub(crate) what: String,
    pub(crate) why: String,
    pub(crate) fix: String,
    pub(crate) code: Exit,
}

impl Failure {
    #[expect(clippy::new_ret_no_self, reason = "it is no failure before it has a fix")]
    pub(crate) fn new(code: Exit, what: impl Into<String>) -> Unfixed {
        Unfixed(Failure { what: what.into(), why: String::new(), fix: String::new(), code })
    }

    pub(crate) fn failed(what: impl Into<String>) -> Unfixed {
        Self::new(Exit::Failed, what)
    }

    pub(crate) fn usage(what: impl Into<String>) -> Unfixed {
        Self::new(Exit::Usage, what)
    }

    /// The failure that another process of ours printed with `--json`.
    pub(crate) fn from_json(text: &str) -> Option<Self> {
        let value: serde_json::Value = serde_json::from_str(text).ok()?;
        let error = value.get("error")?;
        let part = |name: &str| Some(error.get(name)?.as_str()?.to_owned());
        let code = match error.get("exit")?.as_u64()? {
            2 => Exit::Usage,
            6 => Exit::Lock,
            7 => Exit::NoDaemon,
            _ => Exit::Failed,
        };
        Some(Failure { what: part("message")?, why: part("why")?, fix: part("fix")?, code })
    }

    /// Adds the error, with all its causes.
    pub(crate) fn because(self, error: &dyn std::error::Error) -> Self {
        let mut why = error.to_string();
        let mut next = error.source();
        while let Some(cause) = next {
            why = format!("{why}: {cause}");
            next = cause.source();
        }
        Failure { why, ..self }
    }

    pub(crate) fn why(self, why: impl Into<String>) -> Self {
        Failure { why: why.into(), ..self }
    }

    pub(crate) fn fix(self, fix: impl Into<String>) -> Self {
        Failure { fix: fix.into(), ..self }
    }
}
