//! [`Rate`]: how many bytes flushes and merges write a second, if that is limited. A token bucket.
//!
//! Each piece is paid before it is written, in the order in which threads ask. What is not used within [`BURST`] is
//! lost. So in any time `t`, at most the bytes of `t + BURST` are written, and one piece for each thread.
//!
//! A thread waits in short pauses, and looks after each whether it should go on. What the bucket is asked for and when
//! is in the caller's hand; reads are not counted.

use forrest_engine::Result;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of this time may be written at once after a pause.
const BURST: Duration = Duration::from_millis(100);
/// The pause between two looks whether a wait is still wanted.
const LOOK: Duration = Duration::from_millis(10);

/// What is asked before bytes are written to a table or a REMIX.
pub(crate) trait Spend: Send + Sync {
    /// Waits until this many bytes may be written.
    ///
    /// # Errors
    /// `Busy` if they are not needed any more.
    fn spend(&self, bytes: usize) -> Result<()>;
}

impl<S: Spend> Spend for &S {
    fn spend(&self, bytes: usize) -> Result<()> {
        (**self).spend(bytes)
    }
}

/// Nothing is limited.
pub(crate) struct Free;

impl Spend for Free {
    fn spend(&self, _bytes: usize) -> Result<()> {
        Ok(())
    }
}

/// The answer to the question whether to wait on.
pub(crate) enum Wait {
    On,
    /// Go on without having paid.
    NoMore,
}

/// See the head of the file.
pub(crate) struct Rate {
    begin: Instant,
    /// Bytes a second; `u64::MAX` if there is no limit.
    limit: AtomicU64,
    /// Nanoseconds after the beginning at which everything is paid.
    paid: AtomicU64,
}

impl Default for Rate {
    fn default() -> Rate {
        Rate { begin: Instant::now(), limit: AtomicU64::new(u64::MAX), paid: AtomicU64::new(0) }
    }
}

impl Rate {
    /// Bytes a second from now on. Threads that wait go on at once.
    pub(crate) fn set(&self, limit: Option<u64>) {
        // ORDERING: both values only decide how long a thread waits.
        self.paid.store(self.begin.elapsed().as_nanos() as u64, Relaxed);
        self.limit.store(limit.unwrap_or(u64::MAX), Relaxed);
    }

    /// Bytes a second; `u64::MAX` if there is no limit.
    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Relaxed)
    }

    /// Waits until `bytes` bytes may be written. Asks `look` now and then whether to wait on.
    ///
    /// # Errors
    /// Those of `look`.
    pub(crate) fn spend(&self, bytes: usize, mut look: impl FnMut() -> Result<Wait>) -> Result<()> {
        let limit = self.limit();
        if limit == u64::MAX {
            return Ok(());
        }
        if let Wait::NoMore = look()? {
            return Ok(());
        }
        let due = self.due(self.begin.elapsed(), bytes, limit);
        while let Some(left) = due.checked_sub(self.begin.elapsed()).filter(|left| !left.is_zero()) {
            thread::sleep(left.min(LOOK));
            if self.limit() != limit || matches!(look()?, Wait::NoMore) {
                break;
            }
        }
        Ok(())
    }

    /// When `bytes` bytes that are asked for now are paid.
    fn due(&self, now: Duration, bytes: usize, limit: u64) -> Duration {
        let price = (bytes as f64 / limit as f64 * 1e9) as u64;
        let least = now.saturating_sub(BURST).as_nanos() as u64;
        let add = |paid: u64| paid.max(least).saturating_add(price);
        // ORDERING: a sum that no other data depends on.
        let before = self.paid.fetch_update(Relaxed, Relaxed, |paid| Some(add(paid)));
        Duration::from_nanos(add(before.unwrap_or(0)))
    }
}

/// Counts what is asked for.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Counted(AtomicU64);

#[cfg(test)]
impl Counted {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

#[cfg(test)]
impl Spend for Counted {
    fn spend(&self, bytes: usize) -> Result<()> {
        self.0.fetch_add(bytes as u64, Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forrest_engine::Error;

    const MIB: usize = 1 << 20;

    /// What is written from `now` on, by one thread that always has more, within a time.
    fn written(rate: &Rate, mut now: Duration, within: Duration, piece: usize, limit: u64) -> usize {
        let end = now + within;
        let mut bytes = 0;
        loop {
            now = now.max(rate.due(now, piece, limit));
            if now > end {
                return bytes;
            }
            bytes += piece;
        }
    }

    #[test]
    fn as_much_is_written_as_the_rate_says_whatever_the_pieces() {
        let second = Duration::from_secs(1);
        for piece in [1000, MIB, 30 * MIB] {
            let bytes = written(&Rate::default(), Duration::ZERO, 10 * second, piece, 10 * MIB as u64);
            assert!((99 * MIB - piece..=101 * MIB).contains(&bytes), "{bytes} bytes in pieces of {piece}");
        }
    }

    #[test]
    fn what_is_not_used_is_kept_for_a_moment_only() {
        let rate = Rate::default();
        let (hour, second) = (Duration::from_secs(3600), Duration::from_secs(1));
        let bytes = written(&rate, hour, second, 1000, MIB as u64);
        assert!((MIB..=MIB + MIB / 10).contains(&bytes), "{bytes} bytes in a second after an hour");
        let bytes = written(&rate, hour + second, second, 1000, MIB as u64);
        assert!((MIB - 2000..=MIB).contains(&bytes), "{bytes} bytes in the next second");
    }

    #[test]
    fn threads_share_the_rate_in_their_order() {
        let rate = Rate::default();
        let dues: Vec<_> = (0..4).map(|_| rate.due(Duration::ZERO, MIB, MIB as u64).as_secs()).collect();
        assert_eq!(dues, [1, 2, 3, 4]);
    }

    #[test]
    fn no_number_is_too_large() {
        let rate = Rate::default();
        for _ in 0..3 {
            assert!(rate.due(Duration::MAX, usize::MAX, 1) > Duration::from_secs(3600));
        }
        assert_eq!(Rate::default().due(Duration::ZERO, 1 << 20, u64::MAX - 1), Duration::ZERO);
    }

    /// A byte a second: the test would never end if it waited.
    #[test]
    fn a_wait_ends_when_it_is_not_wanted() {
        let rate = Rate::default();
        assert!(rate.spend(usize::MAX, || panic!("there is no limit")).is_ok());
        rate.set(Some(1));
        let mut looks = 0;
        let mut look = || {
            looks += 1;
            if looks == 3 { Err(Error::invalid("the third look")) } else { Ok(Wait::On) }
        };
        assert!(rate.spend(MIB, &mut look).is_err());
        assert!(rate.spend(MIB, || Ok(Wait::NoMore)).is_ok());
        let lift = || {
            rate.set(None);
            Ok(Wait::On)
        };
        assert!(rate.spend(MIB, lift).is_ok());
        assert_eq!(rate.limit(), u64::MAX);
    }
}
