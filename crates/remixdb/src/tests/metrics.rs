//! What a store counts and reports: compared with the files on the simulated disk, and with what was done to it.

use super::world::{options, with_large};
use crate::core::Handle;
use crate::disk::simulated::{Failure, Fault, Simulated, Times};
use crate::disk::{Kind, Name, Sealed};
use crate::ingest::Ingest;
use crate::store::Store;
use forrest_base::lock;
use forrest_base::random::Random;
use forrest_engine::{
    Call, Cursor as _, Direction, Durability, ErrorKind, Event, Goto, Ingest as _, Job, Keyspace as _,
    Listener, Op, Options, Store as _, View as _, Written,
};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The events of a listener.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Event>>>);

impl Told {
    fn options(&self, options: Options) -> Options {
        let list = self.0.clone();
        Options { listener: Some(Listener::new(move |event| lock(&list).push(event.clone()))), ..options }
    }

    /// The events so far. Those of a background thread come a little later.
    fn until(&self, mut is_enough: impl FnMut(&[Event]) -> bool) -> Vec<Event> {
        let begin = Instant::now();
        loop {
            let told = lock(&self.0).clone();
            if is_enough(&told) {
                return told;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "only {told:?} so far");
            thread::yield_now();
        }
    }
}

fn set(store: &Handle, number: u32, value: &[u8]) -> forrest_engine::Result<()> {
    let space = store.keyspace("default").expect("it is there");
    store.apply(&space, Op::Set { key: &number.to_be_bytes(), value }).map(drop)
}

/// Files of the tables and their indexes, with their lengths. Names are not used twice.
fn add_tables(all: &mut BTreeMap<Name, u64>, disk: &Simulated) {
    let tables =
        disk.files().into_iter().filter(|(name, _)| !matches!(name.kind, Kind::Log | Kind::Manifest));
    all.extend(tables.map(|(name, bytes)| (name, bytes.len() as u64)));
}

#[test]
fn what_was_done_is_counted() {
    let (disk, mut tables) = (Simulated::new(), BTreeMap::new());
    let options = Options { memtable_bytes: 1 << 20, ..options(Durability::Sync) };
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    for round in 0..3 {
        (0..50).for_each(|number| set(&store, number, &[round; 100]).expect("it works"));
        store.flush_all().expect("it works");
        add_tables(&mut tables, &disk);
        let written = store.metrics().expect("it counts").table_bytes();
        assert_eq!(written, tables.values().sum::<u64>(), "what the files have");
    }
    let deleted = Op::DeleteRange { start: &b""[..], end: Some(&[0, 0, 0, 7][..]) };
    store.apply(&space, deleted).expect("it works");
    // Without effect, and not counted.
    store.apply(&space, Op::Delete { key: b"none" }).expect("it works");
    store.compact().expect("it works");
    add_tables(&mut tables, &disk);
    store.verify().expect("it is whole");
    let metrics = store.metrics().expect("it counts");
    assert_eq!((metrics.changes, metrics.change_bytes), (151, 150 * 104 + 4));
    assert_eq!((metrics.log_writes.count, metrics.log_syncs.count >= 151), (151, true), "{metrics:?}");
    assert!(metrics.log_writes.bytes > metrics.change_bytes);
    assert!(metrics.flushes.count >= 4 && metrics.merges.count >= 1, "{metrics:?}");
    assert_eq!((metrics.verifications.count, metrics.flushes.failed + metrics.merges.failed), (1, 0));
    // A piece of the merge may have been merged again.
    assert!(metrics.table_bytes() >= tables.values().sum(), "what the files have: {metrics:?}");
    let written = metrics.log_writes.bytes + metrics.table_bytes();
    assert!((metrics.write_amplification() - written as f64 / metrics.change_bytes as f64).abs() < 1e-9);
    assert!(metrics.cache_hit_ratio() <= 1.0 && metrics.stalls.count == 0);
}

