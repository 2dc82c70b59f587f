//! Makes the golden stores of `tests/golden`, which `golden` reads.
//!
//! Run it with `cargo test -p forrest-db --test it golden_make -- --ignored`. It makes only the missing stores,
//! so it never replaces one. The first commit that writes a changed format makes stores with new names. The
//! old ones stay, because later builds must still read them.
//!
//! The same commands run on each store and on a store in memory, whose final content is written to
//! `NAME.txt`. So the expected content does not come from the code that wrote the files.

use crate::command::{Command, show, show_pair};
use crate::golden::{contents, directory, file_line};
use crate::random::pattern;
use crate::world::World;
use forrest::{Builder, Compression, Db, Durability, Expires, Op, Pages};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A store that is being made, and a store in memory that gets the same commands.
struct Making {
    keep: TempDir,
    path: PathBuf,
    /// `None` while the store is closed.
    store: Option<Db>,
    oracle: Db,
}

/// Sizes at which few keys make several tables.
fn small() -> Builder {
    let sizes = Db::builder().memtable_bytes(16 << 10).table_bytes(64 << 10).cache_bytes(1 << 20);
    sizes.pages(Pages::Plain).batch_bytes_max(1 << 20).workers(1)
}

impl Making {
    fn new(builder: &Builder) -> Making {
        let keep = tempfile::tempdir().expect("a directory");
        let path = keep.path().join("store");
        let oracle = Db::open("memory:").expect("a store in memory");
        let mut making = Making { keep, path, store: None, oracle };
        making.open(builder);
        making
    }

    /// Closes the store if it is open, and opens it.
    fn open(&mut self, builder: &Builder) {
        self.store = None;
        self.store = Some(builder.clone().open(self.path.to_str().expect("it is text")).expect("it opens"));
    }

    fn store(&self) -> &Db {
        self.store.as_ref().expect("it is open")
    }

    /// Runs commands, one a line; the lines of a batch begin with `>> `.
    fn run(&self, script: &str) {
        let answers = |db: &Db| run(db, script);
        assert_eq!(answers(self.store()), answers(&self.oracle), "{script}");
    }

    /// Sets keys in one batch, and waits until they are in a new table.
    fn table(&self, space: &str, pairs: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) {
        let mut script = String::from("batch\n");
        for (key, value) in pairs {
            writeln!(script, ">> {space}set {} {}", show(&key), show(&value)).expect("strings take all");
        }
        let before = self.newest("log");
        self.run(&script);
        self.wait_for_table(&before);
    }

    /// Waits until the background thread has written a table of an idle memtable, and removed the log of its
    /// changes.
    fn wait_for_table(&self, log: &Path) {
        let start = Instant::now();
        while log.exists() {
            assert!(start.elapsed() < Duration::from_secs(20), "no table was written");
            thread::yield_now();
        }
    }

    fn compact(&self) {
        self.store().compact().expect("it compacts");
    }

    /// Copies the files as they are now, next to the store.
    fn copy(&self, to: &str) -> PathBuf {
        let to = self.keep.path().join(to);
        copy(&self.path, &to);
        to
    }

    /// The file of this kind with the greatest number.
    fn newest(&self, extension: &str) -> PathBuf {
        let mut paths: Vec<_> =
            names(&self.path).into_iter().filter(|name| name.ends_with(extension)).collect();
        paths.sort();
        self.path.join(paths.pop().expect("there is one"))
    }

    /// Keeps the files in `from` as a golden store, with the expected content.
    fn keep(&mut self, name: &str, about: &str, from: &Path) {
        self.store = None;
        let to = directory().join(name);
        fs::create_dir(&to).expect("a directory for the store");
        let mut text = String::new();
        about.lines().for_each(|line| writeln!(text, "# {}", line.trim()).expect("strings take all"));
        for name in names(from) {
            if name == "LOCK" {
                continue;
            }
            let bytes = fs::read(from.join(&name)).expect("a file that can be read");
            writeln!(text, "{}", file_line(&name, &bytes)).expect("strings take all");
            fs::write(to.join(name), bytes).expect("a file that can be written");
        }
        for (keyspace, pairs) in contents(&self.oracle).expect("the store in memory") {
            writeln!(text, "keyspace {keyspace}").expect("strings take all");
            for (key, value) in pairs {
                let space = if keyspace == "default" { String::new() } else { format!("@{keyspace} ") };
                writeln!(text, "{space}set {}", show_pair(&key, &value)).expect("strings take all");
            }
        }
        fs::write(directory().join(format!("{name}.txt")), text).expect("a file that can be written");
    }
}

