//! `kvbench doctor`: what of this machine's figures can be trusted, and how to make it more; and `kvbench setup`: sets what
//! needs root, and sets it back.

use crate::compare::{self, Plan, Sides};
use crate::counters::{self, EVENTS, Provider, callgrind};
use crate::data::Walk;
use crate::job::{Job, Step, Task};
use crate::knobs::{self, KNOBS, Knob, State};
use crate::machine::{self, Machine};
use crate::names::Name;
use crate::options::{Doctor, MallocPages, Setup};
use crate::runner::Runner;
use crate::sizes;
use crate::stores;
use std::io::{self, Write};
use std::path::Path;

/// Where the system shows what can be set.
const ROOT: &str = "/";
/// Blocks of the look at noise.
/// Turns that an arm of these takes.
const TURNS: u16 = 5;
const BLOCKS: usize = 8;

/// How one thing is judged.
enum Judged {
    Good,
    Bad,
    Told,
}

fn say(out: &mut impl Write, judged: Judged, what: &str, more: &str) -> io::Result<()> {
    let mark = match judged {
        Judged::Good => "good",
        Judged::Bad => "BAD ",
        Judged::Told => "    ",
    };
    writeln!(out, "{mark}  {what}")?;
    if more.is_empty() { Ok(()) } else { writeln!(out, "        {more}") }
}

/// Looks, measures the noise, and tells; true always.
pub(crate) fn doctor(options: &Doctor) -> io::Result<bool> {
    let mut out = io::stdout();
    let machine = Machine::describe();
    writeln!(out, "{}\n", machine.lines())?;
    of_machine(&mut out, &machine)?;
    for knob in KNOBS {
        let set = match knob.best() {
            Some(best) => format!("as root: kvbench setup {}={best}", knob.name),
            None => format!("as root: kvbench setup {}=NUMBER", knob.name),
        };
        match knob.state(Path::new(ROOT)) {
            State::Good(value) => say(&mut out, Judged::Good, &format!("{} is {value}", knob.name), "")?,
            State::Bad(value) => {
                say(&mut out, Judged::Bad, &format!("{} is {value}: {}", knob.name, knob.why), &set)?;
            }
            State::Any(value) => {
                say(&mut out, Judged::Told, &format!("{} is {value}: {}", knob.name, knob.why), &set)?;
            }
            State::Missing => {
                say(&mut out, Judged::Told, &format!("{} is not to be seen on this machine", knob.name), "")?;
            }
        }
    }
    of_counters(&mut out)?;
    of_features(&mut out)?;
    if !options.no_noise {
        noise(&mut out)?;
    }
    Ok(true)
}

fn of_machine(out: &mut impl Write, machine: &Machine) -> io::Result<()> {
    if machine.virtual_machine == Some(true) {
        say(out, Judged::Bad, "a virtual machine: trust ratios within one run, not figures", "")?;
    }
    match machine.load_1_min {
        Some(load) if load > 0.5 => {
            say(out, Judged::Bad, &format!("others work here (load {load}): wait, or use --clock cpu"), "")?;
        }
        Some(load) => say(out, Judged::Good, &format!("nobody else works here (load {load})"), "")?,
        None => {}
    }
    if machine.cpus < 2 {
        say(out, Judged::Bad, "one CPU: steps of several threads are left out", "")?;
    }
    if let Some(free) = machine::available_bytes() {
        say(out, Judged::Told, &format!("{} of memory can be had", sizes::text(free)), "")?;
    }
    Ok(())
}

/// Who would count what, why nobody better, and whether a processor can be simulated.
fn of_counters(out: &mut impl Write) -> io::Result<()> {
    let set_up = counters::set_up(EVENTS, None);
    counters::set_up(&[], None);
    let by_processor = set_up.counted.values().any(|of| matches!(of, Some(Provider::Rdpmc | Provider::Perf)));
    let judged = if by_processor { Judged::Good } else { Judged::Bad };
    let what = if by_processor { "the processor counts" } else { "the processor counts nothing here" };
    say(out, judged, what, &set_up.lines().join("\n        "))?;
    match callgrind::version() {
        Ok(version) => {
            say(out, Judged::Good, &format!("a processor can be simulated (--simulate): {version}"), "")
        }
        Err(why) => say(out, Judged::Told, "no processor can be simulated (--simulate)", &why.to_string()),
    }
}

