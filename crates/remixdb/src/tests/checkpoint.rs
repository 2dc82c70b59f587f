//! Checkpoints: their content, whatever the store is doing at that moment. Neither a crash nor a failing disk
//! makes a wrong one, or damages the store.

use super::faults::FAILURES;
use super::world::{Content, Step, World, beginning, follow, options, options_of, seeds, steps, wide_steps};
use crate::core::Handle;
use crate::disk::simulated::{Failure, Fate, Fault, Simulated, Times};
use crate::disk::{Kind, Sealed};
use forrest_engine::{Durability, Options};
use forrest_engine::{ErrorKind, Op, Result};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const DURABILITIES: [Durability; 3] = [Durability::Memory, Durability::Buffered, Durability::Sync];

/// The work of a seed, and the states after each of its steps.
fn work(seed: u64, count: usize) -> Vec<Step> {
    if seed % 4 == 3 { wide_steps(seed, count) } else { steps(seed, count) }
}

/// A store after the work of a seed, its disk, and the states that it went through.
fn store(seed: u64, count: usize, options: &Options) -> (Simulated, World, Vec<Content>) {
    let disk = Simulated::new();
    let world = World::open(&disk, options).expect("it opens");
    let mut states = beginning();
    for step in work(seed, count) {
        follow(&mut states, &step);
        world.run(&step).expect("it works");
    }
    (disk, world, states)
}

/// A disk that cannot share files with others.
fn far() -> Simulated {
    let disk = Simulated::new();
    disk.fail(Fault { at: 0, times: Times::ForEver, kind: Failure::Exdev });
    disk
}

/// Opens a new checkpoint, compares its content, and checks that it can be used like any store.
fn check(disk: &Simulated, options: &Options, expected: &Content, what: &str) {
    let world = World::open(disk, options).unwrap_or_else(|error| panic!("{what}: {error}"));
    let content = world.content().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(&content, expected, "{what}");
    world.store.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut states = vec![content];
    for step in [Step::Set("default", 5, 30), Step::Drop("other"), Step::Set("new", 1, 500), Step::Compact] {
        follow(&mut states, &step);
        world.run(&step).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    drop(world);
    let world = World::open(disk, options).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(Some(&world.content().expect("it is read")), states.last(), "{what}");
}

/// It has everything that is in the store, including what is in memory only. The two stores are independent
/// from then on.
#[test]
pub(super) fn a_checkpoint_is_the_store_at_that_moment() {
    for seed in seeds(3, 12) {
        let options = options_of(seed, DURABILITIES[(seed % 3) as usize]);
        let disk = Simulated::new();
        let world = World::open(&disk, &options).expect("it opens");
        let mut states = beginning();
        for (at, step) in work(seed, 60).iter().enumerate() {
            follow(&mut states, step);
            world.run(step).expect("it works");
            if at % 8 == 0 {
                let now = states.last().expect("there is one");
                let what = format!("seed {seed}, after step {at}");
                for copy in [Simulated::new(), far()] {
                    let files = disk.files();
                    world.checkpoint(&copy).unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert!(disk.files() == files, "{what}: a checkpoint changed its store");
                    check(&copy, &options, now, &what);
                }
                assert_eq!(&world.content().expect("it is read"), now, "{what}");
            }
        }
        assert_eq!(world.store.stats().expect("it is counted").snapshots, 0);
        drop(world);
        let world = World::open(&disk, &options).expect("it opens again");
        assert_eq!(Some(&world.content().expect("it is read")), states.last());
    }
}

/// An empty store has a checkpoint as well. An existing one is never taken for a new store when its manifest
/// is missing.
#[test]
fn a_checkpoint_of_nothing_is_a_store() {
    let options = options(Durability::Buffered);
    let world = World::open(&Simulated::new(), &options).expect("it opens");
    let copy = Simulated::new();
    world.checkpoint(&copy).expect("it works");
    let names: Vec<_> = copy.files().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.iter().map(|name| name.kind).collect::<Vec<_>>(), [Kind::Log, Kind::Manifest]);
    let without = copy.kill();
    without.remove(names[1]);
    let error = World::open(&without, &options).err().expect("it has no manifest");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    check(&copy, &options, &beginning()[0], "nothing");
}

