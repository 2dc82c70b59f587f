//! `kvbench report`: records as one page of HTML, as rows of CSV, or as tables of Markdown.

use crate::chart::{self, Bar, Line};
use crate::explain::{Explained, explain};
use crate::files::Output;
use crate::highlights;
use crate::html::{Page, Shown};
use crate::options::Report;
use crate::record::Figure;
use crate::recorded::{self, Recorded, Row};
use crate::runner;
use crate::statistics::number;
use crate::subjects::EMPTY;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

/// Writes what was asked for; true always.
pub(crate) fn run(options: &Report) -> io::Result<bool> {
    let mut records: Vec<Recorded> =
        options.records.iter().map(|path| recorded::read(path)).collect::<io::Result<_>>()?;
    choose(&mut records, &options.subjects)?;
    if records.iter().all(|record| record.rows.is_empty()) {
        return Err(io::Error::other("no figures in what was given"));
    }
    if let Some(path) = &options.csv {
        write(path, &csv(&records)?)?;
    }
    if let Some(path) = &options.markdown {
        write(path, markdown(&records, &options.figures)?.as_bytes())?;
    }
    if let Some(path) = &options.highlights {
        write(path, highlighted(&records, &options.figures)?.as_bytes())?;
    }
    let nothing_else = options.csv.is_none() && options.markdown.is_none() && options.highlights.is_none();
    if nothing_else || options.html.is_some() {
        let path = options.html.as_deref().unwrap_or(Path::new("report.html"));
        write(path, page(&records).as_bytes())?;
        println!("written to {}", path.display());
    }
    Ok(true)
}

/// Leaves only the subjects of these names, or of structures with these names; all, if there are no names.
fn choose(records: &mut [Recorded], names: &[String]) -> io::Result<()> {
    let has = |name: &str, subject: &str, label: &str| {
        [subject, label].contains(&name) || subject.split(['+', '@']).next() == Some(name)
    };
    for name in names {
        let all = records.iter().flat_map(|record| &record.rows);
        let subjects: BTreeSet<_> = all.clone().map(|row| row.subject.as_str()).collect();
        if !all.clone().any(|row| has(name, &row.subject, &row.label())) {
            let subjects: Vec<_> = subjects.into_iter().collect();
            let what = format!("no record has a subject {name:?}, but {}", subjects.join(", "));
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
    }
    let is_chosen = |subject: &str, label: &str| names.iter().any(|name| has(name, subject, label));
    for record in records.iter_mut().filter(|_| !names.is_empty()) {
        record.rows.retain(|row| is_chosen(&row.subject, &row.label()));
        record.left_out.retain(|left| is_chosen(&left.subject, &left.subject));
    }
    Ok(())
}

/// Writes a file whole or not at all; `-` is the standard output.
fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    if path == Path::new("-") {
        return io::stdout().write_all(content);
    }
    let mut output = Output::create(path)?;
    output.write_all(content)?;
    output.finish(b"")
}

fn csv(records: &[Recorded]) -> io::Result<Vec<u8>> {
    let mut csv = ::csv::Writer::from_writer(Vec::new());
    csv.write_record(["run", "group", "subject", "figure", "unit", "median", "min", "max", "rounds"])?;
    for row in records.iter().flat_map(|record| &record.rows) {
        for (name, figure) in &row.figures {
            let unit = explain(name).map_or("", |explained| explained.unit);
            let Figure { median, min, max, rounds } = figure;
            let [median, min, max] = [median, min, max].map(f64::to_string);
            let (group, label, rounds) = (row.group(), row.label(), rounds.len().to_string());
            let fields: [&str; 9] = [&row.run, &group, &label, name, unit, &median, &min, &max, &rounds];
            csv.write_record(fields)?;
        }
    }
    csv.into_inner().map_err(|error| io::Error::other(error.to_string()))
}

/// The rows of a run that can be compared with each other, by what they share, in the order of the record.
fn groups<'r>(record: &'r Recorded, run: &str) -> Vec<(String, Vec<&'r Row>)> {
    let mut groups: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in record.rows.iter().filter(|row| row.run == run) {
        let name = row.group();
        match groups.iter_mut().find(|(of, _)| *of == name) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((name, vec![row])),
        }
    }
    groups
}

