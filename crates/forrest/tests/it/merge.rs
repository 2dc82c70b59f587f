//! Merge operators of stores that are closed, copied, damaged and opened again.

use forrest::{Builder, Db, ErrorKind, MergeOperator, operators};

/// Keeps the longest of value and operands.
struct Longest;

impl MergeOperator for Longest {
    fn name(&self) -> &str {
        "longest"
    }

    fn merge(&self, _key: &[u8], old: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
        if operand == b"panic" {
            panic!("as the test wants");
        }
        old.filter(|old| old.len() >= operand.len()).unwrap_or(operand).to_vec()
    }
}

fn builder() -> Builder {
    Db::builder().merge_operator(Longest)
}

fn at(directory: &tempfile::TempDir, name: &str) -> String {
    directory.path().join(name).to_str().expect("it is text").to_string()
}

/// A store with a keyspace whose operator is `longest`, and one whose operator is in every build.
fn filled(path: &str) -> Db {
    let db = builder().open(path).expect("a store");
    let names = db.keyspace("names").expect("a keyspace");
    names.set_merge_operator("longest").expect("it is empty");
    for name in ["Quercus", "Quercus robur", "Eiche"] {
        names.merge("oak", name).expect("it merges");
    }
    let visits = db.keyspace("visits").expect("a keyspace");
    visits.set_merge_operator("sum").expect("it is empty");
    visits.merge("home", 3_i64.to_be_bytes()).expect("it merges");
    db
}

fn check(db: &Db, what: &str) {
    let (names, visits) = (db.keyspace("names").expect(what), db.keyspace("visits").expect(what));
    assert_eq!(names.merge_operator().as_deref(), Some("longest"), "{what}");
    assert_eq!(visits.merge_operator().as_deref(), Some("sum"), "{what}");
    assert_eq!(names.get("oak").expect(what).expect(what), "Quercus robur", "{what}");
    let sum = visits.get("home").expect(what).expect(what);
    assert_eq!(sum.as_ref(), 3_i64.to_be_bytes(), "{what}");
}

#[test]
fn a_store_remembers_the_operator() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, copy) = (at(&directory, "store"), at(&directory, "copy"));
    let db = filled(&path);
    check(&db, "open");
    db.checkpoint(&copy).expect("a copy");
    drop(db);
    check(&builder().open(&path).expect("it opens"), "opened again");
    check(&builder().open(&copy).expect("it opens"), "a checkpoint");
    check(&builder().open_read_only(&path).expect("it opens"), "read only");
    let rescued = at(&directory, "rescued");
    forrest::salvage(&path, &rescued).expect("it is whole");
    check(&builder().open(&rescued).expect("it opens"), "salvaged, without the operator");
    let db = builder().open(&path).expect("it opens");
    db.compact().expect("it compacts");
    check(&db, "compacted");
}

#[test]
fn a_store_opens_only_with_its_operators() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = at(&directory, "store");
    drop(filled(&path));
    for opened in [Db::open(&path), Db::open_read_only(&path)] {
        let error = opened.expect_err("it has an operator that is not registered");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        for part in ["\"names\"", "\"longest\"", "Builder::merge_operator"] {
            assert!(error.message().contains(part), "{error}");
        }
    }
    let db = builder().open(&path).expect("nothing was changed");
    check(&db, "after it was refused");
    assert!(db.drop_keyspace("names").expect("it is there"));
    db.flush().expect("it is in the manifest");
    drop(db);
    drop(Db::open(&path).expect("no keyspace needs it any more"));
    let error = Db::builder().merge_operator(Longest).merge_operator(Longest).open("memory:");
    let error = error.expect_err("one name belongs to one operator");
    assert!(error.message().contains("\"longest\""), "{error}");
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    for url in [at(&directory, "store"), "memory:".to_string()] {
        let db = filled(&url);
        let (names, visits) = (db.keyspace("names").expect("it"), db.keyspace("visits").expect("it"));
        let refused = |done: forrest::Result<()>, part: &str| {
            let error = done.expect_err(part);
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{url}: {error}");
            assert!(error.message().contains(part), "{url}: {error}");
        };
        refused(visits.merge("home", "three"), "adds 8 bytes");
        refused(visits.set("home", "three"), "adds 8 bytes");
        refused(visits.compare_and_swap("away", None, Some(b"three")).map(drop), "adds 8 bytes");
        refused(names.merge("oak", "panic"), "has panicked");
        refused(db.merge("k", "v"), "no merge operator");
        refused(
            db.keyspace("other").expect("a keyspace").set_merge_operator("least"),
            "registered are append",
        );
        refused(names.set_merge_operator("max"), "has the merge operator \"longest\"");
        db.set("k", "v").expect("it is set");
        refused(db.set_merge_operator("max"), "has keys");
        let mut batch = forrest::WriteBatch::new();
        batch.set("k", "w").on(&visits).merge("home", "three");
        let error = db.write(batch).expect_err("an operand is refused");
        assert_eq!(error.op(), Some(1), "{url}: {error}");
        let mut ingest = visits.ingest().expect("an ingest");
        if url != "memory:" {
            refused(ingest.put("new", "three"), "adds 8 bytes");
        }
        drop(ingest);
        assert_eq!(db.get("k").expect("it reads").expect("it is there"), "v", "{url}");
        check(&db, &url);
    }
}

