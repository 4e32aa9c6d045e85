//! What is allowed, as data.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Offer;

/// Whether an agent is in a sandbox: `sandbox = "auto"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It may do whatever its user may.
    #[default]
    Off,
    /// As far as the system can; the report says how far that is.
    Auto,
    /// All of it, or the agent does not start.
    Strict,
}

/// Where connections may go to.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Everywhere.
    #[default]
    Open,
    /// To these TCP ports only.
    Ports(Vec<u16>),
}

/// What the processes of an agent may touch.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// May be read, changed and run, with everything below.
    pub write: Vec<PathBuf>,
    /// May be read and run, with everything below.
    pub read: Vec<PathBuf>,
    /// Sockets that may be connected to.
    pub sockets: Vec<PathBuf>,
    /// Must not be changed, though what is around them may be. A folder that is not there cannot
    /// be made either; a file that is not there can, and shows in the work.
    pub pinned: Vec<PathBuf>,
    /// Must be neither read nor changed, whatever is around them.
    pub hidden: Vec<PathBuf>,
    /// A folder for temporary files of its own. It stands in for `/tmp` where that can be done.
    pub temp: PathBuf,
    /// Where connections may go to.
    pub network: Network,
}

/// The places that an agent's policy is made of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Places {
    /// The user's home.
    pub home: PathBuf,
    /// Where the agent works.
    pub worktree: PathBuf,
    /// What git keeps for this worktree alone.
    pub git_own: Option<PathBuf>,
    /// What git keeps for all worktrees.
    pub git_common: Option<PathBuf>,
    /// The worktree's branch; the agent may move it and its neighbours of the same run.
    pub branch: Option<String>,
    /// A folder of its own for temporary files.
    pub temp: PathBuf,
    /// Where the agent's program keeps its own state: logins, history, caches.
    pub state: Vec<PathBuf>,
    /// Sockets that it needs, such as the one of its session.
    pub sockets: Vec<PathBuf>,
}

/// What every program needs to see of a system.
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

/// Devices that are not the machine's.
const DEVICES: [&str; 10] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
    "/dev/fd",
];

/// Where tools are installed in a home.
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

/// Where keys are kept in a home.
const KEYS: [&str; 44] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".boto",
    ".cargo/credentials",
    ".cargo/credentials.toml",
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
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".docker",
    ".git-credentials",
    ".gem/credentials",
    ".kube",
    ".local/share/keyrings",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".terraform.d",
    ".thunderbird",
    ".vault-token",
    ".yarnrc.yml",
    "Library/Keychains",
    "snap",
];

/// Keys of the system, and sockets that amount to being someone else.
const POWERS: [&str; 12] = [
    "/etc/shadow",
    "/etc/gshadow",
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

/// What makes agents and git start programs, seen from where an agent works.
const LEVERS: [&str; 7] =
    [".claude", ".codex", ".gemini", ".mcp.json", ".stafette", "opencode.json", "stafette.toml"];

impl Policy {
    /// What an agent needs for its work, and no more: its worktree, its temporary folder and its
    /// own state to change; the system and installed tools to read; of the home nothing else.
    #[must_use]
    pub fn for_agent(places: &Places) -> Policy {
        let Places { home, worktree, git_own, git_common, branch, temp, state, sockets } = places;
        let mut policy = Policy {
            write: vec![worktree.clone(), temp.clone()],
            read: SYSTEM.map(PathBuf::from).to_vec(),
            sockets: sockets.clone(),
            pinned: LEVERS.map(|lever| worktree.join(lever)).to_vec(),
            hidden: KEYS.map(|key| home.join(key)).to_vec(),
            temp: temp.clone(),
            network: Network::Open,
        };
        let git = worktree.join(".git");
        match git.is_dir() {
            true => policy.pinned.extend([git.join("hooks"), git.join("config")]),
            // What points to the repository must not point to another one.
            false => policy.pinned.push(git),
        }
        policy.write.extend(state.iter().cloned());
        policy.write.extend(DEVICES.map(PathBuf::from));
        policy.read.extend(TOOLS.map(|tool| home.join(tool)));
        policy.hidden.extend(POWERS.map(PathBuf::from));
        if let Some(common) = git_common {
            // Objects cannot do harm, and a branch of the run is its own. Hooks, settings and the
            // user's branches are readable at most.
            policy.read.push(common.clone());
            policy.write.push(common.join("objects"));
            let ours = branch.as_deref().and_then(|branch| branch.rsplit_once('/'));
            if let Some((folder, _)) = ours {
                policy.write.push(common.join("refs/heads").join(folder));
                policy.write.push(common.join("logs/refs/heads").join(folder));
            }
            policy.pinned.extend([common.join("hooks"), common.join("config")]);
        }
        policy.write.extend(git_own.iter().cloned());
        // A program's own state may be among the keys: its login is what it runs on.
        policy.hidden.retain(|hidden| !state.iter().any(|state| hidden.starts_with(state)));
        policy
    }

    /// What it allows, and what the system at hand can enforce of it.
    #[must_use]
    pub fn explain(&self, offer: &Offer) -> String {
        let mut text = String::new();
        let mut part = |title: &str, paths: &[PathBuf]| {
            let there: Vec<&PathBuf> = paths.iter().filter(|path| path.exists()).collect();
            let _ = writeln!(text, "{title}:");
            for path in &there {
                let _ = writeln!(text, "  {}", path.display());
            }
            if there.is_empty() {
                let _ = writeln!(text, "  –");
            }
        };
        part("may change", &self.write);
        part("may read", &self.read);
        part("may connect to", &self.sockets);
        part("must not change", &self.pinned);
        part("must not see", &self.hidden);
        let network = match &self.network {
            Network::Open => "everywhere".to_owned(),
            Network::Ports(ports) => format!("TCP ports {ports:?}"),
        };
        let _ = writeln!(text, "may reach: {network}");
        let _ = write!(text, "the system offers:\n{offer}");
        text
    }

    /// Grants with nothing hidden below them: a folder with something hidden in it is granted child
    /// by child, as of now.
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

/// A path without links in it, so that one place has one name; as it is where that cannot be said.
pub(crate) fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
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
        let text = serde_json::to_string(&policy).expect("JSON");
        assert_eq!(serde_json::from_str::<Policy>(&text).expect("a policy"), policy);
    }
}
