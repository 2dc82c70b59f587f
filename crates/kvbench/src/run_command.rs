//! `kvbench run`: runs a suite, a file that lists commands of this program. Their results go into one record, from
//! which a page is made.
//!
//! All steps of the suite are validated before the first one runs. If a step fails, the failure is reported and the
//! next step runs.

use crate::errors::told;
use crate::options::{Report, Run};
use crate::report;
use serde::Deserialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The suites that are part of the program, by name.
const SUITES: &[(&str, &str)] = &[
    ("default", include_str!("../suites/default.toml")),
    ("smoke", include_str!("../suites/smoke.toml")),
    ("structures", include_str!("../suites/structures.toml")),
    ("ycsb", include_str!("../suites/ycsb.toml")),
    ("stores", include_str!("../suites/stores.toml")),
    ("llds", include_str!("../suites/llds.toml")),
    ("remix", include_str!("../suites/remix.toml")),
    ("pages", include_str!("../suites/pages.toml")),
];

/// A suite.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    /// What it is about.
    about: String,
    /// The steps.
    step: Vec<Step>,
}

/// A command.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// What one learns from it.
    why: String,
    /// Its words, with white space between; none has any within.
    run: String,
}

/// What the command line does for this module, which lies below it.
pub(crate) trait Commands {
    /// A command that makes sense.
    type Command;
    /// Parses a command's words, split as by a shell. The error names the mistake.
    fn read(&self, words: &[String]) -> Result<Self::Command, String>;
    /// Runs the command; true if it succeeded.
    fn perform(&self, command: Self::Command) -> io::Result<bool>;
}

/// The name of a suite, and its text.
fn suite_of(named: &str) -> io::Result<(String, String)> {
    if let Some((name, text)) = SUITES.iter().find(|(name, _)| *name == named) {
        return Ok(((*name).to_owned(), (*text).to_owned()));
    }
    let path = Path::new(named);
    if path.extension().is_none_or(|end| end != "toml") {
        let names: Vec<_> = SUITES.iter().map(|(name, _)| *name).collect();
        let what = format!("the suites are {}; a file of your own ends in .toml", names.join(", "));
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let text = std::fs::read_to_string(path).map_err(|error| told(named, &error))?;
    let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    Ok((stem, text))
}

/// A suite's steps as commands that append to a record.
fn read<C: Commands>(
    named: &str,
    text: &str,
    record: &Path,
    commands: &C,
) -> io::Result<(Suite, Vec<C::Command>)> {
    let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidData, format!("{named}: {what}"));
    let suite: Suite = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let mut read = Vec::new();
    for (at, step) in suite.step.iter().enumerate() {
        let mut words: Vec<String> = step.run.split_whitespace().map(str::to_owned).collect();
        words.extend(["--json".to_owned(), record.display().to_string()]);
        let command = commands.read(&words);
        read.push(command.map_err(|why| wrong(format!("step {} ({}): {why}", at + 1, step.run)))?);
    }
    if read.is_empty() {
        return Err(wrong("it has no steps".to_owned()));
    }
    Ok((suite, read))
}

/// Runs a suite; true if all steps went well.
pub(crate) fn run<C: Commands>(options: &Run, commands: &C) -> io::Result<bool> {
    let (name, text) = suite_of(&options.suite)?;
    let beside = |end: &str| PathBuf::from(format!("kvbench-{name}.{end}"));
    let record = options.json.clone().unwrap_or_else(|| beside("jsonl"));
    let html = options.html.clone().unwrap_or_else(|| beside("html"));
    let (suite, steps) = read(&options.suite, &text, &record, commands)?;
    if record.exists() {
        let what =
            format!("{} is there already; name another one with --json, or remove it", record.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    }
    let mut out = io::stdout();
    writeln!(out, "{name}: {}, {} steps", suite.about, steps.len())?;
    let (all, mut failed) = (steps.len(), 0);
    for (at, (step, command)) in suite.step.iter().zip(steps).enumerate() {
        writeln!(out, "\n== {}/{all} kvbench {}\n   {}\n", at + 1, step.run, step.why)?;
        match commands.perform(command) {
            Ok(true) => {}
            Ok(false) => failed += 1,
            Err(error) => {
                eprintln!("kvbench: {}: {error}", step.run);
                failed += 1;
            }
        }
    }
    writeln!(out, "\n{} of {all} steps went well; measured: {}", all - failed, record.display())?;
    report::run(&Report {
        records: vec![record],
        html: Some(html),
        csv: None,
        markdown: None,
        highlights: None,
        subjects: Vec::new(),
        figures: Vec::new(),
    })?;
    Ok(failed == 0)
}

/// The suites for `kvbench list`.
pub(crate) fn suites() -> impl Iterator<Item = (&'static str, String)> {
    SUITES.iter().filter_map(|(name, text)| {
        let suite: Suite = toml::from_str(text).ok()?;
        Some((*name, suite.about))
    })
}

/// Whether all steps of all suites make sense.
#[cfg(test)]
pub(crate) fn check_all(commands: &impl Commands) -> io::Result<()> {
    SUITES.iter().try_for_each(|(name, text)| read(name, text, Path::new("r.jsonl"), commands).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Accepts all commands except "nonsense"; the command "fails" fails.
    #[derive(Default)]
    struct Told(RefCell<Vec<String>>);

    impl Commands for Told {
        type Command = String;

        fn read(&self, words: &[String]) -> Result<String, String> {
            if words[0] == "nonsense" { Err("no such command".to_owned()) } else { Ok(words.join(" ")) }
        }

        fn perform(&self, command: String) -> io::Result<bool> {
            self.0.borrow_mut().push(command.clone());
            Ok(command != "fails")
        }
    }

    #[test]
    fn a_suite_is_wrong_before_anything_is_run() {
        let told = Told::default();
        for (text, why) in [
            (
                "about = \"x\"\n[[step]]\nwhy = \"y\"\nrun = \"memory\"\n[[step]]\nwhy = \"z\"\nrun = \"nonsense -n 1\"",
                "step 2 (nonsense -n 1): no such command",
            ),
            ("about = \"x\"\nstep = []", "it has no steps"),
            ("about = \"x\"\nmore = 1\nstep = []", "unknown field `more`"),
            ("x", "own.toml: "),
        ] {
            let error = read("own.toml", text, Path::new("r.jsonl"), &told).err().unwrap().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(told.0.borrow().is_empty());
        assert!(suite_of("unknown").unwrap_err().to_string().contains("default, smoke"));
    }

    #[test]
    fn steps_append_to_one_record() {
        let text = SUITES[0].1;
        let (suite, steps) = read("default", text, Path::new("r.jsonl"), &Told::default()).unwrap();
        assert_eq!(suite.step.len(), steps.len());
        assert!(steps.iter().all(|step| step.ends_with(" --json r.jsonl")), "{steps:?}");
        assert_eq!(suites().count(), SUITES.len());
    }
}
