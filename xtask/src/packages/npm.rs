//! The npm packages: one for each system with the program in it, and `stafette`, which takes the one
//! that fits (`npx stafette`).

use serde_json::{Map, Value, json};

use super::archive::tar_gz;
use super::contents::{Contents, DOCUMENTS, PROGRAM, entry};
use super::sbom;
use super::target::Target;

/// The name of the package for a system.
pub(super) fn name(target: &Target) -> String {
    format!("@stafette/{}", target.npm)
}

/// The manifest of the package for a system.
pub(super) fn manifest(target: &Target, version: &str) -> Value {
    let mut manifest = json!({
        "name": name(target),
        "version": version,
        "description": format!("The program of the package stafette, for {}.", target.triple),
        "os": [target.node.0],
        "cpu": [target.node.1],
        "preferUnplugged": true,
    });
    if let Some(libc) = target.libc {
        manifest["libc"] = json!([libc]);
    }
    with_origin(manifest)
}

/// Makes the package for a system: its file's name and its bytes.
pub(super) fn make(contents: &Contents) -> Result<(String, Vec<u8>), String> {
    let Contents { target, version, .. } = contents;
    let manifest = written(&manifest(target, version))?;
    let mut entries = vec![entry("package.json".to_owned(), &manifest, false)];
    for name in ["LICENSE", sbom::NAME] {
        let bytes = contents.get(&format!("{DOCUMENTS}/{name}"));
        entries.push(entry(name.to_owned(), bytes, false));
    }
    entries.push(entry(PROGRAM.to_owned(), contents.get(PROGRAM), true));
    let bytes = tar_gz("package/", &entries).map_err(|error| error.to_string())?;
    Ok((format!("stafette-{}-{version}.tgz", target.npm), bytes))
}

/// The manifest of `stafette`, with the manual pages that npm shows.
pub(super) fn launcher_manifest(targets: &[&Target], version: &str, manual: &[&str]) -> Value {
    let programs = targets.iter().map(|target| (name(target), Value::from(version)));
    with_origin(json!({
        "name": "stafette",
        "version": version,
        "description": "Lets AI agents pass work to each other and to people without losing it.",
        "bin": { "stafette": "launcher.js" },
        "man": manual,
        "engines": { "node": ">=18" },
        "optionalDependencies": programs.collect::<Map<_, _>>(),
    }))
}

/// Makes `stafette` for these systems, with the documents and completions of one of them.
pub(super) fn make_launcher(
    targets: &[&Target],
    version: &str,
    launcher: &[u8],
    share: &[(String, Vec<u8>)],
) -> Result<(String, Vec<u8>), String> {
    let manual = share.iter().map(|(path, _)| path.as_str());
    let manual: Vec<&str> = manual.filter(|path| path.contains("/man1/")).collect();
    let manifest = written(&launcher_manifest(targets, version, &manual))?;
    let mut entries = vec![
        entry("package.json".to_owned(), &manifest, false),
        entry("launcher.js".to_owned(), launcher, true),
    ];
    for (path, bytes) in share {
        // npm wants these two beside the manifest.
        let top = ["LICENSE", "README.md"].into_iter().find(|name| path.ends_with(name));
        entries.push(entry(top.unwrap_or(path).to_owned(), bytes, false));
    }
    let bytes = tar_gz("package/", &entries).map_err(|error| error.to_string())?;
    Ok((format!("stafette-{version}.tgz"), bytes))
}

fn with_origin(mut manifest: Value) -> Value {
    manifest["license"] = "Apache-2.0".into();
    manifest["homepage"] = "https://github.com/stafette/stafette".into();
    manifest["repository"] =
        json!({ "type": "git", "url": "git+https://github.com/stafette/stafette.git" });
    manifest
}

fn written(manifest: &Value) -> Result<Vec<u8>, String> {
    let mut text = serde_json::to_vec_pretty(manifest).map_err(|error| error.to_string())?;
    text.push(b'\n');
    Ok(text)
}
