//! The launcher as a separate program, for tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    stafette_sandbox::sandboxed(std::env::args_os().skip(1))
}
