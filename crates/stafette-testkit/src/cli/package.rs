//! The pinned packages of the agents' command lines.

/// A package of the npm registry with a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Package {
    /// The name of its folder.
    pub(crate) name: &'static str,
    /// The pinned version of the package.
    pub(crate) version: &'static str,
    /// The version that its program reports.
    pub(crate) says: &'static str,
    /// The name of its program.
    pub(crate) program: &'static str,
    /// True if it needs a newer Node.js than most machines have.
    pub(crate) node_24: bool,
    /// Its `package.json`.
    pub(crate) manifest: &'static str,
    /// Its lock file, with all checksums.
    pub(crate) sums: &'static str,
}

macro_rules! package {
    ($name:literal, $version:literal, $says:literal, $program:literal, $node_24:literal) => {
        Package {
            name: $name,
            version: $version,
            says: $says,
            program: $program,
            node_24: $node_24,
            manifest: include_str!(concat!("../../cli/", $name, "/package.json")),
            sums: include_str!(concat!("../../cli/", $name, "/package-lock.json")),
        }
    };
}

impl Package {
    pub(crate) const CLAUDE: Package = package!("claude", "2.1.325", "2.1.325", "claude", false);
    pub(crate) const CLAUDE_ACP: Package =
        package!("claude-acp", "0.99.0", "0.99.0", "claude-agent-acp", true);
    pub(crate) const CODEX: Package = package!("codex", "0.166.0", "0.166.0", "codex", false);
    pub(crate) const CODEX_ACP: Package =
        package!("codex-acp", "2.6.0", "2.6.0", "codex-acp", true);
    pub(crate) const GEMINI: Package = package!("gemini", "0.61.0", "0.61.0", "gemini", true);
    pub(crate) const OPENCODE: Package =
        package!("opencode", "1.18.33", "1.18.33", "opencode", true);
    pub(crate) const QWEN: Package = package!("qwen", "0.24.4", "0.24.4", "qwen", true);
    /// The package counts otherwise than the program in it.
    pub(crate) const GOOSE: Package = package!("goose", "0.20.1", "1.34.0", "goose", true);

    #[cfg(test)]
    pub(crate) const ALL: [Package; 8] = [
        Package::CLAUDE,
        Package::CLAUDE_ACP,
        Package::CODEX,
        Package::CODEX_ACP,
        Package::GEMINI,
        Package::OPENCODE,
        Package::QWEN,
        Package::GOOSE,
    ];
}
