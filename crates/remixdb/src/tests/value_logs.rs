//! Large values of ingests, in logs of their own: written once, whole after power cuts, gone with an ingest that does
//! not end, and given back as those of other logs.

use super::world::{Step, options, salvaged_to, seeds, with_large};
use super::{crash, ingest};
use crate::core::Handle;
use crate::disk::simulated::Simulated;
use crate::disk::{Kind, Name, Sealed};
use crate::ingest::Ingest;
use forrest_base::random::Random;
use forrest_engine::{Compression, Durability, ErrorKind, Ingest as _, Op, Options, Result, View as _};
use forrest_testing::sized;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Range};
use std::time::Duration;

type Store = Handle;

fn sizes(memtable_bytes: usize) -> Options {
    Options { memtable_bytes, table_bytes: 1 << 20, ..with_large(|| options(Durability::Buffered)) }
}

fn open(disk: &Simulated, options: &Options) -> Store {
    Handle::open_unattended(Sealed::plain(disk.clone()), options).expect("it opens")
}

/// What no method makes smaller.
fn value(number: u64, len: usize) -> Vec<u8> {
    let mut random = Random(number);
    (0..len).map(|_| random.next() as u8).collect()
}

/// An ingest that has these keys, each with a value of its own.
fn begun(store: &Store, keys: Range<u32>, len: usize) -> Box<Ingest> {
    let mut ingest = Box::new(Ingest::begin(store, &store.keyspace("default").unwrap()).expect("it begins"));
    for key in keys {
        ingest.put(&key.to_be_bytes(), &value(key.into(), len)).expect("it is put");
    }
    ingest
}

fn ingest_keys(store: &Store, keys: Range<u32>, len: usize) {
    begun(store, keys, len).finish().expect("it ends");
}

fn set(store: &Store, key: u32, value: &[u8]) {
    let space = store.keyspace("default").expect("it is there");
    store.apply(&space, Op::Set { key: &key.to_be_bytes(), value }).expect("it is set");
}

fn get(store: &Store, key: u32) -> Result<Option<Vec<u8>>> {
    let view = store.view(&store.keyspace("default")?);
    Ok(view.get(&key.to_be_bytes())?.map(|value| value.to_vec()))
}

/// The logs that are kept for values.
fn kept(store: &Handle) -> BTreeSet<u64> {
    store.version().logs.keys().copied().collect()
}

fn log_bytes(store: &Store) -> u64 {
    store.version().logs.values().map(|log| log.bytes).sum()
}

/// The logs that are there.
fn logs(disk: &Simulated) -> BTreeSet<u64> {
    let logs = disk.files().into_iter().filter(|(name, _)| name.kind == Kind::Log);
    logs.map(|(name, _)| name.number).collect()
}

/// Values are written once, by the ingest, and not by merges of its tables.
pub(super) fn written_once() {
    const KEYS: u32 = 400;
    const LEN: usize = 16 << 10;
    let disk = Simulated::new();
    let store = open(&disk, &sizes(1 << 20));
    let before = disk.bytes_written();
    ingest_keys(&store, 0..KEYS, LEN);
    let (bytes, written) = (u64::from(KEYS) * LEN as u64, disk.bytes_written() - before);
    assert!(written * 100 <= bytes * 105, "{written} bytes are written for {bytes}");
    assert!(kept(&store).len() > 4, "{:?}: each has about as much as a memtable", kept(&store));
    // Keys between the others make further tables of the partitions, which are merged.
    for key in 0..KEYS {
        let space = store.keyspace("default").unwrap();
        let key = [&key.to_be_bytes()[..], b"+"].concat();
        store.apply(&space, Op::Set { key: &key, value: b"small" }).unwrap();
    }
    let before = disk.bytes_written();
    store.compact().expect("it works");
    let written = disk.bytes_written() - before;
    assert!(
        written * 20 <= bytes,
        "a merge has written {written} bytes, of {bytes} that stay where they are"
    );
    let stats = store.stats().expect("there are some");
    assert_eq!((stats.value_log_bytes, stats.value_log_live_bytes / bytes), (log_bytes(&store), 1));
    for store in [store, open(&disk.kill(), &sizes(1 << 20))] {
        store.verify().expect("all is right");
        for key in 0..KEYS {
            assert_eq!(get(&store, key).unwrap(), Some(value(key.into(), LEN)), "{key}");
        }
    }
}

#[test]
fn values_of_an_ingest_are_written_once() {
    written_once();
}

