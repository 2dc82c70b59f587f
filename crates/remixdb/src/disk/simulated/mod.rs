//! [`Simulated`]: the disk under tests, in memory and deterministic.
//!
//! It keeps apart what a process sees and what a power cut leaves. A write is *pending* until its file is synced,
//! a name made or removed is pending until the directory is synced, and syncing one does nothing for the other.
//! What is pending stands in one list, in the order in which it was done; a power cut keeps any part of it
//! ([`crash_states`](Simulated::crash_states)), the death of a process all of it ([`kill`](Simulated::kill)).
//!
//! Every call of the trait is one I/O. They are numbered from 0, so a workload can be cut
//! ([`cut_power_at`](Simulated::cut_power_at)) or hurt ([`fail`](Simulated::fail)) at each of them in turn; between
//! runs, files can be damaged.
//!
//! It is harsher than most file systems: a synced file may lose its name, and of the pending writes of one file
//! any part may arrive. What it does not do: take time, limit space or open files, or lose what was synced. A file
//! may be written only through the handle that made it, as with the real disk.
//!
//! [`crash`] makes the crash states, [`fault`] decides which call fails.

mod crash;
mod fault;
mod random;
#[cfg(test)]
mod tests;

pub use crash::CrashStates;
pub use fault::{Failure, Fate, Fault, Times};

use super::{Disk, Name, Write};
use fault::{Call, Go};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// A file that is longer is a bug of who wrote it, to be told before the memory is gone.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// A directory of files in memory. A clone is another handle to the same directory.
#[derive(Clone, Default)]
pub struct Simulated {
    state: Arc<Mutex<State>>,
}

/// An open file. It stays readable when its name is removed.
pub struct File {
    owner: Arc<Mutex<State>>,
    inode: usize,
    writable: bool,
}

#[derive(Clone, Default)]
struct State {
    /// All files that ever were, by number.
    inodes: Vec<Inode>,
    /// The names as the process sees them.
    seen: BTreeMap<Name, usize>,
    /// The names that are sure to survive a power cut.
    durable: BTreeMap<Name, usize>,
    /// What was done and is not durable, in order.
    pending: Vec<Pending>,
    /// Which I/O fails.
    faults: fault::Faults,
}

#[derive(Clone)]
struct Inode {
    /// The name under which it was made.
    name: Name,
    /// What reads give.
    seen: Arc<Vec<u8>>,
    /// What is sure to survive a power cut.
    durable: Arc<Vec<u8>>,
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
}

impl Simulated {
    /// An empty directory.
    pub fn new() -> Simulated {
        Simulated::default()
    }

    /// A directory of these files, all durable.
    pub fn from_files(files: impl IntoIterator<Item = (Name, Vec<u8>)>) -> Simulated {
        Simulated::from_images(files.into_iter().map(|(name, bytes)| (name, Arc::new(bytes))))
    }

    fn from_images(files: impl IntoIterator<Item = (Name, Arc<Vec<u8>>)>) -> Simulated {
        let mut state = State::default();
        for (name, bytes) in files {
            state.settle(name, bytes);
        }
        state.into()
    }

    /// Cuts the power at the I/O of this number: it is done but not yet durable, and it and all after it fail and
    /// change nothing.
    pub fn cut_power_at(&self, io: u64) {
        self.lock().faults.cut_at(io);
    }

    /// Whether the power was cut.
    pub fn is_cut(&self) -> bool {
        self.lock().faults.is_cut()
    }

    /// Lets an I/O fail. Several faults may be planted; at one call the first that suits it strikes.
    pub fn fail(&self, fault: Fault) {
        self.lock().faults.plant(fault);
    }

    /// How many times a fault struck.
    pub fn struck(&self) -> u64 {
        self.lock().faults.struck()
    }

    /// Takes all faults away, and the cut that has not come yet. What they did stays.
    pub fn heal(&self) {
        self.lock().faults.heal();
    }

    /// How many I/Os were done or tried until now; those after a power cut do not count.
    pub fn ios(&self) -> u64 {
        self.lock().faults.ios()
    }

    /// How many writes and changes of names a power cut could lose.
    pub fn pending(&self) -> usize {
        self.lock().pending.len()
    }

    /// What the next process finds if this one dies now: all that was written, pending as it is. No faults.
    pub fn kill(&self) -> Simulated {
        State { faults: fault::Faults::default(), ..self.lock().clone() }.into()
    }

    /// The files as reads give them, by name.
    pub fn files(&self) -> Vec<(Name, Vec<u8>)> {
        let state = self.lock();
        state.seen.iter().map(|(&name, &inode)| (name, state.inodes[inode].seen.to_vec())).collect()
    }

