//! [`Syncer`]: futures that wait for the device, without a thread each.
//!
//! Almost every call of a store is a matter of microseconds, and an asynchronous task may simply make it. The wait for
//! the device is the exception. A task that must survive power loss makes its changes at a level that does not wait,
//! and then awaits [`Syncer::synced`]. One thread for each `Syncer` syncs the store, and wakes all tasks whose changes
//! were made before that sync began. So a thousand tasks share a sync, as a thousand threads would.
//!
//! This needs no runtime: the futures work with any executor.
//!
//! Invariant: *no task waits for ever.* A future puts a ticket into the queue. The thread takes the whole queue
//! before a sync begins, and gives the result to every ticket. A ticket that is dropped without one gives an error,
//! so also if the thread ends by a panic. Once the queue is closed, a new future fails at once.

use crate::db::Db;
use forrest_engine::{Error, ErrorKind, Result};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};
use std::{fmt, process};

/// Syncs a store for asynchronous tasks. A clone is another handle to the same one.
///
/// ```
/// # fn block_on<F: std::future::Future>(future: F) -> F::Output {
/// #     let mut future = std::pin::pin!(future);
/// #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// #     loop {
/// #         if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
/// #             return output;
/// #         }
/// #         std::thread::yield_now();
/// #     }
/// # }
/// use forrest::{Db, asynchronous::Syncer};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("forest");
/// # let path = path.to_str().unwrap();
/// let db = Db::open(path)?;
/// let syncer = Syncer::new(&db)?;
/// let change = async {
///     db.set("oak", "Quercus robur")?; // as fast as ever
///     syncer.synced().await // it survives power loss
/// };
/// block_on(change)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It has one thread, which sleeps while no task waits, and keeps the store open. Dropping the last handle waits for
/// the futures that are registered, which is at most two syncs, and ends the thread. In a child of `fork`, futures
/// fail with `InvalidArgument`.
#[derive(Clone)]
pub struct Syncer(Arc<Owner>);

/// Ends the thread when the last handle is dropped.
struct Owner {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    process: u32,
}

/// What waits for the next sync.
#[derive(Default)]
struct Queue {
    tickets: Mutex<Tickets>,
    /// That there is a ticket, or that the queue was closed.
    changed: Condvar,
}

#[derive(Default)]
struct Tickets {
    waiting: Vec<Ticket>,
    is_closed: bool,
}

/// Gives a result to a future, once.
struct Ticket(Arc<Slot>);

/// Where a future finds its result.
type Slot = Mutex<Progress>;

enum Progress {
    /// The task to wake, if the future was polled.
    Waiting(Option<Waker>),
    Done(Result<()>),
}

/// Resolves when everything that was written before [`Syncer::synced`] survives power loss, or with the error of the
/// sync.
///
/// The sync is on its way from that call on, whether or not this is polled. Dropping it gives up the wait, and takes
/// nothing back.
#[must_use = "whether the sync succeeded is known only to the one who awaits it"]
pub struct Synced(Arc<Slot>);

impl Syncer {
    /// Starts the thread. A store may have several of them, but one shares its syncs among most tasks.
    ///
    /// # Errors
    /// `Io` if the system refuses a thread.
    pub fn new(db: &Db) -> Result<Syncer> {
        let queue = Arc::<Queue>::default();
        let (db, shared) = (db.clone(), Arc::clone(&queue));
        let thread =
            thread::Builder::new().name("forrest-syncer".to_owned()).spawn(move || run(&db, &shared));
        let thread =
            thread.map_err(|error| Error::new(ErrorKind::Io, format!("starting a thread: {error}")))?;
        Ok(Syncer(Arc::new(Owner { queue, thread: Some(thread), process: process::id() })))
    }

    /// Returns a future that resolves when everything that was written before this call survives power loss, in all
    /// keyspaces and from all threads. Does not block.
    ///
    /// The future fails as [`Db::sync`] does: `Io` or `Stopped` if the device reports a failure, `Unsupported` if the
    /// home cannot sync. In memory it succeeds, and promises nothing.
    pub fn synced(&self) -> Synced {
        let slot = Arc::new(Slot::new(Progress::Waiting(None)));
        let ticket = Ticket(Arc::clone(&slot));
        if self.0.process != process::id() {
            ticket.finish(Err(Error::invalid(
                "a Syncer was used in a child of fork; make one there, of a store opened there",
            )));
            return Synced(slot);
        }
        let mut tickets = lock(&self.0.queue.tickets);
        // Without a thread, the ticket is dropped, which is an error.
        if !tickets.is_closed {
            tickets.waiting.push(ticket);
            self.0.queue.changed.notify_one();
        }
        drop(tickets);
        Synced(slot)
    }
}

/// What the thread does: one sync for all that wait, until the last handle is gone.
fn run(db: &Db, queue: &Queue) {
    /// Nothing waits for a thread that has ended by a panic.
    struct Ending<'q>(&'q Queue);
    impl Drop for Ending<'_> {
        fn drop(&mut self) {
            let mut tickets = lock(&self.0.tickets);
            tickets.is_closed = true;
            let left = std::mem::take(&mut tickets.waiting);
            drop(tickets);
            drop(left);
        }
    }
    let _ending = Ending(queue);
    loop {
        let is_idle = |tickets: &mut Tickets| tickets.waiting.is_empty() && !tickets.is_closed;
        let tickets = queue.changed.wait_while(lock(&queue.tickets), is_idle);
        let waiting = std::mem::take(&mut tickets.unwrap_or_else(PoisonError::into_inner).waiting);
        if waiting.is_empty() {
            return;
        }
        // All that these tickets are for was written before they were queued.
        let result = db.sync();
        waiting.into_iter().for_each(|ticket| ticket.finish(copy(&result)));
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.process != process::id() {
            // The thread is not in this process, and its lock may be held for ever.
            std::mem::forget(thread);
            return;
        }
        lock(&self.queue.tickets).is_closed = true;
        self.queue.changed.notify_one();
        // A waker that drops the last handle runs on that thread itself.
        if thread.thread().id() != thread::current().id() {
            // A panic has been printed, and the futures have failed.
            drop(thread.join());
        }
    }
}

impl Ticket {
    fn finish(&self, result: Result<()>) {
        let mut progress = lock(&self.0);
        if let Progress::Waiting(waker) = &mut *progress {
            let waker = waker.take();
            *progress = Progress::Done(result);
            drop(progress);
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.finish(Err(Error::new(
            ErrorKind::Stopped,
            "the thread of the Syncer has ended; make another one",
        )));
    }
}

impl Future for Synced {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        match &mut *lock(&self.0) {
            Progress::Done(result) => Poll::Ready(copy(result)),
            Progress::Waiting(waker) => {
                match waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    None => *waker = Some(context.waker().clone()),
                }
                Poll::Pending
            }
        }
    }
}

/// The same result for one more future.
fn copy(result: &Result<()>) -> Result<()> {
    result.as_ref().copied().map_err(|error| Error::new(error.kind(), error.message()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Syncer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Syncer").finish_non_exhaustive()
    }
}

impl fmt::Debug for Synced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Synced").finish_non_exhaustive()
    }
}
