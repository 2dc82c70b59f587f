//! Time: the cost of reading the clock, histograms of latencies, and dates.

use hdrhistogram::Histogram;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longest time that a histogram distinguishes, in nanoseconds.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

const DAY: u64 = 24 * 3600;

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

/// A time as `2026-11-27T09:00:00Z`, by the calendar that has no exceptions (Hinnant, "chrono-compatible low-level date
/// algorithms").
pub(crate) fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, rest) = (seconds / DAY + 719_468, seconds % DAY);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let part = (5 * of_year + 2) / 153;
    let day = of_year - (153 * part + 2) / 5 + 1;
    let month = if part < 10 { part + 3 } else { part - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A time to live as arguments have it, in the largest unit that it is a multiple of.
pub(crate) fn ttl(time: Duration) -> String {
    let ms = time.as_millis();
    let units = [("d", 24 * 3_600_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
    let unit = units.into_iter().find(|&(_, unit)| ms > 0 && ms.is_multiple_of(unit));
    let (name, unit) = unit.unwrap_or(("ms", 1));
    format!("{}{name}", ms / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, shown) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_735_689_600, "2025-01-01T00:00:00Z"),
        ] {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), shown);
        }
    }

    #[test]
    fn times_to_live_are_short() {
        for (ms, shown) in [
            (0, "0ms"),
            (1, "1ms"),
            (1_500, "1500ms"),
            (90_000, "90s"),
            (3_600_000, "1h"),
            (172_800_000, "2d"),
        ] {
            assert_eq!(ttl(Duration::from_millis(ms)), shown);
        }
    }
}
