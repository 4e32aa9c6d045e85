//! Exports one graph and imports it into another, as JSON lines.

use std::io::{self, BufRead, Write as IoWrite};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Party, Time};
use thiserror::Error;

use super::{
    Batch, Cursor, Graph, GraphError, LARGEST_NODE, Link, Node, PAGE, Provenance, Record, Write,
};

/// The version of the export format, stated in its first line.
pub const FORMAT: u32 = 1;

fn header() -> String {
    format!(r#"{{"stafette_graph":{FORMAT}}}"#)
}

/// The longest line that is read, in bytes.
const LINE: usize = 2 * LARGEST_NODE;

/// The number of records per write.
const STEP: usize = 500;

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
        let mut done = Self::default();
        records.iter().for_each(|record| done.count(record));
        done
    }

    fn count(&mut self, record: &Record) {
        match record {
            Record::Node(_) => self.nodes += 1,
            Record::Link(_) => self.links += 1,
        }
    }
}

/// An export or import stopped.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// The export file failed.
    #[error("the file failed: {source}")]
    File {
        /// The error of the file system.
        #[from]
        source: io::Error,
    },
    /// The graph failed. An import can be repeated: records that were written stay.
    #[error(transparent)]
    Graph {
        /// The error of the graph.
        #[from]
        source: GraphError,
    },
    /// A line of the file is invalid.
    #[error("line {line}: {why}")]
    Line {
        /// The line number, from 1.
        line: usize,
        /// The reason, in a sentence.
        why: String,
    },
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

/// Writes all nodes and then all links, one per line.
///
/// # Errors
/// If the graph or the file fails.
pub async fn export(
    graph: &dyn Graph,
    to: &mut (dyn IoWrite + Send),
) -> Result<Exchanged, ExchangeError> {
    let mut done = Exchanged::default();
    writeln!(to, "{}", header())?;
    let mut next = Some(Cursor::Start);
    while let Some(cursor) = next {
        let page = graph.page(&cursor, PAGE).await?;
        for record in &page {
            serde_json::to_writer(&mut *to, record).map_err(io::Error::from)?;
            to.write_all(b"\n")?;
            done.count(record);
        }
        next = cursor.next(&page);
    }
    to.flush()?;
    Ok(done)
}

/// Reads the output of [`export`] into a graph: an existing node is replaced, an existing link
/// stays.
///
/// # Errors
/// Names the line that cannot be read; the lines before it were imported.
pub async fn import(
    graph: &dyn Graph,
    from: &mut (dyn BufRead + Send),
) -> Result<Exchanged, ExchangeError> {
    let mut done = Exchanged::default();
    let mut waiting = Vec::new();
    let mut text = Vec::new();
    for line in 1.. {
        text.clear();
        let wrong = |why: String| ExchangeError::Line { line, why };
        let read = io::Read::take(&mut *from, LINE as u64).read_until(b'\n', &mut text)?;
        if read == LINE && text.last() != Some(&b'\n') {
            return Err(wrong(format!("it is longer than {LINE} bytes")));
        }
        if line == 1 {
            if text.trim_ascii() != header().as_bytes() {
                return Err(wrong("this is no export of a graph".into()));
            }
            continue;
        }
        if read > 0 {
            let record: Record =
                serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
            done.count(&record);
            waiting.push(record);
        }
        if waiting.len() >= STEP || read == 0 {
            check(&waiting)?;
            graph.restore(&waiting).await?;
            waiting.clear();
        }
        if read == 0 {
            break;
        }
    }
    Ok(done)
}
