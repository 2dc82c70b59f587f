//! Rebuilding leaves in which all keys have one length of at most eight bytes and all values one size: keys are
//! compared and cut as words, and records are copied unchanged. This is [`super::build`] for the most common leaves,
//! in a tenth of the instructions.

use super::build::Plan;
use super::*;
use crate::arena::Supply;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Most entries: built, appended, and one more.
const ENTRIES_MAX: usize = BUILT_MAX + APPENDED_MAX + 1;
/// Longest cell, with its cell byte: what an overlapping copy of two words covers.
const CELL_MAX: usize = 16;

/// The entries of a leaf, in key order.
pub(crate) struct Words<'g> {
    len: usize,
    /// Bytes of every key, and of every record's cell.
    key_len: usize,
    cell_len: usize,
    /// Whole keys, big endian.
    keys: [MaybeUninit<u64>; ENTRIES_MAX],
    cells: [MaybeUninit<*const u8>; ENTRIES_MAX],
    tags: [MaybeUninit<u8>; ENTRIES_MAX],
    /// The cell that was put.
    own: [u8; CELL_MAX],
    newest: usize,
    /// The cells point into the leaf.
    leaf: PhantomData<Leaf<'g>>,
}

impl<'g> Words<'g> {
    /// True if a leaf is of the kind that this module builds.
    pub(crate) fn suit(leaf: Leaf<'g>) -> bool {
        let head = leaf.head();
        let key_len = usize::from(head.prefix_len) + usize::from(head.suffix_len);
        let stride = usize::from(head.stride);
        let cell_len = stride.wrapping_sub(usize::from(head.suffix_len));
        // Words are loaded from records and stored to them whole, so a record must not be shorter.
        !leaf.is_free_form() && !leaf.has_blobs() && key_len <= 8 && stride >= 8 && cell_len <= CELL_MAX
    }

