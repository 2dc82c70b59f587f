//! Work is proportional to what the caller asked for: keys that are changed repeatedly, ranges deleted together, many
//! keyspaces.
//!
//! The memory of waiting memtables has a limit. A store opens with other options than it was written with. Space that
//! nothing uses is given back.
//!
//! Where a count of bytes shows it, that is checked. Elsewhere the processor time of the same work in two forms is
//! compared, on one thread in one run. The defects that these tests were written for are factors of 10 and more.

use super::world::options;
use crate::catalog::Space;
use crate::compact::WORTH;
use crate::core::Handle;
use crate::disk::Sealed;
use crate::disk::simulated::Simulated;
use crate::scan::PASSED;
use forrest_base::lock;
use forrest_base::random::Random;
use forrest_engine::{Chunk, Direction, Durability, ErrorKind, Job, Op, OptionChanges, Options, View as _};
use rustix::time::{ClockId, clock_gettime};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Options of a store whose memtable holds everything.
fn roomy() -> Options {
    Options {
        memtable_bytes: 64 << 20,
        cache_bytes: 1 << 20,
        table_bytes: 16 << 20,
        ..options(Durability::Memory)
    }
}

fn open(disk: &Simulated) -> Handle {
    Handle::open_unattended(Sealed::plain(disk.clone()), &roomy()).expect("it opens")
}

/// Processor time of this thread for some work.
fn cost(work: impl FnOnce()) -> Duration {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let begin = now();
    work();
    now() - begin
}

/// Bytes that the memtables count, as the decision to make a table of one does.
fn memtable_bytes(store: &Handle) -> usize {
    store.version().memtables().map(|memtable| memtable.bytes()).sum()
}

#[test]
fn a_batch_that_sets_a_key_repeatedly_keeps_one_version() {
    const SETS: usize = 80_000;
    let store = open(&Simulated::new());
    let space = store.keyspace("default").expect("it is there");
    store.apply(&space, Op::Set { key: b"key", value: b"before" }).expect("it fits");
    let snapshot = store.snapshot().expect("there are snapshots");
    let values: Vec<_> = (0..SETS).map(|at| at.to_be_bytes()).collect();
    let set = |value| (&space, Op::Set { key: &b"key"[..], value });
    let ops: Vec<_> = values.iter().map(|value| set(&value[..])).collect();
    let _applied = store.write(&ops, None).expect("it fits");
    assert!(memtable_bytes(&store) < SETS * 100, "{} bytes for {SETS} sets", memtable_bytes(&store));
    assert_eq!(store.view(&space).get(b"key").expect("it reads").as_deref(), Some(&values[SETS - 1][..]));
    let past = forrest_engine::Snapshot::view(&snapshot, "default");
    assert_eq!(past.get(b"key").expect("it reads").as_deref(), Some(&b"before"[..]));
}

#[test]
fn a_key_keeps_only_versions_that_a_snapshot_reads() {
    const ADDS: i64 = 5_000;
    let store = open(&Simulated::new());
    let space = store.keyspace("default").expect("it is there");
    let add = || store.apply(&space, Op::Add { key: b"count", delta: 1 }).expect("it is a counter");
    let mut snapshots = Vec::new();
    for sum in 1..=ADDS {
        add();
        if sum % 1_000 == 1 {
            snapshots.push((sum, store.snapshot().expect("there are snapshots")));
        }
    }
    let bytes = memtable_bytes(&store);
    assert!(
        bytes < ADDS as usize * 200,
        "{bytes} bytes for {ADDS} additions with {} snapshots",
        snapshots.len()
    );
    let read = |snapshots: &[(i64, crate::view::Snapshot)]| {
        for (sum, snapshot) in snapshots {
            let past = forrest_engine::Snapshot::view(snapshot, "default");
            assert_eq!(past.get(b"count").expect("it reads").as_deref(), Some(&sum.to_be_bytes()[..]));
        }
    };
    read(&snapshots);
    snapshots.remove(2);
    add();
    read(&snapshots);
    assert_eq!(
        store.view(&space).get(b"count").expect("it reads").as_deref(),
        Some(&(ADDS + 1).to_be_bytes()[..])
    );
}

/// A store with `ranges` times `keys` keys, and the bounds of the ranges.
fn with_ranges(ranges: u32, keys: u32) -> (Handle, Arc<Space>, Vec<[[u8; 4]; 2]>) {
    let store = open(&Simulated::new());
    let space = store.keyspace("default").expect("it is there");
    for number in 0..ranges * keys {
        store.apply(&space, Op::Set { key: &number.to_be_bytes(), value: b"" }).expect("it fits");
    }
    let bounds = (0..ranges).map(|range| [range * keys, (range + 1) * keys].map(u32::to_be_bytes)).collect();
    (store, space, bounds)
}

