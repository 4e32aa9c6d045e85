//! The project's own files, on a disk that keeps only synced data.
//!
//! The engine's own code writes to it. After each of its steps, and between any two of them, all
//! possible contents of the watched file after a power cut are known: for each folder some of the
//! unsynced names, in order, and for each file some of its text.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use stafette_engine::generations::context_file::Disk;

use crate::Sabotage;
use crate::chance::Chance;

/// A disk with one watched file.
#[derive(Debug)]
pub(crate) struct Shelf(RefCell<State>);

#[derive(Debug)]
struct State {
    things: Vec<Thing>,
    watched: Vec<String>,
    /// The possible contents of the watched file after a power cut, at any moment since the last
    /// query.
    seen: BTreeSet<Option<String>>,
    /// The number of steps left before a power cut, if one is planned.
    left: Option<u64>,
    is_off: bool,
    /// True if it reports files as synced although they are not.
    is_lazy: bool,
}

#[derive(Clone, Debug)]
enum Thing {
    Folder { kept: Names, pending: Vec<Naming> },
    File { kept: String, now: String },
}

type Names = BTreeMap<String, usize>;

/// A change of names that is not synced yet.
#[derive(Clone, Debug)]
enum Naming {
    Add(String, usize),
    Remove(String),
    Move(String, String),
}

impl Naming {
    fn apply(&self, names: &mut Names) {
        match self {
            Naming::Add(name, thing) => drop(names.insert(name.clone(), *thing)),
            Naming::Remove(name) => drop(names.remove(name)),
            Naming::Move(from, to) => {
                if let Some(thing) = names.remove(from) {
                    names.insert(to.clone(), thing);
                }
            }
        }
    }
}

/// Returns the names of a folder after some of the changes.
fn names(kept: &Names, pending: &[Naming]) -> Names {
    let mut names = kept.clone();
    pending.iter().for_each(|naming| naming.apply(&mut names));
    names
}

/// Returns the possible contents of a file whose last text was not synced.
fn texts(kept: &str, now: &str) -> Vec<String> {
    if kept == now {
        return vec![now.to_owned()];
    }
    let half = now.chars().take(now.chars().count() / 2).collect();
    vec![kept.to_owned(), half, now.to_owned()]
}

impl State {
    /// Returns all possible contents of `path` below `thing` after a power cut.
    fn images(&self, thing: usize, path: &[String]) -> BTreeSet<Option<String>> {
        match (&self.things[thing], path.split_first()) {
            (Thing::Folder { kept, pending }, Some((name, rest))) => {
                let after = |count| names(kept, &pending[..count]).get(name).copied();
                (0..=pending.len())
                    .flat_map(|count| match after(count) {
                        Some(inner) => self.images(inner, rest),
                        None => BTreeSet::from([None]),
                    })
                    .collect()
            }
            (Thing::File { kept, now }, None) => texts(kept, now).into_iter().map(Some).collect(),
            _ => BTreeSet::from([None]),
        }
    }

    /// True if the folder at `path` below `thing` could exist without an entry of this name.
    fn could_lack(&self, thing: usize, path: &[String], name: &str) -> bool {
        let Thing::Folder { kept, pending } = &self.things[thing] else { return false };
        (0..=pending.len()).any(|count| {
            let names = names(kept, &pending[..count]);
            match path.split_first() {
                Some((folder, rest)) => {
                    names.get(folder).is_some_and(|inner| self.could_lack(*inner, rest, name))
                }
                None => !names.contains_key(name),
            }
        })
    }

    fn names(&self, folder: usize) -> Names {
        match &self.things[folder] {
            Thing::Folder { kept, pending } => names(kept, pending),
            Thing::File { .. } => Names::new(),
        }
    }

    fn add(&mut self, folder: usize, name: &str, thing: Thing) -> io::Result<usize> {
        if self.names(folder).contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.things.push(thing);
        let number = self.things.len() - 1;
        self.rename(folder, Naming::Add(name.to_owned(), number));
        Ok(number)
    }

    fn rename(&mut self, folder: usize, naming: Naming) {
        if let Thing::Folder { pending, .. } = &mut self.things[folder] {
            pending.push(naming);
        }
    }
}

impl Shelf {
    /// Makes an empty disk on which the file at `path` is watched.
    pub(crate) fn new(path: &str, sabotage: Option<Sabotage>) -> Self {
        let root = Thing::Folder { kept: Names::new(), pending: Vec::new() };
        Shelf(RefCell::new(State {
            things: vec![root],
            watched: path.split('/').map(str::to_owned).collect(),
            seen: BTreeSet::new(),
            left: None,
            is_off: false,
            is_lazy: sabotage == Some(Sabotage::LazyDisk),
        }))
    }

    /// Plans a power cut after this many steps of the next writer, or none.
    pub(crate) fn arm(&self, left: Option<u64>) {
        let mut state = self.0.borrow_mut();
        (state.left, state.is_off) = (left, false);
    }

    /// True if a power cut has happened.
    pub(crate) fn is_off(&self) -> bool {
        self.0.borrow().is_off
    }

    /// Returns the possible contents of the watched file after a power cut, at any moment since the
    /// last call.
    pub(crate) fn seen(&self) -> BTreeSet<Option<String>> {
        std::mem::take(&mut self.0.borrow_mut().seen)
    }