/// What is in tables as before: small values, those of a compressed keyspace and of one with a merge operator, and all
/// of them without the option. Values that expire are in logs too.
#[test]
fn some_values_stay_in_tables() {
    let store = open(&Simulated::new(), &sizes(1 << 20));
    ingest_keys(&store, 0..9, 63);
    for (name, choose) in [("packed", true), ("merged", false)] {
        let space = store.keyspace(name).unwrap();
        match choose {
            true => store.choose_compression(&space, Compression::Lz4).unwrap(),
            false => store.choose_operator(&space, "append").unwrap(),
        }
        let mut ingest = Box::new(Ingest::begin(&store, &space).unwrap());
        ingest.put(b"k", &[1; 5000]).unwrap();
        ingest.finish().unwrap();
        assert_eq!(store.view(&space).get(b"k").unwrap().map(|value| value.to_vec()), Some(vec![1; 5000]));
    }
    let all = open(&Simulated::new(), &Options { large_values: 0, ..sizes(1 << 20) });
    ingest_keys(&all, 0..9, 5000);
    assert_eq!((kept(&store).len(), kept(&all).len()), (0, 0));
    let space = store.keyspace("short").unwrap();
    store.choose_ttl(&space, Some(Duration::from_secs(1000))).unwrap();
    let mut ingest = Box::new(Ingest::begin(&store, &space).unwrap());
    ingest.put(b"k", &[1; 5000]).unwrap();
    ingest.put(b"l", b"small").unwrap();
    ingest.finish().unwrap();
    assert_eq!(kept(&store).len(), 1);
    store.verify().unwrap();
    let view = store.view(&space);
    assert_eq!(view.get(b"k").unwrap().map(|value| value.to_vec()), Some(vec![1; 5000]));
    assert!(view.expires_ms(b"k").unwrap().flatten().is_some(), "it expires");
}

/// Random work with ingests of values that stay in logs, power cuts and failures.
#[test]
fn ingests_agree_with_the_model() {
    with_large(|| ingest::after_random_work(seeds(12, 100)));
}

pub(super) fn power_cuts(seeds: Range<u64>) -> u64 {
    with_large(|| ingest::after_power_cuts(seeds))
}

#[test]
fn a_power_cut_leaves_all_values_or_none() {
    assert!(power_cuts(seeds(1, 3)) > 100);
}

/// Around an ingest of long values alone, where each I/O counts.
pub(super) fn cuts_around_one() -> u64 {
    with_large(|| {
        let ingest = |from: u8| {
            Step::Ingest("default", (from..from + 12).collect(), 200, vec![Step::Set("default", 1, 90)])
        };
        let steps =
            [Step::Set("default", 3, 100), ingest(0), Step::Set("default", 5, 9), ingest(6), Step::Flush];
        crash::crash_everywhere("ingests", &steps, Durability::Buffered, 1)
    })
}

#[test]
fn a_power_cut_around_an_ingest_of_long_values_loses_nothing() {
    assert!(cuts_around_one() > 100);
}

#[test]
fn any_io_may_fail() {
    with_large(|| ingest::failing_io(seeds(1, 2), sized(7, 3)));
}

/// The logs of an ingest belong to it while it lives, whatever the store removes meanwhile, and go with it: at once if
/// it is dropped, with the first change if the process dies.
pub(super) fn nothing_is_left() {
    let (disk, options) = (Simulated::new(), sizes(4 << 10));
    let store = open(&disk, &options);
    set(&store, 1000, b"before");
    let ingest = begun(&store, 0..40, 1000);
    let own: BTreeSet<u64> = lock_ingested(&store).intersection(&logs(&disk)).copied().collect();
    assert!(own.len() > 6, "{own:?}");
    // What flushes remove: the logs before the floor.
    for round in 0..3 {
        set(&store, 1001 + round, b"meanwhile");
        store.flush_all().unwrap();
    }
    assert!(own.is_subset(&logs(&disk)), "logs of an ingest were removed: {own:?}");
    store.verify().expect("what an ingest writes is not looked at");
    let killed = disk.kill();
    drop(ingest);
    assert!(own.is_disjoint(&logs(&disk)) && lock_ingested(&store).is_empty());
    assert_eq!(get(&store, 1001).unwrap(), Some(b"meanwhile".to_vec()));
    let again = open(&killed, &options);
    assert!(own.is_subset(&logs(&killed)), "opening removes nothing");
    set(&again, 1010, b"first");
    while again.step().unwrap() {}
    again.remove_waiting().unwrap();
    assert!(own.is_disjoint(&logs(&killed)), "{own:?} of {:?}", logs(&killed));
    assert_eq!((get(&again, 0).unwrap(), get(&again, 1010).unwrap()), (None, Some(b"first".to_vec())));
    // One that ends keeps them.
    let ingest = begun(&store, 0..40, 1000);
    store.flush_all().unwrap();
    ingest.finish().unwrap();
    assert!(lock_ingested(&store).is_empty() && kept(&store).len() > 6);
    for round in 0..3 {
        set(&store, 1001 + round, b"after");
        store.flush_all().unwrap();
    }
    assert!(kept(&store).is_subset(&logs(&disk)));
    (0..40).for_each(|key| assert_eq!(get(&store, key).unwrap(), Some(value(key.into(), 1000))));
}

