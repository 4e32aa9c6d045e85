//! Properties of every dialect, shown on the golden documents in `fixtures/wire`.

mod contract;
mod files;
mod message;
mod phase;
mod schema;
mod survival;

use std::fs;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use uuid::Uuid;

use super::Document;
use super::context::OrchestratorContext;
use super::contract::{HandoffDecision, HandoffRequest, HandoffResponse};
use super::message::{Message, MessageContext, WorkflowType};
use super::phase::{Phase, PhaseRequest, PhaseResponse};
use super::schema::{Name, list, read, recognise, validate};
use super::state::SharedState;
use stafette_model::{Fields, Party, Time};

/// An offer whose question decides nothing.
type Offer = stafette_model::Offer<()>;

fn fixtures(folder: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures")).join(folder)
}

fn fixture(path: &str) -> Value {
    read(fs::read(fixtures("wire").join(path)).expect(path)).expect(path)
}

/// Returns all golden documents, each with its file and the document type that the file is named
/// after.
fn goldens() -> Vec<(String, Name, Value)> {
    let folder = fs::read_dir(fixtures("wire")).expect("the golden files are there");
    let files = folder.map(|entry| entry.expect("a folder entry").file_name());
    let mut files: Vec<String> = files.filter_map(|name| name.into_string().ok()).collect();
    files.retain(|file| file.ends_with(".json"));
    files.sort();
    let named = |file: &str| {
        let mut names = list().iter().copied();
        names.find(|name| file.starts_with(name.as_str())).expect("a file is named after a schema")
    };
    files.into_iter().map(|file| (file.clone(), named(&file), fixture(&file))).collect()
}

fn goldens_of(name: Name) -> Vec<(String, Value)> {
    let of_name = goldens().into_iter().filter(|(_, golden, _)| *golden == name);
    of_name.map(|(file, _, value)| (file, value)).collect()
}

fn typed<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).expect("a valid document fits its type")
}

fn value<T: Serialize>(document: &T) -> Value {
    serde_json::to_value(document).expect("a document is JSON")
}

/// Parses the document into its type and serialises it again.
fn through_type(name: Name, document: &Value) -> Value {
    match name {
        Name::HandoffRequest => value(&typed::<HandoffRequest>(document)),
        Name::HandoffResponse => value(&typed::<HandoffResponse>(document)),
        Name::HandoffDecision => value(&typed::<HandoffDecision>(document)),
        Name::PhaseRequest => value(&typed::<PhaseRequest>(document)),
        Name::PhaseResponse => value(&typed::<PhaseResponse>(document)),
        Name::Context => value(&typed::<OrchestratorContext>(document)),
        Name::Message => value(&typed::<Message>(document)),
        Name::State => value(&typed::<SharedState>(document)),
    }
}

/// Converts the document to the model, stores it as JSON as events are, and converts it back;
/// `None` if it has no counterpart there. The ids and times given for the way back are wrong on
/// purpose: foreign documents keep their own.
fn through_model(name: Name, document: &Value) -> Option<Value> {
    let (nil, epoch) = (Uuid::nil(), Time(0));
    Some(match name {
        Name::HandoffRequest => {
            let offer: Offer = stored(&typed::<HandoffRequest>(document).into_offer());
            value(&HandoffRequest::from_offer(&offer, nil, epoch))
        }
        Name::HandoffResponse => {
            let response = stored(&typed::<HandoffResponse>(document).into_response());
            value(&HandoffResponse::from_response(&response, nil, epoch))
        }
        Name::PhaseRequest => {
            let offer: Offer = stored(&typed::<PhaseRequest>(document).into_offer("scout".into()));
            value(&PhaseRequest::from_offer(&offer, "wrong", Phase::Parallel))
        }
        Name::PhaseResponse => {
            let response = stored(&typed::<PhaseResponse>(document).into_response("scout".into()));
            value(&PhaseResponse::from_response(&response, "wrong", Phase::Parallel))
        }
        Name::Message => {
            let offer: Offer = stored(&typed::<Message>(document).into_offer());
            value(&Message::from_offer(&offer, nil, epoch, refactoring()))
        }
        Name::HandoffDecision | Name::Context | Name::State => return None,
    })
}

fn stored<T: Serialize + DeserializeOwned>(of_the_model: &T) -> T {
    typed(&value(of_the_model))
}

fn refactoring() -> MessageContext {
    MessageContext {
        workflow: WorkflowType::Refactor,
        spec: None,
        iteration: None,
        extra: Fields::new(),
    }
}

fn agent(name: &str) -> Party {
    Party::from(name)
}

/// Returns all errors of a document, one line each.
fn complaints(name: Name, document: &Value) -> String {
    let lines = validate(name, document);
    lines.iter().map(|violation| format!("{violation}\n")).collect()
}

#[test]
fn every_golden_document_is_valid_recognised_and_comes_back_the_same() {
    let goldens = goldens();
    assert!(goldens.len() >= 25, "{} golden documents", goldens.len());
    for (file, name, document) in goldens {
        assert_eq!(complaints(name, &document), "", "{file}");
        assert_eq!(recognise(&document), Some(name), "{file}");
        assert_eq!(through_type(name, &document), document, "{file}");
        if let Some(back) = through_model(name, &document) {
            assert_eq!(back, document, "{file}");
        }
    }
}

#[test]
fn only_documents_that_move_work_are_read_as_such() {
    for (file, name, document) in goldens() {
        match Document::read(&document) {
            Ok(read) => assert_eq!(read.name(), name, "{file}"),
            Err(violations) => {
                let idle = [Name::HandoffDecision, Name::Context, Name::State];
                assert!(idle.contains(&name), "{file}: {violations:?}");
            }
        }
    }
    let violations = Document::read(&serde_json::json!({ "hello": "world" })).unwrap_err();
    assert_eq!(violations[0].path, "");
    assert!(violations[0].message.starts_with("not a document of any dialect"));
}
