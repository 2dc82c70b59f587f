//! What the documentation promises, and what a user meets first: names of homes, errors, keyspaces.

use forrest::{
    Capability, Db, Durability, Entry, Error, ErrorKind, Op, Outcome, Pages, Swap, Value, WriteBatch,
    WriteOptions, Written,
};
use std::ops::Bound;

fn memory() -> Db {
    Db::open("memory:").expect("a store in memory")
}

fn message<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.expect_err("this should fail").to_string()
}

fn keys(entries: impl Iterator<Item = forrest::Result<Entry>>) -> Vec<String> {
    entries.map(|entry| String::from_utf8(entry.unwrap().key().to_vec()).unwrap()).collect()
}

#[test]
fn urls_that_name_no_home() {
    let cases = [
        ("", "the URL is empty; write \"memory:\", \"llds:NAME\" or a path"),
        ("memory:x", "\"memory:\" takes nothing after the colon, found \"x\""),
        ("llds:", "\"llds:\" needs a store name after the colon"),
        ("llds-user:", "\"llds-user:\" needs a store name after the colon"),
        (
            "redis://localhost",
            "unknown home \"redis:\"; write \"memory:\", \"llds:NAME\" or a path (if this is a path, write \
             \"./redis://localhost\")",
        ),
    ];
    for (url, expected) in cases {
        assert_eq!(message(Db::open(url)), format!("invalid argument: {expected}"));
        assert_eq!(message(Db::open_read_only(url)), format!("invalid argument: {expected}"));
    }
}

#[test]
fn what_is_not_there_says_what_to_do() {
    if std::path::Path::new("/dev/llds").exists() {
        println!("skipped: the kernel module is loaded");
    } else {
        let expected = "input/output: \"llds:shop\": cannot open /dev/llds: No such file or directory (os error 2); the kernel \
                        module is not loaded: load it (sudo modprobe llds; to build it, see kernel/llds/README.md), or \
                        run \"forrest doctor\"";
        assert_eq!(message(Db::open("llds:shop")), expected);
        assert_eq!(message(Db::open_read_only("llds:shop")), expected);
        let without_the_store = expected.replace("\"llds:shop\": ", "");
        assert_eq!(message(forrest::llds::list()), without_the_store);
        assert_eq!(message(forrest::llds::destroy("shop")), without_the_store);
        assert_eq!(message(forrest::llds::version()), without_the_store);
    }
    if cfg!(not(feature = "llds-user")) {
        let refused = Db::open("llds-user:shop").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        assert!(refused.to_string().contains("feature llds-user"), "{refused}");
    }
    for path in ["/srv/nowhere/shop", "memory", "./a:b", "c:/x"] {
        let message = message(Db::open_read_only(path));
        assert_eq!(message, format!("input/output: there is no store at {path}"));
        assert!(!std::path::Path::new(path).exists());
    }
}

#[test]
fn what_memory_cannot_do_it_says() {
    let db = memory();
    let refused = [
        (Capability::ReadOnly, message(Db::open_read_only("memory:"))),
        (Capability::Verify, message(db.verify())),
        (Capability::Compact, message(db.compact())),
        (Capability::Sync, message(Db::builder().durability(Durability::Sync).open("memory:"))),
        (Capability::Persistence, message(Db::builder().durability(Durability::Buffered).open("memory:"))),
    ];
    for (capability, message) in refused {
        assert!(message.starts_with("unsupported: "), "{message}");
        assert!(!db.capabilities().has(capability));
    }
    let mut batch = WriteBatch::new();
    batch.set("key", "value");
    for durability in [Durability::Buffered, Durability::Sync] {
        let options = WriteOptions::new().durability(durability);
        assert_eq!(db.write_with(&batch, &options).unwrap_err().kind(), ErrorKind::Unsupported);
    }
    assert_eq!(db.count(..).unwrap(), 0);
    let options = WriteOptions::new().durability(Durability::Memory);
    db.write_with(&batch, &options).unwrap();
    db.sync().unwrap();
    assert!(db.contains("key").unwrap());
}

