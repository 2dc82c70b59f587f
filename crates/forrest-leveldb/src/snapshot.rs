//! [`Snapshot`]: one state of a store. It knows its store, because C passes both.

use crate::failure::Failure;
use std::fmt;

/// One state of a store.
pub struct Snapshot {
    /// The number of the opening of the store.
    pub(crate) of: u64,
    pub(crate) state: forrest::Snapshot,
}

impl Snapshot {
    /// The state, if it is one of this opening of a store.
    pub(crate) fn of(&self, store: u64) -> Result<&forrest::Snapshot, Failure> {
        if self.of == store {
            return Ok(&self.state);
        }
        Err(Failure::invalid("the snapshot of the read options is of another database"))
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("of", &self.of).finish_non_exhaustive()
    }
}
