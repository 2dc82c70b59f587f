//! [`Iteration`]: an iteration over a range, in pages.
//!
//! It reads a snapshot: that which JavaScript passes, or one that is made with it. Making and seeking read nothing;
//! a page is read on another thread. JavaScript asks for one page at a time.

use crate::failure::Failure;
use crate::node::{Env, Handle, Value};
use crate::pages::Page;
use crate::store::{Reply, Store};
use forrest::{Entry, Range, Snapshot};
use forrest_base::lock;
use std::cell::RefCell;
use std::ops::Bound;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The code of abstract-level's error for what a signal has ended.
const ABORTED: &str = "LEVEL_ABORTED";

/// Where a range starts and ends.
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// What an iteration returns, and in which order.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) is_backward: bool,
    pub(crate) keys: bool,
    pub(crate) values: bool,
}

/// An iteration.
pub(crate) struct Iteration {
    store: Rc<Store>,
    /// `None` once it is closed.
    walk: RefCell<Option<Arc<Mutex<Walk>>>>,
    /// Where the next page begins, after a seek.
    target: RefCell<Option<Vec<u8>>>,
    is_aborted: Arc<AtomicBool>,
}

/// The part of an iteration that threads of the pool use, one at a time.
struct Walk {
    state: Snapshot,
    bounds: Bounds,
    shape: Shape,
    /// `None` before the first page and after a seek.
    rest: Option<Rest>,
}

enum Rest {
    Pairs(Range),
    Keys(forrest::Keys),
    /// A seek has left the bounds.
    Nothing,
}

impl Handle for Iteration {
    const WHAT: &'static str = "iterator";
    const TAG: u64 = 3;
}

impl Iteration {
    pub(crate) fn new(store: Rc<Store>, state: Snapshot, bounds: Bounds, shape: Shape) -> Iteration {
        let walk = Arc::new(Mutex::new(Walk { state, bounds, shape, rest: None }));
        let is_aborted = Arc::default();
        Iteration { store, walk: RefCell::new(Some(walk)), target: RefCell::default(), is_aborted }
    }

    fn walk(&self) -> Result<Arc<Mutex<Walk>>, Failure> {
        self.walk.borrow().clone().ok_or_else(|| Failure::closed(Self::WHAT))
    }

    /// The promise of the next page: at most `items` items, and no further one once they have `bytes` bytes.
    pub(crate) fn page<'e>(&self, env: Env<'e>, items: usize, bytes: usize) -> Result<Value<'e>, Failure> {
        // Only to fail if the store is closed.
        drop(self.store.db()?);
        let walk = self.walk()?;
        let target = self.target.take();
        let is_aborted = Arc::clone(&self.is_aborted);
        self.store.work(env, move || {
            let mut walk = lock(&walk);
            if let Some(target) = target {
                walk.seek(target);
            }
            Ok(Reply::Page(walk.page(items, bytes, &is_aborted)?.finish()))
        })
    }

    /// The next page begins at `target`, or ends if that is outside of the bounds.
    pub(crate) fn seek(&self, target: Vec<u8>) -> Result<(), Failure> {
        self.walk()?;
        self.target.replace(Some(target));
        Ok(())
    }

    /// A page that is being read fails at its next item, and so do all later ones.
    pub(crate) fn abort(&self) {
        // ORDERING: nothing else is passed with it.
        self.is_aborted.store(true, Ordering::Relaxed);
    }

    /// Releases its snapshot, after the page that is being read.
    pub(crate) fn close(&self) {
        drop(self.walk.take());
    }
}

impl Walk {
    fn seek(&mut self, target: Vec<u8>) {
        let (lower, upper) = &self.bounds;
        let is_inside = match lower {
            Bound::Included(lower) => target >= *lower,
            Bound::Excluded(lower) => target > *lower,
            Bound::Unbounded => true,
        } && match upper {
            Bound::Included(upper) => target <= *upper,
            Bound::Excluded(upper) => target < *upper,
            Bound::Unbounded => true,
        };
        let target = Bound::Included(target);
        self.rest = Some(match (is_inside, self.shape.is_backward) {
            (false, _) => Rest::Nothing,
            (true, false) => self.start((target, upper.clone())),
            (true, true) => self.start((lower.clone(), target)),
        });
    }

    /// The iteration over a part of the bounds.
    fn start(&self, bounds: Bounds) -> Rest {
        let range = self.state.range(bounds);
        if self.shape.values { Rest::Pairs(range) } else { Rest::Keys(range.keys()) }
    }

    fn page(&mut self, items: usize, bytes: usize, is_aborted: &AtomicBool) -> Result<Page, Failure> {
        let Shape { is_backward, keys, .. } = self.shape;
        let mut rest = match self.rest.take() {
            Some(rest) => rest,
            None => self.start(self.bounds.clone()),
        };
        let mut page = Page::default();
        let mut filled = Ok(());
        while filled.is_ok()
            && page.len() < items
            && (page.len() == 0 || page.bytes() < bytes)
            && !page.is_last
        {
            // ORDERING: nothing else is passed with it.
            if is_aborted.load(Ordering::Relaxed) {
                filled = Err(Failure::new(ABORTED, "Operation has been aborted"));
                break;
            }
            filled = match &mut rest {
                Rest::Pairs(range) => {
                    let entry = if is_backward { range.next_back() } else { range.next() };
                    add_pair(&mut page, entry, keys)
                }
                Rest::Keys(range) => {
                    let key = if is_backward { range.next_back() } else { range.next() };
                    add_key(&mut page, key, keys)
                }
                Rest::Nothing => {
                    page.is_last = true;
                    Ok(())
                }
            };
        }
        // After an error the iteration keeps its place. What was read before is returned; the next page then fails.
        self.rest = Some(rest);
        match filled {
            Err(failure) if page.len() == 0 || failure.code == ABORTED => Err(failure),
            _ => Ok(page),
        }
    }
}

fn add_pair(page: &mut Page, entry: Option<forrest::Result<Entry>>, keys: bool) -> Result<(), Failure> {
    let Some(entry) = entry else {
        page.is_last = true;
        return Ok(());
    };
    let entry = entry?;
    page.pair(if keys { entry.key() } else { b"" }, entry.value_bytes()?)
}

fn add_key(page: &mut Page, key: Option<forrest::Result<forrest::Key>>, keys: bool) -> Result<(), Failure> {
    let Some(key) = key else {
        page.is_last = true;
        return Ok(());
    };
    let key = key?;
    page.pair(if keys { &key } else { b"" }, b"")
}
