//! [`Gauge`]: how many bytes of memory some parts of a store take together, each by its [`Share`], and how many they may
//! take.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The sum of shares. Cloning makes another handle.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauge(Arc<Sum>);

#[derive(Debug)]
struct Sum {
    bytes: AtomicUsize,
    most: AtomicUsize,
}

impl Default for Sum {
    fn default() -> Sum {
        Sum { bytes: AtomicUsize::new(0), most: AtomicUsize::new(usize::MAX) }
    }
}

impl Gauge {
    /// Bytes of all shares.
    pub(crate) fn bytes(&self) -> usize {
        // ORDERING: it stands for itself.
        self.0.bytes.load(Relaxed)
    }

    /// The bytes that all shares may take; `usize::MAX` if nobody limited them.
    pub(crate) fn most(&self) -> usize {
        // ORDERING: it only decides what is loaded.
        self.0.most.load(Relaxed)
    }

    /// Limits what they may take. Shares that are there stay.
    pub(crate) fn set_most(&self, bytes: usize) {
        self.0.most.store(bytes, Relaxed);
    }

    /// Whether another share may take `bytes`.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.bytes().saturating_add(bytes) <= self.most()
    }

    /// A share of `bytes`.
    pub(crate) fn take(&self, bytes: usize) -> Share {
        let share = Share { gauge: self.clone(), bytes: AtomicUsize::new(0) };
        share.set(bytes);
        share
    }
}

/// Bytes that count until this is dropped. By default it is a share of nothing that anybody reads.
#[derive(Debug, Default)]
pub(crate) struct Share {
    gauge: Gauge,
    bytes: AtomicUsize,
}

impl Share {
    /// Bytes that it counts from now on.
    pub(crate) fn set(&self, bytes: usize) {
        // ORDERING: counters. Each call adds the difference that it made.
        let old = self.bytes.swap(bytes, Relaxed);
        self.gauge.0.bytes.fetch_add(bytes.wrapping_sub(old), Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// What something counts for makes it no other thing.
#[cfg(test)]
impl PartialEq for Share {
    fn eq(&self, _other: &Share) -> bool {
        true
    }
}

#[cfg(test)]
impl Eq for Share {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_is_the_sum_of_its_shares() {
        let gauge = Gauge::default();
        let (one, other) = (gauge.take(100), gauge.take(20));
        assert_eq!(gauge.bytes(), 120);
        one.set(70);
        other.set(30);
        assert_eq!(gauge.bytes(), 100);
        drop(one);
        assert_eq!(gauge.bytes(), 30);
        drop(other);
        assert_eq!(gauge.bytes(), 0);
    }

    #[test]
    fn room_is_what_shares_leave() {
        let gauge = Gauge::default();
        let share = gauge.take(100);
        assert!(gauge.has_room(usize::MAX));
        gauge.set_most(150);
        assert!(gauge.has_room(50) && !gauge.has_room(51));
        drop(share);
        assert!(gauge.has_room(150) && !gauge.has_room(151));
    }
}
