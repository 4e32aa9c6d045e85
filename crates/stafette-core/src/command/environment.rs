//! The environment of what a workflow starts: agents, hooks, the validation, the team's own program.

use std::ffi::OsString;

/// The prefix of Stafette's own variables. They are for no command: where runs are stored, who may
/// write there.
const OURS: &str = "STAFETTE_";

/// Variables that say who and where somebody is, and where tools are installed. They hold no secret.
const HARMLESS: [&str; 56] = [
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUN_INSTALL",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "COMPOSER_HOME",
    "CONDA_PREFIX",
    "CURL_CA_BUNDLE",
    "DENO_DIR",
    "DENO_INSTALL",
    "DOTNET_ROOT",
    "FNM_DIR",
    "GEM_HOME",
    "GEM_PATH",
    "GIT_SSL_CAINFO",
    "GOBIN",
    "GOCACHE",
    "GOMODCACHE",
    "GOPATH",
    "GOROOT",
    "GRADLE_USER_HOME",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "MAVEN_HOME",
    "MISE_DATA_DIR",
    "NIX_PATH",
    "NIX_PROFILES",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "NVM_BIN",
    "NVM_DIR",
    "PATH",
    "PNPM_HOME",
    "POETRY_HOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "REQUESTS_CA_BUNDLE",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SDKMAN_DIR",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "UV_CACHE_DIR",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
    "ZDOTDIR",
];

/// Prefixes of more variables of this kind.
const HARMLESS_PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// Addresses of proxies, in capitals or not. One with a user or a password has to be named.
const PROXIES: [&str; 5] = ["ALL_PROXY", "FTP_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"];

/// True if the variable is one of Stafette's own, which no command sees.
pub fn is_ours(name: &str) -> bool {
    name.starts_with(OURS)
}

/// Returns the variables that a command sees: harmless ones, and those that are named for it.
pub fn seen(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    is_named: impl Fn(&str) -> bool,
) -> Vec<(OsString, OsString)> {
    let is_seen = |name: &str, value: &OsString| {
        !is_ours(name) && (is_named(name) || is_harmless(name, value.to_str()))
    };
    let all = variables.into_iter();
    all.filter(|(name, value)| name.to_str().is_some_and(|name| is_seen(name, value))).collect()
}

fn is_harmless(name: &str, value: Option<&str>) -> bool {
    let is_proxy = PROXIES.iter().any(|proxy| proxy.eq_ignore_ascii_case(name));
    HARMLESS.contains(&name)
        || HARMLESS_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || is_proxy && value.is_some_and(|value| !value.contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_17_a_command_sees_what_is_harmless_and_what_is_named_for_it() {
        let all = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("RUSTUP_HOME", "/opt/rustup"),
            ("CARGO_HOME", "/opt/cargo"),
            ("JAVA_HOME", "/opt/java"),
            ("VIRTUAL_ENV", "/opt/venv"),
            ("HTTPS_PROXY", "http://proxy:3128"),
            ("no_proxy", "localhost"),
            ("http_proxy", "http://me:pass@proxy:3128"),
            ("ALL_PROXY", "me:pass@proxy:3128"),
            ("GITHUB_TOKEN", "x"),
            ("DATABASE_URL", "postgres://x"),
            ("STAFETTE_DATABASE", "x"),
        ];
        let all = || all.map(|(name, value)| (name.into(), value.into()));
        let names = |named: &[&str]| -> Vec<String> {
            let seen = seen(all(), |name| named.contains(&name));
            seen.into_iter().map(|(name, _)| name.into_string().expect("text")).collect()
        };
        let harmless = [
            "PATH",
            "LC_ALL",
            "RUSTUP_HOME",
            "CARGO_HOME",
            "JAVA_HOME",
            "VIRTUAL_ENV",
            "HTTPS_PROXY",
            "no_proxy",
        ];
        assert_eq!(names(&[]), harmless);
        let more = names(&["DATABASE_URL", "http_proxy", "STAFETTE_DATABASE"]);
        assert_eq!(more, [&harmless[..], &["http_proxy", "DATABASE_URL"]].concat());
    }
}
