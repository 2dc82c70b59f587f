//! [`Files`]: the open files of a store, of which a limited number have a descriptor.
//!
//! - A read-only file has a descriptor while it is among the recently read ones. A read that finds none opens
//!   the file again by its name. It is the same file, because file numbers are never reused.
//! - At most `limit` read-only files have a descriptor at any instant. If a thread needs another one while
//!   reads run through all of these, it waits for one of the reads to return. The reads wait for nobody.
//! - A clock selects the descriptor to close: that of a file that was not read since the hand last passed it.
//! - A file that is created here keeps its descriptor until it is dropped, and does not count.
//! - A log is made longer than its content, a piece at a time, so that most syncs need not make the file
//!   system record a new length; without this, a synced change waited half as long again. The part after the
//!   end takes no space, reads as zeros, and is cut off when the log is closed. After a crash it is still
//!   there, and a reader of the log takes it for a torn end.
//! - If a name is removed while the file is read, it goes when the last reader does. A holder of a file can
//!   still read it, as on any Unix, and needs no descriptor for that. Until then the name is neither listed
//!   nor opened again. After a crash such a name is there like any other that was not yet removed.
//! - A read of an open file waits for no other read. It takes a reference to the descriptor, under a lock
//!   that readers share and that is held for a few instructions. (The system does the same again for every
//!   call.)
//! - If the system has no descriptor left, some are closed, and the failed call is repeated once. The limit
//!   is lowered by as many. Otherwise other reading threads would take them before that call does.
//!
//! A reader of a descriptor keeps it open. So no read meets a closed descriptor, or one that was reused for
//! another file. A thread that opens a name while it is being removed either does not find it, or keeps it.

use super::calls::entries;
use super::{Kind, Name, is_lack_of_descriptors};
use forrest_base::lock;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::iter;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

/// Flags for every descriptor.
const ALWAYS: OFlags = OFlags::CLOEXEC.union(OFlags::NOFOLLOW);
/// Additional flags for existing files: a named pipe or a terminal in the place of a file must neither block
/// nor become the controlling terminal before it is refused.
const EXISTING: OFlags = ALWAYS.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// Only the owner reads and writes files.
pub(super) const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Maximum number that is closed at once if the system has no descriptor left: other threads need descriptors
/// as well, and soon again.
const SPARED: usize = 16;
/// A log is extended to twice its length, but by at least `AHEAD_LEAST` and at most `AHEAD_MOST` bytes.
const AHEAD_LEAST: u64 = 64 << 10;
const AHEAD_MOST: u64 = 1 << 20;
/// Not in the ring of those that may be closed.
const NOWHERE: usize = usize::MAX;

/// Where the logs of a store are.
pub(super) enum Place {
    /// Where its other files are.
    Here,
    /// In a directory of their own.
    Apart(OwnedFd),
    /// Nowhere: their directory is lost.
    Lost,
}

/// The directory of a store, and its open files.
pub(super) struct Files {
    directory: OwnedFd,
    logs: Place,
    state: Mutex<FilesState>,
    /// Signalled when a counted descriptor was closed, or may be.
    freed: Condvar,
    /// Held while descriptors are closed because the system has none left.
    sparing: Mutex<()>,
}

#[derive(Debug, Default)]
struct FilesState {
    /// The files whose descriptor may be closed, and the position of the clock's hand among them.
    ring: Vec<Arc<Held>>,
    hand: usize,
    /// Maximum number of counted descriptors.
    limit: usize,
    /// Counted descriptors: of the files in `ring`, of those being opened, and closed ones that a read still
    /// runs through.
    counted: usize,
    /// Number of all file descriptors.
    open: usize,
    /// The read-only files that are held.
    held: BTreeMap<Name, Holders>,
}

/// The readers of a file.
#[derive(Debug, Default)]
struct Holders {
    /// Their number; each has its own descriptor.
    count: usize,
    /// Whether the name is removed with the last of them.
    removed: bool,
}

