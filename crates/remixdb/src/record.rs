//! The framing that logs and manifests share: a file header, and records that vouch for those before them.
//!
//! ```text
//! header, 64 bytes                           record
//!   0  magic of the kind of file, 8            0  checksum, 8: xxh3 of all that follows
//!   8  version of the format, 4                8  length of the body, 5
//!  12  zero, 4                                13  check of the length, 3
//!  16  number of the file, 8                  16  body; its first number tells what is known to be synced
//!  24  four fields of the kind, 8 each
//!  56  checksum, 8: xxh3 of what is before
//! ```
//!
//! **Versions.** The header keeps its length, its magic, the place of its version and its checksum in every version, so
//! that a build knows a file of another version from a header that is damaged or was never written. A file of another
//! version is an `Unsupported` error that names both versions. It is never taken for a torn tail. A new kind of record
//! needs a new version: in a file of a known version, a record that is whole and of no known kind is damage.
//!
//! All is little endian. Checksums are seeded with the file's kind, its number and the record's offset, so that bytes
//! in the wrong place are no record.
//!
//! The first number of a body is 0, or 1 more than how far back from the record's beginning the file was known to be
//! synced when the record was written. It is stated by the first record after a sync, 0 says that nothing changed.
//!
//! **A torn tail is not damage, and damage is no torn tail.** Reading stops at the first record that is not whole. If
//! any record behind that place is whole and states that the file was synced beyond it, then what is missing had been
//! acknowledged: that is an error. Otherwise it never was, and the file ends there. Without the statement a single
//! flipped bit would silently cut off all that follows. What cannot be told from a torn write is damage behind the
//! last sync that a record states.

use crate::codec::{Parts, put_number};
use crate::disk::{self, Disk, Kind, Name};
use forrest_engine::Result;
use xxhash_rust::xxh3::xxh3_64_with_seed as xxh3;

/// Bytes of a file header.
pub(crate) const HEADER: usize = 64;
/// Bytes of a record before its body.
pub(crate) const HEAD: usize = 16;
/// Longest body: what five bytes hold.
pub(crate) const BODY_MAX: u64 = (1 << 40) - 1;
/// So much of a file is read at once.
const WINDOW: usize = 1 << 20;

/// The version of the formats of both kinds.
const VERSION: u32 = 1;

fn magic(kind: Kind) -> [u8; 8] {
    match kind {
        Kind::Log => *b"frst.log",
        _ => *b"frst.man",
    }
}

/// What the checksum of a place begins with.
fn seed(name: Name, offset: u64) -> u64 {
    let kind = u64::from(magic(name.kind)[5]);
    (name.number.rotate_left(32) ^ kind.rotate_left(56) ^ offset).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The header of a file.
pub(crate) fn header(name: Name, fields: [u64; 4]) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&magic(name.kind));
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..24].copy_from_slice(&name.number.to_le_bytes());
    for (i, field) in fields.iter().enumerate() {
        bytes[24 + 8 * i..32 + 8 * i].copy_from_slice(&field.to_le_bytes());
    }
    let sum = xxh3(&bytes[..56], seed(name, 0));
    bytes[56..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// The fields of a header; `None` if this is none, as where a file was made and never written.
///
/// # Errors
/// `Unsupported` for a header that is whole and of another version.
fn fields(name: Name, bytes: &[u8]) -> Result<Option<[u64; 4]>> {
    if bytes.len() < HEADER || bytes[..8] != magic(name.kind) {
        return Ok(None);
    }
    if xxh3(&bytes[..56], seed(name, 0)) != word(bytes, 56) {
        return Ok(None);
    }
    let version = u32::from_le_bytes(bytes[8..12].try_into().expect("4 bytes"));
    if version != VERSION {
        return Err(disk::other_version(name, version, VERSION));
    }
    Ok(Some([24, 32, 40, 48].map(|at| word(bytes, at))))
}

fn length_check(name: Name, offset: u64, length: &[u8]) -> [u8; 3] {
    let [a, b, c, ..] = xxh3(length, seed(name, offset) ^ 1).to_le_bytes();
    [a, b, c]
}

/// Begins a record that will stand at `offset` of its file, in an empty buffer: its body is to be appended. `synced` is
/// how far the file is known to be synced, if that is to be stated.
pub(crate) fn begin(out: &mut Vec<u8>, offset: u64, synced: Option<u64>) {
    debug_assert!(out.is_empty());
    out.extend_from_slice(&[0; HEAD]);
    put_number(out, synced.map_or(0, |synced| 1 + offset - synced));
}

/// Completes the record that [`begin`] began.
pub(crate) fn finish(record: &mut [u8], name: Name, offset: u64) {
    let length = (record.len() - HEAD) as u64;
    assert!(length <= BODY_MAX, "a record of {length} bytes");
    record[8..13].copy_from_slice(&length.to_le_bytes()[..5]);
    let check = length_check(name, offset, &record[8..13]);
    record[13..16].copy_from_slice(&check);
    let sum = xxh3(&record[8..], seed(name, offset));
    record[..8].copy_from_slice(&sum.to_le_bytes());
}

/// Makes the checksums of a changed file right: its header's, and those of the records that the genuine file had.
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
        finish(record, name, at as u64);
        at = end;
    }
}

