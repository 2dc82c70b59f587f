//! [`Simulated`]: the disk under tests, in memory and deterministic.
//!
//! It separates the state that a process sees from the state that survives a power cut. A write is *pending*
//! until its file is synced. A name that is created or removed is pending until the directory is synced.
//! Syncing one has no effect on the other. Pending operations are in one list, in the order in which they
//! were done. A power cut keeps any part of them ([`crash_states`](Simulated::crash_states)), the death of a
//! process all of them ([`kill`](Simulated::kill)).
//!
//! Names of logs are in a directory of their own: syncing one of the two has no effect on the names in the other.
//!
//! Every call of the trait is one I/O. I/Os are numbered from 0, so a test can cut the power
//! ([`cut_power_at`](Simulated::cut_power_at)) or inject a failure ([`fail`](Simulated::fail)) at each of
//! them in turn. Between runs, files can be damaged.
//!
//! It is harsher than most file systems: a synced file may lose its name, and any part of the pending writes
//! of a file may arrive. It does not take time, limit space or open files, or lose synced data. A file may be
//! written only through the handle that created it, or to be written again, as on the real disk.
//!
//! [`crash`] makes the crash states, [`fault`] decides which call fails.

mod crash;
mod fault;
mod random;
#[cfg(test)]
mod tests;

pub use crash::CrashStates;
pub use fault::{Failure, Fate, Fault, Times};

use super::{Disk, Hold, Kind, Name, Write};
use fault::{Call, Go};
use forrest_engine::Result;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A longer file is a bug of its writer, which is reported before the memory is used up.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// The number of files that were made on all disks.
static CLOCK: AtomicU64 = AtomicU64::new(1);

/// A directory of files in memory. A clone is another handle to the same directory.
#[derive(Clone, Default)]
pub struct Simulated {
    state: Arc<Mutex<SimulatedState>>,
    /// What happens in the middle of calls of this handle.
    #[cfg(test)]
    watch: Option<Arc<dyn Watch>>,
}

/// What a test does in the middle of calls, where another disk would be slow or wrong. A disk of another type would do
/// as well, and the whole store would be compiled for it once more.
#[cfg(test)]
pub(crate) trait Watch: Send + Sync {
    /// The names were listed.
    fn listed(&self, _names: &mut Vec<String>) {}

    /// A file was made. The call fails with an error.
    fn created(&self) -> io::Result<()> {
        Ok(())
    }

    /// A file of this kind is about to be synced.
    fn syncs(&self, _kind: Kind) {}

    /// These bytes of a file were read, from an offset on.
    fn read(&self, _name: Name, _offset: u64, _bytes: &mut [u8]) {}
}

/// An open file. It stays readable when its name is removed.
pub struct File {
    owner: Arc<Mutex<SimulatedState>>,
    inode: usize,
    writable: bool,
}

#[derive(Clone, Default)]
struct SimulatedState {
    /// All files that ever existed, by number.
    inodes: Vec<Inode>,
    /// The names as the process sees them.
    seen: BTreeMap<Name, usize>,
    /// The names that surely survive a power cut.
    durable: BTreeMap<Name, usize>,
    /// Operations that are not durable yet, in order.
    pending: Vec<Pending>,
    /// Bytes that were read, and written.
    read: u64,
    written: u64,
    /// Pages of files that were announced and not read since, and the most there were of them.
    #[cfg(test)]
    announced: std::collections::BTreeSet<(usize, u64)>,
    #[cfg(test)]
    announced_most: usize,
    /// Reads of pages that were not announced.
    #[cfg(test)]
    waits: usize,
    /// Which I/O fails.
    faults: fault::Faults,
    /// Bytes that its files can take together; `None` for any number.
    capacity: Option<u64>,
    /// The same for logs, if they have a device of their own.
    log_capacity: Option<u64>,
    /// The wall clock, in milliseconds since 1970.
    now_ms: u64,
    /// Whether nothing can be changed.
    is_frozen: bool,
    /// The manifests whose state is held, each with the number of the holders.
    held: BTreeMap<Name, usize>,
    /// Bytes of files that cannot be read, and how many reads began there.
    unreadable: Vec<(Name, Range<u64>)>,
    refused: u64,
}

