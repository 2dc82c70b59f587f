//! Logs in a directory of their own, on the real disk. Where the logs are must never be a way to lose them.

use crate::disk::{self, Kind, Name, Real, move_log};
use crate::salvage::salvage;
use crate::store::Store;
use forrest_engine::{Error, ErrorKind, Keyspace as _, Op, Options, Pages, Result, Store as _, View as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Places for stores and logs.
struct Places(TempDir);

impl Places {
    fn new() -> Places {
        Places(tempfile::tempdir().expect("there is room"))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().expect("it is there").join(name)
    }
}

fn options(logs: Option<&Path>) -> Options {
    Options {
        log_directory: logs.map(Path::to_owned),
        memtable_bytes: 1 << 20,
        cache_bytes: 1 << 20,
        pages: Pages::Plain,
        ..Options::default()
    }
}

fn open_with(at: &Path, options: &Options) -> Result<Store> {
    Store::at(at, options)
}

fn open(at: &Path, logs: Option<&Path>) -> Result<Store> {
    open_with(at, &options(logs))
}

fn set(store: &Store, key: &str) {
    let op = Op::Set { key: key.as_bytes(), value: b"there" };
    store.keyspace("default").and_then(|space| space.apply(op)).expect("it is set");
}

/// A closed store with one key.
fn make(at: &Path, logs: Option<&Path>, key: &str) {
    set(&open(at, logs).expect("it opens"), key);
}

/// A store with one key in a table and one in the log, which has a directory of its own.
fn in_both(at: &Path, logs: &Path) -> Store {
    let store = open(at, Some(logs)).expect("it opens");
    set(&store, "in a table");
    store.flush().expect("there is room");
    set(&store, "in the log");
    store
}

fn has(store: &Store, key: &str) -> bool {
    let space = store.keyspace("default").expect("it is there");
    space.view().contains(key.as_bytes()).expect("it can be read")
}

/// The files of a store in a directory that are logs, or that are not.
fn files(at: &Path, logs: bool) -> Vec<Name> {
    let entries = std::fs::read_dir(at).expect("it is there");
    let names = entries.filter_map(|entry| Name::parse(entry.unwrap().file_name().to_str()?));
    names.filter(|name| (name.kind == Kind::Log) == logs).collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("it is new");
    for entry in std::fs::read_dir(from).expect("it is there") {
        let entry = entry.expect("it is there");
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("it is copied");
    }
}

/// An error that names both directories.
fn refused(at: &Path, logs: Option<&Path>, names: [&Path; 2]) -> Error {
    let error = open(at, logs).err().expect("it must not open");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    for name in names {
        assert!(error.to_string().contains(name.to_str().unwrap()), "{error}");
    }
    let reading =
        open_with(at, &Options { read_only: true, ..options(logs) }).err().expect("it must not open");
    assert_eq!(reading.to_string(), error.to_string());
    error
}

#[test]
fn logs_are_apart_and_a_killed_store_comes_back() {
    let places = Places::new();
    let (at, logs) = (places.at("store"), places.at("logs"));
    let store = in_both(&at, &logs);
    assert!(files(&at, true).is_empty() && !files(&at, false).is_empty());
    assert!(!files(&logs, true).is_empty() && files(&logs, false).is_empty());
    // What a kill leaves, moved elsewhere.
    let (at_killed, logs_killed) = (places.at("killed"), places.at("killed logs"));
    copy(&at, &at_killed);
    copy(&logs, &logs_killed);
    drop(store);
    for (at, logs) in [(at, logs), (at_killed, logs_killed)] {
        for turn in 0..3 {
            let store = open(&at, Some(&logs)).unwrap();
            assert!(has(&store, "in a table") && has(&store, "in the log"));
            set(&store, &turn.to_string());
            store.verify().unwrap();
        }
        // Logs whose changes are in tables go.
        let store = open(&at, Some(&logs)).unwrap();
        store.flush().unwrap();
        assert_eq!(files(&logs, true).len(), 1);
        // From now on messages have the new path.
        drop(store);
        refused(&at, None, [&at, &logs]);
    }
}

#[test]
fn with_another_directory_or_none_it_is_not_opened() {
    let places = Places::new();
    let (at, logs, other, other_logs) =
        (places.at("store"), places.at("logs"), places.at("other"), places.at("other logs"));
    make(&at, Some(&logs), "oak");
    make(&other, Some(&other_logs), "ash");
    assert!(refused(&at, None, [&at, &logs]).to_string().contains("log_directory"));
    refused(&at, Some(&other_logs), [&logs, &other]);
    refused(&at, Some(&at), [&at, &logs]);
    refused(&at, Some(&places.at("missing")), [&places.at("missing"), &logs]);
    assert!(!places.at("missing").exists());
    std::fs::create_dir(places.at("empty")).unwrap();
    refused(&at, Some(&places.at("empty")), [&places.at("empty"), &logs]);
    // The device of the logs is not mounted.
    std::fs::rename(&logs, places.at("unmounted")).unwrap();
    refused(&at, Some(&logs), [&at, &logs]);
    std::fs::rename(places.at("unmounted"), &logs).unwrap();
    assert!(has(&open(&at, Some(&logs)).unwrap(), "oak"));

    // A store that is there gets no other place by the way.
    let plain = places.at("plain");
    make(&plain, None, "elm");
    let error = refused(&plain, Some(&places.at("new")), [&plain, &places.at("new")]);
    assert!(error.to_string().contains("move-log") && !places.at("new").exists());
    assert!(has(&open(&plain, None).unwrap(), "elm"));
}

#[test]
fn two_stores_do_not_share_a_directory() {
    let places = Places::new();
    let (at, logs) = (places.at("store"), places.at("logs"));
    let store = open(&at, Some(&logs)).unwrap();
    set(&store, "oak");
    let refuses = |logs: &Path, kind, said: &str| {
        let error = open(&places.at("second"), Some(logs)).err().expect("it must not open");
        assert!(error.kind() == kind && error.to_string().contains(said), "{error}");
    };
    refuses(&logs, ErrorKind::Busy, logs.to_str().unwrap());
    // A copy of the directory of the store alone.
    copy(&at, &places.at("copy"));
    assert_eq!(open(&places.at("copy"), Some(&logs)).err().unwrap().kind(), ErrorKind::Busy);
    drop(store);
    refuses(&logs, ErrorKind::InvalidArgument, at.to_str().unwrap());
    refuses(&at, ErrorKind::InvalidArgument, ".manifest");
    refuses(&places.at("second"), ErrorKind::InvalidArgument, "store itself");
    assert!(has(&open(&at, Some(&logs)).unwrap(), "oak"));
    // Only files of stores count.
    let mounted = places.at("mounted");
    std::fs::create_dir_all(mounted.join("lost+found")).unwrap();
    drop(open(&places.at("second"), Some(&mounted)).unwrap());
}

/// A crash between the files of the two directories.
#[test]
fn making_a_store_can_be_tried_again() {
    let places = Places::new();
    let (at, logs) = (places.at("store"), places.at("logs"));
    make(&at, Some(&logs), "oak");
    std::fs::remove_dir_all(&at).unwrap();
    let error = open(&at, Some(&logs)).err().expect("there are logs of a store that is gone");
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains(".log"), "{error}");
    files(&logs, true).iter().for_each(|log| std::fs::remove_file(logs.join(log.to_string())).unwrap());
    assert!(!has(&open(&at, Some(&logs)).unwrap(), "oak"));
    std::fs::write(at.join("LOG-DIRECTORY"), "nonsense").unwrap();
    assert_eq!(open(&at, Some(&logs)).err().unwrap().kind(), ErrorKind::Corrupt);
}

