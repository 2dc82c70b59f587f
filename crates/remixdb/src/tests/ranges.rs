//! Range deletes: what each reader sees of them, what they cost, and that the space comes back.

use super::world::options;
use crate::catalog::Space;
use crate::compact::HIDDEN;
use crate::core::Handle;
use crate::disk::simulated::{Simulated, Times};
use crate::disk::{Kind, Sealed};
use crate::room::refusal;
use crate::scan::PASSED;
use crate::view::{Snapshot, View};
use forrest_base::random::Random;
use forrest_engine::{
    Chunk, Cursor as _, Direction, Durability, Error, ErrorKind, Filled, Goto, Op, Options, Snapshot as _,
    View as _,
};
use forrest_testing::sized;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(disk: &Simulated, options: &Options) -> (Handle, Arc<Space>) {
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    (store, space)
}

fn key(random: &mut Random) -> Vec<u8> {
    match random.below(12) {
        0 => Vec::new(),
        1 => vec![b'k', 7, random.below(3) as u8],
        _ => vec![b'k', random.below(16) as u8],
    }
}

fn delete(model: &mut Pairs, start: &[u8], end: Option<&[u8]>) {
    model.retain(|key, _| **key < *start || end.is_some_and(|end| **key >= *end));
}

/// A random change, made in the store and in the model.
fn change(random: &mut Random, store: &Handle, space: &Arc<Space>, model: &mut Pairs) {
    let count = if random.below(3) == 0 { 1 + random.below(6) } else { 1 };
    let ops: Vec<Op> = (0..count)
        .map(|_| match random.below(8) {
            0..4 => {
                Op::Set { key: key(random), value: vec![random.below(200) as u8; random.below(20) as usize] }
            }
            4 => Op::Delete { key: key(random) },
            5 => Op::Add { key: b"sum".to_vec(), delta: 1 },
            _ => {
                let end = (random.below(4) > 0).then(|| key(random));
                Op::DeleteRange { start: key(random), end }
            }
        })
        .collect();
    for op in &ops {
        match op {
            Op::Set { key, value } => drop(model.insert(key.clone(), value.clone())),
            Op::Delete { key } => drop(model.remove(key)),
            Op::Add { key, .. } => {
                let old =
                    model.get(key).map_or(0, |old| i64::from_be_bytes(old[..].try_into().expect("a number")));
                model.insert(key.clone(), (old + 1).to_be_bytes().to_vec());
            }
            Op::DeleteRange { start, end } => delete(model, start, end.as_deref()),
            _ => unreachable!("none is made"),
        }
    }
    match &ops[..] {
        [op] => drop(store.apply(space, op.borrowed()).expect("it fits")),
        ops => {
            let ops: Vec<_> = ops.iter().map(|op| (space, op.borrowed())).collect();
            assert!(store.write(&ops, None).expect("it fits").is_applied());
        }
    }
}

/// Each way to read gives what the model has.
fn check(random: &mut Random, view: &View, model: &Pairs, what: &str) {
    for _ in 0..4 {
        let key = key(random);
        assert_eq!(
            view.get(&key).expect("it reads").as_deref(),
            model.get(&key).map(|value| &value[..]),
            "{what}"
        );
        let keys = [key.clone(), b"sum".to_vec()];
        let found = view.multi_get(&keys).expect("it reads");
        assert_eq!(found[0].as_deref(), model.get(&key).map(|value| &value[..]), "{what}");
    }
    let (mut from, mut to) = (key(random), key(random));
    if from > to {
        std::mem::swap(&mut from, &mut to);
    }
    let bounds = match random.below(3) {
        0 => (Bound::Unbounded, Bound::Unbounded),
        1 => (Bound::Included(&from[..]), Bound::Included(&to[..])),
        _ => (Bound::Included(&from[..]), Bound::Unbounded),
    };
    let all: Vec<_> =
        model.range::<[u8], _>(bounds).map(|(key, value)| (key.clone(), value.clone())).collect();
    for direction in [Direction::Forward, Direction::Backward] {
        let mut found = Vec::new();
        view.scan(bounds, direction, |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        })
        .expect("it reads");
        if direction == Direction::Backward {
            found.reverse();
        }
        assert_eq!(found, all, "{what}, {direction:?}");
    }
    let mut cursor = view.cursor();
    let is_there = cursor.goto(Goto::Seek(&from)).expect("it reads");
    assert_eq!(is_there.then(|| cursor.key().expect("a key").to_vec()), next(model, &from), "{what}");
    if is_there {
        let at = cursor.key().expect("a key").to_vec();
        let before = model.range(..at.clone()).next_back().map(|(key, _)| key.clone());
        let is_there = cursor.goto(Goto::Prev).expect("it reads");
        assert_eq!(is_there.then(|| cursor.key().expect("a key").to_vec()), before, "{what}");
    }
}

