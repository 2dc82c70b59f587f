//! Leaves: up to 128 records built at once, and up to 14 appended after.
//!
//! ```text
//! 0    head         Head, one line
//! 64   tags         n bytes: the top byte of each record's hash
//!      offsets      free form only, n x u16: where each record is, in units of four bytes
//!      prefix       what all keys have in common
//!      records      the built ones, in the order of their keys; never change
//!      appended     free form only, 14 x u16: where each appended record is
//!                   then the appended records; each is written once, then published by the order word
//! ```
//!
//! A record is the key without the prefix, a cell byte, and the value. In the **fixed** form (all keys of one length,
//! values of similar length) records have one size, and a multiplication gives a record's place. In the **free** form
//! records begin with their lengths, and a table has the place of each.
//!
//! A lookup guesses the place of a key's record from the separators around the leaf ([`Share`]), before any line of the
//! leaf has arrived. So it fetches head, tags and most likely the record together, in one trip to memory. The tags then
//! select the record; if several records have the key's tag, the search tries those near the guess first.
//!
//! The order word lists the appended records in key order and is the only thing that publishes them, see
//! [`crate::order`].
//! An appended record hides a built one with the same key; a tombstone hides it for good.
//!
//! Source of ideas: order words, Masstree (Mao, Kohler, Morris, EuroSys'12); fingerprints, FP-tree
//! (Oukid et al., SIGMOD'16); small appended areas folded in now and then, Bw-tree (Levandoski et al., ICDE'13).

pub(crate) mod build;
pub(crate) mod found;
pub(crate) mod runs;
pub(crate) mod walk;

use crate::key::{self, Key};
use crate::latch::Locked;
use crate::node::{Common, Node, Share, Slot, UNIT};
use crate::order::{LISTED_MAX, Order, OrderWord};
use crate::simd::{self, Isa, TAGS_AT_ONCE};
use crate::staged::{Stage, Staged};
use forrest_machine::prefetch;
use std::cmp::Ordering::{Equal, Greater, Less};
use std::hint::select_unpredictable;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU64, Ordering};

/// Most records built into a leaf.
pub(crate) const BUILT_MAX: usize = 2 * TAGS_AT_ONCE;
/// Most records appended to a leaf.
pub(crate) const APPENDED_MAX: usize = LISTED_MAX;
/// Longest value inside a record, in bytes; longer ones are shared allocations.
pub(crate) const INLINE_MAX: usize = 239;

const HEAD_BYTES: usize = 64;
/// Bytes from the start that never change, so that a whole array of tags can be read in any leaf.
const FIRM_BYTES: usize = HEAD_BYTES + BUILT_MAX;
/// A key's record stands this many records before its guessed place, or later, nearly always.
const GUESS_SLACK: usize = 8;
/// And this many about it, before and after, even more so.
const GUESS_WINDOW: usize = 12;
/// Length fields of a record in the free form: key, cell.
const FREE_RECORD_HEAD: usize = 3;
const APPENDED_OFFSETS_BYTES: usize = 2 * APPENDED_MAX;

/// Cell bytes. All below are lengths of inline values.
const CELL_STAMPED: u8 = 253;
const CELL_BLOB: u8 = 254;
const CELL_TOMBSTONE: u8 = 255;
const _: () = assert!(INLINE_MAX < CELL_STAMPED as usize);
const BLOB_BYTES: usize = 16;
const STAMPED_BYTES: usize = BLOB_BYTES + 8;

const HAS_BLOBS: u8 = 1;

#[repr(C)]
struct Head {
    /// `small`: built records, 1 for the fixed form, appended records that fit.
    common: Common,
    order: OrderWord,
    appended_tags: [AtomicU64; 2],
    prefix_word: u64,
    prefix_len: u16,
    /// Bytes of a key after the prefix (fixed form).
    suffix_len: u16,
    /// Bytes of a record (fixed form).
    stride: u16,
    /// Offsets in units: the built records, the appended part, the end of the last appended record.
    records: u16,
    appended: u16,
    end: AtomicU16,
    lines: u16,
    flags: AtomicU8,
    _rest: u8,
}
#[cfg(not(feature = "loom"))]
const _: () = assert!(size_of::<Head>() == HEAD_BYTES);

