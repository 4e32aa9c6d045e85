//! A receiver of traces by gRPC and TLS, from PyPI.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::around::{Taker, certificates};
use crate::world::{PATIENCE, World};

/// Nothing more comes when nothing did for this long: what ends together is sent together.
const QUIET: Duration = Duration::from_millis(1500);

/// A receiver with a certificate in the world's project.
pub(super) struct Receiver(Taker);

impl Receiver {
    pub(super) fn start(world: &World) -> Self {
        certificates(world);
        let home = stafette_testkit::tools::python("otlp", include_str!("requirements.txt"));
        let script =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/suite/traces/receiver.py");
        let mut command = world.command(home.expect("grpcio").join("bin/python"));
        command.arg(script).args(["cert.pem", "key.pem"]);
        Receiver(Taker::of(command))
    }

    pub(super) fn port(&self) -> u16 {
        self.0.port
    }

    /// So many spans of a world's daemon, and no more.
    pub(super) fn hear(&self, spans: usize, world: &World) -> Vec<Value> {
        let mut heard: Vec<Value> = Vec::new();
        for _ in 0..spans {
            let next = self.0.hear_within(PATIENCE);
            let log = || world.kept("daemon.log");
            heard.push(next.unwrap_or_else(|| panic!("after {heard:#?}\n{}", log())));
        }
        assert_eq!(self.0.hear_within(QUIET), None, "after {heard:#?}");
        heard
    }
}
