//! Options that are changed while the store is open.

use forrest::{Db, ErrorKind, OptionChanges};
use std::time::{Duration, Instant};

fn changes() -> OptionChanges {
    OptionChanges::new()
}

fn fill(db: &Db, numbers: std::ops::Range<u32>) {
    for number in numbers {
        db.set(number.to_be_bytes(), [7; 1000]).expect("it is written");
    }
}

#[test]
fn sizes_take_effect_while_the_store_is_open() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let path = path.to_str().expect("it is text");
    let builder = Db::builder().batch_bytes_max(1 << 20).cache_bytes(4 << 20).table_bytes(100 << 10);
    let db = builder.open(path).expect("a store");
    fill(&db, 0..2_000);
    assert_eq!(db.stats().expect("figures").tables, 0, "the memtable has room for all");
    db.set_options(&changes().memtable_bytes(64 << 10)).expect("it has memtables");
    fill(&db, 0..1);
    db.flush().expect("there is space");
    let tables = db.stats().expect("figures").tables;
    assert!(tables > 15, "{tables} tables: the memtable was too large for its new size");

    assert_eq!(db.count(..).expect("it reads"), 2_000);
    let read = || {
        db.scan(.., |_, value| {
            assert_eq!(value, [7; 1000]);
            std::ops::ControlFlow::Continue(())
        })
        .expect("it reads");
        db.stats().expect("figures")
    };
    assert!(read().cache_bytes > 1 << 20);
    db.set_options(&changes().cache_bytes(1 << 19).open_files(3)).expect("it has a cache");
    let stats = db.stats().expect("figures");
    assert!(stats.cache_bytes <= 1 << 19 && stats.open_files <= 5, "{stats:?}");
    let stats = read();
    assert!(stats.cache_bytes <= 1 << 19 && stats.open_files <= 5, "{stats:?}");
    db.set_options(&changes().cache_bytes(16 << 20).open_files(1000)).expect("four times what it had");
    assert!(read().cache_bytes > 1 << 20);

    db.set_options(&changes().table_bytes(1 << 20)).expect("it has tables");
    db.compact().expect("there is space");
    let merged = db.stats().expect("figures").tables;
    db.delete_range(100_u32.to_be_bytes()..).expect("it deletes");
    db.compact().expect("there is space");
    assert!(merged <= tables && db.stats().expect("figures").tables <= merged);
    drop(db);
    assert_eq!(Db::open(path).expect("a store").count(..).expect("it reads"), 100);
}

/// Memtables that snapshots keep take their memory from the cache, and give it back.
#[test]
fn one_number_limits_memtables_and_cache() {
    const MEMORY: u64 = 32 << 20;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let path = path.to_str().expect("it is text");
    let db = Db::builder().memory_bytes(MEMORY as usize).open(path).expect("a store");
    fill(&db, 0..30_000);
    db.flush().expect("there is space");
    let read = || {
        assert_eq!(db.count(..).expect("it reads"), 30_000);
        db.scan(.., |_, _| std::ops::ControlFlow::Continue(())).expect("it reads");
        db.stats().expect("figures")
    };
    let used = |stats: &forrest::Stats| {
        stats.reserved_bytes + stats.cache_bytes + stats.index_bytes + stats.kept_bytes
    };
    let alone = read();
    assert!(alone.kept_bytes == 0 && alone.cache_bytes > MEMORY / 4, "{alone}");
    let mut snapshots = Vec::new();
    for number in 0..4 {
        fill(&db, number * 2_000..(number + 1) * 2_000);
        snapshots.push(db.snapshot().expect("there are snapshots"));
        db.flush().expect("there is space");
    }
    let kept = read();
    assert!(kept.kept_bytes > 8 << 20 && kept.cache_bytes < alone.cache_bytes, "{kept}");
    assert!(used(&kept) <= MEMORY + (1 << 20), "{} bytes: {kept}", used(&kept));
    drop(snapshots);
    fill(&db, 0..1);
    db.flush().expect("there is space");
    assert_eq!(read().kept_bytes, 0);
    // The cache grows when nobody has needed the memory for a while.
    let start = Instant::now();
    loop {
        let after = read();
        if after.cache_bytes > kept.cache_bytes {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(120), "{after}");
    }
}

#[test]
fn sizes_beyond_all_memory_are_refused_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let path = path.to_str().expect("it is text");
    let sizes = |memory: usize| Db::builder().memtable_bytes(600).cache_bytes(500).memory_bytes(memory);
    let Err(error) = sizes(1_099).open(path) else { panic!("it was opened") };
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let text = error.to_string();
    assert!(text.contains("memtable_bytes (600)") && text.contains("cache_bytes (500)"), "{text}");
    assert!(text.contains("memory_bytes (1099)") && !directory.path().join("store").exists(), "{text}");
    assert!(Db::builder().memory_bytes(0).open(path).is_err());
    sizes(1_100).open(path).expect("they fit");
}

