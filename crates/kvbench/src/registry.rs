//! The list of the structures: what each one is, and what does a job on it.

use crate::arm;
use crate::data::{Counters, Pointed, Strings, U64, Walk};
use crate::hashes::{self, Hash};
use crate::job::{Job, Outcome, Report};
use crate::lock_file;
use crate::spoken;
#[cfg(target_arch = "x86_64")]
use crate::subjects::f14::vectors as f14_sse2;
use crate::subjects::foreign::{Foreign, Offer};
use crate::subjects::{
    Database, EMPTY, FORREST, Forrest, Locked, Portable, RbTree, blart, btreemap, congee, cuckoo, dashmap,
    empty, eytzinger, f14, foreign, fst, hashbrown, hashmap, indexset, kernel, masstree, papaya, pgm, rart,
    s_tree, scc, scc_hash, skiplist, sorted,
};
use forrest_base::lock;
use std::sync::{LazyLock, Mutex, OnceLock};

/// A structure as the command line knows it.
pub(crate) struct SubjectEntry {
    /// The name.
    pub(crate) name: &'static str,
    /// The package that it comes from, for its version; `None` if it is written here.
    pub(crate) package: Option<&'static str>,
    /// One line: what it is, and in which form.
    pub(crate) about: &'static str,
    /// Whether it is a peer in the ranking of ordered maps.
    pub(crate) ordered: bool,
    /// The hash that it uses if none is named; `None` for those that hash nothing.
    pub(crate) hash: Option<Hash>,
    /// Does a job on `u64` pairs, or why it is not asked to.
    pub(crate) u64s: Result<Runs, &'static str>,
    /// Does a job on string pairs, or why it is not asked to.
    pub(crate) strings: Result<Runs, &'static str>,
    /// Does llds's workload; `None` for those that are not in that comparison.
    pub(crate) llds: Option<Run>,
    /// Whether it is in another language, and allocates by itself.
    pub(crate) foreign: bool,
}

