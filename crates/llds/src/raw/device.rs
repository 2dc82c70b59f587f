//! [`Device`]: an open `/dev/llds`.

use super::abi::{self, command};
use super::error::{Error, Result, system};
use super::mapped::{self, Mapped};
use super::ran::{self, Ran};
use rustix::ioctl::{Getter, Opcode, Setter, Updater, ioctl};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;

/// Where the module puts its device.
pub const DEVICE_PATH: &str = "/dev/llds";

/// Room for the first piece of a list, in bytes: some hundred stores.
const LIST_BYTES: usize = 16 << 10;
/// More than that no record takes.
const RECORD_BYTES_MAX: usize = size_of::<abi::Listed>() + abi::NAME_BYTES_MAX + 1;
const _: () = assert!(LIST_BYTES > RECORD_BYTES_MAX);

const OPEN: &str = "open /dev/llds";
const ASK_VERSION: &str = "ask /dev/llds for its version";
const ATTACH: &str = "open the store";
const DESTROY: &str = "destroy the store";
const LIST: &str = "list the stores";
const STATS: &str = "ask for the figures of the store";

/// An open device. The module that made it has the version of [`abi`]; it does what
/// `kernel/llds/uapi/llds.h` says, and nothing else is believed of it.
#[derive(Debug)]
pub struct Device {
    file: File,
    version: abi::Version,
    may_change: bool,
    /// The store in sight, from the first look on.
    mapping: OnceLock<Option<Mapping>>,
}

/// Which store a device is to be about.
#[derive(Debug, Clone, Copy)]
pub struct Attach<'n> {
    /// Its name: 1 to [`abi::NAME_BYTES_MAX`] bytes, none of them 0.
    pub name: &'n [u8],
    /// Whether it is made if it is not there.
    pub makes: bool,
    /// Of a store that is made: most bytes that it may take; 0 is as many as any.
    pub bytes_max: u64,
    /// Of a store that is made: who may read and write it, as the bits of a file say (0o666 at most).
    pub mode: u32,
}

/// A store in the kernel, as the list has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// Its name, which may be any bytes but 0.
    pub name: Vec<u8>,
    /// Keys.
    pub keys: u64,
    /// Bytes of keys and values.
    pub pair_bytes: u64,
    /// Bytes of memory that it has taken.
    pub bytes: u64,
    /// Bytes that it may take.
    pub bytes_max: u64,
    /// The user whose it is.
    pub uid: u32,
    /// The group whose it is.
    pub gid: u32,
    /// Who may read and write it, as the bits of a file say.
    pub mode: u32,
    /// How many open devices are about it.
    pub opens: u32,
}

impl Device {
    /// Opens the device, to be read and written or to be read only, and asks for its version.
    ///
    /// # Errors
    /// What the system says: `ENOENT` if the module is not loaded, `EACCES` if this user may not. [`Cause::Version`] if
    /// the module has another version of its interface.
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

    /// What the module is.
    pub fn version(&self) -> &abi::Version {
        &self.version
    }

    /// Whether the device is open to be written.
    pub fn may_change(&self) -> bool {
        self.may_change
    }

    /// Makes the device be about a store, for good. Without, it is about one of its own.
    ///
    /// # Errors
    /// `ENOENT` if there is none and none is to be made, `EACCES`, `EINVAL` for a name that cannot be, `EBUSY` if the
    /// device is about one already, `EDQUOT`, `ENOMEM`.
    pub fn attach(&self, attach: &Attach<'_>) -> Result<()> {
        let argument = abi::Attach {
            name: attach.name.as_ptr().expose_provenance() as u64,
            bytes_max: attach.bytes_max,
            name_bytes: length(ATTACH, attach.name)?,
            mode: attach.mode,
            flags: if attach.makes { abi::CREATE } else { 0 },
            reserved: 0,
        };
        // SAFETY: the argument is what the command takes, and the name lives until it returns; both are only read.
        unsafe { ioctl(&self.file, Setter::<{ command::ATTACH }, _>::new(argument)) }.map_err(system(ATTACH))
    }

