//! weakened: begins a_key_that_moves_is_found
//! weakened: ignores_odd a_value_read_is_whole
//! weakened: fences a_value_read_is_whole
//! weakened: believes a_value_read_is_whole
//! weakened: makes_odd a_value_read_is_whole
//! weakened: makes_even a_value_read_is_whole
//! weakened: counts a_key_that_moves_is_found
//! weakened: comes_back a_key_that_moves_is_found
//! weakened: parts what_is_undone_is_never_seen
//! weakened: follows no_handle_leads_nowhere
//! weakened: nodes what_stays_is_seen_while_leaves_are_cut_and_merged
//! weakened: leaf entries_of_a_leaf_are_of_one_moment
//! weakened: leaf an_entry_that_was_replaced_is_not_followed
//! weakened: versions a_piece_is_of_one_moment
//! weakened: as_one changes_made_together_are_scanned_together
//!
//! Models of reads in the mapping of a kernel store while other threads change the store. Two threads run in
//! every observable order of their steps, three in every order with few preemptions. Each model is a property
//! that the head of `raw/seqlock.rs` or `raw/seqlock_scan.rs` argues for, with a small version of the
//! writer's side of `kernel/llds/buckets.c` and `order.c`. Run with `cargo test -p llds --release --features
//! loom --lib models`; `LOOM_MAX_PREEMPTIONS` sets the bound for all models. Each line above names a mutation
//! and the model that must fail with it, see `cargo xtask models`.
//!
//! With the feature `loom` the modules use loom's locks and atomics instead of the standard library's.

use crate::raw::seqlock::{self, Candidate, Memory, Read, Sequence};
use crate::raw::seqlock_scan::{self, Order, Scan, Step};
use forrest_models::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

const BUCKETS: usize = 2;
const BLOCKS: usize = 3;

/// A mapped store: buckets of one slot, and blocks, each of which is an entry or an overflow block. A handle
/// is the number of a block, from 1.
struct Shown {
    as_one: Sequence,
    buckets: AtomicU32,
    homes: [Home; BUCKETS],
    blocks: [Block; BLOCKS],
}

struct Home {
    sequence: Sequence,
    handle: AtomicU32,
    more: AtomicU32,
}

/// An entry: its key, and a value of two equal halves. Or an overflow block: a handle in place of the key.
struct Block {
    key: AtomicU32,
    halves: [AtomicU32; 2],
}

impl Shown {
    /// One bucket in use, and these entries: keys and values; and the handle in each bucket.
    fn new(entries: [(u32, u32); BLOCKS], handles: [u32; BUCKETS]) -> Arc<Shown> {
        let homes = handles.map(|handle| Home {
            sequence: Sequence::new(),
            handle: AtomicU32::new(handle),
            more: AtomicU32::new(0),
        });
        let blocks = entries.map(|(key, value)| Block {
            key: AtomicU32::new(key),
            halves: [AtomicU32::new(value), AtomicU32::new(value)],
        });
        Arc::new(Shown { as_one: Sequence::new(), buckets: AtomicU32::new(1), homes, blocks })
    }

    fn block(&self, handle: u32) -> &Block {
        self.blocks.get(handle as usize - 1).expect("a handle leads nowhere")
    }

    /// Changes the value of the entry that a bucket names.
    fn change(&self, home: usize, value: u32) {
        let Home { sequence, handle, .. } = &self.homes[home];
        let block = self.block(handle.load(Ordering::Relaxed));
        sequence.make_odd();
        block.halves.iter().for_each(|half| half.store(value, Ordering::Relaxed));
        sequence.make_even();
    }

    /// Moves an entry to another bucket, and sets the number of buckets.
    fn move_entry(&self, from: usize, to: usize, buckets: u32) {
        let (from, to) = (&self.homes[from], &self.homes[to]);
        from.sequence.make_odd();
        to.sequence.make_odd();
        to.handle.store(from.handle.load(Ordering::Relaxed), Ordering::Relaxed);
        from.handle.store(0, Ordering::Relaxed);
        self.buckets.store(buckets, Ordering::Relaxed);
        to.sequence.make_even();
        from.sequence.make_even();
    }

