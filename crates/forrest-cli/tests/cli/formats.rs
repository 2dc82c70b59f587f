//! Any bytes go through dump and load unchanged, in every format, in every keyspace.

use crate::harness::Place;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::{BTreeMap, BTreeSet};

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// Bytes that are likely to meet what the formats treat specially.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let nasty = prop::sample::select(b"#\t\n\r\\\"' -{}@x0\x00\x1b\x7f\x80\xc3\xa9\xff".to_vec());
    prop_oneof![
        prop::collection::vec(nasty, 0..12),
        prop::collection::vec(any::<u8>(), 0..40),
        any::<String>().prop_map(String::into_bytes),
    ]
}

fn jsonl(keyspaces: &BTreeMap<String, Pairs>) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let mut out = String::new();
    for (name, pairs) in keyspaces {
        let name = serde_json::to_string(name).unwrap();
        for (key, value) in pairs {
            let (key, value) = (hex(key), hex(value));
            out += &format!("{{\"keyspace\": {name}, \"key_hex\": \"{key}\", \"value_hex\": \"{value}\"}}\n");
        }
    }
    out
}

/// Reads what `dump --format jsonl` writes, by other code than the command's.
fn parse(jsonl: &str) -> BTreeMap<String, Pairs> {
    let mut out: BTreeMap<String, Pairs> = BTreeMap::new();
    for line in jsonl.lines() {
        let json: serde_json::Value = serde_json::from_str(line).unwrap();
        let field = |name: &str| match &json[name] {
            serde_json::Value::String(text) => text.clone().into_bytes(),
            _ => {
                let digits = json[format!("{name}_hex")].as_str().unwrap();
                (0..digits.len())
                    .step_by(2)
                    .map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap())
                    .collect()
            }
        };
        let keyspace = json["keyspace"].as_str().unwrap_or("default").to_owned();
        assert_eq!(out.entry(keyspace).or_default().insert(field("key"), field("value")), None);
    }
    out
}

#[test]
fn dump_and_load_are_inverse() {
    // Each case starts four processes.
    let mut runner = TestRunner::new(Config { cases: 48, ..Config::default() });
    let pairs = || prop::collection::btree_map(bytes(), bytes(), 1..8);
    let name = prop_oneof![Just("people".to_owned()), Just("# \\\t\"é\u{202e}".to_owned()), "\\PC{1,10}"];
    let stores = (pairs(), prop::collection::btree_map(name, pairs(), 0..3));
    runner
        .run(&stores, |(default, named)| {
            let mut store: BTreeMap<String, Pairs> = named;
            store.insert("default".to_owned(), default);
            let place = Place::new();
            place.write("first.jsonl", jsonl(&store));
            let mut last = "first.jsonl".to_owned();
            for next in ["a.txt", "b.hex", "c.ops", "d.jsonl"] {
                place.run(&["-q", "load", &last, "--dump", next]).ok();
                last = next.to_owned();
            }
            let dumped = std::fs::read_to_string(place.path().join(last)).unwrap();
            prop_assert_eq!(parse(&dumped), store);
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn no_input_panics() {
    let mut runner = TestRunner::new(Config { cases: 48, ..Config::default() });
    let lines = prop::collection::vec(bytes(), 0..6).prop_map(|lines| lines.join(&b'\n'));
    let formats = prop::sample::select(vec!["text", "hex", "jsonl", "ops"]);
    runner
        .run(&(lines, formats), |(lines, format)| {
            let place = Place::new();
            let ran = place.run_with(&["--format", format, "load", "-", "--", "scan"], &lines);
            prop_assert!([Some(0), Some(1), Some(4), Some(2)].contains(&ran.code), "{:?}", ran);
            let ran = place.run_with(&["--format", format, "shell"], &lines);
            prop_assert!(ran.code.is_some_and(|code| code <= 4), "{:?}", ran);
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn large_files_keep_their_order() {
    let place = Place::new();
    let keys: BTreeSet<String> =
        (0..50_000_u32).map(|i| format!("{:08x}", i.wrapping_mul(2_654_435_761))).collect();
    let mut lines: Vec<String> = keys.iter().map(|key| format!("{key}\t{key}\n")).collect();
    lines.reverse();
    place.write("in.txt", lines.concat());
    lines.reverse();
    assert_eq!(place.run(&["--load", "in.txt", "dump"]).ok(), lines.concat());
    assert_eq!(place.run(&["--load", "in.txt", "count"]).ok(), "50000\n");
}
