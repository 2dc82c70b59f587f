//! [`Client`]: the state of one connection that its commands see. [`Shared`]: what other connections see of it.

use crate::keys::Kind;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use std::time::Instant;

/// What other connections see, count and end.
pub(crate) struct Shared {
    pub(crate) id: u64,
    pub(crate) address: String,
    pub(crate) since: Instant,
    /// When its last command began.
    pub(crate) active: Cell<Instant>,
    pub(crate) name: RefCell<Vec<u8>>,
    pub(crate) library: RefCell<(Vec<u8>, Vec<u8>)>,
    pub(crate) database: Cell<usize>,
    pub(crate) last_command: Cell<&'static str>,
    pub(crate) is_3: Cell<bool>,
    pub(crate) in_multi: Cell<bool>,
    /// Bytes of its buffers, which the budget of the server counts.
    pub(crate) memory_bytes: Cell<usize>,
    /// A key that it watches has changed.
    pub(crate) is_dirty: Cell<bool>,
    /// It is to end.
    pub(crate) is_ended: Cell<bool>,
    /// The command that waits, if one does.
    pub(crate) wait: RefCell<Option<Wait>>,
    /// What it gets, and its task has not sent yet.
    pub(crate) served: RefCell<Option<Served>>,
    /// What wakes its task.
    waker: RefCell<Option<Waker>>,
}

impl Shared {
    pub(crate) fn new(id: u64, address: String) -> Rc<Shared> {
        let now = Instant::now();
        Rc::new(Shared {
            id,
            address,
            since: now,
            active: Cell::new(now),
            name: RefCell::default(),
            library: RefCell::default(),
            database: Cell::new(0),
            last_command: Cell::new("NULL"),
            is_3: Cell::new(false),
            in_multi: Cell::new(false),
            memory_bytes: Cell::new(0),
            is_dirty: Cell::new(false),
            is_ended: Cell::new(false),
            wait: RefCell::default(),
            served: RefCell::default(),
            waker: RefCell::default(),
        })
    }

    /// Ends the connection, when its task next looks.
    pub(crate) fn end(&self) {
        self.is_ended.set(true);
        self.wake();
    }

    /// Gives a command that waited its reply.
    pub(crate) fn serve(&self, served: Served) {
        *self.served.borrow_mut() = Some(served);
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Notes what wakes its task.
    pub(crate) fn wake_by(&self, waker: &Waker) {
        let mut known = self.waker.borrow_mut();
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }
}

/// A request that waits for `EXEC`.
pub(crate) type Queued = Vec<Vec<u8>>;

/// The state of a connection.
pub(crate) struct Client {
    pub(crate) shared: Rc<Shared>,
    /// The number of its database.
    pub(crate) database: usize,
    /// It has given the password, or needs none.
    pub(crate) is_known: bool,
    /// Version 3 of the protocol.
    pub(crate) is_3: bool,
    /// The requests since `MULTI`.
    pub(crate) queue: Option<Vec<Queued>>,
    /// Bytes of them.
    pub(crate) queue_bytes: usize,
    /// One of them could not be queued.
    pub(crate) is_aborted: bool,
    /// `EXEC` runs.
    pub(crate) in_exec: bool,
    pub(crate) watched: Vec<Watched>,
    /// Bytes that they take, about.
    pub(crate) watched_bytes: usize,
    /// It has asked for the end of the connection.
    pub(crate) quits: bool,
    /// Replies that are left out.
    pub(crate) skips: Skips,
    /// Its command has found nothing, and is to wait.
    pub(crate) wait: Option<Wait>,
    /// Its command has waited, and is executed again.
    pub(crate) has_waited: bool,
}

/// A command that waits.
#[derive(Debug)]
pub(crate) struct Wait {
    /// Its place in the order; 0 until it has one.
    pub(crate) ticket: u64,
    pub(crate) database: usize,
    /// What it waits for: keys of a type.
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) kind: Kind,
    /// The request.
    pub(crate) args: Vec<Vec<u8>>,
    pub(crate) is_3: bool,
    /// `CLIENT REPLY` has chosen that there is no reply.
    pub(crate) drops_reply: bool,
    /// `None`: it waits for ever.
    pub(crate) deadline: Option<Instant>,
    /// The reply if nothing came in time.
    pub(crate) nothing: &'static [u8],
}

impl Wait {
    /// What its client gets: a reply, unless none is wanted.
    pub(crate) fn served(&self, reply: Vec<u8>, change: u64) -> Served {
        Served { reply: if self.drops_reply { Vec::new() } else { reply }, change }
    }

    /// The same if nothing came.
    pub(crate) fn unserved(&self) -> Served {
        self.served(self.nothing.to_vec(), 0)
    }

    /// Bytes that it takes, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.keys.iter().chain(&self.args).map(|bytes| 4 * size_of::<usize>() + bytes.len()).sum()
    }
}

/// What a client gets that waited.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) reply: Vec<u8>,
    /// The number of the change that it is part of; 0 if there is none.
    pub(crate) change: u64,
}

/// A key of a database whose changes make `EXEC` do nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Watched {
    pub(crate) database: usize,
    pub(crate) key: Vec<u8>,
    /// It was there when the client began to watch it.
    pub(crate) was_there: bool,
}

impl Watched {
    /// Bytes that it takes, about: here, and where the server looks for those who watch a key.
    pub(crate) fn memory_bytes(&self) -> usize {
        2 * (self.key.len() + size_of::<Watched>())
    }
}

/// What `CLIENT REPLY` has chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Skips {
    Nothing,
    /// The reply of the next command.
    Next,
    All,
}

impl Client {
    pub(crate) fn new(shared: Rc<Shared>, is_known: bool) -> Client {
        Client {
            shared,
            database: 0,
            is_known,
            is_3: false,
            queue: None,
            queue_bytes: 0,
            is_aborted: false,
            in_exec: false,
            watched: Vec::new(),
            watched_bytes: 0,
            quits: false,
            skips: Skips::Nothing,
            wait: None,
            has_waited: false,
        }
    }

    pub(crate) fn select(&mut self, database: usize) {
        self.database = database;
        self.shared.database.set(database);
    }

    pub(crate) fn speak(&mut self, is_3: bool) {
        self.is_3 = is_3;
        self.shared.is_3.set(is_3);
    }

    /// Leaves `MULTI`.
    pub(crate) fn end_multi(&mut self) -> Vec<Queued> {
        (self.queue_bytes, self.is_aborted) = (0, false);
        self.shared.in_multi.set(false);
        self.queue.take().unwrap_or_default()
    }
}
