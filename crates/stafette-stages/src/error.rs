//! The errors of this crate, with a stable code for programs.

use stafette_core::Time;
use stafette_engine::EngineError;
use stafette_knowledge::calendar::CalendarError;
use stafette_knowledge::calendar::occurrence::Occurrence;
use stafette_knowledge::calendar::proposal::{Proposal, ProposalError};
use stafette_knowledge::calendar::slots::SlotError;
use stafette_knowledge::graph::{GraphError, NodeKey};
use stafette_knowledge::history::HistoryError;
use stafette_knowledge::mind::parameters::LedgerError;
use stafette_knowledge::rights::Refused;
use stafette_knowledge::roi::RoiError;
use stafette_knowledge::{CursorError, VersionsError};
use thiserror::Error;

use crate::planner::SPAN;

/// An operation of the stages failed.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each source is documented where it is defined")]
pub enum StageError {
    /// The actor lacks the right.
    #[error(transparent)]
    Refused {
        #[from]
        source: Refused,
    },
    #[error("only a person may {what}")]
    NeedsPerson { what: &'static str },
    /// The history refused or failed.
    #[error(transparent)]
    History {
        #[from]
        source: HistoryError,
    },
    /// The graph refused or failed.
    #[error(transparent)]
    Graph {
        #[from]
        source: GraphError,
    },
    #[error("there is no {node}")]
    NoNode { node: NodeKey },
    #[error("no calendar is configured")]
    NoCalendar,
    /// The calendar refused or failed.
    #[error(transparent)]
    Calendar {
        #[from]
        source: CalendarError,
    },
    /// The proposed block cannot be changed like that.
    #[error(transparent)]
    Proposal {
        #[from]
        source: ProposalError,
    },
    #[error("`{other}` is there from {} to {}{}", from.rfc3339(), to.rfc3339(), now_at(title, *place))]
    Taken { title: String, other: String, from: Time, to: Time, place: Option<(Time, Time)> },
    /// Blocks of a plan lost their times, and have others now.
    #[error("{}", blocks.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    LostPlaces { blocks: Vec<StageError> },
    /// An accepted block lost its time on the way into the calendar.
    #[error("{why}")]
    Again { why: String },
    #[error("`{title}` has to wait for `{first}`, which ends at {}: choose a later time, or move `{first}` first", until.rfc3339())]
    Early { title: String, first: String, until: Time },
    #[error("`{next}`, which has to wait for `{title}`, begins at {} and finds no place behind it: choose an earlier time, or move `{next}` first", from.rfc3339())]
    Late { title: String, next: String, from: Time },
    #[error("`{title}` has to wait for `{first}`: it is proposed for {} to {} now", place.0.rfc3339(), place.1.rfc3339())]
    Follows { title: String, first: String, place: (Time, Time) },
    #[error("the end is not after the beginning, or more than {SPAN} behind it")]
    Span,
    /// The search for free time failed.
    #[error(transparent)]
    Slots {
        #[from]
        source: SlotError,
    },
    /// The options cannot be compared.
    #[error(transparent)]
    Roi {
        #[from]
        source: RoiError,
    },
    /// A version of the parameters cannot be made.
    #[error(transparent)]
    Versions {
        #[from]
        source: VersionsError,
    },
    /// The follower's position cannot be stored.
    #[error(transparent)]
    Cursor {
        #[from]
        source: CursorError,
    },
    /// The engine refused or failed.
    #[error(transparent)]
    Engine {
        #[from]
        source: EngineError,
    },
    #[error("{file} cannot be used: {why}")]
    File { file: String, why: String },
    /// The request is invalid.
    #[error("{why}")]
    Mistaken { why: String },
}

/// Returns the new proposed time of a block as text.
fn now_at(title: &str, place: Option<(Time, Time)>) -> String {
    match place {
        Some((start, end)) => {
            format!(": `{title}` is proposed for {} to {} now", start.rfc3339(), end.rfc3339())
        }
        None => format!(": move `{title}` to another time, or drop it"),
    }
}

impl StageError {
    /// Makes the error for a block whose time is taken; it has another time now, or none.
    pub(crate) fn taken(block: &Proposal, other: &Occurrence, place: Option<(Time, Time)>) -> Self {
        let (title, name) = (block.title.clone(), other.title.clone());
        StageError::Taken { title, other: name, from: other.start, to: other.end, place }
    }

