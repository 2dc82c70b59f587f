//! [`Gauge`]: how many bytes of memory some parts of a store take together, each by its [`Share`].

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The sum of shares. Cloning makes another handle.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauge(Arc<AtomicUsize>);

impl Gauge {
    /// Bytes of all shares.
    pub(crate) fn bytes(&self) -> usize {
        // ORDERING: it stands for itself.
        self.0.load(Relaxed)
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
        self.gauge.0.fetch_add(bytes.wrapping_sub(old), Relaxed);
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
}
