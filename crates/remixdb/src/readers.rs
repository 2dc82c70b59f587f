//! [`Readers`]: the states that snapshots read, and how one is taken without waiting for a writer.
//!
//! Changes are numbered. `visible` is the number up to which readers of the newest state see them, `applied` the number
//! up to which memtables have them. A single change is visible first and then applied, so that nobody needs the value
//! that it replaces. A writer asks which snapshots there are ([`Readers::kept`]) after it has made its change visible,
//! or before it applies a batch. It keeps the versions that they read, and the newest that is visible.
//!
//! The scheduler may stop a writer at any point, so a thread that takes a snapshot waits for none:
//!
//! 1. It counts itself, looks at what is visible, and notes that number.
//! 2. It looks again. If the number is the same, the snapshot is taken. If not, it tries again.
//!
//! **No version is missing.** A writer makes a later number visible and then looks at the count; the other thread
//! counts itself, notes its number, and then looks at what is visible. Between each pair of steps is a fence
//! of one total order. So either the writer sees the count and, under the lock, the number; or the second look sees the
//! writer's number, and the snapshot is not taken.
//!
//! **It reads one state.** The change with the number itself may be visible and not applied. The first read through a
//! snapshot waits for that ([`Readers::wait`]); almost always it is done by then. The version of the store that goes
//! with the number was current before the first look and still is after the second: it has all changes up to the
//! number, and no later ones in tables, because only visible changes become tables.
//!
//! The models (models.rs) check both.

use crate::clock::Newest;
use crate::sync::{AtomicU64, Mutex, Ordering, fence, lock, relax, weakened};
use forrest_engine::clock::Clock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After this many tries a snapshot is taken in another way.
const TRIES: u32 = 100;

/// Sequence numbers, each with the number of the snapshots that read at it.
pub(crate) type Numbers = BTreeMap<u64, usize>;

/// See the head of the file.
pub(crate) struct Readers {
    visible: Newest,
    applied: AtomicU64,
    /// Number of the snapshots that are there or are being taken.
    count: AtomicU64,
    noted: Mutex<Noted>,
}

/// The snapshots.
#[derive(Default)]
struct Noted {
    numbers: Arc<Numbers>,
    /// Since when there is a snapshot that reads at a number.
    since: BTreeMap<u64, Instant>,
}

impl Readers {
    /// No snapshots of a store whose last change has this number.
    pub(crate) fn new(sequence: u64, clock: Clock) -> Readers {
        Readers {
            visible: Newest::new(sequence, clock),
            applied: AtomicU64::new(sequence),
            count: AtomicU64::new(0),
            noted: Mutex::default(),
        }
    }

    /// The number up to which changes are visible.
    #[inline]
    pub(crate) fn visible(&self) -> &Newest {
        &self.visible
    }

    /// Makes changes up to a number visible. One thread at a time.
    pub(crate) fn show(&self, sequence: u64) {
        // ORDERING: Release: a thread that sees the number sees the versions up to it.
        self.visible.store(sequence, Ordering::Release);
    }

    /// Notes that all changes up to a number are in memtables, or never will be. One thread at a time.
    pub(crate) fn apply(&self, sequence: u64) {
        // ORDERING: Release: a thread that sees the number sees the versions up to it.
        self.applied.store(sequence, Ordering::Release);
    }

    /// The numbers that snapshots read at, other than what is visible; `None` if there are no snapshots. For the thread
    /// that changes what is visible.
    pub(crate) fn kept(&self) -> Option<Arc<Numbers>> {
        // ORDERING: see the head of the file.
        if !weakened!("looks_early") {
            fence(Ordering::SeqCst);
        }
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        Some(lock(&self.noted).numbers.clone())
    }

    /// Number of the snapshots.
    pub(crate) fn len(&self) -> usize {
        lock(&self.noted).numbers.values().sum()
    }

    /// The age of the oldest state that a snapshot reads; `None` if there are no snapshots.
    pub(crate) fn oldest(&self) -> Option<Duration> {
        lock(&self.noted).since.first_key_value().map(|(_, since)| since.elapsed())
    }

    fn note(&self, sequence: u64) {
        let mut noted = lock(&self.noted);
        *Arc::make_mut(&mut noted.numbers).entry(sequence).or_default() += 1;
        noted.since.entry(sequence).or_insert_with(Instant::now);
    }

    fn forget(&self, sequence: u64) {
        let mut noted = lock(&self.noted);
        let numbers = Arc::make_mut(&mut noted.numbers);
        if let Some(count) = numbers.get_mut(&sequence) {
            *count -= 1;
            if *count == 0 {
                numbers.remove(&sequence);
                noted.since.remove(&sequence);
            }
        }
    }

    /// Takes a snapshot: its number, and what is current. `is_current` tells whether that still is. `None` if changes
    /// came too fast; it certainly succeeds while the caller keeps writers out.
    pub(crate) fn take<S>(
        &self,
        current: impl Fn() -> S,
        is_current: impl Fn(&S) -> bool,
    ) -> Option<(u64, S)> {
        // ORDERING: the fence below orders it.
        self.count.fetch_add(1, Ordering::Relaxed);
        for _ in 0..TRIES {
            let state = current();
            let sequence = self.visible.load(Ordering::Acquire);
            self.note(sequence);
            // ORDERING: see the head of the file.
            fence(Ordering::SeqCst);
            let is_same = self.visible.load(Ordering::Acquire) == sequence || weakened!("looks_once");
            if is_same && is_current(&state) {
                return Some((sequence, state));
            }
            self.forget(sequence);
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
        None
    }

    /// Ends a snapshot that was taken.
    pub(crate) fn give_back(&self, sequence: u64) {
        self.forget(sequence);
        // ORDERING: a writer that still sees it keeps a version that nobody reads.
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Waits until all changes up to a number are in memtables.
    pub(crate) fn wait(&self, sequence: u64) {
        let mut turn = 0;
        while self.applied.load(Ordering::Acquire) < sequence && !weakened!("reads_at_once") {
            relax(&mut turn);
        }
    }
}