fn next(model: &Pairs, from: &[u8]) -> Option<Vec<u8>> {
    model.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)).next().map(|(key, _)| key.clone())
}

/// Changes, snapshots, flushes and merges in random order: each snapshot goes on showing what it was taken of.
#[test]
fn each_snapshot_shows_its_own_ranges() {
    snapshots(0..sized(200, 1_000));
}

pub(super) fn snapshots(seeds: Range<u64>) {
    for seed in seeds {
        let mut random = Random(seed);
        let disk = Simulated::new();
        let (mut store, mut space) = open(&disk, &options(Durability::Memory));
        let (mut model, mut snapshots): (Pairs, Vec<(Snapshot, Pairs)>) = Default::default();
        for step in 0..60 {
            let what = format!("seed {seed}, step {step}");
            match random.below(16) {
                0 if snapshots.len() < 4 => {
                    snapshots.push((store.snapshot().expect("it is here"), model.clone()))
                }
                0 => drop(snapshots.swap_remove(0)),
                1 => store.flush_all().expect("there is room"),
                2 => store.compact().expect("there is room"),
                3 => drop(store.step().expect("there is room")),
                4 if random.below(4) == 0 => {
                    snapshots.clear();
                    drop((store, space));
                    (store, space) = open(&disk, &options(Durability::Memory));
                }
                _ => change(&mut random, &store, &space, &mut model),
            }
            check(&mut random, &store.view(&space), &model, &what);
            for (snapshot, model) in &snapshots {
                check(&mut random, &snapshot.view("default"), model, &format!("{what}, a snapshot"));
            }
        }
    }
}

/// Flushes alone, so that a partition gets as many tables as it may, and they are merged with new ranges.
#[test]
fn flushes_merge_tables_with_ranges() {
    merging_flushes(0..sized(20, 120));
}

pub(super) fn merging_flushes(seeds: Range<u64>) {
    const KEYS: u64 = 4_000;
    let options = Options { memtable_bytes: 64 << 10, table_bytes: 64 << 10, ..options(Durability::Memory) };
    for seed in seeds {
        let mut random = Random(seed);
        let (store, space) = open(&Simulated::new(), &options);
        let (mut model, mut tables_most) = (Pairs::new(), 0);
        for round in 0..60 {
            for _ in 0..60 {
                let key = (random.below(KEYS) as u32).to_be_bytes();
                store.apply(&space, Op::Set { key: &key, value: &[round] }).expect("it fits");
                model.insert(key.to_vec(), vec![round]);
            }
            let start = random.below(KEYS) as u32;
            let [start, end] = [start, start + 1 + random.below(100) as u32].map(u32::to_be_bytes);
            store.apply(&space, Op::DeleteRange { start: &start, end: Some(&end) }).expect("it fits");
            delete(&mut model, &start, Some(&end));
            store.flush_all().expect("there is room");
            let mut found = Pairs::new();
            let see = |key: &[u8], value: &[u8]| {
                found.insert(key.to_vec(), value.to_vec());
                ControlFlow::Continue(())
            };
            let all = (Bound::Unbounded, Bound::Unbounded);
            store.view(&space).scan(all, Direction::Forward, see).expect("it reads");
            assert!(found == model, "seed {seed}, round {round}");
            let tables = store.version().partitions(space.id).iter().map(|one| one.tables().len()).max();
            tables_most = tables_most.max(tables.unwrap_or(0));
        }
        assert!(tables_most > 12, "{tables_most} tables");
    }
}

