//! The built site, read as a browser reads it: every link and picture is there, anchors included,
//! and nothing is loaded from elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use super::document::resolved;

/// Returns what is broken, one line each.
pub(super) fn check(site: &Path) -> io::Result<Vec<String>> {
    let mut files = BTreeMap::new();
    read(site, "", &mut files)?;
    let ids: BTreeMap<&str, BTreeSet<&str>> = files
        .iter()
        .map(|(name, text)| (name.as_str(), values(text, " id=\"").into_iter().collect()))
        .collect();
    let mut findings = BTreeSet::new();
    for (name, text) in files.iter().filter(|(name, _)| name.ends_with(".html")) {
        for source in values(text, " src=\"") {
            if source.contains("//") || !files.contains_key(&resolved(name, source)) {
                findings.insert(format!("{name}: shows `{source}`, which is not of the site"));
            }
        }
        for link in values(text, " href=\"") {
            let is_outside =
                ["https://", "http://", "mailto:"].iter().any(|it| link.starts_with(it));
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { name.clone() } else { resolved(name, file) };
            let lacks = match ids.get(target.as_str()) {
                _ if is_outside => continue,
                None => "which is not there",
                Some(ids) if anchor.is_empty() || ids.contains(anchor) => continue,
                Some(_) => "which has no such heading",
            };
            findings.insert(format!("{name}: links to `{link}`, {lacks}"));
        }
    }
    for (name, text) in files.iter().filter(|(name, _)| name.ends_with(".css")) {
        if text.contains("url(") || text.contains("@import") {
            findings.insert(format!("{name}: loads something else"));
        }
    }
    Ok(findings.into_iter().collect())
}

fn read(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            read(&entry.path(), &format!("{name}/"), files)?;
        } else {
            // A picture is not text, and has no links.
            files.insert(name, fs::read_to_string(entry.path()).unwrap_or_default());
        }
    }
    Ok(())
}

/// Returns the values of an attribute.
fn values<'a>(text: &'a str, attribute: &str) -> Vec<&'a str> {
    text.split(attribute).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_links_and_strangers_are_found() {
        let site = std::env::temp_dir().join(format!("stafette-site-{}", std::process::id()));
        fs::create_dir_all(site.join("adr")).expect("a folder");
        let page = "<h1 id=\"one\">x</h1><a href=\"#one\"><a href=\"adr/b.html#gone\">\
                    <a href=\"c.html\"><a href=\"https://example.com\"><img src=\"//cdn/x.png\">";
        fs::write(site.join("a.html"), page).expect("written");
        fs::write(site.join("adr/b.html"), "<a href=\"../a.html#one\">").expect("written");
        let findings = check(&site).expect("read");
        fs::remove_dir_all(&site).expect("removed");
        assert_eq!(
            findings,
            [
                "a.html: links to `adr/b.html#gone`, which has no such heading",
                "a.html: links to `c.html`, which is not there",
                "a.html: shows `//cdn/x.png`, which is not of the site",
            ]
        );
    }
}
