//! The gates with all operations in one work: values that expire, conditions on ranges and values, and ingests beside
//! the others, and merges. Each of them has gates of its own, with less of the others.

use super::crash;
use super::faults::{FAILURES, failing_io_of};
use super::world::{all_steps, lengths, seeds, with_all, with_merges};
use forrest_testing::sized;
use std::ops::Range;

pub(super) fn kills(seeds: Range<u64>) {
    with_all(|| crash::after_a_kill(seeds));
}

#[test]
fn a_kill_loses_nothing() {
    kills(seeds(6, 30));
    with_merges(|| kills(seeds(6, 30)));
}

#[test]
fn power_may_be_cut_at_any_io() {
    assert!(with_all(|| crash::after_power_cuts(seeds(1, 2))) > 100);
}

#[test]
fn power_may_be_cut_in_any_sequence() {
    assert!(with_all(|| crash::after_every_sequence(lengths(1, 2))) > 10);
}

#[test]
fn a_crash_upon_a_crash_loses_nothing() {
    assert!(with_all(|| crash::crashes_upon_crashes(seeds(1, 2), sized(17, 5))) > 20);
}

#[test]
fn any_io_may_fail() {
    failing_io_of(seeds(1, 1), |seed| all_steps(seed, 16), &FAILURES, sized(13, 4));
}
