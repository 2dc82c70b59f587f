//! Values that expire: in transactions, and in stores that are closed, copied, salvaged and opened again.

use forrest::{Db, View, What};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(60 * 60);

fn at(directory: &tempfile::TempDir, name: &str) -> String {
    directory.path().join(name).to_str().expect("it is text").to_string()
}

/// A store of each home that has values which expire.
fn homes(directory: &tempfile::TempDir) -> [Db; 2] {
    [at(directory, "store"), "memory:".to_owned()].map(|url| Db::open(url).expect("a store"))
}

/// A store with a keyspace that has values which stay, which expire in an hour, and which have expired.
fn filled(path: &str) -> Db {
    fill(Db::builder().history(true).open(path).expect("a store"))
}

fn fill(db: Db) -> Db {
    let seats = db.keyspace("seats").expect("a keyspace");
    for is_in_table in [true, false] {
        let key = |what: &str| format!("{what} {is_in_table}");
        seats.set_ttl(None).expect("it is chosen");
        seats.set(key("stays"), "v").expect("it is set");
        seats.set_ttl(Some(HOUR)).expect("it is chosen");
        seats.set(key("held"), "v").expect("it is set");
        seats.set_with_ttl(key("gone"), "v", Duration::ZERO).expect("it is set");
        if is_in_table {
            db.flush().expect("tables");
        }
    }
    db
}

fn keys(view: &View) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("it is text");
    view.range(..).map(|entry| text(entry.expect("it is read").key())).collect()
}

fn check(db: &Db, what: &str) {
    let seats = db.keyspace("seats").expect(what);
    assert_eq!(seats.ttl(), Some(HOUR), "{what}");
    let keys = keys(&seats);
    assert_eq!(keys, ["held false", "held true", "stays false", "stays true"], "{what}");
    for key in &keys {
        assert_eq!(seats.expires(key).expect(what).is_some(), key.starts_with("held"), "{what}");
    }
}

#[test]
fn copies_keep_what_expires_and_what_stays() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, copy, saved) = (at(&directory, "store"), at(&directory, "copy"), at(&directory, "saved"));
    let db = filled(&path);
    check(&db, "open");
    db.checkpoint(&copy).expect("a copy");
    drop(db);
    check(&Db::open(&path).expect("it opens"), "opened again");
    check(&Db::open_read_only(&path).expect("it opens"), "only read");
    check(&Db::open(&copy).expect("it opens"), "a checkpoint");
    forrest::salvage(&path, &saved).expect("nothing is lost");
    check(&Db::open(&saved).expect("it opens"), "salvaged");
}

#[test]
fn a_checkpoint_of_memory_keeps_what_expires_and_what_stays() {
    let directory = tempfile::tempdir().expect("a directory");
    let copy = at(&directory, "copy");
    let db = fill(Db::open("memory:").expect("a store"));
    check(&db, "in memory");
    db.checkpoint(&copy).expect("a copy");
    check(&Db::open(&copy).expect("it opens"), "a checkpoint");
}

/// Waits for the thread of the store.
#[test]
fn memory_is_given_back_without_a_read() {
    let db = Db::open("memory:").expect("a store");
    let stats = || db.stats().expect("statistics");
    for key in 0..1000_u32 {
        db.set_with_ttl(key.to_be_bytes(), "v", Duration::ZERO).expect("it is set");
    }
    db.set_with_ttl("held", "v", HOUR).expect("it is set");
    db.set("stays", "v").expect("it is set");
    while (stats().keys, stats().expiring) != (2, 1) {
        std::thread::yield_now();
    }
    assert_eq!(keys(&db), ["held", "stays"]);
}

#[test]
fn a_transaction_that_sets_the_same_value_decides_its_time_anew() {
    let directory = tempfile::tempdir().expect("a directory");
    homes(&directory).iter().for_each(sets_the_same_value);
}

