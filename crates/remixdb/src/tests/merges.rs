//! Merges that are stored as operands: random work, crashes, failures and damage; and that no table is read for them.

use super::backup;
use super::beside;
use super::checkpoint;
use super::crash;
use super::damage;
use super::faults::{FAILURES, failing_io, failing_io_of};
use super::resume;
use super::world::{
    World, beginning, expiring, follow, ingest_steps, options, options_of, packed_steps, seeds, steps,
    wide_steps, with_merges,
};
use crate::catalog::Space;
use crate::core::Handle;
use crate::disk::simulated::Simulated;
use crate::disk::{Kind, Real, Sealed};
use crate::ingest::Ingest;
use crate::operands;
use crate::page;
use crate::salvage;
use crate::table::TableCursor;
use forrest_engine::merge::MergeOperator;
use forrest_engine::{
    Direction, Durability, ErrorKind, Expires, Filter, Ingest as _, Op, Options, Outcome, Verdict, View as _,
};
use forrest_testing::sized;
use std::ops::{Bound, ControlFlow, Range};
use std::sync::Arc;

/// The number of tables with operands, and of memtables.
fn with_operands(store: &Handle) -> [usize; 2] {
    let version = store.version().clone();
    let tables = version.each().flat_map(|(_, partition)| partition.tables().to_vec());
    let has_some = |memtable: &&Arc<crate::memtable::Memtable>| {
        memtable.spaces().into_iter().any(|space| {
            let Some(mut pairs) = memtable.cursor(space) else { return false };
            let mut is_there = pairs.seek(&[]);
            while is_there {
                let versions = pairs.value_bytes().expect("there is a pair");
                if crate::memtable::newest(versions).1.has_operands() {
                    return true;
                }
                is_there = pairs.next();
            }
            false
        })
    };
    [tables.filter(|table| table.has_operands()).count(), version.memtables().filter(has_some).count()]
}

/// Random work: the store has what a map has that applies merges at once, also when it is opened again. Returns how
/// often tables and memtables had operands after a step.
fn after_random_work(seeds: Range<u64>) -> [usize; 2] {
    let mut seen = [0, 0];
    for seed in seeds {
        let options = Options { history: seed % 7 == 6, ..options_of(seed, Durability::Buffered) };
        let disk = Simulated::new();
        let mut world = World::open(&disk, &options).expect("it opens");
        let mut states = beginning();
        let work = match seed % 5 {
            0 => steps(seed, 120),
            1 => ingest_steps(seed, 60),
            2 => expiring(seed, steps(seed, 80)),
            3 => packed_steps(seed, 60),
            _ => wide_steps(seed, 60),
        };
        for (at, step) in work.iter().enumerate() {
            follow(&mut states, step);
            world.run(step).unwrap_or_else(|error| panic!("seed {seed}, step {at}, {step:?}: {error}"));
            let what = format!("seed {seed}, after step {at}, {step:?}");
            assert_eq!(world.content().unwrap(), *states.last().unwrap(), "{what}");
            for (sum, one) in seen.iter_mut().zip(with_operands(&world.store)) {
                *sum += one;
            }
            if at % 10 == 9 {
                world.store.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
                drop(world);
                world = World::open(&disk, &options).expect("it opens");
                let content = world.content().unwrap_or_else(|error| panic!("{what}, opened again: {error}"));
                assert_eq!(content, *states.last().unwrap(), "{what}, opened again");
            }
        }
    }
    seen
}

pub(super) fn random_work(seeds: Range<u64>) -> [usize; 2] {
    with_merges(|| after_random_work(seeds))
}

pub(super) fn after_kills(seeds: Range<u64>) {
    with_merges(|| crash::after_a_kill(seeds));
}

#[test]
fn random_work_is_right() {
    let [tables, memtables] = random_work(seeds(24, 240));
    if forrest_testing::number::<u64>("FORREST_GATE_SEEDS").is_some() {
        return;
    }
    assert!(tables > 20 && memtables > 20, "{tables} tables and {memtables} memtables had operands");
}

#[test]
fn power_may_be_cut_at_any_io() {
    assert!(with_merges(|| crash::after_power_cuts(seeds(1, 3))) > 100);
}

#[test]
fn power_may_be_cut_in_any_sequence() {
    assert!(with_merges(|| crash::after_every_sequence(super::world::lengths(1, 2))) > 10);
}

#[test]
fn a_kill_loses_nothing() {
    after_kills(seeds(4, 24));
}

#[test]
fn a_power_cut_after_a_kill_loses_nothing() {
    assert!(with_merges(|| crash::cuts_upon_kills(seeds(1, 2), sized(9, 4))) > 50);
}

#[test]
fn a_crash_upon_a_crash_loses_nothing() {
    assert!(with_merges(|| crash::crashes_upon_crashes(seeds(1, 4), sized(9, 2))) > 50);
}

#[test]
fn any_io_may_fail() {
    with_merges(|| failing_io(seeds(1, 1), &FAILURES, sized(7, 1)));
}

#[test]
fn any_io_may_fail_where_tables_are_wide() {
    with_merges(|| failing_io_of(seeds(1, 2), |seed| wide_steps(seed, 12), &FAILURES, sized(29, 11)));
}

#[test]
fn any_bit_may_flip() {
    with_merges(|| damage::flipped_bits(seeds(1, 2), sized(5, 2)));
}

