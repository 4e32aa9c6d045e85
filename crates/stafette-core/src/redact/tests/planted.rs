//! 10,000 secrets of 40 kinds, planted where agents and people put them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::shapes::letters;
use crate::redact::Redactor;
use crate::redact::shape::Class::{Alphanumeric, Capital, Hex};

const EACH: u64 = 250;

/// Returns a secret of a kind: the text around it, and the part that must not be kept.
type Make = fn(u64) -> (String, String);

fn of(begins: &str, body: String) -> (String, String) {
    (format!("{begins}{body}"), body)
}

/// The kinds, described apart from the table that finds them.
const KINDS: [(&str, Make); 40] = [
    ("stafette", |n| of("stf_", letters(Hex, 64, n))),
    ("stafette turn", |n| of("stt_", letters(Hex, 64, n))),
    ("anthropic", |n| of("sk-ant-api03-", letters(Alphanumeric, 93, n) + "AA")),
    ("openai", |n| of("sk-", letters(Alphanumeric, 48, n))),
    ("openai project", |n| of("sk-proj-", letters(Alphanumeric, 74, n))),
    ("aws", |n| of("AKIA", letters(Capital, 16, n))),
    ("aws secret", |n| of("aws_secret_access_key=", letters(Alphanumeric, 40, n))),
    ("google", |n| of("AIza", letters(Alphanumeric, 35, n))),
    ("google client", |n| of("GOCSPX-", letters(Alphanumeric, 28, n))),
    ("azure storage", |n| of("AccountKey=", letters(Alphanumeric, 86, n) + "==")),
    ("azure client", |n| of("a1B2Q~", letters(Alphanumeric, 34, n))),
    ("github", |n| of("ghp_", letters(Alphanumeric, 36, n))),
    ("github app", |n| of("ghs_", letters(Alphanumeric, 36, n))),
    ("github fine", |n| of("github_pat_", letters(Alphanumeric, 82, n))),
    ("gitlab", |n| of("glpat-", letters(Alphanumeric, 20, n))),
    ("slack", |n| of("xoxb-1234567890-1234567890-", letters(Alphanumeric, 24, n))),
    ("slack hook", |n| {
        of("https://hooks.slack.com/services/T01234567/B01234567/", letters(Alphanumeric, 24, n))
    }),
    ("stripe", |n| of("sk_live_", letters(Alphanumeric, 24, n))),
    ("huggingface", |n| of("hf_", letters(Alphanumeric, 34, n))),
    ("npm", |n| of("npm_", letters(Alphanumeric, 36, n))),
    ("pypi", |n| of("pypi-AgEIcHlwaS5vcmc", letters(Alphanumeric, 70, n))),
    ("docker", |n| of("dckr_pat_", letters(Alphanumeric, 27, n))),
    ("digitalocean", |n| of("dop_v1_", letters(Hex, 64, n))),
    ("twilio", |n| of("SK", letters(Hex, 32, n))),
    ("sendgrid", |n| of("SG.", letters(Alphanumeric, 22, n) + "." + &letters(Hex, 43, n))),
    ("mailgun", |n| of("key-", letters(Hex, 32, n))),
    ("shopify", |n| of("shpat_", letters(Hex, 32, n))),
    ("square", |n| of("sq0atp-", letters(Alphanumeric, 22, n))),
    ("heroku", |n| of("HRKU-", letters(Alphanumeric, 60, n))),
    ("databricks", |n| of("dapi", letters(Hex, 32, n))),
    ("linear", |n| of("lin_api_", letters(Alphanumeric, 40, n))),
    ("notion", |n| of("ntn_", letters(Alphanumeric, 46, n))),
    ("discord", |n| of("MTIzNDU2Nzg5MDEyMzQ1Njc4.GaBcDe.", letters(Alphanumeric, 38, n))),
    ("telegram", |n| of("123456789:AA", letters(Alphanumeric, 33, n))),
    ("jwt", |n| of("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.", letters(Alphanumeric, 43, n))),
    ("private key", |n| {
        let body = letters(Alphanumeric, 64, n);
        (format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"), body)
    }),
    ("age", |n| of("AGE-SECRET-KEY-1", letters(Capital, 58, n))),
    ("address", |n| {
        let body = letters(Alphanumeric, 20, n);
        (format!("postgres://app:{body}@db:5432/app"), body)
    }),
    ("bearer", |n| of("Authorization: Bearer ", letters(Alphanumeric, 40, n))),
    ("injected", |n| of("", letters(Alphanumeric, 24, n))),
];

fn planted() -> Vec<(&'static str, String, String)> {
    let kinds = KINDS.iter().enumerate();
    let all = kinds.flat_map(|(kind, (name, make))| {
        (0..EACH).map(move |n| {
            let (text, core) = make(n * KINDS.len() as u64 + kind as u64 + 1);
            (*name, text, core)
        })
    });
    all.collect()
}

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
    let injected = planted.iter().filter(|(kind, _, _)| *kind == "injected");
    let redactor = Redactor::knowing(injected.map(|(_, _, core)| core));
    let mut missed: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, (kind, text, core)) in planted.iter().enumerate() {
        // Each kind is let slip in every way.
        let way = number + number / usize::try_from(EACH).expect("small");
        if kept(&redactor, way, text).contains(core.as_str()) {
            *missed.entry(*kind).or_default() += 1;
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
    for text in [value.clone(), format!("?key={}&x", super::known::percent(&value)), quoted] {
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
