//! weakened: light a_reader_is_seen_before_memory_is_freed
//! weakened: light writers_and_an_exclusive_one_never_meet
//! weakened: leave a_reader_is_seen_before_memory_is_freed
//! weakened: repin a_second_pin_does_not_hide_the_first
//! weakened: seal a_reader_is_seen_before_memory_is_freed
//! weakened: leave a_thread_frees_what_another_sealed
//! weakened: light a_thread_frees_what_another_sealed
//! weakened: writer_leaves writers_and_an_exclusive_one_never_meet
//! weakened: exclusive_leaves writers_and_an_exclusive_one_never_meet
//! weakened: next_index leaving_for_another_index_is_leaving
//! weakened: one_note a_writer_of_another_index_stays_inside
//! weakened: order what_is_listed_is_complete
//! weakened: two_holders a_node_has_one_holder
//! weakened: takes a_node_has_one_holder
//! weakened: frees a_node_has_one_holder
//! weakened: misses who_waited_for_a_replaced_node_finds_the_new_one
//! weakened: retires who_waited_for_a_replaced_node_finds_the_new_one
//! weakened: lives_on who_waited_for_a_replaced_node_finds_the_new_one
//! weakened: lives_on a_replaced_node_is_not_taken_by_trying
//! weakened: lives_on two_writers_below_a_parent
//! weakened: root a_new_root_is_complete
//! weakened: phase roots_turn_together
//! weakened: now staged_orders_turn_together
//! weakened: unphased staged_orders_turn_together
//! weakened: undone a_failed_batch_is_not_shown_by_the_next
//! weakened: unchecked switches_one_after_the_other
//!
//! Models of the lock-free protocols and of the node lock. They try every interleaving (with three threads, or long
//! ones: every interleaving with few preemptions). Each model checks the property that the head of its module argues
//! for, or a small version of its users' protocol. The guarded data are cells that report unordered accesses. Run with
//! `cargo test -p forrest-index --release --features loom --lib models`; `LOOM_MAX_PREEMPTIONS` sets the bound
//! for all models. The lines above name the mutants and the models that must fail with them, see `cargo xtask models`.
//!
//! With the feature `loom` the modules use loom's locks and atomics instead of the standard library's. One thing is
//! not modelled: the light half of the asymmetric fence is a full fence only towards the
//! heavy half.

use crate::epoch::{Record, Registry};
use crate::gate::Gate;
use crate::latch::{Latch, Locked};
use crate::order::{Order, OrderWord};
use crate::roots::{Phase, Root};
use crate::staged::Staged;
use forrest_models::Guarded;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use loom::thread;

/// Tries all interleavings, or all with at most this many preemptions.
fn model(preemptions: Option<usize>, body: impl Fn() + Sync + Send + 'static) {
    forrest_models::model(preemptions, move || {
        crate::sync::model::init();
        body();
    });
}

const FREED: u64 = 0;

/// A link to one of several blocks, and the registry that guards them.
struct Store {
    registry: Registry,
    link: AtomicUsize,
    blocks: [Guarded; 3],
}

impl Store {
    fn new() -> Arc<Store> {
        let blocks = [1, 2, 3].map(Guarded::new);
        Arc::new(Store { registry: Registry::new(), link: AtomicUsize::new(0), blocks })
    }

    fn read(&self, record: &Record) {
        self.registry.enter(record);
        let at = self.link.load(Ordering::Acquire);
        assert_eq!(self.blocks[at].read(), at as u64 + 1, "a reader looks at memory that was freed");
        Registry::leave(record);
    }

    /// Unlinks a block, and frees it if that is allowed at once.
    fn replace(&self, old: usize, new: usize) -> bool {
        self.link.store(new, Ordering::Release);
        let epoch = self.registry.seal();
        let may = epoch < self.registry.oldest_pin();
        if may {
            self.blocks[old].write(FREED);
        }
        may
    }
}

