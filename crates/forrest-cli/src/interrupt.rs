//! Ctrl-C: the first asks the work under way to stop at its next safe point, the second ends the process.
//!
//! Long work calls [`check`] or [`requested`] every few thousand steps at the latest. Nothing is left behind
//! on the terminal, because whoever draws on it clears it on the way out.

use crate::failure::Failure;
use signal_hook::consts::SIGINT;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

static REQUESTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Installs the handler; from here on the first Ctrl-C only asks.
pub(crate) fn install() -> Result<(), Failure> {
    // The order counts: only a second signal may find the flag set.
    signal_hook::flag::register_conditional_shutdown(SIGINT, 128 + SIGINT, REQUESTED.clone())
        .and_then(|_| signal_hook::flag::register(SIGINT, REQUESTED.clone()))
        .map(drop)
        .map_err(|e| Failure::io("cannot watch for Ctrl-C", e))
}

/// True once somebody asked to stop.
pub(crate) fn requested() -> bool {
    // ORDERING: relaxed, because nothing else is read on the strength of this flag.
    REQUESTED.load(Ordering::Relaxed)
}

/// Fails once somebody asked to stop.
pub(crate) fn check() -> Result<(), Failure> {
    if requested() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Forgets the request: the shell does when it shows its prompt again.
pub(crate) fn forget() {
    REQUESTED.store(false, Ordering::Relaxed);
}