/// Somebody who holds the state of a manifest.
struct Held {
    state: Arc<Mutex<SimulatedState>>,
    manifest: Name,
}

impl Drop for Held {
    fn drop(&mut self) {
        let Ok(mut state) = self.state.lock() else { return };
        if let Some(count) = state.held.get_mut(&self.manifest) {
            *count -= 1;
            if *count == 0 {
                state.held.remove(&self.manifest);
            }
        }
    }
}

#[derive(Clone)]
struct Inode {
    /// The name under which it was created.
    name: Name,
    /// The content that reads return.
    seen: Arc<Vec<u8>>,
    /// The content that surely survives a power cut.
    durable: Arc<Vec<u8>>,
    /// The length up to which space was taken.
    reserved: u64,
    /// When it was made, by a clock that all disks share.
    made: u64,
}

impl Inode {
    /// Bytes that it takes on the device.
    fn taken(&self) -> u64 {
        self.reserved.max(self.seen.len() as u64)
    }
}

#[derive(Clone)]
enum Pending {
    Write { inode: usize, offset: usize, bytes: Arc<[u8]> },
    Create { name: Name, inode: usize },
    Unlink { name: Name },
}

impl Pending {
    fn is_of(&self, file: usize) -> bool {
        matches!(self, Pending::Write { inode, .. } if *inode == file)
    }

    fn is_name(&self) -> bool {
        !matches!(self, Pending::Write { .. })
    }

    /// Whether it is about a name in the directory of files of this kind.
    fn is_name_with(&self, of: Kind) -> bool {
        match self {
            Pending::Write { .. } => false,
            Pending::Create { name, .. } | Pending::Unlink { name } => is_together(name.kind, of),
        }
    }
}

/// Whether files of two kinds have one directory.
fn is_together(a: Kind, b: Kind) -> bool {
    (a == Kind::Log) == (b == Kind::Log)
}

#[cfg(test)]
impl SimulatedState {
    fn count_wait(&mut self, inode: usize, offset: u64) {
        let is_announced = self.announced.remove(&(inode, offset / crate::page::BYTES as u64));
        self.waits += usize::from(!is_announced);
    }
}

impl Simulated {
    /// An empty directory.
    pub fn new() -> Simulated {
        Simulated::default()
    }

    /// An empty directory on a device on which files take at most this many bytes together.
    pub fn with_capacity(bytes: u64) -> Simulated {
        SimulatedState { capacity: Some(bytes), ..SimulatedState::default() }.into()
    }

    /// Another handle, whose calls are watched.
    #[cfg(test)]
    pub(crate) fn watched(&self, watch: Arc<dyn Watch>) -> Simulated {
        Simulated { state: Arc::clone(&self.state), watch: Some(watch) }
    }