/// Runs a script and returns all results.
pub(crate) fn run(db: &Db, script: &str) -> Vec<String> {
    let mut world = World::new(db.clone());
    let mut lines = script.lines().map(str::trim).peekable();
    let mut answers = Vec::new();
    while let Some(line) = lines.next() {
        if line.is_empty() {
            continue;
        }
        let mut body = Vec::new();
        while let Some(more) = lines.next_if(|line| line.starts_with(">> ")) {
            body.push(&more[3..]);
        }
        let command = Command::parse(line, &body).unwrap_or_else(|error| panic!("{line}: {error}"));
        answers.extend(world.execute(&command));
    }
    answers
}

pub(crate) fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).expect("a directory");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("a name in UTF-8");
    let mut names: Vec<_> = entries.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a new directory");
    for name in names(from) {
        fs::copy(from.join(&name), to.join(&name)).expect("a file that can be copied");
    }
}

/// Cuts off the zeros at the end of a log whose store is open.
fn without_zeros(bytes: &mut Vec<u8>) {
    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
}

/// Keys with a common prefix, as `tree/0007`.
fn key(number: usize) -> Vec<u8> {
    format!("tree/{number:04}").into_bytes()
}

/// Values of many lengths: none, short ones, and some that are longer than a page.
fn value(number: usize) -> Vec<u8> {
    match number % 50 {
        0 => Vec::new(),
        7 => pattern(300 + number, number as u16),
        33 => pattern(4088 + number, number as u16),
        _ => format!("value {number} {}", "x".repeat(number % 17)).into_bytes(),
    }
}

fn pairs(numbers: impl Iterator<Item = usize>) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    numbers.map(|number| (key(number), value(number)))
}

/// Pairs without long values.
fn short_pairs(numbers: impl Iterator<Item = usize>) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    numbers.map(|number| (key(number), format!("short value of tree {number}").into_bytes()))
}

/// Every kind of change that a log holds.
const CHANGES: &str = r#"
    set oak "Quercus robur"
    set "" "the empty key"
    set empty ""
    set "\x00\xff" "\x80\x00"
    set <1000:7> <5000:7>
    set gone soon
    delete gone
    delete never
    add count 41
    add count 1
    add low -9223372036854775808
    compare-and-swap oak "Quercus robur" "Quercus"
    compare-and-swap oak wrong never
    compare-and-swap elm - Ulmus
    compare-and-swap elm Ulmus -
    keyspace people
    keyspace empty
    keyspace gone
    @gone set a b
    @people set ada "Countess of Lovelace"
    @people set alan Turing
    batch
    >> set batch/1 one
    >> set batch/2 two
    >> delete batch/1
    >> add count 8
    >> @people set grace Hopper
    >> @people delete-range al am
    >> compare-and-swap fir - Abies
    batch
    >> set batch/3 three
    >> compare-and-swap fir wrong never
    set range/1 1
    set range/2 2
    set range/3 3
    set range/4 4
    delete-range range/2 range/4
    @people delete-range b c
    drop-keyspace gone
    append oak " robur"
"#;

fn empty(name: &str) {
    let mut making = Making::new(&Db::builder());
    making.store = None;
    let path = making.path.clone();
    making.keep(name, "A store that was made and closed.", &path);
}

fn logs(name: &str) {
    let mut making = Making::new(&Db::builder().durability(Durability::Sync));
    making.run(CHANGES);
    making.open(&Db::builder());
    making.run("set second buffered\n@people set alan \"Turing again\"\nkeyspace gone\n@gone set c d\nsync\nset third x");
    making.open(&Db::builder().durability(Durability::Memory));
    making.run("drop-keyspace gone\nset third memory\nadd count -7\ndelete fir");
    // The last one has no record.
    making.open(&Db::builder());
    let about = "Everything is in logs: puts, deletes, keyspaces made and dropped, batches, counters, range deletes.\n\
                 Four logs go on from one another. They were written at the levels sync, buffered, memory and buffered.";
    let path = making.path.clone();
    making.store = None;
    making.keep(name, about, &path);
}

