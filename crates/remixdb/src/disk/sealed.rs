//! [`Sealed`]: a disk whose files may be encrypted. The keys are in keys.rs.
//!
//! Without a key it passes everything on. With a key, every file but the key file is encrypted from its first byte:
//!
//! - **Tables, REMIXes and copies** are sealed in blocks of 4,096 bytes: each is stored as as many encrypted bytes and
//!   a tag of 16. The last one may be shorter. Offsets and lengths above this disk are those of the plain bytes. These
//!   files are written from front to back: a write begins where the last one ended, or at the beginning of a block. A
//!   block that was not full is sealed again with what follows, so the bytes before it are only safe again with the
//!   next sync. A block that does not open is damage, an error that names its offset.
//! - **Logs and manifests** pass unchanged: their records are sealed one by one (record.rs), because what is synced
//!   must survive what is torn after it. The module of the records asks this disk for the cipher of a file.
//! - The files that make a backup are empty.
//!
//! Names, kinds, numbers, lengths and times of files are readable without the key, and so are the headers of logs and
//! manifests, and the lengths of their records.
//!
//! A read-only process finds the data keys that another process adds: it looks for a new key file before
//! it opens a file that is newer than all that were there.

#[cfg(feature = "encryption")]
use super::keys::{Cipher, Keys, TAG};
#[cfg(test)]
use super::memory::Memory;
#[cfg(any(test, feature = "simulated"))]
use super::simulated::Simulated;
#[cfg(not(feature = "encryption"))]
use super::unsealed::{Cipher, Keys, TAG};
use super::{Bare, BareFile, Disk, Hold, Kind, Name, Real, Write};
use forrest_base::lock;
use forrest_engine::{EncryptionKey, Error, ErrorKind, Options, Result};
use std::fmt;
use std::io;
#[cfg(test)]
use std::sync::Arc;
use std::sync::Mutex;

/// Plain bytes of a block.
const BLOCK: usize = 4096;
/// Bytes of a block as it is stored.
const STORED: usize = BLOCK + TAG;
/// A read takes this many blocks at most.
const BLOCKS_MOST: u64 = 256;

/// See the head of the file.
pub struct Sealed {
    inner: Bare,
    keys: Option<Keys>,
    /// Whether another process may change the keys.
    is_beside: bool,
}

/// An open file of a [`Sealed`] disk.
pub struct SealedFile {
    file: BareFile,
    way: Way,
}

/// How a file is encrypted.
enum Way {
    Plain,
    /// In blocks, with the end of what was written.
    Blocks(Cipher, Mutex<End>),
    /// In records.
    Records(Cipher),
}

/// The last block of a file that is being written, if it is not full.
#[derive(Default)]
struct End {
    /// The offset of the block.
    start: u64,
    bytes: Vec<u8>,
}

impl Way {
    fn of(kind: Kind, cipher: Cipher) -> Way {
        match kind {
            Kind::Log | Kind::Manifest => Way::Records(cipher),
            Kind::Remix | Kind::Table | Kind::Copy => Way::Blocks(cipher, Mutex::default()),
            Kind::Backup | Kind::Key => Way::Plain,
        }
    }
}

/// Length of the stored form of the first `len` bytes.
fn stored(len: u64) -> u64 {
    let rest = len % BLOCK as u64;
    (len / BLOCK as u64).saturating_mul(STORED as u64).saturating_add(if rest > 0 {
        rest + TAG as u64
    } else {
        0
    })
}

/// Length of the plain form.
fn plain(len: u64) -> u64 {
    let rest = len % STORED as u64;
    len / STORED as u64 * BLOCK as u64 + rest.saturating_sub(TAG as u64)
}

#[cold]
fn damaged_block(place: u64) -> io::Error {
    let at = place.saturating_mul(BLOCK as u64);
    let what = format!("the encrypted block at offset {at} is damaged, or was written with another key");
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cold]
fn encrypted() -> Error {
    Error::invalid(
        "the files are encrypted; open them with their encryption key (encryption_key, or --key-file)",
    )
}

#[cold]
fn not_encrypted() -> Error {
    Error::invalid(
        "an encryption key is given, and the files are not encrypted, or their key file is lost; open them without a \
         key. To encrypt a store, dump it and load it into a new one with a key",
    )
}

