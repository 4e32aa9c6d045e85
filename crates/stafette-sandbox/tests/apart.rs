//! What belongs to the user's other processes is out of reach in a sandbox: terminals, sockets,
//! shared memory; and no process of a sandbox outlives the one that started it.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use stafette_sandbox::{Enforced, Mode, Places, Policy, Prepared, Report};
use stafette_sandbox::{find_bubblewrap, prepare};
use tempfile::TempDir;

#[path = "machine/parts.rs"]
mod parts;

use parts::{all_hold, skipped};

/// A user without any rights.
const NOBODY: u32 = 65_534;

struct World {
    folder: TempDir,
    policy: Policy,
    tree: PathBuf,
    bubblewrap: Option<PathBuf>,
    /// The user that agents run as; `None` if it is that of the test.
    user: Option<u32>,
}

impl World {
    /// One without bubblewrap, and one with it where it is installed and works, and the same for a
    /// user who has to make a namespace of users first; `base` is the folder for all.
    fn all(base: &str) -> Vec<World> {
        let with = find_bubblewrap();
        let users: &[Option<u32>] = match rustix::process::geteuid().is_root() {
            true => &[None, Some(NOBODY)],
            // The test itself runs as such a user.
            false => &[None],
        };
        let of = |user: &Option<u32>| {
            let with = with.clone().map(|program| World::new(base, Some(program), *user));
            std::iter::once(World::new(base, None, *user)).chain(with).collect::<Vec<_>>()
        };
        users.iter().flat_map(of).collect()
    }

