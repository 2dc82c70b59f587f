//! Building leaves from sorted entries: what fits together, in which form, and the bytes.

use super::walk::Stands;
use super::*;
use crate::arena::{self, Handle, LINE_BYTES, Supply};
use crate::key::Pieces;
use std::ops::ControlFlow;

/// A leaf is split where its built records would take more without the common prefix of their keys, in bytes.
pub(super) const LEAF_BYTES_MAX: usize = 12 << 10;
/// Fewest entries for which a common prefix is taken out: with fewer the next key would likely break it.
pub(super) const PREFIX_ENTRIES_MIN: usize = 4;

/// A longer one, in bytes, is taken out of any number of keys.
const LONG_PREFIX: usize = 256;
/// Room for appended records is limited where an average record is longer, in bytes.
const LONG_RECORD: usize = 512;

/// A record to be built: its key in two pieces, and its cell.
#[derive(Clone, Copy)]
pub(crate) struct LeafEntry<'a> {
    pub(crate) lead: &'a [u8],
    pub(crate) tail: &'a [u8],
    pub(crate) cell: Cell<'a>,
    pub(crate) tag: u8,
}

impl<'a> LeafEntry<'a> {
    pub(crate) fn key_len(&self) -> usize {
        self.lead.len() + self.tail.len()
    }

    fn key(&self) -> Pieces<'a> {
        Pieces([self.lead, self.tail])
    }

    /// The shortest key that is after `before` and at or before this one: a separator.
    pub(crate) fn separator_after(&self, before: &LeafEntry<'_>) -> Pieces<'a> {
        self.key().split_at(before.key().common_prefix(self.key()) + 1).0
    }
}

/// The live entries of a leaf (or two neighbours), in key order.
#[derive(Default)]
pub(crate) struct Entries<'a>(pub(crate) Vec<LeafEntry<'a>>);

impl<'a> Entries<'a> {
    pub(crate) fn new() -> Self {
        Entries(Vec::with_capacity(BUILT_MAX + APPENDED_MAX + 1))
    }

    /// Appends the entries of a leaf.
    pub(crate) fn gather(&mut self, leaf: Leaf<'a>) {
        let lead = leaf.prefix();
        let _ = leaf.walk().try_each(|record, stands| {
            let tag = match stands {
                Stands::Built(position) => leaf.built_tag(position),
                Stands::Appended(number) => leaf.appended_tag(number),
            };
            self.0.push(LeafEntry { lead, tail: record.suffix, cell: record.cell, tag });
            ControlFlow::Continue(())
        });
    }

