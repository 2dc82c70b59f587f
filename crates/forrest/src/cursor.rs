//! [`Range`] and [`Cursor`]: two ways through the order of keys.
//!
//! Both own what they need, so that they can outlive the handle they came from and move between threads,
//! and neither holds anything of the store between two calls that another thread could wait for.

use crate::engine;
use forrest_engine::op::check_key;
use forrest_engine::{Chunk, Cursor as _, Direction, Filled, Goto, Result, Value, View as _};
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Bound;
use std::sync::Arc;

/// Most pairs of a refill.
const CHUNK_PAIRS_MAX: usize = 1024;

/// The pairs of a range in the order of their keys, from both ends.
///
/// What an iteration sees, on a view of the newest state: a key that is there throughout is seen exactly
/// once, in order; a key that comes or goes meanwhile may be seen or not; each pair was in the store at
/// some moment between the first call and the one that returned it. The two ends never cross, and no
/// key is seen from both. On a snapshot, an iteration sees its state.
///
/// Pairs are fetched in chunks, of up to 1,024 pairs or 256 KiB. After an error the iteration goes on
/// where it was, so it may be tried again. A range that is kept open for long holds no files that the store has
/// replaced since, unless it is one of a snapshot.
///
/// ```
/// use forrest::Db;
///
/// let db = Db::open("memory:")?;
/// db.set("ash", "1")?;
/// db.set("oak", "2")?;
/// let range = db.range(..);
/// drop(db); // the range owns what it needs
/// for entry in range.rev() {
///     let entry = entry?;
///     println!("{} {}", entry.key().escape_ascii(), entry.value()?.escape_ascii());
/// }
/// # Ok::<(), forrest::Error>(())
/// ```
pub struct Range {
    view: engine::View,
    /// What has not been fetched from either end.
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    /// True if there is nothing between `lower` and `upper` any more.
    exhausted: bool,
    /// Ascending pairs below `lower`.
    front: Fetched,
    /// Descending pairs above `upper`.
    back: Fetched,
}

/// A chunk and the part of it that has not been returned.
struct Fetched {
    /// `None` before the first refill.
    chunk: Option<Arc<Chunk>>,
    from: usize,
    to: usize,
    /// Pairs of the next refill, and how many times more each further one brings.
    pairs: usize,
    growth: usize,
    resume: engine::Resume,
}

impl Fetched {
    fn new((pairs, growth): (usize, usize)) -> Fetched {
        Fetched { chunk: None, from: 0, to: 0, pairs, growth, resume: engine::Resume::default() }
    }

    /// The pair that was fetched first.
    #[inline]
    fn pop_first(&mut self) -> Option<Entry> {
        if self.from == self.to {
            return None;
        }
        self.from += 1;
        Some(Entry { chunk: self.chunk.clone()?, at: self.from - 1 })
    }

    /// The pair that was fetched last.
    fn pop_last(&mut self) -> Option<Entry> {
        if self.from == self.to {
            return None;
        }
        self.to -= 1;
        Some(Entry { chunk: self.chunk.clone()?, at: self.to })
    }

    /// Fetches more of a range.
    fn refill(
        &mut self,
        view: &engine::View,
        lower: &Bound<Vec<u8>>,
        upper: &Bound<Vec<u8>>,
        direction: Direction,
    ) -> Result<Filled> {
        (self.from, self.to) = (0, 0);
        // Entries that are still held keep the old chunk; otherwise its memory is used again.
        let mut chunk = self.chunk.take().unwrap_or_default();
        if Arc::get_mut(&mut chunk).is_none() {
            chunk = Arc::default();
        }
        let filling = Arc::get_mut(&mut chunk).expect("nobody else has it");
        filling.clear(self.pairs);
        let (lower, upper) = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
        let filled = view.fill(filling, &mut self.resume, (lower, upper), direction, self.pairs)?;
        self.to = chunk.len();
        self.pairs = (self.pairs * self.growth).min(CHUNK_PAIRS_MAX);
        self.chunk = Some(chunk);
        Ok(filled)
    }

