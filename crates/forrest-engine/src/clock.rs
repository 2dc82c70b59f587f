//! [`Clock`]: the time by which values expire.
//!
//! It is the wall clock, in milliseconds since 1970. While a store is open its time never goes back: where the wall
//! clock is set back, it stays until the wall clock has caught up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The wall clock, in milliseconds since 1970.
pub fn wall_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The time of a store, which never goes back.
pub struct Clock {
    wall_ms: Box<dyn Fn() -> u64 + Send + Sync>,
    latest_ms: AtomicU64,
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clock").field("latest_ms", &self.latest_ms).finish_non_exhaustive()
    }
}

impl Clock {
    /// A clock that follows a wall clock.
    pub fn new(wall_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Clock {
        Clock { wall_ms: Box::new(wall_ms), latest_ms: AtomicU64::new(0) }
    }

    /// The wall clock that it follows, which may go back.
    pub fn wall_ms(&self) -> u64 {
        (self.wall_ms)()
    }

    /// The time now, not before any time that it has had.
    pub fn now_ms(&self) -> u64 {
        let wall_ms = self.wall_ms();
        // ORDERING: it stands for itself; each thread sees its own times, and those of threads that it has heard of.
        let latest_ms = self.latest_ms.load(Ordering::Acquire);
        if wall_ms <= latest_ms {
            return latest_ms;
        }
        self.latest_ms.fetch_max(wall_ms, Ordering::AcqRel).max(wall_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_time_never_goes_back() {
        let wall = Arc::new(AtomicU64::new(5));
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
