//! [`Tree`] and [`Reader`]: one ordered map, to be changed and to be read.

use crate::descent::TreeInner;
use crate::effect::Effect;
use crate::epoch::{self, REGISTRY};
use crate::error::{Error, MAX_VALUE_BYTES};
use crate::leaf::found::Found;
use crate::leaf::{self, Cell};
use crate::node::Slot;
use crate::snapshot::{Kept, Snapshot};
use crate::write::{self, Writer};
use std::ops::Deref;
use std::sync::Arc;

/// One ordered map. Reads come from [`Reader`], to which it dereferences. Cloning makes another handle.
#[derive(Clone)]
pub struct Tree(Reader);

/// One state of one tree, to be read: the newest, or a snapshot's.
///
/// Reads take no lock, write no shared memory and never wait.
#[derive(Clone)]
pub struct Reader {
    pub(crate) tree: Arc<TreeInner>,
    /// The snapshot and its root, which is 0 if the tree was not there yet.
    past: Option<(Arc<Kept>, u64)>,
}

impl Deref for Tree {
    type Target = Reader;
    #[inline(always)]
    fn deref(&self) -> &Reader {
        &self.0
    }
}

impl Tree {
    pub(crate) fn new(tree: Arc<TreeInner>) -> Tree {
        Tree(Reader { tree, past: None })
    }

    #[inline(always)]
    pub(crate) fn inner(&self) -> &Arc<TreeInner> {
        &self.0.tree
    }

    /// The one way to change a key: `decide` receives the key's value and returns its effect; both happen as one
    /// atomic step. `decide` runs under a lock, so it must be quick. It may run more than once; its last result is the
    /// one that was applied.
    ///
    /// # Panics
    /// If `decide` changes a tree of the same index, or takes a snapshot of it. Nothing has changed then.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::ValueTooLong`], [`Error::OutOfMemory`]; nothing has changed then.
    #[inline]
    pub fn apply<'v, R>(
        &self,
        key: &[u8],
        mut decide: impl FnMut(Option<&[u8]>) -> (Effect<'v>, R),
    ) -> Result<R, Error> {
        self.change(key, 0, |old| decide(old.and_then(Cell::bytes)))
    }

    /// As [`Tree::apply`], for values with a stamp: a number that the index keeps with a value, and returns with it
    /// ([`Found::stamp`]). What `decide` puts gets this stamp; 0 is none.
    ///
    /// # Panics
    /// As [`Tree::apply`].
    ///
    /// # Errors
    /// As [`Tree::apply`].
    #[inline]
    pub fn apply_stamped<'v, R>(
        &self,
        key: &[u8],
        stamp: u64,
        mut decide: impl FnMut(Option<Found<'_>>) -> (Effect<'v>, R),
    ) -> Result<R, Error> {
        self.change(key, stamp, |old| decide(old.and_then(Found::of)))
    }

    #[inline]
    fn change<'v, R>(
        &self,
        key: &[u8],
        stamp: u64,
        mut decide: impl FnMut(Option<Cell<'_>>) -> (Effect<'v>, R),
    ) -> Result<R, Error> {
        let tree = self.inner();
        let mut turn = 0;
        loop {
            let result = {
                let guard = epoch::pin();
                let _shared = tree.index.gate().enter(guard.record, &REGISTRY);
                write::apply(&Writer::ordinary(tree, &guard), key, stamp, &mut decide)
            };
            match result {
                // Freed memory may still wait for readers. This thread holds no pin here, so it can be reclaimed.
                Err(Error::OutOfMemory(_)) if tree.index.wait_for_memory(&mut turn) => {}
                result => return result,
            }
        }
    }

    /// Maps a key to a value; true if the key was there before.
    ///
    /// # Errors
    /// As [`Tree::apply`].
    #[inline]
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        if value.len() > leaf::INLINE_MAX {
            // Copied before the lock is taken.
            let value = write::shared(value)?;
            return self.apply(key, |old| (Effect::PutValue(value.clone()), old.is_some()));
        }
        self.apply(key, |old| (Effect::Put(value.into()), old.is_some()))
    }

    /// Removes a key; true if it was there.
    ///
    /// # Errors
    /// As [`Tree::apply`].
    pub fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        self.apply(key, |old| (Effect::Remove, old.is_some()))
    }
}

impl Snapshot {
    /// A reader of this snapshot's state of a tree; a tree made later is empty in it.
    ///
    /// # Panics
    /// If the tree is of another index.
    pub fn reader(&self, tree: &Tree) -> Reader {
        let tree = tree.inner().clone();
        let root = self.0.root(&tree);
        Reader { tree, past: Some((self.0.clone(), root)) }
    }
}

impl Reader {
    /// False in a child made by `fork` of the process that made the index. See [`Index`](crate::Index).
    #[inline]
    pub fn is_here(&self) -> bool {
        self.tree.index.origin.is_here()
    }

    /// The root of the state that this reader sees; `None` if the tree was not there then.
    #[inline(always)]
    pub(crate) fn root(&self) -> Option<Slot> {
        match &self.past {
            None => Some(self.tree.newest_root()),
            Some((_, 0)) => None,
            Some((_, root)) => Some(Slot(*root)),
        }
    }
}

const _: () = assert!(MAX_VALUE_BYTES == u32::MAX as usize);
