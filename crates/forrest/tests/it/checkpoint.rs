//! `Db::checkpoint`: from memory and from disk, what it refuses, and what it has in common with its store.

use forrest::{Db, Durability, ErrorKind, WriteBatch, directory};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tempfile::TempDir;

type Content = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

fn content(db: &Db) -> Content {
    let pairs = |name: &String| {
        let space = db.keyspace(name).unwrap();
        let pairs = space.range(..).map(|pair| pair.unwrap());
        pairs.map(|pair| (pair.key().to_vec(), pair.value().unwrap().to_vec())).collect()
    };
    db.keyspaces().unwrap().iter().map(|name| (name.clone(), pairs(name))).collect()
}

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A home of each kind that has checkpoints, and where one may be put.
fn homes() -> Vec<(TempDir, PathBuf, Db)> {
    let home = |on_disk: bool| {
        let keep = tempfile::tempdir().unwrap();
        let url = if on_disk { text(&keep.path().join("store")).to_owned() } else { "memory:".to_owned() };
        let builder = Db::builder().memtable_bytes(64 << 10).table_bytes(64 << 10);
        let db = builder.durability(Durability::Memory).open(&url).unwrap();
        let copy = keep.path().join("copy");
        (keep, copy, db)
    };
    [false, true].map(home).into()
}

/// So much that some of it is in tables.
fn fill(db: &Db) {
    let people = db.keyspace("people").unwrap();
    db.keyspace("gone").unwrap().set("key", "value").unwrap();
    db.keyspace("empty").unwrap();
    for number in 0..3000u32 {
        db.set(number.to_be_bytes(), vec![number as u8; number as usize % 100]).unwrap();
        people.set((number * 7 % 1000).to_be_bytes(), number.to_string()).unwrap();
        db.add("counter", i64::from(number)).unwrap();
    }
    db.delete_range(100u32.to_be_bytes()..200u32.to_be_bytes()).unwrap();
    db.set("long", vec![7; 300_000]).unwrap();
    db.drop_keyspace("gone").unwrap();
    people.delete(6u32.to_be_bytes()).unwrap();
}

#[test]
fn a_checkpoint_is_a_store_with_all_that_was_there() {
    for (keep, copy, db) in homes() {
        fill(&db);
        let expected = content(&db);
        db.checkpoint(&copy).unwrap();
        fill(&db);
        db.keyspace("later").unwrap();
        db.delete_range(..1000u32.to_be_bytes()).unwrap();
        let other = Db::open(text(&copy)).unwrap();
        other.verify().unwrap();
        assert_eq!(content(&other), expected);
        assert_eq!(other.add("counter", 1).unwrap(), (0..3000).sum::<i64>() + 1);
        // Each is a store of its own, also when both merge what they have.
        let here = content(&db);
        let merge = |db: &Db| match db.compact() {
            Err(error) if error.kind() == ErrorKind::Unsupported => {}
            merged => merged.unwrap(),
        };
        merge(&db);
        other.delete_range(..).unwrap();
        merge(&other);
        assert_eq!(content(&db), here);
        assert_eq!(other.count(..).unwrap(), 0);
        drop(other);
        Db::open(text(&copy)).unwrap().verify().unwrap();
        assert!(!names(keep.path()).iter().any(|name| name.contains("unfinished")));
    }
}

