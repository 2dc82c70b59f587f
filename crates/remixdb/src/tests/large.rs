//! Values that stay in the log: random work, crashes, failures and damage, and what their logs take.

use super::backup;
use super::changes;
use super::checkpoint;
use super::crash;
use super::damage;
use super::faults::{FAILURES, failing_io};
use super::world::{
    World, beginning, expiring, follow, ingest_steps, options, options_of, salvaged_to, seeds, steps,
    wide_steps, with_large,
};
use super::{beside, conformance, resume};
use crate::core::Handle;
use crate::disk::simulated::{Simulated, Watch};
use crate::disk::{Kind, Name, Real, Sealed};
use forrest_base::random::Random;
use forrest_engine::{
    Compression, Durability, ErrorKind, Expires, Filter, Op, Options, Pieces, Snapshot as _, Verdict,
    View as _,
};
use forrest_testing::sized;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// The numbers of the logs that a store keeps for values.
fn kept(world: &World) -> BTreeSet<u64> {
    world.store.version().logs.keys().copied().collect()
}

/// Random work: the store has what a map has, also when it is opened again. Returns the numbers of logs that were kept
/// and that were given up.
fn after_random_work(seeds: Range<u64>) -> (usize, usize) {
    let (mut logs, mut gone) = (BTreeSet::new(), 0);
    for seed in seeds {
        let options = Options { history: seed % 3 == 1, ..options_of(seed, Durability::Buffered) };
        let disk = Simulated::new();
        let mut world = World::open(&disk, &options).expect("it opens");
        let mut states = beginning();
        let work = match seed % 4 {
            0 => steps(seed, 120),
            1 => ingest_steps(seed, 60),
            2 => expiring(seed, steps(seed, 80)),
            _ => wide_steps(seed, 60),
        };
        let mut before = BTreeSet::new();
        for (at, step) in work.iter().enumerate() {
            follow(&mut states, step);
            world.run(step).unwrap_or_else(|error| panic!("seed {seed}, step {at}, {step:?}: {error}"));
            let what = format!("seed {seed}, after step {at}, {step:?}");
            assert_eq!(world.content().unwrap(), *states.last().unwrap(), "{what}");
            let now = kept(&world);
            gone += before.difference(&now).count();
            logs.extend(now.iter().map(|log| (seed, *log)));
            before = now;
            if at % 10 == 9 {
                world.store.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
                drop(world);
                world = World::open(&disk, &options).expect("it opens");
                let content = world.content().unwrap_or_else(|error| panic!("{what}, opened again: {error}"));
                assert_eq!(content, *states.last().unwrap(), "{what}, opened again");
            }
        }
    }
    (logs.len(), gone)
}

pub(super) fn random_work(seeds: Range<u64>) -> (usize, usize) {
    with_large(|| after_random_work(seeds))
}

pub(super) fn power_cuts(seeds: Range<u64>) -> u64 {
    with_large(|| crash::after_power_cuts(seeds))
}

pub(super) fn flipped_bits(seeds: Range<u64>, every: usize) {
    with_large(|| damage::flipped_bits(seeds, every));
}

#[test]
fn random_work_is_right() {
    let (logs, gone) = random_work(seeds(24, 200));
    assert!(logs > 5 && gone > 5, "{logs} logs were kept, and {gone} given up");
}

#[test]
fn it_conforms() {
    with_large(|| conformance::conforms(0..sized(6, 15)));
}

#[test]
fn power_may_be_cut_at_any_io() {
    assert!(power_cuts(seeds(1, 3)) > 100);
}

#[test]
fn a_power_cut_after_a_kill_loses_nothing() {
    assert!(with_large(|| crash::cuts_upon_kills(seeds(1, 2), sized(5, 3))) > 100);
}

#[test]
fn a_crash_upon_a_crash_loses_nothing() {
    assert!(with_large(|| crash::crashes_upon_crashes(seeds(1, 4), sized(4, 2))) > 100);
}

#[test]
fn any_io_may_fail() {
    with_large(|| failing_io(seeds(1, 1), &FAILURES, sized(7, 2)));
}

#[test]
fn any_bit_may_flip() {
    flipped_bits(seeds(1, 2), sized(5, 3));
}

#[test]
fn any_file_may_be_cut_or_missing() {
    with_large(|| damage::cut_and_missing_files(seeds(1, 3)));
}

#[test]
fn a_stopped_store_is_resumed() {
    assert!(with_large(|| resume::resumed(seeds(1, 2), sized(11, 3))) > 0);
}

#[test]
fn a_reader_beside_a_writer_sees_one_state() {
    with_large(|| beside::beside_a_writer(seeds(8, 40)));
}

#[test]
fn a_stream_has_no_moved_values() {
    with_large(|| changes::agree_with_the_model(seeds(8, 40)));
}

#[test]
fn backups_have_the_logs() {
    with_large(|| {
        backup::a_backup_is_the_store_at_that_moment();
        assert!(backup::power_cuts(seeds(1, 3)) > 100);
    });
}

#[test]
fn checkpoints_have_the_logs() {
    with_large(|| {
        checkpoint::a_checkpoint_is_the_store_at_that_moment();
        assert!(checkpoint::power_cuts(seeds(2, 4)) > 0);
    });
}

/// A store of values that are all in logs, without background work of its own.
fn sizes(memtable_bytes: usize) -> Options {
    Options { memtable_bytes, table_bytes: 1 << 20, ..with_large(|| options(Durability::Buffered)) }
}

fn set(store: &Handle, key: u32, value: &[u8]) {
    let space = store.keyspace("default").expect("it is there");
    store.apply(&space, Op::Set { key: &key.to_be_bytes(), value }).expect("it is set");
}

fn get(store: &Handle, key: u32) -> forrest_engine::Result<Option<Vec<u8>>> {
    let view = store.view(&store.keyspace("default")?);
    Ok(view.get(&key.to_be_bytes())?.map(|value| value.to_vec()))
}

