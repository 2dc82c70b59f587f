//! Packed tables: their pages are compressed a few at a time, as *chunks*. The layout is described in
//! [`format`](super::format).
//!
//! A chunk has the pages' payloads. Logical offsets stay as they are, so all that refers to places of the table does
//! not know about this. A chunk that compression would not make an eighth smaller has its pages as they are in any
//! other table; each is then read alone.

#[cfg(any(test, feature = "simulated"))]
use super::format::Footer;
use super::format::{self, CHUNK_LEAST, END, Packing};
use crate::compression::{self, Compressor};
use crate::disk::{self, Name};
use crate::page;
use forrest_engine::{Compression, Error, Result};
use std::ops::Range;

/// Bytes of a chunk's checksum.
const SUM: usize = 8;
/// Set in the number that seals a chunk, and a page of the map: neither is taken for a page, or for the other.
const CHUNK: u64 = 1 << 62;
const MAP: u64 = 1 << 61;

/// Where a chunk ends, if the page of the map that has it is damaged.
const UNKNOWN: u64 = u64::MAX;

/// Where chunks are. What is on damaged pages of the map is unknown; the other chunks can be read.
pub(super) struct Map {
    name: Name,
    /// Where the map is in the file.
    place: u64,
    /// The end of each, from the beginning of the file.
    ends: Box<[u64]>,
    /// Pages in all of them.
    pages: u64,
    /// Pages of each; the last may have fewer.
    chunk: u64,
}

impl Map {
    /// Pages of the file that have it, for a table of `pages` pages.
    pub(super) fn place(packing: &Packing, pages: u64) -> Range<u64> {
        let from = packing.chunk_pages();
        from..from + packing.map_pages(pages)
    }

    /// Decodes the stored form, which are the pages of its [place](Map::place). `None` if pages with right checksums
    /// are malformed.
    pub(super) fn decode(packing: &Packing, pages: u64, name: Name, stored: &[u8]) -> Option<Map> {
        let place = Map::place(packing, pages).start * page::BYTES as u64;
        let (mut numbers, mut is_last_known) = (Vec::new(), true);
        for (number, page) in (0..).zip(stored.chunks_exact(page::BYTES)) {
            is_last_known = page::check_at(page, name, number | MAP, place).is_ok();
            match is_last_known {
                true => numbers.extend_from_slice(&page[..page::PAYLOAD]),
                false => numbers.extend([0xff; page::PAYLOAD]),
            }
        }
        let (ends, zeros) = numbers.split_at(packing.chunks(pages) as usize * END);
        let ends = ends.as_chunks().0.iter().map(|end| u64::from_le_bytes(*end)).collect();
        let map = Map { name, place, ends, pages: pages - 1, chunk: packing.chunk };
        let is_zero = !is_last_known || zeros.iter().all(|&byte| byte == 0);
        (is_zero && map.is_sound(packing)).then_some(map)
    }

    /// Whether what is known makes sense: no chunk is too long, too short, or beyond the last one.
    fn is_sound(&self, packing: &Packing) -> bool {
        let (mut start, mut is_start_known) = (0, true);
        for (chunk, &end) in (0..).zip(&self.ends) {
            if end == UNKNOWN {
                is_start_known = false;
                continue;
            }
            let Some(bytes) = end.checked_sub(start) else { return false };
            let whole = self.count(chunk) * page::BYTES as u64;
            if is_start_known && bytes != whole && !(CHUNK_LEAST..=most_packed(whole)).contains(&bytes) {
                return false;
            }
            (start, is_start_known) = (end, true);
        }
        start == packing.bytes || (!is_start_known && start <= packing.bytes)
    }

    /// Its memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val::<[u64]>(&self.ends)
    }

    /// The number of pages in a chunk.
    pub(super) fn count(&self, chunk: u64) -> u64 {
        (self.pages - chunk * self.chunk).min(self.chunk)
    }

    /// Where a chunk is in the file.
    ///
    /// # Errors
    /// `Corrupt` if the map is damaged there.
    pub(super) fn range(&self, chunk: u64) -> Result<Range<u64>> {
        let start = chunk.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        let end = self.ends[chunk as usize];
        if start == UNKNOWN || end == UNKNOWN {
            return Err(self.damaged(if end == UNKNOWN { chunk } else { chunk - 1 }));
        }
        Ok(start..end)
    }

    #[cold]
    fn damaged(&self, chunk: u64) -> Error {
        let page = chunk * END as u64 / page::PAYLOAD as u64;
        let offset = self.place + page * page::BYTES as u64;
        disk::damaged(self.name, offset, "a damaged page of the map of chunks")
    }

    /// Whether a chunk at this place has its pages as they are.
    pub(super) fn is_plain(&self, chunk: u64, range: &Range<u64>) -> bool {
        range.end - range.start == self.count(chunk) * page::BYTES as u64
    }

    /// Checks the stored form of a chunk, and fills `out` with the payloads of its pages.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(super) fn unpack(
        &self,
        packing: &Packing,
        name: Name,
        chunk: u64,
        stored: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        let (range, first) = (self.range(chunk)?, chunk * self.chunk);
        let start = range.start;
        if self.is_plain(chunk, &range) {
            let pages = stored.chunks_exact(page::BYTES).zip(out.chunks_exact_mut(page::PAYLOAD));
            for (at, (page, out)) in (0..).zip(pages) {
                page::check_at(page, name, first + at, start + at * page::BYTES as u64)?;
                out.copy_from_slice(&page[..page::PAYLOAD]);
            }
            return Ok(());
        }
        let (packed, sum) = stored.split_at(stored.len() - SUM);
        if sum != page::sum(packed, name, chunk | CHUNK).to_le_bytes() {
            return Err(disk::damaged(name, start, "wrong checksum of a chunk"));
        }
        if !compression::decompress(packing.method, packed, out) {
            return Err(disk::damaged(name, start, "a chunk with a valid checksum is malformed"));
        }
        Ok(())
    }
}

