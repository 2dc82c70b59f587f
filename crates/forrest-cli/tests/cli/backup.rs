//! `backup`: what its commands print, their exit codes, and what is left.

use crate::harness::Place;
use std::fs;

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
