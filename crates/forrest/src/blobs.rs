//! [`Blobs`]: values of any length, written and read in pieces.
//!
//! A blob is many ordinary pairs of one keyspace, so everything that holds for pairs holds for blobs: durability,
//! snapshots, checkpoints, checksums, the space that comes back. The first byte of a key says what it is:
//!
//! | key | value |
//! |---|---|
//! | 0 | the name of this layout, so that a keyspace of other pairs is not taken for one of blobs |
//! | 1 | a counter: the last id that was given to a blob |
//! | 2, id | a blob that is being written: the opening of the store that writes it, and since when in ms |
//! | 3, id, number | a piece |
//! | 4, key | a blob: id, length, bytes of a piece |
//!
//! All numbers are big endian: ids, lengths and times have 8 bytes, numbers and lengths of pieces 4.
//!
//! INVARIANT: at every moment each piece has the id of a blob or of one that is being written. A blob that is complete
//! appears in one batch, which also removes its mark of being written, and the blob that it replaces. Each piece is
//! written on the condition that the mark is there. So a crash leaves at most marks, and [`Blobs::remove_unfinished`]
//! finds by them what is to be removed.
//!
//! INVARIANT: the first batches of each blob are written on the condition that the layout is there. So a keyspace that
//! was cleared gets none without it, and one with a time to live none at all.

use crate::batch::WriteBatch;
use crate::builder::WriteOptions;
use crate::cursor::Range;
use crate::db::{Db, Snapshot};
use crate::keyspace::{BLOBS_KEY, BLOBS_LAYOUTS, Keyspace, choose_blobs_or_ttl};
use crate::view::View;
use forrest_engine::{Error, ErrorKind, KeyRange, MAX_KEY_BYTES, Result, Value, Written};
use std::fmt;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The greatest length of a key of a blob, in bytes.
pub const MAX_BLOB_KEY_BYTES: usize = MAX_KEY_BYTES - 1;

/// The length of the pieces of a blob, in bytes, unless [`Blobs::piece_bytes`] sets another one.
pub const DEFAULT_PIECE_BYTES: u32 = 256 << 10;

/// The greatest length of a piece, in bytes.
pub const MAX_PIECE_BYTES: u32 = 64 << 20;

const LAYOUT: &[u8] = b"forrest blobs 1";
const COUNTER_KEY: [u8; 1] = [1];
const UNFINISHED: u8 = 2;
const PIECE: u8 = 3;
const BLOB: u8 = 4;

/// A blob of more pieces is removed as a range, which costs reads more than a few deletes do.
const DELETES_MAX: u32 = 4;

/// Values of any length, in a keyspace of their own: files, images, models. A blob is written and read in pieces, so it
/// needs the memory of a piece only, and can be read at any offset. In memory and on disk.
///
/// Blobs do not expire: a keyspace of blobs has no [time to live](crate::Keyspace::set_ttl). A
/// [compaction filter](crate::Builder::compaction_filter) must keep all pairs of such a keyspace as they are.
///
/// A blob appears at one instant, whole, when its writer finishes. It then replaces the blob that its key had. A reader
/// reads the blob that was there when it began.
///
/// On disk each byte is written once, to the log, if pieces are at least [`Builder::large_values`] bytes long, which
/// they are by default. [`Keyspace::set`](crate::Keyspace::set) is the better way for values that are at hand as a
/// whole: it takes up to [`MAX_VALUE_BYTES`](crate::MAX_VALUE_BYTES), and one change where a blob takes three.
///
/// ```
/// use std::io::{Read, Seek, SeekFrom, Write};
///
/// # let db = forrest::Db::open("memory:")?;
/// let photos = db.blobs("photos")?;
/// let mut writer = photos.writer("oak")?;
/// for _ in 0..1_000 {
///     writer.write_all(&[0xFF; 1_000])?;
/// }
/// assert!(photos.get("oak")?.is_none());
/// writer.finish()?;
///
/// let mut photo = photos.get("oak")?.unwrap();
/// assert_eq!(photo.len(), 1_000_000);
/// photo.seek(SeekFrom::End(-10))?;
/// let mut last = Vec::new();
/// photo.read_to_end(&mut last)?;
/// assert_eq!(last, [0xFF; 10]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`Builder::large_values`]: crate::Builder::large_values
#[derive(Clone, Debug)]
pub struct Blobs {
    db: Db,
    space: Keyspace,
    piece_bytes: u32,
    /// What earlier openings of the store left is removed.
    is_ready: Arc<AtomicBool>,
}