/// Makes the checksums of any bytes right: a header's, and those of the records that the bytes behind it say they are,
/// the last one as far as they go.
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
        finish(&mut file[at..end], name, at as u64);
        at = end;
    }
}

/// A file that is read from front to back, a window at a time.
struct Window<'d, D: Disk> {
    disk: &'d D,
    file: &'d D::File,
    name: Name,
    len: u64,
    bytes: Vec<u8>,
    start: u64,
}

impl<D: Disk> Window<'_, D> {
    /// As many bytes from `offset` on, or `None` if the file ends before.
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

    /// Reads a window that begins at `offset`. It grows with what is there, not with what is asked for.
    fn fill(&mut self, offset: u64, count: u64) -> Result<()> {
        self.start = offset;
        self.bytes.clear();
        let wanted = (self.len - offset).min(count.max(WINDOW as u64));
        while (self.bytes.len() as u64) < wanted {
            let done = self.bytes.len();
            let piece = (wanted - done as u64).min(WINDOW as u64) as usize;
            self.bytes.resize(done + piece, 0);
            let (disk, file, name) = (self.disk, self.file, self.name);
            let count = disk::read_up_to(disk, file, name, &mut self.bytes[done..], offset + done as u64)?;
            self.bytes.truncate(done + count);
            if count < piece {
                break;
            }
        }
        Ok(())
    }

    /// The body of the record at `offset`, if there is a whole one.
    fn record(&mut self, offset: u64) -> Result<Option<&[u8]>> {
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
        Ok(Some(&record[HEAD..]))
    }
}

/// What a record's body says of syncs, and the rest of it.
fn statement(name: Name, offset: u64, body: &[u8]) -> Result<(Option<u64>, &[u8])> {
    let mut parts = Parts(body);
    let malformed = || disk::damaged(name, offset, "a record that is whole and says nothing");
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
/// `Unsupported` for a header that is whole and of another version; `Io`.
pub(crate) fn fields_of<D: Disk>(disk: &D, file: &D::File, name: Name) -> Result<Option<[u64; 4]>> {
    let mut header = [0; HEADER];
    let count = disk::read_up_to(disk, file, name, &mut header, 0)?;
    fields(name, &header[..count])
}

/// An error if a file that has no header once had one. A header is synced before the first record is written; so if a
/// record is there, the header was.
pub(crate) fn unused<D: Disk>(disk: &D, file: &D::File, name: Name) -> Result<()> {
    let len = disk::len(disk, file, name)?;
    let mut window = Window { disk, file, name, len, bytes: Vec::new(), start: 0 };
    for offset in HEADER as u64..len.saturating_sub(HEAD as u64 - 1) {
        if window.record(offset)?.is_some() {
            return Err(disk::damaged(
                name,
                0,
                format!("the header is damaged (the record at {offset} is not)"),
            ));
        }
    }
    Ok(())
}

/// A file that has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Replayed {
    /// Where its last whole record ends.
    pub(crate) end: u64,
    /// How far its records state that it was synced; 0 if none does.
    pub(crate) synced: u64,
}

/// Shows all records of a file that has a header, in order, with their offsets.
///
/// # Errors
/// `Corrupt` where a record is missing that had been synced; `Io`; and what `see` returns.
pub(crate) fn replay<D: Disk>(
    disk: &D,
    file: &D::File,
    name: Name,
    mut see: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<Replayed> {
    let len = disk::len(disk, file, name)?;
    let mut window = Window { disk, file, name, len, bytes: Vec::new(), start: 0 };
    let (mut end, mut synced) = (HEADER as u64, 0);
    while let Some(body) = window.record(end)? {
        let length = body.len() as u64;
        let (stated, body) = statement(name, end, body)?;
        synced = synced.max(stated.unwrap_or(0));
        see(end, body)?;
        end += HEAD as u64 + length;
    }
    if let Some(by) = vouched_beyond(&mut window, end + 1, end)? {
        let what =
            format!("a record that had been stored is damaged (the one at {by} says that it was synced)");
        return Err(disk::damaged(name, end, what));
    }
    Ok(Replayed { end, synced })
}

/// The offset of a whole record, from `from` on, that states that the file was synced beyond `place`.
fn vouched_beyond<D: Disk>(window: &mut Window<'_, D>, from: u64, place: u64) -> Result<Option<u64>> {
    let name = window.name;
    for offset in from..window.len.saturating_sub(HEAD as u64 - 1) {
        if let Some(body) = window.record(offset)?
            && let (Some(synced), _) = statement(name, offset, body)?
            && synced > place
        {
            return Ok(Some(offset));
        }
    }
    Ok(None)
}
