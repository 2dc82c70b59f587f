//! [`Fault`]: which I/O fails, and how. Decides; what it means to the files is done in the parent module.

use rustix::io::Errno;
use std::io;

/// A failure that is planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The number of the I/O that fails; one that the failure does not suit is passed over for the next.
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
    /// At every call that it suits; an interruption at every second, or what repeats it would never end.
    ForEver,
}

/// What can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// An error of the device, at any call. Nothing happens, but that half of what was to be written is.
    Eio,
    /// No space is left. Suits what makes files or writes; nothing happens.
    Enospc,
    /// A signal came, at any call. Nothing happens, but that a write with a sync is interrupted while it syncs.
    Interrupted,
    /// Half of the bytes are written, rounded down, and nothing is synced. Suits writes of at least two bytes.
    ShortWrite,
    /// Half of the bytes are read, rounded down. Suits reads that would give at least two.
    ShortRead,
    /// The two directories are of different file systems. Suits what gives a file a name in a second one.
    Exdev,
    /// Too many files are open. Suits what opens one: making, opening, listing.
    Emfile,
    /// A sync of a file or of the directory fails, after the bytes that came with it were written.
    SyncFails(Fate),
}

/// What a failed sync makes of what is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is still pending.
    Kept,
    /// It is seen, but thought to be durable: no later sync makes it so. This is what Linux does.
    Dropped,
    /// What was durable is seen again.
    Reverted,
}

/// What is about to be done.
#[derive(Debug, Clone, Copy)]
pub(super) enum Call {
    List,
    Create,
    Open,
    Link,
    Unlink,
    SyncDirectory,
    Len,
    Read { bytes: usize },
    Submit { bytes: usize, sync: bool },
}

/// What is to become of a call that does not fail outright.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Go {
    /// It is done.
    On,
    /// It does half of what it should, and that is no error.
    Half,
    /// It writes half of what it should and fails.
    HalfThenFails,
    /// It writes and is interrupted before it has synced.
    WritesThenInterrupted,
    /// It writes, and then its sync fails.
    SyncFails(Fate),
    /// The power goes while it is done: it is pending then.
    Cut,
}

impl Go {
    /// What a call ends with that was done as far as this says, syncs left out.
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
    /// It struck at the last call that it suits and lets the next one pass.
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

    /// Counts a call and says how it goes; an error means that nothing is to happen.
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
                Call::Create | Call::Link => true,
                Call::Submit { bytes, .. } => bytes > 0,
                _ => false,
            },
            Failure::ShortWrite => matches!(call, Call::Submit { bytes, .. } if bytes >= 2),
            Failure::ShortRead => matches!(call, Call::Read { bytes } if bytes >= 2),
            Failure::Exdev => matches!(call, Call::Link),
            Failure::Emfile => matches!(call, Call::Create | Call::Open | Call::List),
            Failure::SyncFails(_) => matches!(call, Call::SyncDirectory | Call::Submit { sync: true, .. }),
        }
    }

    /// How a call goes that it suits.
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
            Failure::SyncFails(fate) => Ok(Go::SyncFails(fate)),
        }
    }
}
