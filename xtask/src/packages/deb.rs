//! The package for Debian and what comes from it.

use std::io;

use super::archive::{Entry, ar, gz, tar_gz};
use super::contents::{Contents, DOCUMENTS, PROGRAM, entry};

/// Makes the package: its name and its bytes. It is `None` where there is no such Debian.
pub(super) fn make(contents: &Contents) -> Result<Option<(String, Vec<u8>)>, String> {
    let Some(architecture) = contents.target.debian else { return Ok(None) };
    let name = format!("stafette_{}_{architecture}.deb", contents.version);
    let files = files(contents).map_err(|error| error.to_string())?;
    let control = control(contents, architecture, &files)?;
    let control = [entry("control".to_owned(), control.as_bytes(), false)];
    let files: Vec<Entry<'_>> = files
        .iter()
        .map(|(path, bytes)| entry(path.clone(), bytes, path.ends_with(PROGRAM)))
        .collect();
    let pack = |entries| tar_gz("./", entries).map_err(|error| error.to_string());
    let (control, files) = (pack(&control)?, pack(&files)?);
    let members = [
        ("debian-binary", b"2.0\n".as_slice()),
        ("control.tar.gz", &control),
        ("data.tar.gz", &files),
    ];
    Ok(Some((name, ar(&members))))
}

/// The files where Debian wants them.
fn files(contents: &Contents) -> io::Result<Vec<(String, Vec<u8>)>> {
    let place = |(path, bytes): &(String, Vec<u8>)| {
        let path = format!("usr/{path}");
        Ok(if path.contains("/man1/") {
            (format!("{path}.gz"), gz(bytes)?)
        } else if path.ends_with("LICENSE") {
            (format!("usr/{DOCUMENTS}/copyright"), bytes.clone())
        } else {
            let path = path.replace("/site-functions/", "/vendor-completions/");
            (path.replace("share/systemd/", "lib/systemd/"), bytes.clone())
        })
    };
    contents.files.iter().map(place).collect()
}

fn control(
    contents: &Contents,
    architecture: &str,
    files: &[(String, Vec<u8>)],
) -> Result<String, String> {
    let size = files.iter().map(|(_, bytes)| bytes.len().div_ceil(1024)).sum::<usize>();
    Ok(format!(
        "Package: stafette\n\
         Version: {}\n\
         Architecture: {architecture}\n\
         Maintainer: The authors of Stafette <https://github.com/stafette/stafette/issues>\n\
         Installed-Size: {size}\n\
         Depends: {}\n\
         Recommends: git\n\
         Section: devel\n\
         Priority: optional\n\
         Homepage: https://github.com/stafette/stafette\n\
         Description: lets AI agents pass work to each other and to people\n \
         Any command can be an agent. A handoff is checked before it moves anything\n \
         and stored before anything acts on it, and what only a person can decide\n \
         waits in an inbox.\n",
        contents.version,
        depends(contents)?,
    ))
}

/// The packages that have the libraries that the program wants.
fn depends(contents: &Contents) -> Result<String, String> {
    let (major, minor) = contents.glibc().unwrap_or_default();
    let mut packages = vec![format!("libc6 (>= {major}.{minor})")];
    for library in &contents.needs.libraries {
        let name = library.split(".so").next().unwrap_or(library);
        match name {
            "libgcc_s" => packages.push("libgcc-s1".to_owned()),
            "libc" | "libm" | "libdl" | "librt" | "libpthread" => {}
            name if name.starts_with("ld-linux") => {}
            _ => return Err(format!("no package is known that has {library}")),
        }
    }
    Ok(packages.join(", "))
}