/// A value in a record.
#[derive(Clone, Copy)]
pub(crate) enum Cell<'g> {
    Inline(&'g [u8]),
    Blob(Blob),
    /// A value with a stamp, of any length.
    Stamped(Stamped<'g>),
    Tombstone,
}

/// A shared allocation that a record owns one count of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blob(*const [u8]);

// SAFETY: a blob is a reference-counted slice of bytes (`Arc<[u8]>`), which is Send and Sync.
unsafe impl Send for Blob {}

impl Blob {
    pub(crate) fn new(shared: Arc<[u8]>) -> Blob {
        Blob(Arc::into_raw(shared))
    }

    /// The blob that has these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Blob {
        // The allocation was made with its provenance exposed, see `write`.
        let address = std::ptr::with_exposed_provenance::<u8>(bytes.as_ptr().addr());
        Blob(std::ptr::slice_from_raw_parts(address, bytes.len()))
    }

    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    /// Writes the pointer.
    ///
    /// # Safety
    /// `BLOB_BYTES` at `to` are the caller's to write.
    unsafe fn write(self, to: *mut u8) {
        let address = self.0.cast::<u8>().expose_provenance() as u64;
        // SAFETY: `BLOB_BYTES` bytes at `to` are writable, as this function requires.
        unsafe { to.cast::<[u64; 2]>().write_unaligned([address, self.0.len() as u64]) };
    }

    /// Reads what `write` wrote.
    ///
    /// # Safety
    /// It stands at `from`.
    unsafe fn read(from: *const u8) -> Blob {
        // SAFETY: `write` wrote `BLOB_BYTES` bytes at `from`, as this function requires.
        let [address, len] = unsafe { from.cast::<[u64; 2]>().read_unaligned() };
        let address = std::ptr::with_exposed_provenance::<u8>(address as usize);
        Blob(std::ptr::slice_from_raw_parts(address, len as usize))
    }

    /// The bytes.
    ///
    /// # Safety
    /// The record that owns the blob is reachable during 'g (by a pin), so its count is held.
    #[inline]
    unsafe fn bytes<'g>(self) -> &'g [u8] {
        // SAFETY: a reachable record holds a count during 'g, as this function requires, so the allocation lives.
        unsafe { &*self.0 }
    }

    /// One more count.
    ///
    /// # Safety
    /// A count is held for the duration of the call.
    pub(crate) unsafe fn share(self) -> Arc<[u8]> {
        // SAFETY: the pointer came from `Arc::into_raw`, and a count is held.
        unsafe {
            Arc::increment_strong_count(self.0);
            Arc::from_raw(self.0)
        }
    }

    /// Gives up one count.
    ///
    /// # Safety
    /// The caller owns that count.
    pub(crate) unsafe fn drop(self) {
        // SAFETY: the pointer came from `Arc::into_raw`, and the caller owns this count, as this function requires.
        drop(unsafe { Arc::from_raw(self.0) });
    }
}

/// A value with a stamp, as it stands in a record, or before it does in the room of a writer.
pub(crate) type StampedBytes = [u8; STAMPED_BYTES];

/// What [`Blob::write`] writes, and the stamp.
#[derive(Clone, Copy)]
pub(crate) struct Stamped<'g>(&'g StampedBytes);

impl<'g> Stamped<'g> {
    /// Stands for the absence of a stamp. It has no blob.
    pub(crate) const NONE: Stamped<'static> = Stamped(&[0; STAMPED_BYTES]);

    pub(crate) fn new(blob: Blob, stamp: u64, room: &'g mut StampedBytes) -> Stamped<'g> {
        // SAFETY: the room has a blob's bytes, and the stamp's.
        unsafe { blob.write(room.as_mut_ptr()) };
        room[BLOB_BYTES..].copy_from_slice(&stamp.to_ne_bytes());
        Stamped(room)
    }

    fn blob(self) -> Blob {
        // SAFETY: `new` wrote one. `NONE` is in no cell.
        unsafe { Blob::read(self.0.as_ptr()) }
    }

    #[inline(always)]
    pub(crate) fn stamp(self) -> u64 {
        let (_, stamp) = self.0.split_last_chunk().expect("they are longer");
        u64::from_ne_bytes(*stamp)
    }
}

impl<'g> Cell<'g> {
    /// The value's bytes; `None` for a tombstone.
    #[inline(always)]
    pub(crate) fn bytes(self) -> Option<&'g [u8]> {
        match self {
            Cell::Inline(bytes) => Some(bytes),
            // SAFETY: cells of lifetime 'g are read from nodes that are reachable during 'g.
            Cell::Blob(blob) => Some(unsafe { blob.bytes() }),
            // SAFETY: as above.
            Cell::Stamped(stamped) => Some(unsafe { stamped.blob().bytes() }),
            Cell::Tombstone => None,
        }
    }

    /// The value's length; `None` for a tombstone.
    pub(crate) fn len(self) -> Option<usize> {
        match self {
            Cell::Inline(bytes) => Some(bytes.len()),
            Cell::Blob(blob) => Some(blob.len()),
            Cell::Stamped(stamped) => Some(stamped.blob().len()),
            Cell::Tombstone => None,
        }
    }

    pub(crate) fn blob(self) -> Option<Blob> {
        match self {
            Cell::Blob(blob) => Some(blob),
            Cell::Stamped(stamped) => Some(stamped.blob()),
            _ => None,
        }
    }

