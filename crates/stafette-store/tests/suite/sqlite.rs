//! The store on disk, as any other store.

use std::sync::Arc;

use stafette_store::{Options, SqliteStore, Store};
use tempfile::TempDir;

async fn open() -> (Arc<dyn Store>, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(folder.path().join("store.db"), Options::default());
    (Arc::new(store.expect("a store")), folder)
}

stafette_store::conformance!(open);