/// Where the pieces of a blob are, and how long it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Head {
    id: u64,
    len: u64,
    piece_bytes: u32,
}

impl Db {
    /// Opens a keyspace of [`Blobs`], and creates it if it is missing. An empty keyspace becomes one of blobs when the
    /// first blob is begun.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace has pairs that are no blobs, or a time to live; `Unsupported` in the kernel,
    /// and for a layout that a later version made; otherwise as [`keyspace`](Db::keyspace).
    pub fn blobs(&self, name: &str) -> Result<Blobs> {
        let space = self.keyspace(name)?;
        check_stays(&space)?;
        is_laid_out(&space, name)?;
        Ok(Blobs { db: self.clone(), space, piece_bytes: DEFAULT_PIECE_BYTES, is_ready: Arc::default() })
    }
}

/// An error if a keyspace has a time to live: pieces, heads and the counter of ids would expire one by one.
fn check_stays(space: &Keyspace) -> Result<()> {
    let Some(ttl) = space.ttl() else { return Ok(()) };
    Err(Error::invalid(format!(
        "the keyspace \"{}\" has a time to live of {} ms, and blobs do not expire; choose another keyspace for \
         them, or take the time to live from this one",
        space.name(),
        ttl.as_millis()
    )))
}

/// Whether a keyspace has blobs; false if it is empty.
fn is_laid_out(view: &View, name: &str) -> Result<bool> {
    let mut layout = view.get(BLOBS_KEY)?;
    if layout.is_none() {
        if view.range(..).next().transpose()?.is_none() {
            return Ok(false);
        }
        // Another thread may have laid out the keyspace meanwhile, and written the pair.
        layout = view.get(BLOBS_KEY)?;
    }
    let other = match layout {
        Some(layout) if layout == LAYOUT => return Ok(true),
        Some(layout) if layout.starts_with(BLOBS_LAYOUTS) => String::from_utf8_lossy(&layout).into_owned(),
        _ => {
            let message =
                format!("keyspace \"{name}\" has pairs that are no blobs; choose another keyspace for blobs");
            return Err(Error::invalid(message));
        }
    };
    let message = format!("keyspace \"{name}\" has the layout \"{other}\", which is of a later version");
    Err(Error::unsupported(message))
}

impl Snapshot {
    /// A blob of the keyspace `name`, as it was when the snapshot was taken; `None` if there was none.
    ///
    /// # Errors
    /// As [`Blobs::get`], and those of [`Db::blobs`].
    ///
    /// ```
    /// use std::io::Write;
    /// # let db = forrest::Db::open("memory:")?;
    /// let photos = db.blobs("photos")?;
    /// let mut writer = photos.writer("oak")?;
    /// writer.write_all(b"bark")?;
    /// writer.finish()?;
    /// let snapshot = db.snapshot()?;
    /// photos.delete("oak")?;
    /// assert_eq!(snapshot.blob("photos", "oak")?.unwrap().len(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn blob(&self, name: &str, key: impl AsRef<[u8]>) -> Result<Option<Blob>> {
        let (view, key) = (self.keyspace(name)?, blob_key(key.as_ref())?);
        let head = if is_laid_out(&view, name)? { head(&view, name, &key)? } else { None };
        Ok(head.map(|head| Blob { view, head, position: 0, piece: None }))
    }
}

/// The head that has this key, in the keyspace `name`.
fn head(view: &View, name: &str, key: &[u8]) -> Result<Option<Head>> {
    view.get(key)?.map(|value| Head::decode(name, &value)).transpose()
}

impl Blobs {
    /// Sets the length of the pieces of blobs that this handle writes, in bytes: 1 KiB to [`MAX_PIECE_BYTES`]. The
    /// default is [`DEFAULT_PIECE_BYTES`]. A writer and a reader have one piece in memory. A blob has at most 2^32
    /// pieces.
    ///
    /// # Errors
    /// `InvalidArgument` for another length.
    pub fn piece_bytes(mut self, bytes: u32) -> Result<Blobs> {
        if !(1 << 10..=MAX_PIECE_BYTES).contains(&bytes) {
            return Err(Error::invalid(format!(
                "pieces of {bytes} bytes; choose 1024 to {MAX_PIECE_BYTES} bytes"
            )));
        }
        self.piece_bytes = bytes;
        Ok(self)
    }