/// Cause: an ingest writes its tables and logs of values beside all jobs, and nobody counted them.
#[test]
fn what_an_ingest_writes_is_counted() {
    let disk = Simulated::new();
    let options = Options { memtable_bytes: 1 << 20, ..with_large(|| options(Durability::Buffered)) };
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let mut ingest = Box::new(Ingest::begin(&store, &space).expect("it begins"));
    let (mut pairs, mut bytes) = (0, 0);
    for number in 0..600_u32 {
        let value = vec![7; if number % 2 == 0 { 40 } else { 4000 }];
        ingest.put(&number.to_be_bytes(), &value).expect("it works");
        (pairs, bytes) = (pairs + 1, bytes + 4 + value.len() as u64);
    }
    let metrics = store.metrics().expect("it counts");
    assert!(metrics.other_table_bytes > bytes / 2, "some are complete: {metrics:?}");
    assert_eq!((metrics.changes, metrics.change_bytes), (0, 0), "nobody sees them");
    ingest.finish().expect("it works");
    let logs: u64 = store.version().logs.values().map(|log| log.bytes).sum();
    let mut tables = BTreeMap::new();
    add_tables(&mut tables, &disk);
    let metrics = store.metrics().expect("it counts");
    assert!(logs > bytes / 2 && !tables.is_empty());
    assert_eq!(metrics.ingests.bytes + metrics.other_table_bytes, logs + tables.values().sum::<u64>());
    assert_eq!((metrics.changes, metrics.change_bytes, metrics.ingests.count), (pairs, bytes, 1));
    assert!((1.0..1.5).contains(&metrics.write_amplification()), "{metrics:?}");
}

#[test]
fn a_listener_is_told_in_order_and_may_use_the_store() {
    let told = Told::default();
    let disk = Simulated::new();
    let options = told.options(options(Durability::Buffered));
    let store = Handle::open(Sealed::plain(disk.clone()), &options).expect("it opens");
    set(&store, 1, b"one").expect("it works");
    store.flush_all().expect("it works");
    let events = told.until(|events| events.len() >= 2);
    assert_eq!(events[0], Event::Began(Job::Flush));
    assert!(matches!(&events[1], Event::Ended { job: Job::Flush, error: None, bytes, .. } if *bytes > 0));
    drop(store);
    // It reads and changes the store that tells it.
    let cell: Arc<Mutex<Option<Handle>>> = Arc::default();
    let inside = cell.clone();
    let listener = Listener::new(move |_| {
        if let Some(store) = &*lock(&inside) {
            set(store, 2, b"two").expect("no lock is held");
            store.stats().expect("no lock is held");
            store.metrics().expect("no lock is held");
        }
    });
    let options = Options { listener: Some(listener), ..options };
    let store = Handle::open_unattended(Sealed::plain(disk), &options).expect("it opens");
    *lock(&cell) = Some(store.clone());
    set(&store, 3, b"three").expect("it works");
    store.flush_all().expect("it works");
    store.reported(Ok(())).expect("it is passed on");
    let space = store.keyspace("default").expect("it is there");
    let two = forrest_engine::View::get(&store.view(&space), &2_u32.to_be_bytes()).expect("it reads");
    assert_eq!(two.as_deref(), Some(&b"two"[..]), "the listener has set it");
    lock(&cell).take();
}

#[test]
fn a_listener_is_told_of_failures() {
    let told = Told::default();
    let disk = Simulated::new();
    let store = Handle::open(Sealed::plain(disk.clone()), &told.options(options(Durability::Sync)))
        .expect("it opens");
    set(&store, 1, b"one").expect("it works");
    disk.fail(Fault { at: disk.ios(), times: Times::ForEver, kind: Failure::Eio });
    set(&store, 2, b"two").expect_err("the device fails");
    let has = |events: &[Event], is: fn(&Event) -> bool| events.iter().any(is);
    told.until(|events| has(events, |event| matches!(event, Event::Stopped { .. })));
    disk.heal();
    store.resume().expect("it can go on");
    told.until(|events| has(events, |event| *event == Event::Resumed));
}