fn range(bounds: &[[u8; 4]; 2]) -> Op<&[u8]> {
    Op::DeleteRange { start: &bounds[0], end: Some(&bounds[1]) }
}

#[test]
fn ranges_deleted_together_pass_what_they_pass_alone() {
    const RANGES: u32 = 400;
    const KEYS: u32 = 1_000;
    let (store, space, bounds) = with_ranges(RANGES, KEYS);
    let ops: Vec<_> = bounds.iter().map(|bounds| (&space, range(bounds))).collect();
    let together = passed(|| drop(store.write(&ops, None).expect("it fits")));
    assert_eq!(store.view(&space).count(Bound::Unbounded, Bound::Unbounded).expect("it reads"), 0);
    assert_eq!(together, 0, "entries that a batch passes");
    let (store, space, bounds) = with_ranges(RANGES, KEYS);
    let alone =
        passed(|| bounds.iter().map(range).for_each(|op| drop(store.apply(&space, op).expect("it fits"))));
    assert!(together <= alone, "{together} entries in a batch, {alone} one by one");
}

/// The oldest points of each sensor go, and a new one comes, in one batch that also deletes what it has set.
#[test]
fn retention_of_many_sensors_passes_only_what_it_deletes() {
    const SENSORS: u32 = 200;
    const POINTS: u32 = 500;
    const OLD: u32 = 400;
    let (store, space, _) = with_ranges(SENSORS, POINTS);
    let point = |sensor: u32, point: u32| (sensor * POINTS + point).to_be_bytes();
    let keys: Vec<_> = (0..SENSORS).map(|sensor| [0, OLD, POINTS - 1].map(|at| point(sensor, at))).collect();
    let mut ops = Vec::new();
    for [first, end, newest] in &keys {
        ops.push((&space, Op::Set { key: &first[..], value: &b"late"[..] }));
        ops.push((&space, Op::Set { key: newest, value: b"new" }));
        ops.push((&space, Op::DeleteRange { start: first, end: Some(end) }));
        ops.push((&space, Op::Add { key: b"retained", delta: 1 }));
    }
    let count = passed(|| drop(store.write(&ops, None).expect("it fits")));
    assert_eq!(count, 0, "entries");
    let view = store.view(&space);
    let left = u64::from(SENSORS * (POINTS - OLD) + 1);
    assert_eq!(view.count(Bound::Unbounded, Bound::Unbounded).expect("it reads"), left);
    assert_eq!(
        view.get(b"retained").expect("it reads").as_deref(),
        Some(&i64::from(SENSORS).to_be_bytes()[..])
    );
}

#[test]
fn many_keyspaces_are_recovered_as_fast_as_one() {
    const CHANGES: u32 = 40_000;
    const SPACES: u32 = 2_000;
    let recovered = |spaces: u32| {
        let disk = Simulated::new();
        let store = open(&disk);
        let spaces: Vec<_> =
            (0..spaces).map(|space| store.keyspace(&format!("space {space}")).expect("it is made")).collect();
        for change in 0..CHANGES {
            let space = &spaces[change as usize % spaces.len()];
            store.apply(space, Op::Set { key: &change.to_be_bytes(), value: b"" }).expect("it fits");
        }
        store.sync().expect("it syncs");
        drop(store);
        let mut opened = None;
        let cost = cost(|| opened = Some(open(&disk)));
        let stats = opened.expect("it was opened").stats().expect("it has figures");
        assert_eq!(stats.keys, u64::from(CHANGES));
        cost
    };
    // The least of some: fresh memory may be slow.
    let least = |spaces| (0..3).map(|_| recovered(spaces)).min().expect("it was opened");
    let (one, many) = (least(1), least(SPACES));
    assert!(many < one * 8, "{many:?} with {SPACES} keyspaces, {one:?} with one");
}

/// A keyspace costs a compaction the I/Os of its own table, and no directory or manifest that is synced for it alone.
#[test]
fn many_keyspaces_are_compacted_together() {
    const SPACES: u64 = 1_000;
    let disk = Simulated::new();
    let store = open(&disk);
    let spaces: Vec<_> =
        (0..SPACES).map(|space| store.keyspace(&format!("space {space}")).expect("it is made")).collect();
    let set = |key: &[u8]| {
        for space in &spaces {
            store.apply(space, Op::Set { key, value: b"" }).expect("it fits");
        }
    };
    let ios = |work: &dyn Fn()| {
        let before = disk.ios();
        work();
        disk.ios() - before
    };
    let compact = || store.compact().expect("there is room");
    set(b"first");
    let first = ios(&compact);
    assert!(first <= 6 * SPACES + 40, "{first} I/Os for the first tables");
    let nothing = ios(&compact);
    assert!(nothing <= 10, "{nothing} I/Os when there is nothing to do");
    set(b"second");
    let merged = ios(&compact);
    assert!(merged <= 24 * SPACES + 100, "{merged} I/Os for second tables and their merges");
}

