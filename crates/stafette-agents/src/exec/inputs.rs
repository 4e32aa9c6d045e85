//! The handoff of a turn as JSON, in a file for the agent's own program. A text within the prompt
//! can look like a heading of the prompt; it cannot look like a field.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::json;
use stafette_core::Offer;
use stafette_core::wire::phase;

use crate::Job;

/// The variable that names the file.
const NAME: &str = "STAFETTE_INPUTS";

/// The phase that an answer has to name, with its task; nothing outside of phases.
fn asked(offer: &Offer) -> Option<serde_json::Value> {
    let phase = phase::asked(offer)?;
    let task = &offer.foreign.as_ref()?.id;
    Some(json!({ "task_id": task, "phase": phase }))
}

/// The file, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Inputs {
    place: PathBuf,
}

impl Inputs {
    /// Writes the file, and names it in the job's environment.
    ///
    /// # Errors
    /// When it cannot be written, or another process of the agent is in the way.
    pub(super) fn write(job: &mut Job) -> io::Result<Self> {
        let key = job.order.key;
        let variables = job.confined.iter().flat_map(|confined| &confined.variables);
        let mut temporary = variables.filter(|(name, _)| name == "TMPDIR");
        // The only folder of its own that an agent in a sandbox can read.
        let folder = temporary.next().map(|(_, folder)| PathBuf::from(folder));
        let folder = folder.unwrap_or_else(|| job.scratch.clone());
        let name = format!("{}-{}-{}.{}.json", key.run, key.handoff, key.attempt, key.turn);
        let place = folder.join(name);
        stafette_disk::folder_of(&place)?;
        // An earlier delivery may have left it, or the agent something else that leads elsewhere:
        // only a new file is written.
        match fs::remove_file(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = stafette_disk::private().write(true).create_new(true).open(&place)?;
        let written = Inputs { place };
        let order = &job.order;
        let offer = &order.offer;
        let text = serde_json::to_vec_pretty(&json!({
            "traceId": order.trace_id,
            "phase": asked(offer),
            "request": order.request,
            "task": {
                "from": offer.from,
                "reason": offer.reason,
                "detail": offer.detail,
                "summary": offer.summary,
                "instructions": offer.instructions,
                "wanted": offer.missing,
            },
            "inputs": order.inputs,
            "replies": order.replies,
            "answers": order.answers,
        }))?;
        file.write_all(&text)?;
        job.given.push((NAME.to_owned(), written.place.to_string_lossy().into_owned()));
        Ok(written)
    }
}

impl Drop for Inputs {
    fn drop(&mut self) {
        // The agent may have removed it.
        let _ = fs::remove_file(&self.place);
    }
}
