//! The catalogue: which keyspaces there are. A name is used by one keyspace at a time, an identifier by one ever.

use crate::compression;
use forrest_engine::merge::{Operators, SharedOperator};
use forrest_engine::{Compression, DEFAULT_KEYSPACE, Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A keyspace, as its handles and the catalogue share it.
pub(crate) struct Space {
    pub(crate) id: u32,
    pub(crate) name: Arc<str>,
    dropped: AtomicBool,
    /// The number of the compression that was chosen for it, or `NO_CHOICE`.
    compression: AtomicU8,
    /// The time to live of its values, in milliseconds; 0 if they stay.
    ttl_ms: AtomicU64,
    /// Its merge operator. Set under the order lock while it is empty, or when the store is opened.
    operator: OnceLock<SharedOperator>,
}

const NO_CHOICE: u8 = u8::MAX;

/// Keyspaces by name. Never changed; a change makes another catalogue.
#[derive(Clone, Default)]
pub(crate) struct Catalog {
    pub(crate) spaces: BTreeMap<Arc<str>, Arc<Space>>,
    /// The identifiers in use.
    ids: BTreeSet<u32>,
    /// Greater than all identifiers ever used.
    pub(crate) next: u32,
}

impl Space {
    /// An error if the keyspace was dropped.
    ///
    /// ORDERING: Acquire pairs with the Release in `mark_dropped`: a thread that has read data from
    /// after the drop sees the drop.
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

impl Space {
    /// The compression that was chosen for it; `None` if that of the default keyspace applies.
    pub(crate) fn chosen(&self) -> Option<Compression> {
        // ORDERING: no other data depends on it.
        compression::of_number(self.compression.load(Ordering::Relaxed).into())
    }

    /// The time to live of values that are set without one, in milliseconds.
    #[inline]
    pub(crate) fn ttl_ms(&self) -> Option<u64> {
        // ORDERING: no other data depends on it.
        Some(self.ttl_ms.load(Ordering::Relaxed)).filter(|ttl_ms| *ttl_ms > 0)
    }

    /// Sets that for values that are set from now on.
    pub(crate) fn set_ttl_ms(&self, ttl_ms: Option<u64>) {
        self.ttl_ms.store(ttl_ms.unwrap_or(0), Ordering::Relaxed);
    }

    /// Its merge operator.
    pub(crate) fn operator(&self) -> Option<&SharedOperator> {
        self.operator.get()
    }

    /// Sets its merge operator, if it has none.
    pub(crate) fn set_operator(&self, operator: &SharedOperator) {
        let _ = self.operator.set(operator.clone());
    }

    /// Sets the compression of its tables from now on.
    pub(crate) fn choose(&self, method: Compression) {
        self.compression.store(compression::number(method), Ordering::Relaxed);
    }
}

impl Catalog {
    /// The compression of a keyspace's tables.
    pub(crate) fn compression(&self, id: u32) -> Compression {
        let own = self.spaces.values().find(|space| space.id == id).and_then(|space| space.chosen());
        let default = || self.get(DEFAULT_KEYSPACE).and_then(|space| space.chosen());
        own.or_else(default).unwrap_or_default()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Space>> {
        self.spaces.get(name)
    }

    /// True if there is a keyspace with this identifier.
    pub(crate) fn has(&self, id: u32) -> bool {
        self.ids.contains(&id)
    }

    /// A catalogue without keyspaces, whose next identifier is at least this.
    pub(crate) fn from_next(next: u32) -> Catalog {
        Catalog { next, ..Catalog::default() }
    }

    /// Adds a keyspace. False, and nothing is changed, if name or identifier are in use.
    #[must_use]
    pub(crate) fn add(&mut self, name: &str, id: u32) -> bool {
        let Some(next) = id.checked_add(1) else { return false };
        if self.spaces.contains_key(name) || !self.ids.insert(id) {
            return false;
        }
        let name: Arc<str> = name.into();
        let space = Space {
            id,
            name: name.clone(),
            dropped: AtomicBool::new(false),
            compression: AtomicU8::new(NO_CHOICE),
            ttl_ms: AtomicU64::new(0),
            operator: OnceLock::new(),
        };
        self.spaces.insert(name, Arc::new(space));
        self.next = self.next.max(next);
        true
    }

    /// Removes a keyspace. False if there is none.
    #[must_use]
    pub(crate) fn remove(&mut self, id: u32) -> bool {
        let is_there = self.ids.remove(&id);
        if is_there {
            self.spaces.retain(|_, space| space.id != id);
        }
        is_there
    }

    /// The same with one more; `None` if name or identifier are in use.
    pub(crate) fn with(&self, name: &str, id: u32) -> Option<Catalog> {
        let mut catalog = self.clone();
        catalog.add(name, id).then_some(catalog)
    }

    /// The same without one; `None` if there is none.
    pub(crate) fn without(&self, id: u32) -> Option<Catalog> {
        let mut catalog = self.clone();
        catalog.remove(id).then_some(catalog)
    }

    /// Sets the compressions that were chosen for keyspaces, by their identifiers.
    pub(crate) fn choose(&self, chosen: &BTreeMap<u32, Compression>) {
        for space in self.spaces.values() {
            if let Some(&method) = chosen.get(&space.id) {
                space.choose(method);
            }
        }
    }

    /// Sets the times to live of the values of keyspaces, by their identifiers.
    pub(crate) fn set_ttls(&self, ttls: &BTreeMap<u32, u64>) {
        for space in self.spaces.values() {
            space.set_ttl_ms(ttls.get(&space.id).copied());
        }
    }

    /// Sets the merge operators of keyspaces, by their identifiers.
    ///
    /// # Errors
    /// `InvalidArgument` if one is not among the known ones.
    pub(crate) fn set_operators(&self, names: &BTreeMap<u32, String>, known: &Operators) -> Result<()> {
        for space in self.spaces.values() {
            if let Some(name) = names.get(&space.id) {
                space.set_operator(known.get(&space.name, name)?);
            }
        }
        Ok(())
    }

    /// Takes another catalogue's keyspaces in place of its own where they are the same, so that their handles stay
    /// valid.
    pub(crate) fn adopt(&mut self, old: &Catalog) {
        for (name, space) in &old.spaces {
            if let Some(own) = self.spaces.get_mut(name).filter(|own| own.id == space.id) {
                *own = space.clone();
            }
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.spaces.keys().map(|name| name.to_string()).collect()
    }
}
