//! What people read: tables of at most 80 columns.

use crate::data::KindName;
use crate::names::Name;
use crate::record::Figure;
use crate::runner;
use crate::statistics::number;
use crate::subjects::{EMPTY, Pages};
use crate::threads;
use crate::workload::Op;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// One subject's figures.
pub(crate) struct Row {
    /// The subject.
    pub(crate) name: Name,
    /// On which pages.
    pub(crate) pages: Pages,
    /// By name.
    pub(crate) figures: BTreeMap<String, Figure>,
    /// Remarks.
    pub(crate) notes: Vec<String>,
}

/// All subjects with one kind and number of pairs.
pub(crate) struct Group {
    /// The kind.
    pub(crate) kind: KindName,
    /// The number.
    pub(crate) keys: u64,
    /// The measured subjects.
    pub(crate) rows: Vec<Row>,
}

/// The name of a subject on these pages.
pub(crate) fn label(name: Name, pages: Pages) -> String {
    if pages == Pages::Auto { name.to_string() } else { format!("{name}/{}", pages.name()) }
}

impl Row {
    /// Its label, with a mark if others disturbed it.
    pub(crate) fn marked(&self) -> String {
        label(self.name, self.pages) + if self.is_disturbed() { " *" } else { "" }
    }

    fn is_disturbed(&self) -> bool {
        self.median("disturbed_percent").is_some_and(|share| share > DISTURBED_PERCENT)
    }

    /// The median of a figure.
    pub(crate) fn median(&self, name: &str) -> Option<f64> {
        self.figures.get(name).map(|figure| figure.median)
    }

    /// The kind of pages on which most of its memory lies, as the system counted it; `None` if it did not.
    pub(crate) fn pages_had(&self) -> Option<&'static str> {
        let percent = self.median("resident_huge_percent")?;
        Some(if percent < 50.0 { "small pages" } else { "huge pages" })
    }
}

/// A column: heading, width, figure.
pub(crate) type Column<'a> = (&'a str, usize, &'a str);

/// Those of one thread.
pub(crate) const COLUMNS: [Column<'_>; 9] = [
    ("insert", 7, "insert_ns"),
    ("get", 6, "get_ns"),
    ("dep.", 6, "get_dependent_ns"),
    ("miss", 6, "get_miss_ns"),
    ("batch", 6, "multi_get_64_ns"),
    ("scan50", 7, "scan_50_ns"),
    ("iter.", 6, "iterate_ns"),
    ("GB/s", 6, "iterate_gb_per_s"),
    ("remove", 7, "remove_ns"),
];

/// If other processes had the CPU for more than this share of a subject's time, in percent, its row has a mark.
const DISTURBED_PERCENT: f64 = 2.0;

/// Columns of a line.
pub(crate) const LINE_WIDTH: usize = 80;

/// Columns of a subject's name; a longer one has a line of its own.
pub(crate) const NAME_WIDTH: usize = 23;

/// A text in lines of at most 80 columns, if its words fit. The first one begins at column `first`, the others after
/// `indent` spaces.
pub(crate) fn wrap(text: &str, first: usize, indent: usize) -> String {
    let (mut lines, mut at, mut is_first) = (String::new(), first, true);
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if !is_first && at + 1 + width > LINE_WIDTH {
            lines += &format!("\n{:indent$}", "");
            at = indent;
        } else if !is_first {
            lines.push(' ');
            at += 1;
        }
        lines += word;
        at += width;
        is_first = false;
    }
    lines
}

/// The table of one thread.
pub(crate) fn print_group(out: &mut impl Write, group: &Group) -> io::Result<()> {
    let keys = runner::keys(group.keys);
    writeln!(
        out,
        "\n{} pairs of kind {}: ns per operation, GB of keys and values per second",
        keys,
        group.kind.name()
    )?;
    writeln!(out, "{}", head("", &COLUMNS))?;
    for row in &group.rows {
        print_row(out, &row.marked(), &COLUMNS, |name| row.median(name))?;
        if row.figures.values().any(|figure| figure.rounds.len() > 1) {
            print_row(out, "  least", &COLUMNS, |name| row.figures.get(name).map(|figure| figure.min))?;
            print_row(out, "  most", &COLUMNS, |name| row.figures.get(name).map(|figure| figure.max))?;
        }
    }
    Ok(())
}

