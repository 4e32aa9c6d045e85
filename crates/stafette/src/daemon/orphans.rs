//! The main thread of a daemon: it takes over the processes that agents leave behind, and does
//! nothing else.

use stafette_agents::orphans;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::not_started;
use crate::exit::{Exit, Failure};

/// The stack of the thread that works instead of the main thread, in bytes.
const STACK: usize = 8 << 20;

/// Runs `work` in a thread of its own until it ends, and takes over orphans meanwhile. Those that
/// are left then are killed.
pub(crate) fn adopting<W>(runtime: &Runtime, work: W) -> Result<Exit, Failure>
where
    W: AsyncFnOnce() -> Result<Exit, Failure> + Send,
{
    let failed = |error: std::io::Error| not_started(&error);
    let mut ends = {
        let _entered = runtime.enter();
        signal(SignalKind::child()).map_err(failed)?
    };
    orphans::adopt().map_err(failed)?;
    std::thread::scope(|scope| {
        let (working, mut over) = oneshot::channel::<()>();
        let worker = std::thread::Builder::new().name("daemon".to_owned()).stack_size(STACK);
        let worker = worker.spawn_scoped(scope, || {
            let _working = working;
            runtime.block_on(work())
        });
        let worker = worker.map_err(failed)?;
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = ends.recv() => orphans::reap(),
                    _ = &mut over => break,
                }
            }
        });
        let exit = worker.join();
        orphans::end();
        exit.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
