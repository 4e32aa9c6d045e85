//! The known shapes of tokens, as data: each provider's name, the beginning of its tokens, and what
//! follows. They are the shapes that the public rules of secret scanners describe.

use super::shape::Class;
use Class::{Alphanumeric, Capital, Dashed, Dotted, Header, Hex, Slashed, Word};

/// The shape of a token: a beginning, then a number of bytes of a class, then perhaps more parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The name of the provider, which the mark shows.
    pub(super) kind: &'static str,
    pub(super) begins: &'static [u8],
    pub(super) class: Class,
    pub(super) least: usize,
    /// The maximum number of bytes of the class, for beginnings that appear by chance.
    pub(super) most: usize,
    /// The parts that follow: the byte in front, the class, and the minimum number.
    pub(super) then: &'static [(u8, Class, usize)],
    /// True if the beginning is no secret, such as that of an address, and stays.
    pub(super) keeps: bool,
}

const fn shape(kind: &'static str, begins: &'static str, class: Class, least: usize) -> Shape {
    let begins = begins.as_bytes();
    Shape { kind, begins, class, least, most: usize::MAX, then: &[], keeps: false }
}

impl Shape {
    /// Of this length only.
    const fn exactly(self) -> Shape {
        Shape { most: self.least, ..self }
    }

    /// With more parts, the first of which has a fixed length.
    const fn then(self, then: &'static [(u8, Class, usize)]) -> Shape {
        Shape { most: self.least, then, ..self }
    }

    /// The beginning stays.
    const fn keeping(self) -> Shape {
        Shape { keeps: true, ..self }
    }

    /// True if its beginning is so distinctive that it counts in the middle of a word too.
    pub(super) fn is_distinct(&self) -> bool {
        self.begins.len() >= 4 && !self.begins.iter().all(u8::is_ascii_alphanumeric)
    }
}

