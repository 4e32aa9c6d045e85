//! One connection.

use std::io;
use std::time::Duration;

use serde_json::Value;
use stafette_core::Fields;
use stafette_http::Wire;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;

use super::message::{self, BoltAnswer, HANDSHAKE, Request};
use super::{BoltError, Login};

/// The time limit for each answer. The server itself waits this long for its indexes.
const ANSWER: Duration = Duration::from_secs(30);

/// The maximum length of a request, and of all that answers it, in bytes.
pub(super) const LONGEST: usize = 64 << 20;

/// An open connection. It is closed on drop, without a goodbye; the server rolls back what is open.
pub(super) struct Link {
    wire: BufReader<Box<dyn Wire>>,
    /// How much more may answer the last request, in bytes.
    left: usize,
}

impl Link {
    /// Begins to speak: agrees on a version, and logs in.
    pub(super) async fn open(wire: Box<dyn Wire>, login: &Login) -> Result<Link, BoltError> {
        let mut link = Link { wire: BufReader::new(wire), left: LONGEST };
        link.wire.write_all(&HANDSHAKE).await?;
        link.wire.flush().await?;
        let mut version = [0; 4];
        link.wire.read_exact(&mut version).await?;
        let opening = message::opening(message::version(version)?, login);
        link.send(&opening).await?;
        for _ in opening {
            link.success().await?;
        }
        Ok(link)
    }

    /// Makes one request that no rows answer.
    pub(super) async fn ask(&mut self, request: Request<'_>) -> Result<(), BoltError> {
        self.send(&[request]).await?;
        self.success().await.map(drop)
    }

    /// Runs a query in the open transaction.
    pub(super) async fn run(&mut self, text: &str, with: &Value) -> Result<Vec<Fields>, BoltError> {
        self.send(&[Request::Run { text, with }, Request::Pull]).await?;
        let names = match self.success().await?.remove("fields") {
            Some(Value::Array(names)) => names,
            _ => return Err(BoltError::Strange("an answer does not name its fields")),
        };
        let names: Vec<&str> = names.iter().map(|name| name.as_str().unwrap_or_default()).collect();
        let mut rows = Vec::new();
        loop {
            match self.receive().await? {
                BoltAnswer::Record(values) => {
                    let names = names.iter().map(|name| (*name).to_owned());
                    rows.push(names.zip(values).collect());
                }
                BoltAnswer::Success(said) if said.get("has_more") == Some(&Value::Bool(true)) => {
                    let left = self.left;
                    self.send(&[Request::Pull]).await?;
                    self.left = left;
                }
                BoltAnswer::Success(_) => return Ok(rows),
                other => return Err(refused(other)),
            }
        }
    }

    /// Ends whatever is going on, rolls it back, and forgets what has failed.
    pub(super) async fn reset(&mut self) -> Result<(), BoltError> {
        self.send(&[Request::Reset]).await?;
        // Behind a query that failed, the request for its rows was ignored.
        match self.receive().await? {
            BoltAnswer::Ignored => self.success().await.map(drop),
            BoltAnswer::Success(_) => Ok(()),
            other => Err(refused(other)),
        }
    }

    async fn success(&mut self) -> Result<Fields, BoltError> {
        match self.receive().await? {
            BoltAnswer::Success(said) => Ok(said),
            other => Err(refused(other)),
        }
    }