/// What is compiled in, and what the rest needs.
fn of_features(out: &mut impl Write) -> io::Result<()> {
    let missing: Vec<_> =
        stores::ENTRIES.iter().filter(|entry| entry.run.is_err()).map(|entry| entry.name).collect();
    if !missing.is_empty() {
        let what = format!("stores that are not compiled in: {}", missing.join(", "));
        let how = "cargo build --release --features stores,leveldb,rocksdb (Debian: gcc; libleveldb-dev for LevelDB; g++, libclang-dev for RocksDB)";
        say(out, Judged::Told, &what, how)?;
    }
    let missing: Vec<_> = crate::alloc::Allocator::ALL
        .iter()
        .filter(|allocator| allocator.compiled_in().is_err())
        .map(|allocator| allocator.name())
        .collect();
    if !missing.is_empty() {
        let what = format!("allocators that are not compiled in: {}", missing.join(", "));
        let how = "cargo build --release --features allocators (Debian: gcc, g++, make, cmake)";
        say(out, Judged::Told, &what, how)?;
    }
    if !cfg!(feature = "cpp") {
        let how = "cargo build --release --features cpp (Debian: g++, pkg-config, libabsl-dev, libboost1.81-dev, libcuckoo-dev, \
                   libjudy-dev, libtbb-dev, robin-map-dev)";
        say(out, Judged::Told, "peers in C++ are not compiled in", how)?;
    }
    Ok(())
}

/// What a comparison with itself shows here.
fn noise(out: &mut impl Write) -> io::Result<()> {
    let name = Name::parse("btreemap").map_err(io::Error::other)?;
    let job = Job {
        allocator: name.allocator,
        probes: 200_000,
        steps: vec![Step::Get],
        margin_bytes: 1 << 30,
        pin: true,
        turns: TURNS,
        ..Job::of(Task::Measure, name, 100_000)
    };
    let runner = || Runner::new(MallocPages::System, 0);
    let mut sides = Sides { runners: [runner()?, runner()?], jobs: [job.clone(), job] };
    let plan = Plan { blocks: BLOCKS, margin: 0.01, disturbed_percent_max: 100.0, seed: 42 };
    let compared = compare::compare(&mut sides, plan, &Walk::default())?;
    for (figure, judged) in &compared.judged {
        let Some(judged) = judged else { continue };
        let percent = 100.0 * (judged.floor - 1.0);
        let what =
            format!("{figure} of btreemap differs from itself by up to {percent:.1} % over {BLOCKS} blocks");
        let (judged, more) = match percent {
            0.0..2.0 => (Judged::Good, ""),
            _ => (
                Judged::Bad,
                "differences below that are not to be seen here; more blocks (--blocks) show smaller ones",
            ),
        };
        say(out, judged, &what, more)?;
    }
    Ok(())
}

/// Sets what was named, or sets everything back; true always.
pub(crate) fn setup(options: &Setup) -> io::Result<bool> {
    let mut out = io::stdout();
    if options.undo {
        let files = knobs::undo(&options.keep)?;
        writeln!(out, "{files} settings are as they were")?;
        return Ok(true);
    }
    for setting in &options.settings {
        let (name, value) = setting.split_once('=').map_or((setting.as_str(), None), |(n, v)| (n, Some(v)));
        let knob = Knob::find(name).ok_or_else(|| {
            let names: Vec<_> = KNOBS.iter().map(|knob| knob.name).collect();
            io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is none of {}", names.join(", ")))
        })?;
        let value = value.or(knob.best()).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{name} needs a value: {name}=NUMBER"))
        })?;
        knobs::set(Path::new(ROOT), &options.keep, knob, value)?;
        writeln!(out, "{name} is {value}; kvbench setup --undo sets it back")?;
    }
    if options.settings.is_empty() {
        writeln!(out, "What can be set, as NAME or NAME=VALUE; kvbench doctor tells how it stands:")?;
        for knob in KNOBS {
            let best = knob.best().map_or_else(|| "NUMBER".to_owned(), str::to_owned);
            writeln!(out, "  {:28} {}", format!("{}={best}", knob.name), knob.why)?;
        }
    }
    Ok(true)
}
