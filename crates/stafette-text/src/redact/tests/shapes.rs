//! Every shape of the table, and tokens as their providers give them out.

use super::clean;
use crate::redact::shape::Class;
use crate::redact::shapes::{SHAPES, Shape};
use crate::redact::{Redactor, is_marked};

/// Some letters of a class, different for each `seed`.
pub(super) fn letters(class: Class, count: usize, seed: u64) -> String {
    let from: &[u8] = match class {
        Class::Hex => b"0123456789abcdef",
        Class::Capital => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        _ => b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
    };
    super::kinds::letters(from, count, seed)
}

/// A token of a shape.
fn example(shape: &Shape, seed: u64) -> (String, String) {
    let begins = String::from_utf8(shape.begins.to_vec()).expect("text");
    // A digit is nearly always there; here it always is.
    let body = letters(shape.class, shape.least - 1, seed) + "7";
    let more = shape.then.iter().map(|(front, class, least)| {
        format!("{}{}", char::from(*front), letters(*class, *least, seed + 1))
    });
    (begins, body + &more.collect::<String>())
}

#[test]
fn b_17_every_shape_is_taken_out_wherever_it_stands() {
    for (number, shape) in SHAPES.iter().enumerate() {
        let (begins, body) = example(shape, number as u64);
        for (before, after) in [("", ""), ("key: ", " end"), ("\"", "\","), ("(", ")\n")] {
            let text = format!("{before}{begins}{body}{after}");
            let stays = if shape.keeps { begins.as_str() } else { "" };
            let expected = format!("{before}{stays}[redacted:{}]{after}", shape.kind);
            assert_eq!(clean(&text), expected, "{text}");
        }
        let short = format!("{begins}{}", &body[..shape.least - 1]);
        let is_other = SHAPES.iter().any(|other| {
            other.begins != shape.begins && short.as_bytes().starts_with(other.begins)
        });
        assert!(is_other || clean(&short) == short, "{short} is too short");
    }
}

#[test]
fn b_17_every_shape_is_found_in_pieces_and_between_colours() {
    for (number, shape) in SHAPES.iter().enumerate() {
        let (begins, body) = example(shape, number as u64);
        let token = format!("{begins}{body}");
        for cut in [1, begins.len(), begins.len() + 3, token.len() - 1] {
            let (front, back) = token.split_at(cut);
            let coloured = clean(&format!("use {front}\x1b[1;32m{back}\x1b[0m!"));
            assert!(is_marked(&coloured) && !coloured.contains(&body[body.len() - 6..]), "{token}");
            let mut stream = Redactor::new().stream();
            let mut kept = stream.push(format!("use {front}").as_bytes());
            kept.extend(stream.push(format!("{back}\n").as_bytes()));
            kept.extend(stream.finish());
            let kept = String::from_utf8(kept).expect("text");
            assert!(is_marked(&kept) && !kept.contains(&body[body.len() - 6..]), "{token}");
        }
    }
}

