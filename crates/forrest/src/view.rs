//! [`View`]: all reads of one keyspace, in its newest state or a snapshot's.

use crate::cursor::{Cursor, Entry, Range};
use crate::engine;
use crate::reader::ValueReader;
use forrest_engine::bounds::{clamp, prefix_end};
use forrest_engine::op::check_key;
use forrest_engine::{Approximate, Direction, KeyRange, Result, Value, View as _};
use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The reads of one keyspace. A [`Keyspace`](crate::Keyspace) dereferences to the view of its newest state,
/// and a [`Snapshot`](crate::Snapshot) has views of its state. A function that takes `&View` works on both.
///
/// Keys are ordered by their bytes. No read waits for a writer, with one exception: in the kernel a read
/// waits for a change or batch that is being applied, but not for a writer that itself waits. Every method
/// that takes keys fails with `Limit` if one is longer than [`MAX_KEY_BYTES`](crate::MAX_KEY_BYTES), or
/// [`llds::MAX_KEY_BYTES`](crate::llds::MAX_KEY_BYTES) in the kernel. The bounds of ranges may be of any
/// length. A view of the newest state fails with `InvalidArgument` once its keyspace has been dropped.
///
/// ```
/// use forrest::{Db, View};
///
/// fn greeting(view: &View) -> forrest::Result<String> {
///     Ok(view.get("greeting")?.map_or(String::new(), |value| String::from_utf8_lossy(&value).into()))
/// }
///
/// let db = Db::open("memory:")?;
/// db.set("greeting", "hello")?;
/// let before = db.snapshot()?;
/// db.set("greeting", "good evening")?;
/// assert_eq!(greeting(&before)?, "hello");
/// assert_eq!(greeting(&db)?, "good evening");
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Clone)]
pub struct View(engine::View);

/// What [`View::get_cached`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cached {
    /// The value of the key, or that it has none.
    Known(Option<Value>),
    /// Not known without waiting for a device.
    Unknown,
}

impl View {
    pub(crate) fn new(view: engine::View) -> View {
        View(view)
    }

