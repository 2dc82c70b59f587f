//! A store that a failure has stopped goes on without being opened again.

use super::faults::{FAILURES, survives};
use super::world::{Content, Step, World, beginning, follow, options, salvaged_to, seeds, steps};
use crate::core::Handle;
use crate::disk::simulated::{Failure, Fate, Fault, Simulated, Times};
use crate::disk::{Kind, Name, Sealed};
use crate::partition::LOOK;
use forrest_engine::{Durability, ErrorKind, Op, Options, View as _};
use forrest_testing::sized;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A store that a failure at an I/O has stopped, with the states that may be durable.
struct Stopped {
    disk: Simulated,
    world: World,
    states: Vec<Content>,
}

/// Runs steps until a failure stops the store; `None` if it does not.
fn stopped(steps: &[Step], at: u64, kind: Failure) -> Option<Stopped> {
    let disk = Simulated::new();
    disk.fail(Fault { at, times: Times::Once, kind });
    let mut states = beginning();
    let mut least = 0;
    let world = World::open(&disk, &options(Durability::Sync)).ok()?;
    for step in steps {
        follow(&mut states, step);
        if world.run(step).is_err() {
            break;
        }
        least = states.len() - 1;
    }
    world.store.log().check().err()?;
    disk.heal();
    states.drain(..least);
    Some(Stopped { disk, world, states })
}

/// The I/Os of some steps.
fn ios(steps: &[Step]) -> u64 {
    let disk = Simulated::new();
    let world = World::open(&disk, &options(Durability::Sync)).expect("nothing fails");
    steps.iter().for_each(|step| world.run(step).expect("nothing fails"));
    disk.ios()
}

/// Each failure at each I/O that stops a store, in some way.
fn each_stopped(seed: u64, every: usize, mut see: impl FnMut(&[Step], u64, Failure, &str)) {
    let steps = steps(seed, 24);
    for (number, &kind) in FAILURES.iter().enumerate() {
        for at in (0..ios(&steps)).skip(number % every).step_by(every) {
            see(&steps, at, kind, &format!("seed {seed}, {kind:?} at I/O {at}"));
        }
    }
}

/// What reads show after the failure is durable when the store is resumed, and the store works as any other. Returns
/// how many stores were resumed.
pub(super) fn resumed(seeds: Range<u64>, every: usize) -> u32 {
    let options = options(Durability::Sync);
    let mut resumed = 0;
    for seed in seeds {
        each_stopped(seed, every, |steps, at, kind, what| {
            let Some(Stopped { disk, world, states }) = stopped(steps, at, kind) else { return };
            let before = world.content().expect("reads go on");
            assert!(states.contains(&before), "{what}");
            world.store.resume().unwrap_or_else(|error| panic!("{what}: {error}"));
            resumed += 1;
            assert_eq!(world.content().expect("it reads"), before, "{what}");
            survives(&disk, &options, std::slice::from_ref(&before), what);
            let mut states = vec![before];
            for step in steps {
                follow(&mut states, step);
                world.run(step).unwrap_or_else(|error| panic!("{what}, then {step:?}: {error}"));
            }
            while world.store.step().expect("nothing fails") {}
            world.store.verify().expect("it is whole");
            survives(&disk, &options, &states[states.len() - 1..], what);
        });
    }
    resumed
}

#[test]
fn what_is_in_memory_is_durable_when_a_store_is_resumed() {
    let resumed = resumed(seeds(2, 4), sized(5, 2));
    assert!(resumed > 20, "{resumed} stores were resumed");
}

