//! [`Filter`]: a function that decides which values stay when tables are written.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What a compaction filter decides about a value. See `Builder::compaction_filter`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It stays.
    Keep,
    /// Its key is deleted.
    Drop,
    /// The key has this value from now on. One that expires keeps its time.
    Replace(Vec<u8>),
}

type Decide = dyn Fn(&str, &[u8], &[u8]) -> Verdict + Send + Sync;

/// A function of the name of a keyspace, a key and its value.
#[derive(Clone)]
pub struct Filter(Arc<Decide>);

impl Filter {
    /// Calls `decide` with each value.
    pub fn new(decide: impl Fn(&str, &[u8], &[u8]) -> Verdict + Send + Sync + 'static) -> Filter {
        Filter(Arc::new(decide))
    }

    /// Decides about a value. If the function panics, it stays.
    pub fn decide(&self, keyspace: &str, key: &[u8], value: &[u8]) -> Verdict {
        catch_unwind(AssertUnwindSafe(|| (self.0)(keyspace, key, value))).unwrap_or(Verdict::Keep)
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Filter")
    }
}
