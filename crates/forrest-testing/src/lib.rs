//! How much the tests enumerate: the only place that reads the size.
//!
//! Every test asserts the same in both sizes. The quick size, which `cargo test` and `cargo xtask test` run, enumerates
//! less: fewer seeds, workloads, sequences, kills. The full size is what CI runs (`cargo xtask test --full`). The
//! variable `FORREST_TESTS` chooses: `quick` or `full`. Where a test has a variable of its own for a number, that
//! number counts.

#![forbid(unsafe_code)]

use std::str::FromStr;
use std::sync::LazyLock;

/// The variable that chooses the size.
pub const VARIABLE: &str = "FORREST_TESTS";

/// Whether tests run in full size.
static IS_FULL: LazyLock<bool> = LazyLock::new(|| match std::env::var(VARIABLE).as_deref() {
    Err(_) | Ok("" | "quick") => false,
    Ok("full") => true,
    Ok(other) => panic!("{VARIABLE} is {other:?}, expected quick or full"),
});

/// The first in the quick size, the second in the full size.
///
/// # Panics
/// If the variable names no size.
pub fn sized<T>(quick: T, full: T) -> T {
    if *IS_FULL { full } else { quick }
}

/// The number that a variable of the environment has, if it is set.
///
/// # Panics
/// If the variable is no number.
pub fn number<T: FromStr>(variable: &str) -> Option<T> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}, expected a number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_both_is_chosen() {
        assert_eq!(sized(1, 2), if std::env::var(VARIABLE).is_ok_and(|size| size == "full") { 2 } else { 1 });
        assert_eq!(number::<u64>("FORREST_NO_SUCH_VARIABLE"), None);
    }
}
