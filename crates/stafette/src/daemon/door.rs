//! The daemon's TCP listener: its address, certificate and names.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stafette_core::workflow::server::Server;
use stafette_server::{DoorError, Edge, Tls};

use crate::cli;
use crate::exit::Failure;

/// The file in the state that says where the daemon listens.
const LISTENS: &str = "listens.json";

/// Where a daemon listens, noted for those who start it again with other flags.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Listens {
    /// The address as it was asked for; its port may be 0.
    asked: SocketAddr,
    /// The address for people and programs.
    pub(crate) url: String,
    tls: Option<(PathBuf, PathBuf)>,
    hosts: Vec<String>,
}

impl Listens {
    /// What the running daemon noted; `None` if it does not listen.
    pub(crate) fn read(state: &Path) -> Option<Self> {
        serde_json::from_slice(&stafette_disk::read(&state.join(LISTENS), 64 * 1024).ok()?).ok()
    }

    /// The flags with which it listens there again.
    pub(super) fn arguments(&self) -> Vec<String> {
        let (tls_cert, tls_key) = self.tls.clone().unzip();
        let hosts = self.hosts.clone();
        cli::Door { listen: Some(self.asked), tls_cert, tls_key, hosts }.arguments()
    }

    /// Notes where this daemon listens, or that it does not.
    pub(super) fn note(listens: Option<&Self>, state: &Path) -> std::io::Result<()> {
        let file = state.join(LISTENS);
        match listens {
            Some(listens) => stafette_disk::replace(&file, serde_json::to_vec(listens)?),
            None => match std::fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        }
    }

    /// True if all that the flags ask for is so already.
    pub(crate) fn has(&self, flags: &cli::Door) -> bool {
        let (cert, key) = self.tls.clone().unzip();
        let is = |wanted: &Option<PathBuf>, had: Option<PathBuf>| {
            wanted.as_ref().is_none_or(|wanted| Some(whole(wanted)) == had)
        };
        let at = |wanted: &SocketAddr| {
            *wanted == self.asked || self.url.ends_with(&format!("://{wanted}"))
        };
        flags.listen.as_ref().is_none_or(at)
            && is(&flags.tls_cert, cert)
            && is(&flags.tls_key, key)
            && flags.hosts.iter().all(|host| self.hosts.contains(host))
    }
}

/// The path wherever the next process starts.
pub(crate) fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A listener that was requested.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    address: SocketAddr,
    tls: Option<(PathBuf, PathBuf)>,
    hosts: Vec<String>,
}

impl Wanted {
    /// The settings of the flags, and those of the workflow where a flag is not given.
    pub(super) fn of(
        flags: &cli::Door,
        said: Server,
        root: &Path,
    ) -> Result<Option<Self>, Failure> {
        let bind = match (flags.listen, &said.bind) {
            (Some(address), _) => Some(address),
            (None, Some(text)) => Some(text.parse().map_err(|_| {
                Failure::usage(format!("`{text}` is not an address to listen on"))
                    .fix("write `[server] bind = \"127.0.0.1:7400\"` in stafette.toml")
            })?),
            (None, None) => None,
        };
        let Some(address) = bind else { return Ok(None) };
        let cert = flags.tls_cert.clone().or_else(|| said.tls_cert.map(|path| root.join(path)));
        let key = flags.tls_key.clone().or_else(|| said.tls_key.map(|path| root.join(path)));
        let tls = match (cert, key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => {
                return Err(Failure::usage("TLS takes a certificate and its key")
                    .fix("give both --tls-cert and --tls-key, or both in `[server]`"));
            }
        };
        let hosts = if flags.hosts.is_empty() { said.hosts } else { flags.hosts.clone() };
        Ok(Some(Wanted { address, tls, hosts }))
    }

    /// Opens it. Returns its address for people and programs, and what was asked for.
    pub(super) async fn open(self, edge: &Edge) -> Result<Listens, Failure> {
        let tls = match &self.tls {
            Some((cert, key)) => Some(Tls::read(cert, key).map_err(|error| {
                Failure::usage("Cannot set up TLS")
                    .because(&error)
                    .fix("name PEM files that this user may read: a certificate and its key")
            })?),
            None => None,
        };
        let address = self.address;
        let opened = edge.open(address, tls, self.hosts.clone()).await;
        let door = opened.map_err(|error| match &error {
            DoorError::NoTls => Failure::usage(format!("Stafette does not listen on {address}"))
                .because(&error)
                .fix("listen on 127.0.0.1, or give a certificate with --tls-cert and --tls-key"),
            DoorError::NoToken => Failure::usage(format!("Stafette does not listen on {address}"))
                .because(&error)
                .fix("make one first with `stafette token create NAME --scope act`"),
            DoorError::Bind { .. } => Failure::failed(format!("Cannot listen on {address}"))
                .because(&error)
                .fix("choose another port with --listen, or end the program that has this one"),
        })?;
        let tls = self.tls.map(|(cert, key)| (whole(&cert), whole(&key)));
        Ok(Listens { asked: address, url: door.url(), tls, hosts: self.hosts })
    }
}
