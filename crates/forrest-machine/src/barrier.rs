//! A store-load barrier of two unequal halves: [`light`] for the frequent side, [`heavy`] for the rare one.
//!
//! In some protocols two threads each write one place and then read the other's, and at least one of them must see the
//! other's write. (A reader announces itself and then reads; a reclaimer unlinks and then looks for announced readers.)
//! That takes a full fence on both sides, about twenty nanoseconds in every operation of the reader. On Linux the
//! `membarrier` system call moves the whole cost to the rare side: it makes every running thread of the process run a
//! full fence.
//!
//! # Guarantees
//!
//! Let thread R run `write X; light(); read Y` and thread W run `write Y; heavy(); read X`, all accesses
//! atomic, relaxed being enough. Then R reads W's Y, or W reads R's X, or both. As if both had run
//! `fence(SeqCst)`; in particular, everything that R did before its `light` is visible to W after its
//! `heavy`, or everything that W did before its `heavy` is visible to R after its `light`.
//!
//! Two `heavy` pair as two full fences do. **Two `light` do not pair with each other**, nor does `light`
//! pair with a `fence(SeqCst)`: that is the price of its being free.
//!
//! Where `membarrier` is missing (other systems, old kernels, some sandboxes) both halves are
//! `fence(SeqCst)`: slower, never wrong. No set-up is needed for correctness: until the process is
//! registered, `light` is a full fence. Call [`init`] early to have the fast form from the start.
//!
//! ```
//! use forrest_machine::barrier;
//! use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
//!
//! static READING: AtomicBool = AtomicBool::new(false);
//! static CLOSING: AtomicBool = AtomicBool::new(false);
//!
//! fn enter() -> bool {
//!     READING.store(true, Relaxed);
//!     barrier::light();
//!     !CLOSING.load(Relaxed)
//! }
//!
//! fn close() -> bool {
//!     CLOSING.store(true, Relaxed);
//!     barrier::heavy();
//!     !READING.load(Relaxed)
//! }
//!
//! // However the two interleave, never are both true.
//! let closer = std::thread::spawn(close);
//! let entered = enter();
//! assert!(!(closer.join().unwrap() && entered));
//! ```

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

/// How the two halves are made in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// `light` is a compiler fence, `heavy` the system call `membarrier` (private, expedited).
    Asymmetric,
    /// Both are `fence(SeqCst)`.
    Symmetric,
}

/// Whether the process is registered with `membarrier`. Goes from false to true at most once.
static ASYMMETRIC: AtomicBool = AtomicBool::new(false);
static MODE: OnceLock<Mode> = OnceLock::new();

/// Registers the process with `membarrier` if the system has it, and returns the resulting mode.
///
/// The first call costs a system call, later ones a load. Any number of threads may call it.
pub fn init() -> Mode {
    *MODE.get_or_init(|| {
        if sys::register() {
            // ORDERING: set only after the registration. A thread that still reads false runs the stronger
            // form, so relaxed is enough; and `heavy` never relies on the flag, but on MODE.
            ASYMMETRIC.store(true, Ordering::Relaxed);
            Mode::Asymmetric
        } else {
            Mode::Symmetric
        }
    })
}

/// The frequent side's half: free where [`init`] found `membarrier`, else a full fence.
///
/// With `membarrier` it costs a load of a shared byte that never changes after the start and a predicted branch.
#[inline(always)]
pub fn light() {
    // ORDERING: see `init`. A thread that reads true may rely on the registration, which the kernel completed
    // before the store. A thread that reads false runs a full fence, which pairs with `heavy` too.
    if ASYMMETRIC.load(Ordering::Relaxed) {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// The rare side's half: a full fence on every running thread of the process.
///
/// Costs a microsecond to some tens of microseconds, growing with the processors that run this process.
pub fn heavy() {
    fence(Ordering::SeqCst);
    if init() == Mode::Asymmetric {
        sys::interrupt_all();
        fence(Ordering::SeqCst);
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
mod sys {
    use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

    pub(super) fn register() -> bool {
        membarrier_query().contains_command(MembarrierCommand::PrivateExpedited)
            && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
            // Tried once before anybody relies on it: a sandbox may allow the one and refuse the other.
            && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
    }

    pub(super) fn interrupt_all() {
        // The kernel documents no failure for a registered process. Were there one, readers that passed
        // `light` would be unordered and memory in use could be reused, so there is no going on.
        membarrier(MembarrierCommand::PrivateExpedited).expect("membarrier of a registered process");
    }
}

#[cfg(any(not(target_os = "linux"), miri))]
mod sys {
    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn interrupt_all() {
        unreachable!("only a registered process gets here");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn init_always_gives_the_same_answer() {
        let first = init();
        assert_eq!(first, init());
        assert_eq!(first == Mode::Asymmetric, ASYMMETRIC.load(Ordering::Relaxed));
        if cfg!(not(target_os = "linux")) {
            assert_eq!(first, Mode::Symmetric);
        }
    }

    /// The store-buffering litmus test: the pair forbids that both threads read zero.
    #[test]
    fn one_of_two_sides_sees_the_other() {
        const ROUNDS: u32 = 2_000;
        let (x, y) = (AtomicU32::new(0), AtomicU32::new(0));
        let (start, end) = (Barrier::new(2), Barrier::new(2));
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut seen = Vec::new();
                for round in 1..=ROUNDS {
                    start.wait();
                    x.store(round, Ordering::Relaxed);
                    light();
                    seen.push(y.load(Ordering::Relaxed));
                    end.wait();
                }
                seen
            });
            let mut seen = Vec::new();
            for round in 1..=ROUNDS {
                start.wait();
                y.store(round, Ordering::Relaxed);
                heavy();
                seen.push(x.load(Ordering::Relaxed));
                end.wait();
            }
            let reader = reader.join().expect("the reader does not panic");
            for (round, (by_writer, by_reader)) in (1..=ROUNDS).zip(seen.into_iter().zip(reader)) {
                assert!(by_writer == round || by_reader == round, "both sides missed round {round}");
            }
        });
    }
}