/// The figures that any of the rows has, of those that are explained, in the order of the steps.
fn known<'r>(rows: &[&'r Row]) -> Vec<(&'r str, Explained<'r>)> {
    let names: BTreeSet<&str> = rows.iter().flat_map(|row| row.figures.keys()).map(String::as_str).collect();
    let mut known: Vec<_> = names.into_iter().filter_map(|name| Some((name, explain(name)?))).collect();
    known.sort_by_key(|(_, of)| of.order);
    known
}

/// A table for each group: of the figures that were chosen, or else of all that are of a whole step. Of subjects and
/// figures, those that are more have the lines.
fn markdown(records: &[Recorded], chosen: &[String]) -> io::Result<String> {
    tables(records, chosen, |name, rows, figures| {
        let cell = |row: &Row, figure: &str| {
            row.figures.get(figure).map_or_else(|| "-".to_owned(), |figure| number(figure.median))
        };
        let titles: Vec<String> = figures.iter().map(|(_, of)| format!("{}, {}", of.step, of.unit)).collect();
        let labels: Vec<String> = rows.iter().map(|row| row.label()).collect();
        let (heads, lines): (&[String], Vec<(&String, Vec<String>)>) = if rows.len() > figures.len() {
            let line = |row: &&Row| figures.iter().map(|(figure, _)| cell(row, figure)).collect();
            (&titles, labels.iter().zip(rows.iter().map(line)).collect())
        } else {
            let line = |(figure, _): &(&str, _)| rows.iter().map(|row| cell(row, figure)).collect();
            (&labels, titles.iter().zip(figures.iter().map(line)).collect())
        };
        let mut text = format!("| {name} | {} |\n|---{}|\n", heads.join(" | "), "|--:".repeat(heads.len()));
        lines.iter().for_each(|(label, cells)| text += &format!("| {label} | {} |\n", cells.join(" | ")));
        Some(text)
    })
}

/// The best subjects, in a table for each group.
fn highlighted(records: &[Recorded], chosen: &[String]) -> io::Result<String> {
    tables(records, chosen, highlights::table)
}

/// A table for each group, made of its name, its rows, and its figures that were chosen, in that order.
fn tables(
    records: &[Recorded],
    chosen: &[String],
    table: impl Fn(&str, &[&Row], &[(&str, Explained<'_>)]) -> Option<String>,
) -> io::Result<String> {
    let mut text = String::new();
    let mut missing: BTreeSet<&str> = chosen.iter().map(String::as_str).collect();
    for (record, run) in records.iter().flat_map(|record| record.runs.iter().map(move |run| (record, run))) {
        for (name, rows) in groups(record, &run.run) {
            let mut figures = known(&rows);
            if chosen.is_empty() {
                figures.retain(|(_, of)| of.is_whole());
            } else {
                let place = |name: &str| chosen.iter().position(|one| one == name);
                figures.retain(|(name, _)| place(name).is_some());
                figures.sort_by_key(|(name, _)| place(name));
            }
            missing.retain(|name| figures.iter().all(|(figure, _)| figure != name));
            if let Some(table) = table(&name, &rows, &figures).filter(|_| !figures.is_empty()) {
                text += &(table + "\n");
            }
        }
    }
    match missing.first() {
        Some(name) => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, format!("no record has a figure {name:?}")))
        }
        None => Ok(text),
    }
}

fn page(records: &[Recorded]) -> String {
    let mut page = Page::new("kvbench");
    page.paragraph(
        "Bars are medians over the rounds; the mark on a bar goes from the least to the most of them, and is missing where there was one round. \
         Bars that differ by more than 20 times are on a scale of powers of ten. Compare within one run; runs of different times differ by some percent for no reason at all.",
    );
    for record in records {
        for run in &record.runs {
            let revision = run.revision.as_deref().unwrap_or("unknown");
            page.heading(2, &format!("{}, {}", run.command.join(" "), run.date));
            page.paragraph(&format!("Revision {revision}. {}", run.machine.lines().replace('\n', ". ")));
            let versions = run.versions.iter().filter_map(|(name, version)| Some((name, version.as_ref()?)));
            let versions: Vec<_> = versions.map(|(name, version)| format!("{name} {version}")).collect();
            page.folded("Versions", |page| page.paragraph(&versions.join(", ")));
            for (name, rows) in groups(record, &run.run) {
                group(&mut page, &name, &rows);
            }
        }
        left_out_and_goals(&mut page, record);
    }
    page.end()
}

