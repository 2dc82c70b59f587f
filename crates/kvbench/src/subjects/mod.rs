//! The subjects: what can be measured, behind one interface with static dispatch, and the list of them.
//!
//! An adapter is one small file that uses its crate as its documentation advises: what is to be held over
//! several operations (an epoch guard, say) lives in the [`Reader`] or [`Writer`], which the loops renew
//! every [`SESSION_OPS`] operations, so that what was removed can be freed.

mod blart;
mod btreemap;
mod congee;
mod empty;
mod forrest;
mod hashbrown;
mod locked;
mod masstree;
mod packed;
mod rbtree;
mod scc;
mod skiplist;

pub(crate) use forrest::Forrest;
pub(crate) use locked::Locked;
pub(crate) use rbtree::RbTree;

use crate::arm::{self, Job, Outcome};
use crate::data::{Kind, Strings, U64, Walk};
use serde::{Deserialize, Serialize};

/// Operations after which the loops renew a reader or writer.
pub(crate) const SESSION_OPS: usize = 1024;

/// Keys in a batch of [`Reader::multi_get`].
pub(crate) const BATCH_KEYS: usize = 64;

/// Which pages a subject that can choose is to take its memory from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Pages {
    /// The best that is to be had.
    Auto,
    /// Explicit pages of 1 GiB.
    #[value(name = "1g")]
    #[serde(rename = "1g")]
    Huge1G,
    /// Explicit pages of 2 MiB.
    #[value(name = "2m")]
    #[serde(rename = "2m")]
    Huge2M,
    /// Transparent huge pages.
    Thp,
    /// The base page size.
    Plain,
}

impl Pages {
    /// The name on the command line and in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Pages::Auto => "auto",
            Pages::Huge1G => "1g",
            Pages::Huge2M => "2m",
            Pages::Thp => "thp",
            Pages::Plain => "plain",
        }
    }
}

/// A structure that can be measured.
pub(crate) trait Subject<K: Kind>: Sized + Send + Sync {
    /// Whether iteration shows keys in order; without it that step and the scans are left out.
    const ORDERED: bool = true;
    /// Why an ordered subject's scans are left out, if they are.
    const NO_SCANS: Option<&'static str> = None;
    /// Whether [`Reader::multi_get`] is more than a loop over single gets.
    const BATCHED: bool = false;

    /// Reads, from one thread.
    type Reader<'a>: Reader<K>
    where
        Self: 'a;
    /// Writes, from one thread.
    type Writer<'a>: Writer<K>
    where
        Self: 'a;

    /// Makes an empty one, or says why this cannot be had here.
    fn build(pages: Pages) -> Result<Self, String>;
    /// Begins to read.
    fn reader(&self) -> Self::Reader<'_>;
    /// Begins to write, alone.
    fn writer(&mut self) -> Self::Writer<'_>;
    /// Begins to write beside others; `None` where only one may write.
    fn shared_writer(&self) -> Option<Self::Writer<'_>> {
        None
    }
    /// Bytes in use that did not come from the global allocator.
    fn own_bytes(&self) -> u64 {
        0
    }
    /// What the subject has to say about the memory that it took.
    fn memory_note(&self) -> Option<String> {
        None
    }
}

/// The reading half of a subject.
pub(crate) trait Reader<K: Kind> {
    /// Shows the value of a key to `see`.
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R>;

