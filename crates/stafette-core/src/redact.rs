//! Removes the secrets from everything that arrives at a run, before it is stored.
//!
//! [`Redact`] defines for each type which of its fields are free text; [`Redactor`] cleans them.

/// Says for each of these types which fields are cleaned and which are kept. All of its fields have
/// to be there.
macro_rules! redact {
    ($($type:ident { clean: $($clean:ident),*; keep: $($keep:ident),* })+) => {$(
        impl Redact for $type {
            fn redact(&mut self, redactor: &Redactor) {
                let $type { $($clean,)* $($keep: _,)* } = self;
                $($clean.redact(redactor);)*
                let _ = redactor;
            }
        }
    )+};
}

mod handoffs;
mod inputs;
mod lineage;
mod variables;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::Fields;

pub use stafette_text::redact::{LOOK, Redactor, Stream, Variables, is_marked, is_secret_variable};

/// A type that may contain secrets.
///
/// Free text is cleaned everywhere; agent names, ids, file names, digests and our own keywords stay
/// as they are, because they are used for look-ups. Each type is destructured field by field
/// without `..`, so that adding a field requires a decision about it: see `redact!`.
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

impl<K, T: Redact> Redact for BTreeMap<K, T> {
    fn redact(&mut self, redactor: &Redactor) {
        self.values_mut().for_each(|item| item.redact(redactor));
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

#[cfg(test)]
mod tests;
