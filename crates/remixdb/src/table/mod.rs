//! Tables: immutable files of sorted entries, keys and values apart.
//!
//! An entry is addressed by its **ordinal**, its position among all entries of the table. No search is needed
//! for that: block and position in it follow by a division. Callers that have a key and no ordinal use the
//! table's own index ([`Cursor::find`], [`Cursor::lower_bound`]).
//!
//! - A [`Builder`] writes a table once. It never changes, so nothing here is locked except in the cache.
//! - Opening reads only the footer; the index is read when it is first needed.
//! - Keys are read in place in cached pages; only a block that straddles pages is assembled first. Values are
//!   copied once, to their destination.
//! - Whatever the file contains, the result is what was written, or an error that names the file and the
//!   offset. No allocation is larger than the file's own length justifies.
//!
//! Not here: versions of a key (a table has each key once), and the combination of several tables.
//!
//! | module | what it has |
//! |---|---|
//! | format.rs | the layout of a table file |
//! | block.rs | key blocks: written, and read in place |
//! | index.rs | the index in memory |
//! | tags.rs | hash tags of the keys |
//! | pack.rs | pages that are compressed together |
//! | build.rs | [`Builder`] |
//! | cursor.rs | [`Cursor`] |
//! | ahead.rs | what a walk announces to the device |
//! | verify.rs | [`Table::verify`] |

mod ahead;
mod block;
mod build;
mod cursor;
mod format;
mod index;
mod pack;
mod tags;
#[cfg(test)]
mod tests;
mod verify;

pub(crate) use block::Kind;
pub(crate) use build::{Builder, TableEntry};
pub(crate) use cursor::{Reader, SharedReader, TableCursor};
#[cfg(any(test, feature = "simulated"))]
pub(crate) use pack::seal_all as seal_packed;

use crate::cache::{self, Cache, Of, PageRef, Pages};
use crate::disk::{self, Disk, Name, Sealed, SealedFile};
use crate::gauge::Share;
use crate::page;
use crate::room;
use crate::see::See;
use crate::values::Values;
use crate::wrapped::Pointer;
use ahead::Habit;
use format::{Footer, Packing, Span};
use forrest_engine::{Compression, ErrorKind, Result};
use index::Index;
use pack::Map;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use tags::Tags;

/// Larger values are read past the cache, in large pieces: they would evict many pages and are rarely read
/// again.
const CACHED_PAGES_MAX: usize = 64;
/// Bytes that are prefetched around a key's approximate place, and the maximum for a value.
const KEY_FETCHED: u64 = 65;
const VALUE_FETCHED: u64 = 256;
/// Most pages of values that are announced while their keys are read.
const BLOCK_PAGES_MAX: u64 = 4;
/// Most pages of keys that are announced for one of several scans, and most pages of values.
const WALK_PAGES_MAX: u64 = 8;
/// Number of pages that are read at once, past the cache.
const PIECE_PAGES: u64 = 256;
/// Bytes of an index that are read at once.
const INDEX_PIECE: usize = 1 << 20;

/// The first ordinal of the block after that of an entry.
pub(crate) fn block_after(ordinal: u32) -> u32 {
    (ordinal / format::BLOCK_KEYS + 1).saturating_mul(format::BLOCK_KEYS)
}

/// The block of an entry.
#[inline]
pub(crate) fn block_of(ordinal: u32) -> u32 {
    ordinal / format::BLOCK_KEYS
}

/// An open table.
pub(crate) struct Table {
    disk: Arc<Sealed>,
    file: SealedFile,
    name: Name,
    footer: Footer,
    /// Whether there are entries other than plain values.
    has_kinds: bool,
    /// A plain value ends before this offset: after the end of the values, or 0 if some are wrapped.
    plain_end: u64,
    /// The length of all values, if they have one.
    value_bytes_each: Option<u64>,
    least: Box<[u8]>,
    greatest: Box<[u8]>,
    pages: Pages,
    index: OnceLock<Index>,
    /// Where the pages of a packed table are. Read when the first of them is.
    map: OnceLock<Map>,
    /// Read at the first lookup by the index, if there is memory for them.
    tags: OnceLock<Tags>,
    habit: Habit,
    /// Where the values are that are in logs; `None` if they are not read.
    values: Option<Arc<Values>>,
    /// What it counts for without its pages and their slots.
    share: Share,
}

