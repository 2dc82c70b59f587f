//! [`Keys`]: the keys of an encrypted directory, and the file that has them. [`Cipher`]: what seals bytes of one file.
//!
//! Three levels of keys. The *user's key* comes from the caller and is never stored. It encrypts *data keys*, which are
//! random and stored in the key file. From a data key and the kind and number of a file comes the *key of the file*
//! (HKDF with SHA-256). File numbers are never used again, so no two files have one key, and a place of a file is a
//! nonce: the number of a block, or the offset of a record. A place that is written again, after a crash or a write
//! that failed or because a block was not full, has the same nonce with other bytes. AES-256-GCM-SIV (RFC 8452) is made
//! for that: it shows whether the bytes are the same, and nothing else.
//!
//! The key file is `NUMBER.key`, beside the tables:
//!
//! ```text
//! header, 24 bytes                     entry, 68 bytes
//!   0  magic, 8: "frst.key"              0  number of the first file of the data key, 8
//!   8  version of the format, 4: 1       8  nonce, 12, random
//!  12  number of entries, 4             20  the data key, encrypted, 32
//!  16  number of the file, 8            52  its tag, 16
//!
//! The entries follow the header, in ascending order; the first begins with number 0. At the end is a checksum, 8:
//! xxh3 of all bytes before, seeded with the number of the file.
//! ```
//!
//! All numbers are little endian. An entry is encrypted with a key that HKDF makes of the user's key; its first number
//! is authenticated with it. The data key of a file is that of the last entry whose first number is not greater than
//! the number of the file. So a new data key is one more entry, whose first number is greater than that of every file.
//! Old entries stay until no file is left that needs them; then the next one takes over their numbers.
//!
//! **A key file is replaced** by a new one with a greater number: written and synced, its name synced, then the old one
//! removed and that synced. Only then is a file made whose number is not less than that of the key file. So if the
//! newest key file is torn and no such file is there, the one before it counts. A process that changes the directory
//! and finds two of them replaces both before it makes a file. If the names of a change may not be durable, no file is
//! made until the directory is opened again.
//!
//! **A wrong key** is distinguished from a damaged key file by the checksum, which needs no key.

use super::{Bare, BareFile, Kind, NUMBER_MAX, Name, Write};
use aes_gcm_siv::Aes256GcmSiv;
use aes_gcm_siv::aead::inout::InOutBuf;
use aes_gcm_siv::aead::{AeadInOut, KeyInit};
use forrest_engine::{EncryptionKey, Error, ErrorKind, Result};
use hkdf::Hkdf;
use sha2::Sha256;
use std::io;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use xxhash_rust::xxh3::xxh3_64_with_seed;
use zeroize::Zeroizing;

/// Bytes of a tag.
pub(crate) const TAG: usize = 16;
const NONCE: usize = 12;
const KEY: usize = 32;
const MAGIC: &[u8; 8] = b"frst.key";
const VERSION: u32 = 1;
const HEADER: usize = 24;
const ENTRY: usize = 8 + NONCE + KEY + TAG;
const SUM: usize = 8;
/// More entries than any store needs: each is a rotation of which a file is left.
const ENTRIES_MAX: usize = 4096;
/// How many times a key file is looked for while another process replaces it.
const TRIES: usize = 100;

const FAILED_BEFORE: &str = "an earlier change of the encryption keys failed; open the store again";

type Secret = Zeroizing<[u8; KEY]>;

/// What seals bytes, and opens them.
pub struct Cipher(Box<Aes256GcmSiv>);

impl Cipher {
    fn new(secret: &[u8; KEY], purpose: &[u8]) -> Cipher {
        let mut key = Secret::default();
        Hkdf::<Sha256>::new(None, secret).expand(purpose, &mut *key).expect("it is one hash long");
        Cipher(Box::new(Aes256GcmSiv::new((&*key).into())))
    }