/// The last record is incomplete, and no record states that it was synced.
fn torn(name: &str) {
    let mut making = Making::new(&Db::builder().durability(Durability::Sync));
    making.run("set oak Quercus\nset ash Fraxinus\nset elm Ulmus\ndelete ash\nset fir Abies");
    // This change is lost, so the store in memory does not get it.
    run(making.store(), "set lost <200:3>");
    making.store = None;
    let log = making.newest("log");
    let mut bytes = fs::read(&log).expect("the log");
    bytes.truncate(bytes.len() - 11);
    fs::write(log, bytes).expect("the log");
    let path = making.path.clone();
    making.keep(name, "A log that ends in a piece of a record, as a power cut leaves it.", &path);
}

/// The log of a killed process: it ends with zeros, which were allocated for further records.
fn killed(name: &str) {
    let mut making = Making::new(&Db::builder().durability(Durability::Sync));
    making.run(CHANGES);
    let log = making.newest("log");
    let copy = making.copy("killed");
    let log = copy.join(log.file_name().expect("a name"));
    let mut bytes = fs::read(&log).expect("the log");
    without_zeros(&mut bytes);
    bytes.resize(bytes.len() + 500, 0);
    fs::write(log, bytes).expect("the log");
    making.keep(name, "A store whose process was killed: zeros follow the last record of the log.", &copy);
}

fn table(name: &str) {
    let mut making = Making::new(&small());
    making.table("", pairs(0..200));
    making.run("set \"\" \"the empty key\"\nset <1000:7> long\ndelete tree/0005\nadd count 42\ndelete-range tree/0040 tree/0060");
    making.compact();
    let path = making.path.clone();
    making.keep(
        name,
        "One table, of several key blocks and pages, without a REMIX. Nothing is in the log.",
        &path,
    );
}

/// Tables that overlap, of which the newer ones delete and replace keys of the older ones.
fn runs(name: &str, builder: &Builder, about: &str) {
    let mut making = Making::new(builder);
    making.run("keyspace people\nkeyspace gone\nkeyspace empty");
    making.table("", pairs((0..300).step_by(7)));
    making.table("@gone ", short_pairs(0..100));
    let before = making.newest("log");
    making.run(&format!("delete-range tree/0100 tree/0200\n{}", batch("", short_pairs((0..300).step_by(2)))));
    making.wait_for_table(&before);
    making.run("drop-keyspace gone\ndelete tree/0299");
    making.table("", short_pairs((0..300).step_by(5)));
    making.table("@people ", pairs(0..60));
    making.run("delete-range tree/0250 tree/0260\ndelete tree/0002\nadd count 42\nset zoo last\n@people delete tree/0003");
    making.run("set late/1 <70:1>\nset tree/0004 newest");
    let path = making.path.clone();
    making.keep(name, about, &path);
}

/// Range deletes in the log, over tables and over what the log has.
fn ranges(name: &str) {
    let mut making = Making::new(&small().durability(Durability::Sync));
    making.run("keyspace people");
    making.table("", pairs(0..150));
    making.table("@people ", short_pairs(0..50));
    making.run(
        "set tree/0030x late\ndelete-range tree/0020 tree/0040\nset tree/0025 again\ndelete-range tree/0120 -\n\
         set zoo 1\nbatch\n>> set tree/0050x early\n>> delete-range tree/0050 tree/0060\n>> set tree/0055 new\n\
         >> @people delete-range - tree/0040\ndelete-range tree/0055 tree/0058",
    );
    let copy = making.copy("ranges");
    let log = copy.join(making.newest("log").file_name().expect("a name"));
    let mut bytes = fs::read(&log).expect("the log");
    without_zeros(&mut bytes);
    fs::write(log, bytes).expect("the log");
    making.keep(name, "Range deletes in the log, over tables and over what the log has.", &copy);
}

