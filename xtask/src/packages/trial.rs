//! Installs each package as its users would, into a clean root and for a user without anything, and
//! runs the demo from there.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha512};
use tempfile::TempDir;

use super::contents::{COMPLETIONS, DOCUMENTS, read};
use super::target::Target;
use super::{npm, sbom, server, write};
use crate::{machine, shell};

/// The packages of a folder, and what they are tried with.
struct Trial<'a> {
    target: &'a Target,
    folder: &'a Path,
    version: &'a str,
    /// The folder as a download page.
    downloads: String,
}

/// A clean root, and the home of somebody who has nothing.
struct Room {
    folder: TempDir,
}

/// A way to install, with what it must hold.
type Way<'a> = fn(&Trial<'a>) -> Result<Times, String>;

/// Tries every package.
pub(super) fn run(target: &Target, folder: &Path, version: &str) -> Result<(), String> {
    if env::consts::OS != "linux" {
        eprintln!("NOT TRIED: the packages are tried on Linux only.");
        return Ok(());
    }
    machine::prepare_packages()?;
    let downloads = server::serve(folder.to_owned()).map_err(|error| error.to_string())?;
    let trial = Trial { target, folder, version, downloads };
    let ways: [(&str, Way<'_>); 5] = [
        ("install.sh", Trial::script),
        (".deb", Trial::debian),
        ("npm install", Trial::npm),
        ("npx", Trial::npx),
        ("wheel", Trial::wheel),
    ];
    let mut table = String::new();
    for (name, act) in ways {
        let Times { install, demo } = act(&trial).map_err(|error| format!("{name}: {error}"))?;
        let (install, demo) = (install.as_secs_f64(), demo.as_secs_f64());
        table
            .push_str(&format!("  {name:<12} installed in {install:>5.1} s, demo {demo:>5.1} s\n"));
    }
    eprint!("{table}");
    Ok(())
}

/// How long it took.
struct Times {
    install: Duration,
    demo: Duration,
}

impl Trial<'_> {
    /// The script, from a download page; and not from one whose archive is another.
    fn script(&self) -> Result<Times, String> {
        let room = Room::new()?;
        let script = self.folder.join("install.sh");
        let prefix = room.path("prefix");
        let sh = |base: &str| {
            let mut sh = room.command("sh");
            sh.arg(&script).arg("--prefix").arg(&prefix).args(["--base", base]);
            sh
        };
        let broken = room.path("broken");
        fs::create_dir(&broken).map_err(told)?;
        let archive = format!("{}.tar.gz", self.target.archive(self.version));
        let mut bytes = read(&self.folder.join(&archive))?;
        bytes.push(0);
        write(&broken, &archive, &bytes)?;
        let refused = sh(&format!("file://{}", broken.display())).output().map_err(told)?;
        let said = String::from_utf8_lossy(&refused.stderr);
        if refused.status.success() || !said.contains("checksum") || prefix.exists() {
            return Err(format!("an archive that was changed was installed, or it said `{said}`"));
        }
        let start = Instant::now();
        succeed(&mut sh(&self.downloads))?;
        let install = start.elapsed();
        let program = prefix.join("bin/stafette");
        self.check(&room, &program, &prefix, false)?;
        let demo = self.demo(&mut room.command(&program))?;
        // Over one that is there, and away again.
        succeed(&mut sh(&format!("file://{}", self.folder.display())))?;
        succeed(sh("").arg("--uninstall"))?;
        let left = files(&prefix)?;
        if left.is_empty() { Ok(Times { install, demo }) } else { Err(format!("left: {left:?}")) }
    }

    /// The package for Debian. Only root can install it; others unpack it.
    fn debian(&self) -> Result<Times, String> {
        let architecture = self.target.debian.ok_or("there is none for this system")?;
        let package = self.folder.join(format!("stafette_{}_{architecture}.deb", self.version));
        let room = Room::new()?;
        let root = room.path("root");
        let state = root.join("var/lib/dpkg");
        for folder in ["info", "updates", "triggers"] {
            fs::create_dir_all(state.join(folder)).map_err(told)?;
        }
        // What this machine has counts for what the package depends on.
        let mine = read(Path::new("/var/lib/dpkg/status")).unwrap_or_default();
        let mine = String::from_utf8_lossy(&mine);
        let mine = mine.split_inclusive("\n\n");
        let others = mine.filter(|package| !package.starts_with("Package: stafette\n"));
        write(&state, "status", others.collect::<String>().as_bytes())?;
        let is_root = shell::probe(Command::new("id").arg("-u")).as_deref() == Some("0");
        let start = Instant::now();
        if is_root {
            let mut dpkg = room.command("dpkg");
            dpkg.arg("--root").arg(&root).arg("--install").arg(&package);
            // dpkg looks for these, and not every user has them in the path.
            let path = env::var("PATH").unwrap_or_default();
            dpkg.env("PATH", format!("{path}:/usr/sbin:/sbin"));
            succeed(&mut dpkg)?;
        } else {
            eprintln!(
                "NOT TRIED: `dpkg --install`, which only root may do; it is unpacked instead."
            );
            succeed(room.command("dpkg-deb").arg("--extract").arg(&package).arg(&root))?;
        }
        let install = start.elapsed();
        let program = root.join("usr/bin/stafette");
        let usr = root.join("usr");
        self.check(&room, &program, &usr, true)?;
        Ok(Times { install, demo: self.demo(&mut room.command(&program))? })
    }

    /// `npm install --global stafette`, from a registry that has nothing else.
    fn npm(&self) -> Result<Times, String> {
        let room = Room::new()?;
        let prefix = room.path("prefix");
        let registry = self.registry(&room)?;
        let start = Instant::now();
        let mut npm = room.command("npm");
        npm.args(["install", "--global", "stafette", "--registry", &registry]);
        succeed(npm.arg("--prefix").arg(&prefix))?;
        let install = start.elapsed();
        let program = prefix.join("bin/stafette");
        let package = prefix.join("lib/node_modules/stafette");
        // The manual is in the package. npm links it only if it gets the package as a file: what a
        // registry tells it leaves `man` out.
        self.check(&room, &program, &package, false)?;
        // The launcher passes on how it ends.
        let ended = room.command(&program).arg("--no-such-option").output().map_err(told)?;
        if ended.status.code() != Some(2) {
            return Err(format!("a wrong option ended with {}", ended.status));
        }
        Ok(Times { install, demo: self.demo(&mut room.command(&program))? })
    }

    /// `npx stafette demo`, which installs and starts in one.
    fn npx(&self) -> Result<Times, String> {
        let room = Room::new()?;
        let registry = self.registry(&room)?;
        let mut npx = room.command("npx");
        npx.args(["--yes", "--registry", &registry, "stafette"]);
        Ok(Times { install: Duration::ZERO, demo: self.demo(&mut npx)? })
    }

    /// The wheel, by pip and without a network.
    fn wheel(&self) -> Result<Times, String> {
        let room = Room::new()?;
        let prefix = room.path("prefix");
        // A launcher of several Pythons may need the home that it was installed in.
        let python = ["-c", "import sys; print(sys.executable)"];
        let python = shell::probe(Command::new("python3").args(python)).ok_or("no python3")?;
        let start = Instant::now();
        let mut pip = room.command(python);
        pip.args(["-m", "pip", "install", "--no-index", "--disable-pip-version-check", "--quiet"]);
        pip.args(["--root-user-action", "ignore", "stafette"]);
        pip.arg("--find-links").arg(self.folder).arg("--target").arg(&prefix);
        succeed(&mut pip)?;
        let install = start.elapsed();
        let program = prefix.join("bin/stafette");
        self.check(&room, &program, &prefix, false)?;
        let about = prefix.join(format!("stafette-{}.dist-info", self.version));
        read(&about.join("sboms").join(sbom::NAME))?;
        Ok(Times { install, demo: self.demo(&mut room.command(&program))? })
    }

    /// Checks what is installed: the program, and in a prefix completions, the manual and the licence.
    fn check(
        &self,
        room: &Room,
        program: &Path,
        prefix: &Path,
        is_debian: bool,
    ) -> Result<(), String> {
        let mode = fs::metadata(program).map_err(told)?.permissions().mode() & 0o777;
        if mode & 0o022 != 0 || mode & 0o111 != 0o111 {
            return Err(format!("{} has the mode {mode:o}", program.display()));
        }
        let says = succeed(room.command(program).arg("--version"))?;
        if says.trim() != format!("stafette {}", self.version) {
            return Err(format!("it says it is {says}"));
        }
        for (shell, path) in COMPLETIONS {
            let path = if is_debian {
                path.replace("/site-functions/", "/vendor-completions/")
            } else {
                path.to_owned()
            };
            let installed = read(&prefix.join(path))?;
            let said = succeed(room.command(program).args(["completions", shell]))?;
            if installed != said.as_bytes() {
                return Err(format!("the completions for {shell} are another program's"));
            }
        }
        let page = if is_debian { "stafette.1.gz" } else { "stafette.1" };
        let page = prefix.join("share/man/man1").join(page);
        let shown =
            succeed(room.command("man").env("MANPAGER", "cat").arg("--local-file").arg(page))?;
        if !shown.contains("stafette") || !shown.contains("DESCRIPTION") {
            return Err(format!("the manual page says `{shown}`"));
        }
        let licence = if is_debian { "copyright" } else { "LICENSE" };
        let places = [prefix.join(DOCUMENTS).join(licence), prefix.join("LICENSE")];
        let about = prefix.join(format!("stafette-{}.dist-info/licenses/LICENSE", self.version));
        if !places.iter().chain([&about]).any(|path| path.is_file()) {
            return Err("the licence is missing".to_owned());
        }
        Ok(())
    }

    /// Runs the demo with the program, and returns how long it took.
    fn demo(&self, program: &mut Command) -> Result<Duration, String> {
        let start = Instant::now();
        let said = succeed(program.args(["demo", "--headless"]))?;
        if said.contains("0 lost, 0 repeated") {
            Ok(start.elapsed())
        } else {
            Err(format!("the demo said `{said}`"))
        }
    }

    /// A registry with our packages and what npm asks about them.
    fn registry(&self, room: &Room) -> Result<String, String> {
        let folder = room.path("registry");
        let programs = [self.target];
        let launcher = npm::launcher_manifest(&programs, self.version, &[]);
        let program = npm::manifest(self.target, self.version);
        let files = [
            (launcher, format!("stafette-{}.tgz", self.version)),
            (program, format!("stafette-{}-{}.tgz", self.target.npm, self.version)),
        ];
        for (mut manifest, file) in files {
            let digest = Sha512::digest(read(&self.folder.join(&file))?);
            let integrity = format!("sha512-{}", STANDARD.encode(digest));
            let tarball = format!("{}/{file}", self.downloads);
            manifest["dist"] = json!({ "tarball": tarball, "integrity": integrity });
            let name = manifest["name"].as_str().unwrap_or_default().to_owned();
            let versions: Value = [(self.version.to_owned(), manifest)].into_iter().collect();
            let about = json!({
                "name": name,
                "dist-tags": { "latest": self.version },
                "versions": versions,
            });
            let folder = folder.join(name);
            fs::create_dir_all(&folder).map_err(told)?;
            write(&folder, "index.json", about.to_string().as_bytes())?;
        }
        server::serve(folder).map_err(told)
    }
}

impl Room {
    fn new() -> Result<Room, String> {
        let room = Room { folder: tempfile::tempdir().map_err(told)? };
        for folder in ["user", "tmp"] {
            fs::create_dir(room.path(folder)).map_err(told)?;
        }
        Ok(room)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command of somebody who has a path, a home and nothing else.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.path("user")).stdin(Stdio::null());
        command.env("PATH", env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.path("user")).env("TMPDIR", self.path("tmp"));
        command.env("LANG", "C.UTF-8");
        for name in ["audit", "fund", "update_notifier"] {
            command.env(format!("npm_config_{name}"), "false");
        }
        command
    }
}

/// Runs a command; returns its output, or all it said if it fails.
fn succeed(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?} ended with {}:\n{said}{errors}", output.status))
}

/// The files in a folder and below.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(told)? {
        let path = entry.map_err(told)?.path();
        if path.is_dir() { found.extend(files(&path)?) } else { found.push(path) }
    }
    Ok(found)
}

fn told(error: std::io::Error) -> String {
    error.to_string()
}