/// The power is cut at each I/O of resuming: everything durable is there, and batches are whole. Returns the number of
/// cuts.
pub(super) fn cuts_while_resuming(seeds: Range<u64>, every: usize) -> u32 {
    let options = options(Durability::Sync);
    let mut cuts = 0;
    for seed in seeds {
        each_stopped(seed, every, |steps, at, kind, what| {
            for io in 0.. {
                let Some(Stopped { disk, world, states }) = stopped(steps, at, kind) else { return };
                disk.cut_power_at(disk.ios() + io);
                let _cut = world.store.resume();
                if !disk.is_cut() {
                    return;
                }
                cuts += 1;
                survives(&disk, &options, &states, &format!("{what}, cut at I/O {io} of resuming"));
            }
        });
    }
    cuts
}

#[test]
fn a_power_cut_while_a_store_is_resumed_loses_nothing() {
    let cuts = cuts_while_resuming(seeds(1, 2), sized(23, 17));
    assert!(cuts > 50, "{cuts} cuts");
}

/// A store whose log was made ahead and begun, and whose header is not synced yet, fails at an I/O of the next change
/// and a sync.
fn stopped_before_the_header_is_synced(options: &Options, at: u64, kind: Failure) -> Option<Stopped> {
    let (disk, mut states) = (Simulated::new(), beginning());
    let world = World::open(&disk, options).expect("it opens");
    let set = |states: &mut Vec<Content>, number: u8| {
        let step = Step::Set("default", number, 150);
        follow(states, &step);
        world.run(&step)
    };
    let first = world.store.version().memtable.log;
    let mut number = 0;
    while world.store.version().memtable.log == first {
        set(&mut states, number).expect("nothing fails");
        world.store.prepare_log().expect("nothing fails");
        number += 1;
    }
    assert!(!world.store.log().may_be_first(world.store.version().memtable.log), "it is synced");
    disk.fail(Fault { at: disk.ios() + at, times: Times::Once, kind });
    let set = set(&mut states, number).and_then(|()| world.run(&Step::Sync));
    disk.heal();
    set.err().map(|_| Stopped { disk, world, states })
}

/// The power is cut while a store is resumed whose last log may not have its header. The log that resuming makes is
/// durable then, and states an end of that one. Nothing was acknowledged as durable. Returns the number of cuts.
pub(super) fn cuts_without_header(step: usize) -> u32 {
    let options = options(Durability::Buffered);
    let mut cuts = 0;
    for &kind in &FAILURES {
        for at in 0..6 {
            for io in (at as usize % step..).step_by(step).map(|io| io as u64) {
                let Some(stopped) = stopped_before_the_header_is_synced(&options, at, kind) else { break };
                let Stopped { disk, world, states } = stopped;
                disk.cut_power_at(disk.ios() + io);
                let _cut = world.store.resume();
                if !disk.is_cut() {
                    break;
                }
                cuts += 1;
                let what = format!("{kind:?} at I/O {at}, cut at I/O {io} of resuming");
                survives(&disk, &options, &states, &what);
                for after in disk.crash_states(1, 0) {
                    let to = Simulated::new();
                    let salvaged = salvaged_to(after, &to);
                    let lost = salvaged.unwrap_or_else(|error| panic!("{what}: {error}")).lost;
                    assert!(lost.is_empty(), "{what}: {lost:?}");
                    survives(&to, &options, &states, &what);
                }
            }
        }
    }
    cuts
}

#[test]
fn a_power_cut_may_take_the_header_of_the_log_that_failed() {
    let cuts = cuts_without_header(sized(4, 1));
    assert!(cuts > sized(20, 100), "{cuts} cuts");
}

/// More pairs than a merge takes before it looks at the log, which is stopped then.
#[test]
fn a_store_with_many_pairs_in_memory_is_resumed() {
    // Each write would be one more place for a power cut.
    let options = Options { memtable_bytes: 1 << 20, ..options(Durability::Memory) };
    let disk = Simulated::new();
    let world = World::open(&disk, &options).expect("it opens");
    let many = 3 * LOOK;
    (0..many).for_each(|number| world.set_number(number).expect("it works"));
    disk.fail(Fault { at: disk.ios(), times: Times::Once, kind: Failure::Eio });
    world.run(&Step::Sync).expect_err("it cannot be written");
    disk.heal();
    world.store.resume().expect("nothing fails");
    for after in disk.crash_states(1, 0) {
        let world = World::open(&after, &options).expect("it opens");
        let view = world.store.view(&world.store.keyspace("default").expect("it is there"));
        for number in 0..many {
            assert!(view.get(&number.to_be_bytes()).expect("it reads").is_some(), "{number}");
        }
    }
}

