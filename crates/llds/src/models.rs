//! weakened: begins a_key_that_moves_is_found
//! weakened: ignores_odd a_value_in_sight_is_whole
//! weakened: fences a_value_in_sight_is_whole
//! weakened: believes a_value_in_sight_is_whole
//! weakened: makes_odd a_value_in_sight_is_whole
//! weakened: makes_even a_value_in_sight_is_whole
//! weakened: counts a_key_that_moves_is_found
//! weakened: comes_back a_key_that_moves_is_found
//! weakened: parts what_is_undone_is_never_seen
//! weakened: follows no_handle_leads_nowhere
//! weakened: nodes what_stays_is_seen_while_leaves_are_cut_and_merged
//! weakened: leaf entries_of_a_leaf_are_of_one_moment
//! weakened: leaf an_entry_that_was_replaced_is_not_followed
//! weakened: versions a_piece_is_of_one_moment
//! weakened: as_one changes_that_are_one_are_walked_as_one
//!
//! Models of how a store in the kernel is read in its mapping while others change it: every order in which the steps of
//! two threads can be seen is tried, and of three every order with few preemptions. Each model is a property that the
//! head of `raw/sight.rs` or `raw/walk.rs` argues for, with the writer's side of `kernel/llds/buckets.c` and `order.c`
//! made small. Run with `cargo test -p llds --release --features loom --lib models`; `LOOM_MAX_PREEMPTIONS` sets the
//! bound for all models. The lines above name what makes which model fail, see `cargo xtask models`.
//!
//! With the feature `loom` the modules have loom's locks and atomics for the standard library's.

use crate::raw::sight::{self, Entry, Look, Memory, Sequence};
use crate::raw::walk::{self, Order, Step, Walk};
use forrest_models::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

const BUCKETS: usize = 2;
const BLOCKS: usize = 3;

/// A store in sight: buckets of one slot, and blocks, each of which is an entry, or continues a bucket. Handles are
/// numbers of blocks, from 1 on.
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

/// An entry: its key, and a value of two halves that are alike. What continues a bucket: a handle in place of the key.
struct Block {
    key: AtomicU32,
    halves: [AtomicU32; 2],
}

impl Shown {
    /// One bucket, and these entries: keys, and whether a bucket names them.
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

    /// Moves an entry to another bucket, of which there are so many then.
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

    /// Looks once for a key that belongs to that bucket of all; its value if it was found.
    fn look(&self, key: u32, home: usize) -> (Look, u32) {
        let mut looking = Looking { shown: self, key, home, value: 0 };
        let look = sight::look(&mut looking);
        (look, looking.value)
    }
}

/// One who looks for a key.
struct Looking<'s> {
    shown: &'s Shown,
    key: u32,
    home: usize,
    value: u32,
}

/// A bucket, or a block that continues one.
#[derive(Clone, Copy)]
enum Place {
    Home(usize),
    Block(u32),
}

impl Memory for Looking<'_> {
    type Bucket = Place;

    fn as_one(&self) -> &Sequence {
        &self.shown.as_one
    }

    fn buckets(&self) -> u32 {
        self.shown.buckets.load(Ordering::Relaxed)
    }

    fn home(&self, buckets: u32) -> Place {
        Place::Home(self.home.min(buckets as usize - 1))
    }

    fn sequence(&self, bucket: Place) -> &Sequence {
        match bucket {
            Place::Home(home) => &self.shown.homes[home].sequence,
            Place::Block(_) => unreachable!("what continues a bucket has none of its own"),
        }
    }

    fn slots(&self, bucket: Place) -> u64 {
        u64::from(self.handle(bucket, 1) != 0)
    }

    fn handle(&self, bucket: Place, _: u64) -> u32 {
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

    fn copy(&mut self, handle: u32) -> Entry {
        // A slot that was emptied between the look at its tag and that at its handle.
        if handle == 0 {
            return Entry::Other;
        }
        let block = self.shown.block(handle);
        if block.key.load(Ordering::Relaxed) != self.key {
            return Entry::Other;
        }
        let halves = [0, 1].map(|half| block.halves[half].load(Ordering::Relaxed));
        // What is half changed is found out only by the sequences.
        self.value = if halves[0] == halves[1] { halves[0] } else { u32::MAX };
        Entry::Same
    }
}

