//! What belongs to a whole release instead of one system: the checksums, the install script, the
//! Homebrew formula, the container file and the npm package that takes the one that fits.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha256};
use tar::Archive;

use super::contents::read;
use super::sbom::hex;
use super::target::{TARGETS, Target};
use super::{formula, npm, write};

/// The file with the checksums of all others.
pub(super) const CHECKSUMS: &str = "SHA256SUMS";

/// Makes it of the archives that are in a folder, made here or brought there from other machines.
pub(super) fn make(root: &Path, folder: &Path, version: &str) -> Result<(), String> {
    let mut archives: Vec<(&Target, String)> = Vec::new();
    for target in &TARGETS {
        let path = folder.join(format!("{}.tar.gz", target.archive(version)));
        if path.exists() {
            archives.push((target, checksum(&read(&path)?)));
        }
    }
    let Some((first, _)) = archives.first() else {
        return Err(format!("there is no archive of {version} in {}", folder.display()));
    };
    let packages = root.join("deploy/packages");
    let targets: Vec<&Target> = archives.iter().map(|(target, _)| *target).collect();
    let share = share(folder, first, version)?;
    let launcher = read(&packages.join("launcher.js"))?;
    let (name, bytes) = npm::make_launcher(&targets, version, &launcher, &share)?;
    write(folder, &name, &bytes)?;
    write(folder, "stafette.rb", formula::make(version, &archives).as_bytes())?;
    let lines = archives
        .iter()
        .map(|(target, checksum)| format!("{checksum}  {}.tar.gz\n", target.archive(version)));
    let lines: String = lines.collect();
    for name in ["install.sh", "Containerfile"] {
        let text = String::from_utf8_lossy(&read(&packages.join(name))?)
            .replace("@VERSION@", version)
            .replace("@ARCHIVES@", &lines);
        write(folder, name, text.as_bytes())?;
    }
    write(folder, CHECKSUMS, checksums(folder)?.as_bytes())
}

/// The files in `share` of an archive.
fn share(folder: &Path, target: &Target, version: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
    let name = target.archive(version);
    let bytes = read(&folder.join(format!("{name}.tar.gz")))?;
    let unreadable = |error: std::io::Error| format!("{name}.tar.gz: {error}");
    let mut files = Vec::new();
    for file in Archive::new(GzDecoder::new(bytes.as_slice())).entries().map_err(unreadable)? {
        let mut file = file.map_err(unreadable)?;
        let path = file.path().map_err(unreadable)?.to_string_lossy().into_owned();
        let Some(path) = path.strip_prefix(&format!("{name}/share/")) else { continue };
        if !path.is_empty() && !path.ends_with('/') {
            let path = format!("share/{path}");
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(unreadable)?;
            files.push((path, bytes));
        }
    }
    Ok(files)
}

/// The lines of `SHA256SUMS`: all files of a folder, by name.
fn checksums(folder: &Path) -> Result<String, String> {
    let unreadable = |error| format!("{}: {error}", folder.display());
    let mut sums = BTreeMap::new();
    for file in fs::read_dir(folder).map_err(unreadable)? {
        let file = file.map_err(unreadable)?;
        let name = file.file_name().to_string_lossy().into_owned();
        if name != CHECKSUMS {
            sums.insert(name, checksum(&read(&file.path())?));
        }
    }
    Ok(sums.into_iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect())
}

fn checksum(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
