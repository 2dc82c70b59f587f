//! A failing disk: every I/O fails in turn, in every way, and the store must handle it.

use super::world::{Content, Step, World, beginning, follow, is_one_of, options, options_of, seeds, steps};
use crate::compact::plan::tables_most;
use crate::disk::simulated::{Failure, Fate, Fault, Simulated, Times};
use crate::room::refusal;
use crate::table::Table;
use forrest_engine::{Durability, Options};
use forrest_engine::{ErrorKind, Result};
use forrest_testing::sized;
use std::ops::Range;
use std::sync::Arc;

/// How an I/O may fail.
pub(super) const FAILURES: [Failure; 10] = [
    Failure::Eio,
    Failure::Enospc,
    Failure::Interrupted,
    Failure::ShortWrite,
    Failure::ShortRead,
    Failure::Emfile,
    Failure::Enomem,
    Failure::SyncFails(Fate::Kept),
    Failure::SyncFails(Fate::Dropped),
    Failure::SyncFails(Fate::Reverted),
];

/// Every I/O fails in turn, once. Every failure is returned as an error, or is made up for. Changes
/// acknowledged before are there when the store is opened again, and nothing is acknowledged that is not. In
/// steps of `every` I/Os, one fails in each way, and a different one in the next way.
pub(super) fn failing_io(seeds: Range<u64>, failures: &[Failure], every: usize) {
    failing_io_of(seeds, |seed| steps(seed, 30), failures, every);
}

/// The same with other work.
pub(super) fn failing_io_of(
    seeds: Range<u64>,
    work: impl Fn(u64) -> Vec<Step>,
    failures: &[Failure],
    every: usize,
) {
    for seed in seeds {
        let options = options_of(seed, Durability::Sync);
        let steps = work(seed);
        let whole = Simulated::new();
        let world = World::open(&whole, &options).expect("nothing fails");
        steps.iter().for_each(|step| world.run(step).expect("nothing fails"));
        for (number, &kind) in failures.iter().enumerate() {
            for at in (0..whole.ios()).skip(number % every).step_by(every) {
                let disk = Simulated::new();
                disk.fail(Fault { at, times: Times::Once, kind });
                let what = format!("seed {seed}, {kind:?} at I/O {at}");
                let mut states = beginning();
                let mut least = 0;
                if let Ok(world) = World::open(&disk, &options) {
                    for step in &steps {
                        let struck = disk.struck();
                        follow(&mut states, step);
                        if let Err(error) = world.run(step) {
                            let kinds = [ErrorKind::Io, ErrorKind::OutOfSpace, ErrorKind::Stopped];
                            assert!(kinds.contains(&error.kind()), "{what}: {error}");
                            // Reads go on.
                            let content = world.content().unwrap_or_else(|error| panic!("{what}: {error}"));
                            assert!(content.contains_key("default"), "{what}");
                            break;
                        }
                        least = states.len() - 1;
                        if disk.struck() > struck {
                            // It was made up for, so the power may be cut right now.
                            survives(&disk, &options, &states[least..], &what);
                        }
                    }
                }
                disk.heal();
                survives(&disk, &options, &states[least..], &what);
            }
        }
    }
}

/// Cuts the power, and checks that one of these states is found.
pub(super) fn survives(disk: &Simulated, options: &Options, states: &[Content], what: &str) {
    for after in disk.crash_states(1, 0).chain([disk.kill()]) {
        let world = World::open(&after, options).unwrap_or_else(|error| panic!("{what}: {error}"));
        let content = world.content().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(is_one_of(&content, states), "{what}: {content:?}");
    }
}

#[test]
fn any_io_may_fail() {
    failing_io(seeds(1, 1), &FAILURES, sized(3, 1));
}