/// A sentence that explains the measurement.
fn caption(of: &Explained<'_>) -> String {
    let part = if of.part.is_empty() { String::new() } else { format!("; {}", of.part) };
    let better = if of.less_is_better { "less" } else { "more" };
    format!("{}{part}. {}, {better} is better.", of.what, of.unit_words)
}

/// All rows that can be compared with each other.
fn group(page: &mut Page, name: &str, rows: &[&Row]) {
    page.heading(3, name);
    let labels: Vec<String> = rows.iter().map(|row| row.label()).collect();
    let known = known(rows);
    let mut charts: Vec<Shown> = Vec::new();
    for (name, of) in known.iter().filter(|(_, of)| of.is_whole()) {
        let mut bars: Vec<Bar<'_>> = rows
            .iter()
            .zip(&labels)
            .filter_map(|(row, label)| {
                let figure = row.figures.get(*name)?;
                Some(Bar { name: label, value: figure.median, interval: (figure.min, figure.max) })
            })
            .collect();
        bars.sort_by(|a, b| a.value.total_cmp(&b.value));
        if !of.less_is_better {
            bars.reverse();
        }
        charts.push(Shown {
            title: format!("{}, {}", of.step, of.unit),
            caption: caption(of),
            chart: chart::bars(name, &bars),
        });
    }
    charts.extend(grown(rows, &labels, &known));
    charts.extend(latencies(rows, &labels, &known));
    charts.extend(over_time(rows, &labels));
    charts.extend(against_memory(rows, &labels));
    page.charts(charts);
    let head = std::iter::once((String::new(), "who".to_owned()))
        .chain(known.iter().map(|(name, of)| ((*name).to_owned(), caption(of))))
        .collect::<Vec<_>>();
    let cells: Vec<Vec<String>> = rows
        .iter()
        .zip(&labels)
        .map(|(row, label)| {
            let figures = known.iter().map(|(name, _)| {
                row.figures.get(*name).map_or_else(|| "-".to_owned(), |figure| number(figure.median))
            });
            std::iter::once(label.clone()).chain(figures).collect()
        })
        .collect();
    page.folded("All figures", |page| page.table(&head, &cells));
    let notes = rows
        .iter()
        .zip(&labels)
        .flat_map(|(row, label)| row.notes.iter().map(move |note| format!("{label}: {note}.")));
    let notes = notes.collect::<Vec<_>>().join(" ");
    if !notes.is_empty() {
        page.paragraph(&notes);
    }
}

/// The points of each row, of those that have any.
fn lines<'l>(rows: &[&Row], labels: &'l [String], points: impl Fn(&Row) -> Vec<(f64, f64)>) -> Vec<Line<'l>> {
    let lines = rows.iter().zip(labels).map(|(row, name)| Line { name, points: points(row) });
    lines.filter(|line| !line.points.is_empty()).collect()
}