#[test]
fn capabilities_print_as_a_table() {
    let capabilities = memory().capabilities();
    assert_eq!(capabilities.home(), "memory:");
    assert_eq!(
        capabilities.to_string(),
        "\
ordered iteration both ways      yes
atomic batches                   yes
snapshots                        yes
several keyspaces                yes
data outlives the process        no
several processes share a store  no
data survives power loss         no
opening read-only                no
checkpoint                       yes
verify                           no
compact                          no
ingest of sorted pairs           yes
compressed tables                no
metrics and events               no
approximate counts               yes
changes as a stream              no
merge operators                  yes
backups                          no
values that expire               yes
"
    );
}

#[test]
fn every_open_of_memory_is_a_new_store() {
    let (one, other) = (memory(), memory());
    one.set("key", "value").unwrap();
    assert!(!other.contains("key").unwrap());
    assert!(one.clone().contains("key").unwrap());
}

#[test]
fn pages_of_every_kind_serve() {
    for pages in [Pages::Auto, Pages::Transparent, Pages::Plain] {
        let db = Db::builder().pages(pages).open("memory:").unwrap();
        db.set("key", "value").unwrap();
        let stats = db.stats().unwrap();
        assert_eq!(stats.keys, 1);
        if pages == Pages::Plain {
            assert_eq!(stats.explicit_huge_bytes + stats.transparent_huge_bytes, 0);
        }
    }
}

#[test]
fn stats_count_and_print() {
    let db = memory();
    let other = db.keyspace("other").unwrap();
    for at in 0..1_234_u32 {
        db.set(at.to_be_bytes(), "").unwrap();
        other.set(at.to_be_bytes(), "").unwrap();
    }
    let snapshot = db.snapshot().unwrap();
    other.delete([0; 4]).unwrap();
    let stats = db.stats().unwrap();
    assert_eq!((stats.keys, stats.keyspaces), (2_467, 2));
    let table = stats.to_string();
    assert!(table.starts_with("keys                                      2,467\n"), "{table}");
    assert_eq!(table.lines().count(), stats.rows().len());
    assert!(table.lines().all(|line| line.len() < 80));
    drop(snapshot);
    assert_eq!(db.stats().unwrap().snapshots, 0);
}

#[test]
fn ranges_that_hold_nothing() {
    let db = memory();
    for key in ["a", "b", "c"] {
        db.set(key, "").unwrap();
    }
    let (a, b) = (&b"a"[..], &b"b"[..]);
    let inverted = [
        (Bound::Included(b), Bound::Included(a)),
        (Bound::Included(b), Bound::Excluded(a)),
        (Bound::Excluded(b), Bound::Included(a)),
        (Bound::Excluded(b), Bound::Excluded(a)),
        (Bound::Excluded(a), Bound::Excluded(a)),
        (Bound::Included(a), Bound::Excluded(a)),
        (Bound::Excluded(a), Bound::Included(a)),
        (Bound::Excluded(a), Bound::Excluded(b)),
    ];
    let snapshot = db.snapshot().unwrap();
    for bounds in inverted {
        assert_eq!(db.range(bounds).count(), 0);
        assert_eq!(db.range(bounds).rev().count(), 0);
        assert_eq!(snapshot.range(bounds).count(), 0);
        assert_eq!(db.count(bounds).unwrap(), 0);
        db.delete_range(bounds).unwrap();
    }
    assert_eq!(db.count(a..=a).unwrap(), 1);
}

#[test]
fn prefixes_of_any_bytes() {
    let db = memory();
    let all: [&[u8]; 8] = [b"", b"a", b"a\xFF", b"a\xFF\xFF", b"a\xFF\xFFz", b"b", b"\xFF", b"\xFF\xFF\x00"];
    all.iter().for_each(|key| db.set(key, "").unwrap());
    for prefix in [&b""[..], b"a", b"a\xFF", b"a\xFF\xFF", b"\xFF", b"\xFF\xFF", b"\xFF\xFF\xFF", b"b", b"c"]
    {
        let mut expected: Vec<_> = all.iter().filter(|key| key.starts_with(prefix)).copied().collect();
        expected.sort();
        let found: Vec<_> = db.prefix(prefix).map(|entry| entry.unwrap().key().to_vec()).collect();
        assert_eq!(found, expected);
        assert_eq!(db.prefix(prefix).rev().count(), expected.len());
    }
}

