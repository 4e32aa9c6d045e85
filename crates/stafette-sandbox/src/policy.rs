//! The permissions of an agent, as data.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The use of a sandbox: `sandbox = "auto"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// No sandbox: the agent may do everything that its user may.
    #[default]
    Off,
    /// As far as the system supports it; the report lists what took effect.
    Auto,
    /// Complete, or the agent does not start.
    Strict,
}

/// The allowed network connections.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Connections to any address.
    #[default]
    Open,
    /// Connections to these TCP ports only.
    Ports(Vec<u16>),
}

/// The permissions of an agent's processes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Paths that may be read, changed and run, with everything below.
    pub write: Vec<PathBuf>,
    /// Paths that may be read and run, with everything below.
    pub read: Vec<PathBuf>,
    pub sockets: Vec<PathBuf>,
    /// Sockets that may not be connected to, although the folders around them are granted.
    pub closed: Vec<PathBuf>,
    /// Paths that must not be changed, although their surroundings may be; the folders around them
    /// cannot be moved away. Of those that are missing, only some are reserved (`prepare`).
    pub pinned: Vec<PathBuf>,
    /// Folders and files that others lie over.
    pub swaps: Vec<Swap>,
    /// Paths that must be neither read nor changed, whatever is granted around them.
    pub hidden: Vec<PathBuf>,
    /// A private folder for temporary files. It replaces `/tmp` where that is possible.
    pub temp: PathBuf,
    /// The allowed network connections.
    pub network: Network,
}

/// A folder or a file that is seen in the place of another; a file can only be read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Swap {
    /// The folder that is covered.
    pub over: PathBuf,
    /// The folder that is seen there.
    pub with: PathBuf,
    /// Where the covered folder can still be read; `None` if nowhere.
    pub kept: Option<PathBuf>,
}

/// A place in a writable folder that something is mounted on: it cannot be renamed or removed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    pub at: PathBuf,
    pub is_read_only: bool,
}

/// The paths from which an agent's policy is made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Places {
    /// The user's home folder.
    pub home: PathBuf,
    pub worktree: PathBuf,
    /// The git folder of this worktree alone; `None` without a repository.
    pub git_own: Option<PathBuf>,
    /// The git folder that all worktrees share; `None` without a repository.
    pub git_common: Option<PathBuf>,
    /// The worktree's branch; the agent may move it and the other branches of the same run.
    pub branch: Option<String>,
    /// A folder with `objects`, `heads` and `logs` of the agent's own, which lie over the shared
    /// ones, and `shared`, where the shared objects can be read; `None` if it may write to those.
    pub lent: Option<PathBuf>,
    /// A private folder for temporary files.
    pub temp: PathBuf,
    /// Folders with the state of the agent's program: logins, history, caches.
    pub state: Vec<PathBuf>,
    /// Sockets that it needs, such as the one of its session.
    pub sockets: Vec<PathBuf>,
    /// Paths in the worktree that it must not change: what steers agents and other programs.
    pub pinned: Vec<PathBuf>,
}

/// Paths of the system that every program needs.
const SYSTEM: [&str; 19] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/snap",
    "/proc",
    "/sys/fs/cgroup",
    "/sys/devices/system",
    "/sys/kernel/mm",
    "/run/systemd/resolve",
    "/run/current-system",
    "/var/lib/ca-certificates",
    "/var/lib/dpkg",
];

/// Harmless devices that every program may use.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/shm",
];

/// Folders in a home where tools are installed.
const TOOLS: [&str; 24] = [
    ".asdf",
    ".bun",
    ".cargo",
    ".config/git",
    ".config/mise",
    ".deno",
    ".fnm",
    ".gitconfig",
    ".jenv",
    ".local/bin",
    ".local/lib",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pnpm",
    ".local/share/uv",
    ".nvm",
    ".npm-global",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".volta",
    "go",
    "sdk",
];

