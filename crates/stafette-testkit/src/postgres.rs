//! A real PostgreSQL on loopback and on a Unix socket, from Debian's packages.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::server::{Running, free_port};
use crate::tools;

/// The time limit for starting on a busy machine, including the recovery of its log.
const START: Duration = Duration::from_secs(180);

/// The time limit for an orderly shutdown.
const END: Duration = Duration::from_secs(30);

/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(20);

/// The variable with the URL of an existing server, which tests use instead of their own.
pub const OTHER: &str = "STAFETTE_TEST_POSTGRES_URL";

/// The user who owns everything and needs no password.
pub const USER: &str = "stafette";

/// A user who needs [`PASSWORD`] on loopback; tests create it themselves.
pub const GUARDED: &str = "guarded";

/// The password of [`GUARDED`].
pub const PASSWORD: &str = "secret";

/// The system user that runs the server if the tests run as root, which it refuses.
const SYSTEM_USER: &str = "postgres";

/// A server with its data in a folder. It ends on drop.
#[derive(Debug)]
pub struct Postgres {
    folder: PathBuf,
    port: u16,
    running: Option<Running>,
}

impl Postgres {
    /// Starts a server without data in a folder of the caller, which must have a short path that
    /// every user may enter: run by root, it is given to another user.
    ///
    /// # Errors
    /// If it cannot be installed, or does not start.
    pub fn start(folder: &Path) -> io::Result<Self> {
        let programs = programs()?;
        fs::create_dir_all(folder)?;
        if geteuid().is_root() {
            run(Command::new("chown").arg(SYSTEM_USER).arg(folder))?;
        }
        let mut initdb = ours(&programs.join("initdb"));
        initdb.args(["-U", USER, "-E", "UTF8", "--locale=C", "--auth=trust", "-D"]);
        run(initdb.arg(folder.join("data")).current_dir(folder))?;
        let who = format!(
            "local all all trust\n\
             host all {GUARDED} 127.0.0.1/32 scram-sha-256\n\
             host all all 127.0.0.1/32 trust\n"
        );
        fs::write(folder.join("data/pg_hba.conf"), who)?;
        let mut server = Postgres { folder: folder.to_owned(), port: free_port()?, running: None };
        server.start_again()?;
        Ok(server)
    }

    /// Starts a server that accepts only TLS on loopback. The authority for its certificate, issued
    /// to `localhost`, is in `ca.pem` in the folder.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with_tls(folder: &Path) -> io::Result<Self> {
        let shell = tools::debian("sh", "dash").and_then(|sh| {
            tools::debian("openssl", "openssl")?;
            Ok(sh)
        });
        let shell = shell.map_err(|error| io::Error::other(error.to_string()))?;
        let mut server = Self::start(folder)?;
        server.stop();
        run(ours(&shell).args(["-c", tools::CERTIFICATES]).current_dir(folder))?;
        let data = folder.join("data");
        fs::write(data.join("pg_hba.conf"), "hostssl all all 127.0.0.1/32 trust\n")?;
        let settings = data.join("postgresql.conf");
        let place = folder.display();
        let more = format!(
            "ssl = on\nssl_cert_file = '{place}/cert.pem'\nssl_key_file = '{place}/key.pem'\n"
        );
        fs::write(&settings, fs::read_to_string(&settings)? + &more)?;
        server.start_again()?;
        Ok(server)
    }

    /// Starts it on the same port with the same data, after [`kill`](Self::kill).
    ///
    /// # Errors
    /// If it does not start.
    pub fn start_again(&mut self) -> io::Result<()> {
        let program = programs()?.join("postgres");
        let deadline = Instant::now() + START;
        loop {
            let mut command = ours(&program);
            command.arg("-D").arg(self.folder.join("data")).current_dir(&self.folder);
            let settings = [
                "listen_addresses=127.0.0.1".to_owned(),
                format!("port={}", self.port),
                format!("unix_socket_directories={}", self.folder.display()),
                "max_connections=200".to_owned(),
                "shared_buffers=16MB".to_owned(),
            ];
            command.args(settings.iter().flat_map(|setting| ["-c", setting]));
            let socket = self.folder.join(format!(".s.PGSQL.{}", self.port));
            let pid = self.folder.join("data/postmaster.pid");
            // The server itself records when it accepts connections.
            let ready = || {
                let note = fs::read_to_string(&pid).unwrap_or_default();
                let ready = note.lines().nth(7).is_some_and(|status| status.trim() == "ready");
                ready && UnixStream::connect(&socket).is_ok()
            };
            let output = self.folder.join("output.log");
            match Running::start(&mut command, &output, START, ready) {
                Ok(running) => {
                    self.running = Some(running);
                    return Ok(());
                }
                // The remaining processes of a killed server need a moment to notice.
                Err(_) if Instant::now() < deadline => thread::sleep(PAUSE),
                Err(error) => return Err(error),
            }
        }
    }

    /// Kills it immediately, in the middle of its work.
    pub fn kill(&mut self) {
        // Those that serve clients have groups of their own, and can do so until they notice that the
        // first one is gone.
        let children = self.pid().map(|pid| format!("/proc/{pid}/task/{pid}/children"));
        let children = children.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        self.running = None;
        children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .for_each(|pid| self.kill_process(pid));
        // Otherwise the next server would take this record for its own.
        let _ = fs::remove_file(self.folder.join(format!(".s.PGSQL.{}", self.port)));
    }

    /// Kills one of its processes immediately, such as the one that serves a client. The server
    /// then disconnects everyone and recovers.
    pub fn kill_process(&self, pid: i32) {
        if let Some(pid) = Pid::from_raw(pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Returns its process id while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(Running::pid)
    }

    /// Returns its URL on loopback, for a user.
    #[must_use]
    pub fn url_of(&self, user: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/postgres", self.port)
    }

    /// Returns its URL on loopback.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of(USER)
    }

    /// Returns its URL on the Unix socket.
    #[must_use]
    pub fn socket_url(&self) -> String {
        let folder = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://{USER}@{folder}:{}/postgres", self.port)
    }
}