    #[inline(always)]
    pub(crate) fn has_blob(self) -> bool {
        matches!(self, Cell::Blob(_) | Cell::Stamped(_))
    }

    /// The stamp of the value; 0 if it has none.
    #[inline(always)]
    pub(crate) fn stamp(self) -> u64 {
        match self {
            Cell::Stamped(stamped) => stamped.stamp(),
            _ => 0,
        }
    }

    /// Bytes after the cell byte.
    fn stored_len(self) -> usize {
        match self {
            Cell::Inline(bytes) => bytes.len(),
            Cell::Blob(_) => BLOB_BYTES,
            Cell::Stamped(_) => STAMPED_BYTES,
            Cell::Tombstone => 0,
        }
    }

    /// Writes the cell byte and what follows.
    ///
    /// # Safety
    /// `1 + stored_len()` bytes at `to` are the caller's to write.
    #[inline]
    unsafe fn write(self, to: *mut u8) {
        // SAFETY: `1 + stored_len()` bytes at `to` are writable, as this function requires.
        unsafe { self.write_apart(to, to.add(1)) };
    }

    /// Writes the cell byte, and what follows to another place.
    ///
    /// # Safety
    /// A byte at `kind` and `stored_len()` bytes at `to` are the caller's to write.
    #[inline(always)]
    unsafe fn write_apart(self, kind: *mut u8, to: *mut u8) {
        // SAFETY: these bytes are writable, as this function requires.
        unsafe {
            match self {
                Cell::Inline(bytes) => {
                    kind.write(bytes.len() as u8);
                    key::copy(bytes.as_ptr(), to, bytes.len());
                }
                Cell::Blob(blob) => {
                    kind.write(CELL_BLOB);
                    blob.write(to);
                }
                Cell::Stamped(stamped) => {
                    kind.write(CELL_STAMPED);
                    key::copy(stamped.0.as_ptr(), to, STAMPED_BYTES);
                }
                Cell::Tombstone => kind.write(CELL_TOMBSTONE),
            }
        }
    }

    /// The value if it is inline.
    ///
    /// # Safety
    /// As [`Cell::read`].
    #[inline(always)]
    pub(crate) unsafe fn read_inline(from: *const u8) -> Option<&'g [u8]> {
        // SAFETY: a cell begins at `from`, as this function requires; an inline one is a length and as many bytes.
        unsafe {
            let len = from.read();
            (len < CELL_STAMPED).then(|| std::slice::from_raw_parts(from.add(1), usize::from(len)))
        }
    }

    /// Reads what `write` wrote.
    ///
    /// # Safety
    /// A cell stands at `from` and does not change during 'g.
    #[inline(always)]
    pub(crate) unsafe fn read(from: *const u8) -> Cell<'g> {
        // SAFETY: a cell begins at `from`, as this function requires.
        unsafe { Cell::read_apart(from.read(), from.add(1)) }
    }

    /// Reads what `write_apart` wrote: a cell byte, and what stands at `from`.
    ///
    /// # Safety
    /// That is the rest of a cell with this cell byte, and does not change during 'g.
    #[inline(always)]
    unsafe fn read_apart(kind: u8, from: *const u8) -> Cell<'g> {
        // SAFETY: the cell byte says what stands at `from`, as this function requires.
        unsafe {
            if kind < CELL_STAMPED {
                return Cell::Inline(std::slice::from_raw_parts(from, usize::from(kind)));
            }
            match kind {
                CELL_STAMPED => Cell::Stamped(Stamped(&*from.cast::<StampedBytes>())),
                CELL_BLOB => Cell::Blob(Blob::read(from)),
                _ => Cell::Tombstone,
            }
        }
    }
}

/// A record: what follows the leaf's prefix in its key, and its cell.
#[derive(Clone, Copy)]
pub(crate) struct Record<'g> {
    pub(crate) suffix: &'g [u8],
    pub(crate) cell: Cell<'g>,
}

impl Record<'_> {
    /// What it takes in the free form, in bytes.
    fn free_bytes(&self) -> usize {
        (FREE_RECORD_HEAD + self.suffix.len() + self.cell.stored_len()).next_multiple_of(UNIT)
    }
}

/// A leaf that stays allocated for `'g`, as all see it, or as the running batch does ([`Leaf::of_batch`]).
#[derive(Clone, Copy)]
pub(crate) struct Leaf<'g>(Node<'g>);

/// The built records of a leaf in key order, with the fields that locate them.
#[derive(Clone, Copy)]
pub(crate) struct Sorted<'g> {
    leaf: Leaf<'g>,
    free_form: bool,
    /// Free form: where each record is.
    offsets: *const u8,
    records: *const u8,
    stride: usize,
    suffix_len: usize,
}

