//! One thread against several: in rounds, each number of threads once a round, in an order that is reversed from one
//! round to the next. So the figure is no longer that of the first threads on a machine that was idle.
//!
//! A first round is not counted: it warms the caches of the CPUs that the threads run on. Figures are medians of the
//! rounds. Threads without work in common cannot be faster together than as many times the speed of one; a scaling
//! beyond that is reported as a measurement error and proves nothing.

use crate::job::Done;
use crate::measure::{Clock, Timed};
use crate::statistics::median;

/// Rounds that count.
pub(crate) const ROUNDS: u64 = 5;
/// Operations of a thread in a round, at least, if there are as many probes: some milliseconds.
const ROUND_OPS_MIN: u64 = 50_000;
/// What a scaling may be above the number of threads by noise.
const NOISE: f64 = 1.05;
/// If others had the CPUs for more than this share of the median round, in percent, the rates prove nothing.
pub(crate) const DISTURBED_PERCENT_MAX: f64 = 5.0;

/// Operations of a thread in a round, if all together look up `probes` keys, and a thread `keys` at most.
pub(crate) fn ops(probes: u64, threads: usize, keys: u64) -> u64 {
    let least = ROUND_OPS_MIN.min(probes);
    probes.div_ceil(threads as u64 * ROUNDS).max(least).clamp(1, keys.max(1))
}

/// Whether several threads can be as many times as fast as one.
pub(crate) fn is_possible(times: f64, threads: u16) -> bool {
    times <= f64::from(threads) * NOISE
}

/// What a number of threads did, round by round.
pub(crate) struct Rounds {
    /// How many threads.
    pub(crate) count: usize,
    /// The rounds that count.
    pub(crate) timed: Vec<Timed>,
}

impl Rounds {
    /// Million operations a second: the median.
    pub(crate) fn mops(&self) -> f64 {
        median(&self.timed.iter().map(|timed| 1e3 / timed.ns(Clock::Wall)).collect::<Vec<_>>())
    }

    /// The share of the time in which others had the CPUs, in percent: the median.
    pub(crate) fn disturbed_percent(&self) -> Option<f64> {
        let shares: Vec<_> = self.timed.iter().filter_map(Timed::disturbed_percent).collect();
        (!shares.is_empty()).then(|| median(&shares))
    }
}

/// Calls `work` with the number of the round, from 0, and the number of threads: 1 and `threads` in each.
pub(crate) fn rounds(threads: usize, mut work: impl FnMut(u64, usize) -> Done<Timed>) -> Done<[Rounds; 2]> {
    let mut done = [1, threads].map(|count| Rounds { count, timed: Vec::new() });
    for round in 0..=ROUNDS {
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for at in order {
            let timed = work(round, done[at].count)?;
            if round > 0 {
                done[at].timed.push(timed);
            }
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_first_round_does_not_count_and_the_order_alternates() {
        let mut calls = Vec::new();
        // The first thread that runs is slow, as on a machine that was idle; a round is disturbed.
        let [one, two] = rounds(2, |round, count| {
            calls.push((round, count));
            let ms = match (round, count) {
                (0, 1) => 400,
                (3, _) => 90,
                (_, 1) => 20,
                _ => 10,
            };
            let (time, spent) = (Duration::from_millis(ms), Duration::from_millis(ms * count as u64));
            let cpu = if round == 3 { spent / 4 } else { spent };
            Ok(Timed { time, cpu, spent, ops: 20_000, ..Timed::default() })
        })
        .unwrap_or_else(|_| panic!("no round fails"));
        assert_eq!(calls[..6], [(0, 1), (0, 2), (1, 2), (1, 1), (2, 1), (2, 2)]);
        assert_eq!((calls.len() as u64, one.timed.len() as u64), (2 * (ROUNDS + 1), ROUNDS));
        assert_eq!((one.mops(), two.mops()), (1.0, 2.0));
        assert_eq!((one.disturbed_percent(), two.disturbed_percent()), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn more_than_the_threads_can_do_is_an_error() {
        assert!(is_possible(1.7, 2) && is_possible(2.03, 2) && is_possible(7.9, 8));
        assert!(!is_possible(2.5, 2) && !is_possible(15.0, 2) && !is_possible(f64::INFINITY, 8));
    }

    #[test]
    fn a_round_has_work_for_some_milliseconds() {
        assert_eq!(ops(10_000_000, 2, 5_000_000), 1_000_000);
        assert_eq!((ops(200_000, 2, 100_000), ops(4000, 2, 2000), ops(1, 2, 0)), (50_000, 2000, 1));
    }
}
