//! A nearly full disk, for one test.

use std::process::Command;

const SMALL: &str = "STAFETTE_TEST_SMALL_DISK";

/// True inside a test on such a disk.
#[must_use]
pub fn is_small() -> bool {
    std::env::var_os(SMALL).is_some()
}

/// Runs a test of this program again, with its temporary files on a disk of this size, which is
/// removed with the process. Where mounts are not allowed, it prints that and runs nothing.
///
/// # Panics
/// If the test fails, or does not exist.
pub fn run_on_a_small_one(megabytes: u32, test: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let script = r#"mount -t tmpfs -o "size=$1m" none "$2" && exec "$3" --exact "$4" --nocapture"#;
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(megabytes.to_string())
        .args([folder.path(), &std::env::current_exe().expect("this program")])
        .arg(test)
        .env(SMALL, "1")
        .env("TMPDIR", folder.path())
        .output();
    let Ok(output) = output else { return eprintln!("there is no unshare, so no small disk") };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("unshare:") || said.contains("mount:") {
        return eprintln!("no mount is allowed, so there is no small disk: {said}");
    }
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && told.contains("1 passed"), "{told}{said}");
}
