//! Atomics, from `std` in what ships and from `loom` in the models, so that both run the same protocol code.

#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::atomic::{AtomicU32, Ordering, fence};

#[cfg(feature = "loom")]
pub(crate) use loom::sync::atomic::{AtomicU32, Ordering, fence};

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
