//! The moments that readers read at: a sequence number, and a time of the store's [`Clock`].

use crate::sync::AtomicU64;
use forrest_engine::clock::Clock;
use std::ops::Deref;

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
