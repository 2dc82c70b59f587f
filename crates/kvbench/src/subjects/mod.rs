//! The subjects: the structures that can be measured, with one interface and static dispatch.
//!
//! An adapter is one small file that uses its crate as the crate's documentation advises. State that spans several
//! operations (an epoch guard, for example) lives in the [`Reader`] or [`Writer`]. The loops renew these every
//! [`SESSION_OPS`] operations, so that removed memory can be freed.

pub(crate) mod blart;
pub(crate) mod btreemap;
pub(crate) mod congee;
pub(crate) mod cuckoo;
pub(crate) mod dashmap;
mod db;
pub(crate) mod empty;
pub(crate) mod eytzinger;
pub(crate) mod f14;
pub(crate) mod foreign;
mod forrest;
pub(crate) mod fst;
mod gathered;
pub(crate) mod hashbrown;
pub(crate) mod hashmap;
pub(crate) mod indexset;
pub(crate) mod kernel;
mod locked;
pub(crate) mod masstree;
mod packed;
pub(crate) mod papaya;
pub(crate) mod pgm;
pub(crate) mod rart;
mod rbtree;
pub(crate) mod s_tree;
pub(crate) mod scc;
pub(crate) mod scc_hash;
pub(crate) mod skiplist;
pub(crate) mod sorted;

pub(crate) use db::Database;
pub(crate) use forrest::{Forrest, Portable};
pub(crate) use locked::Locked;
pub(crate) use rbtree::RbTree;

use crate::data::Kind;
use serde::{Deserialize, Serialize};

/// The name of this project's index.
pub(crate) const FORREST: &str = "forrest";
/// The subjects that are this project's, and lie on the pages that are asked for.
pub(crate) const ON_PAGES: [&str; 3] = [FORREST, "forrest-portable", "forrest-db"];
/// Structures that can keep the pairs of a file where they were loaded.
pub(crate) const IN_PLACE: [&str; 4] = ["btreemap", "cuckoo", "f14", "hashbrown"];

/// Where a structure keeps the pairs of a file that may stay where they were loaded.
pub(crate) fn placement(structure: &str) -> &'static str {
    match IN_PLACE.contains(&structure) {
        true => "keeps pairs where they were loaded",
        false => "copies the pairs that were loaded",
    }
}

/// The name of the subject that only shows what the loops cost.
pub(crate) const EMPTY: &str = "empty";

/// Operations after which the loops renew a reader or writer.
pub(crate) const SESSION_OPS: usize = 1024;

/// Keys in a batch of [`Reader::multi_get`].
pub(crate) const BATCH_KEYS: usize = 64;

/// Which pages a subject that can choose is to take its memory from.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Pages {
    /// The best that are available.
    Auto,
    /// Explicit pages of 1 GiB.
    #[value(name = "1g")]
    #[serde(rename = "1g")]
    #[strum(serialize = "1g")]
    Huge1G,
    /// Explicit pages of 2 MiB.
    #[value(name = "2m")]
    #[serde(rename = "2m")]
    #[strum(serialize = "2m")]
    Huge2M,
    /// Transparent huge pages.
    Thp,
    /// The base page size.
    Plain,
}

impl From<Pages> for forrest_machine::pages::Pages {
    fn from(pages: Pages) -> Self {
        match pages {
            Pages::Auto => Self::Auto,
            Pages::Huge1G => Self::Huge1G,
            Pages::Huge2M => Self::Huge2M,
            Pages::Thp => Self::Transparent,
            Pages::Plain => Self::Plain,
        }
    }
}

impl Pages {
    /// The name on the command line and in tables.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }
}

/// The part of [`Subject`] that is the same for all structures whose references read and write: the kind of reference
/// that writes, and how one is built on the pages that are asked for.
macro_rules! by_reference {
    (($($writer:tt)+) $build:expr) => {
        type Reader<'a>
            = &'a Self
        where
            Self: 'a;
        type Writer<'a>
            = &'a $($writer)+
        where
            Self: 'a;

        fn build(pages: $crate::subjects::Pages) -> Result<Self, String> {
            $build(pages)
        }

        fn reader(&self) -> &Self {
            self
        }

        fn writer(&mut self) -> & $($writer)+ {
            self
        }
    };
}
pub(crate) use by_reference;