/// It may be reported several times: merges make room.
#[test]
fn a_listener_is_told_when_the_device_is_full() {
    let told = Told::default();
    let disk = Simulated::with_capacity(4 << 20);
    let sizes =
        Options { memtable_bytes: 256 << 10, table_bytes: 256 << 10, ..options(Durability::Buffered) };
    let store = Handle::open(Sealed::plain(disk.clone()), &told.options(sizes)).expect("it opens");
    let mut random = Random(1);
    // A change may be refused while a flush is about to make room.
    told.until(|events| {
        let refused = (0..1_000).find_map(|_| set(&store, random.next() as u32, &[7; 200]).err());
        assert!(refused.is_none_or(|error| error.kind() == ErrorKind::OutOfSpace));
        events.contains(&Event::Full)
    });
    disk.set_capacity(None);
    told.until(|events| {
        let _may_be_refused = set(&store, 1, b"one");
        events.contains(&Event::HasRoom)
    });
}

#[test]
fn a_change_that_waits_for_memory_is_counted_and_told() {
    let told = Told::default();
    let sizes =
        Options { memtable_bytes: 64 << 10, wait: Duration::from_millis(50), ..options(Durability::Memory) };
    let store = Handle::open(Sealed::plain(Simulated::new()), &told.options(sizes)).expect("it opens");
    {
        // No table can be made.
        let _manifest = lock(&store.manifest);
        let error = (0..1_000).find_map(|number| set(&store, number, &[7; 1000]).err());
        assert_eq!(error.expect("there is a limit").kind(), ErrorKind::Busy);
    }
    let metrics = store.metrics().expect("it counts");
    assert!(metrics.stalls.count == 1 && metrics.stalls.took >= Duration::from_millis(50), "{metrics:?}");
    assert!(metrics.paced.count > 0 && !metrics.paced.took.is_zero(), "{metrics:?}");
    told.until(|events| events.iter().any(|event| matches!(event, Event::Stalled { .. })));
}

/// Live bytes are exact if all entries have the same length.
#[test]
fn the_space_that_is_dead_is_known() {
    let options = Options { memtable_bytes: 1 << 20, ..options(Durability::Buffered) };
    let store = Handle::open_unattended(Sealed::plain(Simulated::new()), &options).expect("it opens");
    let amplification = || store.stats().expect("it is open").space_amplification();
    assert_eq!(amplification(), 0.0, "there is nothing");
    let overwrite = |value: u8, count: u32| {
        (0..count).for_each(|number| set(&store, number, &[value; 100]).expect("it works"));
        store.flush_all().expect("it works");
    };
    overwrite(1, 1_000);
    assert_eq!(amplification(), 1.0);
    overwrite(2, 500);
    assert!((1.4..1.6).contains(&amplification()), "{:?}", store.stats());
    store.compact().expect("it works");
    let stats = store.stats().expect("it is open");
    assert_eq!((stats.table_live_bytes, amplification()), (stats.table_bytes, 1.0));
    let text = store.metrics().expect("it is open").prometheus(&stats);
    assert!(text.contains(&format!("\nforrest_table_live_bytes {}\n", stats.table_bytes)), "{text}");
}

