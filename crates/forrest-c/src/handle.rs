//! Handles: numbers in a pointer's type, which C holds in place of the library's objects. A handle has a
//! generation, a slot and a kind, and every call looks it up in a [`Table`]. So the library detects a handle
//! that was closed, was never returned, is of another kind or comes from before a fork, without touching the
//! object. No number is used twice.
//!
//! A table's slots never move and are never freed. A slot has one lock, or several ([`LANES`]), each with the
//! object in it. A call holds the lock while it uses the object, shared or exclusively, and closing a handle
//! waits for the calls that are using it. An object that many threads use at once is in the slot once for
//! each lane. A thread uses the lane of its own number, so that threads in the same store write to different
//! cache lines.
//!
//! In a child of `fork` the threads of the parent do not exist, and their locks stay locked for ever. So the
//! child touches no slot that was used before: it refuses all slots below `floor`. The lists of free slots
//! are locked during the fork, and are empty in the child.
//!
//! docs/decisions/0006-handles-of-the-c-library.md has the cost for each call, and the alternatives.

use crate::failure::Failure;
use forrest_base::lock;
use forrest_rust::ErrorKind;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{
    Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};

/// Number of lanes of an object that many threads use at once. With more threads, some share a lane.
pub(crate) const LANES: usize = 32;
/// Number of lists of free slots.
const LISTS: usize = 16;

// The fields of a handle, from the low bits: the kind, the slot's number, the slot's generation.
const KIND_BITS: u32 = 4;
const INDEX_BITS: u32 = 24;
const GENERATION_BITS: u32 = 64 - KIND_BITS - INDEX_BITS;
/// The top bit of a handle is set, so no address of a program and no small number is a handle.
const FIRST_GENERATION: u64 = 1 << (GENERATION_BITS - 1);
const _: () = assert!(usize::BITS == 64, "a handle is as wide as a pointer");

/// Number of slots in the first segment of a table. The second has as many, and each further one twice as
/// many as the one before.
const FIRST_SLOTS: usize = 8;
const SEGMENTS: usize = (INDEX_BITS - FIRST_SLOTS.ilog2() + 1) as usize;

/// All handles of one kind.
pub(crate) struct Table<T, const N: usize> {
    what: &'static str,
    kind: usize,
    /// Number of slots that were ever used.
    used: AtomicUsize,
    /// Number of slots that were used before the last fork of which this process is the child.
    floor: AtomicUsize,
    free: [Mutex<Vec<usize>>; LISTS],
    segments: [OnceLock<Box<[Slot<T, N>]>>; SEGMENTS],
    /// Whether the table is in [`TABLES`].
    known: AtomicBool,
}

type Slot<T, const N: usize> = [Lane<T>; N];

/// Aligned, so that each lane has its own cache line.
#[repr(align(64))]
struct Lane<T>(RwLock<Held<T>>);

struct Held<T> {
    /// Counts the objects that were in this slot. It equals the generation of the handle whose object is
    /// here.
    generation: u64,
    object: Option<T>,
}

/// An object that other calls may use at the same time.
pub(crate) struct Shared<T: 'static>(RwLockReadGuard<'static, Held<T>>);

/// An object that no other call uses at the same time.
pub(crate) struct Exclusive<T: 'static>(RwLockWriteGuard<'static, Held<T>>);

impl<T: Send + Sync, const N: usize> Table<T, N> {
    /// A table. Messages call its objects `what`. Each table has its own `kind`, from 1 to 15.
    pub(crate) const fn new(what: &'static str, kind: usize) -> Table<T, N> {
        assert!(kind > 0 && kind < 1 << KIND_BITS, "a kind is from 1 to 15");
        Table {
            what,
            kind,
            used: AtomicUsize::new(0),
            floor: AtomicUsize::new(0),
            free: [const { Mutex::new(Vec::new()) }; LISTS],
            segments: [const { OnceLock::new() }; SEGMENTS],
            known: AtomicBool::new(false),
        }
    }

