//! Pairs of a static structure that are gathered until it is made.

use std::mem;

/// What was inserted and is not in the structure yet.
pub(super) struct Gathered<A, B>(Vec<(A, B)>);

impl<A: Ord, B: Default> Gathered<A, B> {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Gathered(Vec::new())
    }

    /// One more; it replaces an earlier one of the same key when the structure is made.
    #[inline]
    pub(super) fn push(&mut self, key: A, value: B) {
        self.0.push((key, value));
    }

    /// All pairs in order, each key once, after what the structure had; `None` if nothing was inserted.
    pub(super) fn take(&mut self, had: impl FnOnce() -> Vec<(A, B)>) -> Option<Vec<(A, B)>> {
        if self.0.is_empty() {
            return None;
        }
        let mut pairs = had();
        pairs.append(&mut mem::take(&mut self.0));
        // The sort must be stable: of two pairs with one key, the later one wins below.
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        pairs.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 = mem::take(&mut later.1);
            }
            same
        });
        pairs.shrink_to_fit();
        Some(pairs)
    }
}
