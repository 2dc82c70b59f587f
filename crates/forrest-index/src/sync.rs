//! Atomics and barriers, from `std` in what ships and from `loom` in the models, so that both run the same
//! protocol code.

#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

#[cfg(feature = "loom")]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

pub(crate) use forrest_base::weakened;

/// The cheap half of an asymmetric fence: a store before it and a load after it are not seen in the other
/// order by a thread that calls [`heavy`] in between.
#[inline(always)]
pub(crate) fn light() {
    #[cfg(not(feature = "loom"))]
    forrest_machine::barrier::light();
    #[cfg(feature = "loom")]
    if !weakened!("light") {
        model::fence();
    }
}

/// The expensive half of an asymmetric fence, see [`light`].
pub(crate) fn heavy() {
    #[cfg(not(feature = "loom"))]
    forrest_machine::barrier::heavy();
    #[cfg(feature = "loom")]
    model::fence();
}

/// Fences between which loom lets other threads go on.
#[cfg(feature = "loom")]
pub(crate) mod model {
    use super::{AtomicU64, Ordering};

    loom::lazy_static! {
        /// A fence alone is no step to loom: it is done at once with the step before. So each is one together
        /// with a change of this place, in which fences have an order, and both orders of two are tried.
        static ref FENCES: AtomicU64 = AtomicU64::new(0);
    }

    /// To be called once before threads are started, so that making the place orders nothing else.
    #[cfg(test)]
    pub(crate) fn init() {
        FENCES.load(Ordering::Relaxed);
    }

    pub(super) fn fence() {
        FENCES.fetch_add(1, Ordering::Relaxed);
        loom::sync::atomic::fence(Ordering::SeqCst);
    }
}

/// Waits a moment for another thread, longer the more often it was called.
pub(crate) fn relax(turn: &mut u32) {
    *turn += 1;
    #[cfg(feature = "loom")]
    loom::thread::yield_now();
    #[cfg(not(feature = "loom"))]
    if *turn < 64 {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}
