//! [`Device`]: an open `/dev/llds`.

use super::abi::{self, command};
use super::acting;
use super::error::{Error, Result, system};
use super::mapped::{self, Mapped};
use super::ran::{self, Ran};
use forrest_machine::pages::Numa;
use rustix::ioctl::{Getter, Opcode, Setter, Updater, ioctl};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;

/// The path of the module's device.
pub const DEVICE_PATH: &str = "/dev/llds";

/// Bytes for one piece of the list: some hundred stores.
const LIST_BYTES: usize = 16 << 10;
/// Maximum bytes of a record of the list.
const RECORD_BYTES_MAX: usize = size_of::<abi::Listed>() + abi::NAME_BYTES_MAX + 1;
const _: () = assert!(LIST_BYTES > RECORD_BYTES_MAX);

const OPEN: &str = "open /dev/llds";
const ASK_VERSION: &str = "ask /dev/llds for its version";
const ATTACH: &str = "open the store";
const DESTROY: &str = "destroy the store";
const LIST: &str = "list the stores";
const STATS: &str = "ask for the figures of the store";

/// An open device of a module with the ABI version of [`abi`]. Lengths and records that the module returns
/// are checked.
#[derive(Debug)]
pub struct Device {
    file: File,
    version: abi::Version,
    may_change: bool,
    /// The mapping of the store, made at the first seqlock read.
    mapping: OnceLock<Option<Mapping>>,
}

/// The store that a device is to be attached to.
#[derive(Debug, Clone, Copy)]
pub struct Attach<'n> {
    /// The store's name: 1 to [`abi::NAME_BYTES_MAX`] bytes, none of them 0.
    pub name: &'n [u8],
    /// The user whose name it is; `None` for a shared name.
    pub user: Option<u32>,
    /// Whether to create the store if it does not exist.
    pub makes: bool,
    /// For a new store: maximum bytes of memory; 0 is the module's maximum.
    pub bytes_max: u64,
    /// For a new store: its permissions, as the mode of a file (0o666 at most).
    pub mode: u32,
    /// For a new store: its memory nodes.
    pub numa: Numa,
}

impl<'n> Attach<'n> {
    /// A store that exists.
    pub fn existing(user: Option<u32>, name: &'n [u8]) -> Attach<'n> {
        Attach { name, user, makes: false, bytes_max: 0, mode: 0, numa: Numa::Local }
    }
}

/// A kernel store, as [`Device::list`] returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// The store's name: any bytes except 0. [`llds::list`](crate::list) returns it as a URL has it.
    pub name: Vec<u8>,
    /// Whether the name is one of the owner, or else shared.
    pub is_of_user: bool,
    /// Keys.
    pub keys: u64,
    /// Bytes of keys and values.
    pub pair_bytes: u64,
    /// Bytes of memory that the store has allocated.
    pub bytes: u64,
    /// Maximum bytes of memory.
    pub bytes_max: u64,
    /// The owner.
    pub uid: u32,
    /// The owner's group.
    pub gid: u32,
    /// The permissions, as the mode of a file.
    pub mode: u32,
    /// Number of open devices that are attached to the store.
    pub opens: u32,
}

impl Device {
    /// Opens the device, read-only unless `may_change`, and asks for its version.
    ///
    /// # Errors
    /// The system's error: `ENOENT` if the module is not loaded, `EACCES` if this user may not.
    /// [`Cause::Version`] if the module has another version of its interface.
    ///
    /// [`Cause::Version`]: super::Cause::Version
    pub fn open(may_change: bool) -> Result<Device> {
        Device::open_at(Path::new(DEVICE_PATH), may_change)
    }

    fn open_at(path: &Path, may_change: bool) -> Result<Device> {
        let opened = OpenOptions::new().read(true).write(may_change).open(path);
        let file = opened.map_err(|error| Error::system(OPEN, error.raw_os_error().unwrap_or(libc::EIO)))?;
        let version: abi::Version = get::<{ command::VERSION }, _>(&file, ASK_VERSION)?;
        if version.abi != abi::ABI {
            return Err(Error::version("use /dev/llds", version.abi));
        }
        Ok(Device { file, version, may_change, mapping: OnceLock::new() })
    }

