//! [`Gaps`]: ranges without a key that is there, so that a scan passes their tombstones once and not each time.
//!
//! A scan that has passed many tombstones remembers their range. Later scans jump over it. A set of a key in a gap
//! splits the gap, before the change is visible; pairs that are ingested end all gaps of their range. Gaps are hints:
//! they are in memory only, there are at most [`MOST`], and the least recently used ones are dropped.
//!
//! INVARIANT: in a gap, no key is there at the moment `since`, a sequence number and a time, and none was set later. So
//! the gap holds for the newest state, and for each snapshot that reads at this number and time or later ones.
//!
//! A scan must not miss a key that is set while it walks. So it registers its walk first, while no change is being made
//! ([`Changes::while_quiet`]). From then on each set cuts what the walk will have shown to be empty. A scan that finds
//! a change in progress remembers nothing, and waits for nobody.

use crate::clock::Moment;
use crate::memtable::ReadAt;
use crate::sync::{AtomicU64, Mutex, Ordering, lock, weakened};
use forrest_index::Direction;
use std::ops::Bound;

/// Maximum number of gaps. Each set looks for its key among them.
const MOST: usize = 32;

/// The changes of a store, as far as scans need them.
pub(crate) trait Changes {
    /// The gaps that sets are cut out of.
    fn gaps(&self) -> &Gaps;

    /// Passes the sequence number of the last change and the address of the newest version to `run`, while no change
    /// is made; does nothing if one is being made.
    fn while_quiet(&self, run: &mut dyn FnMut(u64, *const ()));
}

/// See the head of the file.
#[derive(Default)]
pub(crate) struct Gaps {
    /// Number of the gaps and walks.
    count: AtomicU64,
    state: Mutex<State>,
    /// Whether snapshots jump over no gaps, because values may be gone that were never deleted.
    newest_only: bool,
}

#[derive(Default)]
struct State {
    /// In no order. They do not overlap.
    gaps: Vec<Gap>,
    walks: Vec<Walk>,
    /// The time of the last use, in uses.
    time: u64,
    /// The number of the last walk.
    number: u64,
}

/// A range of keys of a keyspace.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Range {
    space: u32,
    /// The least key.
    start: Vec<u8>,
    /// The least key after it; `None` if there is no end.
    end: Option<Vec<u8>>,
}

struct Gap {
    range: Range,
    since: Moment,
    /// When it was last used.
    used: u64,
}

struct Walk {
    number: u64,
    direction: Direction,
    /// What it may show to be empty.
    range: Range,
}

/// A registered walk. Dropping it ends it.
pub(crate) struct Walking<'g> {
    gaps: &'g Gaps,
    number: u64,
}

/// Where a scan that would begin in a gap begins instead.
pub(crate) enum Jump {
    To(Bound<Vec<u8>>),
    /// The range has no more pairs.
    End,
}

/// The least key after `key`.
fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

fn is_before(key: &[u8], end: Option<&[u8]>) -> bool {
    end.is_none_or(|end| key < end)
}

impl Range {
    fn has(&self, space: u32, key: &[u8]) -> bool {
        self.space == space && *self.start <= *key && is_before(key, self.end.as_deref())
    }

    fn is_empty(&self) -> bool {
        !is_before(&self.start, self.end.as_deref())
    }

    /// Whether the two overlap, or one begins where the other ends.
    fn touches(&self, other: &Range) -> bool {
        let begins_within = |a: &Range, b: &Range| b.end.as_ref().is_none_or(|end| a.start <= *end);
        self.space == other.space && begins_within(self, other) && begins_within(other, self)
    }
}

impl State {
    /// The gap with a key; for a key `None`, the gap without an end.
    fn at(&mut self, space: u32, key: Option<&[u8]>) -> Option<&mut Gap> {
        let is_it = |Gap { range, .. }: &Gap| match key {
            Some(key) => range.has(space, key),
            None => range.space == space && range.end.is_none(),
        };
        self.gaps.iter_mut().find(|gap| is_it(gap))
    }

