//! Launch links: how the user's own browser signs in. A link works once and for a short time. The
//! page exchanges its key for a session, which it keeps for its own origin and shows with every
//! request: nothing that a browser would send to another server on this machine by itself. Sessions
//! end with the daemon, and the next daemon has another port: what another server leaves in the
//! browser at the old one (a service worker, a cached page) never sees a key.

use std::sync::{Mutex, PoisonError};

use stafette_core::{Millis, Time};
use stafette_engine::Scope;

use crate::guard::look_again;
use crate::secret::{self, Hash};

/// Time within which a link can be used.
const LINK: Millis = Millis::minutes(2);
/// Time that a browser stays signed in.
pub(crate) const STAY: Millis = Millis::hours(12);
/// Maximum number of links and of browsers at a time; the oldest are dropped.
const MOST: usize = 64;

/// Permission of the holder of a secret, of which only the hash is known.
#[derive(Clone, Debug)]
struct Pass {
    hash: Hash,
    scope: Scope,
    until: Time,
}

/// Unused links and signed-in browsers.
#[derive(Debug, Default)]
pub(crate) struct Launches {
    links: Mutex<Vec<Pass>>,
    sessions: Mutex<Vec<Pass>>,
}

impl Launches {
    /// Creates a key that works once.
    pub(crate) fn key(&self, now: Time, scope: Scope) -> std::io::Result<String> {
        admit(&mut lock(&self.links), now, scope, LINK)
    }

    /// Redeems a key; returns a session.
    pub(crate) fn redeem(&self, now: Time, key: &str) -> std::io::Result<Option<String>> {
        let hash = Hash::of(key);
        let mut links = lock(&self.links);
        let Some(place) = links.iter().position(|pass| pass.hash.fits(hash)) else {
            return Ok(None);
        };
        let pass = links.remove(place);
        drop(links);
        if pass.until <= now {
            return Ok(None);
        }
        admit(&mut lock(&self.sessions), now, pass.scope, STAY).map(Some)
    }

    /// Returns the scope that a session grants.
    pub(crate) fn scope(&self, now: Time, session: &str) -> Option<Scope> {
        let hash = Hash::of(session);
        // Compares all of them, so that the time taken reveals nothing.
        let mut found = None;
        for pass in lock(&self.sessions).iter() {
            if pass.hash.fits(hash) && pass.until > now {
                found = Some(pass.scope);
            }
        }
        found
    }

    /// Returns once the session with this hash has ended.
    pub(crate) async fn ended(&self, hash: Hash) {
        let until = || {
            let sessions = lock(&self.sessions);
            sessions.iter().find(|pass| pass.hash.fits(hash)).map(|pass| pass.until)
        };
        while let Some(until) = until() {
            let Some(left) = look_again(Some(until)) else { return };
            tokio::time::sleep(left).await;
        }
    }
}

fn admit(
    passes: &mut Vec<Pass>,
    now: Time,
    scope: Scope,
    lasts: Millis,
) -> std::io::Result<String> {
    // With a beginning of its own, it is recognised and not stored wherever it is printed.
    let secret = format!("stl_{}", secret::fresh()?);
    passes.retain(|pass| pass.until > now);
    if passes.len() >= MOST {
        passes.remove(0);
    }
    passes.push(Pass { hash: Hash::of(&secret), scope, until: now + lasts });
    Ok(secret)
}

fn lock<T>(what: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Time = Time(43_200_000);

    #[test]
    fn a_link_works_once_and_not_for_long() {
        let launches = Launches::default();
        let key = launches.key(NOON, Scope::Act).expect("a key");
        let session = launches.redeem(NOON, &key).expect("chance").expect("the first visit");
        assert_eq!(launches.redeem(NOON, &key).expect("chance"), None, "the second visit");
        assert_eq!(launches.scope(NOON, &session), Some(Scope::Act));
        assert_eq!(launches.scope(NOON, &key), None, "a key is no session");
        assert_eq!(launches.scope(NOON + STAY, &session), None);
        let late = launches.key(NOON, Scope::Act).expect("a key");
        assert_eq!(launches.redeem(NOON + LINK, &late).expect("chance"), None);
        assert_eq!(launches.redeem(NOON, &late).expect("chance"), None, "tried once is used up");
    }

    #[test]
    fn links_do_not_pile_up() {
        let launches = Launches::default();
        let first = launches.key(NOON, Scope::Admin).expect("a key");
        for _ in 0..MOST {
            launches.key(NOON, Scope::Admin).expect("a key");
        }
        assert_eq!(lock(&launches.links).len(), MOST);
        assert_eq!(launches.redeem(NOON, &first).expect("chance"), None);
    }
}
