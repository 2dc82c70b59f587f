//! What a power cut leaves of checkpoints: cuts at every I/O of a group that applies, builds snapshots, purges and
//! installs one. The group must open, and send a snapshot that has all that the log has not and nothing that the data
//! have not, with the data of its entry.
//!
//! Checkpoints are directories of the system, and the simulated disk has none. So the store is on the simulated disk,
//! and the test puts the directories there that may be left. A checkpoint has its name when it is whole and durable
//! (the gate `checkpoint` of the store on disk cuts the power at each I/O of that, and building one writes nothing to
//! the store). One that is removed may be there, or any part of it, under its name or the one it has meanwhile.

use super::checkpoints::{Pairs, current, sent};
use super::machine::{apply, entry, id, set};
use super::node::{block, builder};
use crate::{Log, State, Store, Types};
use forrest::simulated::{self, Simulated};
use forrest::{Db, Result};
use forrest_testing::sized;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;

#[derive(Clone)]
enum Step {
    Append(Range<u64>),
    Apply(Range<u64>),
    Build,
    Purge(u64),
    Background,
    /// Installs a snapshot of another node.
    Install,
}

const STEPS: [Step; 14] = [
    Step::Append(1..5),
    Step::Apply(1..4),
    Step::Build,
    Step::Append(5..9),
    Step::Apply(4..6),
    Step::Purge(2),
    Step::Build,
    Step::Apply(6..9),
    Step::Purge(5),
    Step::Background,
    Step::Build,
    Step::Purge(8),
    Step::Install,
    Step::Purge(20),
];

/// The data of a group with entries up to the last one.
fn pairs(last: u64) -> Pairs {
    (1..=last).map(|index| (format!("{index:03}"), "v".repeat(300))).collect()
}

fn entries(range: Range<u64>) -> Vec<crate::Entry> {
    range.map(|index| entry(index, &set(&format!("{index:03}"), &"v".repeat(300)))).collect()
}

/// The node whose snapshot is installed.
fn other() -> Result<(Store, Log, State)> {
    let store = Store::open_inline(Db::open("memory:")?)?;
    let (log, mut state) = store.group(1)?;
    block(apply(&mut state, entries(1..21)));
    Ok((store, log, state))
}

/// Does the steps until one fails, and returns how many were done. `build` makes checkpoints.
fn work(disk: &Simulated, mut build: impl FnMut()) -> usize {
    let run = || -> Result<(Store, Log, State, simulated::Background)> {
        let (db, background) = simulated::open_unattended(disk.clone(), &builder())?;
        let store = Store::open_inline(db)?;
        let (log, state) = store.group(1)?;
        Ok((store, log, state, background))
    };
    let Ok((_store, mut log, mut state, background)) = run() else { return 0 };
    let mut other = other().expect("it is in memory");
    let mut step = |step: &Step| -> io::Result<()> {
        match step {
            Step::Append(range) => {
                let appended = RaftLogStorageExt::<Types>::blocking_append(&mut log, entries(range.clone()));
                block(appended).map_err(io::Error::other)
            }
            Step::Apply(range) => {
                let applied = entries(range.clone()).into_iter().map(|entry| Ok((entry, None)));
                let applied: Vec<_> = applied.collect();
                block(RaftStateMachine::<Types>::apply(&mut state, futures_util::stream::iter(applied)))
            }
            Step::Build => {
                build();
                Ok(())
            }
            Step::Purge(last) => block(RaftLogStorage::<Types>::purge(&mut log, id(*last))),
            Step::Background => background.run().map_err(io::Error::other),
            Step::Install => {
                let sent = current(&mut other.2);
                block(RaftStateMachine::<Types>::install_snapshot(&mut state, &sent.meta, sent.snapshot))
            }
        }
    };
    STEPS.iter().position(|one| step(one).is_err()).unwrap_or(STEPS.len())
}

/// A checkpoint's files.
type Files = Vec<(String, Vec<u8>)>;

/// How much of a checkpoint is there.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Left {
    Nothing,
    Whole,
    /// Without each second file: those with even, or with odd places.
    Part(usize),
    /// The same under the name that it has while it is removed or made.
    PartAway(usize),
}

fn put(directory: &Path, number: usize, files: &Files, left: Left) {
    let name = format!("{number:016x}");
    let (name, rest) = match left {
        Left::Nothing => return,
        Left::Whole => (name, None),
        Left::Part(rest) => (name, Some(rest)),
        Left::PartAway(rest) => (format!("{name}.removed"), Some(rest)),
    };
    fs::create_dir_all(directory.join(&name)).expect("a directory");
    for (at, (file, bytes)) in files.iter().enumerate() {
        if rest.is_none_or(|rest| at % 2 == rest) {
            fs::write(directory.join(&name).join(file), bytes).expect("a file");
        }
    }
}

