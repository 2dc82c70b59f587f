//! [`Locks`]: which transaction has locked which key. One table for each open store, shared by all its handles.
//!
//! A lock has one owner, and a queue of those that wait for it, first come, first served. The owner passes it to the
//! first in the queue when it ends, so nobody is overtaken. The table says for what each owner waits, so a wait that
//! would close a circle fails at once: each edge leads from an owner to the owner of the lock for which it waits, an
//! owner waits for one lock at a time, and a lock changes hands only to an owner that then waits for nothing. So a
//! circle can only come about where a wait begins. All other waits have a limit in time. The table has a limit in
//! bytes.
//!
//! One mutex guards the table. It is held for a few map operations, and never while a thread waits.

use forrest_engine::{Error, ErrorKind, Result};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of bytes of all locks of a store, and of those that wait for one.
pub(crate) const LOCKS_BYTES_MAX: usize = 64 << 20;
/// Bytes of a lock or of a wait in addition to its key, about.
const LOCK_BYTES: usize = 256;

/// The number of a transaction. No two of a process have the same.
type Owner = u64;

/// The number of the last transaction that may lock.
static OWNERS: AtomicU64 = AtomicU64::new(0);

/// Why there is no lock.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Waiting would never end: the owner of the lock waits for this one.
    Deadlock,
    Error(Error),
}

/// The locks of a store.
pub(crate) struct Locks {
    table: Mutex<Table>,
    bytes_max: usize,
    /// The process that made it. In a child of `fork` another thread may hold the mutex for ever.
    process: u32,
}

#[derive(Default)]
struct Table {
    held: HashMap<Arc<[u8]>, Lock>,
    /// The lock for which an owner waits.
    waits: HashMap<Owner, Arc<[u8]>>,
    bytes: usize,
}

struct Lock {
    owner: Owner,
    queue: VecDeque<(Owner, Arc<Condvar>)>,
}

impl Default for Locks {
    fn default() -> Locks {
        Locks::with_limit(LOCKS_BYTES_MAX)
    }
}

impl Locks {
    fn with_limit(bytes_max: usize) -> Locks {
        Locks { table: Mutex::default(), bytes_max, process: process::id() }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of transactions that wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.table().waits.len()
    }

    fn reserve(&self, table: &mut Table, key: &[u8]) -> Result<()> {
        let bytes = table.bytes + key.len() + LOCK_BYTES;
        if bytes > self.bytes_max {
            return Err(Error::limit("locks of all transactions", "bytes", bytes, self.bytes_max));
        }
        table.bytes = bytes;
        Ok(())
    }

    /// Takes a lock, after a wait of at most `wait`. Does nothing if `owner` has it. Who does not wait is in no circle.
    fn take(&self, owner: Owner, key: &Arc<[u8]>, wait: Duration) -> Result<(), Refused> {
        let mut table = self.table();
        let Some(lock) = table.held.get(key) else {
            self.reserve(&mut table, key).map_err(Refused::Error)?;
            table.held.insert(key.clone(), Lock { owner, queue: VecDeque::new() });
            return Ok(());
        };
        let mut last = lock.owner;
        if last == owner {
            return Ok(());
        }
        while !wait.is_zero()
            && let Some(next) = table.waits.get(&last)
        {
            last = table.held[next].owner;
            if last == owner {
                return Err(Refused::Deadlock);
            }
        }
        self.reserve(&mut table, key).map_err(Refused::Error)?;
        let given = Arc::new(Condvar::new());
        table.held.get_mut(key).expect("it is held").queue.push_back((owner, given.clone()));
        table.waits.insert(owner, key.clone());
        let begin = Instant::now();
        loop {
            if table.held[key].owner == owner {
                return Ok(());
            }
            let left = wait.saturating_sub(begin.elapsed());
            if left.is_zero() {
                break;
            }
            table = given.wait_timeout(table, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        table.waits.remove(&owner);
        table.bytes -= key.len() + LOCK_BYTES;
        let lock = table.held.get_mut(key).expect("it is held");
        lock.queue.retain(|(waiting, _)| *waiting != owner);
        let what = format!(
            "another transaction has held a lock for longer than the {wait:?} that this one waits, with {} in the queue \
             before; run the transaction again, or wait longer (Transaction::set_lock_wait)",
            lock.queue.len(),
        );
        Err(Refused::Error(Error::new(ErrorKind::Busy, what)))
    }

    /// Gives up the locks that `owner` has.
    fn release<'k>(&self, owner: Owner, keys: impl Iterator<Item = &'k Arc<[u8]>>) {
        let mut table = self.table();
        let table = &mut *table;
        for key in keys {
            let Some(lock) = table.held.get_mut(key).filter(|lock| lock.owner == owner) else { continue };
            table.bytes -= key.len() + LOCK_BYTES;
            match lock.queue.pop_front() {
                // Its wait becomes the lock, with the same bytes.
                Some((next, given)) => {
                    lock.owner = next;
                    table.waits.remove(&next);
                    given.notify_one();
                }
                None => drop(table.held.remove(key)),
            }
        }
    }
}

/// The locks of a transaction. Dropping it releases them.
pub(crate) struct Held {
    locks: Arc<Locks>,
    owner: Owner,
    keys: BTreeSet<Arc<[u8]>>,
}

impl Held {
    pub(crate) fn new(locks: Arc<Locks>) -> Held {
        // ORDERING: each number is used once, and no other data depends on it.
        Held { locks, owner: OWNERS.fetch_add(1, Relaxed), keys: BTreeSet::new() }
    }

