//! The Python wheel: `uvx stafette`, `pipx run stafette`, `pip install stafette`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::archive::zip;
use super::contents::{Contents, DOCUMENTS, PROGRAM, entry};
use super::sbom;

/// Makes the wheel: its name and its bytes. There is no Python in it: pip puts the program beside
/// Python's own.
pub(super) fn make(contents: &Contents) -> Result<(String, Vec<u8>), String> {
    let version = &contents.version;
    // The platform says which glibc is old enough, and pip refuses to install it on an older one.
    let platform = match contents.glibc() {
        Some((major, minor)) => format!("manylinux_{major}_{minor}_{}", contents.target.wheel),
        None => contents.target.wheel.to_owned(),
    };
    let tag = format!("py3-none-{platform}");
    let about = format!("stafette-{version}.dist-info");
    let readme = String::from_utf8_lossy(contents.get(&format!("{DOCUMENTS}/README.md")));
    let mut files = vec![
        (format!("{about}/METADATA"), metadata(version, &readme).into_bytes()),
        (
            format!("{about}/WHEEL"),
            format!(
                "Wheel-Version: 1.0\nGenerator: cargo xtask dist\nRoot-Is-Purelib: false\nTag: {tag}\n"
            )
            .into_bytes(),
        ),
    ];
    for (path, bytes) in &contents.files {
        let path = match path.strip_prefix(&format!("{DOCUMENTS}/")) {
            _ if path == PROGRAM => format!("stafette-{version}.data/scripts/stafette"),
            Some("LICENSE") => format!("{about}/licenses/LICENSE"),
            Some(name) if name == sbom::NAME => format!("{about}/sboms/{name}"),
            _ => format!("stafette-{version}.data/data/{path}"),
        };
        files.push((path, bytes.clone()));
    }
    files.sort();
    let mut record = String::new();
    for (path, bytes) in &files {
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
        record.push_str(&format!("{path},sha256={digest},{}\n", bytes.len()));
    }
    record.push_str(&format!("{about}/RECORD,,\n"));
    files.push((format!("{about}/RECORD"), record.into_bytes()));
    let entries: Vec<_> = files
        .iter()
        .map(|(path, bytes)| entry(path.clone(), bytes, path.ends_with("scripts/stafette")))
        .collect();
    let bytes = zip(&entries).map_err(|error| error.to_string())?;
    Ok((format!("stafette-{version}-{tag}.whl"), bytes))
}

fn metadata(version: &str, readme: &str) -> String {
    format!(
        "Metadata-Version: 2.4\n\
         Name: stafette\n\
         Version: {version}\n\
         Summary: Lets AI agents pass work to each other and to people without losing it.\n\
         Project-URL: Repository, https://github.com/stafette/stafette\n\
         License-Expression: Apache-2.0\n\
         License-File: LICENSE\n\
         Requires-Python: >=3.8\n\
         Description-Content-Type: text/markdown\n\
         \n\
         {readme}"
    )
}
