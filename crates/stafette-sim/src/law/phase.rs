//! Laws about phases: one result for each time that a phase is entered, in order, by its rule.

use std::collections::BTreeMap;

use stafette_core::team::phase::{MAX_SUMMARY, PhaseBegun, PhaseEnded, Phases as Left, REASON};
use stafette_core::wire::phase::Decision;
use stafette_core::{Event, Run, Status, TeamEvent};

use super::{LawResult, must};

/// The phases of a run, counted independently.
#[derive(Debug, Default)]
pub(super) struct Phases {
    /// The number of times that each phase was entered, by its place.
    entered: BTreeMap<usize, u32>,
    open: Option<PhaseBegun>,
    /// The result of the last phase.
    ended: Option<PhaseEnded>,
}

impl Phases {
    pub(super) fn hear(&mut self, run: &Run, event: &Event) -> LawResult {
        match event {
            Event::Team(TeamEvent::PhaseBegun(begun)) => self.begin(run, begun),
            Event::Team(TeamEvent::PhaseEnded(ended)) => self.end(run, ended),
            Event::HandoffAdmitted(e) if e.offer.reason.as_str() == REASON => {
                let left = left(run).and_then(|left| left.findings.as_deref()).unwrap_or_default();
                let findings = self.ended.as_ref().map_or(left, |ended| &ended.summary);
                must(e.offer.summary == findings, "a phase is told the summary alone", || {
                    format!("{} is told {:?}", e.id, e.offer.summary)
                })
            }
            Event::RunFinished(e) if e.ending.status == Status::Succeeded => self.came_through(run),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, run: &Run, begun: &PhaseBegun) -> LawResult {
        const LAW: &str = "phases follow each other, each once for each time";
        must(self.open.is_none(), LAW, || format!("{} begins within another", begun.phase))?;
        let left = left(run);
        if self.entered.is_empty() {
            // Phases of the previous generation count.
            let hops = left.into_iter().flat_map(|left| &left.hops);
            self.entered.extend(hops.map(|hop| (hop.place, hop.rounds)));
        }
        let times = self.entered.entry(begun.place).or_default();
        *times += 1;
        let (times, place) = (*times, begun.place);
        must(begun.round == times, LAW, || format!("{place} is entered {times} times: {begun:?}"))?;
        let Some(step) = run.workflow.phases.get(place) else {
            return must(false, LAW, || format!("there is no phase {place}"));
        };
        let parts = begun.parts.len() + begun.kept.len();
        let fits = parts == step.agents.len() && begun.phase == step.phase;
        must(fits, LAW, || format!("{begun:?} of {step:?}"))?;
        let right = match &self.ended {
            None => place == left.map_or(0, |left| left.place),
            Some(last) if last.decision == Decision::Proceed => place == last.place + 1,
            Some(last) => {
                let from = &run.workflow.phases[last.place];
                let again = self.entered.get(&last.place).copied().unwrap_or(0);
                from.back_to == Some(step.phase) && place < last.place && again < from.rounds
            }
        };
        must(right, LAW, || format!("{place} follows {:?}", self.ended))?;
        self.open = Some(begun.clone());
        Ok(())
    }

    fn end(&mut self, run: &Run, ended: &PhaseEnded) -> LawResult {
        const LAW: &str = "a phase ends once, when all of its parts have";
        let begun = self.open.take().filter(|begun| begun.place == ended.place);
        let Some(begun) = begun else {
            return must(false, LAW, || format!("{} was not open", ended.phase));
        };
        let parts = begun.parts.len() + begun.kept.len();
        must(begun.round == ended.round && parts == ended.parts.len(), LAW, || {
            format!("{begun:?} ends as {ended:?}")
        })?;
        let open = ended.parts.iter().find(|part| {
            part.brought.is_none() || run.handoff(part.handoff).is_some_and(|it| it.is_open())
        });
        must(open.is_none(), LAW, || format!("{open:?} is not over"))?;
        let step = &run.workflow.phases[ended.place];
        let passed = ended.parts.iter().filter_map(|part| part.brought.as_ref());
        let passed = passed.filter(|brought| brought.passed).count();
        let good = passed >= step.rule.needed(step.agents.len());
        // The one agent of a phase may say STOP although it has done its part; never the other way
        // round.
        let right = match ended.decision {
            Decision::Proceed => good,
            Decision::Stop => !good || step.agents.len() == 1,
            Decision::Clarify => false,
        };
        must(right, "a phase passes by its rule", || format!("{passed} of {step:?}: {ended:?}"))?;
        let tokens = stafette_tokens::count(&ended.summary).ok();
        let short = tokens.is_some_and(|tokens| tokens <= MAX_SUMMARY);
        must(short, "a summary has 500 tokens at most", || {
            format!("{} hands on {tokens:?}: {:?}", ended.phase, ended.parts)
        })?;
        self.ended = Some(ended.clone());
        Ok(())
    }

    /// A run in phases succeeds only after the last phase has passed.
    fn came_through(&self, run: &Run) -> LawResult {
        let last = run.workflow.phases.len().checked_sub(1);
        let came = self.ended.as_ref().filter(|ended| ended.decision == Decision::Proceed);
        must(last.is_none() || came.map(|ended| ended.place) == last, LAST, || {
            format!("it ends after {:?}, with {:?} open", self.ended, self.open)
        })
    }
}

/// Returns the progress of the previous generation, if it ended in the middle of a phase.
fn left(run: &Run) -> Option<&Left> {
    run.team.lineage.as_ref()?.phases.as_ref()
}

const LAST: &str = "a run in phases succeeds when the last has passed";
