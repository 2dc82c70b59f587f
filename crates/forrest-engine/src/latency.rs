//! [`Latency`]: how long calls of a kind took, in a histogram, and how many pages they read.
//!
//! A bucket of the histogram is an eighth of a power of two wide, so a time is known to 12.5 %. Below 8 ns each
//! nanosecond has its own. All times above 18 minutes are in the last one.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A kind of call whose time is taken with `Builder::latencies`. A call that a scan's function makes counts by itself:
/// its time is part of the scan's time too, and its pages are not part of the scan's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Call {
    /// A read of one key.
    Get,
    /// A read of several keys at once.
    MultiGet,
    /// A refill of an iteration, which has up to 256 KiB of pairs; a jump of a cursor; or a whole scan with a function,
    /// with the time that the function takes.
    Scan,
    /// A change, a batch or a commit of a transaction, until it is as durable as was asked for.
    Write,
    /// A sync.
    Sync,
}

impl Call {
    /// All of them.
    pub const ALL: [Call; 5] = [Call::Get, Call::MultiGet, Call::Scan, Call::Write, Call::Sync];

    /// Its name: `get`, `multi_get`, `scan`, `write` or `sync`.
    pub fn as_str(self) -> &'static str {
        match self {
            Call::Get => "get",
            Call::MultiGet => "multi_get",
            Call::Scan => "scan",
            Call::Write => "write",
            Call::Sync => "sync",
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Buckets for a power of two.
const PARTS: u64 = 8;
/// Times of 2 to this power, in nanoseconds, and greater ones are in the last bucket: about 18 minutes.
const LAST_LOG: u32 = 40;
/// Number of buckets.
const BUCKETS: usize = ((LAST_LOG as u64 - 2) * PARTS) as usize + 1;

/// The bucket of a time in nanoseconds.
fn bucket(nanos: u64) -> usize {
    if nanos < PARTS {
        return nanos as usize;
    }
    let log = nanos.ilog2();
    let bucket = u64::from(log - 2) * PARTS + ((nanos >> (log - 3)) & (PARTS - 1));
    (bucket as usize).min(BUCKETS - 1)
}

/// The first time above a bucket, in nanoseconds.
fn end(bucket: usize) -> u64 {
    let next = bucket as u64 + 1;
    if next < PARTS { next } else { (PARTS + next % PARTS) << (next / PARTS - 1) }
}

/// Counts calls of each kind by their time. Threads that count at the same time should have one each.
#[derive(Debug)]
pub struct Latencies(Box<[Histogram]>);

#[derive(Debug)]
struct Histogram {
    buckets: Box<[AtomicU64]>,
    nanos: AtomicU64,
    longest: AtomicU64,
    pages: AtomicU64,
}

impl Default for Latencies {
    fn default() -> Latencies {
        let histogram = |_| Histogram {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            nanos: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            pages: AtomicU64::new(0),
        };
        Latencies(Call::ALL.iter().map(histogram).collect())
    }
}

impl Latencies {
    /// Counts a call, which read as many pages from files.
    pub fn add(&self, call: Call, took: Duration, pages: u64) {
        let at = Call::ALL.iter().position(|&one| one == call).expect("it is one of all");
        let histogram = &self.0[at];
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // ORDERING: sums that no other data depends on.
        histogram.buckets[bucket(nanos)].fetch_add(1, Relaxed);
        histogram.nanos.fetch_add(nanos, Relaxed);
        histogram.longest.fetch_max(nanos, Relaxed);
        histogram.pages.fetch_add(pages, Relaxed);
    }

    /// The sums of several: of each kind of call that was made, in the order of [`Call::ALL`].
    pub fn sum<'l>(all: impl Iterator<Item = &'l Latencies>) -> Vec<Latency> {
        let mut sums: Vec<Latency> = Call::ALL.into_iter().map(Latency::new).collect();
        for each in all {
            for (sum, histogram) in sums.iter_mut().zip(&each.0) {
                for (to, from) in sum.buckets.iter_mut().zip(&histogram.buckets) {
                    *to += from.load(Relaxed);
                }
                sum.took += Duration::from_nanos(histogram.nanos.load(Relaxed));
                sum.longest = sum.longest.max(Duration::from_nanos(histogram.longest.load(Relaxed)));
                sum.pages += histogram.pages.load(Relaxed);
            }
        }
        sums.retain(|sum| sum.count() > 0);
        sums
    }
}

/// How long calls of a kind took since the store was opened, those that failed included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latency {
    call: Call,
    took: Duration,
    longest: Duration,
    pages: u64,
    buckets: Vec<u64>,
}

