//! Reading a store while another process changes it.

use super::world::{
    Content, Pairs, Step, World, beginning, follow, options, options_of, seeds, steps, wide_steps, with_large,
};
use crate::core::{Core, Handle};
use crate::disk::simulated::Simulated;
use crate::disk::{Kind, Name, Sealed};
use crate::recover;
use crate::view::Snapshot;
use forrest_base::lock;
use forrest_engine::{
    Chunk, Durability, Filled, Filter, Op, Options, Result, Snapshot as _, Verdict, View as _,
};
use forrest_index::Direction;
use forrest_testing::sized;
use std::ops::{Bound, Range};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

fn reading() -> Options {
    Options { read_only: true, ..options(Durability::Buffered) }
}

/// The content of the default keyspace in a snapshot.
fn past(snapshot: &Snapshot) -> Result<Pairs> {
    let mut chunk = Chunk::default();
    chunk.clear(1024);
    let all = (Bound::Unbounded, Bound::Unbounded);
    let filled =
        snapshot.view("default").fill(&mut chunk, &mut Default::default(), all, Direction::Forward)?;
    assert!(matches!(filled, Filled::End), "it has more than is looked at");
    let pair = |at| (chunk.key(at).to_vec(), chunk.value_bytes(at).to_vec());
    Ok((0..chunk.len()).map(pair).collect())
}

/// A reader that refreshes sees the newest state. One that does not sees its own, and so does a snapshot, however many
/// tables the writer merges meanwhile. What they need goes when they do.
#[test]
fn a_reader_sees_one_state_while_another_process_writes() {
    beside_a_writer(seeds(12, 60));
}

pub(super) fn beside_a_writer(seeds: Range<u64>) {
    for seed in seeds {
        let disk = Simulated::new();
        let writer = World::open(&disk, &options(Durability::Buffered)).expect("it opens");
        let reader = World::open(&disk, &reading()).expect("it opens beside the writer");
        let idle = World::open(&disk, &reading()).expect("any number of them");
        let mut states = beginning();
        let mut snapshots: Vec<(Snapshot, Content)> = Vec::new();
        let steps = if seed % 4 == 3 { wide_steps(seed, 40) } else { steps(seed, 60) };
        for (at, step) in steps.iter().enumerate() {
            follow(&mut states, step);
            writer.run(step).unwrap_or_else(|error| panic!("seed {seed}, step {at}: {error}"));
            // Of what the reader has not looked into, it still needs the files.
            has_its_files(&disk, &reader);
            if at % 5 == 2 {
                // Another REMIX over the same tables.
                writer.store.settle().expect("it settles");
                recover::refresh(&reader.store).expect("it refreshes");
            }
            if (at as u64 + seed).is_multiple_of(3) {
                recover::refresh(&reader.store).unwrap_or_else(|error| panic!("seed {seed}, {at}: {error}"));
                let content = reader.content().unwrap_or_else(|error| panic!("seed {seed}, {at}: {error}"));
                assert_eq!(Some(&content), states.last(), "seed {seed}, step {at}");
                if at % 4 == 0 {
                    snapshots.push((reader.store.snapshot().expect("it is taken"), content));
                }
            }
        }
        has_its_files(&disk, &idle);
        has_its_files(&disk, &reader);
        assert_eq!(idle.content().expect("its files are kept"), states[0], "seed {seed}");
        for (snapshot, content) in &snapshots {
            assert_eq!(past(snapshot).expect("its files are kept"), content["default"], "seed {seed}");
        }
        drop((snapshots, reader, idle));
        writer.store.remove_waiting().expect("nobody reads");
        let needed = needed(&writer);
        for (name, _) in disk.files() {
            assert!(needed.contains(&name) || name.kind == Kind::Log, "seed {seed}: {name} is left");
        }
        assert_eq!(Some(&writer.content().expect("it reads")), states.last());
    }
}

/// A log that was given up stays if somebody reads the store. It is given up for ever.
pub(super) fn beside_given_up_logs(seeds: Range<u64>) {
    for seed in seeds {
        let options = options_of(seed, Durability::Buffered);
        let disk = Simulated::new();
        let world = World::open(&disk, &options).expect("it opens");
        for step in steps(seed, 20) {
            world.run(&step).expect("it works");
        }
        // A power cut loses a part of one log, and those after it are given up.
        for number in 0..13 {
            world.set_with_a_log_ahead(number);
        }
        for after in disk.crash_states(40, seed) {
            let writer = World::open(&after, &options).expect("it opens");
            let reader = World::open(&after, &reading()).expect("it opens");
            let content = writer.content().expect("it reads");
            assert_eq!(reader.content().expect("it reads"), content, "seed {seed}");
            let mut states = vec![content];
            let step = Step::Set("default", 1, 5);
            follow(&mut states, &step);
            writer.run(&step).expect("it works");
            let next = World::open(&after.kill(), &options).expect("it opens again");
            assert_eq!(Some(&next.content().expect("it reads")), states.last(), "seed {seed}");
        }
    }
}

