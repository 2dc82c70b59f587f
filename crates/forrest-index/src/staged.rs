//! Orders that a batch has prepared: they become visible in all leaves at one instant, with the roots of the batch.
//!
//! A batch appends to a leaf that others see as any writer does, but does not publish the new order. Instead the leaf's
//! word refers to a [`Staged`] with both orders, before and after. All of a batch become *after* at the instant at
//! which the phase of the index ([`crate::roots`]) reaches a number that the batch knew when it began. Later the batch
//! publishes each order itself, and frees the staged ones once no reader can refer to them ([`crate::epoch`]).
//!
//! The argument. A reader loads the word with acquire, so it finds the staged orders and all records of *before*
//! complete. It then loads the phase, with acquire. If the phase has come, the last change of *after* and the records
//! that it lists were written before, so it reads them complete. If not, *before* was the leaf's order when the word
//! was loaded: no other thread writes while a batch runs. A thread that has seen the phase come never sees *before* of
//! any leaf of that batch again: all words were stored before the phase came, so it finds each of them, or an order
//! that was published later.
//!
//! A batch that fails first makes *after* the same as *before*, then publishes *before*, and the phase does not move. A
//! reader that still refers to it may load the phase when a later batch has moved it. It then reads *after* as it was
//! made the same, because that was stored before. The records that were appended are not listed anywhere, so the next
//! writer may write over them.

use crate::order::Order;
use crate::roots::Phase;
use crate::sync::{AtomicPtr, AtomicU64, Ordering, weakened};
use std::cell::{Cell, RefCell};

/// Staged orders in one allocation.
const BLOCK: usize = 64;

/// Both orders of one leaf. Aligned so that its address leaves four bits of a word free.
#[repr(align(16))]
pub(crate) struct Staged {
    before: AtomicU64,
    after: AtomicU64,
    /// The phase at which `after` is shown.
    at: AtomicU64,
    phase: AtomicPtr<Phase>,
    /// Where the records of the leaf ended before.
    end: AtomicU64,
}

impl Staged {
    pub(crate) fn new() -> Staged {
        Staged {
            before: AtomicU64::new(0),
            after: AtomicU64::new(0),
            at: AtomicU64::new(u64::MAX),
            phase: AtomicPtr::new(std::ptr::null_mut()),
            end: AtomicU64::new(0),
        }
    }

    /// Fills it in. The caller publishes it later.
    pub(crate) fn set(&self, before: Order, end: u16, phase: &Phase, at: u64) {
        self.before.store(before.0, Ordering::Relaxed);
        self.after.store(before.0, Ordering::Relaxed);
        self.at.store(at, Ordering::Relaxed);
        self.phase.store(std::ptr::from_ref(phase).cast_mut(), Ordering::Relaxed);
        self.end.store(u64::from(end), Ordering::Relaxed);
    }

    /// The order that is visible now.
    pub(crate) fn shown(&self) -> Order {
        // SAFETY: the phase lives as long as the index, and so does whatever reads a leaf of it.
        let phase = unsafe { &*self.phase.load(Ordering::Relaxed) };
        let is_after = weakened!("unphased") || phase.now() >= self.at.load(Ordering::Relaxed);
        // ORDERING: the phase was loaded with acquire: `after` and what it lists are complete.
        Order(if is_after { &self.after } else { &self.before }.load(Ordering::Relaxed))
    }

    pub(crate) fn before(&self) -> Order {
        Order(self.before.load(Ordering::Relaxed))
    }

    pub(crate) fn end(&self) -> u16 {
        self.end.load(Ordering::Relaxed) as u16
    }

    /// What the batch itself sees.
    pub(crate) fn after(&self) -> Order {
        Order(self.after.load(Ordering::Relaxed))
    }

    /// Changes what the batch sees, and all see once the phase comes.
    pub(crate) fn set_after(&self, order: Order) {
        // ORDERING: the phase is stored later, with release.
        self.after.store(order.0, Ordering::Relaxed);
    }

    /// Makes both orders the same again.
    pub(crate) fn undo(&self) -> Order {
        let before = self.before();
        if !weakened!("undone") {
            self.set_after(before);
        }
        before
    }
}

/// What the leaves that a batch has appended to refer to.
pub(crate) struct Stage<'p> {
    phase: &'p Phase,
    at: u64,
    blocks: RefCell<Vec<Box<[Staged]>>>,
    used: Cell<usize>,
}

impl<'p> Stage<'p> {
    /// For a batch that begins. The caller is the only writer.
    pub(crate) fn new(phase: &'p Phase) -> Stage<'p> {
        Stage { phase, at: phase.next(), blocks: RefCell::default(), used: Cell::new(BLOCK) }
    }

    /// A new staged order, which lives until the blocks are freed; `None` if there is no memory.
    pub(crate) fn add(&self, before: Order, end: u16) -> Option<*const Staged> {
        let mut blocks = self.blocks.borrow_mut();
        if self.used.get() == BLOCK {
            let mut block = Vec::new();
            block.try_reserve_exact(BLOCK).ok()?;
            blocks.try_reserve(1).ok()?;
            block.resize_with(BLOCK, Staged::new);
            blocks.push(block.into_boxed_slice());
            self.used.set(0);
        }
        let staged = &blocks.last()?[self.used.get()];
        self.used.set(self.used.get() + 1);
        staged.set(before, end, self.phase, self.at);
        Some(staged)
    }

    /// The blocks, to be freed when no reader refers to them any more.
    pub(crate) fn into_blocks(self) -> Vec<Box<[Staged]>> {
        self.blocks.into_inner()
    }
}
