//! Recordings of terminals, of live and ended sessions.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::AgentName;
use stafette_engine::{Recording, RecordingError, RecordingLines};

use super::TheTerminal;
use crate::request::{Asked, Named};
use crate::{Edge, Problem};

/// Bytes read in one step.
const CHUNK: usize = 64 * 1024;

/// Part of a recording.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Until {
    /// Only the screen at this many milliseconds after the beginning.
    until: Option<u64>,
    /// Only the screen at this time, in milliseconds since 1970; empty before the beginning.
    at: Option<u64>,
}

/// A screen at one moment of a recording.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Moment {
    /// Width in columns.
    pub cols: u16,
    /// Height in rows.
    pub rows: u16,
    /// Escape sequences that show this screen on an empty terminal of this size.
    pub data: String,
    /// Rows as text, without empty ones at the end.
    pub text: Vec<String>,
    /// Length of the whole recording, in milliseconds.
    pub length: u64,
}

impl Moment {
    /// Returns the screen of a recording at a moment.
    ///
    /// # Errors
    /// When the recorded size is no valid screen size.
    pub fn of(recording: &Recording, at: Duration) -> Result<Self, stafette_engine::BadSize> {
        let screen = recording.screen_at(at)?;
        let (cols, rows) = screen.size();
        let length = recording.milliseconds();
        Ok(Moment { cols, rows, data: screen.dump(), text: screen.text(), length })
    }
}

pub(super) async fn recording(
    State(edge): State<Edge>,
    Named(TheTerminal { run, agent }): Named<TheTerminal>,
    Asked(asked): Asked<Until>,
) -> Result<Response, Problem> {
    let run = crate::runs::find(&edge, &run).await?;
    let none = || {
        Problem::new(404, "no_recording", format!("There is no recording of {agent} in this run"))
            .because("only agents with `runner = \"pty\"` are recorded, from their first turn on")
    };
    let name: AgentName = agent.parse().map_err(|_| none())?;
    let path = edge.engine.terminals().recording(run, &name);
    if !path.is_file() {
        return Err(none());
    }
    match asked {
        Until { until: None, at: None } => whole(path).await,
        Until { until: Some(since), at: None } => {
            moment(path, move |_| Some(Duration::from_millis(since))).await
        }
        Until { until: None, at: Some(time) } => {
            moment(path, move |recording| since_beginning(recording, time)).await
        }
        Until { until: Some(_), at: Some(_) } => Err(Problem::new(
            422,
            "two_moments",
            "A moment is told by `until` or by `at`, not by both",
        )),
    }
}

/// Streams the whole recording as it is read.
async fn whole(path: PathBuf) -> Result<Response, Problem> {
    let lines = read(move || RecordingLines::open(&path)).await??;
    let body = stream::unfold(Some(lines), async |lines| {
        let mut lines = lines?;
        let chunk = tokio::task::spawn_blocking(move || (chunk(&mut lines), lines)).await;
        match chunk {
            Ok((Ok(chunk), _)) if chunk.is_empty() => None,
            Ok((Ok(chunk), lines)) => Some((Ok(chunk), Some(lines))),
            Ok((Err(error), _)) => Some((Err(error), None)),
            Err(error) => Some((Err(io::Error::other(error)), None)),
        }
    });
    Ok(([(CONTENT_TYPE, "application/x-asciicast")], Body::from_stream(body)).into_response())
}

fn chunk(lines: &mut RecordingLines) -> io::Result<Vec<u8>> {
    let mut chunk = Vec::new();
    while chunk.len() < CHUNK
        && let Some(line) = lines.next_line()?
    {
        chunk.extend(line);
    }
    Ok(chunk)
}

async fn moment(
    path: PathBuf,
    which: impl FnOnce(&Recording) -> Option<Duration> + Send + 'static,
) -> Result<Response, Problem> {
    let looked = read(move || {
        Recording::read(&path).map(|mut recording| {
            let length = recording.milliseconds();
            let at = which(&recording).unwrap_or_else(|| {
                recording.events.clear();
                Duration::ZERO
            });
            Moment::of(&recording, at).map(|moment| Moment { length, ..moment })
        })
    });
    let moment = looked.await??.map_err(|error| unreadable(&error))?;
    Ok(Json(moment).into_response())
}

/// Returns the offset of a time in a recording; `None` before its beginning.
fn since_beginning(recording: &Recording, time: u64) -> Option<Duration> {
    let began = recording.header.timestamp.saturating_mul(1000);
    time.checked_sub(began).map(Duration::from_millis)
}

/// Reads files on a blocking thread.
async fn read<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|error| unreadable(&error))
}

fn unreadable(error: &dyn std::error::Error) -> Problem {
    Problem::new(500, "not_readable", "The recording cannot be read").because(error.to_string())
}

impl From<RecordingError> for Problem {
    fn from(error: RecordingError) -> Self {
        unreadable(&error)
    }
}
