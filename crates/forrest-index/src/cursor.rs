//! [`Cursor`]: a position in a tree that moves both ways and owns its pairs.
//!
//! A cursor reads ahead: it copies a run of pairs, few at first and more as it goes on in one direction. Between calls
//! it holds no pin and no reference into the tree.

use crate::leaf::found::Found;
use crate::options::Direction;
use crate::tree::Reader;
use crate::value::Value;
use std::cell::Cell;
use std::ops::{Bound, ControlFlow, Range};

const RUN_FIRST: usize = 4;
const RUN_MAX: usize = 512;
/// A run ends early where it holds more, in bytes.
const RUN_BYTES_MAX: usize = 64 << 10;

enum Held {
    Inline(Range<usize>),
    Shared(Value),
}

struct Pair {
    key: Range<usize>,
    value: Held,
}

/// Adds a pair with a shared value, which may have a stamp. Apart from its caller, whose loop it would make longer.
#[inline(never)]
fn hold(
    pairs: &mut Vec<Pair>,
    stamps: &mut Vec<(usize, u64)>,
    key: Range<usize>,
    value: Found<'_>,
    keys_only: bool,
) {
    if value.stamp() != 0 {
        stamps.push((pairs.len(), value.stamp()));
    }
    let value = if keys_only { Held::Inline(key.end..key.end) } else { Held::Shared(value.to_value()) };
    pairs.push(Pair { key, value });
}

/// A position in a tree, or at no entry. It shows concurrent changes as [`Reader::scan`] does. It reads pairs ahead, so
/// it may miss a change just ahead of its position.
pub struct Cursor {
    reader: Reader,
    bytes: Vec<u8>,
    /// The run, in the direction in which it was read.
    pairs: Vec<Pair>,
    /// The stamps of its values that have one, with their positions.
    stamps: Vec<(usize, u64)>,
    direction: Direction,
    /// The position in the run; past its end, the cursor is at no entry.
    at: usize,
    run_len: usize,
    /// The length of the first run of a jump.
    run_first: usize,
    keys_only: bool,
}

/// Buffers of a cursor that was dropped, for the next one of the thread: most cursors serve one short scan.
#[derive(Default)]
struct Spare {
    bytes: Vec<u8>,
    pairs: Vec<Pair>,
}

/// Larger buffers are not kept.
const SPARE_BYTES: usize = 4 << 10;
const SPARE_PAIRS: usize = 64;

thread_local! {
    static SPARE: Cell<Spare> = const { Cell::new(Spare { bytes: Vec::new(), pairs: Vec::new() }) };
}

impl Drop for Cursor {
    fn drop(&mut self) {
        if self.bytes.capacity() <= SPARE_BYTES && self.pairs.capacity() <= SPARE_PAIRS {
            self.pairs.clear();
            let (bytes, pairs) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.pairs));
            let _ = SPARE.try_with(|spare| spare.set(Spare { bytes, pairs }));
        }
    }
}

impl Reader {
    /// A cursor, at no entry yet.
    pub fn cursor(&self) -> Cursor {
        self.cursor_reading(RUN_FIRST)
    }

    /// A cursor that reads `pairs` pairs (at least one) after each jump. Choose few if steps rarely follow a jump.
    pub fn cursor_reading(&self, pairs: usize) -> Cursor {
        let run_first = pairs.clamp(1, RUN_MAX);
        let Spare { bytes, pairs } = SPARE.try_with(Cell::take).unwrap_or_default();
        Cursor {
            reader: self.clone(),
            bytes,
            pairs,
            stamps: Vec::new(),
            direction: Direction::Forward,
            at: 0,
            run_len: RUN_FIRST,
            run_first,
            keys_only: false,
        }
    }
}

impl Cursor {
    /// From the next move that reads on, it copies no values: they are empty.
    pub fn keys_only(&mut self) {
        self.keys_only = true;
    }

