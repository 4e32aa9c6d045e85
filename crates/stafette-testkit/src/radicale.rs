//! A real Radicale, a CalDAV server, on loopback.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::server::{Running, free_port, loopback};
use crate::tools;

/// The time limit for starting on a busy machine.
const START: Duration = Duration::from_secs(180);

/// The pinned requirements of its Python environment.
const REQUIREMENTS: &str = "radicale==3.9.0\n";

/// The user name that it accepts.
pub const USER: &str = "ada";

/// The password of that user.
pub const PASSWORD: &str = "secret";

/// A server with its calendars in a folder. It is killed on drop.
#[derive(Debug)]
pub struct Radicale {
    folder: PathBuf,
    port: u16,
    running: Option<Running>,
}

impl Radicale {
    /// Starts a server without calendars in a folder of the caller.
    ///
    /// # Errors
    /// If it cannot be installed, or does not start.
    pub fn start(folder: &Path) -> io::Result<Self> {
        let port = free_port()?;
        fs::create_dir_all(folder)?;
        fs::write(folder.join("users"), format!("{USER}:{PASSWORD}\n"))?;
        let settings = format!(
            "[server]\nhosts = 127.0.0.1:{port}\n\
             [auth]\ntype = htpasswd\nhtpasswd_filename = {}\nhtpasswd_encryption = plain\n\
             delay = 0\n\
             [storage]\nfilesystem_folder = {}\n",
            folder.join("users").display(),
            folder.join("collections").display()
        );
        fs::write(folder.join("config"), settings)?;
        let mut server = Radicale { folder: folder.to_owned(), port, running: None };
        server.start_again()?;
        Ok(server)
    }

    /// Starts it on the same port with the same calendars, after [`kill`](Self::kill).
    ///
    /// # Errors
    /// If it does not start.
    pub fn start_again(&mut self) -> io::Result<()> {
        let python = tools::python("radicale", REQUIREMENTS)
            .map_err(|error| io::Error::other(error.to_string()))?;
        let mut command = Command::new(python.join("bin/python"));
        command.args(["-m", "radicale", "--config"]).arg(self.folder.join("config"));
        let port = self.port;
        let ready = || TcpStream::connect_timeout(&loopback(port), Duration::from_secs(1)).is_ok();
        let output = self.folder.join("output.log");
        self.running = Some(Running::start(&mut command, &output, START, ready)?);
        Ok(())
    }

    /// Creates a calendar of the user, as Radicale stores it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn calendar(&self, name: &str, title: &str) -> io::Result<()> {
        let place = self.folder.join("collections/collection-root").join(USER).join(name);
        fs::create_dir_all(&place)?;
        let properties = serde_json::json!({
            "tag": "VCALENDAR",
            "D:displayname": title,
            "C:supported-calendar-component-set": "VEVENT",
        });
        fs::write(place.join(".Radicale.props"), properties.to_string())
    }

    /// Kills the server immediately.
    pub fn kill(&mut self) {
        self.running = None;
    }

    /// Returns its process id while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(Running::pid)
    }

    /// Returns the URL of the server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }
}