#[test]
fn a_log_that_was_given_up_is_never_read_again() {
    beside_given_up_logs(seeds(4, 30));
}

/// Checks that the tables of a reader still have their names, so that they can be opened again.
fn has_its_files(disk: &Simulated, reader: &World) {
    let there: Vec<_> = disk.files().into_iter().map(|(name, _)| name).collect();
    for name in tables(reader) {
        assert!(there.contains(&name), "{name} is gone");
    }
}

/// The names of the tables and REMIXes of a store.
fn tables(world: &World) -> Vec<Name> {
    let version = world.store.version();
    version.partitions.values().flatten().flat_map(|partition| partition.files().names()).collect()
}

/// The same, and its manifest.
fn needed(world: &World) -> Vec<Name> {
    let files = tables(world).into_iter();
    let manifest = world.store.disk().simulated().files().into_iter().map(|(name, _)| name);
    files.chain(manifest.filter(|name| name.kind == Kind::Manifest).max()).collect()
}

/// A reader keeps its files when the writer is closed or dies and another one opens the store.
#[test]
fn a_reader_outlives_writers() {
    for seed in seeds(6, 30) {
        let disk = Simulated::new();
        let mut states = beginning();
        let mut writer = World::open(&disk, &options(Durability::Buffered)).expect("it opens");
        let mut readers = Vec::new();
        for (at, step) in steps(seed, 60).iter().enumerate() {
            follow(&mut states, step);
            writer.run(step).expect("it works");
            if at % 7 == 3 {
                let reader = World::open(&disk, &reading()).expect("it opens");
                readers.push((reader, states.last().expect("there is one").clone()));
            }
            if at % 11 == 5 {
                drop(writer);
                writer = World::open(&disk, &options(Durability::Buffered)).expect("it opens");
            }
        }
        for (reader, content) in &readers {
            has_its_files(&disk, reader);
            assert_eq!(&reader.content().expect("its files are kept"), content, "seed {seed}");
            recover::refresh(&reader.store).expect("it refreshes");
            assert_eq!(Some(&reader.content().expect("it reads")), states.last(), "seed {seed}");
        }
        // Handles of keyspaces stay valid, and those of dropped ones do not.
        let (reader, _) = &readers[0];
        writer.run(&Step::Set("late", 1, 3)).expect("it works");
        recover::refresh(&reader.store).expect("it refreshes");
        let late = reader.store.keyspace("late").expect("it is there");
        late.check().expect("it is there");
        writer.run(&Step::Drop("late")).expect("it works");
        recover::refresh(&reader.store).expect("it refreshes");
        late.check().expect_err("it was dropped");
    }
}

/// Gets the number of the key while another thread refreshes the reader, and one changes the store. Cause: where
/// memtables had become tables, the logs were read into new memtables that had only the newest version of each key; the
/// reader showed them before it saw so far, and the key was older than before, or absent. Cure: they keep what the
/// reader sees until then.
#[test]
fn a_reader_does_not_go_back_while_it_is_refreshed() {
    let disk = Simulated::new();
    let options = Options { memtable_bytes: 16 << 10, ..options(Durability::Buffered) };
    let writer = World::open(&disk, &options).expect("it opens");
    let set = |key: &[u8], value: &[u8]| {
        let space = writer.store.keyspace("default").expect("it is there");
        writer.store.apply(&space, Op::Set { key, value }).expect("it is set");
    };
    set(b"key", &0_u32.to_be_bytes());
    let reader =
        World::open(&disk, &Options { memtable_bytes: 16 << 10, ..reading() }).expect("it opens beside");
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let get = || {
            let space = reader.store.keyspace("default").expect("it is there");
            let view = reader.store.view(&space);
            let (mut last, mut gets) = (0, 0_u64);
            while !is_done.load(Relaxed) {
                let found = view.get(b"key").expect("it reads").expect("the key is always there");
                let number = u32::from_be_bytes(found[..].try_into().expect("a number"));
                assert!(number >= last, "{number} after {last}, in get {gets}");
                (last, gets) = (number, gets + 1);
            }
        };
        scope.spawn(get);
        scope.spawn(|| {
            while !is_done.load(Relaxed) {
                recover::refresh(&reader.store).expect("it refreshes");
            }
        });
        for number in 1..sized(3_000, 30_000) as u32 {
            set(b"key", &number.to_be_bytes());
            set(&(number % 64).to_be_bytes(), &[7; 400]);
            if number.is_multiple_of(3) {
                writer.store.step().expect("it works");
            }
        }
        is_done.store(true, Relaxed);
    });
}

