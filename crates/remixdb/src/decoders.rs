//! The bodies of the fuzz targets in the folder `fuzz`. They give bytes that no store has written to the
//! decoders, which users cannot call. Nothing may panic, run forever, or take more memory than the bytes
//! justify.
//!
//! Compiled for the tests, which replay the inputs in `fuzz/seeds`, and with the feature `simulated`, which
//! the fuzz targets turn on.
//!
//! All stored bytes are under checksums, which random bytes would not pass. So the targets first make the
//! checksums right, for the parts that the bytes describe.

use crate::backup;
use crate::cache::Cache;
use crate::catalog::Space;
use crate::core::Handle;
use crate::disk::simulated::Simulated;
use crate::disk::{self, Kind, Name, Sealed};
use crate::ingest::Ingest;
use crate::manifest::{self, Files};
use crate::memory::Memory;
use crate::partition::{Partition, Shared};
use crate::table::{self, Table};
use crate::values::Values;
use crate::wrapped::Wrapped;
use crate::{page, record, wal};
use forrest_engine::Op;
use forrest_engine::Result;
use forrest_engine::chunk::{Chunk, Filled, Goto};
use forrest_engine::options::LARGE_VALUES_LEAST;
use forrest_engine::{Cursor as _, Ingest as _, View as _};
use forrest_engine::{Durability, Expires, Numa, Options, Pages};
use forrest_index::Direction;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, OnceLock};

/// The number of the file under test.
const NUMBER: u64 = 7;
/// Entries of a table that are read one by one, from either end.
const ENTRIES_MAX: u32 = 1 << 12;
/// Refills of an iteration, or moves of a cursor, after which it counts as endless: no input has this many
/// pairs.
const STEPS_MAX: usize = 10_000;
/// Maximum number of files of a directory.
const FILES_MAX: usize = 16;
/// Tables under a REMIX, and the maximum number of keys of each.
const TABLES: u64 = 3;
const KEYS: u32 = 100;

/// Makes the checksums of a file right, and its pages whole.
fn seal(name: Name, bytes: &mut Vec<u8>) {
    match name.kind {
        Kind::Log | Kind::Manifest | Kind::Copy => record::seal_all(bytes, name),
        Kind::Backup | Kind::Key => {}
        Kind::Table | Kind::Remix => {
            let pages = bytes.len().div_ceil(page::BYTES).max(1);
            bytes.resize(pages * page::BYTES, 0);
            if name.kind == Kind::Table && table::seal_packed(bytes, name) {
                return;
            }
            for (number, bytes) in bytes.chunks_exact_mut(page::BYTES).enumerate() {
                let is_last = name.kind == Kind::Table && number + 1 == pages;
                page::seal(bytes, name, number as u64 | if is_last { page::LAST } else { 0 });
            }
        }
    }
}

/// A disk with the input as its only file: as it is, and sealed.
fn disks(name: Name, input: &[u8]) -> [Sealed; 2] {
    let mut sealed = input.to_vec();
    seal(name, &mut sealed);
    [input.to_vec(), sealed].map(|bytes| Sealed::plain(Simulated::from_files([(name, bytes)])))
}

fn no_cache() -> Arc<Cache> {
    Arc::new(Cache::new(1, Pages::Plain, Numa::Local))
}

/// The input as a log: its header, and all its changes.
pub fn log(input: &[u8]) {
    let name = Name::log(NUMBER);
    for disk in disks(name, input) {
        let file = disk::open(&disk, name).expect("it is there");
        let Ok(Some(head)) = wal::head(&disk, &file, NUMBER) else { continue };
        let mut changes = 0;
        let replayed = wal::replay(&disk, &file, NUMBER, None, |_, _| {
            changes += 1;
            Ok(())
        });
        if let Ok(replayed) = replayed {
            assert_eq!(replayed.next - head.first, changes, "a change was not counted");
            assert!(replayed.end <= input.len() as u64, "it ends after the end of its file");
        }
    }
}

/// The input as a manifest.
pub fn manifest(input: &[u8]) {
    let name = Name::manifest(NUMBER);
    for disk in disks(name, input) {
        if let Ok(Some((state, _))) = manifest::read(&disk, name) {
            assert!(state.files().count() <= input.len(), "more files than bytes that name them");
        }
    }
}

