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

/// A place that a run of the models can weaken, to show that a model then fails. `weakened!("name")` says whether the
/// variable FORREST_WEAKENED names this place; `weakened!("name", Release)` is that ordering, or `Relaxed` if it does.
/// Outside of the models the first is the constant `false`, and the second the ordering itself.
#[cfg(feature = "loom")]
macro_rules! weakened {
    ($name:literal) => {{
        static IS_WEAKENED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        *IS_WEAKENED.get_or_init(|| std::env::var_os("FORREST_WEAKENED").is_some_and(|name| name == $name))
    }};
    ($name:literal, $strong:ident) => {
        if weakened!($name) { Ordering::Relaxed } else { Ordering::$strong }
    };
}
#[cfg(not(feature = "loom"))]
macro_rules! weakened {
    ($name:literal) => {
        false
    };
    ($name:literal, $strong:ident) => {
        Ordering::$strong
    };
}
pub(crate) use weakened;

/// As `forrest_base::lock`, in the models.
#[cfg(feature = "loom")]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
    mutex.lock().expect("a model that failed goes no further")
}