    /// Attempts one read of a key whose bucket is `home` if all buckets exist; returns its value if it was
    /// found.
    fn read(&self, key: u32, home: usize) -> (Read, u32) {
        let mut lookup = Lookup { shown: self, key, home, value: 0 };
        let read = seqlock::read_once(&mut lookup);
        (read, lookup.value)
    }
}

/// A lookup of one key.
struct Lookup<'s> {
    shown: &'s Shown,
    key: u32,
    home: usize,
    value: u32,
}

/// A bucket, or an overflow block.
#[derive(Clone, Copy)]
enum Place {
    Home(usize),
    Block(u32),
}

impl Memory for Lookup<'_> {
    type Bucket = Place;

    fn as_one(&self) -> &Sequence {
        &self.shown.as_one
    }

    fn buckets(&self) -> u64 {
        self.shown.buckets.load(Ordering::Relaxed).into()
    }

    fn home(&self, buckets: u64) -> Place {
        Place::Home(self.home.min(buckets as usize - 1))
    }

    fn sequence(&self, bucket: Place) -> &Sequence {
        match bucket {
            Place::Home(home) => &self.shown.homes[home].sequence,
            Place::Block(_) => unreachable!("an overflow block has no sequence"),
        }
    }

    fn slots(&self, bucket: Place) -> u32 {
        u32::from(self.handle(bucket, 1) != 0)
    }

    fn handle(&self, bucket: Place, _: u32) -> u32 {
        match bucket {
            Place::Home(home) => self.shown.homes[home].handle.load(Ordering::Relaxed),
            Place::Block(handle) => self.shown.block(handle).key.load(Ordering::Relaxed),
        }
    }

    fn more(&self, bucket: Place) -> u32 {
        match bucket {
            Place::Home(home) => self.shown.homes[home].more.load(Ordering::Relaxed),
            Place::Block(_) => 0,
        }
    }

    fn continued(&self, handle: u32) -> Place {
        Place::Block(handle)
    }

    fn is_crowded(&self, _: Place) -> bool {
        false
    }

    fn copy(&mut self, handle: u32) -> Candidate {
        // The slot was emptied between the loads of its tag and its handle.
        if handle == 0 {
            return Candidate::OtherKey;
        }
        let block = self.shown.block(handle);
        if block.key.load(Ordering::Relaxed) != self.key {
            return Candidate::OtherKey;
        }
        let halves = [0, 1].map(|half| block.halves[half].load(Ordering::Relaxed));
        // Only the sequences detect a value that is half changed.
        self.value = if halves[0] == halves[1] { halves[0] } else { u32::MAX };
        Candidate::Copied
    }
}

/// A writer changes a value in place twice while a reader reads it twice: values are whole, and never older
/// than before.
#[test]
fn a_value_read_is_whole() {
    model(Some(3), || {
        let shown = Shown::new([(7, 1), (0, 0), (0, 0)], [1, 0]);
        let reader = {
            let shown = shown.clone();
            thread::spawn(move || {
                let mut newest = 1;
                for _ in 0..2 {
                    let (read, value) = shown.read(7, 0);
                    assert_ne!(read, Read::Absent, "the key exists all the time");
                    if read == Read::Found {
                        assert!(value >= newest && value <= 3, "{value} after {newest}");
                        newest = value;
                    }
                }
            })
        };
        shown.change(0, 2);
        shown.change(0, 3);
        reader.join().unwrap();
        assert_eq!(shown.read(7, 0), (Read::Found, 3));
    });
}

