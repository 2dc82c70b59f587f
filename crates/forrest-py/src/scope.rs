//! [`Scope`] and [`Part`]: what is closed with what, and when Python's other threads go on.
//!
//! A store is open as long as anything of it lives, its iterations included; Python's `close` means at once. So
//! whatever belongs to a store is a part of its scope, closing the scope takes every part away from its owner, and a
//! call on what was taken away fails. A snapshot is a scope in that of its store. Closing waits for calls that are
//! under way.
//!
//! INVARIANT: nobody waits for a lock of this module with the interpreter attached whose holder may be waiting for the
//! interpreter. Holders of a part's lock run code of the library only, and never attach.

use crate::failure::Failure;
use forrest_machine::origin::Origin;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

/// What is open as long as something else is.
pub(crate) struct Scope {
    /// What closes it: a store, or a snapshot.
    what: &'static str,
    /// Whether reading may wait, for a device or for somebody else.
    waits: bool,
    /// The process that opened it. What was opened before a fork is not used in the child, and nothing of it is given
    /// back there.
    origin: Origin,
    closed: AtomicBool,
    parts: Mutex<Parts>,
    /// The scope that it is in, if there is one, and its number there.
    place: OnceLock<(Arc<Scope>, u64)>,
}

#[derive(Default)]
struct Parts {
    next: u64,
    /// How each of them is closed.
    open: HashMap<u64, Box<dyn FnOnce() + Send>>,
}

impl Scope {
    /// A store's.
    pub(crate) fn new(what: &'static str, waits: bool) -> Arc<Scope> {
        let (closed, parts, place) = (AtomicBool::new(false), Mutex::default(), OnceLock::new());
        Arc::new(Scope { what, waits, origin: Origin::here(), closed, parts, place })
    }

    /// One that is closed with this one, or earlier.
    pub(crate) fn inner(self: &Arc<Scope>, what: &'static str) -> Result<Arc<Scope>, Failure> {
        let inner = Scope::new(what, self.waits);
        let closing = Arc::downgrade(&inner);
        let number = self.add(Box::new(move || {
            if let Some(inner) = closing.upgrade() {
                inner.close();
            }
        }))?;
        inner.place.get_or_init(|| (self.clone(), number));
        Ok(inner)
    }

    /// Whether it was opened by another process, from which this one was forked.
    pub(crate) fn is_foreign(&self) -> bool {
        !self.origin.is_here()
    }

    /// Whether it was closed.
    pub(crate) fn is_closed(&self) -> bool {
        // ORDERING: only told; what is closed has been taken away under locks.
        self.closed.load(Ordering::Relaxed)
    }

    /// Fails if what is in it can no longer be used.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.is_foreign() {
            return Err(Failure::Forked);
        }
        if self.is_closed() { Err(Failure::Closed(self.what)) } else { Ok(()) }
    }

    /// Nothing that could panic runs under this lock.
    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, close: Box<dyn FnOnce() + Send>) -> Result<u64, Failure> {
        let mut parts = self.parts();
        self.check()?;
        let number = parts.next;
        parts.next += 1;
        parts.open.insert(number, close);
        Ok(number)
    }

    fn remove(&self, number: u64) {
        let part = self.parts().open.remove(&number);
        drop(part);
    }

    /// Takes everything away from its owners and gives it back. May wait; not to be called attached.
    pub(crate) fn close(&self) {
        let open = {
            let mut parts = self.parts();
            self.closed.store(true, Ordering::Relaxed);
            std::mem::take(&mut parts.open)
        };
        open.into_values().for_each(|close| close());
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if self.is_foreign() {
            // What it holds is the other process's to give back. Its lock may have been held when that one was forked.
            let parts = self.parts.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::take(parts));
        } else if let Some((outer, number)) = self.place.get() {
            outer.remove(*number);
        }
    }
}

/// Something of the library that is taken away when its scope is closed.
pub(crate) struct Part<T: Send + Sync + 'static> {
    scope: Arc<Scope>,
    number: u64,
    slot: Arc<RwLock<Option<T>>>,
}

impl<T: Send + Sync + 'static> Part<T> {
    /// Puts it into a scope.
    pub(crate) fn new(scope: &Arc<Scope>, what: T) -> Result<Part<T>, Failure> {
        let slot = Arc::new(RwLock::new(Some(what)));
        let closing = slot.clone();
        let number = scope.add(Box::new(move || empty(&closing)))?;
        Ok(Part { scope: scope.clone(), number, slot })
    }

    /// Where it belongs.
    pub(crate) fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    fn with<R>(&self, work: impl FnOnce(&T) -> Result<R, Failure>) -> Result<R, Failure> {
        // Whoever panicked with it changed nothing here.
        let slot = self.slot.read().unwrap_or_else(PoisonError::into_inner);
        match &*slot {
            Some(what) => work(what),
            None => Err(Failure::Closed(self.scope.what)),
        }
    }

    /// Does something that waits for nobody.
    pub(crate) fn at_once<R>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&T) -> Result<R, Failure>,
    ) -> PyResult<R> {
        self.scope.check().and_then(|()| self.with(work)).map_err(|failure| failure.raise(py))
    }

    /// Does something that may wait, or take long. Python's other threads go on meanwhile.
    pub(crate) fn detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&T) -> Result<R, Failure> + Send,
    ) -> PyResult<R> {
        let done = self.scope.check().and_then(|()| py.detach(|| self.with(work)));
        done.map_err(|failure| failure.raise(py))
    }

    /// Reads something short. Python's other threads go on meanwhile if that may wait. In memory it never does, and to
    /// let go of the interpreter and ask for it again would cost as much as the reading, or far more where others want
    /// it.
    pub(crate) fn read<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&T) -> Result<R, Failure> + Send,
    ) -> PyResult<R> {
        if self.scope.waits { self.detached(py, work) } else { self.at_once(py, work) }
    }
}

impl<T: Send + Sync + 'static> Drop for Part<T> {
    fn drop(&mut self) {
        if self.scope.is_foreign() {
            // The scope's own reference to it is never given back.
            return;
        }
        let close = || {
            empty(&self.slot);
            self.scope.remove(self.number);
        };
        // The last part of a store closes it, which waits for work in the background. While the interpreter shuts down,
        // there are no others to go on.
        if Python::try_attach(|py| py.detach(close)).is_none() {
            close();
        }
    }
}

/// Takes something away and gives it back.
fn empty<T>(slot: &RwLock<Option<T>>) {
    let what = slot.write().unwrap_or_else(PoisonError::into_inner).take();
    drop(what);
}
