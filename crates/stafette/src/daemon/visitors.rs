//! The visitors of a daemon that was started only to look: when none comes any more, it ends.

use std::fs;
use std::future::pending;
use std::path::Path;
use std::time::{Duration, Instant};

use stafette_engine::Engine;

/// The time without visitors after which it ends.
const UNUSED: Duration = Duration::from_secs(60);

/// The variable that shortens it, in milliseconds.
const VARIABLE: &str = "STAFETTE_UNUSED_MS";

/// The looks within that time.
const LOOKS: u32 = 20;

/// Returns once nobody has been connected to the socket for a while. Never returns when somebody
/// has let the runs continue by then, or where the system does not show who is connected.
pub(super) async fn none_left(engine: &Engine, socket: &Path) {
    let wanted = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
    let unused = wanted.map_or(UNUSED, Duration::from_millis);
    let mut since = Instant::now();
    while engine.stopped().is_held() {
        match is_visited(socket) {
            Some(false) if since.elapsed() >= unused => return,
            Some(false) => {}
            Some(true) => since = Instant::now(),
            None => break,
        }
        tokio::time::sleep(unused / LOOKS).await;
    }
    pending().await
}

/// True if somebody is connected to the socket; `None` where that cannot be seen.
fn is_visited(socket: &Path) -> Option<bool> {
    let table = fs::read_to_string("/proc/net/unix").ok()?;
    let place = format!(" {}", socket.to_str()?);
    // Num RefCount Protocol Flags Type St Inode Path; 03 is a connection.
    let connected =
        |line: &str| line.split_whitespace().nth(5) == Some("03") && line.ends_with(&place);
    Some(table.lines().any(connected))
}