/// A bucket is split, and merged again: a reader finds the key that moves, or must retry.
#[test]
fn a_key_that_moves_is_found() {
    model(Some(4), || {
        let shown = Shown::new([(7, 1), (0, 0), (0, 0)], [1, 0]);
        let reader = {
            let shown = shown.clone();
            thread::spawn(move || assert_ne!(shown.read(7, 1).0, Read::Absent, "the key exists all the time"))
        };
        shown.move_entry(0, 1, 2);
        shown.move_entry(1, 0, 1);
        reader.join().unwrap();
    });
}

/// Two keys are changed together: a reader that sees the new value of the first never sees the old value of
/// the second.
#[test]
fn what_is_one_is_seen_as_one() {
    model(Some(3), || {
        let shown = Shown::new([(7, 1), (8, 1), (0, 0)], [1, 2]);
        shown.buckets.store(2, Ordering::Relaxed);
        let reader = {
            let shown = shown.clone();
            thread::spawn(move || {
                let (first, second) = (shown.read(7, 0), shown.read(8, 1));
                if first == (Read::Found, 2) {
                    assert!(matches!(second, (Read::Found, 2) | (Read::Retry, _)), "a part of a change");
                }
            })
        };
        shown.as_one.make_odd();
        shown.change(0, 2);
        shown.change(1, 2);
        shown.as_one.make_even();
        reader.join().unwrap();
    });
}

/// Changes that were to become visible together are undone: no reader sees them.
#[test]
fn what_is_undone_is_never_seen() {
    model(Some(3), || {
        let shown = Shown::new([(7, 1), (0, 0), (0, 0)], [1, 0]);
        let reader = {
            let shown = shown.clone();
            thread::spawn(move || assert!(matches!(shown.read(7, 0), (Read::Found, 1) | (Read::Retry, _))))
        };
        shown.as_one.make_odd();
        shown.change(0, 2);
        shown.change(0, 1);
        shown.as_one.make_even();
        reader.join().unwrap();
    });
}

/// An overflow block becomes an entry, whose bytes are not handles: no reader follows them.
#[test]
fn no_handle_leads_nowhere() {
    model(Some(3), || {
        let shown = Shown::new([(7, 1), (1, 0), (0, 0)], [0, 0]);
        shown.homes[0].more.store(2, Ordering::Relaxed);
        let reader = {
            let shown = shown.clone();
            thread::spawn(move || assert!(matches!(shown.read(7, 0).0, Read::Found | Read::Retry)))
        };
        let Home { sequence, handle, more } = &shown.homes[0];
        sequence.make_odd();
        handle.store(1, Ordering::Relaxed);
        more.store(0, Ordering::Relaxed);
        sequence.make_even();
        shown.blocks[1].key.store(99, Ordering::Relaxed);
        reader.join().unwrap();
    });
}

const LEAVES: usize = 2;

/// A mapped order: leaves of two slots, in the order of their numbers, and entries, whose handles are numbers
/// from 1. There are no inner nodes: a scan begins at the root and goes on to the next leaves.
struct Sorted {
    as_one: Sequence,
    nodes: Sequence,
    root: AtomicU32,
    leaves: [Leaf; LEAVES],
    entries: [Versioned; BLOCKS],
}

struct Leaf {
    sequence: Sequence,
    handles: [AtomicU32; 2],
    /// The next leaf: its number from 1, or 0.
    beyond: AtomicU32,
}

/// An entry: its key and its value. After it was freed, it may hold anything.
struct Versioned {
    version: Sequence,
    key: AtomicU32,
    value: AtomicU32,
}

impl Sorted {
    /// One leaf with these handles. The entries have the keys 1, 2 and 3, and the value 1.
    fn new(handles: [u32; 2]) -> Arc<Sorted> {
        let leaf = |handles: [u32; 2]| Leaf {
            sequence: Sequence::new(),
            handles: handles.map(AtomicU32::new),
            beyond: AtomicU32::new(0),
        };
        let entry =
            |key| Versioned { version: Sequence::new(), key: AtomicU32::new(key), value: AtomicU32::new(1) };
        Arc::new(Sorted {
            as_one: Sequence::new(),
            nodes: Sequence::new(),
            root: AtomicU32::new(1),
            leaves: [leaf(handles), leaf([0, 0])],
            entries: [entry(1), entry(2), entry(3)],
        })
    }

