//! Opening a store writes nothing. So a store opens where nothing can be written, and is as it was. Closing it leaves
//! little to be replayed.

use super::world::{World, beginning, follow, options, steps, wide_steps};
use crate::core::Handle;
use crate::disk::{Kind, Name, Sealed, simulated::Simulated};
use forrest_engine::{Durability, ErrorKind, Op, Options};
use forrest_testing::sized;
use std::time::{Duration, Instant};

/// The disk after the work of a seed and a crash, with what a crash leaves: logs with torn ends, tables that nothing
/// names.
fn crashed(seed: u64, options: &Options) -> Vec<Simulated> {
    let disk = Simulated::new();
    let world = World::open(&disk, options).expect("it opens");
    let steps = if seed.is_multiple_of(4) { wide_steps(seed, 25) } else { steps(seed, 40) };
    for step in steps {
        world.run(&step).expect("it works");
    }
    let mut after: Vec<_> = disk.crash_states(2, seed).collect();
    after.push(disk.kill());
    drop(world);
    after.push(disk);
    for disk in &after {
        let greatest = disk.files().iter().map(|(name, _)| name.number).max().unwrap_or(0);
        disk.replace(Name::table(greatest + 1), b"a table that was not finished".to_vec());
        disk.replace(Name::manifest(greatest + 2), Vec::new());
        disk.replace(Name::log(greatest + 3), vec![0; 64]);
    }
    after
}

/// Memtables that hold everything that is in the logs.
fn large(durability: Durability) -> Options {
    Options { memtable_bytes: 1 << 20, ..options(durability) }
}

#[test]
fn opening_changes_nothing() {
    for seed in 0..sized(8, 40) {
        for disk in crashed(seed, &options(Durability::Buffered)) {
            let (before, pending) = (disk.files(), disk.pending());
            let world = World::open(&disk, &large(Durability::Buffered)).expect("it opens");
            world.content().expect("it reads");
            world.store.verify().expect("it is whole");
            world.store.step().expect("there is nothing to do");
            drop(world);
            // With a thread too.
            let store =
                Handle::open(Sealed::plain(disk.clone()), &large(Durability::Buffered)).expect("it opens");
            store.stats().expect("it has figures");
            drop(store);
            assert_eq!(disk.pending(), pending, "seed {seed}");
            assert!(disk.files() == before, "seed {seed}: files have changed");
        }
    }
}

/// What nothing names is removed with the first change, and everything that was read is there after it.
#[test]
fn the_first_change_removes_what_nothing_names() {
    for seed in 0..sized(4, 20) {
        for disk in crashed(seed, &options(Durability::Sync)) {
            let world = World::open(&disk, &large(Durability::Sync)).expect("it opens");
            let mut states = vec![world.content().expect("it reads")];
            let step = super::world::Step::Set("default", 3, 10);
            follow(&mut states, &step);
            world.run(&step).expect("it works");
            // The background does it.
            world.store.step().expect("it works");
            let left: Vec<_> = disk.files().into_iter().filter(|(_, bytes)| bytes.len() == 29).collect();
            assert!(left.is_empty(), "seed {seed}: {left:?}");
            for after in disk.crash_states(2, seed) {
                let world = World::open(&after, &large(Durability::Sync)).expect("it opens");
                assert_eq!(Some(&world.content().expect("it reads")), states.last(), "seed {seed}");
            }
        }
    }
}

/// On a device without a free byte, a store is read, verified and copied to another one. A change is refused, and the
/// store goes on once there is space.
#[test]
fn a_store_on_a_full_device_is_read_and_copied() {
    for seed in 0..sized(4, 20) {
        for disk in crashed(seed, &options(Durability::Buffered)) {
            disk.set_capacity(Some(0));
            // Small memtables: it cannot make tables of what is in the logs, and keeps it in memory.
            let world = World::open(&disk, &options(Durability::Buffered)).expect("it opens");
            let content = world.content().expect("it reads");
            world.store.verify().expect("it is whole");
            let copy = Simulated::new();
            world.checkpoint(&copy).expect("there is room elsewhere");
            let copied = World::open(&copy, &options(Durability::Buffered)).expect("it opens");
            assert_eq!(copied.content().expect("it reads"), content, "seed {seed}");
            let space = world.store.keyspace("default").expect("it is there");
            let set = || world.store.apply(&space, Op::Set { key: b"new", value: b"" });
            assert_eq!(set().expect_err("there is no room").kind(), ErrorKind::OutOfSpace);
            assert_eq!(world.content().expect("it reads"), content, "seed {seed}");
            disk.set_capacity(None);
            while world.store.step().expect("there is room") {}
            set().expect("there is room");
            world.store.flush_all().expect("there is room");
        }
    }
}

