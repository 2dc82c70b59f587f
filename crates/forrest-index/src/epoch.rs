//! Epochs decide when unlinked memory may be reused. Readers execute no fence.
//!
//! A reader **pins** itself for the length of one call: it stores the current epoch in its record, then reads. A writer
//! **seals** unlinked memory into a batch with the current epoch and advances the epoch. The batch may be freed once no
//! record shows a pin of that epoch or an older one.
//!
//! The argument. Let batch *t* be sealed: all its nodes were unlinked, then the epoch went from *t* to
//! *t + 1*, then the sealer ran the heavy barrier, then it read all records (or a thread did both that a lock made see
//! the seal). A reader that could still reach
//! such a node loaded a pointer from before the unlinking, after it stored its record.
//!
//! - If that store came before the heavy barrier, the sealer sees the record. It shows an epoch that was
//!   loaded before; if that were *t + 1* or later, the load (acquire) would have made the unlinking visible
//!   and the reader could not have loaded the old pointer. So it shows at most *t* and the batch waits.
//! - If it came after, the reader's loads, which follow its store in program order across the light barrier,
//!   come after the heavy barrier and see the unlinking.
//!
//! A pin never outlives one call of the index (iterators copy their pairs), so an idle reader, iterator or snapshot
//! never delays reclamation. A thread that the system suspends inside a call delays it for as long.
//!
//! A child made by `fork` has the records of all threads, but only the thread that forked. The pins of the others would
//! last for ever. So the child clears their records before it goes on ([`Registry::forget_others`]). No other thread
//! runs there meanwhile, and a thread that does not exist reads nothing.
//!
//! Source of the idea: epoch-based reclamation (Fraser, 2004) with the asymmetric fence of `membarrier(2)`.

use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, heavy, light, weakened};
use forrest_machine::origin::thread_number;

/// The state of one thread that others read; on separate cache lines.
#[repr(align(128))]
pub(crate) struct Record {
    /// 0 when not pinned, else the epoch seen at the pin.
    epoch: AtomicU64,
    /// Which index the thread is writing to, see [`crate::gate`]; 0 for none.
    pub(crate) writing: AtomicU64,
    /// Pins held by the owner, nested; only the owner touches it.
    depth: AtomicU32,
    /// The number of the thread that has the record, see [`thread_number`]; 0 if it is free.
    owner: AtomicU64,
    /// Position in the registry, to spread threads over shards.
    pub(crate) number: usize,
    next: *const Record,
}

/// All records and the epoch. One for the process (see [`pin`]); the models make their own.
pub(crate) struct Registry {
    head: AtomicPtr<Record>,
    epoch: AtomicU64,
}

// SAFETY: `next` is written before the record is published and never changed, `depth` is only used by the
// owner, and the rest is atomic.
unsafe impl Sync for Record {}
// SAFETY: as above; nothing in a record belongs to a thread by address.
unsafe impl Send for Record {}

impl Registry {
    #[cfg(not(feature = "loom"))]
    pub(crate) const fn new() -> Self {
        Registry { head: AtomicPtr::new(std::ptr::null_mut()), epoch: AtomicU64::new(1) }
    }

    #[cfg(feature = "loom")]
    pub(crate) fn new() -> Self {
        Registry { head: AtomicPtr::new(std::ptr::null_mut()), epoch: AtomicU64::new(1) }
    }

