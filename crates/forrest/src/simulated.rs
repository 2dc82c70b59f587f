//! Stores on a simulated disk, whose power can be cut and whose calls can fail: for tests of what is built on Forrest.
//!
//! It is the store that users have, through the same [`Db`]; only the disk is another.

use crate::builder::Builder;
use crate::db::Db;
use crate::engine;
use forrest_engine::Result;

pub use remixdb::disk::simulated::{CrashStates, Failure, Fate, Fault, Simulated, Times};

/// A store on a simulated disk, and what does its background work.
#[derive(Clone)]
pub struct Background(remixdb::Store<Simulated>);

impl Background {
    /// Does a bounded piece of the background work, if there is any. True if there may be more.
    ///
    /// # Errors
    /// `Io`, `Corrupt`. The store takes no more changes then.
    pub fn step(&self) -> Result<bool> {
        self.0.step()
    }

    /// Does all of it.
    ///
    /// # Errors
    /// As [`step`](Background::step).
    pub fn run(&self) -> Result<()> {
        while self.step()? {}
        Ok(())
    }
}

/// Opens a store whose background work is done by [`Background::step`], between any two calls.
///
/// # Errors
/// As [`Builder::open`](Builder::open).
pub fn open_unattended(disk: Simulated, builder: &Builder) -> Result<(Db, Background)> {
    builder.options.check()?;
    let store = remixdb::Store::open_unattended(disk, &builder.options)?;
    Ok((Db::new(engine::Store::Simulated(store.clone()), &builder.options)?, Background(store)))
}

/// Opens a store whose background work is done by a thread.
///
/// # Errors
/// As [`Builder::open`](Builder::open).
pub fn open(disk: Simulated, builder: &Builder) -> Result<Db> {
    builder.options.check()?;
    Db::new(engine::Store::Simulated(remixdb::Store::open(disk, &builder.options)?), &builder.options)
}