    /// From now on its files take at most this many bytes together; `None` for any number.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock().capacity = bytes;
    }

    /// From now on logs have a device of their own, on which they take at most this many bytes together.
    pub fn set_log_capacity(&self, bytes: u64) {
        self.lock().log_capacity = Some(bytes);
    }

    /// Sets the wall clock, which stands still, at first at 0.
    pub fn set_now_ms(&self, ms: u64) {
        self.lock().now_ms = ms;
    }

    /// From now on nothing can be changed.
    pub fn freeze(&self) {
        self.lock().is_frozen = true;
    }

    /// A directory of these files, all durable.
    pub fn from_files(files: impl IntoIterator<Item = (Name, Vec<u8>)>) -> Simulated {
        Simulated::from_images(files.into_iter().map(|(name, bytes)| (name, Arc::new(bytes))))
    }

    fn from_images(files: impl IntoIterator<Item = (Name, Arc<Vec<u8>>)>) -> Simulated {
        let mut state = SimulatedState::default();
        for (name, bytes) in files {
            state.settle(name, bytes);
        }
        state.into()
    }

    /// Cuts the power at the I/O of this number. It is done but not yet durable; it and all later ones fail,
    /// and the later ones have no effect.
    pub fn cut_power_at(&self, io: u64) {
        self.lock().faults.cut_at(io);
    }

    /// Whether the power was cut.
    pub fn is_cut(&self) -> bool {
        self.lock().faults.is_cut()
    }

    /// Injects a failure. There may be several; at each call the first that suits it strikes.
    pub fn fail(&self, fault: Fault) {
        self.lock().faults.plant(fault);
    }

    /// How many times a fault struck.
    pub fn struck(&self) -> u64 {
        self.lock().faults.struck()
    }

    /// Drops what it has in memory, as a system does that needs the memory: reads return what the device has, and what
    /// is still to be written.
    pub fn evict(&self) {
        let mut state = self.lock();
        let SimulatedState { inodes, pending, .. } = &mut *state;
        inodes.iter_mut().for_each(|inode| inode.seen = Arc::clone(&inode.durable));
        for write in pending {
            if let Pending::Write { inode, offset, bytes } = write {
                put(Arc::make_mut(&mut inodes[*inode].seen), *offset, bytes);
            }
        }
    }

    /// From now on these bytes of a file cannot be read.
    pub fn make_unreadable(&self, name: Name, bytes: Range<u64>) {
        self.lock().unreadable.push((name, bytes));
    }

    /// Number of reads that have failed because their first byte cannot be read.
    pub fn refused_reads(&self) -> u64 {
        self.lock().refused
    }

    /// Removes all faults, and a power cut that has not happened yet. Their effects stay. All bytes can be read.
    pub fn heal(&self) {
        let mut state = self.lock();
        state.faults.heal();
        state.unreadable.clear();
    }

    /// Number of reads of pages that were not announced, and the most pages that were announced and not read yet, since
    /// the last call.
    #[cfg(test)]
    pub(crate) fn take_waits(&self) -> (usize, usize) {
        let mut state = self.lock();
        state.announced.clear();
        (std::mem::take(&mut state.waits), std::mem::take(&mut state.announced_most))
    }

    /// Number of bytes that were read so far.
    pub fn bytes_read(&self) -> u64 {
        self.lock().read
    }

    /// Number of bytes that were written so far.
    pub fn bytes_written(&self) -> u64 {
        self.lock().written
    }

    /// Number of I/Os that were done or tried so far; those after a power cut do not count.
    pub fn ios(&self) -> u64 {
        self.lock().faults.ios()
    }

    /// Number of writes and changes of names that a power cut could lose.
    pub fn pending(&self) -> usize {
        self.lock().pending.len()
    }

    /// The disk that the next process finds if this one dies now: everything written, pending as it is. No
    /// faults.
    pub fn kill(&self) -> Simulated {
        SimulatedState { faults: fault::Faults::default(), held: BTreeMap::new(), ..self.lock().clone() }
            .into()
    }

    /// The files as reads return them, by name.
    pub fn files(&self) -> Vec<(Name, Vec<u8>)> {
        let state = self.lock();
        state.seen.iter().map(|(&name, &inode)| (name, state.inodes[inode].seen.to_vec())).collect()
    }

    /// Replaces the bytes of a file, durably; creates it if it is missing. Holders of the file see the new
    /// bytes.
    pub fn replace(&self, name: Name, bytes: Vec<u8>) {
        self.lock().settle(name, Arc::new(bytes));
    }

    /// Removes a file, durably. True if it existed.
    pub fn remove(&self, name: Name) -> bool {
        let mut state = self.lock();
        state.forget_name(name);
        state.durable.remove(&name);
        state.seen.remove(&name).is_some()
    }

    /// Flips a bit of a file, durably; all content of the file is then durable.
    ///
    /// # Panics
    /// If there is no such file or byte.
    pub fn flip(&self, name: Name, byte: usize, bit: u32) {
        let mut state = self.lock();
        let inode = state.seen[&name];
        let mut bytes = state.inodes[inode].seen.to_vec();
        bytes[byte] ^= 1 << bit;
        state.settle(name, Arc::new(bytes));
    }

    fn lock(&self) -> MutexGuard<'_, SimulatedState> {
        self.state.lock().expect("a test panicked inside of the simulated disk")
    }

    /// The state, after checking that the file belongs to this disk and not to one before a crash.
    fn lock_for(&self, file: &File) -> MutexGuard<'_, SimulatedState> {
        assert!(Arc::ptr_eq(&self.state, &file.owner), "a file of another disk");
        self.lock()
    }

    fn handle(&self, inode: usize, writable: bool) -> File {
        File { owner: Arc::clone(&self.state), inode, writable }
    }
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        let lengths =
            state.seen.iter().map(|(name, &inode)| (name.to_string(), state.inodes[inode].seen.len()));
        f.debug_map().entries(lengths).finish()
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").field("inode", &self.inode).finish_non_exhaustive()
    }
}

