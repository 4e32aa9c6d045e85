mod kinds;
mod planted;
mod shapes;
mod spelt;
/// Counts what a comparison with values costs: the bytes of values and the spellings that are looked at.
pub(super) mod steps;

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Assembled here, so that no source file appears to contain a secret.
fn tokens() -> Vec<(&'static str, String)> {
    let long = "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7bC9";
    vec![
        ("anthropic", format!("sk-ant-api03-{long}-_{long}AA")),
        ("openai", format!("sk-proj-{long}_{long}")),
        ("openai", format!("sk-{long}")),
        ("github", format!("ghp_{}", &long[..36])),
        ("github", format!("gho_{}", &long[..36])),
        ("github", format!("github_pat_11{}_{long}", &long[..20])),
        ("aws", format!("AKIA{}", "IOSFODNN7EXAMPL2")),
        ("google", format!("AIza{}", &long[..35])),
        ("slack", format!("xoxb-123456789012-{}", &long[..24])),
        ("gitlab", format!("glpat-{}", &long[..20])),
        ("npm", format!("npm_{}", &long[..36])),
        ("stripe", format!("sk_live_{}", &long[..24])),
        ("jwt", format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{long}")),
    ]
}

fn key() -> String {
    let body = "MIIEpAIBAAKCAQEA7bq98y/1+==\n".repeat(20);
    format!("-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----")
}

fn clean(text: &str) -> String {
    Redactor::new().text(text).into_owned()
}

#[test]
fn b_17_tokens_with_a_known_shape_are_taken_out_wherever_they_stand() {
    for (kind, token) in tokens() {
        for (before, after) in [
            ("", ""),
            ("key: ", " end"),
            ("\"", "\","),
            ("a=", "\n"),
            ("(", ")"),
            ("line\\n", "\\n"),
            ("\u{1b}[1m", "\u{1b}[0m"),
        ] {
            let text = format!("{before}{token}{after}");
            let expected = format!("{before}[redacted:{kind}]{after}");
            assert_eq!(clean(&text), expected, "{text}");
        }
    }
}

#[test]
fn b_17_private_keys_are_taken_out_whole_and_no_more() {
    let text = format!("before\n{}\nafter", key());
    assert_eq!(clean(&text), "before\n[redacted:private_key]\nafter");
    let escaped = format!("{{\"key\":\"{}\"}}", key().replace('\n', "\\n"));
    assert_eq!(clean(&escaped), "{\"key\":\"[redacted:private_key]\"}");
    let public = "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----";
    assert_eq!(clean(public), public);
    let open = format!("-----BEGIN PRIVATE KEY-----\nMIIE\n{{ code }}{}", "x ".repeat(5));
    assert!(clean(&open).ends_with("{ code }x x x x x "), "{}", clean(&open));
}

#[test]
fn b_17_what_a_name_calls_a_secret_is_taken_out() {
    for (text, expected) in [
        ("password=hunter2hunter2", "password=[redacted:assignment]"),
        ("password: hunter2hunter2 # x", "password: [redacted:assignment] # x"),
        ("{\"api_key\": \"abc123def456\"}", "{\"api_key\": \"[redacted:assignment]\"}"),
        ("client-secret = 'q8w7e6r5t4'", "client-secret = '[redacted:assignment]'"),
        ("password=swordfishes", "password=[redacted:assignment]"),
        (
            "mysql://x/?user=me&password=swordfishes&x=1",
            "mysql://x/?user=me&password=[redacted:assignment]&x=1",
        ),
        ("db_passwd: \"SwordFishes\"", "db_passwd: \"[redacted:assignment]\""),
        ("{\"passphrase\":\"swordfishes\"}", "{\"passphrase\":\"[redacted:assignment]\"}"),
        ("login(password='swordfishes')", "login(password='[redacted:assignment]')"),
        ("DB_PASSWORD=correcthorse", "DB_PASSWORD=[redacted:assignment]"),
        ("export API_TOKEN=abcdefghij\n", "export API_TOKEN=[redacted:assignment]\n"),
        (
            "https://x/?access_token=a1b2c3d4e5&y=1",
            "https://x/?access_token=[redacted:assignment]&y=1",
        ),
        ("Authorization: Bearer abcdef0123456789ABCDEF", "Authorization: Bearer [redacted:bearer]"),
        ("git clone https://me:s3cr3t@host/x", "git clone https://[redacted:url]@host/x"),
        ("postgres://u:p4ss%2Fword@db:5432/x", "postgres://[redacted:url]@db:5432/x"),
        ("Authorization: Token Zx1Qw2Er3Ty4", "Authorization: Token [redacted:bearer]"),
        ("Cookie: a=b; sid=Zx1Qw2Er3Ty4\nHost: x", "Cookie: [redacted:cookie]\nHost: x"),
        ("'Set-Cookie: sid=Zx1Qw2Er3Ty4; Path=/' x", "'Set-Cookie: [redacted:cookie]' x"),
        ("mysql -u root -pZx1Qw2Er3Ty4 db", "mysql -u root -p[redacted:option] db"),
        ("sshpass -p Zx1Qw2Er3Ty4 ssh x", "sshpass -p [redacted:option] ssh x"),
        ("docker login -u me -p 'Zx1Qw2Er3Ty4'", "docker login -u me -p '[redacted:option]'"),
        ("redis-cli -a Zx1Qw2Er3Ty4 ping", "redis-cli -a [redacted:option] ping"),
        ("<password>Zx1Qw2Er3Ty4</password>", "<password>[redacted:assignment]</password>"),
        (
            "machine x\n  login me\n  password Zx1Qw2Er3Ty4\n",
            "machine x\n  login me\n  password [redacted:option]\n",
        ),
        ("password:\n  Zx1Qw2Er3Ty4\nx", "password:\n  [redacted:assignment]\nx"),
        ("secret: |\n    Zx1Qw2Er3Ty4", "secret: |\n    [redacted:assignment]"),
        (
            "{\"value\":\"Zx1Qw2Er3Ty4\",\"name\":\"DB_PASSWORD\"}",
            "{\"value\":\"[redacted:assignment]\",\"name\":\"DB_PASSWORD\"}",
        ),
        (
            "{\"name\": \"DB_PASSWORD\", \"value\": \"Zx1Qw2Er3Ty4\"}",
            "{\"name\": \"DB_PASSWORD\", \"value\": \"[redacted:assignment]\"}",
        ),
        // A line end that was escaped before.
        (
            "why=\"no\\naws_secret_access_key=Zx1Qw2Er3Ty4\\nDD_API_KEY=Qw2Er3Ty4Ui5\\n\"",
            "why=\"no\\naws_secret_access_key=[redacted:assignment]\\n\
             DD_API_KEY=[redacted:assignment]\\n\"",
        ),
        (
            "\"{\\\"token\\\": \\\"a1b2c3d4e5\\\"}\"",
            "\"{\\\"token\\\": \\\"[redacted:assignment]\\\"}\"",
        ),
    ] {
        assert_eq!(clean(text), expected);
    }
}

#[test]
fn b_17_keys_of_putty_and_keys_in_quotes_are_taken_out() {
    let line = "Zx1Qw2Er3Ty4Ui5O".repeat(4);
    let text = format!("Private-Lines: 2\n{line}\n{line}\nPrivate-MAC: 0f1e\n");
    let kept = clean(&text);
    assert!(kept.contains("[redacted:private_key]") && !kept.contains("Zx1Qw2"), "{kept}");
    for quote in ["> ", "| "] {
        let kept = clean(&key().lines().map(|line| format!("{quote}{line}\n")).collect::<String>());
        assert!(!kept.contains("MIIE"), "{kept}");
    }
    let mut fields = json!({ "value": "Zx1Qw2Er3Ty4", "name": "DB_PASSWORD" });
    Redactor::new().value(&mut fields);
    assert_eq!(fields, json!({ "value": "[redacted:assignment]", "name": "DB_PASSWORD" }));
}

#[test]
fn b_17_what_stands_near_a_secrets_place_stays() {
    for text in [
        "docker login registry-prod1.example.com",
        "podman login ghcr-p2001.example.com -u me",
        "sshpass ssh web-prod2001.example.com",
        "redis-cli -h cache-a1b2c3d4.example.com ping",
        "mysql -u root -p wordpress6",
        "mysqldump -h db-prod12345 -p wordpress6",
        "Fix the cookie: flag=secure needs RFC6265 support in all2browsers",
        "the cookie: a value like x=abc1 of rfc6265bis is fine",
        "Private-Lines: 20 in the format of PuTTY9 are followed by a MAC1 and more text",
        "Private-Lines: 3\nis what the line says2 here\n",
        "machine learning2 needs a password which12 letters",
    ] {
        assert_eq!(clean(text), text);
    }
    for (text, expected) in [
        ("Cookie: sid=Zx1Qw2Er3Ty4 is what2 came", "Cookie: [redacted:cookie] is what2 came"),
        (
            "Private-Lines: 9\nZx1Qw2Er3Ty4\nZx1Qw2==\nPrivate-MAC: 0f1e2d3c",
            "Private-Lines: 9\n[redacted:private_key]Private-MAC: 0f1e2d3c",
        ),
        (
            "Private-Lines: 1\r\nZx1Qw2==\r\nrest",
            "Private-Lines: 1\r\n[redacted:private_key]\r\nrest",
        ),
        ("mysql -p'Zx1Qw2Er3Ty4' wordpress6", "mysql -p'[redacted:option]' wordpress6"),
        ("machine x login me password Zx1Qw2Er", "machine x login me password [redacted:option]"),
    ] {
        assert_eq!(clean(text), expected);
    }
}

#[test]
fn b_17_two_secrets_that_only_their_places_give_away_are_both_taken_out() {
    // That of the second is known first.
    let text = "mysql -e <token>Zx1Qw2Er3Ty4</token> -pQw2Er3Ty4Ui5 db";
    let kept = clean(text);
    assert!(!kept.contains("Zx1Qw2") && !kept.contains("Qw2Er3"), "{kept}");
}

#[test]
fn b_17_a_secret_beside_its_name_is_the_same_in_an_object_and_in_its_text() {
    for name in ["DB_PASS", "DEPLOY_KEY", "password"] {
        let fields = json!({ "name": name, "value": "Zx1Qw2Er3Ty4" });
        let as_text = clean(&fields.to_string());
        let mut as_object = fields.clone();
        Redactor::new().value(&mut as_object);
        let expected = json!({ "name": name, "value": "[redacted:assignment]" });
        assert_eq!((as_text, as_object), (expected.to_string(), expected));
    }
}

#[test]
fn b_17_a_password_of_letters_is_the_same_in_an_object_and_in_its_text() {
    for (name, value, is_secret) in [
        ("password", "swordfishes", true),
        ("db_passwd", "SwordFishes", true),
        ("token", "swordfishes", false),
        ("password", "newPassword", false),
        ("password", "fishes", false),
    ] {
        let fields = json!({ name: value });
        let mut as_object = fields.clone();
        Redactor::new().value(&mut as_object);
        assert_eq!(clean(&fields.to_string()), as_object.to_string());
        assert_eq!(as_object != fields, is_secret, "{fields}");
    }
}

#[test]
fn b_17_what_only_looks_like_a_secret_stays() {
    for text in [
        "Vec<Token>fn next2(a)</",
        "token:\n    Token2Kind,",
        "Set-Cookie: id=a; Path=/; Expires=Wed21Oct2015",
        "machine learning with a password of 12 letters",
        "name: DB_PASSWORD\nother: Zx1Qw2Er3",
        "commit 6036441b1d53d326dbb7c68af977c411582e2169",
        "refs/heads/main 56983dbba9f86f56983dbba9f86f56983dbba9f8",
        "run 0198a1f2-7c3d-7e4f-8a9b-0c1d2e3f4a5b",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "integrity sha512-PxQl0l4mQkz5rA1G1Zt0bW0Yy1j2o3n4m5k6l7h8g9f0==",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
        "let token = self.next_token();",
        "fn login(password: &str, token: String) -> Result<Token2, Error>",
        "token: Option<AccessToken2>,",
        "password: crate::secret::Password2,",
        "if token == expected_token1 {",
        "\"type\": \"password\", \"title\": \"Password\"",
        "\"password\": \"Enter your password\"",
        "\"password\": \"PasswordInput\", \"pwd\": \"newPassword\"",
        "connect(password=password, passwd=db_password)",
        "password: required, passphrase: UnicodeString",
        "password = mandatory; pwd: CFStringRef",
        "token=abcdefghijk \"api_key\": \"abcdefghijk\"",
        "password=short",
        "password=fetchfromvault() password=settings.value",
        "max_tokens: 4096, input_tokens=123456, cache_read_input_tokens: 12345678",
        "API_KEY=$OPENAI_API_KEY",
        "API_KEY=${API_KEY}",
        "password=<your password>",
        "password=********",
        "secret: /run/secrets/db1_password",
        "http://localhost:8080/@scope/x",
        "http://[::1]:8080/",
        "https://user@host/path:1",
        "https://user:$PASSWORD@host/",
        "class=\"sk-loading-spinner-with-a-long-name\"",
        "task-list-of-something-that-goes-on-1234567890",
        "npm_lifecycle_event npm_config_registry npm_package_version_1",
        "AKIAlooksLikeButIsNot AKIA1234",
        "eyJhbGciOiJIUzI1NiJ9 is a header",
        "Bearer of bad news 1234567890",
        "-----BEGIN CERTIFICATE-----",
        "keyboard=qwertz12345",
        "[redacted:github] password=[redacted:assignment]",
    ] {
        assert_eq!(clean(text), text);
    }
}

#[test]
fn b_17_values_that_are_passed_on_are_secrets_if_they_look_random() {
    let learns = |value: &str| {
        let redactor = Redactor::default();
        let named = Variables { secret: Vec::new(), passed: vec!["V"] };
        redactor.learn_variables(named, |_| Some(value.to_owned()));
        redactor.text(value) != value
    };
    for secret in
        ["Tr0ub4dor&3xyz", "aB3kLmNpQrStUv9", "XkvQpZrLmNoPtuWyAbCdEfGh", "dep1oyvaluewithdigits42"]
    {
        assert!(learns(secret), "{secret}");
    }
    for plain in [
        "production",
        "en_US.UTF-8",
        "Ada Lovelace",
        "/usr/local/Lib64",
        "https://Example.org/v1",
        "12345678901",
        "warn,hyper=error",
        "alllowercaseletters",
        "Ada@example.org",
        "America/Argentina/Buenos_Aires",
        "src/MyPackage/Generated",
        "com.example.MyApplication",
        "-Ctarget-cpu=native",
        "Debug,Sqlx=Warn",
        "--reporter=JUnit",
        "DevelopmentLocalhost",
        "Claude-4-Opus",
    ] {
        assert!(!learns(plain), "{plain}");
    }
}

#[test]
fn b_17_values_of_the_environment_are_taken_out_wherever_they_stand() {
    let redactor = Redactor::of_environment([
        ("DEPLOY_TOKEN", "zX9-kkQ2.mm"),
        ("SSL_KEY", "/etc/ssl/private/x1.pem"),
        ("MODE_KEY", "default1"),
        ("SHORT_SECRET", "a1b2"),
        ("PATH", "zX9-other-1234567"),
    ]);
    assert_eq!(
        redactor.text("curl -H x:zX9-kkQ2.mm /etc/ssl/private/x1.pem a1b2 zX9-other-1234567"),
        "curl -H x:[redacted:environment] /etc/ssl/private/x1.pem a1b2 zX9-other-1234567"
    );
    assert_eq!(redactor.text("xzX9-kkQ2.mmghp_"), "x[redacted:environment]ghp_");
    for encoded in ["OnpYOS1ra1EyLm1t", "dXNlcjp6WDkta2tRMi5tbQ==", "elg5LWtrUTIubW0="] {
        assert!(is_marked(&redactor.text(encoded)), "{encoded}");
    }
    assert_eq!(format!("{redactor:?}"), "Redactor { values: 2 }", "the values are not shown");
}

#[test]
fn b_17_values_of_the_environment_are_taken_out_however_json_and_markup_spell_them() {
    let value = "Zq8!kä<&9\"x\\y'";
    let redactor = Redactor::of_environment([("T_API_KEY", value)]);
    let json = r#"Zq8!kä<&9\"x\\y'"#;
    let ascii = r#"Zq8!k\u00e4<&9\"x\\y'"#;
    let spelled = r#"Zq8!k\u00e4\u003c\u00269\"x\\y\u0027"#;
    let twice = |text: &str| serde_json::Value::from(text).to_string();
    for text in [
        json.to_owned(),
        ascii.to_owned(),
        spelled.to_owned(),
        twice(json),
        twice(ascii),
        twice(spelled),
        "Zq8!kä&lt;&amp;9&quot;x\\y&#39;".to_owned(),
        "Zq8!kä&lt;&amp;9&quot;x\\y&#x27;".to_owned(),
    ] {
        let kept = redactor.text(&text);
        assert!(
            is_marked(&kept) && !kept.contains("Zq8") && !kept.contains("9&"),
            "{text}: {kept}"
        );
    }
}

#[test]
fn b_17_json_is_redacted_by_its_texts_and_names() {
    let token = tokens()[3].1.clone();
    let mut value = json!({
        "password": "s3cr3t-word",
        "password_hint": "s3cr3t-word",
        "nested": [{"note": format!("use {token} there")}, 5, null],
        (token.clone()): "x",
        "tokens": 12,
    });
    Redactor::new().value(&mut value);
    assert_eq!(
        value,
        json!({
            "password": "[redacted:assignment]",
            "password_hint": "s3cr3t-word",
            "nested": [{"note": "use [redacted:github] there"}, 5, null],
            "[redacted:github]": "x",
            "tokens": 12,
        })
    );
}

#[test]
fn b_17_a_stream_holds_back_little_and_time_is_linear() {
    let redactor = Redactor::new();
    let mut stream = redactor.stream();
    let mut out = 0;
    // Endless beginnings, the worst case: 4 MiB of them take no noticeable time.
    let hard = "eyJaaaaaaaaa-eyJ://a:b://=password=\"-----BEGIN x sk-".repeat(64);
    for _ in 0..(4 << 20) / hard.len() {
        out += stream.push(hard.as_bytes()).len();
        assert!(stream.held() < LOOK);
    }
    assert!(out > 1 << 20);
}

fn fragment() -> impl Strategy<Value = String> {
    let mut known: Vec<String> = tokens().into_iter().map(|(_, token)| token).collect();
    known.extend(
        [
            "password=",
            "token: ",
            "\"secret\": \"",
            "API_KEY=",
            "Bearer ",
            "https://",
            "user:",
            "@",
            "-----BEGIN ",
            "PRIVATE KEY-----",
            "-----END RSA ",
            "\\",
            "\"",
            "'",
            "\n",
            " ",
            "(",
            "[",
            "a1b2c3d4e5",
            "hunter2hunter",
            "zX9-kkQ2.mm",
            "[redacted:",
            "[redacted:github]",
            "é",
            "::",
            "=",
            ":",
            "_",
            "sk-",
            "eyJ",
            ".",
            "\x1b[1m",
            "\x1b[0m",
            "\x1b[2J",
            "\x1b]0;ghp_",
            "\x07",
            "\x1b",
            "--token ",
            "-u a:",
        ]
        .map(str::to_owned),
    );
    known.push(key());
    prop_oneof![4 => prop::sample::select(known), 1 => "[ -~]{0,12}"]
}

fn mixture() -> impl Strategy<Value = String> {
    prop::collection::vec(fragment(), 0..12).prop_map(|parts| parts.concat())
}

fn document() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        prop::sample::select(vec!["password", "token", "api_key", "note"]).prop_map(str::to_owned),
        mixture(),
    ];
    let leaf = prop_oneof![4 => mixture().prop_map(Value::from), 1 => Just(Value::from(7))];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        let fields = prop::collection::vec((name.clone(), inner.clone()), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            fields.prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn b_17_redacting_twice_changes_nothing_more(text in mixture()) {
        let redactor = Redactor::knowing(["zX9-kkQ2.mm"]);
        let once = redactor.text(&text).into_owned();
        prop_assert_eq!(redactor.text(&once), once.as_str());
        prop_assert!(once.len() <= 4 * text.len() + 32);
    }

    #[test]
    fn b_17_redacting_twice_changes_nothing_more_whatever_the_exact_values_are(
        text in mixture(),
        value in prop_oneof![
            prop::sample::select(
                [
                    "redacted", "redacted:", "[redacted", "environment]", ":environment",
                    "a1b2c3d4[", "]a1b2c3d4e5", "[redacted:environment]", "assignment",
                    "]hunter2hunter", "zX9-kkQ2.mm[redacted:",
                ].map(str::to_owned).to_vec(),
            ),
            "[ -~]{8,12}",
        ],
    ) {
        let redactor = Redactor::knowing([value.as_str(), "zX9-kkQ2.mm"]);
        let text = text.replace("a1b2c3d4e5", &value);
        let once = redactor.text(&text).into_owned();
        prop_assert_eq!(redactor.text(&once), once.as_str());
    }

    #[test]
    fn b_17_redacting_json_twice_changes_nothing_more(value in document()) {
        let redactor = Redactor::knowing(["zX9-kkQ2.mm"]);
        let mut once = value;
        redactor.value(&mut once);
        let mut twice = once.clone();
        redactor.value(&mut twice);
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn b_17_pieces_of_a_stream_come_out_as_the_whole_does(
        text in mixture(),
        cuts in prop_oneof![Just(vec![1]), prop::collection::vec(1usize..40, 1..20)],
    ) {
        let redactor = Redactor::knowing(["zX9-kkQ2.mm"]);
        // With so much behind it, each piece is decided on its own.
        let text = text + &"\n".repeat(LOOK);
        let whole = redactor.bytes(text.as_bytes()).into_owned();
        let mut stream = redactor.stream();
        let mut out = Vec::new();
        let mut rest = text.as_bytes();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            out.extend(stream.push(piece));
            rest = after;
        }
        out.extend(stream.finish());
        prop_assert_eq!(out, whole);
    }

    #[test]
    fn b_17_tokens_never_survive(text in mixture(), at in 0usize..13) {
        let token = &tokens()[at].1;
        let tail = format!(" {token}\n");
        let survives = clean(&format!("{text}{tail}")).ends_with(&tail);
        prop_assert!(!survives);
    }

    #[test]
    fn b_17_colours_between_the_letters_hide_nothing(at in 0usize..13, cut in 1usize..40) {
        let (kind, token) = &tokens()[at];
        let (front, back) = token.split_at(cut.min(token.len() - 1));
        for colour in ["\x1b[31m", "\x1b[0;1m", "\x1b]8;;http://x\x1b\\", "\x1b(B", "\u{9b}1m"] {
            let text = format!("say {front}{colour}{back} there");
            prop_assert_eq!(clean(&text), format!("say [redacted:{kind}]{colour} there"));
        }
    }
}

#[test]
fn b_17_a_stream_that_rests_gives_its_whole_lines_and_no_part_of_a_secret() {
    let redactor = Redactor::knowing(["hunter2hunter2"]);
    let mut stream = redactor.stream();
    assert_eq!(stream.push(b"one\r\ntwo hunter2hunter2\nthe key is hunter2"), b"");
    assert_eq!(stream.rest(), b"one\r\ntwo [redacted:environment]");
    assert_eq!(stream.rest(), b"", "it rests already");
    assert_eq!(stream.push(b"hunter2\x1b[1m!"), b"");
    assert_eq!(stream.rest(), b"", "a colour ends no word");
    assert_eq!(stream.push(b"\x1b[2;1H"), b"");
    assert_eq!(stream.rest(), b"\nthe key is [redacted:environment]\x1b[1m!");
    assert_eq!(stream.finish(), b"\x1b[2;1H");
}
