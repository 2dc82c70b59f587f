//! `backup`: what its commands print, their exit codes, and what is left.

use crate::harness::Place;
use crate::kill::lines;
use forrest::Db;
use forrest_base::random::Random;
use forrest_testing::{number, sized};
use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

#[test]
fn a_store_is_backed_up_listed_verified_restored_and_pruned() {
    let place = Place::new();
    let lines: String = (0..3000).map(|number| format!("key{number:05}\tvalue of {number}\n")).collect();
    place.write("in.txt", lines);
    place.run(&["--db", "store", "load", "in.txt"]).ok();
    place.run(&["compact", "store"]).ok();
    let first = place.run(&["backup", "create", "store", "backups"]).ok().trim().to_string();
    place.run(&["--db", "store", "set", "oak", "Quercus"]).ok();
    let ran = place.run(&["-f", "jsonl", "backup", "create", "store", "backups"]);
    let second: serde_json::Value = serde_json::from_str(ran.ok()).expect("it is JSON");
    let bytes = |backup: &serde_json::Value, field: &str| backup[field].as_u64().unwrap();
    assert!(bytes(&second, "new_bytes") < 10_000 && bytes(&second, "bytes") > 50_000, "{second}");

    let ran = place.run(&["backup", "list", "backups"]);
    let words: Vec<Vec<_>> = ran.ok().lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!((words.len(), words[0][0], words[1][0]), (2, &first[..], &second["id"].to_string()[..]));
    assert_eq!(words[1][1], second["time"]);
    assert!(words.iter().all(|words| words.len() == 4 && words[1].ends_with('Z')), "{words:?}");
    assert_eq!(place.run(&["backup", "verify", "backups"]).ok().matches("whole").count(), 2);

    fs::remove_dir_all(place.path().join("store")).unwrap();
    place.run(&["backup", "restore", "backups", "newest"]).ok();
    assert_eq!(place.run(&["--db", "newest", "get", "oak"]).ok(), "Quercus\n");
    place.run(&["backup", "restore", "backups", "oldest", "--id", &first]).ok();
    assert_eq!(place.run(&["--db", "oldest", "count"]).ok(), "3000\n");
    let again = place.run(&["backup", "restore", "backups", "oldest"]);
    assert_eq!(again.code, Some(2), "{}", again.stderr);

    assert_eq!(place.run(&["backup", "prune", "backups"]).code, Some(2), "which?");
    assert_eq!(place.run(&["backup", "prune", "backups", "--days", "1"]).ok(), "");
    assert_eq!(place.run(&["backup", "prune", "backups", "--keep", "1"]).ok().trim(), first);
    let entries = fs::read_dir(place.path().join("backups")).unwrap().map(|entry| entry.unwrap().path());
    let largest = entries.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = fs::read(&largest).unwrap();
    bytes[6000] ^= 1;
    fs::write(&largest, &bytes).unwrap();
    for command in ["verify backups", "restore backups damaged"] {
        let words: Vec<_> = ["backup"].into_iter().chain(command.split(' ')).collect();
        let ran = place.run(&words);
        assert_eq!(ran.code, Some(3), "{command}: {}", ran.stderr);
        assert!(ran.stderr.contains(largest.file_name().unwrap().to_str().unwrap()), "{}", ran.stderr);
    }
    assert!(!place.path().join("damaged").exists());
}

/// All backups are read, however many are damaged.
#[test]
fn verify_goes_on_after_a_damaged_backup() {
    let place = Place::new();
    let mut copies = Vec::new();
    let tables = || {
        let entries = fs::read_dir(place.path().join("backups")).into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| fs::metadata(path).unwrap().len() > 20_000).collect::<Vec<_>>()
    };
    for round in 0..3 {
        // Each backup has a table that no other has.
        let lines: String = (0..3000).map(|at| format!("key{at:05}\tvalue {at} of {round}\n")).collect();
        place.write("in.txt", lines);
        place.run(&["--db", "store", "load", "in.txt"]).ok();
        place.run(&["compact", "store"]).ok();
        place.run(&["backup", "create", "store", "backups"]).ok();
        let now = tables();
        copies.push(now.iter().find(|path| !copies.contains(*path)).expect("one is new").clone());
    }
    let verify = |format: &str| place.run(&["-f", format, "backup", "verify", "backups"]);
    assert_eq!(verify("text").ok().matches("whole").count(), 3);
    let damage = |at: usize| {
        let mut bytes = fs::read(&copies[at]).unwrap();
        bytes[6000] ^= 1;
        fs::write(&copies[at], &bytes).unwrap();
        copies[at].file_name().unwrap().to_str().unwrap().to_owned()
    };
    let first = damage(0);
    let ran = verify("text");
    let lines: Vec<&str> = ran.text().lines().collect();
    assert_eq!((ran.code, lines.len()), (Some(3), 3), "{ran:?}");
    assert!(lines[0].contains("\tdamaged: ") && lines[0].contains(&first), "{ran:?}");
    assert!(
        lines[1..].iter().all(|line| line.contains("\twhole\t")) && ran.stderr.contains(&first),
        "{ran:?}"
    );
    let second = damage(1);
    let ran = verify("jsonl");
    let lines: Vec<serde_json::Value> =
        ran.text().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!((ran.code, lines.len()), (Some(3), 3), "{ran:?}");
    assert!(lines[1]["damage"].as_str().unwrap().contains(&second) && lines[2]["bytes"].is_u64(), "{ran:?}");
    assert!(ran.stderr.contains("2 of 3 backups are damaged"), "{}", ran.stderr);
}