/// The input as the description of a backup, in a directory that has a copy with some bytes: listed, verified, restored
/// and pruned.
pub fn description(input: &[u8]) {
    let name = Name::copy(NUMBER);
    for disk in disks(name, input) {
        let copies = [(Name::copy(NUMBER - 1), vec![0; page::BYTES]), (Name::backup(NUMBER), Vec::new())];
        let files = disk.simulated().files().into_iter().chain(copies);
        let disk = Arc::new(Sealed::plain(Simulated::from_files(files)));
        let listed = backup::list(disk.clone()).expect("damage is listed");
        assert!(listed.iter().all(|backup| backup.files <= input.len() as u64), "more files than bytes");
        let mut see = |_: backup::Progress| ControlFlow::Continue(());
        let verified = backup::verify(&disk, None, &mut see);
        let restored = backup::restore_into(&disk, None, Sealed::plain(Simulated::new()), &mut see);
        assert!(verified.is_ok() || restored.is_err(), "damage was restored");
        let _ = backup::prune_in(disk, backup::Keep::Newest(1));
    }
}

/// The input as the key file of a directory: its keys are read with the key of the golden store, and a file is opened
/// with them and another made.
#[cfg(feature = "encryption")]
pub fn keys(input: &[u8]) {
    let key = forrest_engine::EncryptionKey::from_bytes([7; 32]);
    let options = Options { encryption_key: Some(key), ..Options::default() };
    // The number that it states, so that the checks after that are reached.
    let stated =
        input.get(16..24).map_or(NUMBER, |number| u64::from_le_bytes(number.try_into().expect("8 bytes")));
    let number = if stated <= disk::NUMBER_MAX { stated } else { NUMBER };
    let mut sealed = input.to_vec();
    disk::keys::seal(number, &mut sealed);
    for bytes in [input.to_vec(), sealed] {
        let old = Name::table(number.saturating_sub(1));
        let files = [(Name::key(number), bytes), (old, vec![0; page::BYTES])];
        let Ok(disk) = Sealed::open(Simulated::from_files(files), &options) else { continue };
        let file = disk::open(&disk, old).expect("it is there");
        let mut bytes = [0; page::BYTES];
        assert!(disk::read_exact(&disk, &file, old, &mut bytes, 0).is_err(), "zeros were decrypted");
        disk::create(&disk, Name::table(disk::NUMBER_MAX)).expect("it is made");
    }
}

/// The input as a table: read from both ends, searched, and verified.
pub fn table(input: &[u8]) {
    let name = Name::table(NUMBER);
    for disk in disks(name, input) {
        if let Ok(table) = Table::open(Arc::new(disk), name, &no_cache()) {
            let table = Arc::new(table);
            let last = table.entries().saturating_sub(1);
            // An error ends a walk. Entries after it are reached from the other end.
            let _ = (0..=last.min(ENTRIES_MAX)).try_for_each(|ordinal| look_at(&table, ordinal));
            let _ = (last.saturating_sub(ENTRIES_MAX)..=last).rev().try_for_each(|at| look_at(&table, at));
            let _ = walk(&table);
            let _ = table.verify();
        }
    }
}

/// Reads one entry, and searches for its key.
fn look_at(table: &Arc<Table>, ordinal: u32) -> Result<()> {
    if ordinal >= table.entries() {
        return Ok(());
    }
    let mut cursor = table::TableCursor::new(table.clone());
    let (mut key, mut value) = (Vec::new(), Vec::new());
    cursor.key_into(ordinal, &mut key)?;
    assert!(cursor.lower_bound(&key)? <= table.entries(), "a search ends after the last entry");
    cursor.find(&key)?;
    let kind = cursor.kind(ordinal)?;
    if kind != table::Kind::Tombstone {
        cursor.value_into(ordinal, &mut value)?;
        if cursor.operands(ordinal)?.is_some() {
            return Ok(());
        }
        let content = if kind == table::Kind::Wrapped {
            Wrapped::read(&value).map_or(&[][..], |wrapped| wrapped.content)
        } else {
            &value[..]
        };
        assert_eq!(cursor.value_with(ordinal, <[u8]>::to_vec)?, content, "a value is read in two ways");
    }
    Ok(())
}

