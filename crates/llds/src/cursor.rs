//! [`Cursor`]: a position in a kernel store, with some neighbouring pairs that were fetched together.

use crate::raw::abi;
use crate::store::Store;
use forrest_engine::chunk::COPIED_VALUE_BYTES;
use forrest_engine::{Chunk, Direction, Filled, Goto, Result, Value};
use std::ops::Bound;

/// Pairs that a jump fetches: few steps follow most jumps.
const PAIRS_FIRST: usize = 8;
/// Growth of a fetch each time that the cursor goes on in the same direction.
const GROWTH: usize = 4;
/// Maximum number of pairs in a fetch.
const PAIRS_MAX: usize = 512;

/// A position: at a pair, or at none.
pub struct Cursor {
    store: Store,
    /// Neighbouring pairs, as they were at one moment, in the order of `direction`.
    chunk: Chunk,
    /// The current pair in the chunk; `None` is no pair.
    at: Option<usize>,
    direction: Direction,
    /// Whether no pair followed the chunk in that direction.
    is_end: bool,
    /// The number of pairs in the next fetch.
    pairs: usize,
    /// A fetch fills this chunk and then swaps it in, so that an error leaves the cursor where it was.
    spare: Chunk,
}

impl Cursor {
    pub(crate) fn new(store: Store) -> Cursor {
        Cursor {
            store,
            chunk: Chunk::default(),
            at: None,
            direction: Direction::Forward,
            is_end: false,
            pairs: PAIRS_FIRST,
            spare: Chunk::default(),
        }
    }

    /// Goes to the first pair of a range.
    fn jump(&mut self, bounds: (Bound<&[u8]>, Bound<&[u8]>), direction: Direction) -> Result<bool> {
        self.fetch(bounds, direction, PAIRS_FIRST)
    }

    /// Goes to the next pair; from none it goes nowhere.
    fn step(&mut self, direction: Direction) -> Result<bool> {
        let Some(at) = self.at else { return Ok(false) };
        let goes_on = direction == self.direction;
        let next = if goes_on { at.checked_add(1) } else { at.checked_sub(1) };
        if let Some(next) = next.filter(|next| *next < self.chunk.len()) {
            self.at = Some(next);
            return Ok(true);
        }
        if goes_on && self.is_end {
            self.at = None;
            return Ok(false);
        }
        let key = self.chunk.key(at).to_vec();
        debug_assert!(key.len() <= abi::KEY_BYTES_MAX);
        let here = Bound::Excluded(&key[..]);
        let bounds = match direction {
            Direction::Forward => (here, Bound::Unbounded),
            Direction::Backward => (Bound::Unbounded, here),
        };
        let pairs = if goes_on { self.pairs } else { PAIRS_FIRST };
        self.fetch(bounds, direction, pairs)
    }

    /// Fetches the pairs at an end of a range, and goes to the first of them.
    fn fetch(
        &mut self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        pairs: usize,
    ) -> Result<bool> {
        self.spare.clear(pairs);
        let filled = self.store.fill(&mut self.spare, bounds, direction)?;
        std::mem::swap(&mut self.chunk, &mut self.spare);
        self.at = (!self.chunk.is_empty()).then_some(0);
        self.direction = direction;
        self.is_end = matches!(filled, Filled::End);
        self.pairs = (pairs * GROWTH).min(PAIRS_MAX);
        Ok(self.at.is_some())
    }
}

impl forrest_engine::Cursor for Cursor {
    fn goto(&mut self, goto: Goto<'_>) -> Result<bool> {
        use Bound::{Included, Unbounded};
        match goto {
            Goto::First => self.jump((Unbounded, Unbounded), Direction::Forward),
            Goto::Last => self.jump((Unbounded, Unbounded), Direction::Backward),
            Goto::Seek(key) => self.jump((Included(key), Unbounded), Direction::Forward),
            Goto::SeekForPrev(key) => self.jump((Unbounded, Included(key)), Direction::Backward),
            Goto::Skip(count) => {
                for _ in 0..count {
                    if !self.step(Direction::Forward)? {
                        return Ok(false);
                    }
                }
                Ok(self.at.is_some())
            }
            Goto::Prev => self.step(Direction::Backward),
        }
    }

    fn keys_only(&mut self) {
        self.chunk.set_keys_only();
        self.spare.set_keys_only();
    }

    fn key(&self) -> Option<&[u8]> {
        self.at.map(|at| self.chunk.key(at))
    }

    fn value(&self) -> Option<Value> {
        self.at.map(|at| self.chunk.value(at))
    }

    fn park(&mut self) {
        let keys_only = self.chunk.is_keys_only();
        let empty = || {
            let mut chunk = Chunk::default();
            if keys_only {
                chunk.set_keys_only();
            }
            chunk
        };
        self.spare = empty();
        let mut chunk = empty();
        let Some(at) = self.at else {
            self.chunk = chunk;
            return;
        };
        chunk.clear(1);
        let (key, value) = (self.chunk.key(at), self.chunk.value(at));
        if value.len() <= COPIED_VALUE_BYTES {
            chunk.push_copied(key, &value);
        } else {
            chunk.push_shared(key, value);
        }
        (self.chunk, self.at) = (chunk, Some(0));
        (self.is_end, self.pairs) = (false, PAIRS_FIRST);
    }
}
