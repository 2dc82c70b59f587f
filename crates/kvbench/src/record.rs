//! The record of a run: its description and its figures, one JSON object a line. Each group of figures is appended to
//! the file when it is complete, so that an interrupted run keeps its figures.
//!
//! Every line has `kvbench` (the version of this format, 1), `record` (its type) and `run` (the id of the run that it
//! belongs to: its date and a random number, so that runs which began in the same second have different ids; in older
//! records the date alone). Types: `run` (date, revision, machine, versions, options), `figures` (one subject with one
//! kind and number of keys; each figure has `median`, `min`, `max` and the value of each round; its unit is the end of
//! its name; `sums` are checksums of the results, equal for all subjects), `left_out` (subjects that were not measured,
//! and why), `goals` (each goal with its measurement), `compared` and `calibrated` (verdicts). Missing figures are
//! absent, never zero. `schema/record.json` is the full description, and the tests validate every record.

use crate::errors::told;
use crate::job::Figures;
use crate::machine::Machine;
use crate::registry;
use crate::statistics::{median, number};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The revision of the sources that this program was built from, as the build script found it.
pub(crate) const REVISION: Option<&str> = option_env!("KVBENCH_REVISION");

/// A run, described.
pub(crate) struct Run {
    /// When it began, UTC.
    pub(crate) date: String,
    /// What tells it from all other runs.
    id: String,
    /// The revision of the sources that this program was built from, with `-dirty` if they were changed; `None` if it
    /// is not known.
    pub(crate) revision: Option<String>,
    /// The machine.
    pub(crate) machine: Machine,
    file: Option<File>,
}

/// A figure over the rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// The middle, or the mean of the two in the middle.
    pub(crate) median: f64,
    /// The least.
    pub(crate) min: f64,
    /// The greatest.
    pub(crate) max: f64,
    /// Round by round.
    pub(crate) rounds: Vec<f64>,
}

impl Figure {
    /// The figures of several rounds of one subject, by name.
    pub(crate) fn gather(rounds: Vec<Figures>) -> BTreeMap<String, Figure> {
        let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (name, value) in rounds.into_iter().flat_map(|figures| figures.values) {
            values.entry(name).or_default().push(value);
        }
        values.into_iter().map(|(name, rounds)| (name, Figure::new(rounds))).collect()
    }

    /// The figure of these rounds; there is at least one.
    pub(crate) fn new(rounds: Vec<f64>) -> Self {
        let least = rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Figure { median: median(&rounds), min: least, max: most, rounds }
    }
}

/// How a figure must stand to its goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Relation {
    /// As great or greater.
    AtLeast,
    /// As small or smaller.
    AtMost,
    /// Greater.
    Above,
    /// Smaller.
    Below,
}

/// A goal and how it stands.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Goal {
    /// Title of the measurement.
    pub(crate) title: String,
    /// Kind of pairs.
    pub(crate) kind: Cow<'static, str>,
    /// Number of keys.
    pub(crate) keys: u64,
    /// The figure.
    pub(crate) measured: f64,
    /// How it must stand to `goal`.
    pub(crate) relation: Relation,
    /// What it must reach.
    pub(crate) goal: f64,
    /// Whether it does.
    pub(crate) holds: bool,
    /// The unit, printed after the numbers.
    pub(crate) unit: Cow<'static, str>,
    /// The kind of pages on which all memory lies that is compared, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pages: Option<Cow<'static, str>>,
}

impl Relation {
    /// In words, before the goal.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Relation::AtLeast => "at least",
            Relation::AtMost => "at most",
            Relation::Above => "above",
            Relation::Below => "below",
        }
    }
}

impl Goal {
    /// What was measured, what is wanted, and the verdict, as text.
    pub(crate) fn texts(&self) -> [String; 3] {
        let (unit, words) = (&self.unit, self.relation.words());
        let verdict = if self.holds { "holds" } else { "missed" };
        let [measured, goal] = [self.measured, self.goal].map(number);
        [format!("{measured}{unit}"), format!("{words} {goal}{unit}"), verdict.to_owned()]
    }

