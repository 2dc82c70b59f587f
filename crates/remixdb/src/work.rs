//! [`Work`]: signals between the store and its background thread: there is work, some is done, the store is
//! closed.
//!
//! Invariants, which the models (models.rs) check: the thread hears every call, even one that came while it
//! worked, and then sees what was done before the call. The same holds for closing. This rests on checking
//! both under the lock before waiting, and on setting them under the lock before waking.
//!
//! A thread that waits for work to be done may miss the signal, so it waits for a bounded time.

use crate::sync::{Condvar, Mutex, lock, weakened};
use std::sync::PoisonError;
use std::time::Duration;

/// See the head of the file.
#[derive(Default)]
pub(crate) struct Work {
    state: Mutex<WorkState>,
    called: Condvar,
    done: Condvar,
}

#[derive(Default)]
struct WorkState {
    wanted: bool,
    closing: bool,
    /// Whether a thread does the work.
    has_thread: bool,
}

/// The result of waiting for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// There is work.
    Work,
    /// Nobody called in the given time.
    Nothing,
    /// The store is closed.
    Close,
}

impl Work {
    /// From now on a thread does the work.
    pub(crate) fn start(&self) {
        lock(&self.state).has_thread = true;
    }

    /// Waits for a call, but not longer than `most`.
    pub(crate) fn next(&self, most: Duration) -> Call {
        let mut state = lock(&self.state);
        if !(state.closing || state.wanted) || weakened!("waits_blindly") {
            state = self.called.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.closing {
            Call::Close
        } else if std::mem::take(&mut state.wanted) {
            Call::Work
        } else {
            Call::Nothing
        }
    }

    /// Whether there is something to do that others wait for.
    pub(crate) fn is_called(&self) -> bool {
        let state = lock(&self.state);
        state.wanted || state.closing
    }

    /// Whether the store is closed.
    pub(crate) fn is_closing(&self) -> bool {
        lock(&self.state).closing
    }

    /// Whether a thread does the work.
    pub(crate) fn has_thread(&self) -> bool {
        lock(&self.state).has_thread
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
        lock(&self.state).closing = true;
        self.called.notify_one();
    }

    /// The thread has ended. The thread that closes the store may do some more work.
    pub(crate) fn end(&self) {
        *lock(&self.state) = WorkState::default();
    }

    /// Signals that some work is done.
    pub(crate) fn done(&self) {
        drop(lock(&self.state));
        self.done.notify_all();
    }

    /// Waits until some work is done, but at most `most`; does not wait if no thread does any.
    pub(crate) fn wait(&self, most: Duration) {
        let state = lock(&self.state);
        if state.has_thread && !state.closing {
            drop(self.done.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner));
        }
    }
}
