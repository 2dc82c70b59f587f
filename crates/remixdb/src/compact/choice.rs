//! Chooses the compression of a keyspace's tables, durably. Tables that are there stay as they are until they are
//! merged.

use crate::catalog::Space;
use crate::compression;
use crate::core::Core;
use crate::disk::Disk;
use crate::manifest::Edit;
use forrest_base::lock;
use forrest_engine::{Compression, DEFAULT_KEYSPACE, Result};

impl<D: Disk> Core<D> {
    /// Sets the compression of the tables that a keyspace gets from now on. Writes nothing if it is that already.
    ///
    /// # Errors
    /// `Unsupported` if this build does not have it; `InvalidArgument` if the keyspace was dropped; `Io`,
    /// `OutOfSpace`, `Stopped`.
    pub(crate) fn choose_compression(&self, space: &Space, method: Compression) -> Result<()> {
        compression::check(method)?;
        self.check_here()?;
        space.check()?;
        if space.chosen() == Some(method) {
            return Ok(());
        }
        self.check_writable()?;
        let mut manifest = lock(&self.manifest);
        self.log().check()?;
        space.check()?;
        if space.chosen() == Some(method) {
            return Ok(());
        }
        if !manifest.state().keyspaces.contains_key(&space.id) {
            // The keyspace is in the log only.
            self.flush_now(&mut manifest, None)?;
            space.check()?;
        }
        let edits = vec![Edit::Compression { space: space.id, method }];
        manifest.reserve(&edits, || self.next_number())?;
        manifest.commit(edits).map_err(|error| self.log().stop(error))?;
        space.choose(method);
        Ok(())
    }

    /// Sets what the options say, for the default keyspace. A store that is only read, or whose directory cannot be
    /// written to, stays as it is.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn choose_at_opening(&self) -> Result<()> {
        match self.builder.compression {
            Some(method) if self.check_writable().is_ok() => {
                let default = self.catalog().get(DEFAULT_KEYSPACE).cloned();
                self.choose_compression(&default.expect("it always exists"), method)
            }
            _ => Ok(()),
        }
    }
}
