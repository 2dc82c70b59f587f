//! The container `.kvb`: pairs in the order in which they are to be inserted.
//!
//! All numbers are little endian. A header of 64 bytes, then parts, then the end of the file.
//!
//! ```text
//! header   0  8 bytes  "kvbench" and a zero
//!          8  u32      version, 1
//!         12  u32      flags: bit 0, pairs have values; the others are zero
//!         16  u64      number of pairs
//!         24  u64      bytes of all keys
//!         32  u64      bytes of all values
//!         40  u64      length of this file
//!         48  u32      bytes of a part, 65,536 unless a test says otherwise
//!         52  u32      zero
//!         56  u64      XXH3-64 of the 56 bytes before
//!
//! part     0  u64      XXH3-64 of the rest of the part, seeded with the part's offset in the file
//!          8  u64      length of this part
//!         16  u32      number of pairs in it
//!         20  u32      zero
//!         24  pairs, then zeros up to its length
//!
//! pair     u32 bytes of the key, u32 bytes of the value (only if pairs have values), key, value
//! ```
//!
//! No pair crosses from one part into the next, so a pair of a mapped file is one slice. A part has the fixed size,
//! with two exceptions: a part with a single larger pair has the smallest sufficient multiple of that size, and the
//! last part ends after its last pair. The file is written in one pass, under a temporary name, and the header last.
//!
//! Reading verifies each part before it returns a pair of it, and at the end the totals in the header. A flipped bit
//! anywhere, and a truncated or extended file, are errors.

use super::input::{Input, PAIR_BYTES_MAX};
use super::output::Output;
use super::pair::{Pair, Sink, Source};
use std::io::{self, Write};
use std::path::Path;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// What every container begins with.
pub(crate) const MAGIC: [u8; 8] = *b"kvbench\0";
const VERSION: u32 = 1;
const FLAG_VALUES: u32 = 1;
const HEADER_BYTES: usize = 64;
const PART_HEAD_BYTES: usize = 24;
/// Bytes of a part: small enough to be verified in a cache, large enough that what is left empty at its end is little.
const PART_BYTES: u32 = 64 << 10;

/// The content of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Header {
    /// Whether pairs have values.
    pub(crate) values: bool,
    /// Number of pairs.
    pub(crate) pairs: u64,
    /// Bytes of all keys.
    pub(crate) key_bytes: u64,
    /// Bytes of all values.
    pub(crate) value_bytes: u64,
    file_bytes: u64,
    part_bytes: u32,
}

impl Header {
    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(if self.values { FLAG_VALUES } else { 0 }).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.pairs.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.key_bytes.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.value_bytes.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.file_bytes.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.part_bytes.to_le_bytes());
        let checksum = xxh3_64(&bytes[..56]);
        bytes[56..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn read(input: &mut Input) -> io::Result<Header> {
        let bytes: [u8; HEADER_BYTES] = input.field("the header of a container")?;
        let u32_at = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let u64_at = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        if bytes[..8] != MAGIC {
            return Err(input.damaged(0, "this is no container (.kvb): it does not begin like one"));
        }
        if u64_at(56) != xxh3_64(&bytes[..56]) {
            return Err(input.damaged(0, "the header is damaged: its checksum is wrong"));
        }
        let (version, flags) = (u32_at(8), u32_at(12));
        if version != VERSION {
            let what = format!("version {version} of the container; this program knows {VERSION}");
            return Err(input.damaged(8, what));
        }
        if flags & !FLAG_VALUES != 0 || u32_at(52) != 0 {
            return Err(input.damaged(12, "the header has what this program does not know"));
        }
        let header = Header {
            values: flags & FLAG_VALUES != 0,
            pairs: u64_at(16),
            key_bytes: u64_at(24),
            value_bytes: u64_at(32),
            file_bytes: u64_at(40),
            part_bytes: u32_at(48),
        };
        if header.file_bytes != input.len() {
            let (is, was) = (input.len(), header.file_bytes);
            return Err(
                input.damaged(is.min(was), format!("the file has {is} bytes, but was made with {was}"))
            );
        }
        if (header.part_bytes as usize) <= PART_HEAD_BYTES {
            return Err(input.damaged(48, format!("parts of {} bytes", header.part_bytes)));
        }
        Ok(header)
    }
}