    /// The module's version and limits.
    pub fn version(&self) -> &abi::Version {
        &self.version
    }

    /// Whether the device is open for writing.
    pub fn may_change(&self) -> bool {
        self.may_change
    }

    /// Attaches the device to a store, permanently. A device that is not attached has a private store.
    ///
    /// # Errors
    /// `ENOENT` if the store does not exist and is not to be created, `EACCES`, `EINVAL` for an invalid name,
    /// `EBUSY` if the device is attached already, `EDQUOT`, `ENOMEM`.
    pub fn attach(&self, attach: &Attach<'_>) -> Result<()> {
        self.attach_with(attach, if attach.makes { abi::CREATE } else { 0 })
    }

    /// Creates a store and attaches the device to it. The store belongs to `owner`, a user and a group, no matter which
    /// ones the process has.
    ///
    /// # Errors
    /// As [`Device::attach`]; `EEXIST` if the store exists; [`Cause::Owner`](super::Cause::Owner) if this process may
    /// not act for the owner: one of root may.
    pub fn create(&self, attach: &Attach<'_>, owner: (u32, u32)) -> Result<()> {
        acting::act_for(owner, || self.attach_with(attach, abi::CREATE | abi::EXCLUSIVE))
    }

    fn attach_with(&self, attach: &Attach<'_>, flags: u32) -> Result<()> {
        let (of_user, uid) = of_user(attach.user);
        let (numa, node) = match attach.numa {
            Numa::Local => (abi::NUMA_LOCAL, 0),
            Numa::Interleave => (abi::NUMA_INTERLEAVE, 0),
            Numa::Node(node) => (abi::NUMA_NODE, node),
        };
        let mut argument = abi::Attach {
            name: attach.name.as_ptr().expose_provenance() as u64,
            bytes_max: attach.bytes_max,
            name_bytes: length(ATTACH, attach.name)?,
            mode: attach.mode,
            flags: of_user | flags,
            uid,
            numa,
            node,
        };
        // SAFETY: `abi::Attach` is the argument of `ATTACH`. The command reads it and the name, which
        // outlives the call, and writes the argument.
        unsafe { ioctl(&self.file, Updater::<{ command::ATTACH }, _>::new(&mut argument)) }
            .map_err(system(ATTACH))
    }

    /// Removes a store's name: one of a user, or a shared one. Open devices keep the store; it is freed when the
    /// last of them is closed.
    ///
    /// # Errors
    /// `ENOENT`; `EACCES` if the store is another user's; `EBADF` if the device is open read-only.
    pub fn destroy(&self, user: Option<u32>, name: &[u8]) -> Result<()> {
        self.destroy_with(user, name, 0)
    }

    /// Removes the name of the store to which this device is attached. REQUIRES: it is attached.
    ///
    /// # Errors
    /// As [`Device::destroy`]; `ENOENT` too if the name is that of another store by now.
    pub fn destroy_own(&self, user: Option<u32>, name: &[u8]) -> Result<()> {
        self.destroy_with(user, name, abi::ATTACHED)
    }

    fn destroy_with(&self, user: Option<u32>, name: &[u8], flags: u32) -> Result<()> {
        let (of_user, uid) = of_user(user);
        let argument = abi::Destroy {
            name: name.as_ptr().expose_provenance() as u64,
            name_bytes: length(DESTROY, name)?,
            flags: of_user | flags,
            uid,
            reserved: 0,
        };
        // SAFETY: `abi::Destroy` is the argument of `DESTROY`. The command reads it and the name, which
        // outlives the call.
        unsafe { ioctl(&self.file, Setter::<{ command::DESTROY }, _>::new(argument)) }
            .map_err(system(DESTROY))
    }

