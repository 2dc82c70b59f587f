//! Compressed tables in a store: chosen, crashed upon, damaged, copied.

use super::crash::crash_everywhere;
use super::faults::{FAILURES, failing_io_of};
use super::world::{World, beginning, follow, options, options_of, packed_steps, salvaged_to, seeds};
use crate::core::Handle;
use crate::disk::simulated::{Fault, Simulated, Times};
use crate::disk::{Kind, Name, Sealed};
use crate::recover;
use forrest_engine::{Compression, Durability, ErrorKind, Op, Options, Result, View as _};
use forrest_testing::sized;
use std::ops::Range;

/// The versions of the tables on a disk.
fn versions(disk: &Simulated) -> Vec<u8> {
    let tables = disk.files().into_iter().filter(|(name, _)| name.kind == Kind::Table);
    tables.map(|(_, bytes)| bytes[bytes.len() - 8 - 128 + 8]).collect()
}

/// Random work with compression: the store has what a map has.
pub(super) fn after_random_work(seeds: Range<u64>) {
    let mut packed = 0;
    for seed in seeds {
        let options = options_of(seed, Durability::Buffered);
        let disk = Simulated::new();
        let mut world = World::open(&disk, &options).expect("it opens");
        let mut states = beginning();
        for (at, step) in packed_steps(seed, 40).iter().enumerate() {
            follow(&mut states, step);
            world.run(step).unwrap_or_else(|error| panic!("seed {seed}, step {at}, {step:?}: {error}"));
            assert_eq!(
                world.content().unwrap(),
                *states.last().unwrap(),
                "seed {seed}, after step {at}, {step:?}"
            );
            if at % 10 == 9 {
                world.store.verify().unwrap();
                drop(world);
                world = World::open(&disk, &options).expect("it opens");
                assert_eq!(
                    world.content().unwrap(),
                    *states.last().unwrap(),
                    "seed {seed}, opened after {at}"
                );
            }
        }
        packed += versions(&disk).into_iter().filter(|version| *version == 2).count();
    }
    assert!(packed > 0, "no table was compressed");
}

#[test]
fn random_work_is_right() {
    after_random_work(seeds(20, 120));
}

/// Power cuts at every I/O; returns the number of states checked.
pub(super) fn after_power_cuts(seeds: Range<u64>, steps: usize) -> u64 {
    let crash = |seed| {
        let durability = if seed % 2 == 0 { Durability::Buffered } else { Durability::Sync };
        crash_everywhere(&format!("seed {seed}"), &packed_steps(seed, steps), durability, 1)
    };
    seeds.map(crash).sum()
}

#[test]
fn power_may_be_cut_at_any_io() {
    assert!(after_power_cuts(seeds(1, 2), 8) > 100);
}

/// A bit of each `every`-th byte of every table: reads are right or fail, and verify notices.
pub(super) fn flipped_bits(seeds: Range<u64>, every: usize) {
    for seed in seeds {
        let (compression, table_bytes) = (Some(Compression::Lz4), 1 << 20);
        let options = Options { compression, table_bytes, ..options(Durability::Sync) };
        let disk = Simulated::new();
        let store = Handle::open_unattended(Sealed::plain(disk.clone()), &options).unwrap();
        let text = |key: u64| format!("tree {} of {}; ", key % 3, key ^ seed).repeat(90);
        (0..20).for_each(|key| set(&store, "default", &key.to_string(), text(key).as_bytes()).unwrap());
        store.flush_all().unwrap();
        store.compact().unwrap();
        drop(store);
        let files = disk.files();
        assert!(versions(&disk).contains(&2), "no table is compressed");
        for at in (0..files.len()).filter(|&at| files[at].0.kind == Kind::Table) {
            for byte in (0..files[at].1.len()).step_by(every) {
                let what = format!("seed {seed}, {} byte {byte}", files[at].0);
                let mut damaged = files.clone();
                damaged[at].1[byte] ^= 1 << (byte % 8);
                let Ok(store) =
                    Handle::open_unattended(Sealed::plain(Simulated::from_files(damaged)), &options)
                else {
                    continue;
                };
                let view = store.view(&store.keyspace("default").unwrap());
                for key in 0..20 {
                    if let Ok(value) = view.get(key.to_string().as_bytes()) {
                        assert_eq!(value.as_deref(), Some(text(key).as_bytes()), "{what}");
                    }
                }
                assert!(store.verify().is_err(), "{what}: nobody noticed");
            }
        }
    }
}

