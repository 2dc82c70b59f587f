//! `tail -f ops`: the changes of a store make another one that is the same.

use crate::harness::Place;
use crate::kill::{PATIENCE, lines};
use forrest::Db;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

/// Enough sorted pairs, so that `load` ingests most of them.
const PAIRS: u32 = 40_000;

fn sorted(value: &str) -> String {
    (0..PAIRS).map(|at| format!("key {at:06}\t{value} {at}\n")).collect()
}

/// The changes do not have the pairs of an ingest. Later changes of them come once more.
#[test]
fn a_twin_has_what_was_ingested() {
    let place = Place::new();
    place.write("first.txt", sorted("first"));
    place.write("second.txt", sorted("second"));
    let run = |line: &str| {
        let words = ["--db", "store", "--history", "true", "-q"].into_iter().chain(line.split(','));
        place.run(&words.collect::<Vec<_>>()).ok();
    };
    let ops = || {
        let ops = place.run(&["tail", "store", "-f", "ops"]).ok().to_owned();
        place.write("changes.ops", &ops);
        place.run(&["--db", "twin", "-q", "load", "changes.ops"]).ok();
        let dump = |store| place.run(&["--db", store, "dump"]).ok().to_owned();
        let (own, twin) = (dump("store"), dump("twin"));
        assert!(own == twin, "{} and {} lines", own.lines().count(), twin.lines().count());
        std::fs::remove_dir_all(place.path().join("twin")).unwrap();
        ops
    };
    run("set,key 000007,before");
    run("load,first.txt");
    assert!(ops().contains("\n# ingest \"key "));
    run("set,key 039000,after");
    run("delete,key 039001");
    run("delete-range,--from,key 039990");
    run("set,other,kept");
    ops();
    run("load,second.txt");
    run("delete,key 000001");
    run("-k,two words,load,first.txt");
    run("-k,two words,delete,key 039002");
    let ops = ops();
    assert!(ops.contains("\n# \"@two words\" ingest \"key "), "the comment of a keyspace");
    assert!(ops.contains("\n\"@two words\" set \"key 039003\" \"first 39003\"\n"), "a pair of a keyspace");
}

/// A process that has followed from the beginning sees what the one that writes ingests.
#[test]
fn an_ingest_is_followed_beside_the_writer() {
    let place = Place::new();
    place.write("sorted.txt", sorted("value"));
    let writer = ["--db", "store", "--history", "true", "-q", "shell"];
    let mut writer = place.command(&writer).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = writer.stdin.take().unwrap();
    let answers = lines(&mut writer);
    input.write_all(b"set oak Quercus\nget oak\n").unwrap();
    assert_eq!(answers.recv_timeout(PATIENCE).unwrap(), "Quercus");
    let tail = ["tail", "store", "-f", "ops", "--follow"];
    let mut tail = place.command(&tail).stdout(Stdio::piped()).spawn().unwrap();
    let changes = lines(&mut tail);
    assert_eq!(changes.recv_timeout(PATIENCE).unwrap(), "set oak Quercus");
    input.write_all(b"load sorted.txt\nset yew Taxus\n").unwrap();
    let mut pairs = 0;
    loop {
        match changes.recv_timeout(PATIENCE).unwrap() {
            change if change == "set yew Taxus" => break,
            change => pairs += u32::from(change.starts_with("set ")),
        }
    }
    assert!(pairs >= PAIRS, "{pairs} pairs");
    drop(input);
    assert!(writer.wait().unwrap().success());
    tail.kill().unwrap();
    tail.wait().unwrap();
}

/// Pairs keep the times at which they expire. Those of a keyspace that is gone are not there.
#[test]
fn what_was_ingested_is_printed_as_it_is_now() {
    let place = Place::new();
    let path = place.path().join("store");
    let db = Db::builder().history(true).open(path.to_str().unwrap()).unwrap();
    for name in ["expiring", "gone"] {
        let space = db.keyspace(name).unwrap();
        if name == "expiring" {
            space.set_ttl(Some(Duration::from_secs(86_400))).unwrap();
        }
        let mut ingest = space.ingest().unwrap();
        ingest.put("ash", "Fraxinus").unwrap();
        ingest.put("oak", "Quercus").unwrap();
        ingest.finish().unwrap();
    }
    db.keyspace("expiring").unwrap().delete("ash").unwrap();
    db.drop_keyspace("gone").unwrap();
    drop(db);
    let ops = place.run(&["tail", "store", "-f", "ops"]).ok().to_owned();
    let now: Vec<&str> = ops.lines().filter(|line| line.contains("set")).collect();
    assert!(now.len() == 1 && now[0].starts_with("@expiring set-until oak Quercus "), "{ops}");
    assert!(ops.contains("# @gone ingest ash oak\n@expiring delete ash\n# @gone drop-keyspace\n"), "{ops}");
}