    /// The stores that this user may read or write, or owns: those with shared names, sorted, and then those of each
    /// user. The list is read in pieces, so a store that is created or destroyed meanwhile may be missing.
    ///
    /// # Errors
    /// The system's error, or [`Cause::Nonsense`](super::Cause::Nonsense) for an invalid answer.
    pub fn list(&self) -> Result<Vec<Listed>> {
        let mut all: Vec<Listed> = Vec::new();
        let mut room = vec![0; LIST_BYTES];
        loop {
            let last = all.last();
            let after = last.map_or(&[][..], |last| &last.name);
            let (after_flags, after_uid) = of_user(last.filter(|last| last.is_of_user).map(|last| last.uid));
            let mut argument = abi::List {
                room: room.as_mut_ptr().expose_provenance() as u64,
                after: after.as_ptr().expose_provenance() as u64,
                room_bytes: LIST_BYTES as u32,
                after_bytes: length(LIST, after)?,
                count: 0,
                more: 0,
                after_flags,
                after_uid,
            };
            // SAFETY: `abi::List` is the argument of `LIST`. The command reads `after` and writes at most
            // `room_bytes` bytes to `room`; both outlive the call.
            unsafe { ioctl(&self.file, Updater::<{ command::LIST }, _>::new(&mut argument)) }
                .map_err(system(LIST))?;
            let piece = room.get(..argument.room_bytes as usize);
            let piece = piece.ok_or(Error::nonsense(LIST, "it is longer than its buffer"))?;
            let count = all.len();
            records(piece, argument.count, &mut all)?;
            if argument.more == 0 {
                return Ok(all);
            }
            if all.len() == count {
                return Err(Error::nonsense(LIST, "there are more stores, but the piece is empty"));
            }
        }
    }

    /// The mapping of the store, made at the first call; `None` if it cannot be mapped. REQUIRES: the device
    /// is attached.
    #[inline]
    pub fn mapped(&self) -> Option<&Mapped> {
        let mapping = self.mapping.get_or_init(|| Mapping::new(&self.file));
        mapping.as_ref().and_then(|mapping| mapping.mapped.as_ref())
    }

    /// The size and limits of the store.
    ///
    /// # Errors
    /// The system's error.
    pub fn stats(&self) -> Result<abi::Stats> {
        get::<{ command::STATS }, _>(&self.file, STATS)
    }

    /// Does a run of operations. Writes their answers to the beginning of `answers`.
    ///
    /// # Errors
    /// The system's error, or [`Cause::Nonsense`](super::Cause::Nonsense) for an invalid answer.
    pub fn run(&self, ops: &[u8], answers: &mut [u8], is_atomic: bool) -> Result<Ran> {
        let before = ran::argument(ops, answers, is_atomic)?;
        let mut after = before;
        // SAFETY: `abi::Run` is the argument of `RUN`. The command reads `ops_bytes` bytes of `ops` and
        // writes at most `answers_bytes` bytes to `answers`; both outlive the call.
        let done = unsafe { ioctl(&self.file, Updater::<{ command::RUN }, _>::new(&mut after)) };
        ran::judge(&before, &after, done.err().map_or(0, |errno| errno.raw_os_error()))
    }
}

/// The mappings of a store: header, blocks and buckets.
#[derive(Debug)]
struct Mapping {
    parts: Vec<(NonNull<u8>, usize)>,
    mapped: Option<Mapped>,
}

// SAFETY: the memory is not bound to a thread, and only `drop` unmaps it.
unsafe impl Send for Mapping {}
// SAFETY: shared references give access to `mapped` only, which is `Sync`.
unsafe impl Sync for Mapping {}

impl Mapping {
    const PARTS: [(u64, u64); 3] = [
        (abi::MAP_HEADER, abi::MAP_HEADER_BYTES),
        (abi::MAP_BLOCKS, abi::MAP_BYTES),
        (abi::MAP_BUCKETS, abi::MAP_BYTES),
    ];

    fn new(file: &File) -> Option<Mapping> {
        let mut mapping = Mapping { parts: Vec::new(), mapped: None };
        for (offset, bytes) in Mapping::PARTS {
            let bytes = usize::try_from(bytes).ok()?;
            mapping.parts.push((map_aligned(file, offset, bytes)?, bytes));
        }
        let [(header, _), (blocks, _), (buckets, _)] = mapping.parts[..] else { return None };
        // SAFETY: the module maps header, blocks and buckets at these offsets, and only `Mapping::drop`
        // unmaps them.
        mapping.mapped = unsafe { Mapped::new(header.cast(), blocks, buckets) };
        Some(mapping)
    }
}

