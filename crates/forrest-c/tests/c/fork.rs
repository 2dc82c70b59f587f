//! A store of the Rust library across a fork: the child can neither use nor harm it. misuse.c tests the C
//! library's handles across a fork.

use forrest_rust::asynchronous::{Synced, Syncer};
use forrest_rust::{Builder, Db, Durability, ErrorKind, WriteBatch};
use std::future::Future;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

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
        // These two are unsupported in memory.
        db.verify().is_err(),
        db.compact().is_err(),
        refused(db.checkpoint(std::env::temp_dir().join("forrest-of-a-child"))),
    ];
    drop(db);
    answers.iter().position(|is_refused| !is_refused).map_or(0, |at| at as i32 + 1)
}

/// Does the work of a child and ends it with the code that the work returns, or 101 if it panics. A child that waits
/// for ever is ended after some seconds.
fn end(seconds_max: u32, work: impl FnOnce() -> i32) -> ! {
    // SAFETY: `alarm` takes any number.
    unsafe { libc::alarm(seconds_max) };
    let code = catch_unwind(AssertUnwindSafe(work)).unwrap_or(101);
    // SAFETY: `_exit` ends the process without running handlers of the parent.
    unsafe { libc::_exit(code) }
}

/// Waits for the end of a child; its wait status.
fn status_of(child: libc::pid_t) -> i32 {
    let mut status = 1;
    // SAFETY: `status` is a valid place for an `int`.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status
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
            end(120, move || {
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
            });
        }
        let status = status_of(forked);
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

/// A store in memory has no file to protect, but its locks may be held at the fork by threads that the child does not
/// have.
#[test]
fn a_child_of_a_fork_leaves_a_store_in_memory_alone() {
    let db = Builder::default().open("memory:").expect("it opens");
    db.keyspace("people").expect("it is made");
    for key in 0..10_000u32 {
        db.set(key.to_be_bytes(), [1; 300]).expect("it is set");
    }
    let stop = AtomicBool::new(false);
    let codes: Vec<i32> = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let _held = db.snapshot().expect("one state");
                    (0..1000u32).for_each(|key| db.set(key.to_be_bytes(), [2; 300]).expect("it is set"));
                }
            });
        }
        let codes = (0..20).map(|_| {
            let snapshot = db.snapshot().expect("one state");
            let mut range = db.range(..);
            range.next().expect("there is one").expect("it is read");
            let mut cursor = snapshot.cursor();
            assert!(cursor.seek("").expect("it is read"));
            let db = db.clone();
            // SAFETY: the child uses only objects of this thread, and ends without returning to the test.
            let forked = unsafe { libc::fork() };
            if forked == 0 {
                end(60, move || {
                    if cursor.seek("").is_ok()
                        || snapshot.get("").is_ok()
                        || range.by_ref().all(|pair| pair.is_ok())
                    {
                        return 100;
                    }
                    drop((range, cursor, snapshot));
                    child(db)
                });
            }
            status_of(forked)
        });
        let codes = codes.collect();
        stop.store(true, Ordering::Relaxed);
        codes
    });
    assert_eq!(codes, [0; 20], "wait statuses of the children");
}

/// The last handle may go in the child, in the middle of changes by threads that it does not have. The times of values
/// and the names of keyspaces are in trees of their own.
#[test]
fn a_child_of_a_fork_frees_nothing_of_a_store_in_memory() {
    const HOUR: Duration = Duration::from_secs(3600);
    let db = Builder::default().open("memory:").expect("it opens");
    let stop = AtomicBool::new(false);
    let codes: Vec<i32> = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0;
            while !stop.load(Ordering::Relaxed) {
                round += 1;
                for key in 0..100u32 {
                    let key = key.wrapping_mul(0x9e37_79b9).to_be_bytes();
                    db.set_with_ttl(key, "v", HOUR * (1 + round % 7)).expect("it is set");
                }
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                (0..100u32).for_each(|name| drop(db.keyspace(&name.to_string()).expect("it is made")));
                for name in 0..100u32 {
                    db.drop_keyspace(&name.to_string()).expect("it is dropped");
                }
            }
        });
        let codes = (0..300).map(|_| {
            // SAFETY: the child uses only objects of this thread, and ends without returning to the test.
            let forked = unsafe { libc::fork() };
            if forked == 0 {
                // SAFETY: the child has no other thread and ends here, so nothing uses or drops this handle again.
                let db = unsafe { std::ptr::read(&raw const db) };
                end(60, move || {
                    drop(db);
                    0
                });
            }
            status_of(forked)
        });
        let codes = codes.collect();
        stop.store(true, Ordering::Relaxed);
        codes
    });
    assert_eq!(codes, [0; 300], "wait statuses of the children");
}

/// Whether a future of a [`Syncer`] that belongs to the parent fails at its first poll, with what the child did wrong.
fn is_refused(future: Synced) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    matches!(pin!(future).poll(&mut context), Poll::Ready(Err(error))
        if error.kind() == ErrorKind::InvalidArgument && error.message().contains("child of fork"))
}

/// The thread of a `Syncer` is not there in a child, and its lock may be held at the fork by another thread. So the
/// child must get an error at once, and dropping its handle must wait for nothing.
#[test]
fn a_child_of_a_fork_is_refused_by_a_syncer() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(directory.path().join("store").to_str().expect("it is text")).expect("it opens");
    let stop = AtomicBool::new(false);
    let statuses: Vec<i32> = std::thread::scope(|scope| {
        let syncer = Syncer::new(&db).expect("a thread");
        let busy = syncer.clone();
        let stop = &stop;
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                drop(busy.synced());
            }
        });
        let statuses = (0..50).map(|_| {
            let (syncer, waiting) = (syncer.clone(), syncer.synced());
            // The child drops the last handle of this one.
            let own = Syncer::new(&db).expect("a thread");
            // SAFETY: the child uses only objects of this thread, and ends without returning to the test.
            let forked = unsafe { libc::fork() };
            if forked == 0 {
                end(60, move || {
                    let refused = is_refused(syncer.synced()) && is_refused(own.synced());
                    drop((syncer, waiting, own));
                    i32::from(!refused)
                });
            }
            status_of(forked)
        });
        let statuses = statuses.collect();
        stop.store(true, Ordering::Relaxed);
        statuses
    });
    assert_eq!(statuses, [0; 50], "wait statuses of the children");
}
