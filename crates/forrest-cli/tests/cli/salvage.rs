//! `salvage`: the lines, the exit codes, and what is left.

use crate::harness::Place;
use std::fs;

#[test]
fn a_damaged_store_is_salvaged_and_the_losses_are_listed() {
    let place = Place::new();
    let lines: String = (0..3000).map(|number| format!("key{number:05}\tvalue of {number}\n")).collect();
    place.write("in.txt", lines);
    place.run(&["--db", "store", "load", "in.txt"]).ok();
    place.run(&["--db", "store", "-k", "other", "set", "oak", "Quercus"]).ok();
    place.run(&["compact", "store"]).ok();
    let ran = place.run(&["salvage", "store", "copy"]);
    assert_eq!((ran.code, ran.text()), (Some(0), ""));
    assert!(ran.stderr.contains("copy has 3,001 pairs in 2 keyspaces"), "{}", ran.stderr);
    assert!(place.run(&["--db", "copy", "verify"]).ok().starts_with("whole"));

    let tables = fs::read_dir(place.path().join("store")).unwrap().map(|entry| entry.unwrap().path());
    let largest = tables.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = fs::read(&largest).unwrap();
    bytes[6000] ^= 1;
    fs::write(&largest, &bytes).unwrap();
    assert_eq!(place.run(&["verify", "store"]).code, Some(3));
    let again = place.run(&["salvage", "store", "copy"]);
    assert_eq!(again.code, Some(2), "{}", again.stderr);
    let ran = place.run(&["salvage", "store", "rest"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("store is damaged"), "{}", ran.stderr);
    let file = largest.file_name().unwrap().to_str().unwrap();
    for line in ran.text().lines() {
        let words: Vec<_> = line.split('\t').collect();
        assert!(words.len() == 5 && words[0] == "default" && words[3] == file, "{line}");
        assert!(words[1].starts_with(['[', '(']) && words[2].ends_with([']', ')']), "{line}");
    }
    let count = ran.text().lines().count();
    assert!(count > 0 && count < 300, "{count}");
    assert!(place.run(&["--db", "rest", "verify"]).ok().starts_with("whole"));
    assert!(fs::read(&largest).unwrap() == bytes, "the old store was changed");

    let ran = place.run(&["-f", "jsonl", "-q", "salvage", "store", "json"]);
    assert_eq!(ran.code, Some(3));
    let objects: Vec<serde_json::Value> =
        ran.text().lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    let (totals, losses) = objects.split_last().unwrap();
    assert_eq!((&totals["lost"], losses.len()), (&count.into(), count));
    assert!(losses.iter().all(|loss| loss["file"] == file && loss["from"].is_string()), "{losses:?}");

    for name in fs::read_dir(place.path().join("store")).unwrap().map(|entry| entry.unwrap().path()) {
        if name.extension().is_some_and(|kind| kind == "manifest") {
            fs::remove_file(name).unwrap();
        }
    }
    let ran = place.run(&["salvage", "store", "nothing"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("no manifest can be read"), "{}", ran.stderr);
    let left = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with("nothing")));
}