    /// The lock of a key of a keyspace. No keyspace has a name of 64 KiB.
    pub(crate) fn name(keyspace: &str, key: &[u8]) -> Arc<[u8]> {
        [&(keyspace.len() as u16).to_be_bytes()[..], keyspace.as_bytes(), key].concat().into()
    }

    pub(crate) fn has(&self, lock: &Arc<[u8]>) -> bool {
        self.keys.contains(lock)
    }

    /// Takes a lock that it does not have.
    pub(crate) fn take(&mut self, lock: Arc<[u8]>, wait: Duration) -> Result<(), Refused> {
        if self.locks.process != process::id() {
            let what = "this store was opened before the process was forked from another; open a store in this process";
            return Err(Refused::Error(Error::invalid(what)));
        }
        self.locks.take(self.owner, &lock, wait)?;
        self.keys.insert(lock);
        Ok(())
    }
}

impl Held {
    /// Releases all locks.
    pub(crate) fn release(&mut self) {
        let keys = std::mem::take(&mut self.keys);
        if !keys.is_empty() && self.locks.process == process::id() {
            self.locks.release(self.owner, keys.iter());
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    const LONG: Duration = Duration::from_secs(3600);

    fn key(text: &str) -> Arc<[u8]> {
        text.as_bytes().into()
    }

    /// Waits until `owner` waits for a lock.
    fn until_it_waits(locks: &Locks, owner: Owner) {
        while !locks.table().waits.contains_key(&owner) {
            thread::yield_now();
        }
    }

    fn is_clean(locks: &Locks) -> bool {
        let table = locks.table();
        table.held.is_empty() && table.waits.is_empty() && table.bytes == 0
    }

    #[test]
    fn locks_are_passed_on_in_the_order_of_the_queue() {
        let locks = Locks::default();
        let (sender, order) = mpsc::channel();
        locks.take(0, &key("a"), LONG).unwrap();
        locks.take(0, &key("a"), Duration::ZERO).unwrap();
        thread::scope(|scope| {
            for owner in 1..5 {
                let (locks, sender) = (&locks, sender.clone());
                scope.spawn(move || {
                    locks.take(owner, &key("a"), LONG).unwrap();
                    sender.send(owner).unwrap();
                    locks.release(owner, [key("a")].iter());
                });
                until_it_waits(locks, owner);
            }
            locks.release(0, [key("a")].iter());
        });
        drop(sender);
        assert_eq!(order.iter().collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert!(is_clean(&locks));
    }

    #[test]
    fn a_wait_that_closes_a_circle_fails_at_once() {
        let locks = Locks::default();
        let names = ["a", "b", "c"].map(key);
        for (owner, name) in (0..).zip(&names) {
            locks.take(owner, name, LONG).unwrap();
        }
        thread::scope(|scope| {
            for owner in 0..2 {
                let (locks, names) = (&locks, &names);
                scope.spawn(move || {
                    let [own, next] = [owner, owner + 1].map(|at| names[at as usize].clone());
                    locks.take(owner, &next, LONG).unwrap();
                    locks.release(owner, [own, next].iter());
                });
                until_it_waits(locks, owner);
            }
            // Without a wait there is no circle.
            let refused = locks.take(2, &names[0], Duration::ZERO);
            assert!(matches!(refused, Err(Refused::Error(error)) if error.kind() == ErrorKind::Busy));
            assert!(matches!(locks.take(2, &names[0], LONG), Err(Refused::Deadlock)));
            // It has not waited, so it still has its lock, and can go on.
            locks.take(2, &key("d"), LONG).unwrap();
            locks.release(2, [names[2].clone(), key("d")].iter());
        });
        assert!(is_clean(&locks));
    }

    #[test]
    fn a_wait_ends_at_its_limit() {
        let locks = Locks::default();
        locks.take(1, &key("a"), LONG).unwrap();
        for wait in [Duration::ZERO, Duration::from_millis(2)] {
            let Err(Refused::Error(error)) = locks.take(2, &key("a"), wait) else { panic!("it is held") };
            assert_eq!(error.kind(), ErrorKind::Busy);
            assert!(error.to_string().contains(&format!("longer than the {wait:?}")), "{error}");
            assert!(error.to_string().contains("0 in the queue before"), "{error}");
        }
        // Not its owner's.
        locks.release(2, [key("a")].iter());
        locks.take(2, &key("a"), Duration::ZERO).expect_err("its owner still has it");
        locks.release(1, [key("a")].iter());
        assert!(is_clean(&locks));
    }

    #[test]
    fn the_table_has_a_limit() {
        let locks = Locks::with_limit(2 * (LOCK_BYTES + 1));
        locks.take(1, &key("a"), LONG).unwrap();
        locks.take(2, &key("b"), LONG).unwrap();
        for full in ["c", "a"] {
            let Err(Refused::Error(error)) = locks.take(2, &key(full), LONG) else { panic!("it is full") };
            assert_eq!(error.kind(), ErrorKind::Limit);
            assert!(
                error.to_string().contains("locks of all transactions of 771 bytes; at most 514"),
                "{error}"
            );
        }
        locks.release(1, [key("a")].iter());
        locks.take(2, &key("c"), LONG).unwrap();
        locks.release(2, [key("b"), key("c")].iter());
        assert!(is_clean(&locks));
    }
}
