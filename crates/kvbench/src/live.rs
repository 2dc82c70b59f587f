//! The last lines of the terminal during a run: its table so far, and a progress line.
//!
//! Nothing is drawn where standard error is no terminal, or a dumb one. Nothing is left of it when the tables are
//! printed.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};

/// Columns and lines if the terminal does not report them.
const USUAL_SIZE: (usize, usize) = (80, 24);
/// Columns left free at the end of a line, for the terminal's echo (`^C`): a new line would not be cleared.
const FREE_COLUMNS: usize = 4;

/// True if standard error is a terminal that can draw over its last line; a dumb one cannot.
pub(crate) fn is_drawable() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|name| name != "dumb")
}

/// The drawn lines.
pub(crate) struct Live {
    terminal: bool,
    /// The head of the table, and its rows.
    table: Vec<String>,
    /// Lines that were drawn above that in which the cursor is.
    above: Cell<usize>,
}

impl Live {
    /// Nothing yet.
    pub(crate) fn new() -> Live {
        Live { terminal: is_drawable(), table: Vec::new(), above: Cell::new(0) }
    }

    /// Begins a table in place of the last one; without a head, none.
    pub(crate) fn begin(&mut self, head: Option<String>) {
        self.table = head.into_iter().collect();
    }

    /// Adds a row to it.
    pub(crate) fn row(&mut self, row: String) {
        self.table.push(row);
    }

    /// Draws it, and this line below it.
    pub(crate) fn draw(&self, line: &str) {
        if self.terminal {
            let lines = lines(&self.table, line, size());
            self.put(&lines);
        }
    }

    /// Takes what was drawn off the terminal.
    pub(crate) fn clear(&self) {
        if self.terminal {
            self.put(&[]);
        }
    }

    fn put(&self, lines: &[String]) {
        let back = match self.above.get() {
            0 => String::new(),
            above => format!("\x1b[{above}A"),
        };
        self.above.set(lines.len().saturating_sub(1));
        // A closed terminal is no reason to stop the run.
        drop(write!(io::stderr().lock(), "{back}\r\x1b[J{}", lines.join("\n")));
    }
}

/// Columns and lines of the terminal.
fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => USUAL_SIZE,
    }
}

/// What fits: the head, the last rows, the line, each cut where the terminal ends.
fn lines(table: &[String], line: &str, (columns, rows): (usize, usize)) -> Vec<String> {
    let (head, body) = table.split_at(table.len().min(1));
    let room = rows.saturating_sub(head.len() + 1);
    let all = head.iter().chain(&body[body.len().saturating_sub(room)..]).map(String::as_str).chain([line]);
    let cut = |line: &str| line.chars().take(columns.saturating_sub(FREE_COLUMNS).max(1)).collect();
    all.map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_the_last_rows_and_the_line_are_shown_as_far_as_they_fit() {
        let table = ["head", "row 1", "row 2", "row 3"].map(str::to_owned);
        let shown = |table: &[String], size| lines(table, "is done", size).join("|");
        assert_eq!(shown(&table, (80, 24)), "head|row 1|row 2|row 3|is done");
        assert_eq!(shown(&table, (80, 4)), "head|row 2|row 3|is done");
        assert_eq!(shown(&table, (9, 3)), "head|row 3|is do");
        assert_eq!(shown(&table, (9, 1)), "head|is do");
        assert_eq!(shown(&table, (1, 1)), "h|i");
        assert_eq!(shown(&[], (80, 24)), "is done");
    }
}