impl<'g> Sorted<'g> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.leaf.built()
    }

    /// The record at a position.
    #[inline(always)]
    pub(crate) fn at(&self, position: usize) -> Record<'g> {
        debug_assert!(position < self.leaf.built());
        // SAFETY: order, offsets and records were built for all positions.
        unsafe {
            if self.free_form {
                let offset = usize::from(self.offsets.cast::<u16>().add(position).read());
                return self.leaf.free_record(offset * UNIT);
            }
            let at = self.fixed(position);
            let suffix = std::slice::from_raw_parts(at, self.suffix_len);
            Record { suffix, cell: Cell::read(at.add(self.suffix_len)) }
        }
    }

    /// A record of the fixed form.
    ///
    /// # Safety
    /// The leaf is of the fixed form and has the position.
    #[inline(always)]
    unsafe fn fixed(&self, position: usize) -> *const u8 {
        // SAFETY: the leaf has `n` records of `stride` bytes, and `position < n`, as this function requires.
        unsafe { self.records.add(position * self.stride) }
    }

    /// True if suffixes are words, of one length of eight bytes at most, and can be read as such.
    #[inline(always)]
    pub(crate) fn is_of_words(&self) -> bool {
        !self.free_form && self.suffix_len <= 8 && self.stride >= 8
    }

    /// Which bits of a word belong to a suffix.
    #[inline(always)]
    fn word_mask(&self) -> u64 {
        u64::MAX.checked_shl(64 - 8 * self.suffix_len as u32).unwrap_or(0)
    }

    /// The suffix at a position of a leaf of words.
    #[inline(always)]
    fn word(&self, position: usize) -> u64 {
        debug_assert!(position < self.len());
        // SAFETY: the position is below the number of records.
        unsafe { self.word_at(self.fixed(position)) }
    }

    /// The suffix of a record of a leaf of words.
    ///
    /// # Safety
    /// The record, of eight bytes at least, was built or appended there.
    #[inline(always)]
    unsafe fn word_at(&self, record: *const u8) -> u64 {
        debug_assert!(self.is_of_words());
        // SAFETY: the record has eight bytes, as this function requires.
        u64::from_be(unsafe { record.cast::<u64>().read_unaligned() }) & self.word_mask()
    }

    /// A suffix as a word, if the suffixes of the leaf are words of its length: then words compare as suffixes do.
    #[inline(always)]
    fn as_word(&self, suffix: &[u8]) -> Option<u64> {
        (self.is_of_words() && self.suffix_len == suffix.len()).then(|| key::first_word(suffix))
    }

    /// The first position from `from` on whose record is at or after the suffix, in steps that double.
    pub(crate) fn lower_bound_from(&self, from: usize, suffix: &[u8]) -> usize {
        let range = match self.as_word(suffix) {
            Some(wanted) => self.gallop(from, |position| self.word(position) < wanted),
            None => self.gallop(from, |position| key::compare(self.at(position).suffix, suffix) == Less),
        };
        self.lower_bound_in(range, suffix)
    }

    /// Where the first position from `from` on is that is not below; or the end is there.
    #[inline(always)]
    fn gallop(&self, mut from: usize, is_below: impl Fn(usize) -> bool) -> Range<usize> {
        let (mut step, mut to) = (1, from);
        while to < self.len() && is_below(to) {
            (from, to) = (to + 1, to + step);
            step *= 2;
        }
        from..to.min(self.len())
    }

    /// The first position before `to` whose record is at or after the suffix, or `to`; in steps that double, from
    /// there.
    pub(crate) fn lower_bound_to(&self, mut to: usize, suffix: &[u8]) -> usize {
        let (mut step, mut from) = (1, to);
        while from > 0 {
            let probe = from.saturating_sub(step);
            if key::compare(self.at(probe).suffix, suffix) == Less {
                return self.lower_bound_in(probe + 1..to, suffix);
            }
            (from, to) = (probe, probe);
            step *= 2;
        }
        to
    }

    /// The first position whose record is at or after the suffix. The search begins around a guessed position, whose
    /// records were prefetched.
    pub(crate) fn lower_bound_near(&self, suffix: &[u8], guess: usize) -> usize {
        let near = guess.saturating_sub(GUESS_WINDOW)..(guess + GUESS_WINDOW).min(self.len());
        if !self.free_form && self.stride > crate::arena::LINE_BYTES && guess < self.len() {
            // Each record is on a separate line. So fetch the likely lines together, and search in steps from the
            // guess.
            near.clone().for_each(|at| prefetch::read(self.records.wrapping_add(at * self.stride)));
            return match key::compare(self.at(guess).suffix, suffix) {
                Less => self.lower_bound_from(guess + 1, suffix),
                _ => self.lower_bound_to(guess, suffix),
            };
        }
        let is_below = |position| key::compare(self.at(position).suffix, suffix) == Less;
        let is_near =
            (near.start == 0 || is_below(near.start - 1)) && (near.end == self.len() || !is_below(near.end));
        self.lower_bound_in(if is_near { near } else { 0..self.len() }, suffix)
    }

    /// The first position of a range whose record is at or after the suffix, or the range's end.
    fn lower_bound_in(&self, range: Range<usize>, suffix: &[u8]) -> usize {
        let (mut from, mut len) = (range.start, range.len());
        if let Some(wanted) = self.as_word(suffix) {
            // As words, without a branch that could be mispredicted.
            while len > 0 {
                let half = len / 2;
                let below = self.word(from + half) < wanted;
                from += if below { half + 1 } else { 0 };
                len = if below { len - half - 1 } else { half };
            }
            return from;
        }
        while len > 0 {
            let half = len / 2;
            if key::compare(self.at(from + half).suffix, suffix) == Less {
                from += half + 1;
                len -= half + 1;
            } else {
                len = half;
            }
        }
        from
    }
}

