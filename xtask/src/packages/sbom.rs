//! The bill of materials, in CycloneDX's JSON: what the program is made of.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::contents::read;
use super::target::Target;
use crate::shell;

/// The name of the file.
pub(super) const NAME: &str = "stafette.cdx.json";

/// A tool that builds the page and leaves nothing of itself in it, although npm calls it a dependency.
const BUILDS_THE_PAGE: &str = "vite";

/// Lists the crates that cargo links for this target, and the npm packages in the page.
pub(super) fn make(root: &Path, target: &Target, version: &str) -> Result<Vec<u8>, String> {
    let mut components = crates(root, target)?;
    components.extend(page(root)?);
    let bill = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": format!("stafette@{version}"),
                "name": "stafette",
                "version": version,
                "licenses": [{ "expression": "Apache-2.0" }],
            },
            "properties": [{ "name": "stafette:target", "value": target.triple }],
        },
        "components": components,
    });
    let mut text = serde_json::to_vec_pretty(&bill).map_err(|error| error.to_string())?;
    text.push(b'\n');
    Ok(text)
}

/// The crates that are linked: neither what runs at build time nor what only tests need.
fn crates(root: &Path, target: &Target) -> Result<Vec<Value>, String> {
    let mut tree = shell::cargo(root);
    tree.args(["tree", "--locked", "-p", "stafette", "-e", "normal,no-proc-macro"]);
    tree.args(["--target", target.triple, "--prefix", "none", "--no-dedupe"]);
    tree.args(["--format", "{p}|{l}|{r}"]);
    let tree = shell::output(&mut tree).map_err(|error| error.to_string())?;
    let checksums = checksums(root)?;
    let lines: BTreeSet<&str> = tree.lines().filter(|line| !line.is_empty()).collect();
    let mut components = Vec::new();
    for line in lines {
        let odd = || format!("`cargo tree` says `{line}`");
        let mut fields = line.split('|');
        let mut package = fields.next().ok_or_else(odd)?.split(' ');
        let name = package.next().ok_or_else(odd)?;
        let version = package.next().and_then(|version| version.strip_prefix('v'));
        let version = version.ok_or_else(odd)?;
        // The old way to write it, with a slash.
        let licence = fields.next().unwrap_or_default().split('/').map(str::trim);
        let licence = licence.collect::<Vec<_>>().join(" OR ");
        let repository = fields.next().unwrap_or_default();
        let Some(checksum) = checksums.get(&(name.to_owned(), version.to_owned())) else {
            // One of our own: it is the application itself.
            continue;
        };
        let purl = format!("pkg:cargo/{name}@{version}");
        let mut component = component(name, version, &purl, &licence, ("SHA-256", checksum));
        if !repository.is_empty() {
            let reference = json!({ "type": "vcs", "url": repository });
            component["externalReferences"] = json!([reference]);
        }
        components.push(component);
    }
    Ok(components)
}

/// The checksums in `Cargo.lock`, by name and version. Our own crates have none.
fn checksums(root: &Path) -> Result<BTreeMap<(String, String), String>, String> {
    let lock = String::from_utf8_lossy(&read(&root.join("Cargo.lock"))?).parse::<toml::Table>();
    let lock = lock.map_err(|error| format!("Cargo.lock: {error}"))?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let field = |package: &toml::Value, key: &str| Some(package.get(key)?.as_str()?.to_owned());
    let packages = packages.into_iter().flatten().filter_map(|package| {
        let name = (field(package, "name")?, field(package, "version")?);
        Some((name, field(package, "checksum")?))
    });
    Ok(packages.collect())
}

/// The npm packages that are in the page.
fn page(root: &Path) -> Result<Vec<Value>, String> {
    let lock: Value = serde_json::from_slice(&read(&root.join("web/package-lock.json"))?)
        .map_err(|error| format!("web/package-lock.json: {error}"))?;
    let package = |name: &str| &lock["packages"][format!("node_modules/{name}")];
    let needed = |package: &Value| -> Vec<String> {
        let names = package["dependencies"].as_object().into_iter().flatten();
        names.map(|(name, _)| name.clone()).collect()
    };
    let mut open = needed(&lock["packages"][""]);
    open.retain(|name| name != BUILDS_THE_PAGE);
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        open.extend(needed(package(&name)));
        if seen.len() > 100 {
            return Err("the page's packages go in circles".to_owned());
        }
        seen.insert(name);
    }
    let components = seen.iter().map(|name| {
        let about = package(name);
        let text = |key: &str| about[key].as_str().unwrap_or_default();
        let digest = text("integrity").strip_prefix("sha512-").unwrap_or_default();
        let digest = STANDARD.decode(digest).map_err(|error| format!("{name}: {error}"))?;
        let purl = format!("pkg:npm/{}@{}", name.replace('@', "%40"), text("version"));
        let hash = ("SHA-512", hex(&digest));
        Ok(component(name, text("version"), &purl, text("license"), (hash.0, &hash.1)))
    });
    components.collect()
}

fn component(
    name: &str,
    version: &str,
    purl: &str,
    licence: &str,
    (algorithm, digest): (&str, &str),
) -> Value {
    json!({
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "hashes": [{ "alg": algorithm, "content": digest }],
        "licenses": [{ "expression": licence }],
        "purl": purl,
    })
}

/// Returns bytes as they are written in checksums.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bill_names_what_is_in_the_program() {
        let root = crate::root();
        let target = Target::find("x86_64-unknown-linux-gnu").expect("there is one");
        let bill = make(&root, target, "1.2.3").expect("it is made");
        let bill: Value = serde_json::from_slice(&bill).expect("it is JSON");
        let components = bill["components"].as_array().expect("a list");
        let find = |name: &str| components.iter().find(|component| component["name"] == name);
        let tokio = find("tokio").expect("tokio is linked");
        assert_eq!(tokio["licenses"][0]["expression"], "MIT");
        assert_eq!(tokio["hashes"][0]["content"].as_str().map(str::len), Some(64));
        assert_eq!(find("preact").expect("it is in the page")["hashes"][0]["alg"], "SHA-512");
        for built_with in ["insta", "serde_derive", "cc", "xtask", "stafette-testkit", "vite"] {
            assert_eq!(find(built_with), None, "{built_with} is not in the program");
        }
        for component in components {
            for field in ["name", "version", "purl"] {
                assert_ne!(component[field], "", "{component}");
            }
            let licence = component["licenses"][0]["expression"].as_str().unwrap_or_default();
            assert!(!licence.is_empty() && !licence.contains("  "), "{component}");
        }
        let references: BTreeSet<String> =
            components.iter().map(|component| component["bom-ref"].to_string()).collect();
        assert_eq!(references.len(), components.len(), "each is named once");
    }
}