    fn read(&mut self, lower: Bound<&[u8]>, upper: Bound<&[u8]>, direction: Direction) -> bool {
        let Cursor { reader, bytes, pairs, stamps, run_len, keys_only, .. } = self;
        bytes.clear();
        pairs.clear();
        stamps.clear();
        pairs.reserve(*run_len);
        reader.scan(lower, upper, direction, |key, value| {
            let start = bytes.len();
            if start == 0 {
                // The others may be as long as the first.
                bytes.reserve(((key.len() + value.len()) * *run_len).min(RUN_BYTES_MAX));
            }
            bytes.extend_from_slice(key);
            let key = start..bytes.len();
            if value.is_shared() {
                hold(pairs, stamps, key, value, *keys_only);
            } else {
                if !*keys_only {
                    bytes.extend_from_slice(&value);
                }
                let value = Held::Inline(key.end..bytes.len());
                pairs.push(Pair { key, value });
            }
            if pairs.len() == *run_len || bytes.len() > RUN_BYTES_MAX {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        self.at = 0;
        self.direction = direction;
        !self.pairs.is_empty()
    }

    fn jump(&mut self, lower: Bound<&[u8]>, upper: Bound<&[u8]>, direction: Direction) -> bool {
        self.run_len = self.run_first;
        self.read(lower, upper, direction)
    }

    fn step(&mut self, direction: Direction) -> bool {
        if self.at >= self.pairs.len() {
            return false;
        }
        if direction == self.direction {
            if self.at + 1 < self.pairs.len() {
                self.at += 1;
                return true;
            }
            self.run_len = (self.run_len * 4).clamp(RUN_FIRST, RUN_MAX);
        } else {
            if self.at > 0 {
                self.at -= 1;
                return true;
            }
            self.run_len = self.run_first;
        }
        let key = self.bytes[self.pairs[self.at].key.clone()].to_vec();
        match direction {
            Direction::Forward => self.read(Bound::Excluded(&key), Bound::Unbounded, direction),
            Direction::Backward => self.read(Bound::Unbounded, Bound::Excluded(&key), direction),
        }
    }

    /// Moves to the first key at or after `key`; false, and at no entry, if there is none.
    pub fn seek(&mut self, key: &[u8]) -> bool {
        self.jump(Bound::Included(key), Bound::Unbounded, Direction::Forward)
    }

    /// Moves to the last key at or before `key`; false, and at no entry, if there is none.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> bool {
        self.jump(Bound::Unbounded, Bound::Included(key), Direction::Backward)
    }

    /// Moves to the first key; false, and at no entry, if the tree is empty.
    pub fn first(&mut self) -> bool {
        self.jump(Bound::Unbounded, Bound::Unbounded, Direction::Forward)
    }

    /// Moves to the last key; false, and at no entry, if the tree is empty.
    pub fn last(&mut self) -> bool {
        self.jump(Bound::Unbounded, Bound::Unbounded, Direction::Backward)
    }

    /// Moves to the next key; false, and at no entry, if there is none, or at no entry before.
    #[expect(clippy::should_implement_trait, reason = "a cursor moves both ways, an iterator does not")]
    pub fn next(&mut self) -> bool {
        self.step(Direction::Forward)
    }

    /// Moves to the previous key; false, and at no entry, if there is none, or at no entry before.
    pub fn prev(&mut self) -> bool {
        self.step(Direction::Backward)
    }

    /// The key at the cursor; `None` at no entry.
    pub fn key(&self) -> Option<&[u8]> {
        self.pairs.get(self.at).map(|pair| &self.bytes[pair.key.clone()])
    }

    /// The value at the cursor, without a copy; `None` at no entry.
    pub fn value_bytes(&self) -> Option<&[u8]> {
        self.pairs.get(self.at).map(|pair| match &pair.value {
            Held::Inline(range) => &self.bytes[range.clone()],
            Held::Shared(value) => value,
        })
    }

    /// The value at the cursor; `None` at no entry.
    pub fn value(&self) -> Option<Value> {
        self.pairs.get(self.at).map(|pair| match &pair.value {
            Held::Inline(range) => Value::from(&self.bytes[range.clone()]),
            Held::Shared(value) => value.clone(),
        })
    }

    /// The stamp of the value at the cursor, see [`Found::stamp`](crate::Found::stamp); 0 at no entry.
    #[inline]
    pub fn stamp(&self) -> u64 {
        if self.stamps.is_empty() { 0 } else { self.find_stamp() }
    }

    #[cold]
    fn find_stamp(&self) -> u64 {
        self.stamps.binary_search_by_key(&self.at, |(at, _)| *at).map_or(0, |found| self.stamps[found].1)
    }
}