/// Two changes in place, and one who looks twice: values are whole, and do not go back.
#[test]
fn a_value_in_sight_is_whole() {
    model(Some(3), || {
        let shown = Shown::new([(7, 1), (0, 0), (0, 0)], [1, 0]);
        let reader = {
            let shown = shown.clone();
            thread::spawn(move || {
                let mut newest = 1;
                for _ in 0..2 {
                    let (look, value) = shown.look(7, 0);
                    assert_ne!(look, Look::Absent, "it is there all the time");
                    if look == Look::Found {
                        assert!(value >= newest && value <= 3, "{value} after {newest}");
                        newest = value;
                    }
                }
            })
        };
        shown.change(0, 2);
        shown.change(0, 3);
        reader.join().unwrap();
        assert_eq!(shown.look(7, 0), (Look::Found, 3));
    });
}

/// A bucket is cut in two, and both become one again: who looks for the key that moves finds it, or that it moved.
#[test]
fn a_key_that_moves_is_found() {
    model(Some(4), || {
        let shown = Shown::new([(7, 1), (0, 0), (0, 0)], [1, 0]);
        let reader = {
            let shown = shown.clone();
            thread::spawn(move || assert_ne!(shown.look(7, 1).0, Look::Absent, "it is there all the time"))
        };
        shown.move_entry(0, 1, 2);
        shown.move_entry(1, 0, 1);
        reader.join().unwrap();
    });
}

