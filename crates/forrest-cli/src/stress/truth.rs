//! [`Truth`]: what a reader may be told, for each key and counter.
//!
//! A key goes through versions 1, 2, 3, ...; whether a version is a value or an absence, and which value, follows from
//! the seed, the key and the version. One thread writes a key. It stores the version in `begun` before its call and in
//! `done` after the call has returned. A reader takes `done` before its call and `begun` after: what it is told must be
//! a version from the first to the second. An older one is stale.

use forrest_base::random::{Random, mix_all};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Every so many keys one is always there, once it has been written.
const STEADY_EVERY: usize = 4;
/// Of the versions of other keys, one of so many is an absence.
const ABSENT_EVERY: u64 = 6;
/// Counters that all writers add to.
pub(super) const COUNTERS: usize = 16;

/// What is known of the store by those who wrote it.
pub(super) struct Truth {
    seed: u64,
    value_bytes_max: usize,
    keys: Vec<Key>,
    /// For each counter, the largest sum that was answered.
    pub(super) counters: [AtomicI64; COUNTERS],
    /// For each writer, what the last of its batches that has returned wrote.
    pub(super) batches: Vec<AtomicU64>,
}

#[derive(Default)]
struct Key {
    begun: AtomicU64,
    done: AtomicU64,
}

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is older than what was written when it was asked for.
    Stale,
    /// Nobody wrote it.
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
        // ORDERING: pairs with `finish`; what was written before can be read after.
        self.keys[key].done.load(Ordering::Acquire)
    }

    /// The version that is being written, or was last.
    pub(super) fn begun(&self, key: usize) -> u64 {
        // ORDERING: who was told a version by the store is behind its `begin`, for the store itself must order that.
        self.keys[key].begun.load(Ordering::Acquire)
    }

    /// The only writer of a key is about to write its next version, and which one that is.
    pub(super) fn begin(&self, key: usize) -> u64 {
        let version = self.keys[key].begun.load(Ordering::Relaxed) + 1;
        self.keys[key].begun.store(version, Ordering::Release);
        version
    }

    /// The call has returned.
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

    /// Judges what was found, between the readings of `done` and `begun`.
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
