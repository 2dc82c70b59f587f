//! [`Tasks`]: what the holder of the manifest does now, and since when. Writers may have to wait for that, and an error
//! says so.

use forrest_base::lock;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// See the head of the file.
#[derive(Default)]
pub(crate) struct Tasks(Mutex<Option<(&'static str, Instant)>>);

/// A task under way. It ends when this is dropped.
pub(crate) struct Task<'t>(&'t Tasks);

impl Tasks {
    /// Begins a task. There is one at a time, that of the holder of the manifest.
    pub(crate) fn begin(&self, what: &'static str) -> Task<'_> {
        *lock(&self.0) = Some((what, Instant::now()));
        Task(self)
    }

    /// The task under way, and for how long it is.
    pub(crate) fn now(&self) -> Option<(&'static str, Duration)> {
        lock(&self.0).map(|(what, since)| (what, since.elapsed()))
    }
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        *lock(&self.0.0) = None;
    }
}
