//! Atomics and locks, from `std` in what ships and from `loom` in the models, so that both run the same protocol code.

#[cfg(not(feature = "loom"))]
pub(crate) use forrest_base::lock;
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::{Condvar, Mutex};

#[cfg(feature = "loom")]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(feature = "loom")]
pub(crate) use loom::sync::{Condvar, Mutex};

pub(crate) use forrest_base::weakened;

/// As `forrest_base::lock`, in the models.
#[cfg(feature = "loom")]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
    mutex.lock().expect("a model that failed goes no further")
}