/// Each I/O of resuming fails in turn. The store is stopped then, and the next try resumes it.
#[test]
fn a_failure_while_a_store_is_resumed_leaves_it_stopped() {
    let options = options(Durability::Sync);
    let mut again = 0;
    for seed in seeds(1, 2) {
        each_stopped(seed, sized(97, 61), |steps, at, kind, what| {
            for (io, &second) in (0..).flat_map(|io| FAILURES.iter().map(move |kind| (io, kind))) {
                let Some(Stopped { disk, world, states }) = stopped(steps, at, kind) else { return };
                let before = world.content().expect("reads go on");
                let (begin, struck) = (disk.ios(), disk.struck());
                disk.fail(Fault { at: begin + io, times: Times::Once, kind: second });
                let what = format!("{what}, then {second:?} at I/O {io} of resuming");
                let first = world.store.resume();
                let is_over = disk.ios() <= begin + io;
                let is_struck = disk.struck() > struck;
                disk.heal();
                if let Err(error) = first {
                    assert!(is_struck, "{what}: {error}");
                    let set = world.run(&Step::Set("default", 1, 1)).expect_err("it is stopped");
                    assert_eq!(set.kind(), ErrorKind::Stopped, "{what}: {set}");
                    survives(&disk, &options, &states, &what);
                    again += 1;
                }
                world.store.resume().unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(world.content().expect("it reads"), before, "{what}");
                survives(&disk, &options, &[before], &what);
                if is_over {
                    return;
                }
            }
        });
    }
    assert!(again > 50, "{again} failures");
}

/// What was read when the store was opened may be on the device in part only.
#[test]
fn a_store_that_fails_before_its_first_change_is_opened_again() {
    let options = options(Durability::Buffered);
    let disk = Simulated::new();
    let world = World::open(&disk, &options).expect("it opens");
    world.run(&Step::Set("default", 1, 1)).expect("it works");
    world.store.resume().expect("it does nothing");
    let disk = disk.kill();
    let world = World::open(&disk, &options).expect("it opens");
    let kind = Failure::SyncFails(Fate::Dropped);
    disk.fail(Fault { at: disk.ios(), times: Times::ForEver, kind });
    world.run(&Step::Set("default", 2, 1)).expect_err("it cannot sync what it has read");
    disk.heal();
    let error = world.store.resume().expect_err("it is not safe");
    assert!(error.kind() == ErrorKind::Stopped && error.to_string().contains("open it again"), "{error}");
}