    fn of_file(data_key: &Secret, name: Name) -> Cipher {
        let mut purpose = *b"remixdb file ?????????";
        // The letters are part of the format.
        purpose[13] = match name.kind {
            Kind::Log => b'L',
            Kind::Manifest => b'M',
            Kind::Remix => b'R',
            Kind::Table => b'T',
            Kind::Copy => b'C',
            Kind::Backup => b'B',
            Kind::Key => b'K',
        };
        purpose[14..].copy_from_slice(&name.number.to_le_bytes());
        Cipher::new(data_key, &purpose)
    }

    fn of_user(key: &EncryptionKey) -> Cipher {
        Cipher::new(key.bytes(), b"remixdb data keys")
    }

    fn seal_with(&self, nonce: &[u8; NONCE], beside: &[u8], bytes: &mut [u8]) -> [u8; TAG] {
        let sealed = self.0.encrypt_inout_detached(nonce.into(), beside, InOutBuf::from(bytes));
        sealed.expect("no piece of a file is near the limit of 64 GiB").into()
    }

    fn open_with(&self, nonce: &[u8; NONCE], beside: &[u8], bytes: &mut [u8], tag: &[u8; TAG]) -> bool {
        self.0.decrypt_inout_detached(nonce.into(), beside, InOutBuf::from(bytes), tag.into()).is_ok()
    }

    /// Encrypts the bytes of a place; the tag.
    pub(crate) fn seal(&self, place: u64, bytes: &mut [u8]) -> [u8; TAG] {
        self.seal_with(&nonce(place), &[], bytes)
    }

    /// Decrypts the bytes of a place; false if they are not what was sealed there.
    pub(crate) fn open(&self, place: u64, bytes: &mut [u8], tag: &[u8; TAG]) -> bool {
        self.open_with(&nonce(place), &[], bytes, tag)
    }

    /// Authenticates bytes of a place that stay readable; nothing else is sealed there.
    pub(crate) fn vouch(&self, place: u64, bytes: &[u8]) -> [u8; TAG] {
        self.seal_with(&nonce(place), bytes, &mut [])
    }
}

fn nonce(place: u64) -> [u8; NONCE] {
    let mut nonce = [0; NONCE];
    nonce[..8].copy_from_slice(&place.to_le_bytes());
    nonce
}

fn random<const N: usize>() -> Result<Zeroizing<[u8; N]>> {
    let mut bytes = Zeroizing::new([0; N]);
    getrandom::fill(&mut *bytes)
        .map_err(|error| Error::new(ErrorKind::Io, format!("the system has no random numbers: {error}")))?;
    Ok(bytes)
}

/// The data keys of a key file.
#[derive(Clone)]
struct Ring {
    /// Number of the file.
    number: u64,
    /// By the first number of their files.
    entries: Vec<(u64, Secret)>,
}

impl Ring {
    fn data_key(&self, number: u64) -> &Secret {
        let after = self.entries.partition_point(|(first, _)| *first <= number);
        &self.entries[after.max(1) - 1].1
    }

    fn encode(&self, user: &EncryptionKey) -> Result<Vec<u8>> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.number.to_le_bytes());
        let cipher = Cipher::of_user(user);
        for (first, secret) in &self.entries {
            let (first, nonce) = (first.to_le_bytes(), *random::<NONCE>()?);
            let mut sealed = **secret;
            let tag = cipher.seal_with(&nonce, &first, &mut sealed);
            bytes.extend([&first[..], &nonce, &sealed, &tag].concat());
        }
        let sum = xxh3_64_with_seed(&bytes, self.number);
        bytes.extend_from_slice(&sum.to_le_bytes());
        Ok(bytes)
    }

    /// The ring in the bytes of a key file; `None` if they are damaged.
    ///
    /// # Errors
    /// `InvalidArgument` for another user's key; `Unsupported` for another version.
    fn decode(number: u64, bytes: &[u8], user: &EncryptionKey) -> Result<Option<Ring>> {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        if bytes.len() < HEADER + ENTRY + SUM || &bytes[..8] != MAGIC {
            return Ok(None);
        }
        let end = bytes.len() - SUM;
        if xxh3_64_with_seed(&bytes[..end], number) != word(end) || word(16) != number {
            return Ok(None);
        }
        let (version, count) = (word(8) as u32, (word(8) >> 32) as usize);
        if version != VERSION {
            return Err(super::other_version(Name::key(number), version, VERSION));
        }
        if count > ENTRIES_MAX || end - HEADER != count * ENTRY {
            return Ok(None);
        }
        let cipher = Cipher::of_user(user);
        let mut entries: Vec<(u64, Secret)> = Vec::with_capacity(count);
        for entry in bytes[HEADER..end].chunks_exact(ENTRY) {
            let (first, rest) = entry.split_first_chunk::<8>().expect("an entry is longer");
            let (nonce, rest) = rest.split_first_chunk::<NONCE>().expect("an entry is longer");
            let (sealed, tag) = rest.split_first_chunk::<KEY>().expect("an entry is longer");
            let mut secret = Secret::new(*sealed);
            if !cipher.open_with(nonce, first, &mut *secret, tag.try_into().expect("the rest is a tag")) {
                return Err(Error::invalid(
                    "wrong key: the files are encrypted with another encryption key; open them with that one",
                ));
            }
            let first = u64::from_le_bytes(*first);
            if entries.last().map_or(first != 0, |(before, _)| *before >= first) {
                return Ok(None);
            }
            entries.push((first, secret));
        }
        Ok(Some(Ring { number, entries }))
    }
}

