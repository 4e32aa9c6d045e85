//! Tokens: how programs authenticate. Only their hashes are stored.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{AgentName, Millis, Time};
use stafette_engine::Scope;
use thiserror::Error;
use tokio::sync::watch;

use crate::guard::look_again;
use crate::principal::Standing;
use crate::private;
use crate::secret::{self, Hash};

/// Prefix of every token, so that people and scanners recognise a leaked one.
const PREFIX: &str = "stf_";
/// Maximum number of tokens of a project.
const MOST: usize = 256;

/// A token without its secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TokenView {
    /// Name of the token.
    pub name: String,
    /// Scope that the token grants.
    pub scope: Scope,
    /// Agent that the token is for, with the rights of that role and no others; left out for a
    /// person's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// Time of creation (RFC 3339).
    pub created_at: String,
    /// Time of expiry (RFC 3339); left out if it never expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// True if the token has expired.
    #[serde(default)]
    pub expired: bool,
}

/// A token that was just created.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NewToken {
    /// The token itself, shown only this once.
    pub token: String,
    /// The token without its secret.
    #[serde(flatten)]
    pub view: TokenView,
}

/// Error of an operation on tokens.
#[derive(Debug, Error)]
pub enum TokenError {
    /// A token of that name exists.
    #[error("there is a token `{name}` already")]
    Taken {
        /// Name of the token.
        name: String,
    },
    /// No token of that name exists.
    #[error("there is no token `{name}`")]
    Unknown {
        /// Name that was looked for.
        name: String,
    },
    /// The name is not valid.
    #[error("`{name}` cannot name a token: use 1 to 64 letters, digits, `-`, `_` or `.`")]
    BadName {
        /// Name that was given.
        name: String,
    },
    /// An agent's token must not have the scope `admin`: the agent could manage its own
    /// supervisors.
    #[error("a token of an agent cannot have the scope `admin`")]
    AgentAdmin,
    /// The project has the maximum number of tokens.
    #[error("there are {MOST} tokens, which is the most")]
    TooMany,
    /// The file cannot be read.
    #[error("{} cannot be read", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system, or of the JSON parser.
        source: std::io::Error,
    },
    /// The file cannot be written.
    #[error("{} cannot be written", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    name: String,
    scope: Scope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentName>,
    sha256: String,
    created_at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<Time>,
}