    fn entry(&self, handle: u32) -> &Versioned {
        self.entries.get(handle as usize - 1).expect("a handle leads nowhere")
    }

    /// Changes a value in its place.
    fn change(&self, handle: u32, value: u32) {
        let entry = self.entry(handle);
        entry.version.make_odd();
        entry.value.store(value, Ordering::Relaxed);
        entry.version.make_even();
    }

    /// Sets a slot of the first leaf to an entry, or to none.
    fn put(&self, slot: usize, handle: u32) {
        let leaf = &self.leaves[0];
        leaf.sequence.make_odd();
        leaf.handles[slot].store(handle, Ordering::Relaxed);
        leaf.sequence.make_even();
    }

    /// Moves the second entry of the first leaf to the second leaf, or back.
    fn cut(&self, is_cut: bool) {
        let [first, second] = &self.leaves;
        let (from, to) = if is_cut {
            (&first.handles[1], &second.handles[0])
        } else {
            (&second.handles[0], &first.handles[1])
        };
        self.nodes.make_odd();
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        from.store(0, Ordering::Relaxed);
        first.beyond.store(if is_cut { 2 } else { 0 }, Ordering::Relaxed);
        self.nodes.make_even();
    }

    /// Attempts one scan of the pairs after a key.
    fn scan(&self, after: u32) -> (Scan, Vec<(u32, u32)>) {
        let mut scan = RangeScan { sorted: self, after, slot: 0, pairs: Vec::new(), seen: Vec::new() };
        let result = seqlock_scan::scan_once(&mut scan);
        (result, scan.pairs)
    }

    /// All pairs, piece by piece. `None` if a change interfered.
    fn all(&self) -> Option<Vec<(u32, u32)>> {
        let mut all: Vec<(u32, u32)> = Vec::new();
        loop {
            let (scan, pairs) = self.scan(all.last().map_or(0, |pair| pair.0));
            all.extend(pairs);
            match scan {
                Scan::More => {}
                Scan::End => return Some(all),
                Scan::Apart | Scan::Retry => return None,
            }
        }
    }
}

/// A scan of the pairs after a key.
struct RangeScan<'s> {
    sorted: &'s Sorted,
    after: u32,
    slot: usize,
    pairs: Vec<(u32, u32)>,
    seen: Vec<(u32, u32)>,
}

impl RangeScan<'_> {
    fn at(&self, leaf: u32) -> &Leaf {
        &self.sorted.leaves[leaf as usize - 1]
    }
}

impl Order for RangeScan<'_> {
    fn as_one(&self) -> &Sequence {
        &self.sorted.as_one
    }

    fn nodes(&self) -> &Sequence {
        &self.sorted.nodes
    }

    fn root(&self) -> (u32, u32) {
        (self.sorted.root.load(Ordering::Relaxed), 0)
    }

    fn child(&mut self, _: u32, _: u32) -> Option<u32> {
        unreachable!("there are no inner nodes")
    }

    fn leaf(&self, leaf: u32) -> &Sequence {
        &self.at(leaf).sequence
    }

    fn begin(&mut self, _: u32, _: bool) {
        self.pairs.clear();
        self.seen.clear();
        self.slot = 0;
    }

    fn entry(&mut self, leaf: u32) -> Option<u32> {
        while self.slot < 2 {
            let handle = self.at(leaf).handles[self.slot].load(Ordering::Relaxed);
            self.slot += 1;
            if handle != 0 {
                return Some(handle);
            }
        }
        None
    }

    fn copy(&mut self, handle: u32) -> Step {
        let entry = self.sorted.entry(handle);
        let Some(version) = entry.version.begin() else { return Step::Changing };
        let key = entry.key.load(Ordering::Relaxed);
        if key > self.after {
            self.pairs.push((key, entry.value.load(Ordering::Relaxed)));
            self.seen.push((handle, version));
        }
        Step::On
    }

    fn is_unchanged(&self) -> bool {
        self.seen.iter().all(|(handle, version)| self.sorted.entry(*handle).version.is_still(*version))
    }

    fn has_any(&self) -> bool {
        !self.seen.is_empty()
    }

    fn is_full(&self) -> bool {
        false
    }

    fn beyond(&self, leaf: u32) -> u32 {
        self.at(leaf).beyond.load(Ordering::Relaxed)
    }
}

