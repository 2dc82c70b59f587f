//! `kvbench list`: everything that can be measured, with versions and remarks.

use crate::alloc::Allocator;
use crate::hashes::{self, HASHES};
use crate::lock_file;
use crate::names::Name;
use crate::registry;
use crate::run_command;
use crate::stores;
use crate::tables;
use std::io::{self, Write};

/// Prints the list.
pub(crate) fn print(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "Structures (a subject is STRUCTURE[+HASH][@ALLOCATOR]):")?;
    for name in Name::all() {
        let entry = name.entry;
        let of = if entry.foreign { "system" } else { "here" };
        let version = entry.version().or(entry.package).unwrap_or(of);
        let hash = name.hash.map_or_else(String::new, |hash| format!(" (+{} by itself)", hash.name()));
        print_line(out, entry.name, version, &format!("{}{hash}", entry.about))?;
    }
    print_left_out(out, registry::LEFT_OUT)?;
    print_line(out, "./FILE.so:NAME", "", "of a library made with kvbench_subject.h")?;
    print_line(out, "exec:FILE", "", "a program that is spoken to by lines")?;

    writeln!(out, "\nHashes, and how each does in the tests of SMHasher3:")?;
    for about in HASHES {
        let version = lock_file::version(about.package).unwrap_or(about.package);
        let alias = about.alias.map_or_else(String::new, |alias| format!("; also {alias}"));
        print_line(out, about.name, version, &format!("{}; {}{alias}", about.verdict, about.about))?;
    }
    print_left_out(out, hashes::LEFT_OUT)?;

    writeln!(out, "\nAllocators, of a subject's whole process:")?;
    for &allocator in Allocator::ALL {
        let version = allocator.package().map_or(Some("system"), lock_file::version).unwrap_or("");
        let missing = allocator.compiled_in().err().unwrap_or_default();
        print_line(out, allocator.name(), version, &missing)?;
    }

    writeln!(out, "\nSuites, for `kvbench run`:")?;
    for (name, about) in run_command::suites() {
        writeln!(out, "{name:<12} {}", tables::wrap(&about, 13, 13))?;
    }

    writeln!(out, "\nStores on disk:")?;
    for entry in stores::ENTRIES {
        let version = entry.version().unwrap_or_default();
        let missing = if entry.run.is_ok() { "" } else { " (not compiled in)" };
        print_line(out, entry.name, &version, &format!("{}{missing}", entry.about))?;
    }
    Ok(())
}

fn print_left_out(out: &mut impl Write, left_out: &[(&str, &str)]) -> io::Result<()> {
    left_out.iter().try_for_each(|(name, why)| print_line(out, name, "-", &format!("left out: {why}")))
}

/// A name with its version, and what it is.
fn print_line(out: &mut impl Write, name: &str, version: &str, about: &str) -> io::Result<()> {
    let head = format!("{name:<12} {version:<8} ");
    let about = tables::wrap(about, head.chars().count(), 22);
    writeln!(out, "{}", format!("{head}{about}").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::LINE_WIDTH;

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
        assert!(text.lines().all(|line| line.chars().count() <= LINE_WIDTH), "{text}");
    }
}
