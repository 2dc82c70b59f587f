//! `kvbench list`: everything that can be measured, with versions and remarks.

use crate::alloc::Allocator;
use crate::hashes::{self, HASHES};
use crate::lock_file;
use crate::names::Name;
use crate::registry;
use crate::run_command;
use crate::stores;
use std::io::{self, Write};

/// Prints the list.
pub(crate) fn print(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "Structures (a subject is STRUCTURE[+HASH][@ALLOCATOR]):")?;
    for name in Name::all() {
        let entry = name.entry;
        let of = if entry.foreign { "system" } else { "here" };
        let version = entry.version().or(entry.package).unwrap_or(of);
        let hash = name.hash.map_or_else(String::new, |hash| format!(" (+{} by itself)", hash.name()));
        writeln!(out, "{:<12} {version:<8} {}{hash}", entry.name, entry.about)?;
    }
    print_left_out(out, registry::LEFT_OUT)?;
    writeln!(out, "{:<12} {:<8} of a library made with kvbench_subject.h", "./FILE.so:NAME", "")?;
    writeln!(out, "{:<12} {:<8} a program that is spoken to by lines", "exec:FILE", "")?;

    writeln!(out, "\nHashes, and how each does in the tests of SMHasher3:")?;
    for about in HASHES {
        let version = lock_file::version(about.package).unwrap_or(about.package);
        let alias = about.alias.map_or_else(String::new, |alias| format!("; also {alias}"));
        writeln!(out, "{:<12} {version:<8} {:<28} {}{alias}", about.name, about.verdict, about.about)?;
    }
    print_left_out(out, hashes::LEFT_OUT)?;

    writeln!(out, "\nAllocators, of a subject's whole process:")?;
    for allocator in Allocator::ALL {
        let version = allocator.package().map_or(Some("system"), lock_file::version).unwrap_or("");
        let missing = allocator.compiled_in().err().unwrap_or_default();
        writeln!(out, "{}", format!("{:<12} {version:<8} {missing}", allocator.name()).trim_end())?;
    }

    writeln!(out, "\nSuites, for `kvbench run`:")?;
    for (name, about) in run_command::suites() {
        writeln!(out, "{name:<12} {about}")?;
    }

    writeln!(out, "\nStores on disk:")?;
    for entry in stores::ENTRIES {
        let version = entry.version().unwrap_or_default();
        let missing = if entry.run.is_ok() { "" } else { " (not compiled in)" };
        writeln!(out, "{:<12} {version:<8} {}{missing}", entry.name, entry.about)?;
    }
    Ok(())
}

fn print_left_out(out: &mut impl Write, left_out: &[(&str, &str)]) -> io::Result<()> {
    left_out.iter().try_for_each(|(name, why)| writeln!(out, "{name:<12} {:<8} left out: {why}", "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_listed_with_its_version() {
        let mut text = Vec::new();
        print(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for part in
            ["f14          here", "hot          -", "rapidhash    4.", "xxhash:XX3_64bits", "mimalloc     0."]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.lines().all(|line| line.len() <= 130), "{text}");
    }
}
