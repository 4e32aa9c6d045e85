//! Out of one graph and into another, as JSON lines.

use std::io::{self, BufRead, Write as IoWrite};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Cursor, Graph, GraphError, LARGEST_NODE, PAGE, Record};

/// The first line: what this is.
const HEADER: &str = r#"{"stafette_graph":1}"#;

/// The longest line that is read.
const LINE: usize = 2 * LARGEST_NODE;

/// How many records are written at once.
const STEP: usize = 500;

/// What went over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Exchanged {
    /// Nodes.
    pub nodes: u64,
    /// Links.
    pub links: u64,
}

impl Exchanged {
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
    /// The file failed.
    #[error("the file failed: {source}")]
    File {
        /// How.
        #[from]
        source: io::Error,
    },
    /// The graph failed. An import can be started again: what is there stays.
    #[error(transparent)]
    Graph {
        /// How.
        #[from]
        source: GraphError,
    },
    /// A line is not what it should be.
    #[error("line {line}: {why}")]
    Line {
        /// Which one.
        line: usize,
        /// What is wrong.
        why: String,
    },
}

/// Writes all nodes and then all links, one a line.
///
/// # Errors
/// When the graph or the file fails.
pub async fn export(
    graph: &dyn Graph,
    to: &mut (dyn IoWrite + Send),
) -> Result<Exchanged, ExchangeError> {
    let mut done = Exchanged::default();
    let mut cursor = Cursor::Start;
    writeln!(to, "{HEADER}")?;
    loop {
        let page = graph.page(&cursor, PAGE).await?;
        for record in &page {
            serde_json::to_writer(&mut *to, record).map_err(io::Error::from)?;
            to.write_all(b"\n")?;
            done.count(record);
        }
        cursor = match (page.last(), &cursor) {
            (Some(Record::Node(node)), _) => Cursor::AfterNode(node.key()),
            (Some(Record::Link(link)), _) => {
                Cursor::AfterLink(link.from.clone(), link.relation.as_str(), link.to.clone())
            }
            (None, Cursor::Start | Cursor::AfterNode(_)) => Cursor::Links,
            (None, _) => break,
        };
    }
    to.flush()?;
    Ok(done)
}

/// Reads what [`export`] wrote, on top of what is there: the same node is replaced, the same link
/// stays once.
///
/// # Errors
/// Names the line that cannot be read; what stood before it is there.
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
            if text.trim_ascii() != HEADER.as_bytes() {
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
            graph.restore(&waiting).await?;
            waiting.clear();
        }
        if read == 0 {
            break;
        }
    }
    Ok(done)
}