impl<'g> Leaf<'g> {
    #[inline(always)]
    pub(crate) fn new(node: Node<'g>) -> Leaf<'g> {
        debug_assert_eq!(node.level(), 0);
        Leaf(node)
    }

    /// The leaf as the batch sees it that is running. Only the batch may call this.
    pub(crate) fn of_batch(node: Node<'g>) -> Leaf<'g> {
        Leaf(node.of_batch())
    }

    pub(crate) fn node(self) -> Node<'g> {
        self.0
    }

    #[inline(always)]
    fn head(self) -> &'g Head {
        // SAFETY: a leaf starts with its head; only the atomics in it change.
        unsafe { &*self.0.address().cast() }
    }

    /// Built records.
    #[inline(always)]
    pub(crate) fn built(self) -> usize {
        usize::from(self.head().common.small[0])
    }

    fn is_free_form(self) -> bool {
        self.head().common.small[1] == 0
    }

    pub(crate) fn lines(self) -> u32 {
        u32::from(self.head().lines)
    }

    pub(crate) fn has_blobs(self) -> bool {
        self.head().flags.load(Ordering::Relaxed) & HAS_BLOBS != 0
    }

    #[inline(always)]
    pub(crate) fn order(self) -> Order {
        let word = self.head().order.load();
        if word.reference().is_some() {
            return self.staged_order();
        }
        word
    }

    /// The order of a leaf in which a batch has staged one.
    #[cold]
    fn staged_order(self) -> Order {
        match self.staged() {
            Some(staged) if self.0.is_of_batch() => staged.after(),
            Some(staged) => staged.shown(),
            None => self.head().order.load(),
        }
    }

