//! [`Truth`]: the allowed results of reads, for each key and counter.
//!
//! A key goes through versions 1, 2, 3, ...; whether a version is a value or an absence, and which value, follows from
//! the seed, the key and the version. One thread writes a key. It stores the version in `begun` before its call and in
//! `done` after the call has returned. A reader loads `done` before its call and `begun` after it. The result must be
//! a version from `done` to `begun`. An older one is stale.

use forrest_base::random::{Random, mix_all};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// One of this many keys is never deleted once it has been written.
const STEADY_EVERY: usize = 4;
/// Of the versions of other keys, one of this many is an absence.
const ABSENT_EVERY: u64 = 6;
/// Counters that all writers add to.
pub(super) const COUNTERS: usize = 16;

/// The writers' knowledge of the store.
pub(super) struct Truth {
    seed: u64,
    value_bytes_max: usize,
    keys: Vec<Key>,
    /// For each counter, the largest sum that an `add` returned.
    pub(super) counters: [AtomicI64; COUNTERS],
    /// For each writer, the number that its last acknowledged batch wrote.
    pub(super) batches: Vec<AtomicU64>,
}

#[derive(Default)]
struct Key {
    begun: AtomicU64,
    done: AtomicU64,
}

/// What is wrong with a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is older than a version that was acknowledged before the read began.
    Stale,
    /// No writer wrote it.
    Wrong,
}

impl Truth {
    pub(super) fn new(seed: u64, keys: usize, value_bytes_max: usize, writers: usize) -> Self {
        Truth {
            seed,
            value_bytes_max,
            keys: (0..keys).map(|_| Key::default()).collect(),
            counters: Default::default(),
            batches: (0..writers).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// How many keys there are.
    pub(super) fn keys(&self) -> usize {
        self.keys.len()
    }

    /// The version that was published.
    pub(super) fn done(&self, key: usize) -> u64 {
        // ORDERING: pairs with `finish`: a read that follows must see what was written before.
        self.keys[key].done.load(Ordering::Acquire)
    }

    /// The version that is being written, or was last.
    pub(super) fn begun(&self, key: usize) -> u64 {
        // ORDERING: a reader that got a version from the store comes after its `begin`, because the store orders them.
        self.keys[key].begun.load(Ordering::Acquire)
    }

    /// Called by the only writer of a key before it writes. Returns the version to write.
    pub(super) fn begin(&self, key: usize) -> u64 {
        let version = self.keys[key].begun.load(Ordering::Relaxed) + 1;
        self.keys[key].begun.store(version, Ordering::Release);
        version
    }

    /// Called when the write has returned.
    pub(super) fn finish(&self, key: usize, version: u64) {
        self.keys[key].done.store(version, Ordering::Release);
    }

    /// Whether a version is a value; otherwise the key is absent.
    pub(super) fn is_there(&self, key: usize, version: u64) -> bool {
        version > 0
            && (key.is_multiple_of(STEADY_EVERY)
                || !mix_all(&[self.seed, key as u64, version]).is_multiple_of(ABSENT_EVERY))
    }

    /// Replaces the content of `out` by the value that a version is.
    pub(super) fn value(&self, key: usize, version: u64, out: &mut Vec<u8>) {
        let mut random = Random(mix_all(&[self.seed, version, key as u64]));
        out.clear();
        out.extend_from_slice(&version.to_be_bytes());
        let most = self.value_bytes_max - out.len();
        let length = random.below(most as u64 + 1) as usize;
        random.append(length, out);
    }

    /// Checks a result against the values of `done` and `begun` that the reader loaded.
    pub(super) fn judge(&self, key: usize, done: u64, begun: u64, found: Option<&[u8]>) -> Result<(), Fault> {
        let Some(found) = found else {
            let was_absent = (done..=begun).any(|version| !self.is_there(key, version));
            return if was_absent { Ok(()) } else { Err(Fault::Stale) };
        };
        let Some(version) = version_of(found) else { return Err(Fault::Wrong) };
        let mut wanted = Vec::new();
        self.value(key, version, &mut wanted);
        if version > begun || !self.is_there(key, version) || found != wanted {
            return Err(Fault::Wrong);
        }
        if version < done { Err(Fault::Stale) } else { Ok(()) }
    }
}

/// The version that a value says it is.
fn version_of(value: &[u8]) -> Option<u64> {
    value.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_judged() {
        let truth = Truth::new(7, 8, 40, 1);
        let value = |version| {
            let mut out = Vec::new();
            truth.value(4, version, &mut out);
            out
        };
        // A steady key: versions 0 is absent, all others are there.
        assert_eq!(truth.judge(4, 0, 1, None), Ok(()));
        assert_eq!(truth.judge(4, 1, 2, None), Err(Fault::Stale));
        assert_eq!(truth.judge(4, 1, 3, Some(&value(2))), Ok(()));
        assert_eq!(truth.judge(4, 3, 3, Some(&value(2))), Err(Fault::Stale));
        assert_eq!(truth.judge(4, 1, 1, Some(&value(2))), Err(Fault::Wrong));
        assert_eq!(truth.judge(4, 1, 1, Some(b"short")), Err(Fault::Wrong));
        let mut broken = value(1);
        broken.push(0);
        assert_eq!(truth.judge(4, 1, 1, Some(&broken)), Err(Fault::Wrong));
        // Another: some version is an absence.
        let gone = (1..).find(|&version| !truth.is_there(5, version)).unwrap();
        assert_eq!(truth.judge(5, gone - 1, gone, None), Ok(()));
        truth.value(5, gone, &mut broken);
        assert_eq!(truth.judge(5, gone, gone, Some(&broken)), Err(Fault::Wrong));
    }
}
