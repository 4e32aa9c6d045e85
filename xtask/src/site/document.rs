//! A document as a page: its Markdown as HTML, with headings that can be linked to.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::{address, asset, is_page, paint, up};

/// The repository: here, and where readers find it.
pub(super) struct Place {
    pub(super) root: PathBuf,
    pub(super) repository: String,
}

/// A page without what is around it.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) title: String,
    pub(super) html: String,
    pub(super) sections: Vec<Section>,
    /// The pictures that it shows, by their paths in the repository.
    pub(super) pictures: Vec<String>,
}

/// A heading and the text below it.
#[derive(Debug, Default)]
pub(super) struct Section {
    pub(super) level: usize,
    pub(super) id: String,
    pub(super) title: String,
    pub(super) text: String,
}

impl Document {
    /// Reads the text of a document.
    ///
    /// # Errors
    /// If it links to a file that is not there, or has HTML of its own.
    pub(super) fn read(place: &Place, path: &str, text: &str) -> Result<Document, Vec<String>> {
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
        let events: Vec<Event<'_>> = Parser::new_ext(text, options).collect();
        let mut document = Document::default();
        let mut errors = Vec::new();
        let mut shown: Vec<Event<'_>> = Vec::new();
        let mut ids = BTreeMap::new();
        let mut code: Option<(String, String)> = None;
        for (number, event) in events.iter().enumerate() {
            let words = match event {
                Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
                Event::SoftBreak | Event::HardBreak | Event::End(_) => Some(" "),
                _ => None,
            };
            if let (Some(words), Some(section)) = (words, document.sections.last_mut()) {
                section.text.push_str(words);
            }
            match event {
                Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
                    let title = words_until_heading_ends(&events[number..]);
                    let id = unique(&mut ids, slug(&title));
                    let level = *level;
                    if document.title.is_empty() {
                        document.title.clone_from(&title);
                    }
                    shown.push(Event::Start(Tag::Heading {
                        level,
                        id: Some(id.clone().into()),
                        classes: classes.clone(),
                        attrs: attrs.clone(),
                    }));
                    let (level, text) = (level as usize, String::new());
                    document.sections.push(Section { level, id, title, text });
                }
                Event::End(TagEnd::Heading(_)) => {
                    if let Some(Section { id, level, .. }) = document.sections.last_mut()
                        && *level > 1
                    {
                        let mark = format!(
                            "<a class=\"mark\" href=\"#{id}\" aria-label=\"Link to this section\">\
                             #</a>"
                        );
                        shown.push(Event::InlineHtml(mark.into()));
                    }
                    // The words of the heading are its title, not its text.
                    if let Some(section) = document.sections.last_mut() {
                        section.text.clear();
                    }
                    shown.push(event.clone());
                }
                Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                    let dest_url = match place.link(path, dest_url) {
                        Ok(target) => target.into(),
                        Err(error) => {
                            errors.push(error);
                            dest_url.clone()
                        }
                    };
                    let (link_type, title, id) = (*link_type, title.clone(), id.clone());
                    shown.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                }
                Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
                    let file = resolved(path, dest_url);
                    if !place.root.join(&file).is_file() {
                        errors.push(format!("{path}: shows `{dest_url}`, and there is no {file}"));
                    }
                    let target = format!("{}{}", up(&address(path)), asset(&file));
                    document.pictures.push(file);
                    shown.push(Event::Start(Tag::Image {
                        link_type: *link_type,
                        dest_url: target.into(),
                        title: title.clone(),
                        id: id.clone(),
                    }));
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let info = match kind {
                        CodeBlockKind::Fenced(info) => info.to_string(),
                        CodeBlockKind::Indented => String::new(),
                    };
                    code = Some((info, String::new()));
                }
                Event::End(TagEnd::CodeBlock) => {
                    let (info, text) = code.take().unwrap_or_default();
                    shown.push(Event::Html(paint::block(&info, &text).into()));
                }
                Event::Text(text) => match &mut code {
                    Some((_, block)) => block.push_str(text),
                    None => shown.push(event.clone()),
                },
                Event::Start(Tag::Table(_)) => {
                    shown.push(Event::Html(CowStr::Borrowed("<div class=\"wide\">")));
                    shown.push(event.clone());
                }
                Event::End(TagEnd::Table) => {
                    shown.push(event.clone());
                    shown.push(Event::Html(CowStr::Borrowed("</div>\n")));
                }
                Event::Html(html) | Event::InlineHtml(html) => {
                    // Comments are for those who write the document.
                    if !html.starts_with("<!--") {
                        errors.push(format!("{path}: has HTML, write Markdown: {}", html.trim()));
                    }
                }
                // The name of a test breaks between its words.
                Event::Code(text) if text.len() > 24 && text.contains('_') => {
                    let text = escaped(text).replace('_', "_<wbr>");
                    shown.push(Event::InlineHtml(format!("<code>{text}</code>").into()));
                }
                _ => shown.push(event.clone()),
            }
        }
        html::push_html(&mut document.html, shown.into_iter());
        if document.title.is_empty() {
            errors.push(format!("{path}: has no title"));
        }
        if errors.is_empty() { Ok(document) } else { Err(errors) }
    }
}

