//! A store that a failure has stopped goes on without being opened again.

use super::faults::{FAILURES, survives};
use super::world::{Content, Step, World, beginning, follow, options, seeds, steps};
use crate::disk::simulated::{Failure, Fault, Simulated, Times};
use forrest_engine::{Durability, ErrorKind};
use forrest_testing::sized;

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

/// What reads show after the failure is durable when the store is resumed, and the store works as any other.
#[test]
fn what_is_in_memory_is_durable_when_a_store_is_resumed() {
    let options = options(Durability::Sync);
    let mut resumed = 0;
    for seed in seeds(2, 6) {
        each_stopped(seed, sized(5, 1), |steps, at, kind, what| {
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
    assert!(resumed > 20, "{resumed} stores were resumed");
}

/// The power is cut at each I/O of resuming: everything durable is there, and batches are whole.
#[test]
fn a_power_cut_while_a_store_is_resumed_loses_nothing() {
    let options = options(Durability::Sync);
    let mut cuts = 0;
    for seed in seeds(1, 2) {
        each_stopped(seed, sized(23, 11), |steps, at, kind, what| {
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
    assert!(cuts > 50, "{cuts} cuts");
}

/// Each I/O of resuming fails in turn. The store is stopped then, and the next try resumes it.
#[test]
fn a_failure_while_a_store_is_resumed_leaves_it_stopped() {
    let options = options(Durability::Sync);
    let mut again = 0;
    for seed in seeds(1, 2) {
        each_stopped(seed, sized(31, 17), |steps, at, kind, what| {
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
    let kind = Failure::SyncFails(crate::disk::simulated::Fate::Dropped);
    disk.fail(Fault { at: disk.ios(), times: Times::ForEver, kind });
    world.run(&Step::Set("default", 2, 1)).expect_err("it cannot sync what it has read");
    disk.heal();
    let error = world.store.resume().expect_err("it is not safe");
    assert!(error.kind() == ErrorKind::Stopped && error.to_string().contains("open it again"), "{error}");
}
