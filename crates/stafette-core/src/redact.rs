//! Removes secrets from data before it is stored.
//!
//! It finds tokens with a known shape, private keys, passwords in addresses, values that are
//! assigned to a name like `password`, and the exact values of the environment's own secrets, also
//! in base64 and as part of an address. Each becomes `[redacted:KIND]`. It cannot be complete: a
//! secret that looks like a word stays.
//!
//! Every decision depends on the text so far and on at most [`LOOK`] bytes ahead, so the outcome
//! does not depend on how a stream is split into pieces, and the time is linear. Colours and titles
//! between the letters do not count: the text is judged without them, and they stay. Redacting a
//! second time changes nothing.
//!
//! [`Redact`] defines for each type that arrives at a run which of its fields are free text.

mod handoffs;
mod inputs;
mod known;
mod lineage;
mod shape;
mod shapes;
mod stream;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use crate::{Fields, Workflow, clean};
use known::Known;

pub use stream::Stream;

/// The number of bytes to look ahead before deciding whether a secret begins.
pub const LOOK: usize = 512;

/// The maximum number of bytes to remove for a private key without its end.
const LONGEST_KEY: usize = 16 * 1024;

/// A type that may contain secrets.
///
/// Free text is cleaned everywhere; agent names, ids, file names, digests and our own keywords stay
/// as they are, because they are used for look-ups. Each type is destructured field by field
/// without `..`, so that adding a field requires a decision about it.
pub trait Redact {
    /// Removes the secrets in place.
    fn redact(&mut self, redactor: &Redactor);
}

impl Redact for String {
    fn redact(&mut self, redactor: &Redactor) {
        if let Cow::Owned(clean) = redactor.text(self) {
            *self = clean;
        }
    }
}

impl<T: Redact> Redact for Option<T> {
    fn redact(&mut self, redactor: &Redactor) {
        if let Some(inner) = self {
            inner.redact(redactor);
        }
    }
}

impl<T: Redact> Redact for Vec<T> {
    fn redact(&mut self, redactor: &Redactor) {
        self.iter_mut().for_each(|item| item.redact(redactor));
    }
}

impl<T: Redact + ?Sized> Redact for Box<T> {
    fn redact(&mut self, redactor: &Redactor) {
        (**self).redact(redactor);
    }
}

impl Redact for Value {
    fn redact(&mut self, redactor: &Redactor) {
        redactor.value(self);
    }
}

impl Redact for Fields {
    fn redact(&mut self, redactor: &Redactor) {
        redactor.fields(self);
    }
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
    #[must_use]
    pub fn new() -> Redactor {
        Redactor::default()
    }

    /// Creates a redactor that knows these values besides the shapes.
    #[must_use]
    pub fn knowing<V: AsRef<str>>(values: impl IntoIterator<Item = V>) -> Redactor {
        let redactor = Redactor::new();
        redactor.learn(values);
        redactor
    }

    /// Creates a redactor that knows the secrets among these variables, by their names and by the
    /// look of their values.
    #[must_use]
    pub fn of_environment<N, V>(variables: impl IntoIterator<Item = (N, V)>) -> Redactor
    where
        N: AsRef<str>,
        V: AsRef<str>,
    {
        let is_secret = |(name, value): &(N, V)| known::is_secret(name.as_ref(), value.as_ref());
        Redactor::knowing(variables.into_iter().filter(is_secret).map(|(_, value)| value))
    }

    /// Learns the values of the variables that a workflow gives to agents, hooks and servers.
    pub fn learn_variables(&self, of: &Workflow, variable: impl Fn(&str) -> Option<String>) {
        self.learn(known::injected(of, variable));
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
    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // Only whole characters are removed, so nothing is lost here.
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Returns the bytes without their secrets.
    #[must_use]
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
            Value::String(text) => text.redact(self),
            Value::Array(items) => items.redact(self),
            Value::Object(fields) => self.fields(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn fields(&self, fields: &mut Fields) {
        for (name, field) in fields.iter_mut() {
            self.field(name, field);
        }
        if fields.keys().any(|name| matches!(self.text(name), Cow::Owned(_))) {
            let old = std::mem::take(fields);
            fields.extend(
                old.into_iter().map(|(name, field)| (self.text(&name).into_owned(), field)),
            );
        }
    }

    fn field(&self, name: &str, field: &mut Value) {
        match field {
            Value::String(text) if shape::is_assigned_secret(name, text) => {
                *text = mark("assignment");
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.field(name, item)),
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
#[must_use]
pub fn is_marked(text: &str) -> bool {
    text.match_indices('[').any(|(at, _)| shape::mark(&text.as_bytes()[at..]).is_some())
}

pub use known::is_secret_variable;

#[cfg(test)]
mod tests;
