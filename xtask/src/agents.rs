//! The first contact with real agents: Stafette as it is built here, each agent in a home of its own.

use std::path::Path;

use crate::shell;

/// Builds Stafette and tries the agents with it; returns true if all of them do their work.
pub(crate) fn run(root: &Path, words: &[&str]) -> bool {
    let tried = shell::run(shell::cargo(root).args(["build", "-p", "stafette"])).and_then(|()| {
        let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        let program = root.join(target).join("debug/stafette");
        let mut matrix = shell::cargo(root);
        matrix.args(["run", "-q", "-p", "stafette-testkit", "--example", "matrix", "--"]);
        shell::run(matrix.arg(program).args(words))
    });
    if let Err(error) = &tried {
        eprintln!("{error}");
    }
    tried.is_ok()
}