/// [`by_reference`] for structures that one writes at a time: what a new one is.
macro_rules! by_itself {
    ($new:expr) => {
        $crate::subjects::by_reference!((mut Self) |_| Ok($new));
    };
}
pub(crate) use by_itself;

/// [`by_reference`] for structures that several write at a time: how one is built.
macro_rules! shared_by_itself {
    ($build:expr) => {
        $crate::subjects::by_reference!((Self) $build);

        fn shared_writer(&self) -> Option<&Self> {
            Some(self)
        }
    };
}
pub(crate) use shared_by_itself;

/// A structure that can be measured.
pub(crate) trait Subject<K: Kind>: Sized + Send + Sync {
    /// Whether scans show keys in order; if not, the scan and iteration steps are left out.
    const ORDERED: bool = true;
    /// Whether it is immutable: insertions only gather pairs until [`Subject::settle`] builds the structure. Nothing is
    /// removed.
    const STATIC: bool = false;
    /// Whether its results are checked; false for the subject that does nothing.
    const ANSWERS: bool = true;
    /// Whether it can also be iterated from its last pair to its first.
    const BACK: bool = false;
    /// Whether the bytes that it requests of an allocator are counted; those of other languages are not.
    const COUNTED: bool = true;
    /// Whether [`Reader::multi_get`] is more than a loop over single gets.
    const BATCHED: bool = false;
    /// Whether [`Subject::retain`] is there.
    const RETAINS: bool = false;
    /// Whether a get beside an insertion over a value always finds one of the two.
    const REPLACES: bool = true;

    /// Reads, from one thread.
    type Reader<'a>: Reader<K>
    where
        Self: 'a;
    /// Writes, from one thread.
    type Writer<'a>: Writer<K>
    where
        Self: 'a;

    /// Makes an empty structure. Fails with the reason if it is not available here.
    fn build(pages: Pages) -> Result<Self, String>;
    /// Begins to read.
    fn reader(&self) -> Self::Reader<'_>;
    /// Begins to write, alone.
    fn writer(&mut self) -> Self::Writer<'_>;
    /// Begins to write concurrently with other writers; `None` if only one writer is allowed.
    fn shared_writer(&self) -> Option<Self::Writer<'_>> {
        None
    }
    /// Reserves room in an empty structure for this number of keys; false if it cannot reserve.
    fn reserve(&mut self, _keys: usize) -> bool {
        false
    }
    /// Shows all pairs and removes, on the way, those for which `keep` is false. Only called if [`Subject::RETAINS`].
    fn retain(&mut self, _keep: impl FnMut(K::Found<'_>, K::Value<'_>) -> bool) {}
    /// Builds a static structure from all inserted pairs. Its time counts as insertion.
    fn settle(&mut self) {}
    /// Bytes in use that did not come from an allocator.
    fn own_bytes(&self) -> u64 {
        0
    }
    /// Bytes that it occupies outside of this process, in the kernel.
    fn kernel_bytes(&self) -> u64 {
        0
    }
    /// A remark on the memory that the subject uses.
    fn memory_note(&self) -> Option<String> {
        None
    }
}

/// The reading half of a subject.
pub(crate) trait Reader<K: Kind> {
    /// Shows the value of a key to `see`.
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R>;

    /// Shows up to `count` pairs from `from` on, in order. Only called if [`Subject::ORDERED`].
    fn scan(&self, _from: K::Key<'_>, _count: usize, _see: impl FnMut(K::Found<'_>, K::Value<'_>)) {}

    /// Shows all pairs, in order.
    fn iterate(&self, see: impl FnMut(K::Found<'_>, K::Value<'_>));

    /// The same from the last to the first, if [`Subject::BACK`] is set.
    fn iterate_back(&self, _see: impl FnMut(K::Found<'_>, K::Value<'_>)) {}

    /// Looks several keys up and shows each result with the position of its key.
    fn multi_get(&self, keys: &[K::Key<'_>], mut see: impl FnMut(usize, Option<K::Value<'_>>)) {
        for (at, key) in keys.iter().enumerate() {
            if self.get(*key, |value| see(at, Some(value))).is_none() {
                see(at, None);
            }
        }
    }
}

/// The writing half of a subject.
pub(crate) trait Writer<K: Kind> {
    /// Maps the key to the value, whether or not it was there.
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>);
    /// Removes the key; true if it was there. Not called if [`Subject::STATIC`].
    fn remove(&mut self, _key: K::Key<'_>) -> bool {
        false
    }
}