    /// What messages call its objects.
    pub(crate) fn what(&self) -> &'static str {
        self.what
    }

    /// Stores an object, passed once for each lane, and makes a handle to it.
    pub(crate) fn insert(&'static self, objects: [T; N]) -> Result<*mut T, Failure> {
        if !self.known.load(Ordering::Acquire) {
            at_forks(self);
        }
        let index = self.take_slot()?;
        let mut generation = 0;
        for (lane, object) in self.slot(index).iter().zip(objects) {
            let mut held = lane.write();
            held.object = Some(object);
            generation = held.generation;
        }
        let number = (generation << INDEX_BITS | index as u64) << KIND_BITS | self.kind as u64;
        Ok(ptr::without_provenance_mut(number as usize))
    }

    /// The object of a handle, for shared use. Waits for a call that uses it exclusively.
    pub(crate) fn shared(&'static self, handle: *const T) -> Result<Shared<T>, Failure> {
        let (index, generation) = self.parse(handle)?;
        let held = self.slot(index)[thread_number() % N].read();
        if !held.is(generation) {
            return Err(self.gone());
        }
        Ok(Shared(held))
    }

    /// The object of a handle, for exclusive use. `FORREST_BUSY` if another thread uses it.
    pub(crate) fn exclusive(&'static self, handle: *const T) -> Result<Exclusive<T>, Failure> {
        const { assert!(N == 1, "an object in many lanes cannot be used exclusively") };
        let (index, generation) = self.parse(handle)?;
        let held = match self.slot(index)[0].0.try_write() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let message = format!("another thread is using the {}", self.what);
                return Err(Failure::new(ErrorKind::Busy, message));
            }
        };
        if !held.is(generation) {
            return Err(self.gone());
        }
        Ok(Exclusive(held))
    }

    /// Waits for the calls that use an object, and removes it. The handle becomes invalid. Null is ignored.
    pub(crate) fn remove(&'static self, handle: *const T) -> Result<(), Failure> {
        if handle.is_null() {
            return Ok(());
        }
        let (index, generation) = self.parse(handle)?;
        for lane in self.slot(index) {
            let mut held = lane.write();
            // If two threads close the handle at once, the first lane decides which one succeeds.
            if !held.is(generation) {
                return Err(self.gone());
            }
            held.generation += 1;
            let object = held.object.take();
            drop(held);
            drop(object);
        }
        if generation + 1 < 1 << GENERATION_BITS {
            lock(&self.free[thread_number() % LISTS]).push(index);
        }
        Ok(())
    }

    /// A free slot: from this thread's list, or from another list, which is taken over whole, or a new one.
    fn take_slot(&'static self) -> Result<usize, Failure> {
        let own = thread_number() % LISTS;
        // Held until the segment exists, so that no fork happens in between.
        let mut list = lock(&self.free[own]);
        if list.is_empty() {
            let mut others = self.free.iter().filter_map(|other| other.try_lock().ok());
            if let Some(mut other) = others.find(|other| !other.is_empty()) {
                std::mem::swap(&mut *list, &mut *other);
            }
        }
        if let Some(index) = list.pop() {
            return Ok(index);
        }
        let index = self.used.fetch_add(1, Ordering::Relaxed);
        if index >= 1 << INDEX_BITS {
            self.used.fetch_sub(1, Ordering::Relaxed);
            let message = format!("no {} handle left; at most {} may be open", self.what, 1 << INDEX_BITS);
            return Err(Failure::new(ErrorKind::Limit, message));
        }
        let (segment, _) = place(index);
        self.segments[segment].get_or_init(|| {
            let lane = || Lane(RwLock::new(Held { generation: FIRST_GENERATION, object: None }));
            (0..FIRST_SLOTS << segment.saturating_sub(1)).map(|_| std::array::from_fn(|_| lane())).collect()
        });
        Ok(index)
    }

    /// The slot and the generation of a handle. INVARIANT: the slot exists.
    fn parse(&self, handle: *const T) -> Result<(usize, u64), Failure> {
        let number = handle.addr();
        let index = number >> KIND_BITS & ((1 << INDEX_BITS) - 1);
        let here = self.segments[place(index).0].get().is_some();
        if number == 0 || number % (1 << KIND_BITS) != self.kind || !here {
            return Err(self.stranger(number));
        }
        if index < self.floor.load(Ordering::Relaxed) {
            return Err(self.inherited());
        }
        Ok((index, (number >> (KIND_BITS + INDEX_BITS)) as u64))
    }

    fn slot(&'static self, index: usize) -> &'static Slot<T, N> {
        let (segment, at) = place(index);
        &self.segments[segment].get().expect("the slot exists")[at]
    }

    #[cold]
    fn stranger(&self, number: usize) -> Failure {
        let what = self.what;
        Failure::invalid(match number {
            0 => format!("the {what} is null"),
            _ => format!("{number:#x} is not a {what} handle"),
        })
    }

    #[cold]
    fn inherited(&self) -> Failure {
        let what = self.what;
        Failure::invalid(format!(
            "the {what} handle belongs to the process that forked this one; open the store again"
        ))
    }

    #[cold]
    fn gone(&self) -> Failure {
        Failure::invalid(format!("the {} handle is closed", self.what))
    }
}

