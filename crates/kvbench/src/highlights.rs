//! The best of a record: for each measurement the fastest or smallest subjects, of all and of the ordered ones. A
//! subject is a structure with its hash and allocator, so the best is one of all three.

use crate::explain::Explained;
use crate::names::Name;
use crate::recorded::Row;
use crate::statistics::number;
use crate::subjects::EMPTY;

/// Subjects that are named, from the best on.
const PLACES: usize = 3;

/// The table of a group, as Markdown: a line for each of its figures. `None` if nothing can be compared.
pub(crate) fn table(group: &str, rows: &[&Row], figures: &[(&str, Explained<'_>)]) -> Option<String> {
    let compared: Vec<&Row> = rows.iter().copied().filter(|row| row.subject != EMPTY).collect();
    let lines: Vec<String> = figures.iter().filter_map(|(name, of)| line(name, of, &compared)).collect();
    if lines.is_empty() {
        return None;
    }
    let places = ["best", "second", "third"];
    let head =
        format!("| {group} | {} | best ordered |\n|---|---|---|---|---|\n", places[..PLACES].join(" | "));
    Some(head + &lines.concat())
}

/// The line of a figure, if at least two subjects have it.
fn line(name: &str, of: &Explained<'_>, rows: &[&Row]) -> Option<String> {
    let measured = rows.iter().filter_map(|row| Some((row, row.figures.get(name)?.median)));
    let mut measured: Vec<(&Row, f64)> = measured.map(|(row, figure)| (*row, figure)).collect();
    measured.sort_by(|a, b| if of.less_is_better { a.1.total_cmp(&b.1) } else { b.1.total_cmp(&a.1) });
    let (best, rest) = measured.split_first()?;
    if rest.is_empty() {
        return None;
    }
    let cell = |(row, figure): &(&Row, f64)| format!("{} {}", row.label(), number(*figure));
    let mut cells: Vec<String> = measured.iter().take(PLACES).map(cell).collect();
    cells.resize(PLACES, "-".to_owned());
    let ordered = measured.iter().find(|(row, _)| is_ordered(row));
    cells.push(match ordered {
        Some(found) if std::ptr::eq(found.0, best.0) => "the best".to_owned(),
        Some(found) => cell(found),
        None => "-".to_owned(),
    });
    Some(format!("| {}, {} | {} |\n", of.step, of.unit, cells.join(" | ")))
}

/// Whether the structure keeps its keys in order. A subject that this build lacks is taken for unordered.
fn is_ordered(row: &Row) -> bool {
    Name::parse(&row.subject).is_ok_and(|name| name.entry.ordered)
}