/// `kill -9` of `backup create`, `restore` and `prune` at random moments: each backup that is listed is whole and has
/// what the store had, and a store that is there was restored as a whole. `FORREST_SEED` sets the seed; the moments are
/// in time, so a seed repeats a run only nearly.
#[test]
fn killed_commands_leave_whole_backups() {
    let (place, mut random) = (Place::new(), Random(number("FORREST_SEED").unwrap_or(42)));
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let content = |name: &str| -> BTreeMap<Vec<u8>, Vec<u8>> {
        let db = Db::open(path(name)).expect("it opens");
        let entries = db.range(..).map(|entry| entry.expect("it can be read"));
        entries.map(|entry| (entry.key().to_vec(), entry.value().expect("it is there").to_vec())).collect()
    };
    let killed = |arguments: &[&str], moment: u64| {
        let mut child =
            place.command(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (lines, deadline) = (lines(&mut child), Instant::now() + Duration::from_micros(moment));
        let left = || deadline.saturating_duration_since(Instant::now());
        while !matches!(lines.recv_timeout(left()), Err(RecvTimeoutError::Disconnected)) && !left().is_zero()
        {
        }
        child.kill().unwrap();
        child.wait().unwrap().success()
    };
    let ids = || -> Vec<String> {
        let ran = place.run(&["backup", "list", "backups"]);
        if ran.stderr.contains("there are no backups") {
            return Vec::new();
        }
        ran.ok().lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    };
    // How long a command takes that is not killed.
    place.run(&["--db", "store", "set", "key", "value"]).ok();
    let begin = Instant::now();
    place.run(&["backup", "create", "store", "first"]).ok();
    let micros = begin.elapsed().as_micros() as u64 * 5 / 4;
    // What each backup must have, and how many commands did their work before they were killed.
    let (mut of_backups, mut done) = (BTreeMap::new(), [0, 0]);
    for round in 0..sized(8, 40) {
        let lines: String =
            (0..2_000).map(|at| format!("key{:05}\tvalue {at} of {round}\n", random.below(20_000))).collect();
        place.write("in.txt", lines);
        place.run(&["--db", "store", "load", "in.txt"]).ok();
        if round % 3 == 2 {
            place.run(&["compact", "store"]).ok();
        }
        let now = content("store");
        let is_done = killed(&["backup", "create", "store", "backups"], random.below(micros));
        done[usize::from(is_done)] += 1;
        let listed = ids();
        assert!(of_backups.keys().all(|id| listed.contains(id)), "one is lost");
        for id in &listed {
            of_backups.entry(id.clone()).or_insert_with(|| now.clone());
        }
        assert!(!is_done || of_backups[listed.last().expect("one was made")] == now);
        if listed.is_empty() {
            continue;
        }
        assert_eq!(place.run(&["backup", "verify", "backups"]).ok().matches("whole").count(), listed.len());
        let (id, to) = (&listed[random.below(listed.len() as u64) as usize], format!("restored-{round}"));
        let is_done = killed(&["backup", "restore", "backups", &to, "--id", id], random.below(micros));
        assert!(!is_done || place.path().join(&to).exists());
        if place.path().join(&to).exists() {
            assert!(content(&to) == of_backups[id], "backup {id}, restored by a command that was killed");
        }
        if round % 4 == 3 {
            killed(&["backup", "prune", "backups", "--keep", "3"], random.below(micros));
            let left = ids();
            assert!(left.len() >= 3.min(listed.len()) && left.iter().all(|id| listed.contains(id)));
            of_backups.retain(|id, _| left.contains(id));
        }
    }
    place.run(&["backup", "create", "store", "backups"]).ok();
    place.run(&["backup", "prune", "backups", "--keep", "2"]).ok();
    place.run(&["backup", "restore", "backups", "last"]).ok();
    assert!(content("last") == content("store"));
    assert!(done[0] > 0, "none was killed");
}
