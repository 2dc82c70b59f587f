//! [`Group`]: the group commit of the log. It decides which thread writes, which one syncs, and which ones
//! find their changes done. The files are below it, so that the models (models.rs) run exactly this code.
//!
//! Changes are queued in their order. A thread that wants more than that commits. The first one takes the
//! turn and writes everything queued as one record. Threads that come meanwhile wait for the turn, and then
//! find their changes written. Syncs have their own turn, so that changes are queued while the device works:
//! its holder writes for all threads that wait for it, and syncs. A sync takes long, and many threads wait
//! for it. They are woken together when it ends, so that those that are done go on at once and queue more
//! before the next sync begins.
//!
//! Invariants, and the code that they rest on:
//!
//! - *Each change is written once, in the order of the queue.* One thread at a time takes the queue and
//!   writes it.
//! - *A change that counts as written is in a file, and one that counts as synced is on the device.* The
//!   number is stored after the write, and taken from the queue together with its bytes. A sync vouches for
//!   what counted as written before it began, not for later writes.
//! - *A change is synced only after all files before its own.* A new file is among `files` before a change in it
//!   counts as written. A syncing thread loads the number first and the files after that, and goes through
//!   them from the oldest on. Only [`sync_begin`](Group::sync_begin) syncs the newest file alone. It vouches for
//!   its first bytes, and for no change.
//! - *After a failure nothing more is acknowledged.* The failure is stored before the turn is released, and
//!   checked after the turn is taken.
//! - *No thread waits forever.* A thread that waits for the turn to sync checks, under the lock under which
//!   the turn ends, whether it has ended. All waiting threads are woken, because one that is done by then
//!   takes no turn and wakes nobody.

use crate::sync::{AtomicU64, Condvar, Mutex, Ordering, lock, weakened};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};

/// The files that records are appended to.
pub(crate) trait Device {
    type File;
    type Error: ToString;

    /// Begins a record in an empty buffer, for an offset in the file of the queue. `synced` is the synced
    /// offset of that file, if the record is to state it.
    fn begin(&self, record: &mut Vec<u8>, offset: u64, synced: Option<u64>);

    /// Completes a record and writes all of it.
    fn write(&self, file: &Self::File, record: &mut Vec<u8>, offset: u64) -> Result<(), Self::Error>;

    /// Returns when everything written to a file before is durable.
    fn sync(&self, file: &Self::File) -> Result<(), Self::Error>;

    /// The error of every call after a failure; `why` is the failure's message.
    fn stopped(&self, why: &str) -> Self::Error;
}

/// Changes on their way to the device.
pub(crate) struct Group<V: Device> {
    device: V,
    /// More queued bytes than this are written even if no thread waits for them.
    most: usize,
    queue: Mutex<Queue<V::File>>,
    /// The turn to write, with the file that takes the writes.
    writing: Mutex<Writing<V::File>>,
    /// Whether a thread has the turn to sync, and the signal that the turn has ended.
    syncing: Mutex<bool>,
    ended: Condvar,
    /// The files that a sync must cover, in order; the last one takes the writes.
    files: Mutex<Vec<Arc<Open<V::File>>>>,
    /// The sequence number up to which changes are written, or synced.
    written: AtomicU64,
    synced: AtomicU64,
    /// Whether there was a failure after which nothing more is accepted, and which.
    is_stopped: AtomicBool,
    why: RwLock<String>,
}

/// Changes that are not written yet: the beginning of a record.
struct Queue<F> {
    bytes: Vec<u8>,
    /// The offset of the record in its file.
    offset: u64,
    /// The sequence number of the last change.
    last: u64,
    /// The synced offset that the log has stated last.
    stated: u64,
    file: Arc<Open<F>>,
}

/// What the thread has that writes.
struct Writing<F> {
    open: Arc<Open<F>>,
    /// The buffer for new changes while those of before are being written.
    spare: Vec<u8>,
}

/// A file.
struct Open<F> {
    file: F,
    /// Bytes written, and bytes known to be synced.
    written: AtomicU64,
    synced: AtomicU64,
}

