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
//!          24  number of the file, 8             96  earliest expiry of a value, 6
//!          32  pages of the file, 8             102  latest expiry of a value, 6
//!          40  values: bytes, 8                 108  wrapped values among the entries, 4
//!          48  keys: offset of the first, 8     112  made with: keys to a block, 4: 64
//!          56  keys: bytes, 8                   116  made with: bytes to a page, 4: 4096
//!                                              120  features, 8: 1 if it has tags, 2 if it has wrapped values,
//!                                                    4 if some of these are in logs, 8 if some have operands of
//!                                                    merges; other bits are a later version's
//! ```
//!
//! If values are in logs ([`wrapped`](crate::wrapped)), 16 bytes before the footer are the bytes that these have there,
//! 8, the number of all values that expire, 4, and zeros.
//!
//! An expiry is the time in milliseconds since 1970, or 2^48 - 1 if that is more; both are 0 if no value expires.
//!
//! The length of a page, the checksum of the last page, the magic and the place of the version are the same
//! in every version. So a build distinguishes a table of another version from a damaged one: it is an
//! `Unsupported` error that names both versions.
//!
//! **Version 2** is that of packed tables, which are compressed. Logical bytes and offsets are the same as those of
//! version 1, and so are the pages that they are cut into. All pages but the last one are stored as chunks:
//!
//! ```text
//! chunks  from 0, back to back, each of as many pages as the footer states; the last one may have fewer: their
//!         payloads, compressed; then 8 bytes of checksum, as that of page 2^62 + the number of the chunk. If that is
//!         more than 7/8 of the bytes of the pages, the pages are there instead, each sealed with its number
//! map     at the next multiple of 4096, in pages of its own, which are sealed as pages 2^61, 2^61 + 1, ...: 8 bytes
//!         a chunk, the offset of its end. The bytes before it, and after it in its last page, are zero
//! last    the last page of the table, sealed as the last one of the file
//! ```
//!
//! The footer has the number of pages of the file, and before it, and before the 16 bytes of a table whose values are
//! in logs, are 32 bytes more:
//!
//! ```text
//!   0  method, 4: 1 LZ4 (a block without its length), 2 Zstandard (a frame)
//!   4  made with: pages to a chunk, 4: 2 or 4
//!   8  pages that the logical bytes are cut into, 8
//!  16  bytes of all chunks, 8
//!  24  zero, 8
//! ```
//!
//! A table of one page is of version 1.
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

use crate::compression;
use crate::disk::{self, Name};
use crate::page;
use forrest_engine::{Compression, Error, Result};

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
/// Bytes before the footer of a packed table.
pub(super) const PACKING: usize = 32;
/// Bytes before the footer of a table that has values in logs.
pub(super) const LARGE: usize = 16;
/// Pages of a chunk, in tables that this version reads; the last may have fewer.
const CHUNK_PAGES: [u64; 2] = [2, 4];
/// The least length of a chunk in the file.
pub(super) const CHUNK_LEAST: u64 = 9;
/// Bytes of an entry of the map of chunks.
pub(super) const END: usize = 8;
/// Blocks begin at multiples of this many bytes: a unit of the index.
pub(super) const ALIGN: u64 = 8;

/// The feature of a table that has tags.
const TAGGED: u64 = 1;
/// That of a table that has wrapped values.
const WRAPPED: u64 = 2;
/// That of a table of which some values are in logs.
const IN_LOGS: u64 = 4;
/// That of a table of which some entries have operands.
const OPERANDS: u64 = 8;
const FEATURES: u64 = TAGGED | WRAPPED | IN_LOGS | OPERANDS;
/// The greatest expiry in a footer, which stands for all later ones.
const EXPIRY_MOST: u64 = (1 << 48) - 1;

/// An expiry in a footer. One that may be later counts as never: a merge for it might find nothing to remove.
fn expiry(ms: u64) -> u64 {
    if ms == EXPIRY_MOST { u64::MAX } else { ms }
}

/// What a footer has in place of an expiry.
pub(super) fn stated_expiry(ms: u64) -> u64 {
    expiry(ms.min(EXPIRY_MOST))
}

const MAGIC: [u8; 8] = *b"frst.tbl";
const VERSION: u32 = 1;
const PACKED_VERSION: u32 = 2;

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

/// What a footer states about chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packing {
    pub(super) method: Compression,
    /// Pages of a chunk; the last may have fewer.
    pub(super) chunk: u64,
    /// Bytes of all chunks in the file.
    pub(super) bytes: u64,
}

/// Pages of a chunk that this version writes: what a get unpacks, for LZ4; and for Zstandard what takes less space.
pub(super) fn pages_of_chunk(method: Compression) -> u64 {
    CHUNK_PAGES[usize::from(method == Compression::Zstd)]
}

