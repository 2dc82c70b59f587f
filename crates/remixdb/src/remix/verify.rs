//! Checks of a [`Remix`]: of itself, when it is loaded, and against its runs.

use super::{NO_HEAD, OLDER, RESERVED, RUN, RUNS_MAX, Remix, Run, SEGMENT, Segment, TOMBSTONE, View};
use super::{head_behind, tag, used};
use crate::key::common_prefix;
use forrest_engine::{Error, ErrorKind, Result};
use std::mem;

/// A flaw and its segment. The number after the last segment stands for the whole REMIX.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) segment: usize,
    pub(super) what: &'static str,
}

impl Remix {
    /// Checks that every walk in it stays within bounds, whatever the runs have. Needs no run. REQUIRES: the
    /// arrays have the lengths that follow from the number of segments. Segments in a file are checked when they are
    /// read.
    pub(super) fn check(&self) -> Result<(), Flaw> {
        let Some(arrays) = self.arrays() else { return Ok(()) };
        let count = self.runs.len();
        let mut next = [0u32; RUNS_MAX];
        let (mut entries, mut live) = (0u64, 0u64);
        for segment in 0..self.segments() {
            let flaw = |what| Err(Flaw { segment, what });
            let view = arrays.view(segment, count);
            if view.ordinals() != &next[..count] {
                return flaw("its ordinals do not follow from the selectors before it");
            }
            if view.skip() != self.anchors.skip(segment) {
                return flaw("its heads do not skip what its anchor and the next one have in common");
            }
            match walk(view.segment, &mut next, count) {
                Ok(here) => (entries, live) = (entries + here.entries, live + here.live),
                Err(what) => return flaw(what),
            }
        }
        let flaw = |what| Err(Flaw { segment: self.segments(), what });
        if next[..count] != self.runs {
            return flaw("the number of selectors of a run differs from its entries");
        }
        if (entries, live) != (self.entries, self.live) {
            return flaw("the counts differ from the selectors");
        }
        match self.anchors.disorder() {
            // The first anchor is that of the second segment.
            Some(at) => {
                Err(Flaw { segment: at + 1, what: "its anchor is not greater than the previous one" })
            }
            None => Ok(()),
        }
    }

    /// Reads every key and its kind, and checks that the REMIX agrees.
    pub(crate) fn verify<R: Run>(&self, runs: &mut [R]) -> Result<()> {
        if let Err(Flaw { segment, what }) = self.check() {
            return Err(wrong_segment(segment, what));
        }
        if !self.belongs_to(runs) {
            return Err(wrong_segment(self.segments(), "the runs differ from those that it was built from"));
        }
        let (mut key, mut before) = (Vec::new(), Vec::new());
        let (mut room, mut dead_large) = (None, 0_u64);
        for segment in 0..self.segments() {
            let view = self.view(segment, &mut room)?;
            for slot in 0..used(&view.segment.selectors) {
                let entry = view.entry(slot);
                runs[entry.run].key_into(entry.ordinal, &mut key)?;
                let tombstone = runs[entry.run].is_tombstone(entry.ordinal)?;
                if view.segment.selectors[slot] & OLDER != 0 {
                    dead_large = dead_large.saturating_add(runs[entry.run].large_bytes(entry.ordinal)?);
                }
                let flaw = if tombstone != entry.tombstone {
                    Some("the selector is wrong about a tombstone")
                } else {
                    self.flaw(view, segment, slot, &before, &key)
                };
                if let Some(what) = flaw {
                    return Err(wrong(segment, slot, what));
                }
                mem::swap(&mut key, &mut before);
            }
        }
        if self.dead_large.is_some_and(|dead| dead != dead_large) {
            let what = "the bytes of hidden values in logs differ from those of the runs";
            return Err(wrong_segment(self.segments(), what));
        }
        Ok(())
    }

    /// The flaw of a place that has `key`, if the place before it has `before`.
    fn flaw(
        &self,
        view: View<'_>,
        segment: usize,
        slot: usize,
        before: &[u8],
        key: &[u8],
    ) -> Option<&'static str> {
        let Segment { selectors, tags, heads } = view.segment;
        if self.has_tags && tags[slot] != tag(key) {
            return Some("the tag is not the key's");
        }
        if heads[slot] != head_behind(key, view.skip()) {
            return Some("the head is not the key's");
        }
        if (segment, slot) == (0, 0) {
            return None;
        }
        if selectors[slot] & OLDER != 0 {
            return (key != before).then_some("an older version is of another key");
        }
        if key <= before {
            return Some("the key is not greater than the previous one");
        }
        if slot > 0 {
            return None;
        }
        let anchor = &key[..=common_prefix(before, key)];
        let tail = self.anchors.tail(segment - 1);
        (anchor.strip_prefix(self.anchors.prefix()) != Some(tail)).then_some("the anchor is not the key's")
    }
}

/// Counts of a segment's places.
pub(super) struct Here {
    entries: u64,
    live: u64,
}

/// Checks the places of a segment, and counts the entries of each of `count` runs in `next`.
pub(super) fn walk(segment: &Segment, next: &mut [u32], count: usize) -> Result<Here, &'static str> {
    let Segment { selectors, heads, .. } = segment;
    let used = used(selectors);
    if used == 0 {
        return Err("it has no entry");
    }
    // The run of the previous version; older versions are from older runs.
    let mut newer = 0;
    let ascend = (1..used).all(|slot| match selectors[slot] & OLDER {
        0 => heads[slot - 1] <= heads[slot],
        _ => heads[slot - 1] == heads[slot],
    });
    if !ascend || heads[used..].iter().any(|&head| head != NO_HEAD) {
        return Err("its heads are not in the order of keys");
    }
    let mut live = 0;
    for &selector in &selectors[..used] {
        let run = selector & RUN;
        if usize::from(run) >= count || selector & RESERVED != 0 {
            return Err("a selector names no run");
        }
        if selector & OLDER != 0 && run >= newer {
            return Err("a selector's older version is not older");
        }
        newer = run;
        let Some(after) = next[usize::from(run)].checked_add(1) else {
            return Err("a run has too many entries");
        };
        next[usize::from(run)] = after;
        live += u64::from(selector & (OLDER | TOMBSTONE) == 0);
    }
    Ok(Here { entries: used as u64, live })
}

/// The error of a segment.
#[cold]
pub(super) fn wrong_segment(segment: usize, what: &str) -> Error {
    wrong(segment, SEGMENT, what)
}

fn wrong(segment: usize, slot: usize, what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("REMIX, segment {segment}, place {slot}: {what}"))
}