/// Maps a part at a multiple of [`mapped::SLAB_BYTES`]. The system aligns only to pages.
fn map_aligned(file: &File, offset: u64, bytes: usize) -> Option<NonNull<u8>> {
    let room = bytes + mapped::SLAB_BYTES;
    // SAFETY: the system chooses an unused address. Without access rights the reservation takes no memory.
    let all = unsafe { mmap_anonymous(null_mut(), room, ProtFlags::empty(), MapFlags::PRIVATE) }.ok()?;
    let before = all.addr().wrapping_neg() % mapped::SLAB_BYTES;
    let at = all.wrapping_byte_add(before);
    // SAFETY: `at..at + bytes` lies in the room reserved above, which only this function knows.
    let part = unsafe { mmap(at, bytes, ProtFlags::READ, MapFlags::SHARED | MapFlags::FIXED, file, offset) };
    let Ok(part) = part else {
        // SAFETY: the room was reserved above, and nothing refers to it.
        let _ = unsafe { munmap(all, room) };
        return None;
    };
    for (rest, bytes) in [(all, before), (at.wrapping_byte_add(bytes), mapped::SLAB_BYTES - before)] {
        if bytes > 0 {
            // SAFETY: these are the pieces of the room before and after the part; nothing refers to them.
            let _ = unsafe { munmap(rest, bytes) };
        }
    }
    NonNull::new(part.cast())
}

impl Drop for Mapping {
    fn drop(&mut self) {
        for (at, bytes) in self.parts.drain(..) {
            // SAFETY: `new` mapped this part. No other field than `mapped` uses it, and `&mut self` proves
            // that nobody borrows that.
            let _ = unsafe { munmap(at.as_ptr().cast(), bytes) };
        }
    }
}

/// Asks for a struct of integers.
fn get<const COMMAND: Opcode, T: Numbers>(file: &File, what: &'static str) -> Result<T> {
    // SAFETY: the command's number contains the size of `T`, the command writes as many bytes, and `T:
    // Numbers` says that any bytes are a valid `T`.
    unsafe { ioctl(file, Getter::<COMMAND, T>::new()) }.map_err(system(what))
}

/// Types of which any bytes are a valid value.
///
/// # Safety
/// The type has only integer fields, without padding.
unsafe trait Numbers {}

// SAFETY: integers only; `abi` asserts that the size is the sum of the fields, so there is no padding.
unsafe impl Numbers for abi::Version {}
// SAFETY: integers of one size only, so there is no padding.
unsafe impl Numbers for abi::Stats {}

/// The flags and the user of a name.
fn of_user(user: Option<u32>) -> (u32, u32) {
    user.map_or((0, 0), |uid| (abi::OF_USER, uid))
}

fn length(what: &'static str, name: &[u8]) -> Result<u32> {
    u32::try_from(name.len()).map_err(|_| Error::system(what, libc::EINVAL))
}

/// Parses the records of a list.
fn records(mut bytes: &[u8], count: u32, into: &mut Vec<Listed>) -> Result<()> {
    let nonsense = |why| Error::nonsense(LIST, why);
    for _ in 0..count {
        let record = record(&mut bytes).ok_or(nonsense("a record is cut off"))?;
        let is_before = |last: &Listed| match (last.is_of_user, record.is_of_user) {
            (true, true) if last.uid != record.uid => true,
            (of_user, is_of_user) if of_user == is_of_user => last.name < record.name,
            (of_user, _) => !of_user,
        };
        if record.name.is_empty() || !into.last().is_none_or(is_before) {
            return Err(nonsense("the names are not in order"));
        }
        into.push(record);
    }
    if bytes.is_empty() { Ok(()) } else { Err(nonsense("bytes follow the last record")) }
}