    /// Sends requests together.
    async fn send(&mut self, requests: &[Request<'_>]) -> Result<(), BoltError> {
        let mut bytes = Vec::new();
        for request in requests {
            message::chunks(&request.to_message(), &mut bytes);
        }
        if bytes.len() > LONGEST {
            return Err(BoltError::TooLong { what: "a request" });
        }
        self.left = LONGEST;
        let sending = async {
            self.wire.write_all(&bytes).await?;
            self.wire.flush().await
        };
        Ok(timeout(ANSWER, sending).await.map_err(|_| BoltError::Late(ANSWER))??)
    }

    async fn receive(&mut self) -> Result<BoltAnswer, BoltError> {
        let bytes =
            timeout(ANSWER, self.message()).await.map_err(|_| BoltError::Late(ANSWER))??;
        message::answer(&bytes).map_err(BoltError::Malformed)
    }

    /// Reads the chunks of a message.
    async fn message(&mut self) -> Result<Vec<u8>, BoltError> {
        let mut bytes = Vec::new();
        loop {
            match usize::from(self.wire.read_u16().await?) {
                // The server shows that it is still there.
                0 if bytes.is_empty() => {}
                0 => return Ok(bytes),
                length => {
                    self.left = self
                        .left
                        .checked_sub(length)
                        .ok_or(BoltError::TooLong { what: "an answer" })?;
                    let from = bytes.len();
                    bytes.resize(from + length, 0);
                    self.wire.read_exact(&mut bytes[from..]).await?;
                }
            }
        }
    }
}

fn refused(answer: BoltAnswer) -> BoltError {
    match answer {
        BoltAnswer::Failure { code, message } => BoltError::Refused { code, message },
        _ => BoltError::Strange("an answer came where none belongs"),
    }
}

impl From<io::Error> for BoltError {
    fn from(error: io::Error) -> Self {
        BoltError::Broken(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use serde_json::json;
    use tokio::io::duplex;

    use super::*;

    const SUCCESS: &[u8] = b"\x00\x03\xb1\x70\xa0\x00\x00";
    const IGNORED: &[u8] = b"\x00\x02\xb0\x7e\x00\x00";
    const FIELDS: &[u8] = b"\x00\x0d\xb1\x70\xa1\x86fields\x91\x81n\x00\x00";

    /// A server that says what it has to say, and listens to the end.
    async fn server(says: Vec<u8>) -> (Box<dyn Wire>, tokio::task::JoinHandle<Vec<u8>>) {
        let (ours, mut theirs) = duplex(1 << 20);
        let hears = async move {
            theirs.write_all(&says).await.expect("it listens");
            let mut heard = Vec::new();
            theirs.read_to_end(&mut heard).await.expect("heard");
            heard
        };
        (Box::new(ours), tokio::spawn(hears))
    }

    fn login() -> Login {
        Login { user: "u".into(), password: "p".into(), database: None }
    }

    async fn opened(says: &[&[u8]]) -> (Link, tokio::task::JoinHandle<Vec<u8>>) {
        let says = [&[&[0, 0, 0, 5][..], SUCCESS], says].concat().concat();
        let (wire, heard) = server(says).await;
        (Link::open(wire, &login()).await.expect("open"), heard)
    }

    #[tokio::test]
    async fn s1_12_rows_come_in_parts_between_signs_of_life() {
        let row = |n: u8| [&[0, 1, 0xb1][..], &[0, 3, 0x71, 0x91, n, 0, 0]].concat();
        let more = b"\x00\x0d\xb1\x70\xa1\x88has_more\xc3\x00\x00";
        let says = [FIELDS, &[0, 0, 0, 0], &row(1), &row(2), more, &row(3), SUCCESS];
        let (mut link, heard) = opened(&says).await;
        let rows = link.run("RETURN 1", &json!({"a": 1})).await.expect("rows");
        assert_eq!(json!(rows), json!([{"n": 1}, {"n": 2}, {"n": 3}]));
        drop(link);
        let heard = heard.await.expect("heard").iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{}", byte.escape_ascii());
            text
        });
        let pull = r"\x00\x08\xb1?\xa1\x81n\xc9\x03\xe8\x00\x00";
        assert!(heard.starts_with(r"``\xb0\x17\x00\x08\x08\x05\x00\x00\x04\x04"), "{heard}");
        let run = r"\xb3\x10\x88RETURN 1\xa1\x81a\x01\xa0\x00\x00";
        assert!(heard.ends_with(&format!("{run}{pull}{pull}")), "{heard}");
    }

    #[tokio::test]
    async fn s1_12_after_a_failure_a_reset_makes_it_usable() {
        let failure = b"\x00\x0f\xb1\x7f\xa1\x84code\x86Neo.XY\x00\x00";
        let says = [failure, IGNORED, SUCCESS, FIELDS, SUCCESS];
        let (mut link, _heard) = opened(&says).await;
        let error = link.run("?", &json!({})).await.expect_err("refused");
        assert!(matches!(&error, BoltError::Refused { code, .. } if code == "Neo.XY"), "{error}");
        link.reset().await.expect("reset");
        assert!(link.run("RETURN 1", &json!({})).await.expect("rows").is_empty());
    }

    #[tokio::test]
    async fn s1_12_a_wrong_password_is_refused_and_an_endless_answer_is_cut() {
        let failure = b"\x00\x0f\xb1\x7f\xa1\x84code\x86Neo.XY\x00\x00";
        let (wire, _heard) = server([&[0, 0, 8, 5], SUCCESS, failure].concat()).await;
        let error = Link::open(wire, &login()).await.err().expect("refused");
        assert_eq!(error.to_string(), "Neo.XY: ");

        let (ours, mut theirs) = duplex(1 << 20);
        tokio::spawn(async move {
            theirs.write_all(&[0, 0, 4, 4]).await?;
            let chunk = [&[0xff, 0xff][..], &[0xd6; 0xffff]].concat();
            loop {
                theirs.write_all(&chunk).await?;
            }
            #[expect(unreachable_code, reason = "it says what it returns")]
            io::Result::Ok(())
        });
        let error = Link::open(Box::new(ours), &login()).await.err().expect("too long");
        assert!(matches!(error, BoltError::TooLong { what: "an answer" }), "{error}");
    }
}