/// The stores share only tables and REMIXes. Those stay when the store removes them.
#[test]
fn what_the_store_removes_stays_in_the_checkpoint() {
    let options = options(Durability::Buffered);
    let (disk, world, states) = store(3, 60, &options);
    let copy = Simulated::new();
    world.checkpoint(&copy).expect("it works");
    let (shared, own): (Vec<_>, Vec<_>) =
        copy.files().into_iter().partition(|(name, _)| matches!(name.kind, Kind::Table | Kind::Remix));
    assert!(!shared.is_empty(), "the store has tables");
    assert_eq!(own.iter().filter(|(name, _)| name.kind == Kind::Manifest).count(), 1);
    let files = disk.files();
    assert!(shared.iter().all(|file| files.contains(file)) && !own.iter().any(|file| files.contains(file)));
    for step in [Step::DeleteRange("default", 0, 255), Step::Compact, Step::Drop("other"), Step::Flush] {
        world.run(&step).expect("it works");
    }
    assert!(!shared.iter().any(|file| disk.files().contains(file)), "the store merged its tables");
    check(&copy, &options, states.last().expect("there is one"), "after the removal");
}

/// Cuts the power at every I/O of a checkpoint. A finished checkpoint is complete in every state that this
/// leaves, and the store is always right. Returns the number of states checked.
pub(super) fn power_cuts(seeds: Range<u64>) -> u64 {
    let mut looked = 0;
    for seed in seeds {
        let options = options_of(seed, DURABILITIES[(seed % 3) as usize]);
        let (disk, world, states) = store(seed, 30, &options);
        let now = states.last().expect("there is one");
        for new in [Simulated::new, far] {
            let (own, others) = ios_of_a_checkpoint(&world, &disk, new);
            for io in 0..=others {
                let what = format!("seed {seed}, cut at I/O {io}");
                let copy = new();
                copy.cut_power_at(io);
                let done = world.checkpoint(&copy);
                assert_eq!(done.is_err(), io < others, "{what}");
                if done.is_ok() {
                    for after in copy.crash_states(2, io) {
                        check(&after, &options, now, &what);
                        looked += 1;
                    }
                }
            }
            // The other way round: the store's own disk loses its power.
            for io in 0..own {
                let what = format!("seed {seed}, cut at the store's I/O {io}");
                let (disk, world, _) = store(seed, 30, &options);
                disk.cut_power_at(disk.ios() + io);
                let error = world.checkpoint(&new()).expect_err("its disk is gone");
                assert_eq!(error.kind(), ErrorKind::Io, "{what}");
                // A checkpoint writes nothing there, so a cut always leaves the same state.
                for after in disk.crash_states(1, seed).take_while(|_| io == 0) {
                    let content = World::open(&after, &options).and_then(|world| world.content());
                    let content = content.unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert!(states.contains(&content), "{what}: {content:?}");
                    looked += 1;
                }
            }
        }
        assert_eq!(&world.content().expect("it is read"), now, "seed {seed}");
        world.run(&Step::Set("default", 1, 1)).expect("it goes on");
    }
    looked
}

/// Number of I/Os of a checkpoint on the store's own disk, and on the other one.
fn ios_of_a_checkpoint(world: &World, disk: &Simulated, new: fn() -> Simulated) -> (u64, u64) {
    let (before, copy) = (disk.ios(), new());
    world.checkpoint(&copy).expect("it works");
    (disk.ios() - before, copy.ios())
}

#[test]
fn a_power_cut_makes_no_wrong_checkpoint() {
    let looked = power_cuts(seeds(2, 8));
    println!("{looked} states");
    assert!(looked > 0, "no state was looked at");
}

/// Every I/O of a checkpoint fails in turn, in every way: the checkpoint is made nevertheless, or returns the
/// error. The store goes on.
#[test]
fn any_io_of_a_checkpoint_may_fail() {
    for seed in seeds(1, 2) {
        let options = options_of(seed, DURABILITIES[(seed % 3) as usize]);
        let (disk, world, states) = store(seed, 30, &options);
        let now = states.last().expect("there is one");
        for new in [Simulated::new, far] {
            let (own, others) = ios_of_a_checkpoint(&world, &disk, new);
            let places = (0..own).map(|at| (true, at)).chain((0..others).map(|at| (false, at)));
            for ((is_own, at), kind) in places.flat_map(|place| FAILURES.map(|kind| (place, kind))) {
                let what = format!("seed {seed}, {kind:?} at I/O {at}, of the store's disk: {is_own}");
                let copy = new();
                let failing = if is_own { &disk } else { &copy };
                failing.fail(Fault { at: failing.ios() + at, times: Times::Once, kind });
                match world.checkpoint(&copy) {
                    Ok(()) => copy.crash_states(0, 0).for_each(|after| check(&after, &options, now, &what)),
                    Err(error) => {
                        let kinds = [ErrorKind::Io, ErrorKind::OutOfSpace];
                        assert!(kinds.contains(&error.kind()), "{what}: {error}");
                    }
                }
                disk.heal();
                assert_eq!(&world.content().expect("it is read"), now, "{what}");
            }
        }
        world.run(&Step::Set("default", 1, 1)).expect("it goes on");
        world.store.sync().expect("it goes on");
    }
}