impl<F> Open<F> {
    /// A file with `written` bytes, of which the first `synced` are durable.
    fn new(file: F, written: u64, synced: u64) -> Arc<Open<F>> {
        Arc::new(Open { file, written: AtomicU64::new(written), synced: AtomicU64::new(synced) })
    }
}

/// The turn to sync, which ends when this is dropped.
struct Turn<'g> {
    taken: &'g Mutex<bool>,
    ended: &'g Condvar,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if weakened!("wakes_early") {
            self.ended.notify_all();
        }
        *lock(self.taken) = false;
        if weakened!("wakes_one") {
            self.ended.notify_one();
        } else if !weakened!("wakes_early") {
            self.ended.notify_all();
        }
    }
}

/// The state of a file when the next one is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Bytes written to it, and bytes known to be synced.
    pub(crate) written: u64,
    pub(crate) synced: u64,
    /// The sequence number of the last change in it.
    pub(crate) last: u64,
}

impl<V: Device> Group<V> {
    /// Goes on after change `last`, with a file of `bytes` durable bytes. More than `most` queued bytes are
    /// written without a commit.
    pub(crate) fn new(device: V, file: V::File, bytes: u64, last: u64, most: usize) -> Group<V> {
        Group::with(device, Open::new(file, bytes, bytes), last, most)
    }

    /// Goes on in a file of `bytes` bytes that exists, as [`resume`](Group::resume) does.
    pub(crate) fn resuming(device: V, file: V::File, bytes: u64, most: usize) -> Group<V> {
        Group::with(device, Open::new(file, bytes, 0), 0, most)
    }

    fn with(device: V, open: Arc<Open<V::File>>, last: u64, most: usize) -> Group<V> {
        let bytes = open.written.load(Ordering::Relaxed);
        let queue = Queue { bytes: Vec::new(), offset: bytes, last, stated: 0, file: open.clone() };
        Group {
            device,
            most,
            queue: Mutex::new(queue),
            writing: Mutex::new(Writing { open: open.clone(), spare: Vec::new() }),
            syncing: Mutex::new(false),
            ended: Condvar::new(),
            files: Mutex::new(vec![open]),
            written: AtomicU64::new(last),
            synced: AtomicU64::new(last),
            is_stopped: AtomicBool::new(false),
            why: RwLock::default(),
        }
    }

    /// Goes on in a file of `bytes` bytes that exists, of which nothing is known to be synced. Nothing was queued yet,
    /// and nothing is before the next [`rotate`](Group::rotate).
    pub(crate) fn resume(&self, file: V::File, bytes: u64) {
        let open = Open::new(file, bytes, 0);
        let mut files = lock(&self.files);
        files.push(open.clone());
        lock(&self.queue).file = open.clone();
        lock(&self.writing).open = open;
    }

    /// The resumed file ends after `bytes` bytes, with change `last`.
    pub(crate) fn resumed(&self, bytes: u64, last: u64) {
        let mut queue = lock(&self.queue);
        (queue.offset, queue.last) = (bytes, last);
        queue.file.written.store(bytes, Ordering::Relaxed);
        // If the file was synced meanwhile, all of it was.
        let synced = queue.file.synced.load(Ordering::Relaxed);
        queue.file.synced.store(synced.min(bytes), Ordering::Relaxed);
        self.written.store(last, Ordering::Release);
    }

    /// Syncs all files, whatever was asked for so far.
    pub(crate) fn settle(&self) -> Result<(), V::Error> {
        let _turn = if weakened!("settles_beside") { None } else { self.turn_to_sync(u64::MAX) };
        if !weakened!("settles_on") {
            self.check()?;
        }
        let files = lock(&self.files).clone();
        let first = if weakened!("settles_last") { files.len() - 1 } else { 0 };
        files[first..].iter().try_for_each(|open| self.sync_file(open))
    }

    /// The changes up to this one are synced: they counted as written before [`settle`](Group::settle) began, which has
    /// returned.
    pub(crate) fn vouch(&self, last: u64) {
        self.synced.fetch_max(last, Ordering::Release);
    }

