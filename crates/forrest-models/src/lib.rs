//! The harness of the loom models: how many orders a model tries, and memory whose unordered accesses it reports.
//!
//! Used by the modules `models` of several crates. It is empty without the feature `on`.
#![cfg(feature = "on")]
#![deny(unsafe_code)]

use loom::cell::UnsafeCell;

/// Checks the body under every interleaving, or under every one with at most `preemptions` preemptions.
/// `LOOM_MAX_PREEMPTIONS` overrides the bound.
pub fn model(preemptions: Option<usize>, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(preemptions);
    builder.check(body);
}

/// Memory that a protocol guards. A model fails if two accesses, one of them a write, are not ordered.
#[derive(Debug)]
pub struct Guarded(UnsafeCell<u64>);

#[expect(unsafe_code, reason = "threads share it, and loom reports what they must not do")]
// SAFETY: loom stops the model at the first access that is not ordered with another.
unsafe impl Sync for Guarded {}

#[expect(unsafe_code, reason = "loom's cell holds a pointer")]
// SAFETY: it owns a number, which belongs to no thread.
unsafe impl Send for Guarded {}

#[expect(unsafe_code, reason = "loom's cell lends pointers")]
impl Guarded {
    /// Holds a number.
    pub fn new(value: u64) -> Guarded {
        Guarded(UnsafeCell::new(value))
    }

    /// Reads it.
    pub fn read(&self) -> u64 {
        // SAFETY: the pointer is that of the cell, and loom stops the model if another thread writes meanwhile.
        self.0.with(|value| unsafe { *value })
    }

    /// Writes it.
    pub fn write(&self, new: u64) {
        // SAFETY: the pointer is that of the cell, and loom stops the model if another thread uses it meanwhile.
        self.0.with_mut(|value| unsafe { *value = new });
    }

    /// Adds to it.
    pub fn add(&self, more: u64) {
        // SAFETY: as in `write`.
        self.0.with_mut(|value| unsafe { *value += more });
    }
}
