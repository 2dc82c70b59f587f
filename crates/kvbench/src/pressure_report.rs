//! What people read of `kvbench pressure`: a table for each scenario, a line for each figure, with the peers, how this
//! project's store compares with them, and its goal.

use crate::job::Scenario;
use crate::record::{Figure, Goal, Relation};
use crate::runner;
use crate::sizes;
use crate::statistics::number;
use crate::stores::{FORREST, MEMTABLES, pairs};
use crate::workload::Op;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// One store's figures.
pub(crate) struct Row {
    /// Whose.
    pub(crate) name: &'static str,
    /// By name.
    pub(crate) figures: BTreeMap<String, Figure>,
}

impl Row {
    fn median(&self, name: &str) -> Option<f64> {
        self.figures.get(name).map(|figure| figure.median)
    }
}

/// The sizes of a scenario.
pub(crate) struct Sizes {
    /// Pairs.
    pub(crate) keys: u64,
    /// Of a memtable, in bytes.
    pub(crate) memtable_bytes: u64,
    /// Of the cache, in bytes.
    pub(crate) cache_bytes: u64,
}

impl Sizes {
    /// Memory that a store is given.
    fn budget_bytes(&self) -> f64 {
        (self.memtables_bytes() + self.cache_bytes) as f64
    }

    fn memtables_bytes(&self) -> u64 {
        MEMTABLES as u64 * self.memtable_bytes
    }
}

