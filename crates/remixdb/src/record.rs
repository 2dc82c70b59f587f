//! The framing that logs and manifests share: a file header, and records that state how much before them was
//! synced.
//!
//! ```text
//! header, 64 bytes                           record
//!   0  magic of the kind of file, 8            0  checksum, 8: xxh3 of all that follows
//!   8  version of the format, 4                8  length of the body, 5
//!  12  zero, 4                                13  check of the length, 3
//!  16  number of the file, 8                  16  body; its first number states the synced offset
//!  24  four fields of the kind, 8 each
//!  56  checksum, 8: xxh3 of the bytes before
//! ```
//!
//! **Versions.** The header has the same length, magic, place of the version and checksum in every version.
//! So a build distinguishes a file of another version from a header that is damaged or was never written. A
//! file of another version is an `Unsupported` error that names both versions. It is never taken for a torn
//! tail. A new kind of record needs a new version: in a file of a known version, an intact record of an
//! unknown kind is damage.
//!
//! All numbers are little endian. Checksums are seeded with the file's kind, its number and the record's
//! offset, so that bytes in the wrong place are not a valid record.
//!
//! The first number of a body is 0, or a distance plus 1: how far back from the beginning of the record the
//! file was known to be synced when the record was written. The first record after a sync states it. 0 means
//! that nothing has changed. While not even the header is known to be synced, each record states that.
//!
//! **Encrypted files** have the bit 16 of the version set, and their records are encrypted one by one, beneath the
//! checksum: the body begins with a tag of 16 bytes, and the rest is encrypted (disk/keys.rs) with the offset of the
//! record as the nonce. So torn tails and damage are found as in plain files, without a key, and a record that has a
//! valid checksum and does not open is damage. The header can be read, and in the place of its checksum are the first 8
//! bytes of the tag that authenticates it: a log states there where the one before it ends, and with which change it
//! begins itself.
//!
//! **Torn tails and damage are distinguished.** Reading stops at the first invalid record. If any later
//! record is valid and states that the file was synced beyond that place, acknowledged data is missing: that
//! is an error. Otherwise the rest was never acknowledged, and the file ends there. Without the statement a
//! single flipped bit would silently cut off everything after it. Damage after the last stated sync cannot be
//! distinguished from a torn write.

use crate::codec::{Parts, put_number};
use crate::disk::{self, Cipher, Disk, Kind, Name, Sealed, SealedFile, TAG};
use forrest_engine::{Error, Result};
use std::ops::Range;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed as xxh3};

/// Bytes of a file header.
pub(crate) const HEADER: usize = 64;
/// Bytes of a record before its body.
pub(crate) const HEAD: usize = 16;
/// Maximum number of bytes that a record takes beside what its user puts into it.
pub(crate) const OVERHEAD_MAX: u64 = 64;
/// Maximum number of bytes of the statement with which a body begins: those of a number.
const STATEMENT_MOST: u64 = 10;
/// Longest body: the greatest length in five bytes.
pub(crate) const BODY_MAX: u64 = (1 << 40) - 1;
/// A file is read in windows of this size.
const WINDOW: usize = 1 << 20;
/// Where a window cannot be read, it is read in blocks of this size, the unit in which the system reads a device.
const BLOCK: usize = 4096;

/// The version of a log that has history (see [`wal::format`](crate::wal::format)), and of one that has none.
pub(crate) const LOG_WITH_HISTORY: u32 = 5;
pub(crate) const LOG: u32 = 4;
/// The version of a log with history without wrapped values.
const OLD_LOG_WITH_HISTORY: u32 = 3;
/// The version of a manifest that says that there may be operands of merges, and of one that does not.
pub(crate) const MANIFEST: u32 = 7;
pub(crate) const MANIFEST_WITHOUT_OPERANDS: u32 = 6;
/// The version of the description of a backup.
pub(crate) const BACKUP: u32 = 1;

/// Whether a log of this version has history.
pub(crate) fn has_history(version: u32) -> bool {
    matches!(version, LOG_WITH_HISTORY | OLD_LOG_WITH_HISTORY)
}

/// Whether a new log has this version.
pub(crate) fn is_written(version: u32) -> bool {
    matches!(version, LOG | LOG_WITH_HISTORY)
}

