//! The available profiles: built in, the user's, the project's.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use stafette_config::{Diagnostic, render};

use super::Profile;

/// The profiles that come with the program, in the order in which programs are looked for.
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

/// The largest file of a profile, in bytes.
const LONGEST: u64 = 256 * 1024;

/// All profiles that this user and project can name.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Library {
    profiles: BTreeMap<String, Profile>,
    files: BTreeMap<String, PathBuf>,
    broken: Vec<Broken>,
}

/// A file that should be a profile and is invalid.
#[derive(Clone, PartialEq, Debug)]
pub struct Broken {
    pub path: PathBuf,
    /// The content of the file.
    pub text: String,
    pub mistakes: Vec<Diagnostic>,
}

impl Broken {
    /// The mistakes in a form for people.
    pub fn render(&self) -> String {
        let name = self.path.display().to_string();
        self.mistakes.iter().map(|mistake| render(mistake, &name, &self.text)).collect()
    }
}

impl Library {
    /// The profiles that come with the program.
    #[must_use]
    pub fn built_in() -> Self {
        // Every new run asks for them, and reading them anew took longer than all else at its start.
        static READ: LazyLock<Library> = LazyLock::new(|| {
            let mut library = Library::default();
            for (name, text) in BUILT_IN {
                library.add(name, &PathBuf::from(format!("{name}.toml")), text.to_owned());
            }
            library.files.clear();
            library
        });
        READ.clone()
    }

    /// The profiles that come with the program, the user's, and those of a project; later ones win.
    #[must_use]
    pub fn of(project: Option<&Path>) -> Self {
        let folders = user_folder().into_iter().chain(project.map(|root| root.join("profiles")));
        Library::with(&folders.collect::<Vec<_>>())
    }

    /// The profiles that come with the program, and those in `folders`; later ones win.
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
                match stafette_disk::read_text(&path, LONGEST) {
                    Ok(text) => library.add(name, &path, text),
                    Err(error) => {
                        let mistake = Diagnostic::error("unreadable", "", error.to_string());
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

    /// A broken file hides the profile that it was to replace: another one must not run in its
    /// place.
    fn lose(&mut self, name: &str, path: &Path, text: String, mistakes: Vec<Diagnostic>) {
        self.profiles.remove(name);
        self.files.remove(name);
        self.broken.push(Broken { path: path.to_owned(), text, mistakes });
    }

    /// The profile with that name.
    pub fn get(&self, name: &str) -> Option<&Profile> {
        self.profiles.get(name)
    }

    /// The file that a profile was read from; `None` for those that come with the program.
    pub fn file(&self, name: &str) -> Option<&Path> {
        self.files.get(name).map(PathBuf::as_path)
    }

    /// All profiles, the built-in ones first and in their own order.
    pub fn all(&self) -> impl Iterator<Item = &Profile> {
        let built_in = BUILT_IN.iter().filter_map(|(name, _)| self.profiles.get(*name));
        let others = self
            .profiles
            .values()
            .filter(|profile| BUILT_IN.iter().all(|(name, _)| *name != profile.name));
        built_in.chain(others)
    }

    /// The names of all profiles.
    pub fn names(&self) -> Vec<&str> {
        self.all().map(|profile| profile.name.as_str()).collect()
    }

    /// The files that should be profiles and are invalid.
    pub fn broken(&self) -> &[Broken] {
        &self.broken
    }

    /// The profiles whose program is installed. A shell is installed everywhere, and is no agent on
    /// its own.
    pub fn installed(&self) -> impl Iterator<Item = &Profile> {
        self.all().filter(|profile| profile.name != "shell" && profile.program().is_some())
    }
}

/// The path of a program.
pub fn on_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|file| file.is_file());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The folder of a user's profiles.
fn user_folder() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home)?;
    Some(config.join("stafette/profiles"))
}
