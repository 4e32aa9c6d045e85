//! Plays a script: `stafette-player play SCRIPT`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [play, script] if play == "play" => stafette_agents::scripted::play(Path::new(script)),
        _ => ExitCode::from(2),
    }
}