/// A read-only file.
#[derive(Debug)]
struct Held {
    name: Name,
    /// Locked only to take a reference or to replace it.
    descriptor: RwLock<Option<Arc<Descriptor>>>,
    /// Whether it was read since the hand last passed it.
    used: AtomicBool,
    /// Its position in the ring. Guarded by the lock of the state.
    place: AtomicUsize,
    /// Held by the thread that opens a descriptor for it.
    opening: Mutex<()>,
}

/// Dropping it closes the file, and then frees its seat: in the order of the fields.
#[derive(Debug)]
struct Descriptor {
    file: File,
    _seat: Seat,
}

/// The share of the limit that an open file takes.
#[derive(Debug)]
struct Seat {
    files: Arc<Files>,
    counts: bool,
}

/// A file of the store that is held.
#[derive(Debug)]
pub enum Handle {
    /// It was created here, or is written to again.
    Made(Made),
    /// It existed, and is only read.
    Read(Read),
}

/// A file that was created here.
#[derive(Debug)]
pub struct Made {
    descriptor: Descriptor,
    /// Of logs only.
    ahead: Option<Ahead>,
}

/// The end of the writes to a log, including failed ones, and the length of its file.
#[derive(Debug, Default)]
struct Ahead {
    end: AtomicU64,
    length: AtomicU64,
}

/// A read-only file, which has a descriptor at times.
#[derive(Debug)]
pub struct Read {
    files: Arc<Files>,
    held: Arc<Held>,
}

impl Held {
    #[inline]
    fn descriptor(&self) -> Option<Arc<Descriptor>> {
        self.descriptor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives it a descriptor or takes it away; returns the previous one.
    fn replace(&self, descriptor: Option<Arc<Descriptor>>) -> Option<Arc<Descriptor>> {
        std::mem::replace(&mut *self.descriptor.write().unwrap_or_else(PoisonError::into_inner), descriptor)
    }
}

impl FilesState {
    /// Removes a file from the ring; false if it was not there.
    fn take_out(&mut self, held: &Held) -> bool {
        let place = held.place.swap(NOWHERE, Relaxed);
        if place == NOWHERE {
            return false;
        }
        self.ring.swap_remove(place);
        if let Some(moved) = self.ring.get(place) {
            moved.place.store(place, Relaxed);
        }
        true
    }

    fn put_in(&mut self, held: &Arc<Held>) {
        held.place.store(self.ring.len(), Relaxed);
        self.ring.push(held.clone());
    }

    /// Takes the descriptor of the file whose turn it is; `None` if the ring is empty. The descriptor is
    /// closed when it is dropped, after the last read through it. Drop it outside of the lock.
    fn take_one(&mut self) -> Option<Arc<Descriptor>> {
        // Past each file at most once: in the second round the first file is taken, even if it was read
        // again.
        for _ in 0..self.ring.len() {
            self.hand = if self.hand + 1 < self.ring.len() { self.hand + 1 } else { 0 };
            if !self.ring[self.hand].used.swap(false, Relaxed) {
                break;
            }
        }
        let held = self.ring.get(self.hand)?.clone();
        self.take_out(&held);
        held.replace(None)
    }
}

impl Files {
    /// At most `limit` read-only files of `directory` have a descriptor at once.
    pub(super) fn new(directory: OwnedFd, logs: Place, limit: usize) -> Files {
        let state = Mutex::new(FilesState { limit, ..FilesState::default() });
        Files { directory, logs, state, freed: Condvar::new(), sparing: Mutex::new(()) }
    }

    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// The directory of files of a kind.
    pub(super) fn directory_of(&self, kind: Kind) -> BorrowedFd<'_> {
        match &self.logs {
            Place::Apart(logs) if kind == Kind::Log => logs.as_fd(),
            _ => self.directory.as_fd(),
        }
    }

