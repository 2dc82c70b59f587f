//! [`TableCursor`]: a table's entries by their ordinals, and by their keys.

use super::ahead::Ahead;
use super::block::{self, Block, Kind, Layout};
use super::format::{BLOCK_KEYS, Footer};
use super::tags::tag;
use super::{CACHED_PAGES_MAX, Table, WALK_PAGES_MAX, block_of};
use crate::cache::PageRef;
use crate::disk;
use crate::page;
use crate::see::See;
use crate::wrapped::{self, InTable, Pointer};
use forrest_engine::{Error, ErrorKind, Result, Value};
use forrest_machine::prefetch;
use std::cmp::Ordering;
use std::iter::repeat_n;
use std::ops::{ControlFlow, Deref, Range};
use std::sync::Arc;

const NO_BLOCK: u32 = u32::MAX;
/// What a walk returns that `see` did not break.
const NONE: Result<ControlFlow<()>> = Ok(ControlFlow::Continue(()));
/// Pages of values that a walk through one table announces after the first.
const FIRST_AHEAD: u32 = 2;

/// Which part of a value is in a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    /// It goes on in the next page.
    First,
    /// It began in a page before.
    Later,
}

/// What is seen of a wrapped value.
enum Seen<R, F> {
    Gone,
    Here(R),
    Operands(F),
    /// It is yet to be read.
    Elsewhere(Pointer, F),
}

/// Who reads entries. A closure has the time, and applies no operands.
pub(crate) trait Reader {
    /// The time at which it reads, in milliseconds since 1970.
    fn now_ms(&self) -> u64;

    /// The value of a key whose newest entry in tables has operands of merges: they are applied to what older tables
    /// have.
    ///
    /// # Errors
    /// `Io`, `Corrupt`; those of the operator.
    #[cold]
    fn gathered(&self, _key: &[u8]) -> Result<Vec<u8>> {
        Err(Error::new(ErrorKind::Corrupt, "an entry has operands of merges, and only a store applies them"))
    }
}

impl<F: Fn() -> u64> Reader for F {
    fn now_ms(&self) -> u64 {
        self()
    }
}

/// One that cursors share.
pub(crate) type SharedReader = Arc<dyn Reader + Send + Sync>;

/// What a wrapped value has before its content, or in place of it.
struct Head {
    expires_ms: Option<u64>,
    pointer: Option<Pointer>,
}

impl Head {
    fn has_expired(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms)
    }
}

/// Reads a table. It keeps the last key block and the page of the last value, so that entries in order are
/// fetched once. `T` is `&Table`, or `Arc<Table>` for a cursor that owns what it needs.
///
/// A method that takes an ordinal fails with `Corrupt` if the table has no such entry, because the ordinal
/// came from a file.
pub(crate) struct TableCursor<T> {
    table: T,
    /// The number of the block that is kept, or `NO_BLOCK`.
    number: u32,
    layout: Option<Layout>,
    /// The page of the block, and the block's offset in it; or `assembled` has the block.
    page: Option<(PageRef, usize)>,
    /// The number of that page.
    page_number: u64,
    assembled: Vec<u8>,
    value_page: Option<(u64, PageRef)>,
    /// A value that straddles pages.
    value: Vec<u8>,
    /// The last key that [`TableCursor::key_at`] read.
    key: Vec<u8>,
    /// The block whose prefix is in that buffer, or `NO_BLOCK`.
    prefixed: u32,
    /// Whether it walks: the next bytes are prefetched before they are requested.
    walks: bool,
    /// Whether values are left out of what is announced.
    keys_only: bool,
    /// The last entry that [`TableCursor::key_at`] read, and the direction of that move.
    last: u32,
    forward: bool,
    /// What a walk has announced.
    keys_ahead: Ahead,
    values_ahead: Ahead,
    /// Number of pages that the cache did not have, as far as they were not taken.
    reads: u64,
}

/// A walk prefetches this many bytes ahead. The processor does so by itself, but only some lines after the
/// beginning of a walk; most scans are short.
const AHEAD: usize = 640;
const LINE: usize = 64;

/// Prefetches the next line of a walk, or all lines of that distance if the walk has just entered the page. It does not
/// look where the page ends: a prefetch of any address is harmless, and the check would cost more.
#[inline]
fn fetch_ahead(page: &[u8], at: usize, len: usize, forward: bool, is_new: bool) {
    let (here, end) = (page.as_ptr().wrapping_add(at), if is_new { 256 } else { AHEAD } + len.min(AHEAD));
    let mut step = if is_new { 0 } else { AHEAD };
    while step < end {
        prefetch::read(if forward { here.wrapping_add(step) } else { here.wrapping_sub(step) });
        step += LINE;
    }
}

/// Prefetches the line beside a key: keys are close together, so that has the next ones.
#[inline(always)]
fn fetch_beside(suffix: &[u8], forward: bool) {
    let ahead = if forward { LINE as isize } else { -(LINE as isize) };
    prefetch::read(suffix.as_ptr().wrapping_offset(ahead));
}