    /// The live entries of a leaf that suits, with one changed; `None` if the change does not suit.
    /// `words` is where to make them: it is large.
    pub(crate) fn gather<'w>(
        words: &'w mut MaybeUninit<Words<'g>>,
        leaf: Leaf<'g>,
        key: &[u8],
        hash: u64,
        cell: Cell<'_>,
    ) -> Option<&'w mut Words<'g>> {
        let head = leaf.head();
        let (prefix_len, suffix_len) = (usize::from(head.prefix_len), usize::from(head.suffix_len));
        let stride = usize::from(head.stride);
        let (key_len, cell_len) = (prefix_len + suffix_len, stride - suffix_len);
        let fits = matches!(cell, Cell::Inline(bytes) if bytes.len() < cell_len);
        if key.len() != key_len || !fits {
            return None;
        }
        let mut own = [0; CELL_MAX];
        // SAFETY: the cell fits: it is shorter than `cell_len`.
        unsafe { cell.write(own.as_mut_ptr()) };
        let at = words.as_mut_ptr();
        // SAFETY: all fields are written but the arrays, which are of what need not be.
        let words = unsafe {
            (&raw mut (*at).len).write(0);
            (&raw mut (*at).key_len).write(key_len);
            (&raw mut (*at).cell_len).write(cell_len);
            (&raw mut (*at).own).write(own);
            (&raw mut (*at).newest).write(0);
            &mut *at
        };
        let mask = u64::MAX.checked_shl(64 - 8 * suffix_len as u32).unwrap_or(0);
        let base = leaf.0.address();
        let word_at = |offset: usize| {
            // SAFETY: a record stands at the offset, and a record has eight bytes at least.
            let word = u64::from_be(unsafe { base.add(offset).cast::<u64>().read_unaligned() });
            head.prefix_word | (word & mask).checked_shr(8 * prefix_len as u32).unwrap_or(0)
        };
        let order = leaf.order();
        let appended = usize::from(head.appended) * UNIT;
        let records = usize::from(head.records) * UNIT;
        // First the appended records and the new entry, in order; then merge them with the built records.
        let mut changes = [(0_u64, std::ptr::null::<u8>(), 0_u8); APPENDED_MAX + 1];
        let own = (key::first_word(key), words.own.as_ptr(), tag_of(hash));
        let mut len = 0;
        let mut push = |change| {
            changes[len] = change;
            len += 1;
        };
        let mut own_left = true;
        for listed in 0..order.listed() {
            let number = order.number(listed);
            let offset = appended + number * stride;
            let word = word_at(offset);
            if own_left && own.0 <= word {
                own_left = false;
                push(own);
                if own.0 == word {
                    continue;
                }
            }
            let gone = matches!(leaf.appended_record(number).cell, Cell::Tombstone);
            let cell = if gone { std::ptr::null() } else { base.wrapping_add(offset + suffix_len) };
            push((word, cell, leaf.appended_tag(number)));
        }
        if own_left {
            push(own);
        }
        let (changes, mut next) = (&changes[..len], 0);
        for position in 0..leaf.built() {
            let (offset, tag) = (records + position * stride, leaf.built_tag(position));
            let word = word_at(offset);
            while next < changes.len() && changes[next].0 < word {
                words.push_change(changes[next]);
                next += 1;
            }
            if next == changes.len() || changes[next].0 != word {
                words.push(word, base.wrapping_add(offset + suffix_len), tag);
            }
        }
        changes[next..].iter().for_each(|change| words.push_change(*change));
        Some(words)
    }

    #[inline(always)]
    fn push(&mut self, key: u64, cell: *const u8, tag: u8) {
        let at = self.len;
        debug_assert!(at < ENTRIES_MAX);
        // SAFETY: a leaf has at most BUILT_MAX and APPENDED_MAX records, and one is new: all have room.
        unsafe {
            self.keys.get_unchecked_mut(at).write(key);
            self.cells.get_unchecked_mut(at).write(cell);
            self.tags.get_unchecked_mut(at).write(tag);
        }
        self.len = at + 1;
    }

    fn push_change(&mut self, (word, cell, tag): (u64, *const u8, u8)) {
        if std::ptr::eq(cell, self.own.as_ptr()) {
            self.newest = self.len;
        }
        if !cell.is_null() {
            self.push(word, cell, tag);
        }
    }

    /// The end of the first piece, and of the second if there must be two.
    pub(crate) fn cuts(&self) -> (usize, Option<usize>) {
        if self.len <= BUILT_MAX {
            return (self.len, None);
        }
        // Keys that come in order fill each leaf before the next is begun.
        let first = match self.newest {
            newest if newest + 1 == self.len => BUILT_MAX.min(self.len - 1),
            0 => self.len - BUILT_MAX,
            _ => self.len / 2,
        };
        (first, Some(self.len))
    }

    #[inline(always)]
    fn key(&self, at: usize) -> u64 {
        assert!(at < self.len);
        // SAFETY: the first `len` were written.
        unsafe { self.keys[at].assume_init() }
    }

    /// Where the new entry is.
    pub(crate) fn newest(&self) -> usize {
        self.newest
    }

    /// The separator before an entry: bytes, and how many of them.
    pub(crate) fn separator(&self, at: usize) -> ([u8; 8], usize) {
        let common = ((self.key(at - 1) ^ self.key(at)).leading_zeros() / 8) as usize;
        (self.key(at).to_be_bytes(), (common + 1).min(self.key_len))
    }

    /// Builds a leaf of entries `from..to`. `None` if there is no memory.
    pub(crate) fn build(&self, supply: Supply<'_>, era: u64, from: usize, to: usize) -> Option<Slot> {
        let n = to - from;
        let common = ((self.key(from) ^ self.key(to - 1)).leading_zeros() / 8) as usize;
        let prefix_len = if n < build::PREFIX_ENTRIES_MIN { 0 } else { common.min(self.key_len) };
        // Records stay eight bytes long at least.
        let prefix_len = prefix_len.min((self.key_len + self.cell_len).saturating_sub(8));
        let suffix_len = self.key_len - prefix_len;
        let prefix = self.key(from).to_be_bytes();
        let plan = Plan::fixed(n, prefix_len, suffix_len, suffix_len + self.cell_len);
        let begun = plan.begin(supply, era, [&prefix[..prefix_len], &[]], false)?;
        let (base, shift) = (begun.base, 8 * prefix_len as u32);
        assert!(to <= self.len);
        // SAFETY: the first `len` of each were written.
        let (keys, cells, tags) = unsafe {
            (
                std::slice::from_raw_parts(self.keys.as_ptr().cast::<u64>().add(from), n),
                std::slice::from_raw_parts(self.cells.as_ptr().cast::<*const u8>().add(from), n),
                std::slice::from_raw_parts(self.tags.as_ptr().cast::<u8>().add(from), n),
            )
        };
        for position in 0..n {
            // SAFETY: `begin` allocated a block for this plan, and `position < n`. A record is not shorter than a word;
            // the cell, written later, overwrites the word's bytes after the suffix.
            unsafe {
                base.add(HEAD_BYTES + position).write(tags[position]);
                let at = base.add(plan.records + position * plan.stride);
                let word = keys[position].checked_shl(shift).unwrap_or(0);
                at.cast::<u64>().write_unaligned(word.to_be());
                key::copy(cells[position], at.add(suffix_len), self.cell_len);
            }
        }
        Some(plan.slot(&begun))
    }
}
