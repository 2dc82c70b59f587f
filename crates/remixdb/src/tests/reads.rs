//! Reads of keys alone, of many ranges at once, and of what a range has about: what they cost, what they return when
//! reads fail, and how far the numbers are off.

use super::world::options;
use crate::catalog::Space;
use crate::core::Handle;
use crate::disk::Sealed;
use crate::disk::simulated::{Failure, Fault, Simulated, Times};
use forrest_base::random::Random;
use forrest_engine::{
    Approximate, Chunk, Cursor as _, Direction, Durability, ErrorKind, Filled, Goto, KeyBounds, Op, Options,
    Result, Snapshot as _, View as _, one_by_one,
};
use forrest_testing::sized;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, Range};
use std::sync::Arc;

type View = crate::view::View;
/// The number of a range, a key and a value.
type Shown = Vec<(usize, Vec<u8>, Vec<u8>)>;
type Read<'a> = &'a dyn Fn(&View) -> Result<Shown>;

const ALL: KeyBounds<'static> = (Bound::Unbounded, Bound::Unbounded);

fn open(disk: &Simulated, options: &Options) -> (Handle, Arc<Space>) {
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    (store, space)
}

fn roomy() -> Options {
    Options {
        memtable_bytes: 64 << 20,
        table_bytes: 64 << 20,
        cache_bytes: 8 << 20,
        ..options(Durability::Memory)
    }
}

fn set(store: &Handle, space: &Arc<Space>, number: u32, value: &[u8]) {
    store.apply(space, Op::Set { key: &number.to_be_bytes(), value }).expect("it fits");
}

/// The files of a store with keys in as many tables, each key in one of them by chance. The lengths of values are in
/// `lens`.
fn with_tables(tables: u64, keys: u32, lens: Range<usize>) -> Simulated {
    with_tables_of(tables, keys, 0, lens)
}

/// The same, with as many bytes at the end of each key that no two have in common.
fn with_tables_of(tables: u64, keys: u32, more: usize, lens: Range<usize>) -> Simulated {
    let disk = Simulated::new();
    let (store, space) = open(&disk, &Options { workers: Some(1), ..roomy() });
    let mut random = Random(1);
    for table in 0..tables {
        for number in 0..keys {
            if Random(u64::from(number)).below(tables) == table {
                let len = lens.start + random.index(lens.len());
                let mut key = number.to_be_bytes().to_vec();
                key.extend((0..more).map(|_| random.next() as u8));
                let value = vec![number as u8; len];
                store.apply(&space, Op::Set { key: &key, value: &value }).expect("it fits");
            }
        }
        store.freeze(&mut store.order()).expect("there is room");
        store.flush_all().expect("there is room");
    }
    store.sync().expect("it syncs");
    let files: Vec<_> = disk.files().into_iter().collect();
    Simulated::from_files(files)
}

fn keys_of(view: &View) -> usize {
    let mut count = 0;
    let see = |_: &[u8]| {
        count += 1;
        ControlFlow::Continue(())
    };
    view.scan_keys(ALL, Direction::Forward, see).expect("it reads");
    count
}

fn chunks_of(view: &View, keys_only: bool) -> usize {
    let (mut chunk, mut resume, mut lower, mut count) =
        (Chunk::default(), Default::default(), Bound::Unbounded, 0);
    if keys_only {
        chunk.set_keys_only();
    }
    loop {
        chunk.clear(1000);
        let bounds = (lower.as_ref().map(Vec::as_slice), Bound::Unbounded);
        let filled = view.fill(&mut chunk, &mut resume, bounds, Direction::Forward).expect("it reads");
        count += chunk.len();
        if matches!(filled, Filled::End) {
            return count;
        }
        lower = Bound::Excluded(chunk.key(chunk.len() - 1).to_vec());
    }
}

/// Values are on pages of their own, which nothing that wants keys alone reads or announces.
#[test]
fn keys_are_read_without_values() {
    keys_alone();
}

