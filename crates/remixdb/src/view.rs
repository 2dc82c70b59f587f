//! Views: one state of a keyspace, the newest or a snapshot's, for reading; and cursors in it.

use crate::approximate;
use crate::cached;
use crate::catalog::{Catalog, Space};
use crate::clock::Moment;
use crate::core::{Begun, Handle};
use crate::counting;
use crate::gaps::Changes;
use crate::memtable::ReadAt;
use crate::parked::Slot;
use crate::partition::{Pair, Visit};
use crate::read;
use crate::scan::{self, Keys, Scan, Values};
use crate::see::{Presence, See, ToBuffer, ToValue};
use crate::version::Version;
use forrest_engine::chunk::COPIED_VALUE_BYTES;
use forrest_engine::{
    Approximate, Call, Chunk, Direction, Filled, Goto, KeyBounds, Pieces, Result, Value, half_open,
};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A refill of an iteration stops when it has copied this many bytes.
const CHUNK_BYTES: usize = 256 << 10;

impl Handle {
    /// One state of all keyspaces.
    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        self.check_here()?;
        Ok(Snapshot::take(self))
    }

    /// The newest state of a keyspace.
    pub(crate) fn view(&self, space: &Arc<Space>) -> View {
        View(Source::Newest { store: self.clone(), space: space.clone() })
    }
}

/// One state of all keyspaces.
#[derive(Clone)]
pub struct Snapshot(Arc<Past>);

struct Past {
    store: Handle,
    moment: Moment,
    version: Arc<Version>,
    catalog: Arc<Catalog>,
    /// Whether the last change is an ingest whose tables it may not have.
    is_ingesting: bool,
    /// Whether all of it is in the memtables.
    is_applied: AtomicBool,
}

impl Past {
    /// The version, for reading.
    #[inline]
    fn version(&self) -> &Arc<Version> {
        // ORDERING: Acquire: a thread that finds it set sees the changes as the thread did that set it.
        if !self.is_applied.load(Ordering::Acquire) {
            self.store.readers.wait(self.moment.sequence);
            self.is_applied.store(true, Ordering::Release);
        }
        &self.version
    }
}

impl Drop for Past {
    fn drop(&mut self) {
        if self.store.check_here().is_ok() {
            self.store.readers.give_back(self.moment.sequence);
        }
    }
}

impl Snapshot {
    pub(crate) fn take(store: &Handle) -> Snapshot {
        let (sequence, version, catalog, is_ingesting) = store.take_reader();
        let is_applied = AtomicBool::new(false);
        Snapshot(Arc::new(Past {
            store: store.clone(),
            // Not before it was taken: what it sees was there then.
            moment: Moment { sequence, ms: store.newest().now_ms() },
            version,
            catalog,
            is_ingesting,
            is_applied,
        }))
    }

    /// Its parts: the version, the keyspaces, and the sequence number at which it reads the memtables.
    pub(crate) fn parts(&self) -> (&Arc<Version>, &Arc<Catalog>, u64) {
        (self.0.version(), &self.0.catalog, self.0.moment.sequence)
    }
}

impl forrest_engine::Snapshot for Snapshot {
    type View = View;

    fn view(&self, name: &str) -> View {
        View(Source::Past { past: self.0.clone(), space: self.0.catalog.get(name).map(|space| space.id) })
    }

    fn keyspaces(&self) -> Vec<String> {
        self.0.catalog.names()
    }

    fn sequence(&self) -> Option<u64> {
        Some(self.0.moment.sequence - u64::from(self.0.is_ingesting))
    }
}

/// One state of a keyspace.
#[derive(Clone)]
pub struct View(Source);

/// The state that a view reads.
#[derive(Clone)]
enum Source {
    Newest {
        store: Handle,
        space: Arc<Space>,
    },
    Past {
        past: Arc<Past>,
        /// `None` if there was no such keyspace.
        space: Option<u32>,
    },
}