/// What no method makes smaller.
fn value(number: u64, len: usize) -> Vec<u8> {
    let mut random = Random(number);
    (0..len).map(|_| random.next() as u8).collect()
}

/// The bytes of the logs that are kept, and those of all logs that are there.
fn log_bytes(store: &Handle) -> u64 {
    store.version().logs.values().map(|log| log.bytes).sum()
}

/// Uniform overwrites: what logs take stays near what is live, and what is written near what is changed.
pub(super) fn space_is_bounded() {
    const KEYS: u32 = 96;
    const LEN: usize = 1000;
    let memtable_bytes = 8 << 10;
    let store =
        Handle::open_unattended(Sealed::plain(Simulated::new()), &sizes(memtable_bytes)).expect("it opens");
    let (mut random, mut map) = (Random(7), BTreeMap::new());
    let live = u64::from(KEYS) * LEN as u64;
    let mut most = 0;
    for number in 0..sized(3000, 20_000) {
        let key = if number < KEYS.into() { number as u32 } else { random.below(KEYS.into()) as u32 };
        map.insert(key, value(number, LEN));
        set(&store, key, &map[&key]);
        while store.step().expect("it works") {}
        if number > 2 * u64::from(KEYS) {
            most = most.max(log_bytes(&store));
        }
    }
    // Two memtables: one whose log is the newest, and one of which the log was kept last.
    assert!(most <= live * 3 / 2 + 4 * memtable_bytes as u64, "{most} bytes for {live}");
    for (key, value) in &map {
        assert_eq!(get(&store, *key).unwrap().as_ref(), Some(value));
    }
    store.verify().expect("all is right");
    let (stats, metrics) = (store.stats().expect("there are some"), store.metrics().expect("there are some"));
    assert_eq!(stats.value_log_bytes, log_bytes(&store));
    let estimate = stats.value_log_live_bytes;
    assert!((live / 2..=live * 3 / 2).contains(&estimate), "{estimate} for {live}");
    let (passes, reads) = (metrics.value_passes, metrics.value_reads);
    assert!(passes.count > 10 && passes.bytes > live && passes.failed == 0, "{passes:?}");
    assert!(reads.count > 0 && reads.bytes == reads.count * LEN as u64, "{reads:?}");
    let written = metrics.log_writes.bytes + metrics.flushes.bytes + metrics.merges.bytes;
    let each = written as f64 / metrics.change_bytes as f64;
    // Tables are as small as a page here, and a REMIX as well.
    assert!(each < 3.5, "{each} bytes for each");
}

#[test]
fn what_logs_take_stays_near_what_is_live() {
    space_is_bounded();
}

/// A few large values are overwritten beside many small ones that stay, or that are overwritten too. What logs take
/// stays near what is live, although hardly any entry of the tables is dead, also when the store is opened again.
pub(super) fn space_is_bounded_beside_small_values() {
    const LARGE: u32 = 24;
    const SMALL: u32 = 3000;
    const LEN: usize = 1000;
    let memtable_bytes = 8 << 10;
    let live = u64::from(LARGE) * LEN as u64;
    for (seed, overwrites) in [(1, 0), (2, 5)] {
        let disk = Simulated::new();
        let open = || {
            Handle::open_unattended(Sealed::plain(disk.clone()), &sizes(memtable_bytes)).expect("it opens")
        };
        let (mut store, mut random, mut map) = (open(), Random(seed), BTreeMap::new());
        let (mut most, rounds) = (0, sized(1500, 4000));
        for number in 0..rounds {
            let large = u32::try_from(number % u64::from(LARGE)).expect("it is small");
            let small = if number == 0 { SMALL } else { overwrites };
            for at in 0..small {
                let at = if number == 0 { at } else { random.below(SMALL.into()) as u32 };
                map.insert(1000 * at + 7, value(number, 8));
                set(&store, 1000 * at + 7, &map[&(1000 * at + 7)]);
            }
            map.insert(100_000 * large, value(number, LEN));
            set(&store, 100_000 * large, &map[&(100_000 * large)]);
            while store.step().expect("it works") {}
            if number % 400 == 399 {
                drop(store);
                store = open();
            }
            if number > 100 {
                most = most.max(log_bytes(&store));
            }
        }
        for (key, value) in &map {
            assert_eq!(get(&store, *key).unwrap().as_ref(), Some(value));
        }
        store.verify().expect("all is right");
        assert!(most <= live * 3 / 2 + 4 * memtable_bytes as u64, "{most} bytes for {live}");
    }
}

#[test]
fn what_logs_take_has_a_bound_beside_small_values() {
    space_is_bounded_beside_small_values();
}

/// The logs of values that a range delete takes come back, though the delete is small and nothing more is written.
#[test]
fn a_range_delete_gives_logs_back() {
    let store = Handle::open_unattended(Sealed::plain(Simulated::new()), &sizes(64 << 10)).expect("it opens");
    for key in 0..100 {
        set(&store, key, &value(key.into(), 1000));
        while store.step().expect("it works") {}
    }
    store.flush_all().unwrap();
    assert!(log_bytes(&store) >= 100_000);
    let space = store.keyspace("default").unwrap();
    store.apply(&space, Op::DeleteRange { start: &[], end: None }).unwrap();
    while store.step().expect("it works") {}
    // Logs may have one memtable more than what is live.
    assert!(log_bytes(&store) <= 64 << 10, "{} bytes", log_bytes(&store));
}

