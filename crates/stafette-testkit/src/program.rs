//! Programs that a test writes itself.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program that can be run immediately. A child process writes it: a file that this
/// process has open for writing is inherited by whatever another test starts at that moment, and a
/// file that is open for writing cannot be run.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"cat > "$1" && chmod 755 "$1""#, "sh"]).arg(path);
    let mut shell = shell.stdin(Stdio::piped()).spawn()?;
    let written = shell.stdin.take().map_or(Ok(()), |mut input| input.write_all(text.as_bytes()));
    match shell.wait()? {
        status if status.success() => written,
        status => Err(io::Error::other(format!("{} was not written: {status}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_runs_however_many_others_are_started_meanwhile() {
        let folder = tempfile::tempdir().expect("a folder");
        let start = |path: &Path| Command::new(path).output().map(|output| output.status.success());
        std::thread::scope(|scope| {
            let others = scope.spawn(|| (0..200).all(|_| start(Path::new("true")).is_ok()));
            let path = folder.path().join("program");
            while !others.is_finished() {
                write(&path, "#!/bin/sh\n").expect("written");
                assert!(start(&path).expect("it runs"));
            }
        });
        assert!(write(&folder.path().join("no/folder"), "").is_err());
    }
}
