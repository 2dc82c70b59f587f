//! Power cuts and kills: at every I/O, in every way, and again while the store recovers.

use super::world::{
    Content, Step, World, all_steps, are_all, are_merges, beginning, filtered, follow, is_one_of, lengths,
    options, options_of, seeds, steps, wide_steps,
};
use crate::disk::Kind;
use crate::disk::simulated::Simulated;
use crate::partition::LOOK;
use forrest_engine::{Durability, Options, View as _};
use forrest_testing::sized;
use std::ops::Range;

/// The states that may be found after a crash.
struct Expected {
    states: Vec<Content>,
    /// The first of `states` that may be found: it was acknowledged as durable.
    least: usize,
}

impl Expected {
    /// Opens the disk after a crash and checks its content.
    fn check(&self, disk: &Simulated, options: &Options, what: &str) {
        let world = World::open(disk, options).unwrap_or_else(|error| panic!("{what}: {error}"));
        let content = world.content().unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = is_one_of(&content, &self.states[self.least..]);
        let is = |state: &Content| is_one_of(&content, std::slice::from_ref(state));
        let before = self.states[..self.least].iter().rposition(is);
        assert!(
            found,
            "{what}: the store is in no state that it was in (of {}; lost down to {before:?}, {} was durable): {content:?}",
            self.states.len(),
            self.least,
        );
        if options.filter.is_some() {
            // What it has decided stays so, and the rest follows.
            world.run(&Step::Compact).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(
                world.content().expect("it is read"),
                filtered(&content),
                "{what}: after a compaction"
            );
        }
    }
}

/// Runs work until the power is cut at an I/O, or to its end if that comes first; returns the states that may
/// be found then.
fn run(disk: &Simulated, options: &Options, steps: &[Step]) -> Expected {
    let mut states = beginning();
    let mut least = 0;
    if let Ok(world) = World::open(disk, options) {
        for step in steps {
            follow(&mut states, step);
            let result = world.run(step);
            if result.is_err() {
                break;
            }
            let durable = options.durability == Some(Durability::Sync);
            if durable || matches!(step, Step::Sync | Step::Flush | Step::Ingest(..)) {
                least = states.len() - 1;
            }
        }
    }
    Expected { states, least }
}

/// Crashes at every I/O of some work, in every way: in the states that are always checked, and in `random`
/// others. Returns the number of states checked.
pub(super) fn crash_everywhere(what: &str, steps: &[Step], durability: Durability, random: usize) -> u64 {
    let options = options(durability);
    let whole = Simulated::new();
    run(&whole, &options, steps);
    let ios = whole.ios();
    let mut states = 0;
    for io in 0..=ios {
        let disk = Simulated::new();
        disk.cut_power_at(io);
        let expected = run(&disk, &options, steps);
        for (number, after) in disk.crash_states(random, io).enumerate() {
            expected.check(
                &after,
                &options,
                &format!("{what}, {durability:?}, cut at I/O {io}, state {number}"),
            );
            states += 1;
        }
        expected.check(&disk.kill(), &options, &format!("{what}, {durability:?}, killed at I/O {io}"));
    }
    states
}

/// The work of a seed; for every fourth seed, on so wide a range that merges are done in pieces.
fn work(seed: u64, count: usize) -> Vec<Step> {
    match seed % 4 {
        _ if are_all() => all_steps(seed, count),
        3 => wide_steps(seed, count),
        _ => steps(seed, count),
    }
}

/// Power cuts at every I/O; returns the number of states checked.
pub(super) fn after_power_cuts(seeds: Range<u64>) -> u64 {
    let durabilities = [Durability::Memory, Durability::Buffered, Durability::Sync];
    let crash = |seed| {
        let durability = durabilities[(seed % 3) as usize];
        crash_everywhere(&format!("seed {seed}"), &work(seed, 25), durability, 2)
    };
    seeds.map(crash).sum()
}

