//! Reads the XML answers of WebDAV.

use roxmltree::{Document, Node};

use crate::calendar::{CalendarError, check_name};

const DAV: &str = "DAV:";
const CALDAV: &str = "urn:ietf:params:xml:ns:caldav";

/// The properties of one resource, as far as the server granted them.
#[derive(Clone, Debug, Default)]
pub(super) struct Response {
    /// The address of the resource as the server writes it.
    pub(super) href: String,
    /// Property names with their text.
    texts: Vec<(String, String)>,
    /// Property names with the address in them.
    hrefs: Vec<(String, String)>,
    collection: bool,
    calendar: bool,
    /// The components that the collection accepts, if the server lists them.
    components: Vec<String>,
}

impl Response {
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.texts.iter().find(|(found, _)| found == name).map(|(_, text)| text.clone())
    }

    pub(super) fn href_in(&self, name: &str) -> Option<String> {
        self.hrefs.iter().find(|(found, _)| found == name).map(|(_, href)| href.clone())
    }

    pub(super) fn is_calendar(&self) -> bool {
        self.calendar
    }

    pub(super) fn is_collection(&self) -> bool {
        self.collection
    }

    pub(super) fn takes_events(&self) -> bool {
        self.components.is_empty() || self.components.iter().any(|name| name == "VEVENT")
    }

    /// Returns the last part of the address, decoded where that means the same.
    pub(super) fn name(&self) -> Option<String> {
        let last = self.href.trim_end_matches('/').rsplit('/').next()?;
        let plain = decoded(last).filter(|plain| check_name(plain).is_ok());
        Some(plain.unwrap_or_else(|| last.to_owned())).filter(|name| !name.is_empty())
    }
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                bytes.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
                rest = after;
            }
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).ok()
}

fn is(node: &Node, namespace: &str, name: &str) -> bool {
    node.is_element()
        && node.tag_name().name() == name
        && node.tag_name().namespace() == Some(namespace)
}

fn child<'a>(node: Node<'a, 'a>, name: &str) -> Option<Node<'a, 'a>> {
    node.children().find(|child| is(child, DAV, name))
}

pub(super) fn multistatus(text: &str) -> Result<Vec<Response>, CalendarError> {
    let wrong = |why: String| CalendarError::Failed { why };
    // No custom entities: no answer needs them, and they can expand without limit.
    let document = Document::parse(text)
        .map_err(|error| wrong(format!("the server's answer cannot be read: {error}")))?;
    let root = document.root_element();
    if !is(&root, DAV, "multistatus") {
        return Err(wrong("the server's answer is none of WebDAV".to_owned()));
    }
    let responses = root.children().filter(|node| is(node, DAV, "response"));
    Ok(responses.filter_map(response).collect())
}

fn response(node: Node) -> Option<Response> {
    let href = child(node, "href")?.text()?.trim().to_owned();
    let mut response = Response { href, ..Response::default() };
    let granted = |part: &Node| {
        let status = child(*part, "status").and_then(|status| status.text());
        status.is_none_or(|status| status.split_whitespace().nth(1) == Some("200"))
    };
    let parts = node.children().filter(|part| is(part, DAV, "propstat")).filter(granted);
    for property in parts.filter_map(|part| child(part, "prop")).flat_map(|prop| prop.children()) {
        if !property.is_element() {
            continue;
        }
        let name = property.tag_name().name().to_owned();
        match name.as_str() {
            "resourcetype" => {
                response.collection |= child(property, "collection").is_some();
                response.calendar |= property.children().any(|kind| is(&kind, CALDAV, "calendar"));
            }
            "supported-calendar-component-set" => {
                let components = property.children().filter(|part| is(part, CALDAV, "comp"));
                let names = components.filter_map(|part| part.attribute("name"));
                response.components.extend(names.map(str::to_owned));
            }
            _ => {
                if let Some(href) = child(property, "href").and_then(|href| href.text()) {
                    response.hrefs.push((name.clone(), href.trim().to_owned()));
                }
                let text: String = property.children().filter_map(|part| part.text()).collect();
                if !text.is_empty() {
                    response.texts.push((name, text));
                }
            }
        }
    }
    Some(response)
}

pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_14_only_what_was_granted_counts_and_names_are_plain() {
        let text = r#"<?xml version="1.0"?><d:multistatus xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav">
          <d:response><d:href>/x/a%40b.ics</d:href>
            <d:propstat><d:prop><d:getetag>"1"</d:getetag></d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat>
            <d:propstat><d:prop><d:displayname>no</d:displayname></d:prop><d:status>HTTP/1.1 404 Not Found</d:status></d:propstat>
          </d:response>
          <d:response><d:href>/x/odd%2Fname.ics</d:href></d:response></d:multistatus>"#;
        let found = multistatus(text).expect("it reads");
        assert_eq!(found[0].name().as_deref(), Some("a@b.ics"));
        assert_eq!(found[0].text("getetag").as_deref(), Some("\"1\""));
        assert_eq!(found[0].text("displayname"), None);
        assert_eq!(found[1].name().as_deref(), Some("odd%2Fname.ics"));
        assert!(multistatus("<html/>").is_err());
        let bomb = r#"<!DOCTYPE a [<!ENTITY b "c">]><multistatus xmlns="DAV:">&b;</multistatus>"#;
        assert!(multistatus(bomb).is_err(), "no entities");
    }
}
