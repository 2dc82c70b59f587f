//! Taking turns: an arm that is one of several waits where it may be the others' turn, until the run's process tells it
//! to go on.

use forrest_base::lock;
use std::sync::{Condvar, Mutex, PoisonError};

/// Turns that it was given and has not taken.
static GIVEN: Mutex<u64> = Mutex::new(0);
static MORE: Condvar = Condvar::new();

/// Gives this process so many turns.
pub(crate) fn give(turns: u64) {
    *lock(&GIVEN) += turns;
    MORE.notify_all();
}

/// Waits for a turn, and takes it.
pub(crate) fn take() {
    let given = lock(&GIVEN);
    let mut given = MORE.wait_while(given, |given| *given == 0).unwrap_or_else(PoisonError::into_inner);
    *given -= 1;
}
