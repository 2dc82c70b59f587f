//! The names of subjects, `STRUCTURE[+HASH][@ALLOCATOR]`, read and written in one place; and how a job finds what it
//! names.
//!
//! The defaults are the structure's own hash, and malloc. The full name, in tables and records, has the hash of every
//! structure that hashes, and the allocator unless it is malloc.

use crate::alloc::{self, Allocator};
use crate::data::{KindName, Walk};
use crate::hashes::{self, HASHES, Hash};
use crate::job::{Job, Outcome, Report, Task};
use crate::registry::{self, Run, Runs, SubjectEntry};
use std::fmt;

/// A subject: a structure, the hash that it uses, and what its process allocates with.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    /// The structure.
    pub(crate) entry: &'static SubjectEntry,
    /// The hash; `None` where nothing is hashed.
    pub(crate) hash: Option<Hash>,
    /// The allocator.
    pub(crate) allocator: Allocator,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry.name)?;
        if let Some(hash) = self.hash {
            write!(f, "+{}", hash.name())?;
        }
        if self.allocator != Allocator::Malloc {
            write!(f, "@{}", self.allocator.name())?;
        }
        Ok(())
    }
}

/// Names with commas between.
fn list(names: impl Iterator<Item = &'static str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// The error for an unknown name.
fn unknown(what: &str, name: &str, left_out: &[(&str, &str)], all: String) -> String {
    match left_out.iter().find(|(left, _)| *left == name) {
        Some((_, why)) => format!("{name} is left out: {why}; the {what} are {all}"),
        None => format!("{name:?} is none of the {what}, which are {all}"),
    }
}

impl Name {
    /// The subject that is a structure with its own hash, and malloc.
    pub(crate) fn of(entry: &'static SubjectEntry) -> Name {
        Name { entry, hash: entry.hash, allocator: Allocator::Malloc }
    }

    /// Every structure, as [`Name::of`] has it.
    pub(crate) fn all() -> impl Iterator<Item = Name> {
        registry::entries().map(Name::of)
    }

    /// Parses a name. The error lists the valid names.
    pub(crate) fn parse(text: &str) -> Result<Name, String> {
        // The name of a file may have anything in it.
        if registry::is_file(text) {
            let entry = SubjectEntry::find(text)?.ok_or_else(|| format!("{text:?} is no file"))?;
            return Ok(Name::of(entry));
        }
        let (rest, allocator) =
            text.split_once('@').map_or((text, None), |(rest, allocator)| (rest, Some(allocator)));
        let (structure, hash) =
            rest.split_once('+').map_or((rest, None), |(structure, hash)| (structure, Some(hash)));
        let entry = SubjectEntry::find(structure)?.ok_or_else(|| {
            let all = list(registry::entries().map(|entry| entry.name));
            unknown("structures", structure, registry::LEFT_OUT, all)
        })?;
        let mut name = Name::of(entry);
        if let Some(hash) = hash {
            if entry.hash.is_none() {
                let hashed =
                    list(registry::entries().filter(|entry| entry.hash.is_some()).map(|entry| entry.name));
                return Err(format!(
                    "{structure} hashes nothing, so it takes no +HASH; those that do are {hashed}"
                ));
            }
            let all = || list(HASHES.iter().map(|about| about.name));
            let found = Hash::find(hash).ok_or_else(|| unknown("hashes", hash, hashes::LEFT_OUT, all()))?;
            name.hash = Some(found);
        }
        if let Some(allocator) = allocator {
            let all = || list(Allocator::ALL.iter().map(|allocator| allocator.name()));
            let found = Allocator::find(allocator);
            name.allocator = found.ok_or_else(|| unknown("allocators", allocator, &[], all()))?;
            if entry.foreign && name.allocator != Allocator::Malloc {
                return Err(format!(
                    "{structure} is in another language and takes no @ALLOCATOR: it allocates by itself"
                ));
            }
        }
        Ok(name)
    }

    /// Whether it is the structure of this name as it is by itself: with its own hash, and malloc.
    pub(crate) fn is(self, structure: &str) -> bool {
        self.entry.name == structure && self.hash == self.entry.hash && self.allocator == Allocator::Malloc
    }

    /// Does a job on pairs of a kind, or why it is not asked to.
    pub(crate) fn run(self, kind: KindName) -> Result<Run, String> {
        self.run_on(kind, false)
    }

    /// The same, on a structure that keeps pairs where they were loaded if it can and is to be `in_place`.
    fn run_on(self, kind: KindName, in_place: bool) -> Result<Run, String> {
        self.allocator.compiled_in()?;
        let runs = match kind {
            KindName::U64 => self.entry.u64s,
            KindName::Strings if in_place => {
                registry::in_place(self.entry.name).unwrap_or(self.entry.strings)
            }
            KindName::Strings => self.entry.strings,
        };
        match (runs?, self.hash) {
            (Runs::One(run), _) => Ok(run),
            (Runs::Hashed(runs), Some(hash)) => Ok(runs(hash)),
            (Runs::Hashed(_), None) => Err("it has no hash".to_owned()),
        }
    }
}

/// Does a job in this process.
pub(crate) fn dispatch(job: &Job, walk: Walk, report: Report<'_>) -> Outcome {
    let name = match Name::parse(&job.subject) {
        Ok(name) => name,
        Err(why) => return Outcome::Left(why),
    };
    let run = match job.task {
        Task::Llds => name.entry.llds.ok_or_else(|| "not in this comparison".to_owned()),
        _ => name.run_on(job.kind, job.data.as_ref().is_some_and(|file| file.in_place)),
    };
    match run {
        Err(why) => Outcome::Left(why),
        Ok(_) if alloc::chosen() != name.allocator => {
            Outcome::Failed(format!("its process allocates with {}", alloc::chosen().name()))
        }
        Ok(run) => run(job, walk, report),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_in_full() {
        for (text, full) in [
            ("forrest", "forrest"),
            ("hashbrown", "hashbrown+foldhash"),
            ("hashmap", "hashmap+std"),
            ("hashbrown+xxh3", "hashbrown+xxh3"),
            ("cuckoo+xxhash:XX3_64bits@mimalloc", "cuckoo+xxh3@mimalloc"),
            ("f14+t1ha::t1ha@malloc", "f14+t1ha"),
            ("cuckoo+city::cityhash64", "cuckoo+cityhash"),
            ("btreemap@jemalloc", "btreemap@jemalloc"),
        ] {
            let name = Name::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(name.to_string(), full);
            assert_eq!(Name::parse(full).ok().map(|name| name.to_string()).as_deref(), Some(full));
        }
        assert!(Name::parse("hashbrown+foldhash").is_ok_and(|name| name.is("hashbrown")));
        assert!(!Name::parse("hashbrown+xxh3").is_ok_and(|name| name.is("hashbrown")));
        assert!(!Name::parse("rbtree@mimalloc").is_ok_and(|name| name.is("rbtree")));
    }

    #[test]
    fn a_name_that_is_nobodys_is_answered_with_those_there_are() {
        for (text, parts) in [
            ("btree", &["\"btree\"", "btreemap", "cuckoo"][..]),
            ("cuckoo+md5", &["\"md5\"", "rapidhash", "cityhash"]),
            ("cuckoo@tcmalloc", &["\"tcmalloc\"", "malloc, mimalloc, jemalloc, snmalloc, rpmalloc"]),
            ("btreemap+xxh3", &["btreemap hashes nothing", "cuckoo, f14", "hashbrown"]),
            ("cuckoo+gxhash", &["AES", "rapidhash"]),
            ("hot", &["C++", "btreemap"]),
            ("", &["btreemap"]),
            ("cuckoo+", &["rapidhash"]),
            ("cuckoo@", &["malloc"]),
            ("cuckoo@mimalloc+xxh3", &["mimalloc+xxh3"]),
        ] {
            let why = Name::parse(text).map(|name| name.to_string()).unwrap_err();
            assert!(parts.iter().all(|part| why.contains(part)), "{text}: {why}");
        }
    }
}