    fn new(base: &str, bubblewrap: Option<PathBuf>, user: Option<u32>) -> World {
        let folder = tempfile::tempdir_in(base).expect("a folder");
        let at = |path: &str| folder.path().join(path);
        for path in ["home/.agent", "tree", "scratch"] {
            fs::create_dir_all(at(path)).expect("folders");
        }
        let policy = Policy::for_agent(&Places {
            home: at("home"),
            worktree: at("tree"),
            temp: at("temp"),
            state: vec![at("home/.agent")],
            sockets: vec![at("sockets/agents.sock")],
            ..Places::default()
        });
        let tree = at("tree");
        fs::copy(env!("CARGO_BIN_EXE_stafette-sandboxed"), at("launcher")).expect("copied");
        World { policy, tree, bubblewrap, user, folder }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn prepare(&self) -> Prepared {
        self.prepare_as(Mode::Auto)
    }

    fn prepare_as(&self, mode: Mode) -> Prepared {
        let launcher = [OsString::from(self.at("launcher"))];
        let scratch = self.at("scratch");
        let bubblewrap = self.bubblewrap.as_deref();
        let prepared = prepare(mode, &self.policy, &launcher, &scratch, &self.tree, bubblewrap);
        // By their names: what lies in the folder of the agent can be a link that leads anywhere.
        const OWN: [&str; 9] = [
            "",
            "home",
            "home/.agent",
            "tree",
            "temp",
            "scratch",
            "scratch/root",
            "scratch/sandbox.json",
            "scratch/sandbox-report.json",
        ];
        if let Some(user) = self.user {
            for name in OWN {
                lchown(self.at(name), Some(user), Some(user)).expect("given");
            }
        }
        prepared.expect("prepared").expect("not off")
    }

    fn command(&self, prepared: &Prepared, script: &str) -> Command {
        let user = self.user.map(|user| {
            let ids = [format!("--reuid={user}"), format!("--regid={user}")];
            [vec!["setpriv".to_owned(), "--clear-groups".to_owned()], ids.to_vec()].concat()
        });
        let user = user.into_iter().flatten().map(OsString::from);
        let mut words = user.chain(prepared.prefix.iter().cloned());
        let mut command = Command::new(words.next().expect("a launcher"));
        command.args(words).args(["sh", "-c", script]).current_dir(&self.tree);
        command.envs(prepared.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn run(&self, script: &str) -> (Output, Report) {
        let prepared = self.prepare();
        let output = self.command(&prepared, script).output().expect("the launcher");
        let report = prepared.report().unwrap_or_else(|| panic!("no report: {output:?}"));
        (output, report)
    }

    /// Whether a script succeeds; `None` where the machine does not offer all of a sandbox.
    fn can(&self, script: &str) -> Option<bool> {
        let (output, report) = self.run(script);
        all_hold(&report).then_some(output.status.success())
    }

    fn cannot(&self, script: &str) {
        assert_ne!(self.can(script), Some(true), "{script} ({:?})", self.bubblewrap);
    }

    fn does(&self, script: &str) {
        let (output, report) = self.run(script);
        assert!(output.status.success(), "{script}: {output:?}\n{report}");
    }
}

/// A terminal of another program, which keeps it until it is dropped.
struct Other(Child, String);

impl Other {
    fn new() -> Other {
        let script = "import os, sys\nours, theirs = os.openpty()\n\
                      print(os.ttyname(theirs), flush=True)\nsys.stdin.read()";
        let mut child = Command::new("python3")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let mut name = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut name).expect("a name");
        Other(child, name.trim().to_owned())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn b_21_a_sandboxed_agent_opens_no_terminal_of_another_program() {
    let other = Other::new();
    assert!(Path::new(&other.1).starts_with("/dev/pts"), "{}", other.1);
    for world in World::all("/tmp") {
        world.cannot(&format!("true <> {}", other.1));
        world.cannot("for it in /dev/pts/[0-9]*; do true <> $it && exit; done; exit 1");
        // Those that it makes itself work.
        world.does(
            "python3 -c 'import os, pty, sys; status = pty.spawn([\"tty\"]); sys.exit(status)'",
        );
    }
}

#[test]
fn b_21_the_terminal_that_a_sandboxed_agent_was_started_in_works() {
    for world in World::all("/tmp") {
        let prepared = world.prepare();
        let script = "echo one > /dev/tty && echo two > /dev/stdout && test -t 0 && tty && \
                      stty size > /dev/null && read -r line && echo \"read $line\"";
        let own = world.command(&prepared, script);
        let words: Vec<_> = std::iter::once(own.get_program()).chain(own.get_args()).collect();
        let mut terminal = Command::new("python3");
        terminal.args(["-c", TERMINAL]);
        terminal.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut terminal = terminal.spawn().expect("python3");
        let mut lines = BufReader::new(terminal.stdout.take().expect("piped"));
        let mut name = String::new();
        lines.read_line(&mut name).expect("a name");
        chown(name.trim(), world.user, None).expect("given");
        let side = || fs::File::options().read(true).write(true).open(name.trim()).expect("it");
        let mut command = Command::new("setsid");
        command.args(["--wait", "--ctty"]).args(&words).current_dir(&world.tree);
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(side()).stdout(side()).stderr(side());
        let status = command.status().expect("setsid");
        terminal.stdin.take().expect("piped").write_all(b"x").expect("it listens");
        let mut shown = String::new();
        lines.read_to_string(&mut shown).expect("a text");
        terminal.wait().expect("it ends");
        assert!(status.success(), "{status}: {shown}");
        for word in ["one", "two", "/dev/", "read typed"] {
            assert!(shown.contains(word), "{word}: {shown}");
        }
    }
}

/// Has a terminal, types a line into it, and tells what was printed in the end.
const TERMINAL: &str = r#"
import os, sys
ours, theirs = os.openpty()
print(os.ttyname(theirs), flush=True)
os.write(ours, b"typed\n")
sys.stdin.read(1)
os.set_blocking(ours, False)
try:
    while True:
        sys.stdout.write(os.read(ours, 4096).decode())
except OSError:
    pass
"#;

const CONNECT: &str = "import socket, sys\nline = socket.socket(socket.AF_UNIX)\n\
                       line.connect(sys.argv[1])";

/// A socket that every user may connect to.
fn listen(socket: &Path) -> UnixListener {
    let listener = UnixListener::bind(socket).expect("a socket");
    fs::set_permissions(socket, fs::Permissions::from_mode(0o777)).expect("its mode");
    listener
}

#[test]
fn b_21_no_socket_of_a_service_is_there_wherever_the_project_lies() {
    for base in ["/tmp", "/var/tmp"] {
        for world in World::all(base) {
            let mut listeners = Vec::new();
            let services = tempfile::tempdir_in("/tmp").expect("a folder");
            // Only root can make it.
            let shared = tempfile::tempdir_in("/run").or_else(|_| tempfile::tempdir_in("/dev/shm"));
            let shared = shared.expect("a folder");
            for folder in [
                services.path().to_owned(),
                shared.path().to_owned(),
                world.at("runtime/bus"),
                world.at("home/.colima"),
                world.at("home/.emacs.d/server"),
                world.at("sockets"),
            ] {
                fs::create_dir_all(&folder).expect("a folder");
                let socket = folder.join("daemon.sock");
                listeners.push(listen(&socket));
                let connect = format!("python3 -c '{CONNECT}' {}", socket.display());
                world.cannot(&connect);
                // Nor one that comes later at its place.
                world.cannot(&format!("ls {}", folder.display()));
            }
            let own = world.at("sockets/agents.sock");
            listeners.push(listen(&own));
            world.does(&format!("python3 -c '{CONNECT}' {}", own.display()));
            world.does("touch here && echo x > $TMPDIR/x");
        }
    }
}

/// The same in less time.
const KNOCK: &str = "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); \
                     connect(S, sockaddr_un(shift)) or exit 1'";

/// What an agent must not reach: a folder outside of its world, with a socket and a file in it.
struct Outside {
    folder: TempDir,
    _listener: UnixListener,
}

impl Outside {
    fn new() -> Outside {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("its mode");
        fs::write(folder.path().join("secret"), "x").expect("written");
        let _listener = listen(&folder.path().join("daemon.sock"));
        Outside { folder, _listener }
    }

    /// A script that succeeds if anything of it can be seen, through the link or by its own name.
    fn reach(&self) -> String {
        let folder = self.folder.path().display();
        format!(
            "for it in {folder} .cursor .cursor{folder}; do \
               test -e $it/secret && exit; \
               {KNOCK} $it/daemon.sock && exit; \
             done; {KNOCK} .cursor"
        )
    }

    /// Where a link can lead: to the folder, the socket, and the root; some by `..`, which leads to the
    /// same place however the view is made.
    fn targets(&self, world: &World) -> Vec<PathBuf> {
        let up: PathBuf = world.tree.components().skip(1).map(|_| "..").collect();
        let by_dots = up.join(self.folder.path().strip_prefix("/").expect("absolute"));
        let socket = self.folder.path().join("daemon.sock");
        vec![self.folder.path().to_owned(), socket, "/".into(), by_dots]
    }
}

/// What an agent left as its link is said, and the rest is enforced where the machine offers it.
fn is_linked(report: &Report) -> bool {
    let rest = Report { mounts: Enforced::Fully, ..report.clone() };
    assert!(report.mounts.to_string().contains(".cursor"), "{report}");
    all_hold(&rest)
}

#[test]
fn b_21_a_link_at_a_pinned_name_brings_nothing_into_the_sandbox() {
    let outside = Outside::new();
    for mut world in World::all("/tmp") {
        let cursor = world.tree.join(".cursor");
        // That of the project, which an agent in a worktree is not granted.
        fs::create_dir_all(world.at("project")).expect("a folder");
        fs::write(world.at("project/.mcp.json"), "{}").expect("written");
        world.policy.pinned.extend([cursor.clone(), world.at("project/.mcp.json")]);
        world.cannot(&format!("test -e {}", world.at("project/.mcp.json").display()));
        for target in outside.targets(&world) {
            symlink(&target, &cursor).expect("a link");
            let (output, report) = world.run(&outside.reach());
            assert!(is_linked(&report), "{report}");
            assert!(!output.status.success(), "{target:?}: {output:?} ({:?})", world.bubblewrap);
            // The devices are those of the sandbox.
            let (output, _) = world.run("test ! -e .cursor/dev/kmsg && test ! -e /dev/kmsg");
            assert!(output.status.success(), "{target:?}: {output:?}");
            fs::remove_file(&cursor).expect("removed");
        }
    }
}

#[test]
fn b_21_a_pinned_name_that_becomes_a_link_meanwhile_brings_nothing_into_the_sandbox() {
    let outside = Outside::new();
    for mut world in World::all("/tmp") {
        let cursor = world.tree.join(".cursor");
        world.policy.pinned.push(cursor.clone());
        for target in outside.targets(&world) {
            fs::create_dir(&cursor).expect("a folder");
            let prepared = world.prepare();
            fs::remove_dir(&cursor).expect("removed");
            symlink(&target, &cursor).expect("a link");
            let output = world.command(&prepared, &outside.reach()).output().expect("a launcher");
            assert!(!output.status.success(), "{target:?}: {output:?} ({:?})", world.bubblewrap);
            fs::remove_file(&cursor).expect("removed");
        }
    }
}

#[test]
fn b_21_another_process_that_keeps_changing_a_pinned_name_wins_no_race() {
    let outside = Outside::new();
    for mut world in World::all("/tmp") {
        let (cursor, link) = (world.tree.join(".cursor"), world.tree.join("link"));
        world.policy.pinned.push(cursor.clone());
        for target in [0, 3].map(|at| outside.targets(&world).swap_remove(at)) {
            fs::create_dir(&cursor).expect("a folder");
            symlink(&target, &link).expect("a link");
            let over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    use rustix::fs::{CWD, RenameFlags, renameat_with};
                    while !over.load(Ordering::Relaxed) {
                        let swap = RenameFlags::EXCHANGE;
                        renameat_with(CWD, &cursor, CWD, &link, swap).expect("exchanged");
                    }
                });
                let won = (0..ATTEMPTS).find_map(|attempt| {
                    let mode = if attempt % 2 == 0 { Mode::Auto } else { Mode::Strict };
                    let prepared = world.prepare_as(mode);
                    let script = outside.reach();
                    let output = world.command(&prepared, &script).output().expect("a launcher");
                    output.status.success().then_some(output)
                });
                over.store(true, Ordering::Relaxed);
                assert_eq!(won, None, "{target:?} ({:?})", world.bubblewrap);
            });
            let both = [&cursor, &link].map(|path| path.is_symlink());
            let [folder, link] = if both[0] { [&link, &cursor] } else { [&cursor, &link] };
            fs::remove_file(link).expect("removed");
            fs::remove_dir(folder).expect("removed");
        }
    }
}

