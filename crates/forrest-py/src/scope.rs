//! [`Scope`] and [`Part`]: closing a store with everything that belongs to it, and releasing the interpreter
//! during calls.
//!
//! In the Rust library a store is open as long as any of its objects lives, including iterations. In Python
//! `close` closes it at once. So every object of a store is a part of its scope. Closing the scope takes each
//! part away from its owner, and later calls on it fail. A snapshot has a scope within that of its store.
//! Closing waits for calls in progress.
//!
//! A call that runs code of Python meanwhile, such as a backup, which reports its progress and looks for signals, does
//! so [`apart`](Scope::apart): that code may close the scope.
//!
//! INVARIANT: no thread that is attached to the interpreter waits for a lock of this module whose holder may
//! be waiting for the interpreter. Holders of a part's lock run code of the library only, and never attach. Only
//! closing waits for them, and for work apart, both detached; a call that finds a part about to be closed fails.

use crate::failure::Failure;
use forrest_base::lock;
use forrest_machine::origin::Origin;
use pyo3::prelude::*;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, TryLockError};

/// The objects that are closed together with a store or a snapshot.
pub(crate) struct Scope {
    /// The object that closes it, for messages: a store or a snapshot.
    what: &'static str,
    /// Whether reads may wait, for a device or another process.
    waits: bool,
    /// The process that opened it. A child of a fork neither uses nor frees objects that were opened before
    /// the fork.
    origin: Origin,
    closed: AtomicBool,
    parts: Mutex<Parts>,
    /// Number of works apart, and the signal that one has ended.
    apart: Mutex<usize>,
    ended: Condvar,
    /// The outer scope, if there is one, and the number in it.
    place: OnceLock<(Arc<Scope>, u64)>,
}

thread_local! {
    /// Number of works apart that this thread is in, of all scopes.
    static APART: Cell<usize> = const { Cell::new(0) };
}

#[derive(Default)]
struct Parts {
    next: u64,
    /// The function that closes each part, by number.
    open: HashMap<u64, Box<dyn FnOnce() + Send>>,
}

impl Scope {
    /// A scope without an outer one.
    pub(crate) fn new(what: &'static str, waits: bool) -> Arc<Scope> {
        let (closed, parts, place) = (AtomicBool::new(false), Mutex::default(), OnceLock::new());
        let (apart, ended) = (Mutex::default(), Condvar::new());
        Arc::new(Scope { what, waits, origin: Origin::here(), closed, parts, apart, ended, place })
    }

    /// An inner scope, which is closed with this one, or earlier.
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

    /// Whether the scope was opened by the process that forked this one.
    pub(crate) fn is_foreign(&self) -> bool {
        !self.origin.is_here()
    }

    /// Whether the scope is closed.
    pub(crate) fn is_closed(&self) -> bool {
        // ORDERING: Relaxed suffices, because the flag only selects the error. Locks protect the parts
        // themselves.
        self.closed.load(Ordering::Relaxed)
    }

    /// Fails if the objects in the scope can no longer be used.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.is_foreign() {
            return Err(Failure::Forked);
        }
        if self.is_closed() { Err(Failure::Closed(self.what)) } else { Ok(()) }
    }

    /// INVARIANT: nothing that could panic runs under this lock.
    fn parts(&self) -> MutexGuard<'_, Parts> {
        lock(&self.parts)
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

    /// Runs work, detached from the interpreter, that may attach to it for a while. It must hold no part. Closing the
    /// scope waits until it has ended, except in the thread that does the work, which would wait for itself.
    pub(crate) fn apart<R>(&self, work: impl FnOnce() -> R) -> R {
        let _running = Apart::begin(self);
        work()
    }

    /// Takes all parts away from their owners and drops them. May wait, so do not call it attached to the
    /// interpreter.
    pub(crate) fn close(&self) {
        let open = {
            let mut parts = self.parts();
            self.closed.store(true, Ordering::Relaxed);
            std::mem::take(&mut parts.open)
        };
        open.into_values().for_each(|close| close());
        if APART.get() == 0 {
            let mut running = lock(&self.apart);
            while *running > 0 {
                running = self.ended.wait(running).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// A work apart that is running.
struct Apart<'s>(&'s Scope);

impl Apart<'_> {
    fn begin(scope: &Scope) -> Apart<'_> {
        *lock(&scope.apart) += 1;
        APART.set(APART.get() + 1);
        Apart(scope)
    }
}

