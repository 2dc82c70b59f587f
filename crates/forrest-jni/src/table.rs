//! Handles: numbers that Java holds in place of the library's objects, which every call looks up in a [`Table`]. So the
//! library detects a handle that was closed, was never given out, or is of another kind, without touching an object.
//! No number is used twice.
//!
//! A call holds the lock of its object, shared or exclusively; closing waits for the calls that use it. A thread looks
//! up in one of several shards of a table, by the number of the handle.

use crate::failure::Failure;
use forrest_base::lock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// Number of shards of a table.
const SHARDS: usize = 16;

/// The next handle of any table. Zero is none.
static NEXT: AtomicI64 = AtomicI64::new(1);

type Shard<T> = RwLock<HashMap<i64, Arc<Held<T>>>>;

/// All handles of one kind.
pub(crate) struct Table<T> {
    what: &'static str,
    shards: OnceLock<[Shard<T>; SHARDS]>,
}

/// An object, until it is closed.
pub(crate) struct Held<T> {
    what: &'static str,
    object: RwLock<Option<T>>,
    /// What is closed before the object.
    children: Mutex<Vec<Child>>,
}

/// What closes with its parent.
struct Child {
    handle: i64,
    close: fn(i64) -> bool,
}

impl<T: Send + Sync + 'static> Table<T> {
    /// A table. Messages call its objects `what`.
    pub(crate) const fn new(what: &'static str) -> Table<T> {
        Table { what, shards: OnceLock::new() }
    }

    fn shard(&self, handle: i64) -> &Shard<T> {
        let shards = self.shards.get_or_init(|| std::array::from_fn(|_| RwLock::default()));
        &shards[handle.rem_euclid(SHARDS as i64) as usize]
    }

    /// Makes a handle of an object.
    pub(crate) fn insert(&self, object: T) -> i64 {
        // ORDERING: only that no number is given out twice, which any ordering does.
        let handle = NEXT.fetch_add(1, Ordering::Relaxed);
        let held = Held { what: self.what, object: RwLock::new(Some(object)), children: Mutex::default() };
        let mut shard = self.shard(handle).write().unwrap_or_else(PoisonError::into_inner);
        shard.insert(handle, Arc::new(held));
        handle
    }

    /// What a handle stands for.
    pub(crate) fn held(&self, handle: i64) -> Result<Arc<Held<T>>, Failure> {
        let shard = self.shard(handle).read().unwrap_or_else(PoisonError::into_inner);
        shard.get(&handle).cloned().ok_or(Failure::Closed(self.what))
    }

    /// Calls `f` with the object of a handle. Other calls may use it at the same time.
    pub(crate) fn with<R>(
        &self,
        handle: i64,
        f: impl FnOnce(&T) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        self.held(handle)?.with(f)
    }

    /// Closes a handle, after what belongs to it, and waits for calls that use it. Returns whether it was open.
    pub(crate) fn close(&self, handle: i64) -> bool {
        let mut shard = self.shard(handle).write().unwrap_or_else(PoisonError::into_inner);
        let Some(held) = shard.remove(&handle) else { return false };
        drop(shard);
        // Nothing is added to the children any more once the object is gone.
        let mut object = held.object.write().unwrap_or_else(PoisonError::into_inner);
        for child in lock(&held.children).drain(..) {
            (child.close)(child.handle);
        }
        drop(object.take());
        true
    }
}

impl<T> Held<T> {
    /// Calls `f` with the object. Other calls may use it at the same time.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&T) -> Result<R, Failure>) -> Result<R, Failure> {
        let object = self.object.read().unwrap_or_else(PoisonError::into_inner);
        f(object.as_ref().ok_or(Failure::Closed(self.what))?)
    }

    /// Makes a handle that is closed with this object by `close`. `make` gets the object; it may return 0, no handle.
    pub(crate) fn child(
        &self,
        make: impl FnOnce(&T) -> Result<i64, Failure>,
        close: fn(i64) -> bool,
    ) -> Result<i64, Failure> {
        self.with(|object| {
            let handle = make(object)?;
            let mut children = lock(&self.children);
            if handle != 0 {
                children.push(Child { handle, close });
            }
            Ok(handle)
        })
    }

    /// Forgets a child, which closed.
    pub(crate) fn forget(&self, handle: i64) {
        let mut children = lock(&self.children);
        // The last one first: most iterations are short, and close before older ones do.
        if let Some(at) = children.iter().rposition(|child| child.handle == handle) {
            children.swap_remove(at);
        }
    }
}