impl<T: Clone> Clone for TableCursor<T> {
    /// A new cursor for the same table, which has not read anything yet.
    fn clone(&self) -> TableCursor<T> {
        TableCursor::over(self.table.clone())
    }
}

impl<T> TableCursor<T> {
    fn over(table: T) -> TableCursor<T> {
        TableCursor::with(table, false, false, 0, Vec::new())
    }

    /// All at once: parts of it are not moved then.
    #[inline(always)]
    fn with(table: T, walks: bool, keys_only: bool, ahead: u32, key: Vec<u8>) -> TableCursor<T> {
        TableCursor {
            table,
            number: NO_BLOCK,
            layout: None,
            page: None,
            page_number: 0,
            assembled: Vec::new(),
            value_page: None,
            value: Vec::new(),
            key,
            prefixed: NO_BLOCK,
            walks,
            keys_only,
            last: 0,
            forward: true,
            keys_ahead: Ahead::new(0),
            values_ahead: Ahead::new(ahead),
            reads: 0,
        }
    }

    /// The block that is kept.
    #[inline]
    fn kept(&self) -> Option<Block<'_>> {
        kept(&self.layout, &self.page, &self.assembled)
    }
}

/// The block that a cursor keeps, from its fields.
#[inline]
fn kept<'b>(
    layout: &'b Option<Layout>,
    page: &'b Option<(PageRef, usize)>,
    assembled: &'b [u8],
) -> Option<Block<'b>> {
    let layout = layout.as_ref()?;
    let bytes = match page {
        Some((page, at)) => &page[*at..*at + layout.bytes],
        None => assembled,
    };
    Some(Block { layout, bytes })
}

impl<T: Deref<Target = Table>> TableCursor<T> {
    pub(crate) fn new(table: T) -> TableCursor<T> {
        TableCursor::over(table)
    }

    /// A cursor for reading entries in order, together with others that walk through other tables.
    pub(crate) fn walking(table: T) -> TableCursor<T> {
        TableCursor::of_walk(table, false, false, Vec::new())
    }

    /// The same for a part of a walk, which wants no values if `keys_only`. If it walks `alone`, the first values will
    /// be wanted soon. The buffer is for keys; its content does not matter.
    #[inline(always)]
    pub(crate) fn of_walk(table: T, alone: bool, keys_only: bool, buffer: Vec<u8>) -> TableCursor<T> {
        TableCursor::with(table, true, keys_only, if alone { FIRST_AHEAD } else { 0 }, buffer)
    }

