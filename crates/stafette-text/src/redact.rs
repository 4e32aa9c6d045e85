//! Removes secrets from data before it is stored.
//!
//! It finds tokens with a known shape, private keys, passwords in addresses, values that are
//! assigned to a name like `password`, and the exact values of the environment's own secrets, also
//! in base64 and however addresses, JSON and markup spell them. Each becomes `[redacted:KIND]`. It cannot be complete: a
//! secret that looks like a word stays.
//!
//! Every decision depends on the text so far and on at most [`LOOK`] bytes ahead, so the outcome
//! does not depend on how a stream is split into pieces, and the time is linear. Colours and titles
//! between the letters do not count: the text is judged without them, and they stay. Redacting a
//! second time changes nothing.

mod known;
mod place;
mod shape;
mod shapes;
mod spelt;
mod stream;
mod values;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Map, Value};

use crate::clean;
use known::Known;

pub use stream::Stream;

/// The number of bytes to look ahead before deciding whether a secret begins.
pub const LOOK: usize = 512;

/// The maximum number of bytes to remove for a private key without its end.
const LONGEST_KEY: usize = 16 * 1024;

/// The names of variables whose values are passed on.
#[derive(Clone, Debug, Default)]
pub struct Variables<'a> {
    pub secret: Vec<&'a str>,
    pub passed: Vec<&'a str>,
}

/// Removes secrets from text, bytes and JSON. Cheap to clone; a clone knows what the original
/// learns.
#[derive(Clone, Default)]
pub struct Redactor(Arc<RwLock<Arc<Known>>>);

impl fmt::Debug for Redactor {
    // The values must not leak into a log through the very type that removes them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("values", &self.known().len()).finish()
    }
}

impl Redactor {
    /// Creates a redactor that knows the shapes only.
    pub fn new() -> Redactor {
        Redactor::default()
    }

    /// Creates a redactor that knows these values besides the shapes.
    pub fn knowing<V: AsRef<str>>(values: impl IntoIterator<Item = V>) -> Redactor {
        let redactor = Redactor::new();
        redactor.learn(values);
        redactor
    }

    /// Creates a redactor that knows the secrets among these variables, by their names and by the
    /// look of their values.
    pub fn of_environment<N, V>(variables: impl IntoIterator<Item = (N, V)>) -> Redactor
    where
        N: AsRef<str>,
        V: AsRef<str>,
    {
        let is_secret = |(name, value): &(N, V)| known::is_secret(name.as_ref(), value.as_ref());
        Redactor::knowing(variables.into_iter().filter(is_secret).map(|(_, value)| value))
    }

    /// Learns the values of variables that are passed on: all of those that are named as secrets,
    /// and the others that look like one.
    pub fn learn_variables(&self, named: Variables<'_>, variable: impl Fn(&str) -> Option<String>) {
        let Variables { mut secret, passed } = named;
        secret.extend(passed.iter().filter(|name| is_secret_variable(name)));
        let values = |names: Vec<&str>| names.into_iter().filter_map(&variable).collect::<Vec<_>>();
        let mut all = values(secret);
        all.extend(values(passed).into_iter().filter(|value| known::is_random(value)));
        self.learn(all);
    }

    /// Learns values that are secrets wherever they appear.
    pub fn learn<V: AsRef<str>>(&self, values: impl IntoIterator<Item = V>) {
        let known = self.known();
        let more = values.into_iter().filter(|value| !known.has(value.as_ref()));
        let more: Vec<V> = more.collect();
        if !more.is_empty() {
            let mut known = Known::clone(&known);
            more.iter().for_each(|value| known.learn(value.as_ref()));
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(known);
        }
    }

    fn known(&self) -> Arc<Known> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the text without its secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // Only whole characters are removed, so nothing is lost here.
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Returns the bytes without their secrets.
    pub fn bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let [escape, wide] = clean::ESCAPES;
        if memchr::memchr2(escape, wide, bytes).is_none() {
            return stream::plain(&self.known(), bytes);
        }
        let mut stream = self.stream();
        let mut clean = stream.push(bytes);
        clean.extend(stream.finish());
        if stream.found() == 0 { Cow::Borrowed(bytes) } else { Cow::Owned(clean) }
    }

    /// Removes the secrets from every text in a JSON value, including field names.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.text(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => self.fields(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Removes the secrets from the fields of a JSON object, including their names.
    pub fn fields(&self, fields: &mut Map<String, Value>) {
        let named = ["name", "Name", "key"].iter().find_map(|key| fields.get(*key)?.as_str());
        let named = named.map(str::to_owned);
        for (name, field) in fields.iter_mut() {
            // The name of a value can be a field beside it.
            let is_secret = match named.as_ref().filter(|_| matches!(&**name, "value" | "Value")) {
                Some(beside) => shape::is_named_secret(beside.as_bytes()),
                None => shape::is_secret_name(name.as_bytes()),
            };
            self.field(name, is_secret, field);
        }
        if fields.keys().any(|name| matches!(self.text(name), Cow::Owned(_))) {
            let old = std::mem::take(fields);
            fields.extend(
                old.into_iter().map(|(name, field)| (self.text(&name).into_owned(), field)),
            );
        }
    }

    /// Redacts the value of a field, whose name can say that it is a secret.
    fn field(&self, name: &str, is_secret: bool, field: &mut Value) {
        let is_one = |text: &[u8]| {
            is_secret && shape::is_quoted_secret(text) || shape::is_password(name.as_bytes(), text)
        };
        match field {
            Value::String(text) if is_one(text.as_bytes()) => *text = mark("assignment"),
            Value::Array(items) => {
                items.iter_mut().for_each(|item| self.field(name, is_secret, item));
            }
            other => self.value(other),
        }
    }

    /// Starts a stream whose pieces arrive one after the other.
    #[must_use]
    pub fn stream(&self) -> Stream {
        Stream::new(self.known())
    }
}

fn mark(kind: &str) -> String {
    format!("[redacted:{kind}]")
}

/// True if something was removed from this text.
pub fn is_marked(text: &str) -> bool {
    text.match_indices('[').any(|(at, _)| shape::mark(&text.as_bytes()[at..]).is_some())
}

pub use known::is_secret_variable;

#[cfg(test)]
mod tests;
