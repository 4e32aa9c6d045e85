//! The team's file: written by the engine's own code on a disk that may lose power between any two
//! steps, and compared with the store.

use stafette_core::wire::context::OrchestratorContext;
use stafette_core::wire::schema::{self, Name};
use stafette_core::{Millis, Run, Time, Usd};
use stafette_engine::generations::{context_file, picture_of};

use super::{Happening, Passage, Stop, World};
use crate::law::{Breach, LawResult, must};

const WHOLE: &str = "the picture is a whole and true one after every power cut";

/// The most steps of one write, including the folders of the first one.
const STEPS: u64 = 24;

/// The interval, in writes, at which the file is read back and checked against its schema, which is
/// slow.
const READ_EVERY: usize = 8;

impl World {
    /// Plans a write of the team's file after an event.
    pub(super) fn plan_a_picture(&mut self, node: usize) {
        let life = self.nodes[node].life;
        let Some(up) = self.up(node) else { return };
        if up.draws || up.run().team.lineage.is_none() {
            return;
        }
        up.draws = true;
        let after = Millis(self.chance.below(400));
        self.plan(after, Happening::Draw { node, life });
    }

    /// Writes the team's file from what a process knows.
    pub(super) fn draw(&mut self, node: usize, life: u32) -> Passage {
        if !self.is_up(node, life) {
            return Ok(());
        }
        let now = self.clock(node);
        let Some(up) = self.up(node) else { return Ok(()) };
        up.draws = false;
        let run = up.run().clone();
        let faults = &self.cast.faults;
        let cut = self.crashes < faults.crashes && self.chance.per_mille(faults.crash * 2);
        let left = cut.then(|| self.chance.below(STEPS));
        self.sketch(&run, now, left)?;
        if !self.shelf.is_off() {
            return Ok(());
        }
        if self.chance.percent(50) {
            return self.crash(node, "drawing");
        }
        self.counts.note("power cut");
        self.shelf.lose(&mut self.chance);
        for node in 0..self.nodes.len() {
            if self.up(node).is_some() {
                // A power cut ends every process: the crash that each returns must not spare the
                // next.
                let _ = self.crash(node, "drawing");
            }
        }
        self.is_whole(&run, now)?;
        Err(Stop::Crashed)
    }

    /// Writes the file for a run as it is known, with this many steps left; checks every possible
    /// content on the way.
    pub(super) fn sketch(&mut self, run: &Run, now: Time, left: Option<u64>) -> Passage {
        self.shelf.arm(left);
        let drawn = context_file::draw(&self.shelf, run, &self.sets.of_team(run), now);
        let wanted = self.as_told(run, now)?;
        self.is_whole(run, now)?;
        let ignored = !self.shelf.could_lack(".gitignore");
        must(ignored, "git never sees the picture", || "there is no .gitignore".to_owned())?;
        if drawn.is_ok() {
            self.counts.note("picture");
            self.drawn = true;
            let images = self.shelf.images();
            must(images == [Some(wanted)].into(), "a picture that was drawn stays", || {
                format!("{} could be there", images.len())
            })?;
        }
        must(drawn.is_ok() || self.shelf.is_off(), "the picture is drawn", || {
            format!("{drawn:?}")
        })?;
        Ok(())
    }

    /// Every possible content of the file is one that was correct when it was written; and once
    /// there was a file, there always is one.
    fn is_whole(&self, run: &Run, now: Time) -> LawResult {
        let mut could = self.shelf.seen();
        could.extend(self.shelf.images());
        for text in could {
            match text {
                None => must(!self.drawn, WHOLE, || "it is gone".to_owned())?,
                Some(text) => must(self.pictures.contains(&text), WHOLE, || {
                    let at = now.since(self.began);
                    let (seq, bytes) = (run.seq, text.len());
                    format!("#{seq} at {at}: it could have been {bytes} bytes")
                })?,
            }
        }
        Ok(())
    }

    /// Returns the file according to the store: what it may contain from now on.
    fn as_told(&mut self, known: &Run, now: Time) -> Result<String, Breach> {
        let told = match &self.witness.run {
            Some(told) if told.id == known.id && told.seq >= known.seq => told,
            _ => return Err(Breach { law: WHOLE, detail: "it is newer than the store".into() }),
        };
        let earlier;
        let told = if told.seq == known.seq {
            told
        } else {
            earlier = self.disk.replay(known.id, known.seq);
            earlier.as_ref().unwrap_or(told)
        };
        let picture = picture_of(told, &self.sets.of_team(told), now);
        self.tells_the_cost(told, &picture)?;
        let text = serde_json::to_string_pretty(&picture).unwrap_or_default() + "\n";
        if self.pictures.len().is_multiple_of(READ_EVERY) {
            let read: Option<OrchestratorContext> = serde_json::from_str(&text).ok();
            must(read.as_ref() == Some(&picture), WHOLE, || format!("it reads back as {read:?}"))?;
            let value = serde_json::from_str(&text).unwrap_or_default();
            let flaws = schema::validate(Name::Context, &value);
            must(flaws.is_empty(), WHOLE, || format!("{flaws:?}"))?;
        }
        self.pictures.insert(text.clone());
        Ok(text)
    }

    /// The cost of the team is the cost of its turns, those of earlier generations included.
    fn tells_the_cost(&self, told: &Run, picture: &OrchestratorContext) -> LawResult {
        let newest = self.witness.run.as_ref().is_some_and(|run| run.seq == told.seq);
        let turns = self.earlier.0 + self.witness.history.spent.money.0;
        let said = Usd::from_dollars(picture.total_cost.get()).unwrap_or_default();
        must(!newest || said == Usd(turns), "the total cost is the sum of the turns", || {
            format!("{said} is told, the turns cost {}", Usd(turns))
        })
    }
}
