//! weakened: written who_syncs_finds_it_on_the_device
//! weakened: counts_early who_writes_finds_it_written
//! weakened: counts_late who_writes_finds_it_written
//! weakened: vouches_late who_syncs_finds_it_on_the_device
//! weakened: files_first a_new_file_is_synced_behind_the_old_one
//! weakened: newest_first a_new_file_is_synced_behind_the_old_one
//! weakened: states_early what_is_stated_is_so
//! weakened: goes_on after_a_failure_nothing_is_acknowledged
//! weakened: asks_no_more after_a_failure_nothing_is_acknowledged
//! weakened: settles_last what_was_read_is_durable_once_settled
//! weakened: settles_beside a_settle_is_not_tried_again
//! weakened: settles_on a_settle_is_not_tried_again
//! weakened: wakes_one who_waits_for_a_sync_is_woken
//! weakened: wakes_early who_waits_for_a_sync_is_woken
//! weakened: waits_blindly a_call_is_heard
//! weakened: waits_blindly the_end_is_heard
//! weakened: wakes_first a_call_is_heard
//! weakened: looks_first a_change_ends_a_rest
//! weakened: rests_blindly a_change_ends_a_rest
//! weakened: looks_once a_snapshot_reads_one_state
//! weakened: looks_early a_snapshot_reads_one_state
//! weakened: reads_at_once a_snapshot_reads_one_state
//! weakened: cuts_no_walk a_key_set_beside_a_scan_is_found
//! weakened: walks_blindly a_snapshot_remembers_no_later_key
//! weakened: jumps_for_all a_snapshot_finds_what_a_later_scan_does_not
//! weakened: counts_first a_deleted_key_stays_deleted
//! weakened: keeps_no_older a_batch_beside_a_reader_brings_nothing_back
//!
//! Models of the protocols among threads that use a store on disk. Loom tries every interleaving with few preemptions,
//! and every interleaving at all of two threads that only write. Each model checks a property that the head of
//! `group.rs`, `work.rs`, `readers.rs`, `gaps.rs` or `memtable.rs` argues for. Run with
//! `cargo test -p remixdb --release --features loom --lib models`; `LOOM_MAX_PREEMPTIONS` sets the bound for all
//! models. The lines above name the weakened orderings and the model that each one fails, see `cargo xtask models`.
//!
//! With the feature `loom` the modules use loom's locks and atomics in place of the standard library's. The
//! device is small: a file is the list of the changes in it, and a sync takes long enough for other threads
//! to write meanwhile.

use crate::clock::{Moment, Newest};
use crate::gaps::{Changes, Gaps, Jump};
use crate::memtable::{self, ReadAt};
use crate::ranges::Ranges;
use crate::readers::Readers;
use crate::wal::group::{Device, Ended, Group};
use crate::wanted::Wanted;
use crate::work::{Call, Work};
use crate::wrapped::Entry;
use forrest_engine::clock::Clock;
use forrest_engine::spans::Spans;
use forrest_index::Direction;
use forrest_models::model;
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// The content of a device, and how much of it is durable.
#[derive(Default)]
struct ModelState {
    /// The changes in each file, and how many of them are durable.
    files: Vec<(Vec<u8>, usize)>,
    /// Number of calls that succeed before one fails, if one does; and whether a write failed, and a sync.
    good: Option<usize>,
    failed: [bool; 2],
    /// The first violation that was found. The thread that finds it holds locks, and must not panic with
    /// them.
    wrong: Option<&'static str>,
}

impl ModelState {
    fn expect(&mut self, right: bool, wrong: &'static str) {
        if !right {
            self.wrong = Some(wrong);
        }
    }

    /// Number of changes that are durable in their order, without a gap.
    fn durable(&self) -> usize {
        let whole = self.files.iter().take_while(|(bytes, durable)| *durable == bytes.len());
        let (whole, count) = whole.fold((0, 0), |(sum, count), (bytes, _)| (sum + bytes.len(), count + 1));
        whole + self.files.get(count).map_or(0, |(_, durable)| *durable)
    }

    fn written(&self) -> usize {
        self.files.iter().map(|(bytes, _)| bytes.len()).sum()
    }

