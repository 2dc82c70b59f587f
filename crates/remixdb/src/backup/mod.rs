//! Backups: a directory that has many of them, in which each table is stored once.
//!
//! A directory of backups is no store. It has these files, whose numbers are never used again while they are there:
//!
//! - `NUMBER.copy`, the bytes of a table, a REMIX or a log that is kept for values in it, under a number of the
//!   directory;
//! - `NUMBER.log`, the content of a memtable at the time of one backup;
//! - `NUMBER.copy`, the description of a backup (format.rs): all files of the store, their copies and checksums, and
//!   the state of its manifest;
//! - `NUMBER.backup`, an empty file: the description of this number is complete. Only this makes a backup;
//! - `LOCK`, which is locked while the directory is changed.
//!
//! **Making one** begins as a [`checkpoint`](crate::checkpoint) does, with one instant of the store. Then in this
//! order: the copies that are not there yet and the logs, synced; the description, synced; the names; the empty file
//! and its name. A crash leaves the earlier backups as they were, and maybe files that no description names. The next
//! backup and the next prune remove those.
//!
//! **A file is taken as present** if an earlier backup has one of the same kind, number and length, and if it is the
//! same file of the store (its inode and the time of its last write), or else has the same bytes, for which it is read.
//! Numbers alone are not enough: a store that was restored from a backup uses numbers again that the original has used
//! since. So stores of any descent can follow each other in one directory, and nothing is mixed up.
//!
//! **Pruning** removes the empty files first. Once that is durable, it removes what no backup names that is left. It
//! removes nothing while a description cannot be read: that may name anything.
//!
//! A backup never writes to the store, so one that has stopped, or is full, or is only read, can be backed up.

pub(crate) mod format;

use crate::checkpoint;
use crate::core::Handle;
use crate::disk::{self, Disk, Hold, Kind, Name, Real, Sealed, SealedFile, Unfinished, Write};
use crate::manifest::Manifest;
use crate::page;
use crate::table::Table;
use crate::values::Kept;
use format::{Description, PIECE_BYTES, Stored, Sums};
use forrest_engine::{EncryptionKey, Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// A backup in a directory of backups.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backup {
    /// Its number: later backups of a directory have greater ones.
    pub id: u64,
    /// When it was made, by the clock of the system.
    pub time: SystemTime,
    /// Bytes of the store that it has.
    pub bytes: u64,
    /// Bytes that were copied for it; the others were there.
    pub new_bytes: u64,
    /// Number of files of the store that it has.
    pub files: u64,
    /// Why its description cannot be read, if so. The other fields are then 0, and the time is the beginning of 1970.
    pub damage: Option<String>,
}

/// Which backups [`prune`] keeps. The newest one is always kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// This number of the newest ones.
    Newest(u64),
    /// Those that were made at this time or later.
    Since(SystemTime),
}

/// What [`prune`] has removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// The numbers of the removed backups.
    pub removed: Vec<u64>,
    /// Bytes of the removed files.
    pub bytes: u64,
}

/// How a backup is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupOptions {
    /// Whether the newest backup may be of another store. Without this, that is an error, because most likely the
    /// directory is the wrong one. A store that was restored, or copied to another directory, counts as another one.
    pub other_store: bool,
    /// The key of the directory of backups, which is encrypted if a store has a key or this is given. `None` for the
    /// key of the store.
    pub encryption_key: Option<EncryptionKey>,
}

/// How far a long operation on files is, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes that are done.
    pub done: u64,
    /// Bytes of all.
    pub whole: u64,
}

/// Who is asked now and then whether to go on.
type See<'s> = &'s mut dyn FnMut(Progress) -> ControlFlow<()>;

/// A directory of backups, to be read.
fn open(path: &Path, key: Option<&EncryptionKey>) -> Result<Sealed> {
    Sealed::with(Real::open_backups(path)?, key, true, false)
}

/// The backups in a directory, from the oldest on. `key` is that of an encrypted directory.
///
/// # Errors
/// `Io` if there are none; `InvalidArgument` for a directory with other files, and for a wrong key.
pub fn backups(path: &Path, key: Option<&EncryptionKey>) -> Result<Vec<Backup>> {
    list(Arc::new(open(path, key)?))
}