fn lock_ingested(store: &Store) -> BTreeSet<u64> {
    forrest_base::lock(&store.ingested).clone()
}

#[test]
fn an_ingest_leaves_no_logs() {
    nothing_is_left();
}

/// The space of values that were replaced or deleted comes back, also where nothing else is in logs.
pub(super) fn space_comes_back() {
    const KEYS: u32 = 96;
    const LEN: usize = 1000;
    let store = open(&Simulated::new(), &sizes(8 << 10));
    ingest_keys(&store, 0..KEYS, LEN);
    let live = u64::from(KEYS) * LEN as u64;
    let first = kept(&store);
    let (mut random, mut map, mut most) = (Random(7), BTreeMap::new(), 0);
    for number in 0..sized(1500, 10_000) {
        let key = random.below(KEYS.into()) as u32;
        map.insert(key, 1000 + number);
        set(&store, key, &value(1000 + number, LEN));
        while store.step().unwrap() {}
        most = most.max(log_bytes(&store));
    }
    assert!(most <= live * 3 / 2 + 4 * (8 << 10), "{most} bytes for {live}");
    assert!(first.is_disjoint(&kept(&store)), "the first logs are given up");
    for key in 0..KEYS {
        let number = map.get(&key).copied().unwrap_or(key.into());
        assert_eq!(get(&store, key).unwrap(), Some(value(number, LEN)));
    }
    store.verify().unwrap();
    let space = store.keyspace("default").unwrap();
    store.apply(&space, Op::DeleteRange { start: &[][..], end: None }).unwrap();
    store.compact().unwrap();
    while store.step().unwrap() {}
    // Logs may have one memtable more than what is live.
    assert!(log_bytes(&store) <= 8 << 10, "{} bytes", log_bytes(&store));
}

#[test]
fn space_of_ingested_values_comes_back() {
    space_comes_back();
}

/// Each byte of a log of values damaged: the reads of its values fail or are right, and `verify` finds it.
#[test]
fn damage_is_reported() {
    let (disk, options) = (Simulated::new(), sizes(1 << 20));
    let store = open(&disk, &options);
    ingest_keys(&store, 0..6, 300);
    store.flush_all().unwrap();
    let log = Name::log(*kept(&store).first().expect("there is one"));
    drop(store);
    let files = disk.files();
    let length = files.iter().find(|(name, _)| *name == log).expect("it is there").1.len();
    let check = |damaged: Simulated, what: &str| {
        let store = open(&damaged, &options);
        let mut errors = 0;
        for key in 0..6 {
            match get(&store, key) {
                Ok(found) => assert_eq!(found, Some(value(key.into(), 300)), "{what}"),
                Err(error) => {
                    assert!(
                        error.kind() == ErrorKind::Corrupt && error.to_string().contains(&log.to_string()),
                        "{error}"
                    );
                    errors += 1;
                }
            }
        }
        let error = store.verify().expect_err(what);
        assert!(
            error.kind() == ErrorKind::Corrupt && error.to_string().contains(&log.to_string()),
            "{error}"
        );
        // The keys are known without it.
        assert_eq!(
            store
                .view(&store.keyspace("default").unwrap())
                .count(Bound::Unbounded, Bound::Unbounded)
                .unwrap(),
            6,
            "{what}"
        );
        errors
    };
    let mut errors = 0;
    for at in (0..length).step_by(sized(3, 1)) {
        let damaged = Simulated::from_files(files.clone());
        damaged.flip(log, at, (at % 8) as u32);
        errors += check(damaged, &format!("a flip at {at}"));
    }
    assert!(errors > 500 / sized(3, 1), "{errors}");
    for len in (0..length).step_by(31) {
        let mut cut = files.clone();
        cut.iter_mut().filter(|(name, _)| *name == log).for_each(|(_, bytes)| bytes.truncate(len));
        assert!(check(Simulated::from_files(cut), &format!("cut at {len}")) > 0);
    }
    let without = files.iter().filter(|(name, _)| *name != log).cloned().collect::<Vec<_>>();
    assert_eq!(check(Simulated::from_files(without), "without it"), 6);
}

