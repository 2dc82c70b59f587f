//! Turns: if a run has several arms, an arm waits between steps until the run's process gives it a turn.

use forrest_base::lock;
use std::sync::{Condvar, Mutex, PoisonError};

/// Turns given to this process and not yet taken.
static GIVEN: Mutex<u64> = Mutex::new(0);
static MORE: Condvar = Condvar::new();

/// Gives this process `turns` more turns.
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
