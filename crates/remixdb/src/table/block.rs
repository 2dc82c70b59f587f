//! Key blocks: 64 keys in columns, read in place.
//!
//! A column whose entries would all be equal is omitted. So with keys of one size and values of one size, the
//! i-th key and the i-th value are found by a multiplication. Where sizes differ, a column has the *ends* of
//! the pieces instead of their lengths, so that a bisection need not add up lengths.
//!
//! ```text
//! head   0  offset of the first value, 8       20  keys, 1: 1 to 64
//!        8  bytes of the block, 4              21  flags, 1
//!       12  bytes of a key after the common    22  bytes of each end of a key, 1: 1, 2 or 4; 0 if all keys are
//!           prefix, 2; 0 where they differ         of one size
//!       14  bytes of the common prefix, 2      23  bytes of each end of a value, 1: 1, 2, 4 or 8; 0 if all values
//!       16  bytes of a value, 4; 0 where           are of one size
//!           they differ
//!       24  ends of the values, counted from the first value's beginning
//!           ends of the keys, counted from the first suffix's beginning, at a multiple of their width
//!           kinds, 1 byte each: 0 a value, 1 a tombstone (whose value has no bytes), 2 a wrapped
//!           value (see [`wrapped`](crate::wrapped)), only in tables with the feature
//!           common prefix
//!           suffixes: the keys without the prefix, in ascending order
//! ```
//!
//! Flags: 1, there are kinds (else all entries are values); 2, there are sequence numbers, which is reserved.
//! Other flags and kinds belong to later versions; in a table of version 1 they are damage, and are refused.
//! A worked example is at the head of [`format`](super::format).
//!
//! The readers of a block trust its content, because its pages were verified, but never read beyond its
//! bytes: if something does not fit, they return `None`, which means damage. They copy nothing.

use super::format::{BLOCK_HEAD as HEAD, BLOCK_KEYS, u32_at, u64_at};
use crate::key::{common_prefix, head_of};
pub(crate) use crate::wrapped::Kind;
use std::cmp::Ordering;
use std::ops::Range;

/// A search compares the heads of one key of each group first.
const GROUP: usize = 8;

const KINDS: u8 = 1;
const SEQUENCES: u8 = 2;

/// The head of the bytes between two offsets; meaningless if they are beyond the end.
#[inline(always)]
fn head_between(bytes: &[u8], start: usize, end: usize) -> u64 {
    let from = bytes.get(start..).unwrap_or_default();
    let len = end.saturating_sub(start);
    match from.first_chunk() {
        // Bytes after the end are masked out.
        Some(&head) => u64::from_be_bytes(head) & !u64::MAX.checked_shr(8 * len.min(8) as u32).unwrap_or(0),
        None => head_of(&from[..len.min(from.len())]),
    }
}

/// The width in bytes of numbers up to this one.
fn width_of(greatest: u64) -> u8 {
    match greatest {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    }
}

/// A block under construction.
#[derive(Default)]
pub(super) struct Pending {
    keys: Vec<u8>,
    key_ends: Vec<u32>,
    value_ends: Vec<u64>,
    kinds: Vec<u8>,
}

impl Pending {
    pub(super) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Upper bound of its encoded size in bytes.
    pub(super) fn bytes(&self) -> usize {
        HEAD + self.keys.len() + self.len() * 3
    }

    pub(super) fn push(&mut self, key: &[u8], value_len: u64, kind: Kind) {
        self.keys.extend_from_slice(key);
        self.key_ends.push(self.keys.len() as u32);
        self.value_ends.push(self.value_ends.last().unwrap_or(&0) + value_len);
        self.kinds.push(kind as u8);
    }

