//! The ordered questions of the tour: a listing, the largest subtrees, the newest files, counts by extension.

use super::meta::{Meta, Time};
use super::{Tour, below};
use crate::codec::text;
use crate::failure::Failure;
use crate::interrupt;
use crate::term::{self, Style};
use forrest::View;
use std::cmp::Reverse;
use std::ops::Bound;
use std::time::Instant;

/// Lines of an answer.
const LINES: usize = 8;
/// Columns of a bar.
const BAR_COLUMNS: usize = 12;

/// A directory and how many entries are below it.
pub(super) struct Subtree {
    pub(super) path: Vec<u8>,
    pub(super) entries: u64,
}

/// The entries of one directory, found among everything below it.
struct Listing {
    names: Vec<Vec<u8>>,
    /// How often the cursor was sent past a subtree.
    seeks: u64,
}

impl Tour<'_> {
    /// Lists the root: its prefix is scanned, and a seek leads past each subtree.
    pub(super) fn list(&mut self) -> Result<(), Failure> {
        let prefix = below(&self.root);
        let shown = text::escape(&prefix);
        let shown = self.term.fit(&shown, self.term.columns.saturating_sub(40)).into_owned();
        self.heading(format_args!("List a directory: the prefix {shown}"))?;
        let start = Instant::now();
        let listing = Listing::of(&self.files, &prefix)?;
        let took = start.elapsed().as_nanos() as u64;
        for name in listing.names.iter().take(LINES) {
            let Some(meta) = self.meta(&[&prefix[..], name].concat())? else { continue };
            let slash: &[u8] = if meta.kind == b'd' { b"/" } else { b"" };
            let (size, time) = (term::size(meta.size), meta.time.to_utc());
            let start = format_args!("   {} {size:>10}  {time}", meta.permissions());
            self.path_line(start, &[name, slash].concat())?;
        }
        let more = listing.names.len().saturating_sub(LINES) as u64;
        let more = if more > 0 { format!("and {} more; ", term::grouped(more)) } else { String::new() };
        self.dim(&format!(
            "{more}found in {} by {}, past each subtree; times are UTC",
            term::span(took),
            term::plural(listing.seeks, "seek", "seeks")
        ))
    }

    /// Counts the ranges of all directories one and two levels down, and shows the largest.
    pub(super) fn subtrees(&mut self) -> Result<Vec<Subtree>, Failure> {
        self.heading(format_args!("The largest subtrees, by the count of a range"))?;
        let start = Instant::now();
        let mut subtrees = Vec::new();
        let mut bases = vec![below(&self.root)];
        for _level in 0..2 {
            let mut next = Vec::new();
            for base in bases {
                for name in Listing::of(&self.files, &base)?.names {
                    interrupt::check()?;
                    let prefix = [&base[..], &name, b"/"].concat();
                    let entries = self.files.count(subtree_range(&prefix))?;
                    if entries > 0 {
                        subtrees.push(Subtree { path: prefix[..prefix.len() - 1].to_vec(), entries });
                        next.push(prefix);
                    }
                }
            }
            bases = next;
        }
        let took = start.elapsed().as_nanos() as u64;
        subtrees.sort_by(|a, b| (Reverse(a.entries), &a.path).cmp(&(Reverse(b.entries), &b.path)));
        let whole = self.files.count(..)?;
        for subtree in subtrees.iter().take(LINES) {
            let bytes = self.bytes_below(&subtree.path)?;
            let bar = self.term.bar(subtree.entries as f64, whole as f64, BAR_COLUMNS);
            let bar = self.term.paint(Style::Blue, term::pad(&bar, BAR_COLUMNS));
            let (entries, size) = (term::grouped(subtree.entries), term::size(bytes));
            self.path_line(format_args!("   {entries:>10} {size:>10}  {bar}"), &subtree.path)?;
        }
        let count = term::plural(subtrees.len() as u64, "subtree", "subtrees");
        self.dim(&format!("{count}, one and two levels down, counted in {}", term::span(took)))?;
        Ok(subtrees)
    }

    /// Shows the end of the keyspace that is ordered by time.
    pub(super) fn newest(&mut self) -> Result<(), Failure> {
        self.heading(format_args!("The files changed last, from a keyspace ordered by time"))?;
        let start = Instant::now();
        let keys: Vec<_> = self.by_time.range(..).rev().take(LINES).collect::<Result<_, _>>()?;
        let took = start.elapsed().as_nanos() as u64;
        if keys.is_empty() {
            return self.dim("there are no regular files");
        }
        for entry in &keys {
            let Some((time, path)) = Time::decode_key(entry.key()) else { continue };
            let size = self.meta(path)?.map_or(String::new(), |meta| term::size(meta.size));
            self.path_line(format_args!("   {} {size:>10}", time.to_utc()), path)?;
        }
        self.dim(&format!(
            "read backwards from the end of {} in {}",
            term::plural(self.by_time.count(..)?, "key", "keys"),
            term::span(took)
        ))
    }

    /// Shows the counters that the walk kept with `add`.
    pub(super) fn extensions(&mut self) -> Result<(), Failure> {
        self.heading(format_args!("Files by extension, counted with add while walking"))?;
        let mut counts = Vec::new();
        if self.extension_files.first()?.is_none() {
            return self.dim("there are no regular files");
        }
        for entry in self.extension_files.range(..) {
            let entry = entry?;
            counts.push((integer(&entry.value()?), entry.key().to_vec()));
        }
        counts.sort_by(|a, b| (Reverse(a.0), &a.1).cmp(&(Reverse(b.0), &b.1)));
        let whole: u64 = counts.iter().map(|(files, _)| files).sum();
        for (files, extension) in counts.iter().take(LINES) {
            let bytes = self.extension_bytes.get(extension)?.map_or(0, |value| integer(&value));
            let bar = self.term.bar(*files as f64, whole as f64, BAR_COLUMNS);
            let bar = self.term.paint(Style::Blue, term::pad(&bar, BAR_COLUMNS));
            let name =
                if extension.is_empty() { b"(none)".to_vec() } else { [b".", &extension[..]].concat() };
            let (files, size) = (term::grouped(*files), term::size(bytes));
            self.path_line(format_args!("   {files:>10} {size:>10}  {bar}"), &name)?;
        }
        let more = counts.len().saturating_sub(LINES) as u64;
        if more > 0 {
            self.dim(&format!("and {} more", term::grouped(more)))?;
        }
        Ok(())
    }

    fn meta(&self, path: &[u8]) -> Result<Option<Meta>, Failure> {
        Ok(self.files.get(path)?.and_then(|value| Meta::decode(&value)))
    }

    fn bytes_below(&self, directory: &[u8]) -> Result<u64, Failure> {
        let mut bytes = 0_u64;
        for entry in self.files.range(subtree_range(&[directory, b"/"].concat())) {
            interrupt::check()?;
            let meta = Meta::decode(&entry?.value()?);
            bytes = bytes.saturating_add(meta.filter(|meta| meta.kind == b'-').map_or(0, |meta| meta.size));
        }
        Ok(bytes)
    }
}