/// A store that accepts no more writes can still be copied elsewhere, with everything that can be read in it.
#[test]
fn a_store_that_has_stopped_can_be_copied() {
    let options = options(Durability::Memory);
    let (disk, world, states) = store(1, 30, &options);
    disk.fail(Fault { at: disk.ios(), times: Times::ForEver, kind: Failure::SyncFails(Fate::Dropped) });
    world.run(&Step::Set("default", 200, 3)).expect("it is taken");
    assert!(world.store.sync().is_err());
    assert_eq!(world.store.sync().expect_err("it is stopped").kind(), ErrorKind::Stopped);
    let copy = Simulated::new();
    world.checkpoint(&copy).expect("it works");
    let mut states = states;
    follow(&mut states, &Step::Set("default", 200, 3));
    check(&copy, &options, states.last().expect("there is one"), "of a stopped store");
}

/// Stops the background threads, also when the test fails.
struct End<'o>(&'o AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// While threads write batches and the store works in the background, every checkpoint is one moment: it has
/// each batch as a whole or not at all, and all that were acknowledged before.
#[test]
fn a_checkpoint_under_writers_is_one_moment() -> Result<()> {
    const WRITERS: usize = 3;
    let options = Options { memtable_bytes: 4 << 10, table_bytes: 16 << 10, ..options(Durability::Memory) };
    let store = Handle::open(Sealed::plain(Simulated::new()), &options)?;
    let spaces = [store.keyspace("default")?, store.keyspace("other")?];
    let (acknowledged, over) = ([const { AtomicU64::new(0) }; WRITERS], AtomicBool::new(false));
    std::thread::scope(|scope| -> Result<()> {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (store, spaces, acknowledged, over) = (&store, &spaces, &acknowledged, &over);
                scope.spawn(move || -> Result<()> {
                    let mut number = 0u64;
                    while !over.load(Ordering::Relaxed) {
                        number += 1;
                        let value = number.to_be_bytes();
                        let name = [b'w', writer as u8];
                        let own = [&name[..], &(number % 300).to_be_bytes()].concat();
                        // Its newest number twice, its last 300 numbers, and the number of all batches.
                        let _no_condition = store.write(
                            &[
                                (&spaces[0], Op::Set { key: &name, value: &value }),
                                (&spaces[1], Op::Set { key: &own, value: &value }),
                                (&spaces[0], Op::Add { key: b"all", delta: 1 }),
                                (&spaces[1], Op::Set { key: &name, value: &value }),
                            ],
                            None,
                        )?;
                        acknowledged[writer].store(number, Ordering::Release);
                    }
                    Ok(())
                })
            })
            .collect();
        let end = End(&over);
        let looked = (0..10).try_for_each(|round| {
            // Waits for something new, so that no two checkpoints are of the same moment.
            let first = acknowledged[0].load(Ordering::Acquire);
            while acknowledged[0].load(Ordering::Acquire) < first + 20 {
                if writers.iter().any(|writer| writer.is_finished()) {
                    return Ok(());
                }
                std::thread::yield_now();
            }
            let before = acknowledged.each_ref().map(|number| number.load(Ordering::Acquire));
            let copy = if round % 2 == 0 { Simulated::new() } else { far() };
            store.checkpoint(Sealed::plain(copy.clone()))?;
            moment(&World::open(&copy, &options)?, before)
        });
        drop(end);
        writers.into_iter().try_for_each(|writer| writer.join().expect("it does not panic"))?;
        looked
    })
}

/// Checks that the writers' data is of one moment, and not of an earlier one than `before`.
fn moment<const N: usize>(world: &World, before: [u64; N]) -> Result<()> {
    let content = world.content()?;
    let number = |space: &str, key: &[u8]| {
        content[space].get(key).map_or(0, |value| u64::from_be_bytes(value[..].try_into().expect("8 bytes")))
    };
    let mut all = 0;
    for (writer, before) in before.into_iter().enumerate() {
        let name = [b'w', writer as u8];
        let newest = number("default", &name);
        assert!(newest >= before, "{before} was acknowledged, and the checkpoint has {newest}");
        assert_eq!(number("other", &name), newest);
        for past in (newest.saturating_sub(299)).max(1)..=newest {
            let own = [&name[..], &(past % 300).to_be_bytes()].concat();
            assert_eq!(number("other", &own), past);
        }
        all += newest;
    }
    assert_eq!(number("default", b"all"), all, "batches of all writers");
    Ok(())
}