    /// The name of the keyspace.
    pub fn name(&self) -> &str {
        self.space.name()
    }

    /// Begins to write a blob. Nothing is seen of it before [`BlobWriter::finish`]. A writer that is dropped before
    /// that removes its pieces.
    ///
    /// The first call removes what earlier openings of the store left of blobs that they did not finish. So write no
    /// blobs to a copy that still follows the changes of another store: it may have begun some.
    ///
    /// # Errors
    /// `Limit` if the key exceeds [`MAX_BLOB_KEY_BYTES`]; otherwise as [`delete`](Blobs::delete). In a store that is
    /// only read, the first piece fails, at the latest.
    pub fn writer(&self, key: impl AsRef<[u8]>) -> Result<BlobWriter> {
        let key = blob_key(key.as_ref())?;
        self.begin_to_write()?;
        let blobs = self.clone();
        Ok(BlobWriter { blobs, key, id: None, mark: None, tried: None, pieces: 0, piece: Vec::new() })
    }

    /// A blob as it is now, to be read; `None` if there is none. Until it is dropped, it holds a
    /// [snapshot](Db::snapshot) of the store.
    ///
    /// # Errors
    /// `Limit`, `Io`, `Corrupt`.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Blob>> {
        self.db.snapshot()?.blob(self.name(), key)
    }

    /// The length of a blob in bytes; `None` if there is none. Reads no piece.
    ///
    /// # Errors
    /// As [`get`](Blobs::get).
    pub fn blob_bytes(&self, key: impl AsRef<[u8]>) -> Result<Option<u64>> {
        Ok(head(&self.space, self.name(), &blob_key(key.as_ref())?)?.map(|head| head.len))
    }

    /// Iterates over the keys of a range, in order, each with the length of its blob in bytes. Reads no piece.
    ///
    /// ```
    /// use std::io::Write;
    /// # let db = forrest::Db::open("memory:")?;
    /// let photos = db.blobs("photos")?;
    /// let mut writer = photos.writer("oak")?;
    /// writer.write_all(b"bark")?;
    /// writer.finish()?;
    /// let all: Vec<_> = photos.range(..).collect::<Result<_, _>>()?;
    /// assert_eq!(all, [(b"oak".to_vec(), 4)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn range(&self, bounds: impl KeyRange) -> BlobRange {
        let tagged = |key: &[u8]| [&[BLOB], key].concat();
        let (lower, upper) = bounds.bounds();
        let lower = match lower {
            Bound::Unbounded => Bound::Included(vec![BLOB]),
            bound => bound.map(tagged),
        };
        let upper = match upper {
            Bound::Unbounded => Bound::Excluded(vec![BLOB + 1]),
            bound => bound.map(tagged),
        };
        BlobRange { heads: self.space.range((lower, upper)), name: self.name().to_owned() }
    }

    /// Removes a blob. Returns true if there was one.
    ///
    /// # Errors
    /// `Limit`, `OutOfSpace`, `Io`, `Stopped`; `Unsupported` in a store that is only read.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = blob_key(key.as_ref())?;
        let mut found = self.space.get(&key)?;
        if found.is_some() {
            self.begin_to_write()?;
        }
        while let Some(old) = found {
            let mut batch = WriteBatch::new();
            self.replace(&mut batch, &key, Some(&old), None)?;
            match self.db.try_write(batch)? {
                Written::Mismatch { found: now, .. } => found = now,
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Removes what is left of blobs whose writers began at least `age` ago and have not finished. Returns their
    /// number. Such a writer fails from then on, with `ConditionFailed`.
    ///
    /// [`writer`](Blobs::writer) does this for writers of earlier openings of the store. So it is needed only if this
    /// process leaks writers.
    ///
    /// # Errors
    /// As [`delete`](Blobs::delete).
    pub fn remove_unfinished(&self, age: Duration) -> Result<u64> {
        let until = now_ms().saturating_sub(age.as_millis().try_into().unwrap_or(u64::MAX));
        self.remove_where(|_, since_ms| since_ms <= until)
    }

    /// Lays out an empty keyspace, and removes what earlier openings have left, once for a handle.
    fn begin_to_write(&self) -> Result<()> {
        check_stays(&self.space)?;
        if !is_laid_out(&self.space, self.name())? {
            let _no_ttl_meanwhile = choose_blobs_or_ttl()?;
            check_stays(&self.space)?;
            // Another thread may do the same.
            let _ = self.space.compare_and_swap(BLOBS_KEY, None, Some(LAYOUT))?;
        }
        // ORDERING: relaxed, because doing it twice is harmless.
        if self.is_ready.load(Relaxed) {
            return Ok(());
        }
        self.remove_where(|opening, _| opening != self.db.opening())?;
        self.is_ready.store(true, Relaxed);
        Ok(())
    }

    /// Removes unfinished blobs by the opening of the store that writes them, and since when.
    fn remove_where(&self, choose: impl Fn(u64, u64) -> bool) -> Result<u64> {
        let mut removed = 0;
        for entry in self.space.prefix([UNFINISHED]) {
            let entry = entry?;
            let (mark, value) = (entry.key(), entry.value()?);
            let (Some(id), Some((opening, since_ms))) = (number(&mark[1..]), numbers(&value)) else {
                return Err(damaged(self.name(), "a mark of an unfinished blob has the wrong length"));
            };
            if choose(opening, since_ms) {
                let mut batch = WriteBatch::new();
                batch.on(&self.space).compare_and_swap(mark, Some(&value), None).delete_range(pieces_of(id));
                removed += u64::from(self.db.try_write(batch)?.is_applied());
            }
        }
        Ok(removed)
    }

    /// Adds the change of a blob to a batch: from the head `old`, which is removed with its pieces.
    fn replace(
        &self,
        batch: &mut WriteBatch,
        key: &[u8],
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<()> {
        let mut on = batch.on(&self.space);
        on.compare_and_swap(key, old, new);
        if let Some(old) = old {
            let old = Head::decode(self.name(), old)?;
            if old.pieces() > DELETES_MAX {
                on.delete_range(pieces_of(old.id));
            } else {
                for number in 0..old.pieces() {
                    on.delete(piece_key(old.id, number));
                }
            }
        }
        Ok(())
    }
}

/// The keys of a range, each with the length of its blob; see [`Blobs::range`].
#[derive(Debug)]
pub struct BlobRange {
    heads: Range,
    /// The keyspace.
    name: String,
}

impl Iterator for BlobRange {
    type Item = Result<(Vec<u8>, u64)>;

    fn next(&mut self) -> Option<Result<(Vec<u8>, u64)>> {
        let entry = self.heads.next()?;
        Some(entry.and_then(|entry| {
            let head = Head::decode(&self.name, entry.value_bytes()?)?;
            Ok((entry.key()[1..].to_vec(), head.len))
        }))
    }
}

/// Writes a blob; see [`Blobs::writer`]. Pieces go to the store as they fill up; [`flush`](Write::flush) does nothing.
/// Errors are [`Error`](crate::Error)s within errors of [`std::io`].
pub struct BlobWriter {
    blobs: Blobs,
    /// The key of the head.
    key: Vec<u8>,
    /// Given with the first piece, or when a short blob is finished.
    id: Option<u64>,
    /// The value of the mark, once a piece was written.
    mark: Option<[u8; 16]>,
    /// The mark of the first piece, which may be there although that failed: a store that stopped may make it durable
    /// later.
    tried: Option<[u8; 16]>,
    /// The number of pieces that are written.
    pieces: u32,
    /// What comes next, less than a piece.
    piece: Vec<u8>,
}

impl BlobWriter {
    /// The number of bytes that were given to the writer.
    pub fn written_bytes(&self) -> u64 {
        u64::from(self.pieces) * u64::from(self.blobs.piece_bytes) + self.piece.len() as u64
    }

    /// Makes the blob visible, in place of the one that its key had. All of it is as durable then as a change of the
    /// store.
    ///
    /// # Errors
    /// `ConditionFailed` if [`Blobs::remove_unfinished`] has removed the blob, or the keyspace was cleared;
    /// `OutOfSpace`, `Io`, `Stopped`. A blob whose writer has failed is not seen. What is left of it is removed now, or
    /// after the store was opened again.
    pub fn finish(self) -> Result<()> {
        self.finish_with(WriteBatch::new(), &WriteOptions::default()).map(drop)
    }

    /// Makes the blob visible at the same instant at which a batch is applied. If a comparison of the batch finds
    /// another value, nothing is changed, and nothing is left of the blob.
    ///
    /// # Errors
    /// As [`finish`](BlobWriter::finish) and [`Db::try_write_with`].
    ///
    /// ```
    /// use forrest::{WriteBatch, WriteOptions};
    /// use std::io::Write;
    /// # let db = forrest::Db::open("memory:")?;
    /// let mut writer = db.blobs("photos")?.writer("oak")?;
    /// writer.write_all(b"bark")?;
    /// let mut batch = WriteBatch::new();
    /// batch.add("number of photos", 1);
    /// assert!(writer.finish_with(batch, &WriteOptions::default())?.is_applied());
    /// assert_eq!(db.add("number of photos", 0)?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish_with(mut self, batch: WriteBatch, options: &WriteOptions) -> Result<Written> {
        let (id, blobs) = (self.id()?, self.blobs.clone());
        let head = Head { id, len: self.written_bytes(), piece_bytes: blobs.piece_bytes };
        let theirs = batch.len();
        let mut found = blobs.space.get(&self.key)?;
        loop {
            let mut batch = batch.clone();
            if let Some(mark) = &self.mark {
                batch.on(&blobs.space).compare_and_swap(mark_key(id), Some(mark), None);
            } else {
                batch.on(&blobs.space).compare_and_swap(BLOBS_KEY, Some(LAYOUT), Some(LAYOUT));
                if self.tried.is_some() {
                    batch.on(&blobs.space).delete(mark_key(id));
                }
            }
            blobs.replace(&mut batch, &self.key, found.as_deref(), Some(&head.encode()))?;
            if !self.piece.is_empty() {
                batch.on(&blobs.space).set(piece_key(id, self.pieces), &self.piece);
            }
            match blobs.db.try_write_with(batch, options)? {
                Written::Mismatch { op, found: now } if op >= theirs => {
                    if op == theirs {
                        return Err(self.removed());
                    }
                    found = now;
                }
                written => {
                    if written.is_applied() {
                        (self.mark, self.tried) = (None, None);
                    }
                    return Ok(written);
                }
            }
        }
    }

    fn id(&mut self) -> Result<u64> {
        if let Some(id) = self.id {
            return Ok(id);
        }
        let (space, name) = (&self.blobs.space, self.blobs.name());
        let mut last = space.get(COUNTER_KEY)?;
        loop {
            let id = match &last {
                Some(last) => number(last)
                    .and_then(|last| last.checked_add(1))
                    .ok_or_else(|| damaged(name, "the counter of ids is wrong"))?,
                None => first_id(),
            };
            let mut batch = WriteBatch::new();
            let mut on = batch.on(space);
            on.compare_and_swap(BLOBS_KEY, Some(LAYOUT), Some(LAYOUT));
            on.compare_and_swap(COUNTER_KEY, last.as_deref(), Some(&id.to_be_bytes()));
            match self.blobs.db.try_write(batch)? {
                Written::Mismatch { op: 0, .. } => return Err(self.removed()),
                Written::Mismatch { found, .. } => last = found,
                _ => return Ok(*self.id.insert(id)),
            }
        }
    }

    /// Writes a piece.
    fn put(&mut self, piece: &[u8]) -> Result<()> {
        let id = self.id()?;
        if self.pieces == u32::MAX {
            return Err(Error::new(ErrorKind::Limit, "a blob has at most 2^32 pieces; choose longer pieces"));
        }
        let mut batch = WriteBatch::new();
        let mut on = batch.on(&self.blobs.space);
        let mark = match self.mark {
            Some(mark) => {
                on.compare_and_swap(mark_key(id), Some(&mark), Some(&mark));
                mark
            }
            None => {
                let opening = self.blobs.db.opening();
                let mark = *self.tried.get_or_insert_with(|| {
                    let mut mark = [0; 16];
                    mark[..8].copy_from_slice(&opening.to_be_bytes());
                    mark[8..].copy_from_slice(&now_ms().to_be_bytes());
                    mark
                });
                on.compare_and_swap(BLOBS_KEY, Some(LAYOUT), Some(LAYOUT));
                on.set(mark_key(id), mark);
                mark
            }
        };
        on.set(piece_key(id, self.pieces), piece);
        if !self.blobs.db.try_write(batch)?.is_applied() {
            return Err(self.removed());
        }
        self.mark = Some(mark);
        self.pieces += 1;
        Ok(())
    }

    fn removed(&self) -> Error {
        let message = "this blob was removed as unfinished: its writer took longer than `remove_unfinished` \
                       allows, or the keyspace was cleared; write it again";
        Error::new(ErrorKind::ConditionFailed, message)
    }
}

impl Write for BlobWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece_bytes = self.blobs.piece_bytes as usize;
        if self.piece.is_empty() && bytes.len() >= piece_bytes {
            self.put(&bytes[..piece_bytes]).map_err(io::Error::other)?;
            return Ok(piece_bytes);
        }
        let taken = bytes.len().min(piece_bytes - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        if self.piece.len() == piece_bytes {
            let mut piece = std::mem::take(&mut self.piece);
            if let Err(error) = self.put(&piece) {
                // As if these bytes had not been given, so that the caller may try again.
                piece.truncate(piece_bytes - taken);
                self.piece = piece;
                return Err(io::Error::other(error));
            }
            piece.clear();
            self.piece = piece;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for BlobWriter {
    fn drop(&mut self) {
        if let (Some(id), Some(mark)) = (self.id, self.mark.or(self.tried)) {
            let mut batch = WriteBatch::new();
            let mut on = batch.on(&self.blobs.space);
            on.compare_and_swap(mark_key(id), Some(&mark), None);
            on.delete_range(pieces_of(id));
            // If it fails, the mark stays, by which another opening of the store removes the pieces.
            let _ = self.blobs.db.try_write(batch);
        }
    }
}

impl fmt::Debug for BlobWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobWriter({} bytes)", self.written_bytes())
    }
}

/// A blob that is read: by [`Read`], [`BufRead`], which copies nothing, and [`Seek`], or at an offset. It has one piece
/// in memory. Errors of these traits are [`Error`](crate::Error)s within errors of [`std::io`].
#[derive(Clone)]
pub struct Blob {
    view: View,
    head: Head,
    position: u64,
    /// The piece that was read last, and its number.
    piece: Option<(u32, Value)>,
}

impl Blob {
    /// The length in bytes.
    pub fn len(&self) -> u64 {
        self.head.len
    }

    /// True if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.head.len == 0
    }

    /// Reads from an offset on until `buffer` is full or the blob ends, and returns the number of bytes. Does not
    /// change the position of [`Read`]. Keeps the piece that it read last.
    ///
    /// # Errors
    /// `Corrupt` if a piece is missing or damaged; `Io`.
    ///
    /// ```
    /// use std::io::Write;
    /// # let db = forrest::Db::open("memory:")?;
    /// let photos = db.blobs("photos")?;
    /// let mut writer = photos.writer("oak")?;
    /// writer.write_all(b"bark and leaves")?;
    /// writer.finish()?;
    /// let mut buffer = [0; 3];
    /// assert_eq!(photos.get("oak")?.unwrap().read_at(5, &mut buffer)?, 3);
    /// assert_eq!(&buffer, b"and");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let (mut offset, mut done) = (offset, 0);
        while done < buffer.len() && offset < self.head.len {
            let (number, within) = self.head.place(offset);
            let piece = self.load(number)?;
            let len = (piece.len() - within).min(buffer.len() - done);
            buffer[done..done + len].copy_from_slice(&piece[within..within + len]);
            (offset, done) = (offset + len as u64, done + len);
        }
        Ok(done)
    }

    /// The piece of this number, which is kept.
    fn load(&mut self, number: u32) -> Result<&Value> {
        if self.piece.as_ref().is_none_or(|(last, _)| *last != number) {
            self.piece = Some((number, self.piece(number)?));
        }
        Ok(&self.piece.as_ref().expect("it was just read").1)
    }

    fn piece(&self, number: u32) -> Result<Value> {
        let piece = self.view.get(piece_key(self.head.id, number))?;
        let expected = self.head.bytes_of(number);
        let found = piece.as_ref().map_or("missing".into(), |piece| format!("{} bytes long", piece.len()));
        piece.filter(|piece| piece.len() as u64 == expected).ok_or_else(|| {
            let of = self.head.pieces();
            let message = format!("piece {number} of {of} of a blob is {found}; expected {expected} bytes");
            Error::new(ErrorKind::Corrupt, message)
        })
    }
}

