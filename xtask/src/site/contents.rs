//! The table of contents: headings and links of `docs/README.md`.

use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};

use super::document::{escaped, resolved};
use super::{CONTENTS, address, is_page, up};

/// The groups of the sidebar, in order.
pub(super) struct Contents {
    groups: Vec<Group>,
}

struct Group {
    title: String,
    entries: Vec<Entry>,
}

struct Entry {
    title: String,
    /// The document, or the folder of documents.
    path: String,
}

impl Contents {
    /// Reads second headings and the links to pages below them.
    pub(super) fn read(text: &str) -> Contents {
        let mut groups: Vec<Group> = Vec::new();
        let mut words: Option<String> = None;
        let mut target = None;
        for event in Parser::new(text) {
            match event {
                Event::Start(Tag::Heading { level: HeadingLevel::H2, .. }) => {
                    words = Some(String::new());
                }
                Event::Start(Tag::Link { dest_url, .. }) => {
                    words = Some(String::new());
                    target = Some(resolved(CONTENTS, &dest_url));
                }
                Event::Text(text) | Event::Code(text) => {
                    if let Some(words) = &mut words {
                        words.push_str(&text);
                    }
                }
                Event::End(TagEnd::Heading(HeadingLevel::H2)) => {
                    let title = words.take().unwrap_or_default();
                    groups.push(Group { title, entries: Vec::new() });
                }
                Event::End(TagEnd::Link) => {
                    let title = words.take().unwrap_or_default();
                    let path = target.take().unwrap_or_default();
                    if let Some(group) = groups.last_mut().filter(|_| is_page(&path)) {
                        group.entries.push(Entry { title, path });
                    }
                }
                _ => {}
            }
        }
        Contents { groups }
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.groups.iter().flat_map(|group| &group.entries)
    }

    /// Returns the place of a document in the order of the contents; those that are not in it come last.
    pub(super) fn place(&self, path: &str) -> usize {
        self.entries().position(|entry| entry.path == path).unwrap_or(usize::MAX)
    }

    /// Returns documents that nobody finds, as complaints.
    pub(super) fn gaps<'a>(&self, paths: impl Iterator<Item = &'a String>) -> Vec<String> {
        let is_listed = |path: &str| self.entries().any(|entry| entry.path == path);
        let others = ["docs/index.md", CONTENTS];
        paths
            .filter(|path| !path.starts_with("docs/adr/") && !others.contains(&path.as_str()))
            .filter(|path| !is_listed(path))
            .map(|path| format!("{CONTENTS}: has no link to {path}"))
            .collect()
    }

    /// Returns the sidebar of a page.
    pub(super) fn sidebar(&self, path: &str) -> String {
        let up = up(&address(path));
        let mut html = String::new();
        for group in &self.groups {
            html.push_str(&format!("<h2>{}</h2>\n<ul>\n", escaped(&group.title)));
            for entry in &group.entries {
                let is_here =
                    entry.path == path || entry.path == "docs/adr" && path.starts_with("docs/adr/");
                let here = if is_here { " aria-current=\"page\"" } else { "" };
                html.push_str(&format!(
                    "<li><a href=\"{up}{}\"{here}>{}</a>\n",
                    address(&entry.path),
                    escaped(&entry.title)
                ));
            }
            html.push_str("</ul>\n");
        }
        html
    }

    /// Returns the links to the page before and the page after, in the order of the sidebar.
    pub(super) fn around(&self, path: &str) -> String {
        let entries: Vec<&Entry> = self.entries().collect();
        let here = self.place(path);
        if here == usize::MAX {
            return String::new();
        }
        let up = up(&address(path));
        let link = |at: Option<usize>, class: &str| {
            at.and_then(|at| entries.get(at)).map_or_else(String::new, |entry| {
                let (address, title) = (address(&entry.path), escaped(&entry.title));
                format!("<a rel=\"{class}\" href=\"{up}{address}\">{title}</a>\n")
            })
        };
        link(here.checked_sub(1), "prev") + &link(Some(here + 1), "next")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_contents_is_the_sidebar() {
        let contents = Contents::read(
            "# Docs\n\n[no](no.md)\n\n## Start\n\n1. [Why](why.md): x, see [code](../crates)\n\n\
             ## More\n\n- [Decisions](adr)\n- [Security](../SECURITY.md)\n",
        );
        let of = |path: &str| contents.sidebar(path).lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(of("docs/why.md")[2], "<li><a href=\"why.html\" aria-current=\"page\">Why</a>");
        assert_eq!(
            of("docs/adr/0001-a.md")[6],
            "<li><a href=\"../adr/index.html\" aria-current=\"page\">Decisions</a>"
        );
        assert_eq!(
            contents.around("docs/why.md"),
            "<a rel=\"next\" href=\"adr/index.html\">Decisions</a>\n"
        );
        let paths = ["docs/why.md".to_owned(), "docs/lost.md".to_owned()];
        assert_eq!(contents.gaps(paths.iter()), ["docs/README.md: has no link to docs/lost.md"]);
    }
}