#[test]
fn any_file_may_be_cut_or_missing() {
    with_merges(|| damage::cut_and_missing_files(seeds(1, 2)));
}

#[test]
fn a_store_beside_its_writer_has_the_merges() {
    with_merges(|| beside::beside_a_writer(seeds(3, 20)));
}

#[test]
fn checkpoints_and_backups_have_the_merges() {
    with_merges(|| checkpoint::power_cuts(seeds(1, 4)));
    with_merges(|| backup::descents(seeds(2, 8)));
}

#[test]
fn a_store_that_is_resumed_has_the_merges() {
    with_merges(|| resume::resumed(seeds(1, 3), sized(9, 3)));
}

/// Appends, and does not combine.
struct Pile;

impl MergeOperator for Pile {
    fn name(&self) -> &str {
        "pile"
    }

    fn merge(&self, _key: &[u8], old: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
        assert_ne!(operand, b"panic");
        [old.unwrap_or_default(), operand].concat()
    }
}

type Store = Handle;

/// A store with an operator, on which nothing becomes a table by itself.
fn store(disk: &Simulated, operator: &str) -> (Store, Arc<Space>) {
    opened(disk, operator, Options { memtable_bytes: 1 << 20, ..options(Durability::Buffered) })
}

fn opened(disk: &Simulated, operator: &str, mut options: Options) -> (Store, Arc<Space>) {
    options.operators.add(Arc::new(Pile));
    let store = Handle::open_unattended(super::world::sealed(disk, &options).unwrap(), &options).unwrap();
    let space = store.keyspace("default").unwrap();
    store.choose_operator(&space, operator).unwrap();
    (store, space)
}

fn set(store: &Store, space: &Arc<Space>, key: &[u8], value: &[u8]) {
    store.apply(space, Op::Set { key, value }).unwrap();
}

fn merge(store: &Store, space: &Arc<Space>, key: &[u8], operand: &[u8]) {
    store.apply(space, Op::Merge { key, operand }).unwrap();
}

fn get(store: &Store, space: &Arc<Space>, key: &[u8]) -> Option<Vec<u8>> {
    let view = store.view(space);
    let value = view.get(key).unwrap().map(|value| value.to_vec());
    let several = view.multi_get(&[key]).unwrap().remove(0).map(|value| value.to_vec());
    assert_eq!(several, value);
    assert_eq!(view.contains(key).unwrap(), value.is_some());
    let mut into = b"before".to_vec();
    assert_eq!(view.get_into(key, &mut into).unwrap(), value.is_some());
    assert_eq!(into, value.clone().unwrap_or_default());
    let pieces = view.pieces(key).unwrap().map(|mut pieces| {
        let (mut all, mut piece) = (Vec::new(), [0; 3]);
        while let len @ 1.. = pieces.read(&mut piece).unwrap() {
            all.extend_from_slice(&piece[..len]);
        }
        assert_eq!(pieces.value_bytes(), all.len() as u64);
        all
    });
    assert_eq!(pieces, value);
    let bounds = (Bound::Included(key), Bound::Included(key));
    assert_eq!(view.count(bounds.0, bounds.1).unwrap(), u64::from(value.is_some()));
    for direction in [Direction::Forward, Direction::Backward] {
        let mut found = None;
        let see = |_: &[u8], value: &[u8]| {
            found = Some(value.to_vec());
            ControlFlow::Continue(())
        };
        view.scan(bounds, direction, see).unwrap();
        assert_eq!(found, value);
    }
    let mut found = None;
    let see = |_, _: &[u8], value: &[u8]| {
        found = Some(value.to_vec());
        ControlFlow::Continue(())
    };
    view.multi_scan(&[bounds], 1, false, see).unwrap();
    assert_eq!(found, value);
    value
}

/// A merge reads no page of a table, whether or not the memtable has the key. The operands stay through flushes, and a
/// merge of all tables applies them.
#[test]
fn a_merge_reads_no_table() {
    let disk = Simulated::new();
    let (store, space) = store(&disk, "append");
    for number in 0..200_u8 {
        set(&store, &space, &[number], b"old");
    }
    store.flush_all().unwrap();
    let reads = disk.bytes_read();
    for number in 0..200_u8 {
        merge(&store, &space, &[number], b"1");
        merge(&store, &space, &[number], b"2");
    }
    let ops: Vec<_> = [[3_u8], [201]].into_iter().collect();
    let ops: Vec<_> =
        ops.iter().map(|key| (&space, Op::Merge { key: &key[..], operand: &b"3"[..] })).collect();
    let _no_condition = store.write(&ops, None).unwrap();
    assert_eq!(disk.bytes_read(), reads, "nothing was read");
    assert_eq!(with_operands(&store), [0, 1]);
    let whole = |number: u8| match number {
        3 => Some(b"old123".to_vec()),
        201 => Some(b"3".to_vec()),
        0..=199 => Some(b"old12".to_vec()),
        _ => None,
    };
    let check = |what: &str| {
        for number in 0..=202 {
            assert_eq!(get(&store, &space, &[number]), whole(number), "{what}, {number}");
        }
    };
    check("in memory");
    store.flush_all().unwrap();
    assert!(with_operands(&store)[0] > 0);
    check("in a table");
    store.compact().unwrap();
    assert_eq!(with_operands(&store), [0, 0]);
    check("merged");
}