/// How often a race is run.
const ATTEMPTS: usize = 10;

#[test]
fn b_21_what_is_mounted_within_a_pinned_folder_cannot_be_changed_either() {
    for mut world in World::all("/tmp") {
        let inner = world.tree.join(".cursor/inner");
        fs::create_dir_all(&inner).expect("folders");
        world.policy.pinned.push(world.tree.join(".cursor"));
        if world.can("true").is_none() {
            continue;
        }
        let prepared = world.prepare();
        let own = world.command(&prepared, "touch top && ! touch .cursor/inner/new");
        let mut mounted = Command::new("unshare");
        if world.user.is_some() || !rustix::process::geteuid().is_root() {
            // In a namespace of users only itself can mount, and the launcher cannot become another.
            if world.user.is_none() {
                skipped("only an administrator can mount something for a test");
            }
            continue;
        }
        let script = format!("mount -t tmpfs none {} && exec \"$@\"", inner.display());
        mounted.args(["--mount", "sh", "-c", &script, "sh"]).arg(own.get_program());
        mounted.args(own.get_args()).current_dir(&world.tree);
        let output = mounted.output().expect("unshare");
        assert!(output.status.success(), "{output:?} ({:?})", world.bubblewrap);
    }
}

#[test]
fn b_21_shared_memory_is_the_sandboxs_own() {
    let theirs = tempfile::NamedTempFile::new_in("/dev/shm").expect("shared memory");
    for world in World::all("/tmp") {
        world.cannot(&format!("cat {}", theirs.path().display()));
        let own = format!("/dev/shm/own-{}", std::process::id());
        world.does(&format!("echo x > {own} && cat {own}"));
        assert!(!Path::new(&own).exists() || world.can("true").is_none());
    }
}

