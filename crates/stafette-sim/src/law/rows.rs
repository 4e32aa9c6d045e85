//! Laws about projections: the rows behind lists and inboxes.

use std::collections::BTreeMap;

use stafette_core::{Run, State};
use stafette_store::{HandoffRow, RunRow};

use super::{LawResult, must};

const LAW: &str = "rows tell what events tell";

pub(crate) fn rows_tell_what_events_tell(
    run: &Run,
    row: Option<&RunRow>,
    handoffs: &[HandoffRow],
) -> LawResult {
    let status = run.status();
    let right = row.is_some_and(|row| {
        row.seq == run.seq
            && row.status == status.word()
            && row.waiting_on.as_deref() == status.waiting_on()
            && row.finished_at.is_some() == run.is_settled()
    });
    must(right, LAW, || format!("{status:?} at {} is {row:?}", run.seq))?;
    for row in handoffs.iter().filter(|row| row.closed_at.is_none()) {
        let open = run.handoff(row.id).is_some_and(|handoff| handoff.is_open());
        must(open, LAW, || format!("{} is over, its row says {}", row.id, row.state))?;
    }
    let rows: BTreeMap<_, _> = handoffs.iter().map(|row| (row.id, row)).collect();
    for handoff in run.handoffs.values() {
        let row = rows.get(&handoff.id);
        let asked = matches!(handoff.state, State::Asked { .. });
        let word = handoff.state.word();
        let right = row.is_some_and(|row| row.state == word && row.question == asked);
        must(right, LAW, || {
            let state = row.map(|row| row.state.as_str());
            format!("{} is {word}, its row says {state:?}", handoff.id)
        })?;
        let body = serde_json::to_string(&**handoff).unwrap_or_default();
        must(row.is_some_and(|row| row.body == body), LAW, || {
            format!("{} is {body}, its row says {:?}", handoff.id, row.map(|row| &row.body))
        })?;
    }
    Ok(())
}
