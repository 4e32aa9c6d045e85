//! The daemon's TCP listener: its address, certificate and names.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use stafette_core::workflow::server::Server;
use stafette_server::{DoorError, Edge, Tls};

use crate::cli;
use crate::exit::Failure;

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

    /// Opens it. Returns its address for people and programs.
    pub(super) async fn open(self, edge: &Edge) -> Result<String, Failure> {
        let tls = match &self.tls {
            Some((cert, key)) => Some(Tls::read(cert, key).map_err(|error| {
                Failure::usage("Cannot set up TLS")
                    .because(&error)
                    .fix("name PEM files that this user may read: a certificate and its key")
            })?),
            None => None,
        };
        let address = self.address;
        let opened = edge.open(address, tls, self.hosts).await;
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
        Ok(door.url())
    }
}