/// The expiries of a table's values: how many there are, and the earliest and the latest, in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expiries {
    pub(crate) values: u32,
    pub(crate) first_ms: u64,
    pub(crate) last_ms: u64,
}

impl Table {
    /// Opens a table.
    ///
    /// # Errors
    /// `Io`; `Corrupt` for a file that is not a whole table of this name; `Unsupported` for one of another version.
    pub(crate) fn open(disk: Arc<Sealed>, name: Name, cache: &Arc<Cache>) -> Result<Table> {
        let file = disk::open(&*disk, name)?;
        Table::of(disk, file, name, cache)
    }

    /// The same for a table that the manifest names: `Corrupt` if it is missing.
    pub(crate) fn open_named(disk: Arc<Sealed>, name: Name, cache: &Arc<Cache>) -> Result<Table> {
        let file = disk::open_named(&*disk, name)?;
        Table::of(disk, file, name, cache)
    }

    fn of(disk: Arc<Sealed>, file: SealedFile, name: Name, cache: &Arc<Cache>) -> Result<Table> {
        let len = disk::len(&*disk, &file, name)?;
        let pages = len / page::BYTES as u64;
        if pages == 0 || !len.is_multiple_of(page::BYTES as u64) || pages > u64::from(u32::MAX) {
            return Err(disk::damaged(name, len, format!("the file ends; no table has {len} bytes")));
        }
        let mut last = vec![0; page::BYTES];
        disk::read_exact(&*disk, &file, name, &mut last, (pages - 1) * page::BYTES as u64)?;
        page::check(&last, name, (pages - 1) | page::LAST)?;
        let footer = Footer::decode(name, pages, &last[..page::PAYLOAD])?;
        let mut table = Table {
            disk,
            file,
            name,
            footer,
            has_kinds: footer.wrapped > 0 || footer.tombstones > 0,
            value_bytes_each: Some(footer.values / u64::from(footer.entries.max(1)))
                .filter(|each| each * u64::from(footer.entries) == footer.values),
            plain_end: if footer.wrapped > 0 { 0 } else { footer.values.saturating_add(1) },
            least: Box::default(),
            greatest: Box::default(),
            pages: Pages::new(cache, Of::Table, footer.pages as u32),
            index: OnceLock::new(),
            map: OnceLock::new(),
            tags: OnceLock::new(),
            habit: Habit::new(),
            values: None,
            share: cache.indexes().take(0),
        };
        let mut bounds = vec![0; (footer.least + footer.greatest) as usize];
        match page::place(footer.bounds) {
            (page, at) if page == footer.pages - 1 => bounds = last[at..at + bounds.len()].to_vec(),
            _ => table.read_past(footer.bounds, &mut bounds)?,
        }
        let (least, greatest) = bounds.split_at(footer.least as usize);
        if least > greatest {
            return Err(table.damaged(footer.bounds, "the least key is greater than the greatest key"));
        }
        (table.least, table.greatest) = (least.into(), greatest.into());
        table.share.set(table.own_bytes());
        Ok(table)
    }

    /// The same with the values that are in logs.
    pub(crate) fn with_values(mut self, values: &Arc<Values>) -> Table {
        self.values = Some(values.clone());
        self
    }

    /// Reads the index, without which nothing can be found.
    pub(crate) fn load(&self) -> Result<()> {
        self.index().map(drop)
    }

    /// The file, which stays readable while the table lives.
    pub(crate) fn file(&self) -> &SealedFile {
        &self.file
    }

    pub(crate) fn name(&self) -> Name {
        self.name
    }

    /// The number of entries. Ordinals are less than it.
    pub(crate) fn entries(&self) -> u32 {
        self.footer.entries
    }

    /// The number of tombstones among the entries.
    pub(crate) fn tombstones(&self) -> u32 {
        self.footer.tombstones
    }

    /// The expiries of its values; `None` if none expires.
    pub(crate) fn expiries(&self) -> Option<Expiries> {
        let Footer { expiring: values, expiries: [first_ms, last_ms], .. } = self.footer;
        (first_ms > 0).then_some(Expiries { values, first_ms, last_ms })
    }

    /// Whether some entries have operands of merges.
    pub(crate) fn has_operands(&self) -> bool {
        self.footer.operands
    }

    /// Whether it has wrapped values.
    pub(crate) fn has_wrapped(&self) -> bool {
        self.footer.wrapped > 0
    }

    /// Whether it has values that expire.
    pub(crate) fn may_expire(&self) -> bool {
        self.footer.expiries[0] > 0
    }

