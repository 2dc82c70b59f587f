//! [`Work`]: signals between the store and its background thread: there is work, some is done, the store is
//! closed.
//!
//! Invariants, which the models (models.rs) check: the thread hears every call, even one that came while it
//! worked, and then sees what was done before the call. The same holds for closing. This rests on checking
//! both under the lock before waiting, and on setting them under the lock before waking.
//!
//! A store at rest has its thread wake seldom. Then a change must wake it, because the thread writes changes that no
//! caller waits for. The thread says that it rests, and looks after that whether there was a change. A thread that has
//! made a change looks after that whether the thread of the store rests. Both look under the lock that orders changes,
//! so one of them sees what the other one did. A change of a busy store costs one load.
//!
//! A thread that waits for work to be done may miss the signal, so it waits for a bounded time.

use crate::sync::{AtomicBool, Condvar, Mutex, Ordering::Relaxed, lock, weakened};
use std::sync::PoisonError;
use std::time::Duration;

/// See the head of the file.
#[derive(Default)]
pub(crate) struct Work {
    state: Mutex<WorkState>,
    /// Whether a thread does the work, and whether the store is closed, for those who ask often: the lock may be held
    /// by a thread that is not running.
    has_thread: AtomicBool,
    is_closing: AtomicBool,
    /// Whether the thread rests, or is about to.
    is_resting: AtomicBool,
    /// How often the thread went on.
    #[cfg(test)]
    pub(crate) turns: std::sync::atomic::AtomicUsize,
    called: Condvar,
    done: Condvar,
}

#[derive(Default)]
struct WorkState {
    wanted: bool,
    closing: bool,
    /// Whether there was a change while the thread was resting.
    stirred: bool,
}

/// The result of waiting for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// There is work.
    Work,
    /// Nobody called in the given time, or there was a change while the thread was resting.
    Nothing,
    /// The store is closed.
    Close,
}

impl Work {
    /// From now on a thread does the work.
    pub(crate) fn start(&self) {
        // ORDERING: the thread is started afterwards.
        self.has_thread.store(true, Relaxed);
    }

    /// Waits for a call, but not longer than `most`.
    pub(crate) fn next(&self, most: Duration) -> Call {
        let mut state = lock(&self.state);
        if !(state.closing || state.wanted || state.stirred) || weakened!("waits_blindly") {
            state = self.called.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.stirred = false;
        #[cfg(test)]
        self.turns.fetch_add(1, Relaxed);
        if state.closing {
            Call::Close
        } else if std::mem::take(&mut state.wanted) {
            Call::Work
        } else {
            Call::Nothing
        }
    }

    /// The same; a change ends the wait too. `is_still` says whether there was none up to now, and takes the lock that
    /// orders changes.
    pub(crate) fn rest(&self, most: Duration, is_still: impl Fn() -> bool) -> Call {
        let early =
            if weakened!("rests_blindly") { Some(true) } else { weakened!("looks_first").then(&is_still) };
        // ORDERING: see the head of the file.
        self.is_resting.store(true, Relaxed);
        let call = if early.unwrap_or_else(is_still) { self.next(most) } else { Call::Nothing };
        self.is_resting.store(false, Relaxed);
        call
    }

    /// Wakes the thread if it rests. The caller has made a change, under the lock that orders changes.
    #[inline]
    pub(crate) fn stir(&self) {
        // ORDERING: see the head of the file.
        if self.is_resting.load(Relaxed) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        lock(&self.state).stirred = true;
        self.called.notify_one();
    }

    /// Whether there is something to do that others wait for.
    pub(crate) fn is_called(&self) -> bool {
        let state = lock(&self.state);
        state.wanted || state.closing
    }

    /// Whether the store is closed.
    pub(crate) fn is_closing(&self) -> bool {
        // ORDERING: work that goes on for a moment does no harm.
        self.is_closing.load(Relaxed)
    }

    /// Whether a thread does the work.
    pub(crate) fn has_thread(&self) -> bool {
        // ORDERING: it is set before anybody else has the store.
        self.has_thread.load(Relaxed)
    }

    /// Signals that there is work.
    pub(crate) fn call(&self) {
        if weakened!("wakes_first") {
            self.called.notify_one();
            lock(&self.state).wanted = true;
            return;
        }
        lock(&self.state).wanted = true;
        self.called.notify_one();
    }

    /// Signals that the store is closed.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Relaxed);
        lock(&self.state).closing = true;
        self.called.notify_one();
    }

    /// The thread has ended. The thread that closes the store may do some more work.
    pub(crate) fn end(&self) {
        *lock(&self.state) = WorkState::default();
        self.has_thread.store(false, Relaxed);
        self.is_closing.store(false, Relaxed);
    }

    /// Signals that some work is done.
    pub(crate) fn done(&self) {
        drop(lock(&self.state));
        self.done.notify_all();
    }

    /// Waits until some work is done, but at most `most`; does not wait if no thread does any.
    pub(crate) fn wait(&self, most: Duration) {
        let state = lock(&self.state);
        if self.has_thread() && !state.closing {
            drop(self.done.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner));
        }
    }
}