impl From<SimulatedState> for Simulated {
    fn from(state: SimulatedState) -> Simulated {
        Simulated {
            state: Arc::new(Mutex::new(state)),
            #[cfg(test)]
            watch: None,
        }
    }
}

impl Disk for Simulated {
    type File = File;

    fn check_writable(&self) -> Result<()> {
        if self.lock().is_frozen {
            return Err(super::read_only("the simulated disk is read-only"));
        }
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.lock();
        state.faults.begin(Call::List)?.done()?;
        // A real directory has this file too.
        let lock = "LOCK".to_owned();
        #[cfg_attr(not(test), expect(unused_mut))]
        let mut names = state.seen.keys().map(Name::to_string).chain([lock]).collect();
        #[cfg(test)]
        if let Some(watch) = &self.watch {
            watch.listed(&mut names);
        }
        Ok(names)
    }

    fn create(&self, name: Name) -> io::Result<File> {
        let mut state = self.lock();
        let go = state.faults.begin(Call::Create)?;
        state.check_frozen()?;
        if state.seen.contains_key(&name) {
            return Err(Errno::EXIST.into());
        }
        let inode = state.add(name, Arc::default());
        state.seen.insert(name, inode);
        state.pending.push(Pending::Create { name, inode });
        go.done()?;
        #[cfg(test)]
        if let Some(watch) = &self.watch {
            watch.created()?;
        }
        Ok(self.handle(inode, true))
    }

    fn open(&self, name: Name) -> io::Result<File> {
        let mut state = self.lock();
        state.faults.begin(Call::Open)?.done()?;
        let inode = *state.seen.get(&name).ok_or(Errno::NOENT)?;
        Ok(self.handle(inode, false))
    }

    fn open_again(&self, name: Name) -> io::Result<File> {
        let file = self.open(name)?;
        self.lock().check_frozen()?;
        Ok(File { writable: true, ..file })
    }

    fn unlink(&self, name: Name) -> io::Result<()> {
        let mut state = self.lock();
        let go = state.faults.begin(Call::Unlink)?;
        state.check_frozen()?;
        state.seen.remove(&name).ok_or(Errno::NOENT)?;
        state.pending.push(Pending::Unlink { name });
        go.done()
    }

    fn sync_directory(&self, of: Kind) -> io::Result<()> {
        let mut state = self.lock();
        match state.faults.begin(Call::SyncDirectory)? {
            Go::SyncFails(fate) => {
                state.lose_names(of, fate);
                Err(Errno::IO.into())
            }
            go => {
                go.done()?;
                state.sync_names(of);
                Ok(())
            }
        }
    }

    /// Counts as an I/O of the other disk. Pending writes of the file are lost there in a power cut.
    fn link(&self, file: &File, name: Name, into: &Simulated) -> io::Result<()> {
        let linked = self.lock_for(file).inodes[file.inode].clone();
        let mut state = into.lock();
        let go = state.faults.begin(Call::Link)?;
        if state.seen.contains_key(&name) {
            return Err(Errno::EXIST.into());
        }
        let inode = state.inodes.len();
        state.inodes.push(linked);
        state.seen.insert(name, inode);
        state.pending.push(Pending::Create { name, inode });
        go.done()
    }

    fn reserve(&self, file: &File, len: u64) -> io::Result<()> {
        let mut state = self.lock_for(file);
        state.faults.begin(Call::Reserve)?.done()?;
        state.check_room(file.inode, len)?;
        let inode = &mut state.inodes[file.inode];
        inode.reserved = inode.reserved.max(len);
        Ok(())
    }

    fn is_log_apart(&self) -> bool {
        self.lock().log_capacity.is_some()
    }

    fn now_ms(&self) -> u64 {
        self.lock().now_ms
    }

    fn free(&self, of: Kind) -> io::Result<u64> {
        Ok(self.lock().free(of))
    }

    fn hold(&self, manifest: Name) -> io::Result<Hold> {
        let mut state = self.lock();
        state.seen.get(&manifest).ok_or(Errno::NOENT)?;
        *state.held.entry(manifest).or_default() += 1;
        drop(state);
        Ok(Hold::new(Held { state: Arc::clone(&self.state), manifest }))
    }

