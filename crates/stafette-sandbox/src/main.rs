//! The launcher as a program of its own, for tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    stafette_sandbox::sandboxed(std::env::args_os().skip(1))
}