    /// All directories, that of the store first.
    pub(super) fn directories(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let logs = match &self.logs {
            Place::Apart(logs) => Some(logs.as_fd()),
            Place::Here | Place::Lost => None,
        };
        iter::once(self.directory.as_fd()).chain(logs)
    }

    /// All entries, without names that are there only because the files still have readers. If the logs are elsewhere,
    /// a log in the directory of the store is not one of its files, and what else is in theirs is not either.
    pub(super) fn list(&self) -> io::Result<Vec<String>> {
        let is_log = |entry: &str| Name::parse(entry).is_some_and(|name| name.kind == Kind::Log);
        let mut all = entries(self.directory.as_fd())?;
        if !matches!(self.logs, Place::Here) {
            all.retain(|entry| !is_log(entry));
        }
        if let Place::Apart(logs) = &self.logs {
            all.extend(entries(logs.as_fd())?.into_iter().filter(|entry| is_log(entry)));
        }
        all.retain(|entry| Name::parse(entry).is_none_or(|name| !self.is_removed(name)));
        Ok(all)
    }

    /// Number of files that have a descriptor.
    pub(super) fn open_count(&self) -> usize {
        lock(&self.state).open
    }

    /// Creates a file that must not exist.
    pub(super) fn create(self: &Arc<Self>, name: Name) -> io::Result<Handle> {
        let flags = ALWAYS | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let open = || {
            Ok(rustix::fs::openat(self.directory_of(name.kind), name.to_string(), flags, FILE_MODE)?.into())
        };
        let file = self.sparing(open)?;
        let descriptor = Descriptor { file, _seat: self.seat_beyond() };
        let ahead = (name.kind == Kind::Log).then(Ahead::default);
        Ok(Handle::Made(Made { descriptor, ahead }))
    }

    /// Opens an existing file, to be written to where it has bytes.
    pub(super) fn open_to_write(self: &Arc<Self>, name: Name) -> io::Result<Handle> {
        let file =
            self.sparing(|| open_regular(self.directory_of(name.kind), &name.to_string(), OFlags::RDWR))?;
        let descriptor = Descriptor { file, _seat: self.seat_beyond() };
        Ok(Handle::Made(Made { descriptor, ahead: None }))
    }

    /// Opens an existing file, to be read.
    pub(super) fn open(self: &Arc<Self>, name: Name) -> io::Result<Handle> {
        {
            let mut state = lock(&self.state);
            let holders = state.held.entry(name).or_default();
            if holders.removed {
                return Err(Errno::NOENT.into());
            }
            holders.count += 1;
        }
        let held = Held {
            name,
            descriptor: RwLock::new(None),
            used: AtomicBool::new(false),
            place: AtomicUsize::new(NOWHERE),
            opening: Mutex::new(()),
        };
        let read = Read { files: self.clone(), held: Arc::new(held) };
        self.open_again(&read.held)?;
        Ok(Handle::Read(read))
    }

    /// Removes a name, at once or after the last reader of the file.
    pub(super) fn unlink(&self, name: Name) -> io::Result<()> {
        let mut state = lock(&self.state);
        match state.held.get_mut(&name) {
            Some(holders) if holders.removed => return Err(Errno::NOENT.into()),
            Some(holders) => {
                holders.removed = true;
                return Ok(());
            }
            None => drop(state.held.insert(name, Holders { count: 0, removed: true })),
        }
        drop(state);
        self.remove(name)
    }

    /// Removes a name that has no readers, and that is marked so that none can begin.
    fn remove(&self, name: Name) -> io::Result<()> {
        let removed = rustix::fs::unlinkat(self.directory_of(name.kind), name.to_string(), AtFlags::empty());
        lock(&self.state).held.remove(&name);
        Ok(removed?)
    }

    /// Whether a name is there only because the file still has readers.
    fn is_removed(&self, name: Name) -> bool {
        lock(&self.state).held.get(&name).is_some_and(|holders| holders.removed)
    }

