//! What each run writes: names and values that follow from run, thread and sequence number.
//!
//! | key | value |
//! |---|---|
//! | `pair RUN/THREAD/PAIR` | bytes that follow from the three numbers |
//! | `count RUN/THREAD` | how many pairs the thread wrote, counted in steps of [`PERIOD`], in one batch with a pair |
//! | `run RUN` | how many threads the run has; written first |
//! | `done RUN` | threads and pairs of each; written last |
//! | `first` | the oldest run that was not removed |
//!
//! Of each eight pairs of a thread the second is deleted after the fourth was written.

use crate::args::Mark;
use forrest_base::random::{Random, mix_all};
use std::ops::Range;

/// Pairs from one that is counted to the next.
pub(super) const PERIOD: u32 = 8;
/// The key that says which run is the oldest.
pub(super) const FIRST: &str = "first";
/// Which pair of a period is deleted again, and how many pairs later.
const DELETED: u32 = 1;
const DELETED_AFTER: u32 = 2;

impl Mark {
    pub(super) fn name(self) -> String {
        format!("pair {self}")
    }

    pub(super) fn count_name(self) -> String {
        format!("count {:06}/{:03}", self.run, self.thread)
    }

    /// Replaces the content of `out` by the pair's value. Some are long enough to be kept apart by a store.
    pub(super) fn value(self, out: &mut Vec<u8>) {
        let mut random = Random(mix_all(&[self.run.into(), self.thread.into(), self.pair.into()]));
        let most = if random.below(50) == 0 { 6000 } else { 200 };
        let length = random.below(most) as usize;
        out.clear();
        random.append(length, out);
    }

    /// True if the thread's count is raised with it.
    pub(super) fn is_counted(self) -> bool {
        self.pair % PERIOD == PERIOD - 1
    }

    /// The pair that is deleted after this one was written.
    pub(super) fn removes(self) -> Option<Mark> {
        (self.pair % PERIOD == DELETED + DELETED_AFTER)
            .then(|| Mark { pair: self.pair - DELETED_AFTER, ..self })
    }

    /// True if the pair must be there, when `last` is the last that its thread wrote; `None` if it may be.
    pub(super) fn is_there(self, last: u32) -> Option<bool> {
        match self.pair % PERIOD == DELETED && self.pair + DELETED_AFTER <= last {
            false => Some(true),
            // The last change that arrived is the pair, or the deletion that goes with it.
            true if self.pair + DELETED_AFTER == last => None,
            true => Some(false),
        }
    }
}

pub(super) fn run_name(run: u32) -> String {
    format!("run {run:06}")
}

pub(super) fn done_name(run: u32) -> String {
    format!("done {run:06}")
}

/// Ranges of keys that hold all of a run.
pub(super) fn ranges(run: u32) -> Vec<Range<String>> {
    let single = |name: String| name.clone()..format!("{name}\0");
    // 0 follows / among bytes.
    let below = |kind: &str| format!("{kind} {run:06}/")..format!("{kind} {run:06}0");
    vec![below("pair"), below("count"), single(run_name(run)), single(done_name(run))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_as_they_are_shown() {
        let mark = Mark { run: 12, thread: 3, pair: 456 };
        assert_eq!(mark.to_string(), "000012/003/0000000456");
        assert_eq!(mark.to_string().parse(), Ok(mark));
        for wrong in ["", "1/2", "1/2/3/4", "1/2/x", "1/-2/3", "1/2/3/"] {
            assert!(wrong.parse::<Mark>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_second_of_eight_goes_with_the_fourth() {
        let mark = |pair| Mark { run: 1, thread: 0, pair };
        assert_eq!(mark(11).removes(), Some(mark(9)));
        assert_eq!((mark(10).removes(), mark(9).removes()), (None, None));
        assert_eq!([10, 11, 12].map(|last| mark(9).is_there(last)), [Some(true), None, Some(false)]);
        assert_eq!(mark(8).is_there(100), Some(true));
        assert!(mark(7).is_counted() && !mark(8).is_counted());
    }

    #[test]
    fn ranges_hold_one_run() {
        let holds = |key: &str| ranges(7).iter().any(|range| range.contains(&key.to_owned()));
        for key in ["pair 000007/000/0000000000", "count 000007/999", "run 000007", "done 000007"] {
            assert!(holds(key), "{key}");
        }
        for key in ["pair 000006/999/9999999999", "pair 000008/000/0000000000", "run 000008", FIRST] {
            assert!(!holds(key), "{key}");
        }
    }
}
