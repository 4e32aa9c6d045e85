//! The client at the other end.

/// The caller, as far as the server knows. An unknown one may do nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Caller {
    pub name: String,
    /// Token of the session that the caller belongs to.
    pub token: Option<String>,
    /// Process id, if the operating system reports it.
    pub pid: Option<i32>,
    /// The caller, which decides what it may do.
    pub who: stafette_engine::Caller,
}