/// An iteration that goes on after a range delete does not show what was deleted before its last refill.
#[test]
fn a_refill_sees_ranges_that_were_deleted_since() {
    let (store, space) = open(&Simulated::new(), &options(Durability::Memory));
    for number in 0..200_u32 {
        store.apply(&space, Op::Set { key: &number.to_be_bytes(), value: b"" }).expect("it fits");
    }
    for is_flushed in [false, true] {
        let view = store.view(&space);
        let mut resume = Default::default();
        let mut chunk = Chunk::default();
        let bounds = (Bound::Unbounded, Bound::Unbounded);
        chunk.clear(10);
        let filled = view.fill(&mut chunk, &mut resume, bounds, Direction::Forward).expect("it reads");
        assert!(matches!(filled, Filled::More));
        let next = chunk.key(9).to_vec();
        let start = 20_u32.to_be_bytes();
        store.apply(&space, Op::DeleteRange { start: &start, end: None }).expect("it fits");
        chunk.clear(100);
        let bounds = (Bound::Excluded(&next[..]), Bound::Unbounded);
        view.fill(&mut chunk, &mut resume, bounds, Direction::Forward).expect("it reads");
        assert_eq!(chunk.len(), 10, "from 10 on, flushed before: {is_flushed}");
        for number in 20..200_u32 {
            store.apply(&space, Op::Set { key: &number.to_be_bytes(), value: b"" }).expect("it fits");
        }
        store.flush_all().expect("there is room");
    }
}

/// A batch that deletes a range and sets a key in it is one change: the key is there for every reader.
#[test]
fn nobody_misses_a_key_that_its_batch_sets_again() {
    let (store, space) =
        open(&Simulated::new(), &Options { memtable_bytes: 1 << 20, ..options(Durability::Memory) });
    let rounds = sized(4_000_u32, 40_000);
    let set = |round: u32| {
        let (all, value) = (Op::DeleteRange { start: &b"a"[..], end: Some(&b"z"[..]) }, round.to_be_bytes());
        let ops = [
            (&space, Op::Set { key: &b"early"[..], value: &value[..] }),
            (&space, all),
            (&space, Op::Set { key: b"key", value: &value }),
        ];
        assert!(store.write(&ops, None).expect("it fits").is_applied());
    };
    set(0);
    store.flush_all().expect("there is room");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for reader in 0..2 {
            let (store, space, over) = (&store, &space, &over);
            scope.spawn(move || {
                let mut last = 0;
                while !over.load(Relaxed) {
                    let view = store.view(space);
                    let mut keys = Vec::new();
                    if reader == 0 {
                        keys.extend(view.get(b"key").expect("it reads").map(|value| value.to_vec()));
                        assert_eq!(view.get(b"early").expect("it reads"), None);
                    } else {
                        view.scan((Bound::Unbounded, Bound::Unbounded), Direction::Forward, |key, value| {
                            assert_eq!(key, b"key");
                            keys.push(value.to_vec());
                            ControlFlow::Continue(())
                        })
                        .expect("it reads");
                    }
                    let [value] = &keys[..] else { panic!("{} keys", keys.len()) };
                    let round = u32::from_be_bytes(value[..].try_into().expect("a number"));
                    assert!(round >= last, "{round} after {last}");
                    last = round;
                }
            });
        }
        for round in 1..rounds {
            set(round);
            if round % 500 == 0 {
                store.flush_all().expect("there is room");
            }
        }
        over.store(true, Relaxed);
    });
}

/// A store whose memtable holds everything, with this many keys in tables.
fn with_keys(count: u32, options: &Options) -> (Simulated, Handle, Arc<Space>) {
    let disk = Simulated::new();
    let (store, space) = open(&disk, options);
    for number in 0..count {
        store.apply(&space, Op::Set { key: &number.to_be_bytes(), value: &[7; 20] }).expect("it fits");
    }
    store.flush_all().expect("there is room");
    (disk, store, space)
}

