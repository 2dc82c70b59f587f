//! [`Current`]: a value that many threads read and that is now and then replaced as a whole.
//!
//! - Each thread has its own place (see [`stripe`](super::stripe)) with its own reference count. A reader
//!   takes a reference there and gives it back. Readers wait for nobody and share no memory that they write
//!   to.
//! - A reader keeps the value as it was for as long as it likes. Nobody waits for that, and the old value is
//!   dropped at once with its last reference.
//! - A replacement takes one place after the other. Until it returns, some threads read the old value and
//!   some the new one; the caller ensures that both mean the same until then. Every read that begins after it
//!   has returned finds the new value.
//!
//! It uses only locks that are held for a few instructions, so that nothing has to be proved. An earlier
//! version used hazard pointers, shared by all such values of the process. It returned the value of another
//! place when memory was reused at the wrong moment: docs/decisions/0003, "A pointer to what is current".

use super::stripe::Stripes;
use super::sync::{Mutex, lock};
use std::ops::Deref;
use std::sync::Arc;

/// See the module's head.
pub(crate) struct Current<T>(Stripes<Mutex<Arc<Share<T>>>>);

/// The value as one place has it. References taken there are counted here, apart from those of other places.
struct Share<T>(Arc<T>);

/// A value that was current when it was read.
pub(crate) struct Reading<T>(Arc<Share<T>>);

impl<T> Deref for Reading<T> {
    type Target = Arc<T>;

    #[inline]
    fn deref(&self) -> &Arc<T> {
        &self.0.0
    }
}

impl<T> Current<T> {
    pub(crate) fn new(value: &Arc<T>) -> Current<T> {
        Current(Stripes::new(|| Mutex::new(Arc::new(Share(value.clone())))))
    }

    #[inline]
    pub(crate) fn read(&self) -> Reading<T> {
        Reading(lock(self.0.mine()).clone())
    }

    /// Replaces the value. Two concurrent calls would leave some places with one value and some with the
    /// other.
    pub(crate) fn replace(&self, value: &Arc<T>) {
        for place in self.0.iter() {
            let new = Arc::new(Share(value.clone()));
            let old = std::mem::replace(&mut *lock(place), new);
            // Outside of the lock: dropping the last reference takes time.
            drop(old);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
    use std::thread;

    /// A value that reports its drop.
    struct Told<'t> {
        of: usize,
        value: u64,
        left: &'t AtomicU64,
    }

    impl Drop for Told<'_> {
        fn drop(&mut self) {
            self.left.fetch_sub(1, Relaxed);
        }
    }

    #[test]
    fn a_value_goes_with_the_last_who_reads_it() {
        let left = AtomicU64::new(3);
        let told = |value| Arc::new(Told { of: 0, value, left: &left });
        let current = Current::new(&told(1));
        let (first, again) = (current.read(), Arc::clone(&current.read()));
        current.replace(&told(2));
        assert_eq!((first.value, again.value, current.read().value), (1, 1, 2));
        drop(first);
        assert_eq!(left.load(Relaxed), 3);
        drop(again);
        assert_eq!(left.load(Relaxed), 2);
        current.replace(&told(3));
        assert_eq!(left.load(Relaxed), 1);
        drop(current);
        assert_eq!(left.load(Relaxed), 0);
    }

    /// The memory of dropped values is reused at once, also for values of the other place. A read that begins
    /// after a replacement finds no older value.
    #[test]
    fn each_place_gives_its_own_and_never_goes_back() {
        let left = AtomicU64::new(2);
        let told = |of, value| Arc::new(Told { of, value, left: &left });
        let places = [0, 1].map(|of| Current::new(&told(of, 0)));
        let (replaced, over) = ([0, 1].map(|_| AtomicU64::new(0)), AtomicBool::new(false));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !over.load(Relaxed) {
                        for (of, place) in places.iter().enumerate() {
                            let least = replaced[of].load(SeqCst);
                            let reading = place.read();
                            assert_eq!(reading.of, of);
                            assert!(reading.value >= least, "{} after {least}", reading.value);
                        }
                    }
                });
            }
            for value in 1..2_000 {
                for (of, place) in places.iter().enumerate() {
                    left.fetch_add(1, Relaxed);
                    place.replace(&told(of, value));
                    replaced[of].store(value, SeqCst);
                }
            }
            over.store(true, Relaxed);
        });
        assert_eq!(left.load(Relaxed), 2);
        drop(places);
        assert_eq!(left.load(Relaxed), 0);
    }
}
