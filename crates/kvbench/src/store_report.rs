//! What people read of `kvbench store`: tables of at most 80 columns, a column for each store; and the goals.

use crate::job::Durability;
use crate::record::{Figure, Goal, Relation};
use crate::runner;
use crate::statistics::number;
use crate::stores::FORREST;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// One store's figures.
pub(crate) struct Row {
    /// Whose.
    pub(crate) name: &'static str,
    /// The head of its column.
    pub(crate) label: String,
    /// By name.
    pub(crate) figures: BTreeMap<String, Figure>,
}

impl Row {
    fn median(&self, name: &str) -> Option<f64> {
        self.figures.get(name).map(|figure| figure.median)
    }

    /// The same of a step's figure, whose name ends so.
    fn of(&self, step: &str, end: &str) -> Option<f64> {
        self.median(&format!("{step}_{end}"))
    }
}

/// A figure as text, if there is one.
fn or_dash(figure: Option<f64>, text: impl Fn(f64) -> String) -> String {
    figure.map_or_else(|| "-".to_owned(), text)
}

/// Steps: the text in the report, the name in figures.
const STEPS: [(&str, &str); 17] = [
    ("load, settled", "load"),
    ("get, hit", "get"),
    ("get, miss", "miss"),
    ("gets of 64, per key", "multi_get_64"),
    ("seek", "seek"),
    ("scan of 50", "scan"),
    ("full scan, per pair", "forward"),
    ("backward, per pair", "backward"),
    ("update 1/2, get 1/2", "update"),
    ("  zipfian", "update_zipfian"),
    ("scan 95 %, insert 5 %", "insert"),
    ("  zipfian", "insert_zipfian"),
    ("batch of 100, per pair", "batch"),
    ("synced, 1 thread", "synced_1t"),
    ("synced, 2 threads", "synced_2t"),
    ("synced, 8 threads", "synced_8t"),
    ("compact, per pair", "compact"),
];

/// What stands in a table for a step of a store.
type Text = fn(&Row, &str) -> Option<String>;

/// The tables of all steps below the first, by their titles.
const OF_STEPS: [(&str, Text); 8] = [
    ("thousand operations a second", |row, step| Some(number(row.of(step, "ops_per_s")? / 1e3))),
    ("the same in the slowest second, of steps that took one", |row, step| {
        Some(number(row.of(step, "worst_ops_per_s")? / 1e3))
    }),
    ("CPU us per operation, all threads", |row, step| row.of(step, "cpu_ns").map(us)),
    ("reads from the device per operation: requests/KiB", |row, step| {
        let (requests, bytes) = (row.of(step, "reads")?, row.of(step, "read_bytes")?);
        (bytes > 0.0).then(|| format!("{requests:.2}/{:.1}", bytes / 1024.0))
    }),
    ("block reads per operation/those that the page cache had, at most", |row, step| {
        let cached = or_dash(row.of(step, "page_cache_reads"), |cached| format!("{cached:.3}"));
        Some(format!("{:.3}/{cached}", row.of(step, "block_reads")?))
    }),
    ("bytes written per operation that reads, by merges: timed/in the warm-up", |row, step| {
        let warm_up = or_dash(row.of(step, "warm_up_written_bytes"), number);
        Some(format!("{}/{warm_up}", number(row.of(step, "written_bytes")?)))
    }),
    ("us of which half, 99 %, 99.9 % of the operations stay below", |row, step| {
        let [p50, p99, p999] = ["p50_ns", "p99_ns", "p999_ns"].map(|part| row.of(step, part).map(short_us));
        Some(format!("{}/{}/{}", p50?, p99?, p999?))
    }),
    ("warm-up of steps that read, s/last change of the rate, %", |row, step| {
        let change = or_dash(row.of(step, "warm_up_change_percent"), |change| format!("{change:.1}"));
        Some(format!("{:.2}/{change}", row.of(step, "warm_up_s")?))
    }),
];

/// Columns of a line.
const LINE_WIDTH: usize = 80;
const NAME_WIDTH: usize = 24;
/// Widths in the table with a line for each store.
const LABEL_WIDTH: usize = 15;
const ACROSS_WIDTH: usize = 8;

/// A table with a column for each store. If there are too many for a line, it is printed in parts.
struct Table<'r> {
    title: String,
    rows: &'r [Row],
    /// Titles of lines, with a text for each store.
    lines: Vec<(&'static str, Vec<Option<String>>)>,
}

