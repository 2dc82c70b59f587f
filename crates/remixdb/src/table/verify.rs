//! [`Table::verify`]: checks that a table's file is what was written, all of it, from the disk and not from
//! the cache.

use super::block::{self, Block, Kind, Layout};
use super::format::{self, BLOCK_HEAD, BLOCK_KEYS, Footer, Packing};
use super::index::Index;
use super::pack::Map;
use super::tags::{Tags, tag};
use super::{PIECE_PAGES, Table};
use crate::disk;
use crate::key::common_prefix;
use crate::page;
use crate::wrapped::{self, HEADER_MOST, InTable, POINTER_BYTES};
use forrest_engine::Result;

/// Bytes that are read of a wrapped value without operands: more than its header has, or all of it if it is in a log.
const HEADER_READ: u64 = 2 * (HEADER_MOST + POINTER_BYTES) as u64;

/// Logical bytes that are read ahead, past the cache.
struct Window {
    start: u64,
    bytes: Vec<u8>,
    /// The end of the section in which they lie.
    end: u64,
}

/// Totals over the blocks checked so far.
#[derive(Default)]
struct Sums {
    values: u64,
    tombstones: u32,
    wrapped: u32,
    /// What wrapped values have, as the footer states it for all of them.
    headers: Headers,
    /// The last key.
    last: Vec<u8>,
    /// A buffer for the current key.
    key: Vec<u8>,
}

/// What a footer states about all wrapped values.
#[derive(Default)]
struct Headers {
    /// Whether some have operands.
    operands: bool,
    /// Bytes of the values that are in logs.
    large: u64,
    expiring: u32,
    /// The earliest and the latest expiry; 0 if there is none.
    expiries: [u64; 2],
}

impl Headers {
    /// Adds those of a wrapped value.
    fn add(&mut self, value: InTable<'_>) {
        self.operands |= matches!(value, InTable::Operands);
        if let InTable::Elsewhere { pointer, .. } = value {
            self.large = self.large.saturating_add(pointer.len);
        }
        let Some(ms) = value.expires_ms() else { return };
        self.expiring += 1;
        let [first, last] = self.expiries;
        self.expiries = [if first == 0 { ms } else { first.min(ms) }, last.max(ms)];
    }

    /// Why a footer is not that of a table with these.
    fn flaw(&self, footer: &Footer) -> Option<String> {
        if self.operands != footer.operands {
            let (some, stated) =
                if self.operands { ("some entries have", "none has") } else { ("no entry has", "some have") };
            return Some(format!("{some} operands of merges, and its footer says that {stated}"));
        }
        if self.large != footer.large {
            return Some(format!(
                "values of {} bytes are in logs, and its footer says {}",
                self.large, footer.large
            ));
        }
        let stated = self.expiries.map(format::stated_expiry);
        if stated != footer.expiries {
            return Some(format!(
                "its values expire from {} to {} ms, and its footer says from {} to {}",
                stated[0], stated[1], footer.expiries[0], footer.expiries[1]
            ));
        }
        // Other footers do not have it.
        (self.large > 0 && self.expiring != footer.expiring)
            .then(|| format!("{} values expire, and its footer says {}", self.expiring, footer.expiring))
    }
}

impl Table {
    /// Reads the whole file and checks it against itself: every checksum, the structure of every block, the
    /// order of all keys, their tags, separators, bounds, counts, that the values are where the blocks say, without
    /// gaps, and the headers of wrapped values.
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
        let new = |end| Window { start: 0, bytes: Vec::new(), end };
        let (mut window, mut values) = (new(footer.keys.end()), new(footer.values));
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
            self.verify_wrapped(block, &mut values, &mut sums.headers)?;
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
        match sums.headers.flaw(footer) {
            None => Ok(()),
            Some(flaw) => Err(self.damaged(footer.bounds, flaw)),
        }
    }

    /// Checks the headers of the wrapped values of a block, whose places were checked.
    fn verify_wrapped(&self, block: Block<'_>, window: &mut Window, headers: &mut Headers) -> Result<()> {
        for at in (0..block.layout.count).filter(|&at| block.kind(at) == Kind::Wrapped) {
            let value = block.value(at).unwrap_or_default();
            let (from, count) = (value.start, value.end - value.start);
            let mut bytes = self.window(window, from, count.min(HEADER_READ))?;
            if wrapped::has_operands(bytes) {
                bytes = self.window(window, from, count)?;
            }
            match InTable::read(bytes) {
                Some(value) => headers.add(value),
                None => return Err(self.damaged(from, wrapped::FLAW)),
            }
        }
        Ok(())
    }

    /// The bytes of a span of the section.
    fn window<'w>(&self, window: &'w mut Window, from: u64, count: u64) -> Result<&'w [u8]> {
        let have = window.start + window.bytes.len() as u64;
        if from < window.start || from + count > have {
            let left = window.end.saturating_sub(from);
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