/// A value of some pages, some operands or nothing is in the oldest table; then there are operands in a newer table, an
/// immutable memtable and the memtable, or in some of them. All reads see what they make, one key or several at a time.
#[test]
pub(super) fn all_reads_apply_operands() {
    for operator in ["append", "pile"] {
        let disk = Simulated::new();
        let (store, space) = store(&disk, operator);
        let bases: [Option<&[u8]>; 4] = [None, Some(b"0"), Some(&[b'x'; 9000]), Some(b"")];
        let mut expected = std::collections::BTreeMap::new();
        // Bits of a key: the places that have operands of it.
        let keys = || (0..bases.len() as u8).flat_map(|base| (0..16_u8).map(move |places| [base, places]));
        for place in 0..4 {
            for key @ [base, places] in keys() {
                if let (0, Some(value)) = (place, bases[usize::from(base)]) {
                    set(&store, &space, &key, value);
                    expected.insert(key, value.to_vec());
                } else if places >> place & 1 == 1 {
                    let operand = [b'a' + place, b'.'];
                    merge(&store, &space, &key, &operand);
                    expected.entry(key).or_default().extend(operand);
                }
            }
            match place {
                0 | 1 => store.flush_all().unwrap(),
                2 => store.freeze(&mut store.order()).unwrap(),
                _ => {}
            }
        }
        let [tables, memtables] = with_operands(&store);
        assert!(tables > 0 && memtables == 2, "{tables} tables, {memtables} memtables");
        let check = |what: &str| {
            let several: Vec<_> = keys().collect();
            let found = store.view(&space).multi_get(&several).unwrap();
            for (key, found) in several.into_iter().zip(found) {
                assert_eq!(get(&store, &space, &key).as_ref(), expected.get(&key), "{what}, {key:?}");
                assert_eq!(found.as_deref(), expected.get(&key).map(Vec::as_slice), "{what}, {key:?}");
            }
        };
        check("in four places");
        store.flush_all().unwrap();
        assert_eq!(with_operands(&store)[1], 0);
        check("in tables");
        store.compact().unwrap();
        assert_eq!(with_operands(&store), [0, 0]);
        check("merged");
    }
}

/// What a place has is complete in itself, so a snapshot sees what it saw, and iterators go on.
#[test]
fn snapshots_and_iterators_see_their_operands() {
    let disk = Simulated::new();
    let (store, space) = store(&disk, "append");
    let view = |store: &Store| forrest_engine::Snapshot::view(&store.snapshot().unwrap(), "default");
    let value = |view: &crate::view::View| view.get(b"k").unwrap().map(|value| value.to_vec());
    set(&store, &space, b"k", b"0");
    set(&store, &space, b"l", b"0");
    store.flush_all().unwrap();
    let mut views = vec![(view(&store), "0")];
    merge(&store, &space, b"k", b"1");
    views.push((view(&store), "01"));
    merge(&store, &space, b"k", b"2");
    views.push((view(&store), "012"));
    store.freeze(&mut store.order()).unwrap();
    merge(&store, &space, b"k", b"3");
    views.push((view(&store), "0123"));
    let seen = |store: &Store| {
        for (at, (view, expected)) in views.iter().enumerate() {
            assert_eq!(value(view).as_deref(), Some(expected.as_bytes()), "snapshot {at}");
        }
        assert_eq!(get(store, &space, b"k").as_deref(), Some(&b"0123"[..]));
    };
    seen(&store);
    let mut cursor = forrest_engine::View::cursor(&store.view(&space));
    use forrest_engine::{Cursor as _, Goto};
    assert!(cursor.goto(Goto::First).unwrap());
    assert_eq!(&*cursor.value().unwrap(), b"0123");
    store.flush_all().unwrap();
    assert!(cursor.goto(Goto::Skip(1)).unwrap());
    assert_eq!(cursor.key(), Some(&b"l"[..]));
    seen(&store);
    store.compact().unwrap();
    seen(&store);
    store.apply(&space, Op::Delete { key: b"k" }).unwrap();
    store.flush_all().unwrap();
    merge(&store, &space, b"k", b"4");
    assert_eq!(get(&store, &space, b"k").as_deref(), Some(&b"4"[..]), "a tombstone in a table");
    let range = Op::DeleteRange { start: &b"a"[..], end: Some(&b"z"[..]) };
    store.apply(&space, range).unwrap();
    merge(&store, &space, b"k", b"5");
    assert_eq!(get(&store, &space, b"k").as_deref(), Some(&b"5"[..]), "a deleted range");
    merge(&store, &space, b"l", b"6");
    store.apply(&space, range).unwrap();
    assert_eq!((get(&store, &space, b"k"), get(&store, &space, b"l")), (None, None));
    store.flush_all().unwrap();
    assert_eq!((get(&store, &space, b"k"), get(&store, &space, b"l")), (None, None));
}