/// Does a job on one subject.
pub(crate) type Run = fn(&Job, Walk, Report<'_>) -> Outcome;

/// What does a job on a structure.
#[derive(Clone, Copy)]
pub(crate) enum Runs {
    /// It hashes nothing.
    One(Run),
    /// For each hash.
    Hashed(fn(Hash) -> Run),
}

/// A structure without a hash, of a type, on a kind of pairs.
macro_rules! one {
    ($kind:ty, $map:ty) => {
        Ok(Runs::One(arm::run::<$kind, $map>))
    };
}

/// A table of a type that is generic over the hash, on a kind of pairs.
macro_rules! hashed {
    ($kind:ty, $table:ident<$key:ty, $value:ty>) => {
        Ok(Runs::Hashed(|hash| match hash {
            Hash::Rapid => arm::run::<$kind, $table::Map<$key, $value, hashes::Rapid>>,
            Hash::Komi => arm::run::<$kind, $table::Map<$key, $value, hashes::Komi>>,
            Hash::MuseAir => arm::run::<$kind, $table::Map<$key, $value, hashes::MuseAir>>,
            Hash::Ahash => arm::run::<$kind, $table::Map<$key, $value, hashes::Ahash>>,
            Hash::Fold => arm::run::<$kind, $table::Map<$key, $value, hashes::Fold>>,
            Hash::Sip => arm::run::<$kind, $table::Map<$key, $value, hashes::Sip>>,
            Hash::Std => arm::run::<$kind, $table::Map<$key, $value, hashes::Std>>,
            Hash::Xxh3 => arm::run::<$kind, $table::Map<$key, $value, hashes::Xxh3>>,
            Hash::T1ha => arm::run::<$kind, $table::Map<$key, $value, hashes::T1ha>>,
            Hash::T1ha2 => arm::run::<$kind, $table::Map<$key, $value, hashes::T1ha2>>,
            Hash::City => arm::run::<$kind, $table::Map<$key, $value, hashes::City>>,
            Hash::Wy => arm::run::<$kind, $table::Map<$key, $value, hashes::Wy>>,
        }))
    };
}

/// A table that is generic over the hash: its name, its package, the hash that it uses by itself, its module, and what
/// it is.
macro_rules! table {
    ($name:expr, $package:expr, $hash:ident, $table:ident, $about:literal) => {
        SubjectEntry {
            hash: Some(Hash::$hash),
            u64s: hashed!(U64, $table<u64, u64>),
            strings: hashed!(Strings, $table<Bytes, Bytes>),
            about: $about,
            ..SubjectEntry::new($name, $package)
        }
    };
}

/// A string in the form that most structures keep.
type Bytes = Box<[u8]>;

/// Structures that are not here, and why.
pub(crate) const LEFT_OUT: &[(&str, &str)] = &[(
    "hot",
    "the height optimized trie is C++ in no package registry; kvbench peer hot=DIR builds its source",
)];

/// Every structure that is written in Rust, in the order of the tables.
const ENTRIES: &[SubjectEntry] = &[
    SubjectEntry {
        about: "this project's index; 8-byte keys as big-endian bytes",
        ordered: true,
        u64s: one!(U64, Forrest),
        strings: one!(Strings, Forrest),
        llds: Some(arm::run_llds::<Forrest>),
        ..SubjectEntry::new(FORREST, Some("forrest-index"))
    },
    SubjectEntry {
        about: "the same without vector instructions",
        u64s: one!(U64, Portable),
        strings: one!(Strings, Portable),
        ..SubjectEntry::new("forrest-portable", Some("forrest-index"))
    },
    SubjectEntry {
        about: "the library above that index: a Db opened as memory:, whose gets return owned values",
        u64s: one!(U64, Database),
        strings: one!(Strings, Database),
        ..SubjectEntry::new("forrest-db", Some("forrest-db"))
    },
    SubjectEntry {
        about: "red-black tree, one malloc per node and one per value",
        ordered: true,
        u64s: one!(U64, RbTree<U64>),
        strings: one!(Strings, RbTree<Strings>),
        llds: Some(arm::run_llds::<Locked<RbTree<Counters>>>),
        ..SubjectEntry::new("rbtree", None)
    },
    SubjectEntry {
        about: "BTreeMap<u64, u64>; strings: BTreeMap<Vec<u8>, Vec<u8>>",
        ordered: true,
        u64s: one!(U64, btreemap::Map<u64, u64>),
        strings: one!(Strings, btreemap::Map<Vec<u8>, Vec<u8>>),
        ..SubjectEntry::new("btreemap", Some("std"))
    },
    SubjectEntry {
        about: "SkipMap<u64, u64>; strings: SkipMap<Box<[u8]>, Box<[u8]>>",
        ordered: true,
        u64s: one!(U64, skiplist::Map<u64, u64>),
        strings: one!(Strings, skiplist::Map<Bytes, Bytes>),
        ..SubjectEntry::new("skiplist", Some("crossbeam-skiplist"))
    },
    SubjectEntry {
        about: "TreeIndex<u64, u64>; strings: TreeIndex<Box<[u8]>, Box<[u8]>>",
        ordered: true,
        u64s: one!(U64, scc::Map<u64, u64>),
        strings: one!(Strings, scc::Map<Bytes, Bytes>),
        ..SubjectEntry::new("scc", Some("scc"))
    },
    SubjectEntry {
        about: "adaptive radix tree, Congee<usize, usize>",
        ordered: true,
        u64s: one!(U64, congee::Map),
        strings: Err("its keys are machine words"),
        ..SubjectEntry::new("congee", Some("congee"))
    },
    SubjectEntry {
        about: "adaptive radix tree, TreeMap<[u8; 8], u64>; strings: Box<[u8]> with a NUL",
        ordered: true,
        u64s: one!(U64, blart::Fixed),
        strings: one!(Strings, blart::Terminated),
        ..SubjectEntry::new("blart", Some("blart"))
    },
    SubjectEntry {
        about: "trie of B+-trees, MassTree<u64>, keys as big-endian bytes; one writer: 0.9.5 loses removals beside others",
        ordered: true,
        u64s: one!(U64, masstree::Map),
        // Found by this program: of a million paths, seven are inserted and not there afterwards; and a range
        // that begins inside a long common prefix skips keys.
        strings: Err("0.9.5 loses keys that share long first parts, a few in a million"),
        ..SubjectEntry::new("masstree", Some("masstree"))
    },
    SubjectEntry {
        about: "adaptive radix tree, ArrayKey<16>; strings: VectorKey with a NUL; no scans, 0.11 walks to them",
        ordered: true,
        u64s: one!(U64, rart::Fixed),
        strings: one!(Strings, rart::Terminated),
        ..SubjectEntry::new("rart", Some("rart"))
    },
    SubjectEntry {
        about: "BTreeMap<u64, u64> of two levels; strings: BTreeMap<Box<[u8]>, Box<[u8]>>",
        ordered: true,
        u64s: one!(U64, indexset::Map<u64, u64>),
        strings: one!(Strings, indexset::Map<Bytes, Bytes>),
        ..SubjectEntry::new("indexset", Some("indexset"))
    },
    SubjectEntry {
        about: "sorted array, binary search; static: gathered, then made",
        u64s: one!(U64, sorted::Map<u64, u64>),
        strings: one!(Strings, sorted::Map<Bytes, Bytes>),
        ..SubjectEntry::new("sorted", None)
    },
    SubjectEntry {
        about: "sorted array in breadth-first order; static",
        u64s: one!(U64, eytzinger::Map<u64, u64>),
        strings: one!(Strings, eytzinger::Map<Bytes, Bytes>),
        ..SubjectEntry::new("eytzinger", None)
    },
    SubjectEntry {
        about: "PGM-index, a learned index over a sorted array; static; 1.3.0 may miss, then a binary search finds",
        u64s: one!(U64, pgm::Map),
        strings: Err("it learns numbers"),
        ..SubjectEntry::new("pgm", Some("pgm-extra"))
    },
    SubjectEntry {
        about: "S+ tree, nodes of 16 keys in arrays; static",
        u64s: one!(U64, s_tree::Map),
        strings: Err("its nodes hold numbers"),
        ..SubjectEntry::new("s-tree", None)
    },
    SubjectEntry {
        about: "finite state transducer, keys to numbers of an array of values; static",
        u64s: one!(U64, fst::Map<u64>),
        strings: one!(Strings, fst::Map<Bytes>),
        ..SubjectEntry::new("fst", Some("fst"))
    },
    table!(
        "cuckoo",
        None,
        Rapid,
        cuckoo,
        "cuckoo table written here: two buckets of four, tags, search in breadth"
    ),
    table!(
        "f14",
        None,
        Rapid,
        f14,
        "F14 (own): written here after F14's description, chunks of 14, tags, overflow counts"
    ),
    #[cfg(target_arch = "x86_64")]
    table!("f14-sse2", None, Rapid, f14_sse2, "the same, with tags compared by a vector instruction"),
    table!(
        "hashbrown",
        Some("hashbrown"),
        Fold,
        hashbrown,
        "HashMap; point operations only, as with all tables that hash"
    ),
    table!("hashmap", Some("std"), Std, hashmap, "std's HashMap"),
    table!("papaya", Some("papaya"), Std, papaya, "HashMap, concurrent, readers without locks"),
    table!("dashmap", Some("dashmap"), Std, dashmap, "DashMap, concurrent, shards with locks"),
    table!("scc-hash", Some("scc"), Std, scc_hash, "HashMap, concurrent, locks on buckets"),
    SubjectEntry {
        about: "does nothing: what the measuring loop itself costs",
        u64s: one!(U64, empty::Empty),
        strings: one!(Strings, empty::Empty),
        ..SubjectEntry::new(EMPTY, None)
    },
    SubjectEntry {
        about: "a store in the kernel (llds): changed by runs of 64 operations, looked at in its mapping",
        u64s: Err(ONLY_LLDS),
        strings: Err(ONLY_LLDS),
        llds: Some(arm::run_llds::<kernel::Kernel>),
        ..SubjectEntry::new("llds", None)
    },
    SubjectEntry {
        about: "the same, a system call for each operation",
        u64s: Err(ONLY_LLDS),
        strings: Err(ONLY_LLDS),
        llds: Some(arm::run_llds::<kernel::KernelCalls>),
        ..SubjectEntry::new("llds-calls", None)
    },
    #[cfg(feature = "llds-user")]
    SubjectEntry {
        about: "the kernel's engine in this process: changed by runs of 64 operations, looked at without its lock",
        u64s: Err(ONLY_LLDS),
        strings: Err(ONLY_LLDS),
        llds: Some(arm::run_llds::<kernel::User>),
        ..SubjectEntry::new("llds-user", None)
    },
    #[cfg(feature = "llds-user")]
    SubjectEntry {
        about: "the same, a call for each operation",
        u64s: Err(ONLY_LLDS),
        strings: Err(ONLY_LLDS),
        llds: Some(arm::run_llds::<kernel::UserCalls>),
        ..SubjectEntry::new("llds-user-calls", None)
    },
];

/// What does a job on a structure that keeps strings where they were loaded; `None` if it has to copy them.
pub(crate) fn in_place(structure: &str) -> Option<Result<Runs, &'static str>> {
    Some(match structure {
        "btreemap" => one!(Strings, btreemap::Map<Pointed, Pointed>),
        "cuckoo" => hashed!(Strings, cuckoo<Pointed, Pointed>),
        "f14" => hashed!(Strings, f14<Pointed, Pointed>),
        "hashbrown" => hashed!(Strings, hashbrown<Pointed, Pointed>),
        _ => return None,
    })
}

