//! The guide lists exactly the commands that there are, and those that are declined.

use std::collections::BTreeSet;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/redis.md");

/// The names in back quotes in the lines of a section's table.
fn names(text: &str, section: &str) -> BTreeSet<String> {
    let (_, rest) = text.split_once(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("no {section}"));
    let rest = rest.split("\n## ").next().unwrap_or_default();
    let rows = rest.lines().filter(|line| line.starts_with("| "));
    rows.flat_map(|row| row.split('`').skip(1).step_by(2)).map(str::to_lowercase).collect()
}

#[test]
fn the_tables_are_those_of_the_code() {
    let text = std::fs::read_to_string(GUIDE).unwrap();
    let code: BTreeSet<String> = forrest_redis::commands().map(str::to_owned).collect();
    assert_eq!(names(&text, "Commands"), code);
    let declined: BTreeSet<String> = forrest_redis::declined().map(|(name, _)| name.to_owned()).collect();
    let shown: BTreeSet<String> = names(&text, "What is declined")
        .into_iter()
        .map(|name| name.trim_end_matches('*').to_owned())
        .collect();
    assert_eq!(shown, declined);
}
