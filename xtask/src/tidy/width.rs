//! Lines are short: comments of Rust and Markdown.
//!
//! Code is rustfmt's business. Left out are blocks of code, targets of links, and what has no space to break it at.

use super::sources::Source;

/// This file.
const FILE: &str = "xtask/src/tidy/width.rs";
/// Most columns of a line.
const COLUMNS_MAX: usize = 120;
/// Most columns of a table's row, which cannot be broken.
const ROW_COLUMNS_MAX: usize = 300;

/// How many lines are longer; may only fall.
const LONG_MAX: usize = 17;

/// The lines that are too long, if there are more than once.
pub(crate) fn breaches(sources: &[Source]) -> Vec<String> {
    let mut breaches = long_lines(sources);
    let long = breaches.len();
    if long <= LONG_MAX {
        if long < LONG_MAX {
            println!("{FILE}: LONG_MAX is {LONG_MAX}, and can be {long}");
        }
        return Vec::new();
    }
    breaches.push(format!("{long} lines are too long, and {LONG_MAX} are known; break the new ones"));
    breaches
}

fn long_lines(sources: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for source in sources {
        let long = match () {
            () if source.is_rust() => long(&source.text, comment),
            () if source.ends_with("md") => long(&source.text, |line| Some(line)),
            () => continue,
        };
        for (line, columns, max) in long {
            let path = source.path.display();
            breaches.push(format!("{path}:{line}: {columns} columns; a line has at most {max}"));
        }
    }
    breaches
}

/// The text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("//")?;
    Some(rest.trim_start_matches(['/', '!']))
}

/// Lines that are too long: their numbers, their lengths and their limits. `text` returns the text of a line, or
/// `None` if the line is exempt.
fn long(source: &str, text: fn(&str) -> Option<&str>) -> Vec<(usize, usize, usize)> {
    let mut long = Vec::new();
    let mut in_block = false;
    for (at, line) in source.lines().enumerate() {
        let Some(text) = text(line).map(str::trim) else {
            in_block = false;
            continue;
        };
        if text.starts_with("```") {
            in_block = !in_block;
        }
        let is_row = text.starts_with('|');
        let max = if is_row { ROW_COLUMNS_MAX } else { COLUMNS_MAX };
        let columns = line.chars().count();
        let is_target = text.starts_with('[') && text.contains("]: ");
        let is_whole = !text.trim_start_matches(['-', '*', '>', '#', ' ']).contains(' ');
        if columns > max && !in_block && !is_target && !is_whole {
            long.push((at + 1, columns, max));
        }
    }
    long
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let source = Source { path: path.into(), text: text.to_owned() };
        let line = |breach: &String| breach.split(':').nth(1)?.parse().ok();
        long_lines(&[source]).iter().filter_map(line).collect()
    }

    #[test]
    fn comments_and_documents_have_a_width() {
        let words = "word ".repeat(30);
        assert_eq!(
            lines("a.rs", &format!("//! It.\n// {words}\nlet x = \"{words}\";\n    /// {words}")),
            [2, 4]
        );
        assert_eq!(lines("a.md", &format!("{words}\n\n- {words}\n# {words}\n")), [1, 3, 4]);
        assert_eq!(lines("a.c", &format!("// {words}")), Vec::<usize>::new());
        assert_eq!(
            lines("a.md", &format!("{}x\n{}\n", "é".repeat(59), "é ".repeat(60))),
            Vec::<usize>::new()
        );
    }

    #[test]
    fn tables_have_another_width() {
        let row = |words: usize| format!("| {} |\n", "word ".repeat(words));
        assert_eq!(lines("a.md", &(row(50) + &row(60))), [2]);
        assert_eq!(lines("a.rs", &format!("//! {}//! {}", row(50), row(60))), [2]);
    }

    #[test]
    fn what_cannot_be_broken_is_left() {
        let (word, words) = ("x".repeat(200), "word ".repeat(30));
        for text in
            [format!("- {word}\n"), format!("[x]: {word} {word}\n"), format!("```text\n{words}\n```\n")]
        {
            assert_eq!(lines("a.md", &text), Vec::<usize>::new(), "{text}");
        }
        assert_eq!(lines("a.md", &format!("```\n```\n{words}\n")), [3]);
    }
}
