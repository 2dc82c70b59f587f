//! [`save`] and [`restore`]: a store in a file, while the machine or the module is replaced.
//!
//! The file has what the store is and its pairs, with checksums (saved_file.rs). It is written under another name,
//! synced, and renamed. Restoring reads the whole file before it creates the store.
//!
//! A checksum is no signature: who can write a file can make one of any store. So root restores a store for its owner
//! only from a file that belongs to root or to that owner, and that nobody else can write.

use crate::failure::{self, Kind};
use crate::name::{self, Name};
use crate::raw::{Attach, Device, Listed, RawStore};
use crate::saved_file::{Fault, Pairs, Reader, Writer};
use crate::store::Store;
use forrest_engine::{Direction, Error, ErrorKind, Result};
use rustix::fs::OFlags;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufReader, BufWriter, Seek};
use std::ops::{Bound, ControlFlow};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Capacity of the buffers of a file.
const BUFFER_BYTES: usize = 1 << 18;
/// How many names of incomplete files a process tries.
const NAMES: u32 = 100;

/// A store that was saved or restored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// The store's name, as a URL has it.
    pub name: Vec<u8>,
    /// Keys.
    pub keys: u64,
    /// The owner.
    pub uid: u32,
    /// The owner's group.
    pub gid: u32,
    /// The permissions, as the mode of a file.
    pub mode: u32,
}