pub(super) fn keys_alone() {
    for (len, times) in [(100, 4), (4096, 50)] {
        for tables in [1, 4] {
            let disk = with_tables(tables, sized(2000, 20_000), len..len + 1);
            let cost = |read: &dyn Fn(&View) -> usize| {
                let (store, space) = open(&disk, &roomy());
                let before = disk.bytes_read();
                let (count, _) = (read(&store.view(&space)), disk.take_waits());
                (count, disk.bytes_read() - before)
            };
            let (all, whole) = cost(&|view| chunks_of(view, false));
            let walk = |view: &View| {
                let mut cursor = view.cursor();
                cursor.keys_only();
                let mut count = usize::from(cursor.goto(Goto::First).expect("it reads"));
                while cursor.goto(Goto::Skip(1)).expect("it reads") {
                    count += 1;
                }
                count
            };
            for read in [&keys_of as &dyn Fn(&View) -> usize, &|view| chunks_of(view, true), &walk] {
                let (count, bytes) = cost(read);
                assert_eq!(count, all);
                println!(
                    "values of {len} bytes, {tables} tables: {bytes} bytes read for keys, {whole} for pairs"
                );
                assert!(bytes * times < whole, "values of {len}, {tables} tables: {bytes} of {whole} bytes");
            }
        }
    }
}