#[test]
fn a_reader_is_seen_before_memory_is_freed() {
    model(None, || {
        let store = Store::new();
        let record = store.registry.acquire();
        let reader = {
            let store = store.clone();
            thread::spawn(move || store.read(record))
        };
        store.replace(0, 1);
        reader.join().unwrap();
        // An idle record delays no reclamation.
        assert!(store.replace(1, 2));
    });
}

#[test]
fn a_second_pin_does_not_hide_the_first() {
    model(None, || {
        let store = Store::new();
        let record = store.registry.acquire();
        let reader = {
            let store = store.clone();
            thread::spawn(move || {
                store.read(record);
                store.read(record);
            })
        };
        store.replace(0, 1);
        reader.join().unwrap();
    });
}

#[test]
fn pins_nest() {
    model(None, || {
        let store = Store::new();
        let record = store.registry.acquire();
        let reader = {
            let store = store.clone();
            thread::spawn(move || {
                store.registry.enter(record);
                store.read(record);
                store.read(record);
                Registry::leave(record);
            })
        };
        store.replace(0, 1);
        reader.join().unwrap();
    });
}

#[test]
fn a_reader_that_registers_is_seen() {
    model(None, || {
        let store = Store::new();
        let reader = {
            let store = store.clone();
            thread::spawn(move || {
                let record = store.registry.acquire();
                store.read(record);
                Registry::release(record);
            })
        };
        store.replace(0, 1);
        reader.join().unwrap();
    });
}