/// After a failed sync no writes are accepted, whatever the system reports, and reads go on.
#[test]
fn a_failed_sync_stops_the_store() {
    let options = options(Durability::Buffered);
    let disk = Simulated::new();
    let world = World::open(&disk, &options).expect("it opens");
    let steps = steps(7, 3);
    world.run(&steps[0]).expect("it works");
    disk.fail(Fault { at: disk.ios(), times: Times::Once, kind: Failure::SyncFails(Fate::Dropped) });
    assert_eq!(world.store.sync().expect_err("it fails").kind(), ErrorKind::Io);
    let error = world.store.sync().expect_err("it is stopped");
    assert_eq!(error.kind(), ErrorKind::Stopped);
    assert!(error.to_string().contains("until it is opened again"), "{error}");
    assert!(world.content().is_ok());
}

/// If there is no room for a memtable's tables, it stays in memory, and changes are refused until there is
/// room. Nothing has to be opened again, and nothing is left of the tables that were begun.
#[test]
fn a_full_disk_is_an_ordinary_error() {
    assert!(refusals(Failure::Enospc) > 1, "tables are made of several writes");
}

/// The same for a process with its maximum number of descriptors.
#[test]
fn no_descriptor_for_a_table_is_an_ordinary_error() {
    assert!(refusals(Failure::Emfile) > 0, "a table is a file");
}

/// The number of I/Os of a step that could fail in this way, each without a loss.
fn refusals(kind: Failure) -> usize {
    let options = options(Durability::Buffered);
    let set = |number| Step::Set("default", number, 300);
    let mut refusals = 0;
    // From any I/O of the step on.
    for at in 0.. {
        let disk = Simulated::new();
        let world = World::open(&disk, &options).expect("it opens");
        let mut states = beginning();
        for number in 0..9 {
            follow(&mut states, &set(number));
            world.run(&set(number)).expect("it works");
        }
        let files = || disk.files().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let before = files();
        disk.fail(Fault { at: disk.ios() + at, times: Times::ForEver, kind });
        let stepped = world.store.step();
        disk.heal();
        if stepped.is_ok() {
            // Later failures are in calls that the step can do without: it removes files that are not needed
            // any more.
            break;
        }
        let refused = world.run(&set(9)).err();
        assert_eq!(Some(&world.content().expect("reads go on")), states.last(), "{at}");
        match (stepped, refused) {
            // The manifest was already changed. Space for that is taken before.
            (Err(_), Some(refused)) if refused.kind() == ErrorKind::Stopped && kind != Failure::Enospc => {
                break;
            }
            (Err(error), Some(refused)) => {
                assert_eq!((error.kind(), refused.kind()), (ErrorKind::OutOfSpace, ErrorKind::OutOfSpace));
                assert!(refused.to_string().contains("goes on by itself"), "{refused}");
                assert_eq!(files(), before);
            }
            other => panic!("I/O {at}: {other:?}"),
        }
        refusals += 1;
        while world.store.step().expect("there is room") {}
        follow(&mut states, &set(9));
        world.run(&set(9)).expect("it goes on");
        assert_eq!(Some(&world.content().expect("it is read")), states.last());
        survives(&disk, &options, &states, "after it");
    }
    refusals
}

/// From any I/O on there is no space. Changes are refused sooner or later, deletes are not. Nothing stops the store,
/// and it goes on by itself when there is space.
#[test]
fn a_disk_that_fills_up_stops_nothing() {
    // Many small memtables, so that logs are begun; and changes that outgrow the space that a log takes at first.
    for (memtable_bytes, len) in [(600, 300), (1 << 20, 25_000)] {
        let options = Options { memtable_bytes, ..options(Durability::Buffered) };
        let mut refusals = 0;
        for at in 0..sized(40, 120) {
            let disk = Simulated::new();
            let world = World::open(&disk, &options).expect("it opens");
            let mut states = beginning();
            let what = format!("values of {len} bytes, full from I/O {at} on");
            disk.fail(Fault { at: disk.ios() + at, times: Times::ForEver, kind: Failure::Enospc });
            let mut run = |step: &Step, may_fail: bool| match world.run(step) {
                Ok(()) => {
                    follow(&mut states, step);
                    true
                }
                Err(error) => {
                    assert!(may_fail && error.kind() == ErrorKind::OutOfSpace, "{what}: {error}");
                    false
                }
            };
            let mut is_refused = false;
            for number in 0..20 {
                is_refused |= !run(&Step::Set("default", number % 8, len), true);
                let _full = world.store.step();
            }
            if is_refused {
                refusals += 1;
                run(&Step::Delete("default", 3), false);
            }
            disk.heal();
            while world.store.step().unwrap_or_else(|error| panic!("{what}: {error}")) {}
            run(&Step::Set("default", 9, len), false);
            assert_eq!(Some(&world.content().expect("it is read")), states.last(), "{what}");
            world.store.sync().expect("it syncs");
            survives(&disk, &options, &states[states.len() - 1..], &what);
        }
        assert!(refusals > 2, "{refusals} refusals with values of {len} bytes");
    }
}