impl<'r> Table<'r> {
    fn new(title: impl Into<String>, rows: &'r [Row]) -> Table<'r> {
        Table { title: title.into(), rows, lines: Vec::new() }
    }

    /// Adds a line, if any store has a figure.
    fn line(&mut self, title: &'static str, text: impl Fn(&Row) -> Option<String>) {
        let texts: Vec<_> = self.rows.iter().map(text).collect();
        if texts.iter().any(Option::is_some) {
            self.lines.push((title, texts));
        }
    }

    /// Prints it, if it has lines.
    fn print(self, out: &mut impl Write) -> io::Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{}", self.title)?;
        let texts = self.lines.iter().flat_map(|(_, texts)| texts.iter().flatten());
        let labels = self.rows.iter().map(|row| &row.label);
        let width = labels.chain(texts).map(String::len).max().unwrap_or(0) + 2;
        // Parts of about the same number of stores.
        let fit = ((LINE_WIDTH - NAME_WIDTH) / width).max(1);
        let parts = self.rows.len().div_ceil(fit);
        let each = self.rows.len().div_ceil(parts);
        for from in (0..self.rows.len()).step_by(each) {
            let of = from..(from + each).min(self.rows.len());
            write!(out, "{:NAME_WIDTH$}", "")?;
            self.rows[of.clone()].iter().try_for_each(|row| write!(out, "{:>width$}", row.label))?;
            writeln!(out)?;
            for (title, texts) in &self.lines {
                write!(out, "{title:NAME_WIDTH$}")?;
                let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
                texts[of.clone()].iter().try_for_each(|one| write!(out, "{:>width$}", text(one)))?;
                writeln!(out)?;
            }
        }
        Ok(())
    }
}

/// Columns of the table with a line for each store: those of the first steps, us per operation.
fn across() -> impl Iterator<Item = (&'static str, String)> {
    // Variants, and steps that are measured last, are left to the whole table.
    let is_left = |name: &str| name.contains('_') || ["forward", "backward", "compact"].contains(&name);
    STEPS.iter().filter(move |(_, name)| !is_left(name)).map(|(_, name)| (*name, format!("{name}_ns")))
}

/// The head of that table.
pub(crate) fn head_across() -> String {
    across()
        .map(|(heading, _)| format!("{heading:>ACROSS_WIDTH$}"))
        .fold(format!("{:LABEL_WIDTH$}", ""), |head, one| head + &one)
}

/// A line of it.
pub(crate) fn line_across(label: &str, values: &BTreeMap<String, f64>) -> String {
    let text = |name: &str| or_dash(values.get(name).copied(), us);
    across()
        .map(|(_, name)| format!("{:>ACROSS_WIDTH$}", text(&name)))
        .fold(format!("{label:LABEL_WIDTH$}"), |line, one| line + &one)
}

fn us(ns: f64) -> String {
    number(ns / 1000.0)
}

/// Microseconds in four letters.
fn short_us(ns: f64) -> String {
    match ns / 1000.0 {
        us if us >= 9999.5 => format!("{:.0}k", us / 1000.0),
        us if us >= 9.95 => format!("{us:.0}"),
        us if us >= 0.995 => format!("{us:.1}"),
        us => format!("{us:.2}"),
    }
}

/// What a write is to survive, in words.
fn survives(durability: Durability) -> &'static str {
    match durability {
        Durability::Memory => "writes may be lost with the process",
        Durability::Process => "writes survive the process",
        Durability::Power => "each write survives power loss",
    }
}

/// The tables of one number of pairs, of a file if it has a name, whose writes survive this.
pub(crate) fn print(
    out: &mut impl Write,
    keys: u64,
    of: Option<&str>,
    durability: Durability,
    rows: &[Row],
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let (what, of) = (survives(durability), of.map_or_else(String::new, |of| format!(" of {of}")));
    let mut table = Table::new(format!("{} pairs{of}, {what}: us per operation", runner::keys(keys)), rows);
    for (title, name) in STEPS {
        let name = format!("{name}_ns");
        table.line(title, |row| row.median(&name).map(us));
        table.line("    least-most", |row| {
            let figure = row.figures.get(&name).filter(|figure| figure.rounds.len() > 1)?;
            Some(format!("{}-{}", us(figure.min), us(figure.max)))
        });
    }
    table.print(out)?;
    for (title, text) in OF_STEPS {
        let mut table = Table::new(title, rows);
        STEPS.iter().for_each(|(step, name)| table.line(step, |row| text(row, name)));
        table.print(out)?;
    }
    let mut table = Table::new("bytes for a byte stored, and memory at its peak", rows);
    for (title, name) in [
        ("written, load", "load_written_per_byte"),
        ("  read twice", "warm_up_written_per_byte"),
        ("written, updates", "update_written_per_byte"),
        ("  zipfian", "update_zipfian_written_per_byte"),
        ("written, inserts", "insert_written_per_byte"),
        ("  zipfian scans", "insert_zipfian_written_per_byte"),
        ("written, batches", "batch_written_per_byte"),
        ("written, synced", "synced_1t_written_per_byte"),
        ("  2 threads", "synced_2t_written_per_byte"),
        ("  8 threads", "synced_8t_written_per_byte"),
        ("on disk, loaded", "load_disk_per_byte"),
        ("  read twice", "warm_up_disk_per_byte"),
        ("on disk, compacted", "compact_disk_per_byte"),
    ] {
        table.line(title, |row| row.median(name).map(number));
    }
    let mib = |bytes: f64| format!("{} MiB", (bytes / f64::from(1 << 20)).round());
    for (title, name) in [("memory, loaded", "load_peak_bytes"), ("memory, at the end", "peak_bytes")] {
        table.line(title, |row| row.median(name).map(mib));
    }
    table.print(out)?;
    let mut table = Table::new("opened again, until the first pair is read: ms", rows);
    for (title, name) in [("closed before", "open_s"), ("killed after loading", "recover_s")] {
        table.line(title, |row| row.median(name).map(|seconds| number(seconds * 1e3)));
    }
    table.line("  of its pairs there, %", |row| row.median("recovered_percent").map(number));
    table.print(out)
}