/// Two keys are changed as one: who sees the first as it is then does not see the second as it was before.
#[test]
fn what_is_one_is_seen_as_one() {
    model(Some(3), || {
        let shown = Shown::new([(7, 1), (8, 1), (0, 0)], [1, 2]);
        shown.buckets.store(2, Ordering::Relaxed);
        let reader = {
            let shown = shown.clone();
            thread::spawn(move || {
                let (first, second) = (shown.look(7, 0), shown.look(8, 1));
                if first == (Look::Found, 2) {
                    assert!(matches!(second, (Look::Found, 2) | (Look::Again, _)), "a part of a change");
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

/// Changes that were to be one are undone.
#[test]
fn what_is_undone_is_never_seen() {
    model(Some(3), || {
        let shown = Shown::new([(7, 1), (0, 0), (0, 0)], [1, 0]);
        let reader = {
            let shown = shown.clone();
            thread::spawn(move || assert!(matches!(shown.look(7, 0), (Look::Found, 1) | (Look::Again, _))))
        };
        shown.as_one.make_odd();
        shown.change(0, 2);
        shown.change(0, 1);
        shown.as_one.make_even();
        reader.join().unwrap();
    });
}

/// What continued a bucket becomes an entry, whose bytes are no handles.
#[test]
fn no_handle_leads_nowhere() {
    model(Some(3), || {
        let shown = Shown::new([(7, 1), (1, 0), (0, 0)], [0, 0]);
        shown.homes[0].more.store(2, Ordering::Relaxed);
        let reader = {
            let shown = shown.clone();
            thread::spawn(move || assert!(matches!(shown.look(7, 0).0, Look::Found | Look::Again)))
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

/// An order in sight: leaves of two slots, which are sorted by their number, and entries, whose handles are numbers
/// from 1 on. There are no inner nodes: a walk begins at the root and goes on by what lies behind.
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
    /// The leaf behind it: its number from 1 on, or 0.
    beyond: AtomicU32,
}

/// An entry: its key and its value; or, once it was freed, anything.
struct Versioned {
    version: Sequence,
    key: AtomicU32,
    value: AtomicU32,
}

impl Sorted {
    /// One leaf with these handles, of entries with the keys 1 and so on, with the value 1.
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

    /// Puts an entry into a slot of the first leaf, or none.
    fn put(&self, slot: usize, handle: u32) {
        let leaf = &self.leaves[0];
        leaf.sequence.make_odd();
        leaf.handles[slot].store(handle, Ordering::Relaxed);
        leaf.sequence.make_even();
    }

    /// Moves the second entry of the first leaf to the second one, or back.
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

    /// Walks behind a key: keys and values.
    fn walk(&self, behind: u32) -> (Walk, Vec<(u32, u32)>) {
        let mut walking = Walking { sorted: self, behind, slot: 0, pairs: Vec::new(), seen: Vec::new() };
        let walk = walk::walk(&mut walking);
        (walk, walking.pairs)
    }

    /// All pairs, piece by piece, unless something was being changed.
    fn all(&self) -> Option<Vec<(u32, u32)>> {
        let mut all: Vec<(u32, u32)> = Vec::new();
        loop {
            let (walk, pairs) = self.walk(all.last().map_or(0, |pair| pair.0));
            all.extend(pairs);
            match walk {
                Walk::More => {}
                Walk::End => return Some(all),
                Walk::Apart | Walk::Again => return None,
            }
        }
    }
}

/// One who walks behind a key.
struct Walking<'s> {
    sorted: &'s Sorted,
    behind: u32,
    slot: usize,
    pairs: Vec<(u32, u32)>,
    seen: Vec<(u32, u32)>,
}

impl Walking<'_> {
    fn at(&self, leaf: u32) -> &Leaf {
        &self.sorted.leaves[leaf as usize - 1]
    }
}

impl Order for Walking<'_> {
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
        if key > self.behind {
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

/// Runs a writer beside one who walks.
fn walked(handles: [u32; 2], write: fn(&Sorted), see: fn(Option<Vec<(u32, u32)>>)) {
    model(Some(3), move || {
        let sorted = Sorted::new(handles);
        let walker = {
            let sorted = sorted.clone();
            thread::spawn(move || see(sorted.all()))
        };
        write(&sorted);
        walker.join().unwrap();
    });
}

/// A leaf is cut in two, and both become one again: nobody misses the entry that moves.
#[test]
fn what_stays_is_seen_while_leaves_are_cut_and_merged() {
    let see = |all: Option<Vec<_>>| {
        assert!(all.is_none_or(|all| all == [(1, 1), (2, 1)]), "it is there all the time")
    };
    walked([1, 2], |sorted| sorted.cut(true), see);
    let both = |sorted: &Sorted| {
        sorted.cut(true);
        sorted.cut(false);
    };
    walked([1, 2], both, see);
}

/// The second entry goes after the first one: no piece has the second without the first.
#[test]
fn entries_of_a_leaf_are_of_one_moment() {
    let write = |sorted: &Sorted| {
        sorted.put(1, 0);
        sorted.put(0, 0);
    };
    let see = |all: Option<Vec<_>>| {
        assert!(all.is_none_or(|all| all != [(2, 1)]), "the first went before the second")
    };
    walked([1, 2], write, see);
    // The other way around: an entry comes to the second slot, and then the first one goes.
    let write = |sorted: &Sorted| {
        sorted.put(1, 2);
        sorted.put(0, 0);
    };
    let see =
        |all: Option<Vec<_>>| assert!(all.is_none_or(|all| !all.is_empty()), "one was there all the time");
    walked([1, 0], write, see);
}

/// An entry takes the place of another, whose memory becomes that of another key.
#[test]
fn an_entry_that_was_replaced_is_not_followed() {
    let write = |sorted: &Sorted| {
        sorted.entry(3).key.store(1, Ordering::Relaxed);
        sorted.put(0, 3);
        let old = sorted.entry(1);
        old.key.store(9, Ordering::Relaxed);
    };
    walked([1, 2], write, |all| {
        assert!(all.is_none_or(|all| all == [(1, 1), (2, 1)]), "what is not there any more");
    });
}

/// The first value is changed, and then the second: no piece has the second as it is now and the first as it was.
#[test]
fn a_piece_is_of_one_moment() {
    let write = |sorted: &Sorted| {
        sorted.change(1, 2);
        sorted.change(2, 2);
    };
    walked([1, 2], write, |all| {
        assert!(all.is_none_or(|all| all != [(1, 1), (2, 2)]), "values of two moments");
    });
}

/// Two values are changed as one.
#[test]
fn changes_that_are_one_are_walked_as_one() {
    let write = |sorted: &Sorted| {
        sorted.as_one.make_odd();
        sorted.change(1, 2);
        sorted.change(2, 2);
        sorted.as_one.make_even();
    };
    walked([1, 2], write, |all| {
        assert!(all.is_none_or(|all| all[0].1 == all[1].1), "a part of a change");
    });
}
