//! The store in a database, as any other store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stafette_kit::postgres::Shared;
use stafette_store::{PostgresOptions, PostgresStore, Store};

/// A schema of its own on the server that all tests share.
pub(super) fn schema(server: &Shared) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (pid, n) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let join = if server.url().contains('?') { '&' } else { '?' };
    format!("{}{join}schema=test_{pid}_{n}", server.url())
}

async fn open() -> (Arc<dyn Store>, Arc<Shared>) {
    let server = Shared::get().expect("a server");
    let store = PostgresStore::open(&schema(&server), PostgresOptions::default()).await;
    (Arc::new(store.expect("a store")), server)
}

stafette_store::conformance!(open);
