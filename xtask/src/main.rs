//! Tasks of the workspace. `cargo xtask` lists them.

mod agents;
mod deny;
mod machine;
mod packages;
mod shell;
mod suite;
mod test;
mod tidy;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Chores of the workspace:

  cargo xtask test          everything that must hold before a change lands
  cargo xtask test --fast   the same without the docs, the licences and the packages
  cargo xtask tidy          only the rules about the source itself
  cargo xtask agents        the first contact with every real agent, as a table
                            [--only claude,codex] [--runner exec,pty,acp] [--limit SECONDS]
                            [--keep FOLDER]
  cargo xtask dist          packages in target/packages: an archive, .deb, npm, wheel, install script,
                            Homebrew formula, container file, bill of materials
                            [--target TRIPLE] [--binary PROGRAM] [--out FOLDER] [--try]
  cargo xtask dist --join FOLDER   a release of the archives in a folder
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let good = match words.as_slice() {
        ["test"] => test::run(&root(), test::Extent::Full),
        ["test", "--fast"] => test::run(&root(), test::Extent::Fast),
        ["tidy"] => tidy::run(&root()),
        ["dist", rest @ ..] => packages::run(&root(), rest),
        ["agents", rest @ ..] => agents::run(&root(), rest),
        [] | ["help" | "--help" | "-h"] => {
            eprint!("{HELP}");
            true
        }
        _ => {
            eprint!("`cargo xtask {}` is not a chore.\n\n{HELP}", words.join(" "));
            return ExitCode::from(2);
        }
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns the workspace that this program was built from.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
