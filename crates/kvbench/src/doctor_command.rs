//! `kvbench doctor`: what of this machine's figures can be trusted, and how to make it more; and `kvbench setup`: sets
//! what needs root, and sets it back.

use crate::compare::{self, Plan, Sides};
use crate::counters::{self, EVENTS, Provider, RAW, callgrind};
use crate::data::Walk;
use crate::job::{Job, Step, Task};
use crate::knobs::{self, KNOBS, Knob};
use crate::machine::Machine;
use crate::names::Name;
use crate::options::{Doctor, MallocPages, Setup};
use crate::runner::Runner;
use crate::stores;
use ::llds::doctor;
use forrest_machine::doctor::{Finding, Verdict};
use std::io::{self, Write};
use std::path::Path;

/// Where the system shows what can be set.
const ROOT: &str = "/";
/// Blocks of the look at noise.
const BLOCKS: usize = 8;
/// Turns that an arm of these takes.
const TURNS: u16 = 5;

/// Looks, measures the noise, and prints what was found; true always.
pub(crate) fn doctor(options: &Doctor) -> io::Result<bool> {
    let mut out = io::stdout();
    let knobs = KNOBS.iter().filter(|knob| !knob.is_of_pages()).map(of_knob);
    // This command lists the provider of each event instead of the general finding on counters.
    let findings = doctor::examine().into_iter().filter(|finding| finding.topic != "counters");
    for finding in findings.chain(of_machine(&Machine::describe())).chain(knobs) {
        writeln!(out, "{finding}")?;
    }
    for finding in of_counters().into_iter().chain(of_features()) {
        writeln!(out, "{finding}")?;
    }
    if !options.no_noise {
        for finding in noise()? {
            writeln!(out, "{finding}")?;
        }
    }
    Ok(true)
}

/// How a knob stands, and the command that sets it.
fn of_knob(knob: &Knob) -> Finding {
    let (state, value) = match knob.state(Path::new(ROOT)) {
        knobs::KnobState::Good(value) => return Finding::new(knob.name, Verdict::Good, value),
        knobs::KnobState::Missing => return Finding::new(knob.name, Verdict::Absent, "not on this machine"),
        knobs::KnobState::Bad(value) => (Verdict::Poor, value),
        knobs::KnobState::Any(value) => (Verdict::Fair, value),
    };
    let set = format!("as root: kvbench setup {}={}", knob.name, knob.best().unwrap_or("NUMBER"));
    Finding::new(knob.name, state, format!("{value}: {}", knob.why)).advise(set)
}

/// What makes figures of this machine less to be trusted.
fn of_machine(machine: &Machine) -> Vec<Finding> {
    let system = Finding::new("system", Verdict::Good, machine.system.clone());
    let mut found = vec![match machine.virtual_machine {
        Some(true) => Finding {
            state: Verdict::Poor,
            what: format!("{}, a virtual machine: trust ratios within one run, not figures", machine.system),
            ..system
        },
        _ => system,
    }];
    found.extend(machine.load_1_min.map(|load| match load {
        ..=0.5 => Finding::new("load", Verdict::Good, format!("the machine is idle ({load})")),
        _ => Finding::new(
            "load",
            Verdict::Poor,
            format!("others work here ({load}): wait, or use --clock cpu"),
        ),
    }));
    if machine.cpus < 2 {
        found.push(Finding::new("threads", Verdict::Poor, "one CPU: steps of several threads are left out"));
    }
    found
}

/// What would count each event, why nothing better, and whether a processor can be simulated.
fn of_counters() -> [Finding; 2] {
    let named: Vec<_> = EVENTS.iter().copied().filter(|event| !RAW.contains(event)).collect();
    let set_up = counters::set_up(&named, None);
    counters::set_up(&[], None);
    let by_processor = set_up.counted.values().any(|of| matches!(of, Some(Provider::Rdpmc | Provider::Perf)));
    let counted = match by_processor {
        true => Finding::new("counters", Verdict::Good, "the processor counts"),
        false => Finding::new("counters", Verdict::Poor, "the processor counts nothing here"),
    };
    let simulated = match callgrind::version() {
        Ok(version) => {
            Finding::new("--simulate", Verdict::Good, format!("a processor can be simulated: {version}"))
        }
        Err(why) => Finding::new("--simulate", Verdict::Absent, "no processor can be simulated")
            .advise(why.to_string()),
    };
    [counted.advise(set_up.lines().join("\n")), simulated]
}

/// Features that are not compiled in, and their requirements.
fn of_features() -> Vec<Finding> {
    let missing = |topic, names: Vec<&str>, what, build| {
        let what = || format!("{what} not compiled in: {}", names.join(", "));
        (!names.is_empty()).then(|| Finding::new(topic, Verdict::Absent, what()).advise(build))
    };
    let stores = stores::ENTRIES.iter().filter(|entry| entry.run.is_err()).map(|entry| entry.name).collect();
    let allocators = crate::alloc::Allocator::ALL.iter().filter(|allocator| allocator.compiled_in().is_err());
    let cpp = match (cfg!(feature = "cpp"), option_env!("KVBENCH_LEFT_OUT")) {
        (false, _) => vec!["all peers in C++"],
        (true, Some(left_out)) if !left_out.is_empty() => left_out.split("; ").collect(),
        _ => vec![],
    };
    [
        missing(
            "stores",
            stores,
            "stores",
            "cargo build --release --features stores,leveldb,rocksdb (Debian: gcc; \
            libleveldb-dev for LevelDB; g++, libclang-dev for RocksDB)",
        ),
        missing(
            "allocators",
            allocators.map(|allocator| allocator.name()).collect(),
            "allocators",
            "cargo build \
            --release --features allocators (Debian: gcc, g++, make, cmake)",
        ),
        missing(
            "cpp",
            cpp,
            "structures",
            "cargo build --release --features cpp (Debian: g++, pkg-config, libabsl-dev, \
            libboost1.81-dev, libcuckoo-dev, libjudy-dev, libtbb-dev, robin-map-dev)",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What a comparison with itself shows here.
fn noise() -> io::Result<Vec<Finding>> {
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
    let runner = || Runner::new(MallocPages::System);
    let mut sides = Sides { runners: [runner()?, runner()?], jobs: [job.clone(), job] };
    let plan = Plan { blocks: BLOCKS, margin: 0.01, disturbed_percent_max: 100.0, seed: 42 };
    let compared = compare::compare(&mut sides, plan, &Walk::default())?;
    let judged = compared.judged.iter().filter_map(|(figure, judged)| Some((figure, judged.as_ref()?)));
    Ok(judged
        .map(|(figure, judged)| {
            let percent = 100.0 * (judged.floor - 1.0);
            let what = format!(
                "{figure} of btreemap differs from itself by up to {percent:.1} % over {BLOCKS} blocks"
            );
            match percent {
                0.0..2.0 => Finding::new("noise", Verdict::Good, what),
                _ => Finding::new("noise", Verdict::Poor, what)
                    .advise("smaller differences are not to be seen here; more blocks (--blocks) show them"),
            }
        })
        .collect())
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
        writeln!(out, "Settings, as NAME or NAME=VALUE; kvbench doctor shows the current values:")?;
        for knob in KNOBS {
            let best = knob.best().map_or_else(|| "NUMBER".to_owned(), str::to_owned);
            writeln!(out, "  {:28} {}", format!("{}={best}", knob.name), knob.why)?;
        }
    }
    Ok(true)
}
