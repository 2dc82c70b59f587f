//! Properties of the output (a terminal or not, its width, colours or not), and functions that fit text to it.
//!
//! Widths are terminal columns: a letter takes one, an ideograph two, a combining mark none.

use std::borrow::Cow;
use std::fmt::{Arguments, Display};
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Widest layout, in columns: longer lines are hard to read even where there is room.
const COLUMNS_MAX: usize = 100;
/// Layout width, in columns, where the terminal does not tell.
const COLUMNS_DEFAULT: usize = 80;

/// How standard output may be written to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Term {
    /// Standard output is a terminal.
    pub(crate) is_terminal: bool,
    /// Columns to lay out for.
    pub(crate) columns: usize,
    /// Escape sequences for colour are welcome.
    colour: bool,
    /// The locale shows more than ASCII.
    unicode: bool,
}

/// A colour or weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Headings.
    Bold,
    /// What matters less.
    Dim,
    /// Good, added.
    Green,
    /// To be looked at, changed.
    Yellow,
    /// Bad, removed.
    Red,
    /// Numbers drawn as bars.
    Blue,
}

impl Term {
    /// Asks the environment: `NO_COLOR` (any value) and `TERM=dumb` turn colours off, and the locale says
    /// whether more than ASCII can be shown (no locale at all counts as yes).
    pub(crate) fn detect() -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        let env = |name| std::env::var(name).ok().filter(|v: &String| !v.is_empty());
        let columns = columns(&std::io::stdout()).unwrap_or(COLUMNS_DEFAULT).min(COLUMNS_MAX);
        let colour = is_terminal && env("NO_COLOR").is_none() && env("TERM").is_some_and(|t| t != "dumb");
        let locale = env("LC_ALL").or_else(|| env("LC_CTYPE")).or_else(|| env("LANG"));
        let unicode = locale.is_none_or(|l| l.to_ascii_lowercase().contains("utf"));
        Term { is_terminal, columns, colour, unicode }
    }

    /// True if colours are welcome.
    pub(crate) fn colour(&self) -> bool {
        self.colour
    }

    /// `text` in a style, where styles are welcome.
    pub(crate) fn paint(&self, style: Style, text: impl Display) -> String {
        if !self.colour {
            return text.to_string();
        }
        let code = match style {
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Green => "32",
            Style::Yellow => "33",
            Style::Red => "31",
            Style::Blue => "34",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// `fancy` where the locale can show it, else `plain`.
    pub(crate) fn glyph(&self, fancy: &'static str, plain: &'static str) -> &'static str {
        if self.unicode { fancy } else { plain }
    }

    /// Text for people, in ASCII where the locale shows nothing else.
    pub(crate) fn plain<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.unicode {
            true => Cow::Borrowed(text),
            false => Cow::Owned(text.replace(" µs", " us").replace(" → ", " -> ")),
        }
    }

    /// A path, or other text with its ends more telling than its middle, made to fit `columns` on a terminal;
    /// whole where output is not a terminal, because there it is for programs.
    pub(crate) fn fit<'t>(&self, text: &'t str, columns: usize) -> Cow<'t, str> {
        if self.is_terminal { shorten(text, columns, self.glyph("…", "...")) } else { Cow::Borrowed(text) }
    }

    /// A bar for `part` of `whole`, at most `columns` long, in eighths of a column where the locale allows.
    pub(crate) fn bar(&self, part: f64, whole: f64, columns: usize) -> String {
        let eighths = if whole > 0.0 { (part / whole * (columns * 8) as f64).round() as usize } else { 0 };
        let eighths = eighths.clamp(usize::from(part > 0.0), columns * 8);
        if !self.unicode {
            return "#".repeat(eighths.div_ceil(8));
        }
        let mut bar = "█".repeat(eighths / 8);
        bar.extend("▏▎▍▌▋▊▉".chars().nth((eighths % 8).wrapping_sub(1)));
        bar
    }
}

/// Cuts the middle out of `text` so that it takes at most `columns`, with `gap` in its place.
pub(crate) fn shorten<'t>(text: &'t str, columns: usize, gap: &str) -> Cow<'t, str> {
    if text.width() <= columns {
        return Cow::Borrowed(text);
    }
    let Some(room) = columns.checked_sub(gap.width()).filter(|&room| room > 0) else {
        return Cow::Owned(gap.chars().take(columns).collect());
    };
    // The end tells more about a path than its start, so it gets the larger part.
    let head_end = prefix_that_fits(text.char_indices().map(|(i, c)| (i + c.len_utf8(), c)), room * 2 / 5);
    let head = &text[..head_end.unwrap_or(0)];
    let tail_room = room - head.width();
    let tail_start = prefix_that_fits(text.char_indices().rev(), tail_room);
    let tail = &text[tail_start.unwrap_or(text.len())..];
    // A combining mark without its letter would sit on the gap.
    let tail = tail.trim_start_matches(|c: char| c.width() == Some(0));
    Cow::Owned(format!("{head}{gap}{tail}"))
}

/// Walks characters, given with the offset that including them reaches, and returns the last offset whose
/// characters together still fit.
fn prefix_that_fits(chars: impl Iterator<Item = (usize, char)>, columns: usize) -> Option<usize> {
    chars
        .scan(0, |used, (offset, c)| {
            *used += c.width().unwrap_or(1);
            (*used <= columns).then_some(offset)
        })
        .last()
}