    /// Bytes of its values that are in logs.
    pub(crate) fn large_bytes(&self) -> u64 {
        self.footer.large
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.footer.file_pages * page::BYTES as u64
    }

    /// Bytes that the file would have if it were not compressed.
    pub(crate) fn plain_bytes(&self) -> u64 {
        self.footer.pages * page::BYTES as u64
    }

    /// Whether it is not compressed in this way, and would be if it were written again.
    pub(crate) fn is_packed_otherwise(&self, method: Compression) -> bool {
        let packed = self.footer.packing.map_or(Compression::None, |packing| packing.method);
        self.footer.pages > 1 && packed != method
    }

    /// The first key; empty if there is none.
    pub(crate) fn least(&self) -> &[u8] {
        &self.least
    }

    /// The last key; empty if there is none.
    pub(crate) fn greatest(&self) -> &[u8] {
        &self.greatest
    }

    /// Memory of the open table without cached pages, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.own_bytes() + self.pages.slot_bytes()
    }

    /// The same without the slots of the pages.
    fn own_bytes(&self) -> usize {
        let index = self.index.get().map_or(0, Index::bytes);
        let tags = self.tags.get().map_or(0, Tags::bytes);
        let map = self.map.get().map_or(0, Map::bytes);
        size_of::<Self>() + self.least.len() + self.greatest.len() + index + tags + map
    }

    /// The cache that has its pages.
    pub(crate) fn cache(&self) -> &Arc<Cache> {
        self.pages.cache()
    }

    /// The error for damage at a logical offset.
    #[cold]
    fn damaged(&self, offset: u64, what: impl fmt::Display) -> forrest_engine::Error {
        disk::damaged(self.name, self.file_offset(offset), what)
    }

    /// Where in the file the byte at a logical offset is; in a packed table, where its chunk begins.
    fn file_offset(&self, offset: u64) -> u64 {
        let Some(packing) = &self.footer.packing else { return page::file_offset(offset) };
        let (page, at) = page::place(offset);
        match self.map.get() {
            Some(map) if page + 1 < self.footer.pages => {
                map.range(page / packing.chunk).map_or(0, |range| range.start)
            }
            _ => self.last_page() * page::BYTES as u64 + at as u64,
        }
    }

    /// The number of the last page in the file.
    fn last_page(&self) -> u64 {
        self.footer.file_pages - 1
    }

    /// The map of a packed table, which the first caller reads.
    fn map(&self, packing: &Packing) -> Result<&Map> {
        if let Some(map) = self.map.get() {
            return Ok(map);
        }
        let map = self.read_map(packing)?;
        let map = self.map.get_or_init(|| map);
        self.share.set(self.own_bytes());
        Ok(map)
    }

    fn read_map(&self, packing: &Packing) -> Result<Map> {
        let place = Map::place(packing, self.footer.pages);
        let from = place.start * page::BYTES as u64;
        // The footer was checked: the file is as long as that.
        let mut stored = vec![0; (place.end - place.start) as usize * page::BYTES];
        disk::read_exact(&*self.disk, &self.file, self.name, &mut stored, from)?;
        let map = Map::decode(packing, self.footer.pages, self.name, &stored);
        map.ok_or_else(|| disk::damaged(self.name, from, "malformed map of chunks"))
    }

    /// The index, which the first caller reads. (Two concurrent first callers both read it.)
    #[inline]
    fn index(&self) -> Result<&Index> {
        match self.index.get() {
            Some(index) => Ok(index),
            None => self.load_index(),
        }
    }

    #[cold]
    fn load_index(&self) -> Result<&Index> {
        let index = self.read_index()?;
        let index = self.index.get_or_init(|| index);
        self.share.set(self.own_bytes());
        Ok(index)
    }

    fn read_index(&self) -> Result<Index> {
        // Of a packed table the length is a claim until its pages are unpacked, so memory is taken as they are.
        let (bytes, mut stored) = (self.footer.index.bytes as usize, Vec::new());
        while stored.len() < bytes {
            let at = stored.len();
            let piece = (bytes - at).min(INDEX_PIECE);
            stored.try_reserve(piece).map_err(room::refused)?;
            stored.resize(at + piece, 0);
            self.read_past(self.footer.index.offset + at as u64, &mut stored[at..])?;
        }
        let index = Index::decode(&self.footer, stored)?;
        index.ok_or_else(|| self.damaged(self.footer.index.offset, "malformed index"))
    }

    /// The tags, which the first caller reads. `None` if the table has none, or there is no memory for them: then keys
    /// are searched without.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    #[inline]
    fn tags(&self) -> Result<Option<&Tags>> {
        match self.tags.get() {
            None if self.footer.tagged => self.load_tags(),
            tags => Ok(tags),
        }
    }

    #[cold]
    fn load_tags(&self) -> Result<Option<&Tags>> {
        if !self.cache().indexes().has_room(Tags::bytes_of(self.entries())) {
            return Ok(None);
        }
        match self.read_tags() {
            Ok(tags) => {
                self.tags.get_or_init(|| tags);
                self.share.set(self.own_bytes());
                Ok(self.tags.get())
            }
            Err(error) if error.kind() == ErrorKind::OutOfSpace => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// REQUIRES: it has tags.
    fn read_tags(&self) -> Result<Tags> {
        let span = self.footer.tags().expect("it has tags");
        // The footer was checked: the file is as long as that.
        let mut stored = room::filled(span.bytes as usize, 0)?;
        self.read_past(span.offset, &mut stored)?;
        Tags::decode(&stored)
    }

    /// The block that has a key if the table does, where it is known without waiting. Its tags are prefetched.
    #[inline]
    pub(crate) fn find_block(&self, key: &[u8]) -> Option<u32> {
        let (index, tags) = (self.index.get()?, self.tags.get()?);
        let number = index.find(key);
        tags.fetch(number);
        Some(number)
    }

    /// Prefetches what a search for an entry's key and value will touch, as far as it is known without
    /// reading: the block, the approximate place of the key in it, and the value if all are of one size. A
    /// hint. If pages are not in the cache, the device is asked for them, so that it reads the value's page
    /// while the caller waits for the key's; and for the key's page too, if others are read `first`. With `keys_only`
    /// the value is left out.
    #[inline]
    pub(crate) fn fetch(&self, ordinal: u32, first: bool, keys_only: bool) {
        let Some(index) = self.index.get() else { return };
        let (number, at) = (ordinal / format::BLOCK_KEYS, ordinal % format::BLOCK_KEYS);
        let place = self.footer.keys.offset + index.offset(number);
        let end =
            if number + 1 < self.footer.blocks { index.offset(number + 1) } else { self.footer.keys.bytes };
        let length = self.footer.keys.offset + end - place;
        if !self.fetch_bytes(place, 1) && first {
            self.will_read(page::place(place).0, 1);
        }
        self.fetch_bytes(place + length * u64::from(at) / u64::from(format::BLOCK_KEYS), KEY_FETCHED);
        if keys_only {
            return;
        }
        if let Some(each) = self.value_bytes_each {
            let value = u64::from(ordinal) * each;
            if !self.fetch_bytes(value, each.clamp(1, VALUE_FETCHED)) {
                self.will_read(page::place(value).0, 1);
            }
        }
    }

    /// Prefetches where an entry's block is looked up, and the page of its value, if all values are of one size. It
    /// waits for nothing, while [`fetch`](Table::fetch) waits for that.
    #[inline]
    pub(crate) fn fetch_place(&self, ordinal: u32, keys_only: bool) {
        if let Some(index) = self.index.get() {
            index.fetch_offset(ordinal / format::BLOCK_KEYS);
        }
        if !keys_only {
            self.fetch_value_slot(ordinal);
        }
    }

    /// Prefetches where the page is looked up that has a value, if all are of one size.
    #[inline]
    fn fetch_value_slot(&self, ordinal: u32) {
        if let Some(each) = self.value_bytes_each {
            self.pages.fetch_slot(page::place(u64::from(ordinal) * each).0 as u32);
        }
    }

    /// Prefetches the beginning of a value, and what is after it, if all are of one size.
    #[inline]
    fn fetch_values(&self, ordinal: u32) {
        if let Some(each) = self.value_bytes_each {
            self.fetch_bytes(u64::from(ordinal) * each, VALUE_FETCHED);
        }
    }

    /// Requests the pages that a walk of `count` entries from a key on reads first, at most [`WALK_PAGES_MAX`] of keys
    /// and as many of values, if it is known without reading which.
    pub(crate) fn fetch_walk(&self, key: &[u8], count: usize, keys_only: bool) -> Result<()> {
        let Footer { entries, blocks, keys, values, .. } = self.footer;
        if entries == 0 {
            return Ok(());
        }
        let index = self.index()?;
        let number = index.find(key);
        // The walk may begin with the last key of its block.
        let count = u64::from(format::BLOCK_KEYS) + count.min(entries as usize) as u64;
        let end = (u64::from(number) + count.div_ceil(u64::from(format::BLOCK_KEYS))).min(u64::from(blocks));
        let end = if end < u64::from(blocks) { index.offset(end as u32) } else { keys.bytes };
        let pages = |from: u64, to: u64| {
            let first = page::place(from).0;
            first..to.div_ceil(page::PAYLOAD as u64).min(first + WALK_PAGES_MAX)
        };
        self.announce_keys(pages(keys.offset + index.offset(number), keys.offset + end));
        if let Some(each) = self.value_bytes_each.filter(|_| !keys_only) {
            let first = u64::from(number) * u64::from(format::BLOCK_KEYS);
            let pages = pages(first * each, ((first + count) * each).min(values));
            if pages.end - pages.start < WALK_PAGES_MAX {
                self.announce_values(pages);
            }
        }
        Ok(())
    }

    /// Prefetches what a search for a key will touch: the block, from memory or from the device.
    pub(crate) fn fetch_key(&self, key: &[u8]) -> Result<()> {
        if self.footer.entries == 0 {
            return Ok(());
        }
        let index = self.index()?;
        let number = index.find(key);
        match self.tags()?.map(|tags| tags.matches(number, tags::tag(key))) {
            None if !self.fetch_block(number) => {
                self.will_read(page::place(self.footer.keys.offset + index.offset(number)).0, 1);
            }
            None | Some(0) => {}
            Some(matches) => {
                self.fetch(number * format::BLOCK_KEYS + matches.trailing_zeros(), true, false);
            }
        }
        Ok(())
    }

    /// Prefetches a whole key block, for a search in it, which reads the heads of all its keys. False if it
    /// is not in the cache.
    #[inline]
    fn fetch_block(&self, number: u32) -> bool {
        let Some(index) = self.index.get() else { return false };
        let place = self.footer.keys.offset + index.offset(number);
        let end =
            if number + 1 < self.footer.blocks { index.offset(number + 1) } else { self.footer.keys.bytes };
        self.fetch_bytes(place, self.footer.keys.offset + end - place)
    }

    /// Announces to the device that pages will be read soon.
    #[cold]
    fn will_read(&self, first: u64, count: u64) {
        let bytes = page::BYTES as u64;
        let Some(packing) = &self.footer.packing else {
            return self.disk.will_read(&self.file, first * bytes, count * bytes);
        };
        let end = (first + count).min(self.footer.pages - 1);
        if first < end
            && let Ok(map) = self.map(packing)
            && let (Ok(first), Ok(last)) =
                (map.range(first / packing.chunk), map.range((end - 1) / packing.chunk))
        {
            let from = first.start / bytes * bytes;
            let to = last.end.next_multiple_of(bytes);
            self.disk.will_read(&self.file, from, to - from);
        }
    }

    /// Announces pages in one piece: from the first to the last that is not in the cache.
    fn announce(&self, mut pages: Range<u64>) {
        let is_kept = |page: u64| self.pages.fetch(page as u32, 0..1);
        while !pages.is_empty() && is_kept(pages.start) {
            pages.start += 1;
        }
        while !pages.is_empty() && is_kept(pages.end - 1) {
            pages.end -= 1;
        }
        if !pages.is_empty() {
            self.will_read(pages.start, pages.end - pages.start);
        }
    }

    /// Announces pages of values, as far as there are such.
    fn announce_values(&self, pages: Range<u64>) {
        let end = self.footer.values.div_ceil(page::PAYLOAD as u64);
        self.announce(pages.start..pages.end.min(end));
    }

    /// Announces pages of keys, as far as there are such.
    fn announce_keys(&self, pages: Range<u64>) {
        let Span { offset, .. } = self.footer.keys;
        let (first, end) = (page::place(offset).0, self.footer.keys.end().div_ceil(page::PAYLOAD as u64));
        self.announce(pages.start.max(first)..pages.end.min(end));
    }

    /// Announces the values of a block's keys, if all values are of one size and these are on few pages.
    fn announce_block_values(&self, number: u32) {
        if let Some(each) = self.value_bytes_each {
            let of = |block: u32| u64::from(block) * u64::from(format::BLOCK_KEYS) * each;
            let pages = page::place(of(number)).0..of(number + 1).div_ceil(page::PAYLOAD as u64);
            if pages.end - pages.start <= BLOCK_PAGES_MAX {
                self.announce_values(pages);
            }
        }
    }

    /// Prefetches `bytes` bytes at a logical offset, as far as they are in its page; false if the page is not
    /// in the cache.
    #[inline]
    fn fetch_bytes(&self, offset: u64, bytes: u64) -> bool {
        let (page, at) = page::place(offset);
        self.pages.fetch(page as u32, at..(at + bytes as usize).min(page::PAYLOAD))
    }

    /// The number under which the page is sealed, in a table that is not packed.
    fn sealed_as(&self, page: u64) -> u64 {
        if page + 1 == self.footer.pages { page | page::LAST } else { page }
    }

    /// A page, through the cache. It is counted in `reads` if the cache does not have it. If the caller `goes_on` to
    /// the pages beside it, those that are packed with it come into the cache too.
    #[inline]
    fn page_noting(&self, number: u64, goes_on: bool, reads: &mut u64) -> Result<PageRef> {
        match self.pages.find(number as u32) {
            Some(page) => Ok(page),
            None => self.read_page(number, goes_on, reads),
        }
    }

    #[cold]
    fn read_page(&self, number: u64, goes_on: bool, reads: &mut u64) -> Result<PageRef> {
        self.pages.get(number as u32, |bytes| {
            *reads += 1;
            if let Some(packing) = &self.footer.packing {
                return self.read_packed(packing, number, goes_on, bytes);
            }
            disk::read_exact(&*self.disk, &self.file, self.name, bytes, number * page::BYTES as u64)?;
            page::check(bytes, self.name, self.sealed_as(number))
        })
    }

    /// Reads a page of a packed table.
    #[cold]
    fn read_packed(
        &self,
        packing: &Packing,
        number: u64,
        goes_on: bool,
        page: &mut [u8; page::BYTES],
    ) -> Result<()> {
        if number + 1 == self.footer.pages {
            return self.read_last(page);
        }
        let map = self.map(packing)?;
        let (chunk, at) = (number / packing.chunk, (number % packing.chunk) as usize);
        let range = map.range(chunk)?;
        if map.is_plain(chunk, &range) {
            let offset = range.start + (at * page::BYTES) as u64;
            disk::read_exact(&*self.disk, &self.file, self.name, page, offset)?;
            return page::check_at(page, self.name, number, offset);
        }
        let mut payloads = vec![0; map.count(chunk) as usize * page::PAYLOAD];
        self.read_chunks(packing, map, chunk..chunk + 1, &mut payloads)?;
        for (other, payload) in (number - at as u64..).zip(payloads.chunks_exact(page::PAYLOAD)) {
            if other == number {
                page[..page::PAYLOAD].copy_from_slice(payload);
            } else if goes_on {
                self.pages.offer(other as u32, payload);
            }
        }
        Ok(())
    }

    /// Reads the last page of a packed table, which is not packed.
    fn read_last(&self, page: &mut [u8]) -> Result<()> {
        let last = self.last_page();
        disk::read_exact(&*self.disk, &self.file, self.name, page, last * page::BYTES as u64)?;
        page::check(page, self.name, last | page::LAST)
    }

    /// Fills `out` with the payloads of the pages in some chunks.
    fn read_chunks(&self, packing: &Packing, map: &Map, chunks: Range<u64>, out: &mut [u8]) -> Result<()> {
        let start = map.range(chunks.start)?.start;
        let mut stored = vec![0; (map.range(chunks.end - 1)?.end - start) as usize];
        disk::read_exact(&*self.disk, &self.file, self.name, &mut stored, start)?;
        for (chunk, out) in chunks.zip(out.chunks_mut(packing.chunk as usize * page::PAYLOAD)) {
            let range = map.range(chunk)?;
            let stored = &stored[(range.start - start) as usize..(range.end - start) as usize];
            map.unpack(packing, self.name, chunk, stored, out)?;
        }
        Ok(())
    }

    /// Whether it has tombstones or wrapped values.
    #[inline]
    pub(crate) fn has_kinds(&self) -> bool {
        self.has_kinds
    }

    /// Number of pages with values and keys. The others are read past the cache.
    fn cached_pages(&self) -> u64 {
        self.footer.keys.end().div_ceil(page::PAYLOAD as u64)
    }

    /// Number of pages that the cache may have, and about how many of them it has.
    pub(crate) fn pages_in_cache(&self) -> (u64, u64) {
        let pages = self.cached_pages();
        (pages, u64::from(self.pages.kept_of(pages as u32)))
    }

    /// Reads its values and keys into the cache, as far as others need not leave it. Calls `look` now and then.
    ///
    /// # Errors
    /// `Io`, `Corrupt`; what `look` returns.
    pub(crate) fn fill_cache(&self, look: impl Fn() -> Result<()>) -> Result<()> {
        let end = self.cached_pages();
        let mut pages = Vec::new();
        for first in (0..end).step_by(PIECE_PAGES as usize) {
            let count = PIECE_PAGES.min(end - first);
            if !self.pages.has_room(count as usize) {
                break;
            }
            look()?;
            self.read_pages(first, count, &mut pages)?;
            for (number, page) in (first..).zip(pages.chunks_exact(page::BYTES)) {
                self.pages.offer(number as u32, &page[..page::PAYLOAD]);
            }
        }
        Ok(())
    }

    /// Reads the bytes from a logical offset on, which are within the file.
    fn read(&self, from: u64, out: &mut [u8]) -> Result<()> {
        if out.len() > CACHED_PAGES_MAX * page::PAYLOAD {
            return self.read_past(from, out);
        }
        cache::copy(from, out, |number| self.page_noting(number, true, &mut 0))
    }

    /// The same, always from the disk, without keeping anything.
    fn read_past(&self, from: u64, mut out: &mut [u8]) -> Result<()> {
        let (mut number, mut at) = page::place(from);
        let mut pages = Vec::new();
        while !out.is_empty() {
            let wanted = (at + out.len()).div_ceil(page::PAYLOAD) as u64;
            self.read_pages(number, wanted.min(PIECE_PAGES), &mut pages)?;
            for page in pages.chunks_exact(page::BYTES) {
                let (now, later) = out.split_at_mut(out.len().min(page::PAYLOAD - at));
                now.copy_from_slice(&page[at..at + now.len()]);
                (out, at) = (later, 0);
                number += 1;
            }
        }
        Ok(())
    }

    /// Reads `count` pages from the disk and verifies their checksums, which stay in the result, or zeros if the table
    /// is packed.
    fn read_pages(&self, first: u64, count: u64, into: &mut Vec<u8>) -> Result<()> {
        into.resize(count as usize * page::BYTES, 0);
        if let Some(packing) = &self.footer.packing {
            return self.unpack_pages(packing, first, into);
        }
        disk::read_exact(&*self.disk, &self.file, self.name, into, first * page::BYTES as u64)?;
        for (number, page) in (first..).zip(into.chunks_exact(page::BYTES)) {
            page::check(page, self.name, self.sealed_as(number))?;
        }
        Ok(())
    }

    /// Reads pages of a packed table from the disk, as many as there is room for.
    fn unpack_pages(&self, packing: &Packing, first: u64, into: &mut [u8]) -> Result<()> {
        let end = first + (into.len() / page::BYTES) as u64;
        let packed_end = end.min(self.footer.pages - 1);
        if first < packed_end {
            let map = self.map(packing)?;
            let chunks = first / packing.chunk..packed_end.div_ceil(packing.chunk);
            let all = chunks.start * packing.chunk..(chunks.end * packing.chunk).min(self.footer.pages - 1);
            let mut payloads = vec![0; (all.end - all.start) as usize * page::PAYLOAD];
            self.read_chunks(packing, map, chunks, &mut payloads)?;
            let wanted = payloads.chunks_exact(page::PAYLOAD).skip((first - all.start) as usize);
            for (page, payload) in into.chunks_exact_mut(page::BYTES).zip(wanted) {
                page[..page::PAYLOAD].copy_from_slice(payload);
            }
        }
        if end == self.footer.pages {
            let last = into.len() - page::BYTES;
            self.read_last(&mut into[last..])?;
        }
        Ok(())
    }
}

impl Table {
    /// Reads a value that is in a log.
    #[cold]
    fn large<R>(&self, pointer: &Pointer, see: impl See<R>) -> Result<R> {
        match &self.values {
            Some(values) => values.see(pointer, see),
            None => Err(disk::damaged(self.name, 0, "a value is in a log, and only a store reads that")),
        }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({}, {} entries)", self.name, self.footer.entries)
    }
}