/// Paths in a home where keys are stored, or where services of the user listen.
const KEYS: [&str; 53] = [
    ".1password",
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".boto",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".colima",
    ".composer/auth.json",
    ".config/1Password",
    ".config/Bitwarden",
    ".config/BraveSoftware",
    ".config/chromium",
    ".config/configstore",
    ".config/doctl",
    ".config/fly",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/glab-cli",
    ".config/google-chrome",
    ".config/heroku",
    ".config/hub",
    ".config/keepassxc",
    ".config/microsoft-edge",
    ".config/mise/age.txt",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".docker",
    ".emacs.d/server",
    ".git-credentials",
    ".gem/credentials",
    ".kube",
    ".lima",
    ".local/share/keyrings",
    ".local/share/uv/credentials",
    ".mozilla",
    ".netrc",
    ".npm-global/etc/npmrc",
    ".npmrc",
    ".orbstack",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".rd",
    ".terraform.d",
    ".thunderbird",
    ".vault-token",
    ".yarnrc.yml",
    "Library/Keychains",
    "snap",
];

/// Settings in a home that tools need, and that are hidden if a password is among them.
const MIXED: [&str; 5] = [
    ".cargo/config",
    ".cargo/config.toml",
    ".config/git/config",
    ".config/mise/config.toml",
    ".gitconfig",
];

/// What is in settings with a password among them, in small letters.
const PASSWORDS: [&str; 8] =
    ["token", "pass", "secret", "extraheader", "authorization", "api_key", "apikey", "cookie"];

/// The most that is read of such settings, in bytes; longer ones are hidden.
const SETTINGS_BYTES: u64 = 1024 * 1024;

/// Keys of the system, and sockets that give the power of another user.
const POWERS: [&str; 15] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/security/opasswd",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/krb5.keytab",
    "/etc/NetworkManager/system-connections",
    "/run/docker.sock",
    "/run/podman",
    "/run/containerd",
    "/run/user",
    "/run/dbus",
];

/// The settings of a repository, relative to its git folder: they name programs that git starts.
const SETTINGS: [&str; 4] = ["hooks", "config", "config.worktree", "info"];

/// The settings of git that can hold a password, relative to a git folder.
const GIT_SETTINGS: [&str; 2] = ["config", "config.worktree"];

/// The files in the git folder of a worktree that say which repository and settings it has.
const WORKTREE_SETTINGS: [&str; 3] = ["commondir", "gitdir", "config.worktree"];

impl Policy {
    /// Makes the policy with what an agent needs for its work, and no more: it may change its
    /// worktree, its temporary folder and its own state; it may read the system and installed
    /// tools, and nothing else of the home.
    pub fn for_agent(places: &Places) -> Policy {
        let Places {
            home,
            worktree,
            git_own,
            git_common,
            branch,
            lent,
            temp,
            state,
            sockets,
            pinned,
        } = places;
        let mut policy = Policy {
            write: vec![worktree.clone(), temp.clone()],
            read: SYSTEM.map(PathBuf::from).to_vec(),
            sockets: sockets.clone(),
            closed: Vec::new(),
            pinned: pinned.clone(),
            swaps: Vec::new(),
            hidden: KEYS.map(|key| home.join(key)).to_vec(),
            temp: temp.clone(),
            network: Network::Open,
        };
        let git = worktree.join(".git");
        match git.join("HEAD").exists() && !git.is_symlink() {
            true => policy.pinned.extend(SETTINGS.map(|name| git.join(name))),
            // The link to the repository must not be redirected, and where there is none, a new one
            // would have its own settings.
            false => policy.pinned.push(git),
        }
        policy.write.extend(state.iter().cloned());
        policy.write.extend(DEVICES.map(PathBuf::from));
        policy.read.extend(TOOLS.map(|tool| home.join(tool)));
        policy.hidden.extend(POWERS.map(PathBuf::from));
        let mixed = MIXED.map(|name| home.join(name)).into_iter();
        policy.hidden.extend(mixed.filter(|file| has_password(file)));
        if let Some(common) = git_common {
            // Objects, and the branches of the run: its own ones over the shared. Hooks, settings and
            // the user's branches are readable at most.
            policy.read.push(common.clone());
            let mut shared = vec![(common.join("objects"), "objects", Some("shared"))];
            let ours = branch.as_deref().and_then(|branch| branch.rsplit_once('/'));
            if let Some((folder, _)) = ours {
                shared.push((common.join("refs/heads").join(folder), "heads", None));
                shared.push((common.join("logs/refs/heads").join(folder), "logs", None));
            }
            for (over, with, kept) in shared {
                policy.write.push(over.clone());
                policy.swaps.extend(lent.iter().map(|lent| Swap {
                    over: over.clone(),
                    with: lent.join(with),
                    kept: kept.map(|kept| lent.join(kept)),
                }));
            }
            policy.pinned.extend(SETTINGS.map(|name| common.join(name)));
        }
        if let Some(own) = git_own {
            policy.write.push(own.clone());
            policy.pinned.extend(WORKTREE_SETTINGS.map(|name| own.join(name)));
        }
        // A program's own state may be among the keys: it needs its login to run.
        policy.hidden.retain(|hidden| !state.iter().any(|state| hidden.starts_with(state)));
        policy
    }