/// Parses the first record, and removes it from `bytes`.
fn record(bytes: &mut &[u8]) -> Option<Listed> {
    let (head, rest) = bytes.split_first_chunk::<{ size_of::<abi::Listed>() }>()?;
    let long = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().expect("8 bytes"));
    let short = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().expect("4 bytes"));
    let name_bytes = short(48) as usize;
    let (name, rest) = rest.split_at_checked(name_bytes.checked_next_multiple_of(8)?)?;
    *bytes = rest;
    Some(Listed {
        name: name[..name_bytes].to_vec(),
        is_of_user: short(52) & abi::OF_USER != 0,
        keys: long(0),
        pair_bytes: long(8),
        bytes: long(16),
        bytes_max: long(24),
        uid: short(32),
        gid: short(36),
        mode: short(40),
        opens: short(44),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// The bytes of a list with these names, as the module writes them.
    fn list(names: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, name) in (1_u64..).zip(names) {
            let start = bytes.len();
            bytes.resize(start + size_of::<abi::Listed>(), 0);
            let mut put =
                |at: usize, part: &[u8]| bytes[start + at..start + at + part.len()].copy_from_slice(part);
            put(offset_of!(abi::Listed, keys), &number.to_ne_bytes());
            put(offset_of!(abi::Listed, pair_bytes), &(10 * number).to_ne_bytes());
            put(offset_of!(abi::Listed, bytes), &(100 * number).to_ne_bytes());
            put(offset_of!(abi::Listed, bytes_max), &(1000 * number).to_ne_bytes());
            put(offset_of!(abi::Listed, uid), &7_u32.to_ne_bytes());
            put(offset_of!(abi::Listed, gid), &8_u32.to_ne_bytes());
            put(offset_of!(abi::Listed, mode), &0o640_u32.to_ne_bytes());
            put(offset_of!(abi::Listed, opens), &3_u32.to_ne_bytes());
            put(offset_of!(abi::Listed, name_bytes), &(name.len() as u32).to_ne_bytes());
            bytes.extend_from_slice(name.as_bytes());
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        bytes
    }

    fn parsed(bytes: &[u8], count: u32) -> Result<Vec<Listed>> {
        let mut all = Vec::new();
        records(bytes, count, &mut all).map(|()| all)
    }

    #[test]
    fn lists_are_taken_apart() {
        let all = parsed(&list(&["a", "eightfold", "shop 2"]), 3).expect("a list");
        let names: Vec<_> = all.iter().map(|store| store.name.escape_ascii().to_string()).collect();
        assert_eq!(names, ["a", "eightfold", "shop 2"]);
        let second = Listed {
            name: b"eightfold".to_vec(),
            is_of_user: false,
            keys: 2,
            pair_bytes: 20,
            bytes: 200,
            bytes_max: 2000,
            uid: 7,
            gid: 8,
            mode: 0o640,
            opens: 3,
        };
        assert_eq!(all[1], second);
        assert_eq!(parsed(&[], 0), Ok(Vec::new()));
    }

    #[test]
    fn lists_that_cannot_be_are_refused() {
        let whole = list(&["a", "b"]);
        for end in 0..whole.len() {
            assert!(parsed(&whole[..end], 2).is_err(), "{end} bytes");
        }
        for count in [0, 1, 3, u32::MAX] {
            assert!(parsed(&whole, count).is_err(), "{count} records");
        }
        assert!(parsed(&list(&["b", "a"]), 2).is_err());
        assert!(parsed(&list(&["a", "a"]), 2).is_err());
        assert!(parsed(&list(&[""]), 1).is_err());
        // Any wrong length gives an error or other names, and no panic.
        let at = offset_of!(abi::Listed, name_bytes);
        for length in (0..200).chain([u32::MAX - 7, u32::MAX - 6, u32::MAX]) {
            let mut bytes = whole.clone();
            bytes[at..at + 4].copy_from_slice(&length.to_ne_bytes());
            let _ = parsed(&bytes, 2);
        }
    }

    #[test]
    fn what_is_no_such_device_is_refused() {
        let error = Device::open_at(Path::new("/dev/forrest-has-no-such-device"), true).unwrap_err();
        assert_eq!((error.what(), error.number()), (OPEN, Some(libc::ENOENT)));
        // /dev/null opens, and rejects the command.
        let error = Device::open_at(Path::new("/dev/null"), false).unwrap_err();
        assert_eq!(error.what(), ASK_VERSION);
        // A processor emulator that does not know the command fails with ENOSYS instead.
        assert!([Some(libc::ENOTTY), Some(libc::ENOSYS)].contains(&error.number()), "{error}");
    }
}