/// The keys of an open directory.
pub(super) struct Keys {
    state: RwLock<State>,
}

struct State {
    user: EncryptionKey,
    ring: Ring,
    /// No file with a number up to this one has a data key that the ring lacks.
    known: u64,
    /// Whether it is unknown which key file is durable.
    is_unknown: bool,
    /// Whether the key file is to be written before a file is made. There is none yet; or there are several, because a
    /// change was interrupted: what was read may not be durable, and a torn key file would count as damaged once there
    /// are later files.
    is_due: bool,
}

/// The right to make files, while it is held with the keys of today.
pub(super) struct Making<'k>(RwLockReadGuard<'k, State>);

impl Making<'_> {
    pub(super) fn cipher(&self, name: Name) -> Cipher {
        Cipher::of_file(self.0.ring.data_key(name.number), name)
    }
}

impl Keys {
    fn new(user: &EncryptionKey, ring: Ring, known: u64) -> Keys {
        Keys {
            state: RwLock::new(State { user: user.clone(), ring, known, is_unknown: false, is_due: false }),
        }
    }

    /// Makes a key file with a new data key in a directory, which has no other files than key files. Durable when it
    /// returns.
    pub(super) fn create(disk: &Bare, user: &EncryptionKey) -> Result<Keys> {
        let ring = Ring { number: 0, entries: vec![(0, random()?)] };
        let keys = Keys::new(user, ring, 0);
        keys.keep_in(disk)?;
        Ok(keys)
    }

    /// The same data keys for another, new directory. Its key file is made before the first other file.
    pub(super) fn copy(&self) -> Keys {
        let state = self.read();
        let keys = Keys::new(&state.user, state.ring.clone(), 0);
        drop(state);
        keys.write().is_due = true;
        keys
    }

    /// In a copy that has no other files yet: adds a data key for the files from this number on. Durable when it
    /// returns.
    pub(super) fn part(&self, disk: &Bare, first: u64) -> Result<()> {
        self.replace(disk, |state, names| {
            let before = state.ring.entries.iter().filter(|(other, _)| *other < first);
            let mut entries = Vec::with_capacity(state.ring.entries.len() + 1);
            entries.extend(before.cloned());
            entries.push((first, random()?));
            Ok((state.user.clone(), Ring { number: greater(names, 0), entries }))
        })
    }

    /// Writes the keys to a new key file.
    fn keep_in(&self, disk: &Bare) -> Result<()> {
        self.replace(disk, |state, names| {
            Ok((state.user.clone(), Ring { number: greater(names, 0), ..state.ring.clone() }))
        })
    }