/// Makes a new store at `to` of a backup: of the newest one, or of that with a number. Durable when it returns. `key`
/// is that of an encrypted directory; the new store has the keys of the directory, because the copies of logs are those
/// of the store, byte for byte.
///
/// # Errors
/// `Corrupt` for a damaged backup, with the file and the offset; `InvalidArgument` if there is no such backup, or if
/// something is at `to`; `Busy` if `see` broke; `Io`; `OutOfSpace`. After an error there is nothing at `to`.
pub fn restore(
    path: &Path,
    key: Option<&EncryptionKey>,
    id: Option<u64>,
    to: &Path,
    see: See<'_>,
) -> Result<Backup> {
    let from = open(path, key)?;
    let unfinished = Unfinished::begin(to, Some(from.real()?))?;
    let into = from.beside(unfinished.disk()?);
    let restored = restore_into(&from, id, into, see)?;
    unfinished.finish()?;
    Ok(restored)
}

/// Reads every byte of a backup and checks it: of the newest one, or of that with a number.
///
/// # Errors
/// `Corrupt` with the file and the offset of the first damage; `InvalidArgument` if there is no such backup; `Busy` if
/// `see` broke; `Io`.
pub fn verify_backup(
    path: &Path,
    key: Option<&EncryptionKey>,
    id: Option<u64>,
    see: See<'_>,
) -> Result<Backup> {
    verify(&open(path, key)?, id, see)
}

/// Removes backups, and the files that none of the others names.
///
/// # Errors
/// `Corrupt`, or `Unsupported`, if the description of a backup that is to be kept cannot be read; `Busy` if one that is
/// to be removed is being read, or if somebody else changes the directory. Nothing is removed then. `Io`.
pub fn prune(path: &Path, key: Option<&EncryptionKey>, keep: Keep) -> Result<Pruned> {
    prune_in(Arc::new(Sealed::with(Real::lock_backups(path, false)?, key, false, false)?), keep)
}

/// Replaces the key of an encrypted directory of backups. Durable when it returns. Reading goes on meanwhile.
///
/// # Errors
/// `InvalidArgument` for a wrong key, and if the directory is not encrypted; `Busy` if somebody else changes it; `Io`,
/// `OutOfSpace`: either key may be the one that opens it then.
#[cfg(feature = "encryption")]
pub fn rotate_backups_key(path: &Path, key: &EncryptionKey, new: &EncryptionKey) -> Result<()> {
    Sealed::with(Real::lock_backups(path, false)?, Some(key), false, false)?.rotate_user(new, || 0)
}

fn time_of(milliseconds: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds)).unwrap_or(UNIX_EPOCH)
}

impl Backup {
    fn of(id: u64, is: &Description) -> Backup {
        Backup {
            id,
            time: time_of(is.time),
            bytes: is.bytes(),
            new_bytes: is.new_bytes,
            files: is.files.len() as u64,
            damage: None,
        }
    }

    fn damaged(id: u64, error: &Error) -> Backup {
        let damage = Some(error.message().to_string());
        Backup { id, time: UNIX_EPOCH, bytes: 0, new_bytes: 0, files: 0, damage }
    }
}

/// What a directory of backups has.
struct Directory {
    disk: Arc<Sealed>,
    names: Vec<Name>,
    backups: BTreeMap<u64, Result<Description>>,
}

impl Directory {
    fn read(disk: Arc<Sealed>) -> Result<Directory> {
        let names = disk::list(&*disk)?;
        let mut backups = BTreeMap::new();
        for name in names.iter().filter(|name| name.kind == Kind::Backup) {
            let read = match Description::read(&disk, Name::copy(name.number)) {
                // Most likely it passes.
                Err(error) if error.kind() == ErrorKind::OutOfSpace => return Err(error),
                read => read,
            };
            backups.insert(name.number, read);
        }
        Ok(Directory { disk, names, backups })
    }

    /// A number that is greater than all in the directory.
    fn next(&self) -> u64 {
        self.names.iter().map(|name| name.number).max().unwrap_or(0) + 1
    }

    /// The error of a description that cannot be read.
    fn unreadable(&self) -> Option<Error> {
        self.backups.values().find_map(|read| read.as_ref().err().map(disk::again))
    }

    fn descriptions(&self) -> impl DoubleEndedIterator<Item = &Description> {
        self.backups.values().filter_map(|read| read.as_ref().ok())
    }

    /// An error if the newest backup is of another store.
    fn check_store(&self, store: [u64; 2], options: &BackupOptions) -> Result<()> {
        let newest = self.descriptions().next_back().map_or([0, 0], |newest| newest.store);
        if options.other_store || newest == store || newest == [0, 0] || store == [0, 0] {
            return Ok(());
        }
        Err(Error::invalid(
            "the directory has backups of another store, or of this one before it was restored or copied; \
             choose another directory, or say that it is meant (other_store)",
        ))
    }

