//! Atomics, from `std` in releases and from `loom` in the models, so that both run the same protocol code.

#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::atomic::{AtomicU32, Ordering, fence};

#[cfg(feature = "loom")]
pub(crate) use loom::sync::atomic::{AtomicU32, Ordering, fence};

pub(crate) use forrest_base::weakened;
