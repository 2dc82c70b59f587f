//! `bench`: each benchmark does what its name says, as its counts and the resulting store show. Speed is not tested.

use crate::harness::Place;
use serde_json::Value;
use std::collections::BTreeMap;

const NUM: u64 = 1_000;

/// Runs benchmarks on a store and returns their reports.
#[track_caller]
fn bench(place: &Place, home: &str, list: &str, more: &[&str]) -> Vec<Value> {
    let num = NUM.to_string();
    let num = if more.contains(&"--num") { &[][..] } else { &["--num", &num][..] };
    let ran = place.run(&[&["--db", home, "bench", list, "--format", "jsonl"], num, more].concat());
    let told: Vec<Value> = ran.ok().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(ran.stderr, "");
    let names: Vec<_> = told.iter().map(|one| one["benchmark"].as_str().unwrap()).collect();
    assert_eq!(names.join(","), list);
    for one in &told {
        let calls = one["calls"].as_u64().unwrap();
        assert!(calls <= one["ops"].as_u64().unwrap() && one["seconds"].as_f64().unwrap() > 0.0, "{one}");
        assert!(one["call_ns_p50"].as_u64() <= one["call_ns_p999"].as_u64(), "{one}");
    }
    told
}

/// The homes that are there.
fn homes() -> Vec<&'static str> {
    let mut homes = vec!["memory:", "store"];
    match cfg!(feature = "llds-user") {
        true => homes.push("llds-user:bench"),
        false => println!("skipped llds-user:, which was not built"),
    }
    homes
}

#[test]
fn each_benchmark_counts_what_it_found() {
    for home in homes() {
        for threads in ["1", "3"] {
            let place = Place::new();
            let list = "fillseq,readrandom,readmissing,readhot,multireadrandom,readseq,readreverse,seekrandom,\
                        updaterandom,overwrite,readrandomwriterandom,readwhilewriting,seekrandomwhilewriting,readseq,\
                        deleteseq,readseq,readrandom,deleterandom";
            let told = bench(&place, home, list, &["--threads", threads]);
            let wanted = [
                ("fillseq", NUM, None),
                ("readrandom", NUM, Some(NUM)),
                ("readmissing", NUM, Some(0)),
                ("readhot", NUM, Some(NUM)),
                ("multireadrandom", NUM, Some(NUM)),
                ("readseq", NUM, None),
                ("readreverse", NUM, None),
                ("seekrandom", NUM, Some(NUM)),
                ("updaterandom", NUM, Some(NUM)),
                ("overwrite", NUM, None),
                ("readrandomwriterandom", NUM, told[10]["found"].as_u64()),
                ("readwhilewriting", NUM, Some(NUM)),
                ("seekrandomwhilewriting", NUM, Some(NUM)),
                ("readseq", NUM, None),
                ("deleteseq", NUM, Some(NUM)),
                ("readseq", 0, None),
                ("readrandom", NUM, Some(0)),
                ("deleterandom", NUM, Some(0)),
            ];
            for (told, (name, ops, found)) in told.iter().zip(wanted) {
                let one = (told["benchmark"].as_str(), told["ops"].as_u64(), told["found"].as_u64());
                assert_eq!(one, (Some(name), Some(ops), found), "{home} {threads}: {told}");
            }
            // About nine of ten are gets, and each of them finds its key.
            let found = told[10]["found"].as_u64().unwrap();
            assert!((NUM * 8 / 10..NUM).contains(&found), "{found}");
            let beside: Vec<bool> = told.iter().map(|one| one["changes_beside"].is_u64()).collect();
            assert_eq!(beside.iter().filter(|there| **there).count(), 2);
        }
    }
}

