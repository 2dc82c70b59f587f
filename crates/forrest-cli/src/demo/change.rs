//! The part of the tour about changes: a snapshot, changes, their differences, and the way back.

use super::ask::{Subtree, subtree_range};
use super::meta::{Meta, Time};
use super::walk::Report;
use super::{Tour, below};
use crate::diff::{Diff, Kind};
use crate::failure::Failure;
use crate::interrupt;
use crate::term::{self, Style};
use forrest::{Keyspace, View, WriteBatch};
use std::time::Instant;

/// Where the second walk goes; dropped at the end.
const SECOND: &str = "demo.second_walk";
/// A subtree that is changed holds at most this part of all entries.
const PART: u64 = 50;
/// And at most this many.
const SUBTREE_ENTRIES_MAX: u64 = 100_000;
/// Differences shown of each kind.
const SHOWN: u64 = 2;
/// Changes that bring the store back, in one batch; more than that take several.
const BATCH_OPS: usize = 500_000;

/// The result of a comparison.
#[derive(Default)]
struct Differences {
    added: u64,
    removed: u64,
    changed: u64,
    shown: Vec<(Kind, Vec<u8>)>,
}

impl Tour<'_> {
    /// Takes a snapshot, changes the store, compares, and brings it back to the state of the disk.
    pub(super) fn changes(&mut self, subtrees: &[Subtree], report: &Report) -> Result<(), Failure> {
        self.heading(format_args!("A snapshot, compared with the store after changes"))?;
        let snapshot = self.db.snapshot()?.keyspace(self.files.name())?;
        self.dim("(the changes are made in the store; nothing on the disk is touched)")?;
        let mut small = small_subtrees(subtrees, report.entries);
        if let Some(subtree) = small.next() {
            let range = subtree_range(&[&subtree.path[..], b"/"].concat());
            let gone = self.files.count(range.clone())?;
            self.files.delete_range(range)?;
            let gone = term::plural(gone, "entry", "entries");
            self.path_line(format_args!("   delete_range: {gone} gone below"), &subtree.path)?;
        }
        if let Some(subtree) = small.next() {
            let moved = self.rename(&subtree.path)?;
            let moved = term::plural(moved, "entry", "entries");
            self.path_line(format_args!("   one batch: {moved} renamed below"), &subtree.path)?;
        }
        let grown = self.grow_newest(3)?;
        if grown > 0 {
            let grown = term::plural(grown, "file", "files");
            self.say(format_args!("   update: the {grown} changed last made larger"))?;
        }
        let files = self.files.clone();
        self.compare(&snapshot, &files)?;

        if report.limited {
            // A second walk that stops early would meet other files.
            self.heading(format_args!("Back to the snapshot, by writing the differences back"))?;
            self.bring_to(&snapshot)?;
        } else {
            self.heading(format_args!("The snapshot, compared with a second walk"))?;
            let second = self.db.keyspace(SECOND)?;
            let start = Instant::now();
            let again = self.walk(u64::MAX, Some(report.entries), |path, meta| {
                let mut value = Vec::with_capacity(48);
                meta.encode(&mut value);
                Ok(second.set(path, &value)?)
            })?;
            let took = term::span(start.elapsed().as_nanos() as u64);
            let again = term::plural(again.entries, "entry", "entries");
            self.say(format_args!("   {again} walked again, into a keyspace of their own, in {took}"))?;
            self.bring_to(&second)?;
            drop(second);
            self.db.drop_keyspace(SECOND)?;
        }
        self.compare(&snapshot, &files)
    }

    /// Renames a directory with everything below it, in one batch, so that readers see it at one instant.
    fn rename(&mut self, directory: &[u8]) -> Result<u64, Failure> {
        let mut batch = WriteBatch::new();
        let mut moved = 0;
        for entry in self.files.range(subtree_range(&[directory, b"/"].concat())) {
            interrupt::check()?;
            let entry = entry?;
            let rest = &entry.key()[directory.len()..];
            let new = [directory, b".renamed", rest].concat();
            batch.on(&self.files).delete(entry.key()).set(new, entry.value()?);
            moved += 1;
        }
        self.db.write(&batch)?;
        Ok(moved)
    }

    fn grow_newest(&mut self, count: usize) -> Result<u64, Failure> {
        let mut grown = 0;
        for entry in self.by_time.range(..).rev().take(count) {
            let entry = entry?;
            let Some((_, path)) = Time::decode_key(entry.key()) else { continue };
            let new = self.files.update(path, |old| {
                let mut value = old?.to_vec();
                if let Some(meta) = Meta::decode(&value) {
                    Meta { size: meta.size.saturating_add(1), ..meta }.encode(&mut value);
                }
                Some(value)
            })?;
            grown += u64::from(new.is_some());
        }
        Ok(grown)
    }

    /// Makes `files` what `wanted` is.
    fn bring_to(&mut self, wanted: &View) -> Result<(), Failure> {
        let start = Instant::now();
        let mut batch = WriteBatch::new();
        let mut count = 0;
        for change in Diff::of(&self.files, wanted) {
            interrupt::check()?;
            let change = change?;
            let mut on = batch.on(&self.files);
            match change.kind {
                Kind::Added | Kind::Changed => on.set(change.key, change.value),
                Kind::Removed => on.delete(change.key),
            };
            count += 1;
            if batch.len() == BATCH_OPS {
                self.db.write(&batch)?;
                batch.clear();
            }
        }
        self.db.write(&batch)?;
        let took = term::span(start.elapsed().as_nanos() as u64);
        let count = term::plural(count, "difference", "differences");
        self.say(format_args!("   {count} found and written into the store, as one batch: {took}"))
    }

    /// Merges two views and tells how they differ.
    fn compare(&mut self, old: &View, new: &Keyspace) -> Result<(), Failure> {
        let start = Instant::now();
        let mut found = Differences::default();
        for change in Diff::of(old, new) {
            interrupt::check()?;
            let change = change?;
            let count = match change.kind {
                Kind::Added => &mut found.added,
                Kind::Removed => &mut found.removed,
                Kind::Changed => &mut found.changed,
            };
            *count += 1;
            if *count <= SHOWN {
                found.shown.push((change.kind, change.key));
            }
        }
        let took = term::span(start.elapsed().as_nanos() as u64);
        let keys = term::plural(new.count(..)?, "key", "keys");
        let Differences { added, removed, changed, mut shown } = found;
        if added + removed + changed == 0 {
            let same = self.term.paint(Style::Green, "no difference");
            self.say(format_args!("   {same} between the snapshot and the store"))?;
        } else {
            let parts = [
                self.term.paint(Style::Red, format_args!("- {} removed", term::grouped(removed))),
                self.term.paint(Style::Green, format_args!("+ {} added", term::grouped(added))),
                self.term.paint(Style::Yellow, format_args!("~ {} changed", term::grouped(changed))),
            ];
            self.say(format_args!("   {}", parts.join("   ")))?;
        }
        shown.sort_by_key(|(kind, _)| match kind {
            Kind::Removed => 0,
            Kind::Added => 1,
            Kind::Changed => 2,
        });
        let stem = below(&self.root).len();
        for (kind, key) in shown {
            let mark = match kind {
                Kind::Removed => self.term.paint(Style::Red, "-"),
                Kind::Added => self.term.paint(Style::Green, "+"),
                Kind::Changed => self.term.paint(Style::Yellow, "~"),
            };
            self.path_line(format_args!("     {mark}"), key.get(stem..).unwrap_or(&key))?;
        }
        self.dim(&format!("both sides merged in order, {keys}, in {took}"))
    }
}

/// Subtrees that can be changed without changing most of the store, the largest first, none of which lies
/// within another.
fn small_subtrees(subtrees: &[Subtree], entries: u64) -> impl Iterator<Item = &Subtree> {
    let most = (entries / PART).clamp(1, SUBTREE_ENTRIES_MAX);
    let mut taken: Vec<&[u8]> = Vec::new();
    subtrees.iter().filter(move |subtree| {
        let is_below = |a: &[u8], b: &[u8]| a.strip_prefix(b).is_some_and(|rest| rest.starts_with(b"/"));
        let is_apart = taken.iter().all(|t| !is_below(t, &subtree.path) && !is_below(&subtree.path, t));
        let takes = subtree.entries <= most && is_apart;
        if takes {
            taken.push(&subtree.path);
        }
        takes
    })
}
