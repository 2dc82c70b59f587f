//! Damage: every byte of every file, and whole blocks, are changed. Reads are right or fail, and never return
//! a wrong value.

use super::world::{Content, Step, World, beginning, follow, options, options_of, seeds, steps};
use crate::disk::simulated::Simulated;
use crate::disk::{Kind, Name};
use crate::record::HEADER;
use forrest_engine::Durability;
use forrest_testing::sized;
use std::ops::Range;

/// The number of last states that may be found: as many as one record may have made.
const LAST: usize = 4;

/// A store with logs, tables and a REMIX, closed after a sync; and its content.
fn store(seed: u64, work: Vec<Step>) -> (Vec<(Name, Vec<u8>)>, Vec<Content>) {
    let options = options_of(seed, Durability::Sync);
    let disk = Simulated::new();
    let world = World::open(&disk, &options).expect("it opens");
    let mut states = beginning();
    for step in work {
        follow(&mut states, &step);
        world.run(&step).expect("it works");
    }
    drop(world);
    (disk.files(), states)
}

/// What opening and reading damaged files has found.
#[derive(PartialEq, Eq)]
enum Found {
    Damage,
    LastState,
    EarlierState,
}

/// Opens damaged files. Either the damage is reported, or the store has its last state; if the damage is
/// after the last sync that the log states, also an earlier one.
fn check(files: Vec<(Name, Vec<u8>)>, states: &[Content], last: usize, what: &str) -> Found {
    let options = options(Durability::Sync);
    let disk = Simulated::from_files(files);
    let Ok(world) = World::open(&disk, &options) else { return Found::Damage };
    let verified = world.store.verify();
    match world.content() {
        Err(_) => Found::Damage,
        Ok(content) => {
            let at = states.iter().rposition(|state| *state == content);
            let at = at.unwrap_or_else(|| panic!("{what}: the store says what it never held: {content:?}"));
            // The last record is not known to be synced. It may be that of a keyspace and its first change.
            assert!(
                at + last >= states.len(),
                "{what}: nobody noticed that changes are gone, down to state {at}"
            );
            match verified {
                Err(_) => Found::Damage,
                Ok(()) if at + 1 == states.len() => Found::LastState,
                Ok(()) => Found::EarlierState,
            }
        }
    }
}

/// A bit of each `every`-th byte of every file.
pub(super) fn flipped_bits(seeds: Range<u64>, every: usize) {
    flipped_bits_of(seeds, every, |seed| steps(seed, 40));
}

/// The same with other work.
pub(super) fn flipped_bits_of(seeds: Range<u64>, every: usize, work: impl Fn(u64) -> Vec<Step>) {
    for seed in seeds {
        let (files, states) = store(seed, work(seed));
        let (mut silent, mut all) = (0, 0);
        for (at, (name, bytes)) in files.iter().enumerate() {
            for byte in (0..bytes.len()).step_by(every) {
                let mut damaged = files.clone();
                damaged[at].1[byte] ^= 1 << (byte % 8);
                let what = format!("seed {seed}, {name} byte {byte}");
                all += 1;
                let found = check(damaged, &states, LAST, &what);
                if found != Found::Damage {
                    silent += 1;
                    // The last record of a manifest, too, is not known to be synced. If it is only about the order over
                    // tables, what is before it is as good.
                    let is_harmless = name.kind == Kind::Manifest && found == Found::LastState;
                    assert!(is_harmless || name.kind == Kind::Log, "{what}: nobody noticed");
                }
            }
        }
        // Only last records, which are not known to be synced.
        assert!(silent * 20 < all, "{silent} of {all} were not noticed");
    }
}

/// Files that end early, or are missing.
pub(super) fn cut_and_missing_files(seeds: Range<u64>) {
    for seed in seeds {
        let (files, states) = store(seed, steps(seed, 40));
        let newest = files.iter().map(|(name, _)| *name).rfind(|name| name.kind == Kind::Log);
        for (at, (name, bytes)) in files.iter().enumerate() {
            for len in (0..bytes.len()).step_by(7) {
                let mut damaged = files.clone();
                damaged[at].1.truncate(len);
                // Only the log itself states its end. How much of it was synced is stated only by later
                // records, or by the next log's header.
                let vouching = |(other, bytes): &(Name, Vec<u8>)| {
                    other.kind == Kind::Log && other.number > name.number && bytes.len() > HEADER
                };
                let last = if files.iter().any(vouching) { LAST } else { states.len() };
                check(damaged, &states, last, &format!("seed {seed}, {name} cut to {len}"));
            }
            // No other file names the newest log.
            if Some(*name) != newest {
                let mut damaged = files.clone();
                damaged.remove(at);
                let reported = check(damaged, &states, LAST, &format!("seed {seed}, {name} is missing"));
                assert!(reported == Found::Damage, "seed {seed}: {name} is missing, and nobody noticed");
            }
        }
    }
}

#[test]
fn a_flipped_bit_is_reported_or_harmless() {
    flipped_bits(seeds(1, 2), sized(3, 2));
}

#[test]
fn a_file_that_is_cut_or_missing_is_reported_or_harmless() {
    cut_and_missing_files(seeds(1, 3));
}