/// Options of a store that takes little at a time.
fn tiny() -> Options {
    Options { batch_bytes_max: 4096, memtable_bytes: 256 << 10, ..roomy() }
}

/// Pairs whose keys alone take more memory than the smallest memtable has.
const MANY: u32 = 300_000;

fn long_key(number: u32) -> [u8; 230] {
    let mut key = [0; 230];
    // Without a common prefix, which memtables leave out.
    Random(u64::from(number)).fill(&mut key);
    key
}

fn fill_by_batches(store: &Handle) -> Arc<Space> {
    let space = store.keyspace("default").expect("it is there");
    for from in (0..MANY).step_by(10_000) {
        let keys: Vec<_> = (from..from + 10_000).map(long_key).collect();
        let ops: Vec<_> =
            keys.iter().map(|key| (&space, Op::Set { key: &key[..], value: &b""[..] })).collect();
        let _applied = store.write(&ops, None).expect("it fits");
    }
    space
}

#[test]
fn a_store_opens_with_smaller_options_than_it_was_written_with() {
    let disk = Simulated::new();
    let large = Options { memtable_bytes: 1 << 30, batch_bytes_max: 1 << 30, ..roomy() };
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), &large).expect("it opens");
    fill_by_batches(&store);
    store.sync().expect("it syncs");
    drop(store);
    let options = tiny();
    let store = Handle::open_unattended(Sealed::plain(disk), &options).expect("it opens with other options");
    assert_eq!(store.stats().expect("it has figures").keys, u64::from(MANY));
    assert!(store.backlog_bytes() <= 3 * options.memtable_bytes, "{} bytes wait", store.backlog_bytes());
    while store.step().expect("it makes tables") {}
    assert_eq!(store.stats().expect("it has figures").keys, u64::from(MANY));
}

#[test]
fn a_range_of_more_keys_than_a_memtable_takes_can_be_deleted() {
    let disk = Simulated::new();
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), &roomy()).expect("it opens");
    fill_by_batches(&store);
    store.flush_all().expect("it makes tables");
    drop(store);
    let store = Handle::open_unattended(Sealed::plain(disk), &tiny()).expect("it opens with other options");
    let space = store.keyspace("default").expect("it is there");
    store.apply(&space, Op::DeleteRange { start: b"", end: None }).expect("all can be deleted");
    store.apply(&space, Op::Set { key: b"after", value: b"" }).expect("the store has not stopped");
    assert_eq!(store.view(&space).count(Bound::Unbounded, Bound::Unbounded).expect("it reads"), 1);
}