/// Changes come as fast as memory takes them, so that memtables wait all the time: what logs take has a bound.
pub(super) fn space_is_bounded_without_rest() {
    const KEYS: u32 = 96;
    const LEN: usize = 1000;
    let memtable_bytes = 8 << 10;
    let store =
        Handle::open_unattended(Sealed::plain(Simulated::new()), &sizes(memtable_bytes)).expect("it opens");
    let (mut random, mut map) = (Random(8), BTreeMap::new());
    let live = u64::from(KEYS) * LEN as u64;
    let (mut most, mut written) = (0, 0);
    for number in 0..sized(3000, 20_000) {
        let key = if number < KEYS.into() { number as u32 } else { random.below(KEYS.into()) as u32 };
        map.insert(key, value(number, LEN));
        set(&store, key, &map[&key]);
        // As writers that wait for memory.
        while store.version().immutable.len() >= 3 {
            assert!(store.step().expect("it works"));
        }
        assert!(store.version().immutable.len() < 5, "moved values do not pile up in memory");
        written += LEN as u64;
        most = most.max(log_bytes(&store));
    }
    assert!(most <= live * 2 + 8 * memtable_bytes as u64, "{most} bytes for {live}; {written} were written");
    let passes = store.metrics().expect("there are some").value_passes;
    assert!(passes.bytes < written, "{} bytes were moved, and {written} written", passes.bytes);
    for (key, value) in &map {
        assert_eq!(get(&store, *key).unwrap().as_ref(), Some(value));
    }
}

/// Cause: while logs could be gone through, the background thread did nothing else, and reported no events.
#[test]
fn work_without_an_end_leaves_time_for_other_work() {
    let store = Handle::open_unattended(Sealed::plain(Simulated::new()), &sizes(64 << 10)).expect("it opens");
    // The logs of the first values have nothing that counts.
    for number in 0..400_u32 {
        set(&store, number % 200, &value(number.into(), 1_000));
        if number % 40 == 39 {
            store.flush_all().expect("it works");
        }
    }
    let mut turns = 0;
    while store.work_off() {
        turns += 1;
    }
    assert!(turns > 2, "{turns}");
    assert!(!store.step().expect("it works"), "all is done");
}

/// Cause: a pass read each record whole. So a store that was closed meanwhile read all of a value that was gone, and
/// had it in memory.
#[test]
fn closing_gives_up_a_pass_through_a_long_value() {
    const LONG: usize = 8 << 20;
    let disk = Simulated::new();
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), &sizes(64 << 10)).expect("it opens");
    set(&store, 1, &value(1, LONG));
    store.flush_all().expect("it works");
    assert_eq!(store.version().logs.len(), 1);
    let space = store.keyspace("default").expect("it is there");
    store.apply(&space, Op::Delete { key: &1_u32.to_be_bytes() }).expect("it is there");
    store.flush_all().expect("it works");
    let before = disk.bytes_read();
    store.work.close();
    let _given_up = store.step();
    assert!(disk.bytes_read() - before < LONG as u64 / 4, "{} bytes", disk.bytes_read() - before);
    store.work.end();
    while store.step().expect("it works") {}
    assert_eq!((store.version().logs.len(), get(&store, 1).expect("it reads")), (0, None));
}

/// Values that are longer than what a pass has of a record in memory, in one record, of which some are gone.
#[test]
fn long_values_of_one_record_are_moved() {
    const LONG: usize = 3 << 20;
    let store = Handle::open_unattended(Sealed::plain(Simulated::new()), &sizes(64 << 10)).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let lens = [LONG, 5000, LONG + 1, LONG, 5001, 40];
    let pairs: Vec<_> = (0_u32..).zip(lens).map(|(key, len)| (key, value(key.into(), len))).collect();
    let keys: Vec<_> = pairs.iter().map(|(key, _)| key.to_be_bytes()).collect();
    let ops = keys.iter().zip(&pairs);
    let ops: Vec<_> = ops.map(|(key, (_, value))| (&space, Op::Set { key: &key[..], value })).collect();
    let _no_condition = store.write(&ops, None).expect("it fits");
    store.flush_all().expect("it works");
    for gone in [0, 4] {
        store.apply(&space, Op::Delete { key: &keys[gone][..] }).expect("it is there");
    }
    store.compact().expect("it works");
    assert_eq!(store.metrics().expect("there are some").value_reads.count, 0, "a pass is no read");
    for (at, (key, value)) in pairs.iter().enumerate() {
        let expected = (![0, 4].contains(&at)).then_some(value);
        assert_eq!(get(&store, *key).expect("it reads").as_ref(), expected, "{key}");
    }
    let passes = store.metrics().expect("there are some").value_passes;
    assert!(passes.count > 0 && passes.bytes > 2 * LONG as u64, "{passes:?}");
    store.verify().expect("all is right");
}

/// Reads a byte of a file right once, and then with another bit.
#[derive(Default)]
struct Worn {
    /// The file, the offset of the byte, and the bit.
    place: Mutex<Option<(Name, u64, u32)>>,
    reads: AtomicU64,
}

impl Watch for Worn {
    fn read(&self, name: Name, offset: u64, bytes: &mut [u8]) {
        let Some((worn, byte, bit)) = *self.place.lock().unwrap() else { return };
        if worn == name && (offset..offset + bytes.len() as u64).contains(&byte) {
            let before = self.reads.fetch_add(1, Relaxed);
            bytes[(byte - offset) as usize] ^= u8::from(before > 0) << bit;
        }
    }
}

