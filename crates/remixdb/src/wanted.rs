//! [`Wanted`]: which old versions a memtable keeps.

use std::collections::BTreeMap;

/// Which versions readers may want.
pub(crate) struct Wanted<'r> {
    /// The sequence number up to which changes are visible.
    pub(crate) visible: u64,
    /// Those that snapshots read at, with the number of the readers of each.
    pub(crate) snapshots: &'r BTreeMap<u64, usize>,
}

impl Wanted<'_> {
    /// Whether a version may be wanted that the next newer one follows.
    pub(crate) fn has(&self, sequence: u64, newer: u64) -> bool {
        let span = sequence..newer;
        span.contains(&self.visible) || (!span.is_empty() && self.snapshots.range(span).next().is_some())
    }

    /// Whether nobody can want a version before a sequence number.
    pub(crate) fn has_none_before(&self, newer: u64) -> bool {
        self.visible >= newer && self.snapshots.is_empty()
    }
}