#[test]
fn an_iteration_may_change_what_it_goes_over() {
    let db = memory();
    for at in 0..5_000_u32 {
        db.set(at.to_be_bytes(), "").unwrap();
    }
    for entry in db.range(..) {
        assert!(db.delete(entry.unwrap().key()).unwrap());
    }
    assert_eq!(db.count(..).unwrap(), 0);
}

/// Entries share memory with the iteration that made them, which must not use it again under them.
#[test]
fn entries_stay_as_they_are() {
    let db = memory();
    for at in 0..3_000_u32 {
        db.set(at.to_be_bytes(), vec![at as u8; if at % 3 == 0 { 5 } else { 1_000 }]).unwrap();
    }
    let entries: Vec<Entry> = db.range(..).collect::<Result<_, _>>().unwrap();
    db.delete_range(..).unwrap();
    assert_eq!(entries.len(), 3_000);
    for (at, entry) in (0_u32..).zip(&entries) {
        assert_eq!(entry.key(), at.to_be_bytes());
        assert_eq!(entry.value().unwrap(), vec![at as u8; if at % 3 == 0 { 5 } else { 1_000 }]);
    }
}

#[test]
fn a_range_ends_once_and_for_all() {
    let db = memory();
    db.set("a", "").unwrap();
    let mut range = db.range(..);
    assert!(range.next().is_some());
    assert!(range.next().is_none());
    db.set("b", "").unwrap();
    assert!(range.next().is_none());
    assert!(range.next_back().is_none());
}

#[test]
fn cursors_go_both_ways_and_off_the_ends() {
    let db = memory();
    let mut cursor = db.cursor();
    assert!(!cursor.first().unwrap() && !cursor.last().unwrap() && !cursor.next().unwrap());
    assert_eq!((cursor.key(), cursor.value().unwrap()), (None, None));
    for key in ["b", "d"] {
        db.set(key, key).unwrap();
    }
    assert!(cursor.seek("c").unwrap());
    assert_eq!(cursor.key(), Some(&b"d"[..]));
    db.delete("d").unwrap();
    assert_eq!(cursor.value().unwrap().unwrap(), "d"); // what it stood on when it came
    assert!(cursor.prev().unwrap());
    assert_eq!(cursor.key(), Some(&b"b"[..]));
    assert!(!cursor.prev().unwrap());
    assert!(!cursor.next().unwrap());
    assert!(cursor.seek_for_prev("z").unwrap());
    assert_eq!(cursor.key(), Some(&b"b"[..]));
    assert!(!cursor.seek("c").unwrap());
    assert_eq!(cursor.key(), None);
}

#[test]
fn a_batch_is_whole_or_absent() {
    let db = memory();
    db.set("old", "1").unwrap();
    let mut batch = WriteBatch::new();
    batch.set("x", "1").set("x", "2").add("n", 1).add("n", 1).delete("old");
    batch.compare_and_swap("x", Some(b"2"), Some(b"3"));
    assert_eq!(db.try_write(&batch).unwrap(), Written::Applied);
    assert_eq!(db.get("x").unwrap().unwrap(), "3");
    assert_eq!(db.add("n", 0).unwrap(), 2);

    // Again: "old" is gone, which is no failure; x is set and swapped again; n goes on.
    assert_eq!(db.try_write(&batch).unwrap(), Written::Applied);

    batch.compare_and_swap("x", Some(b"2"), Some(b"4"));
    batch.set("after", "");
    let found = Some(Value::from(&b"3"[..]));
    let error = db.write(&batch).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::ConditionFailed, Some(6)));
    assert_eq!(db.try_write(&batch).unwrap(), Written::Mismatch { op: 6, found });
    assert_eq!(db.add("n", 0).unwrap(), 4);

    batch.clear();
    batch.set("y", "").delete_range("a".."z").add("w", i64::MAX).add("w", 1);
    let error = db.write(&batch).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::InvalidArgument, Some(3)));
    assert_eq!(keys(db.range(..)), ["n", "x"]);
    assert_eq!(db.try_write(WriteBatch::new()).unwrap(), Written::Applied);
}