/// Explains the mark, if a row has it.
fn explain_mark(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    if rows.iter().any(Row::is_disturbed) {
        writeln!(out, "* others had the CPU for more than {DISTURBED_PERCENT} % of its time")?;
    }
    Ok(())
}

/// Prints the remarks of the rows, each one once, and what the mark is.
pub(crate) fn print_notes(out: &mut impl Write, group: &Group) -> io::Result<()> {
    explain_mark(out, &group.rows)?;
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for (row, note) in group.rows.iter().flat_map(|row| row.notes.iter().map(move |note| (row, note))) {
        match notes.iter_mut().find(|(said, _)| said == note) {
            Some((_, of)) => of.push(label(row.name, row.pages)),
            None => notes.push((note, vec![label(row.name, row.pages)])),
        }
    }
    for (note, of) in notes {
        let of = if of.len() > 1 && of.len() == group.rows.len() { "all".to_owned() } else { of.join(", ") };
        writeln!(out, "{of}: {note}")?;
    }
    Ok(())
}

/// The head of a table, and what stands over the names.
pub(crate) fn head(names: &str, columns: &[Column<'_>]) -> String {
    let headings: String = columns.iter().map(|(heading, width, _)| format!("{heading:>width$}")).collect();
    format!("{names:NAME_WIDTH$}{headings}")
}

/// A line of a table, in which a long name takes the room that it needs.
pub(crate) fn line(name: &str, columns: &[Column<'_>], figure: impl Fn(&str) -> Option<f64>) -> String {
    let text = |name: &str| figure(name).map_or_else(|| "-".to_owned(), number);
    let cells: String = columns.iter().map(|(_, width, name)| format!("{:>width$}", text(name))).collect();
    format!("{name:NAME_WIDTH$}{cells}")
}

/// The name, if it has a line of its own; what stands before the figures.
pub(crate) fn print_name<'n>(out: &mut impl Write, name: &'n str) -> io::Result<&'n str> {
    if name.len() < NAME_WIDTH { Ok(name) } else { writeln!(out, "{name}").map(|()| "") }
}