/// Reads a container.
pub(crate) struct Reader {
    input: Input,
    header: Header,
    /// The part being shown, its head included, and where in the file it lies.
    part: Vec<u8>,
    part_at: u64,
    /// Where in it the next pair begins.
    next: usize,
    left_in_part: u32,
    parts: u64,
    seen: Header,
}

impl Reader {
    /// Begins to read.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut input = Input::open(path)?;
        let header = Header::read(&mut input)?;
        let seen = Header { pairs: 0, key_bytes: 0, value_bytes: 0, ..header };
        Ok(Reader { input, header, part: Vec::new(), part_at: 0, next: 0, left_in_part: 0, parts: 0, seen })
    }

    /// Fetches and verifies the next part; false at the end.
    fn next_part(&mut self) -> io::Result<bool> {
        if self.next < self.part.len() && self.part[self.next..].iter().any(|byte| *byte != 0) {
            let at = self.part_at + self.next as u64;
            return Err(self.input.damaged(at, "a part has nonzero bytes after its last pair"));
        }
        let at = self.input.at();
        if self.input.left() == 0 {
            if self.seen != self.header {
                let (stated, found) = (self.header.pairs, self.seen.pairs);
                let what =
                    format!("the header states {stated} pairs and does not match the {found} in the file");
                return Err(self.input.damaged(16, what));
            }
            return Ok(false);
        }
        self.input.piece(PART_HEAD_BYTES as u64, "the head of a part", &mut self.part)?;
        let u64_at = |part: &[u8], at: usize| part[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        let (checksum, bytes) = (u64_at(&self.part, 0), u64_at(&self.part, 8));
        let is_last = Some(self.input.len()) == at.checked_add(bytes);
        let whole = bytes.is_multiple_of(u64::from(self.header.part_bytes)) || is_last;
        let Some(rest) = bytes.checked_sub(PART_HEAD_BYTES as u64).filter(|_| whole) else {
            return Err(self.input.damaged(at + 8, format!("a part of {bytes} bytes")));
        };
        self.input.append(rest, PART_REST_MAX, "a part", &mut self.part)?;
        if xxh3_64_with_seed(&self.part[8..], at) != checksum {
            return Err(self
                .input
                .damaged(at, format!("a part of {bytes} bytes is damaged: its checksum is wrong")));
        }
        self.left_in_part = self.part[16..20].try_into().map_or(0, u32::from_le_bytes);
        (self.part_at, self.next, self.parts) = (at, PART_HEAD_BYTES, self.parts + 1);
        Ok(true)
    }

    /// The next bytes of the part, which has them if the writer was right.
    fn take(&mut self, bytes: usize) -> io::Result<&[u8]> {
        let (from, end) = (self.next, self.next.saturating_add(bytes));
        if end > self.part.len() {
            let what = format!("{bytes} bytes of a pair go beyond its part");
            return Err(self.input.damaged(self.part_at + from as u64, what));
        }
        self.next = end;
        Ok(&self.part[from..end])
    }

    fn len(&mut self) -> io::Result<usize> {
        let bytes = self.take(4)?;
        Ok(bytes.try_into().map_or(0, u32::from_le_bytes) as usize)
    }
}

/// Two lengths, a key and a value, in parts of the fixed size.
const PART_REST_MAX: u64 = 2 * PAIR_BYTES_MAX + 8 + PART_BYTES as u64;

