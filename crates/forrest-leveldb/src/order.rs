//! [`Order`]: whether the comparator of a store orders its keys as their bytes do.
//!
//! INVARIANT: for any two neighbours in the store, the comparator says what the bytes say. A comparator is transitive,
//! so then it orders all keys of the store by their bytes. Deletes keep this. A change compares each of its keys with
//! its neighbours first, while no other change can come between. A read compares its key as well, because the
//! comparator could take it for equal to another one, or place it elsewhere.
//!
//! Without a comparator nothing of this is done.

use crate::failure::Failure;
use crate::objects::Comparator;
use forrest::{Cursor, View};
use forrest_base::lock;
use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::sync::{Arc, Mutex, MutexGuard};

/// The name of the order of bytes, in LevelDB and here.
pub(crate) const BYTEWISE: &str = "leveldb.BytewiseComparator";

/// The order of a store's keys.
pub(crate) struct Order {
    comparator: Option<Arc<Comparator>>,
    /// Held while a change is checked and made.
    changing: Mutex<()>,
}

impl Order {
    /// The order of a comparator, or that of bytes.
    pub(crate) fn new(comparator: Option<Arc<Comparator>>) -> Order {
        Order { comparator, changing: Mutex::new(()) }
    }

    /// Waits until no other change is being checked; `None` if none needs to be.
    pub(crate) fn changes(&self) -> Option<MutexGuard<'_, ()>> {
        self.comparator.as_ref()?;
        Some(lock(&self.changing))
    }

    /// Checks a key that is looked for or changed in a view.
    pub(crate) fn check(&self, view: &View, key: &[u8]) -> Result<(), Failure> {
        self.check_all(view, &mut [key])
    }

    /// Checks keys that are changed together: against the view, and each other. Sorts them.
    pub(crate) fn check_all(&self, view: &View, keys: &mut [&[u8]]) -> Result<(), Failure> {
        let Some(comparator) = &self.comparator else { return Ok(()) };
        keys.sort_unstable();
        let mut cursor = view.cursor().keys_only();
        let mut last: Option<&[u8]> = None;
        for &key in keys.iter().filter(|key| key.len() <= forrest::MAX_KEY_BYTES) {
            match last {
                Some(last) if last == key => continue,
                Some(last) => agree(comparator, last, key)?,
                None => {}
            }
            neighbours(comparator, &mut cursor, key)?;
            last = Some(key);
        }
        Ok(())
    }
}

/// Compares a key with itself, and with its neighbours.
fn neighbours(comparator: &Comparator, cursor: &mut Cursor, key: &[u8]) -> Result<(), Failure> {
    if comparator.compare(key, key)? != Equal {
        return Err(disagreement(comparator, key, key, Equal));
    }
    let is_before = if cursor.seek(key)? {
        match cursor.key() {
            Some(found) if found == key => return Ok(()),
            Some(found) => agree(comparator, key, found)?,
            None => {}
        }
        cursor.prev()?
    } else {
        cursor.last()?
    };
    match cursor.key().filter(|_| is_before) {
        // A key that was set after the seek may be between; the next one then compares with it.
        Some(before) if before < key => agree(comparator, before, key),
        _ => Ok(()),
    }
}

/// Demands that the comparator says that `a` is less than `b`, which their bytes say.
fn agree(comparator: &Comparator, a: &[u8], b: &[u8]) -> Result<(), Failure> {
    if comparator.compare(a, b)? == Less && comparator.compare(b, a)? == Greater {
        return Ok(());
    }
    Err(disagreement(comparator, a, b, Less))
}

fn disagreement(comparator: &Comparator, a: &[u8], b: &[u8], bytes_say: Ordering) -> Failure {
    let (a, b) = (a.escape_ascii(), b.escape_ascii());
    let relation = if bytes_say == Equal { "equal to" } else { "less than" };
    let name = comparator.name().unwrap_or_default();
    Failure::invalid(format_args!(
        "by its bytes the key \"{a}\" is {relation} \"{b}\", but the comparator \"{name}\" says otherwise; Forrest \
         orders keys by their bytes and takes only comparators that do so for the keys in use"
    ))
}
