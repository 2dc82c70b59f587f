//! [`WriteBatch`]: changes that are applied together or not at all.

use crate::keyspace::Keyspace;
use forrest_engine::{Error, Expires, KeyRange, Op, Result, pairs};
use std::ops::Range;
use std::time::Duration;

/// Changes, in order, that [`Db::write`](crate::Db::write) applies at one instant: every reader sees all of
/// them or none. Later changes see earlier ones. If one fails, nothing is changed.
///
/// The batch copies keys and values. Their lengths are checked when the batch is written.
///
/// ```
/// use forrest::{Db, WriteBatch};
///
/// let db = Db::open("memory:")?;
/// let log = db.keyspace("log")?;
/// let mut batch = WriteBatch::new();
/// batch.add("alice", -5);
/// batch.add("bob", 5);
/// batch.on(&log).set("2026-11-20", "alice gave bob 5");
/// db.write(batch)?;
/// assert_eq!(db.add("bob", 0)?, 5);
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct WriteBatch {
    bytes: Vec<u8>,
    ops: Vec<(u32, Op<Range<usize>>)>,
    /// The keyspaces passed to `on`. In `ops`, number 0 is the default keyspace, 1 the first of these.
    keyspaces: Vec<Keyspace>,
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> WriteBatch {
        WriteBatch::default()
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// True if there are no operations.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// The total length of all keys and values, in bytes.
    ///
    /// ```
    /// let mut batch = forrest::WriteBatch::new();
    /// batch.set("key", "value");
    /// assert_eq!((batch.len(), batch.bytes(), batch.is_empty()), (1, 8, false));
    /// batch.clear();
    /// assert!(batch.is_empty());
    /// ```
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Removes all operations, but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ops.clear();
        self.keyspaces.clear();
    }

    /// A handle to the batch for another keyspace: operations added through it change that keyspace.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let log = db.keyspace("log")?;
    /// let mut batch = forrest::WriteBatch::new();
    /// batch.set("key", "here");
    /// batch.on(&log).set("key", "there").delete("old");
    /// db.write(batch)?;
    /// assert_eq!(log.get("key")?.unwrap(), "there");
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn on<'b>(&'b mut self, keyspace: &Keyspace) -> On<'b> {
        let number = match self.keyspaces.iter().position(|known| known.is(keyspace)) {
            Some(at) => at,
            None => {
                self.keyspaces.push(keyspace.clone());
                self.keyspaces.len() - 1
            }
        };
        On { batch: self, keyspace: number as u32 + 1 }
    }

    /// Appends `part` to `bytes` and returns its place there.
    fn copy(&mut self, part: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(part);
        start..self.bytes.len()
    }

    fn on_default(&mut self) -> On<'_> {
        On { batch: self, keyspace: 0 }
    }

    /// Adds an operation on the default keyspace.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let mut batch = forrest::WriteBatch::new();
    /// batch.push("set oak Quercus".parse::<forrest::Op>()?);
    /// assert!(db.try_write(batch)?.is_applied());
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn push(&mut self, op: Op<impl AsRef<[u8]>>) -> &mut WriteBatch {
        self.on_default().push(op);
        self
    }

    /// Adds an operation that sets the value of a key.
    ///
    /// ```
    /// let mut batch = forrest::WriteBatch::new();
    /// batch.set("a", "1").set("b", "2").delete("c").delete_range("x"..).add("n", 1);
    /// assert_eq!(batch.len(), 5);
    /// ```
    pub fn set(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut WriteBatch {
        self.on_default().set(key, value);
        self
    }

    /// Adds an operation that sets a value for a time to live, which begins when the batch is applied, like
    /// [`Keyspace::set_with_ttl`].
    pub fn set_with_ttl(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> &mut WriteBatch {
        self.on_default().set_with_ttl(key, value, ttl);
        self
    }

    /// Adds an operation that removes a key.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> &mut WriteBatch {
        self.on_default().delete(key);
        self
    }

    /// Adds an operation that adds to a counter, like [`Keyspace::add`]. If the addition fails, so does the
    /// whole batch.
    pub fn add(&mut self, key: impl AsRef<[u8]>, delta: i64) -> &mut WriteBatch {
        self.on_default().add(key, delta);
        self
    }

    /// Adds an operation that gives an operand to the merge operator, like [`Keyspace::merge`].
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> &mut WriteBatch {
        self.on_default().merge(key, operand);
        self
    }

    /// Adds an operation that replaces a value if it is the expected one. On a mismatch nothing of the batch
    /// is applied: [`Db::write`](crate::Db::write) fails with `ConditionFailed`, and
    /// [`Db::try_write`](crate::Db::try_write) returns [`Written::Mismatch`](crate::Written::Mismatch). With
    /// `expected == new` the operation is a condition that changes nothing.
    ///
    /// ```
    /// # use forrest::{Db, WriteBatch, Written};
    /// # let db = Db::open("memory:")?;
    /// db.set("door", "locked")?;
    /// let mut batch = WriteBatch::new();
    /// batch.set("visitors", "one more");
    /// batch.compare_and_swap("door", Some(b"open"), Some(b"open"));
    /// match db.try_write(batch)? {
    ///     Written::Mismatch { op, found } => assert_eq!((op, found.as_deref()), (1, Some(&b"locked"[..]))),
    ///     other => unreachable!("{other:?}"),
    /// }
    /// assert_eq!(db.get("visitors")?, None);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn compare_and_swap(
        &mut self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> &mut WriteBatch {
        self.on_default().compare_and_swap(key, expected, new);
        self
    }

    /// Adds an operation that removes all keys of a range.
    ///
    /// Operations that follow can set keys of the range again: a reader sees the range before the batch or after it,
    /// and nothing between. See [`Keyspace::delete_range`].
    pub fn delete_range(&mut self, range: impl KeyRange) -> &mut WriteBatch {
        self.on_default().delete_range(range);
        self
    }

    /// Adds the condition that a range has exactly these pairs, in ascending order: otherwise nothing of the batch is
    /// applied. Conditions on ranges stand before all other operations of the batch. They are compared with the state
    /// before the batch, in time proportional to the pairs, while other writers wait.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// use forrest::{WriteBatch, Written};
    /// let mut batch = WriteBatch::new();
    /// batch.compare_range::<&str, &str>("seat "..="seat z", []).set("seat 1", "ada");
    /// assert!(db.try_write(&batch)?.is_applied());
    /// match db.try_write(&batch)? {
    ///     Written::Mismatch { op: 0, found } => assert_eq!(found.unwrap(), "seat 1"), // it is not expected
    ///     other => unreachable!("{other:?}"),
    /// }
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn compare_range<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        range: impl KeyRange,
        expected: impl IntoIterator<Item = (K, V)>,
    ) -> &mut WriteBatch {
        self.on_default().compare_range(range, expected);
        self
    }

    /// The operations in order, each with the keyspace it changes (`None` for the default one).
    ///
    /// ```
    /// let mut batch = forrest::WriteBatch::new();
    /// batch.set("a", "1").delete("b");
    /// let lines: Vec<String> = batch.ops().map(|(_, op)| op.to_string()).collect();
    /// assert_eq!(lines, ["set a 1", "delete b"]);
    /// ```
    pub fn ops(&self) -> impl Iterator<Item = (Option<&Keyspace>, Op<&[u8]>)> {
        self.ops.iter().map(|(number, op)| {
            let keyspace = (*number as usize).checked_sub(1).map(|at| &self.keyspaces[at]);
            (keyspace, op.map(|span| &self.bytes[span.clone()]))
        })
    }

    /// Checks that all lengths are within the limits and that all keyspaces belong to the store of `default`.
    pub(crate) fn check(&self, default: &Keyspace, ops_max: usize, bytes_max: usize) -> Result<()> {
        if self.len() > ops_max {
            return Err(Error::limit("batch", "operations", self.len(), ops_max));
        }
        if self.bytes() > bytes_max {
            return Err(Error::limit("batch", "bytes", self.bytes(), bytes_max));
        }
        if let Some(stranger) = self.keyspaces.iter().find(|keyspace| !keyspace.same_store(default)) {
            let name = stranger.name().escape_debug();
            return Err(Error::invalid(format!("keyspace \"{name}\" in the batch belongs to another store")));
        }
        let mut others = 0;
        self.ops().enumerate().try_for_each(|(at, (_, op))| {
            op.check().map_err(|error| error.at_op(at))?;
            match op {
                Op::CompareRange { .. } if others > 0 => Err(misplaced().at_op(at)),
                Op::CompareRange { .. } => Ok(()),
                _ => {
                    others += 1;
                    Ok(())
                }
            }
        })
    }
}