#[test]
fn memory_of_waiting_memtables_has_a_limit() {
    const MEMTABLE: usize = 64 << 10;
    let options =
        Options { memtable_bytes: MEMTABLE, wait: Duration::from_millis(50), ..options(Durability::Memory) };
    let store = Handle::open(Sealed::plain(Simulated::new()), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let put = |number: u32| {
        store.apply(&space, Op::Set { key: &number.to_be_bytes(), value: &[7; 1000] }).map(drop)
    };
    let mut numbers = 0..;
    {
        // No table can be made.
        let _manifest = lock(&store.manifest);
        let error = numbers.by_ref().map(put).take(1_000).find_map(Result::err).expect("there is a limit");
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        assert!(store.backlog_bytes() < 4 * MEMTABLE, "{} bytes", store.backlog_bytes());
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while put(numbers.next().expect("there is no end")).is_err() {
        assert!(Instant::now() < deadline, "the store does not go on");
    }
}

#[test]
fn a_change_that_waits_too_long_names_what_holds_the_memory() {
    let options = Options { wait: Duration::from_millis(50), ..tiny() };
    let store = Handle::open(Sealed::plain(Simulated::new()), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let put = |number: u32| {
        store.apply(&space, Op::Set { key: &number.to_be_bytes(), value: &[7; 1000] }).map(drop)
    };
    put(0).expect("it fits");
    let refused = || {
        let error = (1..1_000).map(put).find_map(Result::err).expect("there is a limit");
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        error.to_string()
    };
    let snapshot = {
        let _manifest = lock(&store.manifest);
        let said = refused();
        assert!(said.ends_with("no flush is under way"), "{said}");
        // Keeps the memtables that wait now, and then become tables.
        store.snapshot().expect("there are snapshots")
    };
    store.flush_all().expect("it makes tables");
    let _manifest = lock(&store.manifest);
    let _task = store.tasks.begin(Job::Flush);
    let said = refused();
    let (_, said) = said.split_once(": a flush is under way for 0.").expect("it names the flush");
    assert!(
        said.contains("s; snapshots and iterators, the oldest ") && said.contains(" s old, keep "),
        "{said}"
    );
    drop(snapshot);
    let said = refused();
    assert!(said.contains("a flush is under way for ") && !said.contains("snapshots"), "{said}");
}

#[test]
fn a_change_that_can_never_fit_is_refused_at_once() {
    let options = Options { memory_bytes: Some(1 << 20), cache_bytes: 1 << 18, ..tiny() };
    let store = Handle::open_unattended(Sealed::plain(Simulated::new()), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let value = vec![7; 1 << 18];
    let batch = |count: u32| {
        let keys: Vec<_> = (0..count).map(u32::to_be_bytes).collect();
        let ops: Vec<_> =
            keys.iter().map(|key| (&space, Op::Set { key: &key[..], value: &value[..] })).collect();
        store.write(&ops, None).map(drop)
    };
    for _ in 0..2 {
        let error = batch(4).expect_err("it is larger than all memory");
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert!(error.to_string().contains("1048576"), "{error}");
    }
    batch(3).expect("it fits");
    assert_eq!(store.view(&space).count(Bound::Unbounded, Bound::Unbounded).expect("it reads"), 3);
}

/// A log on a small device: memtables become tables before they are full, and a full device is an ordinary error.
#[test]
fn a_small_device_of_the_log_holds_up_nothing_for_long() {
    let disk = Simulated::new();
    disk.set_log_capacity(1 << 20);
    let options = Options { memtable_bytes: 8 << 20, ..tiny() };
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let mut refused = 0;
    for number in 0..4_000_u32 {
        let put = || store.apply(&space, Op::Set { key: &number.to_be_bytes(), value: &[7; 1000] });
        if let Err(error) = put() {
            assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{error}");
            refused += 1;
            assert!(store.step().expect("it makes tables"), "there is nothing to do about it");
            while store.step().expect("it makes tables") {}
            put().expect("there is space again");
        }
    }
    assert!((2..20).contains(&refused), "{refused} refused");
    assert_eq!(store.view(&space).count(Bound::Unbounded, Bound::Unbounded).expect("it reads"), 4_000);
    drop(store);
    let store = Handle::open_unattended(Sealed::plain(disk), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    assert_eq!(store.view(&space).count(Bound::Unbounded, Bound::Unbounded).expect("it reads"), 4_000);
}

/// Sizes and threads change while writers, readers and the background work go on.
#[test]
fn memory_and_workers_change_under_load() {
    let options = Options { memory_bytes: Some(16 << 20), cache_bytes: 8 << 20, ..tiny() };
    let store = Handle::open(Sealed::plain(Simulated::new()), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (store, space, is_done) = (&store, &space, &is_done);
        let writers = [0, 1].map(|writer: u32| {
            scope.spawn(move || {
                let mut number = 0u32;
                while !is_done.load(Relaxed) || number < 3_000 {
                    let key = [writer.to_be_bytes(), (number % 3_000).to_be_bytes()].concat();
                    store.apply(space, Op::Set { key: &key, value: &[7; 200] }).expect("it is set");
                    number += 1;
                }
            })
        });
        for turn in 0..60 {
            let memory = [1 << 20, 16 << 20, 4 << 20][turn % 3];
            let changes = OptionChanges {
                memory_bytes: Some(memory),
                memtable_bytes: Some(memory / 8),
                cache_bytes: Some(memory / 2),
                workers: Some(turn % 4 + 1),
                ..OptionChanges::default()
            };
            store.set_options(&changes).expect("they are taken over");
            assert_eq!((store.shared.memory.most(), store.workers().count()), (memory, turn % 4 + 1));
            let stats = store.stats().expect("it has figures");
            assert!(stats.cache_bytes <= (memory / 2) as u64, "{} of {memory}", stats.cache_bytes);
            store.view(space).count(Bound::Unbounded, Bound::Unbounded).expect("it reads");
        }
        is_done.store(true, Relaxed);
        writers.into_iter().for_each(|writer| writer.join().expect("it goes on"));
    });
    let refused = OptionChanges {
        memory_bytes: Some(1 << 20),
        memtable_bytes: Some(1 << 20),
        cache_bytes: Some(1 << 10),
        workers: Some(1),
        ..OptionChanges::default()
    };
    let error = store.set_options(&refused).expect_err("they take more together");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("memtable_bytes (1048576) and cache_bytes (1024)"), "{error}");
    assert_eq!(store.workers().count(), 4, "nothing is changed then");
    assert_eq!(store.view(&space).count(Bound::Unbounded, Bound::Unbounded).expect("it reads"), 6_000);
}

#[test]
fn space_of_deleted_keys_and_dropped_keyspaces_comes_back() {
    const PAIRS: u32 = 4_000;
    let store = open(&Simulated::new());
    let spaces = ["default", "dropped"].map(|name| store.keyspace(name).expect("it is made"));
    for space in &spaces {
        for number in 0..PAIRS {
            store.apply(space, Op::Set { key: &number.to_be_bytes(), value: &[7; 1000] }).expect("it fits");
        }
    }
    store.flush_all().expect("it makes tables");
    let bytes = || store.stats().expect("it has figures").table_bytes;
    let full = bytes();
    assert!(store.drop_space("dropped").expect("it is dropped"));
    while store.step().expect("there is room") {}
    assert!(bytes() <= full / 2 + full / 100, "{} of {full} bytes after a drop", bytes());
    let start = (PAIRS / 10).to_be_bytes();
    store.apply(&spaces[0], Op::DeleteRange { start: &start, end: None }).expect("they are deleted");
    store.flush_all().expect("it makes tables");
    while store.compact_dead().expect("there is room") {}
    assert!(bytes() < full / 10, "{} of {full} bytes after 90 % were deleted", bytes());
    assert_eq!(store.stats().expect("it has figures").keys, u64::from(PAIRS / 10));
}

/// A device takes values until nine tenths of it are in use, and then deletes. The space comes back, and the store goes
/// on, without being opened again.
#[test]
fn a_store_on_a_full_device_is_shrunk_by_deletes() {
    const CAPACITY: u64 = 16 << 20;
    const VALUE: usize = 500;
    let options =
        Options { memtable_bytes: 256 << 10, table_bytes: 2 << 20, ..options(Durability::Buffered) };
    let store = Handle::open_unattended(Sealed::plain(Simulated::with_capacity(CAPACITY)), &options)
        .expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let key = |number: u64| Random(number).next().to_be_bytes();
    let work = || while matches!(store.step(), Ok(true)) {};
    let put = |number: u64| {
        let put = store.apply(&space, Op::Set { key: &key(number), value: &[7; VALUE] });
        work();
        put
    };
    let full = (0..).find_map(|number| put(number).err().map(|error| (number, error)));
    let (count, error) = full.expect("the device is not endless");
    assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{error}");
    assert!(count * VALUE as u64 > CAPACITY / 4 * 3, "{count} values in {CAPACITY} bytes");
    let kept = count / 10;
    for number in kept..count {
        store.apply(&space, Op::Delete { key: &key(number) }).expect("deletes are taken");
        work();
    }
    // As in the background, when nothing was written for a while.
    store.flush_early(WORTH).expect("there is space for tombstones");
    while store.compact_dead().expect("there is space to merge") {}
    work();
    put(count).expect("the store goes on");
    let stats = store.stats().expect("it has figures");
    assert!(stats.table_bytes < CAPACITY / 4, "{} bytes for {kept} values", stats.table_bytes);
    store.verify().expect("it is whole");
    assert_eq!(store.view(&space).count(Bound::Unbounded, Bound::Unbounded).expect("it reads"), kept + 1);
}

/// The first key of a range, or the last.
fn first(
    view: &crate::view::View,
    bounds: (Bound<&[u8]>, Bound<&[u8]>),
    direction: Direction,
) -> Option<Vec<u8>> {
    let mut chunk = Chunk::default();
    chunk.clear(1);
    view.fill(&mut chunk, &mut Default::default(), bounds, direction).expect("it reads");
    (!chunk.is_empty()).then(|| chunk.key(0).to_vec())
}

/// Entries that scans of this thread passed during some work.
fn passed(work: impl FnOnce()) -> u64 {
    let before = PASSED.get();
    work();
    PASSED.get() - before
}

/// The tombstones of a queue are in the memtable, in immutable memtables and in tables, and its elements too.
#[test]
fn a_queue_does_not_pass_its_tombstones_again() {
    const KEYS: u32 = 6_000;
    const POPS: u32 = 4_000;
    for direction in [Direction::Forward, Direction::Backward] {
        for flushed_every in [u32::MAX, 1_500] {
            let store = open(&Simulated::new());
            let space = store.keyspace("default").expect("it is there");
            let set = |number: u32| {
                store.apply(&space, Op::Set { key: &number.to_be_bytes(), value: b"" }).expect("it fits");
            };
            (0..KEYS).for_each(set);
            let view = store.view(&space);
            let all = (Bound::Unbounded, Bound::Unbounded);
            let count = passed(|| {
                for pop in 0..POPS {
                    if pop % flushed_every == flushed_every / 2 {
                        store.flush_all().expect("it makes tables");
                    }
                    if pop % flushed_every == flushed_every / 3 {
                        store.freeze(&mut store.order()).expect("it takes another memtable");
                    }
                    let forward = direction == Direction::Forward;
                    let expected = if forward { pop } else { KEYS - 1 - pop };
                    let key = first(&view, all, direction).expect("there are more");
                    assert_eq!(key, expected.to_be_bytes());
                    store.apply(&space, Op::Delete { key: &key }).expect("it is deleted");
                    if forward {
                        set(KEYS + pop);
                    }
                }
            });
            assert!(count < u64::from(POPS) * 20, "{count} entries for {POPS} pops, {direction:?}");
        }
    }
}

#[test]
fn a_scan_does_not_pass_a_deleted_range_again() {
    const KEYS: u32 = 20_000;
    for flushed in [false, true] {
        let store = open(&Simulated::new());
        let space = store.keyspace("default").expect("it is there");
        for number in 0..KEYS {
            store.apply(&space, Op::Set { key: &number.to_be_bytes(), value: b"" }).expect("it fits");
        }
        if flushed {
            store.flush_all().expect("it makes tables");
        }
        for number in 10..KEYS - 10 {
            store.apply(&space, Op::Delete { key: &number.to_be_bytes() }).expect("it fits");
        }
        let view = store.view(&space);
        let count = passed(|| {
            for _ in 0..100 {
                assert_eq!(view.count(Bound::Unbounded, Bound::Unbounded).expect("it reads"), 20);
                let from = (KEYS / 2).to_be_bytes();
                let found = first(&view, (Bound::Included(&from), Bound::Unbounded), Direction::Forward);
                assert_eq!(found.as_deref(), Some(&(KEYS - 10).to_be_bytes()[..]));
            }
        });
        assert!(count < 5 * u64::from(KEYS), "{count} entries for 100 scans");
        // Tombstones in tables are passed at once, by places. That is a reason to merge the tables.
        store.flush_all().expect("it makes tables");
        let count_all = || view.count(Bound::Unbounded, Bound::Unbounded).expect("it reads");
        (0..10).for_each(|_| assert_eq!(count_all(), 20));
        while store.compact_worn().expect("there is room") {}
        let count = passed(|| assert_eq!(count_all(), 20));
        assert!(count < 1_000, "{count} entries after a merge");
    }
}

/// What is set in a range that scans jump over is there for all later reads; snapshots read what they did.
#[test]
pub(super) fn a_key_set_among_tombstones_is_there() {
    let store = open(&Simulated::new());
    let space = store.keyspace("default").expect("it is there");
    let set = |number: u64, value: &[u8]| {
        store.apply(&space, Op::Set { key: &number.to_be_bytes(), value }).expect("it fits");
    };
    let delete = |number: u64| {
        store.apply(&space, Op::Delete { key: &number.to_be_bytes() }).expect("it fits");
    };
    let mut random = Random(7);
    let mut model = std::collections::BTreeSet::new();
    let mut snapshots = Vec::new();
    for round in 0..3_000 {
        let number = random.below(300);
        if random.below(8) == 0 {
            model.insert(number);
            set(number, b"");
        } else {
            let from = number.saturating_sub(random.below(60));
            for number in from..number {
                model.remove(&number);
                delete(number);
            }
        }
        match random.below(60) {
            0 => store.flush_all().expect("it makes tables"),
            1 => store.freeze(&mut store.order()).expect("it takes another memtable"),
            2 => snapshots.push((store.snapshot().expect("there are snapshots"), model.clone())),
            3 if snapshots.len() > 4 => drop(snapshots.remove(0)),
            4 => while store.compact_worn().expect("there is room") {},
            _ => {}
        }
        let past = snapshots
            .get(round % 7)
            .map(|(snapshot, model)| (forrest_engine::Snapshot::view(snapshot, "default"), model));
        for (view, model) in [(store.view(&space), &model)].into_iter().chain(past) {
            let (from, to) = (random.below(300), random.below(300));
            let (from, to) = (from.min(to), from.max(to));
            let (low, high) = (from.to_be_bytes(), to.to_be_bytes());
            let bounds = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
            let key = |number: &u64| number.to_be_bytes().to_vec();
            assert_eq!(
                first(&view, bounds, Direction::Forward),
                model.range(from..to).next().map(key),
                "{round}"
            );
            assert_eq!(
                first(&view, bounds, Direction::Backward),
                model.range(from..to).next_back().map(key),
                "{round}"
            );
            let count = view.count(Bound::Unbounded, Bound::Unbounded).expect("it reads");
            assert_eq!(count, model.len() as u64, "{round}");
        }
    }
}

/// A writer finds each key that it has set, while other threads remember ranges that look empty to them.
#[test]
fn scans_of_many_threads_miss_no_key_that_was_set() {
    const ROUNDS: u64 = 3_000;
    let options = Options { memtable_bytes: 4 << 10, ..roomy() };
    let store = Handle::open(Sealed::plain(Simulated::new()), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let done = AtomicBool::new(false);
    let all = (Bound::Unbounded, Bound::Unbounded);
    std::thread::scope(|scope| {
        for direction in [Direction::Forward, Direction::Backward] {
            let (store, space, done) = (&store, &space, &done);
            scope.spawn(move || {
                while !done.load(Relaxed) {
                    first(&store.view(space), all, direction);
                }
            });
        }
        let mut random = Random(3);
        let view = store.view(&space);
        for round in 0..ROUNDS {
            let key = random.below(200).to_be_bytes();
            store.apply(&space, Op::Set { key: &key, value: b"" }).expect("it fits");
            for direction in [Direction::Forward, Direction::Backward] {
                assert_eq!(first(&view, all, direction).as_deref(), Some(&key[..]), "{round} {direction:?}");
            }
            store.apply(&space, Op::Delete { key: &key }).expect("it fits");
            assert_eq!(first(&view, all, Direction::Forward), None, "{round}");
        }
        done.store(true, Relaxed);
    });
}

/// See compact/tests.rs.
#[test]
pub(super) fn a_piece_keeps_its_place() {
    crate::compact::tests::what_a_piece_had_has_a_place_when_all_of_it_is_gone();
}

/// While threads write, the memtables get less memory, and more again. From then on the new limit holds, and every
/// change is there.
#[test]
fn memtables_become_smaller_while_threads_write() {
    const THREADS: u32 = 2;
    const SETS: u32 = 1_500;
    let options = Options { memtable_bytes: 8 << 20, table_bytes: 4 << 20, ..options(Durability::Memory) };
    let store = Handle::open(Sealed::plain(Simulated::new()), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let limit = |bytes| {
        let changes = OptionChanges { memtable_bytes: Some(bytes), ..OptionChanges::default() };
        store.set_options(&changes).expect("it may be changed");
    };
    let write = |thread: u32, round: u32| {
        for number in 0..SETS {
            let (key, value) = ((number * THREADS + thread).to_be_bytes(), [round as u8; 4_000]);
            store.apply(&space, Op::Set { key: &key, value: &value }).expect("it fits");
        }
    };
    for (round, bytes) in (0..).zip([1 << 20, 2 << 20, 1 << 20]) {
        std::thread::scope(|scope| {
            let writers: Vec<_> =
                (0..THREADS).map(|thread| scope.spawn(move || write(thread, round))).collect();
            limit(bytes);
            writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
        });
        // Three memtables, and what the threads wrote while one was replaced.
        let kept = memtable_bytes(&store);
        assert!(kept <= 3 * bytes + (1 << 20), "round {round}: {kept} bytes, with memtables of {bytes}");
    }
    let view = store.view(&space);
    for number in 0..SETS * THREADS {
        let value = view.get(&number.to_be_bytes()).expect("it reads").expect("it is there");
        assert_eq!((value.len(), value[0]), (4_000, 2));
    }
}

/// A queue is emptied by its own transactions where there is no room: conditions, and deletes.
#[test]
fn what_only_compares_and_deletes_needs_no_room() {
    let options =
        Options { memtable_bytes: 256 << 10, table_bytes: 256 << 10, ..options(Durability::Buffered) };
    let store = Handle::open_unattended(Sealed::plain(Simulated::with_capacity(4 << 20)), &options)
        .expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let mut random = Random(1);
    let put =
        |number: u64| store.apply(&space, Op::Set { key: &number.to_be_bytes(), value: &[7; 200] }).map(drop);
    while put(random.next()).is_ok() {
        while store.step().is_ok_and(|more| more) {}
    }
    assert_eq!(put(random.next()).expect_err("it is full").kind(), ErrorKind::OutOfSpace);
    let first = Random(1).next().to_be_bytes();
    let value = [7; 200];
    let same = Op::CompareAndSwap { key: &first[..], expected: Some(&value[..]), new: Some(&value[..]) };
    let gone = Op::CompareRange { start: &[0xff; 9][..], end: None, pairs: &b""[..] };
    let take = Op::CompareAndSwap { key: &first[..], expected: Some(&value[..]), new: None };
    let applied = store.write(&[(&space, same), (&space, gone)], None).expect("it changes nothing");
    assert!(matches!(applied, forrest_engine::Written::Applied));
    let applied = store.write(&[(&space, gone), (&space, take)], None).expect("it makes room");
    assert!(matches!(applied, forrest_engine::Written::Applied));
    assert!(store.view(&space).get(&first).expect("it reads").is_none());
}

/// Memtables that fill fast take the memory of those before them, which counts as memory of the store. One that is not
/// full after a while keeps no more than it needs, and nothing waits for the next one.
#[test]
fn memory_of_memtables_is_used_again_and_goes_back_at_rest() {
    const MEMTABLE: usize = 8 << 20;
    let options = Options { memtable_bytes: MEMTABLE, ..roomy() };
    let store = Handle::open_unattended(Sealed::plain(Simulated::new()), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let mut random = Random(1);
    let mut fill = || {
        while store.version().immutable.is_empty() {
            let key = random.next().to_be_bytes();
            store.apply(&space, Op::Set { key: &key, value: &[7; 100] }).expect("it fits");
        }
    };
    let waiting = || store.shared.memory.spare().committed().total_bytes();
    let reserved = || store.stats().expect("they are read").reserved_bytes as usize;
    for round in 0..3 {
        fill();
        assert_eq!(waiting(), 0, "round {round}: the new one has what waited");
        while store.step().expect("it makes tables") {}
        let waits = waiting();
        assert!((MEMTABLE / 2..=2 * MEMTABLE).contains(&waits), "round {round}: {waits} bytes");
        assert!(reserved() >= waits, "what waits counts");
        let one = store.version().memtable.memory_bytes();
        assert!(round == 0 || one > MEMTABLE / 2, "round {round}: it has {one} bytes from the beginning");
    }
    store.give_memory_back();
    assert_eq!(waiting(), 0);
    assert!(reserved() <= 2 << 20, "{} bytes for a few pairs", reserved());
    // With a limit below it nothing waits.
    let changes = OptionChanges { memtable_bytes: Some(1 << 20), ..OptionChanges::default() };
    store.set_options(&changes).expect("it may be changed");
    fill();
    while store.step().expect("it makes tables") {}
    assert!(waiting() <= 2 << 20, "{} bytes", waiting());
}

/// The thread of a store does so by itself.
#[test]
fn a_store_at_rest_keeps_no_memory_for_changes() {
    let options = Options { memtable_bytes: 8 << 20, ..roomy() };
    let store = Handle::open(Sealed::plain(Simulated::new()), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    for number in 0..200_000_u32 {
        store.apply(&space, Op::Set { key: &number.to_be_bytes(), value: &[7; 100] }).expect("it fits");
    }
    let reserved = || store.stats().expect("they are read").reserved_bytes;
    let deadline = Instant::now() + Duration::from_secs(60);
    while reserved() > 4 << 20 {
        assert!(Instant::now() < deadline, "{} bytes at rest", reserved());
        store.wait_for_work(Duration::from_millis(50));
    }
}

/// The thread of a store at rest wakes once a second, not ten times. A change wakes it, and is written soon.
#[test]
fn a_store_at_rest_wakes_seldom() {
    let store = Handle::open(Sealed::plain(Simulated::new()), &roomy()).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let deadline = Instant::now() + Duration::from_secs(60);
    for number in 0..2_u8 {
        store.apply(&space, Op::Set { key: &[number], value: b"Quercus" }).expect("it fits");
        while store.log().is_queued() {
            assert!(Instant::now() < deadline, "the change {number} is not written");
            store.wait_for_work(Duration::from_millis(10));
        }
        loop {
            let (begin, before) = (Instant::now(), store.work.turns.load(Relaxed));
            while begin.elapsed() < Duration::from_secs(2) {
                store.wait_for_work(Duration::from_millis(100));
            }
            let turns = store.work.turns.load(Relaxed) - before;
            if turns <= 4 {
                break;
            }
            assert!(Instant::now() < deadline, "{turns} turns in two seconds at rest");
        }
    }
}
