//! Single values of the dialects, kept exactly as written.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;
use uuid::Uuid;

use stafette_model::{Millis, Time};

/// The version of the handoff schema and of the message envelope.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Version {
    /// Version 1.0.0, the only one.
    #[default]
    #[serde(rename = "1.0.0")]
    V1,
}

/// An RFC 3339 time. The text is kept: `…:00Z` and `…:00.000+00:00` are the same time, but not the
/// same document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stamp(pub String);

impl Stamp {
    /// Returns the time, if the text is a valid one.
    pub fn time(&self) -> Option<Time> {
        Time::parse(&self.0)
    }
}

impl From<Time> for Stamp {
    fn from(time: Time) -> Self {
        Stamp(time.rfc3339())
    }
}

/// A UUID of any version, in its original spelling.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Id(pub String);

impl From<Uuid> for Id {
    fn from(uuid: Uuid) -> Self {
        Id(uuid.to_string())
    }
}

/// The literal `false`: an agent that asks for a handoff cannot handle the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct False;

impl Serialize for False {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(false)
    }
}

impl<'de> Deserialize<'de> for False {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match bool::deserialize(deserializer)? {
            false => Ok(False),
            true => Err(D::Error::invalid_value(Unexpected::Bool(true), &"false")),
        }
    }
}

/// A count: a whole number from 0. `3` and `3.0` are the same count, but not the same document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Count(pub Number);

impl Count {
    /// Returns the count; the nearest one if the number is not a whole one.
    pub fn get(&self) -> u64 {
        whole(&self.0)
    }
}

impl From<u64> for Count {
    fn from(n: u64) -> Self {
        Count(n.into())
    }
}

/// An amount: a number from 0, such as milliseconds or dollars.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Measure(pub Number);

impl Measure {
    /// Returns the amount as a number.
    pub fn get(&self) -> f64 {
        self.0.as_f64().unwrap_or_default()
    }

    /// Returns the amount as milliseconds, rounded.
    pub fn millis(&self) -> Millis {
        Millis(whole(&self.0))
    }
}

impl From<Millis> for Measure {
    fn from(span: Millis) -> Self {
        Measure(span.0.into())
    }
}

/// A share, such as a confidence: a number from 0 to 1.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Share(pub Number);

fn whole(number: &Number) -> u64 {
    // A float that is out of range becomes the nearest end of the range.
    number.as_u64().unwrap_or_else(|| number.as_f64().unwrap_or_default().round() as u64)
}

macro_rules! inline_schema {
    ($($type:ident: $schema:tt),+ $(,)?) => {$(
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )+};
}

inline_schema! {
    Stamp: { "type": "string", "format": "date-time" },
    Id: { "type": "string", "format": "uuid" },
    False: { "type": "boolean", "const": false },
    Count: { "type": "integer", "minimum": 0 },
    Measure: { "type": "number", "minimum": 0 },
    Share: { "type": "number", "minimum": 0, "maximum": 1 },
}
