//! Ingests: what they leave in every state of a crash and with a failing disk, and where their tables go.

use super::crash::{alphabet, crash_everywhere};
use super::faults::{FAILURES, failing_io_of, survives};
use super::world::{
    Content, Pairs, Step, World, beginning, follow, ingest_steps, options, options_of, seeds,
};
use crate::Store;
use crate::core::Handle;
use crate::disk::Kind;
use crate::disk::simulated::{Failure, Fault, Simulated, Times};
use crate::ingest::Ingest;
use crate::memtable::VALUE_MAX;
use crate::view::Snapshot;
use forrest_engine::{Cursor as _, Keyspace as _, Snapshot as _, Store as _, View as _};
use forrest_engine::{Durability, ErrorKind, Goto, Ingest as _, Op, Options};
use forrest_testing::sized;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

fn large() -> Options {
    Options { memtable_bytes: 4 << 20, table_bytes: 4 << 20, ..options(Durability::Buffered) }
}

fn ingest(keys: impl IntoIterator<Item = u8>, meanwhile: Vec<Step>) -> Step {
    Step::Ingest("default", keys.into_iter().collect(), 50, meanwhile)
}

/// Runs steps; the store has what it should have after each, also when it is opened again.
fn run(options: &Options, steps: &[Step]) -> (Simulated, World) {
    let disk = Simulated::new();
    let world = World::open(&disk, options).expect("it opens");
    let mut states = beginning();
    for step in steps {
        follow(&mut states, step);
        world.run(step).unwrap_or_else(|error| panic!("{step:?}: {error}"));
        assert_eq!(Some(&world.content().expect("it is read")), states.last(), "{step:?}");
        world.store.verify().unwrap_or_else(|error| panic!("{step:?}: {error}"));
    }
    let again = World::open(&disk.kill(), options).expect("it opens");
    assert_eq!(Some(&again.content().expect("it is read")), states.last());
    (disk, world)
}

/// The number of tables of each partition of the default keyspace.
fn tables(world: &World) -> Vec<usize> {
    world.store.version().partitions(0).iter().map(|one| one.tables().len()).collect()
}

fn tables_of(disk: &Simulated) -> usize {
    disk.files().iter().filter(|(name, _)| name.kind == Kind::Table).count()
}

/// A bit of each byte of a manifest whose last commit was an ingest. Cause: nothing stated that this record was synced,
/// so it was taken for a torn write: the store opened without the ingest, with all changes after it, and removed the
/// tables. Cure: a statement follows each record.
#[test]
fn a_flipped_bit_after_an_ingest_is_reported_or_harmless() {
    flipped_bits_after_an_ingest();
}

pub(super) fn flipped_bits_after_an_ingest() {
    let options = large();
    let steps = [
        Step::Set("default", 40, 5),
        ingest(0..9, Vec::new()),
        Step::Set("default", 41, 5),
        Step::Set("default", 42, 5),
        Step::Sync,
    ];
    let (disk, world) = run(&options, &steps);
    let expected = world.content().expect("it is read");
    drop(world);
    let files = disk.files();
    let manifest = files.iter().position(|(name, _)| name.kind == Kind::Manifest).expect("there is one");
    let mut noticed = 0;
    for byte in 0..files[manifest].1.len() {
        let mut damaged = files.clone();
        damaged[manifest].1[byte] ^= 1 << (byte % 8);
        match World::open(&Simulated::from_files(damaged), &options).and_then(|world| world.content()) {
            Ok(content) => assert_eq!(content, expected, "byte {byte}"),
            Err(_) => noticed += 1,
        }
    }
    assert!(noticed > 0, "all of it is harmless");
}

/// Random work with ingests; the store agrees with the model after each step.
#[test]
fn ingests_agree_with_the_model() {
    after_random_work(seeds(40, 150));
}

pub(super) fn after_random_work(seeds: Range<u64>) {
    for seed in seeds {
        run(&options_of(seed, Durability::Buffered), &ingest_steps(seed, 40));
    }
}

pub(super) fn after_power_cuts(seeds: Range<u64>) -> u64 {
    let durabilities = [Durability::Memory, Durability::Buffered, Durability::Sync];
    let crash = |seed| {
        let durability = durabilities[(seed % 3) as usize];
        crash_everywhere(&format!("seed {seed}"), &ingest_steps(seed, 12), durability, 2)
    };
    seeds.map(crash).sum()
}