/// Writes a store with all its pairs, its owner, group, mode and maximum size to a file, which only this user may read.
/// `see` is called now and then with the bytes that are done and those of the whole, and may end it.
///
/// Each piece of the store is read as it is at one instant. Changes by others meanwhile may or may not be in the file,
/// so stop the writers first if they depend on each other. When it returns, the file is synced. A file that was at
/// `path` is replaced when the new one is complete; so after an error there is a whole one, the old one or the new one.
///
/// # Errors
/// `Io` if the store does not exist, this user may not read it, or the file cannot be written; `Busy` if `see` broke;
/// otherwise as [`version`](crate::version).
///
/// ```
/// use std::ops::ControlFlow;
///
/// // On a machine without the module this fails, and leaves no file.
/// let saved = forrest::llds::save("shop", "/nowhere/shop.llds", |_done, _whole| ControlFlow::Continue(()));
/// assert!(saved.is_err());
/// ```
pub fn save(
    name: impl AsRef<[u8]>,
    path: impl AsRef<Path>,
    see: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Saved> {
    let (text, own) = (name.as_ref(), name::own());
    let Name { user, bytes } = Name::of(text, own)?;
    let url = String::from_utf8_lossy(text).into_owned();
    let opened = RawStore::open(&Attach::existing(user, bytes), false);
    let store = opened.map_err(|error| failure::opening(Kind::Kernel, &url, &error))?;
    let all =
        Device::open(false).and_then(|device| device.list()).map_err(|error| failure::device(&error))?;
    let is_it = |store: &Listed| store.is_of_user.then_some(store.uid) == user && store.name == bytes;
    let Some(listed) = all.into_iter().find(is_it) else {
        let message = format!("there is no store \"llds:{}\" that this user may read", text.escape_ascii());
        return Err(Error::new(ErrorKind::Io, message));
    };
    let keys = write(&Store::of(Kind::Kernel, url, store), &listed, path.as_ref(), see)?;
    Ok(saved(text.to_vec(), keys, &listed))
}

/// Creates the store of a file that [`save`] wrote, with the same owner, group, mode and maximum size, under the same
/// name. With a name, it is a copy under that name, which belongs to this user. `see` as in [`save`].
///
/// The whole file is read first, so a damaged one changes nothing. Then the store appears, and fills; if that fails, it
/// is destroyed. Let nobody use it before this returns. To restore a store of another user or group, be
/// root; then the file must belong to root or to that user, and nobody else may be able to write it. It needs a thread,
/// in which it acts for that user.
///
/// # Errors
/// `Corrupt` for a damaged file, `InvalidArgument` for one that [`save`] did not write, `Unsupported` for one of
/// another version; `Busy` if the store exists, or if `see` broke; `Limit` for a value longer than the module allows;
/// `OutOfSpace`; `Io` if this user may not create the store; otherwise as [`version`](crate::version).
///
/// ```
/// use std::ops::ControlFlow;
///
/// let restored = forrest::llds::restore("/nowhere/shop.llds", None, |_done, _whole| ControlFlow::Continue(()));
/// assert!(restored.is_err());
/// ```
pub fn restore(
    path: impl AsRef<Path>,
    name: Option<&[u8]>,
    mut see: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Saved> {
    let (path, own) = (path.as_ref(), name::own());
    let failed = |error| of_file(path, "be read", error);
    // A pipe must not hold up the opening.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        let message = format!("{}: it is no file; it is read twice", path.display());
        return Err(Error::invalid(message));
    }
    // Once to check it, and once for the pairs.
    let bytes = metadata.len();
    let whole = read(&file, path, |_| Ok(()), |done| see(done, 2 * bytes))?;
    let (listed, keys) = &whole;
    if name.is_none() && own == 0 {
        check_trusted(path, &metadata, listed.uid)?;
    }
    let saved_name = Name { user: listed.is_of_user.then_some(listed.uid), bytes: &listed.name };
    let (text, of, owner) = match name {
        Some(text) => (text.to_vec(), Name::of(text, own)?, (own, name::own_group())),
        None => (saved_name.text(own), saved_name, (listed.uid, listed.gid)),
    };
    let url = String::from_utf8_lossy(&text).into_owned();
    let (bytes_max, mode) = (listed.bytes_max, listed.mode);
    let attach = Attach { makes: true, bytes_max, mode, ..Attach::existing(of.user, of.bytes) };
    let created = RawStore::create(&attach, owner);
    let store = created.map_err(|error| failure::opening(Kind::Kernel, &url, &error))?;
    let store = Store::of(Kind::Kernel, url, store);
    let filled = fill(&store, &file, path, |done| see(bytes + done, 2 * bytes)).and_then(|filled| {
        let message = || format!("{} was changed while it was read", path.display());
        if filled == whole { Ok(()) } else { Err(Error::new(ErrorKind::Corrupt, message())) }
    });
    match filled {
        Ok(()) => Ok(Saved { uid: owner.0, gid: owner.1, ..saved(text, *keys, listed) }),
        Err(error) => {
            // A part of a store is worse than none. If somebody has destroyed it meanwhile, there is nothing to do, and
            // a store that has its name now is another one.
            match store.destroy(of) {
                Ok(()) => Err(error),
                Err(gone) if failure::is_gone(&gone) => Err(error),
                Err(_) => Err(Error::new(
                    error.kind(),
                    format!(
                        "{}; \"llds:{}\" has a part of the file, and was not destroyed",
                        error.message(),
                        text.escape_ascii()
                    ),
                )),
            }
        }
    }
}

/// Fails unless root may believe a file that says that its store is of the user `uid`.
fn check_trusted(path: &Path, file: &Metadata, uid: u32) -> Result<()> {
    let is_of_others = file.uid() != 0 && file.uid() != uid;
    if !is_of_others && file.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{} says that its store is of the user {uid}, but others can write it (owner {}, mode {:04o}); if you trust it, \
         make it root's: chown root FILE; chmod 600 FILE",
        path.display(),
        file.uid(),
        file.mode() & 0o7777
    )))
}

fn saved(name: Vec<u8>, keys: u64, listed: &Listed) -> Saved {
    Saved { name, keys, uid: listed.uid, gid: listed.gid, mode: listed.mode }
}

