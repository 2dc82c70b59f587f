//! The goals of the project, compared with the measurements. They are targets: a missed goal is printed as missed and
//! changes no exit code.

use crate::data::KindName;
use crate::record::{Figure, Run};
use crate::runner;
use crate::tables::{Group, Row, number};
use serde::Serialize;
use serde_json::json;
use std::io::{self, Write};

/// Keys from which on batches are compared with the hash map.
const BATCH_AGAINST_HASH_KEYS: u64 = 50_000_000;

/// How a figure must stand to its goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Relation {
    /// As great or greater.
    AtLeast,
    /// As small or smaller.
    AtMost,
    /// Greater.
    Above,
    /// Smaller.
    Below,
}

/// A goal and how it stands.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Goal {
    /// Title of the measurement.
    pub(crate) title: String,
    /// Kind of pairs.
    pub(crate) kind: &'static str,
    /// Number of keys.
    pub(crate) keys: u64,
    /// The figure.
    pub(crate) measured: f64,
    /// How it must stand to `goal`.
    pub(crate) relation: Relation,
    /// What it must reach.
    pub(crate) goal: f64,
    /// Whether it does.
    pub(crate) holds: bool,
    /// The unit, printed after the numbers.
    pub(crate) unit: &'static str,
}

impl Goal {
    /// Compares a figure with its goal; the group is the kind and number of pairs.
    pub(crate) fn judge(
        title: String,
        (kind, keys): (&'static str, u64),
        measured: f64,
        relation: Relation,
        goal: f64,
    ) -> Goal {
        let holds = match relation {
            Relation::AtLeast => measured >= goal,
            Relation::AtMost => measured <= goal,
            Relation::Above => measured > goal,
            Relation::Below => measured < goal,
        };
        Goal { title, kind, keys, measured, relation, goal, holds, unit: "x" }
    }
}

/// Judges the goals for which this group has the figures.
pub(crate) fn of_group(group: &Group, threads: u16) -> Vec<Goal> {
    use Relation::{Above, AtLeast, AtMost};
    let Some(own) = group.forrest() else { return Vec::new() };
    let of = (group.kind.name(), group.keys);
    let mut goals = Vec::new();
    let mut add = |title: &str, measured: Option<f64>, relation, goal, unit| {
        let judged = measured.map(|measured| Goal::judge(title.to_owned(), of, measured, relation, goal));
        goals.extend(judged.map(|judged| Goal { unit, ..judged }));
    };
    let against = |name: &str, peer: &str| Some(group.row(peer)?.median(name)? / own.median(name)?);
    let best =
        |name: &str| group.best_peer(name).zip(own.median(name)).map(|((best, who), own)| (best / own, who));

    add("get, times the red-black tree's speed", against("get_ns", "rbtree"), AtLeast, 8.0, "x");
    add("get, times BTreeMap's speed", against("get_ns", "btreemap"), AtLeast, 3.5, "x");
    if let Some((ratio, who)) = best("get_ns") {
        add(&format!("get, times the best ordered peer's speed ({who})"), Some(ratio), Above, 1.0, "x");
    }
    if let Some((ratio, who)) = best("get_dependent_ns") {
        add(
            &format!("get, dependent, of the best ordered peer's time ({who})"),
            Some(1.0 / ratio),
            AtMost,
            0.7,
            "x",
        );
    }
    let batch = own.median("multi_get_64_ns");
    let single = own.median("get_ns").zip(batch).map(|(get, batch)| get / batch);
    add("multi_get of 64, times its own get's speed", single, AtLeast, 2.5, "x");
    if group.keys >= BATCH_AGAINST_HASH_KEYS {
        let hash = group.row("hashbrown").and_then(|row| row.median("get_ns"));
        add(
            "multi_get of 64, of hashbrown's get",
            batch.zip(hash).map(|(own, hash)| own / hash),
            AtMost,
            1.5,
            "x",
        );
    }
    add("insert, times the red-black tree's speed", against("insert_ns", "rbtree"), AtLeast, 4.0, "x");
    if let Some((ratio, who)) = best("insert_ns") {
        add(&format!("insert, times the best ordered peer's speed ({who})"), Some(ratio), Above, 1.0, "x");
    }
    add("scan of 50, times BTreeMap's speed", against("scan_50_ns", "btreemap"), AtLeast, 4.0, "x");
    add("full iteration of keys and values", own.median("iterate_gb_per_s"), AtLeast, 1.0, "GB/s");
    for (name, figure) in [("resident", "resident_bytes_per_key"), ("live", "live_bytes_per_key")] {
        match group.kind {
            KindName::U64 => add(&format!("bytes per key, {name}"), own.median(figure), AtMost, 22.0, "B"),
            KindName::Strings => {
                let ratio = against(figure, "btreemap").map(|ratio| 1.0 / ratio);
                add(
                    &format!("bytes per key, {name}, of BTreeMap<Vec<u8>, Vec<u8>>"),
                    ratio,
                    AtMost,
                    2.0 / 3.0,
                    "x",
                );
            }
        }
    }
    if threads == 2 {
        let scaling = |name: &str| {
            let rate = |threads: u8| own.median(&format!("{name}_{threads}t_mops"));
            rate(1).zip(rate(2)).map(|(one, two)| two / one)
        };
        add("2 threads against 1, reads", scaling("read"), AtLeast, 1.8, "x");
        add("2 threads against 1, half writes, own keys", scaling("mixed_disjoint"), AtLeast, 1.6, "x");
        add("2 threads against 1, half writes, all keys", scaling("mixed_shared"), AtLeast, 1.6, "x");
    }
    goals
}

/// Judges how the cost of a get grows between the first and the last size that were reached.
pub(crate) fn of_sweep(row: &Row, sizes: &[u64]) -> Vec<Goal> {
    let growth = |name: &str| {
        let at =
            |size: &&u64| row.figures.get(&format!("{name}@{size}")).map(|figure: &Figure| figure.median);
        let first = sizes.first()?;
        let last = sizes.iter().rev().find(|size| at(size).is_some())?;
        let title = format!(
            "{}, cost from {} to {} keys",
            name.replace("_ns", ""),
            runner::keys(*first),
            runner::keys(*last)
        );
        let ratio = at(&last)? / at(&first)?;
        (first != last).then(|| {
            let title = title.replace('_', ", ");
            let goal = Goal::judge(title, (KindName::U64.name(), *last), ratio, Relation::Below, 3.0);
            Goal { kind: "u64, growing", ..goal }
        })
    };
    ["get_ns", "get_dependent_ns"].into_iter().filter_map(growth).collect()
}

/// Ends a run: prints the goals and their verdicts, and keeps them; true if nothing failed.
pub(crate) fn conclude(
    out: &mut impl Write,
    record: &mut Run,
    goals: &[Goal],
    failures: usize,
) -> io::Result<bool> {
    print(out, goals)?;
    record.append("goals", &json!({ "goals": goals }))?;
    if failures > 0 {
        writeln!(out, "\n{failures} failed: see above.")?;
    }
    Ok(failures == 0)
}

/// The goals and their verdicts.
fn print(out: &mut impl Write, goals: &[Goal]) -> io::Result<()> {
    let mut heading = ("", 0);
    for goal in goals {
        if heading != (goal.kind, goal.keys) {
            heading = (goal.kind, goal.keys);
            writeln!(out, "\nGoals, {} {}", runner::keys(goal.keys), goal.kind)?;
        }
        let words = match goal.relation {
            Relation::AtLeast => "at least",
            Relation::AtMost => "at most",
            Relation::Above => "above",
            Relation::Below => "below",
        };
        let (measured, unit) = (number(goal.measured), goal.unit);
        let wanted = format!("{words} {}{unit}", number(goal.goal));
        let verdict = if goal.holds { "holds" } else { "missed" };
        writeln!(out, "  {:60}{:>11}  {wanted:17} {verdict}", goal.title, format!("{measured}{unit}"))?;
    }
    let held = goals.iter().filter(|goal| goal.holds).count();
    if !goals.is_empty() {
        writeln!(
            out,
            "\n{held} of {} goals hold. They are targets; a missed one is no failure.",
            goals.len()
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Name;
    use crate::subjects::Pages;

    fn row(name: &str, figures: &[(&str, f64)]) -> Row {
        let figures =
            figures.iter().map(|(name, value)| (name.to_string(), Figure::new(vec![*value]))).collect();
        Row { name: Name::parse(name).unwrap(), pages: Pages::Auto, figures, notes: Vec::new() }
    }

    #[test]
    fn goals_are_judged_from_medians() {
        let rows = vec![
            row("forrest", &[("get_ns", 100.0), ("resident_bytes_per_key", 23.0), ("multi_get_64_ns", 40.0)]),
            row("rbtree", &[("get_ns", 800.0)]),
            row("btreemap", &[("get_ns", 340.0)]),
            row("hashbrown", &[("get_ns", 30.0)]),
        ];
        let group = Group { kind: KindName::U64, keys: 50_000_000, rows };
        let goals = of_group(&group, 2);
        let verdicts: Vec<_> = goals.iter().map(|goal| (goal.measured, goal.holds)).collect();
        let ratio = 40.0 / 30.0;
        assert_eq!(
            verdicts,
            [(8.0, true), (3.4, false), (3.4, true), (2.5, true), (ratio, true), (23.0, false)]
        );
        let mut text = Vec::new();
        print(&mut text, &goals).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("4 of 6 goals hold") && text.lines().all(|line| line.len() <= 100), "{text}");
    }

    #[test]
    fn growth_is_judged_between_the_ends_that_were_reached() {
        let figures = [("get_ns@1000", 50.0), ("get_ns@2000", 60.0), ("get_ns@3000", 200.0)];
        let goals = of_sweep(&row("forrest", &figures), &[1000, 2000, 3000, 4000]);
        assert_eq!(goals.len(), 1);
        assert!(!goals[0].holds && goals[0].measured == 4.0 && goals[0].title.contains("3K"), "{goals:?}");
    }
}