/// Operands that do not combine are kept in their order, a bounded number of them in a memtable. Conditions and later
/// operations of a batch see what they make.
#[test]
fn operands_that_do_not_combine_are_listed() {
    let disk = Simulated::new();
    let (store, space) = store(&disk, "pile");
    set(&store, &space, b"k", b"_");
    let mut expected = b"_".to_vec();
    for round in 0..6_u8 {
        store.flush_all().unwrap();
        for number in 0..round {
            let operand = [b'a' + round, b'0' + number];
            merge(&store, &space, b"k", &operand);
            expected.extend(operand);
            assert_eq!(get(&store, &space, b"k").as_ref(), Some(&expected), "round {round}");
        }
        let has_operands = with_operands(&store)[1] > 0;
        assert_eq!(has_operands, (1..5).contains(&round), "more than 4 become a value");
    }
    store.flush_all().unwrap();
    merge(&store, &space, b"k", b"x");
    expected.push(b'x');
    let swap = |expected: &[u8], new: &[u8]| {
        let op = Op::CompareAndSwap { key: &b"k"[..], expected: Some(expected), new: Some(new) };
        store.apply(&space, op).unwrap().mismatch().is_none()
    };
    assert!(!swap(b"x", b"?") && swap(&expected, b"new"));
    store.flush_all().unwrap();
    let ops = [
        (&space, Op::Merge { key: &b"k"[..], operand: &b"1"[..] }),
        (&space, Op::CompareAndSwap { key: b"k", expected: Some(&b"new1"[..]), new: Some(&b"+"[..]) }),
        (&space, Op::Merge { key: b"k", operand: b"2" }),
    ];
    assert!(matches!(store.write(&ops, None).unwrap(), forrest_engine::Written::Applied));
    assert_eq!(get(&store, &space, b"k").as_deref(), Some(&b"+2"[..]));
    store.flush_all().unwrap();
    let logged = store.visible();
    let error = store.apply(&space, Op::Merge { key: b"k", operand: b"panic" }).unwrap_err();
    assert_eq!((error.kind(), store.visible()), (ErrorKind::InvalidArgument, logged), "{error}");
    assert_eq!(get(&store, &space, b"k").as_deref(), Some(&b"+2"[..]));
}

/// The operands of a key in each table.
fn operands_in_tables(store: &Store, key: &[u8]) -> Vec<Vec<u8>> {
    let version = store.version().clone();
    let mut all = Vec::new();
    for table in version.each().flat_map(|(_, partition)| partition.tables()) {
        let mut cursor = TableCursor::new(&**table);
        if let Some(ordinal) = cursor.find(key).unwrap() {
            all.extend(cursor.operands(ordinal).unwrap());
        }
    }
    all
}

/// While small tables are merged and the one with the value stays, the operands of a key would become more and more.
/// An entry has as many as a memtable takes; beyond that the value is read.
#[test]
pub(super) fn operands_in_tables_are_bounded() {
    for (operator, bytes, each) in [("pile", 2, 3), ("append", 1000, 1)] {
        let disk = Simulated::new();
        let sizes =
            Options { memtable_bytes: 1 << 20, table_bytes: 16 << 20, ..options(Durability::Buffered) };
        let (store, space) = opened(&disk, operator, sizes);
        for number in 0..4000_u32 {
            set(&store, &space, &number.to_be_bytes(), &[b'.'; 50]);
        }
        set(&store, &space, b"k", b"_");
        store.flush_all().unwrap();
        let oldest = store.version().partition(space.id, b"k").unwrap().tables()[0].name();
        let (mut expected, mut most) = (b"_".to_vec(), 0);
        for round in 0..60_u8 {
            for number in 0..each {
                let operand = vec![b'a' + (round + number) % 26; bytes];
                merge(&store, &space, b"k", &operand);
                expected.extend(operand);
            }
            set(&store, &space, &[b'l', round], b"");
            store.flush_all().unwrap();
            for entry in operands_in_tables(&store, b"k") {
                assert!(operands::fits(&entry), "{operator}, round {round}: {} bytes", entry.len());
                most = most.max(entry.len());
            }
            assert_eq!(get(&store, &space, b"k").as_ref(), Some(&expected), "{operator}, round {round}");
        }
        let tables = store.version().partition(space.id, b"k").unwrap().tables().to_vec();
        assert_eq!(tables[0].name(), oldest, "{operator}: it was never merged");
        assert!(tables.len() > 1 && most > bytes * each as usize, "{operator}: {} tables", tables.len());
        store.compact().unwrap();
        assert_eq!(get(&store, &space, b"k"), Some(expected));
    }
}

/// What a memtable gets is what counts: short operands for keys of which it has long ones. It takes no more than it has
/// room for.
#[test]
pub(super) fn operands_have_room_in_the_memtable() {
    let disk = Simulated::new();
    let sizes =
        Options { memtable_bytes: 12 << 20, batch_bytes_max: 1 << 20, ..options(Durability::Buffered) };
    let (store, space) = opened(&disk, "append", sizes);
    set(&store, &space, b"k", b"");
    store.flush_all().unwrap();
    let keys: Vec<_> = (0..10_000_u32).map(u32::to_be_bytes).collect();
    let long = [b'x'; 1000];
    for key in &keys {
        merge(&store, &space, key, &long);
    }
    assert_eq!(with_operands(&store), [0, 1]);
    let ops: Vec<_> =
        keys.iter().map(|key| (&space, Op::Merge { key: &key[..], operand: &b"y"[..] })).collect();
    let _no_condition = store.write(&ops, None).unwrap();
    let version = store.version().clone();
    for memtable in version.memtables() {
        assert!(memtable.has_room(0), "{} bytes", memtable.bytes());
    }
    assert_eq!(with_operands(&store), [0, 2]);
    for key in [&keys[0], &keys[9_999]] {
        assert_eq!(get(&store, &space, key).unwrap(), [&long[..], b"y"].concat());
    }
}

