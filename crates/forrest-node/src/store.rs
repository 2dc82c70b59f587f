//! [`Store`] and [`Snapshot`]: an open store, and a state of it, in the hands of JavaScript; and what their works
//! return to it, [`Reply`].
//!
//! Both belong to the thread of JavaScript. Works get clones of what they need when they are made. A store counts its
//! works; closing it is queued when the last of them has completed, so that the lock of the store is free when the
//! promise of `close` resolves. Until then no thread waits: the last work queues it.

use crate::failure::Failure;
use crate::node::{Answer, Env, Handle, Value, Work};
use forrest::{Db, Durability, View, WriteBatch, WriteOptions};
use forrest_base::lock;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

/// A store.
pub(crate) struct Store {
    /// `None` from `close` on.
    db: RefCell<Option<Db>>,
    /// From `close` on, what the closing takes. It holds the lock while it closes the store.
    last: RefCell<Arc<Mutex<Option<Db>>>>,
    /// Number of works that have not completed.
    pending: Cell<usize>,
    /// Closes the store, when `pending` is zero.
    closing: RefCell<Option<Work<Reply>>>,
}

impl Handle for Store {
    const WHAT: &'static str = "database";
    const TAG: u64 = 1;
}

impl Store {
    pub(crate) fn new(db: Db) -> Store {
        let db = RefCell::new(Some(db));
        Store { db, last: RefCell::default(), pending: Cell::new(0), closing: RefCell::default() }
    }

    /// The store, if it is open.
    pub(crate) fn db(&self) -> Result<Db, Failure> {
        self.db.borrow().clone().ok_or_else(|| Failure::closed(Self::WHAT))
    }

    /// Runs a function on another thread; returns the promise of what it returns.
    pub(crate) fn work<'e>(
        self: &Rc<Self>,
        env: Env<'e>,
        run: impl FnOnce() -> Result<Reply, Failure> + Send + 'static,
    ) -> Result<Value<'e>, Failure> {
        let store = Rc::clone(self);
        let (work, promise) = Work::new(env, run, move || store.completed())?;
        self.pending.set(self.pending.get() + 1);
        work.queue();
        Ok(promise)
    }

    /// A work has completed.
    fn completed(&self) {
        self.pending.set(self.pending.get().saturating_sub(1));
        if self.pending.get() == 0
            && let Some(closing) = self.closing.take()
        {
            closing.queue();
        }
    }

    /// Closes the store after the works that there are. Returns a promise; it resolves when the lock is free.
    pub(crate) fn close<'e>(self: &Rc<Self>, env: Env<'e>) -> Result<Value<'e>, Failure> {
        let db = self.db.take().ok_or_else(|| Failure::closed(Self::WHAT))?;
        let last = Arc::new(Mutex::new(Some(db)));
        self.last.replace(Arc::clone(&last));
        let close = move || {
            *lock(&last) = None;
            Ok(Reply::Nothing)
        };
        let (work, promise) = Work::new(env, close, || ())?;
        if self.pending.get() == 0 {
            work.queue();
        } else {
            self.closing.replace(Some(work));
        }
        Ok(promise)
    }

    /// Passes what is only in memory to the system. If the store is being closed, that may still wait for works, or be
    /// at it; then this does it, or waits. Does nothing if it is closed.
    pub(crate) fn flush(&self) -> Result<(), Failure> {
        let options = WriteOptions::new().durability(Durability::Buffered);
        let flush = |db: &Db| Ok(db.write_with(WriteBatch::new(), &options)?);
        match &*self.db.borrow() {
            Some(db) => flush(db),
            None => lock(&self.last.borrow()).as_ref().map_or(Ok(()), flush),
        }
    }
}

impl Drop for Store {
    /// Closes the store also if its environment has ended before the works, so that nothing has queued the closing.
    fn drop(&mut self) {
        *lock(self.last.get_mut()) = None;
    }
}

/// A state of a store.
pub(crate) struct Snapshot(RefCell<Option<forrest::Snapshot>>);

impl Handle for Snapshot {
    const WHAT: &'static str = "snapshot";
    const TAG: u64 = 2;
}

impl Snapshot {
    /// The state of a store at this moment.
    pub(crate) fn new(store: &Store) -> Result<Snapshot, Failure> {
        Ok(Snapshot(RefCell::new(Some(store.db()?.snapshot()?))))
    }

    /// The state, if it was not closed.
    pub(crate) fn state(&self) -> Result<forrest::Snapshot, Failure> {
        self.0.borrow().clone().ok_or_else(|| Failure::closed(Self::WHAT))
    }

    /// Releases what only this state needs.
    pub(crate) fn close(&self) {
        drop(self.0.take());
    }
}

/// What a read reads: the state of a snapshot, if the argument is one, or the newest state.
pub(crate) fn view(store: &Store, snapshot: Value<'_>) -> Result<View, Failure> {
    // Also with a snapshot the store must be open.
    let db = store.db()?;
    if snapshot.is_nullish()? {
        return Ok((**db).clone());
    }
    Ok((*Snapshot::of(snapshot)?.state()?).clone())
}

/// What a work returns.
pub(crate) enum Reply {
    Nothing,
    Truth(bool),
    Number(f64),
    /// A string or a buffer.
    Bytes {
        bytes: Option<forrest::Value>,
        as_text: bool,
    },
    Page(Vec<u8>),
    /// A store that was opened.
    Opened(Db),
}

impl Answer for Reply {
    fn value(self, env: Env<'_>) -> Result<Value<'_>, Failure> {
        match self {
            Reply::Nothing => env.undefined(),
            Reply::Truth(truth) => env.boolean(truth),
            Reply::Number(number) => env.number(number),
            Reply::Bytes { bytes, as_text } => bytes_value(env, bytes.as_deref(), as_text),
            Reply::Page(page) => env.buffer(&page),
            Reply::Opened(db) => Rc::new(Store::new(db)).handle(env),
        }
    }
}

/// A value of the store as a string or a buffer; undefined if there is none.
pub(crate) fn bytes_value<'e>(
    env: Env<'e>,
    bytes: Option<&[u8]>,
    as_text: bool,
) -> Result<Value<'e>, Failure> {
    match bytes {
        None => env.undefined(),
        Some(bytes) if as_text => env.string(bytes),
        Some(bytes) => env.buffer(bytes),
    }
}