/// Tokens as they are given out, in parts, so that no source file appears to contain a secret.
const GIVEN: &[(&str, &[&str])] = &[
    ("stafette", &["stf", "_0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"]),
    ("anthropic", &["sk-ant", "-api03-Zx1_Qw2-Er3Ty4Ui5Op6As7Df8Gh9Jk0Lz1Xc2Vb3Nm4AA"]),
    ("openai", &["sk", "-Zx1Qw2Er3Ty4Ui5Op6AT3BlbkFJs7Df8Gh9Jk0Lz1Xc2Vb3"]),
    ("openai", &["sk-proj", "-Zx1Qw2Er3_Ty4Ui5Op6AT3BlbkFJs7Df8-Gh9Jk0Lz1Xc2Vb3"]),
    ("aws", &["AKIA", "Q3EGRZ7XN2LKP5VT"]),
    ("google", &["AIza", "SyD3x-Qw2Er3Ty4Ui5Op6As7Df8Gh9Jk0Lz"]),
    ("azure", &["3vX8", "Q~Zx1Qw2Er3Ty4Ui5Op6As7Df8Gh9Jk0L.x~"]),
    ("github", &["github", "_pat_11ABCDEFG0Zx1Qw2Er3Ty4_Ui5Op6As7Df8Gh9Jk0Lz1Xc2Vb3Nm4Qw5Er6"]),
    ("gitlab", &["glpat", "-Zx1Qw2Er3Ty4Ui5Op6As"]),
    ("slack", &["xoxb", "-263594206564-2343594206574-FGqddMF8t08v8N7Oq4i57vs1"]),
    ("stripe", &["sk_live", "_51HabcQw2Er3Ty4Ui5Op6As7Df8Gh9Jk0"]),
    ("huggingface", &["hf", "_ZxQwErTyUiOpAsDfGhJkLzXcVbNmQwErT1"]),
    ("npm", &["npm", "_Zx1Qw2Er3Ty4Ui5Op6As7Df8Gh9Jk0Lz1Xc2"]),
    ("pypi", &["pypi", "-AgEIcHlwaS5vcmcCJDZmNzQ3ZWM4LTk4NTgtNDM5Zi1iNTU0LWY1ZDQ5NjQ1ZmM5Z"]),
    ("docker", &["dckr", "_pat_Zx1Qw2Er3Ty4Ui5-Op6As7Df8G"]),
    (
        "digitalocean",
        &["dop", "_v1_0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"],
    ),
    ("twilio", &["SK", "0f1e2d3c4b5a69788796a5b4c3d2e1f0"]),
    ("sendgrid", &["SG", ".Zx1Qw2Er3Ty4Ui5Op6As7D.Zx1Qw2Er3Ty4Ui5Op6As7Df8Gh9Jk0Lz1Xc2Vb3Nm4Q"]),
    ("mailgun", &["key", "-0f1e2d3c4b5a69788796a5b4c3d2e1f0"]),
    ("shopify", &["shpat", "_0f1e2d3c4b5a69788796a5b4c3d2e1f0"]),
    ("square", &["sq0atp", "-Zx1Qw2Er3Ty4Ui5Op6As7D"]),
    ("heroku", &["HRKU", "-AAZx1Qw2Er3Ty4Ui5Op6As7Df8Gh9Jk0Lz1Xc2Vb3Nm4Qw5Er6Ty7Ui8Op"]),
    ("databricks", &["dapi", "0f1e2d3c4b5a69788796a5b4c3d2e1f0"]),
    ("linear", &["lin_api", "_Zx1Qw2Er3Ty4Ui5Op6As7Df8Gh9Jk0Lz1Xc2Vb3N"]),
    ("notion", &["ntn", "_12345678901Zx1Qw2Er3Ty4Ui5Op6As7Df8Gh9Jk0Lz1Xc"]),
    ("discord", &["MTIzNDU2Nzg5MDEyMzQ1Njc4", ".GaBcDe.Zx1Qw2Er3Ty4Ui5Op6As7Df8Gh9Jk0Lz1Xc2V"]),
    ("telegram", &["123456789", ":AAZx1Qw2Er3Ty4Ui5Op6As7Df8Gh9Jk0Lz1"]),
    ("hashicorp", &["hvs", ".CAESIJlU9JMYEhOPYv4igdhm9PnZDrabYTobQ4Ymnlq1qY-LGh4K"]),
    ("age", &["AGE-SECRET-KEY", "-1QYQ9ZQ8PQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGP"]),
    (
        "jwt",
        &["eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"],
    ),
    (
        "slack",
        &["https://hooks.slack.com/services/", "T0AB1CD2E/B0AB1CD2E/Zx1Qw2Er3Ty4Ui5Op6As7Df8"],
    ),
    ("url", &["postgres://", "app:Zx1Qw2Er3@db:5432/app"]),
    (
        "assignment",
        &[
            "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=",
            "Zx1Qw2Er3Ty4+Ui5/Op6As7Df8Gh9Jk0Lz1Xc2Vb3Nm4Qw5Er6Ty7Ui8Op9As0Df1Gh2Jk3Lz4Xc5V==",
        ],
    ),
    ("assignment", &["Server=db;User Id=sa;Pwd=", "Zx1Qw2Er3Ty4;Encrypt=yes"]),
    ("assignment", &["aws_secret_access_key = ", "Zx1Qw2Er3Ty4Ui5Op6As7Df8Gh9Jk0Lz1Xc2Vb3N"]),
    (
        "azure",
        &[
            "https://x.blob.core.windows.net/c?sv=2023&sig=",
            "Zx1Qw2Er3Ty4Ui5Op6As7Df8Gh9Jk0Lz1Xc2Vb3Nm4%3D",
        ],
    ),
    ("bearer", &["Authorization: Basic ", "dXNlcjpadXgxUXcyRXIzVHk0"]),
    ("option", &["curl -u admin:", "Zx1Qw2Er3Ty4 https://example.org"]),
    ("option", &["deploy --auth-token ", "Zx1Qw2Er3Ty4 now"]),
];

#[test]
fn b_17_tokens_as_their_providers_give_them_out_are_taken_out() {
    for (kind, parts) in GIVEN {
        let text = clean(&parts.concat());
        let tail: String = parts[1].chars().skip(8).take(10).collect();
        assert!(text.contains(&format!("[redacted:{kind}]")), "{}: {text}", parts.concat());
        assert!(!text.contains(&tail), "{}: {text}", parts.concat());
    }
}