/// Each page that was not in the cache is counted for the call that read it, and for no other.
#[test]
fn the_pages_that_calls_read_are_counted() {
    // Nothing stays in the cache.
    let options = Options { latencies: true, cache_bytes: 1, ..options(Durability::Buffered) };
    let store = Store::open_unattended(Sealed::plain(Simulated::new()), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let keys: Vec<_> = (0..2_000_u32).map(u32::to_be_bytes).collect();
    for key in &keys {
        space.apply(Op::Set { key, value: &[0; 8] }).expect("it works");
    }
    store.flush().expect("it works");
    let metrics = || store.metrics().expect("it is open");
    let pages = |call| metrics().latency(call).map_or(0, |latency| latency.pages());
    let all = || Call::ALL.into_iter().map(pages).sum::<u64>();
    assert_eq!(all(), 0, "so far all was in memory");
    let before = metrics().cache_misses;
    let view = space.view();
    for key in keys.iter().step_by(100) {
        assert!(view.get(key).expect("it is read").is_some());
    }
    assert!(pages(Call::Get) >= 20 && all() == pages(Call::Get));
    assert!(metrics().latency(Call::Get).expect("there were some").pages_per_call() >= 1.0);
    let some: Vec<&[u8]> = keys.iter().step_by(500).map(|key| &key[..]).collect();
    view.multi_get(&some).expect("they are read");
    view.cursor().goto(Goto::Seek(&keys[7])).expect("it is there");
    space.apply(Op::Add { key: &keys[9], delta: 1 }).expect("it is added");
    assert!([Call::MultiGet, Call::Scan, Call::Write].into_iter().all(|call| pages(call) > 0));
    assert_eq!(all(), metrics().cache_misses - before);
    let text = metrics().prometheus(&store.stats().expect("it is open"));
    let line = format!("\nforrest_call_pages_total{{call=\"get\"}} {}\n", pages(Call::Get));
    assert!(text.contains(&line), "{text}");
}

/// Cause: the pages of a call that the function of a scan makes counted for the scan too.
#[test]
fn pages_of_a_call_within_a_call_are_counted_once() {
    let options = Options { latencies: true, cache_bytes: 1, ..options(Durability::Buffered) };
    let store = Store::open_unattended(Sealed::plain(Simulated::new()), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let keys: Vec<_> = (0..2_000_u32).map(u32::to_be_bytes).collect();
    for key in &keys {
        space.apply(Op::Set { key, value: &[0; 8] }).expect("it works");
    }
    store.flush().expect("it works");
    let (metrics, view) = (|| store.metrics().expect("it is open"), space.view());
    let pages = |call| metrics().latency(call).map_or(0, |latency| latency.pages());
    let before = metrics().cache_misses;
    let mut seen = 0;
    view.scan((Bound::Unbounded, Bound::Unbounded), Direction::Forward, |key, _| {
        if seen % 100 == 0 {
            let other = keys[keys.len() - 1 - seen];
            assert!(*key == other || view.get(&other).expect("it is read").is_some());
        }
        seen += 1;
        ControlFlow::Continue(())
    })
    .expect("it is scanned");
    assert_eq!(seen, keys.len());
    let (scan, get) = (pages(Call::Scan), pages(Call::Get));
    assert!(scan > 0 && get >= 20, "{scan} and {get}");
    assert_eq!(scan + get, metrics().cache_misses - before);
}

#[test]
fn the_time_of_calls_is_taken_if_that_is_wanted() {
    for latencies in [false, true] {
        let options = Options { latencies, ..options(Durability::Buffered) };
        let store = Store::open_unattended(Sealed::plain(Simulated::new()), &options).expect("it opens");
        let space = store.keyspace("default").expect("it is there");
        let (view, key) = (space.view(), 7_u32.to_be_bytes());
        for number in 0..19_u32 {
            space.apply(Op::Set { key: &number.to_be_bytes(), value: b"value" }).expect("it works");
        }
        let written = store.write([(&space, Op::Delete { key: &b"oak"[..] })].into_iter(), None);
        assert_eq!(written.expect("it works"), Written::Applied);
        (0..30).for_each(|_| assert!(view.get(&key).expect("it is read").is_some()));
        assert!(view.contains(&key).expect("it is read"));
        view.multi_get(&[&key, &key]).expect("they are read");
        assert_eq!(view.count(Bound::Unbounded, Bound::Unbounded).expect("it is counted"), 19);
        view.cursor().goto(Goto::Seek(&key)).expect("it is there");
        store.sync().expect("it works");
        let metrics = store.metrics().expect("it is open");
        if !latencies {
            assert!(metrics.latencies.is_empty());
            continue;
        }
        for (call, count) in
            [(Call::Get, 31), (Call::MultiGet, 1), (Call::Scan, 2), (Call::Sync, 1), (Call::Write, 20)]
        {
            let latency = metrics.latency(call).unwrap_or_else(|| panic!("{call} is missing"));
            assert_eq!(latency.count(), count, "{call}");
            assert!(latency.quantile(0.5) <= latency.longest(), "{call}");
            assert!(latency.longest() <= latency.took(), "{call}");
        }
        let text = metrics.prometheus(&store.stats().expect("it is open"));
        assert!(text.contains("forrest_call_seconds_count{call=\"get\"} 31\n"), "{text}");
        assert!(text.contains("forrest_call_seconds_bucket{call=\"write\",le=\"+Inf\"} 20\n"), "{text}");
        assert!(metrics.rows().contains(&("multi_get_calls", "timed multi-gets", 1, "")));
    }
}
