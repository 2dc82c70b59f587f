//! The time of each operation by itself.
//!
//! Closed: the clock is read before and after each operation. What is done between two stretches of operations, such as
//! giving up a guard and taking the next one, is part of the operation after it. A stall is then the time of one
//! operation, however many would have come meanwhile. Open: operations are due at a fixed rate, and one that begins
//! late because others took long has waited since it was due (Tene: "How not to measure latency", 2013).
//!
//! Reading the clock is part of each time; what that is, the subject that does nothing shows.

use crate::workload::Op;
use hdrhistogram::Histogram;
use std::time::Instant;

/// Longest time that the histogram records, in nanoseconds; longer ones count as this.
const LONGEST_NS: u64 = 600_000_000_000;
/// Significant digits of a recorded time.
const DIGITS: u8 = 3;
/// Quantiles, as figures are named.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)];

/// No times yet.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(LONGEST_NS, DIGITS).expect("the digits and the most are within what it takes")
}

/// The figures of these times: half, 99 % and 99.9 % of the operations took no longer, and the longest.
pub(crate) fn quantiles(name: &str, each: &Histogram<u64>) -> [(String, f64); 4] {
    QUANTILES.map(|(part, quantile)| (format!("{name}_{part}_ns"), each.value_at_quantile(quantile) as f64))
}

/// Hooks around each operation of a loop.
pub(crate) trait Pace {
    /// Before a stretch of operations, and what it needs.
    #[inline]
    fn stretch(&mut self) {}

    /// Before it begins.
    #[inline]
    fn before(&mut self) {}

    /// After it was done.
    #[inline]
    fn after(&mut self, _: Op) {}
}

/// Nothing: one operation after the other.
pub(crate) struct Unpaced;

impl Pace for Unpaced {}

/// Nanoseconds since the first call.
pub(crate) fn now() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Times each operation by a clock that returns nanoseconds since some moment.
pub(crate) struct Stopwatch<N = fn() -> u64> {
    now: N,
    /// Between one operation and the next; `None` if each follows on the one before it.
    every_ns: Option<f64>,
    /// When the first was due, and operations done since.
    began: u64,
    done: u64,
    /// What the running one is counted from, and when the last one had ended.
    from: u64,
    ended: u64,
    /// Whether the next operation is counted from the end of the last one, in a closed loop.
    goes_on: bool,
    each: [Histogram<u64>; Op::SORTS.len()],
}

impl<N: Fn() -> u64> Stopwatch<N> {
    /// A closed loop, or an open one at `rate` operations per second.
    pub(crate) fn new(now: N, rate: Option<u64>) -> Self {
        let every_ns = rate.map(|rate| 1e9 / rate as f64);
        let each = std::array::from_fn(|_| histogram());
        Stopwatch { now, every_ns, began: 0, done: 0, from: 0, ended: 0, goes_on: false, each }
    }

    /// The figures under a name: of each sort of operation that there was, if there are several by its own name; and
    /// what was reached of the rate.
    pub(crate) fn figures(&self, name: &str, several: bool) -> Vec<(String, f64)> {
        let open = if self.every_ns.is_some() { "_open" } else { "" };
        let mut figures = Vec::new();
        for (sort, each) in Op::SORTS.iter().zip(&self.each).filter(|(_, each)| !each.is_empty()) {
            let sort = if several { format!("_{sort}") } else { String::new() };
            figures.extend(quantiles(&format!("{name}{sort}{open}"), each));
        }
        if let Some(every) = self.every_ns.filter(|_| self.done > 0) {
            // Until the next would have been due, if the last was done by then.
            let ns = ((self.ended - self.began) as f64).max(self.done as f64 * every);
            figures.push((format!("{name}_open_ops_per_s"), self.done as f64 * 1e9 / ns));
        }
        figures
    }
}

impl<N: Fn() -> u64> Pace for Stopwatch<N> {
    #[inline]
    fn stretch(&mut self) {
        if self.done == 0 {
            self.ended = (self.now)();
        }
        self.goes_on = true;
    }

    #[inline]
    fn before(&mut self) {
        let mut now = (self.now)();
        if self.done == 0 {
            self.began = now;
        }
        self.from = match self.every_ns {
            None if std::mem::take(&mut self.goes_on) => self.ended,
            None => now,
            Some(every) => {
                let due = self.began + (self.done as f64 * every) as u64;
                while now < due {
                    std::hint::spin_loop();
                    now = (self.now)();
                }
                due
            }
        };
    }

    #[inline]
    fn after(&mut self, op: Op) {
        self.ended = (self.now)();
        self.done += 1;
        self.each[op.sort()].saturating_record(self.ended - self.from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A guard that takes long was in no time.
    #[test]
    fn what_is_between_two_stretches_is_counted() {
        let clock = Cell::new(0);
        let mut each = Stopwatch::new(|| clock.get(), None);
        let pass = |ns| clock.set(clock.get() + ns);
        for _ in 0..2 {
            each.stretch();
            pass(500);
            for _ in 0..3 {
                each.before();
                pass(10);
                each.after(Op::Get);
            }
            pass(7);
        }
        let times: Vec<_> =
            each.each[Op::Get.sort()].iter_recorded().map(|at| at.value_iterated_to()).collect();
        assert_eq!(times, [10, 510, 517]);
    }

    #[test]
    fn sorts_are_told_apart_where_there_are_several() {
        let mut each = Stopwatch::new(|| 7, None);
        for op in [Op::Get, Op::Modify, Op::Get] {
            each.before();
            each.after(op);
        }
        let names: Vec<_> = each.figures("ycsb_f", true).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), 8);
        assert!(names[0] == "ycsb_f_read_p50_ns" && names[7] == "ycsb_f_modify_max_ns", "{names:?}");
        assert!(Stopwatch::new(|| 7, Some(1)).figures("x", true).is_empty());
    }
}
