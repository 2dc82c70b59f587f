//! The result of compactions: the number of tables, and that they hold what was written.

use super::{WORTH, WORTH_REST};
use crate::catalog::Space;
use crate::core::Handle;
use crate::disk::simulated::{Failure, Fate, Fault, Simulated, Times};
use crate::disk::{Disk, Kind, Name, Sealed};
use forrest_base::random::Random;
use forrest_engine::Op;
use forrest_engine::{Durability, Error, ErrorKind, Options, Pages};
use forrest_engine::{Result, View as _};
use forrest_index::Direction;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

struct World {
    disk: Simulated,
    store: Handle,
    space: Arc<Space>,
    pairs: BTreeMap<Vec<u8>, Vec<u8>>,
}

fn options() -> Options {
    Options {
        pages: Pages::Plain,
        durability: Some(Durability::Buffered),
        memtable_bytes: 1 << 20,
        cache_bytes: 1 << 20,
        table_bytes: 64 << 10,
        ..Options::default()
    }
}

/// Options of a store with one partition.
fn large() -> Options {
    Options { table_bytes: 16 << 20, ..options() }
}

impl World {
    fn new() -> World {
        World::of(options())
    }

    fn of(options: Options) -> World {
        let disk = Simulated::new();
        let store = Handle::open_unattended(Sealed::plain(disk.clone()), &options).unwrap();
        let space = store.keyspace("default").unwrap();
        World { disk, store, space, pairs: BTreeMap::new() }
    }

    /// Sets keys of a range, from its start in steps of `step`, and flushes.
    fn flush(&mut self, numbers: Range<u32>, step: usize, value: u8) {
        self.flush_unread(numbers, step, value);
        self.check();
    }

    /// The same, and reads nothing.
    fn flush_unread(&mut self, numbers: Range<u32>, step: usize, value: u8) {
        for number in numbers.step_by(step) {
            let (key, value) = (number.to_be_bytes(), vec![value; 100]);
            self.store.apply(&self.space, Op::Set { key: &key[..], value: &value[..] }).unwrap();
            self.pairs.insert(key.to_vec(), value);
        }
        self.store.flush_all().unwrap();
    }

    /// Several tables with 1,500 keys, which several workers merge in pieces.
    fn for_pieces() -> World {
        let disk = Simulated::new();
        let options = Options { table_bytes: 16 << 10, workers: Some(3), ..options() };
        let store = Handle::open(Sealed::plain(disk.clone()), &options).unwrap();
        let space = store.keyspace("default").unwrap();
        let mut world = World { disk, store, space, pairs: BTreeMap::new() };
        for start in 0..4 {
            world.flush(start..1500, 4, start as u8);
        }
        world
    }

    fn delete(&mut self, numbers: impl Iterator<Item = u32>) {
        for key in numbers.map(u32::to_be_bytes) {
            self.store.apply(&self.space, Op::Delete { key: &key[..] }).unwrap();
            self.pairs.remove(&key[..]);
        }
    }

    /// The number of tables of each partition.
    fn tables(&self) -> Vec<usize> {
        let version = self.store.version();
        version.partitions(self.space.id).iter().map(|partition| partition.tables().len()).collect()
    }

    fn files(&self, kind: Kind) -> usize {
        self.disk.files().iter().filter(|(name, _)| name.kind == kind).count()
    }

    fn reopen(self) -> World {
        let world = self.reopen_cold(&options());
        world.check();
        world
    }

    /// Opens the store again and reads nothing.
    fn reopen_cold(self, options: &Options) -> World {
        let World { disk, store, space, pairs } = self;
        drop((store, space));
        let store = Handle::open_unattended(Sealed::plain(disk.clone()), options).unwrap();
        let space = store.keyspace("default").unwrap();
        World { disk, store, space, pairs }
    }

    /// Checks that all pairs are there, in order, with the right values.
    fn check(&self) {
        assert_eq!(self.walk(), self.pairs);
        self.store.verify().unwrap();
    }

    fn walk(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut pairs = BTreeMap::new();
        let all = (Bound::Unbounded, Bound::Unbounded);
        let see = |key: &[u8], value: &[u8]| {
            assert!(pairs.last_key_value().is_none_or(|(last, _): (&Vec<u8>, _)| last[..] < *key));
            pairs.insert(key.to_vec(), value.to_vec());
            ControlFlow::Continue(())
        };
        self.store.view(&self.space).scan(all, Direction::Forward, see).unwrap();
        pairs
    }
}