fn batch(space: &str, pairs: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) -> String {
    let mut script = String::from("batch\n");
    for (key, value) in pairs {
        writeln!(script, ">> {space}set {} {}", show(&key), show(&value)).expect("strings take all");
    }
    script
}

fn partitions(name: &str) {
    let builder = small().table_bytes(8 << 10);
    let mut making = Making::new(&builder);
    making.table("", pairs(0..150));
    making.compact();
    making.table("", short_pairs((0..140).step_by(3)));
    making.table("", short_pairs(100..140));
    // Greater than all other keys.
    making.table("", pairs(200..260));
    making.run("delete-range tree/0030 tree/0035\nset tree/0001 newest");
    let path = making.path.clone();
    let about = "Several partitions, of one table and of several, and one that was appended.";
    making.keep(name, about, &path);
}

/// A manifest that grew by more than 256 KiB and was replaced by a new one while the store was open. Least keys of
/// partitions are in it, so long keys make it grow quickly.
fn manifest(name: &str) {
    let builder = small().table_bytes(1).durability(Durability::Memory);
    let mut making = Making::new(&builder);
    let long = |number: u16| show(&pattern(6_000, number));
    making.run(&format!("set {} 1\nset {} 2\nset {} 3", long(1), long(2), long(3)));
    making.compact();
    let first = making.newest("manifest");
    let mut round = 0;
    while making.newest("manifest") == first {
        round += 1;
        assert!(round < 300, "the manifest is not replaced");
        making.run(&format!("set {} {round}", long(2)));
        making.compact();
    }
    making.run("keyspace late\n@late set a b");
    making.compact();
    making.run("set in-log 1");
    let path = making.path.clone();
    making.keep(
        name,
        "The manifest was replaced by a new one while the store was open, and edited after that.",
        &path,
    );
}

/// Files that the store does not need, as crashes leave them.
fn left_over(name: &str) {
    let mut making = Making::new(&small());
    making.table("", short_pairs((0..200).step_by(3)));
    making.table("", short_pairs(0..190));
    let before = making.copy("before");
    making.run("delete tree/0007\nkeyspace people\n@people set ada Lovelace");
    making.compact();
    making.run("set in-log 1");
    making.store = None;
    for name in names(&before) {
        if !name.ends_with("manifest") && !making.path.join(&name).exists() {
            let mut bytes = fs::read(before.join(&name)).expect("a file that can be read");
            if name.ends_with("log") {
                without_zeros(&mut bytes);
            }
            fs::write(making.path.join(&name), bytes).expect("a file that can be written");
        }
    }
    // Created but not written: a manifest with its header only, a log, a table, and a REMIX.
    let manifest = fs::read(making.newest("manifest")).expect("the manifest");
    fs::write(making.path.join("00000090.manifest"), &manifest[..40]).expect("a manifest");
    for name in ["00000091.log", "00000092.table", "00000093.remix"] {
        fs::write(making.path.join(name), "").expect("an empty file");
    }
    let path = making.path.clone();
    let about = "Files that the store no longer needs, and some that were begun: crashes left them. Opening removes them.";
    making.keep(name, about, &path);
}

fn checkpoint_of_disk(name: &str) {
    let mut making = Making::new(&small());
    making.run(CHANGES);
    making.table("", short_pairs((0..300).step_by(7)));
    making.table("", short_pairs(0..300));
    making.run(
        "drop-keyspace empty\nkeyspace late\n@late set a b\ndelete-range tree/0100 tree/0150\nset in-log 1",
    );
    let path = making.keep.path().join("checkpoint");
    making.store().checkpoint(&path).expect("a checkpoint");
    making.keep(name, "A checkpoint of a store on disk with tables, a REMIX and changes in memory.", &path);
}

fn checkpoint_of_memory(name: &str) {
    let mut making = Making::new(&small());
    making.run(CHANGES);
    making.oracle.checkpoint(making.keep.path().join("checkpoint")).expect("a checkpoint");
    let path = making.keep.path().join("checkpoint");
    making.keep(name, "A checkpoint of a store in memory.", &path);
}