    /// A write begins or, if `kind` is 1, a sync. A call of the other kind may be under way when one fails.
    fn call(&mut self, kind: usize) -> Result<(), String> {
        self.expect(!self.failed[kind], "the device is used again after a failure");
        match &mut self.good {
            Some(0) => {
                self.good = None;
                self.failed[kind] = true;
                Err("it failed".to_string())
            }
            good => {
                *good = good.map(|good| good - 1);
                Ok(())
            }
        }
    }
}

/// It gives its users no ordering: loom does not see its lock.
#[derive(Default)]
struct Model {
    state: std::sync::Mutex<ModelState>,
    /// Loom's view of the state: each access is a step, between which other threads may run.
    steps: AtomicUsize,
}

impl Model {
    fn state(&self) -> std::sync::MutexGuard<'_, ModelState> {
        self.steps.fetch_add(1, Ordering::Relaxed);
        self.state.lock().expect("a model that failed goes no further")
    }

    /// Creates a file; returns its number.
    fn begin_file(&self) -> usize {
        let mut state = self.state();
        state.files.push((Vec::new(), 0));
        state.files.len() - 1
    }
}

impl Device for Model {
    type File = usize;
    type Error = String;

    fn begin(&self, _: &mut Vec<u8>, _: u64, synced: Option<u64>) {
        let mut state = self.state();
        let durable = state.files.last().map_or(0, |(_, durable)| *durable as u64);
        state.expect(synced.unwrap_or(0) <= durable, "more is stated than is durable");
    }

    fn write(&self, file: &usize, record: &mut Vec<u8>, offset: u64) -> Result<(), String> {
        let mut state = self.state();
        state.call(0)?;
        let (bytes, _) = &mut state.files[*file];
        let is_behind = bytes.len() as u64 == offset;
        bytes.extend_from_slice(record);
        state.expect(is_behind, "a record is not where the one before ends");
        let all = state.files.iter().flat_map(|(bytes, _)| bytes);
        let in_order = all.copied().eq(1..=state.written() as u8);
        state.expect(in_order, "changes are out of order, or there twice");
        Ok(())
    }

    fn sync(&self, file: &usize) -> Result<(), String> {
        let length = self.state().files[*file].0.len();
        let mut state = self.state();
        state.call(1)?;
        let is_next = state.files[..*file].iter().all(|(bytes, durable)| *durable == bytes.len());
        state.expect(is_next, "synced before an older one");
        state.files[*file].1 = length;
        Ok(())
    }

    fn stopped(&self, why: &str) -> String {
        format!("stopped: {why}")
    }
}

/// A log, and the order of changes.
struct Log {
    group: Group<Model>,
    order: Mutex<u8>,
}

impl Log {
    /// A log whose device fails at a call, if at all.
    fn new(good: Option<usize>) -> Arc<Log> {
        let device = Model::default();
        let file = device.begin_file();
        device.state().good = good;
        Arc::new(Log { group: Group::new(device, file, 0, 0, 1 << 10), order: Mutex::new(0) })
    }

    /// A log of two files that were read, with a change in each, of which nothing is known to be durable.
    fn resumed(good: Option<usize>) -> Arc<Log> {
        let device = Model::default();
        let files = [device.begin_file(), device.begin_file()];
        files.iter().zip(1..).for_each(|(&file, change)| device.state().files[file].0.push(change));
        device.state().good = good;
        let group = Group::resuming(device, files[0], 1, 1 << 10);
        group.resumed(1, 1);
        group.resume(files[1], 1);
        group.resumed(1, 2);
        Arc::new(Log { group, order: Mutex::new(2) })
    }

    /// Returns when what was read is durable.
    fn settle(&self) -> Result<(), String> {
        let settled = self.group.settle();
        self.expect(settled.is_err() || self.state().durable() >= 2, "settled, not durable");
        settled
    }

    /// Queues the next change.
    fn queue(&self) -> u64 {
        let mut order = self.order.lock().unwrap();
        *order += 1;
        let change = *order;
        self.group.queue(1, |record| record.push(change));
        u64::from(change)
    }

    fn rotate(&self) -> Result<(), String> {
        let order = self.order.lock().unwrap();
        self.group.rotate(|_, Ended { last, .. }| {
            let is_last = last == u64::from(*order);
            self.state().expect(is_last, "the last change is another");
            Ok((self.group.device().begin_file(), 0, 0))
        })
    }

