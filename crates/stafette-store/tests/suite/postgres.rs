//! The store in a database, as any other store.

use std::sync::Arc;
use std::time::Duration;

use stafette_store::{PostgresOptions, PostgresStore, Store};
use stafette_testkit::postgres::Shared;
use tokio_postgres::{Client, NoTls};

/// Limits for those who are to be let in, however busy the machine is.
pub(super) fn patient() -> PostgresOptions {
    let long = Duration::from_secs(90);
    PostgresOptions { patience: long, first_patience: long, ..PostgresOptions::default() }
}

/// A connection of somebody else.
pub(super) async fn other(url: &str) -> Client {
    let place = url.split('?').next().unwrap_or(url);
    let (client, connection) = tokio_postgres::connect(place, NoTls).await.expect("connected");
    tokio::spawn(async move { drop(connection.await) });
    client
}

/// The name of the schema in a URL.
pub(super) fn name(url: &str) -> &str {
    url.rsplit("schema=").next().unwrap_or_default()
}

async fn open() -> (Arc<dyn Store>, Arc<Shared>) {
    let server = Shared::get().expect("a server");
    let store = PostgresStore::open(&server.fresh(), patient()).await;
    (Arc::new(store.expect("a store")), server)
}

stafette_store::conformance!(open);
