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

/// All formats.
const FORMATS: [&str; 9] = ["text", "hex", "tsv", "csv", "jsonl", "ops", "ldb", "mdb", "mdb-print"];

/// The format that a file's name ends in.
fn format_of(name: &str) -> &str {
    match name.rsplit('.').next() {
        Some("txt") | None => "text",
        Some(format) => format,
    }
}

/// Loads a file into memory and dumps it to another, each in the format that its name ends in.
fn convert(place: &Place, from: &str, to: &str) {
    let dump = place.path().join("between.txt");
    let dump = dump.to_str().unwrap();
    place.run(&["-q", "-f", format_of(from), "load", from, "--dump", dump]).ok();
    place.run(&["-q", "-f", format_of(to), "--load", dump, "count", "--dump", to]).ok();
}

#[test]
fn dump_and_load_are_inverse() {
    // Each case starts twelve processes.
    let mut runner = TestRunner::new(Config { cases: 24, ..Config::default() });
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
            for next in ["a.txt", "b.hex", "c.ops", "d.mdb", "e.mdb-print", "f.jsonl"] {
                convert(&place, &last, next);
                last = next.to_owned();
            }
            let dumped = std::fs::read_to_string(place.path().join(last)).unwrap();
            prop_assert_eq!(parse(&dumped), store);
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn every_format_goes_in_and_out_of_every_home() {
    let mut homes = vec!["memory:", "on disk"];
    match cfg!(feature = "llds-user") {
        true => homes.push("llds-user:formats"),
        false => println!("skipped llds-user:, which was not built"),
    }
    match std::path::Path::new("/dev/llds").exists() {
        true => homes.push("llds:forrest-cli-formats"),
        false => println!("skipped llds:, because the kernel module is not loaded"),
    }
    let mut runner = TestRunner::new(Config { cases: 2, ..Config::default() });
    let pairs = prop::collection::btree_map(bytes(), bytes(), 1..40);
    runner
        .run(&pairs, |pairs| {
            for home in &homes {
                for format in FORMATS {
                    let mut pairs = pairs.clone();
                    // It has no escapes.
                    let fits = |bytes: &[u8]| !bytes.contains(&b'\n');
                    pairs.retain(|key, value| {
                        format != "tsv" || (fits(key) && fits(value) && !key.contains(&b'\t'))
                    });
                    let store = BTreeMap::from([("default".to_owned(), pairs)]);
                    let place = Place::new();
                    // tsv and csv hold for files of any name.
                    place.write("in.jsonl", jsonl(&store));
                    place.run(&["-q", "--db", "between", "load", "in.jsonl"]).ok();
                    place.run(&["-q", "--db", "between", "-f", format, "dump", "in"]).ok();
                    let empty = || {
                        if home.starts_with("llds:") {
                            place.run(&["--db", home, "delete-range", "--all", "-q"]);
                        }
                    };
                    empty();
                    let options = ["--db", home, "-q", "-f", format];
                    let run = |more: &[&str]| place.run(&[&options[..], more].concat()).ok().to_owned();
                    run(&["load", "in", "--dump", "out"]);
                    match *home {
                        // Another process finds it there.
                        "on disk" => {
                            run(&["dump", "again"]);
                            let read = |name| std::fs::read(place.path().join(name)).unwrap();
                            prop_assert_eq!(read("out"), read("again"));
                            std::fs::remove_dir_all(place.path().join(home)).unwrap();
                        }
                        _ => empty(),
                    }
                    run(&["load", "out", "--dump", "back"]);
                    empty();
                    place.run(&["-q", "--db", "last", "-f", format, "load", "back"]).ok();
                    place.run(&["-q", "--db", "last", "dump", "back.jsonl"]).ok();
                    let back = std::fs::read_to_string(place.path().join("back.jsonl")).unwrap();
                    let mut wanted = store.clone();
                    // A dump of nothing names no keyspace.
                    wanted.retain(|_, pairs| !pairs.is_empty());
                    prop_assert_eq!(parse(&back), wanted, "{} {}", home, format);
                }
            }
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn no_input_panics() {
    let mut runner = TestRunner::new(Config { cases: 48, ..Config::default() });
    let lines = prop::collection::vec(bytes(), 0..6).prop_map(|lines| lines.join(&b'\n'));
    let formats = prop::sample::select(FORMATS.to_vec());
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

/// `tsv` and `csv` are others' formats, and hold for files of any name, in both directions.
#[test]
fn raw_formats_hold_for_files_of_any_name() {
    let raw =
        [("back\\slash", "tab\tin it"), ("#first", "#\\n"), ("#keyspace x", "end\r"), ("return\r", "\\x00")];
    for format in ["tsv", "csv"] {
        for name in ["out.txt", "out.hex", "out.jsonl", "out.ops"] {
            let place = Place::new();
            let db = forrest::Db::open(place.path().join("store").to_str().unwrap()).unwrap();
            for (key, value) in raw {
                db.set(key, value).unwrap();
            }
            if format == "csv" {
                db.set("tab\tand\nline", "\"two\"\r\nlines").unwrap();
            }
            drop(db);
            let run = |line: &str| place.run(&line.split(' ').collect::<Vec<_>>()).ok().to_owned();
            run(&format!("-f {format} --db store dump {name}"));
            run(&format!("-f {format} --db store count --dump again-{name}"));
            let read = |name: &str| std::fs::read(place.path().join(name)).unwrap();
            assert_eq!(read(name), read(&format!("again-{name}")), "{format} {name}");
            run(&format!("-q -f {format} --db loaded load {name}"));
            run(&format!("-q -f {format} --db first --load {name} count"));
            for store in ["loaded", "first"] {
                let scan = run(&format!("--db {store} scan"));
                assert_eq!(scan, run("--db store scan"), "{format} {name} {store}");
            }
        }
    }
}

/// A terminal obeys control characters above U+007E as well.
#[test]
fn json_escapes_all_control_characters() {
    let place = Place::new();
    let all: String = (0..0xa2).filter_map(char::from_u32).collect();
    let db = forrest::Db::open(place.path().join("store").to_str().unwrap()).unwrap();
    db.set(&all, format!("{all}\u{20ac}")).unwrap();
    drop(db);
    let dump = place.run(&["--db", "store", "-f", "jsonl", "dump", "-"]).ok().to_owned();
    assert!(!dump.trim_end_matches('\n').contains(char::is_control), "{dump:?}");
    assert!(dump.contains("~\\u007f\\u0080") && dump.contains("\\u009f\u{a0}"), "{dump:?}");
    assert_eq!(parse(&dump)["default"], Pairs::from([(all.clone().into(), format!("{all}\u{20ac}").into())]));
    place.write("dump.jsonl", &dump);
    place.run(&["--db", "loaded", "-q", "load", "dump.jsonl"]).ok();
    assert_eq!(place.run(&["--db", "loaded", "-f", "jsonl", "dump"]).ok(), dump);
}

/// A line without an end does not fill the memory: it is refused as soon as no key can be that long.
#[test]
fn lines_that_are_too_long_are_not_read() {
    let place = Place::new();
    for (format, bytes, what) in [
        ("text", 266_236, "no tab"),
        ("tsv", 69_631, "no tab"),
        ("csv", 135_166, "no comma"),
        ("ldb", 135_166, "no ==>"),
        ("hex", 135_166, "no tab"),
        ("jsonl", 398_836, "no object with a value"),
        ("ops", 267_256, "no operation with a key"),
    ] {
        let line = format!("head -c 600M /dev/zero | forrest --db store -f {format} load -");
        let ran = place.shell(&line);
        let says = format!("standard input:1: {what} in the first {bytes} bytes");
        assert!(ran.code == Some(4) && ran.stderr.contains(&says), "{format}: {}", ran.stderr);
    }
    let ran = place.shell("(printf 'VERSION=3\\nformat=print\\nHEADER=END\\n '; head -c 600M /dev/zero) | forrest -f mdb load -");
    assert!(
        ran.code == Some(4) && ran.stderr.contains("4: longer than 200701 bytes, as no key"),
        "{}",
        ran.stderr
    );
    let ran = place.shell("(echo; head -c 600M /dev/zero) | forrest shell");
    assert!(ran.code == Some(2) && ran.stderr.contains("input:2: no operation with a key"), "{}", ran.stderr);
    // The largest key fits, in its longest form.
    let key = "\\x00".repeat(65_535);
    place.write("in.txt", format!("{key}\tvalue\n"));
    place.run(&["--db", "store", "-q", "load", "in.txt"]).ok();
    assert_eq!(place.run(&["--db", "store", "count"]).ok(), "1\n");
    // The rest of such a line is passed over.
    let lines = "(echo a$'\\t'1; head -c 3M /dev/zero; echo; echo b$'\\t'2)";
    let ran = place.shell(&format!("{lines} | forrest --db some load - --skip-errors wrong.bin"));
    assert!(ran.stderr.contains("1 line was not loaded"), "{}", ran.stderr);
    assert_eq!(place.run(&["--db", "some", "scan"]).ok(), "a\t1\nb\t2\n");
    assert_eq!(std::fs::metadata(place.path().join("wrong.bin")).unwrap().len(), (3 << 20) + 1);
}

/// Pairs that the store refuses are put aside, or end the load after all before them, also within batches and ingests.
#[test]
fn pairs_that_the_store_refuses() {
    let place = Place::new();
    let lines = |wrong: &[usize]| -> Vec<String> {
        let value = |i| if wrong.contains(&i) { "00" } else { "0000000000000001" };
        (0..40_000).map(|i| format!("{i:08x}\t{}\n", value(i))).collect()
    };
    for store in ["first", "second"] {
        let db = forrest::Db::open(place.path().join(store).to_str().unwrap()).unwrap();
        db.set_merge_operator("sum").unwrap();
    }
    let all = lines(&[10, 25_000, 25_001, 39_990]);
    place.write("in.hex", all.concat());
    let load =
        ["--db", "first", "load", "in.hex", "--skip-errors", "wrong.hex", "--", "stat", "--prometheus"];
    let ran = place.run(&load);
    assert!(ran.ok().contains("\nforrest_jobs_total{job=\"ingest\"} 1\n"), "{}", ran.text());
    assert!(ran.stderr.contains("4 lines were not loaded"), "{}", ran.stderr);
    assert_eq!(place.run(&["--db", "first", "count"]).ok(), "39996\n");
    let wrong = std::fs::read_to_string(place.path().join("wrong.hex")).unwrap();
    assert_eq!(wrong, [10, 25_000, 25_001, 39_990].map(|i| &all[i][..]).concat());
    place.write("in.hex", lines(&[25_000]).concat());
    let ran = place.run(&["--db", "second", "load", "in.hex"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("in.hex:25001: invalid argument"), "{}", ran.stderr);
    assert!(ran.stderr.contains("25,000 pairs loaded before this, which stay"), "{}", ran.stderr);
    assert_eq!(place.run(&["--db", "second", "count"]).ok(), "25000\n");
}

/// What the store refuses is put aside as it can be loaded again, in its keyspace.
#[test]
fn what_is_put_aside_can_be_loaded() {
    let place = Place::new();
    let good = "00000000000000ff";
    let pairs = format!("6f610a6b\t{good}\n70\t0a22\n71\t\n");
    place.write("in.hex", format!("{pairs}#keyspace trees\n{pairs}72\t{good}\n"));
    place.run(&["--db", "lax", "load", "in.hex"]).ok();
    let wrong = "70\t0a22\n71\t\n";
    for format in ["text", "hex", "jsonl", "ops", "csv", "mdb", "mdb-print"] {
        let strict = forrest::Db::open(place.path().join(format).to_str().unwrap()).unwrap();
        strict.set_merge_operator("sum").unwrap();
        strict.keyspace("trees").unwrap().set_merge_operator("sum").unwrap();
        drop(strict);
        let (space, expected) = match format {
            "csv" => ("-k trees", format!("#keyspace default\n#keyspace trees\n{wrong}")),
            _ => ("", format!("#keyspace default\n{wrong}#keyspace trees\n{wrong}")),
        };
        let load = format!("load - --skip-errors {format}.wrong");
        let options = format!("{space} -f {format}");
        let ran = place.shell(&format!(
            "forrest {options} --db lax dump | forrest {options} --db {format} {load} && \
             forrest {options} --db {format}-again load - <{format}.wrong"
        ));
        ran.ok();
        assert!(ran.stderr.contains("were not loaded"), "{format}: {}", ran.stderr);
        let again = format!("{format}-again");
        assert_eq!(place.run(&["--db", &again, "-f", "hex", "dump"]).ok(), expected, "{format}");
    }
}

/// The times at which values expire go through dump and load, in the formats that have a place for them.
#[test]
fn expiries_are_dumped_and_loaded() {
    let place = Place::new();
    place.run(&["--db", "first", "set", "oak", "Quercus", "--ttl", "1d"]).ok();
    place.run(&["--db", "first", "set", "ash", "Fraxinus"]).ok();
    place.run(&["--db", "first", "-k", "other", "set", "elm", "Ulmus\t\u{1}", "--ttl", "2d"]).ok();
    let lines = |format: &str, store: &str| {
        let dumped = place.run(&["--db", store, "-f", format, "dump"]);
        assert_eq!(dumped.stderr, "", "{format}");
        dumped.ok().to_owned()
    };
    let ops = lines("ops", "first");
    assert_eq!(ops.lines().filter(|line| line.contains("set-until")).count(), 2, "{ops}");
    for format in ["ops", "jsonl"] {
        let dump = lines(format, "first");
        place.write(format!("dump.{format}"), &dump);
        for store in ["loaded", "compacted"] {
            let store = format!("{store} {format}");
            place.run(&["--db", &store, "load", &format!("dump.{format}")]).ok();
            if store.starts_with("compacted") {
                place.run(&["--db", &store, "compact"]).ok();
            }
            assert_eq!(lines("ops", &store), ops, "{store}");
        }
    }
    let text = place.run(&["--db", "first", "dump"]);
    assert!(
        text.stderr.contains("2 values expire") && text.stderr.contains("ops or jsonl"),
        "{}",
        text.stderr
    );
    for wrong in ["\"1\"", "-1", "1.5", "null", "99999999999999999999"] {
        place
            .write("wrong.jsonl", format!("{{\"key\": \"a\", \"value\": \"b\", \"expires_ms\": {wrong}}}\n"));
        let loaded = place.run(&["--db", "wrong", "load", "wrong.jsonl"]);
        assert!(loaded.code == Some(4) && loaded.stderr.contains("expires_ms"), "{wrong}: {}", loaded.stderr);
    }
    // A store in memory has them too.
    let memory = place.run(&["load", "dump.jsonl", "--dump", "memory.jsonl"]);
    assert_eq!(memory.code, Some(0), "{}", memory.stderr);
    let read = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
    assert_eq!(read("memory.jsonl"), read("dump.jsonl"));
}