impl Packing {
    /// The number of chunks of a table of `pages` pages. The last page is in none.
    pub(super) fn chunks(&self, pages: u64) -> u64 {
        pages.saturating_sub(1).div_ceil(self.chunk)
    }

    /// Pages of the map of a table of `pages` pages.
    pub(super) fn map_pages(&self, pages: u64) -> u64 {
        (self.chunks(pages) * END as u64).div_ceil(page::PAYLOAD as u64)
    }

    /// Pages that the chunks take in the file.
    pub(super) fn chunk_pages(&self) -> u64 {
        self.bytes.div_ceil(page::BYTES as u64)
    }

    /// Whether a file of `file_pages` pages has such chunks of `pages` pages.
    pub(super) fn fits(&self, pages: u64, file_pages: u64) -> bool {
        let least = self.chunks(pages).saturating_mul(CHUNK_LEAST);
        let most = pages.saturating_mul(page::BYTES as u64);
        (2..=u64::from(u32::MAX)).contains(&pages)
            && (least..=most).contains(&self.bytes)
            && self.chunk_pages() + self.map_pages(pages) + 1 == file_pages
    }
}

/// The content of a footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Footer {
    pub(super) entries: u32,
    pub(super) tombstones: u32,
    pub(super) blocks: u32,
    /// Pages that the logical bytes are cut into.
    pub(super) pages: u64,
    /// Pages of the file: as many, if it is not packed.
    pub(super) file_pages: u64,
    /// How the pages are packed, if they are.
    pub(super) packing: Option<Packing>,
    /// Bytes of all values.
    pub(super) values: u64,
    pub(super) keys: Span,
    pub(super) index: Span,
    /// The offset of the bounds.
    pub(super) bounds: u64,
    pub(super) least: u32,
    pub(super) greatest: u32,
    /// The earliest and the latest expiry of a value, in milliseconds since 1970; 0 if none expires.
    pub(super) expiries: [u64; 2],
    /// Wrapped values among the entries.
    pub(super) wrapped: u32,
    /// Values that expire among those.
    pub(super) expiring: u32,
    /// Bytes of the values that are in logs; 0 if there are none.
    pub(super) large: u64,
    /// Whether it has tags.
    pub(super) tagged: bool,
    /// Whether some entries have operands of merges.
    pub(super) operands: bool,
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
    /// The bytes at the end of a page, for a footer of this kind: with those before it.
    pub(super) fn bytes(is_packed: bool, has_large: bool) -> usize {
        FOOTER + if is_packed { PACKING } else { 0 } + if has_large { LARGE } else { 0 }
    }

    /// The bytes before the footer; none if the table is not packed and has no values in logs.
    pub(super) fn encode_before(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(packing) = self.packing {
            bytes.extend(u32::from(compression::number(packing.method)).to_le_bytes());
            bytes.extend((packing.chunk as u32).to_le_bytes());
            bytes.extend(self.pages.to_le_bytes());
            bytes.extend(packing.bytes.to_le_bytes());
            bytes.resize(PACKING, 0);
        }
        if self.large > 0 {
            bytes.extend(self.large.to_le_bytes());
            bytes.extend(self.expiring.to_le_bytes());
            bytes.extend([0; 4]);
        }
        bytes
    }

    pub(super) fn encode(&self, name: Name) -> [u8; FOOTER] {
        let mut bytes = [0; FOOTER];
        bytes[..8].copy_from_slice(&MAGIC);
        let halves = [
            (8, if self.packing.is_some() { PACKED_VERSION } else { VERSION }),
            (12, self.entries),
            (16, self.tombstones),
            (20, self.blocks),
            (88, self.least),
            (92, self.greatest),
            (108, self.wrapped),
            (112, BLOCK_KEYS),
            (116, page::BYTES as u32),
        ];
        for (at, half) in halves {
            bytes[at..at + 4].copy_from_slice(&half.to_le_bytes());
        }
        let words = [
            (24, name.number),
            (32, self.file_pages),
            (40, self.values),
            (48, self.keys.offset),
            (56, self.keys.bytes),
            (64, self.index.offset),
            (72, self.index.bytes),
            (80, self.bounds),
            (120, self.features()),
        ];
        for (at, word) in words {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        for (at, ms) in [(96, self.expiries[0]), (102, self.expiries[1])] {
            bytes[at..at + 6].copy_from_slice(&ms.min(EXPIRY_MOST).to_le_bytes()[..6]);
        }
        bytes
    }

    fn features(&self) -> u64 {
        let some = [
            (self.tagged, TAGGED),
            (self.wrapped > 0, WRAPPED),
            (self.large > 0, IN_LOGS),
            (self.operands, OPERANDS),
        ];
        some.iter().filter(|(has, _)| *has).map(|(_, feature)| feature).sum()
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
        if !(VERSION..=PACKED_VERSION).contains(&version) {
            return Err(disk::other_version(name, version, format_args!("{PACKED_VERSION} and older")));
        }
        if u32_at(bytes, 112) != BLOCK_KEYS
            || u32_at(bytes, 116) != page::BYTES as u32
            || u64_at(bytes, 120) & !FEATURES != 0
        {
            let found = format!(
                "{version} with blocks of {} keys, pages of {} bytes and features {:#x}",
                u32_at(bytes, 112),
                u32_at(bytes, 116),
                u64_at(bytes, 120)
            );
            let known = format!("{version} with {BLOCK_KEYS}, {} and up to {FEATURES:#x}", page::BYTES);
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
        let mut before = &payload[..page::PAYLOAD - FOOTER];
        let (mut large, mut expiring) = (0, u32_at(bytes, 108));
        if u64_at(bytes, 120) & IN_LOGS != 0 {
            let (rest, sizes) = before.split_at(before.len() - LARGE);
            (before, large, expiring) = (rest, u64_at(sizes, 0), u32_at(sizes, 8));
            if large == 0 || expiring > u32_at(bytes, 108) || u32_at(sizes, 12) != 0 {
                return refuse(120, "a size of the values in logs that cannot be that of a table");
            }
        }
        let packed = (version == PACKED_VERSION).then(|| decode_packing(name, before)).transpose()?;
        let footer = Footer {
            entries: u32_at(bytes, 12),
            tombstones: u32_at(bytes, 16),
            blocks: u32_at(bytes, 20),
            pages: packed.map_or(pages, |(pages, _)| pages),
            file_pages: pages,
            packing: packed.map(|(_, packing)| packing),
            values: u64_at(bytes, 40),
            keys: Span { offset: u64_at(bytes, 48), bytes: u64_at(bytes, 56) },
            index: Span { offset: u64_at(bytes, 64), bytes: u64_at(bytes, 72) },
            bounds: u64_at(bytes, 80),
            least: u32_at(bytes, 88),
            greatest: u32_at(bytes, 92),
            expiries: [u64_at(bytes, 96) & EXPIRY_MOST, u64_at(bytes, 100) >> 16].map(expiry),
            wrapped: u32_at(bytes, 108),
            expiring,
            large,
            tagged: u64_at(bytes, 120) & TAGGED != 0,
            operands: u64_at(bytes, 120) & OPERANDS != 0,
        };
        let has_wrapped = u64_at(bytes, 120) & WRAPPED != 0;
        if footer.fits()
            && has_wrapped == (footer.wrapped > 0)
            && (has_wrapped || large == 0)
            && (has_wrapped || !footer.operands)
        {
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
        if self.packing.is_some_and(|packing| !packing.fits(self.pages, self.file_pages)) {
            return false;
        }
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
            && bounds_end <= room.saturating_sub(Footer::bytes(self.packing.is_some(), self.large > 0) as u64)
            && self.keys.offset.is_multiple_of(ALIGN)
            && self.index.offset.is_multiple_of(ALIGN)
            && self.blocks == self.entries.div_ceil(BLOCK_KEYS)
            && self.tombstones.checked_add(self.wrapped).is_some_and(|some| some <= self.entries)
            && self.keys.bytes >= u64::from(self.blocks) * BLOCK_HEAD as u64
            && self.index.bytes >= u64::from(self.blocks) * 8
            && self.least.max(self.greatest) <= longest
    }
}

/// The pages of a packed table and how they are packed, from what is before its footer.
///
/// # Errors
/// `Unsupported` for a method that this build does not have, or another size of chunks.
fn decode_packing(name: Name, before: &[u8]) -> Result<(u64, Packing)> {
    let bytes = &before[before.len() - PACKING..];
    let (stored, chunk, zero) = (u32_at(bytes, 0), u32_at(bytes, 4), u64_at(bytes, 24));
    let method = compression::of_number(stored.into()).filter(|_| stored > 0);
    let Some(method) = method.filter(|_| CHUNK_PAGES.contains(&chunk.into()) && zero == 0) else {
        let found =
            format!("{PACKED_VERSION} with chunks of {chunk} pages, of compression {stored} and {zero:#x}");
        let [few, many] = CHUNK_PAGES;
        let known = format!("{PACKED_VERSION} with {few} or {many}, 1 to 2 and 0x0");
        return Err(disk::other_version(name, found, known));
    };
    compression::check(method)
        .map_err(|error| Error::new(error.kind(), format!("{name}: {}", error.message())))?;
    Ok((u64_at(bytes, 8), Packing { method, chunk: chunk.into(), bytes: u64_at(bytes, 16) }))
}