    fn key(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.key_ends[before]);
        &self.keys[start as usize..self.key_ends[at] as usize]
    }

    pub(super) fn first_key(&self) -> &[u8] {
        self.key(0)
    }

    /// Appends the encoded block, and begins another. There must be a key.
    pub(super) fn encode(&mut self, first_value: u64, out: &mut Vec<u8>) {
        let (start, count) = (out.len(), self.len());
        let prefix = common_prefix(self.key(0), self.key(count - 1));
        let suffixes = self.keys.len() - count * prefix;
        let (key_len, value_len) = (self.key(0).len(), self.value_ends[0]);
        let ends = |each: u64, ends: &mut dyn Iterator<Item = u64>| {
            (1..).zip(ends).any(|(i, end): (u64, u64)| end != i * each)
        };
        let key_ends = ends(key_len as u64, &mut self.key_ends.iter().map(|&end| u64::from(end)));
        let value_ends = ends(value_len, &mut self.value_ends.iter().copied());
        let key_width = if key_ends { width_of(suffixes as u64) } else { 0 };
        let value_width = if value_ends { width_of(self.value_ends[count - 1]) } else { 0 };
        let kinds = self.kinds.iter().any(|&kind| kind != Kind::Value as u8);

        out.extend_from_slice(&first_value.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(if key_ends { 0 } else { (key_len - prefix) as u16 }).to_le_bytes());
        out.extend_from_slice(&(prefix as u16).to_le_bytes());
        out.extend_from_slice(&(if value_ends { 0 } else { value_len as u32 }).to_le_bytes());
        out.extend_from_slice(&[count as u8, if kinds { KINDS } else { 0 }, key_width, value_width]);
        for end in &self.value_ends {
            out.extend_from_slice(&end.to_le_bytes()[..usize::from(value_width)]);
        }
        out.resize(start + (out.len() - start).next_multiple_of(usize::from(key_width).max(1)), 0);
        for (i, &end) in (1..).zip(&self.key_ends) {
            let end = end - i * prefix as u32;
            out.extend_from_slice(&end.to_le_bytes()[..usize::from(key_width)]);
        }
        if kinds {
            out.extend_from_slice(&self.kinds);
        }
        out.extend_from_slice(&self.key(0)[..prefix]);
        for at in 0..count {
            out.extend_from_slice(&self.key(at)[prefix..]);
        }
        let length = (out.len() - start) as u32;
        out[start + 8..start + 12].copy_from_slice(&length.to_le_bytes());
        self.keys.clear();
        self.key_ends.clear();
        self.value_ends.clear();
        self.kinds.clear();
    }
}

/// The ends of pieces that are stored back to back.
#[derive(Debug, Clone, Copy)]
struct Ends {
    /// The offset of the column in the block.
    at: usize,
    /// Bytes of an entry of the column; 0 if there is no column because all pieces have `each` bytes.
    width: u8,
    each: u64,
}

impl Ends {
    #[inline(always)]
    fn end(&self, block: &[u8], i: usize) -> Option<u64> {
        let from = block.get(self.at + i * usize::from(self.width)..)?;
        Some(match self.width {
            1 => u64::from(*from.first()?),
            2 => u64::from(u16::from_le_bytes(*from.first_chunk()?)),
            4 => u64::from(u32::from_le_bytes(*from.first_chunk()?)),
            _ => u64::from_le_bytes(*from.first_chunk()?),
        })
    }

    /// The end of the i-th piece, from the beginning of the first.
    #[inline(always)]
    fn end_of(&self, block: &[u8], i: usize) -> Option<u64> {
        if self.width == 0 { Some((i as u64 + 1) * self.each) } else { self.end(block, i) }
    }

    /// The extent of the i-th piece, from the beginning of the first.
    #[inline(always)]
    fn extent(&self, block: &[u8], i: usize) -> Option<Range<u64>> {
        if self.width == 0 {
            return Some(i as u64 * self.each..(i as u64 + 1) * self.each);
        }
        let start = if i == 0 { 0 } else { self.end(block, i - 1)? };
        let end = self.end(block, i)?;
        (start <= end).then_some(start..end)
    }
}

/// The offsets in a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) first_value: u64,
    /// Bytes of the block.
    pub(super) bytes: usize,
    pub(super) count: usize,
    value_ends: Ends,
    key_ends: Ends,
    /// The offset of the kinds; 0 if there are none.
    kinds_at: usize,
    prefix_at: usize,
    suffixes_at: usize,
}

/// The length of the block that has this head, in bytes.
pub(super) fn length(head: &[u8; HEAD]) -> usize {
    u32_at(head, 8) as usize
}