    /// Removes what no backup names; the number of bytes. The descriptions of all backups are known.
    fn sweep(&mut self) -> Result<u64> {
        let mut used: BTreeSet<Name> =
            self.descriptions().flat_map(|is| is.files.iter().map(|file| file.copy)).collect();
        for &id in self.backups.keys() {
            used.extend([Name::backup(id), Name::copy(id)]);
        }
        let is_left = |name: &&Name| {
            matches!(name.kind, Kind::Copy | Kind::Backup | Kind::Log) && !used.contains(*name)
        };
        let left: Vec<Name> = self.names.iter().filter(is_left).copied().collect();
        let mut bytes = 0;
        for &name in &left {
            if let Some(file) = disk::open_if_there(&*self.disk, name)? {
                bytes += disk::len(&*self.disk, &file, name)?;
            }
            disk::unlink(&*self.disk, name)?;
        }
        if !left.is_empty() {
            disk::sync_directory(&*self.disk, Kind::Copy)?;
            disk::sync_directory(&*self.disk, Kind::Log)?;
        }
        Ok(bytes)
    }

    /// The files of earlier backups that may be a file of the store, by its name and length. A copy that is missing, or
    /// has another length, is none.
    fn known(&self) -> Result<BTreeMap<(Name, u64), Vec<&Stored>>> {
        let mut known: BTreeMap<_, Vec<&Stored>> = BTreeMap::new();
        let mut looked: BTreeMap<Name, bool> = BTreeMap::new();
        for file in self.descriptions().rev().flat_map(|is| &is.files) {
            if file.copy.kind == Kind::Log || looked.contains_key(&file.copy) {
                continue;
            }
            let is_whole = match disk::open_if_there(&*self.disk, file.copy)? {
                Some(copy) => disk::len(&*self.disk, &copy, file.copy)? == file.sums.len,
                None => false,
            };
            looked.insert(file.copy, is_whole);
            if is_whole {
                known.entry((file.name, file.sums.len)).or_default().push(file);
            }
        }
        Ok(known)
    }
}

/// The backups on a disk, from the oldest on.
pub(crate) fn list(disk: Arc<Sealed>) -> Result<Vec<Backup>> {
    let directory = Directory::read(disk)?;
    let listed = directory.backups.iter().map(|(&id, read)| match read {
        Ok(is) => Backup::of(id, is),
        Err(error) => Backup::damaged(id, error),
    });
    Ok(listed.collect())
}

/// Passes the pieces of a file in order, each with its offset and whether it is the last; there is always a last one.
fn pieces(
    (disk, file, name): (&Sealed, &SealedFile, Name),
    mut see: impl FnMut(u64, Vec<u8>, bool) -> Result<()>,
) -> Result<()> {
    let mut offset = 0;
    loop {
        let mut piece = vec![0; PIECE_BYTES];
        let count = disk::read_up_to(disk, file, name, &mut piece, offset)?;
        piece.truncate(count);
        let ends = count < PIECE_BYTES;
        see(offset, piece, ends)?;
        offset += count as u64;
        if ends {
            return Ok(());
        }
    }
}

/// The checksums of a file that is read in pieces.
struct Summing {
    sums: Sums,
    whole: Xxh3,
}

impl Summing {
    fn new() -> Summing {
        Summing { sums: Sums::default(), whole: Xxh3::new() }
    }

    fn add(&mut self, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        self.whole.update(piece);
        self.sums.pieces.push(xxh3_64_with_seed(piece, self.sums.pieces.len() as u64));
        self.sums.len += piece.len() as u64;
    }

    fn finish(mut self) -> Sums {
        self.sums.whole = self.whole.digest128();
        self.sums
    }
}

/// Counts what is done, and ends it if that is wanted.
struct Watch<'s> {
    progress: Progress,
    see: See<'s>,
}

impl Watch<'_> {
    fn advance(&mut self, bytes: u64) -> Result<()> {
        self.progress.done += bytes;
        match (self.see)(self.progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::new(ErrorKind::Busy, "given up, as was asked for")),
        }
    }
}

/// What is backed up of a file that is shared with the store.
enum Source {
    Table(Arc<Table>),
    Remix(Name, SealedFile),
    /// A log that is kept for values in it.
    Log(Arc<Kept>),
}

