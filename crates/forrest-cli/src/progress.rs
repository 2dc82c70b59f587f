//! Progress bars on standard error: drawn only where that is a terminal, and gone without a trace when they
//! are dropped, whatever the way out.

use crate::term::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Times a second that a bar is drawn at most.
const DRAWS_PER_SECOND: u8 = 12;

/// A bar that clears itself when dropped.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// A bar over `whole` units, hidden if `quiet` or where standard error is no terminal.
    pub(crate) fn new(term: &Term, quiet: bool, whole: u64) -> Self {
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND),
        };
        let template = if term.colour() {
            "   {bar:24.blue} {percent:>3}%  {msg}"
        } else {
            "   {bar:24} {percent:>3}%  {msg}"
        };
        let style = ProgressStyle::with_template(template)
            .expect("the template is well formed")
            .progress_chars(term.glyph("█▉▊▋▌▍▎▏ ", "##-"));
        let bar = ProgressBar::with_draw_target(Some(whole), target).with_style(style);
        // Shows at once that something goes on.
        bar.tick();
        Bar(bar)
    }

    /// Columns that a message beside the bar may take.
    pub(crate) fn message_columns(term: &Term) -> usize {
        term.columns.saturating_sub(36)
    }

    /// True if nobody sees it, so that making messages for it is a waste.
    pub(crate) fn is_hidden(&self) -> bool {
        self.0.is_hidden()
    }

    /// Moves to `done` units.
    pub(crate) fn set(&self, done: u64) {
        self.0.set_position(done);
    }

    /// Shows `message` beside the bar.
    pub(crate) fn message(&self, message: String) {
        self.0.set_message(message);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
