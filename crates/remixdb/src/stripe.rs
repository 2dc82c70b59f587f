//! [`Stripes`]: data of which each thread has its own copy, on its own cache line, so that threads do not
//! contend for it.
//!
//! There are 64. Threads get them in turn; with more than 64 threads, some share one.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const COUNT: usize = 64;

/// Two lines, because processors prefetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Line<T>(T);

/// One for each thread, or for a few.
pub(crate) struct Stripes<T>(Box<[Line<T>]>);

/// The stripe number of the calling thread.
fn number() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static MINE: Cell<usize> = const { Cell::new(usize::MAX) });
    MINE.with(|mine| {
        if mine.get() == usize::MAX {
            // ORDERING: each number is used once, and no other data depends on it.
            mine.set(THREADS.fetch_add(1, Relaxed) % COUNT);
        }
        mine.get()
    })
}

impl<T> Stripes<T> {
    /// All of them, made one after the other.
    pub(crate) fn new(mut each: impl FnMut() -> T) -> Stripes<T> {
        Stripes((0..COUNT).map(|_| Line(each())).collect())
    }

    /// That of the calling thread.
    #[inline]
    pub(crate) fn mine(&self) -> &T {
        &self.0[number()].0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|line| &line.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    #[test]
    fn each_thread_has_its_own() {
        let stripes = Stripes::new(|| Mutex::new(BTreeSet::new()));
        let run = |thread: usize| {
            (0..3).for_each(|_| {
                stripes.mine().lock().unwrap().insert(thread);
            });
        };
        // Other tests take numbers meanwhile, but these are in turn.
        std::thread::scope(|scope| (0..4).for_each(|thread| drop(scope.spawn(move || run(thread)))));
        let sets: Vec<_> = stripes.iter().map(|set| set.lock().unwrap().clone()).collect();
        assert_eq!(sets.len(), COUNT);
        assert_eq!(sets.iter().map(BTreeSet::len).sum::<usize>(), 4, "none has two");
    }
}