impl Source {
    fn file(&self) -> (&SealedFile, Name) {
        match self {
            Source::Table(table) => (table.file(), table.name()),
            Source::Remix(name, file) => (file, *name),
            Source::Log(log) => (log.file().expect("it was opened"), log.name()),
        }
    }

    /// Whether every checksum is right. A REMIX that is damaged can be made again from its tables.
    fn check(&self, disk: &Sealed) -> Result<bool> {
        let (name, file) = match self {
            Source::Table(table) => return table.verify().map(|()| true),
            Source::Log(log) => return log.verify(disk).map(|()| true),
            Source::Remix(name, file) => (*name, file),
        };
        let is_right = pieces((disk, file, name), |offset, piece, _| {
            let first = offset / page::BYTES as u64;
            let whole = piece.chunks_exact(page::BYTES);
            if !whole.remainder().is_empty() {
                return Err(disk::damaged(name, offset, "the file ends within a page"));
            }
            whole.zip(first..).try_for_each(|(bytes, number)| page::check(bytes, name, number))
        });
        match is_right {
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(false),
            checked => checked.map(|()| true),
        }
    }
}

/// A backup that is being made.
struct New<'n> {
    into: Arc<Sealed>,
    known: BTreeMap<(Name, u64), Vec<&'n Stored>>,
    /// The next number in the directory.
    next: u64,
    is: Description,
    watch: Watch<'n>,
}