/// A range delete looks at no key, and logs two keys. Reads across it pass what it covers at once.
#[test]
fn a_range_delete_costs_the_same_for_any_number_of_keys() {
    const KEYS: u32 = 40_000;
    let roomy = Options { memtable_bytes: 64 << 20, table_bytes: 16 << 20, ..options(Durability::Memory) };
    let (disk, store, space) = with_keys(KEYS, &roomy);
    store.sync().expect("it syncs");
    let log_bytes = || {
        let files = disk.files().into_iter().filter(|(name, _)| name.kind == Kind::Log);
        files.map(|(_, bytes)| bytes.len()).sum::<usize>()
    };
    let (start, end) = (10_u32.to_be_bytes(), (KEYS - 10).to_be_bytes());
    let before = (PASSED.get(), log_bytes(), store.version().memtable.bytes());
    store.apply(&space, Op::DeleteRange { start: &start, end: Some(&end) }).expect("it fits");
    store.sync().expect("it syncs");
    let passed = PASSED.get() - before.0;
    let (logged, memory) = (log_bytes() - before.1, store.version().memtable.bytes() - before.2);
    assert_eq!(passed, 0, "entries passed");
    assert!(logged < 200 && memory < 500, "{logged} bytes logged, {memory} in memory");
    for direction in [Direction::Forward, Direction::Backward] {
        let before = PASSED.get();
        let mut count = 0;
        let all = (Bound::Unbounded, Bound::Unbounded);
        let see = |_: &[u8], _: &[u8]| {
            count += 1;
            ControlFlow::Continue(())
        };
        store.view(&space).scan(all, direction, see).expect("it reads");
        assert_eq!(count, 20, "{direction:?}");
        assert!(PASSED.get() - before < 10, "{} entries passed, {direction:?}", PASSED.get() - before);
    }
}

/// The tables of partitions whose keys are all deleted are removed at the next flush, which nobody has to wait for.
#[test]
fn the_space_of_whole_partitions_comes_back_without_a_merge() {
    whole_partitions();
}

pub(super) fn whole_partitions() {
    let options = Options { memtable_bytes: 64 << 10, table_bytes: 16 << 10, ..options(Durability::Memory) };
    let (_, store, space) = with_keys(20_000, &options);
    store.compact().expect("there is room");
    let parts = || store.version().partitions(space.id).len();
    let bytes = || store.stats().expect("it has figures").table_bytes;
    let (before, full) = (parts(), bytes());
    assert!(before > 20, "{before} partitions");
    let (start, end) = (100_u32.to_be_bytes(), 19_900_u32.to_be_bytes());
    store.apply(&space, Op::DeleteRange { start: &start, end: Some(&end) }).expect("it fits");
    let key = 10_000_u32.to_be_bytes();
    store.apply(&space, Op::Set { key: &key, value: b"later" }).expect("it fits");
    while store.step().expect("there is room") {}
    assert_eq!(store.view(&space).get(&key).expect("it reads").as_deref(), Some(&b"later"[..]));
    assert!(parts() <= 4 && bytes() < full / 10, "{} partitions, {} of {full} bytes", parts(), bytes());
    assert_eq!(store.view(&space).count(Bound::Unbounded, Bound::Unbounded).expect("it reads"), 201);
    store.apply(&space, Op::DeleteRange { start: b"", end: None }).expect("it fits");
    store.flush_all().expect("there is room");
    assert_eq!((parts(), bytes()), (1, 0));
    store.apply(&space, Op::Set { key: b"", value: b"first" }).expect("it fits");
    store.flush_all().expect("there is room");
    assert_eq!(store.view(&space).get(b"").expect("it reads").as_deref(), Some(&b"first"[..]));
}

/// A memtable takes a limited number of ranges, however small. A batch may have more, and is applied in one go.
#[test]
fn many_ranges_stay_bounded() {
    use crate::ranges::FRAGMENTS_MOST;
    const KEYS: u32 = 10 * (FRAGMENTS_MOST as u32 + 20);
    let roomy = Options { memtable_bytes: 64 << 20, table_bytes: 16 << 20, ..options(Durability::Memory) };
    let (disk, store, space) = with_keys(KEYS, &roomy);
    let bounds = |range: u32| [range * 10, range * 10 + 5].map(u32::to_be_bytes);
    for range in 0..FRAGMENTS_MOST as u32 + 10 {
        let [start, end] = bounds(range);
        store.apply(&space, Op::DeleteRange { start: &start, end: Some(&end) }).expect("it fits");
    }
    let fragments = store.version().memtable.ranges(space.id).expect("there are some").len();
    assert!(fragments <= 10, "{fragments} in the newest memtable");
    let bytes = store.version().immutable_bytes();
    assert!(bytes >= roomy.memtable_bytes / 8, "{bytes} bytes are what writers wait for");
    let bounds: Vec<_> = (0..KEYS / 10).map(bounds).collect();
    let delete =
        |[start, end]: &'_ [[u8; 4]; 2]| Op::DeleteRange { start: start.to_vec(), end: Some(end.to_vec()) };
    let ops: Vec<_> = bounds.iter().map(delete).collect();
    let ops: Vec<_> = ops.iter().map(|op| (&space, op.borrowed())).collect();
    assert!(store.write(&ops, None).expect("it fits").is_applied());
    let count = |store: &Handle| store.view(&space).count(Bound::Unbounded, Bound::Unbounded);
    assert_eq!(count(&store).expect("it reads"), u64::from(KEYS) / 2);
    drop(store);
    let (store, space) = open(&disk, &roomy);
    let count = store.view(&space).count(Bound::Unbounded, Bound::Unbounded);
    assert_eq!(count.expect("it reads"), u64::from(KEYS) / 2);
    store.flush_all().expect("there is room");
    let count = store.view(&space).count(Bound::Unbounded, Bound::Unbounded);
    assert_eq!(count.expect("it reads"), u64::from(KEYS) / 2);
}