/// Where values expire, in a store with history, and for values in logs, merges read.
#[test]
pub(super) fn some_merges_read() {
    for what in ["history", "expiry", "time to live"] {
        let options =
            Options { memtable_bytes: 1 << 20, history: what == "history", ..options(Durability::Buffered) };
        let disk = Simulated::new();
        let (store, space) = opened(&disk, "append", options);
        set(&store, &space, b"k", b"0");
        match what {
            "expiry" => {
                let expires = Expires::In(1 << 40);
                store.apply(&space, Op::SetUntil { key: &b"l"[..], value: &b"0"[..], expires }).unwrap();
            }
            "time to live" => {
                store.choose_ttl(&space, Some(std::time::Duration::from_secs(1 << 30))).unwrap();
            }
            _ => {}
        }
        store.flush_all().unwrap();
        merge(&store, &space, b"k", b"1");
        assert_eq!(with_operands(&store), [0, 0], "{what}");
        assert_eq!(get(&store, &space, b"k").as_deref(), Some(&b"01"[..]), "{what}");
    }
    // Values of such a keyspace leave the log.
    let sizes = Options {
        memtable_bytes: 1 << 20,
        large_values: forrest_engine::options::LARGE_VALUES_LEAST,
        ..options(Durability::Buffered)
    };
    let disk = Simulated::new();
    let (store, space) = opened(&disk, "append", sizes);
    let long = vec![b'x'; 4096];
    for number in 0..20_u8 {
        set(&store, &space, &[number], &long);
    }
    store.flush_all().unwrap();
    assert!(store.version().logs.is_empty());
    merge(&store, &space, &[3], b"1");
    assert_eq!(with_operands(&store), [0, 1]);
    assert_eq!(get(&store, &space, &[3]).unwrap(), [&long[..], b"1"].concat());
}

/// A filter sees what operands make, and never the operands.
#[test]
fn a_filter_decides_about_what_operands_make() {
    let decide = |_: &str, key: &[u8], value: &[u8]| {
        assert!(value.starts_with(b"0"), "{key:?}: {value:?}");
        if value == b"0d" { Verdict::Drop } else { Verdict::Keep }
    };
    let plain = Options { memtable_bytes: 1 << 20, ..options(Durability::Buffered) };
    let disk = Simulated::new();
    let (store, space) = opened(&disk, "append", Options { filter: Some(Filter::new(decide)), ..plain });
    set(&store, &space, b"k", b"0");
    set(&store, &space, b"l", b"0");
    store.flush_all().unwrap();
    merge(&store, &space, b"k", b"d");
    merge(&store, &space, b"l", b"e");
    store.flush_all().unwrap();
    store.compact().unwrap();
    assert_eq!((get(&store, &space, b"k"), get(&store, &space, b"l")), (None, Some(b"0e".to_vec())));
}

/// The manifest says that there are operands, and only then; so earlier releases refuse the store.
#[test]
pub(super) fn the_manifest_says_that_there_are_operands() {
    let disk = Simulated::new();
    let version = |disk: &Simulated| {
        let newest = disk.files().into_iter().rfind(|(name, _)| name.kind == Kind::Manifest).unwrap();
        newest.1[8]
    };
    let (store, space) = store(&disk, "append");
    set(&store, &space, b"k", b"0");
    merge(&store, &space, b"k", b"1");
    store.flush_all().unwrap();
    assert_eq!(version(&disk), 6);
    merge(&store, &space, b"k", b"2");
    assert_eq!(version(&disk), 7);
    drop(store);
    let (store, space) = self::store(&disk, "append");
    assert_eq!(get(&store, &space, b"k").as_deref(), Some(&b"012"[..]));
    store.flush_all().unwrap();
    assert_eq!(version(&disk), 7);
    let into = Simulated::new();
    store.checkpoint(store.disk().beside(into.clone())).unwrap();
    assert_eq!(version(&into), 7);
}

/// Salvage applies operands of the operators that every build has, and reports the keys of others.
#[test]
fn salvage_applies_operands() {
    for (operator, is_known) in [("append", true), ("pile", false)] {
        let disk = Simulated::new();
        let (store, space) = store(&disk, operator);
        for key in [b"k", b"l", b"m"] {
            set(&store, &space, key, b"0");
        }
        store.flush_all().unwrap();
        merge(&store, &space, b"k", b"1");
        store.flush_all().unwrap();
        merge(&store, &space, b"k", b"2");
        merge(&store, &space, b"l", b"3");
        store.sync().unwrap();
        let to = Simulated::new();
        let from = super::world::on(&disk.kill()).unwrap();
        let copied =
            salvage::copy(from, super::world::on(&to).unwrap(), None, &mut |_| ControlFlow::Continue(()));
        let lost: Vec<_> = copied.unwrap().lost.into_iter().map(|loss| loss.half_open().0).collect();
        let (store, space) = self::store(&to, operator);
        let found = [b"k", b"l", b"m"].map(|key| get(&store, &space, key).unwrap());
        if is_known {
            assert_eq!((lost.len(), found), (0, [b"012".to_vec(), b"03".to_vec(), b"0".to_vec()]));
        } else {
            assert_eq!(lost, [b"k".to_vec(), b"k".to_vec(), b"l".to_vec()]);
            assert_eq!(found, [b"0".to_vec(), b"0".to_vec(), b"0".to_vec()]);
        }
    }
}