    /// The keys in a directory, which this process may change.
    ///
    /// # Errors
    /// `InvalidArgument` for another user's key; `Corrupt` for a damaged key file; `Unsupported`; `Io`.
    pub(super) fn open(disk: &Bare, user: &EncryptionKey, changes: bool) -> Result<Keys> {
        let (ring, known) = find(disk, user)?;
        let keys = Keys::new(user, ring, known);
        let files = super::list(disk)?.iter().filter(|name| name.kind == Kind::Key).count();
        keys.write().is_due = changes && files > 1;
        Ok(keys)
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The user's key.
    pub(super) fn user(&self) -> EncryptionKey {
        self.read().user.clone()
    }

    /// Keeps the data keys as they are while a file is made.
    pub(super) fn making(&self, disk: &Bare) -> io::Result<Making<'_>> {
        loop {
            let state = self.read();
            if state.is_unknown {
                return Err(io::Error::other(FAILED_BEFORE));
            }
            if !state.is_due {
                return Ok(Making(state));
            }
            drop(state);
            self.keep_in(disk).map_err(|error| match error.kind() {
                ErrorKind::OutOfSpace => io::ErrorKind::StorageFull.into(),
                _ => io::Error::other(error.message().to_string()),
            })?;
        }
    }

    /// The cipher of a file that exists.
    pub(super) fn cipher(&self, name: Name) -> Cipher {
        Cipher::of_file(self.read().ring.data_key(name.number), name)
    }

    /// The same, where another process may have added a data key since.
    pub(super) fn cipher_beside(&self, disk: &Bare, name: Name) -> Result<Cipher> {
        if name.number > self.read().known {
            let mut state = self.write();
            let names = super::list(disk)?;
            let newest = names.iter().filter(|name| name.kind == Kind::Key).map(|name| name.number).max();
            if newest != Some(state.ring.number) {
                (state.ring, state.known) = find(disk, &state.user)?;
            } else {
                state.known = names.iter().map(|name| name.number).max().unwrap_or(0);
            }
        }
        Ok(self.cipher(name))
    }

    /// Whether files of a number have one key in both directories.
    pub(super) fn are_same(&self, other: &Keys, number: u64) -> bool {
        // One after the other, so that two threads do not wait for each other.
        let key = self.read().ring.data_key(number).clone();
        *other.read().ring.data_key(number) == key
    }

    /// Encrypts the data keys with another user's key. Durable when it returns.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`. It is unknown then which of the two keys opens the directory, unless it was out of space.
    pub(super) fn rotate_user(
        &self,
        disk: &Bare,
        user: &EncryptionKey,
        number: impl FnOnce() -> u64,
    ) -> Result<()> {
        self.replace(disk, |state, names| {
            Ok((user.clone(), Ring { number: greater(names, number()), ..state.ring.clone() }))
        })
    }

    /// Adds a data key for all files that are made from now on, and drops those of which no file is left. `number`
    /// returns one that is greater than those of all files that were made. Durable when it returns.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`; `Limit` if there are too many data keys.
    pub(super) fn rotate_data(&self, disk: &Bare, number: impl FnOnce() -> u64) -> Result<()> {
        self.replace(disk, |state, names| {
            let number = greater(names, number());
            let mut numbers: Vec<u64> =
                names.iter().filter(|name| name.kind != Kind::Key).map(|name| name.number).collect();
            numbers.sort_unstable();
            // It does not grow, so that no copy of a key is left where it was.
            let mut entries = Vec::with_capacity(state.ring.entries.len() + 1);
            entries.push((number, random()?));
            for (first, secret) in state.ring.entries.iter().rev() {
                let next = entries.last_mut().expect("there is one");
                let from = numbers.partition_point(|other| other < first);
                match numbers.get(from).is_some_and(|other| *other < next.0) {
                    true => entries.push((*first, secret.clone())),
                    // A file that is still to be made with such a number has the later key.
                    false => next.0 = *first,
                }
            }
            entries.reverse();
            if entries.len() > ENTRIES_MAX {
                return Err(Error::new(
                    ErrorKind::Limit,
                    format!(
                        "the store has {ENTRIES_MAX} data keys in use; compact it, and then rotate the key"
                    ),
                ));
            }
            Ok((state.user.clone(), Ring { number, entries }))
        })
    }