/// The greatest length of a compressed chunk, with its checksum, whose pages take `whole` bytes.
fn most_packed(whole: u64) -> u64 {
    whole - whole / 8
}

/// Packs the pages of a table that is being written.
pub(super) struct Packer {
    compressor: Compressor,
    ends: Vec<u64>,
    /// The payloads of a chunk, in a buffer that is reused.
    payloads: Vec<u8>,
}

impl Packer {
    pub(super) fn new(method: Compression) -> Packer {
        Packer { compressor: Compressor::new(method), ends: Vec::new(), payloads: Vec::new() }
    }

    /// Pages of a chunk.
    pub(super) fn pages_of_chunk(&self) -> u64 {
        format::pages_of_chunk(self.compressor.method())
    }

    /// Bytes of memory that it takes, without the buffers for one chunk.
    pub(super) fn bytes(&self) -> usize {
        self.ends.capacity() * END
    }

    /// Packs the pages at the end of `bytes`, from `from` on, as the next chunk. They are sealed. `offset` is where
    /// `bytes` is in the file.
    pub(super) fn pack(&mut self, name: Name, offset: u64, bytes: &mut Vec<u8>, from: usize) {
        let chunk = self.ends.len() as u64;
        self.payloads.clear();
        for page in bytes[from..].chunks_exact(page::BYTES) {
            self.payloads.extend_from_slice(&page[..page::PAYLOAD]);
        }
        let most = most_packed((bytes.len() - from) as u64) as usize - SUM;
        if let Some(packed) = self.compressor.compress(&self.payloads, most) {
            bytes.truncate(from);
            bytes.extend_from_slice(packed);
            bytes.extend_from_slice(&page::sum(packed, name, chunk | CHUNK).to_le_bytes());
        }
        self.ends.push(offset + bytes.len() as u64);
    }

    /// What the footer states, once all chunks are packed.
    pub(super) fn packing(&self) -> Packing {
        Packing {
            method: self.compressor.method(),
            chunk: self.pages_of_chunk(),
            bytes: self.ends.last().copied().unwrap_or_default(),
        }
    }

    /// The pages of the map.
    pub(super) fn map(&self, name: Name) -> Vec<u8> {
        let numbers: Vec<u8> = self.ends.iter().flat_map(|end| end.to_le_bytes()).collect();
        let mut out = Vec::new();
        for (number, numbers) in (0..).zip(numbers.chunks(page::PAYLOAD)) {
            let start = out.len();
            out.extend_from_slice(numbers);
            out.resize(start + page::BYTES, 0);
            page::seal(&mut out[start..], name, number | MAP);
        }
        out
    }
}

/// Makes the checksums of a packed table right, as far as its parts can be found; for tests and fuzzers. False if it is
/// not packed; its last page is sealed then.
#[cfg(any(test, feature = "simulated"))]
pub(crate) fn seal_all(bytes: &mut [u8], name: Name) -> bool {
    let (pages, rest) = bytes.as_chunks_mut::<{ page::BYTES }>();
    let (file_pages, Some(last)) = (pages.len() as u64, pages.last_mut().filter(|_| rest.is_empty())) else {
        return false;
    };
    page::seal(last, name, (file_pages - 1) | page::LAST);
    let Ok(footer) = Footer::decode(name, file_pages, &last[..page::PAYLOAD]) else { return false };
    let Some(packing) = footer.packing else { return false };
    let place = Map::place(&packing, footer.pages);
    let range = place.start as usize * page::BYTES..place.end as usize * page::BYTES;
    for (number, page) in (0..).zip(bytes[range.clone()].chunks_exact_mut(page::BYTES)) {
        page::seal(page, name, number | MAP);
    }
    let Some(map) = Map::decode(&packing, footer.pages, name, &bytes[range]) else { return true };
    for chunk in 0..packing.chunks(footer.pages) {
        let Ok(range) = map.range(chunk) else { continue };
        let stored = &mut bytes[range.start as usize..range.end as usize];
        if map.is_plain(chunk, &range) {
            for (at, page) in (0..).zip(stored.chunks_exact_mut(page::BYTES)) {
                page::seal(page, name, chunk * packing.chunk + at);
            }
        } else {
            let (packed, end) = stored.split_at_mut(stored.len() - SUM);
            end.copy_from_slice(&page::sum(packed, name, chunk | CHUNK).to_le_bytes());
        }
    }
    true
}
