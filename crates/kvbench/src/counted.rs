//! Tables of what was counted, of at most 80 columns: the memory of each structure, and the events of each step.

use crate::counters::{Event, IPC};
use crate::runner;
use crate::tables::{COLUMNS, Column, Group, head, print_row};
use std::io::{self, Write};

const MEMORY: [Column<'_>; 6] = [
    ("live", 7, "live_bytes_per_key"),
    ("peak live", 11, "peak_live_bytes_per_key"),
    ("heap", 8, "heap_bytes_per_key"),
    ("resident", 10, "resident_bytes_per_key"),
    ("peak res.", 11, "peak_resident_bytes_per_key"),
    ("% huge", 8, "resident_huge_percent"),
];

/// Prints what each structure took, and the most that it took while it was built.
pub(crate) fn print_memory(out: &mut impl Write, group: &Group) -> io::Result<()> {
    let (keys, kind) = (runner::keys(group.keys), group.kind.name());
    writeln!(out, "\nmemory, {keys} pairs of kind {kind}: bytes per key; % of resident on huge pages")?;
    print_table(out, group, &MEMORY, str::to_owned)
}

/// Prints a table for each counted event, and one of instructions per cycle if both are known.
pub(crate) fn print_events(out: &mut impl Write, group: &Group, events: &[Event]) -> io::Result<()> {
    let columns: Vec<Column<'_>> =
        COLUMNS.into_iter().filter(|(_, _, figure)| figure.ends_with("_ns")).collect();
    for what in events.iter().map(|event| event.name()).chain([IPC]) {
        let named = |figure: &str| format!("{}{what}", figure.strip_suffix("ns").unwrap_or(figure));
        let has = |(_, _, figure): &Column| group.rows.iter().any(|row| row.median(&named(figure)).is_some());
        if columns.iter().any(has) {
            let said = if what == IPC { "instructions for a cycle of the core" } else { what };
            let (keys, kind) = (runner::keys(group.keys), group.kind.name());
            let each = if what == IPC { "" } else { " for an operation" };
            writeln!(out, "\n{said}{each}, {keys} pairs of kind {kind}")?;
            print_table(out, group, &columns, named)?;
        }
    }
    Ok(())
}

/// The medians of all rows; the figure of a column has the name that is made of the column's.
fn print_table(
    out: &mut impl Write,
    group: &Group,
    columns: &[Column<'_>],
    named: impl Fn(&str) -> String,
) -> io::Result<()> {
    writeln!(out, "{}", head("", columns))?;
    let mut rows = group.rows.iter();
    rows.try_for_each(|row| print_row(out, &row.marked(), columns, |name| row.median(&named(name))))
}
