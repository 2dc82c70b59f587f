//! A range that is kept open between two calls holds no files that were replaced meanwhile; one over a snapshot does,
//! as long as it is there.

use forrest::{Db, Range, View, WriteBatch};
use std::fs;
use tempfile::TempDir;

const KEYS: u32 = 5_000;
/// The store is written anew so often.
const ROUNDS: u8 = 3;

/// A store on disk, larger than its memtables and its tables.
struct Store {
    directory: TempDir,
    db: Db,
}

impl Store {
    fn new() -> Store {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("store");
        let builder = Db::builder().memtable_bytes(128 << 10).batch_bytes_max(1 << 20).table_bytes(64 << 10);
        let db = builder.open(path.to_str().expect("it is text")).expect("a store on disk");
        let store = Store { directory, db };
        store.write(0);
        store
    }

    /// Gives every key a new value, and compacts the store.
    fn write(&self, round: u8) {
        for first in (0..KEYS).step_by(100) {
            let mut batch = WriteBatch::new();
            for key in first..first + 100 {
                batch.set(key.to_be_bytes(), [round; 100]);
            }
            self.db.write(batch).expect("it is written");
        }
        self.db.compact().expect("compacted");
    }

    fn rewrite(&self) {
        (1..=ROUNDS).for_each(|round| self.write(round));
    }

    /// Bytes of all its files.
    fn bytes(&self) -> u64 {
        let entries = fs::read_dir(self.directory.path().join("store")).expect("a directory");
        entries.map(|entry| entry.expect("an entry").metadata().expect("its size").len()).sum()
    }
}

/// Bytes of a store that was rewritten while nobody read it.
fn bytes_alone() -> u64 {
    let store = Store::new();
    let once = store.bytes();
    store.rewrite();
    assert!(store.bytes() < once + once / 4, "{} bytes after {once}", store.bytes());
    store.bytes()
}

/// A key and the round in which its value was written.
fn pair(pair: Option<forrest::Result<forrest::Entry>>) -> Option<(u32, u8)> {
    let pair = pair?.expect("a pair");
    let value = pair.value_bytes().expect("its value");
    assert!(value.len() == 100 && value.iter().all(|byte| *byte == value[0]));
    Some((u32::from_be_bytes(pair.key().try_into().expect("4 bytes")), value[0]))
}

type Step = fn(&mut Range) -> Option<(u32, u8)>;

fn forward(range: &mut Range) -> Option<(u32, u8)> {
    pair(range.next())
}

fn backward(range: &mut Range) -> Option<(u32, u8)> {
    pair(range.next_back())
}

/// How many pairs come before and after the end of a refill, and within later ones.
const PAIRS: [u32; 4] = [1, 8, 100, 3_000];

#[test]
fn an_idle_range_holds_no_files_that_were_replaced() {
    let alone = bytes_alone();
    for pairs in PAIRS {
        let ways: [[Step; 2]; 3] = [[forward, forward], [backward, backward], [forward, backward]];
        for [first, last] in ways {
            let store = Store::new();
            let mut range = store.db.range(..);
            let mut keys = vec![0; KEYS as usize];
            let mut next = |step: Step| {
                let (key, round) = step(&mut range)?;
                keys[key as usize] += 1;
                Some(round)
            };
            for turn in 0..pairs {
                assert_eq!(next(if turn % 2 == 0 { first } else { last }), Some(0));
            }
            store.rewrite();
            let held = store.bytes();
            assert!(held < alone + alone / 4, "{held} bytes after {pairs} pairs, {alone} without a range");
            // What was fetched before is as it was then. The end that goes on may meet what the other one fetched.
            let rest: Vec<u8> = std::iter::from_fn(|| next(first)).collect();
            assert!(rest.iter().all(|round| [0, ROUNDS].contains(round)));
            assert!(rest.contains(&ROUNDS), "{pairs} pairs");
            assert!(keys.iter().all(|count| *count == 1), "{pairs} pairs");
        }
    }
}

#[test]
fn many_idle_ranges_hold_no_files_that_were_replaced() {
    let alone = bytes_alone();
    let store = Store::new();
    let mut ranges = Vec::new();
    for turn in 0..300 {
        let mut range = store.db.range(..);
        assert_eq!((0..20).filter_map(|_| forward(&mut range)).count(), 20);
        // Others have ended by then.
        if turn % 3 == 0 {
            ranges.push(range);
        }
    }
    std::thread::scope(|scope| {
        let other = || {
            let mut range = store.db.range(..).rev();
            assert!(range.by_ref().take(20).all(|pair| pair.is_ok()));
            range
        };
        let range = scope.spawn(other).join().expect("it does not panic");
        store.rewrite();
        assert!(store.bytes() < alone + alone / 4, "{} bytes, {alone} without ranges", store.bytes());
        assert_eq!(range.count(), KEYS as usize - 20);
    });
    for range in ranges {
        assert_eq!(range.count(), KEYS as usize - 20);
    }
}

#[test]
fn a_range_over_a_snapshot_still_reads_it() {
    let alone = bytes_alone();
    for step in [forward as Step, backward] {
        for pairs in PAIRS {
            let store = Store::new();
            let snapshot = store.db.snapshot().expect("a snapshot");
            let view: &View = &snapshot;
            let mut range = view.range(..);
            drop(snapshot);
            assert!((0..pairs).all(|_| step(&mut range).is_some_and(|(_, round)| round == 0)));
            store.rewrite();
            // The range is all that is left of the snapshot.
            assert!(store.bytes() > alone + alone / 2, "{} bytes, {alone} without a snapshot", store.bytes());
            let rest = std::iter::from_fn(|| step(&mut range)).map(|(_, round)| round);
            assert!(rest.eq((pairs..KEYS).map(|_| 0)));
            drop(range);
            assert!(store.bytes() < alone + alone / 4, "{} bytes, {alone} alone", store.bytes());
        }
    }
}
