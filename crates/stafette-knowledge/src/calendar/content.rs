//! iCalendar text (RFC 5545, section 3): lines, properties and components, read and written without
//! losing anything that is not understood.

use std::fmt::Write as _;

use thiserror::Error;

/// The deepest nesting of components.
const DEEPEST: usize = 8;

/// The text is not valid iCalendar.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("line {line}: {why}")]
pub struct ContentError {
    /// The number of the folded line, from 1.
    pub line: usize,
    /// The reason, in a sentence.
    pub why: String,
}

/// A property of a component: `NAME;PARAM=value:value`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Property {
    /// The name in capitals.
    pub name: String,
    /// The parameters in their order; names in capitals, values without quotes.
    pub params: Vec<(String, String)>,
    /// The value as it is written, still escaped.
    pub value: String,
}

impl Property {
    /// Makes a property without parameters.
    #[must_use]
    pub fn new(name: &str, value: impl Into<String>) -> Self {
        Property { name: name.to_owned(), params: Vec::new(), value: value.into() }
    }

    /// Makes a property whose value is text, and escapes it.
    #[must_use]
    pub fn text(name: &str, text: &str) -> Self {
        Property::new(name, escape(text))
    }

    /// Returns the value of a parameter.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// A component: `BEGIN:NAME` to `END:NAME`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Component {
    /// The name in capitals.
    pub name: String,
    /// The properties in their order.
    pub properties: Vec<Property>,
    /// The nested components, in their order.
    pub components: Vec<Component>,
}

impl Component {
    /// Makes an empty component.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Component { name: name.to_owned(), ..Component::default() }
    }

    /// Parses one component.
    ///
    /// # Errors
    /// Names the line that cannot be read.
    pub fn parse(text: &str) -> Result<Self, ContentError> {
        let mut open: Vec<Component> = Vec::new();
        for (line, content) in unfolded(text) {
            let wrong = |why: &str| ContentError { line, why: why.to_owned() };
            let property = property(&content).ok_or_else(|| wrong("this is no property"))?;
            match property.name.as_str() {
                "BEGIN" if open.len() == DEEPEST => return Err(wrong("it is nested too deeply")),
                "BEGIN" => open.push(Component::new(&property.value.trim().to_ascii_uppercase())),
                "END" => {
                    let done = open.pop().ok_or_else(|| wrong("nothing was begun"))?;
                    if !done.name.eq_ignore_ascii_case(property.value.trim()) {
                        return Err(wrong(&format!("{} is still open", done.name)));
                    }
                    match open.last_mut() {
                        Some(parent) => parent.components.push(done),
                        None => return Ok(done),
                    }
                }
                _ => match open.last_mut() {
                    Some(component) => component.properties.push(property),
                    None => return Err(wrong("nothing was begun")),
                },
            }
        }
        let line = text.lines().count();
        Err(ContentError { line, why: "it ends before it is complete".to_owned() })
    }

    /// Returns the first property with this name.
    pub fn property(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|property| property.name == name)
    }

    /// Returns all properties with this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Property> {
        self.properties.iter().filter(move |property| property.name == name)
    }

    /// Returns the unescaped text of a property.
    pub fn text(&self, name: &str) -> Option<String> {
        self.property(name).map(|property| unescape(&property.value))
    }

    /// Replaces all properties of this name by one.
    pub fn set(&mut self, property: Property) {
        let place = self.properties.iter().position(|found| found.name == property.name);
        self.properties.retain(|found| found.name != property.name);
        let place = place.unwrap_or(self.properties.len()).min(self.properties.len());
        self.properties.insert(place, property);
    }

    /// Writes the component, folded at 75 bytes and with the line ends that the standard requires.
    pub fn print(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        fold(&format!("BEGIN:{}", self.name), out);
        for property in &self.properties {
            let mut line = property.name.clone();
            for (name, value) in &property.params {
                let quote = if value.contains([':', ';', ',']) { "\"" } else { "" };
                let _ = write!(line, ";{name}={quote}{value}{quote}");
            }
            let _ = write!(line, ":{}", property.value);
            fold(&line, out);
        }
        for component in &self.components {
            component.write(out);
        }
        fold(&format!("END:{}", self.name), out);
    }
}

