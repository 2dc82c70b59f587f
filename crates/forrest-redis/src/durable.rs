//! [`Syncs`]: makes changes on disk durable, for all connections that wait at once.
//!
//! A thread of its own syncs the store, so that reads of other clients do not wait for the device. A sync serves all
//! changes that were made before it began, and those that come meanwhile are served together by the next one. One that
//! fails is reported to those that wait for it; the next change asks for another one.

use forrest::Db;
use forrest_base::lock;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::Notify;

#[derive(Default)]
struct State {
    /// The number of the last change that is to be durable.
    wanted: u64,
    /// The number of the last change that is durable.
    done: u64,
    /// The number of the last change that a sync was for that failed, and why.
    failed: u64,
    failure: String,
    syncs: u64,
    is_over: bool,
}

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    work: Condvar,
    progress: Notify,
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn run(&self, db: &Db) {
        let mut state = self.lock();
        loop {
            while state.wanted <= state.done.max(state.failed) && !state.is_over {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.is_over {
                return;
            }
            let wanted = state.wanted;
            drop(state);
            // DURABILITY: changes up to `wanted` were made before this begins.
            let synced = db.sync();
            state = self.lock();
            match synced {
                Ok(()) => state.done = wanted,
                Err(error) => (state.failed, state.failure) = (wanted, error.to_string()),
            }
            state.syncs += 1;
            self.progress.notify_waiters();
        }
    }
}

/// See the module. Dropping it ends the thread after the sync that runs.
pub(crate) struct Syncs {
    inner: Arc<Inner>,
    thread: Option<JoinHandle<()>>,
}

impl Syncs {
    pub(crate) fn new(db: &Db) -> std::io::Result<Syncs> {
        let inner = Arc::<Inner>::default();
        let (its, db) = (inner.clone(), db.clone());
        let thread =
            std::thread::Builder::new().name("forrest-sync".to_owned()).spawn(move || its.run(&db))?;
        Ok(Syncs { inner, thread: Some(thread) })
    }

    /// Asks for a sync of all changes up to a number, without waiting for it.
    pub(crate) fn ask(&self, change: u64) {
        let mut state = self.inner.lock();
        if state.wanted < change {
            state.wanted = change;
            self.inner.work.notify_one();
        }
    }

    /// Returns when all changes up to a number are durable, or with the reason why they may not be.
    pub(crate) async fn until(&self, change: u64) -> Result<(), String> {
        self.ask(change);
        loop {
            let progress = self.inner.progress.notified();
            {
                let state = self.inner.lock();
                if state.done >= change {
                    return Ok(());
                }
                if state.failed >= change {
                    return Err(state.failure.clone());
                }
            }
            progress.await;
        }
    }

    /// Why the last sync that failed did, if one has.
    pub(crate) fn failure(&self) -> Option<String> {
        let state = self.inner.lock();
        (state.failed > 0).then(|| state.failure.clone())
    }

    /// How many syncs there were.
    pub(crate) fn count(&self) -> u64 {
        self.inner.lock().syncs
    }
}

impl Drop for Syncs {
    fn drop(&mut self) {
        self.inner.lock().is_over = true;
        self.inner.work.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