    /// Gives a file other bytes, durably; makes it if there is none. Who has it open sees them.
    pub fn replace(&self, name: Name, bytes: Vec<u8>) {
        self.lock().settle(name, Arc::new(bytes));
    }

    /// Removes a file, durably. Whether there was one.
    pub fn remove(&self, name: Name) -> bool {
        let mut state = self.lock();
        state.forget_name(name);
        state.durable.remove(&name);
        state.seen.remove(&name).is_some()
    }

    /// Flips a bit of a file, durably; what the file has is durable then, too.
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a test panicked inside of the simulated disk")
    }

    /// The state, after making sure that the file is one of this disk and not of one that it was before a crash.
    fn lock_for(&self, file: &File) -> MutexGuard<'_, State> {
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

impl From<State> for Simulated {
    fn from(state: State) -> Simulated {
        Simulated { state: Arc::new(Mutex::new(state)) }
    }
}

impl Disk for Simulated {
    type File = File;

    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.lock();
        state.faults.begin(Call::List)?.done()?;
        // A real directory has this, too.
        let lock = "LOCK".to_owned();
        Ok(state.seen.keys().map(Name::to_string).chain([lock]).collect())
    }

    fn create(&self, name: Name) -> io::Result<File> {
        let mut state = self.lock();
        let go = state.faults.begin(Call::Create)?;
        if state.seen.contains_key(&name) {
            return Err(Errno::EXIST.into());
        }
        let inode = state.add(name, Arc::default());
        state.seen.insert(name, inode);
        state.pending.push(Pending::Create { name, inode });
        go.done()?;
        Ok(self.handle(inode, true))
    }

    fn open(&self, name: Name) -> io::Result<File> {
        let mut state = self.lock();
        state.faults.begin(Call::Open)?.done()?;
        let inode = *state.seen.get(&name).ok_or(Errno::NOENT)?;
        Ok(self.handle(inode, false))
    }

    fn unlink(&self, name: Name) -> io::Result<()> {
        let mut state = self.lock();
        let go = state.faults.begin(Call::Unlink)?;
        state.seen.remove(&name).ok_or(Errno::NOENT)?;
        state.pending.push(Pending::Unlink { name });
        go.done()
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut state = self.lock();
        match state.faults.begin(Call::SyncDirectory)? {
            Go::SyncFails(fate) => {
                state.lose_names(fate);
                Err(Errno::IO.into())
            }
            go => {
                go.done()?;
                state.sync_names();
                Ok(())
            }
        }
    }

    /// Counts as an I/O of the other disk. What is pending of the file is lost there in a power cut.
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

    fn len(&self, file: &File) -> io::Result<u64> {
        let mut state = self.lock_for(file);
        state.faults.begin(Call::Len)?.done()?;
        Ok(state.inodes[file.inode].seen.len() as u64)
    }

    fn read_at(&self, file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.lock_for(file);
        let bytes = Arc::clone(&state.inodes[file.inode].seen);
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let mut count = buffer.len().min(bytes.len() - from);
        let go = state.faults.begin(Call::Read { bytes: count })?;
        if go == Go::Half {
            count /= 2;
        } else {
            go.done()?;
        }
        buffer[..count].copy_from_slice(&bytes[from..from + count]);
        Ok(count)
    }

    fn submit(&self, file: &File, write: &mut Write) -> io::Result<usize> {
        let left = &write.bytes[write.done..];
        let mut state = self.lock_for(file);
        let go = state.faults.begin(Call::Submit { bytes: left.len(), sync: write.sync })?;
        if !left.is_empty() && !file.writable {
            return Err(Errno::BADF.into());
        }
        let end = write.offset.saturating_add(write.bytes.len() as u64);
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

impl State {
    fn add(&mut self, name: Name, bytes: Arc<Vec<u8>>) -> usize {
        self.inodes.push(Inode { name, seen: Arc::clone(&bytes), durable: bytes });
        self.inodes.len() - 1
    }

    /// Gives a file these bytes as if they and the name had been durable for ever.
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

    fn sync_names(&mut self) {
        let durable = &mut self.durable;
        self.pending.retain(|pending| !put_name(durable, pending));
    }

    /// What a failed sync makes of the pending writes of a file.
    fn lose_data(&mut self, inode: usize, fate: Fate) {
        if fate != Fate::Kept {
            self.pending.retain(|pending| !pending.is_of(inode));
        }
        if fate == Fate::Reverted {
            self.inodes[inode].seen = Arc::clone(&self.inodes[inode].durable);
        }
    }

    /// What a failed sync of the directory makes of pending names.
    fn lose_names(&mut self, fate: Fate) {
        if fate != Fate::Kept {
            self.pending.retain(|pending| !pending.is_name());
        }
        if fate == Fate::Reverted {
            self.seen = self.durable.clone();
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

/// Does to names what is pending, if it is about names; whether it was.
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