/// Cause: a pass checked a long record, and then read its changes again and believed them. A wrong bit there was moved
/// with a new checksum; or the value of a wrong key was not, and its log given up.
#[test]
fn what_a_pass_reads_again_is_checked_again() {
    const LEN: usize = 5000;
    // Where a bit is wrong, from the beginning of a value on: in the length, the key, the expiry, and the value.
    const BITS: [(i64, u32); 4] = [(-15, 0), (-10, 0), (-3, 0), (100, 3)];
    let until = (1 << 40) + 10;
    let mut again = 0;
    for (key, (byte, bit)) in [0, 195, 297].into_iter().flat_map(|key| BITS.map(|bit| (key, bit))) {
        let (disk, worn) = (Simulated::new(), Arc::new(Worn::default()));
        disk.set_now_ms(100);
        let sealed = Sealed::plain(disk.watched(worn.clone()));
        let store = Handle::open_unattended(sealed, &sizes(64 << 10)).expect("it opens");
        let space = store.keyspace("default").expect("it is there");
        let pairs: Vec<_> = (0_u32..300).map(|key| (key.to_be_bytes(), value(key.into(), LEN))).collect();
        let set = |(key, value)| (&space, Op::SetUntil { key, value, expires: Expires::At(until) });
        let ops: Vec<_> = pairs.iter().map(|(key, value)| set((&key[..], &value[..]))).collect();
        let _no_condition = store.write(&ops, None).expect("it fits");
        store.flush_all().expect("it works");
        for (_, (gone, _)) in pairs.iter().enumerate().filter(|(at, _)| at % 3 > 0) {
            store.apply(&space, Op::Delete { key: &gone[..] }).expect("it is there");
        }
        let name = Name::log(*store.version().logs.keys().next().expect("one is kept"));
        let (_, file) = disk.files().into_iter().find(|(other, _)| *other == name).expect("it is there");
        let at = file.windows(32).position(|bytes| *bytes == pairs[key].1[..32]).expect("it is there") as i64;
        assert_eq!(file[at as usize - 13..][..4], pairs[key].0, "the key is where it is expected");
        *worn.place.lock().unwrap() = Some((name, (at + byte) as u64, bit));
        store.compact().expect("it works");
        *worn.place.lock().unwrap() = None;
        again += u64::from(worn.reads.load(Relaxed) > 1);
        let (version, what) = (store.version().clone(), format!("bit {bit} of byte {byte} of {key}"));
        for (at, (key, value)) in pairs.iter().enumerate() {
            let found = store.view(&space).get(key).unwrap_or_else(|error| panic!("{what}: {at}: {error}"));
            assert!(found.as_deref() == (at % 3 == 0).then_some(&value[..]), "{what}: another value of {at}");
            if at % 3 == 0 {
                let partition = version.partition(space.id, key).expect("it is there");
                let pointer = partition.pointer(key).expect("it is read").expect("it is in a log");
                assert_eq!(pointer.1, Some(until), "{what}: {at}");
            }
        }
        store.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    assert!(again > 0, "nothing was read again");
}

#[test]
fn what_logs_take_has_a_bound_without_rest() {
    space_is_bounded_without_rest();
}

/// A log goes when all of its values are gone, and a snapshot reads them as long as it lives.
#[test]
fn a_snapshot_keeps_what_it_reads() {
    let disk = Simulated::new();
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), &sizes(4 << 10)).expect("it opens");
    (0..20).for_each(|key| set(&store, key, &value(key.into(), 500)));
    store.flush_all().unwrap();
    let before: Vec<u64> = store.version().logs.keys().copied().collect();
    assert!(before.len() > 1, "{before:?}");
    let snapshot = store.snapshot().unwrap();
    for round in 1..4 {
        (0..20).for_each(|key| set(&store, key, &value(100 * round + u64::from(key), 500)));
        store.compact().unwrap();
    }
    assert!(before.iter().all(|log| !store.version().logs.contains_key(log)), "they are given up");
    let names: BTreeSet<Name> = disk.files().into_iter().map(|(name, _)| name).collect();
    assert!(before.iter().all(|log| !names.contains(&Name::log(*log))), "and removed");
    let view = snapshot.view("default");
    for key in 0..20_u32 {
        let found = view.get(&key.to_be_bytes()).expect("its file is open");
        assert_eq!(found.as_deref(), Some(&value(key.into(), 500)[..]));
    }
    drop((view, snapshot));
    let files: u64 = disk
        .files()
        .iter()
        .filter(|(name, _)| name.kind == Kind::Log)
        .map(|(_, bytes)| bytes.len() as u64)
        .sum();
    assert!(files < 3 * 20 * 500, "{files} bytes of logs");
}

/// A small log of large values, a large one of small values, and one of each: which ones are kept.
#[test]
fn a_log_with_little_of_large_values_is_not_kept() {
    let store = Handle::open_unattended(Sealed::plain(Simulated::new()), &sizes(1 << 20)).expect("it opens");
    let kept = |small: u32, large: u32| {
        (0..small).for_each(|key| set(&store, key, &[7; 40]));
        (0..large).for_each(|key| set(&store, 1000 + key, &value(key.into(), 400)));
        let before = store.version().logs.len();
        store.flush_all().unwrap();
        store.version().logs.len() - before
    };
    assert_eq!((kept(50, 0), kept(0, 10), kept(100, 2), kept(20, 10)), (0, 1, 0, 1));
    assert_eq!(get(&store, 1001).unwrap(), Some(value(1, 400)));
    // In a compressed keyspace they are compressed.
    let space = store.keyspace("default").unwrap();
    store.choose_compression(&space, Compression::Lz4).unwrap();
    assert_eq!(kept(0, 10), 0);
    store.verify().expect("all is right");
}