    /// Removes a key that is being set from all ranges.
    fn cut(&mut self, space: u32, key: &[u8]) {
        let is_cut = |walk: &&mut Walk| walk.range.has(space, key) && !weakened!("cuts_no_walk");
        for Walk { range, direction, .. } in self.walks.iter_mut().filter(is_cut) {
            match direction {
                Direction::Forward => range.end = Some(key.to_vec()),
                Direction::Backward => range.start = after(key),
            }
        }
        let Some(at) = self.gaps.iter().position(|gap| gap.range.has(space, key)) else { return };
        let Gap { range, since, used } = self.gaps.swap_remove(at);
        let left = Range { end: Some(key.to_vec()), start: range.start, space };
        let right = Range { start: after(key), end: range.end, space };
        let parts = [left, right].into_iter().filter(|range| !range.is_empty());
        self.gaps.extend(parts.map(|range| Gap { range, since, used }));
        self.limit();
    }

    /// Ends all gaps and walks that have keys from `least` to `greatest`.
    fn end_all(&mut self, space: u32, least: &[u8], greatest: &[u8]) {
        let range = Range { space, start: least.to_vec(), end: Some(after(greatest)) };
        self.gaps.retain(|gap| !gap.range.touches(&range));
        self.walks.retain(|walk| !walk.range.touches(&range));
    }

    /// Adds a gap, joined with those that it touches.
    fn add(&mut self, mut range: Range, mut since: Moment) {
        self.gaps.retain(|gap| {
            let touches = gap.range.touches(&range);
            if touches {
                since = since.max(gap.since);
                range.start = gap.range.start.clone().min(std::mem::take(&mut range.start));
                range.end = match (&gap.range.end, range.end.take()) {
                    (Some(a), Some(b)) => Some(b.max(a.clone())),
                    _ => None,
                };
            }
            !touches
        });
        self.time += 1;
        self.gaps.push(Gap { range, since, used: self.time });
        self.limit();
    }

    fn limit(&mut self) {
        while self.gaps.len() > MOST {
            let oldest = self.gaps.iter().enumerate().min_by_key(|(_, gap)| gap.used);
            let oldest = oldest.map_or(0, |(at, _)| at);
            self.gaps.swap_remove(oldest);
        }
    }
}

impl Gaps {
    /// None yet. With `newest_only`, snapshots jump over none.
    pub(crate) fn new(newest_only: bool) -> Gaps {
        Gaps { newest_only, ..Gaps::default() }
    }