impl Kept {
    fn is_over(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    fn view(&self, now: Time) -> TokenView {
        TokenView {
            name: self.name.clone(),
            scope: self.scope,
            agent: self.agent.clone(),
            created_at: self.created_at.rfc3339(),
            expires_at: self.expires_at.map(Time::rfc3339),
            expired: self.is_over(now),
        }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Book {
    tokens: Vec<Kept>,
}

/// The tokens of a project, in a file that only its user can read.
#[derive(Debug)]
pub struct Tokens {
    path: PathBuf,
    book: Mutex<Book>,
    /// Changes when a token is revoked.
    revoked: watch::Sender<()>,
}

impl Tokens {
    /// Reads the tokens; a missing file holds none.
    ///
    /// # Errors
    /// When the file exists and cannot be read.
    pub fn open(path: &Path) -> Result<Self, TokenError> {
        let failed = |source| TokenError::Read { path: path.to_owned(), source };
        let book: Book = private::read(path).map_err(failed)?.unwrap_or_default();
        Ok(Tokens {
            path: path.to_owned(),
            book: Mutex::new(book),
            revoked: watch::Sender::new(()),
        })
    }

    /// Creates a token. Only the return value contains its secret.
    ///
    /// # Errors
    /// When the name is taken or not valid, or the file cannot be written.
    pub fn create(
        &self,
        now: Time,
        name: &str,
        standing: impl Into<Standing>,
        lasts: Option<Millis>,
    ) -> Result<NewToken, TokenError> {
        let Standing { scope, agent } = standing.into();
        if agent.is_some() && scope == Scope::Admin {
            return Err(TokenError::AgentAdmin);
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return Err(TokenError::BadName { name: name.chars().take(80).collect() });
        }
        let mut book = self.lock();
        if book.tokens.iter().any(|kept| kept.name == name) {
            return Err(TokenError::Taken { name: name.to_owned() });
        }
        if book.tokens.len() >= MOST {
            return Err(TokenError::TooMany);
        }
        let failed = |source| TokenError::Write { path: self.path.clone(), source };
        let token = format!("{PREFIX}{}", secret::fresh().map_err(failed)?);
        let kept = Kept {
            name: name.to_owned(),
            scope,
            agent,
            sha256: Hash::of(&token).text(),
            created_at: now,
            expires_at: lasts.map(|lasts| now + lasts),
        };
        let view = kept.view(now);
        book.tokens.push(kept);
        if let Err(error) = self.write(&book) {
            book.tokens.pop();
            return Err(failed(error));
        }
        Ok(NewToken { token, view })
    }

    /// Returns the tokens in the order of their creation.
    #[must_use]
    pub fn list(&self, now: Time) -> Vec<TokenView> {
        self.lock().tokens.iter().map(|kept| kept.view(now)).collect()
    }

    /// Revokes a token.
    ///
    /// # Errors
    /// When no such token exists, or the file cannot be written; then the token stays valid.
    pub fn revoke(&self, name: &str) -> Result<(), TokenError> {
        let mut book = self.lock();
        let Some(place) = book.tokens.iter().position(|kept| kept.name == name) else {
            return Err(TokenError::Unknown { name: name.chars().take(80).collect() });
        };
        let kept = book.tokens.remove(place);
        if let Err(source) = self.write(&book) {
            book.tokens.insert(place, kept);
            return Err(TokenError::Write { path: self.path.clone(), source });
        }
        self.revoked.send_replace(());
        Ok(())
    }

    /// Returns once the token with this hash was revoked or has expired.
    pub(crate) async fn ended(&self, hash: Hash) {
        let mut revoked = self.revoked.subscribe();
        let until = || {
            let book = self.lock();
            let is_it =
                |kept: &&Kept| Hash::read(&kept.sha256).is_some_and(|known| known.fits(hash));
            book.tokens.iter().find(is_it).map(|kept| kept.expires_at)
        };
        while let Some(expires_at) = until() {
            let Some(left) = look_again(expires_at) else { return };
            let _ = tokio::time::timeout(left, revoked.changed()).await;
        }
    }

    /// Returns true if at least one token is valid.
    #[must_use]
    pub fn any(&self, now: Time) -> bool {
        self.lock().tokens.iter().any(|kept| !kept.is_over(now))
    }

    /// Returns the name and the permissions of a token.
    pub(crate) fn owner(&self, now: Time, token: &str) -> Option<(String, Standing)> {
        let hash = Hash::of(token);
        let book = self.lock();
        // Compares all of them, so that the time taken reveals nothing.
        let mut found = None;
        for kept in &book.tokens {
            let fits = Hash::read(&kept.sha256).is_some_and(|known| known.fits(hash));
            if fits && !kept.is_over(now) {
                let standing = Standing { scope: kept.scope, agent: kept.agent.clone() };
                found = Some((kept.name.clone(), standing));
            }
        }
        found
    }

    fn write(&self, book: &Book) -> std::io::Result<()> {
        private::write(&self.path, book)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const NOON: Time = Time(43_200_000);

    #[test]
    fn a_token_holds_until_it_ends_or_is_taken_back_and_is_nowhere_in_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens.json");
        let tokens = Tokens::open(&path).expect("none yet");
        assert!(!tokens.any(NOON));
        let ci = tokens.create(NOON, "ci", Scope::Act, None).expect("made");
        let guest = tokens.create(NOON, "guest", Scope::Observe, Some(Millis::hours(1)));
        let guest = guest.expect("made");
        let text = fs::read_to_string(&path).expect("a file");
        assert!(!text.contains(&ci.token) && !text.contains(&ci.token[PREFIX.len()..]));
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = Tokens::open(&path).expect("read");
        assert_eq!(again.owner(NOON, &ci.token), Some(("ci".to_owned(), Scope::Act.into())));
        assert_eq!(again.owner(NOON, &ci.token[1..]), None);
        let later = NOON + Millis::hours(1);
        assert!(again.owner(NOON, &guest.token).is_some());
        assert!(again.owner(later, &guest.token).is_none());
        assert!(again.list(later)[1].expired);
        again.revoke("ci").expect("taken back");
        assert_eq!(Tokens::open(&path).expect("read").owner(NOON, &ci.token), None);
        assert!(!again.any(later));
    }

    #[tokio::test]
    async fn b_21_nothing_waits_for_the_end_of_a_token_that_has_expired_or_is_unknown() {
        let folder = tempfile::tempdir().expect("a folder");
        let tokens = Tokens::open(&folder.path().join("tokens.json")).expect("none yet");
        let made = tokens.create(NOON, "guest", Scope::Observe, Some(Millis::hours(1)));
        tokens.ended(Hash::of(&made.expect("made").token)).await;
        tokens.ended(Hash::of("stf_unknown")).await;
    }

    #[test]
    fn s1_13_a_token_of_an_agent_stays_one_and_is_no_admins() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens.json");
        let tokens = Tokens::open(&path).expect("none yet");
        let agent: AgentName = "mind".parse().expect("a name");
        let standing = |scope| Standing { scope, agent: Some(agent.clone()) };
        let made = tokens.create(NOON, "mind-1", standing(Scope::Act), None).expect("made");
        let (_, kept) = Tokens::open(&path).expect("read").owner(NOON, &made.token).expect("known");
        assert_eq!(kept, standing(Scope::Act));
        let admin = tokens.create(NOON, "mind-2", standing(Scope::Admin), None);
        assert!(matches!(admin, Err(TokenError::AgentAdmin)));
    }

    #[test]
    fn names_are_plain_and_used_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let tokens = Tokens::open(&folder.path().join("tokens.json")).expect("none yet");
        tokens.create(NOON, "ci", Scope::Act, None).expect("made");
        let taken = tokens.create(NOON, "ci", Scope::Act, None);
        assert!(matches!(taken, Err(TokenError::Taken { .. })));
        for name in ["", "a b", "../x\n", &"x".repeat(65)] {
            let made = tokens.create(NOON, name, Scope::Act, None);
            assert!(matches!(made, Err(TokenError::BadName { .. })), "{name:?}");
        }
        assert!(matches!(tokens.revoke("no"), Err(TokenError::Unknown { .. })));
    }

    #[test]
    fn a_file_that_is_no_book_of_tokens_is_said_and_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens.json");
        fs::write(&path, "{").expect("written");
        assert!(matches!(Tokens::open(&path), Err(TokenError::Read { .. })));
        assert_eq!(fs::read_to_string(&path).expect("a file"), "{");
    }
}
