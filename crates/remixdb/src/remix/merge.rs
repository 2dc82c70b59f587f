//! [`Merge`]: the keys of several runs in order, each once, with its versions.
//!
//! A tournament tree of losers, so that each entry costs about one comparison for each doubling of the runs.
//! Keys are read into buffers that are reused. Runs whose keys do not ascend are reported, not merged.

use super::{OLDER, RUNS_MAX, Run, TOMBSTONE};
use crate::key::head_of;
use forrest_engine::{Error, ErrorKind, Result};
use std::cmp::Ordering;
use std::mem;

/// A run and its next entry.
struct Source {
    done: bool,
    head: u64,
    key: Vec<u8>,
    ordinal: u32,
}

/// Merges the runs from `first` on. Each call is given the runs, because other code reads them in between.
pub(super) struct Merge {
    first: usize,
    sources: Vec<Source>,
    /// At 0 the source whose entry is next; at each other node of the tree the loser there.
    losers: Vec<usize>,
    /// The current key.
    pub(super) key: Vec<u8>,
    /// Its versions as selectors, newest first.
    pub(super) versions: Vec<u8>,
}

impl Merge {
    pub(super) fn new<R: Run>(runs: &mut [R], first: usize) -> Result<Merge> {
        assert!(runs.len() <= RUNS_MAX && first <= runs.len(), "a REMIX has at most {RUNS_MAX} runs");
        let mut sources = Vec::with_capacity(runs.len() - first);
        for run in &mut runs[first..] {
            let mut source = Source { done: run.len() == 0, head: 0, key: Vec::new(), ordinal: 0 };
            if !source.done {
                run.key_into(0, &mut source.key)?;
                source.head = head_of(&source.key);
            }
            sources.push(source);
        }
        let mut merge =
            Merge { first, losers: vec![0; sources.len()], sources, key: Vec::new(), versions: Vec::new() };
        merge.play();
        Ok(merge)
    }

    /// Plays all matches.
    fn play(&mut self) {
        let count = self.sources.len();
        if count == 0 {
            return;
        }
        // The leaves of the tree follow its inner nodes.
        let mut winners: Vec<usize> = vec![0; count];
        winners.extend(0..count);
        for node in (1..count).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let (winner, loser) = if self.precedes(left, right) { (left, right) } else { (right, left) };
            winners[node] = winner;
            self.losers[node] = loser;
        }
        self.losers[0] = winners[1];
    }

    /// Plays the matches of a source again after its entry has changed.
    fn replay(&mut self, source: usize) {
        let mut winner = source;
        let mut node = (source + self.sources.len()) / 2;
        while node > 0 {
            let other = self.losers[node];
            if self.precedes(other, winner) {
                self.losers[node] = winner;
                winner = other;
            }
            node /= 2;
        }
        self.losers[0] = winner;
    }

    /// Whether one source's entry comes before another's: by key, and then the newer first.
    fn precedes(&self, left: usize, right: usize) -> bool {
        let (a, b) = (&self.sources[left], &self.sources[right]);
        let order = (a.done, a.head).cmp(&(b.done, b.head));
        order.then_with(|| a.key.cmp(&b.key)).then_with(|| right.cmp(&left)) == Ordering::Less
    }

    /// Goes to the next key; false if there is none.
    pub(super) fn next<R: Run>(&mut self, runs: &mut [R]) -> Result<bool> {
        self.versions.clear();
        loop {
            let Some(&at) = self.losers.first() else { return Ok(false) };
            let source = &mut self.sources[at];
            if source.done {
                return Ok(!self.versions.is_empty());
            }
            let run = self.first + at;
            let mut selector = run as u8;
            if self.versions.is_empty() {
                mem::swap(&mut self.key, &mut source.key);
            } else if source.key == self.key {
                selector |= OLDER;
            } else {
                return Ok(true);
            }
            if runs[run].is_tombstone(source.ordinal)? {
                selector |= TOMBSTONE;
            }
            self.versions.push(selector);
            self.advance(runs, at)?;
        }
    }

    /// Reads the next entry of a source whose last key is `self.key`.
    fn advance<R: Run>(&mut self, runs: &mut [R], at: usize) -> Result<()> {
        let run = &mut runs[self.first + at];
        let source = &mut self.sources[at];
        source.ordinal += 1;
        source.done = source.ordinal == run.len();
        if source.done {
            source.key.clear();
            source.head = 0;
        } else {
            run.key_into(source.ordinal, &mut source.key)?;
            source.head = head_of(&source.key);
            if source.key <= self.key {
                let place = format!(
                    "run {}: key {} is not greater than the previous one",
                    self.first + at,
                    source.ordinal
                );
                return Err(Error::new(ErrorKind::Corrupt, place));
            }
        }
        self.replay(at);
        Ok(())
    }
}
