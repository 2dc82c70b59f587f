//! [`Clock`]: the time by which values expire; and the moments that readers read at.
//!
//! It is the wall clock of the disk, in milliseconds since 1970. While a store is open its time never goes back: where
//! the wall clock is set back, it stays until the wall clock has caught up.

use crate::sync::AtomicU64;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64 as Plain, Ordering};

/// See the head of the file.
pub(crate) struct Clock {
    wall_ms: Box<dyn Fn() -> u64 + Send + Sync>,
    latest_ms: Plain,
}

impl Clock {
    pub(crate) fn new(wall_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Clock {
        Clock { wall_ms: Box::new(wall_ms), latest_ms: Plain::new(0) }
    }

    /// The time now, not before any time that it has had.
    pub(crate) fn now_ms(&self) -> u64 {
        let wall_ms = (self.wall_ms)();
        // ORDERING: it stands for itself; each thread sees its own times, and those of threads that it has heard of.
        let latest_ms = self.latest_ms.load(Ordering::Acquire);
        if wall_ms <= latest_ms {
            return latest_ms;
        }
        self.latest_ms.fetch_max(wall_ms, Ordering::AcqRel).max(wall_ms)
    }
}

/// The state that readers of the newest state see: up to a sequence number, which it dereferences to, and now.
pub(crate) struct Newest {
    visible: AtomicU64,
    clock: Clock,
}

impl Newest {
    pub(crate) fn new(sequence: u64, clock: Clock) -> Newest {
        Newest { visible: AtomicU64::new(sequence), clock }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }
}

impl Deref for Newest {
    type Target = AtomicU64;

    #[inline]
    fn deref(&self) -> &AtomicU64 {
        &self.visible
    }
}

/// What a snapshot reads at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) sequence: u64,
    pub(crate) ms: u64,
}

impl Moment {
    /// The later of both, in number and in time.
    pub(crate) fn max(self, other: Moment) -> Moment {
        Moment { sequence: self.sequence.max(other.sequence), ms: self.ms.max(other.ms) }
    }

    /// Whether another moment is not before it, in number and in time.
    pub(crate) fn is_until(&self, other: Moment) -> bool {
        self.sequence <= other.sequence && self.ms <= other.ms
    }
}

#[cfg(any(test, feature = "loom"))]
impl Moment {
    /// After a change, before all that expires.
    pub(crate) const fn after(sequence: u64) -> Moment {
        Moment { sequence, ms: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_time_never_goes_back() {
        let wall = Arc::new(Plain::new(5));
        let clock = Clock::new({
            let wall = wall.clone();
            move || wall.load(Ordering::Relaxed)
        });
        let at = |ms| {
            wall.store(ms, Ordering::Relaxed);
            clock.now_ms()
        };
        assert_eq!([at(5), at(9), at(3), at(8), at(10)], [5, 9, 9, 9, 10]);
    }
}