/// A store of several partitions, one of which has lost its table, and their lower bounds.
fn with_lost(which: usize) -> (Handle, Arc<Space>, Vec<Vec<u8>>) {
    let options = Options { memtable_bytes: 64 << 10, table_bytes: 16 << 10, ..options(Durability::Memory) };
    let (disk, store, space) = with_keys(5_000, &options);
    store.compact().expect("there is room");
    let number = store.version().partitions(space.id)[which].tables()[0].name();
    drop(store);
    let files: Vec<_> = disk.files().into_iter().filter(|(name, _)| *name != number).collect();
    let (store, space) = open(&Simulated::from_files(files), &options);
    let lows = store.version().partitions(space.id).iter().map(|one| one.low.clone()).collect();
    (store, space, lows)
}

fn all(store: &Handle, space: &Arc<Space>) -> Result<u64, Error> {
    store.view(space).count(Bound::Unbounded, Bound::Unbounded)
}

fn range<'a>(start: &'a [u8], end: &'a [u8]) -> Op<&'a [u8]> {
    Op::DeleteRange { start, end: Some(end) }
}

/// Keys that share a partition with a damaged table cannot be deleted together: it is unknown which there are. A range
/// that has the whole partition removes the damage, for reads at once.
#[test]
fn a_damaged_partition_is_deleted_as_a_whole_only() {
    let (store, space, lows) = with_lost(2);
    let [low, high] = [&lows[2][..], &lows[3][..]];
    assert!(all(&store, &space).is_err());
    let part = store.apply(&space, range(low, &high[..high.len() - 1]));
    let error = part.expect_err("it has other keys, which may be there");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    store.apply(&space, range(low, high)).expect("all of it can go");
    let count = all(&store, &space).expect("scans pass what is deleted");
    let mut backward = 0;
    let see = |_: &[u8], _: &[u8]| {
        backward += 1;
        ControlFlow::Continue(())
    };
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    store.view(&space).scan(bounds, Direction::Backward, see).expect("in both directions");
    assert_eq!(count, backward);
    while store.step().expect("there is room") {}
    assert_eq!(all(&store, &space).expect("the damage is gone"), count);
    assert!(store.version().partitions(space.id).iter().all(|one| one.damage().is_none()));
}

/// The range of a damaged partition stays as it is when the one after it is deleted.
#[test]
fn a_damaged_partition_takes_no_range_over() {
    let (store, space, lows) = with_lost(2);
    store.apply(&space, range(&lows[3], &lows[4])).expect("it is intact");
    store.freeze(&mut store.order()).expect("there is room");
    store.apply(&space, range(&lows[2], &lows[3])).expect("all of it can go");
    store.flush_all().expect("there is room");
    assert_eq!(store.view(&space).get(&lows[2]).expect("the damage is gone"), None);
    all(&store, &space).expect("the damage is gone");
}

/// A reader that began before the last delete of a range still sees the one before it.
#[test]
fn deletes_of_one_range_after_another_never_show_a_key() {
    let (store, space) =
        open(&Simulated::new(), &Options { memtable_bytes: 1 << 20, ..options(Durability::Memory) });
    store.apply(&space, Op::Set { key: b"k", value: b"" }).expect("it fits");
    store.flush_all().expect("there is room");
    store.apply(&space, range(b"a", b"z")).expect("it fits");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for reader in 0..2 {
            let (store, space, over) = (&store, &space, &over);
            scope.spawn(move || {
                while !over.load(Relaxed) {
                    if reader == 0 {
                        assert_eq!(store.view(space).get(b"k").expect("it reads"), None);
                    } else {
                        assert_eq!(all(store, space).expect("it reads"), 0);
                    }
                }
            });
        }
        for _ in 0..sized(20_000, 200_000) {
            store.apply(&space, range(b"a", b"z")).expect("it fits");
        }
        over.store(true, Relaxed);
    });
}