    /// Shows up to `count` pairs from `from` on, in order.
    fn scan(&self, from: K::Key<'_>, count: usize, see: impl FnMut(K::Found<'_>, K::Value<'_>));

    /// Shows all pairs, in order.
    fn iterate(&self, see: impl FnMut(K::Found<'_>, K::Value<'_>));

    /// Looks many keys up and shows each answer with the position of its key.
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
    /// Removes the key; true if it was there.
    fn remove(&mut self, key: K::Key<'_>) -> bool;
}

/// A subject as the command line knows it.
pub(crate) struct Entry {
    /// The name.
    pub(crate) name: &'static str,
    /// The package that it comes from, for its version; `None` if it is written here.
    pub(crate) package: Option<&'static str>,
    /// One line: what it is, and in which form.
    pub(crate) about: &'static str,
    /// Whether it is a peer in the ranking of ordered maps.
    pub(crate) ordered: bool,
    /// Does a job on `u64` pairs.
    pub(crate) u64s: Option<Run>,
    /// Does a job on string pairs; `None` where it cannot hold them.
    pub(crate) strings: Option<Run>,
}

/// Does a job on one subject.
pub(crate) type Run = fn(&Job, Walk, arm::Report<'_>) -> Outcome;

/// The name of our own entry.
pub(crate) const FORREST: &str = "forrest";
/// The name of the entry that only shows what the loops cost.
pub(crate) const EMPTY: &str = "empty";

/// Every subject, in the order of the tables.
pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: FORREST,
        package: Some("forrest-index"),
        about: "this project's index; 8-byte keys as big-endian bytes",
        ordered: true,
        u64s: Some(arm::run::<U64, Forrest>),
        strings: Some(arm::run::<Strings, Forrest>),
    },
    Entry {
        name: "rbtree",
        package: None,
        about: "red-black tree, one malloc per node and one per value",
        ordered: true,
        u64s: Some(arm::run::<U64, RbTree<U64>>),
        strings: Some(arm::run::<Strings, RbTree<Strings>>),
    },
    Entry {
        name: "btreemap",
        package: Some("std"),
        about: "BTreeMap<u64, u64>; strings: BTreeMap<Vec<u8>, Vec<u8>>",
        ordered: true,
        u64s: Some(arm::run::<U64, btreemap::Map<u64, u64>>),
        strings: Some(arm::run::<Strings, btreemap::Map<Vec<u8>, Vec<u8>>>),
    },
    Entry {
        name: "skiplist",
        package: Some("crossbeam-skiplist"),
        about: "SkipMap<u64, u64>; strings: SkipMap<Box<[u8]>, Box<[u8]>>",
        ordered: true,
        u64s: Some(arm::run::<U64, skiplist::Map<u64, u64>>),
        strings: Some(arm::run::<Strings, skiplist::Map<Box<[u8]>, Box<[u8]>>>),
    },
    Entry {
        name: "scc",
        package: Some("scc"),
        about: "TreeIndex<u64, u64>; strings: TreeIndex<Box<[u8]>, Box<[u8]>>",
        ordered: true,
        u64s: Some(arm::run::<U64, scc::Map<u64, u64>>),
        strings: Some(arm::run::<Strings, scc::Map<Box<[u8]>, Box<[u8]>>>),
    },
    Entry {
        name: "congee",
        package: Some("congee"),
        about: "adaptive radix tree, Congee<usize, usize>; holds no strings",
        ordered: true,
        u64s: Some(arm::run::<U64, congee::Map>),
        strings: None,
    },
    Entry {
        name: "blart",
        package: Some("blart"),
        about: "adaptive radix tree, TreeMap<[u8; 8], u64>; strings: Box<[u8]> with a NUL",
        ordered: true,
        u64s: Some(arm::run::<U64, blart::Fixed>),
        strings: Some(arm::run::<Strings, blart::Terminated>),
    },
    Entry {
        name: "masstree",
        package: Some("masstree"),
        about: "MassTree<u64>, big-endian keys; strings: MassTree15<Box<[u8]>>",
        ordered: true,
        u64s: Some(arm::run::<U64, masstree::Inline>),
        strings: Some(arm::run::<Strings, masstree::Boxed>),
    },
    Entry {
        name: "hashbrown",
        package: Some("hashbrown"),
        about: "HashMap, default hasher; point operations only",
        ordered: false,
        u64s: Some(arm::run::<U64, hashbrown::Map<u64, u64>>),
        strings: Some(arm::run::<Strings, hashbrown::Map<Box<[u8]>, Box<[u8]>>>),
    },
    Entry {
        name: EMPTY,
        package: None,
        about: "does nothing: what the measuring loop itself costs",
        ordered: false,
        u64s: Some(arm::run::<U64, empty::Empty>),
        strings: Some(arm::run::<Strings, empty::Empty>),
    },
];

impl Entry {
    /// The entry of a name.
    pub(crate) fn find(name: &str) -> Option<&'static Entry> {
        ENTRIES.iter().find(|entry| entry.name == name)
    }

    /// The version measured, as the lock file has it.
    pub(crate) fn version(&self) -> Option<&'static str> {
        let lock = include_str!("../../../../Cargo.lock");
        let package = format!("name = \"{}\"", self.package?);
        let mut lines = lock.lines().skip_while(|line| *line != package);
        lines.nth(1)?.strip_prefix("version = \"")?.strip_suffix('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_the_lock_file() {
        for entry in ENTRIES {
            assert_eq!(
                entry.version().is_some(),
                !matches!(entry.package, None | Some("std")),
                "{}",
                entry.name
            );
        }
    }
}