impl View {
    /// Runs `read` on the state; `None` if there is no such keyspace in it.
    #[inline]
    fn read<R>(&self, read: impl FnOnce(&Arc<Version>, u32, ReadAt<'_>) -> Result<R>) -> Result<Option<R>> {
        self.store().check_here()?;
        match &self.0 {
            Source::Newest { store, space } => {
                let read = read(&store.version(), space.id, store.newest());
                // Checked after the read, so that a reader that missed a key because of the drop sees the
                // drop.
                self.check()?;
                read.map(Some)
            }
            Source::Past { space: None, .. } => Ok(None),
            Source::Past { past, space: Some(id) } => {
                read(past.version(), *id, ReadAt::Past(&past.moment)).map(Some)
            }
        }
    }

    /// The same, and takes the time if that is wanted.
    #[inline(always)]
    fn timed<R>(
        &self,
        call: Call,
        read: impl FnOnce(&Arc<Version>, u32, ReadAt<'_>) -> Result<R>,
    ) -> Result<Option<R>> {
        if self.store().latencies.is_some() { self.slowly(call, read) } else { self.read(read) }
    }

    /// The same, and takes the time. Apart, so that a call whose time is not taken is as it would be without this.
    #[cold]
    #[inline(never)]
    fn slowly<R>(
        &self,
        call: Call,
        read: impl FnOnce(&Arc<Version>, u32, ReadAt<'_>) -> Result<R>,
    ) -> Result<Option<R>> {
        self.store().timed(call, || self.read(read))
    }

    fn store(&self) -> &Handle {
        match &self.0 {
            Source::Newest { store, .. } => store,
            Source::Past { past, .. } => &past.store,
        }
    }

    fn changes(&self) -> &dyn Changes {
        &**self.store()
    }

    /// An error if the keyspace was dropped.
    fn check(&self) -> Result<()> {
        match &self.0 {
            Source::Newest { space, .. } => space.check(),
            Source::Past { .. } => Ok(()),
        }
    }

    #[inline]
    fn see<R, S>(&self, key: &[u8], see: S) -> Result<Option<R>>
    where
        for<'s> &'s mut S: See<R>,
    {
        Ok(self
            .timed(Call::Get, |version, space, read_at| read::get(version, space, key, read_at, see))?
            .flatten())
    }
}

impl View {
    /// Keeps a scan for the next refill.
    fn park(&self, resume: &mut Resume, scan: Box<Scan>) {
        match (&self.0, &resume.0) {
            (Source::Newest { store, .. }, Place::Newest(slot)) => store.parked.park_again(slot, scan),
            (Source::Newest { store, .. }, _) => resume.0 = Place::Newest(store.parked.park(scan)),
            (Source::Past { .. }, _) => resume.0 = Place::Past(scan),
        }
    }
}

impl View {
    /// See `fill` of the contract.
    #[inline(always)]
    fn refill(
        &self,
        chunk: &mut Chunk,
        resume: &mut Resume,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Filled> {
        let (from, end) = if direction == Direction::Forward { (lower, upper) } else { (upper, lower) };
        chunk.limit_bytes(CHUNK_BYTES, CHUNK_BYTES);
        let (changes, mut is_cut) = (self.changes(), false);
        self.read(|version, space, read_at| {
            let mut scan = match resume.take() {
                Some(scan) if scan.reads(version) && scan.is_timely(read_at) => scan,
                _ => {
                    let (version, keys_only) = (version.clone(), chunk.is_keys_only());
                    let scan =
                        Scan::start(changes, version, space, read_at, (from, end), direction, keys_only)?;
                    Box::new(scan)
                }
            };
            let ran = if chunk.is_keys_only() {
                let push = |key: &[u8]| {
                    chunk.push_copied(key, &[]);
                    is_enough(chunk)
                };
                scan.run(|| changes, read_at, end, &mut Keys(push))
            } else {
                scan.run(|| changes, read_at, end, &mut Fill(chunk))
            };
            match ran {
                // What is intact is shown first. The next refill begins where this one failed.
                Err(_) if !chunk.is_empty() => is_cut = true,
                ran => ran?,
            }
            if chunk.is_full() && !is_cut {
                self.park(resume, scan);
            }
            Ok(())
        })?;
        Ok(if chunk.is_full() || is_cut { Filled::More } else { Filled::End })
    }
}

/// Whether a chunk takes more pairs.
fn is_enough(chunk: &Chunk) -> ControlFlow<()> {
    if chunk.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Appends pairs to a chunk until it is full.
struct Fill<'c>(&'c mut Chunk);

impl Visit for Fill<'_> {
    #[inline]
    fn here(&mut self, key: &[u8], value: &[u8]) -> Result<ControlFlow<()>> {
        Push { chunk: self.0, key }.here(value);
        Ok(is_enough(self.0))
    }

    #[inline(never)]
    fn pair(&mut self, key: &[u8], pair: Pair<'_>) -> Result<ControlFlow<()>> {
        pair.seen(Push { chunk: self.0, key })?;
        Ok(is_enough(self.0))
    }
}

/// Appends a pair to a chunk.
struct Push<'c, 'k> {
    chunk: &'c mut Chunk,
    key: &'k [u8],
}

impl See<()> for Push<'_, '_> {
    #[inline(always)]
    fn here(self, bytes: &[u8]) {
        if bytes.len() <= COPIED_VALUE_BYTES {
            self.chunk.push_copied(self.key, bytes);
        } else {
            self.chunk.push_shared(self.key, Value::from(bytes));
        }
    }

    fn elsewhere(self, len: usize, read: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()> {
        self.chunk.push_shared(self.key, ToValue.elsewhere(len, read)?);
        Ok(())
    }
}

impl forrest_engine::View for View {
    type Cursor = Cursor;
    type Resume = Resume;

    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.see(key, ToValue)
    }

    fn get_cached(&self, key: &[u8]) -> Result<Option<Option<Value>>> {
        cached::only(|| self.get(key))
    }

    #[inline]
    fn get_into(&self, key: &[u8], buf: &mut Vec<u8>) -> Result<bool> {
        let found = self.see(key, ToBuffer(&mut *buf));
        if !matches!(found, Ok(Some(()))) {
            buf.clear();
        }
        Ok(found?.is_some())
    }

    #[inline]
    fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.see(key, Presence)?.is_some())
    }

    fn pieces(&self, key: &[u8]) -> Result<Option<Box<dyn Pieces>>> {
        let values = &self.store().shared.values;
        let found = self
            .timed(Call::Get, |version, space, read_at| read::pieces(values, version, space, key, read_at))?;
        Ok(found.flatten())
    }

    fn expires_ms(&self, key: &[u8]) -> Result<Option<Option<u64>>> {
        Ok(self.read(|version, space, read_at| read::expires_ms(version, space, key, read_at))?.flatten())
    }

    fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        let values = self
            .timed(Call::MultiGet, |version, space, read_at| read::several(version, space, keys, read_at))?;
        Ok(values.unwrap_or_else(|| keys.iter().map(|_| None).collect()))
    }

