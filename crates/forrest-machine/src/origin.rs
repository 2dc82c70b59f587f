//! [`Origin`]: the process that an object belongs to.
//!
//! A child made by `fork` has a copy of the memory, but none of the other threads. Locks that they held stay locked in
//! the child, and the child shares open files and file locks with its parent. So the child must neither use nor free an
//! object that has threads, locks or files. The C library calls a function in each child, which counts forks. Forks by
//! a direct `clone` are not counted.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of forks between the process that first called [`Origin::here`] and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);
static WATCHED: Once = Once::new();

/// A process, as it was at one moment: a child of it is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin(u64);

impl Origin {
    /// This process.
    pub fn here() -> Origin {
        WATCHED.call_once(|| {
            // SAFETY: `forked` only does an atomic addition, which is allowed in the child of a threaded process. It is
            // valid as long as it is registered, because unloading its library unregisters it. If the registration
            // fails, which is only for lack of memory, forks go undetected.
            unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        });
        Origin(FORKS.load(Ordering::Relaxed))
    }

    /// True in the process that the origin was made in.
    #[inline]
    pub fn is_here(self) -> bool {
        // ORDERING: the count changes only right after a fork, when the process has one thread.
        self.0 == FORKS.load(Ordering::Relaxed)
    }
}

/// Has the C library call a function in each later child made by `fork`, in the thread that forked, before `fork`
/// returns there.
///
/// # Safety
/// The function does only what is allowed in the child of a threaded process: it waits for no lock that another thread
/// may have held. It does not unwind.
pub unsafe fn in_each_child(call: extern "C" fn()) {
    // SAFETY: the function is allowed in the child, as this function requires, and valid as in `Origin::here`.
    // If the registration fails, which is only for lack of memory, the function is not called.
    unsafe { libc::pthread_atfork(None, None, Some(call)) };
}

/// A number of the calling thread, never 0. No two living threads have the same, and a thread that forks keeps its own
/// in the child.
#[inline]
pub fn thread_number() -> u64 {
    // SAFETY: `pthread_self` needs nothing, and always succeeds.
    unsafe { libc::pthread_self() as usize as u64 }
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
