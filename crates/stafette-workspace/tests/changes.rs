//! Changes as those see them who make, apply and undo them, and those who try to break them.

#[path = "changes/hostile.rs"]
mod hostile;
#[path = "changes/kills.rs"]
mod kills;
#[path = "changes/queue.rs"]
mod queue;
#[path = "changes/renewals.rs"]
mod renewals;
#[path = "changes/stories.rs"]
mod stories;
#[path = "changes/validation.rs"]
mod validation;
#[path = "changes/world.rs"]
mod world;