    /// Compares a figure with its goal; the group is the kind and number of pairs.
    pub(crate) fn judge(
        title: String,
        (kind, keys): (&'static str, u64),
        measured: f64,
        relation: Relation,
        goal: f64,
    ) -> Goal {
        let holds = match relation {
            Relation::AtLeast => measured >= goal,
            Relation::AtMost => measured <= goal,
            Relation::Above => measured > goal,
            Relation::Below => measured < goal,
        };
        Goal {
            title,
            kind: kind.into(),
            keys,
            measured,
            relation,
            goal,
            holds,
            unit: "x".into(),
            pages: None,
        }
    }
}

impl Run {
    /// Describes a run that begins now, and opens the file that it is appended to.
    pub(crate) fn begin(json: Option<&Path>, options: Value) -> io::Result<Self> {
        let date = date(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()));
        let mut run = Run {
            id: id(&date),
            date,
            revision: REVISION.map(str::to_owned),
            machine: Machine::describe(),
            file: json.map(to_append).transpose()?,
        };
        let stores = crate::stores::ENTRIES.iter().filter_map(|entry| {
            Some((entry.package.unwrap_or(entry.name).to_owned(), json!(entry.version()?)))
        });
        let versions: Map<String, Value> = registry::entries()
            .filter_map(|entry| Some((entry.package?.to_owned(), json!(entry.version()?))))
            .chain(stores)
            .collect();
        let command: Vec<_> = std::env::args().skip(1).collect();
        run.append(
            "run",
            &json!({
                "date": run.date, "revision": run.revision, "command": command, "options": options,
                "machine": run.machine, "versions": versions,
            }),
        )?;
        Ok(run)
    }

    /// Goes on with a run of a record that was ended before it was complete.
    pub(crate) fn resume(json: &Path, id: String, date: String) -> io::Result<Self> {
        let revision = REVISION.map(str::to_owned);
        Ok(Run { id, date, revision, machine: Machine::describe(), file: Some(to_append(json)?) })
    }

    /// Prints the head of a run of `command`: its origin, the machine, `what` it measures if given, and whether the
    /// machine had other work.
    pub(crate) fn print_head(
        &self,
        out: &mut impl Write,
        command: &str,
        seed: u64,
        what: Option<&str>,
    ) -> io::Result<()> {
        let revision = self.revision.as_deref().unwrap_or("unknown");
        writeln!(out, "kvbench {command}, {}, revision {revision}, seed {seed}", self.date)?;
        writeln!(out, "{}", self.machine.lines())?;
        if let Some(what) = what {
            writeln!(out, "{what}")?;
        }
        if let Some(load) = self.machine.load_1_min.filter(|load| *load > 0.5) {
            writeln!(out, "the machine was busy before the run (load {load}): figures may be too high")?;
        }
        Ok(())
    }

    /// Appends one line of this type.
    pub(crate) fn append(&mut self, record: &str, content: &Value) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut line = json!({ "kvbench": 1, "record": record, "run": self.id });
        if let (Value::Object(line), Value::Object(content)) = (&mut line, content) {
            line.extend(content.clone());
        }
        // At once, so that a kill leaves no part of a line.
        file.write_all(format!("{line}\n").as_bytes())
    }
}

/// Opens a file whose end is written.
fn to_append(path: &Path) -> io::Result<File> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.map_err(|error| match (error.kind(), path.parent()) {
        (io::ErrorKind::NotFound, Some(parent)) => {
            let what =
                format!("the record {}: make the directory {} first", path.display(), parent.display());
            io::Error::new(error.kind(), what)
        }
        _ => told(path.display(), &error),
    })
}

/// An id of a run that begins now.
fn id(date: &str) -> String {
    format!("{date}-{:016x}", RandomState::new().build_hasher().finish())
}

/// Seconds since 1970 as a date of the Gregorian calendar, UTC.
fn date(seconds: u64) -> String {
    let (mut day, second) = (seconds / 86_400, seconds % 86_400);
    let leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 1;
    for days in [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }

    #[test]
    fn a_record_without_a_directory_is_named_with_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("missing");
        let record = missing.join("record.jsonl");
        for begun in
            [Run::begin(Some(&record), json!({})), Run::resume(&record, String::new(), String::new())]
        {
            let error = begun.err().expect("there is no such directory").to_string();
            let advice = format!("{}: make the directory {} first", record.display(), missing.display());
            assert!(error.contains(&advice), "{error}");
        }
    }

    #[test]
    fn runs_of_the_same_second_have_different_ids() {
        let file = tempfile::NamedTempFile::new().unwrap();
        (0..2).for_each(|_| drop(Run::begin(Some(file.path()), json!({})).unwrap()));
        let lines = std::fs::read_to_string(file.path()).unwrap();
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.len() == 2 && lines[0]["run"] != lines[1]["run"], "{lines:?}");
        assert!(lines[0]["run"].as_str().unwrap().starts_with(lines[0]["date"].as_str().unwrap()));
    }

    #[test]
    fn medians_are_in_the_middle() {
        let figure = Figure::new(vec![3.0, 1.0, 2.0]);
        assert_eq!((figure.median, figure.min, figure.max), (2.0, 1.0, 3.0));
        assert_eq!(Figure::new(vec![4.0, 1.0]).median, 2.5);
    }
}