#[test]
fn what_lies_behind_all_stands_by_itself() {
    let mut world = World::new();
    world.flush(0..300, 1, 1);
    assert_eq!(world.tables(), [1]);
    world.flush(300..600, 1, 2);
    assert_eq!(world.tables(), [1, 1], "in a partition of its own");
    world.flush(601..640, 1, 3);
    assert_eq!(world.tables(), [1, 2], "too few to stand alone");
    world.flush(590..1000, 1, 4);
    assert_eq!(world.tables(), [1, 3, 1], "what overlaps stays with what it overlaps");
    world.flush(0..2000, 7, 5);
    assert_eq!(world.tables(), [2, 4, 2, 1]);
    assert_eq!(world.reopen().tables(), [2, 4, 2, 1]);
}

#[test]
fn tables_that_are_walked_over_are_merged() {
    let mut world = World::new();
    for start in 0..3 {
        world.flush(start..1500, 3, 1);
    }
    assert!(!world.store.compact_worn().unwrap(), "to check them once was no reason");
    assert_eq!(world.tables(), [3]);
    while !world.store.compact_worn().unwrap() {
        assert_eq!(world.tables(), [3]);
        world.walk();
    }
    assert!(world.tables().iter().all(|&tables| tables == 1), "{:?}", world.tables());
    world.check();
    assert!(!world.store.compact_worn().unwrap());
    world.reopen();
}

/// Flushes of a few pairs between scans do not put a merge off. Cause: each table that was added, and each file of an
/// order, began the count of what scans cost anew.
#[test]
fn what_scans_cost_counts_on_after_a_flush() {
    let scans_until_merged = |between: fn(&World)| {
        let mut world = World::of(large());
        for start in 0..3 {
            world.flush_unread(start..1500, 3, 1);
        }
        (1..20_u32).find(|scan| {
            world.walk();
            world.store.apply(&world.space, Op::Set { key: &scan.to_be_bytes(), value: &[1; 100] }).unwrap();
            between(&world);
            world.store.compact_worn().unwrap()
        })
    };
    let scans = scans_until_merged(|_| {});
    assert!(scans.is_some_and(|scans| scans > 1), "{scans:?}");
    assert_eq!(scans_until_merged(|world| world.store.flush_all().unwrap()), scans);
    assert_eq!(scans_until_merged(|world| while world.store.store_remix().unwrap() {}), scans);
}

