//! [`Range`], [`Keys`] and [`Cursor`]: iteration and navigation in key order.
//!
//! Both own what they need, so they can outlive the handle that they came from and move between threads.
//! Between two calls neither holds anything that another thread could wait for.

use crate::engine;
use forrest_engine::{
    Chunk, Cursor as _, Direction, Error, Filled, Goto, MAX_KEY_BYTES, Result, Value, View as _,
};
use std::fmt;
use std::iter::FusedIterator;
use std::ops::{Bound, Deref};
use std::sync::Arc;

/// Maximum number of pairs of a refill.
const CHUNK_PAIRS_MAX: usize = 1024;

/// An iterator over the pairs of a range in the order of their keys, from both ends.
///
/// On a view of the newest state, an iteration sees a key that exists throughout exactly once, in order. It
/// may or may not see a key that is added or removed meanwhile. Each pair was in the store at some moment
/// between the first call and the call that returned it. The two ends never cross, and no key is returned
/// from both. On a snapshot, an iteration sees the snapshot's state.
///
/// Pairs are fetched in chunks of up to 1,024 pairs or 256 KiB. After an error the iteration keeps its place,
/// so the call may be repeated. A range that stays open for long keeps no files that the store has since
/// replaced, unless it reads a snapshot.
///
/// A range owns what it needs and is `Send`: it may be stored, moved to another thread, and held across an `await`.
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
    /// Bounds of the part that has not been fetched from either end.
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    /// True if everything between `lower` and `upper` has been fetched.
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
    /// Number of pairs after the next refill, and the factor by which it grows with each refill, see [`round`].
    goal: usize,
    growth: usize,
    /// Number of pairs that refills were made for so far.
    pairs: usize,
    resume: engine::Resume,
    keys_only: bool,
}

/// The least round number (1, 2, 5, 10, 20, 50, and so on) that is not less. Most programs that take a limited number
/// of pairs take a round number, and for those nothing is fetched in vain.
fn round(number: usize) -> usize {
    let mut unit: usize = 1;
    while unit.saturating_mul(5) < number {
        unit = unit.saturating_mul(10);
    }
    [1, 2, 5]
        .map(|digit| unit.saturating_mul(digit))
        .into_iter()
        .find(|&round| round >= number)
        .unwrap_or(usize::MAX)
}

impl Fetched {
    fn new((goal, growth): (usize, usize)) -> Fetched {
        let resume = engine::Resume::default();
        Fetched { chunk: None, from: 0, to: 0, goal, growth, pairs: 0, resume, keys_only: false }
    }

    /// Takes the pair that was fetched first.
    #[inline]
    fn pop_first(&mut self) -> Option<Entry> {
        if self.from == self.to {
            return None;
        }
        self.from += 1;
        Some(Entry { chunk: self.chunk.clone()?, at: self.from - 1 })
    }

    /// Takes the pair that was fetched last.
    fn pop_last(&mut self) -> Option<Entry> {
        if self.from == self.to {
            return None;
        }
        self.to -= 1;
        Some(Entry { chunk: self.chunk.clone()?, at: self.to })
    }

    /// Fetches the next chunk of a range.
    fn refill(
        &mut self,
        view: &engine::View,
        lower: &Bound<Vec<u8>>,
        upper: &Bound<Vec<u8>>,
        direction: Direction,
    ) -> Result<Filled> {
        (self.from, self.to) = (0, 0);
        // If entries still refer to the old chunk, take a new one; otherwise reuse its memory.
        let mut chunk = self.chunk.take().unwrap_or_default();
        if Arc::get_mut(&mut chunk).is_none() {
            chunk = Arc::default();
        }
        let filling = Arc::get_mut(&mut chunk).expect("nobody else has it");
        let pairs = self.goal.saturating_sub(self.pairs).clamp(1, CHUNK_PAIRS_MAX);
        filling.clear(pairs);
        if self.keys_only {
            filling.set_keys_only();
        }
        let (lower, upper) = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
        let filled = view.fill(filling, &mut self.resume, (lower, upper), direction)?;
        self.to = chunk.len();
        self.pairs = self.pairs.saturating_add(pairs);
        self.goal = round(self.pairs.saturating_mul(self.growth));
        self.chunk = Some(chunk);
        Ok(filled)
    }

