//! [`Origin`]: the process that something belongs to.
//!
//! A child made by `fork` has a copy of the memory, but none of the other threads; what they had locked stays locked in
//! it, and open files and their locks are those of its parent. So what has threads, locks or files of its own must not
//! be used there, nor be given back. Forks are counted by a function that the C library calls in each child; those that
//! are made past it (by `clone` itself) are not seen.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many forks there are between the process that first asked and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);
static WATCHED: Once = Once::new();

/// A process, as it was at one moment: a child of it is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin(u64);

impl Origin {
    /// This process.
    pub fn here() -> Origin {
        WATCHED.call_once(|| {
            // SAFETY: the function only adds to a number, which may be done in a child of several threads. It stays for
            // as long as this code does: the system forgets it with the library that it is in. It fails for want of
            // memory only, and then forks are not seen.
            unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        });
        Origin(FORKS.load(Ordering::Relaxed))
    }

    /// Whether it is this process.
    #[inline]
    pub fn is_here(self) -> bool {
        // ORDERING: it changes only where there is one thread.
        self.0 == FORKS.load(Ordering::Relaxed)
    }
}

extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_another_process() {
        let origin = Origin::here();
        assert!(origin.is_here() && origin == Origin::here());
        // SAFETY: the child does nothing but compare numbers, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let is_right = !origin.is_here() && Origin::here().is_here();
            // SAFETY: it ends the process, and nothing else.
            unsafe { libc::_exit(if is_right { 0 } else { 1 }) };
        }
        let mut status = 1;
        // SAFETY: the status is a place for a number.
        let waited = unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!((waited, status), (child, 0));
        assert!(origin.is_here());
    }
}