#[test]
fn what_is_refused_changes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let db = Db::builder().cache_bytes(4 << 20).open(path.to_str().expect("it is text")).expect("a store");
    let refused =
        |changes: OptionChanges| db.set_options(&changes.batch_ops_max(1)).expect_err("it is refused");
    for changes in [
        changes().memtable_bytes(0),
        changes().cache_bytes(0),
        changes().table_bytes(0),
        changes().open_files(0),
        changes().batch_bytes_max(0),
        changes().background_bytes_per_second(0),
        changes().workers(0),
        changes().memory_bytes(0),
    ] {
        assert_eq!(refused(changes).kind(), ErrorKind::InvalidArgument);
    }
    let error = refused(changes().cache_bytes(17 << 20));
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.to_string().contains("open it again"), "{error}");
    let mut batch = forrest::WriteBatch::new();
    batch.set("a", "1").set("b", "2");
    db.write(&batch).expect("batches may have two changes");
    let clone = db.clone();
    db.set_options(&changes().batch_ops_max(1)).expect("it is allowed");
    assert_eq!(clone.write(&batch).expect_err("for all handles").kind(), ErrorKind::Limit);
}

/// Sizes that were given, at opening or later, must fit in the memory. The others follow from it.
#[test]
fn other_memory_goes_with_the_sizes_that_were_given() {
    const MIB: usize = 1 << 20;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let path = path.to_str().expect("it is text");
    let db = Db::builder().memtable_bytes(2 * MIB).cache_bytes(8 * MIB).open(path).expect("a store");
    fill(&db, 0..1);
    db.set_options(&changes().memory_bytes(10 * MIB).workers(1)).expect("it is as much as both");
    let refused = |changes: OptionChanges| {
        let error = db.set_options(&changes.workers(2).batch_ops_max(1)).expect_err("it is too little");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        error.to_string()
    };
    let text = refused(changes().memory_bytes(10 * MIB - 1));
    let Err(opening) =
        Db::builder().memtable_bytes(2 * MIB).cache_bytes(8 * MIB).memory_bytes(10 * MIB - 1).open(path)
    else {
        panic!("it was opened")
    };
    assert_eq!(text, opening.to_string());
    assert!(text.contains("memtable_bytes (2097152)") && text.contains("cache_bytes (8388608)"), "{text}");
    assert!(refused(changes().cache_bytes(9 * MIB)).contains("cache_bytes (9437184)"));
    db.set_options(&changes().cache_bytes(4 * MIB)).expect("it fits");
    db.set_options(&changes().memory_bytes(6 * MIB)).expect("the cache that was given last counts");
    refused(changes().memory_bytes(6 * MIB - 1));
    drop(db);

    let db = Db::builder().memory_bytes(64 * MIB).open(path).expect("a store");
    fill(&db, 0..20_000);
    db.flush().expect("there is space");
    let read = |most: usize| {
        db.scan(.., |_, _| std::ops::ControlFlow::Continue(())).expect("it reads");
        let stats = db.stats().expect("figures");
        assert!(stats.cache_bytes <= most as u64, "{stats}");
        stats.cache_bytes
    };
    assert!(read(32 * MIB) > 16 << 20);
    db.set_options(&changes().memory_bytes(4 * MIB)).expect("nothing was given that is larger");
    read(2 * MIB);
    fill(&db, 0..2_000);
    assert!(db.stats().expect("figures").tables > 1, "memtables are smaller too");
    // More than the cache can ever have: it takes what it can.
    db.set_options(&changes().memory_bytes(1 << 40)).expect("the cache is as large as it can be");
    assert!(read(128 * MIB) > 16 << 20);
}

#[test]
fn a_home_without_an_option_says_so() {
    let db = Db::open("memory:").expect("a store");
    db.set_options(&changes().batch_ops_max(10).batch_bytes_max(10)).expect("every home has batches");
    for (name, changes) in [
        ("memory_bytes", changes().memory_bytes(1 << 20)),
        ("workers", changes().workers(1)),
        ("memtable_bytes", changes().memtable_bytes(1)),
        ("cache_bytes", changes().cache_bytes(1)),
        ("table_bytes", changes().table_bytes(1)),
        ("open_files", changes().open_files(1)),
        ("background_bytes_per_second", changes().background_bytes_per_second(None)),
        ("wait", changes().wait(Duration::ZERO)),
    ] {
        let error = db.set_options(&changes).expect_err("it has none");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains(name), "{error}");
    }
}