#[test]
fn a_batch_shows_what_it_holds() {
    let db = memory();
    let people = db.keyspace("people").unwrap();
    let mut batch = WriteBatch::new();
    assert!(batch.is_empty());
    batch.set("a", "1").push(Op::Delete { key: "b" });
    batch.on(&people).add("n", 2).delete_range("x"..);
    batch.on(&db.keyspace("people").unwrap()).delete("y");
    let shown: Vec<String> = batch
        .ops()
        .map(|(keyspace, op)| format!("{} {op}", keyspace.map_or("-", |keyspace| keyspace.name())))
        .collect();
    assert_eq!(
        shown,
        ["- set a 1", "- delete b", "people add n 2", "people delete-range x -", "people delete y"]
    );
    assert_eq!((batch.len(), batch.bytes()), (5, 6));
}

#[test]
fn a_batch_keeps_to_its_store() {
    let (here, there) = (memory(), memory());
    let mut batch = WriteBatch::new();
    batch.set("a", "1");
    batch.on(&there.keyspace("people").unwrap()).set("b", "2");
    assert_eq!(
        message(here.write(&batch)),
        "invalid argument: keyspace \"people\" in the batch belongs to another store"
    );
    assert_eq!(here.count(..).unwrap(), 0);
    // The default keyspace is that of the store that is written to, and may also be named.
    batch.clear();
    batch.set("a", "1");
    batch.on(&here).add("a2", 1);
    there.write(&batch).unwrap_err();
    here.write(&batch).unwrap();
    assert_eq!(here.count(..).unwrap(), 2);
}

#[test]
fn keyspaces_come_and_go() {
    let db = memory();
    assert_eq!(db.keyspaces().unwrap(), ["default"]);
    assert_eq!(db.name(), "default");
    let people = db.keyspace("people").unwrap();
    people.set("ada", "1815").unwrap();
    let snapshot = db.snapshot().unwrap();
    let (view, mut range, mut cursor) =
        (snapshot.keyspace("people").unwrap(), people.range(..), people.cursor());
    let mut started = people.range(..);
    assert!(started.next().is_some());
    assert!(cursor.first().unwrap());

    assert_eq!(
        message(db.drop_keyspace("default")),
        "invalid argument: keyspace \"default\" cannot be dropped"
    );
    assert!(db.drop_keyspace("people").unwrap());
    assert!(!db.drop_keyspace("people").unwrap());
    assert_eq!(db.keyspaces().unwrap(), ["default"]);

    // Its handles say so, whatever they are asked.
    let gone = "invalid argument: keyspace \"people\" was dropped";
    assert_eq!(message(people.get("ada")), gone);
    assert_eq!(message(people.get_into("ada", &mut Vec::new())), gone);
    assert_eq!(message(people.multi_get(&["ada"])), gone);
    assert_eq!(message(people.contains("ada")), gone);
    assert_eq!(message(people.count(..)), gone);
    assert_eq!(message(people.first()), gone);
    assert_eq!(message(people.set("bob", "")), gone);
    assert_eq!(message(people.delete("bob")), gone);
    assert_eq!(message(people.add("n", 1)), gone);
    assert_eq!(message(people.compare_and_swap("n", None, None)), gone);
    assert_eq!(message(people.update("n", |_| None)), gone);
    assert_eq!(message(people.delete_range(..)), gone);
    assert_eq!(message(range.next().unwrap()), gone);
    assert_eq!(message(people.prefix("a").next_back().unwrap()), gone);
    assert_eq!(message(cursor.next()), gone);
    assert!(started.next().is_none(), "it had fetched all there was");
    let mut batch = WriteBatch::new();
    batch.set("here", "");
    batch.on(&people).set("there", "");
    assert_eq!(
        message(db.write(&batch)),
        format!("{gone} (operation 1 of the batch; nothing of it was applied)")
    );
    assert!(!db.contains("here").unwrap());

    // A new one of the name is another one; the snapshot has the old one.
    let again = db.keyspace("people").unwrap();
    assert_eq!(again.count(..).unwrap(), 0);
    again.set("eve", "").unwrap();
    assert_eq!(message(people.get("eve")), gone);
    assert_eq!(keys(view.range(..)), ["ada"]);
    assert_eq!(keys(snapshot.keyspace("people").unwrap().range(..)), ["ada"]);
    assert_eq!(snapshot.keyspaces().unwrap(), ["default", "people"]);
    // What came after the snapshot is empty in it.
    db.keyspace("later").unwrap().set("x", "").unwrap();
    assert_eq!(snapshot.keyspace("later").unwrap().count(..).unwrap(), 0);
    assert_eq!(snapshot.keyspace("later").unwrap().first().unwrap().map(drop), None);
}

