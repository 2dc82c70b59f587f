//! Reads records. If something is missing or has another form, the error names the file and the line.

use crate::errors::told;
use crate::job::Figures;
use crate::machine::Machine;
use crate::record::{Figure, Goal, REVISION};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// What a file has, line by line.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// The runs.
    pub(crate) runs: Vec<Described>,
    /// What was measured.
    pub(crate) rows: Vec<Row>,
    /// The subjects that were not measured.
    pub(crate) left_out: Vec<LeftOut>,
    /// The goals.
    pub(crate) goals: Vec<Goal>,
}

/// A run.
#[derive(Debug, Deserialize)]
pub(crate) struct Described {
    /// Its id, which all its lines have; in older records when it began.
    pub(crate) run: String,
    /// When it began.
    pub(crate) date: String,
    /// The revision of the sources of the program; in older records, that of the checkout.
    pub(crate) revision: Option<String>,
    /// The command line.
    pub(crate) command: Vec<String>,
    /// The options, with their defaults.
    #[serde(default)]
    pub(crate) options: Value,
    /// The machine.
    pub(crate) machine: Machine,
    /// Versions of the subjects.
    #[serde(default)]
    pub(crate) versions: BTreeMap<String, Option<String>>,
}

/// One subject's figures.
#[derive(Debug, Deserialize)]
pub(crate) struct Row {
    /// The run.
    pub(crate) run: String,
    /// The name.
    pub(crate) subject: String,
    /// The kind of pairs, or what was done.
    pub(crate) kind: String,
    /// How many.
    pub(crate) keys: u64,
    /// By name.
    pub(crate) figures: BTreeMap<String, Figure>,
    /// Remarks.
    #[serde(default)]
    pub(crate) notes: Vec<String>,
    /// By step: operations done in each stretch of it.
    #[serde(default)]
    pub(crate) timelines: BTreeMap<String, Vec<u64>>,
    /// Length of a stretch.
    #[serde(default)]
    pub(crate) timeline_ms: u64,
    /// All else: pages, locality, number of runs, durability.
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// A subject that was not measured, or was found to be wrong afterwards.
#[derive(Debug, Deserialize)]
pub(crate) struct LeftOut {
    /// The run.
    #[serde(default)]
    run: String,
    /// The name.
    pub(crate) subject: String,
    /// Of what.
    #[serde(default)]
    pub(crate) kind: Option<String>,
    /// How many.
    #[serde(default)]
    keys: Option<u64>,
    /// What its writes were to survive.
    #[serde(default)]
    durability: Option<Value>,
    /// Whether it was wrong, or broke.
    #[serde(default)]
    pub(crate) failed: bool,
    /// Why.
    pub(crate) why: String,
}

impl LeftOut {
    /// Whether it takes back figures that were recorded before the others' showed that they are wrong.
    fn takes(&self, row: &Row) -> bool {
        self.failed
            && self.run == row.run
            && self.subject == row.label()
            && self.kind.as_ref() == Some(&row.kind)
            && self.keys == Some(row.keys)
            && self.durability.as_ref() == row.more("durability")
    }
}

#[derive(Deserialize)]
struct Goals {
    goals: Vec<Goal>,
}

impl Row {
    /// The subject, and on which pages unless it chose them, or what its writes survive unless it is what was asked
    /// for.
    pub(crate) fn label(&self) -> String {
        let more = |name: &str| self.more.get(name).and_then(Value::as_str);
        let had = more("durability_had").filter(|had| Some(*had) != more("durability"));
        match more("pages").filter(|pages| *pages != "auto").or(had) {
            None => self.subject.clone(),
            Some(more) => format!("{}/{more}", self.subject),
        }
    }

    /// What it measured, round by round; the sums and time lines are those of the last one.
    pub(crate) fn measured(&self) -> Vec<Figures> {
        let rounds = self.figures.values().map(|figure| figure.rounds.len()).max().unwrap_or(0);
        let mut all = vec![Figures::default(); rounds];
        for (name, figure) in &self.figures {
            all.iter_mut().zip(&figure.rounds).for_each(|(round, value)| round.set(name, *value));
        }
        if let Some(last) = all.last_mut() {
            let sums = self.more("sums").and_then(Value::as_object).into_iter().flatten();
            let number = |text: &Value| u64::from_str_radix(text.as_str()?, 16).ok();
            last.sums = sums.filter_map(|(name, sum)| Some((name.clone(), number(sum)?))).collect();
            last.timelines = self.timelines.clone();
        }
        all
    }

    /// Something else of the row.
    pub(crate) fn more(&self, name: &str) -> Option<&Value> {
        self.more.get(name)
    }

    /// The rounds of each figure that is a time, by what it is of.
    pub(crate) fn rounds(&self) -> impl Iterator<Item = (String, &[f64])> {
        let times = self.figures.iter().filter(|(name, _)| name.ends_with("_ns"));
        times.map(|(name, figure)| (format!("{} {} {name}", self.label(), self.group()), &figure.rounds[..]))
    }

