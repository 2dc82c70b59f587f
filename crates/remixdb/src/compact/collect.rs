//! The space of kept logs comes back: the values of the oldest one that still count are written once more, at the end
//! of the newest log, and then it is not kept any more.
//!
//! A pass reads the changes of a log in order. For each value it looks whether that is what its key has. If so, the key
//! gets the same value again, as a change, which is made under the order lock only if nothing has changed meanwhile. So
//! a value that was replaced is never seen again, and no writer waits for more than a change of a piece. The tables
//! need not be merged for it.
//!
//! At the end of a pass no key has a value in the log, as of the last change then. The log stays until the changes up
//! to that one are in tables: until then a power cut may take changes that replaced values in it. The manifest gives it
//! up in the same record that states that they are. If the logs that wait for that are much larger than the memtable,
//! it becomes tables early.
//!
//! A pass begins when the kept logs have more than half as many bytes again as their live values, or than one memtable
//! more if that is more. A compaction, and values that have expired, begin passes without that memtable; a compaction
//! goes on until there is a quarter more, or it has gone through the logs that were there when it began. How much is
//! live is known about, from the entries of tables that count. If that is wrong, a pass may give back little. Such
//! passes take from a credit, which grows by twice the bytes that are written, and a pass begins only with credit for
//! all of its log. Without that it is a trial first: it moves nothing, and finds out how much counts. If that is more
//! than three quarters, the log is left until there is credit, or until a quarter of what was live is gone. So each
//! pass takes from the credit or makes the logs smaller by a quarter of one, and there is an end of them.
//!
//! A full store moves values only while what is in memory, and one more memtable, find room. A log whose values find no
//! room is left, and the next one is tried: there may be nothing to move in it.
//!
//! Of a record no more than a window is in memory, however long it is, and of its values those that are moved. So it is
//! known only at its end whether it is intact. A value is moved before that, if a table says that it counts and has its
//! checksum; the log is given up only if all that was not moved was intact too. A pass ends when the store is closed.
//!
//! A log with damage cannot be gone through. It stays, and the next one is tried. A compaction tries it again.

use crate::codec::Parts;
use crate::core::Core;
use crate::disk::{self, Disk, Kind};
use crate::manifest::{Manifest, ManifestState};
use crate::memtable::Memtable;
use crate::record::Pieces;
use crate::values::{Collector, Haste, Kept, Logs, Pass};
use crate::version::Version;
use crate::wal::{Change, FRONT_MOST};
use crate::wrapped::{self, HEADER_MOST, Place, Wrapped};
use crate::write::{Move, log_bytes_of};
use forrest_base::lock;
use forrest_engine::options::LARGE_VALUES_LEAST;
use forrest_engine::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// About how many bytes of a log are gone through at once, and bytes of values that are moved as one change.
const PIECE: u64 = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// No value with fewer bytes is left in a log. (Earlier builds have counted the header of a value that expires.)
const LEAST: usize = LARGE_VALUES_LEAST - HEADER_MOST;

/// A memtable with less than 1/`SMALL` of its limit does not become tables soon by itself.
const SMALL: usize = 8;

impl Core {
    /// The logs that nothing refers to once the changes up to a sequence number are in tables.
    pub(super) fn given_up(&self, covered: u64) -> Vec<u64> {
        let collector = lock(&self.collector);
        collector.done.iter().filter(|(_, last)| **last <= covered).map(|(&log, _)| log).collect()
    }

    /// Notes that a step was committed, which may have made tables of a memtable.
    pub(super) fn note_kept(&self, state: &ManifestState, is_flush: bool) {
        let mut collector = lock(&self.collector);
        collector.done.retain(|log, _| state.logs.contains_key(log));
        collector.poor.retain(|log, _| state.logs.contains_key(log));
        let bytes = |logs: &Logs| logs.values().map(|log| log.bytes).sum::<u64>();
        let mut more = bytes(&lock(&self.adding));
        if is_flush {
            collector.without_room.clear();
            let keeping: Arc<Logs> = std::mem::take(&mut *lock(&self.keeping));
            let kept = bytes(&keeping);
            more += kept - kept.min(std::mem::take(&mut collector.moved));
        }
        if let Some(credit) = &mut collector.credit {
            let most = state.logs.values().sum();
            *credit = credit.saturating_add(2 * more).min(most);
        }
    }

