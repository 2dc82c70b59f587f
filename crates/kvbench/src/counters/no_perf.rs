//! In place of perf events, where the system has none.

use super::event::Event;

/// There is none.
pub(super) enum Counter {}

const WHY: &str = "there are no perf events on this system";

/// Why there is none.
pub(super) fn open(_: Event) -> Result<Counter, String> {
    Err(WHY.to_owned())
}

/// Why there is none.
pub(super) fn open_of_system(_: Event) -> Result<Counter, String> {
    Err(WHY.to_owned())
}

impl Counter {
    /// There is none to be asked.
    pub(super) fn why_not_rdpmc(&self) -> Option<String> {
        match *self {}
    }

    /// There is none to be read.
    pub(super) fn now(&mut self) -> Option<u64> {
        match *self {}
    }
}