    /// Moves a bound of the unfetched part to the last fetched pair.
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
    /// The keys alone. From the next refill on, values are not copied, and on disk pages that have only values are not
    /// read. In the kernel, values are passed to this process all the same.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("ash", "1")?;
    /// db.set("oak", "2")?;
    /// let keys = db.range(..).keys().rev().collect::<forrest::Result<Vec<_>>>()?;
    /// assert_eq!(keys, [b"oak", b"ash"]);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn keys(mut self) -> Keys {
        (self.front.keys_only, self.back.keys_only) = (true, true);
        Keys(self)
    }

    /// Sets the number of pairs of the first refill, for callers that know how many they need.
    pub(crate) fn fetching(mut self, pairs: usize) -> Range {
        (self.front.goal, self.back.goal) = (pairs, pairs);
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
        // The remaining pairs were fetched from the other end.
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

/// An iterator over the keys of a range in their order, from both ends: a [`Range`] that reads no values.
pub struct Keys(Range);

impl Iterator for Keys {
    type Item = Result<Key>;

    #[inline]
    fn next(&mut self) -> Option<Result<Key>> {
        self.0.next().map(|entry| entry.map(Key))
    }
}

impl DoubleEndedIterator for Keys {
    #[inline]
    fn next_back(&mut self) -> Option<Result<Key>> {
        self.0.next_back().map(|entry| entry.map(Key))
    }
}

impl FusedIterator for Keys {}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keys").field(&self.0).finish()
    }
}

/// A key that an iteration returned. It keeps the whole chunk that it was fetched with in memory; to keep a key for
/// long, copy it.
#[derive(Clone)]
pub struct Key(Entry);

impl Deref for Key {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.0.key()
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<B: AsRef<[u8]> + ?Sized> PartialEq<B> for Key {
    fn eq(&self, other: &B) -> bool {
        **self == *other.as_ref()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(b\"{}\")", self.escape_ascii())
    }
}

/// A pair that an iteration returned. It keeps the whole chunk that it was fetched with in memory; to keep a
/// pair for long, copy its key and value.
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

    /// The value. It may be kept for any time.
    ///
    /// # Errors
    /// None today. A home that loads large values lazily may fail with `Io` or `Corrupt`
    /// (docs/decisions/0011).
    #[inline]
    pub fn value(&self) -> Result<Value> {
        Ok(self.chunk.value(self.at))
    }

    /// The value's bytes in place, without making a [`Value`].
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

/// A position that moves in both directions. It stands at a pair, whose key and value it owns, or at none.
///
/// A jump ([`first`](Cursor::first), [`last`](Cursor::last), [`seek`](Cursor::seek),
/// [`seek_for_prev`](Cursor::seek_for_prev)) sees the store as it is at that moment. From then on the cursor
/// sees the same concurrent changes as a [`Range`] that began there. It reads some pairs ahead: to see a
/// change that was just made near the cursor, jump.
///
/// On a view of the newest state moves fail with `InvalidArgument` once the keyspace has been dropped.
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
pub struct Cursor {
    cursor: engine::Cursor,
    keys_only: bool,
}

impl Cursor {
    pub(crate) fn new(cursor: engine::Cursor) -> Cursor {
        Cursor { cursor, keys_only: false }
    }

    /// A cursor that reads no values, as an iteration with [`Range::keys`]. [`value`](Cursor::value) then fails.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("oak", "Quercus robur")?;
    /// let mut cursor = db.cursor().keys_only();
    /// assert!(cursor.seek("a")?);
    /// assert_eq!(cursor.key(), Some(&b"oak"[..]));
    /// assert!(cursor.value().is_err());
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn keys_only(mut self) -> Cursor {
        self.cursor.keys_only();
        self.keys_only = true;
        self
    }

