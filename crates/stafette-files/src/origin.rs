//! Where a file comes from: a `git clone` or `git pull` must not start paid work.

use stafette_engine::{Provenance, provenance};

use crate::Coordination;
use crate::folder::Place;
use crate::intake::Rejection;

/// The origin of a file that may be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// A program or a person has put it there.
    Here,
    /// Git is writing files at the moment: it is looked at again.
    NotKnownYet,
}

impl Coordination {
    /// Checks that a file neither came with the repository nor was there before the project's
    /// state. Without a place it is one beside the four folders.
    pub(crate) async fn origin(
        &self,
        place: Option<Place>,
        name: &str,
    ) -> Result<Origin, Rejection> {
        let folder = match place {
            Some(place) => self.at.join("handoffs").join(place.name()),
            None => self.at.clone(),
        };
        if self.folder.arrived(place, name).is_ok_and(|at| at < self.since) {
            let reason = "it was there before this project was first used here: put it in again \
                          if it is yours";
            return Err(Rejection::new("older", reason));
        }
        match provenance(&folder, name).await {
            Ok(Provenance::Untracked) => Ok(Origin::Here),
            Ok(Provenance::Busy) => Ok(Origin::NotKnownYet),
            Ok(Provenance::Tracked) => {
                let reason = "it came with the repository, which tracks it: only what is put in \
                              here counts";
                Err(Rejection::new("tracked", reason))
            }
            Err(error) => {
                let reason = format!("git cannot say whether it came with the repository: {error}");
                Err(Rejection::new("unknown_origin", reason))
            }
        }
    }
}
