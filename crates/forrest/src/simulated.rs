//! Stores on a simulated disk that can lose power and whose calls can fail, for tests of programs built on
//! Forrest.
//!
//! The store is the disk engine, opened as an ordinary [`Db`]. Only the disk is simulated.

use crate::builder::Builder;
use crate::db::Db;
use crate::engine;
use forrest_engine::{Options, Result};
use remixdb::disk::Sealed;

pub use remixdb::disk::simulated::{CrashStates, Failure, Fate, Fault, Simulated, Times};

/// The background work of a store on a simulated disk.
#[derive(Clone)]
pub struct Background(remixdb::Store);

impl Background {
    /// Does a bounded part of the background work, if there is any. Returns true if there may be more.
    ///
    /// # Errors
    /// `Io`, `Corrupt`. After an error the store takes no more changes.
    pub fn step(&self) -> Result<bool> {
        self.0.step()
    }

    /// Does all background work.
    ///
    /// # Errors
    /// As [`step`](Background::step).
    pub fn run(&self) -> Result<()> {
        while self.step()? {}
        Ok(())
    }
}

/// Opens a store without a background thread. [`Background::step`] does its background work, between any two
/// calls.
///
/// # Errors
/// As [`Builder::open`](Builder::open).
pub fn open_unattended(disk: Simulated, builder: &Builder) -> Result<(Db, Background)> {
    let options = builder.resolved();
    options.check()?;
    let store = remixdb::Store::open_unattended(sealed(disk, &options)?, &options)?;
    let db = Db::new(engine::Store::Disk(store.clone()), &options, builder.sizes)?;
    Ok((db, Background(store)))
}

/// The disk as the options say. Without a key it does nothing, so that I/Os have the same numbers.
fn sealed(disk: Simulated, options: &Options) -> Result<Sealed> {
    match options.encryption_key {
        None => Ok(Sealed::plain(disk)),
        Some(_) => Sealed::open(disk, options),
    }
}

/// Opens a store with a background thread.
///
/// # Errors
/// As [`Builder::open`](Builder::open).
pub fn open(disk: Simulated, builder: &Builder) -> Result<Db> {
    let options = builder.resolved();
    options.check()?;
    let store = engine::Store::Disk(remixdb::Store::open(sealed(disk, &options)?, &options)?);
    Db::new(store, &options, builder.sizes)
}