impl BufRead for Blob {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.position >= self.head.len {
            return Ok(&[]);
        }
        let (number, within) = self.head.place(self.position);
        Ok(&self.load(number).map_err(io::Error::other)?[within..])
    }

    fn consume(&mut self, bytes: usize) {
        self.position += bytes as u64;
    }
}

impl Read for Blob {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut bytes = self.fill_buf()?;
        let len = bytes.read(buffer)?;
        self.consume(len);
        Ok(len)
    }
}

impl Seek for Blob {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(offset) => self.head.len.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "seek to an offset before the blob");
        self.position = to.ok_or_else(invalid)?;
        Ok(self.position)
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.head.len)
    }
}

impl Head {
    fn encode(&self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..8].copy_from_slice(&self.id.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.len.to_be_bytes());
        bytes[16..].copy_from_slice(&self.piece_bytes.to_be_bytes());
        bytes
    }

    /// Of the value of a head in the keyspace `name`.
    fn decode(name: &str, value: &[u8]) -> Result<Head> {
        let bytes: &[u8; 20] =
            value.try_into().map_err(|_| damaged(name, "the head of a blob has the wrong length"))?;
        let (id, len) = (number(&bytes[..8]).expect("8 bytes"), number(&bytes[8..16]).expect("8 bytes"));
        let piece_bytes = u32::from_be_bytes(bytes[16..].try_into().expect("4 bytes"));
        let fits = len.div_ceil(u64::from(piece_bytes.max(1))) <= u64::from(u32::MAX) + 1;
        if !(1..=MAX_PIECE_BYTES).contains(&piece_bytes) || !fits {
            return Err(damaged(name, "the head of a blob has impossible lengths"));
        }
        Ok(Head { id, len, piece_bytes })
    }

    /// The number of pieces, or 2^32 - 1 if there is one more.
    fn pieces(&self) -> u32 {
        u32::try_from(self.len.div_ceil(self.piece_bytes.into())).unwrap_or(u32::MAX)
    }

    /// The piece that has an offset, and where in the piece it is.
    fn place(&self, offset: u64) -> (u32, usize) {
        let piece_bytes = u64::from(self.piece_bytes);
        let number = u32::try_from(offset / piece_bytes).expect("the offset is within the blob");
        (number, (offset % piece_bytes) as usize)
    }

    fn bytes_of(&self, number: u32) -> u64 {
        let piece_bytes = u64::from(self.piece_bytes);
        piece_bytes.min(self.len - u64::from(number) * piece_bytes)
    }
}