#[test]
fn any_bit_may_flip() {
    flipped_bits(seeds(1, 1), sized(7, 2));
}

#[test]
fn any_io_may_fail() {
    failing_io_of(seeds(1, 1), |seed| packed_steps(seed, 8), &FAILURES, sized(7, 4));
}

fn set(store: &Handle, keyspace: &str, key: &str, value: &[u8]) -> Result<()> {
    let space = store.keyspace(keyspace)?;
    store.apply(&space, Op::Set { key: key.as_bytes(), value }).map(drop)
}

fn one_table(store: &Handle, keyspace: &str) {
    set(store, keyspace, "k", &[1; 20_000]).unwrap();
    store.flush_all().unwrap();
    store.compact().unwrap();
}

#[test]
fn the_choice_is_remembered_and_not_written_twice() {
    the_choice_is_remembered();
}

/// The choice holds from the next table on, outlives the store, and goes with the keyspace.
pub(super) fn the_choice_is_remembered() {
    let (disk, options) = (Simulated::new(), options(Durability::Buffered));
    let lz4 = Options { compression: Some(Compression::Lz4), ..options.clone() };
    let open = |options: &Options| Handle::open_unattended(Sealed::plain(disk.clone()), options).unwrap();
    let store = open(&options);
    one_table(&store, "default");
    one_table(&store, "other");
    assert_eq!(versions(&disk), [1, 1]);
    drop(store);

    let before = disk.ios();
    drop(open(&options));
    let alone = disk.ios() - before;
    let store = open(&lz4);
    assert_eq!(versions(&disk), [1, 1], "tables stay as they are");
    one_table(&store, "default");
    let chosen = disk.ios();
    store.choose_compression(&store.keyspace("default").unwrap(), Compression::Lz4).unwrap();
    assert_eq!(disk.ios(), chosen, "what is chosen already is not written");
    drop(store);
    let store = open(&options);
    // It has no choice of its own.
    one_table(&store, "other");
    assert_eq!(versions(&disk), [2, 2]);
    store.choose_compression(&store.keyspace("other").unwrap(), Compression::None).unwrap();
    // A keyspace that is in the log only.
    store.choose_compression(&store.keyspace("third").unwrap(), Compression::None).unwrap();
    drop(store);
    let before = disk.ios();
    drop(open(&lz4));
    assert_eq!(disk.ios() - before, alone, "opening with what is chosen writes nothing");
    let store = open(&options);
    one_table(&store, "other");
    one_table(&store, "third");
    one_table(&store, "default");
    let mut found = versions(&disk);
    found.sort_unstable();
    assert_eq!(found, [1, 1, 2]);
    let found = ["default", "third", "fourth"].map(|name| {
        let id = store.keyspace(name).unwrap().id;
        store.catalog().compression(id)
    });
    assert_eq!(found, [Compression::Lz4, Compression::None, Compression::Lz4]);
    // A merge that is asked for compresses what is not, also where there is one table.
    store.choose_compression(&store.keyspace("other").unwrap(), Compression::Lz4).unwrap();
    store.compact().unwrap();
    assert_eq!(versions(&disk).into_iter().filter(|version| *version == 2).count(), 2);
    let compacted = disk.ios();
    store.compact().unwrap();
    assert_eq!(disk.ios(), compacted, "once");
    // A new one of the same name has no choice.
    assert!(store.drop_space("other").unwrap());
    one_table(&store, "other");
    assert_eq!(versions(&disk).into_iter().filter(|version| *version == 2).count(), 2);
}