impl Latency {
    fn new(call: Call) -> Latency {
        Latency { call, took: Duration::ZERO, longest: Duration::ZERO, pages: 0, buckets: vec![0; BUCKETS] }
    }

    /// The kind of call.
    pub fn call(&self) -> Call {
        self.call
    }

    /// Number of calls.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The sum of their times.
    pub fn took(&self) -> Duration {
        self.took
    }

    /// The longest time.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// Pages of tables and REMIXes, of 4 KiB, that they did not find in the cache and so read from files. Large values
    /// that are read from logs are not in it ([`Metrics::value_reads`](crate::Metrics::value_reads)).
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// The read amplification: these pages for each call; 0 if there was none.
    pub fn pages_per_call(&self) -> f64 {
        let count = self.count();
        if count == 0 { 0.0 } else { self.pages as f64 / count as f64 }
    }

    /// The time within which this share of the calls was done, from 0 to 1: 0.5 for the median. At most 12.5 % above
    /// the exact one, and never above the longest.
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = (share.clamp(0.0, 1.0) * self.count() as f64).ceil().max(1.0) as u64;
        self.within(|seen| seen >= wanted).unwrap_or_default()
    }

    /// Number of calls that were done within a time, up to the width of a bucket.
    pub fn count_within(&self, time: Duration) -> u64 {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let buckets = self.buckets.iter().enumerate().take_while(|(at, _)| end(*at) <= nanos);
        buckets.map(|(_, count)| count).sum()
    }

    /// The end of the first bucket at which the calls so far are enough.
    fn within(&self, is_enough: impl Fn(u64) -> bool) -> Option<Duration> {
        let mut seen = 0;
        let at = self.buckets.iter().position(|count| {
            seen += count;
            is_enough(seen)
        })?;
        Some(Duration::from_nanos(end(at)).min(self.longest))
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, most, nearly_all] = [0.5, 0.99, 0.999].map(|share| self.quantile(share));
        let (call, count, longest) = (self.call, self.count(), self.longest);
        write!(f, "{call}: {count} calls, half within {half:.1?}, ")?;
        write!(f, "99 % within {most:.1?}, 99.9 % within {nearly_all:.1?}, the longest {longest:.1?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_are_narrow() {
        let mut begin = 0;
        for at in 0..BUCKETS - 1 {
            assert_eq!((bucket(begin), bucket(end(at) - 1)), (at, at));
            assert!(begin < PARTS || (end(at) - begin) * 8 <= begin, "bucket {at} is wide");
            begin = end(at);
        }
        assert_eq!((bucket(begin), bucket(u64::MAX)), (BUCKETS - 1, BUCKETS - 1));
    }

    #[test]
    fn quantiles_are_near() {
        let (one, other) = (Latencies::default(), Latencies::default());
        for nanos in 1..=100_000 {
            let to = if nanos % 2 == 0 { &one } else { &other };
            to.add(Call::Get, Duration::from_nanos(nanos), nanos % 4);
        }
        other.add(Call::Sync, Duration::from_secs(7200), 0);
        let sums = Latencies::sum([&one, &other].into_iter());
        let [get, sync] = &sums[..] else { panic!("{sums:?}") };
        assert_eq!((get.call(), get.count(), sync.count()), (Call::Get, 100_000, 1));
        for share in [0.001, 0.5, 0.9, 0.999] {
            let (exact, found) = (share * 100_000.0, get.quantile(share).as_nanos() as f64);
            assert!(found >= exact && found <= exact * 1.125 + 1.0, "{share}: {found}");
        }
        assert_eq!((get.quantile(1.0), get.longest()), (get.longest(), Duration::from_nanos(100_000)));
        assert_eq!(get.took(), Duration::from_nanos(5_000_050_000));
        assert_eq!(sync.quantile(0.5), Duration::from_secs(7200).min(Duration::from_nanos(end(BUCKETS - 1))));
        assert_eq!(
            (get.count_within(Duration::ZERO), get.count_within(Duration::from_secs(1))),
            (0, 100_000)
        );
        assert_eq!((get.pages(), get.pages_per_call(), sync.pages()), (150_000, 1.5, 0));
        let half = get.count_within(Duration::from_nanos(50_000));
        assert!((43_000..=50_000).contains(&half), "{half}");
        assert!(get.to_string().starts_with("get: 100000 calls, half within "), "{get}");
    }
}
