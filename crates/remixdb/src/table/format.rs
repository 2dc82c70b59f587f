//! The layout of a table file: sections, index and footer. Key blocks are described in
//! [`block`](super::block).
//!
//! A table is a file of [pages](crate::page), so all of it is covered by checksums. The following uses
//! logical offsets, which leave the checksums out. All numbers are little endian.
//!
//! ```text
//! values   from 0: the values in the order of their keys, back to back, over pages as it comes
//! keys     key blocks, each at a multiple of 8
//! index    at a multiple of 8: where the blocks are and what separates them
//! tags     at a multiple of 8, in some tables: 2 bytes for each key, of its xxh3 hash the most significant ones
//! bounds   the least key, then the greatest key
//! footer   the last 128 bytes of the last page, which is sealed as a last one
//! ```
//!
//! The bytes between the sections, and between blocks, are zero. A block that would straddle two pages begins
//! at the next page, if that leaves at most [`GAP_MAX`] bytes unused; otherwise it straddles. Its head never
//! does. (If blocks never straddled, keys of 40 bytes would take a quarter more space. If they always could,
//! every fourth search of keys of 16 bytes would have to assemble a block first.)
//!
//! ```text
//! index    4 bytes a block: where it is, in units of 8 bytes from the first block
//!          4 bytes a block: where its separator ends, from the first separator
//!          separators: the shortest key above the previous block and not above this one; none for the first
//!
//! footer    0  "frst.tbl"                        64  index: offset, 8
//!           8  version of the format, 4: 1       72  index: bytes, 8
//!          12  entries, 4                        80  bounds: offset, 8
//!          16  tombstones among them, 4          88  bytes of the least key, 4
//!          20  key blocks, 4                     92  bytes of the greatest key, 4
//!          24  number of the file, 8             96  least sequence number, 8: 0 as yet
//!          32  pages of the file, 8             104  greatest sequence number, 8: 0 as yet
//!          40  values: bytes, 8                 112  made with: keys to a block, 4: 64
//!          48  keys: offset of the first, 8     116  made with: bytes to a page, 4: 4096
//!          56  keys: bytes, 8                   120  features, 8: 1 if it has tags; other bits are a later
//!                                                    version's
//! ```
//!
//! The length of a page, the checksum of the last page, the magic and the place of the version are the same
//! in every version. So a build distinguishes a table of another version from a damaged one: it is an
//! `Unsupported` error that names both versions.
//!
//! For example the table 7 of `ash` → `1`, `elm` deleted, `oak` → `22` is one page. Values and keys:
//!
//! ```text
//!    0  31 32 32                 "1" "22"
//!    8  00 00 00 00 00 00 00 00  the block: its first value is at 0
//!   16  27 00 00 00              39 bytes
//!   20  03 00 00 00              keys of 3 bytes after a common prefix of 0
//!   24  00 00 00 00 03 01 00 01  3 keys, kinds; ends of values in 1 byte each
//!   32  01 01 03                 ends of the values
//!   35  00 01 00                 kinds: a value, a tombstone, a value
//!   38  61 73 68 65 6C 6D 6F 61 6B
//!   48  00 00 00 00 00 00 00 00  index: block 0 is at 0, its separator ends at 0
//!   56  61 73 68 6F 61 6B        bounds
//! ```
//!
//! and its footer:
//!
//! ```text
//! 3960  66 72 73 74 2E 74 62 6C 01 00 00 00 03 00 00 00 01 00 00 00 01 00 00 00
//! 3984  07 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00  file 7, of 1 page
//! 4000  03 00 00 00 00 00 00 00                          3 bytes of values
//! 4008  08 00 00 00 00 00 00 00 27 00 00 00 00 00 00 00  39 bytes of keys at 8
//! 4024  30 00 00 00 00 00 00 00 08 00 00 00 00 00 00 00  8 bytes of index at 48
//! 4040  38 00 00 00 00 00 00 00 03 00 00 00 03 00 00 00  bounds of 3 and 3 bytes at 56
//! 4056  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
//! 4072  40 00 00 00 00 10 00 00 00 00 00 00 00 00 00 00
//! ```

use crate::disk::{self, Name};
use crate::page;
use forrest_engine::Result;

/// Number of keys of a block; the last may have fewer.
pub(super) const BLOCK_KEYS: u32 = 64;
/// Bytes of a block before its columns.
pub(super) const BLOCK_HEAD: usize = 24;
/// Maximum number of bytes that are left unused so that a block does not straddle pages.
pub(super) const GAP_MAX: usize = 512;
/// Bytes of a key's tag.
pub(super) const TAG_BYTES: usize = 2;
/// Bytes of a footer.
pub(super) const FOOTER: usize = 128;
/// Blocks begin at multiples of this many bytes: a unit of the index.
pub(super) const ALIGN: u64 = 8;

/// The feature of a table that has tags.
const TAGGED: u64 = 1;
const MAGIC: [u8; 8] = *b"frst.tbl";
const VERSION: u32 = 1;

const _: () = assert!(GAP_MAX >= BLOCK_HEAD, "heads do not straddle");

/// A range of the logical bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Span {
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

impl Span {
    pub(super) fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

/// The content of a footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Footer {
    pub(super) entries: u32,
    pub(super) tombstones: u32,
    pub(super) blocks: u32,
    pub(super) pages: u64,
    /// Bytes of all values.
    pub(super) values: u64,
    pub(super) keys: Span,
    pub(super) index: Span,
    /// The offset of the bounds.
    pub(super) bounds: u64,
    pub(super) least: u32,
    pub(super) greatest: u32,
    pub(super) sequences: [u64; 2],
    /// Whether it has tags.
    pub(super) tagged: bool,
}

