//! 10,000 secrets of 40 kinds, described apart from the table that finds them. The tests of the
//! command line plant the same.

const HEX: &[u8] = b"0123456789abcdef";
const CAPITAL: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const ALPHANUMERIC: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// A secret: its kind, the text that gives it away, and the part that must not be kept.
#[derive(Clone)]
pub(crate) struct Planted {
    pub(crate) kind: &'static str,
    pub(crate) text: String,
    pub(crate) core: String,
}

/// Some letters, different for each `seed`.
pub(crate) fn letters(from: &[u8], count: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let letter = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(from[usize::try_from(state % from.len() as u64).expect("small")])
    };
    (0..count).map(letter).collect()
}

/// The number of secrets of each kind.
pub(crate) const EACH: u64 = 250;

/// Returns a secret of a kind: the text around it, and the part that must not be kept.
type Make = fn(u64) -> (String, String);

fn of(begins: &str, body: String) -> (String, String) {
    (format!("{begins}{body}"), body)
}

const KINDS: [(&str, Make); 40] = [
    ("stafette", |n| of("stf_", letters(HEX, 64, n))),
    ("stafette turn", |n| of("stt_", letters(HEX, 64, n))),
    ("anthropic", |n| of("sk-ant-api03-", letters(ALPHANUMERIC, 93, n) + "AA")),
    ("openai", |n| of("sk-", letters(ALPHANUMERIC, 48, n))),
    ("openai project", |n| of("sk-proj-", letters(ALPHANUMERIC, 74, n))),
    ("aws", |n| of("AKIA", letters(CAPITAL, 16, n))),
    ("aws secret", |n| of("aws_secret_access_key=", letters(ALPHANUMERIC, 40, n))),
    ("google", |n| of("AIza", letters(ALPHANUMERIC, 35, n))),
    ("google client", |n| of("GOCSPX-", letters(ALPHANUMERIC, 28, n))),
    ("azure storage", |n| of("AccountKey=", letters(ALPHANUMERIC, 86, n) + "==")),
    ("azure client", |n| of("a1B2Q~", letters(ALPHANUMERIC, 34, n))),
    ("github", |n| of("ghp_", letters(ALPHANUMERIC, 36, n))),
    ("github app", |n| of("ghs_", letters(ALPHANUMERIC, 36, n))),
    ("github fine", |n| of("github_pat_", letters(ALPHANUMERIC, 82, n))),
    ("gitlab", |n| of("glpat-", letters(ALPHANUMERIC, 20, n))),
    ("slack", |n| of("xoxb-1234567890-1234567890-", letters(ALPHANUMERIC, 24, n))),
    ("slack hook", |n| {
        of("https://hooks.slack.com/services/T01234567/B01234567/", letters(ALPHANUMERIC, 24, n))
    }),
    ("stripe", |n| of("sk_live_", letters(ALPHANUMERIC, 24, n))),
    ("huggingface", |n| of("hf_", letters(ALPHANUMERIC, 34, n))),
    ("npm", |n| of("npm_", letters(ALPHANUMERIC, 36, n))),
    ("pypi", |n| of("pypi-AgEIcHlwaS5vcmc", letters(ALPHANUMERIC, 70, n))),
    ("docker", |n| of("dckr_pat_", letters(ALPHANUMERIC, 27, n))),
    ("digitalocean", |n| of("dop_v1_", letters(HEX, 64, n))),
    ("twilio", |n| of("SK", letters(HEX, 32, n))),
    ("sendgrid", |n| of("SG.", letters(ALPHANUMERIC, 22, n) + "." + &letters(HEX, 43, n))),
    ("mailgun", |n| of("key-", letters(HEX, 32, n))),
    ("shopify", |n| of("shpat_", letters(HEX, 32, n))),
    ("square", |n| of("sq0atp-", letters(ALPHANUMERIC, 22, n))),
    ("heroku", |n| of("HRKU-", letters(ALPHANUMERIC, 60, n))),
    ("databricks", |n| of("dapi", letters(HEX, 32, n))),
    ("linear", |n| of("lin_api_", letters(ALPHANUMERIC, 40, n))),
    ("notion", |n| of("ntn_", letters(ALPHANUMERIC, 46, n))),
    ("discord", |n| of("MTIzNDU2Nzg5MDEyMzQ1Njc4.GaBcDe.", letters(ALPHANUMERIC, 38, n))),
    ("telegram", |n| of("123456789:AA", letters(ALPHANUMERIC, 33, n))),
    ("jwt", |n| of("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.", letters(ALPHANUMERIC, 43, n))),
    ("private key", |n| {
        let body = letters(ALPHANUMERIC, 64, n);
        (format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"), body)
    }),
    ("age", |n| of("AGE-SECRET-KEY-1", letters(CAPITAL, 58, n))),
    ("address", |n| {
        let body = letters(ALPHANUMERIC, 20, n);
        (format!("postgres://app:{body}@db:5432/app"), body)
    }),
    ("bearer", |n| of("Authorization: Bearer ", letters(ALPHANUMERIC, 40, n))),
    ("injected", |n| of("", letters(ALPHANUMERIC, 24, n))),
];

/// All of them, the same every time.
pub(crate) fn planted() -> Vec<Planted> {
    let kinds = KINDS.iter().enumerate();
    let all = kinds.flat_map(|(number, (kind, make))| {
        (0..EACH).map(move |n| {
            let (text, core) = make(n * KINDS.len() as u64 + number as u64 + 1);
            Planted { kind, text, core }
        })
    });
    all.collect()
}
