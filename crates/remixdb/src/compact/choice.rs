//! Chooses the compression of a keyspace's tables, the time to live of its values, and its merge operator, durably.
//! Tables that are there stay as they are until they are merged.

use crate::catalog::Space;
use crate::compression;
use crate::core::Core;
use crate::manifest::{Edit, Manifest};
use crate::scan::{self, Keys};
use crate::version::Version;
use forrest_base::lock;
use forrest_engine::merge::{self, SharedOperator};
use forrest_engine::spans;
use forrest_engine::{Compression, DEFAULT_KEYSPACE, Direction, Expires, Result};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

impl Core {
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
        self.name_in(&mut manifest, space)?;
        let edits = vec![Edit::Compression { space: space.id, method }];
        manifest.reserve(&edits, || self.next_number())?;
        manifest.commit(edits).map_err(|error| self.log().stop(error))?;
        space.choose(method);
        Ok(())
    }

    /// Sets the time to live of the values that a keyspace gets from now on. Writes nothing if it is that already.
    ///
    /// # Errors
    /// `InvalidArgument` for zero, and if the keyspace was dropped; `Unsupported`, `Io`, `OutOfSpace`, `Stopped`.
    pub(crate) fn choose_ttl(&self, space: &Space, ttl: Option<Duration>) -> Result<()> {
        let ttl_ms = ttl.map(Expires::ttl_ms).transpose()?;
        self.check_here()?;
        space.check()?;
        if space.ttl_ms() == ttl_ms {
            return Ok(());
        }
        self.check_writable()?;
        let mut manifest = lock(&self.manifest);
        self.log().check()?;
        space.check()?;
        self.name_in(&mut manifest, space)?;
        let edits = vec![Edit::Ttl { space: space.id, ms: ttl_ms.unwrap_or(0) }];
        manifest.reserve(&edits, || self.next_number())?;
        manifest.commit(edits).map_err(|error| self.log().stop(error))?;
        space.set_ttl_ms(ttl_ms);
        Ok(())
    }

    /// Sees to it that the manifest names a keyspace.
    fn name_in(&self, manifest: &mut Manifest, space: &Space) -> Result<()> {
        if !manifest.state().keyspaces.contains_key(&space.id) {
            // The keyspace is in the log only.
            self.flush_now(manifest, None)?;
            space.check()?;
        }
        Ok(())
    }

    /// Gives an empty keyspace a merge operator. Writes nothing if it has it already.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no such operator, or if the keyspace has another one, is not empty or was dropped;
    /// `Unsupported`, `Io`, `OutOfSpace`, `Stopped`.
    pub(crate) fn choose_operator(&self, space: &Space, name: &str) -> Result<()> {
        self.check_here()?;
        space.check()?;
        let operator = self.builder.operators.get(&space.name, name)?;
        self.record_operator(space, name, Some(operator))
    }

    /// The same, without the operator itself if that is not known. REQUIRES: then no handle of the store merges.
    pub(crate) fn record_operator(
        &self,
        space: &Space,
        name: &str,
        operator: Option<&SharedOperator>,
    ) -> Result<()> {
        // The manifest has it, unless a commit has failed and the store was resumed.
        let is_kept = || self.version().operated.has(space.id);
        if let Some(has) = space.operator().filter(|_| is_kept()) {
            return merge::check_kept(&space.name, &**has, name);
        }
        self.check_writable()?;
        let mut manifest = lock(&self.manifest);
        self.log().check()?;
        space.check()?;
        if let Some(has) = space.operator() {
            let checked = merge::check_kept(&space.name, &**has, name);
            if checked.is_err() || is_kept() {
                return checked;
            }
        }
        self.name_in(&mut manifest, space)?;
        let edits = vec![Edit::Operator { space: space.id, name: name.to_string() }];
        manifest.reserve(&edits, || self.next_number())?;
        // Deleted keys are passed here, while others write. The look below then jumps over them.
        self.is_empty(&self.version().clone(), space)?;
        {
            // From here on values are checked that others set.
            let order = self.order();
            // If it was set already, all values were checked.
            if !self.is_empty(&order.version, space)? && space.operator().is_none() {
                return Err(merge::not_empty(&space.name));
            }
            if let Some(operator) = operator {
                space.set_operator(operator);
            }
        }
        manifest.commit(edits).map_err(|error| self.log().stop(error))?;
        if let Some(operator) = operator {
            self.version().operated.add(space.id, operator);
        }
        Ok(())
    }

    /// Whether a keyspace has no keys.
    fn is_empty(&self, version: &Arc<Version>, space: &Space) -> Result<bool> {
        let mut is_empty = true;
        let (all, way) = (spans::bounds(&[], None), (Direction::Forward, true));
        let see = Keys(|_: &[u8]| {
            is_empty = false;
            ControlFlow::Break(())
        });
        scan::scan(self, version, space.id, self.newest(), all, way, see)?;
        Ok(is_empty)
    }

    /// Whether logs and tables may get operands of merges. The first time, the manifest says so from then on, so that
    /// no earlier release takes them for damage. Nobody waits for the manifest: while others have it, and without
    /// space, they may not.
    ///
    /// # Errors
    /// `Io`; the store is stopped then.
    pub(crate) fn may_store_operands(&self) -> Result<bool> {
        let version = self.version().clone();
        if version.operated.are_stored() {
            return Ok(true);
        }
        let Ok(mut manifest) = self.manifest.try_lock() else { return Ok(false) };
        self.log().check()?;
        if !manifest.state().has_operands {
            match manifest.reserve_new(self.next_number()) {
                Err(error) if self.is_harmless(&error) => return Ok(false),
                reserved => reserved?,
            }
            // DURABILITY: before the first operand is logged.
            manifest.begin_operands().map_err(|error| self.log().stop(error))?;
        }
        version.operated.store();
        Ok(true)
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
