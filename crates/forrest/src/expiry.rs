//! Values of the memory home that expire: their times in order, and the thread that removes them.
//!
//! What has expired is never returned, whether it is still there or not: readers look at the time of each value that
//! they find. [`Expiries`] only serves to give memory back. It has an entry for each value that expires, so that the
//! thread finds those that are due without a search. A writer notes its change after it is visible. So two writers of
//! one key may note their changes in the other order, and entries are numbers that are added: in the end each is right.
//! Until then the thread may meet an entry whose value has another time, and leaves the value. What a writer notes
//! later than it was due is removed in the next round.

use forrest_base::lock;
use forrest_engine::{Error, ErrorKind, Result};
use forrest_machine::origin::Origin;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The time between two rounds of the thread.
const ROUND: Duration = Duration::from_secs(1);

/// When a key's value expires, in milliseconds since 1970; 0 if it has none that does.
type Ms = u64;

/// The change of a key's expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Moved {
    pub(crate) from: Ms,
    pub(crate) to: Ms,
}

/// Memory that an entry takes beside its key, about: a place in a node that is half full or more, the nodes above, and
/// the overhead of the key's allocation.
const ENTRY_BYTES: usize = 96;

#[derive(Default)]
struct Entries {
    /// Numbers that add up to 1 for each time and key that is there.
    numbers: BTreeMap<(Ms, Box<[u8]>), i64>,
    /// The length of all keys.
    key_bytes: usize,
}

/// The times of the values of a keyspace that expire.
#[derive(Default)]
pub(crate) struct Expiries(Mutex<Entries>);

impl Expiries {
    /// Notes a change, which all can see.
    pub(crate) fn note(&self, key: &[u8], moved: Moved) {
        if moved.from == moved.to {
            return;
        }
        let mut all = lock(&self.0);
        for (ms, added) in [(moved.from, -1), (moved.to, 1)] {
            if ms == 0 {
                continue;
            }
            let entry = (ms, key.into());
            let number = all.numbers.get(&entry).copied().unwrap_or(0) + added;
            if number == 0 {
                all.numbers.remove(&entry);
                all.key_bytes -= key.len();
            } else if all.numbers.insert(entry, number).is_none() {
                all.key_bytes += key.len();
            }
        }
    }

    /// Takes out entries that are due, the first ones, `most` at the most.
    pub(crate) fn take_due(&self, now_ms: u64, most: usize) -> Vec<(Ms, Box<[u8]>)> {
        let mut all = lock(&self.0);
        let mut due = Vec::new();
        while due.len() < most
            && let Some(first) = all.numbers.first_entry()
            && first.key().0 <= now_ms
        {
            let (entry, _) = first.remove_entry();
            all.key_bytes -= entry.1.len();
            due.push(entry);
        }
        due
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        lock(&self.0).numbers.len()
    }

    /// The memory that they take, about.
    pub(crate) fn bytes(&self) -> usize {
        let all = lock(&self.0);
        all.numbers.len() * ENTRY_BYTES + all.key_bytes
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        std::mem::take(&mut *lock(&self.0));
    }
}

/// A thread that removes what has expired, once in each round. It ends when this is dropped.
pub(crate) struct Remover {
    thread: Option<JoinHandle<()>>,
    bell: Arc<Bell>,
    origin: Origin,
}

#[derive(Default)]
struct Bell {
    is_over: Mutex<bool>,
    rung: Condvar,
}

impl Remover {
    /// Starts the thread. In each round it calls `remove` with the store, until that returns false. Between two calls
    /// it does not hold the store. `remove` ends soon after what it is given returns false: the thread is then the only
    /// one that still holds the store.
    ///
    /// # Errors
    /// `Io` if the system starts no thread.
    pub(crate) fn start<S: Send + Sync + 'static>(
        store: Weak<S>,
        remove: fn(&S, &dyn Fn() -> bool) -> bool,
    ) -> Result<Remover> {
        let bell = Arc::new(Bell::default());
        let run = {
            let bell = bell.clone();
            move || {
                let mut time = ROUND;
                while !bell.is_over_after(time) {
                    let Some(store) = store.upgrade() else { return };
                    let is_wanted = || Arc::strong_count(&store) > 1;
                    time = if remove(&store, &is_wanted) { Duration::ZERO } else { ROUND };
                }
            }
        };
        let thread = thread::Builder::new().name("forrest-expiry".to_owned()).spawn(run);
        let thread = thread.map_err(|error| {
            Error::new(ErrorKind::Io, format!("starting a thread that removes expired values: {error}"))
        })?;
        Ok(Remover { thread: Some(thread), bell, origin: Origin::here() })
    }
}

impl Bell {
    /// Waits for a time, or for the end; true if that has come.
    fn is_over_after(&self, time: Duration) -> bool {
        let is_over = lock(&self.is_over);
        let waited = self.rung.wait_timeout_while(is_over, time, |is_over| !*is_over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        let thread = self.thread.take().expect("it is taken here alone");
        if !self.origin.is_here() {
            // A child of `fork` does not have the thread.
            std::mem::forget(thread);
            return;
        }
        *lock(&self.bell.is_over) = true;
        self.bell.rung.notify_all();
        // The thread itself may drop the last handle of the store.
        if thread.thread().id() != thread::current().id() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_noted_in_any_order() {
        // One key is set until 5, to stay, and until 5 again.
        let changes = [Moved { from: 0, to: 5 }, Moved { from: 5, to: 0 }, Moved { from: 0, to: 5 }];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let all = Expiries::default();
            for at in order {
                all.note(b"k", changes[at]);
            }
            assert_eq!((all.len(), all.take_due(4, 9)), (1, vec![]), "{order:?}");
            assert_eq!(all.take_due(5, 9), [(5, b"k"[..].into())], "{order:?}");
            assert_eq!((all.len(), all.bytes()), (0, 0), "{order:?}");
        }
    }

    #[test]
    fn the_first_ones_come_first() {
        let all = Expiries::default();
        for (key, to) in [(b"a", 9), (b"b", 3), (b"c", 3), (b"d", 7)] {
            all.note(key, Moved { from: 0, to });
        }
        assert_eq!(all.bytes(), 4 * (ENTRY_BYTES + 1));
        let keys = |due: Vec<(Ms, Box<[u8]>)>| due.iter().map(|(_, key)| key[0]).collect::<Vec<_>>();
        assert_eq!(keys(all.take_due(8, 2)), b"bc");
        assert_eq!(keys(all.take_due(8, 2)), b"d");
        assert_eq!(all.bytes(), ENTRY_BYTES + 1);
        all.clear();
        assert_eq!(all.len(), 0);
    }
}