#[cold]
fn misplaced() -> Error {
    Error::invalid("a condition on a range stands before all other operations of a batch; add it first")
}

/// A handle to a [`WriteBatch`] for one keyspace; see [`WriteBatch::on`].
#[derive(Debug)]
pub struct On<'b> {
    batch: &'b mut WriteBatch,
    keyspace: u32,
}

impl On<'_> {
    /// Adds an operation.
    pub fn push(&mut self, op: Op<impl AsRef<[u8]>>) -> &mut Self {
        let op = op.map(|part| self.batch.copy(part.as_ref()));
        self.batch.ops.push((self.keyspace, op));
        self
    }

    /// Adds the condition that a key has this value. Copies the value once, not twice.
    pub(crate) fn expect(&mut self, key: &[u8], value: Option<&[u8]>) -> &mut Self {
        let key = self.batch.copy(key);
        let value = value.map(|value| self.batch.copy(value));
        let op = Op::CompareAndSwap { key, expected: value.clone(), new: value };
        self.batch.ops.push((self.keyspace, op));
        self
    }

    /// Adds the condition that a range has these pairs. Copies each once.
    pub(crate) fn expect_range<'p>(
        &mut self,
        start: &[u8],
        end: Option<&[u8]>,
        expected: impl Iterator<Item = (&'p [u8], &'p [u8])>,
    ) -> &mut Self {
        let start = self.batch.copy(start);
        let end = end.map(|end| self.batch.copy(end));
        let bytes = &mut self.batch.bytes;
        let begin = bytes.len();
        expected.for_each(|(key, value)| pairs::push(bytes, key, value));
        let pairs = begin..bytes.len();
        self.batch.ops.push((self.keyspace, Op::CompareRange { start, end, pairs }));
        self
    }

    /// Adds an operation that sets the value of a key.
    pub fn set(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        self.push(Op::Set { key: key.as_ref(), value: value.as_ref() })
    }

    /// Adds an operation that sets a value for a time to live, which begins when the batch is applied.
    pub fn set_with_ttl(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> &mut Self {
        let expires = Expires::after(ttl);
        self.push(Op::SetUntil { key: key.as_ref(), value: value.as_ref(), expires })
    }

    /// Adds an operation that removes a key.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.push(Op::Delete { key })
    }

    /// Adds an operation that adds to a counter.
    pub fn add(&mut self, key: impl AsRef<[u8]>, delta: i64) -> &mut Self {
        self.push(Op::Add { key, delta })
    }

    /// Adds an operation that gives an operand to the merge operator of the keyspace.
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> &mut Self {
        self.push(Op::Merge { key: key.as_ref(), operand: operand.as_ref() })
    }

    /// Adds an operation that replaces a value if it is the expected one; see
    /// [`WriteBatch::compare_and_swap`].
    pub fn compare_and_swap(
        &mut self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> &mut Self {
        self.push(Op::CompareAndSwap { key: key.as_ref(), expected, new })
    }

    /// Adds the condition that a range has exactly these pairs; see [`WriteBatch::compare_range`].
    pub fn compare_range<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        range: impl KeyRange,
        expected: impl IntoIterator<Item = (K, V)>,
    ) -> &mut Self {
        self.push(Op::compare_range(range, expected))
    }

    /// Adds an operation that removes all keys of a range; see [`WriteBatch::delete_range`].
    pub fn delete_range(&mut self, range: impl KeyRange) -> &mut Self {
        self.push(Op::delete_range(range))
    }
}
