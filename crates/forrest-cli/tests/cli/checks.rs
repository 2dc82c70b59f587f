//! `stress`, and `crash` in a loop.

use crate::harness::{Place, Ran};
use crate::terminal::Terminal;
use std::fs;

/// The number that a line of the table of `stress` ends in, before the rate.
fn calls(ran: &Ran, operation: &str) -> u64 {
    let line = ran.text().lines().find_map(|line| line.strip_prefix(&format!("   {operation:<22}")));
    let line = line.unwrap_or_else(|| panic!("no {operation} in {}", ran.text()));
    line.split_whitespace().next().unwrap().replace(',', "").parse().unwrap()
}

#[test]
fn stress_finds_nothing_stale() {
    let place = Place::new();
    let arguments = ["stress", "dir", "--seconds", "2", "--threads", "4", "--keys", "2000"];
    let small = ["--memtable-bytes", "65536", "--table-bytes", "100000"];
    let ran = place.run(&[&arguments[..], &small].concat());
    assert!(ran.ok().contains("stale = 0, wrong = 0, torn = 0, unordered = 0"), "{}", ran.text());
    for operation in ["set", "delete", "add", "get", "scan", "snapshot and 2 gets"] {
        assert!(calls(&ran, operation) > 0, "{operation}: {}", ran.text());
    }
    assert!(!ran.text().contains(" 0 tables"), "nothing was written out: {}", ran.text());
    assert_eq!(ran.stderr, "");
    // The same store once more, as it was left.
    let ran = place.run(&["stress", "dir", "--seconds", "1", "--keys", "2000", "-f", "jsonl"]);
    let json: serde_json::Value = serde_json::from_str(ran.ok()).unwrap();
    assert_eq!((&json["stale"], &json["wrong"]), (&0.into(), &0.into()));
    assert!(json["get"].as_u64().unwrap() > 0);
    assert!(place.run(&["verify", "dir"]).ok().contains("2 keyspaces"));
}

#[test]
fn stress_leaves_no_temporary_store_and_ignores_the_environment() {
    let place = Place::new();
    fs::create_dir(place.path().join("tmp")).unwrap();
    let mut command = place.command(&["stress", "--seconds", "1", "--keys", "2000"]);
    let command = command.env("TMPDIR", place.path().join("tmp")).env("FORREST_URL", "mine");
    let ran = Ran::from(command.output().unwrap());
    assert!(ran.ok().contains("stale = 0"), "{}", ran.text());
    assert_eq!(fs::read_dir(place.path().join("tmp")).unwrap().count(), 0);
    assert!(!place.path().join("mine").exists());
    let ran = place.run(&["stress", "--db", "memory:", "--seconds", "1", "--keys", "2000"]);
    assert!(ran.ok().contains("stale = 0"), "{}", ran.text());
}

#[test]
fn stress_shows_a_bar_and_heeds_ctrl_c() {
    let place = Place::new();
    fs::create_dir(place.path().join("tmp")).unwrap();
    let tmp = place.path().join("tmp");
    let env = [("TMPDIR", tmp.to_str().unwrap())];
    let mut terminal = Terminal::start(&place, 80, &["stress", "--seconds", "600", "--keys", "2000"], &env);
    terminal.wait_for("operation");
    terminal.type_in("\x03");
    assert_eq!(terminal.end(), 130);
    terminal.assert_tidy();
    assert!(!terminal.text().contains('%'), "{}", terminal.text());
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0, "the temporary store is still there");
}

#[test]
fn crash_verifies_what_the_last_run_left() {
    let place = Place::new();
    let run = |more: &[&str]| place.run(&[&["crash", "dir", "--pairs", "300"], more].concat());
    assert!(run(&[]).ok().contains("verified: no run before this one\nrun 1: 600 pairs written and synced"));
    for last in 1..=6 {
        let first = (last - 3).max(1);
        let ran = run(&["--memtable-bytes", "20000", "--expect", &format!("{last}/1/299")]);
        let runs = last - first + 1;
        // Two threads; of 300 pairs 38 were deleted.
        let wanted = format!("verified: runs {first} to {last}, {} pairs in all", (runs * 524));
        assert!(ran.ok().replace(',', "").contains(&wanted.replace(',', "")), "{wanted}: {}", ran.text());
        assert!(ran.text().contains("0 of them cut short"), "{}", ran.text());
    }
    let ran = run(&["--expect", "7/0/300"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("was acknowledged"), "{}", ran.stderr);
    // Somebody takes a pair away.
    let key = "pair 000006/000/0000000004";
    place.run(&["--db", "dir", "-k", "crash", "delete", key]).ok();
    let ran = run(&[]);
    assert_eq!((ran.code, ran.text()), (Some(3), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("000006/000"), "{}", ran.stderr);
}

#[test]
fn crash_syncs_each_change_if_asked() {
    let place = Place::new();
    place.run(&["crash", "dir", "--pairs", "20", "--sync", "--threads", "3"]).ok();
    assert!(place.run(&["crash", "dir"]).ok().contains("runs 1 to 1"));
}
