//! [`Ingest`]: many sorted pairs, which a keyspace gets at one instant.

use forrest_engine::{Op, Result};
use std::fmt;

/// Pairs that a keyspace gets at one instant, made by [`Keyspace::ingest`](crate::Keyspace::ingest). Nobody sees them
/// before [`finish`](Ingest::finish). Dropping it discards them.
///
/// It may be used by one thread at a time. It keeps the store open.
pub struct Ingest {
    pairs: Box<dyn forrest_engine::Ingest>,
    count: u64,
}

impl Ingest {
    pub(crate) fn new(pairs: Box<dyn forrest_engine::Ingest>) -> Ingest {
        Ingest { pairs, count: 0 }
    }

    /// Adds a pair. Keys come in ascending order of their bytes, each once. On disk the pair is written to a table, and
    /// the call waits for the device when a table is full.
    ///
    /// # Errors
    /// `InvalidArgument` if the key is not greater than the one before: the message names both, the pair is left out,
    /// and the ingest can go on. The same for `Limit`, if the key or the value is too long. After `Io`, `OutOfSpace` or
    /// `Stopped` it is of no use any more, and its files are removed.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let mut ingest = db.ingest()?;
    /// ingest.put("oak", "Quercus")?;
    /// let error = ingest.put("elm", "Ulmus").unwrap_err();
    /// assert!(error.to_string().contains("key \"elm\" is not greater than the one before, \"oak\""));
    /// # Ok::<(), forrest::Error>(())
    /// ```
    #[inline]
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        Op::Set { key, value }.check()?;
        self.pairs.put(key, value)?;
        self.count += 1;
        Ok(())
    }

    /// The number of pairs so far.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// True if there are no pairs so far.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Makes all pairs visible at one instant, and returns their number. They replace the values that their keys have
    /// then. Snapshots, and cursors at their places, keep what they had; transactions and compare-and-swaps find the
    /// new values.
    ///
    /// On disk all pairs and all changes before them survive a loss of power when this returns. After a crash before
    /// that, the store has all of the pairs or none, and no file of them stays. Changes of their range that are in
    /// memory become tables first. Other writers wait for a sync, and for more only if they write to the same range all
    /// the time.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace was dropped, or if a pair has failed; `OutOfSpace`; `Io`, `Corrupt` if the
    /// range has a table that is damaged. The store has none of the pairs then. `Stopped` if the store has failed; the
    /// pairs may be there when it is opened again.
    pub fn finish(self) -> Result<u64> {
        self.pairs.finish()
    }
}

impl fmt::Debug for Ingest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ingest").field("len", &self.count).finish_non_exhaustive()
    }
}
