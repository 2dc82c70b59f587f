//! `kill -9` during a checkpoint: nothing or a complete store has its name, and leftovers do not disturb the next
//! attempt.

use crate::harness::Place;
use forrest::Db;
use std::fs;
use std::path::Path;
use std::process::Stdio;

const PAIRS: u32 = 10_000;
/// Number of checkpoints to kill before they are done.
const KILLED: usize = 8;
/// Maximum number of attempts, since a kill may come too late.
const ATTEMPTS_MAX: usize = 400;

fn value(number: u32) -> [u8; 100] {
    [number.to_le_bytes()[0]; 100]
}

/// A store of many tables.
fn make(path: &Path) {
    let builder = Db::builder().memtable_bytes(16 << 10).table_bytes(32 << 10);
    let db = builder.open(path.to_str().unwrap()).unwrap();
    for number in 0..PAIRS {
        db.set(number.to_be_bytes(), value(number)).unwrap();
    }
}

fn look(path: &Path) {
    let db = Db::open(path.to_str().unwrap()).expect("what has the name can be opened");
    let mut number = 0_u32;
    for entry in db.range(..) {
        let entry = entry.unwrap();
        assert!(
            entry.key() == number.to_be_bytes() && entry.value().unwrap() == value(number)[..],
            "pair {number}"
        );
        number += 1;
    }
    assert_eq!(number, PAIRS);
    db.verify().expect("nothing is damaged");
}

#[test]
fn a_killed_checkpoint_is_whole_or_not_there() {
    let place = Place::new();
    let [store, copy, unfinished] =
        ["store", "copy", "copy.checkpoint-unfinished"].map(|name| place.path().join(name));
    make(&store);
    let files = fs::read_dir(&store).unwrap().count();
    assert!(files > 20, "{files} files are too few for moments to differ");
    let mut killed = 0;
    for attempt in 0..ATTEMPTS_MAX {
        let mut command = place.command(&["checkpoint", "store", "copy"]);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        // Kill when the unfinished directory, new or left by the last kill, has this many files.
        let many = (attempt + 1) * files / KILLED % (files + 1);
        let filled = || fs::read_dir(&unfinished).map_or(0, Iterator::count);
        while child.try_wait().unwrap().is_none() && filled() < many {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        let is_done = child.wait().unwrap().success();
        assert!(!is_done || copy.exists(), "it is done, and nothing is there");
        if copy.exists() {
            look(&copy);
            fs::remove_dir_all(&copy).unwrap();
        }
        killed += usize::from(!is_done);
        if killed == KILLED {
            break;
        }
    }
    assert_eq!(killed, KILLED, "of {ATTEMPTS_MAX} attempts");
    let ran = place.run(&["checkpoint", "store", "copy"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    look(&copy);
    look(&store);
    assert!(!unfinished.exists(), "something is left");
}
