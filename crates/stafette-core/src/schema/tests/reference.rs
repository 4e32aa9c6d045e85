//! `docs/config.md`: the reference of `stafette.toml`, written from the types that read it.

use std::fmt::Write as _;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::Workflow;

/// Set `UPDATE_GOLDEN=1` to write the page again after an intended change.
#[test]
fn s2_01_the_reference_of_stafette_toml_says_what_the_types_say() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md");
    let current = Reference::new().page();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(file, &current).expect("the file can be written");
    }
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    assert!(kept == current, "docs/config.md is out of date: run with UPDATE_GOLDEN=1");
}

const BEGINNING: &str = "\
# Reference of stafette.toml

<!-- Generated from the types in crates/stafette-core/src/workflow.rs; a test compares it. -->

Every key that the file may have. `stafette check` finds mistakes with their line and column, and
`stafette schema workflow` prints the same as a JSON Schema for your editor. A file needs
`[workflow]` and at least one agent; everything else has a default.

How values are written:

- **duration**: `\"30s\"`, `\"1h 30m\"`, `\"7d\"`, or a number of milliseconds
- **money**: US dollars, as a number (`2.5`) or as text (`\"2.50usd\"`)
- **party**: the name of an agent, or `human`, `orchestrator` or `council`
- **quorum**: how many have to agree, such as `\"4 of 5\"`
- **pattern**: a path or a glob within the project, such as `\"src/**\"`
";

/// A place where a table can stand.
#[derive(Clone, Copy)]
enum Form {
    /// `[path]`.
    One,
    /// `[[path]]`.
    Many,
    /// `[path.NAME]`.
    Named,
}

/// A table that is described under a heading of its own.
struct Section {
    path: String,
    form: Form,
    about: String,
    schema: Value,
}

impl Section {
    fn heading(&self) -> String {
        match self.form {
            Form::One => format!("[{}]", self.path),
            Form::Many => format!("[[{}]]", self.path),
            Form::Named => format!("[{}.NAME]", self.path),
        }
    }

    fn link(&self) -> String {
        let heading = self.heading();
        let anchor: String =
            heading.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
        format!("[`{heading}`](#{anchor})")
    }
}

struct Reference {
    root: Value,
    /// The types that have a section, with the links to them.
    described: Vec<(String, String)>,
    /// The choices that were explained.
    explained: Vec<Vec<String>>,
}

impl Reference {
    fn new() -> Self {
        let generator = SchemaSettings::draft2020_12().into_generator();
        let root = generator.into_root_schema_for::<Workflow>();
        Reference { root: root.into(), described: Vec::new(), explained: Vec::new() }
    }

    fn page(mut self) -> String {
        let mut page = BEGINNING.to_owned();
        let root = self.root.clone();
        let sections = properties(&root).into_iter().filter_map(|(name, schema)| {
            let (_, section) = self.section(&name, &name, &schema)?;
            Some(section)
        });
        let sections: Vec<Section> = sections.collect();
        page.push_str("\n| table | |\n|---|---|\n");
        for section in &sections {
            let _ = writeln!(page, "| {} | {} |", section.link(), cell(&section.about));
        }
        for section in sections {
            self.write(&mut page, &section, 2);
        }
        page
    }

    /// Writes a table, and then the tables within it.
    fn write(&mut self, page: &mut String, section: &Section, level: usize) {
        let _ = write!(page, "\n{} `{}`\n\n", "#".repeat(level), section.heading());
        let _ = writeln!(page, "{}", section.about);
        let required = section.schema["required"].as_array().cloned().unwrap_or_default();
        let path = match section.form {
            Form::One | Form::Many => section.path.clone(),
            Form::Named => format!("{}.NAME", section.path),
        };
        let (mut rows, mut words, mut within) = (String::new(), String::new(), Vec::new());
        for (name, schema) in &properties(&section.schema) {
            let kind = match self.section(&format!("{path}.{name}"), name, schema) {
                Some((kind, _)) if self.link(&kind).is_some() => {
                    format!("as {}", self.link(&kind).unwrap_or_default())
                }
                Some((kind, inner)) => {
                    self.described.push((kind, inner.link()));
                    let link = inner.link();
                    within.push(inner);
                    link
                }
                None => self.kind(schema),
            };
            let default = match required.iter().any(|key| *key == *name) {
                true => "required".to_owned(),
                false => self.default(schema),
            };
            let _ = writeln!(
                rows,
                "| `{name}` | {kind} | {default} | {} |",
                cell(about(schema).unwrap_or_default())
            );
            words.push_str(&self.words(name, schema));
        }
        match rows.is_empty() {
            true => {
                let kind = self.kind(&section.schema["additionalProperties"]);
                let _ = writeln!(page, "\nThe keys are names of your own, the values: {kind}.");
            }
            false => {
                let _ = write!(page, "\n| key | value | default | |\n|---|---|---|---|\n{rows}");
            }
        }
        page.push_str(&words);
        for inner in within {
            self.write(page, &inner, level + 1);
        }
    }

    fn link(&self, kind: &str) -> Option<String> {
        let known = self.described.iter().find(|(name, _)| name == kind)?;
        Some(known.1.clone())
    }