    fn is_held(&self, manifest: Name) -> io::Result<bool> {
        Ok(self.lock().held.contains_key(&manifest))
    }

    /// No I/O: it never fails.
    fn mark(&self, file: &File) -> io::Result<Option<(u64, u64)>> {
        Ok(Some((file.inode as u64, self.lock_for(file).inodes[file.inode].made)))
    }

    fn len(&self, file: &File) -> io::Result<u64> {
        let mut state = self.lock_for(file);
        state.faults.begin(Call::Len)?.done()?;
        Ok(state.inodes[file.inode].seen.len() as u64)
    }

    fn read_at(&self, file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.lock_for(file);
        let bytes = Arc::clone(&state.inodes[file.inode].seen);
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let mut count = state.readable(file.inode, from, buffer.len().min(bytes.len() - from))?;
        let go = state.faults.begin(Call::Read { bytes: count })?;
        if go == Go::Half {
            count /= 2;
        } else {
            go.done()?;
        }
        state.read += count as u64;
        #[cfg(test)]
        state.count_wait(file.inode, offset);
        buffer[..count].copy_from_slice(&bytes[from..from + count]);
        #[cfg(test)]
        if let Some(watch) = &self.watch {
            watch.read(state.inodes[file.inode].name, offset, &mut buffer[..count]);
        }
        Ok(count)
    }

    #[cfg(test)]
    fn will_read(&self, file: &File, offset: u64, bytes: u64) {
        let mut state = self.lock_for(file);
        let each = crate::page::BYTES as u64;
        state
            .announced
            .extend((offset / each..(offset + bytes).div_ceil(each)).map(|page| (file.inode, page)));
        state.announced_most = state.announced_most.max(state.announced.len());
    }

    fn submit(&self, file: &File, write: &mut Write) -> io::Result<usize> {
        let left = &write.bytes[write.done..];
        #[cfg(test)]
        if let (Some(watch), true) = (&self.watch, write.sync) {
            let kind = self.lock_for(file).inodes[file.inode].name.kind;
            watch.syncs(kind);
        }
        let mut state = self.lock_for(file);
        let end = write.offset.saturating_add(write.bytes.len() as u64);
        state.check_room(file.inode, end)?;
        let reserved = end <= state.inodes[file.inode].taken();
        let go = state.faults.begin(Call::Submit { bytes: left.len(), sync: write.sync, reserved })?;
        if !left.is_empty() && !file.writable {
            return Err(Errno::BADF.into());
        }
        if end > FILE_BYTES_MAX {
            return Err(Errno::FBIG.into());
        }
        let offset = write.offset as usize + write.done;
        let count = if matches!(go, Go::Half | Go::HalfThenFails) { left.len() / 2 } else { left.len() };
        state.write(file.inode, offset, &left[..count]);
        match go {
            Go::SyncFails(fate) => {
                state.lose_data(file.inode, fate);
                return Err(Errno::IO.into());
            }
            Go::Half => return Ok(count),
            _ => go.done()?,
        }
        if write.sync {
            state.sync_data(file.inode);
        }
        Ok(count)
    }
}

impl SimulatedState {
    /// Bytes that files of a kind can still take.
    fn free(&self, of: Kind) -> u64 {
        let is_apart = self.log_capacity.is_some();
        let capacity = if is_apart && of == Kind::Log { self.log_capacity } else { self.capacity };
        let Some(capacity) = capacity else { return u64::MAX };
        let there = self.seen.iter().filter(|(name, _)| !is_apart || is_together(name.kind, of));
        let used: u64 = there.map(|(_, &inode)| self.inodes[inode].taken()).sum();
        capacity.saturating_sub(used)
    }

    /// How many of `count` bytes can be read: as a device does, those before the first that cannot. An error if none
    /// can.
    fn readable(&mut self, inode: usize, from: usize, count: usize) -> io::Result<usize> {
        let (from, end) = (from as u64, (from + count) as u64);
        let of_file = self.unreadable.iter().filter(|(name, _)| *name == self.inodes[inode].name);
        let places = of_file.filter(|(_, bytes)| bytes.start < end && from < bytes.end);
        match places.map(|(_, bytes)| bytes.start.max(from) - from).min() {
            Some(0) if count > 0 => {
                self.refused += 1;
                Err(Errno::IO.into())
            }
            first => Ok(first.map_or(count, |first| first as usize)),
        }
    }

