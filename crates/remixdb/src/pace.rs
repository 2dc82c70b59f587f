//! [`Pace`]: how long writers wait, so that changes arrive about as fast as tables are made of them.
//!
//! Each change has a price in time: its bytes, at the rate at which memtables became tables lately. A change that comes
//! before the earlier ones are paid waits until they are. How much is asked depends on how much waits in memory:
//! nothing while it is little, the measured rate when it is as much as is usual under a load without end, and the more
//! the closer it is to the limit. So each change waits a little, and hardly any change waits until a table is written.
//!
//! A price below [`LEAST`] is owed until it has grown, because a shorter sleep takes longer than it should.

use forrest_base::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Below this share of a memtable beyond the one that takes changes, no change waits.
const FREE: f64 = 0.25;
/// For each memtable that more or less waits, changes are admitted this many times slower or faster.
const STEP: f64 = 8.0;
/// More than this counts as this: a batch, or a memtable that takes one change, may be far beyond.
const FULL: f64 = 2.0;
/// The shortest wait and the longest. No more than the longest is ever owed.
const LEAST: Duration = Duration::from_micros(100);
const MOST: Duration = Duration::from_secs(1);
/// The rate until one was measured, in bytes a second.
const UNKNOWN: f64 = (64 << 20) as f64;

/// See the head of the file.
pub(crate) struct Pace {
    begin: Instant,
    /// Nanoseconds after the beginning at which all changes so far are paid.
    paid: AtomicU64,
    /// Bits of the rate, in bytes a second.
    rate: AtomicU64,
    /// Tables are written no faster, in bytes a second.
    most: AtomicU64,
    made: Mutex<Made>,
}

/// What the rate is computed from.
#[derive(Default)]
struct Made {
    /// Bytes that became tables, and seconds that it took; older ones count half as much each time.
    bytes: f64,
    seconds: f64,
    /// Seconds that merges took since the last memtable became tables.
    merging: f64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            begin: Instant::now(),
            paid: AtomicU64::new(0),
            rate: AtomicU64::new(UNKNOWN.to_bits()),
            most: AtomicU64::new(u64::MAX),
            made: Mutex::default(),
        }
    }
}

impl Pace {
    /// Notes that `bytes` bytes of changes became tables within a time. What merges took before that counts too.
    pub(crate) fn note(&self, bytes: usize, took: Duration) {
        let mut made = lock(&self.made);
        let merging = std::mem::take(&mut made.merging);
        made.bytes = made.bytes / 2.0 + bytes as f64;
        made.seconds = made.seconds / 2.0 + merging + took.as_secs_f64();
        if made.bytes >= 1.0 && made.seconds > 0.0 {
            // ORDERING: no other data depends on it.
            self.rate.store((made.bytes / made.seconds).to_bits(), Relaxed);
        }
    }

    /// Notes that changes waited for a merge that took so long.
    pub(crate) fn note_merge(&self, took: Duration) {
        lock(&self.made).merging += took.as_secs_f64();
    }

    /// Tables are written no faster from now on. That counts before anything was measured.
    pub(crate) fn set_most(&self, most: Option<u64>) {
        // ORDERING: no other data depends on it.
        self.most.store(most.unwrap_or(u64::MAX), Relaxed);
    }

    /// How long the caller waits after it made changes of `bytes` bytes. `waiting` is all that is in memory, in
    /// memtables: at 1 the memtable that takes changes is full, and none waits to become tables.
    pub(crate) fn charge(&self, bytes: usize, waiting: f64) -> Duration {
        let beyond = waiting - 1.0;
        if beyond < FREE {
            return Duration::ZERO;
        }
        self.charge_at(self.begin.elapsed(), bytes, beyond)
    }

