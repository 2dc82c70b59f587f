//! Atomics and locks, from `std` in what ships and from `loom` in the models, so that both run the same protocol code.

#[cfg(not(feature = "loom"))]
pub(crate) use forrest_base::lock;
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::{Condvar, Mutex};

#[cfg(feature = "loom")]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
#[cfg(feature = "loom")]
pub(crate) use loom::sync::{Condvar, Mutex};

pub(crate) use forrest_base::weakened;
use std::sync::atomic::{AtomicU64 as Sum, Ordering::Relaxed};

/// Adds to a sum that one thread at a time changes, and on which no other data depends: a load and a store, which take
/// less time than an addition that others may interrupt.
#[inline]
pub(crate) fn add_alone(sum: &Sum, more: u64) {
    // ORDERING: it stands for itself.
    sum.store(sum.load(Relaxed) + more, Relaxed);
}

/// Waits for a moment: at first without giving the processor away. `turn` begins with 0.
#[cfg(not(feature = "loom"))]
pub(crate) fn relax(turn: &mut u32) {
    *turn = turn.saturating_add(1);
    if *turn < 100 { std::hint::spin_loop() } else { std::thread::yield_now() }
}

/// As above, in the models.
#[cfg(feature = "loom")]
pub(crate) fn relax(_: &mut u32) {
    loom::thread::yield_now();
}

/// As `forrest_base::lock`, in the models.
#[cfg(feature = "loom")]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
    mutex.lock().expect("a model that failed goes no further")
}