#[test]
fn readers_beside_a_writer_read_the_same_logs() {
    let places = Places::new();
    let (at, logs) = (places.at("store"), places.at("logs"));
    let writer = open(&at, Some(&logs)).unwrap();
    set(&writer, "oak");
    let reader = open_with(&at, &Options { read_only: true, ..options(Some(&logs)) }).unwrap();
    assert!(has(&reader, "oak"));
    for key in ["ash", "elm"] {
        set(&writer, key);
        assert!(!has(&reader, key));
        reader.refresh().unwrap();
        assert!(has(&reader, key));
        writer.flush().unwrap();
    }
    reader.refresh().unwrap();
    assert!(has(&reader, "elm"));
    drop(writer);
    let error = move_log(&at, None).unwrap_err();
    assert!(error.kind() == ErrorKind::Busy && error.to_string().contains("reads"), "{error}");
    drop(reader);
    move_log(&at, None).unwrap();
}

#[test]
fn a_checkpoint_has_its_logs_itself() {
    let places = Places::new();
    let (at, logs, copy) = (places.at("store"), places.at("logs"), places.at("copy"));
    let store = open(&at, Some(&logs)).unwrap();
    set(&store, "oak");
    store.flush().unwrap();
    set(&store, "ash");
    let error = store.checkpoint(&logs.join("copy")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    store.checkpoint(&copy).unwrap();
    drop(store);
    let copied = open(&copy, None).unwrap();
    assert!(has(&copied, "oak") && has(&copied, "ash"));
}

#[test]
fn salvage_finds_the_logs_or_tells_that_they_are_lost() {
    let places = Places::new();
    let (at, logs) = (places.at("store"), places.at("logs"));
    let store = in_both(&at, &logs);
    drop(store);
    let see = &mut |_| ControlFlow::Continue(());
    let whole = salvage(&at, None, &places.at("whole"), see).unwrap();
    assert_eq!((whole.pairs, whole.lost.len()), (2, 0));
    std::fs::remove_dir_all(&logs).unwrap();
    let rest = salvage(&at, None, &places.at("rest"), see).unwrap();
    assert_eq!(rest.pairs, 1);
    assert!(rest.lost.iter().any(|loss| loss.reason.contains(logs.to_str().unwrap())), "{:?}", rest.lost);
    assert!(has(&open(&places.at("rest"), None).unwrap(), "in a table"));
}

#[test]
fn logs_are_moved_from_one_place_to_another() {
    let places = Places::new();
    let (at, fast, faster) = (places.at("store"), places.at("fast"), places.at("faster"));
    let mut keys = Vec::new();
    let mut place: Option<&Path> = None;
    for to in [None, Some(&*fast), Some(&*fast), Some(&*faster), Some(&*fast), None, Some(&*faster), None] {
        let store = open(&at, place).unwrap();
        keys.push(keys.len().to_string());
        set(&store, keys.last().unwrap());
        assert_eq!(move_log(&at, to).unwrap_err().kind(), ErrorKind::Busy);
        drop(store);
        // What a crash left there at an earlier try.
        match to {
            None if place.is_some() => std::fs::write(at.join("00000001.log"), "old").unwrap(),
            _ => {}
        }
        move_log(&at, to).unwrap();
        let old = [Some(&*at), Some(&*fast), Some(&*faster)];
        for old in old.into_iter().flatten().filter(|old| *old != to.unwrap_or(&at) && old.exists()) {
            assert!(files(old, true).is_empty() && !old.join("STORE").exists(), "{}", old.display());
        }
        place = to;
        let store = open(&at, place).unwrap();
        assert!(keys.iter().all(|key| has(&store, key)));
        store.verify().unwrap();
    }
    // After a crash between naming the new place and removing the old logs, the old ones are not read.
    move_log(&at, Some(&fast)).unwrap();
    std::fs::write(at.join("00000001.log"), "old").unwrap();
    let store = open(&at, Some(&fast)).unwrap();
    assert!(keys.iter().all(|key| has(&store, key)));
    drop(store);
    assert!(!disk::list(&Real::open_damaged(&at, "").unwrap().0).unwrap().contains(&Name::log(1)));
    move_log(&at, Some(&fast)).unwrap();
    assert!(files(&at, true).is_empty());
    // Places that have something else stay as they are.
    let other = places.at("other");
    make(&other, Some(&faster), "oak");
    for to in [&other, &faster, &at] {
        assert_eq!(move_log(&at, Some(to)).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    assert!(has(&open(&other, Some(&faster)).unwrap(), "oak"));
    let none = move_log(&places.at("none"), None).unwrap_err();
    assert!(none.to_string().contains("there is no store"), "{none}");
}

/// A crash came after the store named the new place and before the old logs were removed.
#[test]
fn a_directory_that_was_left_is_cleared_by_the_next_call() {
    moves_are_finished();
}

pub(super) fn moves_are_finished() {
    for is_home in [true, false] {
        let places = Places::new();
        let (at, fast, kept, faster) =
            (places.at("store"), places.at("fast"), places.at("kept"), places.at("faster"));
        let to = (!is_home).then_some(&*faster);
        make(&at, Some(&fast), "oak");
        copy(&fast, &kept);
        let old = std::fs::read(at.join("LOG-DIRECTORY")).unwrap();
        move_log(&at, to).unwrap();
        assert!(!at.join("OLD-LOG-DIRECTORY").exists());
        std::fs::remove_dir_all(&fast).unwrap();
        std::fs::rename(&kept, &fast).unwrap();
        std::fs::write(at.join("OLD-LOG-DIRECTORY"), old).unwrap();
        assert!(has(&open(&at, to).unwrap(), "oak"));
        move_log(&at, to).unwrap();
        assert!(files(&fast, true).is_empty() && !fast.join("STORE").exists());
        assert!(!at.join("OLD-LOG-DIRECTORY").exists());
        // It may be used again.
        move_log(&at, Some(&fast)).unwrap();
        assert!(has(&open(&at, Some(&fast)).unwrap(), "oak"));
    }
}

/// The crash came before the store named the new place: the logs are where they were.
#[test]
fn a_directory_that_was_not_left_yet_keeps_its_logs() {
    logs_stay_until_they_moved();
}

pub(super) fn logs_stay_until_they_moved() {
    let places = Places::new();
    let (at, fast, faster) = (places.at("store"), places.at("fast"), places.at("faster"));
    make(&at, Some(&fast), "oak");
    std::fs::copy(at.join("LOG-DIRECTORY"), at.join("OLD-LOG-DIRECTORY")).unwrap();
    move_log(&at, Some(&fast)).unwrap();
    assert!(has(&open(&at, Some(&fast)).unwrap(), "oak") && !at.join("OLD-LOG-DIRECTORY").exists());
    // What was left has become another store's.
    std::fs::copy(at.join("LOG-DIRECTORY"), at.join("OLD-LOG-DIRECTORY")).unwrap();
    let old = std::fs::read(at.join("OLD-LOG-DIRECTORY")).unwrap();
    move_log(&at, Some(&faster)).unwrap();
    let other = places.at("other");
    make(&other, Some(&fast), "elm");
    std::fs::write(at.join("OLD-LOG-DIRECTORY"), old).unwrap();
    move_log(&at, Some(&faster)).unwrap();
    assert!(has(&open(&other, Some(&fast)).unwrap(), "elm"));
}

/// A move that a crash ended left a part of a log beside the tables. Before the first change, the logs in use are
/// written again, not that one.
#[test]
fn what_was_read_is_settled_in_the_log_directory() {
    let places = Places::new();
    let (at, logs) = (places.at("store"), places.at("logs"));
    make(&at, Some(&logs), "oak");
    for name in files(&logs, true) {
        std::fs::write(at.join(name.to_string()), "a part").unwrap();
    }
    let store = open(&at, Some(&logs)).unwrap();
    set(&store, "elm");
    store.sync().unwrap();
    drop(store);
    let store = open(&at, Some(&logs)).unwrap();
    assert!(has(&store, "oak") && has(&store, "elm"));
}

/// The store that has logs in a directory was renamed, and another one is where it was.
#[test]
fn a_move_removes_no_logs_of_another_store() {
    let places = Places::new();
    let (at, renamed, logs) = (places.at("store"), places.at("renamed"), places.at("logs"));
    make(&at, Some(&logs), "oak");
    std::fs::rename(&at, &renamed).unwrap();
    make(&at, None, "elm");
    assert_eq!(move_log(&at, Some(&logs)).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(has(&open(&renamed, Some(&logs)).unwrap(), "oak"));
    // What a move of this store has left is removed.
    let other = places.at("other");
    move_log(&at, Some(&other)).unwrap();
    move_log(&at, None).unwrap();
    std::fs::write(other.join("STORE"), format!("remixdb logs 1\n{:016x}\n{}\n", 7, at.display())).unwrap();
    std::fs::write(other.join("00000001.log"), "a part").unwrap();
    assert_eq!(move_log(&at, Some(&other)).unwrap_err().kind(), ErrorKind::InvalidArgument);
    std::fs::write(other.join("MOVING"), "").unwrap();
    move_log(&at, Some(&other)).unwrap();
    assert!(!other.join("MOVING").exists() && has(&open(&at, Some(&other)).unwrap(), "elm"));
}
