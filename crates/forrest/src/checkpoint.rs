//! A copy of an open store in a directory of its own, whichever home the store is in.
//!
//! A store on disk knows how to be copied cheaply. Of another one a snapshot is written, pair by pair, to a new store on disk.

use crate::engine;
use crate::error::{Error, Result};
use crate::op::Op;
use crate::options::{Builder, Durability, directory};
use crate::remixdb;
use crate::remixdb::disk::real::Real;
use crate::remixdb::disk::unfinished::Unfinished;
use crate::view::View;
use std::path::Path;

/// What is written is not read again.
const CACHE_BYTES: usize = 1 << 20;

/// Copies a store into a new directory.
pub(crate) fn checkpoint(store: &engine::Store, path: &Path) -> Result<()> {
    if path.to_str().is_some_and(|text| directory(text).is_none()) {
        return Err(Error::invalid(format!("a checkpoint to \"{}\": this is no path", path.display())));
    }
    match store {
        engine::Store::Disk(store) => {
            let unfinished = Unfinished::begin(path, Some(store.disk()))?;
            store.checkpoint(unfinished.disk()?)?;
            unfinished.finish()
        }
        engine::Store::Memory(_) => {
            let snapshot = store.snapshot()?;
            let unfinished = Unfinished::begin(path, None)?;
            write(&snapshot, unfinished.disk()?)?;
            unfinished.finish()
        }
        engine::Store::Kernel(kernel) => Err(Error::unsupported(format!(
            "a checkpoint of \"{}\": what is read there is the newest state, which changes meanwhile",
            kernel.scheme()
        ))),
    }
}

/// Writes all that a snapshot has to a new store, durably.
fn write(snapshot: &engine::Snapshot, into: Real) -> Result<()> {
    let builder = Builder::default().durability(Durability::Memory).cache_bytes(CACHE_BYTES);
    let store = remixdb::Store::open(into, &builder)?;
    for name in snapshot.keyspaces() {
        let space = store.keyspace(&name)?;
        for pair in View::new(snapshot.view(&name)).range(..) {
            let pair = pair?;
            store.apply(&space, Op::Set { key: pair.key(), value: &pair.value()? })?;
        }
    }
    store.flush_all()
}