#[test]
fn a_power_cut_leaves_all_of_an_ingest_or_nothing() {
    let states = after_power_cuts(seeds(2, 2));
    println!("{states} states");
    assert!(states > 100, "only {states} states were looked at");
}

/// After each operation of a store, and between two of them.
#[test]
fn a_power_cut_around_an_ingest_loses_nothing() {
    for before in alphabet() {
        for after in alphabet().into_iter().take(sized(1, 10)) {
            let steps = [before.clone(), ingest(0..4, Vec::new()), after];
            crash_everywhere(&format!("{steps:?}"), &steps, Durability::Buffered, 0);
        }
    }
}

pub(super) fn failing_io(seeds: Range<u64>, every: usize) {
    failing_io_of(seeds, |seed| ingest_steps(seed, 8), &FAILURES, every);
}

#[test]
fn any_io_of_an_ingest_may_fail() {
    failing_io(seeds(2, 2), sized(5, 3));
}

/// An ingest that finds no space, at any of its I/Os, leaves the store as it was, which goes on.
#[test]
fn an_ingest_without_space_leaves_nothing() {
    let options = options(Durability::Buffered);
    let before = [Step::Set("default", 5, 300), Step::Flush, Step::Set("default", 7, 300)];
    let mut refusals = 0;
    for at in 0.. {
        let disk = Simulated::new();
        let world = World::open(&disk, &options).expect("it opens");
        let mut states = beginning();
        for step in &before {
            follow(&mut states, step);
            world.run(step).expect("it works");
        }
        disk.fail(Fault { at: disk.ios() + at, times: Times::ForEver, kind: Failure::Enospc });
        let step = ingest(0..60, Vec::new());
        let done = world.run(&step);
        disk.heal();
        let Err(error) = done else { break };
        assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{at}: {error}");
        refusals += 1;
        assert_eq!(Some(&world.content().expect("it is read")), states.last(), "{at}");
        let named: usize = tables(&world).iter().sum();
        assert_eq!(tables_of(&disk), named, "{at}: tables stay that nothing names");
        while world.store.step().expect("there is space") {}
        follow(&mut states, &step);
        world.run(&step).expect("there is space");
        assert_eq!(Some(&world.content().expect("it is read")), states.last(), "{at}");
        survives(&disk, &options, &states[states.len() - 1..], "after it");
    }
    assert!(refusals > 5, "only {refusals}");
}

/// A failed write of a table is the ingest's failure only.
#[test]
fn an_ingest_that_cannot_be_written_stops_nothing() {
    let disk = Simulated::new();
    let world = World::open(&disk, &options(Durability::Buffered)).expect("it opens");
    let space = world.store.keyspace("default").expect("it is there");
    let mut ingest = Box::new(Ingest::begin(&world.store, &space).expect("it begins"));
    ingest.put(b"a", b"1").expect("it waits in memory");
    disk.fail(Fault { at: disk.ios(), times: Times::Once, kind: Failure::Eio });
    let failed = (0..200_u8).try_for_each(|number| ingest.put(&[b'b', number], &[7; 50]));
    assert_eq!(failed.expect_err("a table is full").kind(), ErrorKind::Io);
    let error = ingest.put(b"c", b"3").expect_err("it is of no use");
    assert!(error.to_string().contains("begin another one"), "{error}");
    assert!(ingest.finish().is_err());
    assert_eq!(tables_of(&disk), 0);
    world.set_number(1).expect("the store goes on");
    world.run(&self::ingest(0..60, Vec::new())).expect("and so does the next one");
}