impl Place {
    /// Returns where a link of a document leads: to a page, or to the repository.
    fn link(&self, from: &str, link: &str) -> Result<String, String> {
        if link.starts_with('#') || link.contains("://") || link.starts_with("mailto:") {
            return Ok(link.to_owned());
        }
        let (file, anchor) = link.split_once('#').map_or((link, ""), |(file, it)| (file, it));
        let target = resolved(from, file);
        let hash = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
        let there = self.root.join(&target);
        if is_page(&target) && there.exists() {
            return Ok(format!("{}{}{hash}", up(&address(from)), address(&target)));
        }
        let kind = if there.is_dir() { "tree" } else { "blob" };
        if !there.exists() {
            return Err(format!("{from}: links to `{link}`, and there is no {target}"));
        }
        Ok(format!("{}/{kind}/main/{target}{hash}", self.repository))
    }
}

/// Returns the path of a link, from the root of the repository.
pub(super) fn resolved(from: &str, link: &str) -> String {
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

fn words_until_heading_ends(events: &[Event<'_>]) -> String {
    let within = events.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let words = within.filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
        Event::SoftBreak => Some(" "),
        _ => None,
    });
    words.collect()
}

/// Returns the anchor of a heading as GitHub makes it, so that links hold there and here.
fn slug(title: &str) -> String {
    let letters = title.trim().chars().flat_map(char::to_lowercase);
    let letters = letters.filter_map(|letter| match letter {
        ' ' => Some('-'),
        letter => (letter.is_alphanumeric() || "-_".contains(letter)).then_some(letter),
    });
    letters.collect()
}

/// The second heading with the same words has `-1` at its end.
fn unique(ids: &mut BTreeMap<String, usize>, slug: String) -> String {
    let count = ids.entry(slug.clone()).or_default();
    *count += 1;
    if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
}

/// Returns text as HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Document, Vec<String>> {
        let place = Place { root: crate::root(), repository: "https://example.com/r".to_owned() };
        Document::read(&place, "docs/a.md", text)
    }

    #[test]
    fn links_lead_to_pages_or_to_the_repository() {
        let text = "# A\n\n[w](why.md#what), [s](../SECURITY.md), [d](adr), [c](../Cargo.toml), \
                    [f](../deploy), [n](https://example.com/) and [h](#a)\n";
        let html = read(text).expect("a page").html;
        let links: Vec<&str> =
            html.split("href=\"").skip(1).filter_map(|it| it.split('"').next()).collect();
        assert_eq!(
            links,
            [
                "why.html#what",
                "security.html",
                "adr/index.html",
                "https://example.com/r/blob/main/Cargo.toml",
                "https://example.com/r/tree/main/deploy",
                "https://example.com/",
                "#a",
            ]
        );
    }

    #[test]
    fn what_is_not_there_is_reported() {
        let errors =
            read("[x](gone.md)\n\n![y](images/gone.png)\n\n<b>z</b>\n").expect_err("errors");
        assert_eq!(errors.len(), 5, "{errors:?}");
        assert_eq!(errors[0], "docs/a.md: links to `gone.md`, and there is no docs/gone.md");
    }

    #[test]
    fn headings_have_the_anchors_that_github_gives_them() {
        let document =
            read("# A `b`\n\nOne.\n\n## `[x.y]` & z\n\nTwo.\n\n## `[x.y]` & z\n").expect("a page");
        let ids: Vec<&str> = document.sections.iter().map(|section| section.id.as_str()).collect();
        assert_eq!(ids, ["a-b", "xy--z", "xy--z-1"]);
        assert_eq!(document.sections[1].text.trim(), "Two.");
        assert_eq!(document.title, "A b");
    }
}