    fn charge_at(&self, now: Duration, bytes: usize, beyond: f64) -> Duration {
        let most = self.most.load(Relaxed) as f64;
        let rate = f64::from_bits(self.rate.load(Relaxed)).min(most) * STEP.powf(1.0 - beyond.min(FULL));
        let price = (bytes as f64 / rate * 1e9) as u64;
        let now = now.as_nanos() as u64;
        let most = now.saturating_add(MOST.as_nanos() as u64);
        let add = |paid: u64| paid.max(now).saturating_add(price).min(most);
        // ORDERING: a sum that no other data depends on.
        let before = self.paid.fetch_update(Relaxed, Relaxed, |paid| Some(add(paid))).unwrap_or(now);
        let wait = Duration::from_nanos(add(before) - now);
        if wait < LEAST { Duration::ZERO } else { wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn pace() -> Pace {
        let pace = Pace::default();
        pace.note(100 * MIB, Duration::from_secs(1));
        pace
    }

    #[test]
    fn nobody_waits_while_little_is_in_memory() {
        assert_eq!(pace().charge(1 << 30, 1.2), Duration::ZERO);
        assert!(pace().charge(1 << 30, 1.3) > Duration::ZERO);
    }

    /// Two memtables are full: what is admitted in a second is what becomes tables in a second, however many changes
    /// it is, and none waits long.
    #[test]
    fn changes_are_admitted_at_the_rate_at_which_tables_are_made() {
        for bytes in [100, 10_000, 4 * MIB] {
            let (pace, mut now, mut admitted) = (pace(), Duration::ZERO, 0);
            while now < Duration::from_secs(1) {
                let wait = pace.charge_at(now, bytes, 1.0);
                let share = bytes as f64 / (100 * MIB) as f64;
                assert!(wait.as_secs_f64() <= share + LEAST.as_secs_f64() * 1.01, "{bytes} bytes: {wait:?}");
                now += wait + Duration::from_nanos(200);
                admitted += bytes;
            }
            assert!((95 * MIB..=105 * MIB).contains(&admitted), "{admitted} in steps of {bytes}");
        }
    }

    #[test]
    fn changes_wait_longer_the_more_is_in_memory() {
        let wait = |beyond| pace().charge_at(Duration::ZERO, MIB, beyond).as_secs_f64();
        for beyond in [0.5, 1.0, 1.5] {
            let ratio = wait(beyond + 0.5) / wait(beyond);
            assert!((2.7..3.0).contains(&ratio), "{ratio} from {beyond} on");
        }
    }

    #[test]
    fn a_limit_of_what_is_written_counts_before_anything_was_measured() {
        let pace = Pace::default();
        pace.set_most(Some(MIB as u64));
        let wait = pace.charge_at(Duration::ZERO, MIB / 2, 1.0).as_secs_f64();
        assert!((0.49..0.51).contains(&wait), "{wait}");
    }

    #[test]
    fn no_wait_is_longer_than_the_longest() {
        let pace = Pace::default();
        pace.note(1, Duration::from_secs(10));
        for _ in 0..10 {
            assert!(pace.charge(1 << 30, 1e9) <= MOST);
        }
        assert!(pace.charge_at(Duration::from_secs(3600), 0, 1.0) <= LEAST, "what was owed is paid");
    }

    #[test]
    fn merges_count_as_time_that_tables_took() {
        let (with, without) = (pace(), pace());
        for _ in 0..20 {
            with.note_merge(Duration::from_millis(50));
        }
        with.note(100 * MIB, Duration::from_secs(1));
        without.note(100 * MIB, Duration::from_secs(2));
        let wait = |pace: Pace| pace.charge_at(Duration::ZERO, 10 * MIB, 1.0);
        assert_eq!(wait(with).as_millis(), wait(without).as_millis());
    }

    #[test]
    fn the_rate_follows_what_was_measured_lately() {
        let pace = pace();
        for _ in 0..8 {
            pace.note(10 * MIB, Duration::from_secs(1));
        }
        let wait = pace.charge_at(Duration::ZERO, 10 * MIB, 1.0).as_secs_f64();
        assert!((0.9..1.1).contains(&wait), "{wait}");
        // A clock that stands still.
        pace.note(10, Duration::ZERO);
        assert!(pace.charge_at(Duration::ZERO, 10, 1.0) < Duration::from_secs(3));
    }
}
