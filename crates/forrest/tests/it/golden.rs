//! Stores that earlier builds wrote, kept in `tests/golden`. This build opens them, reads them correctly on
//! every path, and writes to them. So a format cannot change in a way that makes existing stores unreadable.
//!
//! Each directory `NAME` has these files:
//!
//! - `NAME.txt`: a line for each file with its length and hash, and the store's content as commands (see
//!   `command`);
//! - `NAME.damaged.txt`, for some: damaged copies, and the exact errors that they must cause (see
//!   `golden_damage`).
//!
//! `golden_make` made them, and documents how to add one.

use crate::command::Command;
use crate::golden_make::{copy, names, run};
use crate::world::World;
use forrest::{Builder, Db, Error, Pages};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_64;

/// Keyspaces by name.
pub(crate) type Contents = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

/// The directory of the golden stores.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The line of a file in `NAME.txt`.
pub(crate) fn file_line(name: &str, bytes: &[u8]) -> String {
    format!("file {name} {} {:016x}", bytes.len(), xxh3_64(bytes))
}

/// The content of a store, read from the first key to the last.
pub(crate) fn contents(db: &Db) -> Result<Contents, Error> {
    let mut contents = Contents::new();
    for name in db.keyspaces()? {
        let mut pairs = BTreeMap::new();
        for pair in db.keyspace(&name)?.range(..) {
            let pair = pair?;
            pairs.insert(pair.key().to_vec(), pair.value()?.to_vec());
        }
        contents.insert(name, pairs);
    }
    Ok(contents)
}

/// A golden store.
pub(crate) struct Golden {
    pub(crate) name: String,
    /// The lines of its files, sorted.
    files: Vec<String>,
    /// Its content, as commands.
    script: String,
}

impl Golden {
    pub(crate) fn path(&self) -> PathBuf {
        directory().join(&self.name)
    }

    /// A copy of its files. Dropping the first result removes the directory.
    pub(crate) fn copy(&self) -> (TempDir, PathBuf) {
        let keep = tempfile::tempdir().expect("a directory");
        let path = keep.path().join("store");
        copy(&self.path(), &path);
        // Opening would create it if it is missing.
        fs::write(path.join("LOCK"), "").expect("an empty file");
        (keep, path)
    }

    /// A store in memory with the expected content.
    pub(crate) fn oracle(&self) -> Db {
        // The test opens all golden stores at once, and an emulator has little address space.
        let db = Db::builder().capacity_bytes(64 << 20).open("memory:").expect("a store in memory");
        let answers = run(&db, &self.script);
        assert!(answers.iter().all(|answer| answer.starts_with("ok")), "{}: {answers:?}", self.name);
        db
    }
}

