//! A compaction filter that keeps, drops and replaces values, under power cuts, kills and failing I/O. What is found
//! then is a state that the store was in, to each value of which the filter was applied or not. After a compaction it
//! is applied to all of them, so that nothing older takes the place of what it has dropped.

use super::crash::{self, crash_everywhere};
use super::faults::{FAILURES, failing_io_of};
use super::world::{
    World, beginning, expiring, filtered, follow, ingest_steps, is_one_of, options, options_of, seeds, steps,
    wide_steps, with_filter,
};
use crate::disk::simulated::Simulated;
use forrest_engine::Durability;
use forrest_testing::sized;
use std::ops::Range;

/// Power cuts at every I/O; returns the number of states checked.
pub(super) fn power_cuts(seeds: Range<u64>) -> u64 {
    with_filter(|| {
        let crash = |seed| {
            let durability = if seed % 2 == 0 { Durability::Buffered } else { Durability::Sync };
            let work = expiring(seed, ingest_steps(seed, 16));
            crash_everywhere(&format!("seed {seed}"), &work, durability, 1)
        };
        seeds.map(crash).sum()
    })
}

/// Random work, each of whose states is a state of the map to which the filter was applied or not. What it has decided
/// stays so. Returns how often it had.
pub(super) fn random_work(seeds: Range<u64>) -> usize {
    with_filter(|| seeds.map(after_random_work).sum())
}

fn after_random_work(seed: u64) -> usize {
    // Wide batches do not fit where memory is short, if all their values expire.
    let options = if seed.is_multiple_of(3) {
        options_of(seed, Durability::Buffered)
    } else {
        options(Durability::Buffered)
    };
    let disk = Simulated::new();
    let mut world = World::open(&disk, &options).expect("it opens");
    let mut decided = 0;
    let work = match seed % 3 {
        0 => steps(seed, 60),
        1 => expiring(seed, ingest_steps(seed, 40)),
        _ => wide_steps(seed, 40),
    };
    let mut now = beginning();
    for (at, step) in work.iter().enumerate() {
        let what = format!("seed {seed}, step {at}, {step:?}");
        follow(&mut now, step);
        world.run(step).unwrap_or_else(|error| panic!("{what}: {error}"));
        if at % 10 == 9 {
            world.store.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
            drop(world);
            world = World::open(&disk, &options).expect("it opens");
        }
        let content = world.content().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(is_one_of(&content, &now[now.len() - 1..]), "{what}: {content:?}");
        decided += usize::from(now.last() != Some(&content));
        // The filter keeps what it has made, so the next state may be compared with what was found.
        now = vec![content];
    }
    world.store.compact().expect("it compacts");
    assert_eq!(world.content().expect("it is read"), filtered(&now[0]), "seed {seed}");
    decided
}

#[test]
fn what_it_has_decided_stays_so() {
    let decided = random_work(seeds(12, 120));
    println!("{decided} decisions");
    assert!(decided > 10 || forrest_testing::number::<u64>("FORREST_GATE_SEEDS").is_some());
}

#[test]
fn power_may_be_cut_at_any_io() {
    assert!(power_cuts(seeds(1, 2)) > 100);
}

#[test]
fn power_may_be_cut_where_tables_are_wide() {
    let cut = |seed| {
        crash_everywhere(&format!("seed {seed}"), &wide_steps(seed, sized(6, 12)), Durability::Buffered, 1)
    };
    assert!(with_filter(|| seeds(1, 2).map(cut).sum::<u64>()) > 100);
}

#[test]
fn a_kill_loses_nothing() {
    with_filter(|| crash::after_a_kill(seeds(6, 24)));
}

#[test]
fn a_power_cut_after_a_kill_loses_nothing() {
    assert!(with_filter(|| crash::cuts_upon_kills(seeds(1, 2), sized(9, 4))) > 50);
}

#[test]
fn a_crash_upon_a_crash_loses_nothing() {
    assert!(with_filter(|| crash::crashes_upon_crashes(seeds(1, 4), sized(9, 2))) > 50);
}

#[test]
fn any_io_may_fail() {
    let work = |seed| expiring(seed, ingest_steps(seed, 12));
    with_filter(|| failing_io_of(seeds(1, 1), work, &FAILURES, sized(7, 2)));
}

#[test]
fn any_io_may_fail_where_tables_are_wide() {
    with_filter(|| failing_io_of(seeds(1, 2), |seed| wide_steps(seed, 12), &FAILURES, sized(29, 11)));
}