/// If a table is lost, what operands make of older values is a value that their key never had.
#[test]
pub(super) fn salvage_leaves_what_is_uncertain() {
    let disk = Simulated::new();
    let (store, space) = store(&disk, "append");
    set(&store, &space, b"k", b"0");
    store.flush_all().unwrap();
    let first = disk.files().into_iter().find(|(name, _)| name.kind == Kind::Table).unwrap().0;
    merge(&store, &space, b"k", b"1");
    store.flush_all().unwrap();
    merge(&store, &space, b"k", b"2");
    store.sync().unwrap();
    let damaged = disk.kill();
    damaged.remove(first);
    let (to, from) = (Simulated::new(), super::world::on(&damaged).unwrap());
    let new = super::world::on(&to).unwrap();
    let copied = salvage::copy(from, new, None, &mut |_| ControlFlow::Continue(())).unwrap();
    let (store, space) = self::store(&to, "append");
    assert_eq!(get(&store, &space, b"k"), None);
    let whole = |at: usize| copied.lost[at].half_open() == (Vec::new(), None);
    assert!(whole(0) && copied.lost.len() == 3, "{:?}", copied.lost);
}

/// What reads cost where a key has operands, and what merges cost: run by hand, in a directory.
#[test]
#[ignore = "it prints figures, and takes minutes"]
fn what_merges_cost() {
    const KEYS: u32 = 1_000_000;
    println!("merges | pages read for each | us for each | with its part of flushes and merges of tables");
    for history in [true, false] {
        let directory = tempfile::tempdir().expect("a directory");
        let sizes = Options { cache_bytes: 4 << 20, memtable_bytes: 32 << 20, history, ..Options::default() };
        let disk = Real::open(&directory.path().join("store"), &sizes).expect("a new directory");
        let store = Handle::open_unattended(Sealed::plain(disk), &sizes).expect("a store");
        let space = store.keyspace("default").unwrap();
        store.choose_operator(&space, "sum").unwrap();
        // In an order that is none.
        let key = |number: u32| (u64::from(number.wrapping_mul(0x9E37_79B1)) << 8).to_be_bytes();
        let one = 1_i64.to_be_bytes();
        for number in 0..KEYS {
            let (key, value) = (key(number), u64::from(number).to_be_bytes());
            store.apply(&space, Op::Set { key: &key, value: &value }).unwrap();
            while number % 1000 == 0 && store.step().unwrap() {}
        }
        store.compact().unwrap();
        let before = store.metrics().unwrap();
        let begin = std::time::Instant::now();
        let mut flushed = std::time::Duration::ZERO;
        let merges = KEYS / 4;
        for number in 0..merges {
            let key = key(number.wrapping_mul(7) % KEYS);
            store.apply(&space, Op::Merge { key: &key, operand: &one }).unwrap();
            let from = std::time::Instant::now();
            while number % 1000 == 0 && store.step().unwrap() {}
            flushed += from.elapsed();
        }
        let took = begin.elapsed();
        let after = store.metrics().unwrap();
        let each = |took: std::time::Duration| took.as_secs_f64() * 1e6 / f64::from(merges);
        let pages = (after.cache_misses - before.cache_misses) as f64 / f64::from(merges);
        let how = if history { "with a read" } else { "stored" };
        println!("{how} | {pages:.3} | {:.2} | {:.2}", each(took - flushed), each(took));
    }
}

/// A reader beside the writer still has a value in memory that had expired when an operand came, and left the tables.
#[test]
fn an_expired_value_is_no_base() {
    let disk = Simulated::new();
    let sizes = Options { memtable_bytes: 1 << 20, ..options(Durability::Buffered) };
    let (store, space) = opened(&disk, "append", sizes.clone());
    disk.set_now_ms(1000);
    set(&store, &space, b"l", b"0");
    let expires = Expires::At(2000);
    store.apply(&space, Op::SetUntil { key: &b"k"[..], value: &b"0"[..], expires }).unwrap();
    store.sync().unwrap();
    let reader = Options { read_only: true, ..sizes };
    let beside = Handle::open_unattended(super::world::sealed(&disk, &reader).unwrap(), &reader).unwrap();
    let seen = || get(&beside, &beside.keyspace("default").unwrap(), b"k");
    assert_eq!(seen(), Some(b"0".to_vec()));
    disk.set_now_ms(3000);
    store.flush_all().unwrap();
    merge(&store, &space, b"k", b"1");
    assert_eq!(with_operands(&store), [0, 1]);
    store.sync().unwrap();
    crate::recover::refresh(&beside).unwrap();
    assert_eq!((seen(), get(&store, &space, b"k")), (Some(b"1".to_vec()), Some(b"1".to_vec())));
}