/// Compressed tables beside one that is not, and a keyspace with a choice of its own.
fn packed(name: &str) {
    let mut making = Making::new(&small());
    making.run(CHANGES);
    making.table("", pairs((0..700).step_by(7)));
    making.open(&small().compression(Compression::Lz4));
    making.table("", pairs(0..700));
    making.table("@people ", pairs(0..200));
    making
        .store()
        .keyspace("people")
        .expect("it is there")
        .set_compression(Compression::None)
        .expect("it is chosen");
    making.table("@people ", pairs(100..300));
    making.run("delete-range tree/0100 tree/0150\nset in-log 1");
    let path = making.path.clone();
    making.keep(
        name,
        "Tables that LZ4 compressed, and others, under REMIXes; a keyspace chose no compression.",
        &path,
    );
}

/// A keyspace with a merge operator, its values in a table and in the log.
fn merged(name: &str) {
    let mut making = Making::new(&small());
    making.run(CHANGES);
    for db in [making.store(), &making.oracle] {
        let trees = db.keyspace("merged").expect("a keyspace");
        trees.set_merge_operator("append").expect("it is empty");
    }
    making.run("@merged merge oak a\n@merged merge oak b\n@merged merge ash c");
    making.store().flush().expect("tables");
    making.run("@merged merge oak d\n@merged set elm e\n@merged merge elm f");
    let path = making.path.clone();
    making.keep(
        name,
        "A keyspace whose merge operator is append, with a table and with changes in the log.",
        &path,
    );
}

/// Operands of merges in two tables, above values and above nothing, and in the log.
fn operands(name: &str) {
    let mut making = Making::new(&small());
    making.run(CHANGES);
    for db in [making.store(), &making.oracle] {
        for (space, operator) in [("lists", "append"), ("sums", "sum")] {
            db.keyspace(space).expect("a keyspace").set_merge_operator(operator).expect("it is empty");
        }
    }
    making.run("@lists set oak a\n@lists set elm a\n@lists delete ash\n@sums add tree 5\n@sums add leaf 1");
    making.store().flush().expect("tables");
    making.run("@lists merge oak b\n@lists merge oak c\n@lists merge ash d\n@lists merge fir e");
    let merge = |making: &Making, key: &str, number: i64| {
        for db in [making.store(), &making.oracle] {
            let sums = db.keyspace("sums").expect("it is there");
            sums.merge(key, number.to_be_bytes()).expect("it is merged");
        }
    };
    for number in [1, -2, 3, i64::MAX] {
        merge(&making, "tree", number);
    }
    making.store().flush().expect("tables");
    making.run("@lists merge oak f\n@lists delete elm\n@lists merge elm g\n@lists merge fir h");
    merge(&making, "tree", -7);
    merge(&making, "leaf", 8);
    let path = making.path.clone();
    making.keep(name, "Keyspaces with merge operators, and operands in tables and in the log.", &path);
}

/// Logs that are kept as history.
fn history(name: &str) {
    let mut making = Making::new(&small().history(true));
    making.run(CHANGES);
    making.run("delete-range tree/0100 tree/0150\nset in-log 1");
    let path = making.path.clone();
    making.keep(name, "Changes of every kind in logs with history.", &path);
}

/// Values that expire long after anybody reads this, in a table and in the log, and a keyspace with a time to live.
fn expiring(name: &str) {
    let mut making = Making::new(&small());
    making.run(CHANGES);
    let set = |making: &Making, key: &str| {
        // The year 2255.
        let op = Op::SetUntil { key, value: "held", expires: Expires::At(9_000_000_000_000) };
        making.store().apply(op).expect("it is set");
        making.oracle.set(key, "held").expect("it is set");
    };
    for key in ["seat 1", "seat 2", "seat 3"] {
        set(&making, key);
    }
    making.store().flush().expect("tables");
    set(&making, "seat 4");
    making.run("delete \"seat 2\"");
    let century = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    making.store().set_ttl(Some(century)).expect("it is on disk");
    making.run("set oak later");
    let path = making.path.clone();
    making.keep(name, "Values that expire in the year 2255 or 2126, in a table and in the log.", &path);
}

