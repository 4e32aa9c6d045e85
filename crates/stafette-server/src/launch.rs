//! Launch links: how the user's own browser signs in. A link works once and for a short time. The
//! page exchanges its key for a session, which it keeps for its own origin and shows with every
//! request: nothing that a browser would send to another server on this machine by itself. Sessions
//! end with the daemon, so that whoever listens on its port later can do nothing with one.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use stafette_core::{Millis, Time};
use stafette_engine::Scope;

use crate::guard::look_again;
use crate::private;
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

/// What outlives the daemon: links in notifications stay true.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Place {
    /// Port of the page.
    port: Option<u16>,
}

/// Unused links and signed-in browsers.
#[derive(Debug, Default)]
pub(crate) struct Launches {
    links: Mutex<Vec<Pass>>,
    sessions: Mutex<Vec<Pass>>,
    place: Mutex<Place>,
    /// File that keeps the place; `None` in tests of other parts.
    path: Option<PathBuf>,
}

impl Launches {
    /// Reads where the page was.
    pub(crate) fn open(path: &Path) -> Self {
        let place = private::read(path).unwrap_or_else(|error| {
            tracing::warn!(%error, path = %path.display(), "the page gets another port");
            None
        });
        let place = Mutex::new(place.unwrap_or_default());
        Launches { place, path: Some(path.to_owned()), ..Launches::default() }
    }

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

    /// Returns the port of the last page.
    pub(crate) fn port(&self) -> Option<u16> {
        lock(&self.place).port
    }

    /// Records the port of the page; on failure, the next daemon has another one.
    pub(crate) fn settle(&self, port: u16) {
        let mut place = lock(&self.place);
        if place.port == Some(port) {
            return;
        }
        place.port = Some(port);
        if let Some(path) = &self.path
            && let Err(error) = private::write(path, &*place)
        {
            tracing::warn!(%error, path = %path.display(), "the page's port is not remembered");
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
    use std::fs;

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

    #[test]
    fn b_20_a_session_ends_with_its_daemon_and_the_port_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("page.json");
        let launches = Launches::open(&path);
        launches.settle(4690);
        let key = launches.key(NOON, Scope::Admin).expect("a key");
        let session = launches.redeem(NOON, &key).expect("chance").expect("a session");
        assert_eq!(launches.scope(NOON, &session), Some(Scope::Admin));
        let text = fs::read_to_string(&path).expect("a file");
        assert!(!text.contains(&Hash::of(&session).text()), "{text}");
        let again = Launches::open(&path);
        assert_eq!((again.scope(NOON, &session), again.port()), (None, Some(4690)));
    }

    #[test]
    fn a_file_that_tells_nothing_is_made_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("page.json");
        fs::write(&path, "{").expect("written");
        let launches = Launches::open(&path);
        assert_eq!(launches.port(), None);
        launches.settle(4690);
        assert_eq!(Launches::open(&path).port(), Some(4690));
    }
}