    /// Takes the buffer of keys out of a cursor that is not used again.
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        self.prefixed = NO_BLOCK;
        std::mem::take(&mut self.key)
    }

    /// Number of pages that the cache did not have since the last call.
    pub(crate) fn take_reads(&mut self) -> u64 {
        std::mem::take(&mut self.reads)
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// The logical offset of a block.
    fn block_place(&self, number: u32) -> Result<u64> {
        Ok(self.table.footer.keys.offset + self.table.index()?.offset(number))
    }

    /// The error for content that does not fit in the kept block.
    #[cold]
    fn misfit(&self) -> Error {
        match self.block_place(self.number) {
            Ok(place) => self.table.damaged(place, "an entry extends beyond its key block"),
            Err(error) => error,
        }
    }

    #[cold]
    fn no_entry(&self, ordinal: u32) -> Error {
        let what = format!("entry {ordinal} does not exist; the table has {} entries", self.table.entries());
        disk::damaged(self.table.name, 0, what)
    }

    /// The block with an entry, and the entry's position in it.
    #[inline]
    fn block(&mut self, ordinal: u32) -> Result<(Block<'_>, usize)> {
        if ordinal >= self.table.footer.entries {
            return Err(self.no_entry(ordinal));
        }
        if self.number != ordinal / BLOCK_KEYS {
            self.load(ordinal / BLOCK_KEYS)?;
        }
        let block = self.kept().expect("it was loaded");
        Ok((block, (ordinal % BLOCK_KEYS) as usize))
    }

    /// Keeps another block. After an error none is kept.
    fn load(&mut self, number: u32) -> Result<()> {
        self.number = NO_BLOCK;
        self.layout = None;
        let footer = &self.table.footer;
        let place = self.block_place(number)?;
        let misfit = |what: &str| Err(self.table.damaged(place, what));
        let (page_number, at) = page::place(place);
        // Compared before the fields are taken: right after its creation, a cursor would wait for loads wider
        // than the stores.
        let is_kept = self.page.is_some() && self.page_number == page_number;
        let kept = if is_kept { self.page.take() } else { None };
        let page = match kept {
            Some((page, _)) => page,
            None => {
                self.page = None;
                if self.walks {
                    let pages = self.keys_ahead.enter(page_number, self.forward, false, &self.table.habit);
                    // The page itself is read right away.
                    if pages.end > pages.start + 1 {
                        self.table.announce_keys(pages);
                    }
                }
                self.table.page_noting(page_number, self.walks, &mut self.reads)?
            }
        };
        let Some(head) = page[at..].first_chunk() else {
            return misfit("the head of a key block straddles pages");
        };
        let length = block::length(head);
        if length as u64 > footer.keys.end().saturating_sub(place) {
            return misfit("a key block extends beyond the key section");
        }
        let expected = (footer.entries - number * BLOCK_KEYS).min(BLOCK_KEYS) as usize;
        let in_page = at + length <= page::PAYLOAD;
        let layout = if in_page {
            Layout::read(&page[at..at + length], footer.wrapped > 0)
        } else {
            self.assembled.resize(length, 0);
            self.table.read(place, &mut self.assembled)?;
            Layout::read(&self.assembled, self.table.has_wrapped())
        };
        match layout {
            Ok(layout) if layout.count == expected => self.layout = Some(layout),
            Ok(layout) => {
                return misfit(&format!("wrong number of keys: {}, expected {expected}", layout.count));
            }
            Err(what) => return misfit(what),
        }
        if in_page {
            self.page = Some((page, at));
            self.page_number = page_number;
        }
        self.number = number;
        Ok(())
    }

    /// Prefetches what reading an entry will touch, so that the waits overlap.
    #[inline]
    pub(crate) fn fetch(&self, ordinal: u32) {
        if ordinal < self.table.footer.entries {
            // A walking cursor is one of several that prefetch before the first of them is read.
            self.table.fetch(ordinal, self.walks, self.keys_only);
        }
    }

    /// Prefetches where the entry's block and value are looked up.
    #[inline]
    pub(crate) fn fetch_place(&self, ordinal: u32) {
        self.table.fetch_place(ordinal, self.keys_only);
    }

    /// Compares the entry's key with `key`.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    #[inline]
    pub(crate) fn compare(&mut self, ordinal: u32, key: &[u8]) -> Result<Ordering> {
        let (block, at) = self.block(ordinal)?;
        block.compare(at, key).ok_or_else(|| self.misfit())
    }

    /// Appends the entry's key.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    #[inline]
    pub(crate) fn key_into(&mut self, ordinal: u32, out: &mut Vec<u8>) -> Result<()> {
        let (prefix, suffix) = self.key(ordinal)?;
        out.extend_from_slice(prefix);
        out.extend_from_slice(suffix);
        Ok(())
    }

    /// The entry's key, in two pieces as it is stored.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    #[inline]
    pub(crate) fn key(&mut self, ordinal: u32) -> Result<(&[u8], &[u8])> {
        let at = self.block(ordinal)?.1;
        // Looked up again: a borrow that is returned on one path would last on the other path too.
        match self.kept().and_then(|block| block.key(at)) {
            Some(key) => Ok(key),
            None => Err(self.misfit()),
        }
    }

    /// The entry's key, in a buffer of the cursor. Keys of one block share the buffer, so only the part after
    /// the common prefix is copied.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    #[inline]
    pub(crate) fn key_at(&mut self, ordinal: u32) -> Result<()> {
        let number = block_of(ordinal);
        if number == self.prefixed
            && number == self.number
            && let TableCursor { layout: Some(layout), page: Some((page, start)), key, .. } = self
            && let Some(within) = layout.suffix_of_one_size(ordinal % BLOCK_KEYS)
            && let Some(prefix) = key.len().checked_sub(within.len())
            && let Some(suffix) = page.get(*start + within.start..*start + within.end)
        {
            // The usual step: only a suffix differs.
            copy_short(&mut key[prefix..], suffix);
            self.forward = ordinal >= self.last;
            self.last = ordinal;
            if self.walks {
                fetch_beside(suffix, self.forward);
            }
            return Ok(());
        }
        self.other_key_at(ordinal)
    }

    /// The same for any block.
    #[inline(never)]
    fn other_key_at(&mut self, ordinal: u32) -> Result<()> {
        let at = self.block(ordinal)?.1;
        self.forward = ordinal >= self.last;
        self.last = ordinal;
        let TableCursor { layout, page, assembled, key, number, prefixed, walks, forward, .. } = self;
        let fits = kept(layout, page, assembled).and_then(|block| {
            let (prefix, suffix) = block.key(at)?;
            let has_prefix = *prefixed == *number && key.len() >= prefix.len();
            if has_prefix && key.len() == prefix.len() + suffix.len() {
                copy_short(&mut key[prefix.len()..], suffix);
            } else {
                if has_prefix {
                    key.truncate(prefix.len());
                } else {
                    key.clear();
                    key.reserve(prefix.len() + suffix.len());
                    key.extend_from_slice(prefix);
                    *prefixed = *number;
                }
                key.extend_from_slice(suffix);
            }
            if *walks {
                fetch_beside(suffix, *forward);
            }
            Some(())
        });
        fits.ok_or_else(|| self.misfit())
    }

    /// Passes the pairs of the entries from `at` up to `end` to `see`, until it breaks, or until the next one is not
    /// plain, or its block or the page of its value is not kept. `at` is then the one that was passed last, after a
    /// break or an error, or else the next one.
    ///
    /// All that the pairs share is looked up once, so a pair costs little more than the copy of its key.
    #[inline(always)]
    pub(crate) fn walk_kept(
        &mut self,
        at: &mut u32,
        end: u32,
        mut see: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let number = block_of(*at);
        if number != self.prefixed || number != self.number {
            return NONE;
        }
        let TableCursor { table, layout, page, assembled, value_page, key, .. } = self;
        let Some(block) = kept(layout, page, assembled) else { return NONE };
        let (Some(all), Some((value_number, values))) =
            (block.layout.of_one_size(*at % BLOCK_KEYS), value_page)
        else {
            return self.walk_others(at, end, see);
        };
        let (number, value_at) = page::place(all.value);
        // A value that ends where the plain ones do is looked up by itself.
        let plain = table.plain_end.saturating_sub(1).saturating_sub(all.value);
        let values_end = value_at + plain.min((page::PAYLOAD - value_at) as u64) as usize;
        let (suffixes, to) = (block.bytes.get(all.suffix..), key.len().checked_sub(all.suffix_bytes));
        let (Some(mut suffixes), Some(to)) = (suffixes, to) else { return NONE };
        if number != *value_number {
            return NONE;
        }
        let (key, mut values) = (&mut key[..], &values[value_at..values_end]);
        let last = end.min(at.saturating_add(all.left as u32));
        let mut next = *at;
        // No division: the pairs are too few for it.
        while next < last
            && let Some((suffix, later)) = suffixes.split_at_checked(all.suffix_bytes)
            && let Some((value, behind)) = values.split_at_checked(all.value_bytes)
        {
            (suffixes, values) = (later, behind);
            copy_short(&mut key[to..], suffix);
            fetch_beside(suffix, true);
            fetch_ahead(value, 0, value.len(), true, false);
            (*at, next) = (next, next + 1);
            if see(key, value)?.is_break() {
                self.last = *at;
                return Ok(ControlFlow::Break(()));
            }
        }
        (*at, self.last, self.forward) = (next, next.saturating_sub(1), true);
        NONE
    }

    /// The same where keys or values differ in size, or where only keys are wanted: then values are empty. REQUIRES:
    /// the entry's block is kept, and its prefix is in the buffer.
    #[inline(never)]
    fn walk_others(
        &mut self,
        at: &mut u32,
        end: u32,
        mut see: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let TableCursor { table, layout, page, assembled, value_page, key, keys_only, .. } = self;
        let Some(block) = kept(layout, page, assembled) else { return NONE };
        let (number, values) = match value_page {
            _ if *keys_only => (0, &[][..]),
            Some((number, page)) => (*number, &page[..]),
            None => return NONE,
        };
        // Where a value is in the page, if it is.
        let within = |place: Range<u64>| {
            let from = usize::try_from(place.start.checked_sub(number * page::PAYLOAD as u64)?).ok()?;
            let to = from.checked_add(usize::try_from(place.end - place.start).ok()?)?;
            (to <= values.len() && place.end < table.plain_end).then_some(from..to)
        };
        let mut next = *at;
        for (suffix, value) in block.pairs(*at % BLOCK_KEYS) {
            let within = if *keys_only { Some(0..0) } else { within(value) };
            let (Some(within), true) = (within, next < end) else { break };
            key.truncate(block.prefix_len());
            key.extend_from_slice(suffix);
            fetch_beside(suffix, true);
            if !*keys_only {
                fetch_ahead(values, within.start, within.len(), true, false);
            }
            (*at, next) = (next, next + 1);
            if see(key, &values[within])?.is_break() {
                self.last = *at;
                return Ok(ControlFlow::Break(()));
            }
        }
        if next > *at {
            (*at, self.last, self.forward) = (next, next - 1, true);
        }
        NONE
    }

    /// Whether all keys in the block of the entry that [`TableCursor::key_at`] read last are less than a key, or
    /// greater if not `less`. It looks at the index only, and may not know.
    #[inline]
    pub(crate) fn are_beside(&self, key: &[u8], less: bool) -> bool {
        let block = self.last / BLOCK_KEYS;
        self.table.index.get().is_some_and(|index| index.are_beside(block, key, &self.key, less))
    }

    /// The last key that [`TableCursor::key_at`] read.
    #[inline]
    pub(crate) fn kept_key(&self) -> &[u8] {
        &self.key
    }

    /// Passes that key to `see`, together with the cursor.
    #[inline]
    pub(crate) fn with_kept_key<R>(&mut self, see: impl FnOnce(&[u8], &mut Self) -> R) -> R {
        let key = std::mem::take(&mut self.key);
        let result = see(&key, self);
        self.key = key;
        result
    }

    /// Whether the entry has a value.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    #[inline]
    pub(crate) fn kind(&mut self, ordinal: u32) -> Result<Kind> {
        let (block, at) = self.block(ordinal)?;
        Ok(block.kind(at))
    }

    /// Whether the entry is a tombstone. Most tables have none, and then nothing is read.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    #[inline]
    pub(crate) fn is_deleted(&mut self, ordinal: u32) -> Result<bool> {
        Ok(self.table.tombstones() > 0 && self.kind(ordinal)? == Kind::Tombstone)
    }

    /// Whether the entry has no value at a time. Most tables have only plain values, and then nothing is read.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    #[inline]
    pub(crate) fn is_gone(&mut self, ordinal: u32, now_ms: u64) -> Result<bool> {
        if self.table.has_kinds { self.is_gone_by_kind(ordinal, now_ms) } else { Ok(false) }
    }

    #[inline(never)]
    fn is_gone_by_kind(&mut self, ordinal: u32, now_ms: u64) -> Result<bool> {
        Ok(match self.kind(ordinal)? {
            Kind::Value => false,
            Kind::Tombstone => true,
            // If nothing expires, values are wrapped because they are in logs, or have operands.
            Kind::Wrapped
                if !self.table.may_expire()
                    && (self.table.large_bytes() > 0 || self.table.has_operands()) =>
            {
                false
            }
            Kind::Wrapped => self.stored(ordinal)?.has_expired(now_ms),
        })
    }

    /// The extent of the entry's value in the logical bytes.
    #[inline]
    fn value_place(&mut self, ordinal: u32) -> Result<Range<u64>> {
        let values = self.table.footer.values;
        let (block, at) = self.block(ordinal)?;
        match block.value(at) {
            Some(place) if place.end <= values => Ok(place),
            _ => Err(self.misfit()),
        }
    }

    /// Requests the pages of the entry's value. A hint: errors are those of the read.
    pub(crate) fn fetch_value(&mut self, ordinal: u32) {
        if let Ok(place) = self.value_place(ordinal)
            && !place.is_empty()
        {
            let first = page::place(place.start).0;
            let end = page::place(place.end - 1).0 + 1;
            self.table.announce_values(first..end.min(first + WALK_PAGES_MAX));
        }
    }

    /// Prefetches the values of an entry and of those after it, if the cache has them and a walk wants them.
    #[inline]
    pub(crate) fn fetch_values(&self, ordinal: u32) {
        if !self.keys_only {
            self.table.fetch_values(ordinal);
        }
    }

    /// Bytes of the file for the entries from one ordinal up to another: their share of the bytes of all.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub(crate) fn bytes_between(&mut self, from: u32, to: u32) -> Result<u64> {
        let (from, to) = (self.bytes_before(from)?, self.bytes_before(to)?);
        let all = (self.table.footer.values + self.table.footer.keys.bytes).max(1);
        let bytes = self.table.file_bytes() + self.table.large_bytes();
        let part = u128::from(to.saturating_sub(from)) * u128::from(bytes);
        Ok((part / u128::from(all)) as u64)
    }

    /// Bytes of keys and values of the entries before this one, about: keys of a block count as equally long.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    fn bytes_before(&mut self, ordinal: u32) -> Result<u64> {
        let Footer { entries, blocks, keys, values, .. } = self.table.footer;
        if ordinal == 0 {
            return Ok(0);
        }
        if ordinal >= entries {
            return Ok(values + keys.bytes);
        }
        let value = match self.table.value_bytes_each {
            Some(each) => each * u64::from(ordinal),
            None => self.value_place(ordinal)?.start,
        };
        let (index, number) = (self.table.index()?, ordinal / BLOCK_KEYS);
        let place = index.offset(number);
        let end = if number + 1 < blocks { index.offset(number + 1) } else { keys.bytes };
        let in_block = u64::from((entries - number * BLOCK_KEYS).min(BLOCK_KEYS));
        Ok(value + place + end.saturating_sub(place) * u64::from(ordinal % BLOCK_KEYS) / in_block)
    }

    /// The length of the entry's value in bytes; 0 for a tombstone.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    #[cfg_attr(not(test), expect(dead_code, reason = "for tests"))]
    pub(crate) fn value_len(&mut self, ordinal: u32) -> Result<u64> {
        self.value_place(ordinal).map(|place| place.end - place.start)
    }

    /// The bytes of an extent, if they are in the page of the last value.
    #[inline(always)]
    fn kept_value(&self, place: &Range<u64>) -> Option<&[u8]> {
        let (number, page) = self.value_page.as_ref()?;
        // Far beyond the page if it begins before that.
        let at = usize::try_from(place.start.wrapping_sub(number * page::PAYLOAD as u64)).ok()?;
        let end = at.checked_add(usize::try_from(place.end - place.start).ok()?)?;
        let bytes = page.get(at..end)?;
        if self.walks {
            fetch_ahead(page, at, bytes.len(), self.forward, false);
        }
        Some(bytes)
    }

    /// The bytes of an extent within one page.
    #[inline]
    fn value_in_page(&mut self, place: &Range<u64>, part: Part) -> Result<&[u8]> {
        if place.is_empty() {
            return Ok(&[]);
        }
        let (number, at) = page::place(place.start);
        let is_new = self.value_page.as_ref().is_none_or(|(kept, _)| *kept != number);
        if is_new {
            if self.walks {
                let goes_on = part == Part::Later;
                let pages = self.values_ahead.enter(number, self.forward, goes_on, &self.table.habit);
                if pages.end > pages.start + 1 {
                    self.table.announce_values(pages);
                }
            }
            let goes_on = self.walks || part != Part::Whole;
            let page = self.table.page_noting(number, goes_on, &mut self.reads)?;
            self.value_page = Some((number, page));
        }
        let (_, page) = self.value_page.as_ref().expect("it was just read");
        let len = (place.end - place.start) as usize;
        if self.walks {
            fetch_ahead(page, at, len, self.forward, is_new);
        }
        Ok(&page[at..at + len])
    }

    /// Reads the bytes of an extent, page by page, and keeps the last page, in which the next value begins.
    fn value_over_pages(&mut self, mut place: Range<u64>, mut out: &mut [u8]) -> Result<()> {
        if out.len() > CACHED_PAGES_MAX * page::PAYLOAD {
            return self.table.read_past(place.start, out);
        }
        self.table.announce_values(page::place(place.start).0..page::place(place.end - 1).0 + 1);
        let first = place.start;
        while !out.is_empty() {
            let room = page::PAYLOAD - page::place(place.start).1;
            let (now, later) = out.split_at_mut(out.len().min(room));
            let end = place.start + now.len() as u64;
            let part = if place.start > first { Part::Later } else { Part::First };
            now.copy_from_slice(self.value_in_page(&(place.start..end), part)?);
            place.start = end;
            out = later;
        }
        Ok(())
    }

    /// Appends the entry's value; nothing for a tombstone. After an error `out` is unchanged.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    #[inline]
    pub(crate) fn value_into(&mut self, ordinal: u32, out: &mut Vec<u8>) -> Result<()> {
        let place = self.value_place(ordinal)?;
        if in_one_page(&place) {
            out.extend_from_slice(self.value_in_page(&place, Part::Whole)?);
            return Ok(());
        }
        let start = out.len();
        out.resize(start + (place.end - place.start) as usize, 0);
        let done = self.value_over_pages(place, &mut out[start..]);
        if done.is_err() {
            out.truncate(start);
        }
        done
    }

    /// The entry's value; empty for a tombstone.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    #[cfg_attr(not(test), expect(dead_code, reason = "for tests"))]
    #[inline]
    pub(crate) fn value(&mut self, ordinal: u32) -> Result<Value> {
        let place = self.value_place(ordinal)?;
        if in_one_page(&place) {
            return self.value_in_page(&place, Part::Whole).map(Value::from);
        }
        let mut shared: Arc<[u8]> = repeat_n(0, (place.end - place.start) as usize).collect();
        self.value_over_pages(place, Arc::get_mut(&mut shared).expect("nobody else has it yet"))?;
        Ok(Value::from(shared))
    }

    /// Passes the entry's value to `see`, in place if it is within one page; empty for a tombstone. The header of a
    /// wrapped value is left out; `None` if it has expired at the time of the reader, who applies operands.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    #[inline]
    pub(crate) fn seen<R>(
        &mut self,
        ordinal: u32,
        reader: impl Reader,
        see: impl See<R>,
    ) -> Result<Option<R>> {
        match self.plain_place(ordinal)? {
            Some(place) => self.bytes_with(place, |bytes| see.here(bytes)).map(Some),
            None => self.seen_by_kind(ordinal, &reader, see),
        }
    }

    /// The extent of a value without a header; `None` if it is beyond the values, or the table has wrapped ones.
    #[inline(always)]
    fn plain_place(&mut self, ordinal: u32) -> Result<Option<Range<u64>>> {
        let end = self.table.plain_end;
        // After a step to the entry its block is kept, and in most blocks all values are of one size.
        let of_one_size = match &self.layout {
            Some(layout) if self.number == block_of(ordinal) => {
                layout.value_of_one_size(ordinal % BLOCK_KEYS)
            }
            _ => None,
        };
        let place = match of_one_size {
            Some(place) => Some(place),
            None => {
                let (block, at) = self.block(ordinal)?;
                block.value(at)
            }
        };
        Ok(place.filter(|place| place.end < end))
    }

    #[cold]
    #[inline(never)]
    fn seen_by_kind<R, S: See<R>>(
        &mut self,
        ordinal: u32,
        reader: &(impl Reader + ?Sized),
        see: S,
    ) -> Result<Option<R>> {
        let (kind, place) = (self.kind(ordinal)?, self.value_place(ordinal)?);
        if kind != Kind::Wrapped {
            return self.bytes_with(place, |bytes| see.here(bytes)).map(Some);
        }
        let offset = place.start;
        let seen = self.bytes_with(place, |bytes| {
            let stored = InTable::read(bytes)?;
            if stored.has_expired(reader.now_ms()) {
                return Some(Seen::Gone);
            }
            Some(match stored {
                InTable::Here(wrapped) => Seen::Here(see.here(wrapped.content)),
                InTable::Operands => Seen::Operands(see),
                InTable::Elsewhere { pointer, .. } => Seen::Elsewhere(pointer, see),
            })
        })?;
        match seen.ok_or_else(|| self.table.damaged(offset, wrapped::FLAW))? {
            Seen::Gone => Ok(None),
            Seen::Here(seen) => Ok(Some(seen)),
            // They make a value, whatever that is.
            Seen::Operands(see) if !S::READS => Ok(Some(see.here(&[]))),
            Seen::Operands(see) => {
                let mut key = Vec::new();
                self.key_into(ordinal, &mut key)?;
                Ok(Some(see.here(&reader.gathered(&key)?)))
            }
            Seen::Elsewhere(pointer, see) => self.table.large(&pointer, see).map(Some),
        }
    }

    /// The header of a wrapped value, with where the content is if that is in a log. REQUIRES: the entry is one.
    fn stored(&mut self, ordinal: u32) -> Result<Head> {
        let place = self.value_place(ordinal)?;
        let offset = place.start;
        let read = self.bytes_with(place, |bytes| {
            let stored = InTable::read(bytes)?;
            let pointer = match stored {
                InTable::Here(_) | InTable::Operands => None,
                InTable::Elsewhere { pointer, .. } => Some(pointer),
            };
            Some(Head { expires_ms: stored.expires_ms(), pointer })
        })?;
        read.ok_or_else(|| self.table.damaged(offset, wrapped::FLAW))
    }

    /// Where the content of the entry is, and when it expires; `None` if it is not in a log.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub(crate) fn pointer(&mut self, ordinal: u32) -> Result<Option<(Pointer, Option<u64>)>> {
        if self.table.large_bytes() == 0 || self.kind(ordinal)? != Kind::Wrapped {
            return Ok(None);
        }
        let Head { expires_ms, pointer } = self.stored(ordinal)?;
        Ok(pointer.map(|pointer| (pointer, expires_ms)))
    }

    /// Bytes of the entry's value in a log, as an average of the table, so that no value is read for it; 0 if it has no
    /// value there.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub(crate) fn large_bytes_about(&mut self, ordinal: u32) -> Result<u64> {
        if self.table.large_bytes() == 0 || self.kind(ordinal)? != Kind::Wrapped {
            return Ok(0);
        }
        Ok(self.table.large_bytes() / u64::from(self.table.footer.wrapped).max(1))
    }

    /// Replaces `out` by the content of a wrapped value, and returns when that expires. REQUIRES: the entry is one.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub(crate) fn content_into(&mut self, ordinal: u32, out: &mut Vec<u8>) -> Result<Option<u64>> {
        let expires_ms = self.stored(ordinal)?.expires_ms;
        out.clear();
        self.value_with(ordinal, |content| out.extend_from_slice(content))?;
        Ok(expires_ms)
    }

    /// The same for a value that has not expired at the time at which the caller reads.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    #[inline]
    pub(crate) fn value_with<R>(&mut self, ordinal: u32, see: impl FnOnce(&[u8]) -> R) -> Result<R> {
        self.value_seen(ordinal, &None, see)
    }

    /// The same, for any way to see it. Operands are applied by the reader, if there is one.
    #[inline]
    pub(crate) fn value_seen<R>(
        &mut self,
        ordinal: u32,
        reader: &Option<SharedReader>,
        see: impl See<R>,
    ) -> Result<R> {
        let seen = match self.plain_place(ordinal)? {
            // Here and not in `bytes_with`: a walk keeps the page, and other reads would pay for the look.
            Some(place) => match self.kept_value(&place) {
                Some(bytes) => return Ok(see.here(bytes)),
                None => self.bytes_with(place, |bytes| see.here(bytes)).map(Some),
            },
            None => self.walked_by_kind(ordinal, reader, see),
        };
        Ok(seen?.expect("nothing expires at the beginning of time"))
    }

    #[cold]
    #[inline(never)]
    fn walked_by_kind<R>(
        &mut self,
        ordinal: u32,
        reader: &Option<SharedReader>,
        see: impl See<R>,
    ) -> Result<Option<R>> {
        match reader {
            Some(reader) => self.seen_by_kind(ordinal, &**reader, see),
            None => self.seen_by_kind(ordinal, &|| 0, see),
        }
    }

    /// The bytes of an entry that has operands; `None` if it has none.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    #[cold]
    pub(crate) fn operands(&mut self, ordinal: u32) -> Result<Option<Vec<u8>>> {
        if !self.table.has_wrapped() || self.kind(ordinal)? != Kind::Wrapped {
            return Ok(None);
        }
        let place = self.value_place(ordinal)?;
        let offset = place.start;
        let found = self.bytes_with(place, |bytes| match wrapped::has_operands(bytes) {
            false => Some(None),
            true => wrapped::operands(bytes).map(|_| Some(bytes.to_vec())),
        })?;
        found.ok_or_else(|| self.table.damaged(offset, wrapped::FLAW))
    }

    /// When the entry's value expires, if it does; in milliseconds since 1970.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub(crate) fn expires_ms(&mut self, ordinal: u32) -> Result<Option<u64>> {
        if !self.table.has_wrapped() || self.kind(ordinal)? != Kind::Wrapped {
            return Ok(None);
        }
        Ok(self.stored(ordinal)?.expires_ms)
    }

    /// Passes the bytes of an extent of the values to `see`.
    #[inline]
    fn bytes_with<R>(&mut self, place: Range<u64>, see: impl FnOnce(&[u8]) -> R) -> Result<R> {
        if in_one_page(&place) {
            return self.value_in_page(&place, Part::Whole).map(see);
        }
        let mut bytes = std::mem::take(&mut self.value);
        bytes.resize((place.end - place.start) as usize, 0);
        self.value_over_pages(place, &mut bytes)?;
        let result = see(&bytes);
        if bytes.len() <= page::BYTES {
            self.value = bytes;
        }
        Ok(result)
    }

    /// The position of a key, present or not: the ordinal, and whether it is there.
    #[inline]
    fn search(&mut self, key: &[u8]) -> Result<(u32, bool)> {
        if self.table.footer.entries == 0 {
            return Ok((0, false));
        }
        let number = self.table.index()?.find(key);
        let first = number * BLOCK_KEYS;
        if self.number != number {
            // A search reads all of it; while its page is being pinned, none of it is prefetched yet.
            let is_kept = self.table.fetch_block(number);
            match self.walks && !self.keys_only {
                true if is_kept => self.table.fetch_value_slot(first),
                true => self.table.announce_block_values(number),
                false => {}
            }
        }
        let (block, _) = self.block(first)?;
        // After a block's last key comes the first key of the next block, which is greater than `key` by its
        // separator.
        let (at, equal) = block.search(key).ok_or_else(|| self.misfit())?;
        Ok((first + at as u32, equal))
    }

    /// The ordinal of the first key that is not less than this one; `entries()` if there is none.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    #[inline]
    pub(crate) fn lower_bound(&mut self, key: &[u8]) -> Result<u32> {
        self.search(key).map(|(ordinal, _)| ordinal)
    }

    /// The ordinal of a key, if the table has it.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    #[inline]
    pub(crate) fn find(&mut self, key: &[u8]) -> Result<Option<u32>> {
        if self.table.footer.entries > 0 && self.table.tags()?.is_some() {
            let number = self.table.index()?.find(key);
            return self.find_tagged(number, key);
        }
        self.search(key).map(|(ordinal, equal)| equal.then_some(ordinal))
    }

    /// The same for a key whose block is known. REQUIRES: the tags are loaded.
    #[inline]
    pub(crate) fn find_tagged(&mut self, number: u32, key: &[u8]) -> Result<Option<u32>> {
        let tags = self.table.tags.get().expect("they are loaded");
        let mut matches = tags.matches(number, tag(key));
        while matches != 0 {
            let ordinal = number * BLOCK_KEYS + matches.trailing_zeros();
            if ordinal >= self.table.footer.entries {
                break;
            }
            self.fetch(ordinal);
            if self.compare(ordinal, key)? == Ordering::Equal {
                return Ok(Some(ordinal));
            }
            matches &= matches - 1;
        }
        Ok(None)
    }
}

/// Copies bytes into as many; 4 to 16 without a call, which is the length of most keys after the common prefix.
#[inline(always)]
fn copy_short(to: &mut [u8], from: &[u8]) {
    match from.len() {
        8..=16 => copy_ends::<8>(to, from),
        4..8 => copy_ends::<4>(to, from),
        _ => to.copy_from_slice(from),
    }
}

/// Copies the first and the last `N` bytes, which may overlap.
#[inline(always)]
fn copy_ends<const N: usize>(to: &mut [u8], from: &[u8]) {
    to[..N].copy_from_slice(&from[..N]);
    to[from.len() - N..].copy_from_slice(&from[from.len() - N..]);
}

/// Whether an extent is empty or within one page.
#[inline]
fn in_one_page(place: &Range<u64>) -> bool {
    page::place(place.start).1 as u64 + (place.end - place.start) <= page::PAYLOAD as u64
}
