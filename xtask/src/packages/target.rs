//! The systems that there are packages for, and what each packager calls them.

/// A system.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Target {
    /// Its name in Rust, and in the name of its archive.
    pub(super) triple: &'static str,
    /// Its architecture in Debian, if it is one of theirs.
    pub(super) debian: Option<&'static str>,
    /// The end of the name of its npm package.
    pub(super) npm: &'static str,
    /// `os` and `cpu` of its npm package.
    pub(super) node: (&'static str, &'static str),
    /// The C library of its npm package.
    pub(super) libc: Option<&'static str>,
    /// The platform of its wheel; of a glibc, the architecture alone.
    pub(super) wheel: &'static str,
    /// The block of the Homebrew formula.
    pub(super) brew: Option<(&'static str, &'static str)>,
}

/// All of them. Only the first one has ever been tried.
pub(super) const TARGETS: [Target; 5] = [
    Target {
        triple: "x86_64-unknown-linux-gnu",
        debian: Some("amd64"),
        npm: "linux-x64",
        node: ("linux", "x64"),
        libc: Some("glibc"),
        wheel: "x86_64",
        brew: Some(("linux", "intel")),
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        debian: Some("arm64"),
        npm: "linux-arm64",
        node: ("linux", "arm64"),
        libc: Some("glibc"),
        wheel: "aarch64",
        brew: Some(("linux", "arm")),
    },
    Target {
        triple: "x86_64-unknown-linux-musl",
        debian: None,
        npm: "linux-x64-musl",
        node: ("linux", "x64"),
        libc: Some("musl"),
        wheel: "musllinux_1_2_x86_64",
        brew: None,
    },
    Target {
        triple: "aarch64-apple-darwin",
        debian: None,
        npm: "darwin-arm64",
        node: ("darwin", "arm64"),
        libc: None,
        wheel: "macosx_11_0_arm64",
        brew: Some(("macos", "arm")),
    },
    Target {
        triple: "x86_64-apple-darwin",
        debian: None,
        npm: "darwin-x64",
        node: ("darwin", "x64"),
        libc: None,
        wheel: "macosx_10_12_x86_64",
        brew: Some(("macos", "intel")),
    },
];

impl Target {
    pub(super) fn find(triple: &str) -> Result<&'static Target, String> {
        TARGETS.iter().find(|target| target.triple == triple).ok_or_else(|| {
            let known = TARGETS.map(|target| target.triple).join(", ");
            format!("there are no packages for `{triple}`, but for {known}")
        })
    }

    /// True if its programs use the glibc of the machine that they run on.
    pub(super) fn has_glibc(&self) -> bool {
        self.libc == Some("glibc")
    }

    /// The name of its archive, without `.tar.gz`.
    pub(super) fn archive(&self, version: &str) -> String {
        format!("stafette-{version}-{}", self.triple)
    }
}