/// A store with a lost table is resumed as any other. Files that its manifest does not name stay: they may have what
/// the table had.
#[test]
fn a_store_with_a_lost_table_is_resumed() {
    let options = options(Durability::Sync);
    let disk = Simulated::new();
    let world = World::open(&disk, &options).expect("it opens");
    for number in 0..40 {
        world.run(&Step::Set("default", number, 30)).expect("it works");
    }
    world.run(&Step::Compact).expect("it works");
    drop(world);
    let mut files = disk.files();
    let lost = files.iter().position(|(name, _)| name.kind == Kind::Table).expect("there are tables");
    let (lost, bytes) = files.remove(lost);
    let left = Name::table(lost.number + 1_000);
    files.push((left, bytes));
    let failures = [Fate::Kept, Fate::Dropped, Fate::Reverted].map(Failure::SyncFails);
    for kind in failures.into_iter().chain([Failure::Eio]) {
        let disk = Simulated::from_files(files.clone());
        let world = World::open(&disk, &options).expect("it opens");
        assert!(world.store.has_lost(), "{kind:?}");
        let read = |world: &World| {
            let view = world.store.view(&world.store.keyspace("default").expect("it is there"));
            let get = |number| view.get(&[b'k', number]).map(|value| value.map(|value| value.to_vec()));
            (0..40).map(|number| get(number).map_err(|error| error.to_string())).collect::<Vec<_>>()
        };
        (0..40).step_by(3).for_each(|number| world.run(&Step::Set("default", number, 9)).expect("it works"));
        disk.fail(Fault { at: disk.ios(), times: Times::Once, kind });
        world.run(&Step::Set("default", 1, 7)).expect_err("it is stopped");
        let before = read(&world);
        assert!(before.iter().any(Result::is_err) && before.iter().any(Result::is_ok), "{before:?}");
        world.store.resume().unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        assert_eq!(read(&world), before, "{kind:?}");
        world.run(&Step::Set("default", 2, 7)).expect("it goes on");
        let before = read(&world);
        while world.store.step().expect("nothing fails") {}
        for after in disk.crash_states(1, 0) {
            let world = World::open(&after, &options).unwrap_or_else(|error| panic!("{kind:?}: {error}"));
            assert_eq!(read(&world), before, "{kind:?}");
            assert!(after.files().iter().any(|(name, _)| *name == left), "{kind:?}: {left} was removed");
        }
    }
}

/// Threads write while the store fails and is resumed, again and again: what was acknowledged is there, in order.
#[test]
fn threads_write_while_a_store_is_resumed() {
    const THREADS: u8 = 3;
    let options = Options { memtable_bytes: 4_000, ..options(Durability::Sync) };
    let disk = Simulated::new();
    let store = Handle::open(Sealed::plain(disk.clone()), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let (writing, resumed) = (AtomicUsize::new(THREADS.into()), AtomicUsize::new(0));
    let (writing, resumed, store, space) = (&writing, &resumed, &store, &space);
    // The last value that each thread has written, and the last one that was acknowledged.
    let last: Vec<(u32, u32)> = thread::scope(|scope| {
        let write = |thread: u8| {
            let (mut tried, mut stored) = (0_u32, 0_u32);
            while tried < 400 || resumed.load(Ordering::SeqCst) < 5 {
                tried += 1;
                let value = [&tried.to_be_bytes()[..], &[thread; 40]].concat();
                match store.apply(space, Op::Set { key: &[thread], value: &value }) {
                    Ok(_) => stored = tried,
                    Err(_) => {
                        while store.log().check().is_err() {
                            thread::yield_now();
                        }
                    }
                }
            }
            writing.fetch_sub(1, Ordering::SeqCst);
            (tried, stored)
        };
        let writers: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || write(thread))).collect();
        while writing.load(Ordering::SeqCst) > 0 {
            if resumed.load(Ordering::SeqCst) < 5 {
                let kind = Failure::SyncFails(Fate::Dropped);
                disk.fail(Fault { at: disk.ios() + 20, times: Times::Once, kind });
                while store.log().check().is_ok() && writing.load(Ordering::SeqCst) > 0 {
                    thread::yield_now();
                }
                disk.heal();
            }
            if store.log().check().is_err() {
                store.resume().expect("nothing fails");
                resumed.fetch_add(1, Ordering::SeqCst);
            }
        }
        writers.into_iter().map(|writer| writer.join().expect("no panic")).collect()
    });
    for after in disk.crash_states(1, 0) {
        let world = World::open(&after, &options).expect("it opens");
        let view = world.store.view(&world.store.keyspace("default").expect("it is there"));
        for (thread, (tried, stored)) in last.iter().enumerate() {
            let value = view.get(&[thread as u8]).expect("it reads").expect("it was stored");
            let found = u32::from_be_bytes(value[..4].try_into().expect("4 bytes"));
            assert!((*stored..=*tried).contains(&found), "{found}, not from {stored} to {tried}");
        }
    }
}
