//! The agent's end of the Agent Client Protocol: requests and answers, one in each line.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};

use agent_client_protocol_schema::v1::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

type AcpAnswer = Result<Value, Error>;

/// A request of the client.
pub(crate) struct Request {
    id: Value,
    pub(crate) method: String,
    params: Value,
}

impl Request {
    pub(crate) fn params<Q: DeserializeOwned>(&self) -> Q {
        serde_json::from_value(self.params.clone()).expect("parameters")
    }

    pub(crate) fn answer(&self, result: Result<impl Serialize, Error>) {
        write(&match result {
            Ok(result) => json!({"jsonrpc": "2.0", "id": self.id, "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": self.id, "error": error}),
        });
    }
}

/// Both directions of the line.
#[derive(Clone, Default)]
pub(crate) struct Line {
    waiting: Arc<Mutex<HashMap<u64, Sender<AcpAnswer>>>>,
    ids: Arc<AtomicU64>,
    cancelled: Arc<(Mutex<bool>, Condvar)>,
}

impl Line {
    /// Reads standard input. At its end the program ends too, unless it is `deaf`.
    pub(crate) fn requests(&self, deaf: bool) -> Receiver<Request> {
        let (sender, requests) = channel();
        let line = self.clone();
        std::thread::spawn(move || {
            for text in std::io::stdin().lock().lines().map_while(Result::ok) {
                let mut said: Value = serde_json::from_str(&text).expect("a message");
                let method = said["method"].as_str().map(str::to_owned);
                match (method, said["id"].take()) {
                    (Some(method), Value::Null) => line.heard(&method),
                    (Some(method), id) => {
                        let request = Request { id, method, params: said["params"].take() };
                        drop(sender.send(request));
                    }
                    (None, id) => line.answered(&id, said),
                }
            }
            if !deaf {
                std::process::exit(0);
            }
            loop {
                std::thread::park();
            }
        });
        requests
    }

    fn heard(&self, method: &str) {
        if method == "session/cancel" {
            *self.cancelled.0.lock().expect("unbroken") = true;
            self.cancelled.1.notify_all();
        }
    }

    fn answered(&self, id: &Value, mut said: Value) {
        let waiting = self.waiting.lock().expect("unbroken").remove(&id.as_u64().expect("an id"));
        let answer = match said["error"].take() {
            Value::Null => Ok(said["result"].take()),
            error => Err(serde_json::from_value(error).expect("an error")),
        };
        // Nobody waits for the answers to a flood.
        drop(waiting.map(|waiting| waiting.send(answer)));
    }

    /// Waits until the client cancels the turn.
    pub(crate) fn cancelled(&self) {
        let (cancelled, changed) = &*self.cancelled;
        let guard = cancelled.lock().expect("unbroken");
        drop(changed.wait_while(guard, |cancelled| !*cancelled).expect("unbroken"));
    }

    /// Sends a request, and returns where its answer arrives.
    pub(crate) fn send(&self, method: &str, params: impl Serialize) -> Receiver<AcpAnswer> {
        let (sender, answer) = channel();
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        self.waiting.lock().expect("unbroken").insert(id, sender);
        write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        answer
    }

    /// Sends a request, and waits for its answer.
    pub(crate) fn ask<A: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<A, Error> {
        let answer = self.send(method, params).recv().map_err(|_| Error::internal_error())??;
        serde_json::from_value(answer).map_err(Error::into_internal_error)
    }

    pub(crate) fn tell(&self, method: &str, params: impl Serialize) {
        write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }
}

fn write(message: &Value) {
    print(&format!("{message}\n"));
}

/// Prints something at once.
pub(crate) fn print(text: &str) {
    let mut output = std::io::stdout().lock();
    // Nobody is left to hear it when this fails.
    drop(output.write_all(text.as_bytes()).and_then(|()| output.flush()));
}