#[test]
fn what_is_filled_is_there() {
    let place = Place::new();
    bench(&place, "store", "fillbatch", &["--value-size", "33", "--key-size", "9", "--batch-size", "7"]);
    let scan = place.run(&["--db", "store", "-k", "bench", "-f", "hex", "scan"]);
    let pairs: BTreeMap<&str, &str> = scan.ok().lines().map(|line| line.split_once('\t').unwrap()).collect();
    let digits = |n: u64| format!("{n:09}").bytes().map(|b| format!("{b:02x}")).collect::<String>();
    assert_eq!(pairs.len() as u64, NUM);
    for n in 0..NUM {
        assert_eq!(pairs.get(&digits(n)[..]).map(|value| value.len()), Some(66), "{n}");
    }
    // Random keys repeat: of n draws from n about 63 % are there.
    let count =
        |place: &Place| place.run(&["--db", "store", "-k", "bench", "count"]).ok().trim().parse::<u64>();
    let told = bench(&place, "store", "fillrandom,readrandom,readseq", &[]);
    let left = count(&place).unwrap();
    assert!((NUM * 58 / 100..NUM * 68 / 100).contains(&left), "{left}");
    assert_eq!(told[2]["ops"].as_u64(), Some(left));
    let found = told[1]["found"].as_u64().unwrap();
    assert!((left - NUM / 20..left + NUM / 20).contains(&found), "{found} of {left}");
    // Each fill empties the keyspace first, unless `--use-existing` is given.
    bench(&place, "store", "fillsync,compact", &[]);
    assert_eq!(count(&place), Ok(1));
    bench(&place, "store", "fillseq", &["--num", "5"]);
    assert_eq!(count(&place), Ok(5));
    bench(&place, "store", "fillsync", &["--use-existing", "--num", "5"]);
    assert_eq!(count(&place), Ok(5));
    // Reads use an existing store, and fills leave other keyspaces alone.
    place.run(&["--db", "store", "set", "mine", "1"]).ok();
    assert_eq!(bench(&place, "store", "readseq", &["--reads", "3"])[0]["ops"], 3);
    bench(&place, "store", "fillseq", &[]);
    assert_eq!(place.run(&["--db", "store", "scan"]).ok(), "mine\t1\n");
}

#[test]
fn the_table_fits_and_the_store_goes_away() {
    let place = Place::new();
    std::fs::create_dir(place.path().join("tmp")).unwrap();
    let mut command = place.command(&["bench", "--num", "500", "--seek-nexts", "3", "--threads", "2"]);
    let command = command.env("TMPDIR", place.path().join("tmp")).env("FORREST_URL", "mine");
    let ran = crate::harness::Ran::from(command.output().unwrap());
    for part in ["fillseq ", "readwhilewriting ", "0 of 500 found", "beside it", "kvbench", ", temporary"] {
        assert!(ran.ok().contains(part), "{part}: {}", ran.text());
    }
    let long = ran.text().lines().find(|line| line.chars().count() > 80);
    assert_eq!(long, None);
    assert_eq!(std::fs::read_dir(place.path().join("tmp")).unwrap().count(), 0);
    assert!(!place.path().join("mine").exists());
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_is() {
    let place = Place::new();
    place.run(&["--db", "store", "set", "a", "1"]).ok();
    for (arguments, says) in [
        ("bench fillseq,frobnicate", "frobnicate"),
        ("bench --num 0", "1.."),
        ("bench --num 1000 --key-size 2", "--key-size 3"),
        ("bench --threads 0", "1..=1024"),
        ("bench --db memory: fillseq,fillsync", "fillsync"),
        ("bench --db memory: fillseq,compact", "compact"),
        ("bench --db memory: --sync", "--sync"),
        ("bench --load in.txt", "mean nothing"),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let ran = place.run(&arguments);
        assert_eq!((ran.code, ran.text()), (Some(2), ""), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{arguments:?}: {}", ran.stderr);
    }
    let device = std::path::Path::new("/dev/llds").exists();
    if !device {
        println!(
            "skipped: a store with one keyspace that is not empty, because the kernel module is not loaded"
        );
        return;
    }
    place.run(&["--db", "llds:forrest-cli-bench", "set", "a", "1"]).ok();
    let ran = place.run(&["--db", "llds:forrest-cli-bench", "bench", "fillseq", "-n", "10"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    place.run(&["llds", "destroy", "forrest-cli-bench"]).ok();
}