    /// Replaces the key file. No file is made meanwhile.
    fn replace(
        &self,
        disk: &Bare,
        change: impl FnOnce(&State, &[Name]) -> Result<(EncryptionKey, Ring)>,
    ) -> Result<()> {
        let mut state = self.write();
        if state.is_unknown {
            return Err(Error::new(ErrorKind::Stopped, FAILED_BEFORE));
        }
        let names = super::list(disk)?;
        let (user, ring) = change(&state, &names)?;
        let name = Name::key(ring.number);
        if name.number > NUMBER_MAX {
            let last = names.iter().max_by_key(|name| name.number).expect("it has the number before");
            return Err(Error::new(
                ErrorKind::Limit,
                format!("no number is left for a key file after {last}, which no store has made"),
            ));
        }
        let bytes = ring.encode(&user)?;
        // If this fails, the file may be there, and would count as damaged once there are later files.
        let file = super::create(disk, name).inspect_err(|_| state.is_due = true)?;
        state.is_unknown = true;
        let mut write = Write { bytes, sync: true, ..Write::default() };
        // DURABILITY: the new key file is whole before its name is durable, and that before the old one goes.
        if let Err(error) = super::write_all(disk, &file, name, &mut write) {
            // It has no intact content, or it is taken away.
            drop(file);
            if super::unlink(disk, name).and_then(|()| super::sync_directory(disk, Kind::Key)).is_ok() {
                state.is_unknown = false;
            }
            return Err(error);
        }
        super::sync_directory(disk, Kind::Key)?;
        for name in names.into_iter().filter(|name| name.kind == Kind::Key) {
            super::unlink(disk, name)?;
        }
        // DURABILITY: with two key files, the older one would count if the newer one were damaged.
        super::sync_directory(disk, Kind::Key)?;
        *state = State { user, ring, known: state.known, is_unknown: false, is_due: false };
        Ok(())
    }
}

/// A number from this one on that is greater than that of every file.
fn greater(names: &[Name], from: u64) -> u64 {
    names.iter().map(|name| name.number + 1).max().unwrap_or(1).max(from)
}

/// Makes the checksum of a key file right.
#[cfg(any(test, feature = "simulated"))]
pub(crate) fn seal(number: u64, bytes: &mut [u8]) {
    if let Some((rest, sum)) = bytes.split_last_chunk_mut::<SUM>() {
        *sum = xxh3_64_with_seed(rest, number).to_le_bytes();
    }
}

/// The newest key file that counts, and the greatest number in the directory.
fn find(disk: &Bare, user: &EncryptionKey) -> Result<(Ring, u64)> {
    let mut damage = None;
    for _ in 0..TRIES {
        let names = super::list(disk)?;
        let known = names.iter().map(|name| name.number).max().unwrap_or(0);
        let greatest = names.iter().filter(|name| name.kind != Kind::Key).map(|name| name.number).max();
        damage = None;
        // A list that is made while another process replaces the file may have neither.
        let mut is_gone = names.iter().all(|name| name.kind != Kind::Key);
        for &name in names.iter().rev().filter(|name| name.kind == Kind::Key) {
            let Some(file) = super::open_if_there(disk, name)? else {
                is_gone = true;
                break;
            };
            match read(disk, &file, name, user)? {
                Some(ring) => return Ok((ring, known)),
                None => damage = damage.or(Some(name)),
            }
            // Files that were made after it need it.
            if greatest >= Some(name.number) {
                break;
            }
        }
        if !is_gone {
            break;
        }
    }
    Err(match damage {
        Some(name) => super::damaged(
            name,
            0,
            "the key file is damaged, and without it nothing can be decrypted; put back a copy of it, for example of a \
             checkpoint",
        ),
        None => Error::new(ErrorKind::Corrupt, "the key file is missing"),
    })
}

fn read(disk: &Bare, file: &BareFile, name: Name, user: &EncryptionKey) -> Result<Option<Ring>> {
    let mut bytes = vec![0; HEADER + ENTRIES_MAX * ENTRY + SUM + 1];
    let count = super::read_up_to(disk, file, name, &mut bytes, 0)?;
    Ring::decode(name.number, &bytes[..count], user)
}