    /// Changes the state. ORDERING: a writer holds the order lock, under which walks are registered. So it sees each
    /// walk that it must cut. To all others the count is a hint.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = lock(&self.state);
        let changed = change(&mut state);
        self.count.store((state.gaps.len() + state.walks.len()) as u64, Ordering::Release);
        changed
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Removes keys that are being set. REQUIRES: the caller holds the order lock, and the changes are not visible yet.
    #[inline]
    pub(crate) fn cut<'k>(&self, keys: impl Iterator<Item = (u32, &'k [u8])>) {
        if !self.is_empty() {
            self.cut_all(keys);
        }
    }

    #[cold]
    fn cut_all<'k>(&self, keys: impl Iterator<Item = (u32, &'k [u8])>) {
        self.change(|state| keys.for_each(|(space, key)| state.cut(space, key)));
    }

    /// Forgets what is known of the keys from `least` to `greatest`, because pairs are ingested there. REQUIRES: as
    /// [`cut`](Gaps::cut).
    pub(crate) fn end_all(&self, space: u32, least: &[u8], greatest: &[u8]) {
        if !self.is_empty() {
            self.change(|state| state.end_all(space, least, greatest));
        }
    }

    /// Where to begin a scan that would begin at `from`; `None` if that is in no gap.
    #[inline]
    pub(crate) fn jump(
        &self,
        space: u32,
        read_at: ReadAt<'_>,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Option<Jump> {
        if self.is_empty() { None } else { self.jump_from(space, read_at, from, direction) }
    }

    #[cold]
    fn jump_from(
        &self,
        space: u32,
        read_at: ReadAt<'_>,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Option<Jump> {
        let forward = direction == Direction::Forward;
        let mut state = lock(&self.state);
        state.time += 1;
        let time = state.time;
        let key = match from {
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
            Bound::Unbounded if forward => Some(&[][..]),
            Bound::Unbounded => None,
        };
        if self.newest_only && matches!(read_at, ReadAt::Past(_)) {
            return None;
        }
        let gap = state.at(space, key)?;
        let is_past = matches!(read_at, ReadAt::Past(read_at) if !gap.since.is_until(*read_at));
        if is_past && !weakened!("jumps_for_all") {
            return None;
        }
        gap.used = time;
        Some(match (forward, &gap.range) {
            (true, Range { end: None, .. }) => Jump::End,
            (true, Range { end: Some(end), .. }) => Jump::To(Bound::Included(end.clone())),
            (false, Range { start, .. }) if start.is_empty() => Jump::End,
            (false, Range { start, .. }) => Jump::To(Bound::Excluded(start.clone())),
        })
    }

    /// Registers a walk of a version from there on. `None` if a change is being made, or the reader might miss an
    /// earlier one: because of its snapshot, or because it is in a memtable or a table that the version does not have.
    pub(crate) fn walk<'g>(
        changes: &'g dyn Changes,
        version: *const (),
        space: u32,
        read_at: ReadAt<'_>,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Option<Walking<'g>> {
        let (mut start, mut end) = (Vec::new(), None);
        match (direction, from) {
            (_, Bound::Unbounded) => {}
            (Direction::Forward, Bound::Included(key)) => start = key.to_vec(),
            (Direction::Forward, Bound::Excluded(key)) => start = after(key),
            (Direction::Backward, Bound::Included(key)) => end = Some(after(key)),
            (Direction::Backward, Bound::Excluded(key)) => end = Some(key.to_vec()),
        }
        let range = Range { space, start, end };
        let gaps = changes.gaps();
        let mut number = None;
        changes.while_quiet(&mut |last, newest| {
            // Pairs that are ingested come with a new version, not with a number.
            let sees_all =
                version == newest && !matches!(read_at, ReadAt::Past(read_at) if read_at.sequence < last);
            if !sees_all && !weakened!("walks_blindly") {
                return;
            }
            number = Some(gaps.change(|state| {
                state.number += 1;
                state.walks.push(Walk { number: state.number, direction, range: range.clone() });
                state.number
            }));
        });
        number.map(|number| Walking { gaps, number })
    }
}

impl Walking<'_> {
    /// Remembers that there was no key up to `to`, or to the end of the keyspace.
    pub(crate) fn finish(self, read_at: ReadAt<'_>, to: Option<&[u8]>) {
        // Not before any delete that the walk saw.
        let since = match read_at {
            ReadAt::Past(read_at) => *read_at,
            ReadAt::Newest(newest) => {
                Moment { sequence: newest.load(Ordering::Acquire), ms: newest.now_ms() }
            }
        };
        self.gaps.change(|state| {
            let at = state.walks.iter().position(|walk| walk.number == self.number);
            let Some(at) = at else { return };
            let Walk { direction, mut range, .. } = state.walks.swap_remove(at);
            match (direction, to) {
                (_, None) => {}
                (Direction::Forward, Some(to)) if is_before(to, range.end.as_deref()) => {
                    range.end = Some(to.to_vec());
                }
                (Direction::Backward, Some(to)) if *range.start <= *to => range.start = after(to),
                _ => {}
            }
            if !range.is_empty() {
                state.add(range, since);
            }
        });
    }
}

impl Drop for Walking<'_> {
    fn drop(&mut self) {
        self.gaps.change(|state| state.walks.retain(|walk| walk.number != self.number));
    }
}