    /// Has the settings in a git folder seen without passwords, from copies in the folder `copies`, which
    /// the agent cannot write. Git needs the rest of them.
    ///
    /// # Errors
    /// When a copy cannot be written.
    pub fn withhold(&mut self, git: &Path, copies: &Path) -> std::io::Result<()> {
        for (name, copy) in GIT_SETTINGS.iter().map(|name| (git.join(name), copies.join(name))) {
            if !name.symlink_metadata().is_ok_and(|found| found.is_file()) {
                continue;
            }
            let Ok(text) = stafette_disk::read(&name, SETTINGS_BYTES) else {
                self.hidden.push(name);
                continue;
            };
            let text = String::from_utf8_lossy(&text);
            let without = without_passwords(&text);
            if without != text {
                stafette_disk::folder(copies)?;
                stafette_disk::write(&copy, without)?;
                self.read.push(copy.clone());
                self.swaps.push(Swap { over: name, with: copy, kept: None });
            }
        }
        Ok(())
    }

    /// True if a path is inside a writable folder.
    pub(crate) fn is_writable(&self, path: &Path) -> bool {
        path.parent().is_some_and(|folder| self.root(&real(folder)).is_some())
    }

    /// Returns the outermost writable folder that a folder is in, or is.
    fn root(&self, folder: &Path) -> Option<PathBuf> {
        let roots = self.write.iter().map(|write| real(write));
        roots.filter(|root| folder.starts_with(root)).min_by_key(|root| root.as_os_str().len())
    }

    /// True if a link that can be changed leads to a path.
    pub(crate) fn is_linked(&self, path: &Path) -> bool {
        let roots = self.write.iter().flat_map(|write| [write.clone(), real(write)]);
        let mut inner = roots.filter_map(|root| Some((path.strip_prefix(&root).ok()?, root)));
        inner.any(|(inner, root)| {
            let mut at = root;
            inner.components().any(|name| {
                at.push(name);
                at.is_symlink()
            })
        })
    }

    /// Returns what has to stay where it is: pinned paths, and the writable folders around them. A path
    /// that a link leads to is left out, since the link can be changed and could lead anywhere.
    pub(crate) fn pins(&self) -> Vec<Pin> {
        let mut pinned = self.fixed();
        pinned.sort();
        pinned.dedup();
        let held = self.held().into_iter().filter(|folder| !pinned.contains(folder));
        let held: Vec<Pin> = held.map(|at| Pin { at, is_read_only: false }).collect();
        held.into_iter()
            .chain(pinned.into_iter().map(|at| Pin { at, is_read_only: true }))
            .collect()
    }

