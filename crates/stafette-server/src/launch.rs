//! Launch links: how the user's own browser gets in. A link works once and not for long; what it
//! leaves in the browser is a cookie that no other site's page can use or read.

use std::sync::{Mutex, PoisonError};

use stafette_core::{Millis, Time};

use crate::secret::{self, Hash};
use crate::visitor::Scope;

/// How long a link can be used.
const LINK: Millis = Millis::minutes(2);
/// How long the browser stays in.
pub(crate) const STAY: Millis = Millis::hours(12);
/// The most links and the most browsers at a time; the oldest make room.
const MOST: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Pass {
    hash: Hash,
    scope: Scope,
    until: Time,
}

/// The links that were not used yet, and the browsers that came by one. They are forgotten when
/// the daemon ends.
#[derive(Debug, Default)]
pub(crate) struct Launches {
    links: Mutex<Vec<Pass>>,
    sessions: Mutex<Vec<Pass>>,
}

impl Launches {
    /// A key for one visit.
    pub(crate) fn key(&self, now: Time, scope: Scope) -> std::io::Result<String> {
        admit(&self.links, now, scope, LINK)
    }

    /// Uses a key up; the cookie's value and how much it allows.
    pub(crate) fn redeem(&self, now: Time, key: &str) -> std::io::Result<Option<String>> {
        let hash = Hash::of(key);
        let mut links = lock(&self.links);
        let Some(place) = links.iter().position(|pass| pass.hash.fits(hash)) else {
            return Ok(None);
        };
        let pass = links.remove(place);
        drop(links);
        match pass.until > now {
            true => admit(&self.sessions, now, pass.scope, STAY).map(Some),
            false => Ok(None),
        }
    }

    /// How much a cookie allows.
    pub(crate) fn scope(&self, now: Time, cookie: &str) -> Option<Scope> {
        let hash = Hash::of(cookie);
        let mut found = None;
        for pass in lock(&self.sessions).iter() {
            if pass.hash.fits(hash) && pass.until > now {
                found = Some(pass.scope);
            }
        }
        found
    }
}

fn admit(
    passes: &Mutex<Vec<Pass>>,
    now: Time,
    scope: Scope,
    lasts: Millis,
) -> std::io::Result<String> {
    let secret = secret::fresh()?;
    let mut passes = lock(passes);
    passes.retain(|pass| pass.until > now);
    if passes.len() >= MOST {
        passes.remove(0);
    }
    passes.push(Pass { hash: Hash::of(&secret), scope, until: now + lasts });
    Ok(secret)
}

fn lock(passes: &Mutex<Vec<Pass>>) -> std::sync::MutexGuard<'_, Vec<Pass>> {
    passes.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Time = Time(43_200_000);

    #[test]
    fn a_link_works_once_and_not_for_long() {
        let launches = Launches::default();
        let key = launches.key(NOON, Scope::Act).expect("a key");
        let cookie = launches.redeem(NOON, &key).expect("chance").expect("the first visit");
        assert_eq!(launches.redeem(NOON, &key).expect("chance"), None, "the second visit");
        assert_eq!(launches.scope(NOON, &cookie), Some(Scope::Act));
        assert_eq!(launches.scope(NOON, &key), None, "a key is no cookie");
        assert_eq!(launches.scope(NOON + STAY, &cookie), None);
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