/// Reads all entries in order with one cursor.
fn walk(table: &Arc<Table>) -> Result<()> {
    let mut cursor = table::TableCursor::walking(table.clone());
    for ordinal in 0..table.entries().min(ENTRIES_MAX) {
        cursor.key_at(ordinal)?;
        if cursor.operands(ordinal)?.is_none() {
            cursor.value_with(ordinal, <[u8]>::len)?;
        }
    }
    Ok(())
}

/// Tables that have some keys in common, and deletions of some.
fn tables() -> &'static [(Name, Vec<u8>)] {
    static TABLES_MADE: OnceLock<Vec<(Name, Vec<u8>)>> = OnceLock::new();
    TABLES_MADE.get_or_init(|| {
        let disk = Sealed::plain(Simulated::new());
        for number in 1..=TABLES {
            let builder = table::Builder::new(&disk, Name::table(number)).expect("it can be made");
            let mut builder = builder.tagged(number == 1);
            for key in (0..KEYS).filter(|key| u64::from(*key) % (number + 1) == 0) {
                let entry = if key % 5 == 4 {
                    table::TableEntry::Tombstone
                } else {
                    table::TableEntry::Value(&[number as u8])
                };
                builder.add(format!("key{key:04}").as_bytes(), entry).expect("it can be written");
            }
            builder.finish().expect("it can be written");
        }
        disk.simulated().files()
    })
}

/// The input as the REMIX of three tables, or of the first of them: walked both ways, searched, and verified.
pub fn remix(input: &[u8]) {
    let name = Name::remix(NUMBER);
    let mut sealed = input.to_vec();
    seal(name, &mut sealed);
    for bytes in [input.to_vec(), sealed] {
        let files = tables().iter().cloned().chain([(name, bytes)]);
        let disk = Arc::new(Sealed::plain(Simulated::from_files(files)));
        let files = Files { remix: NUMBER, tables: (1..=TABLES).collect() };
        // With its order in memory, and in the file.
        for most in [None, Some(0)] {
            let (cache, memory) = (no_cache(), Arc::new(Memory::new(most, no_cache().indexes(), 0, 0)));
            let values = Values::new(&disk);
            let shared = Arc::new(Shared { disk: disk.clone(), cache, memory, values, tags: true });
            if let Ok(opened) = Partition::open(&shared, Vec::new(), &files, |_| None) {
                let _ = search(&opened);
                let _ = opened.verify_remix(&disk);
            }
        }
    }
}

/// Walks through a partition from both ends, and looks up keys that it has and has not.
fn search(opened: &Partition) -> Result<()> {
    let mut cursor = opened.cursor(false, 0)?;
    let mut steps = 0;
    let mut is_at_one = cursor.first()?;
    while is_at_one {
        steps += 1;
        assert!(steps < STEPS_MAX, "a walk without end");
        cursor.show(|_, pair| pair.with(|_| ()))?;
        is_at_one = cursor.next()?;
    }
    let mut is_at_one = cursor.last()?;
    while is_at_one {
        steps += 1;
        assert!(steps < 2 * STEPS_MAX, "a walk without end");
        is_at_one = cursor.prev()?;
    }
    for key in 0..KEYS + 2 {
        let key = format!("key{key:04}");
        let key = key.as_bytes();
        opened.get(opened.find(key), key, || 0, |_: &[u8]| ())?;
        cursor.seek(key)?;
        cursor.seek_for_prev(key)?;
    }
    Ok(())
}

/// The input as a directory: for each file the letter of its kind, its number, its length in three bytes (the most
/// significant one first), and as many bytes. Opened and used in all ways.
pub fn store(input: &[u8]) {
    let mut files = Vec::new();
    let mut rest = input;
    while let Some((&[letter, number, a, b, c], behind)) = rest.split_first_chunk()
        && files.len() < FILES_MAX
    {
        let kind = match letter {
            b'L' => Kind::Log,
            b'M' => Kind::Manifest,
            b'R' => Kind::Remix,
            _ => Kind::Table,
        };
        let name = Name { kind, number: number.into() };
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        let (bytes, behind) = behind.split_at(length.min(behind.len()));
        let mut bytes = bytes.to_vec();
        seal(name, &mut bytes);
        files.push((name, bytes));
        rest = behind;
    }
    let options = Options {
        pages: Pages::Plain,
        durability: Some(Durability::Sync),
        memtable_bytes: 600,
        batch_bytes_max: 1 << 20,
        cache_bytes: 1,
        table_bytes: 1 << 10,
        large_values: LARGE_VALUES_LEAST,
        ..Options::default()
    };
    let _ = exercise(&Simulated::from_files(files), &options);
}

