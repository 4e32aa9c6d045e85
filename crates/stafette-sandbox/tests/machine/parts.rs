//! What this machine offers, so that a test can insist on it.

use std::process::{Command, Stdio};
use std::sync::LazyLock;

use stafette_sandbox::{Offer, Report};

static OFFER: LazyLock<Offer> = LazyLock::new(Offer::look);

/// Whether a process may have mounts and processes of its own.
static NAMESPACES: LazyLock<bool> = LazyLock::new(|| {
    let works = |how: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(how).args(["--mount", "--pid", "--fork", "--mount-proc", "true"]);
        unshare.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    works(&[]) || works(&["--user", "--map-root-user"])
});

/// Whether a part of a sandbox took effect. It has to where this machine offers it.
pub(crate) fn holds(report: &Report, name: &str) -> bool {
    let parts = report.parts();
    let (_, part) = parts.iter().find(|(part, _)| *part == name).expect("a part");
    let is_offered = match name {
        "files" => OFFER.files,
        "mounts" => *NAMESPACES,
        "network" => OFFER.network,
        "scope" => OFFER.scope,
        _ => OFFER.calls,
    };
    assert!(part.is_whole() || !is_offered, "this machine offers {name}:\n{report}");
    if !part.is_whole() {
        eprintln!("not tested, since this machine lacks it: {name}: {part}");
    }
    part.is_whole()
}

/// Whether all parts took effect, as [`holds`] says.
pub(crate) fn all_hold(report: &Report) -> bool {
    report.parts().iter().filter(|(name, _)| !holds(report, name)).count() == 0
}