impl Postgres {
    fn stop(&mut self) {
        // An orderly shutdown, because a killed server leaves a piece of the machine's shared
        // memory behind.
        if let Some(running) = &mut self.running
            && let Some(pid) = i32::try_from(running.pid()).ok().and_then(Pid::from_raw)
            && kill_process(pid, Signal::QUIT).is_ok()
        {
            let deadline = Instant::now() + END;
            while Instant::now() < deadline && !running.is_over() {
                thread::sleep(PAUSE);
            }
        }
        self.running = None;
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A server that the tests of one process share, as long as one of them holds it.
#[derive(Debug)]
pub struct Shared {
    url: String,
    own: Option<Postgres>,
}

impl Shared {
    /// Returns the shared server, and starts it if necessary. [`OTHER`] may name an existing one.
    ///
    /// # Errors
    /// If it does not start.
    pub fn get() -> io::Result<Arc<Self>> {
        static SERVER: Mutex<Weak<Shared>> = Mutex::new(Weak::new());
        let mut server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = server.upgrade() {
            return Ok(shared);
        }
        let shared = Arc::new(match std::env::var(OTHER) {
            Ok(url) => Shared { url, own: None },
            Err(_) => {
                let folder = folder()?;
                let own = Postgres::start(&folder)?;
                Shared { url: own.url(), own: Some(own) }
            }
        });
        *server = Arc::downgrade(&shared);
        Ok(shared)
    }

    /// Returns the URL of the server.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the URL with a new schema that no other test uses.
    #[must_use]
    pub fn fresh(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (pid, n) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let join = if self.url.contains('?') { '&' } else { '?' };
        format!("{}{join}schema=test_{pid}_{n}", self.url)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(own) = self.own.take() {
            let folder = own.folder.clone();
            drop(own);
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Makes a folder for the shared server of this process, and removes those of processes that have
/// ended.
fn folder() -> io::Result<PathBuf> {
    let (all, name) = (std::env::temp_dir(), "stafette-postgres-");
    for entry in fs::read_dir(&all)?.flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        let owner = file.strip_prefix(name).and_then(|rest| rest.split('-').next());
        let Some(owner) = owner.and_then(|pid| pid.parse::<u32>().ok()) else { continue };
        if Path::new("/proc").join(owner.to_string()).exists() {
            continue;
        }
        let note = fs::read_to_string(entry.path().join("data/postmaster.pid"));
        let pid = note.unwrap_or_default().lines().next().and_then(|pid| pid.parse::<i32>().ok());
        // Only if the process still is that server: process ids are reused.
        if let Some(pid) = pid
            && fs::read_link(format!("/proc/{pid}/cwd")).ok() == Some(entry.path().join("data"))
            && let Some(pid) = Pid::from_raw(pid)
        {
            let _ = kill_process(pid, Signal::QUIT);
        }
        let _ = fs::remove_dir_all(entry.path());
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap_or_default().as_millis() % 1_000_000;
    Ok(all.join(format!("{name}{}-{now}", std::process::id())))
}

/// Returns the folder of its programs, which Debian keeps off the path.
fn programs() -> io::Result<PathBuf> {
    let there = || {
        let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
        let folders = versions.map(|version| version.path().join("bin"));
        folders.filter(|folder| folder.join("initdb").exists()).max()
    };
    tools::debian_where("postgresql", there).map_err(|error| io::Error::other(error.to_string()))
}

/// Makes a command for one of its programs, as a user who may run it.
fn ours(program: &Path) -> Command {
    if !geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    let (user, group) = (format!("--reuid={SYSTEM_USER}"), format!("--regid={SYSTEM_USER}"));
    command.args([&user, &group, "--clear-groups", "--"]).arg(program);
    command
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{command:?} said: {}", said.trim())))
}