    /// An error if nothing more is accepted.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), V::Error> {
        // ORDERING: the turns order it with the writes and syncs. Acquire pairs with the Release in `stop`.
        match self.is_stopped.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(self.device.stopped(&self.why.read().unwrap_or_else(PoisonError::into_inner))),
        }
    }

    /// Stops after an error that leaves the content of the device unknown.
    pub(crate) fn stop(&self, error: V::Error) -> V::Error {
        if !weakened!("goes_on") {
            // If it is stopped already, the first failure stays the reported one.
            let mut why = self.why.write().unwrap_or_else(PoisonError::into_inner);
            if !self.is_stopped.load(Ordering::Relaxed) {
                *why = error.to_string();
                self.is_stopped.store(true, Ordering::Release);
            }
        }
        error
    }

    /// Queues changes that `put` appends, `count` of them. The caller ensures that no other thread queues
    /// meanwhile.
    #[inline]
    pub(crate) fn queue(&self, count: u64, put: impl FnOnce(&mut Vec<u8>)) {
        self.queue_placed(count, |out, _, _| put(out));
    }

    /// The same; `put` also gets the file that the changes go to, and the offset there of the first byte of the buffer.
    #[inline]
    pub(crate) fn queue_placed(&self, count: u64, put: impl FnOnce(&mut Vec<u8>, &V::File, u64)) {
        let mut queue = lock(&self.queue);
        let Queue { bytes, offset, stated, file, .. } = &mut *queue;
        if bytes.is_empty() {
            let synced = file.synced.load(Ordering::Relaxed);
            // Each record states it as long as nothing is synced.
            let states = synced > *stated || synced == 0;
            self.device.begin(bytes, *offset, states.then_some(synced));
            *stated = synced;
        }
        put(bytes, &file.file, *offset);
        queue.last += count;
    }

    pub(crate) fn device(&self) -> &V {
        &self.device
    }

    /// Passes the file of the queue to `look`, and the offset where the next change goes.
    pub(crate) fn at_end<R>(&self, look: impl FnOnce(&V::File, u64) -> R) -> R {
        let (open, end) = {
            let queue = lock(&self.queue);
            (queue.file.clone(), queue.offset + queue.bytes.len() as u64)
        };
        look(&open.file, end)
    }

    /// Passes the file of the queue to `look`, an offset beyond everything that was ever written to it or tried, and
    /// its length that is known to be synced.
    pub(crate) fn beyond<R>(&self, look: impl FnOnce(&V::File, u64, u64) -> R) -> R {
        let queue = lock(&self.queue);
        let end = queue.offset + queue.bytes.len() as u64 + 1;
        look(&queue.file.file, end, queue.file.synced.load(Ordering::Relaxed))
    }

    /// Goes on in a file of `bytes` durable bytes after a failure. Everything that was queued is durable elsewhere, so
    /// it counts as synced. The caller ensures that no other thread queues.
    pub(crate) fn restart(&self, file: V::File, bytes: u64) {
        // Threads that sync or write the files from before have failed by then, or find their changes synced.
        let _turn = self.turn_to_sync(u64::MAX);
        let mut writing = lock(&self.writing);
        let open = Open::new(file, bytes, bytes);
        *lock(&self.files) = vec![open.clone()];
        let mut queue = lock(&self.queue);
        queue.bytes.clear();
        (queue.offset, queue.stated) = (bytes, 0);
        queue.file = open.clone();
        writing.open = open;
        self.written.store(queue.last, Ordering::Release);
        self.synced.store(queue.last, Ordering::Release);
        self.is_stopped.store(false, Ordering::Release);
    }

    /// Writes a record without changes that states what is synced, if that is more than `known` bytes, no record has
    /// stated it, and no change waits, with which it would be stated. The caller ensures that no other thread queues.
    pub(crate) fn state_synced(&self, known: u64) -> Result<(), V::Error> {
        let mut writing = lock(&self.writing);
        self.check()?;
        {
            let mut queue = lock(&self.queue);
            let Queue { bytes, offset, stated, file, .. } = &mut *queue;
            let synced = file.synced.load(Ordering::Relaxed);
            if !bytes.is_empty() || synced <= (*stated).max(known) {
                return Ok(());
            }
            self.device.begin(bytes, *offset, Some(synced));
            *stated = synced;
        }
        self.write_queue(&mut writing).map_err(|error| self.stop(error))
    }

    /// Whether [`state_synced`](Group::state_synced) would write a record.
    pub(crate) fn has_unstated(&self, known: u64) -> bool {
        let queue = lock(&self.queue);
        queue.bytes.is_empty() && queue.file.synced.load(Ordering::Relaxed) > queue.stated.max(known)
    }

    /// Whether more bytes are queued than may wait.
    pub(crate) fn is_much(&self) -> bool {
        lock(&self.queue).bytes.len() >= self.most
    }

    /// How many bytes wait to be written.
    #[cfg(test)]
    pub(crate) fn queued_bytes(&self) -> usize {
        lock(&self.queue).bytes.len()
    }

    /// Whether changes wait to be written.
    pub(crate) fn is_queued(&self) -> bool {
        !lock(&self.queue).bytes.is_empty()
    }

    /// The sequence number of the last change that was queued.
    pub(crate) fn last(&self) -> u64 {
        lock(&self.queue).last
    }

    /// Returns when the changes up to `last` are written. If they are not yet, writes everything queued.
    pub(crate) fn write(&self, last: u64) -> Result<(), V::Error> {
        // ORDERING: Acquire pairs with the Release in `write_queue`, for a caller that then syncs.
        if self.written.load(Ordering::Acquire) >= last {
            return Ok(());
        }
        let mut writing = lock(&self.writing);
        if self.written.load(Ordering::Acquire) >= last {
            return Ok(());
        }
        self.check()?;
        self.write_queue(&mut writing).map_err(|error| self.stop(error))
    }

    /// Writes the queue as one record. The caller has the turn.
    fn write_queue(&self, writing: &mut Writing<V::File>) -> Result<(), V::Error> {
        let (mut bytes, offset, mut last) = {
            let mut queue = lock(&self.queue);
            if queue.bytes.is_empty() {
                return Ok(());
            }
            let bytes = std::mem::replace(&mut queue.bytes, std::mem::take(&mut writing.spare));
            let offset = queue.offset;
            queue.offset += bytes.len() as u64;
            (bytes, offset, queue.last)
        };
        if weakened!("counts_late") {
            last = self.last();
        }
        if weakened!("counts_early") {
            self.written.store(last, Ordering::Release);
        }
        self.device.write(&writing.open.file, &mut bytes, offset)?;
        writing.open.written.store(offset + bytes.len() as u64, Ordering::Relaxed);
        // ORDERING: Release: a thread that sees the number sees the length of the file, and the file among
        // `files`.
        let order = weakened!("written", Release);
        self.written.store(last, order);
        bytes.clear();
        if bytes.capacity() <= 4 * self.most {
            writing.spare = bytes;
        }
        Ok(())
    }

    /// Returns when the changes up to `last` are written and synced. The holder of the turn writes for all
    /// threads that wait: one record for each sync, and no thread needs another turn to learn that its change
    /// is done.
    pub(crate) fn sync(&self, last: u64) -> Result<(), V::Error> {
        if self.synced.load(Ordering::Acquire) >= last {
            return Ok(());
        }
        let Some(_turn) = self.turn_to_sync(last) else { return Ok(()) };
        self.write(last)?;
        if !weakened!("asks_no_more") {
            self.check()?;
        }
        // In this order: by then, the file of each change that counts as written is among `files`.
        let mut written = self.written.load(Ordering::Acquire);
        let files = lock(&self.files).clone();
        if weakened!("files_first") {
            written = self.written.load(Ordering::Acquire);
        }
        let newest_first = weakened!("newest_first");
        for at in 0..files.len() {
            let open = &files[if newest_first { files.len() - 1 - at } else { at }];
            self.sync_file(open)?;
        }
        lock(&self.files).drain(..files.len() - 1);
        if weakened!("vouches_late") {
            written = self.written.load(Ordering::Acquire);
        }
        // ORDERING: Release pairs with the Acquire above: a thread that sees the number continues after the
        // sync.
        self.synced.store(written, Ordering::Release);
        Ok(())
    }

    /// Waits for the turn to sync; `None` if the changes up to `last` are synced before it comes.
    fn turn_to_sync(&self, last: u64) -> Option<Turn<'_>> {
        let mut taken = lock(&self.syncing);
        while self.synced.load(Ordering::Acquire) < last {
            if !*taken {
                *taken = true;
                return Some(Turn { taken: &self.syncing, ended: &self.ended });
            }
            taken = self.ended.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Drops the files that are not `needed`, because their content is durable elsewhere. The file that takes
    /// the writes stays.
    pub(crate) fn forget(&self, needed: impl Fn(&V::File) -> bool) {
        // A syncing thread goes through the files as they were when it began.
        let _turn = self.turn_to_sync(u64::MAX);
        let mut files = lock(&self.files);
        let newest = files.pop();
        files.retain(|open| needed(&open.file));
        files.extend(newest);
    }

    /// The sequence number up to which changes count as written.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// The sequence number up to which changes count as synced.
    pub(crate) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Number of files that are kept to be synced.
    #[cfg(test)]
    pub(crate) fn files(&self) -> usize {
        lock(&self.files).len()
    }

    /// Syncs the written part of a file. The caller has the turn.
    fn sync_file(&self, open: &Open<V::File>) -> Result<(), V::Error> {
        let length = open.written.load(Ordering::Relaxed);
        if open.synced.load(Ordering::Relaxed) >= length {
            return Ok(());
        }
        if weakened!("states_early") {
            open.synced.store(length, Ordering::Relaxed);
        }
        // DURABILITY: in the order of the logs, so that no log is durable while an older one is not.
        self.device.sync(&open.file).map_err(|error| self.stop(error))?;
        open.synced.store(length, Ordering::Relaxed);
        Ok(())
    }

    /// Makes the first `bytes` bytes of the newest file durable. It does not vouch for the files before it.
    pub(crate) fn sync_begin(&self, bytes: u64) -> Result<(), V::Error> {
        let open = lock(&self.queue).file.clone();
        // ORDERING: a caller who finds it only needs what was on the device before.
        let is_synced = || open.synced.load(Ordering::Acquire) >= bytes;
        if is_synced() {
            return Ok(());
        }
        // Another thread that syncs must not miss a failure.
        let _turn = self.turn_to_sync(u64::MAX);
        self.check()?;
        if !is_synced() {
            self.device.sync(&open.file).map_err(|error| self.stop(error))?;
            open.synced.fetch_max(bytes, Ordering::Release);
        }
        Ok(())
    }

    /// Whether the first byte of each file that `which` chooses is known to be durable. A file that is no longer kept
    /// counts as durable.
    pub(crate) fn is_begun(&self, which: impl Fn(&V::File) -> bool) -> bool {
        let files = lock(&self.files);
        files.iter().filter(|open| which(&open.file)).all(|open| open.synced.load(Ordering::Acquire) > 0)
    }

    /// How many bytes of a file that is kept are known to be durable.
    pub(crate) fn synced_bytes(&self, which: impl Fn(&V::File) -> bool) -> u64 {
        let files = lock(&self.files);
        let open = files.iter().find(|open| which(&open.file));
        open.map_or(0, |open| open.synced.load(Ordering::Acquire))
    }

    /// Goes on in a new file, which `make` returns with the number of its bytes, and of those that are durable. The
    /// caller ensures that no other thread queues. Queued changes go to the old file.
    pub(crate) fn rotate(
        &self,
        make: impl FnOnce(&V::File, Ended) -> Result<(V::File, u64, u64), V::Error>,
    ) -> Result<(), V::Error> {
        let mut writing = lock(&self.writing);
        self.check()?;
        let rotated = (|| {
            self.write_queue(&mut writing)?;
            let Writing { open, .. } = &*writing;
            let (written, synced) =
                (open.written.load(Ordering::Relaxed), open.synced.load(Ordering::Relaxed));
            let (file, bytes, durable) = make(&open.file, Ended { written, synced, last: self.last() })?;
            Ok(Open::new(file, bytes, durable))
        })();
        let open = rotated.map_err(|error| self.stop(error))?;
        {
            let mut queue = lock(&self.queue);
            (queue.offset, queue.stated) = (open.written.load(Ordering::Relaxed), 0);
            queue.file = open.clone();
        }
        lock(&self.files).push(open.clone());
        writing.open = open;
        Ok(())
    }
}