/// A unit: its name, and how much of the recorded unit it is.
type Unit = (&'static str, f64);

const US: Unit = ("us", 1e3);
const MS: Unit = ("ms", 1e6);
const MB: Unit = ("MB", 1e6);
const MIB: Unit = ("MiB", (1 << 20) as f64);
const KILO: Unit = ("K/s", 1e3);
const ONE: Unit = ("", 1.0);

/// What a figure must reach, in its unit.
enum Must {
    Be(Relation, f64),
    /// At most this much of the peer's.
    BeOf(&'static str, f64),
    /// At least this much of the peer's.
    AtLeastOf(&'static str, f64),
}

use Must::{AtLeastOf, Be, BeOf};
use Relation::{AtLeast, AtMost, Below};

/// A line: title, figure, unit, goals.
type Line = (&'static str, &'static str, Unit, Vec<Must>);

const TITLE_WIDTH: usize = 28;
const WIDTH: usize = 8;
const GOAL_WIDTH: usize = 15;
/// Peers of a line that has the goals too, each with a ratio; and of the lines below, for more peers.
const PEERS: usize = 1;
const PEERS_BELOW: usize = 2;

/// Operations that were due and did not begin. The line is left out where nothing was due.
const NOT_BEGUN: Line = ("due, but not begun", "mix_not_begun_ops", ONE, vec![]);

/// The lines of a scenario.
fn lines(scenario: Scenario, sizes: &Sizes) -> Vec<Line> {
    let mib = |bytes: f64| bytes / MIB.1;
    let live = (sizes.keys * pairs::PAIR_BYTES) as f64;
    match scenario {
        Scenario::Memory => {
            let most = mib(sizes.budget_bytes()) * 1.1 + 16.0;
            vec![
                ("resident at its peak", "resident_peak_bytes", MIB, vec![Be(AtMost, most)]),
                ("resident at rest", "resident_rest_bytes", MIB, vec![]),
            ]
        }
        Scenario::Stalls => vec![
            ("puts", "put_ops_per_s", KILO, vec![]),
            ("put, p50", "put_p50_ns", US, vec![]),
            ("put, p99", "put_p99_ns", US, vec![]),
            ("put, p99.9", "put_p999_ns", US, vec![Be(Below, 500.0), BeOf("rocksdb", 1.0)]),
            ("put, longest", "put_max_ns", MS, vec![Be(AtMost, 50.0)]),
        ],
        Scenario::Snapshots => vec![
            ("puts beside them", "put_ops_per_s", KILO, vec![]),
            ("snapshot, p50", "snapshot_p50_ns", US, vec![]),
            ("snapshot, p99", "snapshot_p99_ns", US, vec![]),
            ("snapshot, p99.9", "snapshot_p999_ns", US, vec![Be(Below, 1000.0)]),
            ("snapshot, longest", "snapshot_max_ns", US, vec![]),
        ],
        Scenario::Overwrites => {
            let table = forrest::DEFAULT_TABLE_BYTES as f64;
            let most = mib(1.6 * live + sizes.memtables_bytes() as f64 + table);
            vec![
                ("on disk at its peak", "disk_peak_bytes", MIB, vec![Be(AtMost, most)]),
                ("  of live", "overwrite_peak_disk_per_byte", ONE, vec![]),
                ("on disk at rest", "disk_rest_bytes", MIB, vec![]),
                ("written for a byte", "overwrite_written_per_byte", ONE, vec![Be(AtMost, 4.0)]),
            ]
        }
        Scenario::Deletes => {
            let kept = live / 10.0;
            vec![
                ("loaded, on disk", "disk_loaded_bytes", MIB, vec![]),
                ("90 % deleted, idle", "disk_idle_bytes", MIB, vec![Be(Below, mib(1.5 * kept) + 32.0)]),
            ]
        }
        Scenario::Ranges => {
            // Half of the keys is left, less a thousandth of a few.
            let most = mib(live / 2.0) * 1.5 + 32.0;
            vec![
                (
                    "delete of half the keys",
                    "range_delete_ns",
                    US,
                    vec![Be(Below, 100.0), BeOf("rocksdb", 1.0)],
                ),
                ("delete of a small range", "small_range_ns", US, vec![BeOf("rocksdb", 1.0)]),
                ("scan of 50, before", "scan_ns", US, vec![]),
                ("first scan across", "scan_first_ns", US, vec![]),
                ("scans across", "scan_across_ns", US, vec![BeOf("rocksdb", 1.0)]),
                ("  of a scan before", "scan_across_ratio", ONE, vec![Be(AtMost, 1.2)]),
                ("  the same after idling", "scan_later_ratio", ONE, vec![Be(AtMost, 1.2)]),
                ("loaded, on disk", "disk_loaded_bytes", MIB, vec![]),
                ("idle, on disk", "disk_idle_bytes", MIB, vec![Be(Below, most)]),
            ]
        }
        Scenario::Opening => vec![
            ("closed: close", "close_ns", MS, vec![]),
            ("closed: open and get", "closed_open_and_get_ns", MS, vec![Be(AtMost, 15.0)]),
            ("killed: open", "killed_open_ns", MS, vec![]),
            ("killed: replayed", "killed_replay_ops_per_s", KILO, vec![Be(AtLeast, 1000.0)]),
            ("killed: first get", "killed_first_get_ns", MS, vec![Be(AtMost, 5.0)]),
        ],
        Scenario::Growth => vec![
            ("a pair, first size", "growth_first_ns", US, vec![]),
            ("a pair, last size", "growth_last_ns", US, vec![]),
            ("last for first", "growth_ratio", ONE, vec![Be(Below, 1.5)]),
            ("written for a byte", "growth_written_per_byte", ONE, vec![Be(AtMost, 3.0)]),
        ],
        Scenario::Closing => vec![
            ("close", "close_ns", MS, vec![Be(Below, 200.0)]),
            ("pairs there then, %", "kept_percent", ONE, vec![Be(AtLeast, 100.0)]),
        ],
        Scenario::Headline => vec![
            ("resident at its peak", "resident_peak_bytes", MB, vec![Be(AtMost, 700.0)]),
            ("resident at rest", "resident_rest_bytes", MB, vec![]),
            ("on disk at its peak", "disk_peak_bytes", MB, vec![Be(AtMost, 800.0)]),
            ("on disk, closed", "disk_rest_bytes", MB, vec![Be(AtMost, 400.0)]),
        ],
        Scenario::Queue => vec![
            ("a pop, all", "pop_ns", US, vec![]),
            ("a pop, first 1000", "pop_first_ns", US, vec![BeOf("lmdb", 1.5)]),
            ("a pop, last 1000", "pop_last_ns", US, vec![BeOf("lmdb", 1.5)]),
        ],
        Scenario::Values => values(),
        Scenario::Transfers => vec![
            ("transactions", "transfer_ops_per_s", KILO, vec![AtLeastOf("rocksdb", 1.0)]),
            ("a transaction, p50", "transfer_p50_ns", US, vec![]),
            ("a transaction, p99", "transfer_p99_ns", US, vec![BeOf("rocksdb", 1.0)]),
            ("tries that met others, %", "transfer_met_percent", ONE, vec![]),
        ],
        Scenario::Ingest => vec![
            ("pairs", "ingest_ops_per_s", KILO, vec![Be(AtLeast, 2000.0), AtLeastOf("rocksdb", 1.0)]),
            ("written for a byte", "ingest_written_per_byte", ONE, vec![]),
            ("work after it, s", "ingest_settle_s", ONE, vec![]),
        ],
        _ => {
            let mut lines = match scenario.has_a_writer() {
                true => vec![
                    ("reads", "mix_read_ops_per_s", KILO, vec![]),
                    ("writes beside them", "mix_write_ops_per_s", KILO, vec![]),
                ],
                false => vec![("operations", "mix_ops_per_s", KILO, vec![])],
            };
            lines.push(NOT_BEGUN);
            lines.push(("warm-up, s", "mix_warm_up_s", ONE, vec![]));
            lines.push(("  last change of the rate, %", "mix_warm_up_change_percent", ONE, vec![]));
            let [reads, writes, scans, modifies] = scenario.mix().map_or([false; 4], |mix| mix.sorts());
            let sorts = [reads, writes || scenario.has_a_writer(), scans, modifies];
            lines.extend(
                sort_lines().into_iter().zip(sorts).filter(|(_, there)| *there).flat_map(|(of, _)| of),
            );
            lines
        }
    }
}

/// The lines of each length of long values.
fn values() -> Vec<Line> {
    macro_rules! of {
        ($($name:literal $bytes:literal),*) => {
            [$([
                (concat!($name, ": load, GB/s"), concat!("value_load_gb_per_s@", $bytes), ONE, vec![]),
                (concat!($name, ": written a byte"), concat!("value_load_written_per_byte@", $bytes), ONE, vec![
                    Be(AtMost, 1.05),
                    BeOf("rocksdb", 0.7),
                ]),
                (concat!($name, ": get"), concat!("value_get_ns@", $bytes), US, vec![BeOf("rocksdb", 1.0)]),
                (concat!($name, ": overwrite, GB/s"), concat!("value_overwrite_gb_per_s@", $bytes), ONE, vec![]),
                (concat!($name, ": written a byte then"), concat!("value_overwrite_written_per_byte@", $bytes), ONE, vec![
                    Be(AtMost, 1.8),
                    BeOf("rocksdb", 0.7),
                ]),
                (concat!($name, ": on disk, of live"), concat!("value_overwrite_disk_per_byte@", $bytes), ONE, vec![
                    Be(AtMost, 1.5),
                ]),
                (concat!($name, ": get then"), concat!("value_get_again_ns@", $bytes), US, vec![BeOf("rocksdb", 1.0)]),
                (concat!($name, ": at its peak"), concat!("value_peak_disk_per_byte@", $bytes), ONE, vec![]),
            ]),*]
        };
    }
    of!("4K" "4096", "64K" "65536", "1M" "1048576").into_iter().flatten().collect()
}

/// The lines of each sort of operation in a mix, in the order of their numbers.
fn sort_lines() -> [[Line; 4]; Op::SORTS.len()] {
    macro_rules! of {
        ($($name:literal)*) => {
            [$([
                (concat!($name, ", p50"), concat!("mix_", $name, "_p50_ns"), US, vec![]),
                (concat!($name, ", p99"), concat!("mix_", $name, "_p99_ns"), US, vec![]),
                (concat!($name, ", p99.9"), concat!("mix_", $name, "_p999_ns"), US, vec![BeOf("rocksdb", 1.0)]),
                (concat!($name, ", longest"), concat!("mix_", $name, "_max_ns"), MS, vec![]),
            ]),*]
        };
    }
    of!("read" "write" "scan" "modify")
}

/// A goal of a line, judged, if there are the figures for it.
fn judge(scenario: Scenario, keys: u64, line: &Line, must: &Must, rows: &[Row]) -> Option<Goal> {
    let (title, figure, unit, _) = line;
    let of = |name: &str| rows.iter().find(|row| row.name == name)?.median(figure);
    let own = of(FORREST)?;
    let group = (scenario.kind(), keys);
    match must {
        Be(relation, goal) => {
            let judged = Goal::judge(title.trim().to_owned(), group, own / unit.1, *relation, *goal);
            Some(Goal { unit: unit.0.into(), ..judged })
        }
        BeOf(peer, goal) => {
            Some(Goal::judge(format!("{title}, of {peer}'s"), group, own / of(peer)?, AtMost, *goal))
        }
        AtLeastOf(peer, goal) => {
            Some(Goal::judge(format!("{title}, of {peer}'s"), group, own / of(peer)?, AtLeast, *goal))
        }
    }
}

/// Prints the table of a scenario; returns its goals.
pub(crate) fn print(
    out: &mut impl Write,
    scenario: Scenario,
    sizes: &Sizes,
    rows: &[Row],
) -> io::Result<Vec<Goal>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    writeln!(
        out,
        "\n{}, {} pairs, memtables of {}, a cache of {}",
        scenario.kind(),
        runner::keys(sizes.keys),
        sizes::text(sizes.memtable_bytes),
        sizes::text(sizes.cache_bytes)
    )?;
    let own = rows.iter().find(|row| row.name == FORREST);
    let peers: Vec<&Row> = rows.iter().filter(|row| row.name != FORREST).collect();
    let mut lines = lines(scenario, sizes);
    lines.retain(|line| line.1 != NOT_BEGUN.1 || rows.iter().any(|row| row.median(line.1).is_some()));
    let mut goals = Vec::new();
    let (first, rest) = peers.split_at(PEERS.min(peers.len()));
    print_part(out, (own, first), (&lines, "goal"), |out, line, width| {
        let judged = line.3.iter();
        let judged =
            judged.filter_map(|must| Some((wanted(must), judge(scenario, sizes.keys, line, must, rows)?)));
        for (at, (wanted, goal)) in judged.enumerate() {
            // The second goal of a figure is below the first.
            let before = if at == 0 { String::new() } else { format!("\n{:width$}", "") };
            write!(out, "{before}{wanted:>GOAL_WIDTH$} {}", if goal.holds { "met" } else { "missed" })?;
            goals.push(goal);
        }
        Ok(())
    })?;
    for peers in rest.chunks(PEERS_BELOW) {
        print_part(out, (own, peers), (&lines, ""), |_, _, _| Ok(()))?;
    }
    Ok(goals)
}

/// Prints all lines with some of the peers, and what `after` adds to each, under the heading `last`. It gets the width
/// of the line before it.
fn print_part<W: Write>(
    out: &mut W,
    (own, peers): (Option<&Row>, &[&Row]),
    (lines, last): (&[Line], &str),
    mut after: impl FnMut(&mut W, &Line, usize) -> io::Result<()>,
) -> io::Result<()> {
    write!(out, "{:TITLE_WIDTH$}{:>WIDTH$}", "", own.map_or("", |row| row.name))?;
    for peer in peers {
        write!(out, "{:>WIDTH$}{:>WIDTH$}", peer.name, "ratio")?;
    }
    writeln!(out, "{}", if last.is_empty() { String::new() } else { format!("{last:>GOAL_WIDTH$}") })?;
    for line in lines {
        let (title, figure, unit, _) = line;
        let text = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
        let of = |row: &Row| row.median(figure).map(|value| value / unit.1);
        let value = own.and_then(of);
        let title = format!("{title}{}{}", if unit.0.is_empty() { "" } else { ", " }, unit.0);
        write!(out, "{title:TITLE_WIDTH$}{:>WIDTH$}", text(value))?;
        for peer in peers {
            let of_peer = of(peer);
            let ratio = value.zip(of_peer).map(|(own, peer)| own / peer).filter(|ratio| ratio.is_finite());
            write!(out, "{:>WIDTH$}{:>WIDTH$}", text(of_peer), text(ratio))?;
        }
        after(out, line, (TITLE_WIDTH + WIDTH) + peers.len() * 2 * WIDTH)?;
        writeln!(out)?;
    }
    Ok(())
}

/// A goal in the unit of its line.
fn wanted(must: &Must) -> String {
    match must {
        Be(relation, goal) => {
            let sign = match relation {
                AtLeast => ">=",
                AtMost => "<=",
                Relation::Above => ">",
                Below => "<",
            };
            format!("{sign} {}", number(*goal))
        }
        BeOf(peer, goal) => format!("<= {} {peer}", number(*goal)),
        AtLeastOf(peer, goal) => format!(">= {} {peer}", number(*goal)),
    }
}

/// What to know to read the tables.
pub(crate) fn print_legend(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\nratio: forrest's figure divided by the peer's. memory: the budget is three\n\
         memtables and the cache. docs/benchmarks.md describes each scenario."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    const SIZES: Sizes = Sizes { keys: 1000, memtable_bytes: 64 << 20, cache_bytes: 256 << 20 };

    fn row(name: &'static str, figures: &[(&str, f64)]) -> Row {
        let figures =
            figures.iter().map(|(name, value)| (name.to_string(), Figure::new(vec![*value]))).collect();
        Row { name, figures }
    }

    fn printed(scenario: Scenario, rows: &[Row]) -> (String, Vec<Goal>) {
        let mut text = Vec::new();
        let goals = print(&mut text, scenario, &SIZES, rows).unwrap();
        (String::from_utf8(text).unwrap(), goals)
    }

    #[test]
    fn a_line_has_values_ratios_and_a_verdict() {
        let rows = [
            row(FORREST, &[("put_p999_ns", 400_000.0), ("put_max_ns", 60e6)]),
            row("rocksdb", &[("put_p999_ns", 200_000.0)]),
        ];
        let (text, goals) = printed(Scenario::Stalls, &rows);
        let shown = |line: &str| text.lines().any(|one| one.split_whitespace().eq(line.split_whitespace()));
        assert!(shown("put, p99.9, us 400 200 2.00 < 500 met"), "{text}");
        assert!(shown("<= 1.00 rocksdb missed"), "{text}");
        assert!(shown("put, longest, ms 60.0 - - <= 50.0 missed"), "{text}");
        assert!(shown("put, p50, us - - -"), "{text}");
        let verdicts: Vec<_> = goals.iter().map(|goal| (goal.measured, goal.holds)).collect();
        assert_eq!(verdicts, [(400.0, true), (2.0, false), (60.0, false)]);
    }

    #[test]
    fn what_did_not_begin_is_shown_where_something_was_due() {
        let shown = |figures: &[(&str, f64)]| {
            printed(Scenario::ReadWhileWriting, &[row(FORREST, figures)]).0.contains("not begun")
        };
        assert!(shown(&[("mix_not_begun_ops", 0.0)]) && !shown(&[("mix_read_ops_per_s", 1e6)]));
    }

    #[test]
    fn a_goal_may_depend_on_the_sizes() {
        let budget = f64::from((3 * 64 + 256) << 20);
        let (_, goals) = printed(Scenario::Memory, &[row(FORREST, &[("resident_peak_bytes", 1.2 * budget)])]);
        assert!(!goals[0].holds && (goals[0].goal - (448.0 * 1.1 + 16.0)).abs() < 1e-9, "{goals:?}");
    }

    #[test]
    fn lines_of_sorts_have_their_names() {
        let names = sort_lines().map(|lines| lines[0].0);
        assert_eq!(names, Op::SORTS.map(|sort| format!("{sort}, p50")));
    }

    #[test]
    fn every_figure_is_explained() {
        for line in Scenario::value_variants().iter().flat_map(|scenario| lines(*scenario, &SIZES)) {
            assert!(crate::explain::explain(line.1).is_some(), "{}", line.1);
        }
    }

    #[test]
    fn tables_fit_and_every_scenario_has_one() {
        for scenario in Scenario::value_variants() {
            let figures: Vec<_> = lines(*scenario, &SIZES).iter().map(|line| (line.1, 123_456.0)).collect();
            let names = [FORREST, "rocksdb", "lmdb", "fjall", "redb", "sqlite"];
            let rows = names.map(|name| row(name, &figures));
            let (text, goals) = printed(*scenario, &rows);
            assert!(text.lines().all(|line| line.len() <= 80) && !goals.is_empty(), "{text}");
            assert!(names.iter().all(|name| text.contains(name)), "{text}");
        }
    }
}