fn several(view: &View, ranges: &[KeyBounds<'_>], limit: usize, keys_only: bool) -> Result<Shown> {
    let mut shown = Vec::new();
    view.multi_scan(ranges, limit, keys_only, |number, key, value| {
        shown.push((number, key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    })?;
    Ok(shown)
}

/// All that many ranges begin with is requested before the first of them is read, so hardly any read waits alone. Scans
/// of several tables request their pages right before they read them, so there only the depth shows it.
#[test]
fn the_waits_of_many_ranges_overlap() {
    many_ranges();
}

pub(super) fn many_ranges() {
    const KEYS: u32 = 20_000;
    for (tables, lens) in [(1, 100..101), (1, 50..400), (4, 100..101)] {
        let disk = with_tables_of(tables, KEYS, 60, lens.clone());
        let starts: Vec<_> = (0..64).map(|at| (at * (KEYS / 64)).to_be_bytes()).collect();
        let ranges: Vec<KeyBounds<'_>> =
            starts.iter().map(|start| (Bound::Included(&start[..]), Bound::Unbounded)).collect();
        // Where the order over tables is built, that has read all keys.
        for (limit, keys_only) in [(1, true), (5, false)].into_iter().skip(usize::from(tables > 1)) {
            // Indexes and orders are read before.
            let opened = || {
                let (store, space) = open(&disk, &roomy());
                let view = store.view(&space);
                view.get(&u32::MAX.to_be_bytes()).expect("it reads");
                several(&view, &[(Bound::Included(b"\xFF"), Bound::Unbounded)], 1, false).expect("it reads");
                disk.take_waits();
                view
            };
            let view = opened();
            let mut one = Vec::new();
            let see = |number: usize, key: &[u8], value: &[u8]| {
                one.push((number, key.to_vec(), value.to_vec()));
                ControlFlow::Continue(())
            };
            one_by_one(&view, &ranges, limit, keys_only, see).expect("it reads");
            let (alone, _) = disk.take_waits();
            let view = opened();
            assert_eq!(several(&view, &ranges, limit, keys_only).expect("it reads"), one);
            let (waits, depth) = disk.take_waits();
            println!(
                "{tables} tables, values {lens:?}, {limit} of each: {alone} waits alone, {waits} together, depth {depth}"
            );
            assert!(
                (alone >= 64 || tables > 1) && waits * 3 <= alone && depth >= 16,
                "{alone} and {waits}, depth {depth}"
            );
        }
    }
}

/// Each read fails once: the error is reported, or the result is right; and afterwards all is as it was.
#[test]
fn each_read_may_fail() {
    let disk = with_tables(3, 3000, 50..400);
    let starts: Vec<_> = (0..20_u32).map(|at| (at * 150).to_be_bytes()).collect();
    let ranges: Vec<KeyBounds<'_>> =
        starts.iter().map(|start| (Bound::Included(&start[..]), Bound::Unbounded)).collect();
    let middle = (Bound::Included(&starts[3][..]), Bound::Excluded(&starts[15][..]));
    let reads: [Read<'_>; 5] = [
        &|view| several(view, &ranges, 3, false),
        &|view| several(view, &ranges, 1, true),
        &|view| {
            let mut keys = Vec::new();
            view.scan_keys(middle, Direction::Backward, |key| {
                keys.push((0, key.to_vec(), Vec::new()));
                ControlFlow::Continue(())
            })?;
            Ok(keys)
        },
        &|view| {
            let Approximate { keys, bytes } = view.approximate(middle.0, middle.1)?;
            Ok(vec![(keys as usize, bytes.to_be_bytes().to_vec(), Vec::new())])
        },
        &|view| Ok(vec![(view.count(middle.0, middle.1)? as usize, Vec::new(), Vec::new())]),
    ];
    for (number, read) in reads.iter().enumerate() {
        let expected = {
            let (store, space) = open(&disk, &roomy());
            read(&store.view(&space)).expect("nothing fails")
        };
        for kind in [Failure::Eio, Failure::ShortRead] {
            for nth in 0.. {
                let (store, space) = open(&disk, &roomy());
                let (at, struck) = (disk.ios() + nth, disk.struck());
                disk.fail(Fault { at, times: Times::Once, kind });
                let found = read(&store.view(&space));
                let has_struck = disk.struck() > struck;
                disk.heal();
                match found {
                    Ok(found) => assert_eq!(found, expected, "read {number}, {kind:?} at I/O {nth}"),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Io, "{error}"),
                }
                let again = read(&store.view(&space)).expect("it has passed");
                assert_eq!(again, expected, "read {number} after {kind:?} at I/O {nth}");
                if !has_struck {
                    assert!(nth > 2, "read {number}: {nth} I/Os");
                    break;
                }
            }
        }
    }
}

fn count(view: &View, from: u32, to: u32) -> u64 {
    let (from, to) = (from.to_be_bytes(), to.to_be_bytes());
    view.count(Bound::Included(&from), Bound::Excluded(&to)).expect("it reads")
}

/// A count reads the selectors between the ends of its range, and neither keys nor values. It walks over what memtables
/// have changed.
#[test]
fn a_count_reads_little() {
    counts();
}

pub(super) fn counts() {
    for (tables, compacts) in [(1, false), (5, true), (5, false)] {
        let disk = with_tables(tables, 20_000, 50..400);
        let (store, space) = open(&disk, &roomy());
        if compacts {
            store.compact().expect("there is room");
        }
        let view = store.view(&space);
        assert_eq!(count(&view, 10, 20), 10, "the order over the tables is loaded");
        let before = disk.ios();
        assert_eq!(count(&view, 1_000, 18_500), 17_500);
        assert_eq!(view.count(Bound::Unbounded, Bound::Unbounded).expect("it reads"), 20_000);
        let reads = disk.ios() - before;
        assert!(reads <= 2 * tables, "{tables} tables: {reads} reads");
        set(&store, &space, 700, b"new");
        set(&store, &space, 20_000, b"new");
        assert_eq!(count(&view, 0, 1 << 20), 20_001);
    }
}

fn approximate(view: &View, from: u32, to: u32) -> Approximate {
    let (from, to) = (from.to_be_bytes(), to.to_be_bytes());
    view.approximate(Bound::Included(&from), Bound::Excluded(&to)).expect("it reads")
}

/// What is in tables is counted where no key was replaced or deleted. The bytes of all ranges together are those of the
/// tables.
#[test]
fn it_is_exact_in_tables_without_dead_entries() {
    exact_in_tables();
}

pub(super) fn exact_in_tables() {
    for (tables, table_bytes, memory_bytes) in
        [(1, 64 << 20, None), (5, 64 << 20, None), (1, 16 << 10, None), (5, 64 << 20, Some(4096))]
    {
        let disk = with_tables(tables, 5000, 10..90);
        let (store, space) = open(&disk, &Options { table_bytes, memory_bytes, ..roomy() });
        if tables == 1 {
            store.compact().expect("there is room");
        }
        let view = store.view(&space);
        let mut model: Vec<u32> = Vec::new();
        view.scan_keys(ALL, Direction::Forward, |key| {
            model.push(u32::from_be_bytes(key.try_into().expect("a number")));
            ControlFlow::Continue(())
        })
        .expect("it reads");
        let (mut random, mut sum) = (Random(3), Approximate::default());
        for _ in 0..300 {
            let (from, to) = (random.below(5200) as u32, random.below(5200) as u32);
            let about = approximate(&view, from, to);
            let exact = model.iter().filter(|key| (from..to).contains(key)).count() as u64;
            assert_eq!(about.keys, exact, "{from}..{to}, {tables} tables of {table_bytes}");
        }
        for piece in 0..52 {
            let part = approximate(&view, piece * 100, piece * 100 + 100);
            (sum.keys, sum.bytes) = (sum.keys + part.keys, sum.bytes + part.bytes);
        }
        let bytes = store.stats().expect("it has figures").table_bytes;
        assert!(sum.bytes <= bytes && sum.bytes + 500 >= bytes, "{} of {bytes} bytes", sum.bytes);
        let all = view.approximate(Bound::Unbounded, Bound::Unbounded).expect("it reads");
        assert_eq!(all.bytes, bytes);
    }
}

/// Of a random store, the number is off by at most what is replaced or deleted, and what is in memtables.
#[test]
fn it_is_off_by_what_is_dead_at_most() {
    for seed in 0..sized(30, 300) {
        let mut random = Random(seed);
        let (store, space) = open(&Simulated::new(), &options(Durability::Memory));
        let (mut model, mut changes) = (BTreeMap::new(), 0_u64);
        for _ in 0..random.below(600) {
            let number = random.below(300) as u32;
            match random.below(40) {
                0 => store.flush_all().expect("there is room"),
                1 => {
                    let end = number + random.below(60) as u32;
                    let (start, last) = (number.to_be_bytes(), end.to_be_bytes());
                    let op = Op::DeleteRange { start: &start[..], end: Some(&last[..]) };
                    store.apply(&space, op).expect("it fits");
                    model.retain(|key, ()| !(number..end).contains(key));
                }
                2..10 => {
                    store.apply(&space, Op::Delete { key: &number.to_be_bytes() }).expect("it fits");
                    model.remove(&number);
                    changes += 1;
                }
                _ => {
                    set(&store, &space, number, &[1; 10]);
                    model.insert(number, ());
                    changes += 1;
                }
            }
        }
        let exact = |range: Range<u32>| model.range(range).count() as u64;
        let in_memory = |store: &Handle| -> u64 {
            let version = store.version();
            version.memtables().map(|one| one.estimate(space.id, b"", None).0).sum()
        };
        let dead = |store: &Handle| -> u64 {
            let version = store.version();
            let entries = |(_, one): (u32, &Arc<crate::partition::Partition>)| {
                one.tables().iter().map(|table| u64::from(table.entries())).sum::<u64>()
            };
            version.each().map(entries).sum::<u64>() + in_memory(store) - exact(0..300).min(changes)
        };
        let snapshot = store.snapshot().expect("it is open");
        for _ in 0..50 {
            let (from, to) = (random.below(300) as u32, random.below(300) as u32);
            let off =
                approximate(&store.view(&space), from, to.max(from)).keys.abs_diff(exact(from..to.max(from)));
            assert!(off <= dead(&store) + in_memory(&store), "seed {seed}, {from}..{to}: off by {off}");
            let counted = [count(&store.view(&space), from, to), count(&snapshot.view("default"), from, to)];
            assert_eq!(counted, [exact(from..to.max(from)); 2], "seed {seed}, {from}..{to}");
            let past = approximate(&snapshot.view("default"), from, to.max(from));
            assert_eq!(
                past,
                approximate(&store.view(&space), from, to.max(from)),
                "seed {seed}: nothing has changed"
            );
        }
        store.compact().expect("there is room");
        for _ in 0..50 {
            let (from, to) = (random.below(300) as u32, random.below(300) as u32);
            let keys = approximate(&store.view(&space), from, to.max(from)).keys;
            assert_eq!(keys, exact(from..to.max(from)), "seed {seed}, {from}..{to}, compacted");
            assert_eq!(count(&store.view(&space), from, to), keys, "seed {seed}, {from}..{to}, compacted");
        }
    }
}

/// A range that was deleted counts as empty at once, for those who see the delete only.
#[test]
fn deleted_ranges_do_not_count() {
    deleted_ranges();
}

pub(super) fn deleted_ranges() {
    let (store, space) = open(&with_tables(2, 4000, 10..20), &roomy());
    let view = store.view(&space);
    let before = (store.snapshot().expect("it is open"), approximate(&view, 0, 4000));
    let (start, end) = (1000_u32.to_be_bytes(), 3000_u32.to_be_bytes());
    store.apply(&space, Op::DeleteRange { start: &start, end: Some(&end) }).expect("it fits");
    assert_eq!(approximate(&view, 1000, 3000), Approximate::default());
    let (low, high) = (approximate(&view, 0, 1000), approximate(&view, 3000, 4000));
    assert_eq!(approximate(&view, 0, 4000).keys, low.keys + high.keys);
    assert_eq!(approximate(&view, 500, 1500), approximate(&view, 500, 1000));
    assert_eq!(approximate(&before.0.view("default"), 0, 4000), before.1);
    set(&store, &space, 2000, b"later");
    assert_eq!(approximate(&view, 1000, 3000).keys, 1);
}

/// Where a memtable has few keys, whole segments and blocks are before the next one; where it has many, none is.
#[test]
fn keys_of_memtables_are_shown_among_those_of_tables() {
    let all = [1, 4].into_iter().flat_map(|tables| [1, 3, 100, 1000].map(|gap| (tables, gap)));
    for ((tables, gap), has_range) in all.flat_map(|of| [(of, false), (of, true)]) {
        let keys = sized(3000, 20_000);
        let (store, space) = open(&with_tables(tables, keys, 10..11), &roomy());
        let mut expected: BTreeMap<_, _> =
            (0..keys).map(|number| (number.to_be_bytes().to_vec(), vec![number as u8; 10])).collect();
        let mut random = Random(gap);
        for _ in 0..u64::from(keys) / gap {
            let mut key = (random.below(u64::from(keys)) as u32).to_be_bytes().to_vec();
            if random.below(2) == 0 {
                key.push(random.next() as u8);
            }
            let value = b"in memory".to_vec();
            if random.below(3) == 0 {
                store.apply(&space, Op::Delete { key: &key }).expect("it fits");
                expected.remove(&key);
            } else {
                store.apply(&space, Op::Set { key: &key, value: &value }).expect("it fits");
                expected.insert(key, value);
            }
        }
        if has_range {
            let [start, end] = [1000_u32, 1300].map(u32::to_be_bytes);
            store.apply(&space, Op::DeleteRange { start: &start[..], end: Some(&end[..]) }).expect("it fits");
            expected.retain(|key, _| !(&start[..]..&end[..]).contains(&&key[..]));
        }
        let view = store.view(&space);
        for _ in 0..100 {
            let from = (random.below(u64::from(keys)) as u32).to_be_bytes().to_vec();
            let limit = 1 + random.index(200);
            let scan = |bounds, direction| {
                let mut shown = Vec::new();
                let see = |key: &[u8], value: &[u8]| {
                    shown.push((key.to_vec(), value.to_vec()));
                    if shown.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                };
                view.scan(bounds, direction, see).expect("it reads");
                shown
            };
            let pair = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
            let after: Vec<_> = expected.range(from.clone()..).take(limit).map(pair).collect();
            assert_eq!(scan((Bound::Included(&from), Bound::Unbounded), Direction::Forward), after);
            let before: Vec<_> = expected.range(..=from.clone()).rev().take(limit).map(pair).collect();
            assert_eq!(scan((Bound::Unbounded, Bound::Included(&from)), Direction::Backward), before);
        }
    }
}

/// Reads nothing from the disk, and states what a get has found before.
#[test]
fn what_is_cached_is_read_without_the_disk() {
    let keys = sized(400, 2000);
    for (tables, lens) in [(1, 100..101), (4, 100..101), (4, 3000..9000), (3, 5000..20_000)] {
        for cache_bytes in [64 << 10, 64 << 20] {
            let disk = with_tables(tables, keys, lens.clone());
            let (store, space) = open(&disk, &Options { cache_bytes, large_values: 16_000, ..roomy() });
            let view = store.view(&space);
            let (mut known, mut unknown) = ((0, 0), (0, 0));
            set(&store, &space, keys + 1, b"in a memtable");
            let cached = |number: u32| {
                let before = disk.bytes_read();
                let found = view.get_cached(&number.to_be_bytes()).expect("it is open");
                assert_eq!(disk.bytes_read(), before, "key {number} of {tables} tables");
                found
            };
            let newest = cached(keys + 1).expect("memtables are known").map(|value| value.to_vec());
            assert_eq!(newest.as_deref(), Some(&b"in a memtable"[..]));
            // Every second is not there.
            for number in (0..keys).flat_map(|number| [number, number | 1 << 31]) {
                let expected = |found: Option<Option<_>>, count: &mut (u32, u32)| match found {
                    Some(found) => {
                        (count.0 += 1, assert_eq!(found, view.get(&number.to_be_bytes()).unwrap()))
                    }
                    None => (count.1 += 1, ()),
                };
                expected(cached(number), &mut unknown);
                let before = view.get(&number.to_be_bytes()).expect("it reads");
                assert_eq!(before.is_some(), number < keys);
                expected(cached(number), &mut known);
            }
            assert!(unknown.1 > 0, "the first read of a page is not known: {unknown:?}");
            let is_all_known = cache_bytes > 1 << 20 && lens.end <= 16_000;
            assert!(known.0 > known.1 && (!is_all_known || known.1 == 0), "{tables} {lens:?}: {known:?}");
        }
    }
}

#[test]
fn reads_of_what_is_cached_fail_as_others() {
    let (store, space) = open(&Simulated::new(), &roomy());
    let view = store.view(&space);
    set(&store, &space, 1, b"oak");
    assert!(view.get_cached(&1u32.to_be_bytes()).expect("it is open").is_some());
    assert!(store.drop_space("default").expect("it is there"));
    assert_eq!(view.get_cached(&1u32.to_be_bytes()).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

/// Scans walk whole stretches of tables where a memtable, and the end of the range, are far away.
#[test]
fn scans_of_tables_beside_a_memtable_show_what_a_map_has() {
    for (tables, seed) in [(1, 1), (2, 2), (5, 3)] {
        let disk = with_tables(tables, 2000, 10..300);
        let (store, space) = open(&disk, &roomy());
        let view = store.view(&space);
        let mut map: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let fill = |key: &[u8], value: &[u8]| {
            map.insert(key.to_vec(), value.to_vec());
            ControlFlow::Continue(())
        };
        view.scan(ALL, Direction::Backward, fill).unwrap();
        let random = &mut Random(seed);
        for round in 0..40 {
            for _ in 0..random.index(3) {
                let key = (random.index(2100) as u32).to_be_bytes();
                if random.index(3) == 0 {
                    store.apply(&space, Op::Delete { key: &key }).unwrap();
                    map.remove(&key[..]);
                } else {
                    store.apply(&space, Op::Set { key: &key, value: b"new" }).unwrap();
                    map.insert(key.to_vec(), b"new".to_vec());
                }
            }
            let key = |random: &mut Random| (random.index(2100) as u32).to_be_bytes();
            let (from, to, most) = (key(random), key(random), 1 + random.index(700));
            let (from, to) = (from.min(to), from.max(to));
            let upper = match round % 3 {
                0 => Bound::Unbounded,
                1 => Bound::Included(&to[..]),
                _ => Bound::Excluded(&to[..]),
            };
            let bounds = (Bound::Included(&from[..]), upper);
            for direction in [Direction::Forward, Direction::Backward] {
                let mut shown = Vec::new();
                let see = |key: &[u8], value: &[u8]| {
                    shown.push((key.to_vec(), value.to_vec()));
                    if shown.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                view.scan(bounds, direction, see).unwrap();
                let within = map.range::<[u8], _>(bounds).map(|(key, value)| (key.clone(), value.clone()));
                let expected: Vec<_> = match direction {
                    Direction::Forward => within.take(most).collect(),
                    Direction::Backward => within.rev().take(most).collect(),
                };
                assert_eq!(shown, expected, "{tables} tables, {bounds:?}, {direction:?}, at most {most}");
            }
        }
    }
}