/// Why a store of the kernel home is in no other comparison.
const ONLY_LLDS: &str = "only asked in llds's workload";

/// Every structure of this program, in the order of the tables.
pub(crate) fn entries() -> impl Iterator<Item = &'static SubjectEntry> + Clone {
    static FOREIGN: LazyLock<Vec<SubjectEntry>> =
        LazyLock::new(|| foreign::compiled_in().iter().map(SubjectEntry::of_foreign).collect());
    ENTRIES.iter().chain(FOREIGN.iter()).chain(OWN.get().into_iter().flatten())
}

/// Structures of the program that uses this crate as a library.
static OWN: OnceLock<Vec<SubjectEntry>> = OnceLock::new();

/// Adds the structures of the program, once.
pub(crate) fn register(own: Vec<SubjectEntry>) -> Result<(), String> {
    OWN.set(own).map_err(|_| "structures are registered once, all together".to_owned())
}

/// Whether a name is that of a file: of a library, with or without a structure in it, or of a program.
pub(crate) fn is_file(name: &str) -> bool {
    name.starts_with(spoken::PREFIX) || foreign::is_library(name)
}

/// Does a job on a structure of another language.
fn of_foreign<K: foreign::Native>(job: &Job, walk: Walk, report: Report<'_>) -> Outcome {
    match foreign::choose(&job.subject) {
        Err(why) => Outcome::Left(why),
        Ok(offer) if offer.ordered => arm::run::<K, Foreign<K, true>>(job, walk, report),
        Ok(_) => arm::run::<K, Foreign<K, false>>(job, walk, report),
    }
}