#[test]
fn b_21_nothing_of_a_sandbox_outlives_its_command_or_the_process_that_started_it() {
    for world in World::all("/tmp") {
        if world.can("true").is_none() {
            continue;
        }
        // It works in the project while it lives.
        let leave = "(env -i setsid sh -c ': > begun; while :; do sleep 1000; done' < /dev/null \
                     > /dev/null 2>&1 &)\nwhile [ ! -e begun ]; do :; done";
        // When the command ends.
        world.does(leave);
        nothing_is_left_in(&world.tree);
        fs::remove_file(world.tree.join("begun")).expect("it was there");
        // When the process is killed that started it: a shell, in the place of a daemon.
        let prepared = world.prepare();
        let own = world.command(&prepared, &format!("{leave}; echo begun; exec sleep 1000"));
        let mut daemon = Command::new("sh");
        daemon.args(["-c", "echo $$; read -r go; \"$@\"; exit", "sh"]).arg(own.get_program());
        daemon.args(own.get_args()).current_dir(&world.tree);
        let mut daemon = daemon.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sh");
        let mut lines = BufReader::new(daemon.stdout.take().expect("piped"));
        lines.read_line(&mut String::new()).expect("its id");
        let spec = world.at("scratch/sandbox.json");
        let text = fs::read_to_string(&spec).expect("instructions");
        let parent = |id: u32| format!("\"parent\": {id}");
        let text = text.replace(&parent(std::process::id()), &parent(daemon.id()));
        fs::write(&spec, text).expect("written");
        daemon.stdin.take().expect("piped").write_all(b"go\n").expect("it listens");
        let mut said = String::new();
        lines.read_line(&mut said).expect("a line");
        assert_eq!(said, "begun\n");
        daemon.kill().expect("killed");
        daemon.wait().expect("gone");
        // Nobody holds its output any more.
        lines.read_to_string(&mut said).expect("nothing");
        nothing_is_left_in(&world.tree);
    }
}

