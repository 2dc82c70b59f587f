//! weakened: light a_reader_is_seen_before_memory_is_freed
//! weakened: light writers_and_an_exclusive_one_never_meet
//! weakened: leave a_reader_is_seen_before_memory_is_freed
//! weakened: repin a_second_pin_does_not_hide_the_first
//! weakened: seal a_reader_is_seen_before_memory_is_freed
//! weakened: writer_leaves writers_and_an_exclusive_one_never_meet
//! weakened: exclusive_leaves writers_and_an_exclusive_one_never_meet
//! weakened: next_index leaving_for_another_index_is_leaving
//! weakened: order what_is_listed_is_complete
//! weakened: root a_new_root_is_complete
//! weakened: phase roots_turn_together
//! weakened: unchecked switches_one_after_the_other
//!
//! Models of the lock-free protocols: every order in which their steps can be seen is tried (with three threads,
//! or long ones: every order with few preemptions). Each model is the property that the argument at the head of
//! its module ends with; what the protocol guards are cells that report two accesses without an order between
//! them. Run with `RUSTFLAGS="--cfg loom" cargo test -p forrest-index --release --test loom`;
//! `LOOM_MAX_PREEMPTIONS` sets the bound for all models. The lines above name what makes which model fail, see
//! `cargo xtask models`.
//!
//! The modules are compiled into this test as they are, with loom's atomics for the standard library's; the
//! rest of the crate is not. What is not modelled: that the light half of the asymmetric fence is weaker than a
//! full fence towards everybody but the heavy half.
#![cfg(loom)]

#[path = "../src/epoch.rs"]
mod epoch;
#[path = "../src/gate.rs"]
mod gate;
#[path = "../src/order.rs"]
mod order;
#[path = "../src/roots.rs"]
mod roots;
#[path = "../src/sync.rs"]
mod sync;

use epoch::{Record, Registry};
use gate::Gate;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use loom::thread;
use order::OrderWord;
use roots::{Phase, Root};

/// Tries all orders, or all with at most so many preemptions.
fn model(preemptions: Option<usize>, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(preemptions);
    builder.check(move || {
        sync::model::init();
        body();
    });
}

/// Memory that a protocol guards.
struct Guarded(UnsafeCell<u64>);

// SAFETY: loom reports accesses that are not ordered, which is what the models are for.
unsafe impl Sync for Guarded {}
// SAFETY: a number belongs to no thread.
unsafe impl Send for Guarded {}

impl Guarded {
    fn new(value: u64) -> Guarded {
        Guarded(UnsafeCell::new(value))
    }

    fn read(&self) -> u64 {
        // SAFETY: loom checks that nobody writes meanwhile.
        self.0.with(|value| unsafe { *value })
    }

    fn write(&self, new: u64) {
        // SAFETY: loom checks that nobody reads or writes meanwhile.
        self.0.with_mut(|value| unsafe { *value = new });
    }

    fn add(&self, more: u64) {
        // SAFETY: loom checks that nobody reads or writes meanwhile.
        self.0.with_mut(|value| unsafe { *value += more });
    }
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

    /// Unlinks a block and frees it, if that is allowed at once.
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
        // An idle record keeps nothing.
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

/// Ordinary writers, each with a place of its own, and one that wants them all.
fn gate(preemptions: Option<usize>, writers: usize, times: usize) {
    model(preemptions, move || {
        let shared = Arc::new((Registry::new(), Gate::new(7), [0, 0].map(Guarded::new)));
        let threads: Vec<_> = (0..writers)
            .map(|writer| {
                let record = shared.0.acquire();
                let shared = shared.clone();
                thread::spawn(move || {
                    let (_, gate, places) = &*shared;
                    for _ in 0..times {
                        let _inside = gate.enter(record);
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
                let _inside = shared.1.enter(record);
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
                let (_, gates, places) = &*shared;
                for (gate, place) in gates.iter().zip(places) {
                    let _inside = gate.enter(record);
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

    /// Reads what is listed; returns how many were appended.
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

/// Two trees; each root from 2 on has a node, which is written before the root is shown.
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
        self.phase.switch(&[(&self.roots[0], root), (&self.roots[1], root)]);
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
            trees.phase.switch(&[(&trees.roots[0], root)]);
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
        trees.phase.switch(&[(&third, 2), (&fourth, 2)]);
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