/// What may be left after some steps, of each checkpoint that was begun by then.
fn lefts(steps: usize) -> Vec<Vec<Left>> {
    const REMOVED: [Left; 5] = [Left::Nothing, Left::Whole, Left::Part(0), Left::Part(1), Left::PartAway(0)];
    let done = STEPS[..steps].iter().filter(|step| matches!(step, Step::Build)).count();
    let is_installed = STEPS[..steps].iter().any(|step| matches!(step, Step::Install));
    let is_installing = matches!(STEPS.get(steps), Some(Step::Install));
    let mut all = vec![vec![]];
    for number in 0..done {
        // The one before the last is removed when the last is there. Those before are gone.
        let may_be: &[Left] = match done - number {
            1 if is_installed || is_installing => &REMOVED,
            1 => &[Left::Whole],
            2 => &REMOVED,
            _ => &[Left::Nothing],
        };
        all = all.iter().flat_map(|one| may_be.iter().map(|left| [&one[..], &[*left]].concat())).collect();
    }
    if matches!(STEPS.get(steps), Some(Step::Build)) || (done > 0 && !is_installed) {
        // Another one is being made, at any later time.
        let unfinished = all.iter().map(|one| [&one[..], &[Left::PartAway(1)]].concat());
        all.extend(unfinished.collect::<Vec<_>>());
    }
    all
}

/// Opens the group, and checks the snapshot that it sends. Returns whether it is older than the data.
fn look(disk: &Simulated, checkpoints: &Path, what: &str) -> bool {
    let (db, _background) = simulated::open_unattended(disk.clone(), &builder()).expect("it opens");
    let store = Store::with(db, None, Some(checkpoints.to_owned())).unwrap_or_else(|e| panic!("{what}: {e}"));
    let (mut log, mut state) = store.group(1).unwrap_or_else(|error| panic!("{what}: {error}"));
    let applied = block(RaftStateMachine::<Types>::applied_state(&mut state)).expect("it can be read").0;
    let ends = block(RaftLogStorage::<Types>::get_log_state(&mut log)).expect("it can be read");
    let names = || fs::read_dir(checkpoints.join("0000000000000001")).map_or(0, Iterator::count);
    assert!(names() <= 1, "{what}: only the newest one is kept");
    let Some(applied) = applied else {
        assert_eq!(names(), 0, "{what}: one of a group without data");
        return false;
    };
    // Damage may be found while it is sent. Then it is given up.
    let found = sent(&mut state).or_else(|_| sent(&mut state));
    let (last, found) = found.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(last >= ends.last_purged_log_id && last <= Some(applied), "{what}: a snapshot of {last:?}");
    let last = last.expect("something was applied").index;
    assert_eq!(found, pairs(last), "{what}");
    last < applied.index
}

/// Cuts at every I/O, in steps of `every`; each state of the disk beside `most` of what may be left, in turn.
pub(super) fn cuts(every: usize, most: usize) {
    let disk = Simulated::new();
    let mut made: Vec<Files> = Vec::new();
    let files = |disk: &Simulated| -> Files {
        disk.kill().files().into_iter().map(|(name, bytes)| (name.to_string(), bytes)).collect()
    };
    assert_eq!(work(&disk, || made.push(files(&disk))), STEPS.len());
    // One that is not finished has some files.
    made.push(made[0].clone());
    let (mut looked, mut older, mut turn) = (0, 0, 0);
    for io in (0..disk.ios()).step_by(every) {
        let disk = Simulated::new();
        disk.cut_power_at(io);
        let steps = work(&disk, || {});
        let lefts = lefts(steps);
        for (state, after) in disk.crash_states(0, io).enumerate() {
            for _ in 0..most.min(lefts.len()) {
                let left = &lefts[turn % lefts.len()];
                turn += 1;
                let what = format!("cut at {io}, after {steps} steps, state {state}, checkpoints {left:?}");
                let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
                let directory = directory.expect("a directory");
                for (number, (left, files)) in left.iter().zip(&made).enumerate() {
                    put(&directory.path().join("0000000000000001"), number, files, *left);
                }
                let after = after.kill();
                let was_older = look(&after, directory.path(), &what);
                assert_eq!(look(&after.kill(), directory.path(), &what), was_older, "{what}, opened again");
                (looked, older) = (looked + 1, older + usize::from(was_older));
            }
        }
    }
    println!("{looked} states, in {older} of which a checkpoint older than the data was sent");
    assert!(looked > 50 && older > 0, "{looked} states, {older} with older snapshots");
}

#[test]
fn after_power_cuts_at_every_io() {
    cuts(sized(41, 11), 1);
}
