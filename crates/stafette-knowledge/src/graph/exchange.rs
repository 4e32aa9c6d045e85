//! Records on their way from one graph to another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Party, Time};

use super::{Batch, GraphError, Link, Node, Provenance, Record, Write};

/// The version of the export format.
pub const FORMAT: u32 = 1;

/// The number of records that were exchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Exchanged {
    /// The number of nodes.
    pub nodes: u64,
    /// The number of links.
    pub links: u64,
}

impl Exchanged {
    /// Counts the nodes and links among these records.
    #[must_use]
    pub fn of(records: &[Record]) -> Self {
        let nodes = records.iter().filter(|record| matches!(record, Record::Node(_))).count();
        Exchanged { nodes: nodes as u64, links: (records.len() - nodes) as u64 }
    }
}

/// Checks that records are valid on their own, regardless of what the graph holds.
///
/// # Errors
/// Names the problem of the first invalid record.
pub fn check(records: &[Record]) -> Result<(), GraphError> {
    let write = |record: &Record| match record.clone() {
        Record::Node(Node { entity, .. }) => Write::Put(entity),
        Record::Link(Link { from, relation, to, .. }) => Write::Link { from, relation, to },
    };
    let nobody = Provenance { by: Party::Human, at: Time(0), run: None, handoff: None };
    let writes = records.iter().map(write).collect();
    Batch { key: "import".to_owned(), provenance: nobody, writes }.check()
}