#[test]
fn b_21_a_launcher_that_was_not_started_by_its_daemon_starts_nothing() {
    let world = World::new("/tmp", None, None);
    if world.can("true").is_none() {
        return;
    }
    let prepared = world.prepare();
    let own = world.command(&prepared, "touch ran");
    let mut other = Command::new("sh");
    other.args(["-c", "\"$@\"; exit", "sh"]).arg(own.get_program()).args(own.get_args());
    let status = other.current_dir(&world.tree).status().expect("sh");
    assert_eq!(status.code(), Some(125));
    assert!(!world.tree.join("ran").exists());
}

/// Waits until no process works in a folder.
fn nothing_is_left_in(folder: &Path) {
    let is_there =
        |process: PathBuf| fs::read_link(process.join("cwd")).is_ok_and(|it| it == folder);
    let all = || fs::read_dir("/proc").expect("the table of processes").flatten();
    while all().any(|entry| is_there(entry.path())) {
        std::thread::yield_now();
    }
}

#[test]
fn b_21_an_agents_temporary_folder_is_its_users_alone() {
    for world in World::all("/tmp") {
        let temp = world.at("temp");
        fs::create_dir(&temp).expect("a folder");
        fs::set_permissions(&temp, fs::Permissions::from_mode(0o777)).expect("its mode");
        world.prepare();
        let mode = fs::metadata(&temp).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{mode:o}");
    }
}

#[test]
fn b_21_a_command_ends_as_it_did_and_signals_are_for_it() {
    for world in World::all("/tmp") {
        let (output, report) = world.run("exit 7");
        assert_eq!(output.status.code(), Some(7), "{output:?}\n{report}");
        if world.bubblewrap.is_some() || world.can("true").is_none() {
            continue;
        }
        // The launcher stays for the command, which decides what a signal to their group means.
        let prepared = world.prepare();
        let script = "trap 'echo asked; exit 5' TERM; echo ready; while :; do sleep 0.01; done";
        let mut command = world.command(&prepared, script);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the launcher");
        let mut lines = BufReader::new(child.stdout.take().expect("piped"));
        let mut said = String::new();
        lines.read_line(&mut said).expect("a line");
        let group = format!("-{}", child.id());
        assert!(
            Command::new("kill").args(["-TERM", "--", &group]).status().expect("kill").success()
        );
        lines.read_to_string(&mut said).expect("the rest");
        assert_eq!(said, "ready\nasked\n");
        assert_eq!(child.wait().expect("its end").code(), Some(5));
    }
}
