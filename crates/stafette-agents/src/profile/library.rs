//! The profiles that there are: built in, the user's, the project's.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use stafette_core::workflow::file::{Diagnostic, render};

use super::Profile;

/// The profiles that come with the program, those that are looked for first at the front.
const BUILT_IN: [(&str, &str); 8] = [
    ("claude", include_str!("../../profiles/claude.toml")),
    ("codex", include_str!("../../profiles/codex.toml")),
    ("gemini", include_str!("../../profiles/gemini.toml")),
    ("opencode", include_str!("../../profiles/opencode.toml")),
    ("qwen", include_str!("../../profiles/qwen.toml")),
    ("goose", include_str!("../../profiles/goose.toml")),
    ("aider", include_str!("../../profiles/aider.toml")),
    ("shell", include_str!("../../profiles/shell.toml")),
];

/// No profile has a longer file.
const LONGEST: u64 = 256 * 1024;

/// The profiles that there are.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Library {
    profiles: BTreeMap<String, Profile>,
    files: BTreeMap<String, PathBuf>,
    broken: Vec<Broken>,
}

/// A file that should be a profile and is none.
#[derive(Clone, PartialEq, Debug)]
pub struct Broken {
    /// Which file.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
    /// What is wrong with it.
    pub mistakes: Vec<Diagnostic>,
}

impl Broken {
    /// What is wrong, as people read it.
    #[must_use]
    pub fn render(&self) -> String {
        let name = self.path.display().to_string();
        self.mistakes.iter().map(|mistake| render(mistake, &name, &self.text)).collect()
    }
}

impl Library {
    /// Those that come with the program.
    #[must_use]
    pub fn built_in() -> Self {
        let mut library = Library::default();
        for (name, text) in BUILT_IN {
            library.add(name, &PathBuf::from(format!("{name}.toml")), text.to_owned());
        }
        library.files.clear();
        library
    }

    /// Those that come with the program, the user's, and those of a project: the later win.
    #[must_use]
    pub fn of(project: Option<&Path>) -> Self {
        let folders = user_folder().into_iter().chain(project.map(|root| root.join("profiles")));
        Library::with(&folders.collect::<Vec<_>>())
    }

    /// Those that come with the program, and those in `folders`: the later win.
    #[must_use]
    pub fn with(folders: &[PathBuf]) -> Self {
        let mut library = Library::built_in();
        for folder in folders {
            let Ok(entries) = fs::read_dir(folder) else { continue };
            let mut paths: Vec<PathBuf> = entries
                .filter_map(|entry| Some(entry.ok()?.path()))
                .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
                .collect();
            paths.sort();
            for path in paths {
                let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
                let short = fs::metadata(&path).is_ok_and(|about| about.len() <= LONGEST);
                match fs::read_to_string(&path) {
                    Ok(text) if short => library.add(name, &path, text),
                    read => {
                        let why = read.err().map(|error| error.to_string());
                        let why = why.unwrap_or_else(|| format!("it is longer than {LONGEST}"));
                        let mistake = Diagnostic::error("unreadable", "", why);
                        library.lose(name, &path, String::new(), vec![mistake]);
                    }
                }
            }
        }
        library
    }

    fn add(&mut self, name: &str, path: &Path, text: String) {
        match Profile::parse(&text) {
            Ok(profile) if profile.name == name => {
                self.profiles.insert(name.to_owned(), profile);
                self.files.insert(name.to_owned(), path.to_owned());
            }
            Ok(profile) => {
                let message = format!("it is called `{}`, but its file `{name}`", profile.name);
                let mistake = Diagnostic::error("wrong-name", "/name", message);
                self.lose(name, path, text, vec![mistake]);
            }
            Err(mistakes) => self.lose(name, path, text, mistakes),
        }
    }

    /// A broken file hides what it was to replace: something else must not run in its place.
    fn lose(&mut self, name: &str, path: &Path, text: String, mistakes: Vec<Diagnostic>) {
        self.profiles.remove(name);
        self.files.remove(name);
        self.broken.push(Broken { path: path.to_owned(), text, mistakes });
    }

    /// The profile of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Profile> {
        self.profiles.get(name)
    }

    /// The file that a profile was read from; none for those that come with the program.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&Path> {
        self.files.get(name).map(PathBuf::as_path)
    }

    /// All of them, the built-in ones first and in their own order.
    pub fn all(&self) -> impl Iterator<Item = &Profile> {
        let built_in = BUILT_IN.iter().filter_map(|(name, _)| self.profiles.get(*name));
        let others = self
            .profiles
            .values()
            .filter(|profile| BUILT_IN.iter().all(|(name, _)| *name != profile.name));
        built_in.chain(others)
    }

    /// The names of all of them.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.all().map(|profile| profile.name.as_str()).collect()
    }

    /// Files that should be profiles and are none.
    #[must_use]
    pub fn broken(&self) -> &[Broken] {
        &self.broken
    }

    /// Those whose program is here. A shell is everywhere, and no agent by itself.
    pub fn installed(&self) -> impl Iterator<Item = &Profile> {
        self.all().filter(|profile| profile.name != "shell" && profile.program().is_some())
    }
}

/// The profiles whose program is here, of all that this user and project have.
#[must_use]
pub fn installed(project: Option<&Path>) -> Vec<Profile> {
    Library::of(project).installed().cloned().collect()
}

/// Where a program is.
#[must_use]
pub fn on_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|file| file.is_file());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Where a user keeps profiles.
fn user_folder() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home)?;
    Some(config.join("stafette/profiles"))
}
