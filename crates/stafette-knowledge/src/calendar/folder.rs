//! A calendar as a folder of iCalendar files, one entry per file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

use super::content::Component;
use super::{
    Calendar, CalendarError, Changes, Entry, LARGEST_ENTRY, MOST_ENTRIES, Reply, Seen, check_name,
};

/// A folder of `.ics` files. The version of an entry is computed from the content of its file.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    /// Held while this process compares and writes. Changes by other programs are noticed by their
    /// versions; between the check and the rename a race with them remains, as with any folder.
    turn: Arc<Mutex<()>>,
}

type CalendarResult<T> = Result<T, CalendarError>;

impl Folder {
    /// Opens the calendar in this folder, which is created if it is missing.
    pub fn open(path: &Path) -> CalendarResult<Self> {
        fs::create_dir_all(path).map_err(|error| failed(&error))?;
        Ok(Folder { path: path.to_owned(), turn: Arc::default() })
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Folder) -> CalendarResult<T> + Send + 'static,
    ) -> CalendarResult<T> {
        let folder = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let _turn = folder.turn.lock().unwrap_or_else(PoisonError::into_inner);
            work(&folder)
        });
        done.await.unwrap_or_else(|error| Err(CalendarError::Failed { why: error.to_string() }))
    }

    fn read(&self, name: &str) -> CalendarResult<Entry> {
        check_name(name)?;
        let path = self.path.join(name);
        let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let about = match fs::symlink_metadata(&path) {
            Ok(about) => about,
            Err(error) if gone(&error) => {
                return Err(CalendarError::Gone { name: name.to_owned() });
            }
            Err(error) => return Err(failed(&error)),
        };
        let unusable =
            |why: &str| CalendarError::Unusable { name: name.to_owned(), why: why.to_owned() };
        if !about.is_file() {
            return Err(unusable("it is not a plain file"));
        }
        let mut text = String::new();
        // It can have become another one meanwhile.
        let file = stafette_disk::open_itself(&path).map_err(|error| failed(&error))?;
        let limit = LARGEST_ENTRY as u64 + 1;
        file.take(limit).read_to_string(&mut text).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => unusable("it is not UTF-8"),
            _ => failed(&error),
        })?;
        if text.len() > LARGEST_ENTRY {
            return Err(unusable("it is too large"));
        }
        Ok(Entry { name: name.to_owned(), etag: etag(&text), text })
    }

    fn write(&self, name: &str, text: &str, expected: Option<&str>) -> CalendarResult<Entry> {
        check_name(name)?;
        let unusable = |why: String| CalendarError::Unusable { name: name.to_owned(), why };
        if text.len() > LARGEST_ENTRY {
            return Err(unusable("it is too large".to_owned()));
        }
        Component::parse(text).map_err(|error| unusable(error.to_string()))?;
        self.expect(name, expected)?;
        let mut file = tempfile(&self.path.join(format!(".{}.tmp", Uuid::new_v4().simple())))?;
        let whole = file.1.write_all(text.as_bytes()).and_then(|()| file.1.sync_all());
        let placed = whole.and_then(|()| fs::rename(&file.0, self.path.join(name)));
        if let Err(error) = placed {
            let _ = fs::remove_file(&file.0);
            return Err(failed(&error));
        }
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(|e| failed(&e))?;
        Ok(Entry { name: name.to_owned(), etag: etag(text), text: text.to_owned() })
    }

    /// Checks that the entry still has the version that the caller expects.
    fn expect(&self, name: &str, expected: Option<&str>) -> CalendarResult<()> {
        let found = match self.read(name) {
            Ok(entry) => Some(entry.etag),
            Err(CalendarError::Gone { .. }) => None,
            Err(error) => return Err(error),
        };
        match (found, expected) {
            (None, Some(_)) => Err(CalendarError::Gone { name: name.to_owned() }),
            (found, expected) if found.as_deref() == expected => Ok(()),
            _ => Err(CalendarError::Conflict { name: name.to_owned() }),
        }
    }

    fn all(&self, seen: &Seen) -> CalendarResult<Changes> {
        let mut changed = Vec::new();
        let mut etags = BTreeMap::new();
        for file in fs::read_dir(&self.path).map_err(|error| failed(&error))? {
            let file = file.map_err(|error| failed(&error))?;
            let Ok(name) = file.file_name().into_string() else { continue };
            if check_name(&name).is_err() || etags.len() >= MOST_ENTRIES {
                continue;
            }
            // A file that vanishes during the read is skipped, and so is one that is no valid
            // entry.
            if let Ok(entry) = self.read(&name) {
                etags.insert(name.clone(), entry.etag.clone());
                if seen.etags.get(&name) != Some(&entry.etag) {
                    changed.push(entry);
                }
            }
        }
        changed.sort_by(|a, b| a.name.cmp(&b.name));
        let gone = seen.etags.keys().filter(|name| !etags.contains_key(*name));
        let removed = gone.cloned().collect();
        Ok(Changes { changed, removed, seen: Seen { ctag: None, etags } })
    }
}

fn tempfile(path: &Path) -> CalendarResult<(PathBuf, File)> {
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create_new(true).open(path).map_err(|error| failed(&error))?;
    Ok((path.to_owned(), file))
}

fn etag(text: &str) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).simple().to_string()
}

fn failed(error: &io::Error) -> CalendarError {
    CalendarError::Failed { why: error.to_string() }
}

impl Calendar for Folder {
    fn changes<'a>(&'a self, seen: &'a Seen) -> Reply<'a, Changes> {
        let seen = seen.clone();
        Box::pin(self.run(move |folder| folder.all(&seen)))
    }

    fn get<'a>(&'a self, name: &'a str) -> Reply<'a, Entry> {
        let name = name.to_owned();
        Box::pin(self.run(move |folder| folder.read(&name)))
    }

    fn put<'a>(&'a self, name: &'a str, text: &'a str, etag: Option<&'a str>) -> Reply<'a, Entry> {
        let (name, text, etag) = (name.to_owned(), text.to_owned(), etag.map(str::to_owned));
        Box::pin(self.run(move |folder| folder.write(&name, &text, etag.as_deref())))
    }

    fn remove<'a>(&'a self, name: &'a str, etag: &'a str) -> Reply<'a, ()> {
        let (name, etag) = (name.to_owned(), etag.to_owned());
        Box::pin(self.run(move |folder| {
            folder.expect(&name, Some(&etag))?;
            fs::remove_file(folder.path.join(&name)).map_err(|error| failed(&error))
        }))
    }
}