/// A kept log that is damaged or missing fails the reads of its values, and nothing else.
#[test]
fn a_damaged_log_fails_the_reads_of_its_values() {
    let disk = Simulated::new();
    let options = sizes(1 << 20);
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), &options).expect("it opens");
    let mut logs = Vec::new();
    for part in 0..2 {
        (0..4).for_each(|key| set(&store, 10 * part + key, &value(key.into(), 500)));
        set(&store, 10 * part + 4, b"small");
        store.flush_all().unwrap();
        logs.extend(
            store.version().logs.keys().copied().filter(|log| !logs.contains(log)).collect::<Vec<_>>(),
        );
    }
    assert_eq!(logs.len(), 2);
    drop(store);
    let files = disk.files();
    let first = Name::log(logs[0]);
    let genuine = &files.iter().find(|(name, _)| *name == first).expect("it is there").1;
    let needle = value(2, 500);
    let at = genuine.windows(500).position(|bytes| *bytes == needle[..]).expect("the value is in the log");
    for how in ["flipped", "missing", "cut"] {
        let is_missing = how == "missing";
        let mut damaged = files.clone();
        match how {
            "missing" => damaged.retain(|(name, _)| *name != first),
            _ => {
                let file = damaged.iter_mut().find(|(name, _)| *name == first).expect("it is there");
                if how == "cut" { file.1.truncate(at + 9) } else { file.1[at + 9] ^= 4 }
            }
        }
        let from = Simulated::from_files(damaged);
        let store = Handle::open_unattended(Sealed::plain(from.clone()), &options).expect("it opens");
        for part in 0..2 {
            for key in 0..4 {
                let found = get(&store, 10 * part + key);
                if part == 0 && (is_missing || key == 2 || how == "cut" && key > 2) {
                    let error = found.expect_err("it is damaged");
                    assert_eq!(error.kind(), ErrorKind::Corrupt);
                    assert!(error.to_string().contains(&first.to_string()), "{error}");
                } else {
                    assert_eq!(found.unwrap(), Some(value(key.into(), 500)), "{how} {part} {key}");
                }
            }
            assert_eq!(get(&store, 10 * part + 4).unwrap(), Some(b"small".to_vec()));
        }
        assert_eq!(store.verify().unwrap_err().kind(), ErrorKind::Corrupt);
        // Keys need no values, changes and merges neither.
        let view = store.view(&store.keyspace("default").unwrap());
        let all = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
        assert_eq!(view.count(all.0, all.1).unwrap(), 10);
        assert!((0..4_u32).all(|key| view.contains(&key.to_be_bytes()).unwrap()), "it is there");
        set(&store, 2, b"new");
        store.flush_all().unwrap();
        let _ = store.compact();
        assert_eq!(get(&store, 2).unwrap(), Some(b"new".to_vec()));
        if is_missing {
            assert_eq!(
                store.checkpoint(Sealed::plain(Simulated::new())).unwrap_err().kind(),
                ErrorKind::Corrupt
            );
        }
        drop((view, store));
        let to = Simulated::new();
        let salvaged = salvaged_to(from, &to).unwrap();
        let lost = if is_missing { 3 } else { u64::from(how == "cut") };
        assert_eq!(salvaged.pairs, 10 - lost, "{how}: {:?}", salvaged.lost);
    }
}

/// A value is read in pieces of any size, also if its log is given up meanwhile, and if its file is damaged never to
/// its end.
pub(super) fn pieces_are_right() {
    let disk = Simulated::new();
    let options = sizes(4 << 10);
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), &options).expect("it opens");
    (0..10).for_each(|key| set(&store, key, &value(key.into(), 500 + key as usize)));
    set(&store, 10, b"small");
    store.flush_all().unwrap();
    let open = |store: &Handle, key: u32| {
        let view = store.view(&store.keyspace("default").unwrap());
        view.pieces(&key.to_be_bytes()).unwrap()
    };
    let all = |mut pieces: Box<dyn Pieces>, size: usize| {
        let (mut found, mut piece) = (Vec::new(), vec![0; size]);
        loop {
            match pieces.read(&mut piece) {
                Ok(0) => return Ok((found, pieces)),
                Ok(len) => found.extend_from_slice(&piece[..len]),
                Err(error) => {
                    assert!(pieces.read(&mut piece).is_err(), "it fails again");
                    return Err((found, error));
                }
            }
        }
    };
    for (key, size) in [(0, 1), (1, 7), (2, 250), (3, 503), (4, 4096)] {
        let pieces = open(&store, key).expect("it is there");
        assert_eq!(pieces.value_bytes(), 500 + u64::from(key));
        let reads = store.metrics().unwrap().value_reads;
        let (found, mut pieces) = all(pieces, size).expect("it is whole");
        assert_eq!(found, value(key.into(), 500 + key as usize), "in pieces of {size}");
        assert_eq!(pieces.read(&mut [0; 9]).unwrap(), 0, "it stays at the end");
        let now = store.metrics().unwrap().value_reads;
        assert_eq!((now.count, now.bytes), (reads.count + 1, reads.bytes + found.len() as u64));
    }
    assert_eq!(all(open(&store, 10).unwrap(), 2).ok().unwrap().0, b"small");
    assert!(open(&store, 11).is_none());
    // What changes meanwhile is not seen.
    let mut begun = open(&store, 5).unwrap();
    let mut beginning = [0; 100];
    assert_eq!(begun.read(&mut beginning).unwrap(), 100);
    let files = disk.files();
    let before: Vec<u64> = store.version().logs.keys().copied().collect();
    for round in 1..4 {
        (0..10).for_each(|key| set(&store, key, &value(100 * round + u64::from(key), 500)));
        store.compact().unwrap();
    }
    assert!(before.iter().all(|log| !store.version().logs.contains_key(log)), "they are given up");
    let (rest, _) = all(begun, 64).expect("its file is open");
    assert_eq!([&beginning[..], &rest].concat(), value(5, 505));
    // A flipped bit, early in the value and in its last byte.
    let needle = value(6, 506);
    for place in [3, 505] {
        let mut damaged = files.clone();
        let log = damaged.iter_mut().find_map(|(name, bytes)| {
            let at = bytes.windows(needle.len()).position(|bytes| *bytes == needle[..])?;
            (name.kind == Kind::Log).then_some((bytes, at))
        });
        let (bytes, at) = log.expect("the value is in a log");
        bytes[at + place] ^= 4;
        let store = Handle::open_unattended(Sealed::plain(Simulated::from_files(damaged)), &options)
            .expect("it opens");
        for size in [1, 100, 506, 1000] {
            let (found, error) = all(open(&store, 6).unwrap(), size).err().expect("it is damaged");
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(found.len() < 506, "the last bytes are not shown");
        }
        assert_eq!(all(open(&store, 7).unwrap(), 100).ok().unwrap().0, value(7, 507));
    }
}

#[test]
fn a_value_is_read_in_pieces() {
    pieces_are_right();
}