/// The known shapes; the first match counts.
pub(super) const SHAPES: &[Shape] = &[
    // Our own: tokens of programs, of turns, and the keys of launch links.
    shape("stafette", "stf_", Alphanumeric, 20),
    shape("stafette", "stt_", Alphanumeric, 20),
    shape("stafette", "stl_", Alphanumeric, 20),
    // Models and what is around them.
    shape("anthropic", "sk-ant-", Dashed, 16),
    shape("openai", "sk-proj-", Dashed, 20),
    shape("openai", "sk-svcacct-", Dashed, 20),
    shape("openai", "sk-admin-", Dashed, 20),
    shape("openai", "sk-None-", Dashed, 20),
    shape("openrouter", "sk-or-v1-", Dashed, 20),
    shape("langfuse", "sk-lf-", Dashed, 32),
    shape("openai", "sk-", Alphanumeric, 20),
    shape("elevenlabs", "sk_", Hex, 48).exactly(),
    shape("huggingface", "hf_", Alphanumeric, 30),
    shape("huggingface", "api_org_", Alphanumeric, 30),
    shape("groq", "gsk_", Alphanumeric, 40),
    shape("xai", "xai-", Alphanumeric, 40),
    shape("perplexity", "pplx-", Alphanumeric, 40),
    shape("replicate", "r8_", Alphanumeric, 30),
    shape("togetherai", "tgp_v1_", Dashed, 30),
    shape("langsmith", "lsv2_pt_", Word, 30),
    shape("langsmith", "lsv2_sk_", Word, 30),
    shape("pinecone", "pcsk_", Word, 40),
    shape("tavily", "tvly-", Dashed, 28),
    shape("nvidia", "nvapi-", Dashed, 40),
    shape("cerebras", "csk-", Alphanumeric, 40),
    // Clouds.
    shape("aws", "AKIA", Capital, 16),
    shape("aws", "ASIA", Capital, 16),
    shape("aws", "ABIA", Capital, 16),
    shape("aws", "ACCA", Capital, 16),
    shape("aws", "bedrock-api-key-", Header, 40),
    shape("aws", "ABSKQmVkcm9ja0FQSUtleS", Header, 40),
    shape("google", "AIza", Dashed, 35),
    shape("google", "ya29.", Dashed, 20),
    shape("google", "GOCSPX-", Dashed, 20),
    shape("google", "1//0", Dashed, 40),
    shape("alibaba", "LTAI", Alphanumeric, 17),
    shape("digitalocean", "dop_v1_", Alphanumeric, 40),
    shape("digitalocean", "doo_v1_", Alphanumeric, 40),
    shape("digitalocean", "dor_v1_", Alphanumeric, 40),
    shape("cloudflare", "v1.0-", Hex, 24).then(&[(b'-', Hex, 100)]),
    shape("databricks", "dapi", Hex, 32).exactly(),
    shape("databricks", "doseb", Hex, 32),
    shape("fly", "fo1_", Dashed, 40),
    shape("fly", "fm1_", Header, 40),
    shape("fly", "fm2_", Header, 40),
    shape("heroku", "HRKU-", Dashed, 32),
    shape("netlify", "nfp_", Alphanumeric, 36),
    shape("vercel", "vcp_", Alphanumeric, 24),
    shape("supabase", "sbp_", Hex, 40),
    shape("supabase", "sb_secret_", Dashed, 20),
    shape("planetscale", "pscale_tkn_", Dotted, 32),
    shape("planetscale", "pscale_pw_", Dotted, 32),
    shape("planetscale", "pscale_oauth_", Dotted, 32),
    shape("tailscale", "tskey-", Dashed, 20),
    shape("yandex", "AQVN", Dashed, 35),
    shape("openshift", "sha256~", Dashed, 43),
    shape("clickhouse", "4b1d", Alphanumeric, 38).exactly(),
    // Source, packages and builds.
    shape("github", "ghp_", Alphanumeric, 30),
    shape("github", "gho_", Alphanumeric, 30),
    shape("github", "ghu_", Alphanumeric, 30),
    shape("github", "ghs_", Alphanumeric, 30),
    shape("github", "ghr_", Alphanumeric, 30),
    shape("github", "github_pat_", Word, 22),
    shape("gitlab", "glpat-", Dotted, 20),
    shape("gitlab", "gldt-", Dashed, 20),
    shape("gitlab", "glrt-", Dotted, 20),
    shape("gitlab", "glrtr-", Dotted, 20),
    shape("gitlab", "glcbt-", Dashed, 20),
    shape("gitlab", "glptt-", Dashed, 20),
    shape("gitlab", "glft-", Dashed, 20),
    shape("gitlab", "glimt-", Dashed, 20),
    shape("gitlab", "glsoat-", Dashed, 20),
    shape("gitlab", "glffct-", Dashed, 20),
    shape("gitlab", "gloas-", Dashed, 20),
    shape("gitlab", "glagent-", Dashed, 40),
    shape("gitlab", "GR1348941", Dashed, 20),
    shape("bitbucket", "ATBB", Alphanumeric, 28),
    shape("atlassian", "ATATT3", Header, 60),
    shape("atlassian", "ATCTT3", Header, 60),
    shape("npm", "npm_", Alphanumeric, 30),
    shape("pypi", "pypi-AgE", Dashed, 40),
    shape("rubygems", "rubygems_", Hex, 48),
    shape("crates", "cio", Alphanumeric, 32).exactly(),
    shape("clojars", "CLOJARS_", Alphanumeric, 60),
    shape("nuget", "oy2", Alphanumeric, 43).exactly(),
    shape("docker", "dckr_pat_", Dashed, 20),
    shape("docker", "dckr_oat_", Dashed, 20),
    shape("packages", "AKCp", Alphanumeric, 69),
    shape("sonar", "squ_", Hex, 40),
    shape("sonar", "sqp_", Hex, 40),
    shape("sonar", "sqa_", Hex, 40),
    shape("sourcegraph", "sgp_", Word, 40),
    shape("buildkite", "bkua_", Hex, 40),
    shape("octopus", "API-", Capital, 26),
    shape("prefect", "pnu_", Alphanumeric, 36),
    shape("pulumi", "pul-", Hex, 40),
    shape("infracost", "ico-", Alphanumeric, 32),
    shape("postman", "PMAK-", Dashed, 34),
    shape("readme", "rdme_", Alphanumeric, 70),
    shape("hashicorp", "hvs.", Dashed, 24),
    shape("hashicorp", "hvb.", Dashed, 24),
    shape("hashicorp", "hvr.", Dashed, 24),
    shape("hashicorp", "atlasv1.", Dashed, 50),
    shape("doppler", "dp.pt.", Alphanumeric, 40),
    shape("doppler", "dp.st.", Dotted, 40),
    shape("doppler", "dp.ct.", Alphanumeric, 40),
    shape("doppler", "dp.sa.", Alphanumeric, 40),
    shape("doppler", "dp.scim.", Alphanumeric, 40),
    shape("onepassword", "ops_eyJ", Header, 200),
    shape("age", "AGE-SECRET-KEY-1", Alphanumeric, 40),
    // Watching.
    shape("grafana", "glc_", Header, 32),
    shape("grafana", "glsa_", Word, 32),
    shape("grafana", "eyJrIjoi", Header, 60),
    shape("newrelic", "NRAK-", Alphanumeric, 27),
    shape("newrelic", "NRJS-", Alphanumeric, 19),
    shape("newrelic", "NRII-", Dashed, 32),
    shape("sentry", "sntrys_", Header, 60),
    shape("sentry", "sntryu_", Hex, 60),
    shape("posthog", "phx_", Alphanumeric, 40),
    shape("dynatrace", "dt0c01.", Capital, 24).then(&[(b'.', Capital, 60)]),
    // Messages, people and work.
    shape("slack", "xoxa-", Dashed, 10),
    shape("slack", "xoxb-", Dashed, 10),
    shape("slack", "xoxc-", Dashed, 10),
    shape("slack", "xoxd-", Header, 10),
    shape("slack", "xoxe-", Dashed, 10),
    shape("slack", "xoxe.xoxp-", Dashed, 10),
    shape("slack", "xoxe.xoxb-", Dashed, 10),
    shape("slack", "xoxo-", Dashed, 10),
    shape("slack", "xoxp-", Dashed, 10),
    shape("slack", "xoxr-", Dashed, 10),
    shape("slack", "xoxs-", Dashed, 10),
    shape("slack", "xapp-", Dashed, 10),
    shape("slack", "xwfp-", Dashed, 10),
    shape("slack", "hooks.slack.com/services/", Slashed, 30).keeping(),
    shape("slack", "hooks.slack.com/workflows/", Slashed, 30).keeping(),
    shape("slack", "hooks.slack.com/triggers/", Slashed, 30).keeping(),
    shape("discord", "discord.com/api/webhooks/", Slashed, 60).keeping(),
    shape("discord", "discordapp.com/api/webhooks/", Slashed, 60).keeping(),
    shape("teams", "webhook.office.com/webhookb2/", Slashed, 60).keeping(),
    shape("zapier", "hooks.zapier.com/hooks/catch/", Slashed, 12).keeping(),
    shape("telegram", "api.telegram.org/bot", Slashed, 8).keeping(),
    shape("twilio", "SK", Hex, 32).exactly(),
    shape("sendgrid", "SG.", Dashed, 22).then(&[(b'.', Dashed, 30)]),
    shape("mailgun", "key-", Hex, 32).exactly(),
    shape("mailgun", "pubkey-", Hex, 32).exactly(),
    shape("brevo", "xkeysib-", Dashed, 64),
    shape("brevo", "xsmtpsib-", Dashed, 64),
    shape("resend", "re_", Alphanumeric, 8).then(&[(b'_', Alphanumeric, 20)]),
    shape("linear", "lin_api_", Alphanumeric, 32),
    shape("linear", "lin_oauth_", Alphanumeric, 32),
    shape("notion", "ntn_", Alphanumeric, 40),
    shape("notion", "secret_", Alphanumeric, 43).exactly(),
    shape("airtable", "pat", Alphanumeric, 14).then(&[(b'.', Hex, 60)]),
    shape("asana", "1/", Hex, 16).then(&[(b':', Hex, 32)]),
    shape("figma", "figd_", Dashed, 36),
    shape("typeform", "tfp_", Dotted, 40),
    shape("contentful", "CFPAT-", Dashed, 40),
    shape("hubspot", "pat-na1-", Dashed, 32),
    shape("hubspot", "pat-eu1-", Dashed, 32),
    shape("mapbox", "sk.eyJ", Dotted, 60),
    shape("dropbox", "sl.", Dashed, 120),
    shape("facebook", "EAAC", Alphanumeric, 80),
    shape("facebook", "EAAM", Alphanumeric, 80),
    shape("twitter", "AAAAAAAAAAAAAAAAAAAAAA", Header, 60),
    shape("adafruit", "aio_", Alphanumeric, 28).exactly(),
    shape("adobe", "p8e-", Alphanumeric, 32),
    shape("intra", "s-s4t2ud-", Hex, 60),
    shape("frameio", "fio-u-", Dashed, 60),
    // Money and shops.
    shape("stripe", "sk_live_", Alphanumeric, 16),
    shape("stripe", "sk_test_", Alphanumeric, 16),
    shape("stripe", "sk_prod_", Alphanumeric, 16),
    shape("stripe", "rk_live_", Alphanumeric, 16),
    shape("stripe", "rk_test_", Alphanumeric, 16),
    shape("stripe", "rk_prod_", Alphanumeric, 16),
    shape("stripe", "whsec_", Header, 32),
    shape("square", "sq0atp-", Dashed, 22),
    shape("square", "sq0csp-", Dashed, 40),
    shape("square", "EAAAE", Dashed, 55),
    shape("square", "EAAAl", Dashed, 55),
    shape("shopify", "shpat_", Alphanumeric, 32),
    shape("shopify", "shpca_", Alphanumeric, 32),
    shape("shopify", "shppa_", Alphanumeric, 32),
    shape("shopify", "shpss_", Alphanumeric, 32),
    shape("plaid", "access-production-", Dashed, 32),
    shape("plaid", "access-development-", Dashed, 32),
    shape("plaid", "access-sandbox-", Dashed, 32),
    shape("flutterwave", "FLWSECK-", Dashed, 20),
    shape("flutterwave", "FLWSECK_TEST-", Dashed, 20),
    shape("easypost", "EZAK", Alphanumeric, 54),
    shape("easypost", "EZTK", Alphanumeric, 54),
    shape("duffel", "duffel_live_", Dashed, 40),
    shape("duffel", "duffel_test_", Dashed, 40),
    shape("shippo", "shippo_live_", Hex, 40),
    shape("shippo", "shippo_test_", Hex, 40),
    // The signature of an address that Azure shares.
    shape("azure", "sig=", Class::Query, 43).keeping(),
];

/// The shapes by the first byte of their beginnings: `ORDER[STARTS[byte]..STARTS[byte + 1]]`.
static ORDER: [u8; SHAPES.len()] = INDEX.0;
static STARTS: [u8; 257] = INDEX.1;

const INDEX: ([u8; SHAPES.len()], [u8; 257]) = {
    assert!(SHAPES.len() < 256, "a number of a shape is a byte");
    let mut order = [0; SHAPES.len()];
    let mut starts = [0; 257];
    let (mut byte, mut count) = (0, 0);
    while byte < 256 {
        starts[byte] = count as u8;
        let mut at = 0;
        while at < SHAPES.len() {
            if SHAPES[at].begins[0] as usize == byte {
                order[count] = at as u8;
                count += 1;
            }
            at += 1;
        }
        byte += 1;
    }
    starts[256] = count as u8;
    (order, starts)
};

/// Returns the shapes that begin with this byte, in their order.
pub(super) fn beginning_with(byte: u8) -> impl Iterator<Item = &'static Shape> {
    let at = usize::from(byte);
    let range = usize::from(STARTS[at])..usize::from(STARTS[at + 1]);
    ORDER[range].iter().map(|at| &SHAPES[usize::from(*at)])
}