#[test]
fn tables_are_shared_and_logs_but_those_kept_for_values_are_not() {
    let (keep, copy, db) = homes().pop().unwrap();
    fill(&db);
    // The background thread would replace files between the checkpoint and the checks.
    db.settle().unwrap();
    db.checkpoint(&copy).unwrap();
    let (mut shared, mut logs) = (0, 0);
    for name in names(&copy) {
        let is_shared = std::fs::metadata(copy.join(&name)).unwrap().nlink() == 2;
        shared += u32::from(is_shared);
        logs += u32::from(is_shared && name.ends_with(".log"));
        let must_be = name.ends_with(".table") || name.ends_with(".remix");
        assert!(is_shared == must_be || is_shared && name.ends_with(".log"), "{name}");
    }
    assert!(shared > 1, "{:?}", names(&copy));
    // That of the long value.
    assert_eq!(logs, 1, "{:?}", names(&copy));
    assert!(!copy.join("LOCK").exists());
    // A checkpoint of a checkpoint, and the first store gone.
    let again = keep.path().join("again");
    let expected = content(&db);
    Db::open(text(&copy)).unwrap().checkpoint(&again).unwrap();
    drop(db);
    std::fs::remove_dir_all(keep.path().join("store")).unwrap();
    std::fs::remove_dir_all(&copy).unwrap();
    let db = Db::open(text(&again)).unwrap();
    db.verify().unwrap();
    assert_eq!(content(&db), expected);
}

#[test]
fn what_cannot_be_a_checkpoint_is_told_and_nothing_is_left() {
    for (keep, copy, db) in homes() {
        db.set("oak", "Quercus").unwrap();
        std::fs::write(keep.path().join("file"), "mine").unwrap();
        db.checkpoint(keep.path().join("taken")).unwrap();
        let before = names(keep.path());
        let refused = |path: &Path, kind| {
            let error = db.checkpoint(path).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(text(path)) || kind == ErrorKind::Io, "{error}");
        };
        refused(&keep.path().join("taken"), ErrorKind::InvalidArgument);
        refused(&keep.path().join("file"), ErrorKind::InvalidArgument);
        refused(&keep.path().join("file/copy"), ErrorKind::Io);
        refused(&keep.path().join("missing/copy"), ErrorKind::Io);
        for no_path in ["", "memory:", "llds:shop", "/", ".."] {
            refused(Path::new(no_path), ErrorKind::InvalidArgument);
        }
        if directory(db.capabilities().home()).is_some() {
            refused(&keep.path().join("store/copy"), ErrorKind::InvalidArgument);
            refused(&keep.path().join("store"), ErrorKind::InvalidArgument);
        }
        assert_eq!(names(keep.path()), before);
        // And it can be done right after.
        db.checkpoint(&copy).unwrap();
        assert_eq!(Db::open(text(&copy)).unwrap().get("oak").unwrap().unwrap(), "Quercus");
    }
}

/// Ends what runs until it is over, also when the test fails.
struct End<'o>(&'o AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Writers change two keys together while checkpoints are taken one after another.
#[test]
fn a_checkpoint_under_writers_has_whole_batches_and_all_that_was_acknowledged() {
    for (keep, _, db) in homes() {
        let (acknowledged, over) = (AtomicU64::new(0), AtomicBool::new(false));
        let other = db.keyspace("other").unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for number in 1u64.. {
                    let mut batch = WriteBatch::new();
                    batch.set("newest", number.to_be_bytes());
                    batch.on(&other).set(number.to_be_bytes(), vec![number as u8; 100]);
                    db.write(batch).unwrap();
                    acknowledged.store(number, Ordering::Release);
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
            let _end = End(&over);
            for round in 0..5 {
                let copy = keep.path().join(format!("copy{round}"));
                let before = acknowledged.load(Ordering::Acquire);
                db.checkpoint(&copy).unwrap();
                let copy = Db::open(text(&copy)).unwrap();
                let newest = copy.get("newest").unwrap();
                let newest = newest.map_or(0, |value| u64::from_be_bytes(value[..].try_into().unwrap()));
                assert!(newest >= before, "{before} was acknowledged, and {newest} is there");
                let other = copy.keyspace("other").unwrap();
                assert_eq!(other.count(..).unwrap(), newest);
                let last = other.last().unwrap().map(|last| last.key().to_vec());
                assert_eq!(last, (newest > 0).then(|| newest.to_be_bytes().to_vec()));
                assert!(!writer.is_finished());
            }
        });
    }
}
