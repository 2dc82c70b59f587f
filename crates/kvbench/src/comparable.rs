//! Whether the runs of records were made in the same way, so that their figures can be compared or put together.
//!
//! The command, its options and the machine decide that. A record has the options with their defaults, and the command
//! line; options that an older record does not have are compared by the command line alone. Left aside are what only
//! chooses what is measured or where it goes (the figures' own names tell it apart), the number of rounds, and what
//! comparisons are about: the revision and the versions of the subjects.

use crate::machine::Machine;
use crate::recorded::{Described, Recorded, Row};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Options of the command line that take no value.
const FLAGS: &[&str] = &[
    "--quick",
    "--max",
    "--no-sweep",
    "--no-pin",
    "--no-values",
    "--in-place",
    "--simulate",
    "--no-rocksdb",
    "--resume",
];
/// Options of the command line that only choose, or name files.
const CHOOSE: &[&str] = &[
    "--json",
    "--html",
    "--directory",
    "--subjects",
    "--no-rocksdb",
    "--rounds",
    "--keys",
    "-n",
    "--kinds",
    "--pages",
    "--durability",
    "--runs",
    "--localities",
    "--sweep",
    "--sweep-subjects",
    "--no-sweep",
    "--resume",
];
/// The same of the options that a record has.
const CHOSEN: &[&str] = &["rounds", "scenarios", "durability"];
/// Sizes that a row has and not its run.
const OF_ROWS: &[&str] = &["memtable_bytes", "cache_bytes", "millis"];

/// What decides a run's figures: values by name, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings(BTreeMap<String, String>);

/// Runs of a record that were made in the same way.
pub(crate) struct Alike {
    /// In which.
    pub(crate) settings: Settings,
    /// The rounds of every figure that is a time, by what it is of.
    pub(crate) rounds: BTreeMap<String, Vec<f64>>,
}

impl Settings {
    /// Those of a run with these rows; `None` stands for a run that the record does not describe.
    fn of<'r>(run: Option<&Described>, rows: impl Iterator<Item = &'r Row>) -> Settings {
        let mut all = BTreeMap::new();
        all.insert("description of the run".to_owned(), if run.is_some() { "yes" } else { "no" }.to_owned());
        if let Some(run) = run {
            let (command, rest) =
                run.command.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
            all.insert("command".to_owned(), command.to_owned());
            all.extend(of_command_line(rest));
            for (name, value) in run.options.as_object().into_iter().flatten() {
                if !CHOSEN.contains(&name.as_str()) {
                    flatten(&format!("option {name}"), value, &mut all);
                }
            }
            flatten("machine", &of_machine(&run.machine), &mut all);
        }
        for row in rows {
            for name in OF_ROWS {
                if let Some(value) = row.more(name) {
                    flatten(&format!("{}, {name}", row.kind), value, &mut all);
                }
            }
        }
        Settings(all)
    }

    /// By name, the values of both where they differ. An option that only one of them knows is no difference, and one
    /// that only one command line has is.
    pub(crate) fn differences(&self, other: &Settings) -> BTreeMap<String, [String; 2]> {
        let names: BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        let differ = |name: &String| {
            let absent = || name.starts_with('-').then(|| "not given".to_owned());
            let a = self.0.get(name).cloned().or_else(absent)?;
            let b = other.0.get(name).cloned().or_else(absent)?;
            (a != b).then(|| (name.clone(), [a, b]))
        };
        names.into_iter().filter_map(differ).collect()
    }
}

/// What differs, in words.
pub(crate) fn words(differences: &BTreeMap<String, [String; 2]>) -> String {
    let of = |(name, [a, b]): (&String, &[String; 2])| format!("{name} ({a}; {b})");
    differences.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// The options of a command line.
fn of_command_line(words: &[String]) -> BTreeMap<String, String> {
    let mut options = BTreeMap::new();
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        // What is no option names scenarios.
        if !word.starts_with('-') {
            continue;
        }
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, value),
            None if FLAGS.contains(&word) => (word, "given"),
            None => (word, words.next_if(|next| !next.starts_with('-')).unwrap_or("given")),
        };
        if !CHOOSE.contains(&name) {
            options.insert(name.to_owned(), value.to_owned());
        }
    }
    options
}