    /// Makes a change that is written when this returns.
    fn write(&self) -> Result<(), String> {
        let change = self.queue();
        let written = self.group.write(change);
        self.expect(written.is_err() || self.state().written() as u64 >= change, "acknowledged, not written");
        written
    }

    /// Makes a change that is durable when this returns.
    fn sync(&self) -> Result<(), String> {
        let change = self.queue();
        let synced = self.group.sync(change);
        self.expect(synced.is_err() || self.state().durable() as u64 >= change, "acknowledged, not durable");
        let counted = self.group.synced();
        let durable = self.state().durable() as u64;
        self.expect(durable >= counted, "counts as synced, not durable");
        synced
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ModelState> {
        self.group.device().state()
    }

    /// Demands that `right` holds, and that the device found no violation.
    fn expect(&self, right: bool, what: &str) {
        assert!(right, "{what}");
        let wrong = self.state().wrong;
        assert_eq!(wrong, None);
    }
}

/// Runs threads that each use a new log in their own way, this thread in the last way.
fn together<const N: usize>(preemptions: Option<usize>, good: Option<usize>, ways: [fn(&Log); N]) {
    together_on(Log::new, preemptions, good, ways);
}

/// The same with a log that `make` makes.
fn together_on<const N: usize>(
    make: fn(Option<usize>) -> Arc<Log>,
    preemptions: Option<usize>,
    good: Option<usize>,
    ways: [fn(&Log); N],
) {
    model(preemptions, move || {
        let log = make(good);
        let (last, others) = ways.split_last().expect("somebody uses it");
        let threads: Vec<_> = others
            .iter()
            .map(|&way| {
                let log = log.clone();
                thread::spawn(move || way(&log))
            })
            .collect();
        last(&log);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

fn write(log: &Log) {
    log.write().expect("the device works");
}

fn sync_all(log: &Log) {
    log.sync().expect("the device works");
}

#[test]
fn who_writes_finds_it_written() {
    together(None, None, [write, write]);
    together(Some(2), None, [write, write, write]);
}

#[test]
fn who_syncs_finds_it_on_the_device() {
    together(Some(3), None, [sync_all, sync_all]);
    together(Some(3), None, [write, sync_all]);
    together(Some(2), None, [write, sync_all, sync_all]);
}

/// A thread that is not woken waits forever, which loom reports.
#[test]
fn who_waits_for_a_sync_is_woken() {
    together(Some(2), None, [sync_all, sync_all, sync_all]);
}

/// One thread goes on in a new file while others sync.
#[test]
fn a_new_file_is_synced_behind_the_old_one() {
    let rotate: fn(&Log) = |log| {
        log.rotate().expect("the device works");
        log.sync().expect("the device works");
    };
    together(Some(3), None, [rotate, sync_all]);
    let rotate: fn(&Log) = |log| {
        log.rotate().expect("the device works");
        log.write().expect("the device works");
    };
    together(Some(3), None, [rotate, sync_all]);
    together(Some(2), None, [sync_all, rotate, sync_all]);
}

/// Whatever a record states to be synced was synced.
#[test]
fn what_is_stated_is_so() {
    let twice: fn(&Log) = |log| {
        write(log);
        write(log);
    };
    together(Some(3), None, [sync_all, twice]);
}

/// The n-th call fails: its caller gets an error, and so does every later call.
#[test]
fn after_a_failure_nothing_is_acknowledged() {
    let tries: fn(&Log) = |log| {
        if log.sync().is_err() {
            assert!(log.group.check().is_err(), "a failure was forgotten");
            assert!(log.sync().is_err(), "acknowledged after a failure");
        }
    };
    for good in 0..3 {
        together(Some(3), Some(good), [tries, tries]);
    }
}

/// What was read when the store was opened is synced before anything relies on it, by the thread that comes first.
#[test]
fn what_was_read_is_durable_once_settled() {
    let settle: fn(&Log) = |log| log.settle().expect("the device works");
    // As the first change does.
    let go_on: fn(&Log) = |log| {
        log.settle().expect("the device works");
        log.rotate().expect("the device works");
        log.sync().expect("the device works");
    };
    together_on(Log::resumed, Some(3), None, [settle, settle]);
    together_on(Log::resumed, Some(2), None, [settle, go_on]);
    together_on(Log::resumed, Some(2), None, [settle, sync_all]);
}

/// A settle whose sync fails, or that comes beside a sync that fails, is not repeated by anybody.
#[test]
fn a_settle_is_not_tried_again() {
    let settles: fn(&Log) = |log| {
        if log.settle().is_err() {
            assert!(log.group.check().is_err(), "a failure was forgotten");
            assert!(log.settle().is_err(), "settled after a failure");
        }
    };
    let syncs: fn(&Log) = |log| {
        if log.sync().is_err() {
            assert!(log.settle().is_err(), "settled after a failure");
        }
    };
    for good in 0..2 {
        together_on(Log::resumed, Some(3), Some(good), [settles, settles]);
        together_on(Log::resumed, Some(3), Some(good), [settles, syncs]);
    }
}

/// Two threads call, each after it has made something to do. The worker sees all of it, though it goes back
/// to waiting as soon as it can. No time passes in the model: a thread that is not woken waits forever, which
/// loom reports.
#[test]
fn a_call_is_heard() {
    model(Some(3), || {
        let (work, made) = (Arc::new(Work::default()), Arc::new(AtomicUsize::new(0)));
        let callers = [1, 2].map(|piece| {
            let (work, made) = (work.clone(), made.clone());
            thread::spawn(move || {
                made.fetch_or(piece, Ordering::Relaxed);
                work.call();
            })
        });
        while made.load(Ordering::Relaxed) != 3 {
            // A caller that was heard before it woke the worker may wake it for nothing.
            assert_ne!(work.next(Duration::MAX), Call::Close);
        }
        callers.into_iter().for_each(|caller| caller.join().unwrap());
    });
}

/// A thread makes two changes. The worker rests when it has seen no new one, and sees both in the end.
#[test]
fn a_change_ends_a_rest() {
    model(Some(3), || {
        let (work, changes) = (Arc::new(Work::default()), Arc::new(Mutex::new(0)));
        let writer = {
            let (work, changes) = (work.clone(), changes.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    *changes.lock().unwrap() += 1;
                    work.stir();
                }
            })
        };
        let mut seen = *changes.lock().unwrap();
        while seen < 2 {
            assert_eq!(work.rest(Duration::MAX, || *changes.lock().unwrap() == seen), Call::Nothing);
            seen = *changes.lock().unwrap();
        }
        writer.join().unwrap();
    });
}

/// The worker hears that the store is closed, whatever else was called.
#[test]
fn the_end_is_heard() {
    model(None, || {
        let work = Arc::new(Work::default());
        let worker = {
            let work = work.clone();
            thread::spawn(move || while work.next(Duration::MAX) != Call::Close {})
        };
        work.call();
        work.close();
        worker.join().unwrap();
    });
}

/// A writer sets one key to 1 and then to 2, and keeps the versions that it must. A snapshot reads the key twice: the
/// value with the snapshot's number, which is neither missing nor late.
#[test]
fn a_snapshot_reads_one_state() {
    model(None, || {
        let readers = Arc::new(Readers::new(0, Clock::new(|| 0)));
        // Its lock orders nothing for loom, as in `Model`.
        let (versions, steps) = (Arc::new(std::sync::Mutex::new(vec![0])), Arc::new(AtomicUsize::new(0)));
        let writer = {
            let (readers, versions, steps) = (readers.clone(), versions.clone(), steps.clone());
            thread::spawn(move || {
                for number in 1..3u64 {
                    readers.show(number);
                    let kept = readers.kept();
                    steps.fetch_add(1, Ordering::Relaxed);
                    let mut versions = versions.lock().expect("nobody panics with it");
                    versions.retain(|version| kept.as_ref().is_some_and(|kept| kept.contains_key(version)));
                    versions.push(number);
                    drop(versions);
                    readers.apply(number);
                }
            })
        };
        let (number, ()) = readers.take(|| (), |()| true).expect("the writer ends");
        readers.wait(number);
        for _ in 0..2 {
            steps.fetch_add(1, Ordering::Relaxed);
            let found = versions.lock().expect("nobody panics with it").contains(&number);
            assert!(found, "the version that the snapshot reads is not there");
        }
        readers.give_back(number);
        writer.join().expect("it ends");
    });
}

/// A store with one key: its versions, as the sequence number and whether the key is there.
struct OneKey {
    gaps: Gaps,
    /// The number of the last change.
    order: Mutex<u64>,
    visible: Newest,
    /// Its lock orders nothing for loom, as in `Model`.
    versions: std::sync::Mutex<Vec<(u64, bool)>>,
    steps: AtomicUsize,
}

const KEY: &[u8] = b"k";

impl Changes for OneKey {
    fn gaps(&self) -> &Gaps {
        &self.gaps
    }

    fn while_quiet(&self, run: &mut dyn FnMut(u64, *const ())) {
        if let Ok(order) = self.order.try_lock() {
            run(*order, std::ptr::null());
        }
    }
}

impl OneKey {
    fn new(is_there: bool) -> Arc<OneKey> {
        Arc::new(OneKey {
            gaps: Gaps::default(),
            order: Mutex::new(1),
            visible: Newest::new(1, Clock::new(|| 0)),
            versions: std::sync::Mutex::new(vec![(1, is_there)]),
            steps: AtomicUsize::new(0),
        })
    }

    /// Sets the key or deletes it, as `Core::record` does.
    fn change(&self, is_there: bool) {
        let mut order = self.order.lock().unwrap();
        *order += 1;
        if is_there {
            self.gaps.cut([(0, KEY)].into_iter());
        }
        self.visible.store(*order, Ordering::Release);
        self.steps.fetch_add(1, Ordering::Relaxed);
        self.versions.lock().expect("nobody panics with it").push((*order, is_there));
    }

    /// Whether a scan finds the key. It remembers that there was none, or none before it.
    fn finds(&self, read_at: ReadAt<'_>, direction: Direction) -> bool {
        match self.gaps.jump(0, read_at, Bound::Unbounded, direction) {
            Some(Jump::End) => return false,
            Some(Jump::To(Bound::Included(from) | Bound::Excluded(from))) => {
                let is_before = if direction == Direction::Forward { *from <= *KEY } else { *from > *KEY };
                if !is_before {
                    return false;
                }
            }
            Some(Jump::To(Bound::Unbounded)) | None => {}
        }
        let walk = Gaps::walk(self, std::ptr::null(), 0, read_at, Bound::Unbounded, direction);
        self.steps.fetch_add(1, Ordering::Relaxed);
        let number = match read_at {
            ReadAt::Past(at) => at.sequence,
            ReadAt::Newest(visible) => visible.load(Ordering::Acquire),
        };
        let versions = self.versions.lock().expect("nobody panics with it").clone();
        let is_there = versions.iter().rev().find(|version| version.0 <= number).is_some_and(|found| found.1);
        if let Some(walk) = walk {
            walk.finish(read_at, is_there.then_some(KEY));
        }
        is_there
    }
}

/// A thread finds the key that it has set, whatever a scan beside it has passed and remembers.
#[test]
fn a_key_set_beside_a_scan_is_found() {
    for direction in [Direction::Forward, Direction::Backward] {
        model(Some(3), move || {
            let store = OneKey::new(false);
            let scan = {
                let store = store.clone();
                thread::spawn(move || {
                    store.finds(ReadAt::Newest(&store.visible), direction);
                })
            };
            store.change(true);
            assert!(store.finds(ReadAt::Newest(&store.visible), direction), "the key is not found");
            scan.join().unwrap();
            assert!(store.finds(ReadAt::Newest(&store.visible), direction), "the key is not found later");
        });
    }
}

/// A scan of a snapshot does not hide a key that was set after the snapshot.
#[test]
fn a_snapshot_remembers_no_later_key() {
    model(Some(3), || {
        let store = OneKey::new(false);
        let scan = {
            let store = store.clone();
            thread::spawn(move || {
                assert!(
                    !store.finds(ReadAt::Past(&Moment::after(1)), Direction::Forward),
                    "it was set later"
                );
            })
        };
        store.change(true);
        assert!(store.finds(ReadAt::Newest(&store.visible), Direction::Forward), "the key is not found");
        scan.join().unwrap();
        assert!(
            store.finds(ReadAt::Newest(&store.visible), Direction::Forward),
            "the key is not found later"
        );
    });
}

/// A snapshot finds a key that was deleted later, though a scan of the newest state remembers that there is none.
#[test]
fn a_snapshot_finds_what_a_later_scan_does_not() {
    model(Some(3), || {
        let store = OneKey::new(true);
        let scan = {
            let store = store.clone();
            thread::spawn(move || {
                store.finds(ReadAt::Newest(&store.visible), Direction::Forward);
            })
        };
        store.change(false);
        assert!(
            store.finds(ReadAt::Past(&Moment::after(1)), Direction::Forward),
            "the snapshot does not find its key"
        );
        scan.join().unwrap();
        store.finds(ReadAt::Newest(&store.visible), Direction::Forward);
        assert!(
            store.finds(ReadAt::Past(&Moment::after(1)), Direction::Forward),
            "the snapshot does not find its key later"
        );
    });
}

/// A memtable with one key and the range deletes of it.
struct Deleted {
    /// Its lock orders what is visible: who finds ranges without an older delete finds a newer one visible.
    ranges: Mutex<Arc<Ranges>>,
    /// The versions of the key. Their lock orders nothing for loom, as in `Model`.
    versions: std::sync::Mutex<Vec<u8>>,
    visible: Newest,
    steps: AtomicUsize,
}

impl Deleted {
    /// The key is set at number 1 and deleted at number 2.
    fn new() -> Arc<Deleted> {
        let store = Deleted {
            ranges: Mutex::default(),
            versions: Default::default(),
            visible: Newest::new(1, Clock::new(|| 0)),
            steps: AtomicUsize::new(0),
        };
        store.set(1, b"old");
        store.visible.store(2, Ordering::Release);
        store.delete(2);
        Arc::new(store)
    }

    fn wanted<R>(&self, run: impl FnOnce(&Wanted<'_>) -> R) -> R {
        run(&Wanted { visible: self.visible.load(Ordering::Relaxed), snapshots: &BTreeMap::new() })
    }

    /// Deletes the key in a range, as `Memtable::delete_ranges` does.
    fn delete(&self, sequence: u64) {
        let mut all = Spans::default();
        all.insert(Vec::new(), None);
        let mut ranges = self.ranges.lock().unwrap();
        *ranges = Arc::new(self.wanted(|wanted| ranges.with(&all, sequence, wanted)));
    }

    /// Sets the key, as `Memtable::set` does.
    fn set(&self, sequence: u64, value: &[u8]) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        let mut versions = self.versions.lock().expect("nobody panics with it");
        *versions =
            self.wanted(|wanted| memtable::with_older(sequence, Entry::Value(value), &versions, wanted));
    }

    /// What a reader of the newest state finds, as `Memtable::get` does beside ranges.
    fn find(&self) -> Option<Vec<u8>> {
        let read_at = ReadAt::Newest(&self.visible);
        let deleted = read_at.deleted(KEY, || Some(self.ranges.lock().unwrap().clone()));
        self.steps.fetch_add(1, Ordering::Relaxed);
        let versions = self.versions.lock().expect("nobody panics with it").clone();
        let (sequence, said) = read_at.see(&versions)?;
        if deleted.is_some_and(|deleted| deleted >= sequence) {
            return None;
        }
        said.value(|| 0).map(<[u8]>::to_vec)
    }
}

/// A reader beside a second delete of a range does not find what the first one deleted.
#[test]
fn a_deleted_key_stays_deleted() {
    model(Some(3), || {
        let store = Deleted::new();
        let reader = {
            let store = store.clone();
            thread::spawn(move || assert_eq!(store.find(), None, "it was deleted"))
        };
        // A single change is visible before it is applied.
        store.visible.store(3, Ordering::Release);
        store.delete(3);
        reader.join().unwrap();
    });
}

/// A reader beside a batch that deletes a range and sets a key of it finds what was before or what is after.
#[test]
fn a_batch_beside_a_reader_brings_nothing_back() {
    model(Some(3), || {
        let store = Deleted::new();
        let reader = {
            let store = store.clone();
            thread::spawn(move || {
                let first = store.find();
                assert!(first.is_none() || first.as_deref() == Some(b"new"), "{first:?} was deleted");
                let second = store.find();
                assert!(first.is_none() || second == first, "{second:?} was the state before {first:?}");
            })
        };
        // All of a batch is applied before it is visible.
        store.delete(3);
        store.set(4, b"new");
        store.visible.store(4, Ordering::Release);
        assert_eq!(store.find().as_deref(), Some(&b"new"[..]), "it was set");
        reader.join().unwrap();
    });
}
