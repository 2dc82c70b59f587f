//! A simulated processor in place of the machine's: an arm that runs under valgrind's callgrind, which counts the
//! instructions of each loop, and what caches and a branch predictor of its own would make of them. The same arm counts
//! the same, run after run.
//!
//! The same comes out again because what differs from run to run has no part in it: nothing is simulated before the
//! data is there, no clock is read, no file of the system is looked at, the environment is empty, and valgrind puts
//! memory where it always does. Nothing is counted but loops; after each, callgrind is asked for a dump, which is a
//! file. The caches have fixed sizes, so that other machines count alike.

use super::event::Event;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program, and the package of Debian that has it.
const PROGRAM: &str = "valgrind";
/// How the files of dumps are named, before their numbers.
const DUMPS: &str = "callgrind.out";
/// Where callgrind's own words go.
const WORDS: &str = "words";
/// What programs and libraries are found by.
const KEPT: [&str; 3] = ["PATH", "LD_LIBRARY_PATH", "VALGRIND_LIB"];
/// Sizes in bytes, ways and bytes of a line: 32 KiB each for instructions and data, 8 MiB for the last level.
const CACHES: [&str; 4] = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"];

/// The parts that an event is the sum of, as callgrind names them; none of one that is not simulated.
fn parts(event: Event) -> &'static [&'static str] {
    match event {
        Event::Instructions => &["Ir"],
        Event::LlcReferences => &["I1mr", "D1mr", "D1mw"],
        Event::LlcMisses => &["ILmr", "DLmr", "DLmw"],
        Event::Branches => &["Bc", "Bi"],
        Event::BranchMisses => &["Bcm", "Bim"],
        _ => &[],
    }
}