    /// Takes the name of a store away. Whoever has the store open keeps it; it goes with the last of them.
    ///
    /// # Errors
    /// `ENOENT`; `EACCES` if it is another user's; `EBADF` if the device is open to be read only.
    pub fn destroy(&self, name: &[u8]) -> Result<()> {
        let argument = abi::Destroy {
            name: name.as_ptr().expose_provenance() as u64,
            name_bytes: length(DESTROY, name)?,
            flags: 0,
        };
        // SAFETY: the argument is what the command takes, and the name lives until it returns; both are only read.
        unsafe { ioctl(&self.file, Setter::<{ command::DESTROY }, _>::new(argument)) }
            .map_err(system(DESTROY))
    }

    /// The stores that this user may read or write, or owns, sorted by name. They are asked for in pieces: what comes
    /// or goes meanwhile may be missing.
    ///
    /// # Errors
    /// What the system says, and an answer that cannot be.
    pub fn list(&self) -> Result<Vec<Listed>> {
        let mut all: Vec<Listed> = Vec::new();
        let mut room = vec![0; LIST_BYTES];
        loop {
            let after = all.last().map_or(&[][..], |last| &last.name);
            let mut argument = abi::List {
                room: room.as_mut_ptr().expose_provenance() as u64,
                after: after.as_ptr().expose_provenance() as u64,
                room_bytes: LIST_BYTES as u32,
                after_bytes: length(LIST, after)?,
                count: 0,
                more: 0,
            };
            // SAFETY: the argument is what the command takes. The name is only read; the room is written, as far as the
            // argument says that it goes; both live until the command returns.
            unsafe { ioctl(&self.file, Updater::<{ command::LIST }, _>::new(&mut argument)) }
                .map_err(system(LIST))?;
            let piece = room.get(..argument.room_bytes as usize);
            let piece = piece.ok_or(Error::nonsense(LIST, "it is longer than the room for it"))?;
            let count = all.len();
            records(piece, argument.count, &mut all)?;
            if argument.more == 0 {
                return Ok(all);
            }
            if all.len() == count {
                return Err(Error::nonsense(LIST, "there are more stores, and none is listed"));
            }
        }
    }

    /// The store in sight, from the first call on; `None` if it cannot be. REQUIRES: the device is about a store.
    #[inline]
    pub fn mapped(&self) -> Option<&Mapped> {
        let mapping = self.mapping.get_or_init(|| Mapping::new(&self.file));
        mapping.as_ref().and_then(|mapping| mapping.mapped.as_ref())
    }

    /// What the store holds and costs.
    ///
    /// # Errors
    /// What the system says.
    pub fn stats(&self) -> Result<abi::Stats> {
        get::<{ command::STATS }, _>(&self.file, STATS)
    }

    /// Does a run of operations. The answers go to the beginning of `answers`.
    ///
    /// # Errors
    /// What the system says, and an answer that cannot be.
    pub fn run(&self, ops: &[u8], answers: &mut [u8], is_atomic: bool) -> Result<Ran> {
        let before = ran::argument(ops, answers, is_atomic)?;
        let mut after = before;
        // SAFETY: the argument is what the command takes. The operations are only read, the answers are written as far
        // as the argument says that their room goes; both live until the command returns.
        let done = unsafe { ioctl(&self.file, Updater::<{ command::RUN }, _>::new(&mut after)) };
        ran::judge(&before, &after, done.err().map_or(0, |errno| errno.raw_os_error()))
    }
}

/// The three parts of a store in the memory of this process.
#[derive(Debug)]
struct Mapping {
    parts: Vec<(NonNull<u8>, usize)>,
    mapped: Option<Mapped>,
}

// SAFETY: memory belongs to no thread, and is given back once.
unsafe impl Send for Mapping {}
// SAFETY: only `mapped` reads it.
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
        // SAFETY: what the module shows at these offsets, until `mapping` is dropped.
        mapping.mapped = unsafe { Mapped::new(header.cast(), blocks, buckets) };
        Some(mapping)
    }
}