/// Writes a store to a file. Returns the number of keys.
fn write(
    store: &Store,
    listed: &Listed,
    path: &Path,
    mut see: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<u64> {
    let failed = |error| of_file(path, "be written", error);
    let target = Target::create(path).map_err(failed)?;
    let buffered = BufWriter::with_capacity(BUFFER_BYTES, &target.file);
    let mut writer = Writer::begin(buffered, listed).map_err(failed)?;
    let (mut done, mut seen) = (0, 0);
    let mut ended = Ok(());
    store.scan((Bound::Unbounded, Bound::Unbounded), Direction::Forward, |key, value| {
        done += (key.len() + value.len()) as u64;
        ended = writer.pair(key, value).map_err(failed);
        if done - seen >= BUFFER_BYTES as u64 && ended.is_ok() {
            seen = done;
            ended = go_on(see(done, listed.pair_bytes.max(done)));
        }
        if ended.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    ended?;
    let keys = writer.end().map_err(failed)?;
    target.finish().map_err(failed)?;
    Ok(keys)
}

/// Reads a file to its end, and gives the pairs of each frame to `take`. Returns the store and the number of its pairs.
fn read(
    mut file: &File,
    path: &Path,
    mut take: impl FnMut(Pairs<'_>) -> Result<()>,
    mut see: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<(Listed, u64)> {
    let of = |fault| of_fault(path, fault);
    file.rewind().map_err(|error| of(Fault::Io(error)))?;
    let (mut reader, listed) = Reader::begin(BufReader::with_capacity(BUFFER_BYTES, file)).map_err(of)?;
    let mut keys = 0;
    while let Some(pairs) = reader.pairs().map_err(of)? {
        keys += pairs.len() as u64;
        take(pairs)?;
        go_on(see(reader.done()))?;
    }
    Ok((listed, keys))
}

/// Fills a store from a file. Returns the store of the file, and the number of pairs.
fn fill(
    store: &Store,
    file: &File,
    path: &Path,
    see: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<(Listed, u64)> {
    read(file, path, |pairs| store.set_all(pairs), see)
}

fn go_on(flow: ControlFlow<()>) -> Result<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::new(ErrorKind::Busy, "it was ended by the caller")),
    }
}

fn of_file(path: &Path, what: &str, error: io::Error) -> Error {
    let kind = if error.kind() == io::ErrorKind::StorageFull { ErrorKind::OutOfSpace } else { ErrorKind::Io };
    Error::new(kind, format!("{} cannot {what}: {error}", path.display()))
}

fn of_fault(path: &Path, fault: Fault) -> Error {
    let at = path.display();
    match fault {
        Fault::Io(error) => of_file(path, "be read", error),
        Fault::Foreign => Error::invalid(format!("{at} is no store that \"forrest llds save\" wrote")),
        Fault::Version => Error::unsupported(format!(
            "{at} is of another version; restore it with the Forrest that wrote it"
        )),
        Fault::Damaged(offset, what) => {
            Error::new(ErrorKind::Corrupt, format!("{at} is damaged: at byte {offset}, {what}"))
        }
    }
}

/// A file that is being written under another name.
struct Target<'p> {
    file: File,
    /// Its name until it is complete.
    partial: Option<PathBuf>,
    path: &'p Path,
}

impl<'p> Target<'p> {
    /// Creates the file, with a name that nobody has. One that is left from a process that was killed stays.
    fn create(path: &'p Path) -> io::Result<Target<'p>> {
        // The store may be one that only its owner can read.
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut number = 0;
        loop {
            let mut partial = path.as_os_str().to_owned();
            partial.push(format!(".{}-{number}.partial", std::process::id()));
            match options.open(&partial) {
                Ok(file) => return Ok(Target { file, partial: Some(partial.into()), path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < NAMES => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        if let Some(partial) = &self.partial {
            fs::rename(partial, self.path)?;
        }
        self.partial = None;
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Drop for Target<'_> {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // A part is of no use. Errors are dropped: there is no place to report them.
            let _ = fs::remove_file(partial);
        }
    }
}

#[cfg(all(test, feature = "user"))]
mod tests {
    use super::*;
    use forrest_engine::{Op, Options};
    use std::os::unix::fs::PermissionsExt;

    fn store(name: &str) -> Store {
        Store::open(Kind::User, name, &Options::default(), false).expect("a store of this process")
    }

    fn listed() -> Listed {
        Listed {
            name: b"shop".to_vec(),
            is_of_user: false,
            keys: 0,
            pair_bytes: 0,
            bytes: 0,
            bytes_max: 1 << 30,
            uid: 1,
            gid: 2,
            mode: 0o600,
            opens: 0,
        }
    }

    fn pairs(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut all = Vec::new();
        let see = |key: &[u8], value: &[u8]| {
            all.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        };
        store.scan((Bound::Unbounded, Bound::Unbounded), Direction::Forward, see).expect("it can be read");
        all
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("it is there");
        entries.map(|entry| entry.expect("it is there").file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_store_comes_back_as_it_was() {
        let (from, directory) = (store("saved"), tempfile::tempdir().expect("there is room"));
        let path = directory.path().join("shop.llds");
        for n in 0..30_000_u32 {
            let (key, value) = (n.to_be_bytes(), vec![n as u8; (n % 200) as usize]);
            from.apply(Op::Set { key: &key, value: &value }).expect("there is room");
        }
        from.apply(Op::Set { key: b"", value: &vec![7; 3 << 20] }).expect("there is room");
        // What is left from a process that was killed, which had the same number.
        let left = format!("shop.llds.{}-0.partial", std::process::id());
        fs::write(directory.path().join(&left), "part").expect("there is room");
        let mut calls = Vec::new();
        let see = |done, whole| {
            calls.push((done, whole));
            ControlFlow::Continue(())
        };
        assert_eq!(write(&from, &listed(), &path, see).expect("there is room"), 30_001);
        assert!(calls.len() > 3 && calls.iter().all(|(done, whole)| done <= whole));
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
        fs::remove_file(directory.path().join(&left)).expect("it is there");
        assert_eq!(names(directory.path()), ["shop.llds"]);
        let (to, file) = (store("restored"), File::open(&path).expect("it is there"));
        let mut last = 0;
        let see = |done| {
            assert!(done > last);
            last = done;
            ControlFlow::Continue(())
        };
        assert_eq!(fill(&to, &file, &path, see).expect("it is whole"), (listed(), 30_001));
        assert!(pairs(&to) == pairs(&from));
        // Root believes it if only its owner, or root, can write it.
        let own = name::own();
        let metadata = || fs::metadata(&path).expect("it is there");
        assert!(check_trusted(&path, &metadata(), own).is_ok());
        assert_eq!(check_trusted(&path, &metadata(), own + 1).is_ok(), own == 0);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).expect("it is there");
        let error = check_trusted(&path, &metadata(), own).expect_err("a group can write it");
        assert!(error.message().contains("mode 0620"), "{error}");
    }

    #[test]
    fn what_fails_or_is_ended_leaves_the_old_file() {
        let (from, directory) = (store("ended"), tempfile::tempdir().expect("there is room"));
        let path = directory.path().join("shop.llds");
        fs::write(&path, "old").expect("there is room");
        from.apply(Op::Set { key: b"key", value: &vec![7; 1 << 20] }).expect("there is room");
        let error = write(&from, &listed(), &path, |_, _| ControlFlow::Break(())).expect_err("it was ended");
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert_eq!(names(directory.path()), ["shop.llds"]);
        assert_eq!(fs::read(&path).expect("it is there"), b"old");
        let file = File::open(&path).expect("it is there");
        let error = fill(&from, &file, &path, |_| ControlFlow::Continue(())).expect_err("it is another file");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let nowhere = directory.path().join("none/shop.llds");
        let error = write(&from, &listed(), &nowhere, |_, _| ControlFlow::Continue(())).expect_err("nowhere");
        assert!(error.kind() == ErrorKind::Io && error.message().contains("none/shop.llds"), "{error}");
    }

    #[test]
    fn a_store_without_room_takes_what_it_can_and_says_so() {
        let (from, directory) = (store("large"), tempfile::tempdir().expect("there is room"));
        let path = directory.path().join("large.llds");
        for n in 0..100_000_u32 {
            from.apply(Op::Set { key: &n.to_be_bytes(), value: &[7; 100] }).expect("there is room");
        }
        write(&from, &listed(), &path, |_, _| ControlFlow::Continue(())).expect("there is room");
        let options = Options { capacity_bytes: Some(4 << 20), ..Options::default() };
        let small = Store::open(Kind::User, "small", &options, false).expect("a store of this process");
        let file = File::open(&path).expect("it is there");
        let error = fill(&small, &file, &path, |_| ControlFlow::Continue(())).expect_err("it has no room");
        assert_eq!(error.kind(), ErrorKind::OutOfSpace);
        let (all, some) = (pairs(&from), pairs(&small));
        assert!(!some.is_empty() && some.iter().all(|pair| all.binary_search(pair).is_ok()));
    }
}