/// If a partition's tables cannot be merged for lack of space, the new pairs become one more table.
#[test]
fn a_merge_without_space_becomes_a_table() {
    let options = options(Durability::Buffered);
    let mut fallbacks = 0;
    for at in 0.. {
        let disk = Simulated::new();
        let world = World::open(&disk, &options).expect("it opens");
        let mut states = beginning();
        let mut flush = |number: u8| {
            for step in [Step::Set("default", number, 100), Step::Delete("default", 111)] {
                follow(&mut states, &step);
                world.run(&step).expect("it works");
            }
            world.store.flush_all()
        };
        // How many more tables the fullest partition takes before some are merged.
        let left = || {
            let version = world.store.version();
            let left =
                |tables: &[Arc<Table>]| tables_most(tables[0].name().number) as isize - tables.len() as isize;
            version.partitions.values().flatten().map(|one| left(one.tables())).min()
        };
        let mut number = 0;
        while left() != Some(0) {
            flush(number).expect("it works");
            number += 1;
            assert!(number < 100, "no partition has many tables");
        }
        disk.fail(Fault { at: disk.ios() + at, times: Times::Once, kind: Failure::Enospc });
        let flushed = flush(number);
        let is_struck = disk.struck() > 0;
        disk.heal();
        match flushed {
            Ok(()) if is_struck && left() < Some(0) => fallbacks += 1,
            Ok(()) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{error}"),
        }
        world.store.flush_all().expect("there is space");
        assert_eq!(Some(&world.content().expect("it is read")), states.last(), "{at}");
        if !is_struck {
            break;
        }
    }
    assert!(fallbacks > 0, "no merge fell back to a table");
}

/// What a store does in the background or when it is asked to, and what comes before.
struct Work {
    name: &'static str,
    options: Options,
    prepare: fn(&mut dyn FnMut(Step)),
    /// True while there is more to do.
    work: fn(&World) -> Result<bool>,
}

/// The number of the first table of a store.
const FIRST_TABLE: u64 = 4;

/// The number of all tables.
fn count(world: &World) -> usize {
    world.store.version().partitions.values().flatten().map(|one| one.tables().len()).sum()
}

/// Sets the keys from 0 to `count`, in tables of `each` pairs.
fn tables(run: &mut dyn FnMut(Step), count: u8, each: u8, len: usize) {
    for number in 0..count {
        run(Step::Set("default", number, len));
        if number % each == each - 1 {
            run(Step::Flush);
        }
    }
}