/// A salvage copies the values of ingests that ended, and nothing of one that did not, also if the log from which a
/// recovery would go on is damaged.
#[test]
fn salvage_copies_what_was_added() {
    let (disk, options) = (Simulated::new(), sizes(4 << 10));
    let store = open(&disk, &options);
    ingest_keys(&store, 0..20, 500);
    let ingest = begun(&store, 100..140, 500);
    set(&store, 50, b"set");
    store.sync().unwrap();
    let newest = Name::log(store.log().newest());
    let files = disk.files();
    drop((ingest, store));
    for is_damaged in [false, true] {
        let from = Simulated::from_files(files.clone());
        if is_damaged {
            // The header: which log is before this one is not known.
            from.flip(newest, 30, 1);
        }
        let to = Simulated::new();
        let salvaged = salvaged_to(from, &to).unwrap();
        assert_eq!((salvaged.pairs, salvaged.lost.is_empty()), (21, !is_damaged), "{:?}", salvaged.lost);
        let store = open(&to, &options);
        (0..20).for_each(|key| assert_eq!(get(&store, key).unwrap(), Some(value(key.into(), 500))));
        assert_eq!(get(&store, 100).unwrap(), None);
    }
}

/// A reader in another process opens the store while an ingest writes, and finds its values after it.
#[test]
fn a_reader_beside_finds_the_values() {
    let (disk, options) = (Simulated::new(), sizes(4 << 10));
    let store = open(&disk, &options);
    set(&store, 50, b"set");
    let ingest = begun(&store, 0..40, 500);
    let reading = Options { read_only: true, ..options };
    let reader = open(&disk, &reading);
    assert_eq!((get(&reader, 50).unwrap(), get(&reader, 0).unwrap()), (Some(b"set".to_vec()), None));
    ingest.finish().unwrap();
    crate::recover::refresh(&reader).unwrap();
    for reader in [reader, open(&disk, &reading)] {
        (0..40).for_each(|key| assert_eq!(get(&reader, key).unwrap(), Some(value(key.into(), 500))));
    }
}

#[test]
fn copies_have_the_logs() {
    let (disk, options) = (Simulated::new(), sizes(4 << 10));
    let store = open(&disk, &options);
    ingest_keys(&store, 0..40, 500);
    let to = Simulated::new();
    store.checkpoint(Sealed::plain(to.clone())).unwrap();
    let copy = open(&to, &options);
    copy.verify().unwrap();
    ingest_keys(&copy, 30..60, 600);
    (0..30).for_each(|key| assert_eq!(get(&copy, key).unwrap(), Some(value(key.into(), 500))));
    (30..60).for_each(|key| assert_eq!(get(&copy, key).unwrap(), Some(value(key.into(), 600))));
    copy.verify().unwrap();
}

/// What is written for each byte when values of 16 KiB are ingested, and then overwritten uniformly: run by hand. The
/// ingest without logs is what it did before.
#[test]
#[ignore = "it prints figures, and takes a minute"]
fn what_is_written() {
    const KEYS: u32 = 2048;
    const LEN: usize = 16 << 10;
    println!(
        "ingest | the load | the first overwrites | further ones | all | bytes of files for each live one"
    );
    for is_before in [true, false] {
        let disk = Simulated::new();
        let large = Options {
            memtable_bytes: 4 << 20,
            cache_bytes: 64 << 20,
            table_bytes: 64 << 20,
            large_values: 4096,
            ..options(Durability::Buffered)
        };
        let first = Options { large_values: if is_before { 0 } else { 4096 }, ..large.clone() };
        let store = open(&disk, &first);
        ingest_keys(&store, 0..KEYS, LEN);
        drop(store);
        let bytes = |count: u32| f64::from(count) * LEN as f64;
        let loaded = disk.bytes_written();
        let store = open(&disk, &large);
        let mut random = Random(1);
        let mut overwrite = |count: u32| {
            let before = disk.bytes_written();
            for number in 0..count {
                set(&store, random.below(KEYS.into()) as u32, &value(u64::from(number), LEN));
                while store.step().unwrap() {}
            }
            (disk.bytes_written() - before) as f64
        };
        let (once, more) = (overwrite(KEYS), overwrite(2 * KEYS));
        let files: usize = disk.files().iter().map(|(_, bytes)| bytes.len()).sum();
        println!(
            "{} | {:.3} | {:.3} | {:.3} | {:.3} | {:.2}",
            if is_before { "tables" } else { "logs" },
            loaded as f64 / bytes(KEYS),
            once / bytes(KEYS),
            more / bytes(2 * KEYS),
            (loaded as f64 + once + more) / bytes(4 * KEYS),
            files as f64 / bytes(KEYS)
        );
    }
}