impl Listing {
    fn of(files: &View, prefix: &[u8]) -> Result<Self, Failure> {
        let mut listing = Listing { names: Vec::new(), seeks: 1 };
        let mut cursor = files.cursor();
        let mut is_there = cursor.seek(prefix)?;
        while is_there {
            interrupt::check()?;
            let Some(name) = cursor.key().and_then(|key| key.strip_prefix(prefix)) else { break };
            match name.iter().position(|&b| b == b'/') {
                None => {
                    listing.names.push(name.to_vec());
                    is_there = cursor.next()?;
                }
                Some(slash) => {
                    let past = forrest::prefix_end(&[prefix, &name[..=slash]].concat());
                    listing.seeks += 1;
                    is_there = match past {
                        Some(past) => cursor.seek(past)?,
                        None => false,
                    };
                }
            }
        }
        Ok(listing)
    }
}

/// All keys that begin with `prefix`, which is not empty and does not end in 0xFF.
pub(super) fn subtree_range(prefix: &[u8]) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let end = forrest::prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded);
    (Bound::Included(prefix.to_vec()), end)
}

/// A counter's value; sizes and counts are never negative.
fn integer(value: &[u8]) -> u64 {
    value.try_into().map_or(0, |bytes| i64::from_be_bytes(bytes).max(0) as u64)
}

/// Keys, bytes of keys and bytes of values of a keyspace.
pub(super) fn payload(space: &View) -> Result<[u64; 3], Failure> {
    let mut sums = [0; 3];
    for entry in space.range(..) {
        interrupt::check()?;
        let entry = entry?;
        sums[0] += 1;
        sums[1] += entry.key().len() as u64;
        sums[2] += entry.value()?.len() as u64;
    }
    Ok(sums)
}