/// Of a machine, what stays as it is from run to run.
fn of_machine(machine: &Machine) -> Value {
    json!({
        "cpu": machine.cpu, "cpus": machine.cpus, "last-level cache": machine.last_level_cache,
        "virtual": machine.virtual_machine, "memory": machine.memory_bytes,
        "transparent huge pages": machine.transparent_huge_pages,
        "explicit huge pages": machine.huge_pages_free_bytes > 0, "system": machine.system,
    })
}

/// Adds a value, or those within it, under its name.
fn flatten(name: &str, value: &Value, all: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(within) => {
            within.iter().for_each(|(part, value)| flatten(&format!("{name} {part}"), value, all));
        }
        Value::String(text) => drop(all.insert(name.to_owned(), text.clone())),
        Value::Null => drop(all.insert(name.to_owned(), "none".to_owned())),
        value => drop(all.insert(name.to_owned(), value.to_string())),
    }
}

/// The figures of a record, run by run; those of runs that were made in the same way are together.
pub(crate) fn alike(record: &Recorded) -> Vec<Alike> {
    let mut groups: Vec<Alike> = Vec::new();
    let mut ids: Vec<&str> = record.rows.iter().map(|row| row.run.as_str()).collect();
    let mut seen = BTreeSet::new();
    ids.retain(|id| seen.insert(*id));
    for id in ids {
        let rows = || record.rows.iter().filter(|row| row.run == id);
        let settings = Settings::of(record.runs.iter().find(|run| run.run == id), rows());
        let at = groups.iter().position(|group| group.settings.differences(&settings).is_empty());
        let at = at.unwrap_or_else(|| {
            groups.push(Alike { settings, rounds: BTreeMap::new() });
            groups.len() - 1
        });
        for (of, rounds) in rows().flat_map(Row::rounds) {
            groups[at].rounds.entry(of).or_default().extend(rounds);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(command: &str, options: Value, cpus: usize) -> Settings {
        let run: Described = serde_json::from_value(json!({
            "run": "r", "date": "d", "revision": null, "options": options,
            "command": command.split(' ').collect::<Vec<_>>(),
            "machine": { "cpu": "c", "cpus": cpus, "last_level_cache": null, "virtual_machine": true,
                "memory_bytes": 1, "transparent_huge_pages": null, "huge_pages_free_bytes": 0, "system": "s",
                "load_1_min": 0.1 },
        }))
        .unwrap();
        Settings::of(Some(&run), std::iter::empty())
    }

    fn differ(a: &Settings, b: &Settings) -> String {
        words(&a.differences(b))
    }

    #[test]
    fn each_difference_is_named() {
        let options =
            |clock: &str| json!({ "clock": clock, "rounds": 1, "asked": { "rate": null, "hits": [50] } });
        let base = settings("memory", options("Wall"), 2);
        assert_eq!(differ(&base, &base), "");
        assert_eq!(differ(&base, &settings("memory", options("Cpu"), 2)), "option clock (Wall; Cpu)");
        assert_eq!(
            differ(&base, &settings("store", options("Wall"), 4)),
            "command (memory; store), machine cpus (2; 4)"
        );
        let paced = json!({ "clock": "Wall", "rounds": 3, "asked": { "rate": 1000, "hits": [50] } });
        assert_eq!(differ(&base, &settings("memory", paced, 2)), "option asked rate (none; 1000)");
        // An older record has fewer options.
        assert_eq!(differ(&base, &settings("memory", json!({}), 2)), "");
        let unknown = Settings::of(None, std::iter::empty());
        assert_eq!(differ(&base, &unknown), "description of the run (yes; no)");
        assert_eq!(differ(&unknown, &unknown), "");
    }

    #[test]
    fn the_command_line_counts_but_for_what_it_chooses() {
        let of = |line: &str| settings(line, json!({}), 2);
        let base = of("pressure memory -n 1M --cache 64M --quick stalls --json a.jsonl --rounds 3");
        let same = of("pressure stalls memory --quick --json=b.jsonl --cache=64M --subjects forrest");
        assert_eq!(differ(&base, &same), "");
        assert_eq!(
            differ(&base, &of("pressure memory --cache 32M")),
            "--cache (64M; 32M), --quick (given; not given)"
        );
        assert_eq!(differ(&of("store --values events"), &of("store")), "--values (events; not given)");
    }
}
