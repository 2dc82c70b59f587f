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
use crate::core::Handle;
use crate::disk::simulated::Simulated;
use crate::scan::PASSED;
use forrest_base::lock;
use forrest_base::random::Random;
use forrest_engine::{Chunk, Direction, Durability, ErrorKind, Op, OptionChanges, Options, View as _};
use rustix::time::{ClockId, clock_gettime};
use std::ops::Bound;
use std::sync::Arc;
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

fn open(disk: &Simulated) -> Handle<Simulated> {
    Handle::open_unattended(disk.clone(), &roomy()).expect("it opens")
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
fn memtable_bytes(store: &Handle<Simulated>) -> usize {
    store.version().memtables().map(|memtable| memtable.bytes()).sum()
}

#[test]
fn a_batch_that_sets_a_key_repeatedly_keeps_one_version() {
    const SETS: usize = 5_000;
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
    let read = |snapshots: &[(i64, crate::view::Snapshot<Simulated>)]| {
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

#[test]
fn ranges_deleted_together_cost_what_they_cost_alone() {
    const RANGES: u32 = 1_600;
    const KEYS: u32 = 50;
    let fill = |store: &Handle<Simulated>| {
        let space = store.keyspace("default").expect("it is there");
        for number in 0..RANGES * KEYS {
            store.apply(&space, Op::Set { key: &number.to_be_bytes(), value: b"" }).expect("it fits");
        }
        space
    };
    let bounds: Vec<_> =
        (0..RANGES).map(|range| [range * KEYS, (range + 1) * KEYS].map(u32::to_be_bytes)).collect();
    let ranges = || bounds.iter().map(|[start, end]| Op::DeleteRange { start: &start[..], end: Some(end) });
    let alone = open(&Simulated::new());
    let space = fill(&alone);
    let one_by_one = cost(|| ranges().for_each(|op| drop(alone.apply(&space, op).expect("it fits"))));
    let together = open(&Simulated::new());
    let space = fill(&together);
    let ops: Vec<_> = ranges().map(|op| (&space, op)).collect();
    let in_a_batch = cost(|| drop(together.write(&ops, None).expect("it fits")));
    assert_eq!(together.view(&space).count(Bound::Unbounded, Bound::Unbounded).expect("it reads"), 0);
    assert!(in_a_batch < one_by_one * 4, "{in_a_batch:?} in a batch, {one_by_one:?} one by one");
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
    let (one, many) = (recovered(1), recovered(SPACES));
    assert!(many < one * 8, "{many:?} with {SPACES} keyspaces, {one:?} with one");
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

fn fill_by_batches(store: &Handle<Simulated>) -> Arc<Space> {
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
    let store = Handle::open_unattended(disk.clone(), &large).expect("it opens");
    fill_by_batches(&store);
    store.sync().expect("it syncs");
    drop(store);
    let options = tiny();
    let store = Handle::open_unattended(disk, &options).expect("it opens with other options");
    assert_eq!(store.stats().expect("it has figures").keys, u64::from(MANY));
    assert!(store.backlog_bytes() <= 3 * options.memtable_bytes, "{} bytes wait", store.backlog_bytes());
    while store.step().expect("it makes tables") {}
    assert_eq!(store.stats().expect("it has figures").keys, u64::from(MANY));
}

#[test]
fn a_range_of_more_keys_than_a_memtable_takes_can_be_deleted() {
    let disk = Simulated::new();
    let store = Handle::open_unattended(disk.clone(), &roomy()).expect("it opens");
    fill_by_batches(&store);
    store.flush_all().expect("it makes tables");
    drop(store);
    let store = Handle::open_unattended(disk, &tiny()).expect("it opens with other options");
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
    let store = Handle::open(Simulated::new(), &options).expect("it opens");
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
    let store = Handle::open_unattended(Simulated::with_capacity(CAPACITY), &options).expect("it opens");
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
    store.flush_early().expect("there is space for tombstones");
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
    view: &crate::view::View<Simulated>,
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
    let store = Handle::open(Simulated::new(), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let done = std::sync::atomic::AtomicBool::new(false);
    let all = (Bound::Unbounded, Bound::Unbounded);
    std::thread::scope(|scope| {
        for direction in [Direction::Forward, Direction::Backward] {
            let (store, space, done) = (&store, &space, &done);
            scope.spawn(move || {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
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
        done.store(true, std::sync::atomic::Ordering::Relaxed);
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
    let store = Handle::open(Simulated::new(), &options).expect("it opens");
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
