//! [`Merging`]: a merging iterator over tables, the REMIX's rival.
//!
//! A tournament tree of losers over cursors that own their current keys. A seek searches every table by the
//! table's own index and then plays all matches. A step reads one key and plays the matches on one path,
//! about one comparison for each doubling of the tables. The first eight bytes of the keys are compared as
//! numbers, and are stored together; whole keys are compared only if these are equal. Of equal keys, the
//! newest run's is shown. Deleted keys are not shown.
//!
//! It reads the same data as the engine's own cursors, in the same way. Unlike those, it does not prefetch
//! from all tables at once before the data is needed.

use super::walk::Walk;
use crate::key::head_of;
use crate::partition::Owned;
use crate::table::Kind;
use forrest_engine::Result;
use std::cmp::Ordering;

/// The part of a run's current entry that is compared first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Top {
    /// There are no more. Sorts after all keys.
    done: bool,
    head: u64,
}

const DONE: Top = Top { done: true, head: 0 };

/// A place in the merged order of several runs.
pub struct Merging {
    /// The oldest first.
    runs: Vec<Owned>,
    /// The position in each run. Its cursor keeps the key, unless the run is done.
    ordinals: Vec<u32>,
    tops: Vec<Top>,
    /// At 0 the run whose key is next; at each other node of the tree the loser there. The leaves, which are
    /// not stored, would follow the inner nodes.
    losers: Vec<usize>,
    /// The winner at each node and leaf, while all matches are played.
    winners: Vec<usize>,
    /// A key that is skipped, in all its versions.
    key: Vec<u8>,
}

impl Merging {
    /// Over these runs, the oldest first, at no key yet.
    pub(super) fn new(runs: Vec<Owned>) -> Merging {
        let count = runs.len();
        let winners = vec![0; 2 * count];
        Merging {
            runs,
            ordinals: vec![0; count],
            tops: vec![DONE; count],
            losers: vec![0; count],
            winners,
            key: Vec::new(),
        }
    }

    /// Loads the entry that a run has moved to.
    #[inline]
    fn look(&mut self, at: usize, ordinal: u32) -> Result<()> {
        let run = &mut self.runs[at];
        self.ordinals[at] = ordinal;
        self.tops[at] = if ordinal < run.table().entries() {
            run.key_at(ordinal)?;
            Top { done: false, head: head_of(run.kept_key()) }
        } else {
            DONE
        };
        Ok(())
    }

    /// Whether one run's entry comes before another's: by key, and then the newer first.
    #[inline]
    fn precedes(&self, left: usize, right: usize) -> bool {
        match self.tops[left].cmp(&self.tops[right]) {
            Ordering::Equal if self.tops[left].done => left > right,
            Ordering::Equal => {
                let order = self.runs[left].kept_key().cmp(self.runs[right].kept_key());
                order.then(right.cmp(&left)) == Ordering::Less
            }
            order => order == Ordering::Less,
        }
    }

    /// Plays all matches.
    fn play(&mut self) {
        let count = self.runs.len();
        if count == 0 {
            return;
        }
        for at in 0..count {
            self.winners[count + at] = at;
        }
        for node in (1..count).rev() {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let (winner, loser) = if self.precedes(left, right) { (left, right) } else { (right, left) };
            self.winners[node] = winner;
            self.losers[node] = loser;
        }
        self.losers[0] = self.winners[1];
    }

    /// The run whose key is next, unless all are done.
    #[inline]
    fn top(&self) -> Option<usize> {
        self.losers.first().copied().filter(|&at| !self.tops[at].done)
    }

    /// Advances the run that is next, and plays its matches again.
    #[inline]
    fn advance(&mut self, at: usize) -> Result<()> {
        self.look(at, self.ordinals[at] + 1)?;
        let mut winner = at;
        let mut node = (at + self.runs.len()) / 2;
        while node > 0 {
            let other = self.losers[node];
            if self.precedes(other, winner) {
                self.losers[node] = winner;
                winner = other;
            }
            node /= 2;
        }
        self.losers[0] = winner;
        Ok(())
    }

    /// Whether another run may be at the same key as the one that is next. Such a run would have lost to it,
    /// or to one that lost to it and has the key too.
    #[inline]
    fn may_be_tied(&self, at: usize) -> bool {
        let mut node = (at + self.runs.len()) / 2;
        while node > 0 {
            if self.tops[self.losers[node]] == self.tops[at] {
                return true;
            }
            node /= 2;
        }
        false
    }

    /// Skips the next key, and its older versions.
    #[inline]
    fn pass(&mut self, at: usize) -> Result<()> {
        if self.may_be_tied(at) { self.pass_versions(at) } else { self.advance(at) }
    }

    #[cold]
    fn pass_versions(&mut self, at: usize) -> Result<()> {
        self.key.clear();
        self.key.extend_from_slice(self.runs[at].kept_key());
        while let Some(at) = self.top().filter(|&at| *self.runs[at].kept_key() == self.key) {
            self.advance(at)?;
        }
        Ok(())
    }

    /// Moves forward to a key that is not deleted, if it is not at one.
    #[inline]
    fn settle(&mut self) -> Result<bool> {
        while let Some(at) = self.top() {
            if self.runs[at].kind(self.ordinals[at])? != Kind::Tombstone {
                return Ok(true);
            }
            self.pass(at)?;
        }
        Ok(false)
    }

    /// The run of the current key.
    #[inline]
    fn at(&self) -> usize {
        self.top().expect("it is at a key")
    }
}

impl Walk for Merging {
    fn first(&mut self) -> Result<bool> {
        for at in 0..self.runs.len() {
            self.look(at, 0)?;
        }
        self.play();
        self.settle()
    }

    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        for at in 0..self.runs.len() {
            let ordinal = self.runs[at].lower_bound(key)?;
            self.look(at, ordinal)?;
        }
        self.play();
        self.settle()
    }

    #[inline]
    fn next(&mut self) -> Result<bool> {
        let at = self.at();
        self.pass(at)?;
        self.settle()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.runs[self.at()].kept_key()
    }

    #[inline]
    fn show<R>(&mut self, see: impl FnOnce(&[u8], &[u8]) -> R) -> Result<R> {
        let at = self.at();
        let ordinal = self.ordinals[at];
        self.runs[at].with_kept_key(|key, table| table.value_with(ordinal, |value| see(key, value)))
    }
}