    fn count(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<u64> {
        let ((start, end), changes) = (half_open((lower, upper)), self.changes());
        let counted = self.timed(Call::Scan, |version, space, read_at| {
            counting::count(changes, version, space, read_at, &start, end.as_deref())
        })?;
        Ok(counted.unwrap_or_default())
    }

    #[inline]
    fn scan(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        mut see: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let changes = self.changes();
        let scanned = self.timed(Call::Scan, |version, space, read_at| {
            scan::scan(changes, version, space, read_at, bounds, (direction, false), Values(&mut see))
        });
        scanned.map(|_| ())
    }

    fn scan_keys(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        mut see: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let changes = self.changes();
        let scanned = self.timed(Call::Scan, |version, space, read_at| {
            scan::scan(changes, version, space, read_at, bounds, (direction, true), Keys(&mut see))
        });
        scanned.map(|_| ())
    }

    fn multi_scan(
        &self,
        ranges: &[KeyBounds<'_>],
        limit: usize,
        keys_only: bool,
        mut see: impl FnMut(usize, &[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        if limit == 0 || ranges.is_empty() {
            return self.store().check_here().and_then(|()| self.check());
        }
        let changes = self.changes();
        for (group, ranges) in ranges.chunks(scan::TOGETHER).enumerate() {
            let mut show =
                |number: usize, key: &[u8], value: &[u8]| see(group * scan::TOGETHER + number, key, value);
            let flow = self.timed(Call::Scan, |version, space, read_at| {
                let want = (limit, keys_only);
                scan::several(changes, version, space, read_at, ranges, want, &mut show)
            })?;
            if flow.is_none_or(|flow| flow.is_break()) {
                break;
            }
        }
        Ok(())
    }

    fn approximate(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<Approximate> {
        let (start, end) = half_open((lower, upper));
        let found = self.read(|version, space, read_at| {
            approximate::approximate(version, space, read_at.now(), &start, end.as_deref())
        })?;
        Ok(found.unwrap_or_default())
    }

    fn fill(
        &self,
        chunk: &mut Chunk,
        resume: &mut Resume,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Filled> {
        let begin = self.store().begin();
        let filled = self.refill(chunk, resume, bounds, direction);
        if let Some(begin) = begin {
            self.store().end(Call::Scan, begin);
        }
        filled
    }

    fn refills(&self) -> (usize, usize) {
        (10, 2)
    }

    fn cursor(&self) -> Cursor {
        Cursor {
            view: self.clone(),
            scan: None,
            direction: Direction::Forward,
            keys_only: false,
            valid: false,
            steps: 0,
            key: Vec::new(),
            value: Held::Copied(Vec::new()),
        }
    }
}

/// A cursor stays in the version that it found at its last jump. After this many steps it moves to the newest
/// version, so that a long walk does not hold old files; earlier, if something around it may have expired.
const STEPS_MAX: u64 = 1024;

/// Where a refill stopped. The next refill continues there without a seek, unless the store has a new
/// version.
pub struct Resume(Place);

enum Place {
    Nowhere,
    /// In the version that was the newest then. The store drops the scan when it has another version.
    Newest(Arc<Slot>),
    /// In the version of a snapshot, which the snapshot holds anyway.
    Past(Box<Scan>),
}

impl Default for Resume {
    fn default() -> Self {
        Resume(Place::Nowhere)
    }
}

impl Resume {
    /// Takes the scan out, if there is one.
    fn take(&mut self) -> Option<Box<Scan>> {
        match &mut self.0 {
            Place::Newest(slot) => slot.take(),
            place => match std::mem::replace(place, Place::Nowhere) {
                Place::Past(scan) => Some(scan),
                _ => None,
            },
        }
    }
}

/// A position in a view. It owns the pair that it shows.
pub struct Cursor {
    view: View,
    /// `None` before the first jump and after an error.
    scan: Option<Box<Scan>>,
    direction: Direction,
    keys_only: bool,
    /// Whether it is at a pair.
    valid: bool,
    /// Steps since the last jump.
    steps: u64,
    key: Vec<u8>,
    value: Held,
}

/// The value at a cursor.
enum Held {
    /// Up to [`COPIED_VALUE_BYTES`], in a buffer that is reused.
    Copied(Vec<u8>),
    Shared(Value),
}

impl Held {
    fn hold(&mut self, bytes: &[u8]) {
        match self {
            Held::Copied(buffer) if bytes.len() <= COPIED_VALUE_BYTES => {
                buffer.clear();
                buffer.extend_from_slice(bytes);
            }
            _ if bytes.len() <= COPIED_VALUE_BYTES => *self = Held::Copied(bytes.to_vec()),
            _ => *self = Held::Shared(Value::from(bytes)),
        }
    }
}

/// Holds one pair, after those that are skipped.
struct Next<'c> {
    skipped: u64,
    found: bool,
    key: &'c mut Vec<u8>,
    /// `None` if only keys are wanted.
    value: Option<&'c mut Held>,
}

impl Next<'_> {
    #[inline]
    fn hold(&mut self, key: &[u8], hold: impl FnOnce(&mut Held) -> Result<()>) -> Result<ControlFlow<()>> {
        if self.skipped > 0 {
            self.skipped -= 1;
            return Ok(ControlFlow::Continue(()));
        }
        if let Some(value) = &mut self.value {
            hold(value)?;
        }
        self.key.clear();
        self.key.extend_from_slice(key);
        self.found = true;
        Ok(ControlFlow::Break(()))
    }
}

impl Visit for Next<'_> {
    #[inline]
    fn here(&mut self, key: &[u8], value: &[u8]) -> Result<ControlFlow<()>> {
        self.hold(key, |held| {
            held.hold(value);
            Ok(())
        })
    }

    #[inline]
    fn pair(&mut self, key: &[u8], pair: Pair<'_>) -> Result<ControlFlow<()>> {
        self.hold(key, |held| pair.with(|value| held.hold(value)))
    }
}

impl Cursor {
    fn jump(&mut self, from: Bound<&[u8]>, direction: Direction) -> Result<bool> {
        (self.steps, self.direction) = (0, direction);
        if self.view.store().latencies.is_some() {
            return self.jump_slowly(from);
        }
        self.find(Some(from), 0)
    }

    /// The same, and takes the time.
    #[cold]
    #[inline(never)]
    fn jump_slowly(&mut self, from: Bound<&[u8]>) -> Result<bool> {
        let begin = Begun::now();
        let found = self.find(Some(from), 0);
        self.view.store().end(Call::Scan, begin);
        found
    }

    fn step(&mut self, direction: Direction, count: u64) -> Result<bool> {
        if !self.valid || count == 0 {
            self.view.check()?;
            return Ok(self.valid);
        }
        self.steps = self.steps.saturating_add(count);
        if direction == self.direction && self.steps < STEPS_MAX && self.scan.is_some() {
            return self.find(None, count - 1);
        }
        let from = std::mem::take(&mut self.key);
        (self.steps, self.direction) = (0, direction);
        let found = self.find(Some(Bound::Excluded(&from)), count - 1);
        if found.is_err() {
            // The old position, for another try.
            (self.key, self.valid) = (from, true);
        }
        found
    }

    /// Moves to the first pair from there on, or to the next pair of the scan, after skipping `skipped`
    /// pairs.
    fn find(&mut self, from: Option<Bound<&[u8]>>, mut skipped: u64) -> Result<bool> {
        let Cursor { view, scan, direction, keys_only, valid, key, value, .. } = self;
        // After an error there is no scan.
        let mut current = scan.take();
        let mut found = false;
        view.read(|version, space, read_at| {
            let is_late = |scan: &Scan| !scan.is_timely(read_at);
            let again = || current.as_deref().is_some_and(is_late).then_some(Bound::Excluded(&key[..]));
            if let Some(from) = from.or_else(again) {
                match &mut current {
                    Some(scan) if scan.reads(version) => {
                        scan.seek(view.changes(), read_at, (from, Bound::Unbounded), *direction)?
                    }
                    _ => {
                        let scan = Scan::start(
                            view.changes(),
                            version.clone(),
                            space,
                            read_at,
                            (from, Bound::Unbounded),
                            *direction,
                            *keys_only,
                        )?;
                        current = Some(Box::new(scan));
                    }
                }
            }
            let Some(scan) = &mut current else { return Ok(()) };
            let value = (!*keys_only).then_some(value);
            let mut next = Next { skipped, found: false, key, value };
            let ran = scan.run(|| view.changes(), read_at, Bound::Unbounded, &mut next);
            (skipped, found) = (next.skipped, next.found);
            ran
        })?;
        (*scan, *valid) = (current, found);
        Ok(found)
    }
}

impl forrest_engine::Cursor for Cursor {
    fn goto(&mut self, goto: Goto<'_>) -> Result<bool> {
        use Bound::{Included, Unbounded};
        match goto {
            Goto::First => self.jump(Unbounded, Direction::Forward),
            Goto::Last => self.jump(Unbounded, Direction::Backward),
            Goto::Seek(key) => self.jump(Included(key), Direction::Forward),
            Goto::SeekForPrev(key) => self.jump(Included(key), Direction::Backward),
            Goto::Skip(count) => self.step(Direction::Forward, count),
            Goto::Prev => self.step(Direction::Backward, 1),
        }
    }

    fn keys_only(&mut self) {
        // A scan that is there would announce values.
        (self.keys_only, self.scan, self.value) = (true, None, Held::Copied(Vec::new()));
    }

    fn park(&mut self) {
        self.scan = None;
    }

    fn key(&self) -> Option<&[u8]> {
        self.valid.then_some(&self.key)
    }

    fn value(&self) -> Option<Value> {
        self.valid.then(|| match &self.value {
            Held::Copied(bytes) => Value::from(&bytes[..]),
            Held::Shared(value) => value.clone(),
        })
    }
}