/// Memory may be refused in the middle of a batch that deletes a range: nothing or all of it is there after a resume.
#[test]
fn a_batch_with_a_range_is_whole_after_a_resume() {
    for at in 0..20 {
        let (store, space) =
            open(&Simulated::new(), &Options { memtable_bytes: 1 << 20, ..options(Durability::Sync) });
        store.apply(&space, Op::Set { key: b"a1", value: b"" }).expect("it fits");
        store.flush_all().expect("there is room");
        refusal::plant(at, Times::Once);
        let ops = [(&space, range(b"a", b"b")), (&space, Op::Set { key: &b"z"[..], value: &b""[..] })];
        let _may_fail = store.write(&ops, None);
        let struck = refusal::heal();
        if store.log().check().is_err() {
            store.resume().expect("there is memory");
        }
        let has = |key: &[u8]| store.view(&space).get(key).expect("it reads").is_some();
        assert_ne!(has(b"a1"), has(b"z"), "refused at {at}");
        if struck == 0 {
            return;
        }
    }
}

/// A flush looks at each key of the memtable a few times, however many partitions there are.
#[test]
fn a_flush_of_hidden_keys_is_not_quadratic() {
    let steps = |table_bytes: u64| {
        let options = Options {
            memtable_bytes: 64 << 20,
            table_bytes,
            workers: Some(1),
            ..options(Durability::Memory)
        };
        let (_, store, space) = with_keys(10_000, &options);
        store.compact().expect("there is room");
        for number in 0..10_000_u32 {
            store.apply(&space, Op::Set { key: &number.to_be_bytes(), value: b"" }).expect("it fits");
        }
        store.apply(&space, range(&1_u32.to_be_bytes(), &9_999_u32.to_be_bytes())).expect("it fits");
        let (partitions, before) = (store.version().partitions(space.id).len(), HIDDEN.get());
        store.flush_all().expect("there is room");
        (partitions, HIDDEN.get() - before)
    };
    let ((few, less), (many, more)) = (steps(64 << 10), steps(4 << 10));
    assert!(many > 8 * few && more < 2 * less, "{less} steps with {few} partitions, {more} with {many}");
}

/// A full device is shrunk by range deletes, each inside a partition, so that no file can be removed as it is.
#[test]
fn a_store_on_a_full_device_is_shrunk_by_ranges() {
    for len in [20, 100, 500] {
        let options =
            Options { memtable_bytes: 256 << 10, table_bytes: 256 << 10, ..options(Durability::Buffered) };
        let (store, space) = open(&Simulated::with_capacity(16 << 20), &options);
        let work = || while matches!(store.step(), Ok(true)) {};
        let (value, key) =
            (vec![7; len], |number: u64| [&Random(number).next().to_be_bytes()[..], &[1; 24]].concat());
        for number in 0.. {
            let put = store.apply(&space, Op::Set { key: &key(number), value: &value });
            if number % 100 == 0 {
                work();
            }
            if put.is_err() {
                break;
            }
        }
        work();
        let lows: Vec<Vec<u8>> =
            store.version().partitions(space.id).iter().map(|one| one.low.clone()).collect();
        for pair in lows.windows(2) {
            let [mut start, mut end] = [&pair[0], &pair[1]]
                .map(|low| low.iter().copied().chain([0; 12]).take(12).collect::<Vec<_>>());
            start[3] = start[3].saturating_add(40);
            end[1] = end[1].saturating_sub(1);
            if start < end {
                store.apply(&space, range(&start, &end)).expect("deletes make room");
            }
        }
        work();
        let mut last = Ok(());
        for _ in 0..5 {
            let _may_find_no_space = store.flush_early(64);
            let _may_find_no_space = store.compact_dead();
            work();
            last = store.apply(&space, Op::Set { key: b"x", value: b"y" }).map(drop);
        }
        last.unwrap_or_else(|error| panic!("values of {len}: {error}"));
    }
}
