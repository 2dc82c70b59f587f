//! [`History`]: logs that recovery no longer needs are kept, so that their changes can be read
//! ([`stream`](crate::stream)).
//!
//! The logs that are kept are those before the floor of the manifest, along each log's statement of the one before it,
//! as far as all of them together have no more bytes than the options allow, and the changes are not too old. A log
//! that was written without history ends the chain. The newest of them are kept; so a log goes as a whole, and the
//! oldest goes first.
//!
//! **History is durable before recovery does without it.** A log is synced before a manifest moves the floor beyond it.
//! So after a power cut the changes that are kept go on in the logs that recovery reads.
//!
//! **History never takes space that changes need.** If the store is out of space, all of it is removed.
//!
//! Nothing is remembered but what the files state. A log that cannot be read now is kept, and so are those before it.

use crate::codec::Parts;
use crate::disk::{self, Name, Sealed};
use crate::record::{self, HEADER, Piece};
use crate::wal::{self, Change, Note};
use forrest_base::lock;
use forrest_engine::{ErrorKind, Options, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Each log counts as at least this many bytes.
const LOG_LEAST: u64 = 64 << 10;

/// See the head of the file.
pub(crate) struct History {
    bytes_most: u64,
    age_most: Duration,
    /// What is known of logs that are kept.
    facts: Mutex<BTreeMap<u64, Facts>>,
    /// Whether there was no space for a log, and what is kept has to go.
    is_short: AtomicBool,
    /// Changes up to this one were durable when the store was opened.
    pub(crate) covered: AtomicU64,
    /// The logs before this one were left over when the store was opened.
    pub(crate) floor: u64,
    /// Number of the threads that wait for changes, and a number that grows when there may be some.
    waiting: AtomicUsize,
    turn: Mutex<u64>,
    changed: Condvar,
    /// What tests add to the time.
    #[cfg(test)]
    pub(crate) later_ms: AtomicU64,
}

/// What a log states.
#[derive(Debug, Clone, Copy)]
struct Facts {
    /// The log before it.
    before: u64,
    bytes: u64,
    /// When it was begun: all changes of the log before it are older. `None` if it does not state that yet.
    begun_ms: Option<u64>,
}

impl History {
    /// The history of a store with these options, of which the changes up to `covered` are durable, and the logs from
    /// `floor` on are needed; `None` if none is kept.
    pub(crate) fn new(options: &Options, covered: u64, floor: u64) -> Option<History> {
        options.history.then(|| History {
            bytes_most: options.history_bytes,
            age_most: options.history_age,
            facts: Mutex::default(),
            is_short: AtomicBool::new(false),
            covered: AtomicU64::new(covered),
            floor,
            waiting: AtomicUsize::new(0),
            turn: Mutex::default(),
            changed: Condvar::new(),
            #[cfg(test)]
            later_ms: AtomicU64::new(0),
        })
    }

    /// The time now, in milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        #[cfg(test)]
        let now = now + self.later_ms.load(Ordering::Relaxed);
        now
    }

    /// The numbers of the logs before the floor that are kept, of those that are `there`.
    ///
    /// # Errors
    /// `Io`, `Corrupt`, `OutOfSpace`: it is unknown which are to be kept.
    pub(crate) fn kept(
        &self,
        disk: &Sealed,
        floor: u64,
        there: &BTreeSet<u64>,
        is_full: bool,
    ) -> Result<BTreeSet<u64>> {
        let mut kept = BTreeSet::new();
        // ORDERING: no other data depends on it.
        if self.is_short.swap(false, Ordering::Relaxed) || is_full {
            lock(&self.facts).clear();
            return Ok(kept);
        }
        let (now, age_most) = (self.now_ms(), u64::try_from(self.age_most.as_millis()).unwrap_or(u64::MAX));
        let mut known = lock(&self.facts);
        let (mut log, mut bytes, mut first) = (facts(disk, floor)?, 0, floor);
        while let Some(Facts { before, begun_ms, .. }) = log {
            let is_old = begun_ms.is_some_and(|begun| now.saturating_sub(begun) > age_most);
            if is_old || before >= first || !there.contains(&before) {
                break;
            }
            first = before;
            log = match known.get(&before) {
                Some(known) => Some(*known),
                None => facts(disk, before)?,
            };
            let Some(facts) = log else { break };
            // A file takes more than its bytes, and there should not be too many.
            bytes += facts.bytes.max(LOG_LEAST);
            if bytes > self.bytes_most {
                break;
            }
            kept.insert(before);
            known.insert(before, facts);
        }
        known.retain(|number, _| kept.contains(number));
        Ok(kept)
    }

    /// Whether logs are kept, as far as is known.
    pub(crate) fn has_some(&self) -> bool {
        !lock(&self.facts).is_empty()
    }

    /// Gives up what is kept: a log finds no space.
    pub(crate) fn give_up(&self) {
        self.is_short.store(true, Ordering::Relaxed);
    }

    /// Whether what is kept has to go.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// Wakes those that wait for changes.
    #[inline]
    pub(crate) fn changed(&self) {
        // ORDERING: pairs with the one in `wait`: either this thread sees the other one waiting, or that one sees the
        // changes.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            *lock(&self.turn) += 1;
            self.changed.notify_all();
        }
    }

    /// Runs `look` until it finds something, each time when there may be changes, and at least as often as `pause`; for
    /// `most` at most.
    pub(crate) fn wait<R>(
        &self,
        most: Duration,
        pause: Duration,
        mut look: impl FnMut() -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        let end = std::time::Instant::now().checked_add(most);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // ORDERING: see `changed`.
        fence(Ordering::SeqCst);
        let found = loop {
            let turn = *lock(&self.turn);
            let found = look();
            let left = end.map_or(pause, |end| end.saturating_duration_since(std::time::Instant::now()));
            if !matches!(found, Ok(None)) || left.is_zero() {
                break found;
            }
            let now = lock(&self.turn);
            if *now == turn {
                drop(self.changed.wait_timeout(now, left.min(pause)).unwrap_or_else(PoisonError::into_inner));
            }
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        found
    }
}

/// What a log states; `None` if it is not there, was never used, is damaged, or has no history.
fn facts(disk: &Sealed, number: u64) -> Result<Option<Facts>> {
    match intact_facts(disk, number) {
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(None),
        facts => facts,
    }
}

fn intact_facts(disk: &Sealed, number: u64) -> Result<Option<Facts>> {
    let name = Name::log(number);
    let Some(file) = disk::open_if_there(disk, name)? else { return Ok(None) };
    let Some(head) = wal::head(disk, &file, number)?.filter(|head| head.has_history) else { return Ok(None) };
    let mut piece = Piece::default();
    let first = record::next(disk, &file, name, HEADER as u64, &mut piece)?;
    let begun_ms = first.and_then(|first| match Change::take(&mut Parts(piece.bytes(first.body))) {
        Some(Change::Note(Note::Time { ms })) => Some(ms),
        _ => None,
    });
    Ok(Some(Facts { before: head.before.number, bytes: disk::len(disk, &file, name)?, begun_ms }))
}