/// Added to the version of an encrypted file.
const SEALED: u32 = 1 << 16;
/// The place of the checksum of a header.
const SUM: usize = 56;

/// The newest and the oldest version of the formats that this build reads.
fn versions(kind: Kind) -> (u32, u32) {
    match kind {
        Kind::Log => (LOG_WITH_HISTORY, 1),
        Kind::Copy => (BACKUP, 1),
        _ => (MANIFEST, 1),
    }
}

fn magic(kind: Kind) -> [u8; 8] {
    match kind {
        Kind::Log => *b"frst.log",
        Kind::Copy => *b"frst.bak",
        _ => *b"frst.man",
    }
}

/// The seed of the checksum at an offset.
fn seed(name: Name, offset: u64) -> u64 {
    let kind = u64::from(magic(name.kind)[5]);
    (name.number.rotate_left(32) ^ kind.rotate_left(56) ^ offset).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The header of a file of a version, of an encrypted one if there is a cipher.
pub(crate) fn header(name: Name, version: u32, fields: [u64; 4], cipher: Option<&Cipher>) -> [u8; HEADER] {
    let version = if cipher.is_some() { version | SEALED } else { version };
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&magic(name.kind));
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    bytes[16..24].copy_from_slice(&name.number.to_le_bytes());
    for (i, field) in fields.iter().enumerate() {
        bytes[24 + 8 * i..32 + 8 * i].copy_from_slice(&field.to_le_bytes());
    }
    let sum = sum(name, &bytes, cipher);
    bytes[SUM..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The checksum of a header.
fn sum(name: Name, header: &[u8], cipher: Option<&Cipher>) -> u64 {
    let bytes = &header[..SUM];
    match cipher {
        // No record begins at 0.
        Some(cipher) => word(&cipher.vouch(0, bytes), 0),
        None => xxh3(bytes, seed(name, 0)),
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// The version and the fields of a header; `None` if this is none, for example because the file was created and never
/// written. `cipher` is that of a file that should be encrypted.
///
/// # Errors
/// `Unsupported` for an intact header of another version; `Corrupt` for a plain file that should be encrypted, or an
/// encrypted one of which the key is lost.
fn fields(name: Name, bytes: &[u8], cipher: Option<&Cipher>) -> Result<Option<(u32, [u64; 4])>> {
    if bytes.len() < HEADER || bytes[..8] != magic(name.kind) {
        return Ok(None);
    }
    let stated = u32::from_le_bytes(bytes[8..12].try_into().expect("4 bytes"));
    let (newest, oldest) = versions(name.kind);
    let version = stated & !SEALED;
    let is_known = (oldest..=newest).contains(&version);
    let is_sealed = stated != version;
    let is_intact = sum(name, bytes, cipher.filter(|_| is_sealed)) == word(bytes, SUM);
    match cipher {
        // It is only authenticated with the key. If it is intact without the bit, that bit is what is damaged.
        None if is_sealed && is_known && !is_plain_but_for_version(name, bytes, version) => {
            Err(disk::damaged(name, 8, "the file is encrypted, and the key file (NUMBER.key) is missing"))
        }
        _ if !is_intact => Ok(None),
        _ if !is_known => Err(disk::other_version(name, stated, format_args!("{newest} and older"))),
        Some(_) if !is_sealed => Err(disk::damaged(name, 8, "the file is not encrypted, in a store that is")),
        _ => Ok(Some((version, [24, 32, 40, 48].map(|at| word(bytes, at))))),
    }
}

/// Whether a header is that of a plain file, if the version is replaced.
fn is_plain_but_for_version(name: Name, bytes: &[u8], version: u32) -> bool {
    let mut plain = [0; SUM];
    plain.copy_from_slice(&bytes[..SUM]);
    plain[8..12].copy_from_slice(&version.to_le_bytes());
    sum(name, &plain, None) == word(bytes, SUM)
}

fn length_check(name: Name, offset: u64, length: &[u8]) -> [u8; 3] {
    let [a, b, c, ..] = xxh3(length, seed(name, offset) ^ 1).to_le_bytes();
    [a, b, c]
}

/// Begins a record that will be at `offset` of its file, in an empty buffer. The caller then appends the
/// body. `synced` is the synced offset of the file, if the record is to state it; `is_sealed` says whether it will be
/// encrypted.
pub(crate) fn begin(out: &mut Vec<u8>, offset: u64, synced: Option<u64>, is_sealed: bool) {
    debug_assert!(out.is_empty());
    out.extend_from_slice(&[0; HEAD]);
    if is_sealed {
        out.extend_from_slice(&[0; TAG]);
    }
    put_number(out, synced.map_or(0, |synced| 1 + offset - synced));
}

/// Completes the record that [`begin`] began, and encrypts it if there is a cipher.
pub(crate) fn finish(record: &mut [u8], name: Name, offset: u64, cipher: Option<&Cipher>) {
    if let Some(cipher) = cipher
        && let Some((tag, body)) = record[HEAD..].split_first_chunk_mut::<TAG>()
    {
        *tag = cipher.seal(offset, body);
    }
    let length = (record.len() - HEAD) as u64;
    assert!(length <= BODY_MAX, "a record of {length} bytes");
    record[8..13].copy_from_slice(&length.to_le_bytes()[..5]);
    let check = length_check(name, offset, &record[8..13]);
    record[13..16].copy_from_slice(&check);
    let sum = xxh3(&record[8..], seed(name, offset));
    record[..8].copy_from_slice(&sum.to_le_bytes());
}

/// Corrects the checksums of a changed file: that of its header, and those of the records that the genuine
/// file had.
#[cfg(test)]
pub(crate) fn seal_again(file: &mut [u8], genuine: &[u8], name: Name) {
    if file.len() < HEADER {
        return;
    }
    let sum = xxh3(&file[..56], seed(name, 0));
    file[56..HEADER].copy_from_slice(&sum.to_le_bytes());
    let mut at = HEADER;
    while let Some(length) = genuine.get(at + 8..at + 13) {
        let mut bytes = [0; 8];
        bytes[..5].copy_from_slice(length);
        let end = (at + HEAD).saturating_add(u64::from_le_bytes(bytes) as usize);
        let Some(record) = file.get_mut(at..end) else { return };
        finish(record, name, at as u64, None);
        at = end;
    }
}

/// Corrects the checksums of arbitrary bytes: that of the header, and those of the records that the bytes
/// after it describe, the last one as far as the bytes go.
#[cfg(any(test, feature = "simulated"))]
pub(crate) fn seal_all(file: &mut [u8], name: Name) {
    if file.len() < HEADER {
        return;
    }
    let sum = xxh3(&file[..56], seed(name, 0));
    file[56..HEADER].copy_from_slice(&sum.to_le_bytes());
    let mut at = HEADER;
    while file.len() - at >= HEAD {
        let left = file.len() - at - HEAD;
        let length = usize::try_from(word(file, at + 8) & BODY_MAX).unwrap_or(left).min(left);
        let end = at + HEAD + length;
        finish(&mut file[at..end], name, at as u64, None);
        at = end;
    }
}

/// A file that is read from front to back, a window at a time.
struct Window<'d> {
    disk: &'d Sealed,
    file: &'d SealedFile,
    name: Name,
    len: u64,
    bytes: Vec<u8>,
    start: u64,
    /// Whether blocks that cannot be read are passed, and the first error of those that were.
    around: bool,
    unreadable: Option<Error>,
}

impl<'d> Window<'d> {
    fn new(disk: &'d Sealed, file: &'d SealedFile, name: Name) -> Result<Window<'d>> {
        let len = disk::len(disk, file, name)?;
        Ok(Window { disk, file, name, len, bytes: Vec::new(), start: 0, around: false, unreadable: None })
    }

    /// Reads from `offset` on. Where that fails, and it is to be passed, the block has zeros, which are in no record.
    fn read(&mut self, done: usize, offset: u64) -> Result<usize> {
        let (disk, file, name) = (self.disk, self.file, self.name);
        let buffer = &mut self.bytes[done..];
        match disk::read_up_to(disk, file, name, buffer, offset) {
            Err(error) if self.around && disk::is_damage(&error) => self.unreadable.get_or_insert(error),
            read => return read,
        };
        let mut count = 0;
        while count < buffer.len() {
            let at = offset + count as u64;
            // Blocks of the file, not of the window.
            let block = (BLOCK - (at % BLOCK as u64) as usize).min(buffer.len() - count);
            let block = &mut buffer[count..count + block];
            let read = match disk::read_up_to(disk, file, name, block, at) {
                Err(error) if disk::is_damage(&error) => {
                    block.fill(0);
                    block.len()
                }
                read => read?,
            };
            count += read;
            if read < block.len() {
                break;
            }
        }
        Ok(count)
    }

    /// `count` bytes from `offset` on, or `None` if the file ends before.
    fn at(&mut self, offset: u64, count: u64) -> Result<Option<&[u8]>> {
        if offset > self.len || self.len - offset < count {
            return Ok(None);
        }
        let have = self.start + self.bytes.len() as u64;
        if offset < self.start || offset + count > have {
            self.fill(offset, count)?;
            if (self.bytes.len() as u64) < count {
                return Ok(None);
            }
        }
        let from = (offset - self.start) as usize;
        Ok(Some(&self.bytes[from..from + count as usize]))
    }

    /// Reads a window that begins at `offset`. It grows with the content of the file, not with the requested
    /// count.
    fn fill(&mut self, offset: u64, count: u64) -> Result<()> {
        self.start = offset;
        self.bytes.clear();
        let wanted = (self.len - offset).min(count.max(WINDOW as u64));
        while (self.bytes.len() as u64) < wanted {
            let done = self.bytes.len();
            let piece = (wanted - done as u64).min(WINDOW as u64) as usize;
            self.bytes.resize(done + piece, 0);
            let count = self.read(done, offset + done as u64)?;
            self.bytes.truncate(done + count);
            if count < piece {
                // A process that writes to the file has cut off what it had taken in advance.
                self.len = offset + self.bytes.len() as u64;
                break;
            }
        }
        Ok(())
    }

    /// The body of the record at `offset`, if it is valid, and the end of the record. The record of an encrypted file
    /// is decrypted in the window, so it is not found there again.
    fn record(&mut self, offset: u64) -> Result<Option<(&[u8], u64)>> {
        let name = self.name;
        let Some(head) = self.at(offset, HEAD as u64)? else { return Ok(None) };
        if length_check(name, offset, &head[8..13]) != head[13..16] {
            return Ok(None);
        }
        let length = word(head, 8) & BODY_MAX;
        let Some(record) = self.at(offset, HEAD as u64 + length)? else { return Ok(None) };
        if xxh3(&record[8..], seed(name, offset)) != word(record, 0) {
            return Ok(None);
        }
        let end = offset + HEAD as u64 + length;
        let Some(cipher) = self.disk.cipher(self.file) else {
            let from = (offset - self.start) as usize + HEAD;
            return Ok(Some((&self.bytes[from..from + length as usize], end)));
        };
        let from = (offset - self.start) as usize + HEAD;
        let sealed = &mut self.bytes[from..from + length as usize];
        if let Some((tag, body)) = sealed.split_first_chunk_mut::<TAG>()
            && cipher.open(offset, body, tag)
        {
            return Ok(Some((body, end)));
        }
        let what = "a record with a valid checksum is not encrypted with the key of the file, or was changed";
        let error = disk::damaged(name, offset, what);
        if !self.around {
            return Err(error);
        }
        self.unreadable.get_or_insert(error);
        Ok(None)
    }
}

/// The synced offset that a record's body states, and the rest of the body.
fn statement(name: Name, offset: u64, body: &[u8]) -> Result<(Option<u64>, &[u8])> {
    let mut parts = Parts(body);
    let malformed = || disk::damaged(name, offset, "a record with a valid checksum has no synced offset");
    let back = parts.number().ok_or_else(malformed)?;
    if back == 0 {
        return Ok((None, parts.0));
    }
    let synced = offset.checked_sub(back - 1).ok_or_else(malformed)?;
    Ok((Some(synced), parts.0))
}

/// The fields of a file's header; `None` if it has none.
///
/// # Errors
/// `Unsupported` for an intact header of another version; `Io`.
pub(crate) fn fields_of(disk: &Sealed, file: &SealedFile, name: Name) -> Result<Option<[u64; 4]>> {
    Ok(version_of(disk, file, name)?.map(|(_, fields)| fields))
}

/// The version of a file, and the fields of its header; `None` if it has none.
///
/// # Errors
/// As [`fields_of`].
pub(crate) fn version_of(disk: &Sealed, file: &SealedFile, name: Name) -> Result<Option<(u32, [u64; 4])>> {
    let mut header = [0; HEADER];
    let count = disk::read_up_to(disk, file, name, &mut header, 0)?;
    fields(name, &header[..count], disk.cipher(file))
}

/// An error if a file without a header once had one. A header is synced before the first record is written, so a record
/// shows that, unless it states that the header is not synced yet.
pub(crate) fn unused(disk: &Sealed, file: &SealedFile, name: Name) -> Result<()> {
    let mut window = Window::new(disk, file, name)?;
    for offset in HEADER as u64..window.len.saturating_sub(HEAD as u64 - 1) {
        let Some((body, _)) = window.record(offset)? else { continue };
        if let Some(synced) = statement(name, offset, body)?.0
            && synced < HEADER as u64
        {
            continue;
        }
        let what = format!("the header is damaged (the record at {offset} is not)");
        return Err(disk::damaged(name, 0, what));
    }
    Ok(())
}

/// Whether records that state this synced offset state more than that the header was synced. That may be synced alone.
pub(crate) fn is_vouched(synced: u64) -> bool {
    synced > HEADER as u64
}

/// A file that has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Replayed {
    /// The end of its last valid record.
    pub(crate) end: u64,
    /// The synced offset that its records state; 0 if none does.
    pub(crate) synced: u64,
}

/// Passes the records of a file that has a header to `see`, in order, with their offsets and those of their bodies,
/// from the one at `from` on.
///
/// # Errors
/// `Corrupt` if a record that had been synced is missing; `Io`; and the error of `see`.
pub(crate) fn replay(
    disk: &Sealed,
    file: &SealedFile,
    name: Name,
    from: u64,
    mut see: impl FnMut(u64, u64, &[u8]) -> Result<()>,
) -> Result<Replayed> {
    let mut window = Window::new(disk, file, name)?;
    let (mut end, mut synced) = (from, 0);
    while let Some((body, next)) = window.record(end)? {
        let (stated, body) = statement(name, end, body)?;
        synced = synced.max(stated.unwrap_or(0));
        see(end, next - body.len() as u64, body)?;
        end = next;
    }
    if let Some(by) = vouched_beyond(&mut window, end + 1, end)? {
        let what =
            format!("a record that had been stored is damaged (the one at {by} says that it was synced)");
        return Err(disk::damaged(name, end, what));
    }
    Ok(Replayed { end, synced })
}

/// A part of a file that is in memory, while its records are read one by one.
#[derive(Default)]
pub(crate) struct Piece {
    bytes: Vec<u8>,
    start: u64,
    len: u64,
}

impl Piece {
    /// Some of its bytes.
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// Forgets what was read.
    pub(crate) fn clear(&mut self) {
        *self = Piece::default();
    }
}

/// A record that was read into a piece.
pub(crate) struct Next {
    /// The body without its statement.
    pub(crate) body: Range<usize>,
    /// The end of the record.
    pub(crate) end: u64,
    /// The synced offset that it states, if it does.
    pub(crate) synced: Option<u64>,
}

/// The record at an offset; `None` if there is no intact record. Another process may be writing it. Reads no more than
/// the record and a window.
///
/// # Errors
/// `Io`; `Corrupt` for an intact record without a statement.
pub(crate) fn next(
    disk: &Sealed,
    file: &SealedFile,
    name: Name,
    offset: u64,
    piece: &mut Piece,
) -> Result<Option<Next>> {
    let Piece { bytes, start, len } = std::mem::take(piece);
    let mut window = Window { disk, file, name, len, bytes, start, around: false, unreadable: None };
    // The statement, the length of what follows it, and the end of the record.
    let measure = |(body, end): (&[u8], u64)| -> Result<(Option<u64>, usize, u64)> {
        let (synced, rest) = statement(name, offset, body)?;
        Ok((synced, rest.len(), end))
    };
    let mut lengths = window.record(offset)?.map(measure);
    if lengths.is_none() {
        // The file may have grown since.
        window = Window::new(disk, file, name)?;
        lengths = window.record(offset)?.map(measure);
    }
    let Window { bytes, start, len, .. } = window;
    *piece = Piece { bytes, start, len };
    let Some((synced, rest, next)) = lengths.transpose()? else { return Ok(None) };
    let end = (next - start) as usize;
    Ok(Some(Next { body: end - rest..end, end: next, synced }))
}

/// The records of a file that is not encrypted, gone through in pieces: of a record, however long it is, no more than a
/// window is in memory.
pub(crate) struct Pieces<'d>(Window<'d>);

