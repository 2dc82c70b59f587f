//! The goals of the project, compared with the measurements. They are targets: a missed goal is printed as missed and
//! changes no exit code.

use crate::arm::THREADS_DISTURBED;
use crate::data::KindName;
use crate::record::{Figure, Goal, Relation, Run};
use crate::runner;
use crate::subjects::{FORREST, Pages};
use crate::tables::{Group, Row};
use crate::threads;
use serde_json::json;
use std::io::{self, Write};

/// Keys from which on batches are compared with the hash map.
const BATCH_AGAINST_HASH_KEYS: u64 = 50_000_000;

/// Figures of memory that have goals.
const MEMORY: [(&str, &str); 2] = [("resident", "resident_bytes_per_key"), ("live", "live_bytes_per_key")];

/// A row of this project's index, and the peers whose memory lies on the same kind of pages.
struct Equal<'g> {
    own: &'g Row,
    peers: Vec<&'g Row>,
}

impl Equal<'_> {
    /// A structure by itself.
    fn row(&self, name: &str) -> Option<&Row> {
        self.peers.iter().find(|row| row.name.is(name)).copied()
    }

    /// The least of a figure among the ordered peers, and whose it is.
    fn best(&self, name: &str) -> Option<(f64, String)> {
        let ordered = self.peers.iter().filter(|row| row.name.entry.ordered);
        let figures = ordered.filter_map(|row| Some((row.median(name)?, row.name.to_string())));
        figures.min_by(|a, b| a.0.total_cmp(&b.0))
    }
}

/// The rows of this project's index, one for each kind of pages, that on the pages of its own choice first.
fn own_rows(group: &Group) -> Vec<&Row> {
    let mut rows: Vec<&Row> = group.rows.iter().filter(|row| row.name.is(FORREST)).collect();
    rows.sort_by_key(|row| row.pages != Pages::Auto);
    let mut own: Vec<&Row> = Vec::new();
    for row in rows {
        if own.iter().all(|other| other.pages_had() != row.pages_had()) {
            own.push(row);
        }
    }
    own
}

/// Judges the goals for which this group has the figures. The index is compared with peers on the same kind of pages;
/// goals about the index alone are about the pages of its own choice.
pub(crate) fn of_group(group: &Group, threads: u16) -> Vec<Goal> {
    let mut goals = Vec::new();
    for (at, own) in own_rows(group).into_iter().enumerate() {
        let pages = own.pages_had();
        let is_peer = |row: &&Row| !row.name.is(FORREST) && row.pages_had() == pages;
        let equal = Equal { own, peers: group.rows.iter().filter(is_peer).collect() };
        let of = (group.kind.name(), group.keys);
        let mut judged = against_peers(&equal, group.kind, of);
        if at == 0 {
            judged.extend(of_itself(own, group.kind, of, threads));
        }
        goals.extend(judged.into_iter().map(|goal| Goal { pages: pages.map(Into::into), ..goal }));
    }
    goals
}

/// Judges the goals about the index and its peers.
fn against_peers(equal: &Equal<'_>, kind: KindName, of: (&'static str, u64)) -> Vec<Goal> {
    use Relation::{Above, AtLeast, AtMost};
    let own = equal.own;
    let mut goals = Vec::new();
    let mut add = |title: &str, measured: Option<f64>, relation, goal| {
        goals.extend(measured.map(|measured| Goal::judge(title.to_owned(), of, measured, relation, goal)));
    };
    let against = |name: &str, peer: &str| Some(equal.row(peer)?.median(name)? / own.median(name)?);
    let best =
        |name: &str| equal.best(name).zip(own.median(name)).map(|((best, who), own)| (best / own, who));

    add("get, times the red-black tree's speed", against("get_ns", "rbtree"), AtLeast, 8.0);
    add("get, times BTreeMap's speed", against("get_ns", "btreemap"), AtLeast, 3.0);
    add("get, times JudyL's speed", against("get_ns", "judy"), AtLeast, 1.3);
    if let Some((ratio, who)) = best("get_ns") {
        add(&format!("get, times the best ordered peer's speed ({who})"), Some(ratio), AtLeast, 1.2);
    }
    if let Some((ratio, who)) = best("get_dependent_ns") {
        add(
            &format!("get, dependent, of the best ordered peer's time ({who})"),
            Some(1.0 / ratio),
            AtMost,
            0.7,
        );
    }
    if of.1 >= BATCH_AGAINST_HASH_KEYS {
        let hash = equal.row("hashbrown").and_then(|row| row.median("get_ns"));
        let batch = own.median("multi_get_64_ns").zip(hash).map(|(own, hash)| own / hash);
        add("multi_get of 64, of hashbrown's get", batch, AtMost, 1.5);
    }
    add("insert, times the red-black tree's speed", against("insert_ns", "rbtree"), AtLeast, 4.0);
    if let Some((ratio, who)) = best("insert_ns") {
        add(&format!("insert, times the best ordered peer's speed ({who})"), Some(ratio), Above, 1.0);
    }
    add("scan of 50, times BTreeMap's speed", against("scan_50_ns", "btreemap"), AtLeast, 4.0);
    if kind == KindName::Strings {
        add("scan of 50, times the red-black tree's speed", against("scan_50_ns", "rbtree"), AtLeast, 6.0);
    }
    for (name, figure) in MEMORY.iter().filter(|_| kind == KindName::Strings) {
        let ratio = against(figure, "btreemap").map(|ratio| 1.0 / ratio);
        add(&format!("bytes per key, {name}, of BTreeMap<Vec<u8>, Vec<u8>>"), ratio, AtMost, 2.0 / 3.0);
    }
    goals
}