/// Joins folded lines; each is numbered by where it begins.
fn unfolded(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (number, line) in (1..).zip(text.split('\n')) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        match (line.strip_prefix([' ', '\t']), lines.last_mut()) {
            (Some(more), Some((_, last))) => last.push_str(more),
            _ if line.is_empty() => {}
            _ => lines.push((number, line.to_owned())),
        }
    }
    lines
}

fn property(line: &str) -> Option<Property> {
    let mut quoted = false;
    let mut parts = Vec::new();
    let mut begin = 0;
    let mut value = None;
    for (at, c) in line.char_indices() {
        match c {
            '"' => quoted = !quoted,
            ';' if !quoted => {
                parts.push(&line[begin..at]);
                begin = at + 1;
            }
            ':' if !quoted => {
                parts.push(&line[begin..at]);
                value = Some(&line[at + 1..]);
                break;
            }
            _ => {}
        }
    }
    let (name, params) = parts.split_first()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if name.is_empty() || !name.chars().all(plain) {
        return None;
    }
    let params = params.iter().map(|param| {
        let (name, value) = param.split_once('=')?;
        Some((name.to_ascii_uppercase(), value.trim_matches('"').to_owned()))
    });
    Some(Property {
        // Some programs write a group in front: `item1.DTSTART`.
        name: name.rsplit('.').next().unwrap_or(name).to_ascii_uppercase(),
        params: params.collect::<Option<_>>()?,
        value: value?.to_owned(),
    })
}

fn fold(line: &str, out: &mut String) {
    let mut width = 0;
    for c in line.chars() {
        if width + c.len_utf8() > 75 {
            out.push_str("\r\n ");
            width = 1;
        }
        out.push(c);
        width += c.len_utf8();
    }
    out.push_str("\r\n");
}

/// Escapes text for use as a value.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | ';' | ',' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() && c != '\t' => {}
            c => out.push(c),
        }
    }
    out
}

/// Turns an escaped value back into text.
pub fn unescape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n' | 'N') => out.push('\n'),
                Some(other) => out.push(other),
                None => {}
            },
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn s1_14_what_is_not_understood_is_written_back() {
        let text = "BEGIN:VCALENDAR\r\nX-ODD;A=\"b:c\";D=e:f\\,g\r\nBEGIN:VEVENT\r\n\
                    SUMMARY:Lo\r\n ng\\nline\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
        let read = Component::parse(text).expect("it reads");
        assert_eq!(read.components[0].text("SUMMARY").as_deref(), Some("Long\nline"));
        assert_eq!(read.properties[0].param("A"), Some("b:c"));
        assert_eq!(Component::parse(&read.print()), Ok(read));
    }

    #[test]
    fn s1_14_text_that_is_none_is_refused_with_its_line() {
        let line = |text: &str| Component::parse(text).expect_err("refused").line;
        assert_eq!(line("BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR\n"), 3);
        assert_eq!(line("hello"), 1);
        assert_eq!(line("BEGIN:A\nX:1\n"), 2);
        assert_eq!(line(&"BEGIN:A\n".repeat(50)), 9);
    }

    proptest! {
        #[test]
        fn s1_14_any_text_survives_a_property(text in "[^\\p{Cc}]{0,200}|(a|\\n|;|,|\\\\|é){0,99}") {
            let mut event = Component::new("VEVENT");
            event.properties.push(Property::text("SUMMARY", &text));
            let printed = event.print();
            prop_assert!(printed.lines().all(|line| line.len() <= 75));
            let read = Component::parse(&printed).expect("it reads");
            prop_assert_eq!(read.text("SUMMARY"), Some(text));
        }

        #[test]
        fn s1_14_no_text_breaks_the_reader(text in "(BEGIN:|END:|A|;|=|:|\"|\\r?\\n| ){0,60}") {
            let _ = Component::parse(&text);
        }
    }
}