/// Tables of an ingest that is dropped are removed at once, those of one that a kill ends when the store is opened and
/// changed again.
#[test]
fn an_ingest_without_an_end_leaves_no_files() {
    let options = options(Durability::Buffered);
    let disk = Simulated::new();
    let world = World::open(&disk, &options).expect("it opens");
    let space = world.store.keyspace("default").expect("it is there");
    let put_all = || {
        let mut ingest = Ingest::begin(&world.store, &space).expect("it begins");
        (0..200_u32).for_each(|number| ingest.put(&number.to_be_bytes(), &[7; 50]).expect("it works"));
        ingest
    };
    let first = put_all();
    assert!(tables_of(&disk) > 3, "there are several tables");
    drop(first);
    assert_eq!(tables_of(&disk), 0);
    let second = put_all();
    let killed = disk.kill();
    drop(second);
    assert!(tables_of(&killed) > 3);
    let world = World::open(&killed, &options).expect("it opens");
    world.set_number(1).expect("it works");
    world.store.flush_all().expect("it works");
    assert_eq!(tables_of(&killed), 1);
}

/// What the store removes after its own failure are its own files.
#[test]
fn a_failed_flush_leaves_the_files_of_an_ingest() {
    let options = options(Durability::Buffered);
    let disk = Simulated::new();
    let world = World::open(&disk, &options).expect("it opens");
    let space = world.store.keyspace("default").expect("it is there");
    (0..20).for_each(|number| world.set_number(number).expect("it works"));
    // Each table of the flush fails; before, between and after, the ingest begins tables.
    let mut ingest = Box::new(Ingest::begin(&world.store, &space).expect("it begins"));
    for number in 0..200_u32 {
        ingest.put(&number.to_be_bytes(), &[7; 50]).expect("it works");
        if number % 20 == 19 {
            disk.fail(Fault { at: disk.ios() + 4, times: Times::ForEver, kind: Failure::Enospc });
            let _full = world.store.flush_all();
            disk.heal();
            while world.store.step().expect("there is space") {}
            world.set_number(number).expect("it works");
        }
    }
    assert_eq!(ingest.finish().expect("its files are there"), 200);
    assert_eq!(world.content().expect("it is read")["default"].len(), 200);
    world.store.verify().expect("all is right");
}

#[test]
fn snapshots_and_cursors_keep_what_they_had() {
    let options = options(Durability::Buffered);
    let world = World::open(&Simulated::new(), &options).expect("it opens");
    for step in [ingest([10, 20], Vec::new()), Step::Set("default", 30, 5), Step::Delete("default", 10)] {
        world.run(&step).expect("it works");
    }
    let space = world.store.keyspace("default").expect("it is there");
    let (snapshot, mut cursor) = (Snapshot::take(&world.store), world.store.view(&space).cursor());
    assert!(cursor.goto(Goto::First).expect("it works"));
    world.run(&ingest(0..60, Vec::new())).expect("it works");
    let past = snapshot.view("default");
    assert_eq!(past.count(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded).expect("it counts"), 2);
    assert!(past.get(b"k\x0a").expect("it reads").is_none());
    assert_eq!(past.get(b"k\x1e").expect("it reads").expect("it was there").len(), 5);
    assert_eq!(cursor.key(), Some(&b"k\x14"[..]));
    let newest = world.store.view(&space);
    assert_eq!(newest.get(b"k\x1e").expect("it reads").expect("it is there").len(), 50);
    assert_eq!(newest.count(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded).expect("it counts"), 60);
}

/// Scans remember ranges of deleted keys, in which an ingest sets keys again.
#[test]
fn a_known_gap_does_not_hide_what_is_ingested() {
    let deleted: Vec<Step> =
        [Step::Flush].into_iter().chain((20..60).map(|at| Step::Delete("default", at))).collect();
    let steps = [ingest(0..90, Vec::new())].into_iter().chain(deleted);
    // Each step reads all, forward and backward, so that the gap is known.
    run(
        &large(),
        &steps.chain([ingest(30..50, Vec::new()), Step::Delete("default", 40)]).collect::<Vec<_>>(),
    );
}

/// A compare-and-swap, on which transactions are built, sees what was ingested since its value was read.
#[test]
fn a_swap_finds_what_was_ingested() {
    let world = World::open(&Simulated::new(), &large()).expect("it opens");
    world.run(&Step::Set("default", 3, 5)).expect("it works");
    let space = world.store.keyspace("default").expect("it is there");
    let found = world.store.view(&space).get(b"k\x03").expect("it reads").expect("it is there");
    world.run(&ingest(0..9, Vec::new())).expect("it works");
    let swap = Op::CompareAndSwap { key: &b"k\x03"[..], expected: Some(&found[..]), new: None };
    let outcome = world.store.apply(&space, swap).expect("it is no error");
    assert!(matches!(outcome, forrest_engine::Outcome::Swapped(forrest_engine::Swap::Mismatch(Some(_)))));
}