    /// What all rows share that can be compared: the run, the kind, the number of pairs, of runs with their locality,
    /// of stores what writes are to survive, of structures how often each key is asked for.
    pub(crate) fn group(&self) -> String {
        let more = ["runs", "locality", "durability", "distribution"].iter().filter_map(|name| {
            let value = self.more.get(*name)?;
            Some(match value.as_str() {
                Some(text) => format!(", {name} {text}"),
                None => format!(", {name} {value}"),
            })
        });
        let kind = &self.kind;
        format!("{kind}, {} pairs{}", crate::runner::keys(self.keys), more.collect::<String>())
    }
}

/// Every record of the project.
#[cfg(test)]
pub(crate) fn committed() -> Vec<Recorded> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/record");
    let paths = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    paths.sort();
    paths.iter().map(|path| read(path).unwrap()).collect()
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> io::Result<Recorded> {
    let file = File::open(path).map_err(|error| told(path.display(), &error))?;
    let mut recorded = Recorded::default();
    for (at, line) in BufReader::new(file).lines().enumerate() {
        let wrong = |why: String| {
            let where_ = format!("{}:{}", path.display(), at + 1);
            io::Error::new(io::ErrorKind::InvalidData, format!("{where_}: {why}"))
        };
        let line = line.map_err(|error| wrong(error.to_string()))?;
        recorded.take(&line).map_err(wrong)?;
    }
    Ok(recorded)
}

/// The last run of a file that has this command and these options, and the revision and machine of this program; with
/// what it measured.
pub(crate) fn begun(
    path: &Path,
    command: &str,
    options: &Value,
) -> io::Result<Option<(Described, Vec<Row>)>> {
    let Recorded { runs, mut rows, .. } = read(path)?;
    let machine = |of: &Machine| (of.cpu.clone(), of.cpus, of.memory_bytes);
    let here = machine(&Machine::describe());
    let is_same = |run: &Described| {
        run.command.first().is_some_and(|first| first == command)
            && run.options == *options
            && run.revision.as_deref() == REVISION
            && machine(&run.machine) == here
    };
    Ok(runs.into_iter().rfind(is_same).map(|run| {
        rows.retain(|row| row.run == run.run);
        (run, rows)
    }))
}

impl Recorded {
    /// Takes a line.
    fn take(&mut self, line: &str) -> Result<(), String> {
        fn of<T: for<'v> Deserialize<'v>>(record: Value) -> Result<T, String> {
            serde_json::from_value(record).map_err(|error| error.to_string())
        }
        let record: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if record["kvbench"] != 1 {
            return Err("no line of a record of version 1".to_owned());
        }
        match record["record"].as_str() {
            Some("run") => self.runs.push(of(record)?),
            Some("figures") => self.rows.push(of(record)?),
            Some("left_out") => {
                let left: LeftOut = of(record)?;
                self.rows.retain(|row| !left.takes(row));
                self.left_out.push(left);
            }
            Some("goals") => self.goals.extend(of::<Goals>(record)?.goals),
            // What later programs add is theirs to read.
            Some(_) => {}
            None => return Err("a line has no record type".to_owned()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A store is recorded when it has ended, and what the others show comes later.
    #[test]
    fn figures_that_proved_wrong_are_left_out() {
        let row = |run: &str, store: &str, keys: u64| {
            json!({ "kvbench": 1, "record": "figures", "run": run, "subject": store, "kind": "store", "keys": keys,
                "durability": "process", "durability_had": "process", "figures": {} })
        };
        let lines = [
            row("first", "lmdb", 10),
            row("second", "lmdb", 10),
            row("second", "lmdb", 20),
            row("second", "fjall", 10),
            json!({ "kvbench": 1, "record": "left_out", "run": "second", "subject": "lmdb", "kind": "store",
                "keys": 10, "durability": "process", "failed": true, "why": "other sums" }),
        ];
        let mut recorded = Recorded::default();
        lines.iter().for_each(|line| recorded.take(&line.to_string()).unwrap());
        let left: Vec<_> = recorded.rows.iter().map(|row| (row.subject.as_str(), row.keys)).collect();
        assert_eq!(left, [("lmdb", 10), ("lmdb", 20), ("fjall", 10)]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let path = tempfile::NamedTempFile::new().unwrap();
        for (content, why) in [
            ("x", ":1: expected value"),
            ("{\"kvbench\":1,\"record\":\"later\"}\n{\"kvbench\":2}", ":2: no line of a record of version 1"),
            ("{\"kvbench\":1}", ":1: a line has no record type"),
            ("{\"kvbench\":1,\"record\":\"figures\",\"run\":\"r\"}", ":1: missing field `subject`"),
            ("{\"kvbench\":1,\"record\":\"run\",\"run\":\"r\"}", ":1: missing field `date`"),
        ] {
            std::fs::write(&path, content).unwrap();
            let error = read(path.path()).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