/// On a disk that cannot be changed, changes fail with an error that says why.
#[test]
fn a_store_on_a_read_only_disk_is_read() {
    let disk = Simulated::new();
    let world = World::open(&disk, &options(Durability::Buffered)).expect("it opens");
    let mut states = beginning();
    for step in steps(3, 40) {
        follow(&mut states, &step);
        world.run(&step).expect("it works");
    }
    drop(world);
    disk.freeze();
    let before = disk.files();
    // With small memtables, of which several are read from the logs.
    let world = World::open(&disk, &options(Durability::Buffered)).expect("it opens");
    assert_eq!(Some(&world.content().expect("it reads")), states.last());
    world.store.sync().expect("there is nothing to sync");
    assert!(!world.store.step().expect("there is nothing to do"));
    let space = world.store.keyspace("default").expect("it is there");
    let refused = [
        world.store.apply(&space, Op::Set { key: b"a", value: b"" }).map(drop),
        world.store.apply(&space, Op::DeleteRange { start: b"", end: None }).map(drop),
        world.store.write(&[(&space, Op::Delete { key: b"a" })], None).map(drop),
        world.store.keyspace("new").map(drop),
        world.store.drop_space("default").map(drop),
        world.store.flush_all(),
        world.store.compact(),
    ];
    for refused in refused {
        let error = refused.expect_err("nothing can be changed");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("read-only"), "{error}");
    }
    let store = Handle::open(Sealed::plain(disk.clone()), &options(Durability::Buffered)).expect("it opens");
    drop(store);
    assert!(disk.files() == before, "files have changed");
    assert!(disk.files().iter().any(|(name, _)| name.kind == Kind::Table), "tables are read too");
}

/// A checkpoint states how long its logs are, so damage of any byte is found, also where no later record vouches.
#[test]
fn a_flipped_bit_in_the_log_of_a_checkpoint_is_found() {
    for seed in 0..sized(3, 12) {
        let disk = Simulated::new();
        let world = World::open(&disk, &options(Durability::Buffered)).expect("it opens");
        for step in steps(seed, 30) {
            world.run(&step).expect("it works");
        }
        let copy = Simulated::new();
        world.checkpoint(&copy).expect("it is copied");
        for (name, bytes) in copy.files().into_iter().filter(|(name, _)| name.kind == Kind::Log) {
            for byte in 0..bytes.len() {
                copy.flip(name, byte, byte as u32 % 8);
                let opened = World::open(&copy, &options(Durability::Buffered));
                let error =
                    opened.err().unwrap_or_else(|| panic!("seed {seed}: {name} at {byte}: not found"));
                assert!([ErrorKind::Corrupt, ErrorKind::Unsupported].contains(&error.kind()), "{error}");
                copy.flip(name, byte, byte as u32 % 8);
            }
        }
    }
}

/// Memtables that are read from logs and are exactly full wait, and nobody has called for tables. A change gets
/// through.
#[test]
fn the_first_change_does_not_wait_for_ever() {
    // With its overhead, a pair counts 100 bytes.
    let options = Options { memtable_bytes: 10_000, ..options(Durability::Buffered) };
    let disk = Simulated::new();
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    for number in 0..250_u32 {
        store.apply(&space, Op::Set { key: &number.to_be_bytes(), value: &[7; 64] }).expect("it fits");
    }
    assert_eq!(store.backlog_bytes(), 20_000);
    let store =
        Handle::open(Sealed::plain(disk.kill()), &Options { wait: Duration::from_secs(2), ..options })
            .expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    store.apply(&space, Op::Set { key: b"new", value: b"" }).expect("the tables are made");
}

/// Changes in memory when a store of this many pairs is opened again, and all of them, after a close that may flush
/// until then.
fn left_in_memory(memtable_bytes: usize, pairs: u32, closes_by: Option<Instant>) -> (usize, usize) {
    let options = Options { memtable_bytes, ..options(Durability::Buffered) };
    let disk = Simulated::new();
    let store = Handle::open(Sealed::plain(disk.clone()), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    for number in 0..pairs {
        store.apply(&space, Op::Set { key: &number.to_be_bytes(), value: &[7; 64] }).expect("it fits");
    }
    if let Some(by) = closes_by {
        store.closes_by.set(by).expect("it is open");
    }
    drop(store);
    let store = Handle::open_unattended(Sealed::plain(disk), &options).expect("it opens");
    let keys = store.stats().expect("it has figures").keys;
    (store.version().memtables().map(|memtable| memtable.bytes()).sum(), keys as usize)
}

#[test]
fn closing_makes_tables_of_what_would_be_replayed() {
    assert_eq!(left_in_memory(100_000, 900, None), (0, 900), "most of a memtable");
    assert_eq!(left_in_memory(100_000, 2500, None), (0, 2500), "memtables that wait, too");
    assert_eq!(
        left_in_memory(100_000, 100, None),
        (10_000, 100),
        "a tenth of a memtable is not worth a table"
    );
}

#[test]
fn closing_gives_up_a_flush_that_takes_too_long() {
    // A flush looks every 1,024 entries whether it should go on.
    assert_eq!(left_in_memory(1_000_000, 5000, Some(Instant::now())), (500_000, 5000));
}
