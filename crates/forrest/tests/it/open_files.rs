//! A store with many more tables than it may keep open works like any other.

use crate::random::Random;
use forrest::{Builder, Db, ErrorKind, View, WriteBatch};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Tables of a few pages, and no cache. The maximum batch is small, so that memtables reserve little address
/// space, of which an emulator has little.
fn builder(open_files: usize) -> Builder {
    let builder = Db::builder().memtable_bytes(128 << 10).batch_bytes_max(1 << 20);
    builder.table_bytes(4_096).cache_bytes(1).open_files(open_files)
}

fn open(builder: &Builder, path: &Path) -> Db {
    builder.open(path.to_str().expect("it is text")).expect("a store on disk")
}

/// The number of open tables and REMIXes of a store, if the system reports it.
fn open_to_be_read(path: &Path) -> Option<usize> {
    let path = path.canonicalize().expect("it is there");
    let links = fs::read_dir("/proc/self/fd").ok()?;
    let links = links.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    // For a file whose name was removed, the system appends a word to the path.
    let is_read = |link: &Path| [".table", ".remix"].iter().any(|kind| link.to_string_lossy().contains(kind));
    Some(links.filter(|link| link.starts_with(&path) && is_read(link)).count())
}

fn assert_bounded(db: &Db, path: &Path, limit: usize) {
    assert!(open_to_be_read(path).is_none_or(|count| count <= limit), "{:?}", open_to_be_read(path));
    // The log, the next one, which is made ahead, and the manifest are open as well.
    let open = db.stats().expect("figures").open_files;
    assert!(open <= limit as u64 + 3, "{open}");
}

fn key(number: usize) -> Vec<u8> {
    format!("key {:06}", number * 7_919 % 1_000_000).into_bytes()
}

/// Sets some pairs and deletes others, in the store and in the model.
fn change(db: &Db, model: &mut Model, random: &mut Random, count: usize) {
    for _ in 0..count / 50 {
        let mut batch = WriteBatch::new();
        for _ in 0..50 {
            let key = key(random.below(6_000));
            if random.one_in(10) {
                batch.delete(&key);
                model.remove(&key);
            } else {
                let value = vec![random.below(256) as u8; random.below(200)];
                batch.set(&key, &value);
                model.insert(key, value);
            }
        }
        db.write(batch).expect("it is written");
    }
}

fn assert_is(view: &View, model: &Model, random: &mut Random) {
    let pairs = view.range(..).map(|pair| pair.expect("a pair"));
    let pairs: Model =
        pairs.map(|pair| (pair.key().to_vec(), pair.value().expect("a value").to_vec())).collect();
    assert!(&pairs == model);
    let back = view.range(..).rev().map(|pair| pair.expect("a pair").key().to_vec());
    assert!(back.eq(model.keys().rev().cloned()));
    for _ in 0..1_000 {
        let key = key(random.below(6_000));
        assert_eq!(view.get(&key).unwrap().as_deref(), model.get(&key).map(Vec::as_slice));
    }
}

#[test]
fn few_descriptors_serve_hundreds_of_tables() {
    let mut random = Random::new(4);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let db = open(&builder(4), &path);
    let mut model = Model::new();
    change(&db, &mut model, &mut random, 12_000);
    db.compact().expect("merged");
    let tables = db.stats().expect("figures").tables;
    assert!(tables >= 100, "{tables} tables");
    assert_is(&db, &model, &mut random);
    assert_bounded(&db, &path, 4);

    // A snapshot keeps the files of merged tables until it is dropped.
    let (snapshot, before) = (db.snapshot().expect("a snapshot"), model.clone());
    change(&db, &mut model, &mut random, 6_000);
    db.compact().expect("merged");
    assert_is(&db, &model, &mut random);
    assert_is(&snapshot, &before, &mut random);
    assert_bounded(&db, &path, 4);
    let tables = || {
        let entries = fs::read_dir(&path).expect("a directory").map(|entry| entry.expect("an entry").path());
        entries.filter(|path| path.extension().is_some_and(|kind| kind == "table")).count() as u64
    };
    assert!(tables() > db.stats().expect("figures").tables + 100);
    drop(snapshot);
    assert_eq!(tables(), db.stats().expect("figures").tables);
    assert_bounded(&db, &path, 4);
    db.verify().expect("all is whole");
    assert_bounded(&db, &path, 4);

    drop(db);
    let db = open(&builder(1), &path);
    assert_is(&db, &model, &mut random);
    assert_bounded(&db, &path, 1);
    assert_eq!(builder(0).open("elsewhere").unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn threads_share_few_descriptors() {
    let mut random = Random::new(5);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let db = open(&builder(2), &path);
    let mut model = Model::new();
    change(&db, &mut model, &mut random, 6_000);
    db.compact().expect("merged");
    let (snapshot, before) = (db.snapshot().expect("a snapshot"), model.clone());
    thread::scope(|scope| {
        for thread in 0..2 {
            let (snapshot, before) = (&snapshot, &before);
            scope.spawn(move || {
                (0..3).for_each(|turn| assert_is(snapshot, before, &mut Random::new(10 * turn + thread)))
            });
        }
        for _ in 0..3 {
            change(&db, &mut model, &mut random, 2_000);
            db.compact().expect("merged");
            assert_is(&db, &model, &mut random);
        }
    });
    drop(snapshot);
    assert_is(&db, &model, &mut random);
    assert_bounded(&db, &path, 2);
}