/// A replay that has no room for a list of operands puts the new one alone in the next memtable.
#[test]
pub(super) fn a_replay_doubles_no_operands() {
    let disk = Simulated::new();
    let memtable_bytes = 16 << 20;
    let sizes = Options { memtable_bytes, batch_bytes_max: 1, ..options(Durability::Buffered) };
    let open = || opened(&disk, "append", Options { memory_bytes: None, ..sizes.clone() });
    let (store, space) = open();
    set(&store, &space, b"k", b"_");
    store.flush_all().unwrap();
    let mut expected = b"_".to_vec();
    for letter in b'a'..b'd' {
        merge(&store, &space, b"k", &[letter; 1000]);
        expected.extend([letter; 1000]);
    }
    let memtable = store.version().memtable.clone();
    for number in 0_u32.. {
        let left = memtable_bytes - memtable.bytes();
        if left <= 1500 {
            break;
        }
        set(&store, &space, &number.to_be_bytes(), &vec![b'.'; if left > 20_000 { 10_000 } else { 100 }]);
    }
    assert!(Arc::ptr_eq(&memtable, &store.version().memtable), "there is little room, and some");
    merge(&store, &space, b"k", b"!");
    expected.extend(b"!");
    store.sync().unwrap();
    drop((memtable, store, space));
    let (store, space) = open();
    assert_eq!(get(&store, &space, b"k"), Some(expected));
}

/// Appends, and panics for some: for an operand `panic` at a value `bad`, and to combine `x` and `y`.
struct Picky;

impl MergeOperator for Picky {
    fn name(&self) -> &str {
        "picky"
    }

    fn merge(&self, _key: &[u8], old: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
        assert!(operand != b"panic" || old != Some(b"bad"), "what it is not made for");
        [old.unwrap_or_default(), operand].concat()
    }

    fn combine(&self, _key: &[u8], first: &[u8], then: &[u8]) -> Option<Vec<u8>> {
        assert!((first, then) != (b"x", b"y"), "what it cannot combine");
        None
    }
}

fn picky(disk: &Simulated) -> (Store, Arc<Space>) {
    let mut options =
        Options { memtable_bytes: 1 << 20, table_bytes: 16 << 20, ..options(Durability::Buffered) };
    options.operators.add(Arc::new(Picky));
    opened(disk, "picky", options)
}

/// Operands that cannot be applied fail the reads of their key. The store goes on, and the key can be deleted.
#[test]
pub(super) fn operands_that_panic_fail_their_key() {
    for is_in_tables in [false, true] {
        let disk = Simulated::new();
        let (store, space) = picky(&disk);
        set(&store, &space, b"k", b"bad");
        store.flush_all().unwrap();
        merge(&store, &space, b"k", b"panic");
        if is_in_tables {
            store.flush_all().unwrap();
        }
        let view = store.view(&space);
        assert_eq!(view.get(b"k").unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert!(view.contains(b"k").unwrap());
        assert_eq!(view.count(Bound::Unbounded, Bound::Unbounded).unwrap(), 1);
        drop(view);
        let error = store.compact().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("operands of merges in tables cannot be applied"), "{error}");
        for number in 0..60_u8 {
            set(&store, &space, &[b'l', number], b"1");
            store.flush_all().unwrap();
        }
        drop((store, space));
        let (store, space) = picky(&disk);
        assert_eq!(get(&store, &space, b"l\x03").as_deref(), Some(&b"1"[..]));
        assert_eq!(store.apply(&space, Op::Delete { key: b"k" }).unwrap(), Outcome::Deleted(true));
        store.compact().unwrap();
        assert_eq!(get(&store, &space, b"k"), None);
        store.verify().unwrap();
    }
}

/// Operands whose combination panics stay apart, in a recovery and where tables are merged.
#[test]
fn operands_that_cannot_be_combined_stay_apart() {
    for is_in_tables in [false, true] {
        let disk = Simulated::new();
        let (store, space) = picky(&disk);
        for number in 0..4000_u32 {
            set(&store, &space, &number.to_be_bytes(), &[b'.'; 50]);
        }
        set(&store, &space, b"k", b"_");
        store.flush_all().unwrap();
        for operand in [b"x", b"y"] {
            merge(&store, &space, b"k", operand);
            store.freeze(&mut store.order()).unwrap();
        }
        if is_in_tables {
            for number in 0..60_u8 {
                set(&store, &space, &[b'l', number], b"");
                store.flush_all().unwrap();
            }
        }
        store.sync().unwrap();
        drop((store, space));
        let (store, space) = picky(&disk);
        assert_eq!(get(&store, &space, b"k").as_deref(), Some(&b"_xy"[..]));
    }
}

/// A store that appends, with a table of a few long values; and its options.
fn with_a_table(disk: &Simulated) -> (Store, Arc<Space>, Options) {
    let sizes = Options { memtable_bytes: 1 << 20, ..options(Durability::Buffered) };
    let (store, space) = opened(disk, "append", sizes.clone());
    for key in [b"j", b"k", b"l"] {
        set(&store, &space, key, &[b'.'; 3000]);
    }
    store.flush_all().unwrap();
    (store, space, sizes)
}

/// A list of operands that is damaged under a good checksum is found by `verify`, and errors name its table.
#[test]
pub(super) fn a_forged_list_is_found() {
    let disk = Simulated::new();
    let (store, space, sizes) = with_a_table(&disk);
    merge(&store, &space, b"k", b"ABCDEFGH");
    merge(&store, &space, b"l", b"1");
    store.flush_all().unwrap();
    store.sync().unwrap();
    drop((store, space));
    let (mut files, list) = (disk.files(), b"\x02\x08ABCDEFGH");
    for (name, bytes) in files.iter_mut().filter(|(name, _)| name.kind == Kind::Table) {
        let Some(at) = bytes.windows(list.len()).position(|some| some == list) else { continue };
        bytes[at + 1] = 0x28;
        let last = bytes.len() / page::BYTES - 1;
        for (number, page) in bytes.chunks_exact_mut(page::BYTES).enumerate() {
            page::seal(page, *name, number as u64 | if number == last { page::LAST } else { 0 });
        }
    }
    let (store, space) = opened(&Simulated::from_files(files), "append", sizes);
    let errors = [
        store.view(&space).get(b"k").map(drop).unwrap_err(),
        store.verify().map(drop).unwrap_err(),
        store.compact().unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(".table at offset"), "{error}");
    }
}