/// A record that is gone through from its front to its end, where it is known whether it is intact.
pub(crate) struct Passing {
    /// Where its bytes are that were not passed yet.
    pub(crate) left: Range<u64>,
    /// The checksum that it has, and that of what was passed.
    sum: u64,
    found: Box<Xxh3>,
}

impl Passing {
    /// Whether all of it was passed, and was what had been written.
    pub(crate) fn is_intact(&self) -> bool {
        self.left.is_empty() && self.found.digest() == self.sum
    }
}

impl<'d> Pieces<'d> {
    /// # Errors
    /// `Io`.
    pub(crate) fn new(disk: &'d Sealed, file: &'d SealedFile, name: Name) -> Result<Pieces<'d>> {
        Window::new(disk, file, name).map(Pieces)
    }

    /// The record at an offset, of which the statement was passed. `None` if it is surely not intact.
    ///
    /// # Errors
    /// `Io`; `Corrupt` if the file has become shorter.
    pub(crate) fn begin(&mut self, offset: u64) -> Result<Option<Passing>> {
        let Pieces(window) = self;
        let name = window.name;
        let Some(head) = window.at(offset, HEAD as u64)? else { return Ok(None) };
        let (sum, length) = (word(head, 0), word(head, 8) & BODY_MAX);
        if length_check(name, offset, &head[8..13]) != head[13..16] {
            return Ok(None);
        }
        let mut found = Box::new(Xxh3::with_seed(seed(name, offset)));
        found.update(&head[8..]);
        let body = offset + HEAD as u64;
        let mut record = Passing { left: body..body + length, sum, found };
        let stated = self.front(&record.left, STATEMENT_MOST)?;
        let Ok((_, rest)) = statement(name, offset, stated) else { return Ok(None) };
        let bytes = (stated.len() - rest.len()) as u64;
        self.pass(&mut record, bytes, || Ok(()))?;
        Ok(Some(record))
    }

    /// What is at the beginning of some bytes of the file: at least this many of them, or all.
    ///
    /// # Errors
    /// `Io`; `Corrupt` if the file has become shorter.
    pub(crate) fn front(&mut self, bytes: &Range<u64>, least: u64) -> Result<&[u8]> {
        let Pieces(window) = self;
        let (name, left) = (window.name, bytes.end - bytes.start);
        if window.at(bytes.start, left.min(least))?.is_none() {
            return Err(disk::damaged(name, bytes.start, "the file ends within a record"));
        }
        let front = &window.bytes[(bytes.start - window.start) as usize..];
        Ok(&front[..front.len().min(usize::try_from(left).unwrap_or(usize::MAX))])
    }

    /// Passes some of the bytes that are left of a record. Those that [`front`](Pieces::front) has shown are not read
    /// again for the checksum: a device may return others. `go_on` is called now and then, and its error is returned.
    ///
    /// # Errors
    /// As [`front`](Pieces::front).
    pub(crate) fn pass(
        &mut self,
        record: &mut Passing,
        bytes: u64,
        go_on: impl Fn() -> Result<()>,
    ) -> Result<()> {
        let end = record.left.start + bytes;
        while record.left.start < end {
            go_on()?;
            let piece = self.front(&(record.left.start..end), 1)?;
            record.found.update(piece);
            record.left.start += piece.len() as u64;
        }
        Ok(())
    }
}