    /// Puts one entry in its place, or takes the key out if the cell is a tombstone. Returns the position if
    /// an entry is there, and what the cell replaced.
    pub(crate) fn change(&mut self, key: &'a [u8], hash: u64, cell: Cell<'a>) -> (usize, Option<Cell<'a>>) {
        let entry = LeafEntry { lead: &[], tail: key, cell, tag: tag_of(hash) };
        // Most entries have one lead, and so has the key: it is compared once.
        let lead = self.0.first().map_or(&[][..], |first| first.lead);
        let rest = key.strip_prefix(lead);
        let compare = |e: &LeafEntry<'_>| match rest {
            Some(rest) if std::ptr::eq(e.lead, lead) => e.tail.cmp(rest),
            _ => e.key().compare(key),
        };
        match (self.0.binary_search_by(compare), cell) {
            (Ok(at), Cell::Tombstone) => (at, Some(self.0.remove(at).cell)),
            (Ok(at), _) => (at, Some(std::mem::replace(&mut self.0[at], entry).cell)),
            (Err(at), Cell::Tombstone) => (at, None),
            (Err(at), _) => {
                self.0.insert(at, entry);
                (at, None)
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(|e| FREE_RECORD_HEAD + e.key_len() + e.cell.stored_len()).sum()
    }

    /// The bytes of these and of neighbouring entries in one leaf, and of these those of their common prefix.
    pub(crate) fn bytes_with(&self, other: &Entries<'_>) -> (usize, usize) {
        let (ours, theirs) = (self.bytes(), other.bytes());
        let (Some(first), Some(last)) = (self.0.first(), other.0.last()) else { return (ours + theirs, 0) };
        // The outermost have the prefix in common that all have: it does not matter which of the two lists is first.
        let (inner, other_inner) = (self.0.last().unwrap_or(first), other.0.first().unwrap_or(last));
        let prefix = first.key().common_prefix(last.key());
        let prefix = prefix.min(inner.key().common_prefix(other_inner.key()));
        (ours + theirs - (self.0.len() + other.0.len() - 1) * prefix, prefix)
    }

    /// Where to cut, given where the newest entry went: pieces that each fit a leaf.
    pub(crate) fn cuts(&self, newest: usize) -> Vec<usize> {
        let mut cuts = Vec::new();
        self.cut(0, self.0.len(), newest, &mut cuts);
        cuts.push(self.0.len());
        cuts
    }

    fn cut(&self, from: usize, to: usize, newest: usize, cuts: &mut Vec<usize>) {
        let entries = &self.0[from..to];
        if entries.len() < 2 {
            return;
        }
        let plan = Plan::new(entries);
        if entries.len() <= BUILT_MAX && plan.bytes() <= LEAF_BYTES_MAX {
            return;
        }
        let weight =
            |e: &LeafEntry<'_>| FREE_RECORD_HEAD + e.key_len() - plan.prefix_len + e.cell.stored_len();
        let at = if newest + 1 == to && from == 0 && entries.len() > BUILT_MAX {
            // Keys that come in order fill each leaf before the next is begun.
            to - 1
        } else if newest < APPENDED_MAX && from == 0 && to == self.0.len() && entries.len() > BUILT_MAX {
            entries.len() - BUILT_MAX
        } else {
            let half = entries.iter().map(weight).sum::<usize>() / 2;
            let mut sum = 0;
            let at = entries.iter().position(|e| {
                sum += weight(e);
                sum > half
            });
            from + at.unwrap_or(1).clamp(1, entries.len() - 1)
        };
        self.cut(from, at, newest, cuts);
        cuts.push(at);
        self.cut(at, to, newest, cuts);
    }
}

/// How a run of entries is laid out.
pub(super) struct Plan {
    pub(super) n: usize,
    pub(super) prefix_len: usize,
    pub(super) suffix_len: usize,
    /// Bytes of a record; 0 for the free form.
    pub(super) stride: usize,
    /// Offset of the built records.
    pub(super) records: usize,
    built_bytes: usize,
    /// Bytes that an average record takes.
    record_bytes: usize,
}

/// A block that is being made a leaf.
pub(super) struct Begun {
    pub(super) base: *mut u8,
    handle: Handle,
}

impl Plan {
    fn new(entries: &[LeafEntry<'_>]) -> Plan {
        let n = entries.len();
        let prefix_len = match entries {
            [first, .., last] => first.key().common_prefix(last.key()),
            _ => 0,
        };
        let prefix_len = if n >= PREFIX_ENTRIES_MIN || prefix_len > LONG_PREFIX { prefix_len } else { 0 };
        let first_len = entries.first().map_or(0, LeafEntry::key_len);
        let (mut one_len, mut value_max, mut free_bytes) = (true, 0, 0);
        for entry in entries {
            one_len &= entry.key_len() == first_len;
            let value = entry.cell.stored_len();
            value_max = value_max.max(value);
            free_bytes +=
                (FREE_RECORD_HEAD + entry.key_len() - prefix_len + value).next_multiple_of(UNIT) + 2;
        }
        let stride = first_len - prefix_len.min(first_len) + 1 + value_max;
        if one_len && n > 0 && stride * n <= free_bytes {
            return Plan::fixed(n, prefix_len, first_len - prefix_len, stride);
        }
        Plan::free(n, prefix_len, free_bytes - 2 * n)
    }

    /// The free form; `bytes` is what all records take.
    pub(super) fn free(n: usize, prefix_len: usize, bytes: usize) -> Plan {
        let records = (HEAD_BYTES + n + n % 2 + 2 * n + prefix_len).next_multiple_of(UNIT);
        Plan {
            n,
            prefix_len,
            suffix_len: 0,
            stride: 0,
            records,
            built_bytes: records + bytes,
            record_bytes: bytes.checked_div(n).unwrap_or(32) + UNIT,
        }
    }

    /// What counts against [`LEAF_BYTES_MAX`].
    pub(super) fn bytes(&self) -> usize {
        self.built_bytes - self.prefix_len
    }

    pub(super) fn fixed(n: usize, prefix_len: usize, suffix_len: usize, stride: usize) -> Plan {
        let records = (HEAD_BYTES + n + prefix_len).next_multiple_of(UNIT);
        Plan {
            n,
            prefix_len,
            suffix_len,
            stride,
            records,
            built_bytes: records + n * stride,
            record_bytes: stride,
        }
    }

    /// Takes a block and writes all but tags, offsets and records. `None` if there is no memory.
    pub(super) fn begin(
        &self,
        supply: Supply<'_>,
        era: u64,
        prefix: [&[u8]; 2],
        blobs: bool,
    ) -> Option<Begun> {
        let n = self.n;
        debug_assert!(n <= BUILT_MAX && prefix[0].len() + prefix[1].len() == self.prefix_len);
        let appended = self.built_bytes.max(FIRM_BYTES).next_multiple_of(UNIT);
        let table = if self.stride == 0 { APPENDED_OFFSETS_BYTES } else { 0 };
        // Room for as many as an order can list, save in small leaves; for long records an eighth must do.
        let room =
            (n / if self.record_bytes <= 32 { 2 } else { 8 }).clamp(4, APPENDED_MAX) * self.record_bytes;
        // Long records: what stays empty is a small part of the leaf, though it is built more often.
        let room = match self.record_bytes {
            ..=LONG_RECORD => room,
            record => room.min(self.built_bytes / 4 / record * record),
        };
        let room = if supply.is_scarce() { 0 } else { room };
        let lines = arena::rounded((appended + table + room).div_ceil(LINE_BYTES) as u32);
        let fits = (lines as usize * LINE_BYTES - appended).checked_div(self.stride);
        let fits = fits.map_or(APPENDED_MAX, |fits| fits.min(APPENDED_MAX));
        let handle = supply.take(lines)?;
        let base = supply.arena.at(handle).as_ptr();
        let mut prefix_word = [0; 8];
        prefix_word.iter_mut().zip(prefix[0].iter().chain(prefix[1])).for_each(|(to, from)| *to = *from);
        let head = Head {
            common: Common::new(0, [n as u8, u8::from(self.stride > 0), fits as u8], era),
            order: OrderWord::new(),
            appended_tags: Default::default(),
            prefix_word: u64::from_be_bytes(prefix_word),
            prefix_len: self.prefix_len as u16,
            suffix_len: self.suffix_len as u16,
            stride: self.stride as u16,
            records: (self.records / UNIT) as u16,
            appended: (appended / UNIT) as u16,
            end: AtomicU16::new(((appended + table) / UNIT) as u16),
            lines: lines as u16,
            flags: AtomicU8::new(if blobs { HAS_BLOBS } else { 0 }),
            _rest: 0,
        };
        let tables = n + if self.stride == 0 { n % 2 + 2 * n } else { 0 };
        // SAFETY: the block was allocated above and is not linked; the plan includes head and prefix.
        unsafe {
            base.cast::<Head>().write(head);
            let to = base.add(HEAD_BYTES + tables);
            key::copy(prefix[0].as_ptr(), to, prefix[0].len());
            key::copy(prefix[1].as_ptr(), to.add(prefix[0].len()), prefix[1].len());
        }
        Some(Begun { base, handle })
    }

    /// The slot of a leaf that is done.
    pub(super) fn slot(&self, begun: &Begun) -> Slot {
        let len = (self.built_bytes - self.records).div_ceil(UNIT);
        Slot::of_leaf(begun.handle, self.records / UNIT, len, self.stride == 0)
    }
}

/// Builds a leaf of entries that [`Entries::cuts`] put together. `None` if there is no memory.
pub(crate) fn build(supply: Supply<'_>, era: u64, entries: &[LeafEntry<'_>]) -> Option<Slot> {
    let plan = Plan::new(entries);
    let prefix = entries.first().map_or([&[][..], &[]], |first| {
        let lead = first.lead.len().min(plan.prefix_len);
        [&first.lead[..lead], &first.tail[..plan.prefix_len - lead]]
    });
    let blobs = entries.iter().any(|e| e.cell.has_blob());
    let begun = plan.begin(supply, era, prefix, blobs)?;
    // SAFETY: `begin` allocated a block for this plan.
    unsafe {
        if plan.stride == 0 {
            write_free_form(begun.base, &plan, entries);
        } else {
            write_fixed_form(begun.base, &plan, entries);
        }
    }
    Some(plan.slot(&begun))
}

/// Writes tags, offsets and records.
///
/// # Safety
/// `base` is a block of the caller's that `plan` fits.
unsafe fn write_free_form(base: *mut u8, plan: &Plan, entries: &[LeafEntry<'_>]) {
    let n = entries.len();
    let mut at = plan.records;
    for (i, entry) in entries.iter().enumerate() {
        let Pieces([a, b]) = entry.key().split_at(plan.prefix_len).1;
        // SAFETY: `base` is a block for this plan, as this function requires; `Plan::new` summed the same lengths.
        unsafe {
            base.add(HEAD_BYTES + i).write(entry.tag);
            base.add(HEAD_BYTES + n + n % 2 + 2 * i).cast::<u16>().write((at / UNIT) as u16);
            write_free(base.add(at), [a, b], entry.cell);
        }
        at += (FREE_RECORD_HEAD + a.len() + b.len() + entry.cell.stored_len()).next_multiple_of(UNIT);
    }
}

/// Writes tags and records.
///
/// # Safety
/// `base` is a block of the caller's that `plan` fits.
unsafe fn write_fixed_form(base: *mut u8, plan: &Plan, entries: &[LeafEntry<'_>]) {
    for (position, entry) in entries.iter().enumerate() {
        let Pieces([a, b]) = entry.key().split_at(plan.prefix_len).1;
        // SAFETY: `base` is a block for this plan, as this function requires, and `position < plan.n`.
        unsafe {
            base.add(HEAD_BYTES + position).write(entry.tag);
            let at = base.add(plan.records + position * plan.stride);
            key::copy(a.as_ptr(), at, a.len());
            key::copy(b.as_ptr(), at.add(a.len()), b.len());
            entry.cell.write(at.add(plan.suffix_len));
        }
    }
}
