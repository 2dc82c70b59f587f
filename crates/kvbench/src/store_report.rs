//! What people read of `kvbench store`: tables of at most 100 columns, a column for each store; and the goals.

use crate::goals::{Goal, Relation};
use crate::job::Durability;
use crate::record::Figure;
use crate::runner;
use crate::stores::FORREST;
use crate::tables::number;
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
}

/// Steps: the text in the report, the name in figures.
const STEPS: [(&str, &str); 16] = [
    ("load, settled", "load"),
    ("get, hit", "get"),
    ("get, miss", "miss"),
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

const NAME_WIDTH: usize = 24;
const WIDTH: usize = 15;
/// The same in the table with a line for each store.
const ACROSS_WIDTH: usize = 9;

/// Prints one line, if any store has a figure.
fn line(
    out: &mut impl Write,
    title: &str,
    rows: &[Row],
    text: impl Fn(&Row) -> Option<String>,
) -> io::Result<()> {
    let texts: Vec<_> = rows.iter().map(text).collect();
    if texts.iter().all(Option::is_none) {
        return Ok(());
    }
    write!(out, "{title:NAME_WIDTH$}")?;
    for text in texts {
        write!(out, "{:>WIDTH$}", text.unwrap_or_else(|| "-".to_owned()))?;
    }
    writeln!(out)
}

fn head(out: &mut impl Write, title: &str, rows: &[Row]) -> io::Result<()> {
    writeln!(out, "\n{title}")?;
    line(out, "", rows, |row| Some(row.label.clone()))
}

/// Columns of the table with a line for each store: those of the steps, us per operation.
fn across() -> impl Iterator<Item = (&'static str, String)> {
    // Their variants are left to the whole table.
    STEPS.iter().filter(|(_, name)| !name.contains('_')).map(|(_, name)| (*name, format!("{name}_ns")))
}

/// The head of that table.
pub(crate) fn head_across() -> String {
    across()
        .map(|(heading, _)| format!("{heading:>ACROSS_WIDTH$}"))
        .fold(format!("{:WIDTH$}", ""), |head, one| head + &one)
}

/// A line of it.
pub(crate) fn line_across(label: &str, values: &BTreeMap<String, f64>) -> String {
    let text = |name: &str| values.get(name).map_or_else(|| "-".to_owned(), |ns| us(*ns));
    across()
        .map(|(_, name)| format!("{:>ACROSS_WIDTH$}", text(&name)))
        .fold(format!("{label:WIDTH$}"), |line, one| line + &one)
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

/// The tables of one number of pairs, whose writes survive this.
pub(crate) fn print(out: &mut impl Write, keys: u64, durability: Durability, rows: &[Row]) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let what = survives(durability);
    head(out, &format!("{} pairs, {what}: us per operation", runner::keys(keys)), rows)?;
    for (title, name) in STEPS {
        let name = format!("{name}_ns");
        line(out, title, rows, |row| row.median(&name).map(us))?;
        let spread = |row: &Row| {
            let figure = row.figures.get(&name).filter(|figure| figure.rounds.len() > 1)?;
            Some(format!("{}-{}", us(figure.min), us(figure.max)))
        };
        line(out, "    least-most", rows, spread)?;
    }
    head(out, "thousand operations a second", rows)?;
    for (title, name) in STEPS {
        line(out, title, rows, |row| {
            row.median(&format!("{name}_ops_per_s")).map(|rate| number(rate / 1000.0))
        })?;
    }
    let worst = |row: &Row, name: &str| {
        row.median(&format!("{name}_worst_ops_per_s")).map(|rate| number(rate / 1000.0))
    };
    if STEPS.iter().any(|(_, name)| rows.iter().any(|row| worst(row, name).is_some())) {
        head(out, "the same in the slowest second, of steps that took one", rows)?;
        for (title, name) in STEPS {
            line(out, title, rows, |row| worst(row, name))?;
        }
    }
    head(out, "CPU us per operation, all threads", rows)?;
    for (title, name) in STEPS {
        line(out, title, rows, |row| row.median(&format!("{name}_cpu_ns")).map(us))?;
    }
    head(out, "us of which half, 99 %, 99.9 % of the operations stay below", rows)?;
    for (title, name) in STEPS {
        line(out, title, rows, |row| {
            let figures =
                ["p50", "p99", "p999"].map(|part| row.median(&format!("{name}_{part}_ns")).map(short_us));
            let [Some(p50), Some(p99), Some(p999)] = figures else { return None };
            Some(format!("{p50}/{p99}/{p999}"))
        })?;
    }
    head(out, "bytes for a byte stored, and memory at its peak", rows)?;
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
        line(out, title, rows, |row| row.median(name).map(number))?;
    }
    let mib = |bytes: f64| format!("{} MiB", (bytes / f64::from(1 << 20)).round());
    for (title, name) in [("memory, loaded", "load_peak_bytes"), ("memory, at the end", "peak_bytes")] {
        line(out, title, rows, |row| row.median(name).map(mib))?;
    }
    if rows.iter().any(|row| row.figures.contains_key("open_s")) {
        head(out, "opened again, until the first pair is read: ms", rows)?;
        for (title, name) in [("closed before", "open_s"), ("killed after loading", "recover_s")] {
            line(out, title, rows, |row| row.median(name).map(|seconds| number(seconds * 1e3)))?;
        }
        line(out, "  of its pairs there, %", rows, |row| row.median("recovered_percent").map(number))?;
    }
    Ok(())
}