/// The intact records of a file.
pub(crate) struct Intact {
    /// The end of the last record before the first that is not intact.
    pub(crate) end: u64,
    /// The synced offset that the intact records state; 0 if none does. If it is beyond `end`, the file is damaged.
    pub(crate) synced: u64,
    /// The first error of blocks that cannot be read, if there are any. They count as damage.
    pub(crate) unreadable: Option<Error>,
}

/// Passes all intact records of a file to `see`, in order, with their offsets: also those after damage, and after
/// blocks that cannot be read. The flag is set for these. The header is not looked at.
///
/// # Errors
/// `Io` if the file cannot be measured, and the error of `see`.
pub(crate) fn intact(
    disk: &Sealed,
    file: &SealedFile,
    name: Name,
    mut see: impl FnMut(u64, bool, &[u8]) -> Result<()>,
) -> Result<Intact> {
    let mut window = Window { around: true, ..Window::new(disk, file, name)? };
    let (mut at, mut end, mut synced) = (HEADER as u64, None, 0);
    while at < window.len {
        let Some((body, next)) = window.record(at)? else {
            end.get_or_insert(at);
            at += 1;
            continue;
        };
        let (stated, body) = statement(name, at, body)?;
        synced = synced.max(stated.unwrap_or(0));
        see(at, end.is_some(), body)?;
        at = next;
    }
    Ok(Intact { end: end.unwrap_or(at), synced, unreadable: window.unreadable })
}