    /// Runs a call that needs a descriptor, and repeats it if the system had none left and some of ours could
    /// be closed.
    pub(super) fn sparing<R>(&self, call: impl Fn() -> io::Result<R>) -> io::Result<R> {
        let lacks = |result: &io::Result<R>| result.as_ref().is_err_and(is_lack_of_descriptors);
        let result = call();
        if !lacks(&result) {
            return result;
        }
        // One thread at a time: one that finds nothing to close may have come just after another that closes
        // everything.
        let _sparing = lock(&self.sparing);
        let result = call();
        if lacks(&result) && self.spare() { call() } else { result }
    }

    /// Closes some descriptors and lowers the limit; false if there were none to close.
    fn spare(&self) -> bool {
        let mut state = lock(&self.state);
        let some: Vec<_> = (0..SPARED).map_while(|_| state.take_one()).collect();
        state.limit = state.limit.min(state.counted.saturating_sub(some.len())).max(1);
        drop(state);
        !some.is_empty()
    }

    /// Sets the limit, and closes what is beyond it. Descriptors in use are closed with the next one that is opened.
    pub(super) fn set_limit(&self, limit: usize) {
        let mut state = lock(&self.state);
        state.limit = limit.max(1);
        let mut closed = Vec::new();
        while state.counted - closed.len() > state.limit
            && let Some(descriptor) = state.take_one()
        {
            closed.push(descriptor);
        }
        drop(state);
        drop(closed);
        self.freed.notify_all();
    }