/// What to know to read the tables.
pub(crate) fn print_legend(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\nload: every write by itself, until flushes and merges are done; on disk, loaded: with logs;\n\
         memory: pages of mapped files count (lmdb); redb/memory: it offers that, not what was asked for;\n\
         -: not offered, or left out. docs/benchmarks.md tells how each is set up and what is not equal."
    )
}

/// Title, figure, peer to be compared with, and what the ratio may be at most.
type Wanted = (&'static str, &'static str, &'static str, f64);

const AGAINST: [Wanted; 8] = [
    ("load, random, settled", "load_ns", "rocksdb", 0.4),
    ("get, hit", "get_ns", "lmdb", 1.0),
    ("get, miss", "miss_ns", "fjall", 0.6),
    ("seek", "seek_ns", "lmdb", 1.1),
    ("scan of 50", "scan_ns", "lmdb", 1.0),
    ("full scan", "forward_ns", "lmdb", 1.0),
    ("half updates, half gets", "update_ns", "fjall", 0.5),
    ("95 % scans of 50, 5 % inserts", "insert_ns", "lmdb", 1.0),
];

/// Title, figure, and what it may be at most.
const ALONE: [(&str, &str, f64); 2] = [
    ("bytes written per byte stored", "load_written_per_byte", 2.2),
    ("bytes on disk per byte stored", "load_disk_per_byte", 1.10),
];

/// Judges the goals that the rows have figures for.
pub(crate) fn goals(keys: u64, rows: &[Row]) -> Vec<Goal> {
    let find = |name: &str| rows.iter().find(|row| row.name == name);
    let Some(own) = find(FORREST) else { return Vec::new() };
    let judge =
        |title: String, measured, goal| Goal::judge(title, ("store", keys), measured, Relation::AtMost, goal);
    let against = AGAINST.iter().filter_map(|&(title, figure, peer, goal)| {
        let ratio = own.median(figure)? / find(peer)?.median(figure)?;
        Some(judge(format!("{title}, of {peer}'s time"), ratio, goal))
    });
    let alone = ALONE
        .iter()
        .filter_map(|&(title, figure, goal)| Some(judge(title.to_owned(), own.median(figure)?, goal)));
    against.chain(alone).collect()
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
            row(FORREST, &[("get_ns", 500.0), ("miss_ns", 200.0), ("load_disk_per_byte", 1.05)]),
            row("lmdb", &[("get_ns", 1000.0), ("miss_ns", 1.0)]),
            row("fjall", &[("get_ns", 1.0), ("miss_ns", 250.0)]),
        ];
        let verdicts: Vec<_> =
            goals(1000, &rows).into_iter().map(|goal| (goal.measured, goal.holds)).collect();
        assert_eq!(verdicts, [(0.5, true), (0.8, false), (1.05, true)]);
    }

    #[test]
    fn tables_fit_and_show_what_is_missing() {
        let names = ["forrest", "rocksdb", "fjall", "redb", "lmdb"];
        let figures = [("get_ns", 1234.0), ("get_ops_per_s", 810_373.0), ("insert_written_per_byte", 2.5)];
        let mut rows: Vec<_> = names.iter().map(|name| row(name, &figures)).collect();
        rows[1].figures.clear();
        let mut text = Vec::new();
        print(&mut text, 1000, Durability::Process, &rows).unwrap();
        print_legend(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
        let get = text.lines().find(|line| line.starts_with("get, hit")).unwrap();
        assert_eq!(
            get.split_whitespace().collect::<Vec<_>>(),
            ["get,", "hit", "1.23", "-", "1.23", "1.23", "1.23"]
        );
        assert!(!text.contains("get, miss"), "{text}");
        let shown =
            |title: &str| text.lines().any(|line| line.split_whitespace().eq(title.split_whitespace()));
        assert!(shown("get, hit 810 - 810 810 810"), "{text}");
        assert!(shown("written, inserts 2.50 - 2.50 2.50 2.50"), "{text}");
    }
}