    /// Makes the end of what was fetched the beginning of what was not.
    fn move_bound(&self, bound: &mut Bound<Vec<u8>>) {
        let Some(chunk) = self.chunk.as_ref().filter(|chunk| !chunk.is_empty()) else { return };
        let mut key = match std::mem::replace(bound, Bound::Unbounded) {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => Vec::new(),
        };
        key.clear();
        key.extend_from_slice(chunk.key(chunk.len() - 1));
        *bound = Bound::Excluded(key);
    }
}

impl Range {
    pub(crate) fn new(view: engine::View, lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) -> Range {
        let pairs = view.refills();
        let (front, back) = (Fetched::new(pairs), Fetched::new(pairs));
        Range { view, lower, upper, exhausted: false, front, back }
    }
}

impl Range {
    /// The same, fetching so many pairs first: for who knows how many are needed.
    pub(crate) fn fetching(mut self, pairs: usize) -> Range {
        (self.front.pairs, self.back.pairs) = (pairs, pairs);
        self
    }

    #[cold]
    fn next_refilled(&mut self) -> Option<Result<Entry>> {
        while !self.exhausted {
            match self.front.refill(&self.view, &self.lower, &self.upper, Direction::Forward) {
                Ok(Filled::More) => self.front.move_bound(&mut self.lower),
                Ok(Filled::End) => self.exhausted = true,
                Err(error) => return Some(Err(error)),
            }
            if let Some(entry) = self.front.pop_first() {
                return Some(Ok(entry));
            }
        }
        // What is left was fetched from the other end.
        self.back.pop_last().map(Ok)
    }

    #[cold]
    fn next_back_refilled(&mut self) -> Option<Result<Entry>> {
        while !self.exhausted {
            match self.back.refill(&self.view, &self.lower, &self.upper, Direction::Backward) {
                Ok(Filled::More) => self.back.move_bound(&mut self.upper),
                Ok(Filled::End) => self.exhausted = true,
                Err(error) => return Some(Err(error)),
            }
            if let Some(entry) = self.back.pop_first() {
                return Some(Ok(entry));
            }
        }
        self.front.pop_last().map(Ok)
    }
}

impl Iterator for Range {
    type Item = Result<Entry>;

    #[inline]
    fn next(&mut self) -> Option<Result<Entry>> {
        match self.front.pop_first() {
            Some(entry) => Some(Ok(entry)),
            None => self.next_refilled(),
        }
    }
}

impl DoubleEndedIterator for Range {
    #[inline]
    fn next_back(&mut self) -> Option<Result<Entry>> {
        match self.back.pop_first() {
            Some(entry) => Some(Ok(entry)),
            None => self.next_back_refilled(),
        }
    }
}

impl FusedIterator for Range {}

impl fmt::Debug for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Range")
            .field("lower", &self.lower)
            .field("upper", &self.upper)
            .finish_non_exhaustive()
    }
}

/// A pair that an iteration found. It shares the memory of the pairs that were fetched with it; to keep
/// one for long, copy its key and value out.
///
/// ```
/// # let db = forrest::Db::open("memory:")?;
/// db.set("oak", "Quercus robur")?;
/// let entry = db.range("a"..).next().unwrap()?;
/// assert_eq!(entry.key(), b"oak");
/// assert_eq!(entry.value()?, "Quercus robur");
/// assert_eq!(entry.value_bytes()?.len(), 13);
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Clone)]
pub struct Entry {
    chunk: Arc<Chunk>,
    at: usize,
}

impl Entry {
    /// The key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.chunk.key(self.at)
    }

    /// The value, made or loaded when asked for; it may be kept as long as you like.
    ///
    /// # Errors
    /// None with `memory:`. A home that loads values later than keys answers `Io` or `Corrupt`.
    #[inline]
    pub fn value(&self) -> Result<Value> {
        Ok(self.chunk.value(self.at))
    }

    /// The value's bytes where they are, without making a [`Value`] of them.
    ///
    /// # Errors
    /// As [`value`](Entry::value).
    #[inline]
    pub fn value_bytes(&self) -> Result<&[u8]> {
        Ok(self.chunk.value_bytes(self.at))
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entry(b\"{}\")", self.key().escape_ascii())
    }
}

