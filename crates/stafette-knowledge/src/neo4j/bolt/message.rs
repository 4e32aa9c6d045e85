//! What is said over Bolt: the handshake, requests, and the answers to them.

use serde_json::{Value, json};
use stafette_core::Fields;

use super::pack::{self, Malformed, Reader};
use super::{BoltError, Login};

/// The first bytes: what is spoken, and the versions 5.8 to 5.0 and 4.4.
pub(super) const HANDSHAKE: [u8; 20] =
    [0x60, 0x60, 0xb0, 0x17, 0, 8, 8, 5, 0, 0, 4, 4, 0, 0, 0, 0, 0, 0, 0, 0];

/// A version of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Version {
    major: u8,
    minor: u8,
}

/// Reads the server's answer to the handshake.
pub(super) fn version(answer: [u8; 4]) -> Result<Version, BoltError> {
    match answer {
        [0, 0, minor @ 0..=8, 5] => Ok(Version { major: 5, minor }),
        [0, 0, 4, 4] => Ok(Version { major: 4, minor: 4 }),
        [0, 0, 0, 0] => Err(BoltError::Strange("the server knows neither version 4.4 nor 5")),
        [b'H', b'T', b'T', b'P'] => {
            Err(BoltError::Strange("the server speaks HTTP here; Bolt has another port"))
        }
        _ => Err(BoltError::Strange("the server does not answer the handshake")),
    }
}

/// A request.
#[derive(Debug)]
pub(super) enum Request<'a> {
    Hello(Value),
    Logon(Value),
    Begin {
        database: Option<&'a str>,
    },
    Run {
        text: &'a str,
        with: &'a Value,
    },
    /// Asks for some more rows.
    Pull,
    Commit,
    /// Ends whatever is going on; an open transaction is rolled back.
    Reset,
}

/// The number of rows to ask for at once.
const ROWS: u16 = 1000;

/// The requests that open a connection: since 5.1, who asks is a request of its own.
pub(super) fn opening(version: Version, login: &Login) -> Vec<Request<'static>> {
    let name = concat!("stafette/", env!("CARGO_PKG_VERSION"));
    let auth = json!({"scheme": "basic", "principal": login.user, "credentials": login.password});
    let mut hello = json!({"user_agent": name});
    if version < (Version { major: 5, minor: 1 }) {
        let (Value::Object(hello), Value::Object(auth)) = (&mut hello, auth) else { return vec![] };
        hello.extend(auth);
        return vec![Request::Hello(Value::Object(std::mem::take(hello)))];
    }
    if version >= (Version { major: 5, minor: 3 }) {
        hello["bolt_agent"] = json!({"product": name});
    }
    vec![Request::Hello(hello), Request::Logon(auth)]
}

impl Request<'_> {
    /// Returns the request as a message.
    pub(super) fn to_message(&self) -> Vec<u8> {
        let empty = json!({});
        match self {
            Request::Hello(extra) => message(0x01, &[extra]),
            Request::Logon(auth) => message(0x6a, &[auth]),
            Request::Begin { database: None } => message(0x11, &[&empty]),
            Request::Begin { database: Some(name) } => message(0x11, &[&json!({"db": name})]),
            Request::Run { text, with } => message(0x10, &[&json!(text), with, &empty]),
            Request::Pull => message(0x3f, &[&json!({"n": ROWS})]),
            Request::Commit => message(0x12, &[]),
            Request::Reset => message(0x0f, &[]),
        }
    }
}

fn message(signature: u8, fields: &[&Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    pack::structure(signature, fields.len() as u8, &mut bytes);
    fields.iter().for_each(|value| pack::encode(value, &mut bytes));
    bytes
}

/// Cuts a message into the chunks that are sent.
pub(super) fn chunks(message: &[u8], into: &mut Vec<u8>) {
    for chunk in message.chunks(usize::from(u16::MAX)) {
        into.extend((chunk.len() as u16).to_be_bytes());
        into.extend(chunk);
    }
    into.extend([0, 0]);
}

/// An answer.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum BoltAnswer {
    Success(Fields),
    Record(Vec<Value>),
    /// An earlier request has failed.
    Ignored,
    Failure {
        code: String,
        message: String,
    },
}