/// All golden stores.
pub(crate) fn all() -> Vec<Golden> {
    let is_store = |name: &String| directory().join(name).is_dir();
    let read = |name: String| {
        let path = directory().join(format!("{name}.txt"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let lines = || text.lines().filter(|line| !line.starts_with('#'));
        let files = lines().filter(|line| line.starts_with("file ")).map(str::to_owned).collect();
        let script = lines().filter(|line| !line.starts_with("file ")).collect::<Vec<_>>().join("\n");
        Golden { name, files, script }
    };
    names(&directory()).into_iter().filter(is_store).map(read).collect()
}

/// Commands that read a keyspace on every path, of the newest state or of a snapshot called `s`.
fn reads(at: &str, keys: &[String]) -> String {
    let mut script = String::new();
    let mut add = |command: &str| script.push_str(&format!("{at}{command}\n"));
    for ends in ["f", "b", "fb", "bbf"] {
        add(&format!("scan {ends}"));
        add(&format!("prefix {ends} tree/00"));
        add(&format!("scan {ends} after tree/0010 through tree/0120"));
    }
    ["first", "last", "count", "count from tree/0003 before tree/0290"].into_iter().for_each(&mut add);
    for key in keys {
        add(&format!("get {key}"));
    }
    for key in keys.iter().step_by(7) {
        ["get-into", "contains", "count from", "count through"]
            .into_iter()
            .for_each(|verb| add(&format!("{verb} {key}")));
    }
    add(&format!("multi-get {}", keys.join(" ")));
    add("cursor c");
    let mut step = |to: &str| script.push_str(&format!("move c {to}\n"));
    ["first", "skip 7", "next", "prev", "last", "prev", "skip 2"].into_iter().for_each(&mut step);
    for key in keys.iter().step_by(11) {
        step(&format!("seek {key}"));
        step("prev");
        step(&format!("seek-for-prev {key}"));
        step("skip 3");
    }
    script.push_str("close c\n");
    script
}

/// Keys for lookups, as scripts show them: those in the store, and neighbours that are not.
fn keys(contents: &Contents) -> Vec<String> {
    let mut keys: Vec<String> =
        contents.values().flat_map(BTreeMap::keys).map(|key| crate::command::show(key)).collect();
    keys.extend((0..310).step_by(3).map(|number| format!("tree/{number:04}")));
    keys.extend(["\"\"", "a", "tree", "tree/0001x", "zzz", "\"\\xff\\xff\""].map(str::to_owned));
    keys.sort();
    keys.dedup();
    keys
}

/// Reads both stores on every path and compares the results.
fn compare(store: &Db, oracle: &Db, what: &str) {
    assert!(contents(store).expect("it is read") == contents(oracle).expect("memory"), "{what}: contents");
    let keys = keys(&contents(oracle).expect("memory"));
    let mut script = String::from("keyspaces\nsnapshot s\n%s keyspaces\n");
    for name in oracle.keyspaces().expect("memory") {
        script.push_str(&reads(&format!("@{name} "), &keys));
        script.push_str(&reads(&format!("%s @{name} "), &keys));
    }
    let (mut store, mut oracle) = (World::new(store.clone()), World::new(oracle.clone()));
    for line in script.lines() {
        let command = Command::parse(line, &[]).unwrap_or_else(|error| panic!("{line}: {error}"));
        let (found, expected) = (store.execute(&command), oracle.execute(&command));
        assert!(found == expected, "{what}: {line}\n{found:?}\n{expected:?}");
    }
}

/// The commands that write to each golden store after it was read.
const WRITES: &str = r#"
    set tree/0001 written
    set "" "the empty key"
    delete tree/0002
    delete tree/0003
    add hits 3
    delete-range tree/0020 tree/0090
    set tree/0050 again
    batch
    >> set new/1 <300:1>
    >> @added set new/2 2
    >> @people delete ada
    >> add hits 4
    keyspace gone
    @gone set a b
    drop-keyspace gone
    append tree/0001 " twice"
    compare-and-swap tree/0001 "written twice" thrice
"#;

/// The defaults, and small sizes, with which tables are written and merged.
fn builders() -> [Builder; 2] {
    let small = Db::builder().pages(Pages::Plain).memtable_bytes(4 << 10).table_bytes(8 << 10).cache_bytes(1);
    [
        Db::builder().cache_bytes(16 << 20).batch_bytes_max(16 << 20),
        small.tags(false).batch_bytes_max(16 << 20),
    ]
}

#[test]
fn golden_stores_are_as_they_were_made() {
    let all = all();
    assert!(!all.is_empty(), "no golden stores");
    for golden in all {
        let line = |name: String| file_line(&name, &fs::read(golden.path().join(&name)).expect("a file"));
        let files: Vec<_> = names(&golden.path()).into_iter().map(line).collect();
        assert_eq!(files, golden.files, "{}", golden.name);
    }
}

/// Reads a golden store, writes to it, and reads it again after each operation on it.
fn read_and_go_on(golden: &Golden, set: usize, builder: &Builder) {
    let what = |then: &str| format!("{}, options {set}, {then}", golden.name);
    let (keep, path) = golden.copy();
    let open = |path: &Path| {
        let store = builder.clone().open(path.to_str().expect("it is text"));
        store.unwrap_or_else(|error| panic!("{}: {error}", what("opening")))
    };
    let verify =
        |store: &Db, then: &str| store.verify().unwrap_or_else(|error| panic!("{}: {error}", what(then)));
    let (store, oracle) = (open(&path), golden.oracle());
    compare(&store, &oracle, &what("as it was made"));
    verify(&store, "as it was made");
    let copy = keep.path().join("checkpoint");
    store.checkpoint(&copy).expect("a checkpoint");
    assert_eq!(run(&store, WRITES), run(&oracle, WRITES), "{}", what("writing"));
    drop(store);
    let store = open(&path);
    compare(&store, &oracle, &what("written to and opened again"));
    store.compact().expect("it compacts");
    compare(&store, &oracle, &what("compacted"));
    drop(store);
    let store = open(&path);
    verify(&store, "at the end");
    assert!(
        contents(&store).expect("it is read") == contents(&oracle).expect("memory"),
        "{}",
        what("at the end")
    );
    // The checkpoint has none of the later changes.
    let (store, oracle) = (open(&copy), golden.oracle());
    verify(&store, "its checkpoint");
    assert!(
        contents(&store).expect("it is read") == contents(&oracle).expect("memory"),
        "{}",
        what("its checkpoint")
    );
}

/// The kind of a file, by its extension, and the version in it; `None` for a file without one.
fn version(path: &Path) -> Option<(String, u32)> {
    let kind = path.extension()?.to_str()?.to_owned();
    let bytes = fs::read(path).expect("a file that can be read");
    let start = match &kind[..] {
        "log" | "manifest" | "remix" => 0,
        "table" => bytes.windows(8).rposition(|bytes| bytes == b"frst.tbl")?,
        _ => return None,
    };
    let field = bytes.get(start + 8..start + 12)?;
    let version = u32::from_le_bytes(field.try_into().expect("4 bytes"));
    // That of a REMIX has two bytes.
    Some((kind.clone(), if kind == "remix" { version & 0xFFFF } else { version }))
}

fn versions(path: &Path) -> BTreeSet<(String, u32)> {
    names(path).into_iter().filter_map(|name| version(&path.join(name))).collect()
}

/// The versions in a column of the table in docs/format.md.
fn promised(column: usize) -> BTreeSet<(String, u32)> {
    let text = include_str!("../../../../docs/format.md");
    let mut all = BTreeSet::new();
    for row in text.lines().filter(|line| line.starts_with("| `.")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let kind = cells[1].trim_matches(['`', '.']).to_owned();
        let words = cells[column].split(|letter: char| !letter.is_ascii_digit());
        all.extend(words.filter_map(|word| Some((kind.clone(), word.parse().ok()?))));
    }
    assert!(all.len() >= 4, "no table of versions");
    all
}

/// What docs/format.md promises: there is a store of each version that is read, and a store of any of them has the
/// versions that are written after it was compacted.
#[test]
fn the_promised_versions_are_read_and_replaced() {
    let of_stores: BTreeSet<_> = all().iter().flat_map(|golden| versions(&golden.path())).collect();
    assert_eq!(of_stores, promised(2), "read");
    let written = promised(3);
    for golden in all() {
        let (_keep, path) = golden.copy();
        let store = builders()[0].open(path.to_str().expect("it is text")).expect("it opens");
        store.set("a change", "begins a log and a manifest").expect("it is made");
        store.compact().expect("it compacts");
        drop(store);
        let now = versions(&path);
        assert!(now.is_subset(&written), "{}: {now:?}, not all of {written:?}", golden.name);
        assert!(now.iter().any(|(kind, _)| kind == "table"), "{}: {now:?}", golden.name);
    }
}

#[test]
fn golden_stores_are_read_and_go_on() {
    // In parallel, because most of the time is spent waiting for syncs.
    std::thread::scope(|scope| {
        for golden in all() {
            scope.spawn(move || {
                for (set, builder) in builders().iter().enumerate() {
                    read_and_go_on(&golden, set, builder);
                }
            });
        }
    });
}
