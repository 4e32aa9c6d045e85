//! 10,000 secrets of 40 kinds, planted where agents and people put them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::kinds::{EACH, planted};
use super::shapes::letters;
use crate::redact::Redactor;
use crate::redact::shape::Class::Alphanumeric;

/// How one secret is let slip, told by its number.
fn kept(redactor: &Redactor, number: usize, secret: &str) -> String {
    let json = |mut value: Value| {
        redactor.value(&mut value);
        value.to_string()
    };
    let cut = secret.len() / 2;
    let streamed = |size: usize, text: String| {
        let mut stream = redactor.stream();
        let mut kept: Vec<u8> =
            text.as_bytes().chunks(size).flat_map(|piece| stream.push(piece)).collect();
        kept.extend(stream.finish());
        crate::clean::unescaped(&String::from_utf8(kept).expect("text"))
    };
    match number % 8 {
        0 => redactor.text(&format!("Add a login; use {secret} for it, please.")).into_owned(),
        1 => json(json!({ "outputs": { "note": [format!("it is {secret}")] } })),
        2 => json(json!({ format!("see {secret}"): 1 })),
        3 => json(json!({ "log": format!("line\r\n\t{secret}\r\nnext") })),
        4 => streamed(7, format!("$ echo {secret}\r\n")),
        5 => streamed(512, format!("\x1b[32m{secret}\x1b[0m\r\n")),
        6 => streamed(64, format!("{}\x1b[1;31m{}\x1b[0m\r\n", &secret[..cut], &secret[cut..])),
        _ => {
            let coloured: String = secret.chars().map(|c| format!("\x1b[3{}m{c}", 1)).collect();
            streamed(100, format!("say {coloured}\x1b[0m\r\n"))
        }
    }
}

#[test]
fn b_17_of_ten_thousand_planted_secrets_practically_none_is_kept() {
    let planted = planted();
    assert_eq!(planted.len(), 10_000);
    let injected = planted.iter().filter(|secret| secret.kind == "injected");
    let redactor = Redactor::knowing(injected.map(|secret| &secret.core));
    let mut missed: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, secret) in planted.iter().enumerate() {
        // Each kind is let slip in every way.
        let way = number + number / usize::try_from(EACH).expect("small");
        if kept(&redactor, way, &secret.text).contains(&secret.core) {
            *missed.entry(secret.kind).or_default() += 1;
        }
    }
    assert_eq!(missed.get("injected"), None, "{missed:?}");
    let all: usize = missed.values().sum();
    assert!(all <= 49, "99.5 % of 9,750 are found; {missed:?} are not");
}

#[test]
fn b_17_an_injected_value_is_found_in_each_of_its_forms() {
    let value = "p@ss/w0rd+\"x\"=9".to_owned() + &letters(Alphanumeric, 9, 3);
    let redactor = Redactor::knowing([&value]);
    let quoted = Value::from(value.as_str()).to_string();
    for text in [value.clone(), format!("?key={}&x", percent(&value)), quoted] {
        let kept = redactor.text(&text).into_owned();
        assert!(!kept.contains("w0rd") && kept.contains("[redacted:environment]"), "{kept}");
    }
    let long = (0..30).map(|n| letters(Alphanumeric, 60, n)).collect::<Vec<_>>().join("\n");
    let redactor = Redactor::knowing([&long]);
    for text in [long.clone(), long.replace('\n', "\r\n")] {
        let kept = redactor.text(&text).into_owned();
        let whole = (0..30).filter(|n| kept.contains(&letters(Alphanumeric, 60, *n)));
        assert_eq!(whole.count(), 0, "{kept}");
    }
}

/// Returns a value as it is written in an address.
fn percent(value: &str) -> String {
    let written = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).into(),
        byte => format!("%{byte:02X}"),
    };
    value.bytes().map(written).collect()
}

/// The files below a folder with one of these endings, without those that are about secrets.
fn texts(folder: &Path, all: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let is = |part: &str| path.components().any(|it| it.as_os_str() == part);
        let ends = |end: &str| path.extension().is_some_and(|it| it == end);
        if path.is_dir() {
            let is_passed_over = is("redact") || is("target") || is("node_modules") || is("tests");
            if !is_passed_over {
                texts(&path, all);
            }
        } else if ends("rs") || ends("md") || ends("toml") || ends("svelte") {
            let text = fs::read_to_string(&path).expect("text");
            all.push((path, text));
        }
    }
}

#[test]
fn b_17_our_own_sources_and_documents_lose_next_to_nothing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = Vec::new();
    for folder in ["crates", "docs", "examples", "plugin", "xtask/src"] {
        texts(&root.join(folder), &mut all);
    }
    let size: usize = all.iter().map(|(_, text)| text.len()).sum();
    assert!(all.len() > 500 && size > 3_000_000, "{} files, {size} bytes", all.len());
    let redactor = Redactor::new();
    let lost: Vec<String> = all
        .iter()
        .filter(|(_, text)| !text.contains("[redacted:"))
        .flat_map(|(path, text)| {
            let clean = redactor.text(text).into_owned();
            let lines = clean.lines().filter(|line| line.contains("[redacted:"));
            lines.map(|line| format!("{}: {}", path.display(), line.trim())).collect::<Vec<_>>()
        })
        .collect();
    let by_name = lost.iter().filter(|line| line.contains("[redacted:assignment]"));
    assert_eq!(by_name.collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(lost.len() <= MOST_LOST, "{}:\n{}", lost.len(), lost.join("\n"));
}

/// How many lines may be taken for secrets: addresses with the password of an example, and an example of
/// a signature's key. There are 14.
const MOST_LOST: usize = 15;