    fn check_frozen(&self) -> io::Result<()> {
        if self.is_frozen { Err(Errno::ROFS.into()) } else { Ok(()) }
    }

    /// An error if there is no space for a file of this length.
    fn check_room(&self, inode: usize, len: u64) -> io::Result<()> {
        let more = len.saturating_sub(self.inodes[inode].taken());
        if more > 0 && more > self.free(self.inodes[inode].name.kind) {
            Err(Errno::NOSPC.into())
        } else {
            Ok(())
        }
    }

    fn add(&mut self, name: Name, bytes: Arc<Vec<u8>>) -> usize {
        // ORDERING: only its numbers matter.
        let made = CLOCK.fetch_add(1, Ordering::Relaxed);
        self.inodes.push(Inode { name, seen: Arc::clone(&bytes), durable: bytes, reserved: 0, made });
        self.inodes.len() - 1
    }

    /// Gives a file these bytes as if they and the name had always been durable.
    fn settle(&mut self, name: Name, bytes: Arc<Vec<u8>>) {
        self.forget_name(name);
        let inode = match self.seen.get(&name) {
            Some(&inode) => {
                self.pending.retain(|pending| !pending.is_of(inode));
                self.inodes[inode].seen = Arc::clone(&bytes);
                self.inodes[inode].durable = bytes;
                inode
            }
            None => self.add(name, bytes),
        };
        self.seen.insert(name, inode);
        self.durable.insert(name, inode);
    }

    fn forget_name(&mut self, forgotten: Name) {
        self.pending.retain(|pending| match pending {
            Pending::Create { name, .. } | Pending::Unlink { name } => *name != forgotten,
            Pending::Write { .. } => true,
        });
    }

    fn write(&mut self, inode: usize, offset: usize, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.written += bytes.len() as u64;
            put(Arc::make_mut(&mut self.inodes[inode].seen), offset, bytes);
            self.pending.push(Pending::Write { inode, offset, bytes: bytes.into() });
        }
    }

    fn sync_data(&mut self, file: usize) {
        let durable = &mut self.inodes[file].durable;
        self.pending.retain(|pending| match pending {
            Pending::Write { inode, offset, bytes } if *inode == file => {
                put(Arc::make_mut(durable), *offset, bytes);
                false
            }
            _ => true,
        });
    }

    fn sync_names(&mut self, of: Kind) {
        let durable = &mut self.durable;
        self.pending.retain(|pending| !(pending.is_name_with(of) && put_name(durable, pending)));
    }

    /// The effect of a failed sync on the pending writes of a file.
    fn lose_data(&mut self, inode: usize, fate: Fate) {
        if fate != Fate::Kept {
            self.pending.retain(|pending| !pending.is_of(inode));
        }
        if fate == Fate::Reverted {
            self.inodes[inode].seen = Arc::clone(&self.inodes[inode].durable);
        }
    }

    /// The effect of a failed sync of a directory on pending names.
    fn lose_names(&mut self, of: Kind, fate: Fate) {
        if fate != Fate::Kept {
            self.pending.retain(|pending| !pending.is_name_with(of));
        }
        if fate == Fate::Reverted {
            self.seen.retain(|name, _| !is_together(name.kind, of));
            let durable = self.durable.iter().filter(|(name, _)| is_together(name.kind, of));
            self.seen.extend(durable.map(|(&name, &inode)| (name, inode)));
        }
    }
}

/// Writes into the bytes of a file; a gap before them is zeros.
fn put(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if bytes.is_empty() {
        return;
    }
    if file.len() < end {
        file.resize(end, 0);
    }
    file[offset..end].copy_from_slice(bytes);
}

/// Applies a pending operation to the names, if it concerns names; true if it does.
fn put_name(names: &mut BTreeMap<Name, usize>, pending: &Pending) -> bool {
    match *pending {
        Pending::Write { .. } => return false,
        Pending::Create { name, inode } => {
            names.insert(name, inode);
        }
        Pending::Unlink { name } => {
            names.remove(&name);
        }
    }
    true
}
