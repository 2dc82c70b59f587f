//! Checkpoints: a copy of an open store of any home, in a new directory.
//!
//! A store on disk copies itself cheaply. For another home, all pairs of a snapshot are written to a new
//! store on disk.

use crate::engine;
use crate::url::directory;
use forrest_engine::{Error, Result};
use std::path::Path;

/// The new store's cache. It can be small, because the checkpoint does not read what it has written.
#[cfg(any(feature = "memory", feature = "llds"))]
const CACHE_BYTES: usize = 1 << 20;

/// Copies a store into a new directory.
pub(crate) fn checkpoint(store: &engine::Store, path: &Path) -> Result<()> {
    if path.to_str().is_some_and(|text| directory(text).is_none()) {
        return Err(Error::invalid(format!("checkpoint to \"{}\": this is not a path", path.display())));
    }
    match store {
        engine::Store::Disk(store) => store.checkpoint(path),
        #[cfg(any(feature = "memory", feature = "llds"))]
        other => of_snapshot(other, path),
    }
}

/// Writes the current content of a store of another home to a new store on disk.
#[cfg(any(feature = "memory", feature = "llds"))]
fn of_snapshot(store: &engine::Store, path: &Path) -> Result<()> {
    use forrest_engine::{ErrorKind, Store as _};
    use remixdb::disk::Unfinished;

    let home = store.capabilities().home();
    let snapshot = store.snapshot().map_err(|error| match error.kind() {
        ErrorKind::Unsupported => Error::unsupported(format!(
            "checkpoint of \"{home}\": a checkpoint needs a snapshot, which this home does not have"
        )),
        _ => error,
    })?;
    let unfinished = Unfinished::begin(path, None)?;
    write(&snapshot, &unfinished)?;
    unfinished.finish()
}

/// Writes all pairs of a snapshot to a new store, durably.
#[cfg(any(feature = "memory", feature = "llds"))]
fn write(snapshot: &engine::Snapshot, into: &remixdb::disk::Unfinished) -> Result<()> {
    use crate::view::View;
    use forrest_engine::{
        Durability, Expires, Keyspace as _, Op, Options, Snapshot as _, Store as _, View as _,
    };

    let options =
        Options { durability: Some(Durability::Memory), cache_bytes: CACHE_BYTES, ..Options::default() };
    let store = remixdb::Store::new_in(into, &options)?;
    for name in snapshot.keyspaces() {
        let keyspace = store.keyspace(&name)?;
        let view = snapshot.view(&name);
        let may_expire = view.may_expire();
        for pair in View::new(view.clone()).range(..) {
            let pair = pair?;
            let (key, value) = (pair.key(), pair.value_bytes()?);
            let expires_ms = if may_expire { view.expires_ms(key)?.flatten() } else { None };
            keyspace.apply(match expires_ms {
                Some(ms) => Op::SetUntil { key, value, expires: Expires::At(ms) },
                None => Op::Set { key, value },
            })?;
        }
        keyspace.set_ttl(snapshot.ttl(&name))?;
    }
    store.flush()
}