/// Runs a writer beside a thread that scans.
fn scanned(handles: [u32; 2], write: fn(&Sorted), see: fn(Option<Vec<(u32, u32)>>)) {
    model(Some(3), move || {
        let sorted = Sorted::new(handles);
        let reader = {
            let sorted = sorted.clone();
            thread::spawn(move || see(sorted.all()))
        };
        write(&sorted);
        reader.join().unwrap();
    });
}

/// A leaf is split, and merged again: no scan misses the entry that moves.
#[test]
fn what_stays_is_seen_while_leaves_are_cut_and_merged() {
    let see = |all: Option<Vec<_>>| {
        assert!(all.is_none_or(|all| all == [(1, 1), (2, 1)]), "the entry exists all the time")
    };
    scanned([1, 2], |sorted| sorted.cut(true), see);
    let both = |sorted: &Sorted| {
        sorted.cut(true);
        sorted.cut(false);
    };
    scanned([1, 2], both, see);
}

/// The second entry is removed, then the first: no piece has the second without the first.
#[test]
fn entries_of_a_leaf_are_of_one_moment() {
    let write = |sorted: &Sorted| {
        sorted.put(1, 0);
        sorted.put(0, 0);
    };
    let see = |all: Option<Vec<_>>| {
        assert!(all.is_none_or(|all| all != [(2, 1)]), "the second entry without the first")
    };
    scanned([1, 2], write, see);
    // The other way around: an entry is added in the second slot, and then the first one is removed.
    let write = |sorted: &Sorted| {
        sorted.put(1, 2);
        sorted.put(0, 0);
    };
    let see =
        |all: Option<Vec<_>>| assert!(all.is_none_or(|all| !all.is_empty()), "an entry existed all the time");
    scanned([1, 0], write, see);
}

/// An entry replaces another, whose memory is then reused for another key.
#[test]
fn an_entry_that_was_replaced_is_not_followed() {
    let write = |sorted: &Sorted| {
        sorted.entry(3).key.store(1, Ordering::Relaxed);
        sorted.put(0, 3);
        let old = sorted.entry(1);
        old.key.store(9, Ordering::Relaxed);
    };
    scanned([1, 2], write, |all| {
        assert!(all.is_none_or(|all| all == [(1, 1), (2, 1)]), "an entry that was replaced");
    });
}

/// The first value is changed, then the second: no piece has the second's new value and the first's old one.
#[test]
fn a_piece_is_of_one_moment() {
    let write = |sorted: &Sorted| {
        sorted.change(1, 2);
        sorted.change(2, 2);
    };
    scanned([1, 2], write, |all| {
        assert!(all.is_none_or(|all| all != [(1, 1), (2, 2)]), "values of two moments");
    });
}

/// Two values are changed together: no piece has one of the changes without the other.
#[test]
fn changes_made_together_are_scanned_together() {
    let write = |sorted: &Sorted| {
        sorted.as_one.make_odd();
        sorted.change(1, 2);
        sorted.change(2, 2);
        sorted.as_one.make_even();
    };
    scanned([1, 2], write, |all| {
        assert!(all.is_none_or(|all| all[0].1 == all[1].1), "a part of a change");
    });
}
