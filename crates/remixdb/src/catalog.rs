//! The catalogue: which keyspaces there are. A name is used by one keyspace at a time, an identifier by one ever.

use forrest_engine::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A keyspace, as its handles and the catalogue share it.
pub(crate) struct Space {
    pub(crate) id: u32,
    pub(crate) name: Arc<str>,
    dropped: AtomicBool,
}

/// Keyspaces by name. One is never changed; a change makes another.
#[derive(Clone, Default)]
pub(crate) struct Catalog {
    pub(crate) spaces: BTreeMap<Arc<str>, Arc<Space>>,
    /// Above all identifiers that were ever given.
    pub(crate) next: u32,
}

impl Space {
    /// An error once the keyspace was dropped.
    ///
    /// ORDERING: Acquire pairs with the Release in `mark_dropped`: who has read what came after the drop sees it.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.dropped.load(Ordering::Acquire) {
            return Err(Error::invalid(format!("keyspace \"{}\" was dropped", self.name.escape_debug())));
        }
        Ok(())
    }

    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }
}

impl Catalog {
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Space>> {
        self.spaces.get(name)
    }

    /// True if there is a keyspace with this identifier.
    pub(crate) fn has(&self, id: u32) -> bool {
        self.spaces.values().any(|space| space.id == id)
    }

    /// The same with one more; `None` if name or identifier are in use.
    pub(crate) fn with(&self, name: &str, id: u32) -> Option<Catalog> {
        if self.spaces.contains_key(name) || self.has(id) {
            return None;
        }
        let name: Arc<str> = name.into();
        let space = Space { id, name: name.clone(), dropped: AtomicBool::new(false) };
        let mut catalog = self.clone();
        catalog.spaces.insert(name, Arc::new(space));
        catalog.next = catalog.next.max(id.checked_add(1)?);
        Some(catalog)
    }

    /// The same without one; `None` if there is none.
    pub(crate) fn without(&self, id: u32) -> Option<Catalog> {
        let mut catalog = self.clone();
        catalog.spaces.retain(|_, space| space.id != id);
        (catalog.spaces.len() < self.spaces.len()).then_some(catalog)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.spaces.keys().map(|name| name.to_string()).collect()
    }
}