/// Power cuts after each change, while each log is made ahead and nobody syncs: each takes a beginning of what there
/// was. Returns the number of states checked.
pub(super) fn of_logs_made_ahead() -> u64 {
    let options = options(Durability::Buffered);
    let (disk, mut states, mut checked) = (Simulated::new(), beginning(), 0);
    let world = World::open(&disk, &options).expect("it opens");
    let first = world.store.version().memtable.log;
    for number in 0..13 {
        follow(&mut states, &world.set_with_a_log_ahead(number));
        for after in disk.crash_states(8, u64::from(number)) {
            let what = format!("after {number} changes");
            let world = World::open(&after, &options).unwrap_or_else(|error| panic!("{what}: {error}"));
            let content = world.content().unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(states.contains(&content), "{what}: {content:?}");
            checked += 1;
        }
    }
    assert!(world.store.version().memtable.log > first + 3, "there are more logs than that");
    // One sync makes all of them durable.
    world.run(&Step::Sync).expect("nothing fails");
    for after in disk.crash_states(8, 13) {
        let world = World::open(&after, &options).expect("it opens");
        assert_eq!(Some(&world.content().expect("it is read")), states.last(), "it was synced");
    }
    checked
}

#[test]
fn a_power_cut_takes_a_beginning_of_logs_that_were_made_ahead() {
    assert!(of_logs_made_ahead() > 100);
}

/// The steps that sequences are made of: each operation of a store, on keys that overlap.
pub(super) fn alphabet() -> Vec<Step> {
    let mut steps = vec![
        Step::Set("default", 1, 20),
        // Long enough that a second one fills the memtable.
        Step::Set("default", 2, 400),
        Step::Set("other", 1, 400),
        Step::SetUntil("default", 1, 20, true),
        Step::Delete("default", 1),
        Step::Batch(vec![("default", 1, Some(30)), ("other", 1, None), ("other", 2, Some(5))]),
        Step::DeleteRange("default", 1, 3),
        Step::Drop("other"),
        Step::Sync,
        Step::Flush,
        Step::Compact,
    ];
    if are_all() {
        steps.extend([
            Step::Guard("default", (0, 4), true, 1, 20),
            Step::Swap("default", 1, true, Some(25)),
            Step::Ingest("default", vec![1, 2, 7], 10, vec![Step::Set("default", 2, 30)]),
        ]);
    }
    if are_merges() {
        steps.extend([Step::Merge("default", 1, 20), Step::Merges("default", 1, 2)]);
    }
    steps
}

/// Power cuts at every I/O of every sequence of `length` steps; returns the number of states checked.
pub(super) fn after_every_sequence(length: usize) -> u64 {
    let alphabet = alphabet();
    let mut states = 0;
    for number in 0..alphabet.len().pow(length as u32) {
        let mut rest = number;
        let mut steps = Vec::new();
        for _ in 0..length {
            steps.push(alphabet[rest % alphabet.len()].clone());
            rest /= alphabet.len();
        }
        states += crash_everywhere(&format!("{steps:?}"), &steps, Durability::Buffered, 0);
    }
    states
}

/// A kill at the end of work that was acknowledged as buffered.
pub(super) fn after_a_kill(seeds: Range<u64>) {
    for seed in seeds {
        let options = options_of(seed, Durability::Buffered);
        let disk = Simulated::new();
        let mut expected = run(&disk, &options, &work(seed, 60));
        expected.least = expected.states.len() - 1;
        expected.check(&disk.kill(), &options, &format!("seed {seed}"));
    }
}

/// Crashes. After each one, the store is opened and works on, until the power is cut again: at every
/// `every`th I/O.
pub(super) fn crashes_upon_crashes(seeds: Range<u64>, every: usize) -> u64 {
    let mut states = 0;
    for seed in seeds {
        let options = options_of(seed, Durability::Buffered);
        let whole = Simulated::new();
        let work = if are_all() { all_steps(seed, 40) } else { steps(seed, 40) };
        run(&whole, &options, &work);
        let disk = Simulated::new();
        disk.cut_power_at(whole.ios() * (2 + seed % 3) / 4);
        let first = run(&disk, &options, &work);
        // After a kill, the next process finds much that is not durable.
        let mut starts = vec![disk.kill()];
        starts.extend(disk.crash_states(1, seed).step_by(7));
        for (number, start) in starts.iter().enumerate() {
            let fresh = || if number == 0 { disk.kill() } else { Simulated::from_files(start.files()) };
            let probe = fresh();
            let before = probe.ios();
            run_on(&probe, &options, seed, &first);
            for io in (before..probe.ios()).step_by(every) {
                let disk = fresh();
                disk.cut_power_at(io);
                let second = run_on(&disk, &options, seed, &first);
                let expected = second.as_ref().unwrap_or(&first);
                for (after, disk) in disk.crash_states(1, seed ^ io).enumerate() {
                    let what = format!("seed {seed}, start {number}, again at I/O {io}, state {after}");
                    expected.check(&disk, &options, &what);
                    states += 1;
                }
            }
        }
    }
    states
}