/// The installed version. The error says how to install it.
pub(crate) fn version() -> io::Result<String> {
    let told = |why: String| {
        let how = "counting by simulation needs valgrind (Debian: apt-get install valgrind)";
        io::Error::new(io::ErrorKind::NotFound, format!("{how}: {why}"))
    };
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Err(io::Error::other("counting by simulation is for Linux on x86-64"));
    }
    let output = Command::new(PROGRAM).arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|error| told(error.to_string()))?;
    if !output.status.success() {
        return Err(told(output.status.to_string()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A call of a program under callgrind, which counts what these events need and dumps it to a directory.
pub(crate) fn command(program: &Path, events: &[Event], directory: &Path) -> Command {
    let needs = |what: &[Event]| what.iter().any(|event| events.contains(event));
    let mut command = Command::new(PROGRAM);
    command.args(["--tool=callgrind", "--quiet", "--vgdb=no", "--dump-line=no"]);
    command.args(["--instr-atstart=no", "--collect-atstart=no"]);
    // Its size would decide where the stack begins.
    command.env_clear();
    for name in KEPT {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    if needs(&[Event::LlcReferences, Event::LlcMisses]) {
        command.args(CACHES);
    }
    if needs(&[Event::Branches, Event::BranchMisses]) {
        command.arg("--branch-sim=yes");
    }
    let file = |what: &str, name: &str| format!("--{what}={}", directory.join(name).display());
    command.arg(file("callgrind-out-file", DUMPS)).arg(file("log-file", WORDS)).arg(program);
    command
}

/// Whether callgrind counts this event for this process; why not.
pub(super) fn counts(event: Event) -> Result<(), String> {
    if parts(event).is_empty() {
        return Err("callgrind does not simulate it".to_owned());
    }
    if forrest_machine::callgrind::is_there() { Ok(()) } else { Err("this is not under valgrind".to_owned()) }
}

/// What callgrind counts for this process.
pub(super) struct Simulation {
    directory: PathBuf,
    events: Vec<Event>,
    /// Dumps so far.
    dumps: u32,
}

impl Simulation {
    /// One whose dumps go to this directory.
    pub(super) fn new(directory: &Path, events: &[Event]) -> Self {
        let events = events.iter().copied().filter(|event| !parts(*event).is_empty()).collect();
        Simulation { directory: directory.to_owned(), events, dumps: 0 }
    }

    /// Dumps the counts since the last dump, and returns the number of this dump and that of the next. No dump is read
    /// before the last loop has ended, so reading does not change what the program does between loops.
    pub(super) fn dump(&mut self) -> (u32, u32) {
        forrest_machine::callgrind::dump();
        self.dumps += 1;
        (self.dumps, self.dumps + 1)
    }

    /// The counts of these dumps, by event. The error names the dump and the reason.
    pub(super) fn counts(&self, dumps: (u32, u32)) -> Result<Vec<(Event, u64)>, String> {
        let mut counts: Vec<_> = self.events.iter().map(|event| (*event, 0)).collect();
        for number in dumps.0..dumps.1 {
            let path = self.directory.join(format!("{DUMPS}.{number}"));
            let told = |why: String| format!("{}: {why}", path.display());
            let sums =
                fs::read_to_string(&path).map_err(|error| error.to_string()).and_then(|text| sums(&text));
            let sums = sums.map_err(told)?;
            for (event, count) in &mut counts {
                *count += sum_of(&sums, *event).map_err(told)?;
            }
        }
        Ok(counts)
    }
}

/// An event's count, from those of its parts.
fn sum_of(sums: &BTreeMap<String, u64>, event: Event) -> Result<u64, String> {
    let part = |part: &&str| sums.get(*part).copied().ok_or_else(|| format!("{part} was not counted"));
    parts(event).iter().map(part).sum()
}

/// The sums of a dump, by the names that callgrind has for them. Of its lines two are read: `events: Ir Dr ...`, and
/// `totals:` with as many numbers, of which zeros at the end may be left out.
fn sums(dump: &str) -> Result<BTreeMap<String, u64>, String> {
    // One without its end is cut off.
    let line = |name: &str| {
        let mut lines = dump.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    };
    let names: Vec<&str> =
        line("events").ok_or("it does not say what it counts")?.split_whitespace().collect();
    let totals = line("totals").ok_or("it has no totals: it is not whole")?;
    let mut counts = Vec::new();
    for word in totals.split_whitespace() {
        counts.push(word.parse().map_err(|_| format!("{word:?} is no count"))?);
    }
    if counts.len() > names.len() {
        return Err(format!("{} counts of {} events", counts.len(), names.len()));
    }
    counts.resize(names.len(), 0);
    Ok(names.into_iter().map(str::to_owned).zip(counts).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\ncmd:  kvbench arm totals: 9\npart: 1\n\n\
        desc: Trigger: Client Request\n\npositions: line\nevents: Ir Dr I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim\n\
        summary: 1000 200 3 4 5 1 0 2 90 7 8\n\nfn=(1) kvbench::measure::get\n0 1000 200\n\ntotals: 1000 200 3 4 5 1 0 2 90 7 8\n";

    #[test]
    fn a_dump_is_summed() {
        let sums = sums(DUMP).unwrap();
        for (event, count) in [
            (Event::Instructions, 1000),
            (Event::LlcReferences, 12),
            (Event::LlcMisses, 3),
            (Event::Branches, 98),
            // The last zero is not written.
            (Event::BranchMisses, 7),
        ] {
            assert_eq!(sum_of(&sums, event), Ok(count), "{event:?}");
        }
        let nothing = super::sums("events: Ir\ntotals:\n").unwrap();
        assert_eq!(sum_of(&nothing, Event::Instructions), Ok(0));
        assert_eq!(sum_of(&nothing, Event::Branches), Err("Bc was not counted".to_owned()));
    }

    #[test]
    fn a_dump_that_is_none_says_why() {
        for (dump, why) in [
            ("", "does not say what it counts"),
            ("totals: 1\n", "does not say what it counts"),
            ("events: Ir Dr\nsummary: 1 2\n", "it is not whole"),
            ("events: Ir Dr\ntotals: 1 2 3\n", "3 counts of 2 events"),
            ("events: Ir\ntotals: x\n", "\"x\" is no count"),
            ("events: Ir\ntotals: -1\n", "\"-1\" is no count"),
            ("events: Ir\ntotals: 99999999999999999999\n", "is no count"),
        ] {
            let error = sums(dump).unwrap_err();
            assert!(error.contains(why), "{dump:?}: {error}");
        }
        for end in 0..DUMP.len() {
            assert!(sums(&DUMP[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn what_is_not_needed_is_not_simulated() {
        let arguments = |events: &[Event]| {
            let command = command(Path::new("/program"), events, Path::new("/there"));
            let arguments: Vec<_> =
                command.get_args().map(|one| one.to_string_lossy().into_owned()).collect();
            arguments.join(" ")
        };
        let plain = arguments(&[Event::Instructions]);
        assert!(
            plain.ends_with("--callgrind-out-file=/there/callgrind.out --log-file=/there/words /program"),
            "{plain}"
        );
        assert!(!plain.contains("-sim") && arguments(&[Event::LlcMisses]).contains("--cache-sim=yes --I1="));
        assert!(arguments(&[Event::BranchMisses]).contains("--branch-sim=yes"));
    }

    #[test]
    fn dumps_are_summed_and_one_that_is_not_there_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let dump = |number: u32, text: &str| {
            fs::write(directory.path().join(format!("{DUMPS}.{number}")), text).unwrap()
        };
        let simulation = Simulation::new(directory.path(), &[Event::Instructions, Event::Cycles]);
        (1..4).for_each(|number| dump(number, DUMP));
        assert_eq!(simulation.counts((0, 0)), Ok(vec![(Event::Instructions, 0)]));
        assert_eq!(simulation.counts((1, 4)), Ok(vec![(Event::Instructions, 3000)]));
        let missing = simulation.counts((3, 5)).unwrap_err();
        assert!(missing.contains("callgrind.out.4: "), "{missing}");
        dump(2, "");
        let empty = simulation.counts((1, 4)).unwrap_err();
        assert!(empty.contains("callgrind.out.2: it does not say"), "{empty}");
        assert!(counts(Event::Cycles).is_err_and(|why| why.contains("does not simulate")));
        assert!(counts(Event::Branches).is_err_and(|why| why.contains("not under valgrind")));
    }
}
