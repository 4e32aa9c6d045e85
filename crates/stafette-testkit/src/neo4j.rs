//! A real Neo4j Community server on loopback, from its own jars.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::server::{Running, free_port, loopback};
use crate::tools;

/// The time limit for starting on a busy machine.
const START: Duration = Duration::from_secs(180);

/// A server with its data in a folder. It is killed on drop.
#[derive(Debug)]
pub struct Neo4j {
    folder: PathBuf,
    port: u16,
    running: Option<Running>,
}

impl Neo4j {
    /// Starts a server without data in a folder of the caller.
    ///
    /// # Errors
    /// If its jars are not available, or it does not start.
    pub fn start(folder: &Path) -> io::Result<Self> {
        let port = free_port()?;
        fs::create_dir_all(folder.join("conf"))?;
        let settings = format!(
            "server.directories.data=data\n\
             server.directories.logs=logs\n\
             server.bolt.listen_address=127.0.0.1:{port}\n\
             server.http.enabled=false\n\
             server.https.enabled=false\n\
             server.memory.pagecache.size=64m\n\
             dbms.security.auth_enabled=false\n\
             dbms.usage_report.enabled=false\n\
             db.tx_log.preallocate=false\n"
        );
        fs::write(folder.join("conf/neo4j.conf"), settings)?;
        let mut server = Neo4j { folder: folder.to_owned(), port, running: None };
        server.start_again()?;
        Ok(server)
    }

    /// Starts it on the same port with the same data, after [`kill`](Self::kill).
    ///
    /// # Errors
    /// If it does not start.
    pub fn start_again(&mut self) -> io::Result<()> {
        let jars = tools::maven("neo4j", include_str!("../neo4j/pom.xml"))
            .map_err(|error| io::Error::other(error.to_string()))?;
        let mut command = Command::new("java");
        // Small, and compiled only lightly: it runs for a minute.
        command.args(["-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
        for package in ["java.nio", "java.io", "java.util.concurrent", "sun.nio.ch"] {
            command.arg(format!("--add-opens=java.base/{package}=ALL-UNNAMED"));
        }
        command.arg("-cp").arg(jars.join("lib/*")).arg("org.neo4j.server.CommunityEntryPoint");
        command.arg(format!("--home-dir={}", self.folder.display()));
        command.arg(format!("--config-dir={}", self.folder.join("conf").display()));
        command.current_dir(&self.folder);
        let log = self.folder.join("logs/neo4j.log");
        let started = || fs::read_to_string(&log).unwrap_or_default().matches("Started.").count();
        let (before, port) = (started(), self.port);
        let ready = || started() > before && answers(port);
        let output = self.folder.join("output.log");
        self.running = Some(Running::start(&mut command, &output, START, ready)?);
        Ok(())
    }

    /// Kills it immediately, in the middle of its work.
    pub fn kill(&mut self) {
        self.running = None;
    }

    /// Returns its process id while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(Running::pid)
    }

    /// Returns the address to connect to.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("bolt://127.0.0.1:{}", self.port)
    }
}

/// True if a server answers the Bolt handshake for version 4.4.
fn answers(port: u16) -> bool {
    let greet = || -> io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&loopback(port), Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        let mut hello = vec![0x60, 0x60, 0xb0, 0x17, 0, 0, 4, 4];
        hello.extend([0; 12]);
        stream.write_all(&hello)?;
        let mut version = [0; 4];
        stream.read_exact(&mut version)?;
        Ok(version == [0, 0, 4, 4])
    };
    greet().unwrap_or(false)
}