#[test]
fn tables_go_where_nothing_is_rewritten() {
    let (_, world) = run(&large(), &[ingest(0..90, Vec::new())]);
    assert_eq!(tables(&world), [1], "they are the only ones");
    // Little after all keys is one more table of the last partition.
    let (_, world) = run(&large(), &[ingest(0..90, Vec::new()), ingest(90..99, Vec::new())]);
    assert_eq!(tables(&world), [2]);
    // Enough of it is a partition.
    let small = options(Durability::Buffered);
    let (_, world) = run(&small, &[ingest(0..10, Vec::new()), ingest(90..99, Vec::new())]);
    assert_eq!(tables(&world), [1, 1]);
    let (_, world) = run(&small, &[ingest(0..90, Vec::new())]);
    assert!(tables(&world).len() > 3 && tables(&world).iter().all(|&tables| tables == 1));
    // What was set before the first of them has a partition of its own.
    let (_, world) = run(&small, &[Step::Set("default", 0, 10), ingest(1..90, Vec::new()), Step::Flush]);
    assert!(
        tables(&world).len() > 3 && tables(&world).iter().all(|&tables| tables == 1),
        "{:?}",
        tables(&world)
    );
}

/// The range of one partition gets more tables than it may have, and it is divided among them.
#[test]
fn a_partition_that_gets_many_tables_is_divided() {
    let small = || Options { table_bytes: 256, ..options(Durability::Buffered) };
    let ends = Options { table_bytes: 4 << 20, memtable_bytes: 4 << 20, ..options(Durability::Buffered) };
    let disk = Simulated::new();
    let world = World::open(&disk, &ends).expect("it opens");
    let mut states = beginning();
    let mut run = |world: &World, step: Step| {
        follow(&mut states, &step);
        world.run(&step).expect("it works");
        assert_eq!(Some(&world.content().expect("it is read")), states.last(), "{step:?}");
    };
    run(&world, Step::Set("default", 0, 10));
    run(&world, Step::Set("default", 111, 10));
    run(&world, Step::Set("default", 250, 10));
    run(&world, Step::Flush);
    drop(world);
    let world = World::open(&disk, &small()).expect("it opens");
    run(&world, ingest(1..200, Vec::new()));
    assert!(tables(&world).len() > 2, "{:?}", tables(&world));
    run(&world, Step::Compact);
    world.store.verify().expect("all is right");
}

/// Partitions that are made while a table is written do not end where it does.
#[test]
fn tables_are_cut_where_partitions_begin_meanwhile() {
    let splits: Vec<Step> = (0..3)
        .flat_map(|_| {
            [Step::Batch((0..120).map(|number| ("default", number, Some(30))).collect()), Step::Compact]
        })
        .collect();
    let options = Options { memtable_bytes: 4 << 20, ..options(Durability::Buffered) };
    let (disk, world) = run(&options, &[Step::Ingest("default", (0..120).step_by(3).collect(), 0, splits)]);
    assert!(tables(&world).len() > 3);
    let named: usize = tables(&world).iter().sum();
    assert_eq!(tables_of(&disk), named, "the tables that were cut are removed");
}

/// Writers of the same keys, which do not stop. Each adds one to what it finds, and an ingest sets much more. So the
/// values only grow, unless an ingest or an addition is lost.
#[test]
fn ingests_and_writers_of_the_same_keys_lose_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = Options { memtable_bytes: 64 << 10, ..options(Durability::Memory) };
    let store = Store::at(&directory.path().join("store"), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let stop = AtomicBool::new(false);
    let value = |key: u8| {
        let value = space.view().get(&[key]).expect("it reads");
        value.map_or(0, |value| i64::from_be_bytes(value[..].try_into().expect("a counter")))
    };
    thread::scope(|scope| {
        let writer = || {
            while !stop.load(Relaxed) {
                (0..40)
                    .for_each(|key| drop(space.apply(Op::Add { key: &[key], delta: 1 }).expect("it adds")));
            }
        };
        scope.spawn(writer);
        for round in 1..sized(8, 40) as i64 {
            let mut ingest = space.ingest().expect("it begins");
            let set = 1_000_000 * round;
            (0..40).for_each(|key| ingest.put(&[key], &set.to_be_bytes()).expect("it works"));
            ingest.finish().expect("it works");
            (0..40).for_each(|key| assert!((set..set + 1_000_000).contains(&value(key)), "round {round}"));
        }
        stop.store(true, Relaxed);
    });
    store.verify().expect("all is right");
}

