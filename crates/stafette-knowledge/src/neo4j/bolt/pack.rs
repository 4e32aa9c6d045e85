//! Values as bytes: PackStream, for the values that JSON has.
//!
//! Of what else there is in a database (dates, points, bytes) the graph keeps nothing; it is an error.

use serde_json::{Map, Number, Value, json};

/// The maximum depth of an answer.
const DEPTH: u8 = 32;

/// The maximum number of values in a message.
const VALUES: usize = 1 << 20;

/// Appends a value. A number that is too large for an integer becomes a float.
pub(super) fn encode(value: &Value, into: &mut Vec<u8>) {
    match value {
        Value::Null => into.push(0xc0),
        Value::Bool(value) => into.push(if *value { 0xc3 } else { 0xc2 }),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => integer(whole, into),
            None => {
                into.push(0xc1);
                into.extend(number.as_f64().unwrap_or(f64::NAN).to_be_bytes());
            }
        },
        Value::String(value) => text(value, into),
        Value::Array(values) => {
            length(values.len(), 0x90, 0xd4, into);
            values.iter().for_each(|value| encode(value, into));
        }
        Value::Object(fields) => {
            length(fields.len(), 0xa0, 0xd8, into);
            for (name, value) in fields {
                text(name, into);
                encode(value, into);
            }
        }
    }
}

/// Appends the header of a structure, which its fields follow.
pub(super) fn structure(signature: u8, fields: u8, into: &mut Vec<u8>) {
    into.extend([0xb0 | fields, signature]);
}

fn integer(value: i64, into: &mut Vec<u8>) {
    if (-16..=127).contains(&value) {
        into.extend((value as i8).to_be_bytes());
    } else if let Ok(value) = i8::try_from(value) {
        into.push(0xc8);
        into.extend(value.to_be_bytes());
    } else if let Ok(value) = i16::try_from(value) {
        into.push(0xc9);
        into.extend(value.to_be_bytes());
    } else if let Ok(value) = i32::try_from(value) {
        into.push(0xca);
        into.extend(value.to_be_bytes());
    } else {
        into.push(0xcb);
        into.extend(value.to_be_bytes());
    }
}

fn text(value: &str, into: &mut Vec<u8>) {
    length(value.len(), 0x80, 0xd0, into);
    into.extend(value.as_bytes());
}

/// Appends a length: in the marker `tiny` if it is small, else behind the first marker of its size.
fn length(length: usize, tiny: u8, sized: u8, into: &mut Vec<u8>) {
    if let small @ 0..16 = length {
        into.push(tiny | small as u8);
    } else if let Ok(length) = u8::try_from(length) {
        into.extend([sized, length]);
    } else if let Ok(length) = u16::try_from(length) {
        into.push(sized + 1);
        into.extend(length.to_be_bytes());
    } else {
        into.push(sized + 2);
        // Nothing that long is sent.
        into.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    }
}

/// What is wrong with a message.
pub(super) type Malformed = &'static str;

