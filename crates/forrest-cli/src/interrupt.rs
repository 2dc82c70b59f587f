//! Ctrl-C: the first asks the running work to stop at its next safe point, the second ends the process.
//!
//! Long work calls [`check`] every few thousand steps at the latest. The terminal stays clean, because the code that
//! draws on it clears it when it ends. A wait for input ends soon after Ctrl-C, with an error, so that what was read is
//! kept. A wait for a reader of the output has no safe point. It is marked by [`waiting`], and the first Ctrl-C during
//! it ends the process.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

static REQUESTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
static WAITING: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// How long a read waits for input before it looks for Ctrl-C.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Exit code after Ctrl-C: 128 and the number of the signal, as shells have it.
pub(crate) const CODE: u8 = 130;

/// The user pressed Ctrl-C.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interrupted;

/// Installs the handler; from here on the first Ctrl-C only asks.
pub(crate) fn install() -> io::Result<()> {
    let code = i32::from(CODE);
    // The order counts: only a second signal may find the flag set.
    flag::register_conditional_shutdown(SIGINT, code, WAITING.clone())
        .and_then(|_| flag::register_conditional_shutdown(SIGINT, code, REQUESTED.clone()))
        .and_then(|_| flag::register(SIGINT, REQUESTED.clone()))
        .map(drop)
}

/// Fails after Ctrl-C.
pub(crate) fn check() -> Result<(), Interrupted> {
    // ORDERING: relaxed, because no other read depends on this flag.
    if REQUESTED.load(Ordering::Relaxed) { Err(Interrupted) } else { Ok(()) }
}

/// Forgets the request: the shell does when it shows its prompt again.
pub(crate) fn forget() {
    REQUESTED.store(false, Ordering::Relaxed);
}

/// Runs `wait`, which may wait for another process or the user.
fn waiting<T>(wait: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    WAITING.store(true, Ordering::SeqCst);
    // A request that came before the mark would otherwise be noticed only after the wait.
    let result = match check() {
        Ok(()) => wait(),
        Err(_) => Err(interrupted()),
    };
    WAITING.store(false, Ordering::SeqCst);
    result
}

fn interrupted() -> io::Error {
    io::Error::other("interrupted")
}

/// Opens a file to read it. A named pipe waits for its writer.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    waiting(|| File::open(path))
}

/// A stream on which reads and writes may wait for another process or the user. It has no buffer of its own.
pub(crate) struct Patient<S>(pub(crate) S);

impl<R: Read + AsFd> Read for Patient<R> {
    /// Fails soon after Ctrl-C.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            check().map_err(|_| interrupted())?;
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&LOOK)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return self.0.read(buf),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl<W: Write> Write for Patient<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        waiting(|| self.0.write(buf))
    }

    fn flush(&mut self) -> io::Result<()> {
        waiting(|| self.0.flush())
    }
}