/// What was measured while something grew: a chart for each step, over the size.
fn grown(rows: &[&Row], labels: &[String], known: &[(&str, Explained<'_>)]) -> Vec<Shown> {
    let mut steps: BTreeMap<(&str, &str), &Explained<'_>> = BTreeMap::new();
    for (_, of) in known.iter().filter(|(_, of)| of.size.is_some()) {
        steps.insert((of.step, of.unit), of);
    }
    let chart = |((step, unit), of): ((&str, &str), &Explained<'_>)| {
        let lines = lines(rows, labels, |row| {
            let point = |(name, figure): (&String, &Figure)| {
                let named = explain(name).filter(|named| named.step == step && named.unit == unit)?;
                Some((named.size? as f64, figure.median))
            };
            let mut points: Vec<_> = row.figures.iter().filter_map(point).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points
        });
        Shown {
            title: format!("{step}, {unit}, over the number of keys"),
            caption: caption(of),
            chart: chart::points(step, ("keys", unit), &lines),
        }
    };
    steps.into_iter().map(chart).collect()
}

/// The distribution of latency, where it was measured: a chart for each step.
fn latencies(rows: &[&Row], labels: &[String], known: &[(&str, Explained<'_>)]) -> Vec<Shown> {
    let steps: BTreeSet<&str> =
        known.iter().filter(|(name, _)| name.ends_with("_p99_ns")).map(|(_, of)| of.step).collect();
    let chart = |step: &str| {
        // One of this many operations took longer.
        let places = [("p50", 2.0), ("p99", 100.0), ("p999", 1000.0)];
        let lines = lines(rows, labels, |row| {
            let point = |(part, place): (&str, f64)| {
                Some((place, row.figures.get(&format!("{step}_{part}_ns"))?.median))
            };
            places.into_iter().filter_map(point).collect()
        });
        Shown {
            title: format!("{step}, ns, the slowest"),
            caption: "of 2, of 100 and of 1,000 operations; less is better.".to_owned(),
            chart: chart::points(step, ("the slowest of N operations", "ns"), &lines),
        }
    };
    steps.into_iter().map(chart).collect()
}

/// Most points of a line over time.
const TIME_POINTS: usize = 200;

/// How many operations were done while time passed, where that was noted: a chart for each step, in which a stall is a
/// gap.
fn over_time(rows: &[&Row], labels: &[String]) -> Vec<Shown> {
    let steps: BTreeSet<&str> =
        rows.iter().flat_map(|row| row.timelines.keys()).map(String::as_str).collect();
    let chart = |step: &str| {
        let lines = lines(rows, labels, |row| {
            let stretches = row.timelines.get(step).map_or(&[][..], Vec::as_slice);
            let together = stretches.len().div_ceil(TIME_POINTS).max(1);
            let seconds = |stretches: usize| stretches as f64 * row.timeline_ms as f64 / 1e3;
            let point = |(at, part): (usize, &[u64])| {
                let rate = part.iter().sum::<u64>() as f64 / seconds(part.len()).max(1e-9);
                (seconds(at * together) + seconds(part.len()) / 2.0, rate)
            };
            stretches.chunks(together).enumerate().map(point).collect()
        });
        Shown {
            title: format!("{step}, op/s, over time"),
            caption: "of the last round; where a line falls, the store makes its user wait.".to_owned(),
            chart: chart::over_time(step, ("seconds", "op/s"), &lines),
        }
    };
    steps.into_iter().map(chart).collect()
}

/// Speed against memory, where both were measured.
fn against_memory(rows: &[&Row], labels: &[String]) -> Option<Shown> {
    let lines = lines(rows, labels, |row| {
        let of = |name: &str| row.figures.get(name).map(|figure| figure.median).filter(|one| *one > 0.0);
        let point = of("resident_bytes_per_key").zip(of("get_ns"));
        point.filter(|_| row.subject != EMPTY).into_iter().collect()
    });
    (lines.len() > 1).then(|| Shown {
        title: "Speed against memory:".to_owned(),
        caption: "the nearer to the lower left corner, the better.".to_owned(),
        chart: chart::points("speed against memory", ("bytes a key", "get, ns"), &lines),
    })
}

fn left_out_and_goals(page: &mut Page, record: &Recorded) {
    if !record.left_out.is_empty() {
        page.heading(3, "Not measured");
        for one in &record.left_out {
            let of = one.kind.as_deref().map_or_else(String::new, |kind| format!(", {kind}"));
            let what = if one.failed { "FAILED" } else { "left out" };
            page.paragraph(&format!("{}{of}: {what}: {}", one.subject, one.why));
        }
    }
    if record.goals.is_empty() {
        return;
    }
    page.heading(3, "Goals");
    page.paragraph("Targets that the project set itself. A missed one is a result, not a failure.");
    let head = ["goal", "of", "measured", "wanted", ""].map(|text| (text.to_owned(), String::new()));
    let rows: Vec<Vec<String>> = record
        .goals
        .iter()
        .map(|goal| {
            let pages = goal.pages.as_ref().map_or_else(String::new, |pages| format!(", {pages}"));
            let of = format!("{}, {}{pages}", runner::keys(goal.keys), goal.kind);
            [goal.title.clone(), of].into_iter().chain(goal.texts()).collect()
        })
        .collect();
    page.table(&head, &rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_of_the_project_makes_a_page_that_is_whole_by_itself() {
        let records = recorded::committed();
        let page = page(&records);
        let document = roxmltree::Document::parse_with_options(
            &page,
            roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() },
        )
        .unwrap();
        let all = |name: &str| document.descendants().filter(|node| node.tag_name().name() == name).count();
        assert!(all("svg") > 100 && all("circle") > 50 && all("table") > 10, "{}", all("svg"));
        for forbidden in ["script", "link", "img", "iframe"] {
            assert_eq!(all(forbidden), 0, "{forbidden}");
        }
        for node in document.descendants() {
            assert!(node.attributes().all(|one| !matches!(one.name(), "href" | "src" | "onload")));
        }
        // Every subject of every record is in some chart.
        for row in records.iter().flat_map(|record| &record.rows) {
            assert!(page.contains(&format!("<title>{}: ", row.label())), "{}", row.label());
        }
        assert!(!page.contains("NaN") && !page.contains("inf "));
    }

    #[test]
    fn subjects_are_chosen_by_name_or_structure() {
        let row = |subject: &str, pages: &str| {
            serde_json::from_value(serde_json::json!({
                "run": "r", "subject": subject, "kind": "u64", "keys": 1000, "pages": pages, "figures": {},
            }))
            .unwrap()
        };
        let chosen = |names: &[&str]| {
            let rows = vec![
                row("forrest", "auto"),
                row("forrest", "plain"),
                row("f14+xxh3", "auto"),
                row("f14+rapidhash@mimalloc", "auto"),
                row("f14-sse2+xxh3", "auto"),
            ];
            let mut records = [Recorded { rows, ..Recorded::default() }];
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            choose(&mut records, &names).map_err(|error| error.to_string())?;
            Ok::<_, String>(records[0].rows.iter().map(Row::label).collect::<Vec<_>>().join(" "))
        };
        let all = "forrest forrest/plain f14+xxh3 f14+rapidhash@mimalloc f14-sse2+xxh3";
        assert_eq!(chosen(&[]).as_deref(), Ok(all));
        assert_eq!(chosen(&["f14"]).as_deref(), Ok("f14+xxh3 f14+rapidhash@mimalloc"));
        assert_eq!(chosen(&["forrest/plain", "f14+xxh3"]).as_deref(), Ok("forrest/plain f14+xxh3"));
        assert!(chosen(&["rbtree"]).unwrap_err().contains("no record has a subject \"rbtree\", but f14+"));
    }

    #[test]
    fn markdown_has_the_more_numerous_in_lines() {
        let row = |subject: &str| {
            serde_json::from_value(serde_json::json!({
                "run": "r", "subject": subject, "kind": "u64", "keys": 1000, "figures": {
                    "get_ns": { "median": 1.5, "min": 1.0, "max": 2.0, "rounds": [1.0, 2.0] },
                    "insert_ns": { "median": 20.0, "min": 20.0, "max": 20.0, "rounds": [20.0] },
                    "get_p99_ns": { "median": 9.0, "min": 9.0, "max": 9.0, "rounds": [9.0] },
                },
            }))
            .unwrap()
        };
        let machine = crate::machine::Machine::describe();
        let run = serde_json::json!({ "run": "r", "date": "r", "command": [], "machine": machine });
        let record = |names: &[&str]| Recorded {
            runs: vec![serde_json::from_value(run.clone()).unwrap()],
            rows: names.iter().map(|name| row(name)).collect(),
            ..Recorded::default()
        };
        let of = |names: &[&str], chosen: &[&str]| {
            let chosen: Vec<_> = chosen.iter().map(|name| (*name).to_owned()).collect();
            markdown(&[record(names)], &chosen).map_err(|error| error.to_string())
        };
        let few = "| u64, 1K pairs | a | b |\n|---|--:|--:|\n| insert, ns | 20.0 | 20.0 |\n| get, ns | 1.50 | 1.50 |\n\n";
        assert_eq!(of(&["a", "b"], &[]).as_deref(), Ok(few));
        let many = "| u64, 1K pairs | get, ns |\n|---|--:|\n| a | 1.50 |\n| b | 1.50 |\n\n";
        assert_eq!(of(&["a", "b"], &["get_ns"]).as_deref(), Ok(many));
        assert_eq!(of(&["a"], &["put_ns"]), Err("no record has a figure \"put_ns\"".to_owned()));
    }

    #[test]
    fn highlights_name_the_best_and_the_best_that_is_ordered() {
        let row = |subject: &str, get: f64, rate: f64| {
            let figure =
                |median: f64| serde_json::json!({ "median": median, "min": 1, "max": 1, "rounds": [median] });
            let figures = serde_json::json!({ "get_ns": figure(get), "iterate_gb_per_s": figure(rate) });
            serde_json::from_value(serde_json::json!({
                "run": "r", "subject": subject, "kind": "u64", "keys": 1000, "figures": figures,
            }))
            .unwrap()
        };
        let machine = crate::machine::Machine::describe();
        let run = serde_json::json!({ "run": "r", "date": "r", "command": [], "machine": machine });
        let rows = vec![
            row("empty", 1.0, 100.0),
            row("btreemap", 90.0, 3.0),
            row("hashbrown+xxh3@mimalloc", 20.0, 2.0),
            row("forrest", 30.0, 4.0),
            row("hashbrown+foldhash", 25.0, 1.0),
        ];
        let record =
            Recorded { runs: vec![serde_json::from_value(run).unwrap()], rows, ..Recorded::default() };
        let wanted = "| u64, 1K pairs | best | second | third | best ordered |\n|---|---|---|---|---|\n\
            | get, ns | hashbrown+xxh3@mimalloc 20.0 | hashbrown+foldhash 25.0 | forrest 30.0 | forrest 30.0 |\n\
            | iterate, GB/s | forrest 4.00 | btreemap 3.00 | hashbrown+xxh3@mimalloc 2.00 | the best |\n\n";
        assert_eq!(highlighted(&[record], &[]).unwrap(), wanted);
        // Every record of the project has some.
        assert!(highlighted(&recorded::committed(), &[]).unwrap().lines().count() > 100);
    }

    #[test]
    fn runs_of_the_same_second_are_apart_and_older_records_are_read() {
        let machine = serde_json::json!(crate::machine::Machine::describe());
        let run = |run: &str, subject: &str| {
            let figure = serde_json::json!({ "median": 1.5, "min": 1.5, "max": 1.5, "rounds": [1.5] });
            let of = |line: serde_json::Value| format!("{line}\n");
            of(serde_json::json!({
                "kvbench": 1, "record": "run", "run": run, "date": "2026-11-25T18:20:01Z", "command": [],
                "machine": machine, "revision": null,
            })) + &of(serde_json::json!({
                "kvbench": 1, "record": "figures", "run": run, "subject": subject, "kind": "u64", "keys": 1000,
                "figures": { "get_ns": figure },
            }))
        };
        let file = tempfile::NamedTempFile::new().unwrap();
        // The last one is as records were before runs had ids.
        let runs = [
            run("2026-11-25T18:20:01Z-1", "a"),
            run("2026-11-25T18:20:01Z-2", "b"),
            run("2026-11-25T18:20:01Z", "c"),
        ];
        std::fs::write(&file, runs.concat()).unwrap();
        let text = markdown(&[recorded::read(file.path()).unwrap()], &[]).unwrap();
        let heads: Vec<_> = text.lines().filter(|line| line.starts_with("| u64")).collect();
        assert_eq!(heads, ["a", "b", "c"].map(|subject| format!("| u64, 1K pairs | {subject} |")), "{text}");
    }

    #[test]
    fn csv_has_a_row_for_every_figure() {
        let records = recorded::committed();
        let text = String::from_utf8(csv(&records).unwrap()).unwrap();
        let figures: usize =
            records.iter().flat_map(|record| &record.rows).map(|row| row.figures.len()).sum();
        assert_eq!(text.lines().count(), figures + 1);
        let columns = text.lines().next().unwrap().split(',').count();
        assert!(
            text.lines().filter(|line| !line.contains('"')).all(|line| line.split(',').count() == columns)
        );
        let row = serde_json::json!({
            "run": "r", "subject": "a,\"b\"", "kind": "u64", "keys": 1000,
            "figures": { "get_ns": { "median": 1.5, "min": 1.0, "max": 2.0, "rounds": [1.0, 2.0] } },
        });
        let one = Recorded { rows: vec![serde_json::from_value(row).unwrap()], ..Recorded::default() };
        let text = String::from_utf8(csv(&[one]).unwrap()).unwrap();
        assert_eq!(text.lines().nth(1), Some("r,\"u64, 1K pairs\",\"a,\"\"b\"\"\",get_ns,ns,1.5,1,2,2"));
    }
}