impl Layout {
    /// The layout of a block, which is exactly these bytes; or the flaw in it.
    pub(super) fn read(block: &[u8], has_wrapped: bool) -> Result<Layout, &'static str> {
        const DAMAGED: &str = "a key block whose columns do not fit it";
        let head = block.first_chunk::<HEAD>().ok_or(DAMAGED)?;
        let [count, flags, key_width, value_width] = [head[20], head[21], head[22], head[23]];
        if flags & SEQUENCES != 0 {
            return Err("a key block with sequence numbers, made by a newer version of this library");
        }
        if flags & !KINDS != 0 {
            return Err("a key block with unknown columns, made by a newer version of this library");
        }
        let widths = matches!(key_width, 0 | 1 | 2 | 4) && matches!(value_width, 0 | 1 | 2 | 4 | 8);
        let count = usize::from(count);
        if length(head) != block.len() || count == 0 || count > BLOCK_KEYS as usize || !widths {
            return Err(DAMAGED);
        }
        let short = |at: usize| u64::from(u16::from_le_bytes([head[at], head[at + 1]]));
        let value_ends = Ends { at: HEAD, width: value_width, each: u64::from(u32_at(head, 16)) };
        let values_end = HEAD + count * usize::from(value_width);
        let key_ends_at = values_end.next_multiple_of(usize::from(key_width).max(1));
        let key_ends = Ends { at: key_ends_at, width: key_width, each: short(12) };
        let keys_end = key_ends_at + count * usize::from(key_width);
        let kinds = if flags & KINDS != 0 { count } else { 0 };
        let prefix_at = keys_end + kinds;
        let suffixes_at = prefix_at + short(14) as usize;
        let suffixes = key_ends.extent(block, count - 1).ok_or(DAMAGED)?.end;
        if (suffixes_at as u64).checked_add(suffixes) != Some(block.len() as u64) {
            return Err(DAMAGED);
        }
        let most = if has_wrapped { Kind::Wrapped } else { Kind::Tombstone };
        if block[keys_end..prefix_at].iter().any(|&kind| kind > most as u8) {
            return Err("an entry of a kind that only a newer version of this library knows");
        }
        Ok(Layout {
            first_value: u64_at(head, 0),
            bytes: block.len(),
            count,
            value_ends,
            key_ends,
            kinds_at: if kinds == 0 { 0 } else { keys_end },
            prefix_at,
            suffixes_at,
        })
    }
}

impl Layout {
    /// The extent of the i-th value, if all are of one size. What [`Block::value`] returns, without the bytes.
    #[inline(always)]
    pub(super) fn value_of_one_size(&self, i: u32) -> Option<Range<u64>> {
        if self.value_ends.width != 0 || i as usize >= self.count {
            return None;
        }
        let start = self.first_value.checked_add(u64::from(i) * self.value_ends.each)?;
        Some(start..start.checked_add(self.value_ends.each)?)
    }

    /// Where the i-th suffix is in the block, if all are of one size.
    #[inline(always)]
    pub(super) fn suffix_of_one_size(&self, i: u32) -> Option<Range<usize>> {
        if self.key_ends.width != 0 || i as usize >= self.count {
            return None;
        }
        let each = self.key_ends.each as usize;
        let start = self.suffixes_at + i as usize * each;
        Some(start..start + each)
    }

    /// The same for keys and values from the i-th on, as far as the block has them.
    #[inline]
    pub(super) fn of_one_size(&self, i: u32) -> Option<OfOneSize> {
        let left = self.count.checked_sub(i as usize)?;
        let (suffix, value) = (self.suffix_of_one_size(i)?, self.value_of_one_size(i)?);
        let suffix_bytes = suffix.end - suffix.start;
        let value_bytes = usize::try_from(value.end - value.start).ok()?;
        (suffix_bytes > 0 && value_bytes > 0).then_some(OfOneSize {
            left,
            suffix: suffix.start,
            suffix_bytes,
            value: value.start,
            value_bytes,
        })
    }
}

/// Keys and values of one size each, and neither of none, from one of a block on.
pub(super) struct OfOneSize {
    /// Number of keys.
    pub(super) left: usize,
    /// Where the first suffix is in the block.
    pub(super) suffix: usize,
    pub(super) suffix_bytes: usize,
    /// Where the first value is in the table.
    pub(super) value: u64,
    pub(super) value_bytes: usize,
}

/// A block for reading. `layout` is that of `bytes`.
#[derive(Clone, Copy)]
pub(super) struct Block<'b> {
    pub(super) layout: &'b Layout,
    pub(super) bytes: &'b [u8],
}

