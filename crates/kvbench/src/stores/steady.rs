//! When a store is warm: the rate of its operations has become steady, or the time for that is over.
//!
//! Operations are counted in windows, one after the other. The rate is **steady** when the mean of the last [`HALF`]
//! windows differs from that of the [`HALF`] before by at most [`CHANGE_MAX`]. Means of several windows, because work
//! in the background makes single ones differ; and one stretch against that before it, because a rate that still rises
//! slowly is not steady, although windows beside each other are nearly the same.

use super::store::Answer;
use crate::job::Figures;
use std::time::Duration;

/// Windows of a whole warm-up.
pub(crate) const WINDOWS: u32 = 36;
/// Windows of each of the two stretches that are compared, so that a third of a warm-up is done in any case.
const HALF: usize = 6;
/// The most by which their means differ in a steady rate.
const CHANGE_MAX: f64 = 0.05;

/// How a warm-up ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Warmed {
    /// How long it was.
    pub(crate) took: Duration,
    /// The last change of the rate: 0.1 is a tenth more or less. `None` if there were too few windows.
    pub(crate) change: Option<f64>,
}

/// By how much the rate of the last windows differs from that of the ones before; `None` if they are too few, or if
/// nothing was done before.
fn change(rates: &[f64]) -> Option<f64> {
    let last = rates.len().checked_sub(HALF)?;
    let before = last.checked_sub(HALF)?;
    let sum = |rates: &[f64]| rates.iter().sum::<f64>();
    let (now, before) = (sum(&rates[last..]), sum(&rates[before..last]));
    (before > 0.0).then(|| (now / before - 1.0).abs())
}

/// Does windows until the rate is steady, at most [`WINDOWS`], and none after the time `bound` by the clock `now`. A
/// window does some of the work and returns the number of operations.
pub(crate) fn warm_up(
    bound: Duration,
    now: impl Fn() -> Duration,
    mut window: impl FnMut() -> Answer<u64>,
) -> Answer<Warmed> {
    let (start, mut rates) = (now(), Vec::new());
    let mut at = start;
    while rates.len() < WINDOWS as usize
        && at - start < bound
        && change(&rates).is_none_or(|change| change > CHANGE_MAX)
    {
        let ops = window()?;
        let end = now();
        rates.push(ops as f64 / (end - at).as_secs_f64().max(1e-9));
        at = end;
    }
    Ok(Warmed { took: at - start, change: change(&rates) })
}

impl Warmed {
    /// Notes how a step was warmed up.
    pub(crate) fn note(&self, step: &str, figures: &mut Figures) {
        figures.set(&format!("{step}_warm_up_s"), self.took.as_secs_f64());
        if let Some(change) = self.change {
            figures.set(&format!("{step}_warm_up_change_percent"), 100.0 * change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const SECOND: Duration = Duration::from_secs(1);

    /// The windows that are done with these rates, each a second long by a clock of their own, and how that ends.
    fn warmed(bound: Duration, mut rate: impl FnMut(u64) -> u64) -> (u64, Warmed) {
        let seconds = Cell::new(0);
        let window = || {
            let ops = rate(seconds.get());
            seconds.set(seconds.get() + 1);
            Ok(ops)
        };
        let ended = warm_up(bound, || SECOND * seconds.get() as u32, window).unwrap();
        assert_eq!(ended.took, SECOND * seconds.get() as u32);
        (seconds.get(), ended)
    }

    #[test]
    fn a_steady_rate_ends_it_and_one_that_still_changes_does_not() {
        let long = SECOND * 100;
        let windows = |rate: &dyn Fn(u64) -> u64| warmed(long, rate).0;
        assert_eq!(warmed(long, |_| 1000), (12, Warmed { took: SECOND * 12, change: Some(0.0) }));
        // Until the ninth window a cache fills, and it is seen when that is long enough ago.
        assert_eq!(windows(&|at| 100 * (at + 1).min(9)), 19);
        // A store that takes writes and compacts in turn is steady, although no two windows are alike.
        assert_eq!(windows(&|at| if at % 2 == 0 { 500 } else { 1500 }), 12);
        assert_eq!(windows(&|at| [900, 300, 1500][at as usize % 3]), 12);
        // Two hundredths more from window to window: of stretches, an eighth.
        let (all, ended) = warmed(long, |at| (1000.0 * 1.02f64.powi(at as i32)) as u64);
        assert_eq!(all, u64::from(WINDOWS));
        assert!(ended.change.is_some_and(|change| (0.12..0.13).contains(&change)), "{ended:?}");
        // It may fall as well.
        assert_eq!(windows(&|at| 10_000 - 250 * at), u64::from(WINDOWS));
    }

    #[test]
    fn the_bound_ends_it_too() {
        assert_eq!(warmed(SECOND * 7, |_| 1000), (7, Warmed { took: SECOND * 7, change: None }));
        assert_eq!(warmed(SECOND * 15, |at| 1000 << at).0, 15);
        assert_eq!(warmed(Duration::ZERO, |_| 1000), (0, Warmed { took: Duration::ZERO, change: None }));
        // Nothing that is done is no rate.
        assert_eq!(warmed(SECOND * 20, |_| 0), (20, Warmed { took: SECOND * 20, change: None }));
    }

    #[test]
    fn what_a_warm_up_was_is_recorded() {
        let mut figures = Figures::default();
        Warmed { took: SECOND * 3, change: Some(0.25) }.note("get", &mut figures);
        Warmed { took: SECOND, change: None }.note("mix", &mut figures);
        let noted: Vec<_> = figures.values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let expected = [("get_warm_up_change_percent", 25.0), ("get_warm_up_s", 3.0), ("mix_warm_up_s", 1.0)];
        assert_eq!(noted, expected);
        let names = noted.iter().map(|(name, _)| *name).chain(["get_warm_up_written_bytes"]);
        assert!(names.into_iter().all(|name| crate::explain::explain(name).is_some()));
    }

    #[test]
    fn a_window_that_fails_ends_it_with_its_error() {
        let failed = warm_up(SECOND, || Duration::ZERO, || Err("no answer".into()));
        assert_eq!(failed.unwrap_err().to_string(), "no answer");
    }
}