/// The number at an offset; the caller has checked the length.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

/// The number at an offset; the caller has checked the length.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

impl Footer {
    pub(super) fn encode(&self, name: Name) -> [u8; FOOTER] {
        let mut bytes = [0; FOOTER];
        bytes[..8].copy_from_slice(&MAGIC);
        let halves = [
            (8, VERSION),
            (12, self.entries),
            (16, self.tombstones),
            (20, self.blocks),
            (88, self.least),
            (92, self.greatest),
            (112, BLOCK_KEYS),
            (116, page::BYTES as u32),
        ];
        for (at, half) in halves {
            bytes[at..at + 4].copy_from_slice(&half.to_le_bytes());
        }
        let words = [
            (24, name.number),
            (32, self.pages),
            (40, self.values),
            (48, self.keys.offset),
            (56, self.keys.bytes),
            (64, self.index.offset),
            (72, self.index.bytes),
            (80, self.bounds),
            (96, self.sequences[0]),
            (104, self.sequences[1]),
            (120, if self.tagged { TAGGED } else { 0 }),
        ];
        for (at, word) in words {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The footer of a file of `pages` pages, from the payload of its last page. Its offsets and lengths are
    /// within the file.
    ///
    /// # Errors
    /// `Corrupt`; `Unsupported` for a table of another version, or with parameters that this build does not
    /// read.
    pub(super) fn decode(name: Name, pages: u64, payload: &[u8]) -> Result<Footer> {
        let bytes = &payload[page::PAYLOAD - FOOTER..];
        let at = pages.saturating_sub(1) * page::BYTES as u64 + (page::PAYLOAD - FOOTER) as u64;
        let refuse = |field: u64, what: &str| Err(disk::damaged(name, at + field, what));
        if bytes[..8] != MAGIC {
            return refuse(0, "the footer of a table is missing");
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            return Err(disk::other_version(name, version, VERSION));
        }
        if u32_at(bytes, 112) != BLOCK_KEYS
            || u32_at(bytes, 116) != page::BYTES as u32
            || u64_at(bytes, 120) & !TAGGED != 0
        {
            let found = format!(
                "{version} with blocks of {} keys, pages of {} bytes and features {:#x}",
                u32_at(bytes, 112),
                u32_at(bytes, 116),
                u64_at(bytes, 120)
            );
            let known = format!("{VERSION} with {BLOCK_KEYS}, {} and up to {TAGGED:#x}", page::BYTES);
            return Err(disk::other_version(name, found, known));
        }
        if u64_at(bytes, 24) != name.number {
            return refuse(24, &format!("the footer belongs to table {}", u64_at(bytes, 24)));
        }
        if u64_at(bytes, 32) != pages {
            return refuse(
                32,
                &format!("the footer states {} pages, the file has {pages}", u64_at(bytes, 32)),
            );
        }
        let footer = Footer {
            entries: u32_at(bytes, 12),
            tombstones: u32_at(bytes, 16),
            blocks: u32_at(bytes, 20),
            pages,
            values: u64_at(bytes, 40),
            keys: Span { offset: u64_at(bytes, 48), bytes: u64_at(bytes, 56) },
            index: Span { offset: u64_at(bytes, 64), bytes: u64_at(bytes, 72) },
            bounds: u64_at(bytes, 80),
            least: u32_at(bytes, 88),
            greatest: u32_at(bytes, 92),
            sequences: [u64_at(bytes, 96), u64_at(bytes, 104)],
            tagged: u64_at(bytes, 120) & TAGGED != 0,
        };
        if footer.fits() {
            Ok(footer)
        } else {
            refuse(12, "counts and sections that cannot be those of a table")
        }
    }

    /// The place of the tags, if it has any.
    pub(super) fn tags(&self) -> Option<Span> {
        let bytes = u64::from(self.entries) * TAG_BYTES as u64;
        let offset = self.index.end().checked_next_multiple_of(ALIGN)?;
        self.tagged.then_some(Span { offset, bytes })
    }

    /// Whether the sections follow one another within the file, and have room for their entries. Later
    /// allocations are checked against these.
    fn fits(&self) -> bool {
        let end = |span: Span| span.offset.checked_add(span.bytes);
        let (Some(keys_end), Some(index_end)) = (end(self.keys), end(self.index)) else { return false };
        let mut rest = index_end;
        if self.tagged {
            let Some(tags_end) = self.tags().and_then(end) else { return false };
            rest = tags_end;
        }
        let bounds = Span { offset: self.bounds, bytes: u64::from(self.least) + u64::from(self.greatest) };
        let Some(bounds_end) = end(bounds) else { return false };
        let Some(room) = self.pages.checked_mul(page::PAYLOAD as u64) else { return false };
        let longest = u32::from(u16::MAX);
        self.values <= self.keys.offset
            && keys_end <= self.index.offset
            && rest == self.bounds
            && bounds_end <= room.saturating_sub(FOOTER as u64)
            && self.keys.offset.is_multiple_of(ALIGN)
            && self.index.offset.is_multiple_of(ALIGN)
            && self.blocks == self.entries.div_ceil(BLOCK_KEYS)
            && self.tombstones <= self.entries
            && self.keys.bytes >= u64::from(self.blocks) * BLOCK_HEAD as u64
            && self.index.bytes >= u64::from(self.blocks) * 8
            && self.least.max(self.greatest) <= longest
    }
}