impl Sealed {
    /// A disk that is not encrypted. Nothing is looked for, so an encrypted store is a damaged one on it.
    pub fn plain(inner: impl Into<Bare>) -> Sealed {
        Sealed { inner: inner.into(), keys: None, is_beside: false }
    }

    /// The directory of a store, with the key of the options. A new store with a key gets its key file.
    ///
    /// # Errors
    /// `InvalidArgument` for a wrong key, for an encrypted store without a key, and for a plain one with a key;
    /// `Corrupt` for a damaged key file; `Unsupported` if this build has no encryption; `Io`, `OutOfSpace`.
    pub fn open(inner: impl Into<Bare>, options: &Options) -> Result<Sealed> {
        let inner = inner.into();
        let is_beside = options.read_only || inner.check_writable().is_err();
        Sealed::with(inner, options.encryption_key.as_ref(), is_beside, options.create)
    }

    /// The same for any directory. `is_beside` says that it is only read, `create` that it may be a new one.
    pub(crate) fn with(
        inner: impl Into<Bare>,
        key: Option<&EncryptionKey>,
        is_beside: bool,
        create: bool,
    ) -> Result<Sealed> {
        let inner = inner.into();
        let names = super::list(&inner)?;
        let is_encrypted = names.iter().any(|name| name.kind == Kind::Key);
        let is_new = names.iter().all(|name| name.kind == Kind::Key);
        let keys = match key {
            None if is_encrypted => return Err(encrypted()),
            None => None,
            Some(key) if is_new && create && !is_beside => Some(Keys::create(&inner, key)?),
            // Nothing is there. The error for that comes later.
            Some(_) if names.is_empty() => None,
            Some(_) if !is_encrypted && !is_beside => return Err(not_encrypted()),
            // A list that is made while another process replaces the key file may have none.
            Some(key) => Some(Keys::open(&inner, key, !is_beside).map_err(|error| match error.kind() {
                ErrorKind::Corrupt if !is_encrypted => not_encrypted(),
                _ => error,
            })?),
        };
        Ok(Sealed { inner, keys, is_beside })
    }

    /// A new directory for a copy of this one, with the same keys; [`Disk::part`] adds one.
    pub(crate) fn beside(&self, inner: impl Into<Bare>) -> Sealed {
        Sealed { inner: inner.into(), keys: self.keys.as_ref().map(Keys::copy), is_beside: false }
    }

    /// A directory of backups of this one, encrypted with a key of its own, or else with the user's key of this one. A
    /// new one gets a data key of its own.
    pub(crate) fn for_backups(&self, inner: impl Into<Bare>, key: Option<&EncryptionKey>) -> Result<Sealed> {
        let own = self.user_key();
        Sealed::with(inner, key.or(own.as_ref()), false, true)
    }

    /// The user's key; `None` if the disk is not encrypted.
    pub(crate) fn user_key(&self) -> Option<EncryptionKey> {
        self.keys.as_ref().map(Keys::user)
    }

    /// The directory of the file system that has the files.
    ///
    /// # Errors
    /// `Unsupported` for a simulated disk.
    pub(crate) fn real(&self) -> Result<&Real> {
        self.inner.real()
    }

    /// A disk in memory that has this file, or none.
    #[cfg(test)]
    pub(crate) fn in_memory(file: Option<(Name, Vec<u8>)>) -> Arc<Sealed> {
        Arc::new(Sealed::plain(file.map_or_else(Memory::default, |(name, bytes)| Memory::of(name, bytes))))
    }