    /// Lists the writable folders around pinned paths, outer ones first. They must stay where they
    /// are: a folder that is moved away takes along what is pinned in it, and another can be put in
    /// its place.
    pub(crate) fn held(&self) -> Vec<PathBuf> {
        let mut held = Vec::new();
        for path in self.fixed() {
            let Some(folder) = path.parent() else { continue };
            let Some(root) = self.root(folder) else { continue };
            held.extend(folder.ancestors().take_while(|it| **it != root).map(Path::to_owned));
        }
        held.sort();
        held.dedup();
        held
    }

    /// Lists the pinned paths that are there and could be changed, by the names that lead to them
    /// without links.
    fn fixed(&self) -> Vec<PathBuf> {
        let can_be_fixed = |path: &&PathBuf| self.is_writable(path) && !self.is_linked(path);
        let fixed = self.pinned.iter().filter(can_be_fixed).map(|path| self.plain(path));
        fixed.filter(|path| path.symlink_metadata().is_ok_and(|it| !it.is_symlink())).collect()
    }

    /// Returns the name of a path in a writable folder. Only the name of that folder is resolved: what
    /// is in it can become a link at any time.
    fn plain(&self, path: &Path) -> PathBuf {
        let roots = self
            .write
            .iter()
            .flat_map(|root| [(root.clone(), real(root)), (real(root), real(root))]);
        let outermost = roots
            .filter(|(name, _)| path.starts_with(name))
            .min_by_key(|(name, _)| name.as_os_str().len());
        let inner =
            outermost.and_then(|(name, root)| Some(root.join(path.strip_prefix(name).ok()?)));
        let inner = inner.map(|path| without_dots(&path));
        inner.unwrap_or_else(|| {
            let folder = path.parent().map(real).unwrap_or_default();
            folder.join(path.file_name().unwrap_or_default())
        })
    }

    /// Splits grants so that none contains a hidden path: a folder with something hidden in it is
    /// granted child by child, as of now.
    pub(crate) fn split(&self, grants: &[PathBuf]) -> Vec<PathBuf> {
        let mut clear = Vec::new();
        let mut waiting: Vec<PathBuf> = grants.iter().map(|grant| real(grant)).collect();
        let hidden: Vec<PathBuf> = self.hidden.iter().map(|hidden| real(hidden)).collect();
        while let Some(path) = waiting.pop() {
            if hidden.iter().any(|hidden| path.starts_with(hidden)) {
                continue;
            }
            if !hidden.iter().any(|hidden| hidden.starts_with(&path) && hidden.exists()) {
                clear.push(path);
                continue;
            }
            let children = std::fs::read_dir(&path).into_iter().flatten().flatten();
            waiting.extend(children.map(|child| child.path()).filter(|child| !child.is_symlink()));
        }
        clear.sort();
        clear.dedup();
        clear
    }
}

/// True if settings name a password, or have an address with one.
fn has_password(file: &Path) -> bool {
    if !file.exists() {
        return false;
    }
    let Ok(text) = stafette_disk::read(file, SETTINGS_BYTES) else { return true };
    let text = String::from_utf8_lossy(&text).to_ascii_lowercase();
    let has_address = |line: &str| {
        let mut addresses = line.split("://").skip(1);
        addresses.any(|rest| rest.split(['/', ' ', '"']).next().is_some_and(|it| it.contains('@')))
    };
    PASSWORDS.iter().any(|word| text.contains(word)) || text.lines().any(has_address)
}