    /// The section of a key whose value is a table, and the type of the table.
    fn section(&self, path: &str, name: &str, schema: &Value) -> Option<(String, Section)> {
        let (form, inner) = match self.target(schema) {
            (_, array) if array["items"].is_object() => (Form::Many, array["items"].clone()),
            (_, map) if map["additionalProperties"].is_object() => {
                (Form::Named, map["additionalProperties"].clone())
            }
            _ => (Form::One, schema.clone()),
        };
        let (kind, target) = self.target(&inner);
        let has_keys = !properties(&target).is_empty();
        let (form, target) = match has_keys {
            true => (form, target),
            false => (Form::One, self.target(schema).1),
        };
        // A top-level table stays one, although it has no fixed keys.
        (has_keys || path == name).then(|| {
            let about = about(schema).unwrap_or_default().to_owned();
            (kind, Section { path: path.to_owned(), form, about, schema: target })
        })
    }

    /// The schema behind references and "or nothing", and the name of its type.
    fn target(&self, schema: &Value) -> (String, Value) {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            return (name.to_owned(), self.root["$defs"][name].clone());
        }
        match schema["anyOf"].as_array().map(Vec::as_slice) {
            Some([some, null]) if null["type"] == "null" => self.target(some),
            _ => (String::new(), schema.clone()),
        }
    }

    /// The kind of a value, in a word or two.
    fn kind(&self, schema: &Value) -> String {
        let (name, target) = self.target(schema);
        match name.as_str() {
            "Millis" => return "duration".to_owned(),
            "Usd" => return "money".to_owned(),
            "Party" => return "party".to_owned(),
            "AgentName" => return "agent".to_owned(),
            "Quorum" => return "quorum".to_owned(),
            "Pattern" => return "pattern".to_owned(),
            _ => {}
        }
        if let Some(choices) = choices(&target) {
            return choices
                .iter()
                .map(|(word, _)| format!("`\"{word}\"`"))
                .collect::<Vec<_>>()
                .join(", ");
        }
        if target["items"].is_object() {
            return format!("list: {}", self.kind(&target["items"]));
        }
        if target["additionalProperties"].is_object() {
            return format!("table: {}", self.kind(&target["additionalProperties"]));
        }
        if target["additionalProperties"] == true {
            return "table".to_owned();
        }
        let kind = match &target["type"] {
            Value::Array(kinds) => kinds[0].clone(),
            kind => kind.clone(),
        };
        match kind.as_str() {
            Some("boolean") => "true or false",
            Some("integer" | "number") => "number",
            Some("string") => "text",
            _ => "any value",
        }
        .to_owned()
    }

    fn default(&self, schema: &Value) -> String {
        let (name, target) = self.target(schema);
        let value = match &schema["default"] {
            // A table has its defaults in its own section.
            Value::Object(_) => return String::new(),
            Value::Null if target["type"] == "boolean" => &Value::Bool(false),
            value => value,
        };
        match (value, name.as_str()) {
            (Value::Null, _) => String::new(),
            (Value::Number(millis), "Millis") => {
                format!("`\"{}\"`", duration(millis.as_u64().unwrap_or_default()))
            }
            (value, _) => format!("`{value}`"),
        }
    }

    /// The words that a key can have, with what each means; the same words are explained once.
    fn words(&mut self, name: &str, schema: &Value) -> String {
        let (_, mut target) = self.target(schema);
        if target["items"].is_object() {
            target = self.target(&target["items"]).1;
        }
        let choices = choices(&target).unwrap_or_default();
        let words: Vec<String> = choices.iter().map(|(word, _)| word.clone()).collect();
        if words.is_empty() || self.explained.contains(&words) {
            return String::new();
        }
        self.explained.push(words);
        let mut list = String::new();
        for (word, about) in choices {
            if let Some(about) = about {
                let _ = writeln!(list, "- `{name} = \"{word}\"`: {}", flat(&about));
            }
        }
        if list.is_empty() { list } else { format!("\n{list}") }
    }
}

/// The words of a choice, with their descriptions.
fn choices(schema: &Value) -> Option<Vec<(String, Option<String>)>> {
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(|word| Some((word.as_str()?.to_owned(), None))).collect();
    }
    let mut found = Vec::new();
    for choice in schema["oneOf"].as_array()? {
        match choice["const"].as_str() {
            Some(word) => found.push((word.to_owned(), about(choice).map(str::to_owned))),
            None => found.extend(choices(choice)?),
        }
    }
    Some(found)
}

fn properties(schema: &Value) -> Map<String, Value> {
    schema["properties"].as_object().cloned().unwrap_or_default()
}

fn about(schema: &Value) -> Option<&str> {
    schema["description"].as_str()
}

fn flat(text: &str) -> String {
    text.replace('\n', " ")
}

fn cell(text: &str) -> String {
    flat(text).replace('|', "\\|")
}

/// A duration as it is written in the file.
fn duration(millis: u64) -> String {
    const UNITS: [(u64, &str); 5] =
        [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")];
    let unit = UNITS.iter().find(|(size, _)| millis >= *size && millis.is_multiple_of(*size));
    unit.map_or_else(|| "0s".to_owned(), |(size, name)| format!("{}{name}", millis / size))
}