impl Handle {
    /// Adds a backup of the store, as it is, to a directory of backups that nobody else changes. `store` are the two
    /// numbers of its directory.
    ///
    /// # Errors
    /// See [`Store::backup`](crate::Store::backup).
    pub(crate) fn backup(
        &self,
        into: Sealed,
        store: [u64; 2],
        options: &BackupOptions,
        see: See<'_>,
    ) -> Result<Backup> {
        let mut directory = Directory::read(Arc::new(into))?;
        directory.check_store(store, options)?;
        let first = directory.next();
        if directory.unreadable().is_none() {
            directory.sweep()?;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut new = New {
            into: directory.disk.clone(),
            known: directory.known()?,
            next: first,
            is: Description { time: now.as_millis() as u64, store, ..Description::default() },
            watch: Watch { progress: Progress { done: 0, whole: 0 }, see },
        };
        let described = self.fill(&mut new).and_then(|()| describe(&mut new));
        let id = described.inspect_err(|_| give_up(&directory.disk, first))?;
        // DURABILITY: everything that the backup names is durable, with its names. From here on nothing is removed if
        // it fails: the name may be durable already.
        let file = disk::create(&*directory.disk, Name::backup(id))?;
        disk::sync(&*directory.disk, &file, Name::backup(id))?;
        disk::sync_directory(&*directory.disk, Kind::Backup)?;
        Ok(Backup::of(id, &new.is))
    }

    /// Copies what is not there yet, and notes all files.
    fn fill(&self, new: &mut New<'_>) -> Result<()> {
        let snapshot = self.snapshot()?;
        let (version, catalog, sequence) = snapshot.parts();
        let (mut state, shared) = checkpoint::shared(self.disk(), version, catalog)?;
        let tables = shared.tables.into_iter().map(Source::Table);
        let remixes = shared.remixes.into_iter().map(|(name, file)| Source::Remix(name, file));
        let logs = shared.logs.into_iter().map(Source::Log);
        let sources: Vec<Source> = tables.chain(remixes).chain(logs).collect();
        let greatest = sources.iter().map(|source| source.file().1.number).max().unwrap_or(0);
        state.floor = new.next.max(greatest + 1);
        let end = checkpoint::log(version, catalog, sequence, &new.into, state.floor)?;
        state.whole = (end.number, end.offset);
        new.next = end.number + 1;
        // If another process changes the store, the names stay until the files are copied.
        let _hold = version.hold.clone();
        drop(snapshot);
        let mut lens = Vec::new();
        for source in &sources {
            let (file, name) = source.file();
            lens.push(disk::len(self.disk(), file, name)?);
        }
        new.watch.progress.whole = lens.iter().sum();
        for (source, len) in sources.iter().zip(lens) {
            if !self.add(source, len, new)? {
                let number = source.file().1.number;
                let all = state.partitions.values_mut().flat_map(BTreeMap::values_mut);
                all.filter(|files| files.remix == number).for_each(|files| files.remix = 0);
            }
        }
        for name in (state.floor..=end.number).map(Name::log) {
            let file = disk::open(&*new.into, name)?;
            let mut sums = Summing::new();
            pieces((&*new.into, &file, name), |_, piece, _| {
                sums.add(&piece);
                Ok(())
            })?;
            let sums = sums.finish();
            new.is.new_bytes += sums.len;
            new.is.files.push(Stored { name, copy: name, mark: (0, 0), sums });
        }
        new.is.state = state;
        Ok(())
    }

    /// Adds a file of the store; false if it is a damaged REMIX.
    fn add(&self, source: &Source, len: u64, new: &mut New<'_>) -> Result<bool> {
        let (file, name) = source.file();
        let mark = disk::mark(self.disk(), file, name)?;
        let alike = new.known.get(&(name, len)).cloned().unwrap_or_default();
        if let Some(&same) = alike.iter().find(|alike| alike.mark == mark && mark != (0, 0)) {
            new.is.files.push(same.clone());
            return new.watch.advance(len).map(|()| true);
        }
        if !source.check(self.disk())? {
            return Ok(false);
        }
        if !alike.is_empty() {
            let mut sums = Summing::new();
            pieces((self.disk(), file, name), |_, piece, _| {
                sums.add(&piece);
                new.watch.advance(0)
            })?;
            let sums = sums.finish();
            if let Some(same) = alike.iter().find(|alike| alike.sums == sums) {
                // From now on it is known by its mark.
                new.is.files.push(Stored { mark, ..(*same).clone() });
                return new.watch.advance(len).map(|()| true);
            }
        }
        let copy = Name::copy(new.next);
        new.next += 1;
        let made = disk::create(&*new.into, copy)?;
        let mut sums = Summing::new();
        pieces((self.disk(), file, name), |offset, bytes, is_last| {
            self.spend_aside(bytes.len())?;
            sums.add(&bytes);
            let count = bytes.len() as u64;
            // DURABILITY: the last write syncs all.
            let mut write = Write { offset, bytes, done: 0, sync: is_last };
            disk::write_all(&*new.into, &made, copy, &mut write)?;
            new.watch.advance(count)
        })?;
        let sums = sums.finish();
        new.is.new_bytes += sums.len;
        new.is.files.push(Stored { name, copy, mark, sums });
        Ok(true)
    }
}

/// Writes the description. It and all names are durable when this returns its number.
fn describe(new: &mut New<'_>) -> Result<u64> {
    let id = new.next;
    new.is.write(&new.into, Name::copy(id))?;
    disk::sync_directory(&*new.into, Kind::Copy)?;
    disk::sync_directory(&*new.into, Kind::Log)?;
    Ok(id)
}

/// Removes what a backup that failed has made: it has the numbers from `first` on. A key file may be new as well, and
/// stays: it has replaced the others.
fn give_up(disk: &Sealed, first: u64) {
    // What cannot be removed now is removed by the next backup.
    let names = disk::list(disk).unwrap_or_default();
    let is_of_it = |name: &Name| name.number >= first && !matches!(name.kind, Kind::Backup | Kind::Key);
    for name in names.into_iter().filter(is_of_it) {
        let _ = disk::unlink(disk, name);
    }
}

/// A backup that is held so that nobody removes it, its number and its description.
fn find(disk: &Sealed, id: Option<u64>) -> Result<(Hold, u64, Description)> {
    let names = disk::list(disk)?;
    let mut ids = names.iter().filter(|name| name.kind == Kind::Backup).map(|name| name.number);
    let found = match id {
        Some(id) => ids.find(|&other| other == id),
        None => ids.max(),
    };
    let none = || {
        Error::invalid(match id {
            Some(id) => format!("there is no backup {id} in the directory"),
            None => "there is no complete backup in the directory".to_string(),
        })
    };
    let id = found.ok_or_else(none)?;
    let hold = disk::hold(disk, Name::backup(id))?.ok_or_else(none)?;
    Ok((hold, id, Description::read(disk, Name::copy(id))?))
}

/// Reads the copy of a file, and checks it. Each piece is passed on with its offset, and whether it is the last.
fn read_copy(
    disk: &Sealed,
    Stored { copy, sums, .. }: &Stored,
    watch: &mut Watch<'_>,
    mut pass: impl FnMut(u64, Vec<u8>, bool) -> Result<()>,
) -> Result<()> {
    let copy = *copy;
    let missing = || disk::damaged(copy, 0, "the file is missing, and a backup names it");
    let file = disk::open_if_there(disk, copy)?.ok_or_else(missing)?;
    let mut expected = sums.pieces.iter();
    let mut done = 0;
    pieces((disk, &file, copy), |offset, piece, is_last| {
        let count = piece.len() as u64;
        let end = (offset + count).min(sums.len);
        if offset + count > sums.len || (is_last && end < sums.len) {
            return Err(disk::damaged(copy, end, format!("the file should end at {}", sums.len)));
        }
        let number = offset / PIECE_BYTES as u64;
        if count > 0 && expected.next() != Some(&xxh3_64_with_seed(&piece, number)) {
            return Err(disk::damaged(copy, offset, format!("wrong checksum of {count} bytes")));
        }
        done += count;
        pass(offset, piece, is_last)?;
        watch.advance(count)
    })
}

/// See [`verify_backup`].
pub(crate) fn verify(disk: &Sealed, id: Option<u64>, see: See<'_>) -> Result<Backup> {
    let (_hold, id, is) = find(disk, id)?;
    let mut watch = Watch { progress: Progress { done: 0, whole: is.bytes() }, see };
    for file in &is.files {
        read_copy(disk, file, &mut watch, |_, _, _| Ok(()))?;
    }
    Ok(Backup::of(id, &is))
}

/// See [`restore`]. `into` is an empty directory.
pub(crate) fn restore_into(from: &Sealed, id: Option<u64>, into: Sealed, see: See<'_>) -> Result<Backup> {
    let (_hold, id, is) = find(from, id)?;
    let into = Arc::new(into);
    let mut watch = Watch { progress: Progress { done: 0, whole: is.bytes() }, see };
    let greatest = is.files.iter().map(|file| file.name.number).max().unwrap_or(0);
    into.part(greatest + 1)?;
    for file in &is.files {
        let made = disk::create(&*into, file.name)?;
        read_copy(from, file, &mut watch, |offset, bytes, is_last| {
            // DURABILITY: the last write syncs all, before the manifest names the file.
            let mut write = Write { offset, bytes, done: 0, sync: is_last };
            disk::write_all(&*into, &made, file.name, &mut write)
        })?;
    }
    disk::sync_directory(&*into, Kind::Log)?;
    // DURABILITY: `create` syncs the directory, and with it the names of all files.
    Manifest::create(&into, greatest + 1, is.state.clone())?;
    Ok(Backup::of(id, &is))
}

/// See [`prune`]. Nobody else changes the directory.
pub(crate) fn prune_in(disk: Arc<Sealed>, keep: Keep) -> Result<Pruned> {
    let mut directory = Directory::read(disk)?;
    let intact = directory.backups.iter().filter_map(|(&id, read)| Some((id, read.as_ref().ok()?)));
    let newest_first: Vec<_> = intact.rev().collect();
    let count = match keep {
        Keep::Newest(count) => usize::try_from(count).unwrap_or(usize::MAX),
        // The clock may have been wrong for some of them: the oldest that is new enough stays, with all after it.
        Keep::Since(time) => {
            newest_first.iter().rposition(|(_, is)| time_of(is.time) >= time).map_or(0, |at| at + 1)
        }
    };
    let first_kept = newest_first.iter().take(count.max(1)).next_back().map_or(0, |(id, _)| *id);
    let kept = directory.backups.split_off(&first_kept);
    let old = std::mem::replace(&mut directory.backups, kept);
    let is_newer = |error: &&Error| error.kind() == ErrorKind::Unsupported;
    let unknown = old.values().find_map(|read| read.as_ref().err().filter(is_newer).map(disk::again));
    if let Some(error) = directory.unreadable().or(unknown) {
        return Err(error);
    }
    let mut pruned = Pruned { removed: old.into_keys().collect(), bytes: 0 };
    if let Some(id) = pruned.removed.iter().find(|&&id| disk::is_held(&*directory.disk, Name::backup(id))) {
        return Err(Error::new(ErrorKind::Busy, format!("backup {id} is being read")));
    }
    for &id in &pruned.removed {
        disk::unlink(&*directory.disk, Name::backup(id))?;
    }
    directory.names.retain(|name| name.kind != Kind::Backup || !pruned.removed.contains(&name.number));
    // DURABILITY: a backup that lacks files is not one any more, whatever is lost of what follows.
    disk::sync_directory(&*directory.disk, Kind::Backup)?;
    pruned.bytes = directory.sweep()?;
    Ok(pruned)
}