#[test]
fn two_readers_and_two_replacements() {
    model(Some(2), || {
        let store = Store::new();
        let readers = [0, 1].map(|_| {
            let store = store.clone();
            let record = store.registry.acquire();
            thread::spawn(move || store.read(record))
        });
        store.replace(0, 1);
        store.replace(1, 2);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

#[test]
fn two_threads_that_replace() {
    model(Some(2), || {
        let stores = Arc::new((Store::new(), AtomicUsize::new(0), [Guarded::new(1), Guarded::new(2)]));
        let record = stores.0.registry.acquire();
        let reader = {
            let stores = stores.clone();
            thread::spawn(move || {
                let (store, link, blocks) = &*stores;
                store.registry.enter(record);
                let at = link.load(Ordering::Acquire);
                assert_eq!(blocks[at].read(), at as u64 + 1);
                store.read(record);
                Registry::leave(record);
            })
        };
        let other = {
            let stores = stores.clone();
            thread::spawn(move || {
                let (store, link, blocks) = &*stores;
                link.store(1, Ordering::Release);
                if store.registry.seal() < store.registry.oldest_pin() {
                    blocks[0].write(FREED);
                }
            })
        };
        stores.0.replace(0, 1);
        reader.join().unwrap();
        other.join().unwrap();
    });
}

/// One thread unlinks a block and seals it into a queue; another finds it there, asks for the pins, and frees it.
fn one_seals_and_another_frees(queue_is_old: bool) {
    model(Some(3), move || {
        let shared = Arc::new((Store::new(), loom::sync::Mutex::new(None)));
        let record = shared.0.registry.acquire();
        let reader = {
            let shared = shared.clone();
            thread::spawn(move || shared.0.read(record))
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (store, queue) = &*shared;
                // Asked before the queue is locked, the pins say nothing about what is sealed meanwhile.
                let early = queue_is_old.then(|| store.registry.oldest_pin());
                let queue = queue.lock().unwrap();
                let oldest = early.unwrap_or_else(|| store.registry.oldest_pin());
                if queue.is_some_and(|epoch| epoch < oldest) {
                    store.blocks[0].write(FREED);
                }
            })
        };
        let (store, queue) = &*shared;
        store.link.store(1, Ordering::Release);
        let mut queue = queue.lock().unwrap();
        *queue = Some(store.registry.seal());
        drop(queue);
        reader.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn a_thread_frees_what_another_sealed() {
    one_seals_and_another_frees(false);
}

/// The reason why the queue is locked while the pins are read.
#[test]
#[should_panic]
fn pins_read_before_the_seal_prove_nothing() {
    one_seals_and_another_frees(true);
}

#[test]
fn a_record_serves_one_thread_at_a_time() {
    model(Some(3), || {
        let registry = Arc::new(Registry::new());
        // One guarded place per record; a record is numbered from the first registered.
        let places = Arc::new([0, 0].map(Guarded::new));
        let threads = [0, 1].map(|_| {
            let (registry, places) = (registry.clone(), places.clone());
            thread::spawn(move || {
                let record = registry.acquire();
                places[record.number].add(1);
                Registry::release(record);
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(places.iter().map(Guarded::read).sum::<u64>(), 2);
        assert!(matches!(registry.records().count(), 1 | 2));
    });
}

/// Ordinary writers, each with a separate place, and an exclusive one that uses all places.
fn gate(preemptions: Option<usize>, writers: usize, times: usize) {
    model(preemptions, move || {
        let shared = Arc::new((Registry::new(), Gate::new(7), [0, 0].map(Guarded::new)));
        let threads: Vec<_> = (0..writers)
            .map(|writer| {
                let record = shared.0.acquire();
                let shared = shared.clone();
                thread::spawn(move || {
                    let (registry, gate, places) = &*shared;
                    for _ in 0..times {
                        let _inside = gate.enter(record, registry);
                        places[writer].add(1);
                    }
                })
            })
            .collect();
        let (registry, gate, places) = &*shared;
        {
            let _alone = gate.close(registry);
            places[..writers].iter().for_each(|place| place.add(10));
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(places[..writers].iter().all(|place| place.read() == 10 + times as u64));
    });
}

#[test]
fn writers_and_an_exclusive_one_never_meet() {
    gate(None, 1, 1);
}

#[test]
fn a_writer_comes_again() {
    gate(Some(3), 1, 2);
}

#[test]
fn two_writers_and_an_exclusive_one() {
    gate(Some(2), 2, 1);
}

#[test]
fn two_exclusive_writers() {
    model(Some(2), || {
        let shared = Arc::new((Registry::new(), Gate::new(7), Guarded::new(0)));
        let record = shared.0.acquire();
        let exclusive = {
            let shared = shared.clone();
            thread::spawn(move || {
                let _alone = shared.1.close(&shared.0);
                shared.2.add(1);
            })
        };
        let writer = {
            let shared = shared.clone();
            thread::spawn(move || {
                let _inside = shared.1.enter(record, &shared.0);
                shared.2.add(1);
            })
        };
        {
            let _alone = shared.1.close(&shared.0);
            shared.2.add(1);
        }
        exclusive.join().unwrap();
        writer.join().unwrap();
        assert_eq!(shared.2.read(), 3);
    });
}

#[test]
fn leaving_for_another_index_is_leaving() {
    model(None, || {
        let shared = Arc::new((Registry::new(), [Gate::new(7), Gate::new(8)], [0, 0].map(Guarded::new)));
        let record = shared.0.acquire();
        let writer = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (registry, gates, places) = &*shared;
                for (gate, place) in gates.iter().zip(places) {
                    let _inside = gate.enter(record, registry);
                    place.add(1);
                }
            })
        };
        let (registry, gates, places) = &*shared;
        {
            let _alone = gates[0].close(registry);
            places[0].add(10);
        }
        writer.join().unwrap();
        assert_eq!((places[0].read(), places[1].read()), (11, 1));
    });
}

#[test]
fn a_writer_of_another_index_stays_inside() {
    model(Some(3), || {
        let shared = Arc::new((Registry::new(), [Gate::new(7), Gate::new(8)], [0, 0].map(Guarded::new)));
        let record = shared.0.acquire();
        let writer = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (registry, gates, places) = &*shared;
                let _inside = gates[0].enter(record, registry);
                {
                    let _nested = gates[1].enter(record, registry);
                    places[1].add(1);
                }
                places[0].add(1);
            })
        };
        let (registry, gates, places) = &*shared;
        for (gate, place) in gates.iter().zip(places) {
            let _alone = gate.close(registry);
            place.add(10);
        }
        writer.join().unwrap();
        assert_eq!((places[0].read(), places[1].read()), (11, 11));
    });
}

/// The changing part of a leaf.
struct Leaf {
    order: OrderWord,
    tags: AtomicU64,
    records: [Guarded; 2],
}

impl Leaf {
    fn append(&self, position: usize, replaces: bool) {
        let order = self.order.load();
        let number = order.appended();
        self.records[number].write(100 + number as u64);
        let tags = self.tags.load(Ordering::Relaxed);
        self.tags.store(tags | (0x50 + number as u64) << (8 * number), Ordering::Relaxed);
        self.order.publish(order.with(position, replaces));
    }

    /// Reads the listed records; returns how many were appended.
    fn read(&self) -> usize {
        let order = self.order.load();
        let tags = self.tags.load(Ordering::Relaxed);
        assert!(order.listed() <= order.appended());
        for position in 0..order.listed() {
            let number = order.number(position);
            assert!(number < order.appended());
            assert_eq!(self.records[number].read(), 100 + number as u64);
        }
        for number in 0..order.appended() {
            assert_eq!(tags >> (8 * number) & 0xff, 0x50 + number as u64, "a tag is late");
        }
        order.appended()
    }
}

fn order(preemptions: Option<usize>, readers: usize, replaces: bool) {
    model(preemptions, move || {
        let records = [0, 0].map(Guarded::new);
        let leaf = Arc::new(Leaf { order: OrderWord::new(), tags: AtomicU64::new(0), records });
        let threads: Vec<_> = (0..readers)
            .map(|_| {
                let leaf = leaf.clone();
                thread::spawn(move || {
                    let first = leaf.read();
                    assert!(leaf.read() >= first, "a record has gone");
                })
            })
            .collect();
        leaf.append(0, false);
        leaf.append(0, replaces);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(leaf.read(), 2);
    });
}

#[test]
fn what_is_listed_is_complete() {
    order(None, 1, false);
    order(None, 1, true);
}

#[test]
fn two_readers_of_a_leaf() {
    order(Some(2), 2, true);
}

/// A node's lock, and how many changes the node has seen.
type Counted = (Latch, Guarded);

fn counted(changes: u64) -> Counted {
    (Latch::new(), Guarded::new(changes))
}

/// Two threads that each wait for the lock `times` times.
fn holders(preemptions: Option<usize>, times: u64) {
    model(preemptions, move || {
        let node = Arc::new(counted(0));
        let write = move |(latch, changes): &Counted| {
            for _ in 0..times {
                let _held = latch.lock().expect("nobody replaces it");
                changes.add(1);
            }
        };
        let other = {
            let node = node.clone();
            thread::spawn(move || write(&node))
        };
        write(&node);
        other.join().unwrap();
        let _held = node.0.try_lock().expect("both have let go");
        assert_eq!(node.1.read(), 2 * times);
    });
}

#[test]
fn a_node_has_one_holder() {
    holders(None, 1);
    holders(Some(3), 2);
}

/// Of three threads only one waits: loom would let two waiting threads take turns for ever, and never run the holder.
#[test]
fn one_waits_for_a_node_and_two_try() {
    model(Some(3), || {
        let node = Arc::new(counted(0));
        let threads = [0, 1].map(|_| {
            let node = node.clone();
            thread::spawn(move || {
                let held = node.0.try_lock();
                held.iter().for_each(|_| node.1.add(1));
                held.is_some()
            })
        });
        {
            let _held = node.0.lock().expect("nobody replaces it");
            node.1.add(1);
        }
        let taken = threads.map(|thread| u64::from(thread.join().unwrap()));
        let _held = node.0.try_lock().expect("all have let go");
        assert_eq!(node.1.read(), 1 + taken.iter().sum::<u64>());
    });
}

/// A link to the current one of several nodes, initially the first.
struct Chain {
    link: AtomicUsize,
    nodes: [Counted; 3],
}

impl Chain {
    fn new() -> Arc<Chain> {
        let nodes = [0, 0, 0].map(counted);
        Arc::new(Chain { link: AtomicUsize::new(0), nodes })
    }

    /// The current node, locked. Searches again if the node was replaced, but finds no node twice.
    fn lock(&self) -> (usize, Locked<'_>) {
        let mut tried = None;
        loop {
            let at = self.link.load(Ordering::Acquire);
            assert_ne!(Some(at), tried, "sent back to a node that was replaced");
            match self.nodes[at].0.lock() {
                Some(lock) => return (at, lock),
                None => tried = Some(at),
            }
        }
    }

    fn change(&self) {
        let (at, _held) = self.lock();
        self.nodes[at].1.add(1);
    }

    /// Replaces the current node by another one with the same content.
    fn replace(&self, new: usize) {
        let (at, lock) = self.lock();
        self.nodes[new].1.write(self.nodes[at].1.read());
        self.link.store(new, Ordering::Release);
        lock.retire();
    }

    fn changes(&self) -> u64 {
        let (at, _held) = self.lock();
        self.nodes[at].1.read()
    }
}

/// A node is replaced this often while another thread changes it: the newest node has the change.
fn replaced_while_changed(times: usize) {
    model(None, move || {
        let chain = Chain::new();
        let writer = {
            let chain = chain.clone();
            thread::spawn(move || chain.change())
        };
        (1..=times).for_each(|to| chain.replace(to));
        writer.join().unwrap();
        assert_eq!(chain.changes(), 1, "a change went to a node that had been replaced");
        assert!(chain.nodes[0].0.lock().is_none());
    });
}

#[test]
fn who_waited_for_a_replaced_node_finds_the_new_one() {
    replaced_while_changed(1);
}

#[test]
fn a_node_is_replaced_twice() {
    replaced_while_changed(2);
}

#[test]
fn a_replaced_node_is_not_taken_by_trying() {
    model(None, || {
        let chain = Chain::new();
        let neighbour = {
            let chain = chain.clone();
            thread::spawn(move || {
                let (latch, changes) = &chain.nodes[0];
                let held = latch.try_lock();
                held.iter().for_each(|_| changes.add(1));
                held.is_some()
            })
        };
        chain.replace(1);
        let taken = neighbour.join().unwrap();
        assert_eq!(chain.changes(), u64::from(taken), "a change went to a node that had been replaced");
        assert!(chain.nodes[0].0.try_lock().is_none());
    });
}

/// A root, a parent with two children, and leaves that count changes.
struct Path {
    root: AtomicUsize,
    parents: [(Latch, [AtomicUsize; 2]); 3],
    leaves: [Counted; 4],
}

impl Path {
    /// The tree begins with parent 0 and leaves 0 and 1. Writer 1 makes leaf 2 and possibly parent 1, writer 2 leaf 3
    /// and possibly parent 2.
    fn new() -> Arc<Path> {
        let parents = [0; 3].map(|_| (Latch::new(), [0, 1].map(AtomicUsize::new)));
        Arc::new(Path { root: AtomicUsize::new(0), parents, leaves: [0; 4].map(counted) })
    }

    fn parent(&self) -> usize {
        self.root.load(Ordering::Acquire)
    }

    fn child(&self, parent: usize, side: usize) -> usize {
        self.parents[parent].1[side].load(Ordering::Acquire)
    }

    fn set_child(&self, parent: usize, side: usize, leaf: usize) {
        self.parents[parent].1[side].store(leaf, Ordering::Release);
    }

    fn lock_leaf(&self, side: usize) -> (usize, Locked<'_>) {
        loop {
            let leaf = self.child(self.parent(), side);
            if let Some(lock) = self.leaves[leaf].0.lock() {
                return (leaf, lock);
            }
        }
    }

    /// The parent of a leaf. The caller has locked the leaf, so no other thread can replace it.
    fn lock_parent(&self, side: usize, leaf: usize) -> (usize, Locked<'_>) {
        loop {
            let parent = self.parent();
            if let Some(lock) = self.parents[parent].0.lock() {
                assert_eq!(self.child(parent, side), leaf, "a locked leaf was replaced");
                return (parent, lock);
            }
        }
    }

    /// Makes one change as the write path does: links a new leaf in the parent or in a copy of it, then retires the
    /// replaced nodes.
    fn change(&self, writer: usize, side: usize, copies_parent: bool) {
        let (old, lock) = self.lock_leaf(side);
        let new = writer + 1;
        self.leaves[new].1.write(self.leaves[old].1.read() + 1);
        let (parent, parent_lock) = self.lock_parent(side, old);
        if copies_parent {
            self.set_child(writer, side, new);
            self.set_child(writer, 1 - side, self.child(parent, 1 - side));
            self.root.store(writer, Ordering::Release);
            parent_lock.retire();
        } else {
            self.set_child(parent, side, new);
            drop(parent_lock);
        }
        lock.retire();
    }

    fn changes(&self, side: usize) -> u64 {
        let (leaf, _held) = self.lock_leaf(side);
        self.leaves[leaf].1.read()
    }
}

/// Two writers, one at the first leaf and the other at the second or at the same.
fn path(side: usize, changes: [u64; 2]) {
    for copies_parent in [[false, false], [false, true], [true, true]] {
        model(None, move || {
            let path = Path::new();
            let other = {
                let path = path.clone();
                thread::spawn(move || path.change(1, 0, copies_parent[0]))
            };
            path.change(2, side, copies_parent[1]);
            other.join().unwrap();
            assert_eq!([0, 1].map(|side| path.changes(side)), changes, "a change is lost");
        });
    }
}

#[test]
fn two_writers_at_a_leaf() {
    path(0, [2, 0]);
}

#[test]
fn two_writers_below_a_parent() {
    path(1, [1, 1]);
}

/// Two trees; each root from 2 on has a node, which is written before the root is published.
struct Trees {
    phase: Phase,
    roots: [Root; 2],
    nodes: [[Guarded; 2]; 2],
}

impl Trees {
    fn new() -> Arc<Trees> {
        let nodes = [0, 0].map(|_| [0, 0].map(Guarded::new));
        Arc::new(Trees { phase: Phase::new(), roots: [1, 1].map(Root::new), nodes })
    }

    fn build(&self, tree: usize, root: u64) {
        self.nodes[tree][root as usize - 2].write(root);
    }

    fn switch_both(&self, root: u64) {
        (0..2).for_each(|tree| self.build(tree, root));
        self.phase.switch(&[(&self.roots[0], root), (&self.roots[1], root)], None::<fn()>);
    }

    fn read(&self, tree: usize) -> u64 {
        let root = self.roots[tree].current(&self.phase);
        if root >= 2 {
            assert_eq!(self.nodes[tree][root as usize - 2].read(), root, "a root before its node");
        }
        root
    }

    /// Reads one tree, then the other: the second must not be the older.
    fn read_both(&self, first: usize) {
        let seen = self.read(first);
        let then = self.read(1 - first);
        assert!(then >= seen, "tree {first} at {seen}, then the other at {then}");
    }
}

#[test]
fn a_new_root_is_complete() {
    model(None, || {
        let trees = Trees::new();
        let reader = {
            let trees = trees.clone();
            thread::spawn(move || {
                let first = trees.read(0);
                assert!(trees.read(0) >= first);
            })
        };
        for root in [2, 3] {
            trees.build(0, root);
            trees.phase.switch(&[(&trees.roots[0], root)], None::<fn()>);
        }
        reader.join().unwrap();
    });
}

#[test]
fn roots_turn_together() {
    for first in [0, 1] {
        model(None, move || {
            let trees = Trees::new();
            let reader = {
                let trees = trees.clone();
                thread::spawn(move || trees.read_both(first))
            };
            trees.switch_both(2);
            reader.join().unwrap();
            assert_eq!((trees.read(0), trees.read(1)), (2, 2));
        });
    }
}

#[test]
fn switches_one_after_the_other() {
    for first in [0, 1] {
        model(Some(2), move || {
            let trees = Trees::new();
            let reader = {
                let trees = trees.clone();
                thread::spawn(move || trees.read_both(first))
            };
            trees.switch_both(2);
            trees.switch_both(3);
            reader.join().unwrap();
        });
    }
}

#[test]
fn a_tree_left_out_of_the_next_switch() {
    model(Some(3), move || {
        let trees = Trees::new();
        let (third, fourth) = (Root::new(1), Root::new(1));
        let reader = {
            let trees = trees.clone();
            thread::spawn(move || trees.read_both(1))
        };
        trees.switch_both(2);
        trees.phase.switch(&[(&third, 2), (&fourth, 2)], None::<fn()>);
        reader.join().unwrap();
    });
}

#[test]
fn two_readers_of_two_trees() {
    model(Some(1), || {
        let trees = Trees::new();
        let readers = [0, 1].map(|first| {
            let trees = trees.clone();
            thread::spawn(move || trees.read_both(first))
        });
        trees.switch_both(2);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

/// Two leaves with room for two records each, and a batch that appends to them.
struct Leaves {
    phase: Phase,
    words: [OrderWord; 2],
    records: [[Guarded; 2]; 2],
    staged: [Staged; 2],
}

impl Leaves {
    fn new() -> Arc<Leaves> {
        Arc::new(Leaves {
            phase: Phase::new(),
            words: [0, 0].map(|_| OrderWord::new()),
            records: [0, 0].map(|_| [0, 0].map(Guarded::new)),
            staged: [0, 0].map(|_| Staged::new()),
        })
    }

    /// Appends a record for the batch alone.
    fn stage(&self, leaf: usize) {
        let (word, staged) = (&self.words[leaf], &self.staged[leaf]);
        let is_first = word.load().reference().is_none();
        let before = if is_first { word.load() } else { staged.after() };
        let number = before.appended();
        self.records[leaf][number].write(100 + number as u64);
        if is_first {
            staged.set(before, 0, &self.phase, self.phase.next());
        }
        staged.set_after(before.with(number, false));
        if is_first {
            word.publish(Order::referring_to(std::ptr::from_ref(staged).expose_provenance()));
        }
    }

    /// Makes what was staged in some leaves visible.
    fn commit(&self, leaves: std::ops::Range<usize>) {
        let publish = || leaves.for_each(|leaf| self.words[leaf].publish(self.staged[leaf].after()));
        self.phase.switch(&[], Some(publish));
    }

    /// Reads the records of a leaf, and returns how many there are.
    fn read(&self, leaf: usize) -> usize {
        let word = self.words[leaf].load();
        let order = if word.reference().is_some() { self.staged[leaf].shown() } else { word };
        for position in 0..order.listed() {
            let number = order.number(position);
            assert_eq!(self.records[leaf][number].read(), 100 + number as u64);
        }
        order.appended()
    }
}

#[test]
fn staged_orders_turn_together() {
    model(None, || {
        let leaves = Leaves::new();
        let reader = {
            let leaves = leaves.clone();
            thread::spawn(move || {
                let seen = [leaves.read(0), leaves.read(1)];
                assert!(matches!(seen, [0, 0] | [0, 1] | [2, 1]), "a part of a batch: {seen:?}");
            })
        };
        [0, 1, 0].into_iter().for_each(|leaf| leaves.stage(leaf));
        leaves.commit(0..2);
        reader.join().unwrap();
        assert_eq!([leaves.read(0), leaves.read(1)], [2, 1]);
    });
}

#[test]
fn a_failed_batch_is_not_shown_by_the_next() {
    model(None, || {
        let leaves = Leaves::new();
        let reader = {
            let leaves = leaves.clone();
            thread::spawn(move || assert_eq!(leaves.read(0), 0, "a batch that failed"))
        };
        leaves.stage(0);
        leaves.words[0].publish(leaves.staged[0].undo());
        leaves.stage(1);
        leaves.commit(1..2);
        reader.join().unwrap();
        assert_eq!([leaves.read(0), leaves.read(1)], [0, 1]);
    });
}