#[test]
fn a_large_keyspace_goes_whole_while_a_handle_is_held() {
    let db = memory();
    let large = db.keyspace("large").unwrap();
    for key in 0..25_000_u32 {
        large.set(key.to_be_bytes(), "").unwrap();
    }
    db.set("other", "").unwrap();
    let snapshot = db.snapshot().unwrap();
    assert!(db.drop_keyspace("large").unwrap());
    assert_eq!(db.stats().unwrap().keys, 1);
    assert_eq!(snapshot.keyspace("large").unwrap().count(..).unwrap(), 25_000);
    assert!(large.first().is_err());
}

#[test]
fn outcomes_are_those_of_their_operations() {
    let db = memory();
    let apply = |line: &str| db.apply(line.parse::<Op>().unwrap()).unwrap();
    assert_eq!(apply("set a 1"), Outcome::Set);
    assert_eq!(apply("delete a"), Outcome::Deleted(true));
    assert_eq!(apply("delete a"), Outcome::Deleted(false));
    assert_eq!(apply("add a -3"), Outcome::Added(-3));
    assert_eq!(apply("compare-and-swap b - -"), Outcome::Swapped(Swap::Done));
    assert_eq!(apply("compare-and-swap b x -"), Outcome::Swapped(Swap::Mismatch(None)));
    assert_eq!(apply("compare-and-swap b - \"\""), Outcome::Swapped(Swap::Done));
    // The empty value is not absence, and neither is a longer or shorter one.
    let found = Outcome::Swapped(Swap::Mismatch(Some(Value::from(&b""[..]))));
    assert_eq!(apply("compare-and-swap b - x"), found);
    assert_eq!(apply("compare-and-swap b \"\\x00\" x"), found);
    assert_eq!(apply("delete-range \"\" -"), Outcome::DeletedRange);
}

#[test]
fn values_outlive_what_they_came_from() {
    let db = memory();
    let long = vec![5; 100_000];
    db.set("long", &long).unwrap();
    let value = db.get("long").unwrap().unwrap();
    let same = db.multi_get(&["long", "none"]).unwrap();
    db.set("long", "short").unwrap();
    drop(db);
    assert_eq!(value, long);
    assert_eq!(same, [Some(value), None]);
}

#[test]
fn get_into_replaces_what_was_in_the_buffer() {
    let db = memory();
    db.set("key", "value").unwrap();
    let mut buf = Vec::with_capacity(1_000);
    buf.extend_from_slice(b"left over");
    let place = buf.as_ptr();
    assert!(db.get_into("key", &mut buf).unwrap());
    assert_eq!(buf, b"value");
    assert!(!db.get_into("none", &mut buf).unwrap());
    assert_eq!(buf, b"");
    assert_eq!(buf.as_ptr(), place, "it allocated");
}

#[test]
fn integers_sort_as_numbers() {
    let db = memory();
    for number in [300_u64, 2, 1, u64::MAX, 256, 0] {
        db.set(number.to_be_bytes(), "").unwrap();
    }
    let sorted: Vec<u64> =
        db.range(..).map(|entry| u64::from_be_bytes(entry.unwrap().key().try_into().unwrap())).collect();
    assert_eq!(sorted, [0, 1, 2, 256, 300, u64::MAX]);
}

#[test]
fn errors_are_small_and_standard() {
    fn is_error<E: std::error::Error + Send + Sync + 'static>() {}
    is_error::<Error>();
    is_error::<forrest::line::ParseError>();
    assert_eq!(size_of::<Error>(), size_of::<usize>());
    assert_eq!(size_of::<forrest::Result<Option<Value>>>(), size_of::<Value>());
}