/// Returns settings of git without the lines that hold a password, and with addresses without one.
fn without_passwords(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n');
    while let Some(line) = lines.next() {
        let mut whole = line.to_owned();
        // A value goes on where a line ends with an odd number of these.
        let goes_on = |line: &str| {
            let line = line.trim_end_matches(['\n', '\r']);
            (line.len() - line.trim_end_matches('\\').len()) % 2 == 1
        };
        while goes_on(&whole)
            && let Some(next) = lines.next()
        {
            whole.push_str(next);
        }
        let header = match whole.trim_start().starts_with('[') {
            // A `]` in quotes is rare, and what follows is then read as a setting.
            true => whole.find(']').map_or(whole.len(), |end| end + 1),
            false => 0,
        };
        let (header, setting) = whole.split_at(header);
        out.push_str(&without_users(header));
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        let (key, value) = (key.to_ascii_lowercase(), value.to_ascii_lowercase());
        // A helper is a command, and can print one.
        let is_helper = key.trim() == "helper";
        let is_in = |word: &&str| key.contains(*word) || is_helper && value.contains(*word);
        match PASSWORDS.iter().any(is_in) || value.contains("authorization") {
            true => out.push('\n'),
            false => out.push_str(&without_users(setting)),
        }
    }
    out
}

/// Returns a text in which the addresses have no user with a password. The user of SSH alone is none.
fn without_users(text: &str) -> String {
    let mut parts = text.split("://");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_ssh = ["ssh", "git"].iter().any(|scheme| out.ends_with(scheme));
        let end = part.find(|c: char| "/?#".contains(c) || c.is_whitespace()).unwrap_or(part.len());
        let at = part[..end].rfind('@').filter(|at| !is_ssh || part[..*at].contains(':'));
        out.push_str("://");
        out.push_str(at.map_or(part, |at| &part[at + 1..]));
    }
    out
}

/// Resolves `..` in a path whose folders up to there are no links.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, part| {
        match part {
            Component::ParentDir => drop(path.pop()),
            part => path.push(part),
        }
        path
    })
}

