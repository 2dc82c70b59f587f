//! Power cuts at every I/O of a node's work. The store must then be in a state that it was in, no older than the last
//! vote, entry or snapshot that was reported as durable, and must go on from there.

use super::node::{Done, Node, Seen, block, go_on, states, unharmed, work};
use forrest::simulated::Simulated;
use forrest_testing::sized;
use std::collections::BTreeMap;

/// Opens a disk and looks for a state that may be there. The node must have nothing else, and go on.
fn found(after: &Simulated, states: &[Vec<Seen>], done: &Done, what: &str) -> Vec<Seen> {
    let mut node = Node::open(after).unwrap_or_else(|error| panic!("{what}: {error}"));
    let seen = block(node.see());
    let Done { steps, durable, .. } = *done;
    // The step that was cut may be there.
    let expected = &states[durable..states.len().min(steps + 2)];
    assert!(expected.contains(&seen), "{what}, after {steps} steps, {durable} durable: {seen:#?}");
    assert!(node.is_clean(), "{what}: what no group uses: {:?}", node.store.db().keyspaces());
    go_on(&mut node, durable as u64);
    seen
}

/// Cuts at every I/O, in steps of `every`. In each, `random` of the states that are looked at are drawn.
pub(super) fn cuts(every: usize, random: usize) {
    let (ios, states) = (unharmed(), states());
    let (mut looked, mut between) = (0, 0);
    for io in (0..ios).step_by(every) {
        let disk = Simulated::new();
        disk.cut_power_at(io);
        let done = work(&disk, |_, _| {});
        assert!(disk.is_cut(), "cut at {io}: {:?}", done.error);
        for after in disk.crash_states(random, io) {
            let seen = found(&after, &states, &done, &format!("cut at {io}"));
            looked += 1;
            between += usize::from(seen != states[done.steps]);
        }
    }
    println!("{looked} states after cuts at {ios} I/Os, {between} of them between steps");
    assert!(looked as u64 * every as u64 > ios, "{looked} states, {ios} I/Os");
}

#[test]
fn after_power_cuts_at_every_io() {
    cuts(sized(3, 1), sized(1, 4));
}

/// Tears what was written since `before`, in steps of `every` bytes, and has each state looked at. Returns how many.
pub(super) fn torn(
    before: &Simulated,
    whole: &Simulated,
    every: usize,
    mut look: impl FnMut(&Simulated, &str),
) -> usize {
    let (before, mut looked): (BTreeMap<_, _>, usize) = (before.files().into_iter().collect(), 0);
    for (name, new) in whole.files() {
        let old: &Vec<u8> = before.get(&name).unwrap_or(const { &Vec::new() });
        let is_new = |at: &usize| old.get(*at) != Some(&new[*at]);
        let Some(first) = (0..new.len()).find(is_new) else { continue };
        let last = (0..new.len()).rfind(is_new).expect("the first, if no other");
        for at in (first..last).skip(every).step_by(every) {
            let torn = whole.kill();
            torn.replace(name, [&new[..at], old.get(at..).unwrap_or_default()].concat());
            look(&torn, &format!("{name:?} torn at {at}"));
            looked += 1;
        }
    }
    looked
}

/// Each write is torn, in steps of `every` bytes. So it does not matter where in a sector a batch begins: what is not
/// one batch is found in parts.
pub(super) fn tears(every: usize) {
    let (ios, states) = (unharmed(), states());
    let (mut before, mut looked) = (Simulated::new(), 0);
    for io in 0..ios {
        let disk = Simulated::new();
        disk.cut_power_at(io);
        let done = work(&disk, |_, _| {});
        let whole = disk.kill();
        looked += torn(&before, &whole, every, |torn, what| {
            found(torn, &states, &done, &format!("cut at {io}, {what}"));
        });
        before = whole;
    }
    println!("{looked} torn writes");
    assert!(looked > 50);
}

#[test]
fn after_torn_writes() {
    tears(sized(60, 40));
}
