//! What people read of `kvbench remix`: a table of at most 80 columns for each locality, the ancestor's figures beside
//! it, and the goals.

use crate::job::Locality;
use crate::record::{Figure, Goal, Relation};
use crate::remix::{STEPS, STRETCH};
use crate::runner;
use crate::statistics::number;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The figures of one number of runs.
pub(crate) struct Row {
    /// Which keys are in one run.
    pub(crate) locality: Locality,
    /// How many runs.
    pub(crate) runs: u16,
    /// By name.
    pub(crate) figures: BTreeMap<String, Figure>,
}

impl Row {
    fn median(&self, name: &str) -> Option<f64> {
        self.figures.get(name).map(|figure| figure.median)
    }
}

/// Columns: what stands over them, and the figure.
const COLUMNS: [(&str, &str); 11] = [
    ("B/key", "order_bytes_per_key"),
    ("merge", "seek_merging_ns"),
    ("REMIX", "seek_ns"),
    ("merge", "scan_merging_ns"),
    ("REMIX", "scan_ns"),
    ("tags", "hit_ns"),
    ("none", "hit_plain_ns"),
    ("tags", "miss_ns"),
    ("none", "miss_plain_ns"),
    ("all", "build_ns"),
    ("last", "rebuild_ns"),
];

const NAME_WIDTH: usize = 12;
const WIDTH: usize = 6;
/// Of two columns.
const PAIR_WIDTH: usize = 2 * WIDTH;

/// What the ancestor gives with weak locality and tags, on another machine: runs; and in the order of [`COLUMNS`] bytes
/// for a key, and microseconds.
const ANCESTOR: [(u16, [Option<f64>; COLUMNS.len()]); 4] = {
    const fn row(of: [f64; 8]) -> [Option<f64>; COLUMNS.len()] {
        let [bytes, seek_merging, seek, scan_merging, scan, hit, miss, build] = of;
        [
            Some(bytes),
            Some(seek_merging),
            Some(seek),
            Some(scan_merging),
            Some(scan),
            Some(hit),
            None,
            Some(miss),
            None,
            Some(build),
            None,
        ]
    }
    [
        (1, row([2.43, 0.75, 1.02, 2.56, 3.11, 0.56, 0.22, 0.024])),
        (4, row([2.81, 4.23, 1.77, 6.00, 4.55, 0.94, 0.37, 0.043])),
        (8, row([3.32, 8.65, 2.46, 11.58, 8.03, 1.29, 0.35, 0.053])),
        (16, row([4.33, 18.9, 3.17, 22.2, 11.6, 1.49, 0.45, 0.073])),
    ]
};

/// The ancestor's figures for this number of runs and this locality, if it has any.
fn ancestor(locality: Locality, runs: u16) -> Option<&'static [Option<f64>; COLUMNS.len()]> {
    let of = ANCESTOR.iter().find(|(count, _)| *count == runs && locality == Locality::Weak);
    of.map(|(_, figures)| figures)
}

/// Three digits that count, of less than one too.
fn short(value: f64) -> String {
    if value.abs() < 0.1 && value != 0.0 { format!("{value:.3}") } else { number(value) }
}

/// A figure in the unit of its column: nanoseconds become microseconds.
fn in_unit(name: &str, value: f64) -> f64 {
    if name.ends_with("_ns") { value / 1000.0 } else { value }
}

fn line(
    out: &mut impl Write,
    title: &str,
    text: impl Fn(usize, &'static str) -> Option<f64>,
) -> io::Result<()> {
    write!(out, "{title:NAME_WIDTH$}")?;
    for (at, (_, name)) in COLUMNS.iter().enumerate() {
        let text = text(at, name).map_or_else(|| "-".to_owned(), short);
        write!(out, "{text:>WIDTH$}")?;
    }
    writeln!(out)
}

/// The table of one number of pairs with one locality.
pub(crate) fn print(out: &mut impl Write, keys: u64, locality: Locality, rows: &[Row]) -> io::Result<()> {
    let of = || rows.iter().filter(|row| row.locality == locality);
    if of().next().is_none() {
        return Ok(());
    }
    let which = match locality {
        Locality::Weak => "weak locality, each key in a run chosen at random".to_owned(),
        Locality::Strong => format!("strong locality, {STRETCH} keys that follow one another in a run"),
    };
    writeln!(out, "\n{} pairs, {which}: CPU us", runner::keys(keys))?;
    let scan = format!("seek+{STEPS}");
    writeln!(
        out,
        "{:NAME_WIDTH$}{:>WIDTH$}{:>PAIR_WIDTH$}{scan:>PAIR_WIDTH$}{:>PAIR_WIDTH$}{:>PAIR_WIDTH$}{:>PAIR_WIDTH$}",
        "", "", "seek", "get hit", "get miss", "build/key"
    )?;
    write!(out, "{:NAME_WIDTH$}", "runs")?;
    COLUMNS.iter().try_for_each(|(heading, _)| write!(out, "{heading:>WIDTH$}"))?;
    writeln!(out)?;
    for row in of() {
        line(out, &row.runs.to_string(), |_, name| Some(in_unit(name, row.median(name)?)))?;
        if row.figures.values().any(|figure| figure.rounds.len() > 1) {
            let timed = |name: &str| row.figures.get(name).filter(|figure| figure.rounds.len() > 1);
            line(out, "  least", |_, name| Some(in_unit(name, timed(name)?.min)))?;
            line(out, "  most", |_, name| Some(in_unit(name, timed(name)?.max)))?;
        }
        if let Some(figures) = ancestor(locality, row.runs) {
            line(out, "  ancestor", |at, _| figures[at])?;
        }
    }
    Ok(())
}

/// What to know to read the tables.
pub(crate) fn print_legend(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\nmerge: a merging iterator over the same tables. One run is read by its own\n\
         index, which is what B/key is of then, and there is nothing to build. none:\n\
         without tags; all: from the runs alone; last: from the REMIX of all runs but\n\
         the newest; ancestor: what RemixDB gives for the same, on another machine;\n\
         -: not offered, or left out. docs/benchmarks.md tells the rest."
    )
}