/// The footer of a table says whether some entries have operands: where it lies, under a good checksum, reads would not
/// apply them. `verify` finds that, in both directions.
#[test]
fn a_forged_mark_of_operands_is_found() {
    for has_some in [true, false] {
        let disk = Simulated::new();
        let (store, space, sizes) = with_a_table(&disk);
        let expires = Expires::At(u64::MAX);
        match has_some {
            true => merge(&store, &space, b"k", b"ABCDEFGH"),
            false => {
                drop(store.apply(&space, Op::SetUntil { key: &b"k"[..], value: &b"0"[..], expires }).unwrap())
            }
        }
        store.flush_all().unwrap();
        store.verify().unwrap();
        assert_eq!(with_operands(&store), [usize::from(has_some), 0]);
        drop((store, space));
        let mut files = disk.files();
        let tables = files.iter_mut().filter(|(name, _)| name.kind == Kind::Table);
        let (name, bytes) = tables.max_by_key(|(name, _)| name.number).expect("a table");
        // The features are the last 8 bytes of the footer, before the checksum of the page.
        let last = bytes.len() / page::BYTES - 1;
        let page = &mut bytes[last * page::BYTES..];
        page[page::PAYLOAD - 8] ^= 8;
        page::seal(page, *name, last as u64 | page::LAST);
        let (store, _space) = opened(&Simulated::from_files(files), "append", sizes);
        let error = store.verify().map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        let what =
            if has_some { "and its footer says that none has" } else { "and its footer says that some have" };
        let message = error.to_string();
        assert!(message.contains(".table at offset") && message.contains(what), "{message}");
    }
}

/// The log has room for operands if it has room for as short values, however long the lists are that a memtable gets.
#[test]
fn operands_need_no_more_of_the_log_than_they_have() {
    for merges in [true, false] {
        let disk = Simulated::new();
        let sizes =
            Options { memtable_bytes: 16 << 20, batch_bytes_max: 1 << 20, ..options(Durability::Buffered) };
        let (store, space) = opened(&disk, "append", Options { memory_bytes: None, ..sizes });
        set(&store, &space, b"k", b"_");
        store.flush_all().unwrap();
        let keys: Vec<_> = (0..500_u32).map(u32::to_be_bytes).collect();
        for key in &keys {
            (0..4).for_each(|_| merge(&store, &space, key, &[b'x'; 1000]));
        }
        store.sync().unwrap();
        let used: u64 = disk.files().iter().map(|(_, bytes)| bytes.len() as u64).sum();
        disk.set_capacity(Some(used + (1 << 20)));
        let op = |key| match merges {
            true => Op::Merge { key, operand: &b"y"[..] },
            false => Op::Set { key, value: &b"y"[..] },
        };
        let ops: Vec<_> = keys.iter().map(|key| (&space, op(&key[..]))).collect();
        let _no_condition = store.write(&ops, None).unwrap();
    }
}

/// A filter is not asked about a value to which operands in memory are to be applied, also if they were there before
/// the filter.
#[test]
fn a_filter_sees_no_value_without_its_operands() {
    for is_given_later in [false, true] {
        let decide = |_: &str, _: &[u8], value: &[u8]| match value {
            b"draft" => Verdict::Drop,
            _ => Verdict::Keep,
        };
        let filter = Some(Filter::new(decide));
        let plain = Options { memtable_bytes: 1 << 20, ..options(Durability::Buffered) };
        let filtered = Options { filter, ..plain.clone() };
        let disk = Simulated::new();
        let first = if is_given_later { &plain } else { &filtered };
        let (mut store, mut space) = opened(&disk, "append", first.clone());
        // An ingest is not filtered.
        let mut ingest = Box::new(Ingest::begin(&store, &space).unwrap());
        ingest.put(b"k", b"draft").unwrap();
        (0..200_u8).for_each(|number| ingest.put(&[b'l', number], &[b'.'; 30]).unwrap());
        ingest.finish().unwrap();
        for number in 0..150_u8 {
            store.apply(&space, Op::Delete { key: &[b'l', number] }).unwrap();
        }
        store.flush_all().unwrap();
        merge(&store, &space, b"k", b", signed");
        assert_eq!(with_operands(&store)[1], usize::from(is_given_later));
        if is_given_later {
            store.sync().unwrap();
            drop((space, store));
            (store, space) = opened(&disk, "append", filtered);
        }
        // What is dead is known once the order over the tables is.
        assert_eq!(store.view(&space).count(Bound::Unbounded, Bound::Unbounded).unwrap(), 51);
        assert!(store.compact_dead().unwrap(), "there is something to merge");
        assert_eq!(get(&store, &space, b"k").as_deref(), Some(&b"draft, signed"[..]));
    }
}