/// A process that reads beside sees the pairs of an ingest as soon as it sees a later change.
#[test]
fn a_reader_beside_sees_an_ingest_before_what_follows() {
    let disk = Simulated::new();
    let options = large();
    let world = World::open(&disk, &options).expect("it opens");
    for step in [Step::Set("default", 3, 9), ingest(0..9, Vec::new()), Step::Set("default", 40, 9)] {
        world.run(&step).expect("it works");
    }
    let read_only = Options { read_only: true, ..options.clone() };
    let beside = World::open(&disk, &read_only).expect("it opens").store;
    let count = |handle: &Handle| {
        let view = handle.view(&handle.keyspace("default").expect("it is there"));
        view.count(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded).expect("it counts")
    };
    assert_eq!(count(&beside), 10);
    for step in [ingest(20..30, Vec::new()), Step::Delete("default", 3), ingest(0..5, Vec::new())] {
        world.run(&step).expect("it works");
        crate::recover::refresh(&beside).expect("it is read");
        assert_eq!(count(&beside), count(&world.store), "{step:?}");
    }
}

#[test]
fn what_an_ingest_refuses() {
    let disk = Simulated::new();
    let world = World::open(&disk, &large()).expect("it opens");
    let space = world.store.keyspace("other").expect("it is made");
    let empty = Box::new(Ingest::begin(&world.store, &space).expect("it begins"));
    let mut ingest = Box::new(Ingest::begin(&world.store, &space).expect("it begins"));
    ingest.put(b"b", b"1").expect("it is the first");
    for wrong in [&b"b"[..], b"a", b""] {
        let error = ingest.put(wrong, b"2").expect_err("it is not greater");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let shown = wrong.escape_ascii().to_string();
        assert!(error.to_string().contains("\"b\"") && error.to_string().contains(&shown), "{error}");
    }
    ingest.put(b"c", b"3").expect("it goes on");
    world.store.drop_space("other").expect("it is dropped");
    let error = ingest.finish().expect_err("there is no keyspace");
    assert!(error.to_string().contains("was dropped"), "{error}");
    let error = empty.finish().expect_err("there is no keyspace");
    assert!(error.to_string().contains("was dropped"), "{error}");
    assert!(Ingest::begin(&world.store, &space).is_err());
    let none = Box::new(Ingest::begin(&world.store, &world.store.keyspace("default").unwrap()).unwrap());
    disk.fail(Fault { at: disk.ios(), times: Times::ForEver, kind: Failure::Eio });
    let ios = disk.ios();
    assert!(none.finish().is_err() && disk.ios() > ios, "what came before is synced");
    disk.heal();
    assert_eq!(world.content().unwrap(), Content::from([("default".into(), Pairs::new())]));
}

/// Cause: there is less room for a value that expires, which was looked at only after a table was begun. So the error
/// took all pairs.
#[test]
fn a_value_too_long_to_expire_is_left_out() {
    if Vec::<u8>::new().try_reserve_exact(VALUE_MAX).is_err() {
        println!("skipped: there are no addresses for a value of {VALUE_MAX} bytes");
        return;
    }
    let world = World::open(&Simulated::new(), &large()).expect("it opens");
    let space = world.store.keyspace("default").expect("it is there");
    world.store.choose_ttl(&space, Some(Duration::from_secs(1000))).expect("it is chosen");
    let mut ingest = Box::new(Ingest::begin(&world.store, &space).expect("it begins"));
    ingest.put(b"a", b"fits").expect("it fits");
    let error = ingest.put(b"b", &vec![0_u8; VALUE_MAX - 1]).expect_err("it is too long");
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    ingest.put(b"b", b"fits").expect("the ingest goes on");
    assert_eq!(ingest.finish().expect("it is whole"), 2);
}