/// A pass finds that values of a log are replaced, some of them in memory only. A power cut takes these changes, and
/// not the log. It comes at each I/O, because the end of a pass and the flush after it may be one step. `leaves_one`: a
/// value of the log counts and is moved, so that no flush is asked for.
pub(super) fn a_log_stays_while_its_values_may_count() {
    let options = sizes(4 << 10);
    let open = |disk: &Simulated| Handle::open_unattended(Sealed::plain(disk.clone()), &options);
    for leaves_one in [false, true] {
        let begin = Simulated::new();
        let store = open(&begin).expect("it opens");
        (0..10).for_each(|key| set(&store, key, &value(key.into(), 500)));
        store.flush_all().unwrap();
        let first = *store.version().logs.keys().next().expect("there is one");
        for round in 1..5 {
            let others = if leaves_one { 4..10 } else { 3..10 };
            others.for_each(|key| set(&store, key, &value(100 * round + u64::from(key), 500)));
            store.flush_all().unwrap();
        }
        assert_eq!(store.version().logs.keys().next(), Some(&first));
        let files = begin.files();
        drop(store);
        let work = |disk: &Simulated| -> forrest_engine::Result<BTreeSet<u64>> {
            let store = open(disk)?;
            let space = store.keyspace("default")?;
            // How much is live is known once the order of the tables is.
            store.view(&space).count(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded)?;
            for key in 0..3_u32 {
                store.apply(&space, Op::Set { key: &key.to_be_bytes(), value: b"new" })?;
            }
            while store.step()? {}
            Ok(store.version().logs.keys().copied().collect())
        };
        for io in 0.. {
            let disk = Simulated::from_files(files.clone());
            disk.cut_power_at(io);
            let ended = work(&disk);
            for after in disk.crash_states(2, io) {
                let what = format!("leaves one: {leaves_one}, cut at I/O {io}");
                let store = open(&after).unwrap_or_else(|error| panic!("{what}: {error}"));
                for key in 0..3 {
                    let found = get(&store, key).unwrap_or_else(|error| panic!("{what}: {error}"));
                    let old = value(key.into(), 500);
                    assert!(found == Some(old) || found.as_deref() == Some(b"new"), "{what}");
                }
            }
            if !disk.is_cut() {
                let logs = ended.expect("nothing fails");
                assert!(leaves_one || !logs.contains(&first), "its space comes back");
                break;
            }
        }
    }
}

/// Whether a log that is there has these bytes.
fn is_in_a_log(disk: &Simulated, bytes: &[u8]) -> bool {
    let logs = disk.files().into_iter().filter(|(name, _)| name.kind == Kind::Log);
    logs.into_iter().any(|(_, log)| log.windows(bytes.len()).any(|some| some == bytes))
}

/// A large value leaves the disk as one in a table does, whether it expired before its memtable became tables or after,
/// and a compaction removes it at once.
#[test]
fn expired_values_leave_the_logs() {
    expired_values_go();
}

pub(super) fn expired_values_go() {
    const HOUR: u64 = 3_600_000;
    for (is_in_tables, is_compacted) in [(false, false), (true, false), (false, true), (true, true)] {
        let disk = Simulated::new();
        disk.set_now_ms(HOUR);
        let store = Handle::open_unattended(Sealed::plain(disk.clone()), &sizes(1 << 20)).expect("it opens");
        let space = store.keyspace("default").expect("it is there");
        let (gone, kept) = (value(1, 5_000), value(2, 9_000));
        let expires = Expires::At(2 * HOUR);
        store.apply(&space, Op::SetUntil { key: b"gone", value: &gone, expires }).expect("it is set");
        set(&store, 2, &kept);
        if is_in_tables {
            store.flush_all().unwrap();
            assert_eq!(store.version().logs.len(), 1);
        }
        assert!(is_in_a_log(&disk, &gone));
        disk.set_now_ms(if is_compacted { 3 * HOUR } else { 27 * HOUR });
        if is_compacted {
            store.compact().unwrap();
        } else {
            while store.compact_expired().unwrap() {}
            while store.step().unwrap() {}
        }
        assert!(!is_in_a_log(&disk, &gone), "in tables: {is_in_tables}, compacted: {is_compacted}");
        assert_eq!(get(&store, 2).unwrap(), Some(kept));
        store.verify().expect("all is right");
    }
}

/// Of each log one value counts, and is moved. The logs go although the memtable is small.
#[test]
fn logs_that_were_gone_through_do_not_stay() {
    passes_give_back();
}

pub(super) fn passes_give_back() {
    let disk = Simulated::new();
    let store = Handle::open_unattended(Sealed::plain(disk), &sizes(1 << 20)).expect("it opens");
    for round in 0..10 {
        (0..600).for_each(|key| set(&store, 1_000 * round + key, &value(u64::from(round), 1_000)));
        store.flush_all().unwrap();
    }
    let space = store.keyspace("default").expect("it is there");
    for round in 0..10 {
        for key in 1..600_u32 {
            let key = (1_000 * round + key).to_be_bytes();
            store.apply(&space, Op::Delete { key: &key }).expect("it is deleted");
        }
    }
    store.flush_all().unwrap();
    store.view(&space).count(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded).unwrap();
    while store.step().unwrap() {}
    let left = log_bytes(&store);
    assert!(left < 2 << 20, "{left} bytes in logs, and 10,000 are live");
}

/// A log that could not be read once is gone through by a compaction.
#[test]
fn a_log_that_could_not_be_read_is_tried_again() {
    let disk = Simulated::new();
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), &sizes(64 << 10)).expect("it opens");
    for round in 0..3 {
        (0..60).for_each(|key| set(&store, key, &value(round, 1_000)));
        store.flush_all().unwrap();
    }
    let first = *store.version().logs.keys().next().expect("there is one");
    let space = store.keyspace("default").expect("it is there");
    store.view(&space).count(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded).unwrap();
    disk.make_unreadable(Name::log(first), 0..1 << 20);
    while store.step().unwrap() {}
    assert!(store.version().logs.contains_key(&first));
    disk.heal();
    store.compact().unwrap();
    assert!(!store.version().logs.contains_key(&first));
}