impl SubjectEntry {
    /// An entry that holds nothing yet.
    pub(crate) const fn new(name: &'static str, package: Option<&'static str>) -> SubjectEntry {
        SubjectEntry {
            name,
            package,
            about: "",
            ordered: false,
            hash: None,
            u64s: Err("it holds no numbers"),
            strings: Err("it holds no strings"),
            llds: None,
            foreign: false,
        }
    }

    /// The entry of a name: of this program, or of a library.
    pub(crate) fn find(name: &str) -> Result<Option<&'static SubjectEntry>, String> {
        /// What libraries have offered.
        static NAMED: Mutex<Vec<&'static SubjectEntry>> = Mutex::new(Vec::new());
        if !is_file(name) {
            return Ok(entries().find(|entry| entry.name == name));
        }
        let mut named = lock(&NAMED);
        let entry = if name.starts_with(spoken::PREFIX) {
            SubjectEntry::of_spoken(name)
        } else {
            SubjectEntry::of_foreign(foreign::find(name)?)
        };
        if let Some(there) = named.iter().find(|there| there.name == entry.name) {
            return Ok(Some(there));
        }
        let entry = Box::leak(Box::new(entry));
        named.push(entry);
        Ok(Some(entry))
    }

    fn of_spoken(name: &str) -> SubjectEntry {
        SubjectEntry {
            u64s: Ok(Runs::One(arm::run_spoken)),
            strings: Err("what is spoken by lines is numbers"),
            about: "a program that is spoken to by lines",
            foreign: true,
            ..SubjectEntry::new(name.to_owned().leak(), None)
        }
    }

    fn of_foreign(offer: &'static Offer) -> SubjectEntry {
        let mut entry = SubjectEntry {
            about: &offer.about,
            ordered: offer.ordered,
            foreign: true,
            ..SubjectEntry::new(&offer.name, None)
        };
        if offer.holds_u64s() {
            entry.u64s = Ok(Runs::One(of_foreign::<U64>));
        }
        if offer.holds_strings() {
            entry.strings = Ok(Runs::One(of_foreign::<Strings>));
        }
        entry
    }

    /// The version measured, as the lock file has it.
    pub(crate) fn version(&self) -> Option<&'static str> {
        lock_file::version(self.package?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subjects::IN_PLACE;

    #[test]
    fn what_keeps_pairs_in_place_is_listed() {
        for entry in ENTRIES {
            assert_eq!(in_place(entry.name).is_some(), IN_PLACE.contains(&entry.name), "{}", entry.name);
        }
    }

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