/// A line of a table.
pub(crate) fn print_row(
    out: &mut impl Write,
    name: &str,
    columns: &[Column<'_>],
    figure: impl Fn(&str) -> Option<f64>,
) -> io::Result<()> {
    let name = print_name(out, name)?;
    writeln!(out, "{}", line(name, columns, figure))
}

/// Columns of a line that are for figures.
const FIGURES_WIDTH: usize = LINE_WIDTH - NAME_WIDTH;
/// Ends of latencies, as columns.
const QUANTILES: [(&str, &str); 4] =
    [("half", "_p50"), ("of 100", "_p99"), ("of 1000", "_p999"), ("longest", "_max")];

/// The step whose latencies a figure is one of.
fn latency_of(name: &str) -> Option<&str> {
    let name = name.strip_suffix("_ns")?;
    QUANTILES.iter().find_map(|(_, end)| name.strip_suffix(end))
}

/// All names of a group's figures.
fn names(group: &Group) -> impl Iterator<Item = &str> {
    let names: BTreeSet<&str> =
        group.rows.iter().flat_map(|row| row.figures.keys()).map(String::as_str).collect();
    names.into_iter()
}

/// The table of what else takes one thread a time for an operation: mixes of operations, other batches.
pub(crate) fn print_workloads(out: &mut impl Write, group: &Group) -> io::Result<()> {
    let is_known = |name: &str| COLUMNS.iter().any(|(_, _, known)| *known == name);
    let steps = names(group).filter(|name| !is_known(name) && latency_of(name).is_none());
    let mut columns: Vec<Column<'_>> = steps
        .filter_map(|name| name.strip_suffix("_ns").map(|step| (step, step.len().max(6) + 2, name)))
        .collect();
    while !columns.is_empty() {
        let mut width = 0;
        let fit = columns.iter().take_while(|column| {
            width += column.1;
            width <= FIGURES_WIDTH
        });
        let rest = columns.split_off(fit.count().max(1));
        writeln!(out, "\n{}", head("ns per operation", &columns))?;
        for row in &group.rows {
            print_row(out, &row.marked(), &columns, |name| row.median(name))?;
        }
        columns = rest;
    }
    Ok(())
}

/// The table of latencies, step by step.
pub(crate) fn print_latencies(out: &mut impl Write, group: &Group) -> io::Result<()> {
    if names(group).any(|name| latency_of(name).is_some()) {
        writeln!(
            out,
            "\nns of each operation by itself: half took no longer; one of 100, one of 1,000\n\
             did; the longest"
        )?;
    }
    for step in names(group).filter_map(latency_of).collect::<BTreeSet<_>>() {
        let named = QUANTILES.map(|(heading, end)| (heading, 10, format!("{step}{end}_ns")));
        // All sorts of a mix have one rate.
        let mix = Op::SORTS.iter().find_map(|sort| step.strip_suffix(&format!("_{sort}_open")));
        let rate = mix.map_or_else(|| format!("{step}_ops_per_s"), |mix| format!("{mix}_open_ops_per_s"));
        let mut columns: Vec<Column<'_>> =
            named.iter().map(|(heading, width, name)| (*heading, *width, name.as_str())).collect();
        if group.rows.iter().any(|row| row.median(&rate).is_some()) {
            columns.push(("op/s", 12, &rate));
        }
        writeln!(out, "\n{step}, ns")?;
        writeln!(out, "{}", head("", &columns))?;
        for row in group.rows.iter().filter(|row| row.median(columns[0].2).is_some()) {
            print_row(out, &row.marked(), &columns, |name| row.median(name))?;
        }
    }
    Ok(())
}

/// The table of several threads.
pub(crate) fn print_threads(out: &mut impl Write, group: &Group, threads: u16) -> io::Result<()> {
    let several = |name: &str| format!("{name}_{threads}t_mops");
    let known = [
        ("reads", "read"),
        ("half writes, own keys", "mixed_disjoint"),
        ("half writes, all keys", "mixed_shared"),
    ];
    let end = several("");
    let others = names(group).filter_map(|name| name.strip_suffix(&end).map(|step| (step, step)));
    let others = others.filter(|(_, step)| known.iter().all(|(_, known)| known != step));
    let steps: Vec<_> = known.into_iter().chain(others).collect();
    for steps in steps.chunks(THREADS_STEPS) {
        let has = |row: &&Row| steps.iter().any(|(_, step)| row.median(&several(step)).is_some());
        let rows: Vec<_> = group.rows.iter().filter(has).collect();
        if !rows.is_empty() {
            print_threads_of(out, group, threads, steps, &rows)?;
        }
    }
    Ok(())
}

/// Steps of several threads that a table has room for.
const THREADS_STEPS: usize = 2;

fn print_threads_of(
    out: &mut impl Write,
    group: &Group,
    threads: u16,
    steps: &[(&str, &str)],
    rows: &[&Row],
) -> io::Result<()> {
    writeln!(
        out,
        "\n{threads} threads against 1, million operations a second, {} {}",
        runner::keys(group.keys),
        group.kind.name()
    )?;
    let headings: String = steps.iter().map(|(heading, _)| format!("{heading:^24} ")).collect();
    writeln!(out, "{:NAME_WIDTH$}{}", "", headings.trim_end())?;
    write!(out, "{:NAME_WIDTH$}", "")?;
    for _ in steps {
        write!(out, "{:>8}{:>8}{:>8} ", 1, threads, "times")?;
    }
    writeln!(out)?;
    for row in rows {
        let label = row.marked();
        let name = print_name(out, &label)?;
        write!(out, "{name:NAME_WIDTH$}")?;
        for (_, step) in steps {
            let one = row.median(&format!("{step}_1t_mops"));
            let pair = one.zip(row.median(&format!("{step}_{threads}t_mops")));
            let [one, many, times] = pair.map_or_else(
                || [const { String::new() }; 3].map(|_| "-".to_owned()),
                |(one, many)| [number(one), number(many), times(many / one, threads)],
            );
            write!(out, "{one:>8}{many:>8}{times:>8} ")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// How many times as fast several threads are as one.
fn times(times: f64, threads: u16) -> String {
    if threads::is_possible(times, threads) { format!("{times:.2}x") } else { "error".to_owned() }
}

/// A table of growing sizes for each structure.
pub(crate) fn print_sweep(out: &mut impl Write, rows: &[Row], sizes: &[u64]) -> io::Result<()> {
    for row in rows {
        writeln!(out, "\n{} as it grows, u64: ns per operation, bytes per key occupied", row.marked())?;
        writeln!(out, "{:>10}{:>9}{:>9}{:>9}{:>9}", "keys", "get", "dep.", "batch", "resid.")?;
        for size in sizes {
            let figure =
                |name: &str| row.median(&format!("{name}@{size}")).map_or_else(|| "-".to_owned(), number);
            let (get, dependent) = (figure("get_ns"), figure("get_dependent_ns"));
            let (batch, bytes) = (figure("multi_get_64_ns"), figure("resident_bytes_per_key"));
            writeln!(out, "{:>10}{get:>9}{dependent:>9}{batch:>9}{bytes:>9}", runner::keys(*size))?;
        }
        row.notes.iter().try_for_each(|note| writeln!(out, "{note}"))?;
    }
    explain_mark(out, rows)
}

/// What to know to read the tables.
pub(crate) fn print_legend(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\nget: independent lookups, which the core may overlap; dep.: each key is known\n\
         only after the last answer; miss: keys that are not there; batch: get in batches\n\
         of 64; scan50: 50 pairs from a key on; iter.: per pair of a full iteration;\n\
         -: not offered, or left out. {EMPTY}: the loop alone.\n\
         docs/benchmarks.md describes how each figure is taken."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the first table had the mark.
    #[test]
    fn a_disturbed_row_has_its_mark_in_each_table() {
        let row = |name: &str, disturbed: f64| {
            let figures = ["get_ns", "update_ns", "get_p50_ns", "get_p99_ns", "get_p999_ns", "get_max_ns"];
            let figures = figures.into_iter().chain(["read_1t_mops", "read_2t_mops", "get_ns@1000"]);
            let mut figures: BTreeMap<_, _> =
                figures.map(|figure| (figure.to_owned(), Figure::new(vec![1.0]))).collect();
            figures.insert("disturbed_percent".to_owned(), Figure::new(vec![disturbed]));
            Row { name: Name::parse(name).unwrap(), pages: Pages::Auto, figures, notes: Vec::new() }
        };
        let mut group =
            Group { kind: KindName::U64, keys: 1000, rows: vec![row("forrest", 3.0), row("rbtree", 1.0)] };
        let tables = |group: &Group| {
            let mut out = Vec::new();
            print_group(&mut out, group).unwrap();
            print_workloads(&mut out, group).unwrap();
            print_latencies(&mut out, group).unwrap();
            print_threads(&mut out, group, 2).unwrap();
            print_notes(&mut out, group).unwrap();
            print_sweep(&mut out, &group.rows, &[1000]).unwrap();
            String::from_utf8(out).unwrap()
        };
        let text = tables(&group);
        assert_eq!((text.matches("forrest *").count(), text.matches("rbtree *").count()), (5, 0), "{text}");
        assert_eq!(text.matches("\n* others had the CPU").count(), 2, "{text}");
        group.rows.remove(0);
        assert!(!tables(&group).contains('*'));
    }

    #[test]
    fn a_long_text_has_several_lines() {
        assert_eq!(wrap("a text", 0, 4), "a text");
        let (wide, text) = ("x".repeat(100), ["word"; 20].join(" "));
        assert_eq!(
            wrap(&text, 60, 4),
            "word word word word\n    ".to_owned() + &["word"; 15].join(" ") + "\n    word"
        );
        assert_eq!(wrap(&format!("a {wide} b"), 0, 2), format!("a\n  {wide}\n  b"));
    }

    #[test]
    fn a_scaling_that_cannot_be_is_an_error() {
        assert_eq!([times(1.97, 2), times(15.0, 2), times(15.0, 16)], ["1.97x", "error", "15.00x"]);
    }
}
