//! The place of the runs: a file of the project, or a database.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stafette_store::{
    ConnectError, FindError, Finder, OpenError, Options, PostgresFinder, PostgresOptions,
    PostgresStore, RunFilter, SqliteFinder, SqliteStore, Store,
};

use crate::exit::Failure;
use crate::project::Project;
use crate::{state, trust};

/// Names a database for processes started here; the daemon gets it this way too, since every user
/// can see the arguments of a process.
pub(crate) const VARIABLE: &str = "STAFETTE_STORE";

/// The file that records which database the runs went to, without its password. A daemon that is
/// given none would otherwise begin without any runs, in an empty file.
const NOTE: &str = "store.place";

/// The index of texts. A daemon makes it once its store is open.
const FIND: &str = "find.db";

/// The place of the runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Home {
    /// A SQLite file at this path.
    File(PathBuf),
    /// A PostgreSQL database, by its address.
    Database(String),
}

impl Home {
    /// The setting of the flag, the environment or the workflow, in that order.
    pub(crate) fn of(project: &Project) -> Result<Home, Failure> {
        if let Some(url) = &project.database {
            return Ok(Home::Database(url.clone()));
        }
        // The setting of a repository counts once its user has allowed it.
        let allowed = project.load().ok().filter(|loaded| trust::is_trusted(project, loaded));
        let Some(name) = allowed.and_then(|loaded| loaded.workflow.store.url_env) else {
            return Ok(Home::File(project.store()));
        };
        match std::env::var(&name) {
            Ok(url) if !url.is_empty() => Ok(Home::Database(url)),
            _ => Err(Failure::failed("The database address is not set")
                .why(format!("stafette.toml names the environment variable {name}, which is empty"))
                .fix(format!("set {name} to the address of the database, postgres://…"))),
        }
    }

    /// True if it can have any data yet.
    pub(crate) fn exists(&self) -> bool {
        match self {
            Home::File(path) => path.exists(),
            Home::Database(_) => true,
        }
    }

    /// The fix for a damaged one.
    pub(crate) fn mend(&self) -> String {
        let first = match self {
            Home::File(path) => {
                format!("stop the daemon and restore {} from a backup", path.display())
            }
            Home::Database(_) => {
                "have the database's administrator look at it, or restore a backup".to_owned()
            }
        };
        format!(
            "{first} (`stafette state forget` begins anew); without one, `stafette log RUN --json` prints what can be read of a run"
        )
    }
}

/// A store that is open.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    /// The index in the same database, if it is there.
    finder: Option<PostgresFinder>,
}

impl Opened {
    /// The index of texts, for a store whose last event is `head`.
    pub(crate) fn finder(self, state: &Path, head: u64) -> Result<Arc<dyn Finder>, FindError> {
        Ok(match self.finder {
            Some(finder) => Arc::new(finder),
            None => Arc::new(SqliteFinder::open(&state.join(FIND), head)?),
        })
    }
}

/// Opens the project's store, with a fix in the error. A daemon opens it exclusively.
pub(crate) async fn open(project: &Project, daemon: bool) -> Result<Opened, Failure> {
    let note = project.state()?.join(NOTE);
    match Home::of(project)? {
        Home::File(path) => {
            if let Ok(place) = fs::read_to_string(&note) {
                return Err(Failure::failed("The runs of this project are elsewhere")
                    .why(format!("they were kept in {}", place.trim()))
                    .fix(format!(
                        "set {VARIABLE} to its address, or begin anew in a file: remove {}",
                        note.display()
                    )));
            }
            let store = Arc::new(open_file(&path)?);
            Ok(Opened { store, finder: None })
        }
        Home::Database(url) => {
            let options = PostgresOptions { alone: daemon, ..PostgresOptions::default() };
            let store = PostgresStore::open(&url, options).await.map_err(not_opened)?;
            if daemon {
                stafette_disk::write(&note, format!("{}\n", store.place()))
                    .map_err(|error| state::not_written(&note, &error))?;
            }
            let finder = Some(store.finder());
            Ok(Opened { store: Arc::new(store), finder })
        }
    }
}

