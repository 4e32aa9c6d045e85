//! The engine with real processes and a store that has bad days.

#[path = "suite/flaky.rs"]
mod flaky;
#[path = "suite/garbage.rs"]
mod garbage;
#[path = "suite/locks.rs"]
mod locks;
#[path = "suite/moment.rs"]
mod moment;
#[path = "suite/once.rs"]
mod once;
#[path = "suite/orders.rs"]
mod orders;
#[path = "suite/outside.rs"]
mod outside;
#[path = "suite/runs.rs"]
mod runs;
#[path = "suite/secrets.rs"]
mod secrets;
#[path = "suite/sessions.rs"]
mod sessions;