/// Does something to a store while two threads overwrite a few values, and returns when it has ended. Fails if it goes
/// on for as long as they write.
fn ends_beside_writers(store: &Handle, work: impl FnOnce(&Core) -> Result<()> + Send) {
    let space = store.keyspace("default").expect("it is there");
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let write = |writer: u32| {
            let (space, is_done) = (&space, &is_done);
            scope.spawn(move || {
                for number in (0_u32..).take_while(|_| !is_done.load(Relaxed)) {
                    let key = [writer.to_be_bytes(), (number % 20).to_be_bytes()].concat();
                    store.apply(space, Op::Set { key: &key, value: &[7; 1_000] }).expect("it is set");
                }
            })
        };
        let writers = [write(0), write(1)];
        let (ends, ended) = mpsc::channel();
        scope.spawn(move || ends.send(work(store)));
        let ended = ended.recv_timeout(Duration::from_secs(60));
        is_done.store(true, Relaxed);
        // Writers wait for flushes.
        while !writers.iter().all(|writer| writer.is_finished()) {
            store.step().expect("it works");
        }
        ended.expect("it does not go on for as long as others write").expect("it works");
    });
}

/// A flush waits for the changes before it, however fast others write. Cause: it went on until no memtable waited, so
/// it flushed theirs too, and did not end before they did.
#[test]
fn a_flush_does_not_wait_for_those_who_write() {
    let options = Options { memtable_bytes: 16 << 10, ..options(Durability::Memory) };
    let world = World::open(&Simulated::new(), &options).expect("it opens");
    ends_beside_writers(&world.store, |store| store.flush_all());
}

/// A compaction of large values ends, although all values are written again whenever it makes tables: here its filter
/// writes, which is asked about each of them then. So no thread has to be fast enough for the cause to be seen: the
/// compaction went through logs until little of them was dead, and each flush meanwhile kept another one.
#[test]
fn a_compaction_ends_beside_any_writer() {
    compactions_end();
}

pub(super) fn compactions_end() {
    const WRITES_MOST: u32 = 4_000;
    let (writer, writes) = (Arc::new(Mutex::new(None::<Handle>)), Arc::new(AtomicU32::new(0)));
    let write = |store: &Handle, number: u32| {
        let space = store.keyspace("default").expect("it is there");
        let key = (number % 40).to_be_bytes();
        store.apply(&space, Op::Set { key: &key, value: &[7; 1_000] }).expect("it is set");
    };
    let decide = {
        let (writer, writes) = (writer.clone(), writes.clone());
        move |_: &str, _: &[u8], _: &[u8]| {
            let writer = lock(&writer).clone();
            if let Some(store) = writer.filter(|_| writes.load(Relaxed) < WRITES_MOST) {
                write(&store, writes.fetch_add(1, Relaxed));
            }
            Verdict::Keep
        }
    };
    let options = Options {
        memtable_bytes: 16 << 10,
        table_bytes: 1 << 20,
        filter: Some(Filter::new(decide)),
        ..with_large(|| options(Durability::Memory))
    };
    let world = World::open(&Simulated::new(), &options).expect("it opens");
    for number in 0..400 {
        write(&world.store, number);
        world.store.step().expect("it works");
    }
    assert!(world.store.version().logs.len() > 2, "logs are kept");
    *lock(&writer) = Some(world.store.clone());
    let compacted = world.store.compact();
    *lock(&writer) = None;
    compacted.expect("it compacts");
    let writes = writes.load(Relaxed);
    println!("{writes} writes");
    assert!((100..WRITES_MOST).contains(&writes), "{writes} writes until it has ended");
}

/// The same for a compaction of a store whose values are in logs. Cause: it went through logs until little of them was
/// dead, and each flush meanwhile kept another one.
#[test]
fn a_compaction_does_not_wait_for_those_who_write() {
    let large = with_large(|| options(Durability::Memory));
    let options = Options { memtable_bytes: 16 << 10, table_bytes: 1 << 20, ..large };
    let store = Handle::open(Sealed::plain(Simulated::new()), &options).expect("it opens");
    ends_beside_writers(&store, |store| {
        while store.version().logs.is_empty() {
            store.flush_all()?;
        }
        store.compact()
    });
}