/// True if there is a store at this path, and it has runs.
pub(crate) async fn has_runs(path: &Path) -> Result<bool, Failure> {
    if !path.exists() {
        return Ok(false);
    }
    let store = open_file(path)?;
    let runs = store.runs(RunFilter { limit: 1, ..RunFilter::default() }).await;
    store.close().await;
    let runs = runs.map_err(|error| unreadable(&error))?;
    Ok(!runs.is_empty())
}

/// The failure for a store that is open and does not answer.
pub(crate) fn unreadable(error: &dyn std::error::Error) -> Failure {
    Failure::failed("Cannot read the store")
        .because(error)
        .fix("see `stafette doctor`, which checks it")
}

fn not_opened(error: ConnectError) -> Failure {
    let fix = match &error {
        ConnectError::Address { .. } => {
            "write it like postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME"
        }
        ConnectError::NotSecured { .. } => {
            "give the server a certificate that this system trusts (SSL_CERT_FILE names others); in \
             a network that you trust, add sslmode=disable to the address"
        }
        ConnectError::Unreachable { .. } => "see whether the server runs, and where",
        ConnectError::NoDatabase { .. } => "make the database with `createdb`",
        ConnectError::NotAllowed { .. } => {
            "correct user and password; the user has to own the schema, or to be allowed to make it"
        }
        ConnectError::NotAStore { .. } => "name another schema, by ?schema=NAME in the address",
        ConnectError::Newer { .. } => "update stafette; this version left the store untouched",
        ConnectError::Taken { .. } => {
            "one daemon works on a database: stop the other one, or give this project a schema of \
             its own, by ?schema=NAME in the address"
        }
        ConnectError::Failed { .. } => "see `stafette doctor`",
    };
    Failure::failed("The store cannot be opened").because(&error).fix(fix)
}

/// Opens a file, with a fix in the error.
pub(crate) fn open_file(path: &Path) -> Result<SqliteStore, Failure> {
    check_kept(path)?;
    let limit = std::env::var("STAFETTE_STORE_MAX_BYTES").ok().and_then(|text| text.parse().ok());
    let plain = Options::default();
    let options = Options { max_bytes: limit.or(plain.max_bytes), ..plain };
    SqliteStore::open(path, options).map_err(|error| {
        let fix = match &error {
            OpenError::Newer { .. } => {
                "update stafette; this version left the store untouched".to_owned()
            }
            OpenError::ReadOnly { .. } => "make the file and its folder writable".to_owned(),
            OpenError::Full { .. } => "make room on the disk".to_owned(),
            OpenError::Busy { .. } => {
                "end the other program that has it open (`fuser` finds it), and try again"
                    .to_owned()
            }
            _ => restore(path),
        };
        Failure::failed("The store cannot be opened").because(&error).fix(fix)
    })
}

/// Refuses to begin a new file where there was one: the index of its texts, which only a daemon with
/// a store makes, is still there.
fn check_kept(path: &Path) -> Result<(), Failure> {
    let is_there = fs::metadata(path).map(|found| found.len() > 0);
    let why = match is_there {
        Ok(true) => return Ok(()),
        Ok(false) => "it is empty",
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "it is not there any more",
        // It is there, and opening it says more.
        Err(_) => return Ok(()),
    };
    match path.with_file_name(FIND).exists() {
        true => Err(Failure::failed("The runs of this project are gone")
            .why(format!("they were in {}, and {why}", path.display()))
            .fix(restore(path))),
        false => Ok(()),
    }
}

/// What to do about a file that is no store any more.
fn restore(path: &Path) -> String {
    format!(
        "stop the daemon and restore {} from a backup; without one, `stafette state forget` puts \
         what is left aside and begins anew",
        path.display()
    )
}
