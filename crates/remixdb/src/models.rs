//! weakened: written who_syncs_finds_it_on_the_device
//! weakened: counts_early who_writes_finds_it_written
//! weakened: counts_late who_writes_finds_it_written
//! weakened: vouches_late who_syncs_finds_it_on_the_device
//! weakened: files_first a_new_file_is_synced_behind_the_old_one
//! weakened: newest_first a_new_file_is_synced_behind_the_old_one
//! weakened: states_early what_is_stated_is_so
//! weakened: goes_on after_a_failure_nothing_is_acknowledged
//! weakened: asks_no_more after_a_failure_nothing_is_acknowledged
//! weakened: wakes_one who_waits_for_a_sync_is_woken
//! weakened: wakes_early who_waits_for_a_sync_is_woken
//! weakened: waits_blindly a_call_is_heard
//! weakened: waits_blindly the_end_is_heard
//! weakened: wakes_first a_call_is_heard
//!
//! Models of what threads that use a store on disk agree upon: every order with few preemptions is tried, of two
//! threads that only write every order there is. Each model is a property that the head of `group.rs` or `work.rs`
//! argues for. Run with `cargo test -p remixdb --release --features loom --lib models`; `LOOM_MAX_PREEMPTIONS` sets the
//! bound for all models. The lines above name what makes which model fail, see `cargo xtask models`.
//!
//! With the feature `loom` the modules have loom's locks and atomics for the standard library's. The device is made
//! small: a file is the numbers of the changes in it, and a sync takes long enough for others to write meanwhile.

use crate::wal::group::{Device, Ended, Group};
use crate::work::{Call, Work};
use forrest_models::model;
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use std::sync::Arc;
use std::time::Duration;

/// What a device has, and what of it is durable.
#[derive(Default)]
struct State {
    /// The changes in each file, and how many of them are durable.
    files: Vec<(Vec<u8>, usize)>,
    /// Calls that succeed before one fails, if one does; and whether a write failed, and a sync.
    good: Option<usize>,
    failed: [bool; 2],
    /// What was seen to be wrong. Whoever sees it holds locks, and must not panic with them.
    wrong: Option<&'static str>,
}

impl State {
    fn expect(&mut self, right: bool, wrong: &'static str) {
        if !right {
            self.wrong = Some(wrong);
        }
    }

    /// How many changes are durable in their order, without a gap.
    fn durable(&self) -> usize {
        let whole = self.files.iter().take_while(|(bytes, durable)| *durable == bytes.len());
        let (whole, count) = whole.fold((0, 0), |(sum, count), (bytes, _)| (sum + bytes.len(), count + 1));
        whole + self.files.get(count).map_or(0, |(_, durable)| *durable)
    }

    fn written(&self) -> usize {
        self.files.iter().map(|(bytes, _)| bytes.len()).sum()
    }

    /// A write begins or, as `kind` 1, a sync. The other kind may be on its way when one fails.
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

/// It orders nothing for who uses it: loom does not see its lock.
#[derive(Default)]
struct Model {
    state: std::sync::Mutex<State>,
    /// What loom sees of the state: that it is looked at and changed, and that others may go on in between.
    steps: AtomicUsize,
}

impl Model {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.steps.fetch_add(1, Ordering::Relaxed);
        self.state.lock().expect("a model that failed goes no further")
    }

    /// Begins a file; its number.
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
            Ok((self.group.device().begin_file(), 0))
        })
    }

    /// Makes a change that is to be written when this returns.
    fn write(&self) -> Result<(), String> {
        let change = self.queue();
        let written = self.group.write(change);
        self.expect(written.is_err() || self.state().written() as u64 >= change, "acknowledged, not written");
        written
    }

    /// Makes a change that is to be durable when this returns.
    fn sync(&self) -> Result<(), String> {
        let change = self.queue();
        let synced = self.group.sync(change);
        self.expect(synced.is_err() || self.state().durable() as u64 >= change, "acknowledged, not durable");
        let counted = self.group.synced();
        let durable = self.state().durable() as u64;
        self.expect(durable >= counted, "counts as synced, not durable");
        synced
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.group.device().state()
    }

    /// Demands that this is so, and that the device saw nothing wrong.
    fn expect(&self, right: bool, what: &str) {
        assert!(right, "{what}");
        let wrong = self.state().wrong;
        assert_eq!(wrong, None);
    }
}

/// Lets threads use a log, each in a way of its own, this thread in the last.
fn together<const N: usize>(preemptions: Option<usize>, good: Option<usize>, ways: [fn(&Log); N]) {
    model(preemptions, move || {
        let log = Log::new(good);
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

/// Whoever is not woken waits for ever, which loom reports.
#[test]
fn who_waits_for_a_sync_is_woken() {
    together(Some(2), None, [sync_all, sync_all, sync_all]);
}

/// One goes on in a new file while others sync.
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

/// What a record states to be synced was.
#[test]
fn what_is_stated_is_so() {
    let twice: fn(&Log) = |log| {
        write(log);
        write(log);
    };
    together(Some(3), None, [sync_all, twice]);
}

/// The n-th call fails: whoever it is for gets an error, and so does everybody later.
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

/// Two call, each after it has made something to do. Who works sees all of it, though it goes back to waiting as soon
/// as it can. In the model no time passes: whoever is not woken waits for ever, which loom reports.
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
            // One who was heard before it woke anybody may wake for nothing.
            assert_ne!(work.next(Duration::MAX), Call::Close);
        }
        callers.into_iter().for_each(|caller| caller.join().unwrap());
    });
}

/// Who works hears that the store is closed, whatever else was called.
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