fn sets_the_same_value(db: &Db) {
    let expires = |key: &str| db.expires(key).expect("it is read").is_some();
    db.set_with_ttl("stay", "v", HOUR).expect("it is set");
    db.set("go", "v").expect("it is set");
    let mut transaction = db.transaction();
    for key in ["stay", "go"] {
        assert_eq!(transaction.get(key).expect("it is read").expect("it is there"), "v");
    }
    transaction.set("stay", "v").expect("it fits");
    transaction.set_with_ttl("go", "v", HOUR).expect("it fits");
    assert!(transaction.commit().expect("it commits").is_done());
    assert_eq!((expires("stay"), expires("go")), (false, true));
    // What it read has to be there still.
    let mut transaction = db.transaction();
    assert!(transaction.get("go").expect("it is read").is_some());
    transaction.set_with_ttl("go", "w", HOUR).expect("it fits");
    db.set("go", "other").expect("it is set");
    assert!(!transaction.commit().expect("it is compared").is_done());
    assert_eq!(db.get("go").expect("it is read").expect("it is there"), "other");
}

#[test]
fn what_has_expired_is_absent_in_conditions() {
    let directory = tempfile::tempdir().expect("a directory");
    homes(&directory).iter().for_each(takes_expired_for_absent);
}

fn takes_expired_for_absent(db: &Db) {
    for is_in_table in [false, true] {
        for key in ["a", "b", "c", "d"] {
            db.set_with_ttl(key, 7_i64.to_be_bytes(), Duration::ZERO).expect("it is set");
        }
        if is_in_table {
            db.flush().expect("tables");
        }
        assert!(!db.delete("a").expect("it is looked for"));
        assert_eq!(db.add("b", 1).expect("it is added"), 1, "from nothing");
        let swap = db.compare_and_swap("c", Some(&7_i64.to_be_bytes()), Some(b"new")).expect("compared");
        assert!(!swap.is_done());
        assert!(db.compare_and_swap("d", None::<&[u8]>, Some(b"new")).expect("compared").is_done());
        assert_eq!(keys(db), ["b", "d"]);
        db.clear().expect("it is empty");
    }
}

#[test]
fn the_stream_has_the_time_and_not_its_coming() {
    let directory = tempfile::tempdir().expect("a directory");
    let db = filled(&at(&directory, "store"));
    let (mut held, mut gone, mut all) = (0, 0, 0);
    for change in db.changes(0).expect("there is history") {
        all += 1;
        match change.expect("it is read").what {
            What::SetUntil { key, .. } if key.starts_with(b"held") => held += 1,
            What::SetUntil { key, .. } if key.starts_with(b"gone") => gone += 1,
            What::Delete { .. } | What::SetUntil { .. } => panic!("there is no such change"),
            _ => {}
        }
    }
    assert!(held == 2 && gone == 2 && all >= 6, "{held} {gone} {all}");
}

#[cfg(feature = "llds-user")]
#[test]
fn the_kernel_refuses_it() {
    use forrest::{Capability, ErrorKind, Keyspace, Op};

    let db = Db::open("llds-user:ttl").expect("a store");
    assert!(!db.capabilities().has(Capability::Ttl));
    let refused = |result: forrest::Result<()>| {
        assert_eq!(result.expect_err("it is refused").kind(), ErrorKind::Unsupported);
    };
    let keyspace: &Keyspace = &db;
    refused(keyspace.set_with_ttl("k", "v", HOUR));
    refused(keyspace.set_ttl(Some(HOUR)));
    let mut batch = forrest::WriteBatch::new();
    batch.set("other", "v").set_with_ttl("k", "v", HOUR);
    refused(db.write(&batch).map(drop));
    let mut transaction = db.transaction();
    transaction.set_with_ttl("k", "v", HOUR).expect("the commit says it");
    refused(transaction.commit().map(drop));
    assert_eq!(db.count(..).expect("it is counted"), 0);
    assert_eq!((db.ttl(), db.expires("k").expect("it is read")), (None, None));
    keyspace.set_ttl(None).expect("nothing changes");
    let op = Op::SetUntil { key: "k", value: "v", expires: forrest::Expires::after(HOUR) };
    refused(keyspace.apply(op).map(drop));
}
