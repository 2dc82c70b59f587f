//! Progress bars on standard error: drawn only if that is a terminal, and cleared when they are dropped, also after
//! an error.
//!
//! A bar leaves the last columns of its line free, because a terminal echoes Ctrl-C as `^C` where the cursor
//! is: were the line full, that would go to the next line, and clearing one line would leave the other.

use crate::interrupt;
use crate::term::{self, Style, Term};
use forrest_base::lock;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Shortest time between two drawings.
const DRAW_PAUSE: Duration = Duration::from_millis(80);
/// Columns of the bar itself.
const BAR_COLUMNS: usize = 24;
/// Columns in front of the message: indent, bar, and `100%` with its spaces.
const MESSAGE_COLUMN: usize = 3 + BAR_COLUMNS + 8;
/// Columns left free at the end of the line.
const FREE_COLUMNS: usize = 4;

/// A bar that clears itself when dropped.
pub(crate) struct Bar {
    term: Term,
    whole: u64,
    /// When it may be drawn again; `None` if it is hidden.
    next: Option<Mutex<Instant>>,
}

impl Bar {
    /// A bar over `whole` units, hidden if `quiet` or if standard error is not a terminal. It is drawn at once, to show
    /// that work has begun.
    pub(crate) fn new(term: &Term, quiet: bool, whole: u64) -> Self {
        // A dumb terminal cannot overwrite a line.
        let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
        let is_seen = !quiet && !is_dumb && io::stderr().is_terminal();
        let bar = Bar { term: *term, whole, next: is_seen.then(|| Mutex::new(Instant::now())) };
        bar.show(0, String::new);
        bar
    }

    /// True if it is not drawn.
    pub(crate) fn is_hidden(&self) -> bool {
        self.next.is_none()
    }

    /// Columns that a message beside the bar may take.
    pub(crate) fn message_columns(&self) -> usize {
        self.term.columns.saturating_sub(MESSAGE_COLUMN + FREE_COLUMNS)
    }

    /// Shows that `done` units are done, and a message, unless it was drawn a moment ago.
    pub(crate) fn show(&self, done: u64, message: impl FnOnce() -> String) {
        let Some(next) = &self.next else { return };
        let mut next = lock(next);
        let now = Instant::now();
        if now < *next {
            return;
        }
        *next = now + DRAW_PAUSE;
        let part = if self.whole == 0 { 0.0 } else { (done as f64 / self.whole as f64).min(1.0) };
        let bar = self.term.bar(part, 1.0, BAR_COLUMNS);
        let bar = self.term.paint(Style::Blue, term::pad(&bar, BAR_COLUMNS));
        let message = message();
        let message = term::shorten(&message, self.message_columns(), self.term.glyph("…", "..."));
        draw(&format!("\r   {bar} {:>3}%  {message}\x1b[K", (part * 100.0) as u32));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.next.is_some() {
            draw("\r\x1b[2K");
        }
    }
}

/// For a long call that gives the bytes that are done and those of the whole: shows them in a bar, which is cleared
/// when this is dropped, and ends the call at Ctrl-C.
pub(crate) fn watching(term: &Term, quiet: bool) -> impl FnMut(u64, u64) -> ControlFlow<()> {
    let mut bar = None;
    move |done, whole| {
        let bar = bar.get_or_insert_with(|| Bar::new(term, quiet, whole));
        bar.show(done, || format!("{} of {}", term::size(done), term::size(whole)));
        match interrupt::check() {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// Draws with one write, so that no other output comes between. Errors are dropped: there is no place to report them.
fn draw(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