    /// The memory that has the files.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> &Memory {
        match &self.inner {
            Bare::Memory(memory) => memory,
            _ => panic!("the disk is not in memory"),
        }
    }

    /// The simulated disk that has the files.
    #[cfg(any(test, feature = "simulated"))]
    pub(crate) fn simulated(&self) -> &Simulated {
        match &self.inner {
            Bare::Simulated(disk) => disk,
            _ => panic!("the disk is not simulated"),
        }
    }

    /// The keys of an encrypted disk, to be changed.
    #[cfg(feature = "encryption")]
    fn keys_to_change(&self) -> Result<&Keys> {
        self.keys
            .as_ref()
            .ok_or_else(|| Error::invalid("the store is not encrypted, so it has no key to be changed"))
    }

    /// See [`Store::rotate_key`](crate::Store::rotate_key).
    #[cfg(feature = "encryption")]
    pub(crate) fn rotate_user(&self, key: &EncryptionKey, number: impl FnOnce() -> u64) -> Result<()> {
        self.keys_to_change()?.rotate_user(&self.inner, key, number)
    }

    /// See [`Store::rotate_data_key`](crate::Store::rotate_data_key).
    #[cfg(feature = "encryption")]
    pub(crate) fn rotate_data(&self, number: impl FnOnce() -> u64) -> Result<()> {
        self.keys_to_change()?.rotate_data(&self.inner, number)
    }

    fn opened(&self, name: Name, file: BareFile) -> io::Result<SealedFile> {
        let way = match &self.keys {
            None => Way::Plain,
            Some(keys) if self.is_beside => {
                let cipher = keys.cipher_beside(&self.inner, name);
                Way::of(name.kind, cipher.map_err(|error| io::Error::other(error.message().to_string()))?)
            }
            Some(keys) => Way::of(name.kind, keys.cipher(name)),
        };
        Ok(SealedFile { file, way })
    }

    fn read_blocks(
        &self,
        file: &BareFile,
        cipher: &Cipher,
        buffer: &mut [u8],
        offset: u64,
    ) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let (first, from) = (offset / BLOCK as u64, (offset % BLOCK as u64) as usize);
        let count = ((from + buffer.len()).div_ceil(BLOCK) as u64).min(BLOCKS_MOST) as usize;
        let Some(start) = first.checked_mul(STORED as u64) else { return Ok(0) };
        let mut blocks = vec![0; count * STORED];
        let mut have = 0;
        while have < blocks.len() {
            match self.inner.read_at(file, &mut blocks[have..], start + have as u64) {
                Ok(0) => break,
                Ok(count) => have += count,
                // Some blocks are whole. The next read finds the error again.
                Err(_) if have >= STORED => {
                    have -= have % STORED;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        let mut done = 0;
        for (place, block) in (first..).zip(blocks[..have].chunks_mut(STORED)) {
            let Some((body, tag)) = block.split_last_chunk_mut::<TAG>().filter(|(body, _)| !body.is_empty())
            else {
                break;
            };
            if !cipher.open(place, body, tag) {
                return if done > 0 { Ok(done) } else { Err(damaged_block(place)) };
            }
            let from = if place == first { from.min(body.len()) } else { 0 };
            let count = (body.len() - from).min(buffer.len() - done);
            buffer[done..done + count].copy_from_slice(&body[from..from + count]);
            done += count;
            if body.len() < BLOCK {
                break;
            }
        }
        Ok(done)
    }

    /// Writes all that is left, or nothing that counts.
    fn write_blocks(
        &self,
        file: &BareFile,
        (cipher, end): (&Cipher, &Mutex<End>),
        write: &Write,
    ) -> io::Result<usize> {
        let left = &write.bytes[write.done..];
        if left.is_empty() {
            return self.inner.submit(file, &mut Write { sync: write.sync, ..Write::default() });
        }
        let offset = write.offset + write.done as u64;
        let from = (offset % BLOCK as u64) as usize;
        let start = offset - from as u64;
        let mut end = lock(end);
        if from > 0 && (end.start, end.bytes.len()) != (start, from) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "an encrypted file is written from front to back",
            ));
        }
        let before: &[u8] = if from > 0 { &end.bytes } else { &[] };
        let (head, rest) = left.split_at(left.len().min(BLOCK - from));
        let mut bytes = Vec::with_capacity(stored((from + left.len()) as u64) as usize);
        for (place, pieces) in (start / BLOCK as u64..)
            .zip(std::iter::once([before, head]).chain(rest.chunks(BLOCK).map(|it| [it, &[]])))
        {
            let at = bytes.len();
            pieces.iter().for_each(|piece| bytes.extend_from_slice(piece));
            let tag = cipher.seal(place, &mut bytes[at..]);
            bytes.extend_from_slice(&tag);
        }
        let mut inner =
            Write { offset: start / BLOCK as u64 * STORED as u64, bytes, done: 0, sync: write.sync };
        loop {
            let missing = inner.bytes.len() - inner.done;
            let count = self.inner.submit(file, &mut inner)?;
            inner.done += count;
            if count == missing {
                break;
            }
            if count == 0 {
                return Ok(0);
            }
        }
        let whole = (from + left.len()) / BLOCK * BLOCK;
        let bytes = match whole {
            0 => [before, left].concat(),
            _ => left[whole - from..].to_vec(),
        };
        *end = End { start: start + whole as u64, bytes };
        Ok(left.len())
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl Disk for Sealed {
    type File = SealedFile;

    fn check_writable(&self) -> Result<()> {
        self.inner.check_writable()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn create(&self, name: Name) -> io::Result<Self::File> {
        let Some(keys) = &self.keys else {
            return Ok(SealedFile { file: self.inner.create(name)?, way: Way::Plain });
        };
        // Until the file is there, no rotation counts its number as free.
        let making = keys.making(&self.inner)?;
        let file = self.inner.create(name)?;
        Ok(SealedFile { file, way: Way::of(name.kind, making.cipher(name)) })
    }

    fn open(&self, name: Name) -> io::Result<Self::File> {
        self.opened(name, self.inner.open(name)?)
    }

    fn open_again(&self, name: Name) -> io::Result<Self::File> {
        self.opened(name, self.inner.open_again(name)?)
    }

    fn unlink(&self, name: Name) -> io::Result<()> {
        self.inner.unlink(name)
    }

    fn sync_directory(&self, of: Kind) -> io::Result<()> {
        self.inner.sync_directory(of)
    }

    fn len(&self, file: &Self::File) -> io::Result<u64> {
        let len = self.inner.len(&file.file)?;
        Ok(if let Way::Blocks(..) = file.way { plain(len) } else { len })
    }

    #[inline]
    fn read_at(&self, file: &Self::File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match &file.way {
            Way::Blocks(cipher, _) => self.read_blocks(&file.file, cipher, buffer, offset),
            _ => self.inner.read_at(&file.file, buffer, offset),
        }
    }

    #[inline]
    fn submit(&self, file: &Self::File, write: &mut Write) -> io::Result<usize> {
        match &file.way {
            Way::Blocks(cipher, end) => self.write_blocks(&file.file, (cipher, end), write),
            _ => self.inner.submit(&file.file, write),
        }
    }

    fn reserve(&self, file: &Self::File, len: u64) -> io::Result<()> {
        let len = if let Way::Blocks(..) = file.way { stored(len) } else { len };
        self.inner.reserve(&file.file, len)
    }

    fn is_log_apart(&self) -> bool {
        self.inner.is_log_apart()
    }

    fn free(&self, of: Kind) -> io::Result<u64> {
        self.inner.free(of)
    }

    /// Fails if the two directories encrypt a file of this name differently; it can be copied then.
    fn link(&self, file: &Self::File, name: Name, into: &Self) -> io::Result<()> {
        let is_same = match (&self.keys, &into.keys) {
            (None, None) => true,
            (Some(from), Some(to)) => from.are_same(to, name.number),
            _ => false,
        };
        if !is_same {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.inner.link(&file.file, name, &into.inner)
    }

    fn mark(&self, file: &Self::File) -> io::Result<Option<(u64, u64)>> {
        self.inner.mark(&file.file)
    }

    fn will_read(&self, file: &Self::File, offset: u64, bytes: u64) {
        match file.way {
            Way::Blocks(..) => {
                let start = stored(offset / BLOCK as u64 * BLOCK as u64);
                let end = offset.saturating_add(bytes).next_multiple_of(BLOCK as u64);
                self.inner.will_read(&file.file, start, stored(end) - start);
            }
            _ => self.inner.will_read(&file.file, offset, bytes),
        }
    }

    fn hold(&self, manifest: Name) -> io::Result<Hold> {
        self.inner.hold(manifest)
    }

    fn is_held(&self, manifest: Name) -> io::Result<bool> {
        self.inner.is_held(manifest)
    }

    fn set_open_files(&self, files: usize) {
        self.inner.set_open_files(files);
    }

    fn open_files(&self) -> u64 {
        self.inner.open_files()
    }

    fn now_ms(&self) -> u64 {
        self.inner.now_ms()
    }

    fn part(&self, first: u64) -> Result<()> {
        self.keys.as_ref().map_or(Ok(()), |keys| keys.part(&self.inner, first))
    }

    fn is_sealed(&self) -> bool {
        self.keys.is_some()
    }

    fn cipher<'f>(&self, file: &'f Self::File) -> Option<&'f Cipher> {
        match &file.way {
            Way::Records(cipher) => Some(cipher),
            _ => None,
        }
    }
}