/// Kills at every I/O of some work. After each, the store is opened with smaller memtables, makes tables of what it has
/// read, and is changed; the power is cut at every `every`th I/O of that.
pub(super) fn cuts_upon_kills(seeds: Range<u64>, every: usize) -> u64 {
    cuts_upon(seeds, 1, every, |disk, _| vec![disk.kill()])
}

/// The same upon power cuts, after which logs may be given up, and at every `every`th I/O of both.
pub(super) fn cuts_upon_cuts(seeds: Range<u64>, every: usize) -> u64 {
    cuts_upon(seeds, every, every, |disk, cut_at| disk.crash_states(2, cut_at).collect())
}

/// See above. `starts` makes the disks that the second process may find.
fn cuts_upon(
    seeds: Range<u64>,
    every_first: usize,
    every: usize,
    starts: impl Fn(&Simulated, u64) -> Vec<Simulated>,
) -> u64 {
    let options = options(Durability::Buffered);
    let small = Options { memtable_bytes: 200, ..options.clone() };
    let mut states = 0;
    for seed in seeds {
        // A keyspace is made in the log, and more follows than a small memtable takes.
        let mut work = vec![Step::Set("other", 1, 150), Step::Set("default", 2, 150)];
        work.extend(steps(seed, 10));
        let whole = Simulated::new();
        run(&whole, &options, &work);
        for killed_at in (0..=whole.ios()).step_by(every_first) {
            let disk = Simulated::new();
            disk.cut_power_at(killed_at);
            let first = run(&disk, &options, &work);
            let work_on = |disk: &Simulated| -> Option<Expected> {
                let world = World::open(disk, &small).ok()?;
                let mut expected = Expected { states: first.states.clone(), least: first.least };
                let opened = expected.states.len();
                expected.states.push(world.content().ok()?);
                for step in [Step::Work, Step::Set("other", 77, 5), Step::Flush] {
                    follow(&mut expected.states, &step);
                    if world.run(&step).is_err() {
                        break;
                    }
                    if world.store.log().is_begun() {
                        expected.least = expected.least.max(opened);
                    }
                }
                Some(expected)
            };
            for (number, start) in starts(&disk, killed_at).iter().enumerate() {
                let probe = start.kill();
                work_on(&probe);
                for cut_at in (0..probe.ios()).step_by(every) {
                    let disk = start.kill();
                    disk.cut_power_at(cut_at);
                    let second = work_on(&disk);
                    let expected = second.as_ref().unwrap_or(&first);
                    for (state, after) in disk.crash_states(1, cut_at).enumerate() {
                        let what =
                            format!("seed {seed}, {killed_at}, start {number}, cut at {cut_at}, {state}");
                        expected.check(&after, &small, &what);
                        states += 1;
                    }
                }
            }
        }
    }
    states
}

/// Opens a disk after a crash and works on; returns the states that may be found then, or `None` if the store
/// did not open. What was read when it was opened is durable after the first change, not before.
fn run_on(disk: &Simulated, options: &Options, seed: u64, first: &Expected) -> Option<Expected> {
    let world = World::open(disk, options).ok()?;
    let mut expected = Expected { states: first.states.clone(), least: first.least };
    let opened = expected.states.len();
    expected.states.push(world.content().ok()?);
    let mut work = steps(seed ^ 0xFF, 6);
    work.insert(2, Step::Sync);
    work.insert(4, Step::Flush);
    for step in work {
        follow(&mut expected.states, &step);
        if world.run(&step).is_err() {
            break;
        }
        if world.store.log().is_begun() {
            expected.least = expected.least.max(opened);
        }
        if matches!(step, Step::Sync | Step::Flush) {
            expected.least = expected.states.len() - 1;
        }
    }
    Some(expected)
}