/// The offset of a valid record, from `from` on, that states that the file was synced beyond `place`.
fn vouched_beyond(window: &mut Window<'_>, from: u64, place: u64) -> Result<Option<u64>> {
    let name = window.name;
    for offset in from..window.len.saturating_sub(HEAD as u64 - 1) {
        if let Some((body, _)) = window.record(offset)?
            && let (Some(synced), _) = statement(name, offset, body)?
            && synced > place
        {
            return Ok(Some(offset));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::simulated::Simulated;
    use forrest_engine::ErrorKind;

    /// Cause: a pass through a log of values had each record in memory, which may have hundreds of MiB.
    #[test]
    fn a_long_record_is_checked_in_pieces() {
        const LONG: usize = 5 * WINDOW + 77;
        let name = Name::log(3);
        let mut file = header(name, LOG, [0, 0, 1, 1], None).to_vec();
        for (len, synced) in [(10, Some(0)), (LONG, None)] {
            let (offset, mut record) = (file.len() as u64, Vec::new());
            begin(&mut record, offset, synced, false);
            record.extend((0..len).map(|at| at as u8));
            finish(&mut record, name, offset, None);
            file.extend(record);
        }
        let disk = Sealed::plain(Simulated::from_files([(name, file.clone())]));
        let opened = disk::open(&disk, name).expect("it is there");
        let mut pieces = Pieces::new(&disk, &opened, name).expect("it has a length");
        let mut end = HEADER as u64;
        for len in [10, LONG as u64] {
            let mut record = pieces.begin(end).expect("it is read").expect("it may be intact");
            assert_eq!(record.left.end - record.left.start, len);
            end = record.left.end;
            let mut at = 0;
            while !record.left.is_empty() {
                assert!(!record.is_intact(), "it is not known yet");
                let front = pieces.front(&record.left, 9).expect("it is read");
                assert!(front.len() as u64 >= 9.min(len - at));
                assert!(front.iter().zip(at..).all(|(&byte, at)| byte == at as u8));
                let bytes = front.len() as u64;
                at += bytes;
                pieces.pass(&mut record, bytes, || Ok(())).expect("it is read");
            }
            assert_eq!(at, len);
            assert!(record.is_intact());
        }
        assert_eq!(end, file.len() as u64);
        assert!(pieces.0.bytes.capacity() <= 2 * WINDOW, "{} bytes of memory", pieces.0.bytes.capacity());
        let long = file.len() as u64 - (HEAD + 1 + LONG) as u64;
        let mut record = pieces.begin(long).expect("it is read").expect("it may be intact");
        let given_up = pieces.pass(&mut record, 1, || Err(Error::new(ErrorKind::Busy, "closing")));
        assert_eq!(given_up.expect_err("it asks").kind(), ErrorKind::Busy);
        for byte in [long as usize + 3, long as usize + 9, file.len() / 2, file.len() - 1] {
            let mut damaged = file.clone();
            damaged[byte] ^= 4;
            let disk = Sealed::plain(Simulated::from_files([(name, damaged)]));
            let opened = disk::open(&disk, name).expect("it is there");
            let mut pieces = Pieces::new(&disk, &opened, name).expect("it has a length");
            let is_intact = pieces.begin(long).expect("it is read").is_some_and(|mut record| {
                pieces.pass(&mut record, LONG as u64, || Ok(())).expect("it is read");
                record.is_intact()
            });
            assert!(!is_intact, "{byte}");
        }
    }
}
