//! Options do not change results: the same commands run with option sets from ordinary to extreme, and each
//! store is opened again with other sets in between. All results must be the model's.
//!
//! `FORREST_OPTIONS_SEED=N` replays the commands of one seed with all sets, `FORREST_OPTIONS_SEEDS=N` uses
//! that many seeds. A failure names seed and set, and is shrunk and printed as a script; `reopen N` in it
//! names a set below.

use crate::command::Command;
use crate::drive;
use crate::random::Random;
use crate::world::World;
use forrest::{Builder, Db, Durability, Numa, Pages};
use forrest_testing::{number, sized};
use std::cell::Cell;

/// Number of option sets.
const SETS: usize = 24;
/// Maximum number of commands of a seed, quick and full. The two sizes have different commands for the same
/// seed.
const COMMANDS_MAX: (usize, usize) = (80, 250);
/// Maximum size of the batches of the commands, in operations and bytes. These limits are options too, but a
/// batch that exceeds them fails.
const BATCH_OPS: usize = 16 << 10;
const BATCH_BYTES: usize = 32 << 20;

/// An option set, by number.
fn set(number: usize) -> Builder {
    use Durability as D;
    // Memtables reserve address space for the largest batch, and an emulator has little.
    let common = || Db::builder().batch_bytes_max(BATCH_BYTES);
    let sizes = |memtable, cache, table| {
        common().pages(Pages::Plain).memtable_bytes(memtable).cache_bytes(cache).table_bytes(table)
    };
    match number {
        // The defaults, and the options of the other tests.
        0 => Db::builder(),
        1 => common().tags(false).durability(D::Sync),
        2 => common().durability(D::Memory).pages(Pages::Transparent),
        3 => common().numa(Numa::Interleave).capacity_bytes(1).workers(1),
        4 => sizes(4 << 10, 1 << 20, 16 << 10),
        5 => sizes(4 << 10, 1, 16 << 10).tags(false),
        // One extreme size.
        6 => sizes(1, 1 << 20, 16 << 10),
        7 => sizes(1, 1 << 20, 16 << 10).tags(false).durability(D::Memory),
        8 => sizes(4 << 10, 1, 1 << 20),
        9 => sizes(4 << 10, usize::MAX, 16 << 10),
        10 => sizes(4 << 10, 1 << 20, 1),
        11 => sizes(4 << 10, 1 << 20, 1).tags(false).durability(D::Memory),
        12 => sizes(4 << 10, 1 << 20, u64::MAX),
        // All sizes extreme.
        13 => sizes(1, 1, 1).workers(5),
        14 => sizes(1, 1, 1).tags(false).durability(D::Sync),
        15 => sizes(1, 1, u64::MAX).durability(D::Memory),
        16 => sizes(2 << 10, 1, 4 << 10).workers(1),
        17 => sizes(2 << 10, 1, 4 << 10).tags(false).durability(D::Memory),
        18 => sizes(2 << 10, 4096, 4096).pages(Pages::Auto),
        19 => sizes(64 << 10, 4 << 20, 4 << 10).pages(Pages::Transparent).workers(3).worker_cpus(&[]),
        20 => sizes(64 << 10, 12 << 10, 1).durability(D::Buffered).workers(256),
        21 => sizes(64 << 20, 1, 1 << 10),
        // Batches: exactly enough, and much more than needed.
        22 => sizes(2 << 10, 1 << 20, 64 << 10).batch_ops_max(BATCH_OPS),
        23 => sizes(2 << 10, 1 << 20, 64 << 10).batch_ops_max(u32::MAX as usize).batch_bytes_max(200 << 20),
        _ => unreachable!("there are {SETS} option sets"),
    }
}

/// The seeds and sets to run, by the environment: all sets for each seed, but only some in a short run.
fn runs() -> Vec<(u64, usize)> {
    let all = |seed| (0..SETS).map(move |set| (seed, set));
    match (number("FORREST_OPTIONS_SEED"), number("FORREST_OPTIONS_SEEDS")) {
        (Some(seed), _) => all(seed).collect(),
        (_, Some(seeds)) => (0..seeds).flat_map(all).collect(),
        // Each set once, and each seed under several.
        _ => (0..SETS).map(|set| (set as u64 % 8, set)).collect(),
    }
}

/// A directory, in memory if possible: this test checks results, not durability, and with some sets every
/// change is synced several times.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory")
}

#[test]
fn options_change_no_answer() {
    let commands_max = sized(COMMANDS_MAX.0, COMMANDS_MAX.1);
    for (seed, first) in runs() {
        let (directory, made) = (directory(), Cell::new(0));
        let mut commands = drive::commands_and_reopenings(Random::new(seed), SETS, commands_max);
        // The number of keys is an estimate on disk.
        commands.retain(|command| !matches!(command, Command::Keys));
        let fresh = || {
            let path = directory.path().join(made.replace(made.get() + 1).to_string());
            let path = path.to_str().expect("it is text").to_string();
            World::reopenable(first, Box::new(move |number| set(number).open(&path)))
                .expect("a store on disk")
        };
        drive::compare(&fresh, &commands, &format!("FORREST_OPTIONS_SEED={seed}, set {first}"));
    }
}