#[test]
fn a_log_is_not_given_up_early() {
    a_log_stays_while_its_values_may_count();
}

/// Entries that newer ones have replaced may name a log that is gone: nothing is lost with it.
#[test]
fn an_undamaged_store_is_salvaged_whole() {
    let disk = Simulated::new();
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), &sizes(4 << 10)).expect("it opens");
    for round in 0..6 {
        (0..20).for_each(|key| set(&store, key, &value(100 * round + u64::from(key), 500)));
        while store.step().expect("it works") {}
    }
    let first = *store.version().logs.keys().next().expect("there is one");
    assert!(first > 5, "{first} is the first log, and others were given up");
    store.sync().unwrap();
    store.verify().expect("all is right");
    drop(store);
    let to = Simulated::new();
    let salvaged = salvaged_to(disk, &to).unwrap();
    assert_eq!((salvaged.pairs, salvaged.lost), (20, Vec::new()));
    let store = Handle::open_unattended(Sealed::plain(to), &sizes(4 << 10)).expect("it opens");
    for key in 0..20 {
        assert_eq!(get(&store, key).unwrap(), Some(value(500 + u64::from(key), 500)));
    }
}

/// A filter sees the values, not where they are.
#[test]
fn a_filter_decides_about_values_in_logs() {
    let decide = |_: &str, _: &[u8], value: &[u8]| match value {
        [b'd', ..] => Verdict::Drop,
        [b'n', rest @ ..] if value.len() == 300 => Verdict::Replace(rest.to_vec()),
        _ => Verdict::Keep,
    };
    let plain = sizes(1 << 20);
    let disk = Simulated::new();
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), &plain).expect("it opens");
    for (key, first) in (0..).zip(*b"kdn") {
        set(&store, key, &[first; 300]);
    }
    store.flush_all().unwrap();
    assert_eq!(store.version().logs.len(), 1);
    drop(store);
    let options = Options { filter: Some(Filter::new(decide)), ..plain };
    let store = Handle::open_unattended(Sealed::plain(disk), &options).expect("it opens");
    for (key, first) in (10..).zip(*b"kdn") {
        set(&store, key, &[first; 300]);
    }
    store.compact().unwrap();
    for key in [0, 10] {
        assert_eq!(get(&store, key).unwrap(), Some(vec![b'k'; 300]));
        assert_eq!(get(&store, key + 1).unwrap(), None);
        assert_eq!(get(&store, key + 2).unwrap(), Some(vec![b'n'; 299]));
    }
}

/// What is written for each byte: run by hand, in a directory.
#[test]
#[ignore = "it prints figures, and takes minutes"]
fn what_is_written() {
    println!("bytes of a value | load | overwrites | bytes of logs for each live one");
    for (len, count) in [(4 << 10, 16_384_u32), (64 << 10, 1024), (1 << 20, 128)] {
        let directory = tempfile::tempdir().expect("a directory");
        let sizes = Options { memtable_bytes: 4 << 20, large_values: 4 << 10, ..Options::default() };
        let sizes = Options { memtable_bytes: sizes.memtable_bytes.max(4 * len), ..sizes };
        let disk = Real::open(&directory.path().join("store"), &sizes).expect("a new directory");
        let store = Handle::open_unattended(Sealed::plain(disk), &sizes).expect("a store");
        let bytes = |store: &Handle| {
            let metrics = store.metrics().expect("there are some");
            let written = metrics.log_writes.bytes + metrics.flushes.bytes + metrics.merges.bytes;
            (written as f64, metrics.change_bytes as f64)
        };
        let mut content = value(len as u64, len);
        let mut write = |key: u32, number: u32| {
            content[..4].copy_from_slice(&number.to_be_bytes());
            set(&store, key, &content);
            while store.step().expect("it works") {}
        };
        // In an order that is none.
        (0..count).for_each(|number| write(number.wrapping_mul(0x9E37_79B1) & (count - 1), number));
        let loaded = bytes(&store);
        let mut random = Random(1);
        (0..2 * count).for_each(|number| write(random.below(count.into()) as u32, number));
        let settled = bytes(&store);
        (0..2 * count).for_each(|number| write(random.below(count.into()) as u32, number));
        let ended = bytes(&store);
        println!(
            "{len} | {:.3} | {:.3} | {:.2}",
            loaded.0 / loaded.1,
            (ended.0 - settled.0) / (ended.1 - settled.1),
            log_bytes(&store) as f64 / (f64::from(count) * len as f64)
        );
    }
}

/// The shortest values that stay in a log, with an expiry: they are moved too.
#[test]
fn short_values_that_expire_are_moved() {
    let store = Handle::open_unattended(Sealed::plain(Simulated::new()), &sizes(4 << 10)).expect("it opens");
    let space = store.keyspace("default").unwrap();
    let lens = 50..80_usize;
    for len in lens.clone() {
        let expires = Expires::In(1 << 40);
        let (key, value) = ((len as u32).to_be_bytes(), value(len as u64, len));
        store.apply(&space, Op::SetUntil { key: &key, value: &value, expires }).expect("it is set");
    }
    (1000..1006).for_each(|key| set(&store, key, &value(key.into(), 500)));
    store.flush_all().unwrap();
    let first = *store.version().logs.keys().next().expect("it is kept");
    for round in 1..20 {
        (1000..1006).for_each(|key| set(&store, key, &value(100 * round + u64::from(key), 500)));
        store.compact().unwrap();
    }
    assert!(!store.version().logs.contains_key(&first), "it is given up");
    for len in lens {
        assert_eq!(get(&store, len as u32).unwrap(), Some(value(len as u64, len)), "{len}");
    }
}

