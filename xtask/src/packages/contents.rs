//! What every package carries: the program, its manual, completions, licence and bill of materials.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::archive::Entry;
use super::elf::{self, Glibc, Needs};
use super::sbom;
use super::target::Target;
use crate::shell;

/// The program's path in a prefix such as `/usr/local`.
pub(super) const PROGRAM: &str = "bin/stafette";

/// Completions for these shells, and where they are in a prefix.
pub(super) const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/stafette"),
    ("fish", "share/fish/vendor_completions.d/stafette.fish"),
    ("zsh", "share/zsh/site-functions/_stafette"),
];

/// The folder of the documents in a prefix.
pub(super) const DOCUMENTS: &str = "share/doc/stafette";

/// The files of one target, as they are in a prefix.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) target: &'static Target,
    pub(super) version: String,
    /// What it needs of the machine; nothing, if it is not for Linux.
    pub(super) needs: Needs,
    pub(super) files: Vec<(String, Vec<u8>)>,
}

impl Contents {
    /// Gathers the files. The program is run for its manual and its completions.
    pub(super) fn gather(
        root: &Path,
        target: &'static Target,
        program: &Path,
    ) -> Result<Contents, String> {
        let version = version(root)?;
        let says = said(Command::new(program).arg("--version"))?;
        if says.trim() != format!("stafette {version}") {
            return Err(format!("{} is {}, and this is {version}", program.display(), says.trim()));
        }
        let bytes = read(program)?;
        let needs = elf::needs(&bytes).unwrap_or_default();
        if target.has_glibc() != needs.glibc.is_some() {
            return Err(format!("{} is not for {}", program.display(), target.triple));
        }
        let mut files = vec![(PROGRAM.to_owned(), bytes)];
        for (shell, path) in COMPLETIONS {
            let text = said(Command::new(program).args(["completions", shell]))?;
            files.push((path.to_owned(), text.into_bytes()));
        }
        let pages = tempfile::tempdir().map_err(|error| error.to_string())?;
        said(Command::new(program).arg("man").arg(pages.path()))?;
        for page in fs::read_dir(pages.path()).map_err(|error| error.to_string())? {
            let page = page.map_err(|error| error.to_string())?;
            let name = page.file_name().to_string_lossy().into_owned();
            files.push((format!("share/man/man1/{name}"), read(&page.path())?));
        }
        for name in ["LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md"] {
            files.push((format!("{DOCUMENTS}/{name}"), read(&root.join(name))?));
        }
        let bill = sbom::make(root, target, &version)?;
        files.push((format!("{DOCUMENTS}/{}", sbom::NAME), bill));
        files.push((
            "share/systemd/user/stafette@.service".to_owned(),
            read(&root.join("deploy/stafette@.service"))?,
        ));
        files.sort();
        Ok(Contents { target, version, needs, files })
    }

    /// Returns the files as entries of an archive.
    pub(super) fn entries(&self) -> Vec<Entry<'_>> {
        let entries = self.files.iter();
        entries.map(|(path, bytes)| entry(path.clone(), bytes, path == PROGRAM)).collect()
    }

    /// The glibc that it needs. It is never said to run on an older one than Rust's own library does.
    pub(super) fn glibc(&self) -> Option<Glibc> {
        self.needs.glibc.max(self.target.has_glibc().then_some((2, 17)))
    }

    pub(super) fn get(&self, path: &str) -> &[u8] {
        let found = self.files.iter().find(|(name, _)| name == path);
        found.map(|(_, bytes)| bytes.as_slice()).unwrap_or_default()
    }
}

pub(super) fn entry(path: String, bytes: &[u8], is_program: bool) -> Entry<'_> {
    Entry { path, is_program, bytes }
}

/// Returns the version of the workspace.
pub(super) fn version(root: &Path) -> Result<String, String> {
    let path = root.join("Cargo.toml");
    let manifest = String::from_utf8_lossy(&read(&path)?).parse::<toml::Table>();
    let manifest = manifest.map_err(|error| format!("{}: {error}", path.display()))?;
    let version = manifest.get("workspace").and_then(|workspace| workspace.get("package"));
    let version = version.and_then(|package| package.get("version")).and_then(toml::Value::as_str);
    version.map(str::to_owned).ok_or_else(|| format!("{} has no version", path.display()))
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

fn said(command: &mut Command) -> Result<String, String> {
    shell::output(command).map_err(|error| error.to_string())
}
