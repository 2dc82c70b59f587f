//! [`Op`]: all kinds of changes, and the effect of each on a key.
//!
//! Every change of a store, alone or in a batch, is an `Op`, so there is one write path. [`Op::resolve`]
//! decides its effect. It is pure: the same operation on the same old value has the same effect and the same
//! result in every engine. The text form of an operation is in [`line`](crate::line).

use crate::bounds::successor;
use crate::error::{Error, Result};
use crate::pairs::{self, Comparison, Pairs};
use crate::{KeyRange, MAX_KEY_BYTES, MAX_VALUE_BYTES, Value};
use std::borrow::Cow;
use std::ops::{Bound, ControlFlow};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use forrest_index::Effect;

/// When a value expires.
///
/// ```
/// use forrest::{Expires, Op};
/// use std::time::Duration;
///
/// assert_eq!(Expires::after(Duration::from_secs(5)), Expires::In(5000));
/// let op = Op::SetUntil { key: "seat 7", value: "held", expires: Expires::In(5000) };
/// assert_eq!(op.to_string(), "set-for \"seat 7\" held 5000");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Expires {
    /// At this time, in milliseconds since 1970. 0 counts as 1.
    At(u64),
    /// This number of milliseconds after the change is made.
    In(u64),
}

impl Expires {
    /// After a time to live, which is rounded up to milliseconds.
    pub fn after(ttl: Duration) -> Expires {
        Expires::In(u64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }

    /// The milliseconds of a time to live of a keyspace, which is rounded up to them.
    ///
    /// # Errors
    /// `InvalidArgument` for zero.
    pub fn ttl_ms(ttl: Duration) -> Result<u64> {
        match Expires::after(ttl) {
            Expires::In(ms) if ms > 0 => Ok(ms),
            _ => Err(Error::invalid("a time to live of 0; None lets values stay")),
        }
    }

    /// At a time.
    pub fn at(time: SystemTime) -> Expires {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Expires::At(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// The time, in milliseconds since 1970, for a change that is made now. It is not 0.
    pub fn at_ms(self, now_ms: impl FnOnce() -> u64) -> u64 {
        match self {
            Expires::At(ms) => ms.max(1),
            Expires::In(ms) => now_ms().saturating_add(ms).max(1),
        }
    }
}

/// A change. `B` holds the bytes: `Op` owns them, `Op<&[u8]>` borrows them.
///
/// ```
/// use forrest::{Db, Op, Outcome};
///
/// let db = Db::open("memory:")?;
/// assert_eq!(db.apply(Op::Add { key: "visits", delta: 2 })?, Outcome::Added(2));
/// assert_eq!(db.apply(Op::Delete { key: "visits" })?, Outcome::Deleted(true));
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Op<B = Vec<u8>> {
    /// Map a key to a value.
    Set {
        /// The key.
        key: B,
        /// Its new value.
        value: B,
    },
    /// Map a key to a value that is there until a time.
    SetUntil {
        /// The key.
        key: B,
        /// Its new value.
        value: B,
        /// That time.
        expires: Expires,
    },
    /// Remove a key.
    Delete {
        /// The key.
        key: B,
    },
    /// Add to a counter: 8 bytes, a big-endian two's complement integer. An absent key counts as 0.
    Add {
        /// The key.
        key: B,
        /// What to add.
        delta: i64,
    },
    /// Give an operand to the merge operator of the keyspace, which makes a new value of it and the old one.
    Merge {
        /// The key.
        key: B,
        /// The operand.
        operand: B,
    },
    /// Replace the value of a key if it equals the expected one, byte for byte; `None` is absence.
    CompareAndSwap {
        /// The key.
        key: B,
        /// The expected value.
        expected: Option<B>,
        /// The new value.
        new: Option<B>,
    },
    /// Remove all keys from `start` on and before `end`; `None` means no end.
    DeleteRange {
        /// The first removed key.
        start: B,
        /// The first key after the range.
        end: Option<B>,
    },
    /// Compare all pairs from `start` on and before `end` with the expected ones. Changes nothing. In a batch it stands
    /// before all other operations, and a difference prevents the batch. [`Op::compare_range`] makes it.
    CompareRange {
        /// The first key of the range.
        start: B,
        /// The first key after the range; `None` means no end.
        end: Option<B>,
        /// The expected pairs, as [`pairs`] encodes them.
        pairs: B,
    },
}

/// The result of an operation.
///
/// ```
/// # let db = forrest::Db::open("memory:")?;
/// use forrest::{Op, Outcome};
/// assert_eq!(db.apply(Op::Add { key: "n", delta: 7 })?, Outcome::Added(7));
/// assert_eq!(db.apply(Op::delete_range(..))?, Outcome::DeletedRange);
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Of [`Op::Set`] and [`Op::SetUntil`].
    Set,
    /// Of [`Op::Delete`]: whether the key was there.
    Deleted(bool),
    /// Of [`Op::Add`]: the counter's new value.
    Added(i64),
    /// Of [`Op::Merge`]. It does not have the new value.
    Merged,
    /// Of [`Op::CompareAndSwap`].
    Swapped(Swap),
    /// Of [`Op::DeleteRange`]. It carries no count, because counting takes time in proportion to the keys.
    DeletedRange,
    /// Of [`Op::CompareRange`]. A mismatch has the first key that is missing, was not expected, or has another value.
    ComparedRange(Swap),
}

impl Outcome {
    /// Of an [`Op::CompareRange`], for engines. `pass` passes the pairs of the range to a function in ascending order,
    /// until it breaks.
    ///
    /// # Errors
    /// That of `pass`.
    pub fn of_range(
        pairs: &[u8],
        pass: impl FnOnce(&mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<()>,
    ) -> Result<Outcome> {
        let mut comparison = Comparison::new(pairs);
        pass(&mut |key, value| comparison.see(key, value))?;
        Ok(Outcome::ComparedRange(match comparison.end() {
            None => Swap::Done,
            differs => Swap::Mismatch(differs),
        }))
    }

    /// What an operation found instead of what it expected, if it is a comparison that did not hold.
    ///
    /// ```
    /// use forrest::{Outcome, Swap};
    /// assert_eq!(Outcome::Swapped(Swap::Mismatch(None)).mismatch(), Some(None));
    /// assert_eq!(Outcome::Swapped(Swap::Done).mismatch(), None);
    /// ```
    pub fn mismatch(self) -> Option<Option<Value>> {
        match self {
            Outcome::Swapped(Swap::Mismatch(found)) | Outcome::ComparedRange(Swap::Mismatch(found)) => {
                Some(found)
            }
            _ => None,
        }
    }
}

/// The result of a comparison.
///
/// ```
/// # let db = forrest::Db::open("memory:")?;
/// use forrest::Swap;
/// let mut expected = None;
/// while let Swap::Mismatch(found) = db.compare_and_swap("key", expected.as_deref(), Some(b"mine"))? {
///     expected = found; // look at it, and try again with it
/// }
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a mismatch means that nothing was changed"]
#[non_exhaustive]
pub enum Swap {
    /// The value was the expected one and has been replaced, or the range has the expected pairs.
    Done,
    /// The value was this other one, or the range differs at this key; nothing was changed.
    Mismatch(Option<Value>),
}

impl Swap {
    /// True if the swap took place.
    pub fn is_done(&self) -> bool {
        matches!(self, Swap::Done)
    }
}

/// The result of a batch.
///
/// ```
/// # let db = forrest::Db::open("memory:")?;
/// use forrest::{WriteBatch, Written};
/// assert_eq!(db.try_write(WriteBatch::new())?, Written::Applied);
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a mismatch means that nothing was changed"]
#[non_exhaustive]
pub enum Written {
    /// All of it has been applied.
    Applied,
    /// A `WriteBatch::compare_and_swap` or `compare_range` in it did not find what it expected; nothing was changed.
    Mismatch {
        /// The index of the operation, counted from 0.
        op: usize,
        /// The value that it found; of a range, the first key at which it differs.
        found: Option<Value>,
    },
}

impl Written {
    /// True if the batch has been applied.
    pub fn is_applied(&self) -> bool {
        matches!(self, Written::Applied)
    }
}

impl<B> Op<B> {
    /// The same operation with its bytes in another type.
    ///
    /// ```
    /// use forrest::Op;
    /// let op = Op::Set { key: "oak", value: "Quercus" };
    /// assert_eq!(op.map(|text| text.len()), Op::Set { key: 3, value: 7 });
    /// ```
    pub fn map<'a, C>(&'a self, mut convert: impl FnMut(&'a B) -> C) -> Op<C> {
        match self {
            Op::Set { key, value } => Op::Set { key: convert(key), value: convert(value) },
            Op::SetUntil { key, value, expires } => {
                Op::SetUntil { key: convert(key), value: convert(value), expires: *expires }
            }
            Op::Delete { key } => Op::Delete { key: convert(key) },
            Op::Add { key, delta } => Op::Add { key: convert(key), delta: *delta },
            Op::Merge { key, operand } => Op::Merge { key: convert(key), operand: convert(operand) },
            Op::CompareAndSwap { key, expected, new } => Op::CompareAndSwap {
                key: convert(key),
                expected: expected.as_ref().map(&mut convert),
                new: new.as_ref().map(&mut convert),
            },
            Op::DeleteRange { start, end } => {
                Op::DeleteRange { start: convert(start), end: end.as_ref().map(convert) }
            }
            Op::CompareRange { start, end, pairs } => Op::CompareRange {
                start: convert(start),
                end: end.as_ref().map(&mut convert),
                pairs: convert(pairs),
            },
        }
    }
}

impl<B: AsRef<[u8]>> Op<B> {
    /// The same operation, borrowing its bytes.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let op: forrest::Op = "set oak Quercus".parse()?;
    /// db.apply(op.borrowed())?; // and op is still here
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn borrowed(&self) -> Op<&[u8]> {
        self.map(|bytes| bytes.as_ref())
    }
}

impl Op {
    /// An [`Op::DeleteRange`] for all keys of a range.
    ///
    /// ```
    /// use forrest::Op;
    /// assert_eq!(
    ///     Op::delete_range("a"..="b"),
    ///     Op::DeleteRange { start: b"a".to_vec(), end: Some(b"b\0".to_vec()) }
    /// );
    /// ```
    pub fn delete_range(range: impl KeyRange) -> Op {
        let (start, end) = half_open(range);
        Op::DeleteRange { start, end }
    }

    /// An [`Op::CompareRange`] that expects exactly these pairs in a range, in ascending order.
    ///
    /// ```
    /// use forrest::{Op, Outcome, Swap};
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("ash", "1")?;
    /// db.set("oak", "2")?;
    /// assert_eq!(db.apply(Op::compare_range("b".., [("oak", "2")]))?, Outcome::ComparedRange(Swap::Done));
    /// let ash = Swap::Mismatch(Some("ash".as_bytes().into()));
    /// assert_eq!(db.apply(Op::compare_range(.., [("oak", "2")]))?, Outcome::ComparedRange(ash));
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn compare_range<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        range: impl KeyRange,
        expected: impl IntoIterator<Item = (K, V)>,
    ) -> Op {
        let (start, end) = half_open(range);
        let mut pairs = Vec::new();
        expected.into_iter().for_each(|(key, value)| pairs::push(&mut pairs, key.as_ref(), value.as_ref()));
        Op::CompareRange { start, end, pairs }
    }
}

/// A range from a key up to but not including another, or without an end.
pub fn half_open(range: impl KeyRange) -> (Vec<u8>, Option<Vec<u8>>) {
    let (lower, upper) = range.bounds();
    let start = match lower {
        Bound::Unbounded => Some(Vec::new()),
        Bound::Included(key) if key.len() <= MAX_KEY_BYTES => Some(key.to_vec()),
        Bound::Included(key) | Bound::Excluded(key) => successor(key),
    };
    let end = match upper {
        Bound::Unbounded => None,
        Bound::Excluded(key) if key.len() <= MAX_KEY_BYTES => Some(key.to_vec()),
        Bound::Excluded(key) | Bound::Included(key) => successor(key),
    };
    match start {
        Some(start) => (start, end),
        // No key can be that large: an empty range.
        None => (Vec::new(), Some(Vec::new())),
    }
}

impl<'v> Op<&'v [u8]> {
    /// The key that the operation changes; for a range, its start.
    ///
    /// ```
    /// let op: forrest::Op = "add visits 1".parse()?;
    /// assert_eq!(op.borrowed().key(), b"visits");
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn key(&self) -> &'v [u8] {
        match *self {
            Op::Set { key, .. } | Op::Delete { key } | Op::Add { key, .. } => key,
            Op::CompareAndSwap { key, .. } | Op::Merge { key, .. } | Op::SetUntil { key, .. } => key,
            Op::DeleteRange { start, .. } | Op::CompareRange { start, .. } => start,
        }
    }

    /// Checks all lengths.
    ///
    /// # Errors
    /// `Limit` if a key exceeds [`MAX_KEY_BYTES`] or a value [`MAX_VALUE_BYTES`]; `InvalidArgument` if the expected
    /// pairs of a range are malformed, do not ascend, or are not in the range.
    ///
    /// ```
    /// use forrest::{MAX_KEY_BYTES, Op};
    /// let key = vec![0; MAX_KEY_BYTES + 1];
    /// assert!(Op::Delete { key: &key[1..] }.check().is_ok());
    /// assert!(Op::Delete { key: &key[..] }.check().is_err());
    /// ```
    pub fn check(&self) -> Result<()> {
        check_key(self.key())?;
        match *self {
            Op::Set { value, .. } | Op::SetUntil { value, .. } | Op::Merge { operand: value, .. } => {
                check_value(value)
            }
            Op::CompareAndSwap { expected, new, .. } => {
                expected.into_iter().chain(new).try_for_each(check_value)
            }
            Op::DeleteRange { end, .. } => end.map_or(Ok(()), check_key),
            Op::CompareRange { start, end, pairs } => {
                end.map_or(Ok(()), check_key)?;
                pairs::check(pairs, start, end)?;
                Pairs::new(pairs)
                    .try_for_each(|(key, value)| check_key(key).and_then(|()| check_value(value)))
            }
            Op::Delete { .. } | Op::Add { .. } => Ok(()),
        }
    }

    /// The effect of the operation on a key that has the value `old`, and the result. Pure. For a range, it
    /// is the effect on each key in it.
    ///
    /// # Errors
    /// `InvalidArgument` if [`Op::Add`] meets a value that is not 8 bytes long, or the sum overflows; for
    /// [`Op::CompareRange`], which is not about one key: [`Comparison`] decides it; and for [`Op::Merge`], which needs
    /// an operator: [`merge::resolve`](crate::merge::resolve) decides it.
    ///
    /// ```
    /// use forrest::{Effect, Op, Outcome};
    /// let op: Op = "delete oak".parse()?;
    /// let (effect, outcome) = op.borrowed().resolve(Some(b"Quercus"))?;
    /// assert!(matches!(effect, Effect::Remove));
    /// assert_eq!(outcome, Outcome::Deleted(true));
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn resolve(&self, old: Option<&[u8]>) -> Result<(Effect<'v>, Outcome)> {
        let done = match *self {
            // That it expires is the engine's to remember.
            Op::Set { value, .. } | Op::SetUntil { value, .. } => {
                (Effect::Put(Cow::Borrowed(value)), Outcome::Set)
            }
            Op::Delete { .. } => (Effect::Remove, Outcome::Deleted(old.is_some())),
            Op::Add { delta, .. } => {
                let sum = counter(old)?
                    .checked_add(delta)
                    .ok_or_else(|| Error::invalid(format!("adding {delta} overflows the counter")))?;
                (Effect::PutValue(Value::from(&sum.to_be_bytes()[..])), Outcome::Added(sum))
            }
            Op::CompareAndSwap { expected, new, .. } => {
                if old != expected {
                    (Effect::Keep, Outcome::Swapped(Swap::Mismatch(old.map(Value::from))))
                } else if new == expected {
                    // A condition only: nothing is written or logged.
                    (Effect::Keep, Outcome::Swapped(Swap::Done))
                } else {
                    let effect = match new {
                        Some(value) => Effect::Put(Cow::Borrowed(value)),
                        None => Effect::Remove,
                    };
                    (effect, Outcome::Swapped(Swap::Done))
                }
            }
            Op::DeleteRange { .. } => (Effect::Remove, Outcome::DeletedRange),
            Op::Merge { .. } => return Err(Error::invalid("a merge needs the operator of its keyspace")),
            Op::CompareRange { .. } => {
                return Err(Error::invalid("a comparison of a range has no effect on one key"));
            }
        };
        Ok(done)
    }
}

fn counter(value: Option<&[u8]>) -> Result<i64> {
    let Some(value) = value else { return Ok(0) };
    let bytes = value.try_into().map_err(|_| {
        Error::invalid(format!("the value is {} bytes long, and a counter is 8 bytes", value.len()))
    })?;
    Ok(i64::from_be_bytes(bytes))
}

/// Checks the length of a key.
///
/// # Errors
/// `Limit` if it exceeds [`MAX_KEY_BYTES`].
pub fn check_key(key: &[u8]) -> Result<()> {
    if key.len() > MAX_KEY_BYTES {
        return Err(Error::limit("key", "bytes", key.len(), MAX_KEY_BYTES));
    }
    Ok(())
}

/// Checks the length of a value.
///
/// # Errors
/// `Limit` if it exceeds [`MAX_VALUE_BYTES`].
pub fn check_value(value: &[u8]) -> Result<()> {
    if value.len() > MAX_VALUE_BYTES {
        return Err(Error::limit("value", "bytes", value.len(), MAX_VALUE_BYTES));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The new value, and the result.
    fn resolve(line: &str, old: Option<&[u8]>) -> (Option<Vec<u8>>, Outcome) {
        let op: Op = line.parse().expect("an operation");
        let (effect, outcome) = op.borrowed().resolve(old).expect("it resolves");
        let new = match effect {
            Effect::Keep => old.map(<[u8]>::to_vec),
            Effect::Put(bytes) => Some(bytes.into_owned()),
            Effect::PutValue(value) => Some(value.to_vec()),
            Effect::Remove => None,
        };
        (new, outcome)
    }

    #[test]
    fn each_operation_does_what_it_says() {
        let old = Some(&b"old"[..]);
        let some = |text: &str| Some(text.as_bytes().to_vec());
        let mismatch = Outcome::Swapped(Swap::Mismatch(old.map(Value::from)));
        let cases = [
            ("set k v", None, some("v"), Outcome::Set),
            ("set k v", old, some("v"), Outcome::Set),
            ("delete k", None, None, Outcome::Deleted(false)),
            ("delete k", old, None, Outcome::Deleted(true)),
            ("delete-range a z", None, None, Outcome::DeletedRange),
            ("delete-range a z", old, None, Outcome::DeletedRange),
            ("compare-and-swap k old new", old, some("new"), Outcome::Swapped(Swap::Done)),
            ("compare-and-swap k old old", old, some("old"), Outcome::Swapped(Swap::Done)),
            ("compare-and-swap k old -", old, None, Outcome::Swapped(Swap::Done)),
            ("compare-and-swap k - new", None, some("new"), Outcome::Swapped(Swap::Done)),
            ("compare-and-swap k - -", None, None, Outcome::Swapped(Swap::Done)),
            ("compare-and-swap k older new", old, some("old"), mismatch.clone()),
            ("compare-and-swap k ol new", old, some("old"), mismatch.clone()),
            ("compare-and-swap k - new", old, some("old"), mismatch),
            ("compare-and-swap k \"\" new", None, None, Outcome::Swapped(Swap::Mismatch(None))),
        ];
        for (line, old, new, outcome) in cases {
            assert_eq!(resolve(line, old), (new, outcome), "{line} of {old:?}");
        }
        let counter = |number: i64| number.to_be_bytes().to_vec();
        assert_eq!(resolve("add k -5", None), (Some(counter(-5)), Outcome::Added(-5)));
        assert_eq!(resolve("add k -5", Some(&counter(7))), (Some(counter(2)), Outcome::Added(2)));
    }
}
