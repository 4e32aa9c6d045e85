//! Links between documents lead to a file, and to a heading that is there.

use std::path::{Component, Path};

use super::Finding;
use super::tree::{File, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let documents = tree.files.iter().filter(|file| file.is_ours() && is_document(file));
    documents
        .flat_map(|file| {
            links(&file.text).into_iter().filter_map(|(line, link)| {
                let message = broken(tree, file, &link)?;
                Some(Finding::new(&file.path, line, message))
            })
        })
        .collect()
}

fn is_document(file: &File) -> bool {
    file.has_ending(&["md"]) || file.path == "llms.txt"
}

/// The lines of a document that are not code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The targets of all links, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        found.extend(targets.map(|(target, _)| (number, target.to_owned())));
    }
    found
}

fn broken(tree: &Tree, file: &File, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => file.path.clone(),
        path => resolved(&file.path, path),
    };
    let is_folder = || tree.files.iter().any(|file| file.path.starts_with(&format!("{target}/")));
    let Some(document) = tree.get(&target) else {
        return (!is_folder()).then(|| format!("links to `{link}`, and there is no `{target}`"));
    };
    let has_heading = || prose(&document.text).any(|(_, line)| is_heading(line, anchor));
    (!anchor.is_empty() && is_document(document) && !has_heading())
        .then(|| format!("links to `{link}`, and `{target}` has no such heading"))
}

/// The path of a link, from the root of the tree.
fn resolved(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(name) => parts.extend(name.to_str()),
            _ => {}
        }
    }
    parts.join("/")
}

/// True if the line is the heading that the anchor names, as GitHub makes anchors.
fn is_heading(line: &str, anchor: &str) -> bool {
    let Some(title) = line.trim_start_matches('#').strip_prefix(' ') else { return false };
    let title = title.trim().to_lowercase();
    let slug = title.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        letter => (letter.is_alphanumeric() || "-_".contains(letter)).then_some(letter),
    });
    line.starts_with('#') && slug.eq(anchor.chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let tree = Tree::of([
            ("README.md", "# Read me\n"),
            ("docs/a.md", text),
            ("docs/b.md", "# One\n\n## `[knowledge.neo4j]`\n"),
        ]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_lead_somewhere() {
        let good = "[b](b.md), [b](b.md#one), [c](b.md#knowledgeneo4j), [r](../README.md), [d](../docs)\n\
            [net](https://example.com/x.md) and [here](#there)\n\n# There\n";
        assert_eq!(told(good), Vec::<String>::new());
        assert_eq!(
            told("x\n[c](c.md)\n[b](b.md#two)\n"),
            [
                "docs/a.md:2: links to `c.md`, and there is no `docs/c.md`",
                "docs/a.md:3: links to `b.md#two`, and `docs/b.md` has no such heading",
            ]
        );
        assert_eq!(told("```sh\n[c](c.md)\n```\n"), Vec::<String>::new());
    }
}