/// Changes a keyspace in all ways. Any of them may fail.
fn change(store: &Handle, space: &Arc<Space>) {
    let _ = store.apply(space, Op::Set { key: b"k\x03", value: b"new" });
    let _ = store.apply(space, Op::Merge { key: b"k\x03", operand: b"er" });
    let until = Op::SetUntil { key: &b"k\x04"[..], value: &b"gone"[..], expires: Expires::In(0) };
    let _ = store.apply(space, until);
    let empty = Op::CompareRange { start: &b"k\x04"[..], end: Some(&b"k\x05"[..]), pairs: &b""[..] };
    let _ = store.write(&[(space, empty), (space, Op::Add { key: &b"k\x04"[..], delta: 1 })], None);
    let _ = store.apply(space, Op::DeleteRange { start: b"k\x05", end: Some(&b"k\x07"[..]) });
    let _ = Ingest::begin(store, space).and_then(|ingest| {
        let mut ingest = Box::new(ingest);
        ingest.put(b"k\x06", b"ingested")?;
        ingest.finish()
    });
}

/// Uses a store in all ways, until a call fails.
pub(crate) fn exercise(disk: &Simulated, options: &Options) -> Result<()> {
    let store = Handle::open_unattended(Sealed::plain(disk.clone()), options)?;
    for name in store.keyspaces()? {
        let space = store.keyspace(&name)?;
        let view = store.view(&space);
        for direction in [Direction::Forward, Direction::Backward] {
            let (mut resume, mut chunk) = (Default::default(), Chunk::default());
            let mut beyond = Bound::Unbounded;
            for refill in 0.. {
                assert!(refill < STEPS_MAX, "an iteration without end");
                chunk.clear(16);
                let from = beyond.as_ref().map(Vec::as_slice);
                let bounds = if direction == Direction::Forward {
                    (from, Bound::Unbounded)
                } else {
                    (Bound::Unbounded, from)
                };
                let Ok(Filled::More) = view.fill(&mut chunk, &mut resume, bounds, direction) else {
                    break;
                };
                let last = chunk.key(chunk.len() - 1).to_vec();
                let _ = view.get(&last);
                let mut cursor = view.cursor();
                let _ = cursor.goto(Goto::SeekForPrev(&last)).and_then(|_| cursor.goto(Goto::Prev));
                beyond = Bound::Excluded(last);
            }
        }
        change(&store, &space);
    }
    let _ = store.verify();
    store.flush_all()?;
    store.compact()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition;
    use std::path::{Path, PathBuf};

    type Run = fn(&[u8]);

    const TARGETS: &[(&str, Run)] = &[
        ("log", log),
        ("manifest", manifest),
        ("backup", description),
        ("table", table),
        ("remix", remix),
        ("store", store),
        #[cfg(feature = "encryption")]
        ("keys", keys),
    ];

    fn folder(target: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target)
    }

    /// A directory as an input of the target `store`.
    fn packed(files: &[(Name, Vec<u8>)]) -> Vec<u8> {
        let mut input = Vec::new();
        for (name, bytes) in files {
            let letter = match name.kind {
                Kind::Log => b'L',
                Kind::Manifest => b'M',
                Kind::Remix => b'R',
                Kind::Table => b'T',
                Kind::Copy | Kind::Backup | Kind::Key => unreachable!("no file of a plain store"),
            };
            let [.., a, b, c] = (bytes.len() as u32).to_be_bytes();
            input.extend_from_slice(&[letter, name.number.try_into().expect("few files"), a, b, c]);
            input.extend_from_slice(bytes);
        }
        input
    }

    /// The files of the first golden store (tests/it/golden.rs).
    fn golden() -> Vec<(Name, Vec<u8>)> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../forrest/tests/golden/1");
        let read = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.expect("an entry of it").path();
            let name = path.file_name().and_then(|name| Name::parse(name.to_str()?));
            let name = name.unwrap_or_else(|| panic!("{} is no file of a store", path.display()));
            (name, std::fs::read(&path).expect("a file that can be read"))
        };
        let entries = std::fs::read_dir(directory).expect("the directory of the golden store");
        let mut files: Vec<_> = entries.map(read).collect();
        files.sort();
        files
    }

    /// The genuine files that each target begins with: those of the golden store, and the tables and the
    /// REMIX of this module.
    fn genuine() -> Vec<(&'static str, String, Vec<u8>)> {
        let golden = golden();
        let mut inputs = vec![("store", "golden".to_string(), packed(&golden))];
        let target = |kind| match kind {
            Kind::Log => "log",
            Kind::Manifest => "manifest",
            Kind::Remix => "remix",
            Kind::Table => "table",
            Kind::Copy | Kind::Backup => "backup",
            Kind::Key => "keys",
        };
        inputs.extend(
            golden.into_iter().map(|(name, bytes)| (target(name.kind), format!("golden-{name}"), bytes)),
        );
        let packed = include_bytes!("table/tests/packed.table").to_vec();
        inputs.push(("table", "packed".to_string(), packed));
        for (name, bytes) in tables() {
            inputs.push(("table", format!("small-{name}"), bytes.clone()));
        }
        let disk = Arc::new(Sealed::plain(Simulated::from_files(tables().iter().cloned())));
        let open = |number| Table::open(disk.clone(), Name::table(number), &no_cache()).expect("a table");
        let opened: Vec<_> = (1..=TABLES).map(|number| Arc::new(open(number))).collect();
        let named: Vec<_> = opened.iter().map(|table| (table.name().number, table.entries())).collect();
        for tags in [false, true] {
            let name = Name::remix(NUMBER + u64::from(tags));
            let remix = crate::remix::build(&mut partition::runs(&opened), tags).expect("a REMIX");
            remix.write(&disk, name, &named).expect("it can be written");
            let mut files = disk.simulated().files().into_iter();
            let (_, bytes) = files.find(|(other, _)| *other == name).expect("it is there");
            inputs.push(("remix", format!("tags-{tags}"), bytes));
        }
        inputs.push(("backup", "of-a-table".to_string(), described()));
        inputs
    }

    /// The description of a backup of a small store.
    fn described() -> Vec<u8> {
        let into = Simulated::new();
        let store =
            Handle::open_unattended(Sealed::plain(Simulated::new()), &Options::default()).expect("it opens");
        let space = store.keyspace("default").expect("it is there");
        store.apply(&space, Op::Set { key: b"oak", value: b"Quercus" }).expect("it works");
        store.compact().expect("it works");
        let see = &mut |_: backup::Progress| ControlFlow::Continue(());
        let made = store.backup(Sealed::plain(into.clone()), [0, 0], &backup::BackupOptions::default(), see);
        let id = made.expect("it is made").id;
        into.files().into_iter().find(|(name, _)| *name == Name::copy(id)).expect("it is there").1
    }

    #[test]
    fn genuine_files_go_through_all_decoders() {
        for (target, name, bytes) in genuine() {
            println!("{target} {name}");
            let (_, run) = TARGETS.iter().find(|(other, _)| *other == target).expect("there is one");
            run(&bytes);
            if std::env::var_os("FORREST_GOLDEN_BLESS").is_some() {
                std::fs::create_dir_all(folder(target)).expect("a folder for seeds");
                std::fs::write(folder(target).join(name), bytes).expect("a seed that can be written");
            }
        }
    }

    #[test]
    fn kept_inputs_pass() {
        for &(target, run) in TARGETS {
            let entries = std::fs::read_dir(folder(target)).expect("each target has seeds");
            let mut count = 0;
            for entry in entries {
                let path = entry.expect("an entry of the folder").path();
                println!("{}", path.display());
                run(&std::fs::read(path).expect("an input that can be read"));
                count += 1;
            }
            assert!(count > 0, "no seeds of {target}");
        }
    }

    #[test]
    fn a_genuine_file_is_sealed_already() {
        for (name, genuine) in golden() {
            let mut sealed = genuine.clone();
            seal(name, &mut sealed);
            assert!(sealed == genuine, "{name}");
        }
    }
}