    /// What a batch has staged.
    fn staged(self) -> Option<&'g Staged> {
        let address = self.head().order.load().reference()?;
        // SAFETY: a batch put the reference there, to what is freed only after the word has changed and all pins of
        // that time have ended. The address was exposed, see `stage`.
        Some(unsafe { &*std::ptr::with_exposed_provenance(address) })
    }

    /// True if the batch that is running has appended to the leaf.
    #[inline(always)]
    pub(crate) fn is_staged(self) -> bool {
        self.0.is_of_batch() && self.head().order.load().reference().is_some()
    }

    /// Stages an order for the batch that is running; false if there is no memory. `_lock` is the leaf's own.
    fn stage(self, stage: &Stage<'_>, _lock: &Locked<'_>, end: u16, order: Order) -> bool {
        if let Some(staged) = self.staged() {
            staged.set_after(order);
            return true;
        }
        let word = &self.head().order;
        let Some(staged) = stage.add(word.load(), end) else { return false };
        // SAFETY: it was just made, and lives until the batch has ended.
        unsafe { &*staged }.set_after(order);
        word.publish(Order::referring_to(staged.expose_provenance()));
        true
    }

    /// Publishes what the batch that is running has staged.
    pub(crate) fn publish_staged(self) {
        if let Some(staged) = self.staged() {
            self.head().order.publish(staged.after());
        }
    }

    /// Takes back what the batch that is running has staged. Calls `each` with each of its blobs.
    pub(crate) fn undo_staged(self, each: impl FnMut(Blob)) {
        let Some(staged) = self.staged() else { return };
        let appended = staged.before().appended()..staged.after().appended();
        appended.filter_map(|number| self.appended_record(number).cell.blob()).for_each(each);
        let before = staged.undo();
        self.head().end.store(staged.end(), Ordering::Relaxed);
        self.head().order.publish(before);
    }

    #[inline(always)]
    fn prefix_offset(self) -> usize {
        let built = self.built();
        HEAD_BYTES + built + if self.is_free_form() { built % 2 + 2 * built } else { 0 }
    }

    /// What all keys begin with.
    #[inline(always)]
    pub(crate) fn prefix(self) -> &'g [u8] {
        // SAFETY: `build` wrote the prefix at this offset, and it never changes.
        unsafe { self.0.bytes(self.prefix_offset(), usize::from(self.head().prefix_len)) }
    }

    /// The prefix, without touching its line where it is short enough to stand in the head.
    #[inline(always)]
    fn has_prefix_of(self, key: &Key<'_>) -> bool {
        // `prefix` makes a slice, but only a long one is looked at.
        key.has_prefix(self.head().prefix_word, self.prefix())
    }

    /// How a key compares with the range of keys that begin with the prefix.
    pub(crate) fn against_prefix(self, key: &Key<'_>) -> std::cmp::Ordering {
        key.against_prefix(self.head().prefix_word, self.prefix())
    }

    #[inline(always)]
    fn u16_at(self, offset: usize) -> usize {
        // SAFETY: callers pass offsets of fields that were built, or appended and published.
        usize::from(unsafe { self.0.address().add(offset).cast::<u16>().read() })
    }

    /// A built record by number.
    #[inline(always)]
    fn built_record(self, number: usize) -> Record<'g> {
        let offset = self.built_at(number);
        if self.is_free_form() { self.free_record(offset) } else { self.fixed_record(offset) }
    }

    /// Where a built record is.
    #[inline(always)]
    fn built_at(self, number: usize) -> usize {
        debug_assert!(number < self.built());
        let head = self.head();
        if self.is_free_form() {
            self.u16_at(HEAD_BYTES + self.built() + self.built() % 2 + 2 * number) * UNIT
        } else {
            usize::from(head.records) * UNIT + number * usize::from(head.stride)
        }
    }

    /// The built records in key order.
    #[inline(always)]
    pub(crate) fn sorted(self) -> Sorted<'g> {
        let head = self.head();
        let offsets = HEAD_BYTES + self.built() + self.built() % 2;
        Sorted {
            leaf: self,
            free_form: self.is_free_form(),
            offsets: self.0.address().wrapping_add(offsets),
            records: self.0.address().wrapping_add(usize::from(head.records) * UNIT),
            stride: usize::from(head.stride),
            suffix_len: usize::from(head.suffix_len),
        }
    }

    /// The tag of the built record at a position.
    fn built_tag(self, position: usize) -> u8 {
        debug_assert!(position < self.built());
        // SAFETY: a leaf has one tag for each built record after its head, and `position < built`.
        unsafe { self.0.address().add(HEAD_BYTES + position).read() }
    }

    /// An appended record by number; it must be published, or the caller holds the lock.
    #[inline(always)]
    pub(crate) fn appended_record(self, number: usize) -> Record<'g> {
        let head = self.head();
        let appended = usize::from(head.appended) * UNIT;
        if self.is_free_form() {
            self.free_record(self.u16_at(appended + 2 * number) * UNIT)
        } else {
            self.fixed_record(appended + number * usize::from(head.stride))
        }
    }

    fn appended_tag(self, number: usize) -> u8 {
        (self.head().appended_tags[number / 8].load(Ordering::Relaxed) >> (8 * (number % 8))) as u8
    }

    #[inline(always)]
    fn fixed_record(self, offset: usize) -> Record<'g> {
        let len = usize::from(self.head().suffix_len);
        // SAFETY: the record was built, or appended and published; a record never changes.
        unsafe {
            Record { suffix: self.0.bytes(offset, len), cell: Cell::read(self.0.address().add(offset + len)) }
        }
    }

    #[inline(always)]
    fn free_record(self, offset: usize) -> Record<'g> {
        // SAFETY: as in `fixed_record`.
        unsafe {
            let at = self.0.address().add(offset);
            let len = usize::from(at.cast::<u16>().read_unaligned());
            let suffix = self.0.bytes(offset + FREE_RECORD_HEAD, len);
            // The cell byte stands before the key here, so that both lengths are in one place.
            let cell = Cell::read_apart(at.add(2).read(), at.add(FREE_RECORD_HEAD + len));
            Record { suffix, cell }
        }
    }

    /// The cell of a key; `None` if the leaf does not have it, or only a tombstone. `share` says where to try first.
    ///
    /// # Safety
    /// The processor has the instruction set.
    #[inline(always)]
    pub(crate) unsafe fn find<I: Isa>(self, share: Share, key: &Key<'_>, hash: u64) -> Option<Cell<'g>> {
        if !self.has_prefix_of(key) {
            return None;
        }
        let head = self.head();
        let tag = tag_of(hash);
        let order = self.order();
        let [low, high] = head.appended_tags.each_ref().map(|tags| tags.load(Ordering::Relaxed));
        let appended = simd::matches16(low, high, tag) & ((1 << order.appended()) - 1);
        // The built records from the guessed one on, as many as can be compared at once.
        let guess = share.of(self.built()).saturating_sub(GUESS_SLACK).min(BUILT_MAX - 1);
        let first = guess.min(BUILT_MAX - TAGS_AT_ONCE);
        // SAFETY: the first FIRM_BYTES of a leaf never change, no leaf is smaller, and
        // `first + TAGS_AT_ONCE <= BUILT_MAX`. The processor has `I`, as this function requires.
        let near =
            unsafe { I::matches(&*self.0.address().add(HEAD_BYTES + first).cast(), tag) } >> (guess - first);
        let near = near & !u64::MAX.checked_shl((self.built().saturating_sub(guess)) as u32).unwrap_or(0);
        let prefix_len = usize::from(head.prefix_len);
        let (suffix_len, stride) = (usize::from(head.suffix_len), usize::from(head.stride));
        if suffix_len <= 8 && stride >= 8 {
            if key.bytes.len() != prefix_len + suffix_len {
                return None;
            }
            // The likeliest record, chosen without a branch: a branch that waits for the leaf to arrive would,
            // when mispredicted, keep the processor from going on to the next lookup.
            if near | u64::from(appended) == 0 {
                // SAFETY: the processor has `I`, as this function requires.
                let far = unsafe { self.matches::<I>(tag) };
                return if far == 0 { None } else { self.find_built(&key.bytes[prefix_len..], far) };
            }
            let last = 31_u32.wrapping_sub(appended.leading_zeros());
            let (region, number) = select_unpredictable(
                appended == 0,
                (head.records, guess as u32 + near.trailing_zeros()),
                (head.appended, last),
            );
            let offset = usize::from(region) * UNIT + number as usize * stride;
            // SAFETY: a record was built, or appended and published, there, and it has eight bytes.
            let word = u64::from_be(unsafe { self.0.address().add(offset).cast::<u64>().read_unaligned() });
            let differs =
                (word ^ key.word_from(prefix_len)).checked_shr(64 - 8 * suffix_len as u32).unwrap_or(0);
            if differs == 0 {
                // SAFETY: as above.
                return match unsafe { Cell::read(self.0.address().add(offset + suffix_len)) } {
                    Cell::Tombstone => None,
                    cell => Some(cell),
                };
            }
        }
        self.find_among(&key.bytes[prefix_len..], tag, appended, u128::from(near) << guess)
    }

    /// Fetches the record that [`Leaf::find`] most likely compares first, in the free form. The head and the tags have
    /// arrived.
    ///
    /// # Safety
    /// The processor has the instruction set `I`.
    #[inline(always)]
    pub(crate) unsafe fn fetch_record<I: Isa>(self, hash: u64) {
        if !self.is_free_form() {
            return;
        }
        // SAFETY: the processor has `I`, as this function requires.
        let among = unsafe { self.matches::<I>(tag_of(hash)) };
        if among != 0 {
            let record = self.0.address().wrapping_add(self.built_at(among.trailing_zeros() as usize));
            prefetch::read(record);
            prefetch::read(record.wrapping_add(crate::arena::LINE_BYTES));
        }
    }

    /// The cell of a suffix among the appended records whose tags matched and among all built ones, `near` first.
    #[inline(never)]
    fn find_among(self, suffix: &[u8], tag: u8, mut appended: u32, near: u128) -> Option<Cell<'g>> {
        while appended != 0 {
            // The latest first.
            let number = 31 - appended.leading_zeros() as usize;
            let record = self.appended_record(number);
            if key::equal(record.suffix, suffix) {
                return match record.cell {
                    Cell::Tombstone => None,
                    cell => Some(cell),
                };
            }
            appended ^= 1 << number;
        }
        // SAFETY: every processor has the base.
        self.find_built(suffix, near)
            .or_else(|| self.find_built(suffix, unsafe { self.matches::<simd::Base>(tag) } & !near))
    }

    /// The cell of a suffix among some of the built records.
    #[inline(never)]
    fn find_built(self, suffix: &[u8], mut among: u128) -> Option<Cell<'g>> {
        while among != 0 {
            let record = self.built_record(among.trailing_zeros() as usize);
            if key::equal(record.suffix, suffix) {
                return Some(record.cell);
            }
            among &= among - 1;
        }
        None
    }

    /// A bit for each built record that has a tag.
    ///
    /// # Safety
    /// The processor has the instruction set.
    #[inline(always)]
    unsafe fn matches<I: Isa>(self, tag: u8) -> u128 {
        // SAFETY: the first FIRM_BYTES of a leaf never change, and no leaf is smaller. The processor has `I`, as this
        // function requires.
        let [low, high] = unsafe {
            let [low, high] = &*self.0.address().add(HEAD_BYTES).cast::<[[u8; TAGS_AT_ONCE]; 2]>();
            [I::matches(low, tag), I::matches(high, tag)]
        };
        let all = u128::from(low) | u128::from(high) << TAGS_AT_ONCE;
        all & u128::MAX.checked_shr((BUILT_MAX - self.built()) as u32).unwrap_or(0)
    }

    /// The first position in an order whose appended record is at or after the suffix, and whether it is equal.
    pub(crate) fn lower_bound_appended(self, order: Order, suffix: &[u8]) -> (usize, bool) {
        let (mut from, mut to) = (0, order.listed());
        let sorted = self.sorted();
        let first = self.0.address().wrapping_add(usize::from(self.head().appended) * UNIT);
        let record = |number: usize| first.wrapping_add(number * sorted.stride);
        if !sorted.free_form && sorted.stride > crate::arena::LINE_BYTES {
            (0..order.appended()).for_each(|number| prefetch::read(record(number)));
        }
        if let Some(wanted) = sorted.as_word(suffix) {
            while from < to {
                let middle = (from + to) / 2;
                // SAFETY: the order lists records that were appended, of the leaf's stride.
                match unsafe { sorted.word_at(record(order.number(middle))) }.cmp(&wanted) {
                    Less => from = middle + 1,
                    Equal => return (middle, true),
                    Greater => to = middle,
                }
            }
            return (from, false);
        }
        while from < to {
            let middle = (from + to) / 2;
            match key::compare(self.appended_record(order.number(middle)).suffix, suffix) {
                Less => from = middle + 1,
                Equal => return (middle, true),
                Greater => to = middle,
            }
        }
        (from, false)
    }

    /// Appends a record and publishes it, or stages it; false if it does not fit. `lock` is the leaf's own.
    pub(crate) fn append(
        self,
        lock: &Locked<'_>,
        key: &Key<'_>,
        hash: u64,
        cell: Cell<'_>,
        stage: Option<&Stage<'_>>,
    ) -> bool {
        let head = self.head();
        let order = self.order();
        let number = order.appended();
        if number >= usize::from(head.common.small[2]) || !self.has_prefix_of(key) {
            return false;
        }
        let suffix = &key.bytes[usize::from(head.prefix_len)..];
        let appended = usize::from(head.appended) * UNIT;
        let base = self.0.address().cast_mut();
        let end = head.end.load(Ordering::Relaxed);
        if self.is_free_form() {
            let start = usize::from(head.end.load(Ordering::Relaxed)) * UNIT;
            let stop = start + FREE_RECORD_HEAD + suffix.len() + cell.stored_len();
            if stop > usize::from(head.lines) * crate::arena::LINE_BYTES {
                return false;
            }
            // SAFETY: `start..stop` is inside the leaf and after all published records, and the caller holds its lock.
            unsafe {
                write_free(base.add(start), [suffix, &[]], cell);
                base.add(appended + 2 * number).cast::<u16>().write((start / UNIT) as u16);
            }
            head.end.store(stop.div_ceil(UNIT) as u16, Ordering::Relaxed);
        } else {
            let (len, stride) = (usize::from(head.suffix_len), usize::from(head.stride));
            if suffix.len() != len || len + 1 + cell.stored_len() > stride {
                return false;
            }
            // SAFETY: `appended_max` records fit, this one is not published yet, and we hold the lock.
            unsafe {
                let at = base.add(appended + number * stride);
                key::copy(suffix.as_ptr(), at, len);
                cell.write(at.add(len));
            }
        }
        let (position, replaces) = self.lower_bound_appended(order, suffix);
        if cell.has_blob() {
            head.flags.fetch_or(HAS_BLOBS, Ordering::Relaxed);
        }
        let tags = &head.appended_tags[number / 8];
        // A batch that failed may have left a tag there.
        let (shift, others) = (8 * (number % 8), tags.load(Ordering::Relaxed));
        let tag = u64::from(tag_of(hash)) << shift;
        tags.store(others & !(0xff << shift) | tag, Ordering::Relaxed);
        let order = order.with(position, replaces);
        match stage {
            None => head.order.publish(order),
            Some(stage) if self.stage(stage, lock, end, order) => {}
            Some(_) => {
                head.end.store(end, Ordering::Relaxed);
                return false;
            }
        }
        true
    }
}

#[inline(always)]
pub(crate) fn tag_of(hash: u64) -> u8 {
    forrest_base::tag(hash, u8::BITS) as u8
}

/// Writes a record of the free form: `u16` key length, cell byte, key (in two pieces), value.
///
/// # Safety
/// The record's bytes at `to` are the caller's to write.
unsafe fn write_free(to: *mut u8, suffix: [&[u8]; 2], cell: Cell<'_>) {
    let (first, second) = (suffix[0].len(), suffix[1].len());
    // SAFETY: `FREE_RECORD_HEAD`, the key's length and `stored_len()` bytes at `to` are writable, as this function
    // requires.
    unsafe {
        to.cast::<u16>().write_unaligned((first + second) as u16);
        let at = to.add(FREE_RECORD_HEAD);
        key::copy(suffix[0].as_ptr(), at, first);
        key::copy(suffix[1].as_ptr(), at.add(first), second);
        cell.write_apart(to.add(2), at.add(first + second));
    }
}