/// Maps a part at a multiple of [`mapped::SLAB_BYTES`], which the system does not do by itself.
fn map_aligned(file: &File, offset: u64, bytes: usize) -> Option<NonNull<u8>> {
    let room = bytes + mapped::SLAB_BYTES;
    // SAFETY: at an address of the system's choice, where nothing is. What nobody may write to takes no memory.
    let all = unsafe { mmap_anonymous(null_mut(), room, ProtFlags::empty(), MapFlags::PRIVATE) }.ok()?;
    let before = all.addr().wrapping_neg() % mapped::SLAB_BYTES;
    let at = all.wrapping_byte_add(before);
    // SAFETY: in the room, which nobody else knows of.
    let part = unsafe { mmap(at, bytes, ProtFlags::READ, MapFlags::SHARED | MapFlags::FIXED, file, offset) };
    let Ok(part) = part else {
        // SAFETY: likewise.
        let _ = unsafe { munmap(all, room) };
        return None;
    };
    for (rest, bytes) in [(all, before), (at.wrapping_byte_add(bytes), mapped::SLAB_BYTES - before)] {
        if bytes > 0 {
            // SAFETY: what of the room is before the part, and behind it.
            let _ = unsafe { munmap(rest, bytes) };
        }
    }
    NonNull::new(part.cast())
}

impl Drop for Mapping {
    fn drop(&mut self) {
        for (at, bytes) in self.parts.drain(..) {
            // SAFETY: it was mapped, and `mapped`, which nobody borrows any more, is all that reads it.
            let _ = unsafe { munmap(at.as_ptr().cast(), bytes) };
        }
    }
}

/// Asks for something that is all numbers.
fn get<const COMMAND: Opcode, T: Numbers>(file: &File, what: &'static str) -> Result<T> {
    // SAFETY: the command writes as many bytes as its number says, which are those of the type, and any bytes are one.
    unsafe { ioctl(file, Getter::<COMMAND, T>::new()) }.map_err(system(what))
}

/// What any bytes are one of.
///
/// # Safety
/// Nothing but integers, and no byte between them.
unsafe trait Numbers {}

// SAFETY: two and one integers; `abi` asserts their bytes.
unsafe impl Numbers for abi::Version {}
// SAFETY: integers of one size.
unsafe impl Numbers for abi::Stats {}

fn length(what: &'static str, name: &[u8]) -> Result<u32> {
    u32::try_from(name.len()).map_err(|_| Error::system(what, libc::EINVAL))
}

/// Takes the records of a list apart.
fn records(mut bytes: &[u8], count: u32, into: &mut Vec<Listed>) -> Result<()> {
    let nonsense = |why| Error::nonsense(LIST, why);
    for _ in 0..count {
        let record = record(&mut bytes).ok_or(nonsense("a record is cut off"))?;
        if record.name.is_empty() || into.last().is_some_and(|last| last.name >= record.name) {
            return Err(nonsense("the names are not in order"));
        }
        into.push(record);
    }
    if bytes.is_empty() { Ok(()) } else { Err(nonsense("something follows the last record")) }
}

/// The first record, which is taken off the bytes.
fn record(bytes: &mut &[u8]) -> Option<Listed> {
    let (head, rest) = bytes.split_first_chunk::<{ size_of::<abi::Listed>() }>()?;
    let long = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().expect("8 bytes"));
    let short = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().expect("4 bytes"));
    let name_bytes = short(48) as usize;
    let (name, rest) = rest.split_at_checked(name_bytes.checked_next_multiple_of(8)?)?;
    *bytes = rest;
    Some(Listed {
        name: name[..name_bytes].to_vec(),
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

    /// Bytes of a list with these names, as the module makes them.
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
        // Every length in place of the right one: an error or other names, and nothing else.
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
        // Opens, and knows no such command.
        let error = Device::open_at(Path::new("/dev/null"), false).unwrap_err();
        assert_eq!(error.what(), ASK_VERSION);
        // An emulator of processors that does not know the command says so in its own way.
        assert!([Some(libc::ENOTTY), Some(libc::ENOSYS)].contains(&error.number()), "{error}");
    }
}