    /// The value of a key, or `None`. With `memory:` a value longer than 239 bytes is shared with the store,
    /// not copied.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("tree", "oak")?;
    /// assert_eq!(db.get("tree")?.as_deref(), Some(&b"oak"[..]));
    /// assert_eq!(db.get("bush")?, None);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let key = key.as_ref();
        check_key(key)?;
        self.0.get(key)
    }

    /// The value of a key if it can be read without waiting for a device: from memtables and the cache. Runs on the
    /// calling thread in microseconds, so a thread that must not block, as that of an event loop, calls it first, and
    /// leaves what is [`Unknown`](Cached::Unknown) to a thread that may wait and calls [`get`](View::get).
    ///
    /// On disk a value that stays in a log is unknown, and right after opening every key of a table may be.
    /// In memory and in the kernel every key is known.
    ///
    /// ```
    /// use forrest::Cached;
    ///
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("tree", "oak")?;
    /// let value = match db.get_cached("tree")? {
    ///     Cached::Known(value) => value,
    ///     Cached::Unknown => db.get("tree")?, // on another thread
    /// };
    /// assert_eq!(value.as_deref(), Some(&b"oak"[..]));
    /// # Ok::<(), forrest::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](View::get).
    pub fn get_cached(&self, key: impl AsRef<[u8]>) -> Result<Cached> {
        let key = key.as_ref();
        check_key(key)?;
        Ok(self.0.get_cached(key)?.map_or(Cached::Unknown, Cached::Known))
    }

    /// Replaces the content of `buf` by the value of a key and returns true. If there is no value, it clears
    /// `buf` and returns false. Allocates nothing if the value fits the capacity of `buf`.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("tree", "oak")?;
    /// let mut buf = Vec::with_capacity(100);
    /// assert!(db.get_into("tree", &mut buf)?);
    /// assert_eq!(buf, b"oak");
    /// # Ok::<(), forrest::Error>(())
    /// ```
    #[inline]
    pub fn get_into(&self, key: impl AsRef<[u8]>, buf: &mut Vec<u8>) -> Result<bool> {
        let key = key.as_ref();
        check_key(key)?;
        self.0.get_into(key, buf)
    }

    /// The value of a key, to be read in pieces from its beginning on; `None` if there is none. A value that stays in
    /// the log ([`Builder::large_values`](crate::Builder::large_values)) is read from the file as the pieces are asked
    /// for, so that one of hundreds of MiB needs the memory of a piece only. Other values are in memory until the
    /// reader is dropped. What has changed since is not seen.
    ///
    /// A value in a log has one checksum, which is compared in place of its last bytes. So all of it was right if the
    /// reader comes to its end, and what came before may be wrong if it does not.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// use std::io::Read;
    ///
    /// db.set("photo of an oak", vec![0xFF; 100_000])?;
    /// let mut reader = db.reader("photo of an oak")?.unwrap();
    /// let (mut piece, mut sum) = ([0; 4096], 0);
    /// while let len @ 1.. = reader.read(&mut piece)? {
    ///     sum += len;
    /// }
    /// assert_eq!((sum, reader.value_bytes()), (100_000, 100_000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](View::get). Those of the reader are [`Error`](crate::Error)s within errors of [`std::io`].
    pub fn reader(&self, key: impl AsRef<[u8]>) -> Result<Option<ValueReader>> {
        let key = key.as_ref();
        check_key(key)?;
        Ok(self.0.pieces(key)?.map(ValueReader::new))
    }

    /// The values of many keys, in the order of `keys`. This is faster than a [`get`](Self::get) for each
    /// key, because the waits for memory overlap. Keys may be read at different moments; to read all at one
    /// moment, use a snapshot.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("a", "1")?;
    /// let values = db.multi_get(&["a", "b"])?;
    /// assert_eq!(values[0].as_deref(), Some(&b"1"[..]));
    /// assert_eq!(values[1], None);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn multi_get(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<Value>>> {
        keys.iter().try_for_each(|key| check_key(key.as_ref()))?;
        self.0.multi_get(keys)
    }

    /// True if the key exists.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("", "the empty key is a key")?;
    /// assert!(db.contains("")?);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    #[inline]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        check_key(key)?;
        self.0.contains(key)
    }

    /// When the value of a key expires; `None` if it does not, or if there is none. See
    /// [`Keyspace::set_with_ttl`](crate::Keyspace::set_with_ttl).
    ///
    /// # Errors
    /// As [`get`](View::get).
    pub fn expires(&self, key: impl AsRef<[u8]>) -> Result<Option<SystemTime>> {
        let expires_ms = self.expires_ms(key)?.flatten();
        Ok(expires_ms.and_then(|ms| UNIX_EPOCH.checked_add(Duration::from_millis(ms))))
    }

    /// The same in milliseconds since 1970, by one read: `None` if the key is not there, and `Some(None)` if its value
    /// does not expire.
    ///
    /// # Errors
    /// As [`get`](View::get).
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("oak", "Quercus")?;
    /// assert_eq!((db.expires_ms("oak")?, db.expires_ms("elm")?), (Some(None), None));
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn expires_ms(&self, key: impl AsRef<[u8]>) -> Result<Option<Option<u64>>> {
        let key = key.as_ref();
        check_key(key)?;
        self.0.expires_ms(key)
    }

    /// Iterates over the pairs of a range in the order of their keys, from either end. [`Range`] documents
    /// which concurrent changes an iteration sees.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// for key in ["ash", "beech", "birch", "oak"] {
    ///     db.set(key, "")?;
    /// }
    /// let mut range = db.range("b".."c");
    /// assert_eq!(range.next_back().unwrap()?.key(), b"birch");
    /// assert_eq!(range.next().unwrap()?.key(), b"beech");
    /// assert!(range.next().is_none());
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn range(&self, bounds: impl KeyRange) -> Range {
        let (lower, upper) = clamp(bounds.bounds());
        Range::new(self.0.clone(), lower.map(<[u8]>::to_vec), upper.map(<[u8]>::to_vec))
    }

    /// Calls `see` with each pair of a range in the order of their keys, until it returns `Break`. This is
    /// the fastest iteration, because it copies nothing. It sees the same concurrent changes as a [`Range`].
    ///
    /// `see` may use the store, but should be short: while it runs, memory that other threads free is not
    /// reused.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// # let db = forrest::Db::open("memory:")?;
    /// for (key, value) in [("ash", "1"), ("birch", "22"), ("oak", "333")] {
    ///     db.set(key, value)?;
    /// }
    /// let mut bytes = 0;
    /// db.scan("b".., |_, value| {
    ///     bytes += value.len();
    ///     if bytes < 5 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    /// })?;
    /// assert_eq!(bytes, 5);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    #[inline]
    pub fn scan(
        &self,
        bounds: impl KeyRange,
        see: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        self.0.scan(clamp(bounds.bounds()), Direction::Forward, see)
    }

    /// Like [`scan`](View::scan), from the greatest key to the least.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("ash", "1")?;
    /// db.set("oak", "2")?;
    /// let mut keys = Vec::new();
    /// db.scan_back(.., |key, _| {
    ///     keys.push(key.to_vec());
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(keys, [b"oak", b"ash"]);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    #[inline]
    pub fn scan_back(
        &self,
        bounds: impl KeyRange,
        see: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        self.0.scan(clamp(bounds.bounds()), Direction::Backward, see)
    }

    /// Like [`scan`](View::scan), with the keys alone. It saves what values cost, as [`Range::keys`] does.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("ash", vec![0; 1_000_000])?;
    /// let mut bytes = 0;
    /// db.scan_keys(.., |key| {
    ///     bytes += key.len();
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(bytes, 3);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    #[inline]
    pub fn scan_keys(&self, bounds: impl KeyRange, see: impl FnMut(&[u8]) -> ControlFlow<()>) -> Result<()> {
        self.0.scan_keys(clamp(bounds.bounds()), Direction::Forward, see)
    }

    /// Scans many ranges: calls `see` with the number of a range in `ranges` and each of its first `limit` pairs, range
    /// by range in the order of `ranges`, until it returns `Break`.
    ///
    /// This is faster than a scan of each range, because the waits of 16 ranges overlap: on disk the pages with which
    /// they begin are requested together, before the first of them is read. Each of these ranges may keep three cached
    /// pages of each table in memory. `see` may use the store. Ranges may be read at different moments; to read all at
    /// one moment, use a snapshot. In the kernel no waits overlap.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// # let db = forrest::Db::open("memory:")?;
    /// for key in ["ada/1", "ada/2", "ada/3", "bob/1"] {
    ///     db.set(key, "")?;
    /// }
    /// let mut newest = Vec::new();
    /// db.multi_scan(&["ada/".."ada0", "bob/".."bob0", "eve/".."eve0"], 2, |range, key, _| {
    ///     newest.push((range, String::from_utf8_lossy(key).into_owned()));
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(newest, [(0, "ada/1".into()), (0, "ada/2".into()), (1, "bob/1".into())]);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn multi_scan(
        &self,
        ranges: &[impl KeyRange],
        limit: usize,
        see: impl FnMut(usize, &[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let ranges: Vec<_> = ranges.iter().map(|range| clamp(range.bounds())).collect();
        self.0.multi_scan(&ranges, limit, false, see)
    }

    /// Like [`multi_scan`](View::multi_scan), with the keys alone.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("ash", "1")?;
    /// let mut keys = 0;
    /// db.multi_scan_keys(&["a".."b", "b".."c"], 10, |_, _| {
    ///     keys += 1;
    ///     ControlFlow::Continue(())
    /// })?;
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn multi_scan_keys(
        &self,
        ranges: &[impl KeyRange],
        limit: usize,
        mut see: impl FnMut(usize, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let ranges: Vec<_> = ranges.iter().map(|range| clamp(range.bounds())).collect();
        self.0.multi_scan(&ranges, limit, true, |range, key, _| see(range, key))
    }

    /// Whether there is a key that begins with each of `prefixes`, in their order. Its waits overlap as those of
    /// [`multi_scan`](View::multi_scan).
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("/usr/bin/env", "")?;
    /// assert_eq!(db.prefixes_exist(&["/usr/", "/var/", ""])?, [true, false, true]);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn prefixes_exist(&self, prefixes: &[impl AsRef<[u8]>]) -> Result<Vec<bool>> {
        let ends: Vec<_> = prefixes.iter().map(|prefix| prefix_end(prefix.as_ref())).collect();
        let bounds = prefixes.iter().zip(&ends).map(|(prefix, end)| {
            let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            clamp((Bound::Included(prefix.as_ref()), end))
        });
        let mut exist = vec![false; prefixes.len()];
        self.0.multi_scan(&bounds.collect::<Vec<_>>(), 1, true, |number, _, _| {
            exist[number] = true;
            ControlFlow::Continue(())
        })?;
        Ok(exist)
    }

    /// Iterates over the pairs whose keys begin with `prefix`.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("/usr/bin/env", "")?;
    /// db.set("/usr/lib", "")?;
    /// assert_eq!(db.prefix("/usr/bin/").count(), 1);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range {
        let prefix = prefix.as_ref();
        let end = prefix_end(prefix);
        self.range((Bound::Included(prefix), end.as_deref().map_or(Bound::Unbounded, Bound::Excluded)))
    }

    /// A cursor, not yet positioned.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("b", "")?;
    /// let mut cursor = db.cursor();
    /// assert!(cursor.seek("a")?);
    /// assert_eq!(cursor.key(), Some(&b"b"[..]));
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn cursor(&self) -> Cursor {
        Cursor::new(self.0.cursor())
    }

    /// The number of keys in a range. Takes time proportional to that number; on disk much less where a memtable has no
    /// changes of the range, and no values expire or have operands of merges.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("a", "")?;
    /// db.set("b", "")?;
    /// assert_eq!(db.count("b"..)?, 1);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn count(&self, bounds: impl KeyRange) -> Result<u64> {
        let (lower, upper) = clamp(bounds.bounds());
        self.0.count(lower, upper)
    }

    /// The number of keys in a range, and their bytes, about. Takes time that grows with the logarithm of the number of
    /// keys, and on disk with the number of tables, which are not read except for a few pages at the two ends.
    ///
    /// - In memory, some of the nodes stand for all. A range of some thousand keys is counted. In larger ones, of keys
    ///   that are spread evenly, the number is off by 2 % on average, and by less than 25 %.
    /// - On disk, tables know the position of a key. If all is in tables and no key was replaced or deleted since they
    ///   were merged, the number is exact. Otherwise a share of the entries counts as replaced or deleted, the same
    ///   everywhere in a partition; and each key in a memtable counts as a new one, also if it is in a table too or its
    ///   deletion is. So the number is off by no more than the replaced and deleted entries in the partitions that the
    ///   range touches, the keys in memtables, and what the estimate of their number is off. Keys of ranges that were
    ///   deleted do not count, unless a memtable has more than 64 of them.
    /// - The kernel has no such call, so this fails with `Unsupported`
    ///   ([`Capability::Approximate`](crate::Capability::Approximate)).
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// for number in 0..1000_u32 {
    ///     db.set(number.to_be_bytes(), "tree")?;
    /// }
    /// let about = db.approximate(..100_u32.to_be_bytes())?;
    /// assert_eq!((about.keys, about.bytes), (100, 800));
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn approximate(&self, bounds: impl KeyRange) -> Result<Approximate> {
        let (lower, upper) = clamp(bounds.bounds());
        self.0.approximate(lower, upper)
    }

    /// The pair with the smallest key.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("a", "")?;
    /// db.set("b", "")?;
    /// assert_eq!(db.first()?.unwrap().key(), b"a");
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn first(&self) -> Result<Option<Entry>> {
        self.range(..).fetching(1).next().transpose()
    }

    /// The pair with the largest key.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// db.set("a", "")?;
    /// db.set("b", "")?;
    /// assert_eq!(db.last()?.unwrap().key(), b"b");
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn last(&self) -> Result<Option<Entry>> {
        self.range(..).fetching(1).next_back().transpose()
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("View")
    }
}
