//! The run is cancelled.

use super::{Draft, Status, close};
use crate::Reply;

pub(super) fn decide(draft: &mut Draft, by: &str, why: &str) -> Reply {
    let why = if why.is_empty() { format!("cancelled by {by}") } else { why.to_owned() };
    close::end(draft, Status::Cancelled, &why);
    Reply::Recorded
}