impl<'b> Block<'b> {
    #[inline]
    fn prefix(&self) -> &'b [u8] {
        &self.bytes[self.layout.prefix_at..self.layout.suffixes_at]
    }

    #[inline(always)]
    fn suffix(&self, i: usize) -> Option<&'b [u8]> {
        let extent = self.layout.key_ends.extent(self.bytes, i)?;
        self.bytes[self.layout.suffixes_at..].get(extent.start as usize..extent.end as usize)
    }

    /// The i-th key, in two pieces.
    #[inline(always)]
    pub(super) fn key(&self, i: usize) -> Option<(&'b [u8], &'b [u8])> {
        Some((self.prefix(), self.suffix(i)?))
    }

    /// Bytes of the prefix.
    #[inline]
    pub(super) fn prefix_len(&self) -> usize {
        self.layout.suffixes_at - self.layout.prefix_at
    }

    /// The suffixes, and the extents of the values in the logical bytes of the table, from the i-th on, as far as they
    /// fit. Each end is looked up once.
    #[inline(always)]
    pub(super) fn pairs(self, i: u32) -> impl Iterator<Item = (&'b [u8], Range<u64>)> {
        let Layout { count, first_value, suffixes_at, key_ends, value_ends, .. } = *self.layout;
        let (i, suffixes) = (i as usize, &self.bytes[suffixes_at..]);
        let start = |ends: Ends| ends.extent(self.bytes, i).map(|extent| extent.start);
        let starts = start(key_ends).zip(start(value_ends).and_then(|start| first_value.checked_add(start)));
        (i..if starts.is_some() { count } else { i }).scan(starts.unwrap_or_default(), move |starts, i| {
            let end = key_ends.end_of(self.bytes, i)?;
            let value_end = first_value.checked_add(value_ends.end_of(self.bytes, i)?)?;
            let (start, value_start) = std::mem::replace(starts, (end, value_end));
            let suffix = suffixes.get(start as usize..end as usize)?;
            (value_start <= value_end).then_some((suffix, value_start..value_end))
        })
    }

    #[inline]
    pub(super) fn kind(&self, i: usize) -> Kind {
        match self.layout.kinds_at {
            0 => Kind::Value,
            at => match self.bytes[at + i] {
                0 => Kind::Value,
                1 => Kind::Tombstone,
                _ => Kind::Wrapped,
            },
        }
    }

    /// The extent of the i-th value in the logical bytes of the table.
    #[inline(always)]
    pub(super) fn value(&self, i: usize) -> Option<Range<u64>> {
        let extent = self.layout.value_ends.extent(self.bytes, i)?;
        let first = self.layout.first_value;
        Some(first.checked_add(extent.start)?..first.checked_add(extent.end)?)
    }

    /// Compares the i-th key with `key`.
    #[inline]
    pub(super) fn compare(&self, i: usize, key: &[u8]) -> Option<Ordering> {
        let (prefix, suffix) = self.key(i)?;
        Some(match key.split_at_checked(prefix.len()) {
            Some((head, rest)) => prefix.cmp(head).then_with(|| suffix.cmp(rest)),
            // The prefix is the longer one, so they are never equal.
            None => prefix.cmp(key),
        })
    }

    /// The number of suffixes whose heads are less than `target`, for ends of `WIDTH` bytes; 0 means that all
    /// are of one size.
    ///
    /// Each eighth head is compared, then those between: two steps of independent loads, while every step of a
    /// bisection waits for memory.
    fn count_less<const WIDTH: usize>(&self, target: u64) -> usize {
        let Layout { count, key_ends, suffixes_at, .. } = *self.layout;
        let (suffixes, ends) = (&self.bytes[suffixes_at..], &self.bytes[key_ends.at..]);
        let each = key_ends.each as usize;
        let end = |i: usize| {
            if WIDTH == 0 {
                return i * each;
            }
            let stored = i.checked_sub(1).and_then(|i| ends.get(i * WIDTH..(i + 1) * WIDTH));
            let mut end = [0; 4];
            stored.inspect(|stored| end[..WIDTH].copy_from_slice(stored));
            u32::from_le_bytes(end) as usize
        };
        let is_less = |i: usize| usize::from(head_between(suffixes, end(i), end(i + 1)) < target);
        let groups: usize = (0..count).step_by(GROUP).map(is_less).sum();
        let Some(first) = groups.checked_sub(1).map(|group| group * GROUP) else { return 0 };
        first + (first..count.min(first + GROUP)).map(is_less).sum::<usize>()
    }

    /// The position of the first key that is not less than this one (`count` if there is none), and whether
    /// it is equal.
    ///
    /// Heads are compared. Whole keys are compared only if heads are equal.
    pub(super) fn search(&self, key: &[u8]) -> Option<(usize, bool)> {
        let count = self.layout.count;
        let prefix = self.prefix();
        let Some(rest) = key.strip_prefix(prefix) else {
            return Some((if key < prefix { 0 } else { count }, false));
        };
        let target = head_of(rest);
        let first = match self.layout.key_ends.width {
            0 => self.count_less::<0>(target),
            1 => self.count_less::<1>(target),
            2 => self.count_less::<2>(target),
            _ => self.count_less::<4>(target),
        };
        let same = |&i: &usize| self.suffix(i).is_some_and(|suffix| head_of(suffix) == target);
        let equal = (first..count).take_while(same).count();
        let (mut from, mut to) = (first, first + equal);
        while from < to {
            let mid = usize::midpoint(from, to);
            match self.suffix(mid)?.cmp(rest) {
                Ordering::Less => from = mid + 1,
                Ordering::Equal => return Some((mid, true)),
                Ordering::Greater => to = mid,
            }
        }
        Some((from, false))
    }
}