fn all_work() -> Vec<Work> {
    let small = || options(Durability::Buffered);
    // One partition, whose tables are merged only when it has many.
    let large = || Options { memtable_bytes: 4 << 20, table_bytes: 4 << 20, ..small() };
    let step = |world: &World| world.store.step();
    let flush = |world: &World| world.store.flush_all().map(|()| false);
    vec![
        Work {
            name: "a flush to several partitions",
            options: small(),
            prepare: |run| {
                tables(run, 60, 10, 60);
                (0..60).step_by(7).for_each(|number| run(Step::Set("default", number, 90)));
            },
            work: step,
        },
        Work {
            name: "a flush that merges the newest tables",
            options: large(),
            prepare: |run| {
                tables(run, 100, 100, 90);
                tables(run, tables_most(FIRST_TABLE) as u8 - 1, 1, 20);
                run(Step::Delete("default", 3));
            },
            work: flush,
        },
        Work {
            name: "a flush that merges all tables of a partition",
            options: large(),
            prepare: |run| {
                tables(run, tables_most(FIRST_TABLE) as u8, 1, 20);
                run(Step::Delete("default", 3));
            },
            work: flush,
        },
        Work {
            name: "a merge of all partitions",
            options: small(),
            prepare: |run| {
                tables(run, 60, 10, 60);
                tables(run, 60, 20, 40);
            },
            work: |world| world.store.compact().map(|()| false),
        },
        Work {
            name: "a merge of dead entries",
            options: large(),
            prepare: |run| {
                for first in 0..2 {
                    (first..120).step_by(2).for_each(|number| run(Step::Set("default", number, 9_000)));
                    run(Step::Flush);
                }
                (5..115).for_each(|number| run(Step::Delete("default", number)));
                run(Step::Flush);
            },
            work: |world| world.store.compact_dead(),
        },
        Work {
            name: "a flush of a range that is most of a partition",
            options: large(),
            prepare: |run| {
                (0..120).for_each(|number| run(Step::Set("default", number, 9_000)));
                run(Step::Flush);
                run(Step::DeleteRange("default", 5, 115));
            },
            work: flush,
        },
        Work {
            name: "a flush of a small range",
            options: large(),
            prepare: |run| {
                (0..120).for_each(|number| run(Step::Set("default", number, 9_000)));
                run(Step::Flush);
                run(Step::DeleteRange("default", 5, 25));
            },
            work: flush,
        },
        Work {
            name: "the file of a REMIX",
            options: large(),
            prepare: |run| tables(run, 80, 20, 20),
            work: |world| world.store.store_remix(),
        },
        Work {
            name: "the tables of a dropped keyspace",
            options: small(),
            prepare: |run| {
                (0..20).for_each(|number| run(Step::Set("other", number, 60)));
                run(Step::Flush);
                run(Step::Drop("other"));
            },
            work: step,
        },
    ]
}

/// From any I/O of any background work on there is no space, or no descriptor. Nothing is lost, deletes are taken, and
/// the work is done when there is space.
#[test]
fn any_work_may_find_no_space() {
    for Work { name, options, prepare, work } in all_work() {
        for kind in [Failure::Enospc, Failure::Emfile] {
            let mut refusals = 0;
            for at in (0..).step_by(sized(5, 3)) {
                let what = format!("{name}, {kind:?} from its I/O {at} on");
                let disk = Simulated::new();
                let world = World::open(&disk, &options).expect("it opens");
                let mut states = beginning();
                prepare(&mut |step| {
                    follow(&mut states, &step);
                    world.run(&step).expect("nothing fails yet");
                });
                let before = count(&world);
                disk.fail(Fault { at: disk.ios() + at, times: Times::ForEver, kind });
                let mut done = Ok(true);
                while matches!(done, Ok(true)) {
                    done = work(&world);
                }
                let is_struck = disk.struck() > 0;
                if let Err(error) = &done {
                    refusals += 1;
                    assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{what}: {error}");
                }
                let delete = Step::Delete("default", 7);
                world.run(&delete).unwrap_or_else(|error| panic!("{what}: no delete: {error}"));
                follow(&mut states, &delete);
                let content = world.content().unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(Some(&content), states.last(), "{what}");
                disk.heal();
                while work(&world).unwrap_or_else(|error| panic!("{what}: {error}")) {}
                let set = Step::Set("default", 9, 10);
                world.run(&set).unwrap_or_else(|error| panic!("{what}: {error}"));
                follow(&mut states, &set);
                world.store.sync().unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(world.content().ok().as_ref(), states.last(), "{what}");
                survives(&disk, &options, &states[states.len() - 1..], &what);
                if !is_struck {
                    let merges = name.contains("merge");
                    assert!(!merges || count(&world) < before, "{name}: {before} tables before");
                    break;
                }
            }
            // Removing tables opens no file.
            assert!(refusals > 0 || kind == Failure::Emfile, "{name}, {kind:?}: it never failed");
        }
    }
}

