//! [`Work`]: how whoever works in the background is told that there is work, and tells that some is done.
//!
//! What holds, and the models (models.rs) look for: a call is heard, also by one who was working when it came, and
//! whoever hears it sees what was done before it; and so is the end. It rests on asking for both under the lock before
//! waiting, and on saying them under the lock before waking.
//!
//! Who waits for work to be done may miss that it was, and so waits for a bounded time.

use crate::sync::{Condvar, Mutex, lock, weakened};
use std::sync::PoisonError;
use std::time::Duration;

/// See the head of the file.
#[derive(Default)]
pub(crate) struct Work {
    state: Mutex<State>,
    called: Condvar,
    done: Condvar,
}

#[derive(Default)]
struct State {
    wanted: bool,
    closing: bool,
    /// Whether a thread does the work.
    has_thread: bool,
}

/// What one who waits for a call hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// There is work.
    Work,
    /// Nobody called for as long as it was to wait.
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

    /// Says that there is work to be done.
    pub(crate) fn call(&self) {
        if weakened!("wakes_first") {
            self.called.notify_one();
            lock(&self.state).wanted = true;
            return;
        }
        lock(&self.state).wanted = true;
        self.called.notify_one();
    }

    /// Says that the store is closed.
    pub(crate) fn close(&self) {
        lock(&self.state).closing = true;
        self.called.notify_one();
    }

    /// Says that some work was done.
    pub(crate) fn done(&self) {
        drop(lock(&self.state));
        self.done.notify_all();
    }

    /// Waits until some work is done, but not longer than `most`; not at all if nobody does any.
    pub(crate) fn wait(&self, most: Duration) {
        let state = lock(&self.state);
        if state.has_thread && !state.closing {
            drop(self.done.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner));
        }
    }
}
