//! What of a machine decides how far its figures can be trusted, and can be set by root: each knob with what it does,
//! the value that is best for measuring, and where it is. What was set can be undone: the values that were there before
//! are kept in a file until then.

use crate::errors::told;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Something that can be set.
pub(crate) struct Knob {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// Where it is, from the root of the file system; a `*` is the number of each CPU.
    path: &'static str,
    /// Values with which figures can be trusted; the first is the default for `kvbench setup`. Empty: any value.
    good: &'static [&'static str],
    /// Its effect on figures.
    pub(crate) why: &'static str,
}

/// Where the sibling threads of cores are switched on and off.
const SIBLINGS: &str = "sys/devices/system/cpu/smt/control";

/// All of them.
pub(crate) const KNOBS: &[Knob] = &[
    Knob {
        name: "governor",
        path: "sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        good: &["performance"],
        why: "any other lets the clock of the cores rise and fall while something is measured",
    },
    Knob {
        name: "no-turbo",
        path: "sys/devices/system/cpu/intel_pstate/no_turbo",
        good: &["1"],
        why: "with turbo, the clock depends on how warm the processor is and on what other cores do",
    },
    Knob {
        name: "smt",
        path: SIBLINGS,
        good: &["off", "notsupported", "notimplemented", "forceoff"],
        why: "two threads of one core share its caches and units, so work on the sibling thread changes the figures",
    },
    Knob {
        name: "nmi-watchdog",
        path: "proc/sys/kernel/nmi_watchdog",
        good: &["0"],
        why: "it takes one of the processor's counters for itself",
    },
    Knob {
        name: "perf",
        path: "proc/sys/kernel/perf_event_paranoid",
        good: &["2", "1", "0", "-1"],
        why: "above 2, only root may count what the processor does",
    },
    Knob {
        name: "thp",
        path: "sys/kernel/mm/transparent_hugepage/enabled",
        good: &["madvise", "always"],
        why: "without transparent huge pages, large structures pay for walks of the page table",
    },
    Knob {
        name: "huge-pages-2m",
        path: "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        good: &[],
        why: "explicit huge pages, of 2 MiB, for --pages 2m; they are taken from everybody else",
    },
    Knob {
        name: "huge-pages-1g",
        path: "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages",
        good: &[],
        why: "the same of 1 GiB, for --pages 1g; often available only soon after the machine starts",
    },
];

/// How a knob stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KnobState {
    /// As is best.
    Good(String),
    /// It could be better.
    Bad(String),
    /// Neither: any value does.
    Any(String),
    /// This machine has none.
    Missing,
}

/// The value in a file of the system: of several in a row, the one in brackets.
fn value_of(text: &str) -> &str {
    let text = text.trim();
    match text.split_once('[').and_then(|(_, rest)| rest.split_once(']')) {
        Some((chosen, _)) => chosen,
        None => text,
    }
}

impl Knob {
    /// The knob of a name.
    pub(crate) fn find(name: &str) -> Option<&'static Knob> {
        KNOBS.iter().find(|knob| knob.name == name)
    }

    /// Whether the list of findings that all share has it already.
    pub(crate) fn is_of_pages(&self) -> bool {
        self.path.starts_with("sys/kernel/mm/")
    }

    /// The files of the knob.
    fn files(&self, root: &Path) -> Vec<PathBuf> {
        match self.path.split_once('*') {
            None => vec![root.join(self.path)],
            Some((before, after)) => (0..4096)
                .map_while(|cpu| {
                    let within = root.join(format!("{before}{cpu}"));
                    within.exists().then(|| root.join(format!("{before}{cpu}{after}")))
                })
                .collect(),
        }
    }

    /// The current setting.
    pub(crate) fn state(&self, root: &Path) -> KnobState {
        let files = self.files(root);
        let values: Vec<String> = files
            .iter()
            .filter_map(|file| Some(value_of(&std::fs::read_to_string(file).ok()?).to_owned()))
            .collect();
        let Some(first) = values.first() else { return KnobState::Missing };
        let Some(bad) = values.iter().find(|value| !self.good.contains(&value.as_str())) else {
            return KnobState::Good(first.clone());
        };
        if self.good.is_empty() { KnobState::Any(bad.clone()) } else { KnobState::Bad(bad.clone()) }
    }

    /// The value that `kvbench doctor` recommends.
    pub(crate) fn best(&self) -> Option<&'static str> {
        self.good.first().copied()
    }
}

/// What was there before anything was set, by file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Before(BTreeMap<PathBuf, String>);