/// Reads values from a message. Nothing is reserved that is not there.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    values: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Reader { rest: message, values: 0 }
    }

    /// Reads the header of a structure: its signature, and the number of its fields.
    pub(super) fn structure(&mut self) -> Result<(u8, u8), Malformed> {
        match self.number()? {
            [marker @ 0xb0..=0xbf, signature] => Ok((signature, marker & 0x0f)),
            _ => Err("a message is not a structure"),
        }
    }

    /// Reads a value.
    pub(super) fn value(&mut self) -> Result<Value, Malformed> {
        self.value_at(0)
    }

    /// Checks that nothing is left.
    pub(super) fn end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err("a message is too long") }
    }

    fn value_at(&mut self, depth: u8) -> Result<Value, Malformed> {
        self.values += 1;
        if depth > DEPTH || self.values > VALUES {
            return Err("an answer has too many values");
        }
        let [marker] = self.number()?;
        let tiny = usize::from(marker & 0x0f);
        Ok(match marker {
            0x00..=0x7f | 0xf0..=0xff => json!(marker as i8),
            0x80..=0x8f => Value::String(self.text(tiny)?),
            0x90..=0x9f => self.list(tiny, depth)?,
            0xa0..=0xaf => self.map(tiny, depth)?,
            0xc0 => Value::Null,
            0xc1 => Number::from_f64(f64::from_be_bytes(self.number()?)).into(),
            0xc2 => Value::Bool(false),
            0xc3 => Value::Bool(true),
            0xc8 => json!(i8::from_be_bytes(self.number()?)),
            0xc9 => json!(i16::from_be_bytes(self.number()?)),
            0xca => json!(i32::from_be_bytes(self.number()?)),
            0xcb => json!(i64::from_be_bytes(self.number()?)),
            0xd0..=0xd2 => {
                let length = self.length(marker - 0xd0)?;
                Value::String(self.text(length)?)
            }
            0xd4..=0xd6 => {
                let length = self.length(marker - 0xd4)?;
                self.list(length, depth)?
            }
            0xd8..=0xda => {
                let length = self.length(marker - 0xd8)?;
                self.map(length, depth)?
            }
            _ => return Err("a value has a type that is not expected"),
        })
    }

    fn list(&mut self, length: usize, depth: u8) -> Result<Value, Malformed> {
        let mut values = Vec::new();
        for _ in 0..length {
            values.push(self.value_at(depth + 1)?);
        }
        Ok(Value::Array(values))
    }

    fn map(&mut self, length: usize, depth: u8) -> Result<Value, Malformed> {
        let mut fields = Map::new();
        for _ in 0..length {
            let Value::String(name) = self.value_at(depth + 1)? else {
                return Err("a name is not text");
            };
            fields.insert(name, self.value_at(depth + 1)?);
        }
        Ok(Value::Object(fields))
    }

    fn text(&mut self, length: usize) -> Result<String, Malformed> {
        let bytes = self.bytes(length)?;
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| "a text is not UTF-8")
    }

    fn length(&mut self, size: u8) -> Result<usize, Malformed> {
        Ok(match size {
            0 => usize::from(u8::from_be_bytes(self.number()?)),
            1 => usize::from(u16::from_be_bytes(self.number()?)),
            _ => usize::try_from(u32::from_be_bytes(self.number()?)).unwrap_or(usize::MAX),
        })
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.bytes(N)?.try_into().map_err(|_| "a message is too short")
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or("a message is too short")?;
        self.rest = rest;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(value: &Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(value, &mut bytes);
        bytes
    }

    fn decoded(bytes: &[u8]) -> Result<Value, Malformed> {
        let mut reader = Reader::new(bytes);
        let value = reader.value()?;
        reader.end()?;
        Ok(value)
    }

    fn hex(text: &str) -> Vec<u8> {
        let byte = |word| u8::from_str_radix(word, 16).expect("hexadecimal");
        text.split_whitespace().map(byte).collect()
    }

    /// The examples of the specification.
    #[test]
    fn s1_12_values_are_the_bytes_of_the_specification() {
        let alphabet: String = ('A'..='Z').collect();
        let letters: Map<String, Value> =
            ('A'..='Z').zip(1..).map(|(name, value)| (name.to_string(), json!(value))).collect();
        let pairs =
            ('A'..='Z').zip(1..).map(|(name, value)| format!("81 {:02X} {value:02X}", name as u8));
        let bytes_of = |range: std::ops::RangeInclusive<u8>| {
            range.map(|byte| format!("{byte:02X} ")).collect::<String>()
        };
        for (value, bytes) in [
            (json!(null), "C0".to_owned()),
            (json!(true), "C3".into()),
            (json!(false), "C2".into()),
            (json!(1), "01".into()),
            (json!(42), "2A".into()),
            (json!(-1), "FF".into()),
            (json!(-16), "F0".into()),
            (json!(-17), "C8 EF".into()),
            (json!(128), "C9 00 80".into()),
            (json!(1234), "C9 04 D2".into()),
            (json!(40_000), "CA 00 00 9C 40".into()),
            (json!(i64::MIN), "CB 80 00 00 00 00 00 00 00".into()),
            (json!(i64::MAX), "CB 7F FF FF FF FF FF FF FF".into()),
            (json!(1.23), "C1 3F F3 AE 14 7A E1 47 AE".into()),
            (json!(""), "80".into()),
            (json!("A"), "81 41".into()),
            (json!(alphabet), format!("D0 1A {}", bytes_of(0x41..=0x5a))),
            (
                json!("Größenmaßstäbe"),
                "D0 12 47 72 C3 B6 C3 9F 65 6E 6D 61 C3 9F 73 74 C3 A4 62 65".into(),
            ),
            (json!([]), "90".into()),
            (json!([1, 2, 3]), "93 01 02 03".into()),
            (json!([1, 2.0, "three"]), "93 01 C1 40 00 00 00 00 00 00 00 85 74 68 72 65 65".into()),
            (json!((1..=40).collect::<Vec<_>>()), format!("D4 28 {}", bytes_of(1..=40))),
            (json!({}), "A0".into()),
            (json!({"one": "eins"}), "A1 83 6F 6E 65 84 65 69 6E 73".into()),
            (json!(letters), format!("D8 1A {}", pairs.collect::<Vec<_>>().join(" "))),
        ] {
            assert_eq!(encoded(&value), hex(&bytes), "{value}");
            assert_eq!(decoded(&hex(&bytes)), Ok(value));
        }
    }

    #[test]
    fn s1_12_what_the_graph_does_not_keep_is_an_error() {
        for (bytes, why) in [
            ("", "a message is too short"),
            ("CC 03 01 02 03", "a value has a type that is not expected"),
            ("B3 58 01 02 03", "a value has a type that is not expected"),
            ("D6 FF FF FF FF", "a message is too short"),
            ("D2 FF FF FF FF 41", "a message is too short"),
            ("A1 01 01", "a name is not text"),
            ("81 FF", "a text is not UTF-8"),
            ("01 01", "a message is too long"),
        ] {
            assert_eq!(decoded(&hex(bytes)), Err(why), "{bytes}");
        }
        let deep = vec![0x91; 10_000];
        assert_eq!(decoded(&deep), Err("an answer has too many values"));
        let mut many = vec![0xd6, 0, 0x20, 0, 0];
        many.resize(5 + (2 << 20), 0xc0);
        assert_eq!(decoded(&many), Err("an answer has too many values"));
        assert_eq!(decoded(&hex("C1 7F F8 00 00 00 00 00 00")), Ok(Value::Null), "not a number");
    }

    fn values() -> impl Strategy<Value = Value> {
        let text = "\\PC{0,40}";
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-300..300i64).prop_map(Value::from),
            any::<f64>()
                .prop_filter("JSON has it", |value| value.is_finite())
                .prop_map(Value::from),
            text.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 20, move |inner| {
            let named = prop::collection::vec((text, inner.clone()), 0..20);
            prop_oneof![
                prop::collection::vec(inner, 0..20).prop_map(Value::from),
                named.prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn s1_12_values_survive_the_way(value in values()) {
            prop_assert_eq!(decoded(&encoded(&value)), Ok(value));
        }

        #[test]
        fn s1_12_no_bytes_are_too_much(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decoded(&bytes);
        }
    }
}
