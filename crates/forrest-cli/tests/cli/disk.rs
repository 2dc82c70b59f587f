//! Stores on disk: written pairs stay, an open or damaged store is reported in one line, and `verify` finds damage.
//! (`scripts/disk.txt` has the plain uses.)

use crate::harness::{Place, Ran};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

/// A store with tables and logs.
fn filled(place: &Place) {
    let lines: String = (0..5_000).map(|i| format!("key {i:05}\tvalue {i}\n")).collect();
    place.write("in.txt", lines);
    place.run(&["--db", "store", "load", "in.txt", "-q"]).ok();
    place.run(&["--db", "store", "compact", "-q"]).ok();
    place.run(&["--db", "store", "set", "more", "in the log"]).ok();
}

/// The files of the store that end so, in order.
fn files(place: &Place, kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.path().join("store")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == kind)).collect();
    files.sort();
    files
}

#[track_caller]
fn assert_one_line(ran: &Ran, code: i32, says: &[&str]) {
    assert_eq!((ran.code, ran.text()), (Some(code), ""), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    for part in says {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

#[test]
fn verify_counts_what_is_there() {
    let place = Place::new();
    filled(&place);
    let ran = place.run(&["verify", "store"]);
    assert!(ran.ok().contains("5,001 keys in 1 keyspace"), "{}", ran.text());
    let json: serde_json::Value =
        serde_json::from_str(place.run(&["verify", "store", "-f", "jsonl"]).ok()).unwrap();
    assert_eq!((&json["whole"], &json["keys"]), (&true.into(), &5_001.into()));
    assert_one_line(&place.run(&["verify"]), 4, &["unsupported", "memory:"]);
    assert_one_line(&place.run(&["compact"]), 4, &["unsupported", "memory:"]);
}

/// Sorted pairs are ingested. A key out of order, an operation, another keyspace or a wrong line ends that, and nothing
/// that was read before is lost.
#[test]
fn sorted_pairs_are_ingested_as_far_as_they_are_sorted() {
    let place = Place::new();
    let lines =
        |from: u32, to: u32| -> String { (from..to).map(|i| format!("key {i:06}\tvalue\n")).collect() };
    place.write("sorted.txt", lines(0, 40_000));
    place.run(&["--db", "store", "load", "sorted.txt", "-q"]).ok();
    assert_eq!(files(&place, "table").len(), 2, "what was set first, and what was ingested");
    assert_eq!(place.run(&["--db", "store", "count"]).ok(), "40000\n");
    // The last line wins, and the line before the wrong one is there.
    let rest = format!("{}key 000001\tother\n{}wrong\n", lines(40_000, 70_000), lines(80_000, 90_000));
    place.write("rest.txt", rest);
    let ran = place.run(&["--db", "store", "load", "rest.txt"]);
    assert!(ran.stderr.contains("40,001 pairs loaded before this, which stay"), "{}", ran.stderr);
    assert!(ran.stderr.contains("rest.txt:40002"), "{}", ran.stderr);
    assert_eq!(place.run(&["--db", "store", "count"]).ok(), "80000\n");
    assert_eq!(place.run(&["--db", "store", "get", "key 000001"]).ok(), "other\n");
    // In two keyspaces, with an operation between.
    let two: String = ["a", "b"]
        .iter()
        .flat_map(|name| {
            (0..30_000)
                .map(move |i| format!("{{\"keyspace\":\"{name}\",\"key\":\"{i:05}\",\"value\":\"1\"}}\n"))
        })
        .collect();
    place.write("two.jsonl", two);
    place.run(&["--db", "store", "load", "two.jsonl", "-q"]).ok();
    for name in ["a", "b"] {
        assert_eq!(place.run(&["--db", "store", "--keyspace", name, "count"]).ok(), "30000\n");
    }
    place.run(&["verify", "store"]).ok();
}

#[test]
fn few_descriptors_are_enough_for_many_tables() {
    let place = Place::new();
    let sizes = "--keys 4000 --memtable-bytes 65536 --table-bytes 4096";
    let line = format!("forrest stress store --seconds 2 {sizes} --open-files 4");
    assert!(place.shell(&line).ok().contains("stale = 0, wrong = 0, torn = 0, unordered = 0"));
    let tables = files(&place, "table").len();
    assert!(tables > 32, "{tables} tables");
    assert!(place.shell("ulimit -n 32 && forrest verify store").ok().contains("keyspaces"));
    let stat = place.run(&["stat", "--db", "store", "-f", "jsonl"]);
    let json: serde_json::Value = serde_json::from_str(stat.ok()).unwrap();
    // Not as many as before: a store that is opened may merge tables.
    let [open, held] = ["open_files", "tables"].map(|name| json[name].as_u64());
    assert!(held > Some(32) && open >= held, "{json}");
    // If the store has no file of its own to close, the lack of descriptors is an ordinary error.
    let mut refused = 0;
    for few in 4..12 {
        let ran = place.shell(&format!("ulimit -n {few} && forrest verify store"));
        if ran.code != Some(0) && !ran.stderr.contains("error while loading shared libraries") {
            assert_one_line(&ran, 4, &["Too many open files"]);
            refused += 1;
        }
    }
    assert!(refused > 0);
}

#[test]
fn stat_tells_of_the_disk() {
    let place = Place::new();
    filled(&place);
    let ran = place.run(&["--db", "store", "stat"]);
    assert!(ran.ok().contains("store store\n") && ran.text().contains("tables on disk"), "{}", ran.text());
    let json: serde_json::Value =
        serde_json::from_str(place.run(&["--db", "store", "stat", "-f", "jsonl"]).ok()).unwrap();
    assert_eq!((&json["tables"], &json["keys"]), (&1.into(), &5_001.into()));
    assert!(json["file_bytes"].as_u64().unwrap() > 60_000);
}

#[test]
fn tables_are_compressed_from_then_on() {
    let place = Place::new();
    place.write("in.txt", (0..5_000).map(|i| format!("key {i:05}\tvalue of a tree\n")).collect::<String>());
    place.run(&["--db", "store", "--compression", "lz4", "load", "in.txt", "-q"]).ok();
    place.run(&["--db", "store", "compact", "-q"]).ok();
    let json = || -> serde_json::Value {
        serde_json::from_str(place.run(&["--db", "store", "stat", "-f", "jsonl"]).ok()).unwrap()
    };
    let stats = json();
    let [stored, plain] = ["table_bytes", "table_plain_bytes"].map(|name| stats[name].as_u64().unwrap());
    assert!(stored * 2 < plain, "{stats}");
    let refused = place.run(&["--db", "store", "--compression", "gzip", "stat"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("none, lz4 or zstd"), "{}", refused.stderr);
    place.run(&["--db", "store", "--compression", "none", "compact", "-q"]).ok();
    let stats = json();
    assert_eq!(stats["table_bytes"], stats["table_plain_bytes"], "{stats}");
}

#[test]
fn large_values_stay_in_the_log() {
    let place = Place::new();
    let value = "Quercus robur ".repeat(100);
    place.write("in.txt", (0..1_000).map(|i| format!("key {i:05}\t{value}\n")).collect::<String>());
    let large = ["--db", "store", "--large-values", "1K"];
    place.run(&[&large[..], &["load", "in.txt", "-q"]].concat()).ok();
    place.run(&[&large[..], &["compact", "-q"]].concat()).ok();
    let stats: serde_json::Value =
        serde_json::from_str(place.run(&["--db", "store", "stat", "-f", "jsonl"]).ok()).unwrap();
    let [logs, live, tables] =
        ["value_log_bytes", "value_log_live_bytes", "table_bytes"].map(|name| stats[name].as_u64().unwrap());
    assert!(logs >= live && live == 1_400_000 && tables < 200_000, "{stats}");
    assert_eq!(place.run(&["--db", "store", "get", "key 00007"]).ok().trim_end_matches('\n'), value);
    let text = place.run(&["--db", "store", "stat"]).ok().to_owned();
    assert!(text.contains("logs of large values"), "{text}");
    let text = place.run(&["--db", "store", "stat", "--prometheus"]).ok().to_owned();
    assert!(text.contains(&format!("\nforrest_value_log_bytes {logs}\n")), "{text}");
}

#[test]
fn damage_is_told_with_file_and_offset() {
    for kind in ["table", "log", "manifest"] {
        let place = Place::new();
        filled(&place);
        let file = files(&place, kind).pop().expect("there is one");
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let mut bytes = fs::read(&file).unwrap();
        // After the header, where a torn end could not explain the damage.
        let at = if kind == "table" { bytes.len() / 2 } else { 30 };
        bytes[at] ^= 1;
        fs::write(&file, bytes).unwrap();
        let ran = place.run(&["verify", "store"]);
        if kind == "log" && ran.code == Some(0) {
            // Damage in the part that was not synced is treated as a torn end: see docs/durability.md.
            continue;
        }
        assert_one_line(&ran, 3, &["corrupt", "store", &name]);
    }
}

#[test]
fn a_missing_table_is_damage_where_it_is_needed() {
    let place = Place::new();
    filled(&place);
    fs::remove_file(files(&place, "table").pop().unwrap()).unwrap();
    for arguments in [
        &["verify", "store"][..],
        &["--db", "store", "get", "absent"],
        &["--db", "store", "scan"],
        &["checkpoint", "store", "copy"],
        &["compact", "store"],
    ] {
        assert_one_line(&place.run(arguments), 3, &["corrupt", ".table is missing"]);
    }
    // This key is in the log.
    assert_eq!(place.run(&["--db", "store", "get", "more"]).ok(), "in the log\n");
}

#[test]
fn a_store_in_use_is_busy() {
    let place = Place::new();
    let mut command = place.command(&["--db", "store", "shell"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"set a 1\nget a\n").unwrap();
    let mut written = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    written.read_line(&mut line).unwrap();
    assert_eq!(line, "1\n");
    let process = format!("process {}", child.id());
    assert_one_line(
        &place.run(&["--db", "store", "set", "b", "2"]),
        4,
        &["busy", "store", &process, "read-only"],
    );
    // A command that changes nothing works all the same.
    let asked = place.run(&["--db", "store", "get", "a"]);
    assert_eq!((asked.code, asked.text()), (Some(0), "1\n"));
    assert!(asked.stderr.contains("another process has the store open"), "{}", asked.stderr);
    assert_one_line(
        &place.run(&["--db", "store", "--read-only", "set", "b", "2"]),
        4,
        &["unsupported", "read"],
    );
    // A shell sees the state of when it was opened, until it refreshes.
    let mut reader = place.command(&["--db", "store", "--read-only", "shell"]);
    let mut reader = reader.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) =
        (reader.stdin.take().unwrap(), BufReader::new(reader.stdout.take().unwrap()));
    let mut ask = |line: &str| {
        input.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        answer
    };
    assert_eq!(ask("count\n"), "1\n");
    stdin.write_all(b"set b 2\nget b\n").unwrap();
    let mut line = String::new();
    written.read_line(&mut line).unwrap();
    assert_eq!((ask("count\n").as_str(), ask("refresh\ncount\n").as_str()), ("1\n", "2\n"));
    drop(input);
    assert!(reader.wait().unwrap().success());
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(place.run(&["--db", "store", "get", "a"]).ok(), "1\n");
}

#[test]
fn what_was_loaded_before_a_mistake_stays() {
    let place = Place::new();
    place.write("bad.txt", "a\t1\nb\n");
    assert_eq!(place.run(&["--db", "store", "load", "bad.txt", "--sync"]).code, Some(4));
    assert_eq!(place.run(&["--db", "store", "scan"]).ok(), "a\t1\n");
}

/// What stays of a load that fails is synced, as it is after a command that fails.
#[test]
fn what_stays_of_a_failed_load_survives_power_loss() {
    let place = Place::new();
    place.write("bad.txt", "a\t1\nb\n");
    let durable = |store: &str| place.run(&["tail", store, "--durability", "sync"]).ok().to_owned();
    for arguments in [&["load", "bad.txt"][..], &["--load", "bad.txt", "count"]] {
        for sync in [&["--sync"][..], &[]] {
            let store = format!("store-{}-{}", arguments.len(), sync.len());
            let options = ["--db", &store, "--history", "true"];
            assert_eq!(place.run(&[&options[..], arguments, sync].concat()).code, Some(4));
            assert_eq!(place.run(&["--db", &store, "scan"]).ok(), "a\t1\n");
            assert_eq!(durable(&store), if sync.is_empty() { "" } else { "1\tset a 1\n" }, "{store}");
        }
    }
}

/// A dump is written beside its file, under a name that no file has.
#[test]
fn a_dump_touches_no_other_file() {
    let place = Place::new();
    let path = |name: &str| place.path().join(name);
    place.run(&["--db", "store", "set", "oak", "Quercus"]).ok();
    place.write("out.txt.partial", "mine");
    fs::write(path("out.txt"), "old").unwrap();
    fs::set_permissions(path("out.txt"), fs::Permissions::from_mode(0o640)).unwrap();
    place.shell("umask 022; forrest --db store dump out.txt && forrest --db store dump new.txt").ok();
    assert_eq!(fs::read_to_string(path("out.txt.partial")).unwrap(), "mine");
    let mode = |name: &str| fs::metadata(path(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("out.txt"), mode("new.txt")), (0o640, 0o644));
    let names = || {
        let entries = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
        entries.collect::<std::collections::BTreeSet<_>>()
    };
    let before = names();
    // A dump that fails leaves the file, and nothing else.
    let line = "ulimit -f 64; trap '' XFSZ; forrest --load large.txt dump out.txt";
    place.write("large.txt", (0..20_000).map(|i| format!("key {i:05}\tvalue {i}\n")).collect::<String>());
    let ran = place.shell(line);
    assert!(ran.code == Some(4) && ran.stderr.contains("cannot write out.txt"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(path("out.txt")).unwrap(), "oak\tQuercus\n");
    fs::remove_file(path("large.txt")).unwrap();
    assert_eq!(names(), before);
}

/// Of dumps to the same file at the same time, one stays whole.
#[test]
fn dumps_to_one_file_do_not_mix() {
    let place = Place::new();
    let content =
        |word: &str| -> String { (0..30_000).map(|i| format!("{word} {i:06}\t{word}\n")).collect() };
    for word in ["oak", "elm"] {
        place.write(format!("{word}.txt"), content(word));
    }
    for round in 0..5 {
        let dump = |word: &str| {
            let file = format!("{word}.txt");
            place.command(&["-q", "load", &file, "--dump", "out.txt"]).spawn().unwrap()
        };
        for mut child in ["oak", "elm", "oak", "elm"].map(dump) {
            assert!(child.wait().unwrap().success());
        }
        let out = fs::read_to_string(place.path().join("out.txt")).unwrap();
        assert!(out == content("oak") || out == content("elm"), "round {round}: mixed");
    }
}

#[test]
fn a_killed_shell_has_kept_what_it_answered() {
    let place = Place::new();
    let mut command = place.command(&["--db", "store", "shell"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"add n 41\nadd n\n").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!([(); 2].map(|()| lines.next().unwrap().unwrap()), ["41", "42"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.run(&["--db", "store", "get", "-i", "n"]).ok(), "42\n");
}