impl Drop for Apart<'_> {
    fn drop(&mut self) {
        APART.set(APART.get() - 1);
        *lock(&self.0.apart) -= 1;
        self.0.ended.notify_all();
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if self.is_foreign() {
            // The parent process frees the parts. Their lock may have been held during the fork.
            let parts = self.parts.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::take(parts));
        } else if let Some((outer, number)) = self.place.get() {
            outer.remove(*number);
        }
    }
}

/// An object of the library that is taken away from its owner when its scope is closed.
pub(crate) struct Part<T: Send + Sync + 'static> {
    scope: Arc<Scope>,
    number: u64,
    slot: Arc<RwLock<Option<T>>>,
}

impl<T: Send + Sync + 'static> Part<T> {
    /// Adds an object to a scope.
    pub(crate) fn new(scope: &Arc<Scope>, what: T) -> Result<Part<T>, Failure> {
        let slot = Arc::new(RwLock::new(Some(what)));
        let closing = slot.clone();
        let number = scope.add(Box::new(move || empty(&closing)))?;
        Ok(Part { scope: scope.clone(), number, slot })
    }

    /// The scope of the part.
    pub(crate) fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    /// Runs work on the object. The caller has checked the scope, and is detached from the interpreter if the work may
    /// wait.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&T) -> Result<R, Failure>) -> Result<R, Failure> {
        let slot = match self.slot.try_read() {
            Ok(slot) => slot,
            // Ignore poisoning: `work` cannot change the slot, even if it panics.
            Err(TryLockError::Poisoned(slot)) => slot.into_inner(),
            // Only closing locks a slot for itself. It may wait for a long call of another thread, and this one may be
            // attached.
            Err(TryLockError::WouldBlock) => return Err(Failure::Closed(self.scope.what)),
        };
        match &*slot {
            Some(what) => work(what),
            None => Err(Failure::Closed(self.scope.what)),
        }
    }

    /// Runs work that never waits, attached to the interpreter.
    pub(crate) fn at_once<R>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&T) -> Result<R, Failure>,
    ) -> PyResult<R> {
        self.scope.check().and_then(|()| self.with(work)).map_err(|failure| failure.raise(py))
    }

    /// Runs work that may wait or take long, detached from the interpreter, so that other Python threads run
    /// meanwhile.
    pub(crate) fn detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&T) -> Result<R, Failure> + Send,
    ) -> PyResult<R> {
        let done = self.scope.check().and_then(|()| py.detach(|| self.with(work)));
        done.map_err(|failure| failure.raise(py))
    }

    /// Runs a short read, detached from the interpreter if it may wait. In memory a read never waits, and
    /// detaching would cost as much as the read, or far more if other threads want the interpreter.
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
            // The scope keeps its own reference for ever, so the object is not dropped.
            return;
        }
        let close = || {
            empty(&self.slot);
            self.scope.remove(self.number);
        };
        // Dropping the last part of a store closes it, which waits for background work. If attaching fails,
        // the interpreter is shutting down, and no other thread needs it.
        if Python::try_attach(|py| py.detach(close)).is_none() {
            close();
        }
    }
}

/// Empties a slot and drops its object, without holding the lock.
fn empty<T>(slot: &RwLock<Option<T>>) {
    let what = slot.write().unwrap_or_else(PoisonError::into_inner).take();
    drop(what);
}