/// Returns a path without links, so that one place has one name; unchanged if it cannot be
/// resolved.
pub(crate) fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns the variables that tell git the name and the address of its user, where the file that says
/// them is hidden.
pub(crate) fn identity(policy: &Policy) -> Vec<(&'static str, String)> {
    let files = policy
        .hidden
        .iter()
        .filter(|path| path.ends_with(".gitconfig") || path.ends_with(".config/git/config"));
    let (mut name, mut email) = (None, None);
    for file in files {
        let text = stafette_disk::read_text(file, SETTINGS_BYTES).unwrap_or_default();
        let mut is_user = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                is_user = line.eq_ignore_ascii_case("[user]");
            }
            let Some((key, value)) = line.split_once('=').filter(|_| is_user) else { continue };
            let value = value.trim().trim_matches('"').to_owned();
            match key.trim().to_ascii_lowercase().as_str() {
                "name" => name = Some(value),
                "email" => email = Some(value),
                _ => {}
            }
        }
    }
    let both = |value: Option<String>, names: [&'static str; 2]| {
        value.into_iter().flat_map(move |value| names.map(|name| (name, value.clone())))
    };
    both(name, ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"])
        .chain(both(email, ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn b_08_no_grant_of_an_agents_policy_contains_a_key() {
        let world = tempfile::tempdir().expect("a folder");
        let home = world.path().join("home");
        for folder in [".ssh", ".cargo/bin", ".config/git", ".claude"] {
            fs::create_dir_all(home.join(folder)).expect("folders");
        }
        for file in [".cargo/credentials.toml", ".config/git/credentials", ".cargo/config.toml"] {
            fs::write(home.join(file), "x").expect("written");
        }
        let places = Places {
            home: home.clone(),
            worktree: world.path().join("tree"),
            temp: world.path().join("temp"),
            state: vec![home.join(".claude")],
            ..Places::default()
        };
        let policy = Policy::for_agent(&places);
        let grants = policy.split(&[&policy.read[..], &policy.write[..]].concat());
        assert!(grants.contains(&real(&home.join(".cargo/bin"))));
        assert!(grants.contains(&real(&home.join(".cargo/config.toml"))));
        for key in [".ssh", ".ssh/id_ed25519", ".cargo/credentials.toml", ".config/git/credentials"]
        {
            let key = real(&home).join(key);
            assert!(!grants.iter().any(|grant| key.starts_with(grant)), "{}", key.display());
        }
        assert!(!grants.iter().any(|grant| real(&home).starts_with(grant)), "not the home");
        assert!(identity(&policy).is_empty());
        let text = serde_json::to_string(&policy).expect("JSON");
        assert_eq!(serde_json::from_str::<Policy>(&text).expect("a policy"), policy);
    }

    #[test]
    fn b_08_settings_are_hidden_if_a_password_is_among_them() {
        let world = tempfile::tempdir().expect("a folder");
        let home = world.path();
        let user = "[user]\n\tname = Ada\n\temail = \"ada@example.org\"\n";
        for (name, text, is_hidden) in [
            (".gitconfig", user, false),
            (".gitconfig", "[http]\n\textraHeader = x\n[user]\n\tname = Ada\n", true),
            (
                ".config/git/config",
                concat!("[url \"https://x:y", "@h/\"]\n\tinsteadOf = https://h/\n"),
                true,
            ),
            (".config/git/config", "[url \"ssh://h/\"]\n\tinsteadOf = https://h/\n", false),
            (".cargo/config.toml", "[registries.x]\ntoken = \"x\"\n", true),
            (".cargo/config.toml", "[build]\njobs = 2\n", false),
            (".config/mise/config.toml", "[env]\nX_PASSWORD = \"x\"\n", true),
            (".config/mise/age.txt", "x", true),
            (".npm-global/etc/npmrc", "x", true),
        ] {
            let file = home.join(name);
            fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
            fs::write(&file, text).expect("written");
            let places = Places { home: home.to_owned(), ..Places::default() };
            let policy = Policy::for_agent(&places);
            let grants = policy.split(&policy.read);
            let is_granted = grants.iter().any(|grant| real(&file).starts_with(grant));
            assert_eq!(is_granted, !is_hidden, "{name}: {text}");
            let named = identity(&policy).into_iter().any(|it| it.1 == "Ada");
            assert_eq!(named, is_hidden && text.contains("Ada"), "{text}");
            fs::remove_file(&file).expect("removed");
        }
    }

    #[test]
    fn b_21_gits_own_settings_are_seen_without_passwords() {
        for (text, without) in [
            ("[core]\n\tbare = false\n", "[core]\n\tbare = false\n"),
            (concat!("\turl = https://u:p", "@h/x\n"), "\turl = https://h/x\n"),
            ("\turl = \"https://ghp_x@h/x\"\n", "\turl = \"https://h/x\"\n"),
            (
                "\turl = ssh://git@h/x\n\tpushurl=git@h:x\n",
                "\turl = ssh://git@h/x\n\tpushurl=git@h:x\n",
            ),
            (concat!("\turl = ssh://git:p", "@h/x\n"), "\turl = ssh://h/x\n"),
            ("[http]\n\textraHeader = AUTHORIZATION: basic x\n[a]\n", "[http]\n\n[a]\n"),
            ("[http] extraheader = \\\n  secret\n\tb = 1\n", "[http]\n\tb = 1\n"),
            (
                concat!("[http \"https://u:p", "@h/\"]\n\tproxy = x\n"),
                "[http \"https://h/\"]\n\tproxy = x\n",
            ),
            (
                "[branch \"token\"]\n\tmerge = refs/heads/token\n",
                "[branch \"token\"]\n\tmerge = refs/heads/token\n",
            ),
            ("\thelper = !echo password=x\n\thelper = cache\n", "\n\thelper = cache\n"),
            ("\tx = a\\\\\n\ttoken = y", "\tx = a\\\\\n\n"),
        ] {
            assert_eq!(without_passwords(text), without, "{text:?}");
        }
    }
}