    /// Returns the possible contents of the watched file after a power cut now.
    pub(crate) fn images(&self) -> BTreeSet<Option<String>> {
        let state = self.0.borrow();
        state.images(0, &state.watched)
    }

    /// True if the folder of the watched file could exist after a power cut without this entry.
    pub(crate) fn could_lack(&self, name: &str) -> bool {
        let state = self.0.borrow();
        let folders = state.watched.split_last().map_or(&[][..], |(_, folders)| folders);
        state.could_lack(0, folders, name)
    }

    /// Cuts the power: each unsynced change survives or not, by chance.
    pub(crate) fn lose(&self, chance: &mut Chance) {
        for thing in &mut self.0.borrow_mut().things {
            match thing {
                Thing::Folder { kept, pending } => {
                    let through = chance.index(pending.len() + 1);
                    *kept = names(kept, &pending[..through]);
                    pending.clear();
                }
                Thing::File { kept, now } => {
                    let texts = texts(kept, now);
                    let text = chance.pick(&texts).cloned().unwrap_or_default();
                    (*kept, *now) = (text.clone(), text);
                }
            }
        }
    }

    /// Takes one step, unless the power is gone. Records what could be left of it.
    fn step<T>(&self, does: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.0.borrow_mut();
        if state.left == Some(0) {
            state.is_off = true;
        }
        if state.is_off {
            return Err(io::Error::other("cut off"));
        }
        state.left = state.left.map(|left| left - 1);
        let done = does(&mut state);
        let images = state.images(0, &state.watched);
        state.seen.extend(images);
        done
    }
}

impl Disk for Shelf {
    type Folder = usize;
    type File = usize;

    fn project(&self) -> io::Result<usize> {
        self.step(|_| Ok(0))
    }

    fn open(&self, folder: &usize, name: &str) -> io::Result<usize> {
        self.step(|state| {
            state.names(*folder).get(name).copied().ok_or(io::ErrorKind::NotFound.into())
        })
    }

    fn make(&self, folder: &usize, name: &str) -> io::Result<()> {
        let thing = Thing::Folder { kept: Names::new(), pending: Vec::new() };
        self.step(|state| state.add(*folder, name, thing).map(drop))
    }

    fn create(&self, folder: &usize, name: &str) -> io::Result<usize> {
        let thing = Thing::File { kept: String::new(), now: String::new() };
        self.step(|state| state.add(*folder, name, thing))
    }

    fn write(&self, file: &mut usize, text: &str) -> io::Result<()> {
        self.step(|state| {
            if let Thing::File { now, .. } = &mut state.things[*file] {
                now.push_str(text);
            }
            Ok(())
        })
    }

    fn sync(&self, file: &usize) -> io::Result<()> {
        self.step(|state| {
            if let Thing::File { kept, now } = &mut state.things[*file]
                && !state.is_lazy
            {
                kept.clone_from(now);
            }
            Ok(())
        })
    }

    fn rename(&self, folder: &usize, from: &str, to: &str, over: bool) -> io::Result<()> {
        self.step(|state| {
            let names = state.names(*folder);
            match (names.contains_key(from), names.contains_key(to)) {
                (false, _) => Err(io::ErrorKind::NotFound.into()),
                (_, true) if !over => Err(io::ErrorKind::AlreadyExists.into()),
                _ => {
                    state.rename(*folder, Naming::Move(from.to_owned(), to.to_owned()));
                    Ok(())
                }
            }
        })
    }

    fn remove(&self, folder: &usize, name: &str) -> io::Result<()> {
        self.step(|state| {
            if !state.names(*folder).contains_key(name) {
                return Err(io::ErrorKind::NotFound.into());
            }
            state.rename(*folder, Naming::Remove(name.to_owned()));
            Ok(())
        })
    }

    fn sync_names(&self, folder: &usize) -> io::Result<()> {
        self.step(|state| {
            if let Thing::Folder { kept, pending } = &mut state.things[*folder] {
                *kept = names(kept, pending);
                pending.clear();
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a file, and returns its possible contents after a power cut on the way.
    fn could_be(shelf: &Shelf, does: impl FnOnce(&Shelf) -> io::Result<()>) -> Vec<Option<String>> {
        does(shelf).expect("done");
        shelf.seen().into_iter().collect()
    }

    #[test]
    fn what_was_not_synced_may_be_half_there() {
        let shelf = Shelf::new("f", None);
        let could = could_be(&shelf, |shelf| {
            let mut file = shelf.create(&0, ".f.new")?;
            shelf.write(&mut file, "text")?;
            shelf.rename(&0, ".f.new", "f", true)
        });
        let texts = ["", "te", "text"].map(|text| Some(text.to_owned()));
        assert_eq!(could, [&[None][..], &texts].concat());
    }

    #[test]
    fn what_was_synced_before_it_got_its_name_is_whole() {
        let shelf = Shelf::new("f", None);
        let could = could_be(&shelf, |shelf| {
            let mut file = shelf.create(&0, ".f.new")?;
            shelf.write(&mut file, "text")?;
            shelf.sync(&file)?;
            shelf.rename(&0, ".f.new", "f", true)
        });
        assert_eq!(could, [None, Some("text".to_owned())]);
        shelf.sync_names(&0).expect("synced");
        assert_eq!(shelf.images(), BTreeSet::from([Some("text".to_owned())]));
    }
}
