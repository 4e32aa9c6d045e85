//! The documentation as a site of plain files, from the Markdown that the repository shows as well.
//!
//! `docs/README.md` is the table of contents, there and in the sidebar. What is built is then read
//! again by `site/whole.rs`: every link leads somewhere, and nothing comes from elsewhere.

mod contents;
mod document;
mod paint;
mod whole;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use serde_json::json;

use contents::Contents;
use document::{Document, Place};

pub(crate) use document::escaped;

/// Documents outside of `docs/` that are pages too.
const ROOT_PAGES: [&str; 4] = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];

/// The folder of the template, the style and the script.
const PARTS: &str = "docs/site";

/// The table of contents.
const CONTENTS: &str = "docs/README.md";

/// The list of decisions, which is made from their titles.
const DECISIONS: &str = "docs/adr/README.md";

/// Builds the site into `target/site` and checks it.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let start = Instant::now();
    let into = root.join("target/site");
    let pages = build(root, &into)?;
    let findings = whole::check(&into).map_err(|error| format!("{}: {error}", into.display()))?;
    findings.iter().for_each(|finding| eprintln!("{finding}"));
    if !findings.is_empty() {
        return Err(format!("{} links of the site lead nowhere", findings.len()));
    }
    let time = start.elapsed().as_secs_f64();
    eprintln!("{pages} pages in {}/index.html, {time:.1} s", into.display());
    Ok(())
}

/// Writes all pages; returns how many.
fn build(root: &Path, into: &Path) -> Result<usize, String> {
    let texts = texts(root)?;
    let place = Place { root: root.to_owned(), repository: repository(root)? };
    let mut errors = Vec::new();
    let mut documents = BTreeMap::new();
    for (path, text) in &texts {
        match Document::read(&place, path, text) {
            Ok(document) => drop(documents.insert(path.as_str(), document)),
            Err(mut wrong) => errors.append(&mut wrong),
        }
    }
    let contents = Contents::read(texts.get(CONTENTS).map_or("", String::as_str));
    errors.extend(contents.gaps(texts.keys()));
    if !errors.is_empty() {
        return Err(errors.join("\n"));
    }
    let told = |error: io::Error| format!("the site cannot be written: {error}");
    if into.exists() {
        fs::remove_dir_all(into).map_err(told)?;
    }
    let template = read(root, &format!("{PARTS}/page.html"))?;
    for (path, document) in &documents {
        let page = page(&place, &template, &contents, path, document);
        write(into, &address(path), page.as_bytes()).map_err(told)?;
        for picture in &document.pictures {
            let bytes = fs::read(root.join(picture)).map_err(told)?;
            write(into, &asset(picture), &bytes).map_err(told)?;
        }
    }
    for part in ["style.css", "site.js", "icon.svg"] {
        write(into, part, &fs::read(root.join(PARTS).join(part)).map_err(told)?).map_err(told)?;
    }
    write(into, "search.js", index(&documents, &contents).as_bytes()).map_err(told)?;
    Ok(documents.len())
}

/// Returns the text of every document that becomes a page, by its path.
fn texts(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut texts = BTreeMap::new();
    for folder in ["docs", "docs/adr"] {
        let entries = fs::read_dir(root.join(folder)).map_err(|error| format!("{folder}: {error}"));
        for entry in entries?.filter_map(Result::ok) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".md") {
                let path = format!("{folder}/{name}");
                texts.insert(path.clone(), read(root, &path)?);
            }
        }
    }
    for path in ROOT_PAGES {
        texts.insert(path.to_owned(), read(root, path)?);
    }
    let decisions: String = texts
        .iter()
        .filter(|(path, _)| path.starts_with("docs/adr/"))
        .filter_map(|(path, text)| {
            let (name, title) = (path.rsplit('/').next()?, text.lines().next()?);
            Some(format!("- [{}]({name})\n", title.trim_start_matches("# ")))
        })
        .collect();
    let head = "# Decisions\n\nWhy Stafette is built as it is, one page for each decision: context, \
                decision, consequences.\n\n";
    texts.insert(DECISIONS.to_owned(), format!("{head}{decisions}"));
    Ok(texts)
}

fn read(root: &Path, path: &str) -> Result<String, String> {
    fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))
}