/// Power cuts and failures while a store is opened with another choice.
#[test]
fn the_choice_at_opening_is_made_or_not() {
    let options = options(Durability::Sync);
    let lz4 = Options { compression: Some(Compression::Lz4), ..options.clone() };
    let disk = Simulated::new();
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), &options).unwrap();
    one_table(&store, "default");
    set(&store, "default", "log", b"1").unwrap();
    drop(store);
    let (files, chosen) = (disk.files(), disk.ios());
    let whole = Simulated::from_files(files.clone());
    drop(Handle::open_unattended(Sealed::plain(whole.clone()), &lz4).unwrap());
    assert!(chosen > 0 && whole.ios() > 0);
    for io in 0..=whole.ios() {
        for kind in [None].into_iter().chain(FAILURES.map(Some)) {
            let disk = Simulated::from_files(files.clone());
            match kind {
                None => disk.cut_power_at(io),
                Some(kind) => disk.fail(Fault { at: io, times: Times::Once, kind }),
            }
            drop(Handle::open_unattended(Sealed::plain(disk.clone()), &lz4));
            disk.heal();
            for after in disk.crash_states(1, io).chain([disk.kill()]) {
                let world = World::open(&after, &options).unwrap();
                let content = world.content().unwrap();
                assert_eq!(content["default"].len(), 2, "{kind:?} at I/O {io}");
            }
        }
    }
}

/// Both sizes are shown, and what is in memory for chunks counts.
#[test]
fn both_sizes_are_counted() {
    let options = Options { compression: Some(Compression::Lz4), ..options(Durability::Buffered) };
    let store = Handle::open_unattended(Sealed::plain(Simulated::new()), &options).unwrap();
    one_table(&store, "default");
    let stats = store.stats().unwrap();
    assert_eq!((stats.table_bytes, stats.table_plain_bytes), (3 * 4096, 5 * 4096), "{stats}");
}

/// A store that is only read takes the choice of others, and no options of its own.
#[test]
fn a_reader_chooses_nothing() {
    let (disk, options) = (Simulated::new(), options(Durability::Buffered));
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), &options).unwrap();
    one_table(&store, "default");
    drop(store);
    let read_only = Options { compression: Some(Compression::Lz4), read_only: true, ..options.clone() };
    let before = disk.files();
    let reader = Handle::open_unattended(Sealed::plain(disk.clone()), &read_only).unwrap();
    let space = reader.keyspace("default").unwrap();
    let error = reader.choose_compression(&space, Compression::Lz4).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(reader.view(&space).contains(b"k").unwrap());
    assert!(disk.files() == before, "nothing is written");
}

/// A directory that cannot be written to is opened to be read, whatever the options choose.
#[test]
fn a_choice_at_opening_needs_no_directory_that_can_be_written() {
    let (disk, none) = (Simulated::new(), options(Durability::Buffered));
    let choosing = |method| Options { compression: Some(method), ..none.clone() };
    drop(Handle::open_unattended(Sealed::plain(disk.clone()), &choosing(Compression::Lz4)).unwrap());
    let frozen = disk.kill();
    frozen.freeze();
    for method in [Compression::Lz4, Compression::None] {
        let store = Handle::open_unattended(Sealed::plain(frozen.clone()), &choosing(method)).unwrap();
        let space = store.keyspace("default").unwrap();
        assert_eq!(store.catalog().compression(space.id), Compression::Lz4, "it stays");
        store.choose_compression(&space, Compression::Lz4).expect("it is that already");
        store.choose_compression(&space, Compression::None).expect_err("nothing can be written");
    }
}

/// A reader that refreshes takes the choices of the writer, whether it reads the logs on or anew.
#[test]
fn a_reader_shows_the_choice_of_the_writer() {
    let (disk, options) = (Simulated::new(), options(Durability::Buffered));
    let writer = Handle::open_unattended(Sealed::plain(disk.clone()), &options).unwrap();
    set(&writer, "default", "k", b"1").unwrap();
    let read_only = Options { read_only: true, ..options.clone() };
    let reader = Handle::open_unattended(Sealed::plain(disk), &read_only).unwrap();
    let space = writer.keyspace("default").unwrap();
    for (method, flushes) in [(Compression::Lz4, false), (Compression::None, true)] {
        if flushes {
            one_table(&writer, "default");
        }
        writer.choose_compression(&space, method).unwrap();
        recover::refresh(&reader).unwrap();
        assert_eq!(reader.catalog().compression(space.id), method);
    }
}

