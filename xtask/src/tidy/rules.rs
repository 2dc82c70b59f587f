//! Rules about single files: how they begin, where unsafe code may be, what stays out.

use std::path::Path;

use super::sources::Source;

/// Crates whose root must forbid unsafe code: all above the bottom two. The benchmark's subjects may need it, and so
/// does the C library, which is called with pointers.
const SAFE_ROOTS: &[&str] = &[
    "crates/forrest/src/lib.rs",
    "crates/forrest-cli/src/main.rs",
    "crates/forrest-py/src/lib.rs",
    "xtask/src/main.rs",
];

/// The breaches of all sources.
pub(crate) fn breaches(sources: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let problems = problems(&source.text, is_test(&source.path));
        wrong.extend(problems.into_iter().map(|problem| format!("{}{problem}", source.path.display())));
    }
    for root in SAFE_ROOTS {
        let source = sources.iter().find(|source| source.path == Path::new(root));
        if !source.is_some_and(|source| source.text.contains("#![forbid(unsafe_code)]")) {
            wrong.push(format!("{root}: does not forbid unsafe code"));
        }
    }
    wrong
}

/// Whether a file holds nothing but tests.
fn is_test(path: &Path) -> bool {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name == "tests" || name.ends_with("_tests") || path.components().any(|part| part.as_os_str() == "tests")
}

/// The problems of a source, each beginning with its place.
fn problems(text: &str, mut in_tests: bool) -> Vec<String> {
    let mut problems = Vec::new();
    if !text.starts_with("//!") {
        problems.push(":1: does not begin with a //! that says what it is".to_owned());
    }
    for (at, line) in text.lines().enumerate() {
        let code = line.trim_start();
        // Written apart, so that this file does not name what it forbids.
        let marks = [concat!("FIX", "ME"), concat!("TO", "DO"), concat!("XX", "X")];
        if let Some(mark) = marks.iter().find(|mark| words(code).any(|word| word == **mark)) {
            problems.push(format!(":{}: leaves a {mark}", at + 1));
        }
        if code.starts_with("#[allow(") || code.starts_with("#![allow(") {
            problems.push(format!(":{}: allows a lint; expect it, with a reason", at + 1));
        }
        in_tests |= code.starts_with("#[cfg(test)]");
        if in_tests && code.contains(concat!("thread::", "sleep")) {
            problems.push(format!(":{}: sleeps in a test", at + 1));
        }
    }
    problems
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaches_are_found_with_their_place() {
        assert_eq!(problems("//! What it is.\nfn main() {}\n", false), Vec::<String>::new());
        assert_eq!(problems("fn main() {}\n", false).len(), 1);
        let mark = concat!("// FIX", "ME: later");
        assert_eq!(problems(&format!("//! It.\n{mark}\n"), false), [concat!(":2: leaves a FIX", "ME")]);
        assert_eq!(problems("//! It.\n#[allow(dead_code)]\n", false).len(), 1);
    }

    #[test]
    fn only_tests_must_not_sleep() {
        let sleep = format!("std::{}(x);\n", concat!("thread::", "sleep"));
        let mixed = format!("//! It.\n{sleep}#[cfg(test)]\n{sleep}");
        assert_eq!(problems(&mixed, false), [":4: sleeps in a test"]);
        assert_eq!(problems(&mixed, true).len(), 2);
        assert!(is_test(Path::new("crates/a/tests/model.rs")) && is_test(Path::new("a/src/b_tests.rs")));
        assert!(!is_test(Path::new("xtask/src/test.rs")));
    }
}
