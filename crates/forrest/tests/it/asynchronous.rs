//! Futures of synced writes: they resolve when the changes are durable, share syncs, and never wait for ever.

use forrest::asynchronous::{Synced, Syncer};
use forrest::simulated::{self, Failure, Fate, Fault, Simulated, Times};
use forrest::{Db, Durability, Error, ErrorKind, Result, WriteBatch, WriteOptions};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The smallest executor.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// A batch that does not wait for anything.
fn queue(db: &Db, key: &str) -> Result<()> {
    let mut batch = WriteBatch::new();
    batch.set(key, "value");
    db.write_with(batch, &WriteOptions::new().durability(Durability::Memory))
}

#[test]
fn what_a_future_has_synced_survives_power_loss() {
    let disk = Simulated::new();
    let db = simulated::open(disk.clone(), &Db::builder()).expect("the disk works");
    let syncer = Syncer::new(&db).expect("a thread");
    for key in ["oak", "elm", "ash"] {
        queue(&db, key).expect("it is written");
        block_on(syncer.synced()).expect("it is synced");
        let mut seen = 0;
        for state in disk.crash_states(20, 1) {
            let after = simulated::open(state, &Db::builder()).expect("it opens");
            assert!(after.contains(key).expect("it is read"), "{key}");
            seen += 1;
        }
        assert!(seen > 0);
    }
}

#[test]
fn futures_share_syncs() {
    let disk = Simulated::new();
    let db = simulated::open(disk.clone(), &Db::builder()).expect("the disk works");
    let syncer = Syncer::new(&db).expect("a thread");
    queue(&db, "first").expect("it is written");
    block_on(syncer.synced()).expect("it is synced");
    let before = disk.ios();
    queue(&db, "second").expect("it is written");
    // All are begun before the first is awaited. Each is the same sync, or one of the few that come after it.
    let futures: Vec<Synced> = (0..1_000).map(|_| syncer.synced()).collect();
    for future in futures {
        block_on(future).expect("it is synced");
    }
    let ios = disk.ios() - before;
    assert!(ios < 100, "{ios} calls for 1,000 futures");
}

#[test]
fn a_failed_sync_fails_every_future() {
    let disk = Simulated::new();
    let db = simulated::open(disk.clone(), &Db::builder()).expect("the disk works");
    let syncer = Syncer::new(&db).expect("a thread");
    block_on(syncer.synced()).expect("the disk works");
    queue(&db, "oak").expect("it is written");
    disk.fail(Fault { at: disk.ios(), times: Times::Once, kind: Failure::SyncFails(Fate::Dropped) });
    let futures: Vec<Synced> = (0..10).map(|_| syncer.synced()).collect();
    for future in futures {
        let error: Error = block_on(future).expect_err("the sync has failed");
        assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::Stopped), "{error}");
    }
    assert_eq!(block_on(syncer.synced()).unwrap_err().kind(), ErrorKind::Stopped);
}

#[test]
fn handles_and_futures_may_be_dropped_at_any_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store").display().to_string();
    for round in 0..50 {
        let db = Db::open(&path).expect("the last round has closed it");
        let syncer = Syncer::new(&db).expect("a thread");
        db.set(format!("{round}"), "").expect("it is written");
        drop(syncer.synced());
        let left = syncer.synced();
        let polled = {
            let mut future = Box::pin(syncer.synced());
            let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            future
        };
        drop(db);
        drop(syncer);
        block_on(left).expect("the thread has served it before it ended");
        block_on(polled).expect("this one too");
    }
}

#[test]
fn a_home_that_cannot_sync_says_so() {
    let db = Db::open("memory:").expect("a store");
    let syncer = Syncer::new(&db).expect("a thread");
    assert_eq!(
        block_on(syncer.synced()).map_err(|error| error.kind()),
        db.sync().map_err(|error| error.kind())
    );
}

/// Everything that a task holds may be held across an `await`, on an executor that moves tasks between threads.
#[test]
fn everything_may_be_held_across_an_await() {
    fn moves<T: Send + 'static>(value: T) -> T {
        value
    }
    let db = Db::open("memory:").expect("a store");
    db.set("oak", "").expect("it is written");
    db.set("elm", "").expect("it is written");
    let syncer = Syncer::new(&db).expect("a thread");
    let task = moves(async move {
        let snapshot = db.snapshot()?;
        let mut cursor = snapshot.cursor();
        let mut range = db.range(..);
        let first = range.next().expect("a pair")?;
        cursor.first()?;
        syncer.synced().await?;
        let second = range.next().expect("another pair")?;
        assert_eq!((first.key(), second.key()), (&b"elm"[..], &b"oak"[..]));
        assert_eq!(cursor.key(), Some(&b"elm"[..]));
        Ok::<(), Error>(())
    });
    block_on(task).expect("the store works");
}