    /// All records that were ever made; they are reused, never freed.
    pub(crate) fn records(&self) -> impl Iterator<Item = &'static Record> {
        let mut at: *const Record = self.head.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            // SAFETY: records are leaked, so a pointer to one is valid for ever.
            let record = unsafe { at.as_ref() }?;
            at = record.next;
            Some(record)
        })
    }

    /// Number of records: of threads that were there at once, at the most.
    pub(crate) fn len(&self) -> usize {
        // ORDERING: acquire, for the record.
        // SAFETY: records are leaked, so a pointer to one is valid for ever.
        unsafe { self.head.load(Ordering::Acquire).as_ref() }.map_or(0, |record| record.number + 1)
    }

    /// A record for the calling thread: one that a finished thread left, or a new one.
    pub(crate) fn acquire(&self) -> &'static Record {
        let own = thread_number();
        for record in self.records() {
            if record.owner.load(Ordering::Relaxed) == 0
                && record.owner.compare_exchange(0, own, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return record;
            }
        }
        let mut head = self.head.load(Ordering::Acquire);
        let mut record = Box::new(Record {
            epoch: AtomicU64::new(0),
            writing: AtomicU64::new(0),
            depth: AtomicU32::new(0),
            owner: AtomicU64::new(own),
            number: 0,
            next: std::ptr::null(),
        });
        loop {
            record.next = head;
            // SAFETY: records are leaked, so a pointer to one is valid for ever.
            record.number = unsafe { head.as_ref() }.map_or(0, |r| r.number + 1);
            let raw = Box::into_raw(record);
            match self.head.compare_exchange(head, raw, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: `raw` was published and is never freed.
                Ok(_) => return unsafe { &*raw },
                Err(now) => head = now,
            }
            // SAFETY: the exchange failed, so `raw`, which came from a box, was never published.
            record = unsafe { Box::from_raw(raw) };
        }
    }

    /// Pins a record (nesting counts).
    #[inline(always)]
    pub(crate) fn enter(&self, record: &Record) {
        let depth = record.depth.load(Ordering::Relaxed);
        record.depth.store(depth + 1, Ordering::Relaxed);
        if depth == 0 {
            // ORDERING: acquire, so that a reader that saw epoch t + 1 sees what was unlinked in t.
            let epoch = self.epoch.load(Ordering::Acquire);
            // ORDERING: release. A thread that reads this store instead of the last `leave` still sees that the last
            // pin's reads are done; a relaxed store would break that release sequence.
            record.epoch.store(epoch, weakened!("repin", Release));
            light();
        }
    }

    /// Ends a pin.
    #[inline(always)]
    pub(crate) fn leave(record: &Record) {
        let depth = record.depth.load(Ordering::Relaxed) - 1;
        record.depth.store(depth, Ordering::Relaxed);
        if depth == 0 {
            // ORDERING: release, so that a thread that sees the record idle sees that our reads are done.
            record.epoch.store(0, weakened!("leave", Release));
        }
    }

    /// Closes the current epoch and returns it. Memory that the caller saw unlinked before may be freed once
    /// [`Registry::oldest_pin`] is later than this epoch.
    pub(crate) fn seal(&self) -> u64 {
        // ORDERING: release pairs with the load in `enter`: a reader that sees the new epoch sees the unlinking.
        self.epoch.fetch_add(1, weakened!("seal", AcqRel))
    }

    /// The oldest epoch that a pin may still be reading; `u64::MAX` if there is no pin.
    pub(crate) fn oldest_pin(&self) -> u64 {
        heavy();
        self.records().map(|r| r.epoch.load(Ordering::Acquire)).filter(|&e| e != 0).min().unwrap_or(u64::MAX)
    }

    /// Gives a record back for another thread to use.
    pub(crate) fn release(record: &Record) {
        record.owner.store(0, Ordering::Release);
    }

    /// Clears the records of all threads but the calling one, and gives them back. To be called in a child made by
    /// `fork`, where those threads do not exist.
    pub(crate) fn forget_others(&self) {
        let own = thread_number();
        for record in self.records().filter(|record| record.owner.load(Ordering::Relaxed) != own) {
            // ORDERING: the process has one thread.
            record.epoch.store(0, Ordering::Relaxed);
            record.writing.store(0, Ordering::Relaxed);
            record.depth.store(0, Ordering::Relaxed);
            record.owner.store(0, Ordering::Relaxed);
        }
    }
}

pub(crate) use process::{Guard, REGISTRY, pin};

mod process {
    use super::{Record, Registry};
    use forrest_machine::origin::in_each_child;
    use std::cell::Cell;
    use std::marker::PhantomData;
    use std::sync::Once;

    /// The registry of the process.
    #[cfg(not(feature = "loom"))]
    pub(crate) static REGISTRY: Registry = Registry::new();
    #[cfg(feature = "loom")]
    pub(crate) static REGISTRY: std::sync::LazyLock<Registry> = std::sync::LazyLock::new(Registry::new);

    struct Local(Cell<Option<&'static Record>>);

    impl Drop for Local {
        fn drop(&mut self) {
            if let Some(record) = self.0.take() {
                Registry::release(record);
            }
        }
    }

    thread_local! {
        static LOCAL: Local = const { Local(Cell::new(None)) };
    }

    /// While it lives, nothing that the thread can reach is freed. Must not outlive one call of the index.
    pub(crate) struct Guard {
        pub(crate) record: &'static Record,
        /// Set where the thread's own record was gone (its thread-local storage is being torn down).
        lent: bool,
        not_send: PhantomData<*const ()>,
    }

    /// Pins the calling thread.
    #[inline(always)]
    pub(crate) fn pin() -> Guard {
        let own = LOCAL.try_with(|local| local.0.get()).ok().flatten();
        let (record, lent) = match own {
            Some(record) => (record, false),
            None => register(),
        };
        REGISTRY.enter(record);
        Guard { record, lent, not_send: PhantomData }
    }

    #[cold]
    #[inline(never)]
    fn register() -> (&'static Record, bool) {
        forrest_machine::barrier::init();
        watch_forks();
        let record = REGISTRY.acquire();
        let kept = LOCAL.try_with(|local| local.0.set(Some(record))).is_ok();
        (record, !kept)
    }

    /// Has each later child clear the records of the threads that it does not have.
    fn watch_forks() {
        extern "C" fn forked() {
            REGISTRY.forget_others();
        }
        static WATCHED: Once = Once::new();
        // SAFETY: `forget_others` stores to atomics and takes no lock.
        WATCHED.call_once(|| unsafe { in_each_child(forked) });
    }

    impl Drop for Guard {
        #[inline(always)]
        fn drop(&mut self) {
            Registry::leave(self.record);
            if self.lent {
                Registry::release(self.record);
            }
        }
    }
}