/// Judges the goals: ahead of the ancestor in every cell, whichever of its own two ways was the better; and ahead of
/// our own merging iterator.
pub(crate) fn goals(keys: u64, rows: &[Row]) -> Vec<Goal> {
    let mut goals = Vec::new();
    for row in rows {
        let kind = match row.locality {
            Locality::Weak => "pairs in runs, weak locality",
            Locality::Strong => "pairs in runs, strong locality",
        };
        let mut add = |title: &str, measured: Option<f64>, goal: Option<f64>, unit| {
            let runs = if row.runs == 1 { "1 run".to_owned() } else { format!("{} runs", row.runs) };
            goals.extend(measured.zip(goal).map(|(measured, goal)| {
                let title = format!("{runs}: {title}");
                Goal {
                    unit: Cow::Borrowed(unit),
                    ..Goal::judge(title, (kind, keys), measured, Relation::Below, goal)
                }
            }));
        };
        let figures = ancestor(row.locality, row.runs);
        let theirs = |at: usize| figures.and_then(|figures| figures[at]);
        let better = |one: usize, other: usize| Some(theirs(one)?.min(theirs(other)?));
        let own = |name: &str| Some(in_unit(name, row.median(name)?));
        let build = if row.runs == 1 { figures.map(|_| 0.0) } else { own("build_ns") };
        add("bytes for a key", own("order_bytes_per_key"), theirs(0), "B");
        add("seek, ancestor's best", own("seek_ns"), better(1, 2), "us");
        add("seek and 50 next, ancestor's best", own("scan_ns"), better(3, 4), "us");
        add("get, hit, ancestor's", own("hit_ns"), theirs(5), "us");
        add("get, miss, ancestor's", own("miss_ns"), theirs(7), "us");
        add("build, for a key, ancestor's", build, theirs(9), "us");
        if row.runs > 1 {
            let against = |name: &str, rival: &str| Some(row.median(name)? / row.median(rival)?);
            add(
                "seek, of the merging iterator's time",
                against("seek_ns", "seek_merging_ns"),
                Some(1.0),
                "x",
            );
            let scan = against("scan_ns", "scan_merging_ns");
            add("seek and 50 next, of the merging iterator's time", scan, Some(1.0), "x");
        }
    }
    goals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(runs: u16, locality: Locality, figures: &[(&str, f64)]) -> Row {
        let figures =
            figures.iter().map(|(name, value)| (name.to_string(), Figure::new(vec![*value, *value])));
        Row { locality, runs, figures: figures.collect() }
    }

    #[test]
    fn goals_are_the_better_of_the_ancestors_ways() {
        let rows = [
            row(1, Locality::Weak, &[("seek_ns", 740.0), ("seek_merging_ns", 700.0)]),
            row(8, Locality::Weak, &[("seek_ns", 2460.0), ("seek_merging_ns", 3000.0), ("hit_ns", 1289.0)]),
            row(8, Locality::Strong, &[("seek_ns", 1.0), ("seek_merging_ns", 2.0)]),
        ];
        let goals = goals(1000, &rows);
        let verdicts: Vec<_> = goals.iter().map(|goal| (goal.measured, goal.goal, goal.holds)).collect();
        // With one run there is nothing to build, and nothing to compare with.
        assert_eq!(verdicts[..2], [(0.74, 0.75, true), (0.0, 0.024, true)]);
        assert_eq!(verdicts[2..4], [(2.46, 2.46, false), (1.289, 1.29, true)]);
        assert_eq!(verdicts[4..], [(2460.0 / 3000.0, 1.0, true), (0.5, 1.0, true)]);
    }

    #[test]
    fn tables_fit_and_show_what_is_missing() {
        let rows = [row(16, Locality::Weak, &[("seek_ns", 12345.0), ("build_ns", 73.4)])];
        let mut text = Vec::new();
        print(&mut text, 1000, Locality::Weak, &rows).unwrap();
        let len = text.len();
        print(&mut text, 1000, Locality::Strong, &rows).unwrap();
        assert_eq!(text.len(), len, "nothing was measured");
        print_legend(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        let cells = |title: &str| {
            let line = text.lines().find(|line| line.trim_start().starts_with(title)).unwrap();
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(cells("16 "), ["16", "-", "-", "12.3", "-", "-", "-", "-", "-", "-", "0.073", "-"]);
        assert_eq!(
            cells("ancestor"),
            ["ancestor", "4.33", "18.9", "3.17", "22.2", "11.6", "1.49", "-", "0.45", "-", "0.073", "-"]
        );
    }
}
