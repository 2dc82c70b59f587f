//! `--log-directory` and `move-log`: the log in a directory of its own.

use crate::harness::Place;

#[test]
fn a_log_has_a_directory_of_its_own_and_is_moved() {
    let place = Place::new();
    let with = |log: &'static str, words: &[&str]| {
        let store = ["--db", "store", "--log-directory", log];
        place.run(&[&store, words].concat())
    };
    with("fast", &["set", "oak", "Quercus"]).ok();
    assert_eq!(with("fast", &["get", "oak"]).ok(), "Quercus\n");
    assert_eq!(with("fast", &["--read-only", "get", "oak"]).ok(), "Quercus\n");
    for (ran, said) in [
        (place.run(&["--db", "store", "get", "oak"]), "fast"),
        (place.run(&["--db", "store", "--read-only", "get", "oak"]), "fast"),
        (with("slow", &["get", "oak"]), "slow"),
        (place.run(&["--log-directory", "fast", "count"]), "--log-directory is for"),
        (place.run(&["move-log", "none", "fast"]), "there is no store"),
        (place.run(&["move-log", "store", "store"]), "store itself"),
    ] {
        assert!(ran.code != Some(0) && ran.stderr.contains(said), "{}", ran.stderr);
    }
    place.run(&["move-log", "store", "slow"]).ok();
    assert_eq!(with("slow", &["get", "oak"]).ok(), "Quercus\n");
    let ran = place.run(&["salvage", "store", "copy"]);
    assert_eq!((ran.code, ran.text()), (Some(0), ""));
    place.run(&["move-log", "store"]).ok();
    assert_eq!(place.run(&["--db", "store", "get", "oak"]).ok(), "Quercus\n");
    assert!(with("slow", &["get", "oak"]).stderr.contains("move-log"));
}
