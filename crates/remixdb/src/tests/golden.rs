//! A store that an earlier build wrote, kept in `tests/golden`: this one opens it, verifies it and finds in it what was
//! written. So a change of a format that leaves stores behind which are there already does not pass unnoticed.
//!
//! The files are those of the first version of the formats. If a format gets a new version on purpose, a new directory is
//! made beside this one, by `FORREST_GOLDEN_BLESS=1 cargo test -p forrest --lib golden`, which writes the files of a store
//! that this build makes; and the old one stays, to be read or to be refused.

use super::world::{Content, Step, World, beginning, follow, options};
use crate::disk::simulated::Simulated;
use crate::disk::{Kind, Name};
use forrest_engine::{Durability, Options};
use std::path::{Path, PathBuf};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../forrest/tests/golden/1")
}

fn golden_options() -> Options {
    Options { memtable_bytes: 1 << 20, table_bytes: 1 << 20, ..options(Durability::Sync) }
}

/// What was done to the store: three tables that overlap, with a REMIX of the first two; a keyspace with one table; one that
/// was dropped; and changes of every kind that are in the log only.
fn steps() -> Vec<Step> {
    let mut steps: Vec<_> = (0..20).map(|key| Step::Set("default", key, 30)).collect();
    steps.extend([Step::Set("other", 1, 300), Step::Set("gone", 1, 10), Step::Flush]);
    steps.extend((5..120).map(|key| Step::Set("default", key, usize::from(key) % 40)));
    steps.extend((0..120).step_by(3).map(|key| Step::Delete("default", key)));
    steps.extend([Step::Add("default", 5), Step::Flush, Step::Drop("gone")]);
    steps.extend((50..150).step_by(7).map(|key| Step::Set("default", key, 20)));
    steps.extend([Step::Flush, Step::Set("late", 3, 3), Step::Add("default", -7)]);
    steps.push(Step::Batch(vec![("default", 200, Some(8)), ("other", 1, None), ("default", 1, Some(0))]));
    steps.extend([Step::DeleteRange("default", 20, 30), Step::Delete("default", 98), Step::Sync]);
    steps
}

/// The files of the store, as they are kept.
pub(crate) fn files() -> Vec<(Name, Vec<u8>)> {
    let entries = std::fs::read_dir(directory()).expect("the directory of the golden store");
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("an entry of it").path();
        let name = path.file_name().and_then(|name| Name::parse(name.to_str()?));
        let name = name.unwrap_or_else(|| panic!("{} is no file of a store", path.display()));
        files.push((name, std::fs::read(&path).expect("a file that can be read")));
    }
    files.sort();
    files
}

/// The content that the store has.
fn content() -> Content {
    let mut states = beginning();
    steps().iter().for_each(|step| follow(&mut states, step));
    states.pop().expect("there is a last state")
}

#[test]
fn the_golden_store_is_read() {
    if std::env::var_os("FORREST_GOLDEN_BLESS").is_some() {
        bless();
    }
    let files = files();
    let count = |kind| files.iter().filter(|(name, _)| name.kind == kind).count();
    let counts = [Kind::Log, Kind::Manifest, Kind::Table, Kind::Remix].map(count);
    assert_eq!(counts, [1, 1, 4, 1], "logs, manifests, tables and REMIXes");
    let disk = Simulated::from_files(files);
    let world = World::open(&disk, &golden_options()).expect("it opens");
    world.store.verify().expect("it is whole");
    assert_eq!(world.content().expect("it is read"), content());
    // And it goes on.
    world.run(&Step::Compact).expect("it can be merged");
    drop(world);
    let world = World::open(&disk, &golden_options()).expect("it opens again");
    world.store.verify().expect("it is whole");
    assert_eq!(world.content().expect("it is read"), content());
}

/// Keeps the files that this build makes of the store.
fn bless() {
    let disk = Simulated::new();
    let world = World::open(&disk, &golden_options()).expect("it opens");
    steps().iter().for_each(|step| world.run(step).expect("it works"));
    drop(world);
    std::fs::create_dir_all(directory()).expect("a directory that can be made");
    for (name, bytes) in disk.files() {
        std::fs::write(directory().join(name.to_string()), bytes).expect("a file that can be written");
    }
}