impl Source for Reader {
    fn next(&mut self, pair: &mut Pair) -> io::Result<bool> {
        while self.left_in_part == 0 {
            if !self.next_part()? {
                return Ok(false);
            }
        }
        let key_bytes = self.len()?;
        let value_bytes = if self.header.values { self.len()? } else { 0 };
        pair.key.clear();
        pair.key.extend_from_slice(self.take(key_bytes)?);
        pair.value.clear();
        pair.value.extend_from_slice(self.take(value_bytes)?);
        pair.valued = self.header.values;
        self.left_in_part -= 1;
        self.seen.pairs += 1;
        self.seen.key_bytes += key_bytes as u64;
        self.seen.value_bytes += value_bytes as u64;
        Ok(true)
    }

    fn at(&self) -> u64 {
        self.part_at + self.next as u64
    }

    fn claimed(&self) -> Option<u64> {
        Some(self.header.pairs)
    }

    fn remark(&self) -> Option<String> {
        Some(format!("the checksums of the header and of {} parts are right", self.parts))
    }
}

/// Writes a container.
pub(crate) struct Writer {
    out: Output,
    header: Header,
    part: Vec<u8>,
    pairs_in_part: u32,
}

impl Writer {
    /// Begins a container. Whether pairs have values is decided by the first.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Self::with_parts(path, PART_BYTES)
    }

    fn with_parts(path: &Path, part_bytes: u32) -> io::Result<Self> {
        let mut out = Output::create(path)?;
        out.write_all(&[0; HEADER_BYTES])?;
        let header = Header { part_bytes, ..Header::default() };
        Ok(Writer { out, header, part: vec![0; PART_HEAD_BYTES], pairs_in_part: 0 })
    }

    /// Hands over the part that is being filled; the last one is not padded.
    fn end_part(&mut self, last: bool) -> io::Result<()> {
        if self.pairs_in_part == 0 {
            return Ok(());
        }
        if !last {
            self.part.resize(self.part.len().next_multiple_of(self.header.part_bytes as usize), 0);
        }
        let bytes = self.part.len() as u64;
        self.part[8..16].copy_from_slice(&bytes.to_le_bytes());
        self.part[16..20].copy_from_slice(&self.pairs_in_part.to_le_bytes());
        let checksum = xxh3_64_with_seed(&self.part[8..], self.out.at());
        self.part[..8].copy_from_slice(&checksum.to_le_bytes());
        self.out.write_all(&self.part)?;
        self.part.clear();
        self.part.resize(PART_HEAD_BYTES, 0);
        self.pairs_in_part = 0;
        Ok(())
    }
}

impl Sink for Writer {
    fn put(&mut self, pair: &Pair) -> io::Result<()> {
        if self.header.pairs == 0 {
            self.header.values = pair.valued;
        }
        let too_long = |what: &str, bytes: usize| {
            let most = format!("{what} of {bytes} bytes; {PAIR_BYTES_MAX} are the most");
            Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {most}", self.out.path().display())))
        };
        if pair.key.len() as u64 > PAIR_BYTES_MAX {
            return too_long("a key", pair.key.len());
        }
        if pair.value.len() as u64 > PAIR_BYTES_MAX {
            return too_long("a value", pair.value.len());
        }
        let value: &[u8] = if self.header.values { &pair.value } else { &[] };
        let bytes = 4 + if self.header.values { 4 } else { 0 } + pair.key.len() + value.len();
        if self.part.len() + bytes > self.header.part_bytes as usize {
            self.end_part(false)?;
        }
        self.part.extend_from_slice(&(pair.key.len() as u32).to_le_bytes());
        if self.header.values {
            self.part.extend_from_slice(&(value.len() as u32).to_le_bytes());
        }
        self.part.extend_from_slice(&pair.key);
        self.part.extend_from_slice(value);
        self.pairs_in_part += 1;
        self.header.pairs += 1;
        self.header.key_bytes += pair.key.len() as u64;
        self.header.value_bytes += value.len() as u64;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.end_part(true)?;
        self.header.file_bytes = self.out.at();
        self.out.finish(&self.header.encode())
    }
}

#[cfg(test)]
#[path = "container_tests.rs"]
mod tests;