/// A pass does not leave what it moves in memory for long.
#[test]
fn moved_values_are_written_soon() {
    let store = Handle::open_unattended(Sealed::plain(Simulated::new()), &sizes(4 << 20)).expect("it opens");
    for round in 0..8 {
        for key in 0..40 {
            if round == 0 || key >= 16 {
                set(&store, key, &value(100 * round + u64::from(key), 64 << 10));
            }
        }
        store.flush_all().unwrap();
        let view = store.view(&store.keyspace("default").unwrap());
        view.count(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded).unwrap();
    }
    let mut most = 0;
    let moved = loop {
        let some = store.step().unwrap();
        let moved = store.metrics().unwrap().value_passes.bytes;
        most = most.max(store.log().queued_bytes());
        if !some {
            break moved;
        }
    };
    assert!(moved > 500 << 10, "{moved}");
    assert!(most <= 512 << 10, "{most} bytes wait");
}

/// A filter meets a log that is missing: the merge goes on, and the range of keys is not damaged.
#[test]
fn a_filter_passes_values_that_cannot_be_read() {
    let plain = sizes(1 << 20);
    let disk = Simulated::new();
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), &plain).expect("it opens");
    (0..4).for_each(|key| set(&store, key, &value(key.into(), 500)));
    store.flush_all().unwrap();
    let log = *store.version().logs.keys().next().unwrap();
    drop(store);
    let mut files = disk.files();
    files.retain(|(name, _)| *name != Name::log(log));
    let options = Options { filter: Some(Filter::new(|_: &str, _: &[u8], _: &[u8]| Verdict::Keep)), ..plain };
    let store =
        Handle::open_unattended(Sealed::plain(Simulated::from_files(files)), &options).expect("it opens");
    set(&store, 10, b"new");
    store.flush_all().unwrap();
    set(&store, 11, b"new");
    store.compact().expect("it fails the reads of its values only");
    assert!(get(&store, 1).is_err());
    let space = store.keyspace("default").unwrap();
    let (start, end) = (1_u32.to_be_bytes(), 2_u32.to_be_bytes());
    store
        .apply(&space, Op::DeleteRange { start: &start, end: Some(&end) })
        .expect("changes are not affected");
}

/// A device is full of large values: deletes shrink the store.
pub(super) fn full_stores_are_shrunk() {
    const CAPACITY: u64 = 16 << 20;
    const LEN: usize = 4000;
    for which in 0..6 {
        let options = Options { memtable_bytes: 256 << 10, table_bytes: 2 << 20, ..sizes(0) };
        let store = Handle::open_unattended(Sealed::plain(Simulated::with_capacity(CAPACITY)), &options)
            .expect("it opens");
        let space = store.keyspace("default").unwrap();
        let order = |number: u64| if which < 4 { number } else { Random(number).next() };
        let key = |number: u64| order(number).to_be_bytes();
        let work = || {
            let mut count = 0;
            while matches!(store.step(), Ok(true)) {
                count += 1;
                assert!(count < 30_000, "it ends");
            }
        };
        let put = |number: u64| {
            let put = store.apply(&space, Op::Set { key: &key(number), value: &value(number, LEN) });
            work();
            put
        };
        let full = (0..).find_map(|number| put(number).err().map(|error| (number, error)));
        let (count, error) = full.expect("the device is not endless");
        assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{error}");
        let is_kept = |number: u64| match which {
            0 | 4 => number < count / 10,
            1 => number >= count * 9 / 10,
            2 | 5 => number.is_multiple_of(10),
            _ => false,
        };
        for number in (0..count).filter(|number| !is_kept(*number)) {
            store
                .apply(&space, Op::Delete { key: &key(number) })
                .unwrap_or_else(|error| panic!("{which}: delete {number}: {error}"));
            work();
        }
        store.flush_early(crate::compact::WORTH).expect("there is space for tombstones");
        while store.compact_dead().expect("there is space to merge") {}
        work();
        put(count).expect("the store goes on");
        store.compact().expect("there is room");
        // The simulated disk never gives back what a log has reserved.
        assert!(log_bytes(&store) < CAPACITY / 8, "{which}: {} bytes", log_bytes(&store));
        store.verify().expect("all is right");
        for number in (0..count).filter(|number| is_kept(*number)) {
            let found = store.view(&space).get(&key(number)).unwrap();
            assert_eq!(found.as_deref(), Some(&value(number, LEN)[..]));
        }
    }
}

/// What large values take of a partition is estimated by its entries. If many small ones were replaced, that is too
/// low; with long keys too. Nothing is moved without an end.
#[test]
fn nothing_is_moved_without_an_end() {
    for is_key_long in [false, true] {
        let options = Options { memtable_bytes: 8 << 10, table_bytes: 8 << 20, ..sizes(0) };
        let store = Handle::open_unattended(Sealed::plain(Simulated::new()), &options).expect("it opens");
        let space = store.keyspace("default").unwrap();
        let (count, len) = if is_key_long { (4000, 70) } else { (100, 1000) };
        let mut written = 0;
        let mut set = |key: u32, value: &[u8]| {
            let mut key = key.to_be_bytes().to_vec();
            key.resize(if is_key_long { 30 } else { 4 }, 7);
            store.apply(&space, Op::Set { key: &key, value }).expect("it is set");
            written += (key.len() + value.len()) as u64;
        };
        (0..count).for_each(|key| set(key, &value(key.into(), len)));
        if !is_key_long {
            store.flush_all().unwrap();
            for round in 0..8 {
                (0..1000).for_each(|key| set(10_000 + key, &[round; 8]));
                store.flush_all().unwrap();
            }
        }
        let mut steps = 0;
        while store.step().unwrap() {
            steps += 1;
            assert!(steps < 20_000, "it ends");
        }
        let moved = store.metrics().unwrap().value_passes.bytes;
        assert!(moved <= 2 * written, "{moved} bytes were moved, and {written} written");
        store.verify().unwrap();
    }
}

#[test]
fn a_full_store_is_shrunk() {
    full_stores_are_shrunk();
}