/// Returns the address of the repository, from the workspace's manifest.
fn repository(root: &Path) -> Result<String, String> {
    let manifest: toml::Table =
        read(root, "Cargo.toml")?.parse().map_err(|error| format!("Cargo.toml: {error}"))?;
    let package = manifest.get("workspace").and_then(|it| it.get("package"));
    let repository = package.and_then(|it| it.get("repository")).and_then(toml::Value::as_str);
    repository.map(str::to_owned).ok_or_else(|| "Cargo.toml names no repository".to_owned())
}

/// True if the document, or the folder, is a page of the site.
fn is_page(path: &str) -> bool {
    let is_document = |folder: &str| {
        let name = path.strip_prefix(folder).and_then(|rest| rest.strip_suffix(".md"));
        name.is_some_and(|name| !name.contains('/'))
    };
    ROOT_PAGES.contains(&path)
        || path == "docs/adr"
        || is_document("docs/")
        || is_document("docs/adr/")
}

/// Returns the file of a page in the site.
fn address(path: &str) -> String {
    match path {
        CONTENTS => "contents.html".to_owned(),
        DECISIONS | "docs/adr" => "adr/index.html".to_owned(),
        path => {
            let name =
                path.strip_prefix("docs/").map_or_else(|| path.to_lowercase(), str::to_owned);
            format!("{}.html", name.trim_end_matches(".md"))
        }
    }
}

/// Returns the file of a picture in the site.
fn asset(path: &str) -> String {
    path.trim_start_matches("docs/").to_owned()
}

/// Returns the way back to the top of the site, from a page.
fn up(address: &str) -> String {
    "../".repeat(address.matches('/').count())
}

fn write(into: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let file = into.join(name);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, bytes)
}

/// Puts a document into the template.
fn page(
    place: &Place,
    template: &str,
    contents: &Contents,
    path: &str,
    document: &Document,
) -> String {
    let address = address(path);
    let headings: String = document
        .sections
        .iter()
        .filter(|section| section.level == 2)
        .map(|section| format!("<li><a href=\"#{}\">{}</a>", section.id, escaped(&section.title)))
        .collect();
    let source = format!("{}/blob/main/{path}", place.repository);
    let values = [
        ("{title}", escaped(&document.title)),
        ("{kind}", if path == "docs/index.md" { "home" } else { "text" }.to_owned()),
        ("{up}", up(&address)),
        ("{sidebar}", contents.sidebar(path)),
        ("{headings}", headings),
        ("{around}", contents.around(path)),
        ("{repository}", place.repository.clone()),
        ("{source}", if path == DECISIONS { place.repository.clone() } else { source }),
        // Last, so that nothing within a document is taken for a place of the template.
        ("{body}", document.html.clone()),
    ];
    values.iter().fold(template.to_owned(), |page, (name, value)| page.replace(name, value))
}

/// Returns the script with everything that can be searched for, one entry for each section. What is
/// found is in this order where nothing else decides: that of the contents, and decisions at the end.
fn index(documents: &BTreeMap<&str, Document>, contents: &Contents) -> String {
    let mut pages: Vec<_> =
        documents.iter().filter(|(path, _)| **path != "docs/index.md").collect();
    pages.sort_by_key(|(path, _)| contents.place(path));
    let entries: Vec<_> = pages
        .into_iter()
        .flat_map(|(path, document)| {
            document.sections.iter().map(move |section| {
                let anchor = if section.level == 1 { "" } else { section.id.as_str() };
                json!([document.title, section.title, address(path), anchor, section.text])
            })
        })
        .collect();
    format!("window.stafetteSearch = {}\n", json!(entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_has_an_address() {
        assert_eq!(address("docs/index.md"), "index.html");
        assert_eq!(address("docs/README.md"), "contents.html");
        assert_eq!(address("docs/why.md"), "why.html");
        assert_eq!(address("docs/adr"), "adr/index.html");
        assert_eq!(address("docs/adr/0001-events.md"), "adr/0001-events.html");
        assert_eq!(address("SECURITY.md"), "security.html");
        assert!(is_page("docs/adr") && is_page("docs/adr/0001-a.md") && is_page("SECURITY.md"));
        assert!(
            !is_page("README.md") && !is_page("docs/openapi.json") && !is_page("plugin/README.md")
        );
        assert_eq!(up("adr/index.html"), "../");
    }

    #[test]
    fn the_site_of_this_repository_is_whole() {
        let into = crate::root().join("target/site-test");
        build(&crate::root(), &into).unwrap_or_else(|error| panic!("\n{error}\n"));
        let findings = whole::check(&into).expect("the site can be read");
        assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
    }
}