/// Columns of the terminal that a stream is, if it is one and tells.
pub(crate) fn columns(stream: &impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Columns that `text` takes; the sequences of [`Term::paint`] take none.
pub(crate) fn width(text: &str) -> usize {
    let mut parts = text.split("\x1b[");
    let first = parts.next().map_or(0, UnicodeWidthStr::width);
    // A sequence ends with its letter, and what comes after that is seen.
    first + parts.map(|part| part.split_once('m').map_or(0, |(_, seen)| seen.width())).sum::<usize>()
}

/// `text` filled up with spaces on the right to `columns`.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

/// `text` broken at spaces into lines of at most `columns`; a word longer than that stays whole.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A whole number with a comma between groups of three digits.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `n` things, in the singular or the plural.
pub(crate) fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { many })
}

/// A size in bytes, with the binary unit that leaves one to four digits before the point.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut scaled = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would be printed as 1024.0.
    while scaled >= 1023.95 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let digits = if scaled < 9.995 { 2 } else { usize::from(scaled < 99.95) };
    format!("{scaled:.digits$} {}", UNITS[unit])
}

/// A time span with the unit that leaves one to three digits before the point.
pub(crate) fn span(ns: u64) -> String {
    let (scale, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..999_500 => (1e3, "µs"),
        999_500..999_500_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let scaled = ns as f64 / scale;
    let digits = if scaled < 9.995 { 2 } else { usize::from(scaled < 99.95) };
    format!("{scaled:.digits$} {unit}")
}

/// A rate per second, in three significant digits with thousands grouped.
pub(crate) fn rate(per_second: f64) -> String {
    if !per_second.is_finite() || per_second < 0.0 {
        return String::from("-");
    }
    if per_second < 100.0 {
        return format!("{per_second:.1}");
    }
    let step = 10f64.powi((per_second.log10().floor() as i32 - 2).max(0));
    grouped(((per_second / step).round() * step) as u64)
}

/// A rate per second in three significant digits, with a letter for thousands and more.
pub(crate) fn short_rate(per_second: f64) -> String {
    const STEPS: [(f64, &str); 4] = [(1e9, " G"), (1e6, " M"), (1e3, " k"), (1.0, "")];
    if !per_second.is_finite() {
        return String::from("-");
    }
    // 999.5 would be printed as 1000.
    let step = STEPS.into_iter().find(|(step, _)| per_second >= step * 0.9995);
    let (scale, letter) = step.unwrap_or((1.0, ""));
    let scaled = per_second / scale;
    let digits = if scaled < 9.995 { 2 } else { usize::from(scaled < 99.95) };
    format!("{scaled:.digits$}{letter}")
}

/// Prints a message to standard error, in lines that fit if that is a terminal. Errors are dropped: there is no place
/// to report them.
pub(crate) fn say(text: Arguments<'_>) {
    let mut err = std::io::stderr().lock();
    let text = format!("forrest: {text}");
    let _ = match columns(&err) {
        Some(columns) if width(&text) > columns && !text.contains('\n') => {
            writeln!(err, "{}", wrap(&text, columns.saturating_sub(2)).join("\n  "))
        }
        _ => writeln!(err, "{text}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_middle_is_cut_and_both_ends_stay() {
        assert_eq!(shorten("/usr/share/doc/x", 16, "…"), "/usr/share/doc/x");
        assert_eq!(shorten("/usr/share/doc/x", 11, "…"), "/usr…/doc/x");
        assert_eq!(shorten("/usr/share/doc/x", 11, "..."), "/us...doc/x");
        assert_eq!([shorten("林林林林", 5, "…"), shorten("林林林林", 7, "…")], ["…林林", "林…林林"]);
        assert_eq!(shorten("abcdef", 1, "…"), "…");
        assert_eq!(shorten("abcdef", 0, "…"), "");
    }

    proptest! {
        #[test]
        fn what_is_shortened_fits(text: String, columns in 0usize..40) {
            prop_assert!(shorten(&text, columns, "…").width() <= columns);
        }

        #[test]
        fn wrapped_words_are_all_there(text in "[a-z ]{0,60}", columns in 1usize..30) {
            let lines = wrap(&text, columns);
            prop_assert_eq!(lines.join(" "), text.split_whitespace().collect::<Vec<_>>().join(" "));
            prop_assert!(lines.iter().all(|l| l.width() <= columns || !l.contains(' ')));
        }
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(
            [size(0), size(1023), size(1024), size(1_500_000)],
            ["0 B", "1023 B", "1.00 KiB", "1.43 MiB"]
        );
        assert_eq!([size(1024 * 1024 - 1), size(u64::MAX)], ["1.00 MiB", "16.0 EiB"]);
        assert_eq!([span(999), span(1_000), span(999_499)], ["999 ns", "1.00 µs", "999 µs"]);
        assert_eq!([span(999_500), span(2_500_000_000)], ["1.00 ms", "2.50 s"]);
        assert_eq!([rate(0.0), rate(99.94), rate(1234.0)], ["0.0", "99.9", "1,230"]);
        assert_eq!(rate(12_345_678.0), "12,300,000");
        assert_eq!(
            [short_rate(12.34), short_rate(999.6), short_rate(21_540.0)],
            ["12.3", "1.00 k", "21.5 k"]
        );
        assert_eq!([short_rate(1_904_000.0), short_rate(2.5e9)], ["1.90 M", "2.50 G"]);
    }

    #[test]
    fn bars_have_eighths() {
        let term = Term { is_terminal: true, columns: 80, colour: false, unicode: true };
        assert_eq!(term.bar(1.0, 1.0, 3), "███");
        assert_eq!(term.bar(0.5, 1.0, 3), "█▌");
        assert_eq!(term.bar(1e-9, 1.0, 3), "▏");
        assert_eq!(term.bar(0.0, 1.0, 3), "");
        assert_eq!(term.bar(0.0, 0.0, 3), "");
        assert_eq!(Term { unicode: false, ..term }.bar(0.5, 1.0, 4), "##");
    }
}