fn kept(keep: &Path) -> io::Result<Before> {
    match std::fs::read_to_string(keep) {
        Ok(text) => {
            serde_json::from_str(&text).map_err(|error| told(keep.display(), &io::Error::other(error)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Before::default()),
        Err(error) => Err(told(keep.display(), &error)),
    }
}

fn keep_for_undo(keep: &Path, before: &Before) -> io::Result<()> {
    std::fs::write(keep, serde_json::to_string_pretty(before)?).map_err(|error| told(keep.display(), &error))
}

/// Saves the previous values in the file `keep`, then sets a knob. If a write fails, the error names the file, and
/// `keep` has the previous values of those already changed.
pub(crate) fn set(root: &Path, keep: &Path, knob: &Knob, value: &str) -> io::Result<()> {
    let files = knob.files(root);
    if knob.state(root) == KnobState::Missing {
        let what = format!("this machine has no {} ({})", knob.name, knob.path);
        return Err(io::Error::new(io::ErrorKind::NotFound, what));
    }
    let mut before = kept(keep)?;
    for file in &files {
        let text = std::fs::read_to_string(file).map_err(|error| told(file.display(), &error))?;
        before.0.entry(file.clone()).or_insert_with(|| value_of(&text).to_owned());
    }
    // First, so that nothing is changed that cannot be undone.
    keep_for_undo(keep, &before)?;
    files
        .iter()
        .try_for_each(|file| std::fs::write(file, value).map_err(|error| told(file.display(), &error)))
}

/// Sets everything back; how many files that were. The sibling threads come first, since a CPU that is off has no other
/// settings. Files that cannot be written stay in `keep`, and the error names each.
pub(crate) fn undo(keep: &Path) -> io::Result<usize> {
    let before = kept(keep)?;
    let all = before.0.len();
    let mut files: Vec<_> = before.0.into_iter().collect();
    files.sort_by_key(|(file, _)| !file.ends_with(SIBLINGS));
    let (mut left, mut why) = (Before::default(), Vec::new());
    for (file, value) in files {
        if let Err(error) = std::fs::write(&file, &value) {
            why.push(told(file.display(), &error).to_string());
            left.0.insert(file, value);
        }
    }
    if !left.0.is_empty() {
        keep_for_undo(keep, &left)?;
        let what = format!(
            "{} of {all} settings cannot be set back and stay in {}: {}",
            left.0.len(),
            keep.display(),
            why.join("; ")
        );
        return Err(io::Error::other(what));
    }
    if all > 0 {
        std::fs::remove_file(keep).map_err(|error| told(keep.display(), &error))?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn machine() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for cpu in 0..3 {
            let governor = if cpu == 0 { "performance\n" } else { "powersave\n" };
            file(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"), governor);
        }
        file("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        file("proc/sys/kernel/perf_event_paranoid", "3\n");
        file("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n");
        let keep = root.path().join("kept.json");
        (root, keep)
    }

    #[test]
    fn knobs_tell_how_they_stand() {
        let (root, _) = machine();
        let state = |name: &str| Knob::find(name).unwrap().state(root.path());
        assert_eq!(state("governor"), KnobState::Bad("powersave".to_owned()));
        assert_eq!(state("thp"), KnobState::Good("madvise".to_owned()));
        assert_eq!(state("perf"), KnobState::Bad("3".to_owned()));
        assert_eq!(state("huge-pages-2m"), KnobState::Any("0".to_owned()));
        assert_eq!(state("smt"), KnobState::Missing);
    }

    #[test]
    fn what_was_set_is_undone() {
        let (root, keep) = machine();
        let read = |path: &str| fs::read_to_string(root.path().join(path)).unwrap();
        let governor = Knob::find("governor").unwrap();
        let pages = Knob::find("huge-pages-2m").unwrap();
        set(root.path(), &keep, governor, governor.best().unwrap()).unwrap();
        set(root.path(), &keep, pages, "64").unwrap();
        // The second time keeps what was there before the first.
        set(root.path(), &keep, pages, "128").unwrap();
        assert_eq!(governor.state(root.path()), KnobState::Good("performance".to_owned()));
        assert_eq!(read("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"), "128");
        assert_eq!(undo(&keep).unwrap(), 4);
        assert_eq!(read("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor"), "powersave");
        assert_eq!(read("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"), "0");
        assert_eq!(undo(&keep).unwrap(), 0);
        let missing = set(root.path(), &keep, Knob::find("smt").unwrap(), "off").unwrap_err();
        assert!(missing.to_string().contains("no smt") && !keep.exists(), "{missing}");
        fs::write(&keep, "x").unwrap();
        assert!(undo(&keep).unwrap_err().to_string().contains("kept.json: "));
    }

    /// A CPU that is off has no governor, and gets it back only with the sibling threads.
    #[test]
    fn what_cannot_be_undone_stops_nothing_and_stays() {
        let (root, keep) = machine();
        let cpu = |file: &str| root.path().join("sys/devices/system/cpu").join(file);
        let read = |path: PathBuf| fs::read_to_string(path).unwrap();
        fs::create_dir(cpu("smt")).unwrap();
        fs::write(cpu("smt/control"), "on\n").unwrap();
        set(root.path(), &keep, Knob::find("governor").unwrap(), "performance").unwrap();
        set(root.path(), &keep, Knob::find("smt").unwrap(), "off").unwrap();
        fs::remove_dir_all(cpu("cpu1/cpufreq")).unwrap();
        let error = undo(&keep).unwrap_err().to_string();
        assert!(
            error.contains("1 of 4 settings") && error.contains("cpu1/cpufreq/scaling_governor: "),
            "{error}"
        );
        assert_eq!(
            (read(cpu("smt/control")), read(cpu("cpu2/cpufreq/scaling_governor"))),
            ("on".into(), "powersave".into())
        );
        let left = kept(&keep).unwrap().0;
        assert_eq!(
            left.into_iter().collect::<Vec<_>>(),
            [(cpu("cpu1/cpufreq/scaling_governor"), "powersave".into())]
        );
        // When it can be, the rest is undone.
        fs::create_dir(cpu("cpu1/cpufreq")).unwrap();
        assert_eq!(undo(&keep).unwrap(), 1);
        assert!(read(cpu("cpu1/cpufreq/scaling_governor")) == "powersave" && !keep.exists());
    }
}