/// What scans read from the device is a reason to merge tables, long before all entries were walked over.
#[test]
fn tables_that_are_read_from_the_device_again_and_again_are_merged() {
    for (cache_bytes, is_worn) in [(4 << 20, false), (0, true)] {
        let mut world = World::of(Options { cache_bytes, ..options() });
        for start in 0..3 {
            world.flush_unread(start..1500, 3, 1);
        }
        let mut random = Random(3);
        for _ in 0..100 {
            let from = (random.below(1400) as u32).to_be_bytes();
            let (mut left, range) = (10, (Bound::Included(&from[..]), Bound::Unbounded));
            let see = |_: &[u8], _: &[u8]| {
                left -= 1;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            world.store.view(&world.space).scan(range, Direction::Forward, see).unwrap();
        }
        assert_eq!(world.store.compact_worn().unwrap(), is_worn, "with a cache of {cache_bytes} bytes");
        world.check();
    }
}

/// Otherwise a reader waits for each page of a new table. A load fills no cache, and no other page leaves it.
#[test]
fn what_comes_in_place_of_cached_tables_is_cached() {
    for (cache_bytes, is_read, is_cached) in
        [(4 << 20, true, true), (4 << 20, false, false), (160 << 10, true, false)]
    {
        let mut world = World::of(Options { cache_bytes, ..large() });
        let walk_misses = |world: &World| {
            let misses = || world.store.shared.cache.stats().misses;
            let before = misses();
            assert_eq!(world.walk(), world.pairs);
            misses() - before
        };
        world.flush_unread(0..3000, 3, 1);
        if is_read {
            assert!(walk_misses(&world) > 10);
        }
        world.flush_unread(1..3000, 3, 2);
        while world.store.fill_cache() {}
        let of = format!("{cache_bytes} bytes, read before: {is_read}");
        assert_eq!(walk_misses(&world) == 0, is_cached, "a table is added: {of}");
        world.store.compact().unwrap();
        assert_eq!(world.tables(), [1]);
        while world.store.fill_cache() {}
        let is_cached = cache_bytes == 4 << 20;
        assert_eq!(walk_misses(&world) == 0, is_cached, "tables are merged: {of}");
    }
}

/// A miss reads no key of partitions of one table each, before and after the store is opened again.
#[test]
fn merged_tables_have_tags() {
    for (tags, most) in [(true, 2), (false, 100)] {
        let options = Options { tags, cache_bytes: 0, ..options() };
        let mut world = World::of(options.clone());
        for start in 0..3 {
            world.flush(2 * start..6000, 6, 1);
        }
        world.store.compact().unwrap();
        for _ in 0..2 {
            assert!(world.tables().iter().all(|&tables| tables == 1), "{:?}", world.tables());
            let absent = (0..100).map(|number: u32| (60 * number + 1).to_be_bytes());
            let misses = || world.store.shared.cache.stats().misses;
            let view = world.store.view(&world.space);
            // The first of each table reads its tags.
            assert!(absent.clone().all(|key| view.get(&key).unwrap().is_none()));
            let before = misses();
            assert!(absent.clone().all(|key| view.get(&key).unwrap().is_none()));
            let read = misses() - before;
            assert!(if tags { read <= most } else { read >= most }, "{read} pages with tags: {tags}");
            drop(view);
            world = world.reopen_cold(&options);
        }
    }
}

#[test]
fn a_memtable_is_flushed_early_only_if_it_is_worth_it() {
    let mut world = World::new();
    let count = |world: &World| world.tables().iter().sum::<usize>();
    world.store.apply(&world.space, Op::Set { key: &b"a"[..], value: &[1; 100] }).unwrap();
    world.pairs.insert(b"a".to_vec(), vec![1; 100]);
    world.store.flush_early(WORTH).unwrap();
    assert_eq!(count(&world), 0);
    world.store.flush_early(WORTH_REST).unwrap();
    assert_eq!(count(&world), 0);
    let large = vec![2; 200 << 10];
    world.store.apply(&world.space, Op::Set { key: &b"b"[..], value: &large }).unwrap();
    world.pairs.insert(b"b".to_vec(), large);
    world.store.flush_early(WORTH).unwrap();
    assert_eq!(count(&world), 1);
    world.store.flush_early(WORTH).unwrap();
    assert_eq!(count(&world), 1);
    let some = vec![3; 50 << 10];
    world.store.apply(&world.space, Op::Set { key: &b"c"[..], value: &some }).unwrap();
    world.pairs.insert(b"c".to_vec(), some);
    world.store.flush_early(WORTH).unwrap();
    assert_eq!(count(&world), 1, "it may be written to soon");
    world.store.flush_early(WORTH_REST).unwrap();
    assert_eq!(count(&world), 2);
    world.reopen();
}

#[test]
fn the_file_of_a_remix_may_be_of_the_first_tables_only() {
    let mut world = World::new();
    let mut files = Vec::new();
    for start in 0..9 {
        world.flush(start..900, 9, start as u8);
        files.push(world.files(Kind::Remix));
        world = world.reopen();
    }
    assert_eq!(world.tables(), [9]);
    assert_eq!(
        files,
        [0, 0, 1, 1, 1, 1, 1, 1, 1],
        "written with the third table, and when two thirds of it are new"
    );
    let version = world.store.version();
    let stored = version.partitions(world.space.id)[0].order().unwrap().stored.unwrap();
    assert_eq!(stored.tables, 9);
    drop(version);
    world.store.compact().unwrap();
    assert_eq!(world.files(Kind::Remix), 0);
    world.reopen();
}

/// The cache keeps what is read of them.
#[test]
fn orders_that_take_too_much_memory_stay_in_their_files() {
    let short = Options { memory_bytes: Some(2 << 20), ..large() };
    let mut world = World::of(short.clone());
    let partition = |world: &World| world.store.version().partitions(world.space.id)[0].clone();
    let is_in_file = |world: &World| partition(world).order().unwrap().base.is_some();
    for start in 0..4 {
        world.flush(start..40_000, 4, start as u8);
    }
    assert!(is_in_file(&world));
    let whole = 40_000 * 7;
    let bytes = partition(&world).order_bytes();
    assert!(bytes < whole / 2, "{bytes} bytes");
    // A small table is ordered by itself, and hides what is in the file.
    world.delete((0..40_000).step_by(77));
    world.flush(5..40_000, 101, 9);
    assert!(is_in_file(&world));
    world.flush(6..50_000, 103, 10);
    check_everywhere(&world);
    let version = partition(&world);
    let (order, bytes) = (version.order().unwrap(), version.order_bytes());
    assert!(order.remix.is_some() && order.base_tables() < version.tables().len(), "two layers");
    assert!(bytes < whole / 2, "{bytes} bytes");
    drop(version);
    let mut world = world.reopen_cold(&short);
    check_everywhere(&world);
    assert!(is_in_file(&world) && partition(&world).order().unwrap().remix.is_some());
    // Half of it is new: the file is written again.
    world.flush(1..40_000, 2, 11);
    let (all, covered) = partition(&world).covered().unwrap();
    assert!(is_in_file(&world) && all * 2 < covered * 3, "{covered} of {all} entries");
    check_everywhere(&world);
    world.store.compact().unwrap();
    assert_eq!((world.tables(), world.files(Kind::Remix)), (vec![1], 0));
    world.check();
}

/// Cause: to estimate how much is live, they read keys of the newer tables.
#[test]
fn statistics_read_no_pages_of_tables() {
    let short = Options { memory_bytes: Some(2 << 20), cache_bytes: 1, ..large() };
    let mut world = World::of(short.clone());
    for start in 0..4 {
        world.flush_unread(start..40_000, 4, start as u8);
    }
    world.flush_unread(5..40_000, 101, 9);
    world.flush_unread(6..40_000, 103, 10);
    let world = world.reopen_cold(&short);
    let partition = world.store.version().partitions(world.space.id)[0].clone();
    let order = partition.order().unwrap();
    assert!(order.base.is_some() && order.base_tables() < partition.tables().len(), "two layers");
    let before = world.disk.bytes_read();
    let stats = world.store.stats().unwrap();
    assert_eq!(world.disk.bytes_read(), before);
    assert_eq!(stats.table_live_bytes, stats.table_bytes, "what is not known counts");
    // What needs the estimate has the keys read.
    let (all, live) = partition.entries().unwrap();
    assert!(live < all && world.disk.bytes_read() > before);
    let read = world.disk.bytes_read();
    let stats = world.store.stats().unwrap();
    assert!(stats.table_live_bytes < stats.table_bytes && world.disk.bytes_read() == read);
}

/// To leave another one in its file would not give back what a snapshot has.
#[test]
fn orders_that_only_a_snapshot_has_leave_no_other_in_its_file() {
    let mut world = World::of(Options { memory_bytes: Some(3 << 20), ..large() });
    let mut snapshots = Vec::new();
    for start in 0..4 {
        world.flush(start..40_000, 4, start as u8);
        snapshots.push(world.store.snapshot().unwrap());
    }
    let version = world.store.version();
    let partition = &version.partitions(world.space.id)[0];
    let (order, kept) = (partition.order_bytes(), world.store.stats().unwrap().kept_bytes as usize);
    assert!(kept > order / 2, "{kept} bytes are kept");
    assert!(!world.store.shared.memory.has_index_room(0), "together they take too much");
    assert!(partition.is_order_in_memory());
}

/// Looks at every key in each way there is.
fn check_everywhere(world: &World) {
    world.check();
    let view = world.store.view(&world.space);
    for number in 0..50_010u32 {
        let key = number.to_be_bytes();
        let expected = world.pairs.get(&key[..]);
        assert_eq!(view.get(&key).unwrap().as_deref(), expected.map(|value| &value[..]), "{number}");
    }
    let mut expected = world.pairs.keys().rev();
    let all = (Bound::Unbounded, Bound::Unbounded);
    let see = |key: &[u8], _: &[u8]| {
        assert_eq!(expected.next().map(|key| &key[..]), Some(key));
        ControlFlow::Continue(())
    };
    view.scan(all, Direction::Backward, see).unwrap();
    assert_eq!(expected.next(), None);
    for start in (0..50_000u32).step_by(997) {
        let key = start.to_be_bytes();
        let mut found = None;
        let mut see = |key: &[u8], _: &[u8]| {
            found = Some(key.to_vec());
            ControlFlow::Break(())
        };
        view.scan((Bound::Included(&key[..]), Bound::Unbounded), Direction::Forward, &mut see).unwrap();
        assert_eq!(found.as_ref(), world.pairs.range(key.to_vec()..).next().map(|pair| pair.0), "{start}");
        let mut found = None;
        let see = |key: &[u8], _: &[u8]| {
            found = Some(key.to_vec());
            ControlFlow::Break(())
        };
        view.scan((Bound::Unbounded, Bound::Excluded(&key[..])), Direction::Backward, see).unwrap();
        assert_eq!(
            found.as_ref(),
            world.pairs.range(..key.to_vec()).next_back().map(|pair| pair.0),
            "{start}"
        );
    }
}

/// A lookup after opening reads a few pages and table indexes, not the keys of all tables. Then the rest of the REMIX
/// is written, and a scan after the next opening need not build it.
#[test]
fn a_lookup_after_opening_reads_little() {
    let mut world = World::of(large());
    for start in 0..4 {
        world.flush(start..20_000, 4, start as u8);
    }
    // A delete and a replaced value decide.
    let key = |number: u32| number.to_be_bytes();
    world.delete((5_000..5_001).step_by(1));
    world.store.flush_all().unwrap();
    let covered = |world: &World| {
        world.store.version().partitions(world.space.id)[0].warm(&|| Ok(())).unwrap();
        world.store.version().partitions(world.space.id)[0].covered().unwrap()
    };
    let read = |world: &World, number: u32| {
        let before = world.disk.bytes_read();
        let found = world.store.view(&world.space).get(&key(number)).unwrap();
        assert_eq!(found.as_deref(), world.pairs.get(&key(number)[..]).map(|value| &value[..]), "{number}");
        world.disk.bytes_read() - before
    };
    let mut world = world.reopen_cold(&large());
    let first = read(&world, 10_001);
    assert!(first < 100_000, "{first} bytes for one key");
    for number in [5_000, 0, 19_999, 20_000, 7] {
        let next = read(&world, number);
        assert!(next < 100_000, "{next} bytes for key {number}");
    }
    let bytes: u64 = world.store.version().partitions(world.space.id)[0].file_bytes();
    assert!(bytes > 1_000_000, "{bytes} bytes of tables");
    let stop = || Err(Error::new(ErrorKind::Busy, "stop"));
    let stopped = world.store.version().partitions(world.space.id)[0].warm(&stop);
    assert!(stopped.is_err() && world.store.version().partitions(world.space.id)[0].covered().is_none());
    assert_eq!(covered(&world).0, 20_001);
    world.flush(20_000..22_000, 1, 9);
    let (all, before) = covered(&world);
    assert!(before < all, "the newest table is not covered");
    world.store.settle().unwrap();
    assert!(!world.store.store_remix().unwrap(), "once is enough");
    assert_eq!(covered(&world), (all, all));
    assert_eq!(world.files(Kind::Remix), 1);
    let mut world = world.reopen_cold(&large());
    let before = world.disk.bytes_read();
    world.store.version().partitions(world.space.id)[0].warm(&stop).unwrap();
    let loaded = world.disk.bytes_read() - before;
    assert!(loaded < 8 * all, "{loaded} bytes to load the order of {all} entries");
    world.check();
    world.delete((0..22_000).step_by(7));
    world.check();
}

/// A store that is closed gives up the tables that it is making. Nothing is lost, and nothing is left of them.
#[test]
fn closing_gives_up_a_flush_and_a_merge() {
    let mut world = World::of(large());
    world.flush(0..4_000, 1, 1);
    world.flush(0..4_000, 1, 2);
    let given_up = |world: &World, work: &dyn Fn() -> Result<()>| {
        let files = world.disk.files();
        world.store.work.close();
        assert_eq!(work().unwrap_err().kind(), ErrorKind::Busy);
        world.store.work.end();
        let names = |files: &[(Name, Vec<u8>)]| files.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        assert_eq!(names(&world.disk.files()), names(&files));
        world.check();
    };
    given_up(&world, &|| world.store.compact());
    for number in 0..3_000u32 {
        let (key, value) = (number.to_be_bytes(), vec![3; 100]);
        world.store.apply(&world.space, Op::Set { key: &key[..], value: &value[..] }).unwrap();
        world.pairs.insert(key.to_vec(), value);
    }
    let mut order = world.store.order();
    world.store.freeze(&mut order).unwrap();
    drop(order);
    given_up(&world, &|| world.store.step().map(|_| ()));
    // The store goes on.
    world.store.compact().unwrap();
    assert_eq!(world.tables(), [1]);
    world.check();
    world.reopen();
}

/// With several workers a partition is cut into pieces, and all of it is still there once.
#[test]
fn a_large_partition_is_merged_in_pieces() {
    let mut world = World::for_pieces();
    world.delete((0..1500).step_by(5));
    world.store.compact().unwrap();
    world.check();
    let tables = world.tables();
    assert!(tables.len() > 6 && tables.iter().all(|&tables| tables == 1), "{tables:?}");
    let version = world.store.version();
    let partitions = version.partitions(world.space.id);
    assert!(partitions.is_sorted_by(|a, b| a.low < b.low) && partitions[0].low.is_empty());
    for (partition, next) in partitions.iter().zip(&partitions[1..]) {
        let table = &partition.tables()[0];
        assert!(*table.least() >= *partition.low && *table.greatest() < *next.low);
    }
    drop(version);
    world.reopen();
}

/// A store that never syncs keeps no log open, nor its space, once its changes are in tables.
#[test]
fn logs_are_closed_when_their_changes_are_in_tables() {
    let mut world = World::new();
    for number in 0..5 {
        world.store.apply(&world.space, Op::Set { key: &[number], value: &[1; 10] }).unwrap();
        world.pairs.insert(vec![number], vec![1; 10]);
        let mut order = world.store.order();
        world.store.freeze(&mut order).unwrap();
        drop(order);
        assert_eq!(world.store.log().files(), 2, "the immutable memtable's, and the one that is written to");
        while world.store.step().unwrap() {}
        assert_eq!((world.store.log().files(), world.files(Kind::Log)), (1, 1));
    }
    world.check();
    world.reopen();
}

/// A log that was made ahead is the next one. If another one was begun meanwhile, it is of no use. It is gone when the
/// store is closed.
#[test]
fn the_next_log_is_made_ahead_once_the_memtable_is_half_full() {
    let mut world = World::new();
    let set = |world: &mut World, number: u8| {
        let half = vec![number; 600 << 10];
        world.store.apply(&world.space, Op::Set { key: &[number], value: &half }).unwrap();
        world.pairs.insert(vec![number], half);
        world.store.prepare_log().unwrap();
        world.files(Kind::Log)
    };
    let freeze = |world: &World| world.store.freeze(&mut world.store.order()).unwrap();
    assert_eq!(world.files(Kind::Log), 1);
    assert_eq!(set(&mut world, 1), 2);
    let spare = world.store.log().spare().unwrap();
    freeze(&world);
    assert_eq!((world.store.version().memtable.log, world.store.log().spare()), (spare, None));
    assert_eq!(world.files(Kind::Log), 2, "no other file was made");
    // One that was overtaken.
    assert_eq!(set(&mut world, 2), 3);
    let number = world.store.next_number();
    world.store.log().rotate(number).unwrap();
    assert_eq!((world.store.log().spare(), world.files(Kind::Log)), (None, 4));
    world.store.prepare_log().unwrap();
    assert!(world.store.log().spare().unwrap() > number);
    assert_eq!(world.files(Kind::Log), 4);
    world.check();
    assert_eq!(world.reopen().files(Kind::Log), 3);
}

/// Cause: the log after the last flush was the one made ahead, with the space of a full one, however long nobody wrote.
/// Cure: at rest it is replaced.
#[test]
fn a_store_at_rest_has_no_space_of_logs_to_come() {
    let mut world = World::new();
    world.disk.set_capacity(Some(16 << 20));
    let set = |world: &mut World, number: u8, bytes: usize| {
        let value = vec![number; bytes];
        world.store.apply(&world.space, Op::Set { key: &[number], value: &value }).unwrap();
        world.pairs.insert(vec![number], value);
    };
    // What the logs take that no pair is in.
    let ahead = |world: &World| {
        let files = world.disk.files();
        let bytes: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        (16 << 20) - world.disk.free(Kind::Log).unwrap() - bytes
    };
    set(&mut world, 1, 600 << 10);
    world.store.prepare_log().unwrap();
    assert!(ahead(&world) > 1 << 20);
    world.store.flush_early(WORTH_REST).unwrap();
    assert!(ahead(&world) < 512 << 10, "{}", ahead(&world));
    // A full memtable was the last.
    set(&mut world, 2, 600 << 10);
    world.store.prepare_log().unwrap();
    world.store.freeze(&mut world.store.order()).unwrap();
    while world.store.step().unwrap() {}
    assert!(ahead(&world) > 1 << 20);
    world.store.flush_early(WORTH).unwrap();
    assert!(ahead(&world) > 1 << 20, "it may be written to soon");
    world.store.flush_early(WORTH_REST).unwrap();
    assert!(ahead(&world) < 512 << 10, "{}", ahead(&world));
    let log = world.store.version().memtable.log;
    world.store.flush_early(WORTH_REST).unwrap();
    assert_eq!(world.store.version().memtable.log, log, "once is enough");
    world.check();
    world.reopen();
}

/// A failure while a log is made ahead leaves no file, or stops the store. A failed sync of names is never harmless:
/// it may have been of other names too.
#[test]
fn a_log_that_cannot_be_made_ahead_is_not_left() {
    let kinds = [Failure::Eio, Failure::Enospc, Failure::Enomem, Failure::SyncFails(Fate::Dropped)];
    for kind in kinds {
        for at in 0.. {
            let mut world = World::new();
            let half = vec![1; 600 << 10];
            world.store.apply(&world.space, Op::Set { key: &[1], value: &half }).unwrap();
            world.pairs.insert(vec![1], half);
            let (begin, what) = (world.disk.ios(), format!("{kind:?} at I/O {at}"));
            world.disk.fail(Fault { at: begin + at, times: Times::Once, kind });
            let prepared = world.store.log().prepare(|| world.store.next_number(), |len| 2 * len);
            let is_over = world.disk.ios() <= begin + at;
            world.disk.heal();
            let is_stopped = world.store.log().check().is_err();
            match prepared {
                Err(error) if !is_stopped => {
                    assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{what}: {error}");
                    assert_eq!(world.files(Kind::Log), 1, "{what}");
                }
                Err(_) => assert_ne!(kind, Failure::Enospc, "{what}"),
                Ok(()) => assert_eq!((is_stopped, world.files(Kind::Log)), (false, 2), "{what}"),
            }
            if !is_stopped {
                world.check();
            }
            world.reopen();
            if is_over {
                break;
            }
        }
    }
}

/// Only the partitions that have keys of the range are merged.
#[test]
fn a_range_is_compacted_alone() {
    let mut world = World::for_pieces();
    world.store.compact().unwrap();
    world.flush(0..1500, 7, 8);
    let before = world.tables();
    assert!(before.len() > 6 && before.iter().all(|&tables| tables == 2), "{before:?}");
    let range = |world: &World, from: u32, to: u32| {
        world.store.compact_range(&world.space, &from.to_be_bytes(), Some(&to.to_be_bytes())).unwrap();
        world.tables()
    };
    assert_eq!(range(&world, 9_000, 10_000), before, "it has no keys");
    assert_eq!(range(&world, 500, 500), before, "it is empty");
    let after = range(&world, 500, 501);
    assert_eq!(after.iter().filter(|&&tables| tables == 1).count(), 1, "{after:?}");
    world.check();
    world.delete(0..1500);
    world.store.compact_range(&world.space, &[], None).unwrap();
    assert!(world.tables().iter().all(|&tables| tables < 2), "{:?}", world.tables());
    world.check();
    world.reopen();
}

/// A store that has stopped while it was full makes no file: what failed is not repeated.
#[test]
fn a_full_store_that_has_stopped_merges_nothing() {
    let mut world = World::new();
    for value in 0..3 {
        world.flush(0..300, 1, value);
    }
    world.store.full.store(true, Relaxed);
    let names = |world: &World| world.disk.files().iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let (before, ios) = (names(&world), world.disk.ios());
    world.store.log().stop(Error::new(ErrorKind::Io, "it fails"));
    assert!(world.store.step().is_err());
    assert_eq!((names(&world), world.disk.ios()), (before, ios));
}

/// Pairs that are overwritten at random, each partition by each flush: the tables never take much more than what is
/// live, and each byte is written a few times. In pieces, so that each frees its space before the next.
#[test]
fn tables_of_overwritten_pairs_stay_near_what_is_live() {
    let options = Options { memtable_bytes: 512 << 10, table_bytes: 256 << 10, ..options() };
    overwritten_pairs_take_little(options.clone());
    let short = Options { memory_bytes: Some(1700 << 10), ..options };
    assert!(overwritten_pairs_take_little(short) > 4, "too few orders were in their files");
}

/// Returns how many partitions had their orders in their files at a time, at most.
fn overwritten_pairs_take_little(options: Options) -> usize {
    const KEYS: u32 = 40_000;
    const STEP: u32 = 1_000;
    let mut world = World::of(options);
    let size = |world: &World| {
        let files = world.disk.files();
        files.iter().filter(|(name, _)| name.kind == Kind::Table).map(|(_, bytes)| bytes.len()).sum::<usize>()
    };
    let mut random = Random(7);
    let (mut peak, mut live, mut before, mut most_in_files) = (0, 0, 0, 0);
    for round in 0..4 * KEYS / STEP {
        if round == KEYS / STEP {
            world.store.flush_all().unwrap();
            (live, before) = (size(&world), world.disk.bytes_written());
        }
        for at in 0..STEP {
            let number = if live == 0 { round * STEP + at } else { random.below(u64::from(KEYS)) as u32 };
            let (key, value) = (number.to_be_bytes(), vec![round as u8; 100]);
            world.store.apply(&world.space, Op::Set { key: &key[..], value: &value[..] }).unwrap();
            world.pairs.insert(key.to_vec(), value);
            if at % 100 == 0 {
                while world.store.step().unwrap() {
                    peak = peak.max(size(&world));
                }
            }
        }
        let version = world.store.version();
        let in_files = version.each().filter(|(_, partition)| partition.is_order_in_file());
        most_in_files = most_in_files.max(in_files.count());
    }
    world.check();
    assert!(world.tables().len() > 10, "{:?}", world.tables());
    let written = (world.disk.bytes_written() - before) as f64 / f64::from(3 * KEYS * 104);
    let peak = peak as f64 / live as f64;
    assert!(peak < 1.6 && written < 4.5, "{peak} times what is live, {written} bytes written for one");
    world.reopen();
    most_in_files
}

/// If a piece becomes empty, its range goes to the previous partition; at the beginning, to the first
/// partition that exists. So later writes to the range have a place.
/// Run by `bounded`, where a mutant can name it.
pub(crate) fn what_a_piece_had_has_a_place_when_all_of_it_is_gone() {
    let mut world = World::for_pieces();
    world.delete(0..300);
    // The tombstones are dropped with what they delete.
    world.store.flush_all().unwrap();
    world.store.compact().unwrap();
    world.check();
    world.flush(0..900, 3, 9);
    assert!(world.store.version().partitions(world.space.id)[0].low.is_empty());
    world.reopen();
}

/// A byte a second: these tests would not end if anything waited for it.
mod limited {
    use super::*;
    use crate::rate::Spend as _;
    use std::time::Duration;

    fn limited() -> Options {
        let wait = Duration::from_millis(1);
        Options { background_bytes_per_second: Some(1), wait, memtable_bytes: 10_000, ..options() }
    }

    /// More than memtables may wait with.
    fn fill(store: &Handle) -> Arc<Space> {
        let space = store.keyspace("default").unwrap();
        for number in 0..100_u32 {
            let set = Op::Set { key: &number.to_be_bytes()[..], value: &[7; 1000][..] };
            match store.apply(&space, set) {
                Err(error) if error.kind() == ErrorKind::Busy => break,
                applied => drop(applied.unwrap()),
            }
        }
        space
    }

    #[test]
    fn neither_closing_nor_opening_waits() {
        let disk = Simulated::new();
        for _ in 0..5 {
            let store = Handle::open(Sealed::plain(disk.clone()), &limited()).unwrap();
            let space = fill(&store);
            assert!(store.view(&space).get(&0_u32.to_be_bytes()).unwrap().is_some());
        }
        assert!(disk.files().iter().any(|(name, _)| name.kind == Kind::Table), "opening has made tables");
    }

    #[test]
    fn a_merge_goes_on_if_a_memtable_waits_for_it() {
        let store = Handle::open_unattended(Sealed::plain(Simulated::new()), &limited()).unwrap();
        let space = store.keyspace("default").unwrap();
        store.apply(&space, Op::Set { key: b"key", value: &[7; 20_000] }).unwrap();
        assert!(store.backlog_bytes() > 0);
        store.spend(1 << 30).unwrap();
    }
}

#[test]
fn memtables_become_tables_between_the_pieces_of_a_merge() {
    let mut world = World::for_pieces().reopen_cold(&Options { workers: Some(1), ..options() });
    for number in 0..100_u32 {
        let (key, value) = (number.to_be_bytes(), vec![9; 100]);
        world.store.apply(&world.space, Op::Set { key: &key, value: &value }).unwrap();
        world.pairs.insert(key.to_vec(), value);
    }
    world.store.freeze(&mut world.store.order()).unwrap();
    world.store.merge(|_, _| true).unwrap();
    let version = world.store.version();
    assert!(version.immutable.is_empty());
    assert!(version.partitions.values().flatten().all(|partition| partition.tables().len() == 1));
    drop(version);
    world.check();
}