    /// A seat for a counted descriptor; closes others for it.
    fn seat(self: &Arc<Self>) -> Seat {
        let mut state = lock(&self.state);
        while state.counted >= state.limit {
            match state.take_one() {
                Some(descriptor) => {
                    drop(state);
                    drop(descriptor);
                    state = lock(&self.state);
                }
                // INVARIANT: each counted descriptor is then being opened or read through, by a thread that
                // waits for no other. Both signal `freed` at the end.
                None => state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
        state.counted += 1;
        state.open += 1;
        Seat { files: self.clone(), counts: true }
    }

    /// A seat for a descriptor that does not count.
    fn seat_beyond(self: &Arc<Self>) -> Seat {
        lock(&self.state).open += 1;
        Seat { files: self.clone(), counts: false }
    }

    pub(super) fn open_file(&self, name: Name) -> io::Result<File> {
        self.sparing(|| open_regular(self.directory_of(name.kind), &name.to_string(), OFlags::RDONLY))
            .inspect(|file| advise(file, name.kind))
    }

    /// Opens a descriptor for a file that has none, unless another thread was faster.
    #[cold]
    fn open_again(self: &Arc<Self>, held: &Arc<Held>) -> io::Result<Arc<Descriptor>> {
        let _opening = lock(&held.opening);
        if let Some(descriptor) = held.descriptor() {
            return Ok(descriptor);
        }
        let seat = self.seat();
        let descriptor = Arc::new(Descriptor { file: self.open_file(held.name)?, _seat: seat });
        held.replace(Some(descriptor.clone()));
        lock(&self.state).put_in(held);
        self.freed.notify_all();
        Ok(descriptor)
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Files")
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = lock(&self.files.state);
        state.open -= 1;
        if self.counts {
            state.counted -= 1;
            self.files.freed.notify_all();
        }
    }
}

impl Drop for Read {
    fn drop(&mut self) {
        let Read { files, held } = self;
        let mut state = lock(&files.state);
        state.take_out(held);
        let holders = state.held.get_mut(&held.name).expect("it is held here");
        holders.count -= 1;
        let (is_last, removed) = (holders.count == 0, holders.removed);
        if is_last && !removed {
            state.held.remove(&held.name);
        }
        drop(state);
        held.replace(None);
        if is_last && removed {
            // If that fails, the name is removed when the store is opened.
            let _ = files.remove(held.name);
        }
    }
}

impl Made {
    /// Makes a log long enough for writes up to `end`, and somewhat longer.
    fn reach(&self, end: u64) {
        let Some(Ahead { end: reached, length }) = &self.ahead else { return };
        // ORDERING: only one thread at a time writes to a log or drops it.
        reached.store(end.max(reached.load(Relaxed)), Relaxed);
        if end <= length.load(Relaxed) {
            return;
        }
        let longer = (end + end.clamp(AHEAD_LEAST, AHEAD_MOST)).next_multiple_of(AHEAD_LEAST);
        // If that fails, the write extends the file as needed.
        if self.descriptor.file.set_len(longer).is_ok() {
            length.store(longer, Relaxed);
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(Ahead { end, length }) = &mut self.ahead
            && *end.get_mut() < *length.get_mut()
        {
            let _ = self.descriptor.file.set_len(*end.get_mut());
        }
    }
}

impl Handle {
    /// Prepares for a write that ends at `end`.
    pub(super) fn reach(&self, end: u64) {
        if let Handle::Made(made) = self {
            made.reach(end);
        }
    }

    /// Runs `call` on the descriptor of the file if it has one now.
    pub(super) fn if_open(&self, call: impl FnOnce(&File)) {
        match self {
            Handle::Made(made) => call(&made.descriptor.file),
            Handle::Read(Read { held, .. }) => {
                if let Some(descriptor) = held.descriptor() {
                    call(&descriptor.file);
                }
            }
        }
    }

    /// Runs `call` on the descriptor of the file, which stays open until that returns.
    #[inline]
    pub(super) fn with<R>(&self, call: impl FnOnce(&File) -> io::Result<R>) -> io::Result<R> {
        match self {
            Handle::Made(made) => call(&made.descriptor.file),
            Handle::Read(Read { files, held }) => {
                if let Some(descriptor) = held.descriptor() {
                    // ORDERING: a hint. It is loaded first, so that readers of one file do not all write to
                    // one cache line.
                    if !held.used.load(Relaxed) {
                        held.used.store(true, Relaxed);
                    }
                    return call(&descriptor.file);
                }
                call(&files.open_again(held)?.file)
            }
        }
    }
}

/// Tables, and orders over them, are read at random. Who reads them in sequence says so ([`Disk::will_read`]). The
/// system's own reading ahead takes pages beside each other for a sequence.
///
/// [`Disk::will_read`]: super::Disk::will_read
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn advise(file: &File, kind: Kind) {
    if matches!(kind, Kind::Table | Kind::Remix) {
        // A hint: if it fails, more is read than is needed.
        let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Random);
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn advise(_: &File, _: Kind) {}

/// Opens a file, or with `CREATE` creates it if it is missing. Anything but a regular file is refused.
pub(super) fn open_regular(directory: BorrowedFd<'_>, name: &str, flags: OFlags) -> io::Result<File> {
    let file: File = rustix::fs::openat(directory, name, EXISTING | flags, FILE_MODE)?.into();
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::path::{Path, PathBuf};
    use std::thread;
    use tempfile::TempDir;

    /// A directory with tables 0 to `count`, each of which has its number in it.
    fn directory(count: u64) -> (TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        for number in 0..count {
            std::fs::write(path.join(Name::table(number).to_string()), number.to_le_bytes()).unwrap();
        }
        (directory, path)
    }

    fn files(path: &Path, limit: usize) -> Arc<Files> {
        Arc::new(Files::new(File::open(path).unwrap().into(), Place::Here, limit))
    }

    fn number_in(file: &File) -> io::Result<u64> {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn number(handle: &Handle) -> u64 {
        handle.with(number_in).unwrap()
    }

    fn read_all(handles: &[Handle]) {
        for handle in handles {
            number(handle);
        }
    }

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }

    /// Number of descriptors that the process has of files in a directory, if the system reports it.
    fn descriptors(path: &Path) -> Option<usize> {
        let all = std::fs::read_dir("/proc/self/fd").ok()?;
        let all = all.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        Some(all.filter(|link| link != path && link.starts_with(path)).count())
    }

    #[test]
    fn a_log_is_longer_than_it_is_while_it_is_written() {
        let (_keep, path) = directory(0);
        let files = files(&path, 1);
        let len = |name: Name| std::fs::metadata(path.join(name.to_string())).unwrap().len();
        let write = |handle: &Handle, bytes: &[u8], at: u64| {
            handle.reach(at + bytes.len() as u64);
            handle.with(|file| file.write_all_at(bytes, at)).unwrap();
        };
        for (name, longer) in [(Name::log(1), true), (Name::table(2), false)] {
            let handle = files.create(name).unwrap();
            let mut end = 0;
            for size in [64, 137, 137, 500_000, 3_000_000] {
                write(&handle, &vec![7; size], end);
                end += size as u64;
                assert_eq!(len(name) > end, longer, "{name}");
                assert!(len(name) <= end + AHEAD_MOST + AHEAD_LEAST);
            }
            drop(handle);
            assert_eq!(len(name), end, "{name}");
            assert!(std::fs::read(path.join(name.to_string())).unwrap().iter().all(|&byte| byte == 7));
        }
    }

    #[test]
    fn any_number_of_files_is_read_through_few_descriptors() {
        for limit in [1, 2, 4, 50] {
            let (_keep, path) = directory(200);
            let files = files(&path, limit);
            let handles: Vec<_> = (0..200).map(|number| files.open(Name::table(number)).unwrap()).collect();
            let mut state = limit as u64;
            for _ in 0..2_000 {
                let wanted = random(&mut state) % 200;
                assert_eq!(number(&handles[wanted as usize]), wanted);
                assert!(files.open_count() <= limit);
                assert!(descriptors(&path).is_none_or(|count| count <= limit));
            }
            assert_eq!(files.open_count(), limit);
            drop(handles);
            assert_eq!(files.open_count(), 0);
            assert!(descriptors(&path).is_none_or(|count| count == 0));
            assert!(lock(&files.state).held.is_empty());
        }
    }

    #[test]
    fn what_is_read_again_stays_open() {
        let (_keep, path) = directory(100);
        let files = files(&path, 3);
        let often = files.open(Name::table(0)).unwrap();
        let opened = |handle: &Handle| match handle {
            Handle::Read(read) => read.held.descriptor().as_ref().map(Arc::as_ptr),
            Handle::Made(_) => unreachable!("it was there"),
        };
        let first = opened(&often);
        let mut others = Vec::new();
        for name in (1..100).map(Name::table) {
            number(&often);
            others.push(files.open(name).unwrap());
        }
        for other in &others {
            number(&often);
            number(other);
        }
        assert_eq!(opened(&often), first);
        read_all(&others);
        assert_ne!(opened(&often), first);
    }

    #[test]
    fn a_file_whose_name_goes_stays_readable() {
        let (_keep, path) = directory(40);
        let files = files(&path, 1);
        let is_there = |name: Name| path.join(name.to_string()).exists();
        let mut handles: Vec<_> =
            (0..40).map(|number| files.open(Name::table(number / 2)).unwrap()).collect();
        for name in (0..20).map(Name::table) {
            assert!(!files.is_removed(name));
            files.unlink(name).unwrap();
            assert!(files.is_removed(name));
            assert_eq!(files.unlink(name).unwrap_err().kind(), io::ErrorKind::NotFound);
            assert_eq!(files.open(name).unwrap_err().kind(), io::ErrorKind::NotFound);
        }
        for turn in [0..40, 0..40] {
            for (at, handle) in turn.zip(&handles) {
                assert_eq!((number(handle), files.open_count()), (at / 2, 1));
            }
        }
        // Each is held twice; the name goes with the second.
        while let Some(handle) = handles.pop() {
            let name = Name::table(handles.len() as u64 / 2);
            drop(handle);
            assert_eq!(
                (is_there(name), files.is_removed(name)),
                (handles.len() % 2 == 1, handles.len() % 2 == 1)
            );
        }
        files.unlink(Name::table(20)).unwrap();
        assert!(!is_there(Name::table(20)), "nobody reads it");
        assert_eq!(files.unlink(Name::table(0)).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(lock(&files.state).held.is_empty());
    }

    #[test]
    fn nothing_is_opened_for_a_hint() {
        let (_keep, path) = directory(2);
        let files = files(&path, 1);
        let handles = [0, 1].map(|number| files.open(Name::table(number)).unwrap());
        let seen = |handle: &Handle| {
            let seen = AtomicU64::new(9);
            handle.if_open(|file| seen.store(number_in(file).unwrap(), Relaxed));
            seen.into_inner()
        };
        assert_eq!((seen(&handles[0]), seen(&handles[1])), (9, 1));
        assert_eq!((number(&handles[0]), seen(&handles[0]), seen(&handles[1])), (0, 0, 9));
        let made = files.create(Name::table(2)).unwrap();
        made.with(|file| file.write_all_at(&7_u64.to_le_bytes(), 0)).unwrap();
        assert_eq!(seen(&made), 7);
    }

    #[test]
    fn what_cannot_be_opened_again_is_an_error() {
        let (_keep, path) = directory(3);
        let files = files(&path, 1);
        let handles: Vec<_> = (0..3).map(|number| files.open(Name::table(number)).unwrap()).collect();
        std::fs::remove_file(path.join(Name::table(0).to_string())).unwrap();
        assert_eq!(handles[0].with(number_in).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::create_dir(path.join(Name::table(0).to_string())).unwrap();
        assert_eq!(handles[0].with(number_in).unwrap_err().to_string(), "not a regular file");
        assert_eq!(files.open(Name::table(9)).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(files.open_count(), 0);
        assert_eq!((number(&handles[1]), number(&handles[2])), (1, 2));
        drop(handles);
        assert!(lock(&files.state).held.is_empty());
    }

    #[test]
    fn files_that_are_made_do_not_count_and_stay_open() {
        let (_keep, path) = directory(1);
        let files = files(&path, 1);
        let made: Vec<_> = (1..10).map(|number| files.create(Name::table(number)).unwrap()).collect();
        let read = files.open(Name::table(0)).unwrap();
        for (handle, name) in made.iter().zip(1_u64..) {
            handle.with(|file| file.write_all_at(&name.to_le_bytes(), 0)).unwrap();
            assert_eq!((number(&read), number(handle)), (0, name));
            files.unlink(Name::table(name)).unwrap();
        }
        assert_eq!(files.open_count(), 10);
        assert_eq!(made.iter().map(number).sum::<u64>(), 45);
        drop(made);
        assert_eq!(files.open_count(), 1);
    }

    #[test]
    fn a_descriptor_is_closed_when_it_is_not_read_through_any_more() {
        let (_keep, path) = directory(9);
        let files = files(&path, 2);
        let handles: Vec<_> = (0..9).map(|number| files.open(Name::table(number)).unwrap()).collect();
        let read = handles[0].with(|file| {
            // All others are read, and one of them takes the descriptor of this one.
            (1..9).for_each(|other| assert_eq!(number(&handles[other as usize]), other));
            assert_eq!(files.open_count(), 2);
            number_in(file)
        });
        assert_eq!(read.unwrap(), 0);
        assert_eq!(files.open_count(), 1);
    }

    #[test]
    fn who_finds_all_read_through_waits() {
        let (_keep, path) = directory(4);
        let files = files(&path, 1);
        let handles: Vec<_> = (0..4).map(|number| files.open(Name::table(number)).unwrap()).collect();
        for _ in 0..100 {
            thread::scope(|scope| {
                let others = handles[0].with(|file| {
                    let others: Vec<_> =
                        handles[1..].iter().map(|other| scope.spawn(|| number(other))).collect();
                    // Until one of them has closed the descriptor that is read through here.
                    while !lock(&files.state).ring.is_empty() {
                        thread::yield_now();
                    }
                    assert_eq!((number_in(file)?, files.open_count()), (0, 1));
                    Ok(others)
                });
                let read: u64 = others.unwrap().into_iter().map(|other| other.join().unwrap()).sum();
                assert_eq!(read, 6);
            });
            assert_eq!(files.open_count(), 1);
        }
    }

    #[test]
    fn threads_read_what_they_ask_for() {
        const FILES: u64 = 24;
        for limit in [1, 2, 5] {
            let (_keep, path) = directory(FILES);
            let files = files(&path, limit);
            let handles: Vec<_> = (0..FILES).map(|number| files.open(Name::table(number)).unwrap()).collect();
            let next = AtomicU64::new(FILES);
            thread::scope(|scope| {
                for thread in 0..4 {
                    let (files, path, handles, next) = (&files, &path, &handles, &next);
                    scope.spawn(move || {
                        let mut state = thread + 10 * limit as u64;
                        for turn in 0..2_000 {
                            let wanted = random(&mut state) % FILES;
                            assert_eq!(number(&handles[wanted as usize]), wanted);
                            let counted = lock(&files.state).counted;
                            assert!(counted <= limit, "{counted} of {limit}");
                            if turn % 8 == thread {
                                // A file that comes and goes, and whose name goes first.
                                let own = next.fetch_add(1, Relaxed);
                                let name = Name::table(own);
                                std::fs::write(path.join(name.to_string()), own.to_le_bytes()).unwrap();
                                let own_handle = files.open(name).unwrap();
                                assert_eq!(number(&handles[(own % FILES) as usize]), own % FILES);
                                files.unlink(name).unwrap();
                                assert_eq!(number(&own_handle), own);
                                drop(own_handle);
                                assert!(!path.join(name.to_string()).exists());
                            }
                        }
                    });
                }
            });
            drop(handles);
            let state = lock(&files.state);
            assert_eq!((state.counted, state.open, state.ring.len(), state.held.len()), (0, 0, 0, 0));
        }
    }

    #[test]
    fn where_there_are_no_descriptors_some_are_closed_and_it_is_tried_once_more() {
        let (_keep, path) = directory(40);
        for errno in [Errno::MFILE, Errno::NFILE] {
            let files = files(&path, 30);
            let handles: Vec<_> = (0..40).map(|number| files.open(Name::table(number)).unwrap()).collect();
            assert!(files.sparing(|| Err::<(), _>(Errno::IO.into())).is_err());
            assert_eq!(files.open_count(), 30, "another error is not one of descriptors");
            let calls = AtomicU64::new(0);
            let call = || match calls.fetch_add(1, Relaxed) {
                0 | 1 => Err(errno.into()),
                _ => Ok(files.open_count()),
            };
            assert_eq!(files.sparing(call).unwrap(), 30 - SPARED);
            read_all(&handles);
            assert_eq!(files.open_count(), 30 - SPARED, "it does with fewer");
            let calls = AtomicU64::new(0);
            let lacking = || {
                calls.fetch_add(1, Relaxed);
                Err::<(), _>(errno.into())
            };
            assert_eq!(files.sparing(lacking).unwrap_err().raw_os_error(), Some(errno.raw_os_error()));
            assert_eq!((calls.load(Relaxed), files.open_count()), (3, 0));
            // There is nothing left to be closed.
            assert!(files.sparing(lacking).is_err());
            assert_eq!(calls.load(Relaxed), 5);
            read_all(&handles);
            assert_eq!(files.open_count(), 1);
        }
    }
}
