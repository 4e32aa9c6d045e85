//! The position of each value in a file.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// The position of each value in a file, by JSON pointer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spans {
    places: BTreeMap<String, Place>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Place {
    key: Option<Range<usize>>,
    value: Range<usize>,
}

impl Spans {
    pub(super) fn of(table: &DeTable<'_>) -> Self {
        let mut spans = Spans::default();
        spans.enter(table, "");
        spans
    }

    fn enter(&mut self, table: &DeTable<'_>, path: &str) {
        for (key, value) in table {
            let path = child(path, key.get_ref());
            self.note(&path, Some(key.span()), value.span());
            self.descend(value.get_ref(), &path);
        }
    }

    fn descend(&mut self, value: &DeValue<'_>, path: &str) {
        match value {
            DeValue::Table(table) => self.enter(table, path),
            DeValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let path = format!("{path}/{index}");
                    self.note(&path, None, item.span());
                    self.descend(item.get_ref(), &path);
                }
            }
            _ => {}
        }
    }

    fn note(&mut self, path: &str, key: Option<Range<usize>>, value: Range<usize>) {
        self.places.insert(path.to_owned(), Place { key, value });
    }

    /// Returns the position of a value, or of its parent if the file leaves it out.
    pub fn value(&self, path: &str) -> Option<Range<usize>> {
        self.nearest(path).map(|place| place.value.clone())
    }

    /// Returns the position of a value's key, or of the value if it has none.
    pub fn key(&self, path: &str) -> Option<Range<usize>> {
        self.nearest(path).map(|place| place.key.clone().unwrap_or(place.value.clone()))
    }

    fn nearest(&self, mut path: &str) -> Option<&Place> {
        loop {
            if let Some(place) = self.places.get(path) {
                return Some(place);
            }
            path = &path[..path.rfind('/')?];
        }
    }

    /// Returns the pointer of the value at a position, to name what a parser complains about.
    pub(super) fn path_at(&self, span: &Range<usize>) -> String {
        let hit = |at: &Range<usize>| at.start <= span.start && span.end <= at.end;
        self.places
            .iter()
            .filter_map(|(path, place)| {
                let both = place.key.iter().chain([&place.value]);
                both.filter(|at| hit(at)).map(|at| at.len()).min().map(|size| (size, path))
            })
            .min_by_key(|(size, path)| (*size, std::cmp::Reverse(path.len())))
            .map_or_else(String::new, |(_, path)| path.clone())
    }
}

/// Returns the pointer of a value in a table.
pub fn child(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}
