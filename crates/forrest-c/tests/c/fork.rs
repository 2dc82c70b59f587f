//! A store of the Rust library across a fork: the child can neither use nor harm it. misuse.c tests the C
//! library's handles across a fork.

use forrest_rust::{Builder, Db, Durability, ErrorKind, WriteBatch};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The checks in a child: returns 0, or the number of the check that failed. Nothing may wait or panic.
fn child(db: Db) -> i32 {
    fn refused<T>(result: forrest_rust::Result<T>) -> bool {
        result.err().is_some_and(|error| {
            error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("forked")
        })
    }
    let mut batch = WriteBatch::new();
    batch.set("oak", "none");
    let answers = [
        refused(db.get("oak")),
        refused(db.set("oak", "none")),
        refused(db.add("count", 1)),
        refused(db.delete_range(..)),
        refused(db.write(batch)),
        refused(db.first()),
        refused(db.scan(.., |_, _| ControlFlow::Continue(()))),
        refused(db.snapshot()),
        refused(db.keyspace("default")),
        refused(db.keyspace("new")),
        refused(db.keyspaces()),
        refused(db.drop_keyspace("people")),
        refused(db.sync()),
        refused(db.stats()),
        refused(db.verify()),
        refused(db.compact()),
        refused(db.checkpoint(std::env::temp_dir().join("forrest-of-a-child"))),
    ];
    drop(db);
    answers.iter().position(|is_refused| !is_refused).map_or(0, |at| at as i32 + 1)
}

#[test]
fn a_child_of_a_fork_leaves_the_store_alone() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("store");
    let path = path.to_str().expect("it is text");
    // So small that compactions replace tables, and so few descriptors that tables are opened again by name.
    let builder = Builder::default()
        .memtable_bytes(64 << 10)
        .open_files(2)
        .cache_bytes(1)
        .durability(Durability::Memory);
    let open = || builder.open(path);
    let db = open().expect("it opens");
    db.keyspace("people").expect("it is made");
    let value = |round: u32| vec![round as u8; 500];
    for round in 0..20u32 {
        for key in 0..200u32 {
            db.set((key * 7 + round).to_be_bytes(), value(round)).expect("it is set");
        }
        // Open snapshots and ranges: each reads the files of its own moment.
        let snapshot = db.snapshot().expect("one state");
        let mut range = db.range(..);
        range.next().expect("there is one").expect("it is read");
        let mut cursor = snapshot.cursor();
        assert!(cursor.seek("").expect("it is read"));
        db.compact().expect("it is merged");
        // A reader beside the writer, with a state that it alone keeps.
        let reader = builder.open_read_only(path).expect("it opens beside the writer");
        let old = reader.snapshot().expect("one state");
        let count = old.count(..).expect("it is read");
        db.set(round.to_be_bytes(), value(round)).expect("it is set");
        db.sync().expect("it is synced");
        reader.refresh().expect("it refreshes");
        // SAFETY: the child uses only objects of this thread, and ends without returning to the test.
        let forked = unsafe { libc::fork() };
        if forked == 0 {
            // SAFETY: `alarm` takes any number. It ends a child that waits for ever.
            unsafe { libc::alarm(120) };
            let found = catch_unwind(AssertUnwindSafe(move || {
                if cursor.seek("").is_ok()
                    || snapshot.get("").is_ok()
                    || range.by_ref().all(|pair| pair.is_ok())
                {
                    return 100;
                }
                if reader.refresh().is_ok() || old.get("").is_ok() {
                    return 99;
                }
                drop((range, cursor, snapshot, old, reader));
                child(db)
            }));
            // SAFETY: `_exit` ends the process without running handlers of the parent.
            unsafe { libc::_exit(found.unwrap_or(101)) };
        }
        let mut status = 1;
        // SAFETY: `status` is a valid place for an `int`.
        assert_eq!(unsafe { libc::waitpid(forked, &mut status, 0) }, forked);
        assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 0), "round {round}");
        // Everything that was open in the parent still works.
        db.compact().expect("it is merged");
        assert_eq!(old.count(..).expect("its files are kept"), count);
        assert!(old.range(..).all(|pair| pair.is_ok()) && reader.range(..).all(|pair| pair.is_ok()));
        assert_eq!(snapshot.count(..).expect("it is read"), db.count(..).expect("it is read"));
        assert!(range.all(|pair| pair.is_ok()));
        assert_eq!(open().expect_err("it is open").kind(), ErrorKind::Busy);
    }
    let count = db.count(..).expect("it is read");
    db.set("last", "one").expect("it goes on");
    drop(db);
    let db = open().expect("it opens again");
    db.verify().expect("it is whole");
    assert_eq!(db.count(..).expect("it is read"), count + 1);
    assert_eq!(db.get(19u32.to_be_bytes()).expect("it is read").expect("it is there"), value(19)[..]);
}