    /// Goes through a piece of the oldest kept log, if the kept logs have too much that is dead; true if there may be
    /// more to do.
    ///
    /// # Errors
    /// Those after which the log is stopped.
    pub(super) fn collect(&self, manifest: &mut Manifest) -> Result<bool> {
        if manifest.state().logs.is_empty() || !self.log().is_begun() || self.log().check().is_err() {
            return Ok(false);
        }
        if !self.given_up(manifest.state().covered).is_empty() {
            let (first, floor) = (self.first_free_number(), manifest.state().floor);
            return self.replace(manifest, None, first, None, &[], floor).map(|()| true);
        }
        let current = lock(&self.collector).current.take();
        let pass = current.or_else(|| self.next_pass(manifest.state()));
        let Some(mut pass) = pass else { return Ok(self.flush_for_logs(manifest.state())) };
        let Some(log) = self.version().logs.get(&pass.log).cloned() else { return Ok(false) };
        let (end, live) = (self.collect_piece(&log, &mut pass), self.live_bytes());
        let mut collector = lock(&self.collector);
        let is_most = |bytes: u64| bytes > log.bytes - log.bytes / 4;
        match end {
            Ok(None) => collector.current = Some(pass),
            Ok(Some(_)) if pass.is_trial => match is_most(pass.live) {
                true => drop(collector.poor.insert(pass.log, live)),
                false => collector.current = Some(Pass::of(pass.log, false)),
            },
            Ok(Some(last)) => {
                collector.done.insert(pass.log, last);
                collector.awaits_flush |= collector.haste > Haste::None || collector.asked_below > 0;
                self.flush_for_log(&pass);
                if is_most(pass.moved) {
                    collector.credit = collector.credit.map(|credit| credit.saturating_sub(pass.moved));
                }
            }
            Err(error) if disk::is_damage(&error) || error.kind() == ErrorKind::Limit => {
                collector.skipped.insert(pass.log);
            }
            Err(error) if self.is_harmless(&error) => {
                // There is no room for the values that are to be moved. Another log may have none.
                collector.without_room.insert(pass.log);
                collector.credit = collector.credit.map(|credit| credit.saturating_sub(pass.moved));
            }
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Has the memtable become tables soon, if it is small and all of a log comes back with that.
    fn flush_for_log(&self, pass: &Pass) {
        if pass.moved == 0 && self.version().memtable.bytes() < self.limits.memtable_bytes() / SMALL {
            // ORDERING: no other data depends on it.
            self.is_flush_due.store(true, Relaxed);
        }
    }

    /// The same, if the logs that have been gone through are `SMALL` times as large as the memtable, or were gone
    /// through in haste; true if that was not due yet.
    fn flush_for_logs(&self, state: &ManifestState) -> bool {
        let mut collector = lock(&self.collector);
        let waiting: u64 = collector.done.keys().filter_map(|log| state.logs.get(log)).sum();
        let bytes = self.version().memtable.bytes() as u64;
        let is_due = std::mem::take(&mut collector.awaits_flush) || waiting / SMALL as u64 >= bytes;
        // ORDERING: as above.
        waiting > 0 && bytes > 0 && is_due && !self.is_flush_due.swap(true, Relaxed)
    }

    /// Has less that is dead stay in logs.
    pub(super) fn hasten(&self, haste: Haste) {
        let mut collector = lock(&self.collector);
        collector.haste = collector.haste.max(haste);
    }

    /// The oldest log that may be gone through, if that is due.
    fn next_pass(&self, state: &ManifestState) -> Option<Pass> {
        let mut collector = lock(&self.collector);
        let all: u64 = state.logs.values().sum();
        collector.credit.get_or_insert(all);
        let (left, live) = (left_bytes(state, &collector), self.live_bytes());
        let is_too_much = |more: u64| left > live.saturating_add(if self.is_full() { 0 } else { more });
        if collector.asked_below > 0 {
            let below = collector.asked_below;
            return is_too_much(live / 4).then(|| pass_below(below, state, &mut collector, live)).flatten();
        }
        let more = match collector.haste {
            Haste::None => (live / 2).max(self.limits.memtable_bytes() as u64),
            Haste::Expired => live / 2,
        };
        if !is_too_much(more) {
            collector.haste = Haste::None;
            return None;
        }
        pass_below(state.floor, state, &mut collector, live)
    }

    /// Moves the values of the next piece of a log that count. At the end of the log, returns the sequence number of
    /// the last change then.
    fn collect_piece(&self, log: &Kept, pass: &mut Pass) -> Result<Option<u64>> {
        let (name, version) = (log.name(), self.version().clone());
        let mut pieces = Pieces::new(self.disk(), log.file()?, name)?;
        let (mut moves, mut bytes) = (Vec::new(), 0);
        let mut offset = pass.offset;
        let damaged = |at| disk::damaged(name, at, "a record is damaged, or has an unknown change");
        while offset < log.bytes && offset - pass.offset < PIECE {
            let mut record = pieces.begin(offset)?.ok_or_else(|| damaged(offset))?;
            while !record.left.is_empty() {
                let left = &record.left;
                let there = pieces.front(left, FRONT_MOST)?;
                let Front { set, bytes: taken } =
                    front(there, left.end - left.start).ok_or_else(|| damaged(offset))?;
                let end = left.start + taken;
                if let Some(set) = set
                    && let Some(one) = self.find(&version, &set, end, pass)?
                {
                    bytes += one.content.len() as u64;
                    moves.push(one);
                }
                pieces.pass(&mut record, taken, || self.check_open())?;
                if bytes >= PIECE {
                    self.move_piece(&version, &std::mem::take(&mut moves), pass)?;
                    bytes = 0;
                }
            }
            // What was moved is right in any case. What was not may have been taken for something else.
            if !record.is_intact() {
                return Err(damaged(offset));
            }
            offset = record.left.end;
        }
        let last = self.move_piece(&version, &moves, pass)?;
        pass.offset = offset;
        let is_end = offset >= log.bytes;
        self.shared.values.note_pass(u64::from(is_end && !pass.is_trial), 0);
        Ok(is_end.then_some(last))
    }

    /// The value of a change that ends at `end` in the log, if it counts, to be moved; a trial only counts it. It is
    /// not known yet whether the record is intact. So all of the value is what the table of its key says, and has the
    /// checksum that is there.
    fn find(&self, version: &Version, set: &Set<'_>, end: u64, pass: &mut Pass) -> Result<Option<Move>> {
        let &Set { space, key, content, missing } = set;
        // It is the end of its change.
        let len = content.len() as u64 + missing;
        let place = Place { log: pass.log, offset: end - len };
        if len < LEAST as u64 {
            return Ok(None);
        }
        let Some((pointer, expires_ms)) = self.pointer_at(version, space, key, place)? else {
            return Ok(None);
        };
        if pass.is_trial {
            pass.live += log_bytes_of(key.len(), pointer.len);
            return Ok(None);
        }
        let content = match missing {
            0 if wrapped::sum(place, content) == pointer.sum => content.to_vec(),
            _ => self.shared.values.fetch(&pointer)?,
        };
        Ok(Some(Move { space, key: key.to_vec(), place, expires_ms, content }))
    }

    /// Moves values, and returns the sequence number of the last change then.
    fn move_piece(&self, version: &Version, moves: &[Move], pass: &mut Pass) -> Result<u64> {
        if !moves.is_empty() && self.is_full() && !self.has_room_to_move() {
            return Err(Error::new(ErrorKind::OutOfSpace, "there is no room to move values"));
        }
        let moved = self.move_values(version, moves)?;
        pass.moved += moved.log_bytes;
        lock(&self.collector).moved += moved.log_bytes;
        self.shared.values.note_pass(0, moved.value_bytes);
        Ok(moved.last)
    }

    /// Whether a full store may move values: what is in memory, and one more memtable, must find room.
    fn has_room_to_move(&self) -> bool {
        let version = self.version();
        let memory = version.immutable_bytes() + version.memtable.bytes() + self.limits.memtable_bytes();
        let free = self.disk().free(Kind::Table).unwrap_or(u64::MAX);
        free >= memory as u64 + PIECE
    }

    /// Bytes of live values in kept logs, about.
    fn live_bytes(&self) -> u64 {
        self.version().each().map(|(_, one)| one.live_large_bytes()).sum()
    }

    /// Whether writers have to wait for passes, because the kept logs have more than twice the bytes of their live
    /// values, and two memtables.
    pub(super) fn has_too_many_logs(&self, state: &ManifestState) -> bool {
        let left = left_bytes(state, &lock(&self.collector));
        left > 0 && left > 2 * (self.live_bytes() + self.limits.memtable_bytes() as u64)
    }

    /// Before a memtable becomes tables, goes through as much of kept logs as it has: otherwise a store that is written
    /// to without a pause would never come to it. So the logs do not grow meanwhile. Ends early if one more memtable
    /// waits, because moved values are changes too.
    pub(super) fn collect_beside(&self, manifest: &mut Manifest, memtable: &Memtable) -> Result<()> {
        let mut left = memtable.bytes() as u64;
        let most = self.version().immutable.len().max(1);
        let may_go_on = || self.check_open().is_ok() && self.version().immutable.len() <= most;
        while left > 0 && may_go_on() && self.collect(manifest)? {
            left = left.saturating_sub(PIECE);
        }
        Ok(())
    }

    /// Gives back the space of kept logs until little is left of it. Logs that come meanwhile are not gone through: it
    /// would not end beside fast writers.
    pub(super) fn collect_all(&self) -> Result<()> {
        let below = self.first_free_number();
        {
            let mut collector = lock(&self.collector);
            collector.asked_below = collector.asked_below.max(below);
            // What could not be read is tried again.
            collector.skipped.clear();
        }
        let collected = self.collect_below(below);
        let mut collector = lock(&self.collector);
        if collector.asked_below == below {
            collector.asked_below = 0;
        }
        collected
    }

    fn collect_below(&self, below: u64) -> Result<()> {
        let mut has_moved = false;
        // Another compaction may have gone through them too.
        let is_asked = || lock(&self.collector).asked_below >= below;
        loop {
            // As much as fills a memtable, if all of it counts. Fast writers fill more than one for each piece.
            let (mut gone, most) = (0, self.limits.memtable_bytes() as u64);
            while gone < most && is_asked() && self.collect(&mut lock(&self.manifest))? {
                gone += PIECE;
            }
            if gone == 0 {
                break;
            }
            has_moved = true;
            self.flush_waiting()?;
        }
        if has_moved {
            self.flush_all()?;
            self.collect(&mut lock(&self.manifest))?;
        }
        Ok(())
    }
}

/// A pass through the oldest log that may be gone through, if its number is below another one.
fn pass_below(below: u64, state: &ManifestState, collector: &mut Collector, live: u64) -> Option<Pass> {
    let credit = collector.credit.unwrap_or_default();
    let is_free = |(log, bytes): &(&u64, &u64)| {
        !collector.done.contains_key(log)
            && !collector.skipped.contains(log)
            && !collector.without_room.contains(log)
            && (credit >= **bytes || collector.poor.get(log).is_none_or(|then| live < then - then / 4))
    };
    let (&log, &bytes) = state.logs.range(..below.min(state.floor)).find(is_free)?;
    collector.poor.remove(&log);
    // Without credit for all of it, it is found out first how much counts.
    Some(Pass::of(log, credit < bytes))
}

/// Bytes of the logs that have not been gone through yet.
fn left_bytes(state: &ManifestState, collector: &Collector) -> u64 {
    let left = state.logs.iter().filter(|(log, _)| !collector.done.contains_key(log));
    left.map(|(_, bytes)| bytes).sum()
}

/// A change of a record that sets a key.
struct Set<'b> {
    space: u32,
    key: &'b [u8],
    /// The front of its value.
    content: &'b [u8],
    /// Bytes of the value that are not in memory.
    missing: u64,
}

/// The first change of what is left of a record.
struct Front<'b> {
    /// `None` if it sets no key.
    set: Option<Set<'b>>,
    /// The bytes of the change.
    bytes: u64,
}

/// The change at the front of the `left` bytes of a record, of which the first are in memory. `None` if there is no
/// such change.
fn front(there: &[u8], left: u64) -> Option<Front<'_>> {
    let mut parts = Parts(there);
    let (change, missing) = Change::take_front(&mut parts)?;
    let bytes = ((there.len() - parts.0.len()) as u64).checked_add(missing).filter(|bytes| *bytes <= left)?;
    let (space, key, content) = match change {
        Change::Put { space, key, value } => (space, key, value),
        Change::Wrapped { space, key, bytes } if !wrapped::has_operands(bytes) => {
            (space, key, Wrapped::read(bytes)?.content)
        }
        _ => return Some(Front { set: None, bytes }),
    };
    Some(Front { set: Some(Set { space, key, content, missing }), bytes })
}