fn damaged(name: &str, what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("keyspace \"{name}\" of blobs: {what}"))
}

/// The key of the head.
fn blob_key(key: &[u8]) -> Result<Vec<u8>> {
    if key.len() > MAX_BLOB_KEY_BYTES {
        return Err(Error::limit("key of a blob", "bytes", key.len(), MAX_BLOB_KEY_BYTES));
    }
    Ok([&[BLOB], key].concat())
}

fn mark_key(id: u64) -> [u8; 9] {
    let mut key = [UNFINISHED; 9];
    key[1..].copy_from_slice(&id.to_be_bytes());
    key
}

fn piece_key(id: u64, number: u32) -> [u8; 13] {
    let mut key = [PIECE; 13];
    key[1..9].copy_from_slice(&id.to_be_bytes());
    key[9..].copy_from_slice(&number.to_be_bytes());
    key
}

/// The keys of all pieces of a blob.
fn pieces_of(id: u64) -> std::ops::RangeInclusive<[u8; 13]> {
    piece_key(id, 0)..=piece_key(id, u32::MAX)
}

fn number(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}

fn numbers(bytes: &[u8]) -> Option<(u64, u64)> {
    let (first, second) = bytes.split_at_checked(8)?;
    number(first).zip(number(second))
}

/// The time in milliseconds since 1970.
/// The first id of a keyspace. After it was cleared there may be writers from before: no later writer gets an id of
/// theirs. They take less than 2^20 in a millisecond.
fn first_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = now_ms() << 20;
    // ORDERING: relaxed, because nothing else depends on it.
    let last = NEXT.fetch_update(Relaxed, Relaxed, |next| Some(next.max(now) + (1 << 20)));
    last.unwrap_or_else(|last| last).max(now)
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_millis().try_into().unwrap_or(u64::MAX)
}
