//! Launch links: how the user's own browser signs in. A link works once and for a short time; it
//! leaves a cookie in the browser that no other site's page can use or read.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use stafette_core::{Millis, Time};
use stafette_engine::Scope;

use crate::private;
use crate::secret::{self, Hash};

/// Time within which a link can be used.
const LINK: Millis = Millis::minutes(2);
/// Time that a browser stays signed in.
pub(crate) const STAY: Millis = Millis::hours(12);
/// Maximum number of links and of browsers at a time; the oldest are dropped.
const MOST: usize = 64;

/// Permission of the holder of a secret, of which only the hash is known.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Pass {
    sha256: String,
    scope: Scope,
    until: Time,
}

impl Pass {
    fn fits(&self, hash: Hash) -> bool {
        Hash::read(&self.sha256).is_some_and(|known| known.fits(hash))
    }
}

/// State that outlives the daemon, so that an open page reconnects to the next one automatically.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Book {
    /// Port of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    /// Browsers that are signed in.
    #[serde(default)]
    browsers: Vec<Pass>,
}

/// Unused links, which are forgotten when the daemon ends, and signed-in browsers, which are not.
#[derive(Debug, Default)]
pub(crate) struct Launches {
    links: Mutex<Vec<Pass>>,
    book: Mutex<Book>,
    /// File that keeps the browsers; `None` in tests of other parts.
    path: Option<PathBuf>,
}

impl Launches {
    /// Reads the browsers that signed in before. A file that cannot be read signs everyone out; the
    /// next launch link creates a new one.
    pub(crate) fn open(path: &Path) -> Self {
        let book = private::read(path).unwrap_or_else(|error| {
            tracing::warn!(%error, path = %path.display(), "browsers have to be let in again");
            None
        });
        let (links, book) = (Mutex::default(), Mutex::new(book.unwrap_or_default()));
        Launches { links, book, path: Some(path.to_owned()) }
    }

    /// Creates a key that works once.
    pub(crate) fn key(&self, now: Time, scope: Scope) -> std::io::Result<String> {
        admit(&mut lock(&self.links), now, scope, LINK)
    }

    /// Redeems a key; returns the value of the cookie.
    pub(crate) fn redeem(&self, now: Time, key: &str) -> std::io::Result<Option<String>> {
        let hash = Hash::of(key);
        let mut links = lock(&self.links);
        let Some(place) = links.iter().position(|pass| pass.fits(hash)) else {
            return Ok(None);
        };
        let pass = links.remove(place);
        drop(links);
        if pass.until <= now {
            return Ok(None);
        }
        let mut book = lock(&self.book);
        let cookie = admit(&mut book.browsers, now, pass.scope, STAY)?;
        self.keep(&book);
        Ok(Some(cookie))
    }

    /// Returns the scope that a cookie grants.
    pub(crate) fn scope(&self, now: Time, cookie: &str) -> Option<Scope> {
        let hash = Hash::of(cookie);
        // Compares all of them, so that the time taken reveals nothing.
        let mut found = None;
        for pass in &lock(&self.book).browsers {
            if pass.fits(hash) && pass.until > now {
                found = Some(pass.scope);
            }
        }
        found
    }

    /// Returns the port of the last page.
    pub(crate) fn port(&self) -> Option<u16> {
        lock(&self.book).port
    }

    /// Returns the port of the last page if a browser may still wait there.
    pub(crate) fn awaited(&self, now: Time) -> Option<u16> {
        let book = lock(&self.book);
        book.port.filter(|_| book.browsers.iter().any(|pass| pass.until > now))
    }

    /// Records the port of the page. A new port signs every browser out: another program may listen
    /// on the old port and receive the cookies that browsers send there.
    pub(crate) fn settle(&self, port: u16) {
        let mut book = lock(&self.book);
        if book.port != Some(port) {
            *book = Book { port: Some(port), browsers: Vec::new() };
            self.keep(&book);
        }
    }

    /// Signs out every browser.
    pub(crate) fn forget(&self) {
        let mut book = lock(&self.book);
        *book = Book::default();
        self.keep(&book);
    }

    /// Writes the file; on failure, sign-ins last until the daemon ends.
    fn keep(&self, book: &Book) {
        if let Some(path) = &self.path
            && let Err(error) = private::write(path, book)
        {
            tracing::warn!(%error, path = %path.display(), "browsers are not remembered");
        }
    }
}

fn admit(
    passes: &mut Vec<Pass>,
    now: Time,
    scope: Scope,
    lasts: Millis,
) -> std::io::Result<String> {
    let secret = secret::fresh()?;
    passes.retain(|pass| pass.until > now);
    if passes.len() >= MOST {
        passes.remove(0);
    }
    passes.push(Pass { sha256: Hash::of(&secret).text(), scope, until: now + lasts });
    Ok(secret)
}

fn lock<T>(what: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

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

    fn let_in(launches: &Launches) -> String {
        let key = launches.key(NOON, Scope::Act).expect("a key");
        launches.redeem(NOON, &key).expect("chance").expect("a cookie")
    }

    #[test]
    fn b_01_a_browser_stays_in_when_the_daemon_starts_again_and_no_longer_than_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("browsers.json");
        let launches = Launches::open(&path);
        launches.settle(4690);
        assert_eq!(launches.awaited(NOON), None, "nobody has been there");
        let unused = launches.key(NOON, Scope::Admin).expect("a key");
        let cookie = let_in(&launches);
        let text = fs::read_to_string(&path).expect("a file");
        assert!(!text.contains(&cookie) && !text.contains(&unused), "{text}");
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = Launches::open(&path);
        assert_eq!(again.scope(NOON, &cookie), Some(Scope::Act));
        assert_eq!(again.awaited(NOON), Some(4690));
        assert_eq!(again.redeem(NOON, &unused).expect("chance"), None, "links are for one daemon");
        assert_eq!(again.scope(NOON + STAY, &cookie), None);
        assert_eq!((again.awaited(NOON + STAY), again.port()), (None, Some(4690)));
    }

    #[test]
    fn a_page_at_another_port_knows_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("browsers.json");
        let launches = Launches::open(&path);
        launches.settle(4690);
        let cookie = let_in(&launches);
        launches.settle(4690);
        assert!(launches.scope(NOON, &cookie).is_some(), "it has not moved");
        launches.settle(4691);
        assert_eq!(launches.scope(NOON, &cookie), None);
        let cookie = let_in(&launches);
        launches.forget();
        let again = Launches::open(&path);
        assert_eq!((again.scope(NOON, &cookie), again.port()), (None, None));
    }

    #[test]
    fn a_file_that_tells_nothing_lets_nobody_in_and_is_made_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("browsers.json");
        fs::write(&path, "{").expect("written");
        let launches = Launches::open(&path);
        assert_eq!(launches.port(), None);
        let cookie = let_in(&launches);
        assert!(Launches::open(&path).scope(NOON, &cookie).is_some());
    }
}