#[test]
fn nothing_durable_is_lost_wherever_the_power_is_cut() {
    let states = after_power_cuts(seeds(2, 3));
    println!("{states} states");
    assert!(states > 100, "only {states} states were looked at");
}

#[test]
fn no_short_sequence_loses_anything_wherever_the_power_is_cut() {
    let states: u64 = (0..=lengths(2, 3)).map(after_every_sequence).sum();
    println!("{states} states");
    assert!(states > 100, "only {states} states were looked at");
}

#[test]
fn what_was_acknowledged_as_buffered_survives_a_kill() {
    after_a_kill(seeds(20, 100));
}

#[test]
fn a_power_cut_after_a_kill_loses_nothing_that_was_built_on() {
    let states = cuts_upon_kills(seeds(1, 2), sized(5, 3));
    println!("{states} states");
    assert!(states > 1_000, "only {states} states were looked at");
}

#[test]
fn a_power_cut_upon_a_power_cut_leaves_a_whole_chain_of_logs() {
    let states = cuts_upon_cuts(seeds(1, 2), sized(7, 5));
    println!("{states} states");
    assert!(states > 300, "only {states} states were looked at");
}

#[test]
fn a_crash_upon_a_crash_loses_nothing() {
    let states = crashes_upon_crashes(seeds(1, 4), 2);
    println!("{states} states");
}

/// The memtable that was immutable before its keyspace was dropped becomes tables afterwards; they go with
/// the flush of all.
#[test]
fn a_keyspace_that_is_dropped_before_its_flush_leaves_no_tables() {
    let world = World::open(&Simulated::new(), &options(Durability::Buffered)).expect("it opens");
    for step in [Step::Set("other", 1, 700), Step::Drop("other"), Step::Flush] {
        world.run(&step).expect("it works");
    }
    let stats = world.store.stats().expect("it is counted");
    assert_eq!((stats.keys, stats.tables, stats.keyspaces), (0, 0, 1));
}

/// A log that was made longer than its content has zeros after its end if the process ends without closing
/// it.
#[test]
fn zeros_behind_the_end_of_a_log_are_no_damage() {
    let options = options(Durability::Sync);
    let mut disk = Simulated::new();
    let mut states = beginning();
    for round in 0..5 {
        let world = World::open(&disk, &options).expect("it opens");
        for step in [Step::Set("default", round, 40), Step::Sync, Step::Delete("other", round)] {
            follow(&mut states, &step);
            world.run(&step).expect("it works");
        }
        let killed = disk.kill();
        drop(world);
        for (name, mut bytes) in killed.files() {
            if name.kind == Kind::Log {
                bytes.extend(vec![0; 100_000 >> round]);
                killed.replace(name, bytes);
            }
        }
        disk = killed;
        let world = World::open(&disk, &options).expect("it opens");
        assert_eq!(Some(&world.content().expect("it is read")), states.last());
    }
}

/// Changes of the level `Memory` reach the system also while the thread that writes them makes tables.
#[test]
fn what_waits_in_memory_is_written_during_long_work() {
    let options = Options { memtable_bytes: 1 << 20, ..options(Durability::Memory) };
    let disk = Simulated::new();
    let world = World::open(&disk, &options).expect("it opens");
    let many = 2 * LOOK;
    (0..many).for_each(|number| world.set_number(number).expect("it works"));
    let mut order = world.store.order();
    world.store.freeze(&mut order).expect("it works");
    drop(order);
    world.set_number(many).expect("it works");
    assert!(world.store.log().is_queued(), "it waits in memory");
    assert!(world.store.step().expect("nothing fails"), "the first changes become a table");
    assert!(!world.store.log().is_queued(), "it was written meanwhile");
    let world = World::open(&disk.kill(), &options).expect("it opens");
    let view = world.store.view(&world.store.keyspace("default").expect("it is there"));
    assert!(view.get(&many.to_be_bytes()).expect("it reads").is_some());
}