/// What to know to read the tables.
pub(crate) fn print_legend(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\nload: every write by itself, until flushes and merges are done; reads: requests\n\
         of all processes to the device, bytes of the store's; on disk, loaded: with\n\
         logs; memory: pages of mapped files count (lmdb); redb/memory: it offers that,\n\
         not what was asked for; -: not offered, or left out. docs/benchmarks.md tells\n\
         how each is set up and what is not equal."
    )
}

/// Title, figure, peer to be compared with, and what the ratio may be at most.
type Wanted = (&'static str, &'static str, &'static str, f64);

const AGAINST: [Wanted; 8] = [
    ("load, random, settled", "load_ns", "rocksdb", 0.33),
    ("get, hit", "get_ns", "lmdb", 0.9),
    ("get, miss", "miss_ns", "fjall", 0.45),
    ("seek", "seek_ns", "lmdb", 1.0),
    ("scan of 50", "scan_ns", "lmdb", 0.7),
    ("full scan", "forward_ns", "lmdb", 0.5),
    ("half updates, half gets", "update_ns", "fjall", 0.25),
    ("95 % scans of 50, 5 % inserts", "insert_ns", "lmdb", 0.6),
];

/// Title, figure, and what it may be at most.
const ALONE: [(&str, &str, f64); 2] = [
    ("bytes written per byte stored", "load_written_per_byte", 2.0),
    ("bytes on disk per byte stored", "load_disk_per_byte", 1.02),
];

/// The same where a limit of memory makes the data many times larger than all caches.
const AGAINST_BEYOND: [Wanted; 5] = [
    ("get, hit", "get_ns", "fjall", 0.7),
    ("seek", "seek_ns", "fjall", 0.4),
    ("scan of 50", "scan_ns", "fjall", 0.6),
    ("half updates, half gets", "update_ns", "fjall", 0.8),
    ("95 % scans of 50, 5 % inserts", "insert_ns", "fjall", 0.6),
];

const ALONE_BEYOND: [(&str, &str, f64); 4] = [
    ("get, miss: blocks read", "miss_block_reads", 0.01),
    ("scan of 50: blocks read", "scan_block_reads", 2.0),
    ("bytes written per byte stored", "load_written_per_byte", 2.5),
    ("bytes on disk per byte stored", "load_disk_per_byte", 1.0),
];

/// Judges the goals that the rows have figures for. A run with a limit of memory has others, and then one about the
/// budget of each store, which is given in bytes.
pub(crate) fn goals(keys: u64, rows: &[Row], limited_budget: Option<u64>) -> Vec<Goal> {
    let find = |name: &str| rows.iter().find(|row| row.name == name);
    let Some(own) = find(FORREST) else { return Vec::new() };
    let judge =
        |title: String, measured, goal| Goal::judge(title, ("store", keys), measured, Relation::AtMost, goal);
    let (against, alone) = match limited_budget {
        None => (&AGAINST[..], &ALONE[..]),
        Some(_) => (&AGAINST_BEYOND[..], &ALONE_BEYOND[..]),
    };
    let against = against.iter().filter_map(|&(title, figure, peer, goal)| {
        let ratio = own.median(figure)? / find(peer)?.median(figure)?;
        Some(judge(format!("{title}, of {peer}'s time"), ratio, goal))
    });
    let alone = alone
        .iter()
        .filter_map(|&(title, figure, goal)| Some(judge(title.to_owned(), own.median(figure)?, goal)));
    let resident = limited_budget.zip(own.median("peak_bytes")).map(|(budget, peak)| {
        judge("most memory that the store took, of its budget".to_owned(), peak / budget as f64, 1.0)
    });
    against.chain(alone).chain(resident).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, figures: &[(&str, f64)]) -> Row {
        let figures =
            figures.iter().map(|(name, value)| (name.to_string(), Figure::new(vec![*value]))).collect();
        Row { name, label: name.to_owned(), figures }
    }

    #[test]
    fn goals_compare_with_the_peer_that_they_name() {
        let rows = [
            row(FORREST, &[("get_ns", 500.0), ("miss_ns", 200.0), ("load_disk_per_byte", 1.01)]),
            row("lmdb", &[("get_ns", 1000.0), ("miss_ns", 1.0)]),
            row("fjall", &[("get_ns", 1.0), ("miss_ns", 250.0)]),
        ];
        let verdicts: Vec<_> =
            goals(1000, &rows, None).into_iter().map(|goal| (goal.measured, goal.holds)).collect();
        assert_eq!(verdicts, [(0.5, true), (0.8, false), (1.01, true)]);
    }

    /// Runs whose caches are small were judged by the goals of runs whose caches hold all.
    #[test]
    fn a_limit_of_memory_has_its_own_goals() {
        let own = [
            ("get_ns", 500.0),
            ("seek_ns", 500.0),
            ("miss_ns", 200.0),
            ("miss_block_reads", 0.02),
            ("scan_block_reads", 1.5),
            ("load_written_per_byte", 2.5),
            ("load_disk_per_byte", 1.01),
            ("peak_bytes", 90.0),
        ];
        let rows = [
            row(FORREST, &own),
            row("lmdb", &[("get_ns", 1.0)]),
            row("fjall", &[("get_ns", 1000.0), ("seek_ns", 1000.0)]),
        ];
        let verdicts: Vec<_> =
            goals(1000, &rows, Some(100)).into_iter().map(|goal| (goal.measured, goal.holds)).collect();
        let wanted =
            [(0.5, true), (0.5, false), (0.02, false), (1.5, true), (2.5, true), (1.01, false), (0.9, true)];
        assert_eq!(verdicts, wanted);
    }

    #[test]
    fn tables_fit_and_show_what_is_missing() {
        let names = ["forrest", "rocksdb", "fjall", "redb"];
        let figures = [
            ("get_ns", 1234.0),
            ("get_ops_per_s", 810_373.0),
            ("insert_written_per_byte", 2.5),
            ("scan_block_reads", 2.0),
            ("scan_page_cache_reads", 1.25),
            ("seek_written_bytes", 12.0),
            ("seek_warm_up_written_bytes", 1234.0),
            ("backward_written_bytes", 0.5),
        ];
        let mut rows: Vec<_> = names.iter().map(|name| row(name, &figures)).collect();
        rows[1].figures.clear();
        let mut text = Vec::new();
        print(&mut text, 1000, None, Durability::Process, &rows).unwrap();
        print_legend(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.lines().all(|line| line.len() <= LINE_WIDTH), "{text}");
        let get = text.lines().find(|line| line.starts_with("get, hit")).unwrap();
        assert_eq!(get.split_whitespace().collect::<Vec<_>>(), ["get,", "hit", "1.23", "-", "1.23", "1.23"]);
        assert!(!text.contains("get, miss"), "{text}");
        let shown =
            |title: &str| text.lines().any(|line| line.split_whitespace().eq(title.split_whitespace()));
        assert!(shown("get, hit 810 - 810 810"), "{text}");
        assert!(shown("written, inserts 2.50 - 2.50 2.50"), "{text}");
        assert!(shown("scan of 50 2.000/1.250 - 2.000/1.250 2.000/1.250"), "{text}");
        assert!(shown("seek 12.0/1234 - 12.0/1234 12.0/1234"), "{text}");
        assert!(shown("backward, per pair 0.50/- - 0.50/- 0.50/-"), "{text}");
    }

    #[test]
    fn many_stores_are_printed_in_parts() {
        let names = ["forrest", "rocksdb", "leveldb", "fjall", "redb/memory", "lmdb", "sqlite"];
        let quantiles = [("get_p50_ns", 1.0), ("get_p99_ns", 1e6), ("get_p999_ns", 9e9)];
        let rows: Vec<_> = names.iter().map(|name| row(name, &quantiles)).collect();
        let mut text = Vec::new();
        print(&mut text, 1000, None, Durability::Process, &rows).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.lines().all(|line| line.len() <= LINE_WIDTH), "{text}");
        let heads = text.lines().filter(|line| names.iter().any(|name| line.ends_with(name)));
        let heads: Vec<&str> = heads.flat_map(str::split_whitespace).collect();
        assert_eq!(heads, names);
        assert!(head_across().len() <= LINE_WIDTH, "{}", head_across());
    }
}
