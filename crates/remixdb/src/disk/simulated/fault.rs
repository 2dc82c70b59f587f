//! [`Fault`]: which I/O fails, and how. This module decides; the parent module applies it to the files.

use rustix::io::Errno;
use std::io;

/// A failure to be injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The number of the I/O that fails. If the failure does not suit it, the next suitable one fails.
    pub at: u64,
    /// Once, or again and again.
    pub times: Times,
    /// How it fails.
    pub kind: Failure,
}

/// How often a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// Only that call.
    Once,
    /// At every call that it suits; an interruption only at every second, because the caller would repeat it
    /// forever.
    ForEver,
}

/// What can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// A device error, at any call. The call has no effect, except that half of a write is done.
    Eio,
    /// No space is left. Suits creating, reserving, and writing where nothing was reserved; the call has no effect.
    Enospc,
    /// A signal arrives, at any call. The call has no effect, except that a write with a sync is interrupted
    /// in the sync.
    Interrupted,
    /// Half of the bytes are written, rounded down, and nothing is synced. Suits writes of at least two bytes.
    ShortWrite,
    /// Half of the bytes are read, rounded down. Suits reads that would give at least two.
    ShortRead,
    /// The two directories are on different file systems. Suits adding a name in a second directory.
    Exdev,
    /// Too many files are open. Suits calls that open one: creating, opening, listing.
    Emfile,
    /// The system has no memory. Suits every call except syncs and lengths; the call has no effect.
    Enomem,
    /// A sync of a file or of the directory fails, after the bytes that came with it were written.
    SyncFails(Fate),
    /// The same, but never of the directory.
    FileSyncFails(Fate),
}

/// The effect of a failed sync on pending operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is still pending.
    Kept,
    /// They are visible, but treated as durable: no later sync makes them so. This is what Linux does.
    Dropped,
    /// The durable content is visible again.
    Reverted,
}

/// A call that is about to be made.
#[derive(Debug, Clone, Copy)]
pub(super) enum Call {
    List,
    Create,
    Open,
    Link,
    Unlink,
    SyncDirectory,
    Len,
    Read {
        bytes: usize,
    },
    /// `reserved`: the space for the bytes was taken before.
    Submit {
        bytes: usize,
        sync: bool,
        reserved: bool,
    },
    Reserve,
}

/// The course of a call that does not fail outright.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Go {
    /// It succeeds.
    On,
    /// It does half of its work, and returns no error.
    Half,
    /// It writes half of its bytes and fails.
    HalfThenFails,
    /// It writes and is interrupted before its sync is done.
    WritesThenInterrupted,
    /// It writes, and then its sync fails.
    SyncFails(Fate),
    /// The power is cut during the call: its effect is then pending.
    Cut,
}

impl Go {
    /// The result of a call that went this way, apart from syncs.
    pub(super) fn done(self) -> io::Result<()> {
        match self {
            Go::On => Ok(()),
            Go::WritesThenInterrupted => Err(Errno::INTR.into()),
            Go::Half | Go::HalfThenFails | Go::SyncFails(_) | Go::Cut => Err(Errno::IO.into()),
        }
    }
}

/// The faults of a disk, and the count of its I/Os.
#[derive(Debug, Clone, Default)]
pub(super) struct Faults {
    ios: u64,
    struck: u64,
    cut_at: Option<u64>,
    cut: bool,
    planted: Vec<Planted>,
}

#[derive(Debug, Clone)]
struct Planted {
    fault: Fault,
    /// It struck at the last suitable call and skips the next one.
    resting: bool,
}

impl Faults {
    pub(super) fn cut_at(&mut self, io: u64) {
        self.cut_at = Some(io);
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    pub(super) fn plant(&mut self, fault: Fault) {
        self.planted.push(Planted { fault, resting: false });
    }

    pub(super) fn heal(&mut self) {
        self.planted.clear();
        self.cut_at = None;
    }

    pub(super) fn struck(&self) -> u64 {
        self.struck
    }

    pub(super) fn ios(&self) -> u64 {
        self.ios
    }

    /// Counts a call and returns how it goes; an error means that it has no effect.
    pub(super) fn begin(&mut self, call: Call) -> io::Result<Go> {
        if self.cut {
            return Err(Errno::IO.into());
        }
        let io = self.ios;
        self.ios += 1;
        if self.cut_at.is_some_and(|at| at <= io) {
            self.cut = true;
            return Ok(Go::Cut);
        }
        match self.strike(io, call) {
            Some(kind) => {
                self.struck += 1;
                kind.at(call)
            }
            None => Ok(Go::On),
        }
    }

    /// The fault that strikes at a call.
    fn strike(&mut self, io: u64, call: Call) -> Option<Failure> {
        for (place, planted) in self.planted.iter_mut().enumerate() {
            let Fault { at, times, kind } = planted.fault;
            if at > io || !kind.suits(call) {
                continue;
            }
            if planted.resting {
                planted.resting = false;
                continue;
            }
            match times {
                Times::Once => drop(self.planted.remove(place)),
                Times::ForEver => planted.resting = kind == Failure::Interrupted,
            }
            return Some(kind);
        }
        None
    }
}

impl Failure {
    fn suits(self, call: Call) -> bool {
        match self {
            Failure::Eio | Failure::Interrupted => true,
            Failure::Enospc => match call {
                Call::Create | Call::Link | Call::Reserve => true,
                Call::Submit { bytes, reserved, .. } => bytes > 0 && !reserved,
                _ => false,
            },
            Failure::ShortWrite => matches!(call, Call::Submit { bytes, .. } if bytes >= 2),
            Failure::ShortRead => matches!(call, Call::Read { bytes } if bytes >= 2),
            Failure::Exdev => matches!(call, Call::Link),
            Failure::Emfile => matches!(call, Call::Create | Call::Open | Call::List),
            Failure::Enomem => {
                !matches!(call, Call::SyncDirectory | Call::Len | Call::Submit { bytes: 0, .. })
            }
            Failure::SyncFails(_) => matches!(call, Call::SyncDirectory | Call::Submit { sync: true, .. }),
            Failure::FileSyncFails(_) => matches!(call, Call::Submit { sync: true, .. }),
        }
    }

    /// How a call that it suits goes.
    fn at(self, call: Call) -> io::Result<Go> {
        let writes = matches!(call, Call::Submit { .. });
        match self {
            Failure::Eio if writes => Ok(Go::HalfThenFails),
            Failure::Eio => Err(Errno::IO.into()),
            Failure::Enospc => Err(Errno::NOSPC.into()),
            Failure::Interrupted if matches!(call, Call::Submit { sync: true, .. }) => {
                Ok(Go::WritesThenInterrupted)
            }
            Failure::Interrupted => Err(Errno::INTR.into()),
            Failure::ShortWrite | Failure::ShortRead => Ok(Go::Half),
            Failure::Exdev => Err(Errno::XDEV.into()),
            Failure::Emfile => Err(Errno::MFILE.into()),
            Failure::Enomem => Err(Errno::NOMEM.into()),
            Failure::SyncFails(fate) | Failure::FileSyncFails(fate) => Ok(Go::SyncFails(fate)),
        }
    }
}
