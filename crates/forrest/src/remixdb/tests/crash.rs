//! Power cuts and kills: at every I/O, in every way, and again while the store recovers.

use super::world::{Content, Step, World, beginning, follow, options, seeds, steps};
use crate::options::{Builder, Durability};
use crate::remixdb::disk::simulated::Simulated;
use std::ops::Range;

/// What may be found after a crash.
struct Expected {
    states: Vec<Content>,
    /// The first of `states` that may be found: what came before was acknowledged as durable.
    least: usize,
}

impl Expected {
    /// Opens a disk that a crash left, and looks.
    fn check(&self, disk: &Simulated, options: &Builder, what: &str) {
        let world = World::open(disk, options).unwrap_or_else(|error| panic!("{what}: {error}"));
        let content = world.content().unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = self.states[self.least..].contains(&content);
        let before = self.states[..self.least].iter().rposition(|state| *state == content);
        assert!(
            found,
            "{what}: the store is in no state that it was in (of {}; lost down to {before:?}, {} was durable): {content:?}",
            self.states.len(),
            self.least,
        );
    }
}

/// Runs work until the power is cut at an I/O, or to its end if that comes first; what may be found then.
fn run(disk: &Simulated, options: &Builder, seed: u64, count: usize) -> Expected {
    let mut states = beginning();
    let mut least = 0;
    if let Ok(world) = World::open(disk, options) {
        for step in steps(seed, count) {
            follow(&mut states, &step);
            let result = world.run(&step);
            if result.is_err() {
                break;
            }
            let durable = options.durability == Some(Durability::Sync);
            if durable || matches!(step, Step::Sync | Step::Flush) {
                least = states.len() - 1;
            }
        }
    }
    Expected { states, least }
}

/// Crashes at every I/O of a workload, in every way. How many states were looked at.
fn crash_everywhere(seed: u64, count: usize, durability: Durability, random: usize) -> u64 {
    let options = options(durability);
    let whole = Simulated::new();
    run(&whole, &options, seed, count);
    let ios = whole.ios();
    let mut states = 0;
    for io in 0..=ios {
        let disk = Simulated::new();
        disk.cut_power_at(io);
        let expected = run(&disk, &options, seed, count);
        for (number, after) in disk.crash_states(random, seed ^ io).enumerate() {
            expected.check(
                &after,
                &options,
                &format!("seed {seed}, {durability:?}, cut at I/O {io}, state {number}"),
            );
            states += 1;
        }
        expected.check(&disk.kill(), &options, &format!("seed {seed}, {durability:?}, killed at I/O {io}"));
    }
    states
}

/// Power cuts at every I/O; how many states were looked at.
pub(super) fn after_power_cuts(seeds: Range<u64>) -> u64 {
    let durabilities = [Durability::Memory, Durability::Buffered, Durability::Sync];
    seeds.map(|seed| crash_everywhere(seed, 25, durabilities[(seed % 3) as usize], 2)).sum()
}

/// A kill at the end of work that was acknowledged as buffered.
pub(super) fn after_a_kill(seeds: Range<u64>) {
    for seed in seeds {
        let options = options(Durability::Buffered);
        let disk = Simulated::new();
        let mut expected = run(&disk, &options, seed, 60);
        expected.least = expected.states.len() - 1;
        expected.check(&disk.kill(), &options, &format!("seed {seed}"));
    }
}

/// Crashes, and after each the store is opened and works on, until the power is cut again: at every `every`th I/O.
pub(super) fn crashes_upon_crashes(seeds: Range<u64>, every: usize) -> u64 {
    let mut states = 0;
    for seed in seeds {
        let options = options(Durability::Buffered);
        let whole = Simulated::new();
        run(&whole, &options, seed, 40);
        let disk = Simulated::new();
        disk.cut_power_at(whole.ios() * (2 + seed % 3) / 4);
        let first = run(&disk, &options, seed, 40);
        // A process that finds what a killed one left reads much that is not durable.
        let mut starts = vec![disk.kill()];
        starts.extend(disk.crash_states(1, seed).step_by(7));
        for (number, start) in starts.iter().enumerate() {
            let fresh = || if number == 0 { disk.kill() } else { Simulated::from_files(start.files()) };
            let probe = fresh();
            let before = probe.ios();
            run_on(&probe, &options, seed);
            for io in (before..probe.ios()).step_by(every) {
                let disk = fresh();
                disk.cut_power_at(io);
                let second = run_on(&disk, &options, seed);
                let expected = second.as_ref().unwrap_or(&first);
                for (after, disk) in disk.crash_states(1, seed ^ io).enumerate() {
                    let what = format!("seed {seed}, start {number}, again at I/O {io}, state {after}");
                    expected.check(&disk, &options, &what);
                    states += 1;
                }
            }
        }
    }
    states
}

/// Opens what a crash left and works on; what may be found then, or nothing if it did not come to be open.
fn run_on(disk: &Simulated, options: &Builder, seed: u64) -> Option<Expected> {
    let world = World::open(disk, options).ok()?;
    let mut expected = Expected { states: vec![world.content().ok()?], least: 0 };
    let mut work = steps(seed ^ 0xFF, 6);
    work.insert(2, Step::Sync);
    work.insert(4, Step::Flush);
    for step in work {
        follow(&mut expected.states, &step);
        if world.run(&step).is_err() {
            break;
        }
        if matches!(step, Step::Sync | Step::Flush) {
            expected.least = expected.states.len() - 1;
        }
    }
    Some(expected)
}

#[test]
fn nothing_durable_is_lost_wherever_the_power_is_cut() {
    let states = after_power_cuts(seeds(9));
    println!("{states} states");
    assert!(states > 100, "only {states} states were looked at");
}

#[test]
fn what_was_acknowledged_as_buffered_survives_a_kill() {
    after_a_kill(seeds(100));
}

#[test]
fn a_crash_upon_a_crash_loses_nothing() {
    let states = crashes_upon_crashes(seeds(4), 2);
    println!("{states} states");
}