/// Values that no operator has checked would fail later merges of their keys.
#[test]
fn an_ingest_that_began_without_the_operator_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let db = Db::open(at(&directory, "store")).expect("a store");
    let visits = db.keyspace("visits").expect("a keyspace");
    let mut ingest = visits.ingest().expect("an ingest");
    ingest.put("home", "three").expect("nothing checks it");
    visits.set_merge_operator("sum").expect("it is empty");
    let error = ingest.finish().expect_err("its values were not checked");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.message().contains("\"sum\" after the ingest began"), "{error}");
    visits.merge("home", 3_i64.to_be_bytes()).expect("nothing is there");
    let mut ingest = visits.ingest().expect("an ingest");
    ingest.put("work", 4_i64.to_be_bytes()).expect("it is checked");
    assert_eq!(ingest.finish().expect("it is added"), 1);
    assert!(visits.contains("work").expect("it reads"));
}

#[test]
fn a_transaction_sees_what_it_merges() {
    let db = Db::open("memory:").expect("a store");
    let tags = db.keyspace("tags").expect("a keyspace");
    tags.set_merge_operator("union").expect("it is empty");
    tags.merge("oak", operators::set(["tree"])).expect("it merges");
    let mut transaction = db.transaction();
    let draft = transaction.on(&tags);
    for number in 0..100 {
        draft.merge("oak", operators::set([format!("{number:02}")])).expect("it merges");
        draft.merge("ash", operators::set(["wood"])).expect("it merges");
    }
    draft.delete("elm").expect("it is deleted");
    draft.merge("elm", operators::set(["gone"])).expect("it merges");
    let found: Vec<_> = draft.range(..).map(|pair| pair.expect("it reads")).collect();
    let counts: Vec<_> =
        found.iter().map(|(key, value)| (&key[..], operators::items(value).count())).collect();
    assert_eq!(counts, [(&b"ash"[..], 1), (b"elm", 1), (b"oak", 101)]);
    assert!(transaction.commit().expect("it commits").is_done());
    let value = tags.get("oak").expect("it reads").expect("it is there");
    assert_eq!(operators::items(&value).count(), 101);
}

/// A transaction that was given no more than it may have commits.
#[test]
fn a_transaction_counts_each_operand() {
    let db = builder().batch_ops_max(10).batch_bytes_max(1_000).open("memory:").expect("a store");
    db.set_merge_operator("longest").expect("it is empty");
    let mut transaction = db.transaction();
    for number in 0..10 {
        transaction.merge("oak", format!("{number}")).expect("it is within the limit");
    }
    let error = transaction.merge("oak", "one more").expect_err("it is beyond the limit");
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert!(transaction.commit().expect("it commits").is_done());
    let mut transaction = db.transaction();
    for _ in 0..3 {
        transaction.merge(vec![b'k'; 300], "").expect("it is within the limit");
    }
    let error = transaction.merge(vec![b'k'; 300], "").expect_err("each operand is written with its key");
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert!(transaction.commit().expect("it commits").is_done());
}