    /// Makes the error for a block that would begin before its predecessor has ended.
    pub(crate) fn early(block: &Proposal, first: &Proposal) -> Self {
        let (title, first_title) = (block.title.clone(), first.title.clone());
        StageError::Early { title, first: first_title, until: first.end }
    }

    /// Makes the error for a block that would end after its successor has begun.
    pub(crate) fn late(block: &Proposal, next: &Proposal) -> Self {
        let (title, next_title) = (block.title.clone(), next.title.clone());
        StageError::Late { title, next: next_title, from: next.start }
    }

    /// Makes the error for a block that is proposed for a later time, after its predecessor.
    pub(crate) fn follows(block: &Proposal, first: &Proposal) -> Self {
        let (title, first) = (block.title.clone(), first.title.clone());
        StageError::Follows { title, first, place: (block.start, block.end) }
    }

    /// Makes the error for an invalid request.
    pub(crate) fn mistaken(why: impl Into<String>) -> Self {
        StageError::Mistaken { why: why.into() }
    }

    /// Returns a stable code for programs, and the matching HTTP status.
    pub fn code(&self) -> (u16, &'static str) {
        match self {
            StageError::Refused { .. } => (403, "not_granted"),
            StageError::NeedsPerson { .. } => (403, "needs_person"),
            StageError::History { source } => match source {
                HistoryError::NoThread { .. } => (404, "no_thread"),
                HistoryError::Length { .. } => (422, "bad_length"),
                HistoryError::Taken { .. } => (409, "taken"),
                HistoryError::Failed { .. } => (500, "history_failed"),
            },
            StageError::Graph { source } => match source {
                GraphError::Away { .. } => (503, "MCP_CONNECTION_FAILED"),
                GraphError::QueueFull { .. } => (507, "MCP_CONNECTION_FAILED"),
                GraphError::Malformed { .. } => (422, "GRAPH_BATCH_MALFORMED"),
                GraphError::Missing { .. } => (409, "GRAPH_NODE_MISSING"),
                GraphError::KeyReused { .. } => (409, "GRAPH_KEY_REUSED"),
                GraphError::Corrupt { .. } | GraphError::Failed { .. } => (500, "GRAPH_FAILED"),
            },
            StageError::NoNode { .. } => (404, "no_node"),
            StageError::NoCalendar => (409, "no_calendar"),
            StageError::Calendar { source } => match source {
                CalendarError::Conflict { .. } => (409, "calendar_conflict"),
                CalendarError::Gone { .. } => (404, "calendar_gone"),
                CalendarError::Unusable { .. } => (422, "calendar_unusable"),
                CalendarError::Away { .. } => (503, "MCP_CONNECTION_FAILED"),
                CalendarError::Refused { .. } => (502, "calendar_refuses"),
                CalendarError::Failed { .. } => (500, "calendar_failed"),
            },
            StageError::Proposal { source } => match source {
                ProposalError::None { .. } => (404, "no_block"),
                ProposalError::State { .. } => (409, "block_state"),
                ProposalError::Taken { .. } => (409, "block_taken"),
                ProposalError::Failed { .. } => (500, "proposals_failed"),
            },
            StageError::Taken { .. } | StageError::LostPlaces { .. } | StageError::Again { .. } => {
                (409, "block_taken")
            }
            StageError::Early { .. } | StageError::Late { .. } | StageError::Follows { .. } => {
                (409, "block_order")
            }
            StageError::Span => (422, "bad_time"),
            StageError::Slots { .. } => (422, "bad_week"),
            StageError::Roi { .. } => (422, "bad_options"),
            StageError::Versions { source } => match source {
                VersionsError::Refused { source: LedgerError::Unknown { .. } } => {
                    (404, "no_version")
                }
                VersionsError::Refused { .. } => (409, "not_accepted"),
                VersionsError::Failed { .. } => (500, "versions_failed"),
            },
            StageError::Cursor { .. } => (500, "not_kept"),
            StageError::Engine { source } => source.code(),
            StageError::File { .. } => (409, "bad_file"),
            StageError::Mistaken { .. } => (422, "mistaken"),
        }
    }

    /// True if a retry may succeed.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            StageError::Graph { source } => source.may_pass(),
            StageError::Calendar { source } => matches!(source, CalendarError::Away { .. }),
            StageError::History { source } => matches!(source, HistoryError::Failed { .. }),
            StageError::Proposal { source } => matches!(source, ProposalError::Failed { .. }),
            StageError::Cursor { .. } => true,
            _ => false,
        }
    }
}
