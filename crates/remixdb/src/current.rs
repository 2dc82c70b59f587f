//! [`Current`]: a value that many read and that is replaced now and then, as a whole.
//!
//! - Each thread has a place of its own (see [`stripe`](super::stripe)) with a count of references of its own. Who
//!   reads takes a reference there, and gives it back: readers wait for nobody, and do not meet.
//! - Who reads keeps the value as it was for as long as it likes. Nobody waits for that, and the old value is dropped
//!   with the last reference to it, at once.
//! - Replacing takes one place after the other. Until it returns, some read the old value and some the new one: the
//!   caller sees to it that they mean the same until then. Once it has returned, whoever begins to read finds the new
//!   one.
//!
//! It is built of locks that are held for a few instructions, and of nothing that would have to be proved. One that was
//! built of hazard pointers, shared by all such values of the process, stood here before, and gave the value of another
//! place when memory was used again at the wrong moment: docs/decisions/0003, "A pointer to what is current".

use super::stripe::Stripes;
use super::sync::{Mutex, lock};
use std::ops::Deref;
use std::sync::Arc;

/// See the module's head.
pub(crate) struct Current<T>(Stripes<Mutex<Arc<Share<T>>>>);

/// The value as one place has it. The references taken there are counted here, and not where all others count as well.
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

    /// Replaces the value. Two that do so at once would leave some with the one and some with the other.
    pub(crate) fn replace(&self, value: &Arc<T>) {
        for place in self.0.iter() {
            let new = Arc::new(Share(value.clone()));
            let old = std::mem::replace(&mut *lock(place), new);
            // Outside of the lock: what goes with the last of them takes time.
            drop(old);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
    use std::thread;

    /// A value that tells when it goes.
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

    /// Memory of values that went is used for others at once, also for those of the other place; and whoever begins to
    /// read when a value was replaced finds no older one.
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