/// A position that moves both ways: at a pair, whose key and value it owns, or at none.
///
/// What it sees of changes made meanwhile is what a [`Range`] sees, beginning at the last jump
/// ([`first`](Cursor::first), [`last`](Cursor::last), [`seek`](Cursor::seek),
/// [`seek_for_prev`](Cursor::seek_for_prev)); a jump finds what is there when it is made. Pairs are read
/// some way ahead: to see a change that was just made near the cursor, jump.
///
/// Moves fail with `Limit` if a key is too long and, on a newest state, with `InvalidArgument` once the
/// keyspace has been dropped.
///
/// ```
/// # let db = forrest::Db::open("memory:")?;
/// for year in [1962_u32, 1975, 1994] {
///     db.set(year.to_be_bytes(), "")?;
/// }
/// let mut cursor = db.cursor();
/// assert!(cursor.seek_for_prev(1980_u32.to_be_bytes())?);
/// assert_eq!(cursor.key(), Some(&1975_u32.to_be_bytes()[..]));
/// assert!(cursor.next()?);
/// assert!(!cursor.next()?); // past the last pair: at none
/// assert_eq!(cursor.key(), None);
/// # Ok::<(), forrest::Error>(())
/// ```
pub struct Cursor(engine::Cursor);

impl Cursor {
    pub(crate) fn new(cursor: engine::Cursor) -> Cursor {
        Cursor(cursor)
    }

    /// Moves to the first key at or after `key`; false, and at no pair, if there is none.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        check_key(key.as_ref())?;
        self.0.goto(Goto::Seek(key.as_ref()))
    }

    /// Moves to the last key at or before `key`; false, and at no pair, if there is none.
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        check_key(key.as_ref())?;
        self.0.goto(Goto::SeekForPrev(key.as_ref()))
    }

    /// Moves to the first key; false if there are none.
    pub fn first(&mut self) -> Result<bool> {
        self.0.goto(Goto::First)
    }

    /// Moves to the last key; false if there are none.
    pub fn last(&mut self) -> Result<bool> {
        self.0.goto(Goto::Last)
    }

    /// Moves to the next key; false, and at no pair, if there is none. At no pair it stays there.
    #[expect(clippy::should_implement_trait, reason = "a cursor moves both ways, an iterator does not")]
    pub fn next(&mut self) -> Result<bool> {
        self.0.goto(Goto::Skip(1))
    }

    /// Moves `count` pairs forward, as so many calls of [`next`](Cursor::next) do, but reads no values on the way;
    /// false, and at no pair, if there are fewer.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// # for number in 0..100_u8 {
    /// #     db.set([number], "")?;
    /// # }
    /// let mut cursor = db.cursor();
    /// cursor.first()?;
    /// assert!(cursor.skip(40)?);
    /// assert_eq!(cursor.key(), Some(&[40][..]));
    /// assert!(!cursor.skip(60)?);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn skip(&mut self, count: u64) -> Result<bool> {
        self.0.goto(Goto::Skip(count))
    }

    /// Gives back what the cursor keeps beside its pair: on disk, the state that it found, with memory and files that
    /// may have been replaced since. It stays where it is; the next move looks for its place anew.
    ///
    /// A cursor that is not parked holds up nobody, neither writers nor work in the background. This is for cursors
    /// that are kept for long between moves.
    pub fn park(&mut self) {
        self.0.park();
    }

    /// Moves to the previous key; false, and at no pair, if there is none. At no pair it stays there.
    pub fn prev(&mut self) -> Result<bool> {
        self.0.goto(Goto::Prev)
    }

    /// The key where the cursor stands.
    pub fn key(&self) -> Option<&[u8]> {
        self.0.key()
    }

    /// The value where the cursor stands.
    ///
    /// # Errors
    /// None with `memory:`. A home that loads values later than keys answers `Io` or `Corrupt`.
    pub fn value(&self) -> Result<Option<Value>> {
        Ok(self.0.value())
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("key", &self.key().map(|key| key.escape_ascii().to_string())).finish()
    }
}
