//! `kvbench report`: records as one page of HTML, or as rows of CSV.

use crate::chart::{self, Bar, Line};
use crate::explain::{Explained, explain};
use crate::html::{Page, Shown};
use crate::options::Report;
use crate::recorded::{self, Recorded, Row};
use crate::runner;
use crate::subjects::EMPTY;
use crate::tables::number;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes what was asked for; true always.
pub(crate) fn run(options: &Report) -> io::Result<bool> {
    let records: Vec<Recorded> =
        options.records.iter().map(|path| recorded::read(path)).collect::<io::Result<_>>()?;
    if records.iter().all(|record| record.rows.is_empty()) {
        return Err(io::Error::other("no figures in what was given"));
    }
    if let Some(path) = &options.csv {
        write(path, &csv(&records))?;
    }
    if options.csv.is_none() || options.html.is_some() {
        let path = options.html.as_deref().unwrap_or(Path::new("report.html"));
        write(path, &page(&records))?;
        println!("written to {}", path.display());
    }
    Ok(true)
}

/// Writes a file whole or not at all; `-` is the standard output.
fn write(path: &Path, content: &str) -> io::Result<()> {
    if path == Path::new("-") {
        return io::stdout().write_all(content.as_bytes());
    }
    let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let within = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // As far as the user's mask allows: a report is to be shown.
    let readable = std::fs::Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new()
        .prefix(".kvbench-")
        .permissions(readable)
        .tempfile_in(within)
        .map_err(told)?;
    file.write_all(content.as_bytes()).map_err(told)?;
    file.persist(path).map_err(|error| told(error.error))?;
    Ok(())
}

/// A field as CSV has it (RFC 4180).
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn csv(records: &[Recorded]) -> String {
    let mut csv = "run,group,subject,figure,unit,median,min,max,rounds\n".to_owned();
    for row in records.iter().flat_map(|record| &record.rows) {
        for (name, figure) in &row.figures {
            let unit = explain(name).map_or("", |explained| explained.unit);
            let (median, min, max) = (figure.median, figure.min, figure.max);
            let [run, group, label] = [&row.run, &row.group(), &row.label()].map(|text| field(text));
            let rounds = figure.rounds.len();
            csv += &format!("{run},{group},{label},{name},{unit},{median},{min},{max},{rounds}\n");
        }
    }
    csv
}

fn page(records: &[Recorded]) -> String {
    let mut page = Page::new("kvbench");
    page.paragraph(
        "Bars are medians over the rounds; the mark on a bar goes from the least to the most of them, and is missing where there was one round. \
         Compare within one run; runs of different times differ by some percent for no reason at all.",
    );
    for record in records {
        for run in &record.runs {
            let revision = run.revision.as_deref().unwrap_or("unknown");
            page.heading(2, &format!("{}, {}", run.command.join(" "), run.date));
            page.paragraph(&format!("Revision {revision}. {}", run.machine.lines().replace('\n', ". ")));
            let versions = run.versions.iter().filter_map(|(name, version)| Some((name, version.as_ref()?)));
            let versions: Vec<_> = versions.map(|(name, version)| format!("{name} {version}")).collect();
            page.folded("Versions", |page| page.paragraph(&versions.join(", ")));
            let rows: Vec<_> = record.rows.iter().filter(|row| row.run == run.date).collect();
            let mut groups: Vec<String> = Vec::new();
            for row in &rows {
                if !groups.contains(&row.group()) {
                    groups.push(row.group());
                }
            }
            for name in groups {
                let rows: Vec<_> = rows.iter().copied().filter(|row| row.group() == name).collect();
                group(&mut page, &name, &rows);
            }
        }
        left_out_and_goals(&mut page, record);
    }
    page.end()
}

/// What is measured, in a sentence.
fn caption(of: &Explained<'_>) -> String {
    let part = if of.part.is_empty() { String::new() } else { format!("; {}", of.part) };
    let better = if of.less_is_better { "less" } else { "more" };
    format!("{}{part}. {}, {better} is better.", of.what, of.unit_words)
}