/// Logs that are kept as history, with values that expire.
fn expiring_history(name: &str) {
    let mut making = Making::new(&small().history(true));
    making.run(CHANGES);
    let op = Op::SetUntil { key: "seat 1", value: "held", expires: Expires::At(9_000_000_000_000) };
    making.store().apply(op).expect("it is set");
    making.oracle.set("seat 1", "held").expect("it is set");
    making.run("set in-log 1");
    let path = making.path.clone();
    making.keep(name, "A value that expires in the year 2255, in logs with history.", &path);
}

/// Values that stay in logs: two logs that are kept, of which values are replaced, deleted and expire, and one that the
/// store needs anyway.
fn large(name: &str) {
    let mut making = Making::new(&small().large_values(500));
    making.run(CHANGES);
    let photos = (0..8).map(|number| (key(number), pattern(900 + number, number as u16)));
    making.run(&batch("", photos));
    making.run("@people set ada <700:3>");
    making.store().flush().expect("tables");
    let held = "held ".repeat(200);
    let op = Op::SetUntil { key: "seat 1", value: &held[..], expires: Expires::At(9_000_000_000_000) };
    making.store().apply(op).expect("it is set");
    making.oracle.set("seat 1", &held).expect("it is set");
    making.run("set tree/0002 <2000:2>\nset tree/0003 short\ndelete tree/0005\nset tree/0100 <1500:9>");
    making.store().flush().expect("tables");
    making.run("set tree/0000 <600:1>\nset in-log 1\n@people set alan <800:4>");
    let path = making.path.clone();
    making.keep(name, "Values of 500 bytes and more are in logs, of which tables have the places.", &path);
}

/// The same, with the order over the tables of a partition in a file, which counts the values in logs that are hidden.
fn large_order(name: &str) {
    let mut making = Making::new(&small().large_values(500));
    making.run(CHANGES);
    for round in 0..4 {
        let photos = (0..8).map(|number| (key(number * (round + 1)), pattern(900 + number, round as u16)));
        making.run(&batch("", photos));
        making.store().flush().expect("tables");
    }
    making.store().settle().expect("what is due is done");
    let path = making.path.clone();
    making.keep(name, "Values are in logs, and a REMIX counts those that are hidden.", &path);
}

/// A name, and the function that makes the store of this name.
type Maker = (&'static str, fn(&str));

const STORES: &[Maker] = &[
    ("empty", empty),
    ("logs", logs),
    ("torn", torn),
    ("killed", killed),
    ("table", table),
    ("tags", |name| {
        runs(name, &small(), "Tables that overlap, and a REMIX with tags over them; a keyspace was dropped.")
    }),
    ("no-tags", |name| {
        runs(
            name,
            &small().tags(false),
            "Tables that overlap, and a REMIX without tags; a keyspace was dropped.",
        );
    }),
    ("partitions", partitions),
    ("manifest", manifest),
    ("left-over", left_over),
    ("checkpoint-of-disk", checkpoint_of_disk),
    ("checkpoint-of-memory", checkpoint_of_memory),
    // Their manifests have version 2.
    ("tags-2", |name| runs(name, &small(), "Tables that overlap; the manifest states what they cover.")),
    ("checkpoint-2", checkpoint_of_disk),
    // Its tables have tags.
    ("table-tags", partitions),
    // Their logs have version 2, with records of range deletes.
    ("ranges-2", ranges),
    ("killed-2", killed),
    ("checkpoint-3", checkpoint_of_disk),
    // Its manifest has version 3, and its tables 1 and 2.
    ("packed", packed),
    // Its compressed table has chunks of two pages.
    ("packed-2", packed),
    // Its manifest has version 4.
    ("merged", merged),
    // Its logs have version 3.
    ("history-3", history),
    // Its manifest has version 5, its log version 4, and a table has wrapped values.
    ("expiring", expiring),
    // Its logs have version 5.
    ("history-5", expiring_history),
    // Its manifest has version 6, and tables have values in logs.
    ("large", large),
    // A REMIX has the bytes of hidden values.
    ("large-order", large_order),
    // Its manifest has version 7, and tables and the log have operands.
    ("operands", operands),
];

#[test]
#[ignore = "makes the golden stores that are not there"]
fn make_the_golden_stores_that_are_missing() {
    let made = STORES.iter().filter(|(name, _)| !directory().join(name).exists());
    for (name, make) in made {
        println!("{name}");
        make(name);
    }
}
