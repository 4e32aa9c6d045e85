//! One life of the engine: when callers are let in, when work begins, and what ends first.

use crate::Engine;

impl Engine {
    /// Opens the door for callers, works until `until` returns, and stops. The door is open before
    /// the first agent starts, because an agent may report at once; it is closed before the agents
    /// are ended, so that nothing is begun meanwhile. Runs of before stay stopped while `held`.
    ///
    /// # Errors
    /// When the door does not open. Then nothing was started.
    pub async fn serve<Door, End, Failure>(
        &self,
        held: bool,
        open: impl AsyncFnOnce() -> Result<Door, Failure>,
        until: impl AsyncFnOnce(&Door) -> End,
        close: impl AsyncFnOnce(Door, &End),
    ) -> Result<End, Failure> {
        let door = open().await;
        if door.is_ok() && !held {
            self.release();
        }
        let end = match door {
            Ok(door) => {
                let end = until(&door).await;
                close(door, &end).await;
                Ok(end)
            }
            Err(failure) => Err(failure),
        };
        self.shared().own.stop().await;
        self.stop().await;
        end
    }
}