/// The segment of a slot, and its index there.
fn place(index: usize) -> (usize, usize) {
    match (index / FIRST_SLOTS).checked_ilog2() {
        None => (0, index),
        Some(doublings) => (doublings as usize + 1, index - (FIRST_SLOTS << doublings)),
    }
}

impl<T> Lane<T> {
    /// Ignores poisoning: a call that panicked has returned an error, and its object may still be used, see
    /// `guard`.
    fn read(&self) -> RwLockReadGuard<'_, Held<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Held<T>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Held<T> {
    fn is(&self, generation: u64) -> bool {
        self.generation == generation && self.object.is_some()
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.object.as_ref().expect("it was there when it was locked")
    }
}

impl<T> Deref for Exclusive<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.object.as_ref().expect("it was there when it was locked")
    }
}

impl<T> DerefMut for Exclusive<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.object.as_mut().expect("it was there when it was locked")
    }
}

impl<T, const N: usize> fmt::Debug for Table<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("what", &self.what).finish_non_exhaustive()
    }
}

/// The number of this thread, from 0, in the order of their first calls.
fn thread_number() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    let number = NUMBER.get();
    if number != usize::MAX {
        return number;
    }
    let number = THREADS.fetch_add(1, Ordering::Relaxed);
    NUMBER.set(number);
    number
}

/// A table's part in the handlers of `fork`.
trait Forked: Sync {
    fn known(&self) -> &AtomicBool;
    fn lists(&'static self) -> &'static [Mutex<Vec<usize>>];
    fn forget(&self);
}

impl<T: Send + Sync, const N: usize> Forked for Table<T, N> {
    fn known(&self) -> &AtomicBool {
        &self.known
    }