/// Reads a message of the server.
pub(super) fn answer(message: &[u8]) -> Result<BoltAnswer, Malformed> {
    let mut reader = Reader::new(message);
    let (signature, fields) = reader.structure()?;
    let value = match fields {
        0 => Value::Null,
        1 => reader.value()?,
        _ => return Err("an answer has too many fields"),
    };
    reader.end()?;
    match (signature, value) {
        (0x70, Value::Object(said)) => Ok(BoltAnswer::Success(said)),
        (0x71, Value::Array(values)) => Ok(BoltAnswer::Record(values)),
        (0x7e, _) => Ok(BoltAnswer::Ignored),
        (0x7f, Value::Object(said)) => {
            let text = |name: &str| said.get(name).and_then(Value::as_str);
            // It has another name since 5.7.
            let code = text("neo4j_code").or(text("code")).unwrap_or_default().to_owned();
            let message = text("message").unwrap_or_default().to_owned();
            Ok(BoltAnswer::Failure { code, message })
        }
        _ => Err("an answer is none that Bolt has"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(answer: [u8; 4]) -> Vec<Vec<u8>> {
        let login = Login { user: "neo4j".into(), password: "p".into(), database: None };
        let version = version(answer).expect("a version");
        opening(version, &login).iter().map(Request::to_message).collect()
    }

    #[test]
    fn s1_12_the_handshake_offers_two_versions_and_understands_every_answer() {
        assert_eq!(opened([0, 0, 4, 4]).len(), 1);
        assert_eq!(opened([0, 0, 0, 5]).len(), 1);
        assert_eq!(opened([0, 0, 1, 5]).len(), 2);
        assert!(
            opened([0, 0, 8, 5])[0].len() > opened([0, 0, 2, 5])[0].len(),
            "names itself twice"
        );
        for (answer, why) in [
            (*b"HTTP", "another port"),
            ([0, 0, 0, 0], "neither version"),
            ([0, 0, 9, 5], "the handshake"),
            ([0, 0, 1, 0xff], "the handshake"),
        ] {
            let error = version(answer).expect_err("refused").to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn s1_12_requests_are_the_bytes_of_the_specification() {
        let run = Request::Run { text: "RETURN 1 AS num", with: &json!({}) };
        let mut expected = vec![0xb3, 0x10, 0x8f];
        expected.extend(b"RETURN 1 AS num\xa0\xa0");
        assert_eq!(run.to_message(), expected);
        assert_eq!(Request::Pull.to_message(), b"\xb1\x3f\xa1\x81n\xc9\x03\xe8");
        assert_eq!(Request::Begin { database: None }.to_message(), [0xb1, 0x11, 0xa0]);
        let begin = Request::Begin { database: Some("x") }.to_message();
        assert_eq!(begin, b"\xb1\x11\xa1\x82db\x81x");
        assert_eq!(Request::Commit.to_message(), [0xb0, 0x12]);
        assert_eq!(Request::Reset.to_message(), [0xb0, 0x0f]);
        assert_eq!(opened([0, 0, 2, 5])[1][..2], [0xb1, 0x6a]);
    }

    #[test]
    fn s1_12_messages_are_cut_into_chunks() {
        let cut = |message: &[u8]| {
            let mut bytes = Vec::new();
            chunks(message, &mut bytes);
            bytes
        };
        let sixteen: Vec<u8> = (0..16).collect();
        assert_eq!(cut(&sixteen), [&[0, 16], &sixteen[..], &[0, 0]].concat());
        let long = vec![7; 65_537];
        let expected = [&[0xff, 0xff], &long[..65_535], &[0, 2, 7, 7, 0, 0]].concat();
        assert_eq!(cut(&long), expected);
    }

    #[test]
    fn s1_12_answers_are_told_apart() {
        let said = json!({"has_more": true});
        let told = said.as_object().expect("fields").clone();
        assert_eq!(answer(&message(0x70, &[&said])), Ok(BoltAnswer::Success(told)));
        let row = json!([1, "two"]);
        assert_eq!(
            answer(&message(0x71, &[&row])),
            Ok(BoltAnswer::Record(vec![json!(1), json!("two")]))
        );
        assert_eq!(answer(&[0xb0, 0x7e]), Ok(BoltAnswer::Ignored));
        for name in ["code", "neo4j_code"] {
            let failure = json!({name: "Neo.X", "message": "no"});
            let expected = BoltAnswer::Failure { code: "Neo.X".into(), message: "no".into() };
            assert_eq!(answer(&message(0x7f, &[&failure])), Ok(expected));
        }
        for wrong in
            [&b"\xb0\x70"[..], b"\xb1\x71\xa0", b"\xb2\x70\xa0\xa0", b"\xa0", b"\xb1\x01\xa0", b""]
        {
            assert!(answer(wrong).is_err(), "{wrong:?}");
        }
    }
}