    /// Moves to the first key at or after `key`, which may have any length, as a bound of a range. If there is none,
    /// returns false and stands at no pair.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        let (key, is_cut) = cut(key.as_ref());
        let found = self.cursor.goto(Goto::Seek(key))?;
        if is_cut && self.cursor.key() == Some(key) {
            return self.next();
        }
        Ok(found)
    }

    /// Moves to the last key at or before `key`, which may have any length. If there is none, returns false and stands
    /// at no pair.
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.cursor.goto(Goto::SeekForPrev(cut(key.as_ref()).0))
    }

    /// Moves to the first key. Returns false if there are no keys.
    pub fn first(&mut self) -> Result<bool> {
        self.cursor.goto(Goto::First)
    }

    /// Moves to the last key. Returns false if there are no keys.
    pub fn last(&mut self) -> Result<bool> {
        self.cursor.goto(Goto::Last)
    }

    /// Moves to the next key. If there is none, returns false and stands at no pair. A cursor at no pair
    /// stays so.
    #[expect(clippy::should_implement_trait, reason = "a cursor moves both ways, an iterator does not")]
    pub fn next(&mut self) -> Result<bool> {
        self.cursor.goto(Goto::Skip(1))
    }

    /// Moves `count` pairs forward, like `count` calls of [`next`](Cursor::next), but reads no values on the
    /// way. If there are fewer pairs, returns false and stands at no pair.
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
        self.cursor.goto(Goto::Skip(count))
    }

    /// Releases everything that the cursor holds except its pair: on disk, the version that it reads, with
    /// memory and files that may have been replaced since. The cursor keeps its position; the next move seeks
    /// again.
    ///
    /// A cursor that is not parked blocks neither writers nor compaction. Park cursors that stay unused for
    /// long between moves.
    pub fn park(&mut self) {
        self.cursor.park();
    }

    /// Moves to the previous key. If there is none, returns false and stands at no pair. A cursor at no pair
    /// stays so.
    pub fn prev(&mut self) -> Result<bool> {
        self.cursor.goto(Goto::Prev)
    }

    /// The key at the cursor; `None` if it stands at no pair.
    pub fn key(&self) -> Option<&[u8]> {
        self.cursor.key()
    }

    /// The value at the cursor; `None` if it stands at no pair.
    ///
    /// # Errors
    /// As [`Entry::value`]; `InvalidArgument` after [`keys_only`](Cursor::keys_only).
    pub fn value(&self) -> Result<Option<Value>> {
        if self.keys_only {
            return Err(Error::invalid("the value at a cursor that reads keys only"));
        }
        Ok(self.cursor.value())
    }
}

/// The beginning of a key, as long as the longest key, and whether it is cut. No key lies between a key that is cut and
/// its beginning.
fn cut(key: &[u8]) -> (&[u8], bool) {
    (&key[..key.len().min(MAX_KEY_BYTES)], key.len() > MAX_KEY_BYTES)
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("key", &self.key().map(|key| key.escape_ascii().to_string())).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::round;

    #[test]
    fn refills_end_at_round_numbers() {
        let up_to = [0, 1, 2, 3, 5, 6, 10, 11, 20, 21, 50, 51, 99, 100, 101, 999, 1000, 1001];
        let rounds = [1, 1, 2, 5, 5, 10, 10, 20, 20, 50, 50, 100, 100, 100, 200, 1000, 1000, 2000];
        assert_eq!(up_to.map(round), rounds);
        assert_eq!(round(usize::MAX), usize::MAX);
    }

    #[test]
    fn nothing_is_fetched_in_vain_for_a_round_number() {
        let db = crate::Db::open("memory:").unwrap();
        for key in 0..3000_u32 {
            db.set(key.to_be_bytes(), []).unwrap();
        }
        for taken in [50, 200, 1000] {
            let mut range = db.range(..);
            assert_eq!(range.by_ref().take(taken).count(), taken);
            assert_eq!(range.front.pairs, taken);
        }
    }
}