/// All rows that can be compared with each other.
fn group(page: &mut Page, name: &str, rows: &[&Row]) {
    page.heading(3, name);
    let names: BTreeSet<&str> = rows.iter().flat_map(|row| row.figures.keys()).map(String::as_str).collect();
    let labels: Vec<String> = rows.iter().map(|row| row.label()).collect();
    let mut known: Vec<(&str, Explained<'_>)> =
        names.iter().filter_map(|name| Some((*name, explain(name)?))).collect();
    known.sort_by_key(|(_, of)| of.order);
    let mut charts: Vec<Shown> = Vec::new();
    for (name, of) in known.iter().filter(|(_, of)| of.size.is_none() && of.part.is_empty()) {
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

/// What was measured while something grew: a chart for each step, over the size.
fn grown(rows: &[&Row], labels: &[String], known: &[(&str, Explained<'_>)]) -> Vec<Shown> {
    let mut steps: BTreeMap<(&str, &str), &Explained<'_>> = BTreeMap::new();
    for (_, of) in known.iter().filter(|(_, of)| of.size.is_some()) {
        steps.insert((of.step, of.unit), of);
    }
    let chart = |((step, unit), of): ((&str, &str), &Explained<'_>)| {
        let lines: Vec<Line<'_>> = rows
            .iter()
            .zip(labels)
            .map(|(row, label)| {
                let mut points: Vec<(f64, f64)> = row
                    .figures
                    .iter()
                    .filter_map(|(name, figure)| {
                        let named = explain(name).filter(|named| named.step == step && named.unit == unit)?;
                        Some((named.size? as f64, figure.median))
                    })
                    .collect();
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                Line { name: label, points }
            })
            .filter(|line| !line.points.is_empty())
            .collect();
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
        // One of so many took longer.
        let places = [("p50", 2.0), ("p99", 100.0), ("p999", 1000.0)];
        let lines: Vec<Line<'_>> = rows
            .iter()
            .zip(labels)
            .map(|(row, label)| {
                let point = |(part, place): (&str, f64)| {
                    Some((place, row.figures.get(&format!("{step}_{part}_ns"))?.median))
                };
                Line { name: label, points: places.into_iter().filter_map(point).collect() }
            })
            .filter(|line: &Line<'_>| !line.points.is_empty())
            .collect();
        Shown {
            title: format!("{step}, ns, the slowest"),
            caption: "of 2, of 100 and of 1,000 operations; less is better.".to_owned(),
            chart: chart::points(step, ("the slowest of so many", "ns"), &lines),
        }
    };
    steps.into_iter().map(chart).collect()
}

/// Most points of a line over time.
const TIME_POINTS: usize = 200;

/// How many operations were done while time passed, where that was noted: a chart for each step, in which a stall is a gap.
fn over_time(rows: &[&Row], labels: &[String]) -> Vec<Shown> {
    let steps: BTreeSet<&str> =
        rows.iter().flat_map(|row| row.timelines.keys()).map(String::as_str).collect();
    let chart = |step: &str| {
        let points = |row: &Row| -> Option<Vec<(f64, f64)>> {
            let stretches = row.timelines.get(step).filter(|all| !all.is_empty())?;
            let together = stretches.len().div_ceil(TIME_POINTS);
            let seconds = |stretches: usize| stretches as f64 * row.timeline_ms as f64 / 1e3;
            let point = |(at, part): (usize, &[u64])| {
                let rate = part.iter().sum::<u64>() as f64 / seconds(part.len()).max(1e-9);
                (seconds(at * together) + seconds(part.len()) / 2.0, rate)
            };
            Some(stretches.chunks(together).enumerate().map(point).collect())
        };
        let lines: Vec<_> = rows
            .iter()
            .zip(labels)
            .filter_map(|(row, label)| Some(Line { name: label, points: points(row)? }))
            .collect();
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
    let lines: Vec<Line<'_>> = rows
        .iter()
        .zip(labels)
        .filter(|(row, _)| row.subject != EMPTY)
        .filter_map(|(row, label)| {
            let of = |name: &str| row.figures.get(name).map(|figure| figure.median).filter(|one| *one > 0.0);
            Some(Line { name: label, points: vec![(of("resident_bytes_per_key")?, of("get_ns")?)] })
        })
        .collect();
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
            let relation = goal.relation.replace('_', " ");
            vec![
                goal.title.clone(),
                format!("{}, {}", runner::keys(goal.keys), goal.kind),
                format!("{}{}", number(goal.measured), goal.unit),
                format!("{relation} {}{}", number(goal.goal), goal.unit),
                if goal.holds { "holds" } else { "missed" }.to_owned(),
            ]
        })
        .collect();
    page.table(&head, &rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed() -> Vec<Recorded> {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/record");
        let paths = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let mut paths: Vec<_> =
            paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
        paths.sort();
        paths.iter().map(|path| recorded::read(path).unwrap()).collect()
    }

    #[test]
    fn every_record_of_the_project_makes_a_page_that_is_whole_by_itself() {
        let records = committed();
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
    fn csv_has_a_row_for_every_figure() {
        let records = committed();
        let text = csv(&records);
        let figures: usize =
            records.iter().flat_map(|record| &record.rows).map(|row| row.figures.len()).sum();
        assert_eq!(text.lines().count(), figures + 1);
        let columns = text.lines().next().unwrap().split(',').count();
        assert!(
            text.lines().filter(|line| !line.contains('"')).all(|line| line.split(',').count() == columns)
        );
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