    fn lists(&'static self) -> &'static [Mutex<Vec<usize>>] {
        &self.free
    }

    fn forget(&self) {
        self.floor.store(self.used.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

type Lists = Vec<MutexGuard<'static, Vec<usize>>>;
type Tables = MutexGuard<'static, Vec<&'static dyn Forked>>;

/// The tables that have handles.
static TABLES: Mutex<Vec<&'static dyn Forked>> = Mutex::new(Vec::new());

thread_local! {
    /// The locks that the forking thread holds during a fork, in the parent and in the child.
    static FORKING: RefCell<Option<(Tables, Lists)>> = const { RefCell::new(None) };
}

/// Registers a table, so that a child of this process forgets its handles.
#[cold]
fn at_forks(table: &'static dyn Forked) {
    let mut tables = lock(&TABLES);
    if tables.is_empty() {
        // SAFETY: the three functions live as long as this library, and the C library removes the handlers
        // when it is unloaded. The call only fails if memory runs out.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork_in_child)) };
    }
    if !table.known().swap(true, Ordering::AcqRel) {
        tables.push(table);
    }
}

extern "C" fn before_fork() {
    let tables = lock(&TABLES);
    let lists = tables.iter().flat_map(|table| table.lists()).map(lock).collect();
    // In a thread that is ending, the thread-local no longer exists. Then the locks are released at once.
    let _held = FORKING.try_with(|forking| forking.replace(Some((tables, lists))));
}

extern "C" fn after_fork() {
    let _held = FORKING.try_with(RefCell::take);
}

extern "C" fn after_fork_in_child() {
    if let Ok(Some((tables, mut lists))) = FORKING.try_with(RefCell::take) {
        lists.iter_mut().for_each(|list| list.clear());
        tables.iter().for_each(|table| table.forget());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{FORREST_BUSY, FORREST_INVALID_ARGUMENT};
    use std::collections::HashSet;
    use std::sync::Arc;

    fn code<T>(result: Result<T, Failure>) -> i32 {
        result.map_or_else(|failure| failure.code, |_| 0)
    }

    #[test]
    fn no_handle_is_given_out_twice_and_what_is_gone_is_refused() {
        static TABLE: Table<u32, 1> = Table::new("number", 3);
        let mut all = HashSet::new();
        let mut held = Vec::new();
        for round in 0..2000_u32 {
            let handle = TABLE.insert([round]).expect("there is room");
            assert!(all.insert(handle), "{handle:?} was given out before");
            held.push((handle, round));
            if round % 3 == 0 {
                let (handle, number) = held.swap_remove(round as usize / 3 % held.len());
                assert_eq!(*TABLE.shared(handle).expect("it is there"), number);
                assert_eq!(code(TABLE.remove(handle)), 0);
            }
        }
        for handle in all {
            let there = held.iter().find(|(there, _)| *there == handle);
            assert_eq!(TABLE.shared(handle).ok().map(|number| *number), there.map(|(_, number)| *number));
            assert_eq!(
                code(TABLE.remove(handle)),
                if there.is_some() { 0 } else { FORREST_INVALID_ARGUMENT }
            );
            assert_eq!(code(TABLE.exclusive(handle)), FORREST_INVALID_ARGUMENT);
        }
    }

    #[test]
    fn what_is_no_handle_is_refused() {
        static TABLE: Table<u32, 1> = Table::new("number", 3);
        static OTHER: Table<u32, 1> = Table::new("other", 4);
        let (own, other) = (TABLE.insert([1]).expect("room"), OTHER.insert([2]).expect("room"));
        assert_eq!(code(TABLE.remove(ptr::null())), 0);
        for bits in 0..64 {
            let near = ptr::without_provenance(own.addr() ^ 1 << bits);
            assert_eq!(code(TABLE.shared(near)), FORREST_INVALID_ARGUMENT, "{near:?}");
            assert_eq!(code(TABLE.remove(near)), FORREST_INVALID_ARGUMENT, "{near:?}");
        }
        let somewhere = 7_u32;
        for none in [ptr::null(), other.cast_const(), &raw const somewhere, ptr::dangling()] {
            assert_eq!(code(TABLE.shared(none)), FORREST_INVALID_ARGUMENT, "{none:?}");
        }
        assert_eq!(*TABLE.shared(own).expect("it is there"), 1);
    }

    #[test]
    fn slots_are_in_order() {
        let mut before = None;
        for index in 0..5000 {
            let (segment, at) = place(index);
            let expected = match before {
                None => (0, 0),
                Some((segment, at)) if at + 1 < FIRST_SLOTS << usize::saturating_sub(segment, 1) => {
                    (segment, at + 1)
                }
                Some((segment, _)) => (segment + 1, 0),
            };
            assert_eq!((segment, at), expected, "{index}");
            before = Some((segment, at));
        }
        assert!(place((1 << INDEX_BITS) - 1).0 < SEGMENTS);
    }

    #[test]
    fn one_of_many_gives_back_and_what_it_is_goes_when_nobody_is_in_it() {
        static TABLE: Table<Arc<()>, LANES> = Table::new("thing", 5);
        for _ in 0..200 {
            let thing = Arc::new(());
            let handle =
                TABLE.insert(std::array::from_fn(|_| thing.clone())).expect("room").expose_provenance();
            let removed = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let handle = ptr::without_provenance(handle);
                        while let Ok(found) = TABLE.shared(handle) {
                            assert!(Arc::ptr_eq(&found, &thing));
                            drop(found);
                            if TABLE.remove(handle).is_ok() {
                                removed.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    });
                }
            });
            assert_eq!(removed.into_inner(), 1);
            assert_eq!(Arc::strong_count(&thing), 1);
        }
    }

    #[test]
    fn one_thread_at_a_time_has_it_alone() {
        static TABLE: Table<u32, 1> = Table::new("number", 6);
        let handle = TABLE.insert([0]).expect("room");
        let mut number = TABLE.exclusive(handle).expect("nobody has it");
        let other = handle.expose_provenance();
        let busy = std::thread::spawn(move || code(TABLE.exclusive(ptr::without_provenance(other))));
        assert_eq!(busy.join().expect("it ends"), FORREST_BUSY);
        *number += 1;
        drop(number);
        assert_eq!(*TABLE.shared(handle).expect("it is there"), 1);
    }
}
