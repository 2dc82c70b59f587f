//! The list of the subjects, and how a job finds its own.

use crate::arm;
use crate::data::{Counters, KindName, Strings, U64, Walk};
use crate::job::{Job, Outcome, Report, Task};
use crate::lock_file;
use crate::subjects::{
    EMPTY, FORREST, Forrest, Locked, RbTree, blart, btreemap, congee, empty, hashbrown, kernel, masstree,
    scc, skiplist,
};

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
    /// Does a job on `u64` pairs, or why it is not asked to.
    pub(crate) u64s: Result<Run, &'static str>,
    /// Does a job on string pairs, or why it is not asked to.
    pub(crate) strings: Result<Run, &'static str>,
    /// Does llds's workload; `None` for those that are not in that comparison.
    pub(crate) llds: Option<Run>,
}

/// Does a job on one subject.
pub(crate) type Run = fn(&Job, Walk, Report<'_>) -> Outcome;

/// Every subject, in the order of the tables.
pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        name: FORREST,
        package: Some("forrest-index"),
        about: "this project's index; 8-byte keys as big-endian bytes",
        ordered: true,
        u64s: Ok(arm::run::<U64, Forrest>),
        strings: Ok(arm::run::<Strings, Forrest>),
        llds: Some(arm::run_llds::<Forrest>),
    },
    Entry {
        name: "rbtree",
        package: None,
        about: "red-black tree, one malloc per node and one per value",
        ordered: true,
        u64s: Ok(arm::run::<U64, RbTree<U64>>),
        strings: Ok(arm::run::<Strings, RbTree<Strings>>),
        llds: Some(arm::run_llds::<Locked<RbTree<Counters>>>),
    },
    Entry {
        name: "btreemap",
        package: Some("std"),
        about: "BTreeMap<u64, u64>; strings: BTreeMap<Vec<u8>, Vec<u8>>",
        ordered: true,
        u64s: Ok(arm::run::<U64, btreemap::Map<u64, u64>>),
        strings: Ok(arm::run::<Strings, btreemap::Map<Vec<u8>, Vec<u8>>>),
        llds: None,
    },
    Entry {
        name: "skiplist",
        package: Some("crossbeam-skiplist"),
        about: "SkipMap<u64, u64>; strings: SkipMap<Box<[u8]>, Box<[u8]>>",
        ordered: true,
        u64s: Ok(arm::run::<U64, skiplist::Map<u64, u64>>),
        strings: Ok(arm::run::<Strings, skiplist::Map<Box<[u8]>, Box<[u8]>>>),
        llds: None,
    },
    Entry {
        name: "scc",
        package: Some("scc"),
        about: "TreeIndex<u64, u64>; strings: TreeIndex<Box<[u8]>, Box<[u8]>>",
        ordered: true,
        u64s: Ok(arm::run::<U64, scc::Map<u64, u64>>),
        strings: Ok(arm::run::<Strings, scc::Map<Box<[u8]>, Box<[u8]>>>),
        llds: None,
    },
    Entry {
        name: "congee",
        package: Some("congee"),
        about: "adaptive radix tree, Congee<usize, usize>",
        ordered: true,
        u64s: Ok(arm::run::<U64, congee::Map>),
        strings: Err("its keys are machine words"),
        llds: None,
    },
    Entry {
        name: "blart",
        package: Some("blart"),
        about: "adaptive radix tree, TreeMap<[u8; 8], u64>; strings: Box<[u8]> with a NUL",
        ordered: true,
        u64s: Ok(arm::run::<U64, blart::Fixed>),
        strings: Ok(arm::run::<Strings, blart::Terminated>),
        llds: None,
    },
    Entry {
        name: "masstree",
        package: Some("masstree"),
        about: "trie of B+-trees, MassTree<u64>, keys as big-endian bytes",
        ordered: true,
        u64s: Ok(arm::run::<U64, masstree::Map>),
        // Found by this program: of a million paths, seven are inserted and not there afterwards; and a range
        // that begins inside a long common prefix skips keys.
        strings: Err("0.9.5 loses keys that share long first parts, a few in a million"),
        llds: None,
    },
    Entry {
        name: "hashbrown",
        package: Some("hashbrown"),
        about: "HashMap, default hasher; point operations only",
        ordered: false,
        u64s: Ok(arm::run::<U64, hashbrown::Map<u64, u64>>),
        strings: Ok(arm::run::<Strings, hashbrown::Map<Box<[u8]>, Box<[u8]>>>),
        llds: None,
    },
    Entry {
        name: EMPTY,
        package: None,
        about: "does nothing: what the measuring loop itself costs",
        ordered: false,
        u64s: Ok(arm::run::<U64, empty::Empty>),
        strings: Ok(arm::run::<Strings, empty::Empty>),
        llds: None,
    },
    Entry {
        name: "llds",
        package: None,
        about: "a store in the kernel (llds): changed by runs of 64 operations, looked at in its mapping",
        ordered: false,
        u64s: Err(ONLY_LLDS),
        strings: Err(ONLY_LLDS),
        llds: Some(arm::run_llds::<kernel::Kernel>),
    },
    Entry {
        name: "llds-calls",
        package: None,
        about: "the same, a system call for each operation",
        ordered: false,
        u64s: Err(ONLY_LLDS),
        strings: Err(ONLY_LLDS),
        llds: Some(arm::run_llds::<kernel::KernelCalls>),
    },
    #[cfg(feature = "llds-user")]
    Entry {
        name: "llds-user",
        package: None,
        about: "the kernel's engine in this process: changed by runs of 64 operations, looked at without its lock",
        ordered: false,
        u64s: Err(ONLY_LLDS),
        strings: Err(ONLY_LLDS),
        llds: Some(arm::run_llds::<kernel::User>),
    },
    #[cfg(feature = "llds-user")]
    Entry {
        name: "llds-user-calls",
        package: None,
        about: "the same, a call for each operation",
        ordered: false,
        u64s: Err(ONLY_LLDS),
        strings: Err(ONLY_LLDS),
        llds: Some(arm::run_llds::<kernel::UserCalls>),
    },
];

/// Why a store of the kernel home is in no other comparison.
const ONLY_LLDS: &str = "only asked in llds's workload";

/// Does a job in this process.
pub(crate) fn dispatch(job: &Job, walk: Walk, report: Report<'_>) -> Outcome {
    let Some(entry) = Entry::find(&job.subject) else {
        return Outcome::Left("there is no such subject".to_owned());
    };
    let run = match job.task {
        Task::Llds => entry.llds.ok_or("not in this comparison"),
        _ => entry.run(job.kind),
    };
    run.map_or_else(|why| Outcome::Left(why.to_owned()), |run| run(job, walk, report))
}

impl Entry {
    /// The entry of a name.
    pub(crate) fn find(name: &str) -> Option<&'static Entry> {
        ENTRIES.iter().find(|entry| entry.name == name)
    }

    /// Does a job on pairs of a kind, or why it is not asked to.
    pub(crate) fn run(&self, kind: KindName) -> Result<Run, &'static str> {
        match kind {
            KindName::U64 => self.u64s,
            KindName::Strings => self.strings,
        }
    }

    /// The version measured, as the lock file has it.
    pub(crate) fn version(&self) -> Option<&'static str> {
        lock_file::version(self.package?)
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
