//! [`Table::verify`]: checks that a table's file is what was written, all of it, from the disk and not from
//! the cache.

use super::block::{self, Block, Kind, Layout};
use super::format::{BLOCK_HEAD, BLOCK_KEYS, Footer, Packing};
use super::index::Index;
use super::pack::Map;
use super::tags::{Tags, tag};
use super::{PIECE_PAGES, Table};
use crate::disk::{self, Disk};
use crate::key::common_prefix;
use crate::page;
use forrest_engine::Result;

/// Logical bytes that are read ahead, past the cache.
struct Window {
    start: u64,
    bytes: Vec<u8>,
}

/// Totals over the blocks checked so far.
#[derive(Default)]
struct Sums {
    values: u64,
    tombstones: u32,
    wrapped: u32,
    /// The last key.
    last: Vec<u8>,
    /// A buffer for the current key.
    key: Vec<u8>,
}

impl<D: Disk> Table<D> {
    /// Reads the whole file and checks it against itself: every checksum, the structure of every block, the
    /// order of all keys, their tags, separators, bounds, counts, and that the values are where the blocks say, without
    /// gaps.
    ///
    /// # Errors
    /// `Io`; `Corrupt` with the place of the damage.
    pub(crate) fn verify(&self) -> Result<()> {
        let len = disk::len(&*self.disk, &self.file, self.name)?;
        if len != self.file_bytes() {
            return Err(disk::damaged(
                self.name,
                len,
                format!("the file has {len} bytes, not {}", self.file_bytes()),
            ));
        }
        let mut pages = Vec::new();
        for first in (0..self.footer.pages).step_by(PIECE_PAGES as usize) {
            self.read_pages(first, (self.footer.pages - first).min(PIECE_PAGES), &mut pages)?;
        }
        if let Some(packing) = &self.footer.packing {
            self.verify_map(packing)?;
        }
        let mut last = vec![0; page::BYTES];
        self.read_pages(self.footer.pages - 1, 1, &mut last)?;
        if Footer::decode(self.name, self.footer.file_pages, &last[..page::PAYLOAD])? != self.footer {
            return Err(self.damaged(
                self.footer.bounds,
                "the footer differs from the one read when the table was opened",
            ));
        }
        self.verify_blocks()
    }

    /// Reads the map of a packed table again, and checks that there is nothing before it.
    fn verify_map(&self, packing: &Packing) -> Result<()> {
        self.read_map(packing)?;
        let map_at = Map::place(packing, self.footer.pages).start * page::BYTES as u64;
        let mut zeros = vec![0; (map_at - packing.bytes) as usize];
        disk::read_exact(&*self.disk, &self.file, self.name, &mut zeros, packing.bytes)?;
        match zeros.iter().position(|&byte| byte != 0) {
            None => Ok(()),
            Some(at) => Err(disk::damaged(
                self.name,
                packing.bytes + at as u64,
                "a byte after the last chunk is not zero",
            )),
        }
    }

    fn verify_blocks(&self) -> Result<()> {
        let footer = &self.footer;
        let index = self.read_index()?;
        let tags = self.footer.tagged.then(|| self.read_tags()).transpose()?;
        let mut window = Window { start: 0, bytes: Vec::new() };
        let mut sums = Sums::default();
        let mut end = footer.keys.offset;
        for number in 0..footer.blocks {
            let place = footer.keys.offset + index.offset(number);
            if place < end || place - end >= page::PAYLOAD as u64 {
                return Err(self.damaged(place, "a key block does not begin where the previous one ends"));
            }
            let Some(head) = self.window(&mut window, place, BLOCK_HEAD as u64)?.first_chunk() else {
                return Err(self.damaged(place, "a key block has no head"));
            };
            let length = block::length(head) as u64;
            if length > footer.keys.end() - place {
                return Err(self.damaged(place, "a key block extends beyond the key section"));
            }
            let bytes = self.window(&mut window, place, length)?;
            let layout = Layout::read(bytes, self.has_wrapped()).map_err(|what| self.damaged(place, what))?;
            let block = Block { layout: &layout, bytes };
            let seen = self.verify_block(block, number, &index, tags.as_ref(), &mut sums);
            seen.map_err(|what| self.damaged(place, what))?;
            end = place + length;
        }
        if end != footer.keys.end()
            || sums.values != footer.values
            || sums.tombstones != footer.tombstones
            || sums.wrapped != footer.wrapped
        {
            return Err(self.damaged(end, "the totals of the key blocks differ from the footer"));
        }
        if sums.last != *self.greatest {
            return Err(self.damaged(footer.bounds, "the greatest key is not the last key of the last block"));
        }
        Ok(())
    }

    /// The bytes of a span that lies among the keys.
    fn window<'w>(&self, window: &'w mut Window, from: u64, count: u64) -> Result<&'w [u8]> {
        let have = window.start + window.bytes.len() as u64;
        if from < window.start || from + count > have {
            let left = self.footer.keys.end().saturating_sub(from);
            window.start = from;
            window.bytes.resize(left.min(count.max(PIECE_PAGES * page::PAYLOAD as u64)) as usize, 0);
            self.read_past(from, &mut window.bytes)?;
        }
        let at = (from - window.start) as usize;
        Ok(window.bytes.get(at..at + count as usize).unwrap_or_default())
    }

    /// Checks one block, after those that `sums` covers.
    fn verify_block(
        &self,
        block: Block<'_>,
        number: u32,
        index: &Index,
        tags: Option<&Tags>,
        sums: &mut Sums,
    ) -> Result<(), String> {
        let due = (self.footer.entries - number * BLOCK_KEYS).min(BLOCK_KEYS) as usize;
        if block.layout.count != due {
            return Err(format!("wrong number of keys: {}, expected {due}", block.layout.count));
        }
        if block.layout.first_value != sums.values {
            return Err("the values of a key block do not begin where the previous ones end".into());
        }
        for at in 0..due {
            let (prefix, suffix) = block.key(at).ok_or("a key extends beyond its block")?;
            sums.key.clear();
            sums.key.extend_from_slice(prefix);
            sums.key.extend_from_slice(suffix);
            if sums.key.len() > forrest_engine::MAX_KEY_BYTES {
                return Err("a key exceeds the limit of 65535 bytes".into());
            }
            let first = number == 0 && at == 0;
            if first && sums.key != *self.least {
                return Err("the least key is not the first key of the first block".into());
            }
            if !first && sums.key <= sums.last {
                return Err("keys are not in order".into());
            }
            if at == 0 {
                let shared = common_prefix(&sums.last, &sums.key);
                let separator = if number == 0 { &[] } else { &sums.key[..shared + 1] };
                if index.separator(number as usize) != separator {
                    return Err("wrong separator of a key block".into());
                }
            }
            if tags.is_some_and(|tags| tags.at(number, at) != tag(&sums.key)) {
                return Err("the tag of a key is that of another one".into());
            }
            let value = block.value(at).ok_or("a value ends before its beginning")?;
            if value.start != sums.values || value.end > self.footer.values {
                return Err("a value does not begin where the previous one ends".into());
            }
            if block.kind(at) == Kind::Tombstone {
                sums.tombstones += 1;
                if !value.is_empty() {
                    return Err("a tombstone with a value".into());
                }
            }
            sums.wrapped += u32::from(block.kind(at) == Kind::Wrapped);
            sums.values = value.end;
            std::mem::swap(&mut sums.last, &mut sums.key);
        }
        Ok(())
    }
}
