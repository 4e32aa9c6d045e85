//! JSON-RPC 2.0, one message in each line.

use agent_client_protocol_schema::v1::Error;
use serde_json::{Value, json};

/// A message, from either side.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Message {
    Request { id: Value, method: String, params: Value },
    Notification { method: String, params: Value },
    Response { id: Value, result: Result<Value, Error> },
}

impl Message {
    /// Reads a line; `None` when it is not a message.
    pub(super) fn read(line: &str) -> Option<Message> {
        let Value::Object(mut said) = serde_json::from_str(line).ok()? else { return None };
        if said.get("jsonrpc")? != "2.0" {
            return None;
        }
        let mut take = |name| said.swap_remove(name);
        let (id, params) = (take("id"), take("params").unwrap_or_default());
        match (take("method"), id, take("result"), take("error")) {
            (Some(Value::String(method)), Some(id), None, None) => {
                Some(Message::Request { id, method, params })
            }
            (Some(Value::String(method)), None, None, None) => {
                Some(Message::Notification { method, params })
            }
            (None, Some(id), Some(result), None) => {
                Some(Message::Response { id, result: Ok(result) })
            }
            (None, Some(id), None, Some(error)) => {
                let unreadable = |_| Error::internal_error().data(error.clone());
                let error = serde_json::from_value(error.clone()).unwrap_or_else(unreadable);
                Some(Message::Response { id, result: Err(error) })
            }
            _ => None,
        }
    }

    /// Returns the message as a line.
    pub(super) fn to_line(&self) -> Vec<u8> {
        let message = match self {
            Message::Request { id, method, params } => {
                json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            }
            Message::Notification { method, params } => {
                json!({"jsonrpc": "2.0", "method": method, "params": params})
            }
            Message::Response { id, result: Ok(result) } => {
                json!({"jsonrpc": "2.0", "id": id, "result": result})
            }
            Message::Response { id, result: Err(error) } => {
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        };
        format!("{message}\n").into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_11_messages_are_told_from_what_else_is_printed() {
        let read = |line: &str| Message::read(line);
        let again = |line: &str| {
            let message = read(line).unwrap_or_else(|| panic!("{line}"));
            String::from_utf8(message.to_line()).expect("text")
        };
        for line in [
            r#"{"jsonrpc":"2.0","id":"a","method":"x","params":{"y":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":null}"#,
            r#"{"jsonrpc":"2.0","method":"x","params":[1]}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#,
        ] {
            assert_eq!(again(line), format!("{line}\n"));
        }
        let odd = read(r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#).expect("an error all the same");
        let Message::Response { result: Err(error), .. } = odd else { panic!("{odd:?}") };
        assert_eq!(error.data, Some(json!("no")));
        for rubbish in [
            "",
            "Starting …",
            "1",
            "[]",
            r#"[{"jsonrpc":"2.0","method":"x"}]"#,
            r#"{"level":"info","method":"x"}"#,
            r#"{"jsonrpc":"1.0","method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","method":1}"#,
            r#"{"jsonrpc":"2.0","result":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","result":1}"#,
        ] {
            assert_eq!(read(rubbish), None, "{rubbish}");
        }
    }
}