/// Who refuses memory: the system, at an I/O, or the allocator, where the store can do without.
#[derive(Debug, Clone, Copy)]
enum Refuses {
    System(Times),
    Allocator(Times),
}

impl Refuses {
    const ALL: [Refuses; 4] = [
        Refuses::System(Times::Once),
        Refuses::System(Times::ForEver),
        Refuses::Allocator(Times::Once),
        Refuses::Allocator(Times::ForEver),
    ];

    fn begin(self, disk: &Simulated, at: u64) {
        match self {
            Refuses::System(times) => disk.fail(Fault { at: disk.ios() + at, times, kind: Failure::Enomem }),
            Refuses::Allocator(times) => refusal::plant(at, times),
        }
    }

    /// Returns how often memory was refused.
    fn end(self, disk: &Simulated) -> u64 {
        disk.heal();
        match self {
            Refuses::System(_) => disk.struck(),
            Refuses::Allocator(_) => refusal::heal(),
        }
    }
}

/// Memory runs out at any step of any background work, once or until later. Nothing is lost, and the store goes on, if
/// need be after it was resumed.
#[test]
fn any_work_may_find_no_memory() {
    let (mut refusals, mut stops) = (0, 0);
    for Work { name, options, prepare, work } in all_work() {
        for refuses in Refuses::ALL {
            // Most of the later places are one place of the code, reached again.
            for at in (0..sized(8, 24)).chain((48..).step_by(sized(211, 61))) {
                let what = format!("{name}, {refuses:?} refuses memory from {at} on");
                let disk = Simulated::new();
                let world = World::open(&disk, &options).expect("it opens");
                let mut states = beginning();
                prepare(&mut |step| {
                    follow(&mut states, &step);
                    world.run(&step).expect("nothing fails yet");
                });
                refuses.begin(&disk, at);
                let mut done = Ok(true);
                while matches!(done, Ok(true)) {
                    done = work(&world);
                }
                let read = world.content();
                let delete = Step::Delete("default", 7);
                let deleted = world.run(&delete);
                let struck = refuses.end(&disk);
                let kinds = [ErrorKind::OutOfSpace, ErrorKind::Stopped];
                for error in
                    [done.as_ref().err(), read.as_ref().err(), deleted.as_ref().err()].into_iter().flatten()
                {
                    assert!(kinds.contains(&error.kind()), "{what}: {error}");
                    refusals += 1;
                }
                if let Ok(read) = read {
                    assert_eq!(Some(&read), states.last(), "{what}");
                }
                let mut after = states.clone();
                follow(&mut after, &delete);
                let content = world.content().unwrap_or_else(|error| panic!("{what}: {error}"));
                if deleted.is_ok() || Some(&content) != states.last() {
                    states = after;
                }
                assert_eq!(Some(&content), states.last(), "{what}");
                if world.store.log().check().is_err() {
                    stops += 1;
                    world.store.resume().unwrap_or_else(|error| panic!("{what}: {error}"));
                }
                while work(&world).unwrap_or_else(|error| panic!("{what}: {error}")) {}
                let set = Step::Set("default", 9, 10);
                world.run(&set).unwrap_or_else(|error| panic!("{what}: {error}"));
                follow(&mut states, &set);
                world.store.sync().unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(world.content().ok().as_ref(), states.last(), "{what}");
                survives(&disk, &options, &states[states.len() - 1..], &what);
                if struck == 0 {
                    break;
                }
            }
        }
    }
    assert!(refusals > 50 && stops > 5, "{refusals} refusals, {stops} of which stopped the store");
}

