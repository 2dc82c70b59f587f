//! Counts of instructions, compared with a record of the last accepted ones.

use std::fmt::Write as _;
use std::fs;

use crate::steps::{Outcome, Verdict};
use crate::workspace::Workspace;

/// Counts by what was counted, as one line of the record names it.
pub(crate) type Counts = Vec<(String, f64)>;

/// As a record has them.
fn lines(counts: &Counts) -> String {
    counts.iter().map(|(name, count)| format!("{name} {count:.1}\n")).collect()
}

/// The first line of a record: what the counts depend on.
fn heading(made_with: &str) -> String {
    format!("# {made_with}\n")
}

/// Writes the counts to a record.
pub(crate) fn write(workspace: &Workspace, record: &str, made_with: &str, counts: &Counts) -> Verdict {
    let path = workspace.root.join(record);
    fs::write(&path, heading(made_with) + &lines(counts))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    println!("written to {record}");
    Ok(Outcome::Passed)
}

/// The counts of a record.
pub(crate) fn recorded(workspace: &Workspace, record: &str) -> Result<Counts, String> {
    parsed(record, &read(workspace, record)?)
}

/// Compares counts with a record. A count that has grown by more than the fraction for its name is an error.
pub(crate) fn compare(
    workspace: &Workspace,
    record: &str,
    growth: impl Fn(&str) -> f64,
    counts: &Counts,
) -> Verdict {
    let text = read(workspace, record)?;
    let grown = grown(counts, growth, record, &text)?;
    if grown.is_empty() { Ok(Outcome::Passed) } else { Err(grown) }
}

/// Whether a record was made with the same.
pub(crate) fn is_of(workspace: &Workspace, record: &str, made_with: &str) -> Result<bool, String> {
    Ok(read(workspace, record)?.starts_with(&heading(made_with)))
}

fn read(workspace: &Workspace, record: &str) -> Result<String, String> {
    fs::read_to_string(workspace.root.join(record)).map_err(|error| format!("{record}: {error}"))
}

fn parsed(record: &str, text: &str) -> Result<Counts, String> {
    let parsed = |line: &str| {
        let (name, number) = line.rsplit_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| parsed(line).ok_or_else(|| format!("{record}: {line:?}"))).collect()
}

/// Which of them have grown too much since the record; and an error for what only one of both has.
fn grown(counts: &Counts, growth: impl Fn(&str) -> f64, record: &str, text: &str) -> Result<String, String> {
    let mut grown = String::new();
    let mut known = 0;
    for (name, number) in parsed(record, text)? {
        let found = counts.iter().find(|count| count.0 == name).map(|count| count.1);
        let count = found.ok_or_else(|| format!("{name} is recorded and was not measured"))?;
        known += 1;
        if count > number * (1.0 + growth(&name)) {
            let _ = writeln!(grown, "{name} costs {count:.1} instructions, and cost {number:.1}");
        }
    }
    if known == counts.len() { Ok(grown) } else { Err(format!("{record} lacks some of what was measured")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_is_told() {
        let counts = vec![("disk get".to_owned(), 150.0), ("disk set".to_owned(), 900.0)];
        let grown = |text: &str| grown(&counts, |_| 0.03, "file", text);
        let record = heading("somewhere") + &lines(&counts);
        assert_eq!(grown(&record), Ok(String::new()));
        assert_eq!(grown(&record.replace("150.0", "145.7")), Ok(String::new()));
        let more = "disk get costs 150.0 instructions, and cost 145.0\n";
        assert_eq!(grown(&record.replace("150.0", "145.0")), Ok(more.to_owned()));
        assert!(grown("disk get 150.0\n").is_err());
        assert!(grown(&format!("{record}disk other 1.0\n")).is_err());
        assert!(grown("nonsense\n").is_err());
    }
}