/// What this build does not have is refused before anything is written, and by the store that needs it.
#[test]
#[cfg(not(feature = "zstd"))]
fn what_is_not_built_in_is_refused() {
    use forrest_engine::{Keyspace as _, Store as _};
    let (disk, options) = (Simulated::new(), options(Durability::Buffered));
    let zstd = Options { compression: Some(Compression::Zstd), ..options.clone() };
    let refused = |error: forrest_engine::Error| {
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("feature `zstd`"), "{error}");
    };
    refused(Handle::open_unattended(Sealed::plain(disk.clone()), &zstd).err().unwrap());
    let store = crate::Store::open_unattended(Sealed::plain(disk.clone()), &options).unwrap();
    refused(store.keyspace("default").unwrap().set_compression(Compression::Zstd).unwrap_err());
    drop(store);
    drop(Handle::open_unattended(Sealed::plain(disk), &options).unwrap());
}

/// A checkpoint has the same tables and choices, and what is salvaged is compressed again; of a damaged chunk the pairs
/// in it are lost.
#[test]
fn copies_keep_the_choice() {
    let options = Options { compression: Some(Compression::Lz4), ..options(Durability::Buffered) };
    let plain = Options { compression: None, ..options.clone() };
    let disk = Simulated::new();
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), &options).unwrap();
    one_table(&store, "default");
    one_table(&store, "other");
    store.choose_compression(&store.keyspace("other").unwrap(), Compression::None).unwrap();
    let copy = Simulated::new();
    store.checkpoint(Sealed::plain(copy.clone())).unwrap();
    drop(store);
    let salvaged = Simulated::new();
    let mut files = disk.files();
    let report = salvaged_to(disk, &salvaged).unwrap();
    assert!(report.lost.is_empty() && report.pairs == 2);
    for disk in [&copy, &salvaged] {
        let World { store } = World::open(disk, &plain).unwrap();
        let chosen = ["default", "other"].map(|name| store.keyspace(name).unwrap().chosen());
        assert_eq!(chosen, [Some(Compression::Lz4), Some(Compression::None)]);
        store.verify().unwrap();
        let world = World { store };
        assert_eq!(world.content().unwrap()["other"][&b"k"[..]], [1; 20_000]);
    }
    let versions = [&copy, &salvaged].map(|disk| {
        let mut versions = versions(disk);
        versions.sort_unstable();
        versions
    });
    assert_eq!(versions, [[2, 2], [1, 2]]);
    files.iter_mut().filter(|(name, _)| name.kind == Kind::Table).for_each(|(_, bytes)| bytes[20] ^= 1);
    let damaged = Simulated::from_files(files);
    let report = salvaged_to(damaged, &Simulated::new()).unwrap();
    assert_eq!((report.lost.len(), report.pairs), (2, 0));
}

/// A damaged chunk is reported with the place where it begins, and others are read.
#[test]
fn damage_is_reported_with_its_place() {
    let options = Options { compression: Some(Compression::Lz4), ..options(Durability::Buffered) };
    let disk = Simulated::new();
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), &options).unwrap();
    one_table(&store, "default");
    drop(store);
    let mut files = disk.files();
    let (name, bytes) = files.iter_mut().find(|(name, _)| name.kind == Kind::Table).unwrap();
    bytes[20] ^= 1;
    let name: Name = *name;
    let store = Handle::open_unattended(Sealed::plain(Simulated::from_files(files)), &options).unwrap();
    let view = store.view(&store.keyspace("default").unwrap());
    for error in [view.get(b"k").err().unwrap(), store.verify().unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(
            error.to_string().contains(&format!("{name} at offset 0: wrong checksum of a chunk")),
            "{error}"
        );
    }
}