/// Memory is refused at each request of random work. A batch is whole or absent, also if memory ran out in its middle.
#[test]
fn memory_may_run_out_in_any_change() {
    let options = options(Durability::Sync);
    let mut stops = 0;
    for seed in seeds(2, 6) {
        let steps = steps(seed, 40);
        for (at, times) in (0..).flat_map(|at| [(at, Times::Once), (at, Times::ForEver)]) {
            let what = format!("seed {seed}, request {at} is refused, {times:?}");
            let disk = Simulated::new();
            let world = World::open(&disk, &options).expect("it opens");
            refusal::plant(at, times);
            let mut states = beginning();
            for step in &steps {
                let least = states.len() - 1;
                follow(&mut states, step);
                let Err(error) = world.run(step) else { continue };
                assert!(
                    [ErrorKind::OutOfSpace, ErrorKind::Stopped].contains(&error.kind()),
                    "{what}: {error}"
                );
                let before = world.content();
                refusal::heal();
                let seen = world.content().unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(before.is_err() || before.ok().as_ref() == Some(&seen), "{what}");
                if world.store.log().check().is_err() {
                    stops += 1;
                    survives(&disk, &options, &states[least..], &what);
                    world.store.resume().unwrap_or_else(|error| panic!("{what}: {error}"));
                }
                let content = world.content().unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(states[least..].contains(&content), "{what}, {step:?}: {content:?}");
                states = vec![content];
            }
            let struck = refusal::heal();
            while world.store.step().unwrap_or_else(|error| panic!("{what}: {error}")) {}
            assert_eq!(world.content().ok().as_ref(), states.last(), "{what}");
            world.store.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
            survives(&disk, &options, &states[states.len() - 1..], &what);
            if struck == 0 {
                break;
            }
        }
    }
    assert!(stops > 20, "memory ran out in the middle of {stops} changes");
}

/// A sync fails and drops what was written; the system still returns it. The process that opens the store next shows
/// it, and what that process then reports as durable is, with everything before it. If the system forgets it meanwhile,
/// no change is accepted.
pub(super) fn syncs_that_drop(every: usize) {
    for (durability, is_evicted) in
        [(Durability::Sync, false), (Durability::Buffered, false), (Durability::Buffered, true)]
    {
        let options = options(durability);
        let steps = steps(3, 30);
        let (mut failed, mut refused) = (0, 0);
        for at in (0..).step_by(every) {
            let disk = Simulated::new();
            disk.fail(Fault { at, times: Times::Once, kind: Failure::FileSyncFails(Fate::Dropped) });
            if let Ok(world) = World::open(&disk, &options) {
                let _first = steps.iter().try_for_each(|step| world.run(step));
            }
            if disk.struck() == 0 {
                break;
            }
            let disk = disk.kill();
            let what = format!("{durability:?}, the sync at I/O {at}");
            let world = World::open(&disk, &options).unwrap_or_else(|error| panic!("{what}: {error}"));
            let mut states = vec![world.content().unwrap_or_else(|error| panic!("{what}: {error}"))];
            if is_evicted {
                disk.evict();
            }
            let step = Step::Set("default", 200, 9);
            follow(&mut states, &step);
            failed += 1;
            match world.run(&step).and_then(|()| world.run(&Step::Sync)) {
                Ok(()) => survives(&disk, &options, &states[states.len() - 1..], &what),
                Err(error) => {
                    assert!(is_evicted && error.kind() == ErrorKind::Corrupt, "{what}: {error}");
                    world.run(&step).expect_err("the store is stopped");
                    refused += 1;
                }
            }
        }
        assert!(failed > 5 && (refused > 0) == is_evicted, "{failed} syncs failed, {refused} times refused");
    }
}

#[test]
fn what_a_failed_sync_has_dropped_is_stored_by_the_next_process() {
    syncs_that_drop(sized(3, 1));
}
