//! Atomics and locks, from `std` in what ships and from `loom` in the models, so that both run the same protocol code.

#[cfg(not(loom))]
pub(crate) use forrest_base::lock;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex};

/// As `forrest_base::lock`, in the models.
#[cfg(loom)]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
    mutex.lock().expect("a model that failed goes no further")
}
