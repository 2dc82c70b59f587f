//! Timing: the cost of reading the clock, and histograms of latencies.

use hdrhistogram::Histogram;
use std::time::Instant;

/// Longest time that a histogram distinguishes, in nanoseconds.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// A histogram of times in nanoseconds, in three digits.
pub(crate) fn latencies_ns() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("the bounds are in order")
}

/// The time between two consecutive readings of the clock: the median of 10,001, in nanoseconds.
pub(crate) fn clock_ns() -> u64 {
    let mut pairs: Vec<u64> = (0..10_001)
        .map(|_| {
            let start = Instant::now();
            (Instant::now() - start).as_nanos() as u64
        })
        .collect();
    pairs.sort_unstable();
    pairs[pairs.len() / 2]
}