/// Judges the goals about the index alone.
fn of_itself(own: &Row, kind: KindName, of: (&'static str, u64), threads: u16) -> Vec<Goal> {
    use Relation::{AtLeast, AtMost};
    let mut goals = Vec::new();
    let mut add = |title: &str, measured: Option<f64>, relation, goal, unit: &'static str| {
        let judged = measured.map(|measured| Goal::judge(title.to_owned(), of, measured, relation, goal));
        goals.extend(judged.map(|judged| Goal { unit: unit.into(), ..judged }));
    };
    let batch = own.median("get_ns").zip(own.median("multi_get_64_ns")).map(|(get, batch)| get / batch);
    add("multi_get of 64, times its own get's speed", batch, AtLeast, 2.5, "x");
    add("full iteration of keys and values", own.median("iterate_gb_per_s"), AtLeast, 1.0, "GB/s");
    for (name, figure) in MEMORY.iter().filter(|_| kind == KindName::U64) {
        add(&format!("bytes per key, {name}"), own.median(figure), AtMost, 18.0, "B");
    }
    if threads == 2 {
        goals.extend(of_two_threads(own, of));
    }
    goals
}

/// Judges how much faster two threads are than one. What cannot be, and what others took part in, is no evidence, so it
/// does not hold.
fn of_two_threads(own: &Row, of: (&'static str, u64)) -> Vec<Goal> {
    let is_disturbed =
        own.median(THREADS_DISTURBED).is_some_and(|share| share > threads::DISTURBED_PERCENT_MAX);
    let steps = [
        ("reads", "read", 1.9),
        ("half writes, own keys", "mixed_disjoint", 1.8),
        ("half writes, all keys", "mixed_shared", 1.8),
    ];
    let judged = steps.into_iter().filter_map(|(words, step, goal)| {
        let rate = |threads: u8| own.median(&format!("{step}_{threads}t_mops"));
        let times = rate(2)? / rate(1)?;
        let doubt = match () {
            () if !threads::is_possible(times, 2) => ", wrong",
            () if is_disturbed => ", disturbed",
            () => "",
        };
        let title = format!("2 threads against 1, {words}{doubt}");
        let judged = Goal::judge(title, of, times, Relation::AtLeast, goal);
        Some(Goal { holds: judged.holds && doubt.is_empty(), ..judged })
    });
    judged.collect()
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
            let goal = Goal::judge(title, (KindName::U64.name(), *last), ratio, Relation::Below, 4.0);
            Goal { kind: "u64, growing".into(), ..goal }
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

/// Columns of a goal's title.
const TITLE_WIDTH: usize = 41;

/// The goals and their verdicts.
fn print(out: &mut impl Write, goals: &[Goal]) -> io::Result<()> {
    let mut heading = None;
    for goal in goals {
        let of = (&goal.kind, goal.keys, &goal.pages);
        if heading.replace(of) != Some(of) {
            let pages = goal.pages.as_ref().map_or_else(String::new, |pages| format!(", all on {pages}"));
            writeln!(out, "\nGoals, {} {}{pages}", runner::keys(goal.keys), goal.kind)?;
        }
        let [measured, wanted, verdict] = goal.texts();
        // A long title has a line of its own.
        let title = match goal.title.len() {
            ..TITLE_WIDTH => goal.title.as_str(),
            _ => writeln!(out, "  {}", goal.title).map(|()| "")?,
        };
        writeln!(out, "  {title:TITLE_WIDTH$}{measured:>10}  {wanted:17} {verdict}")?;
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
            row("btreemap", &[("get_ns", 290.0)]),
            row("hashbrown", &[("get_ns", 30.0)]),
        ];
        let group = Group { kind: KindName::U64, keys: 50_000_000, rows };
        let goals = of_group(&group, 2);
        let verdicts: Vec<_> = goals.iter().map(|goal| (goal.measured, goal.holds)).collect();
        let ratio = 40.0 / 30.0;
        assert_eq!(
            verdicts,
            [(8.0, true), (2.9, false), (2.9, true), (ratio, true), (2.5, true), (23.0, false)]
        );
        let mut text = Vec::new();
        print(&mut text, &goals).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("4 of 6 goals hold") && text.lines().all(|line| line.len() <= 80), "{text}");
    }

    /// The index on huge pages was compared with peers on small ones.
    #[test]
    fn goals_name_their_pages_and_compare_equal_ones() {
        let on = |name: &str, pages, get_ns: f64, huge: f64| Row {
            pages,
            ..row(name, &[("get_ns", get_ns), ("resident_huge_percent", huge)])
        };
        let own = [on("forrest", Pages::Auto, 100.0, 99.0), on("forrest", Pages::Plain, 200.0, 0.0)];
        let judged = |rows: Vec<Row>| {
            let goals = of_group(&Group { kind: KindName::U64, keys: 1000, rows }, 1);
            let judged =
                goals.iter().map(|goal| format!("{} on {}", goal.measured, goal.pages.as_ref().unwrap()));
            (judged.collect::<Vec<_>>(), goals)
        };
        let [huge, small] = own;
        // BTreeMap's speed, then the best peer's. Nothing is on the pages that the index chose.
        let peer = || on("btreemap", Pages::Auto, 600.0, 3.0);
        assert_eq!(judged(vec![on("forrest", Pages::Auto, 100.0, 99.0), peer()]).0, [""; 0]);
        let (measured, goals) = judged(vec![huge, small, peer()]);
        assert_eq!(measured, ["3 on small pages"; 2]);
        let mut text = Vec::new();
        print(&mut text, &goals).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("\nGoals, 1K u64, all on small pages\n"), "{text}");
        // Both are on huge pages.
        let rows = vec![on("forrest", Pages::Auto, 100.0, 99.0), on("btreemap", Pages::Auto, 500.0, 80.0)];
        assert_eq!(judged(rows).0, ["5 on huge pages"; 2]);
    }

    /// Two threads were 15 times as fast as one, because the first thread ran on a CPU that others had, and the goal
    /// held.
    #[test]
    fn a_scaling_that_cannot_be_or_was_disturbed_holds_no_goal() {
        for (one, two, disturbed, holds) in
            [(1.0, 1.9, 0.0, true), (1.0, 2.03, 0.0, true), (1.0, 15.0, 0.0, false), (1.0, 1.9, 30.0, false)]
        {
            let figures =
                [("read_1t_mops", one), ("read_2t_mops", two), ("threads_disturbed_percent", disturbed)];
            let group = Group { kind: KindName::U64, keys: 1000, rows: vec![row("forrest", &figures)] };
            let goals = of_group(&group, 2);
            assert!(goals.len() == 1 && goals[0].holds == holds, "{two} {disturbed}: {goals:?}");
        }
    }

    #[test]
    fn growth_is_judged_between_the_ends_that_were_reached() {
        let figures = [("get_ns@1000", 50.0), ("get_ns@2000", 60.0), ("get_ns@3000", 200.0)];
        let goals = of_sweep(&row("forrest", &figures), &[1000, 2000, 3000, 4000]);
        assert_eq!(goals.len(), 1);
        assert!(!goals[0].holds && goals[0].measured == 4.0 && goals[0].title.contains("3K"), "{goals:?}");
    }
}
