//! The scenarios of `kvbench pressure`, tiny: each prints its lines, is recorded and has its goals judged.

use crate::{at_once, done, kvbench, records, scratch, text};
use serde_json::{Value, json};

/// The scenarios that are no mixes, each with figures that it has.
const SCENARIOS: [(&str, &[&str]); 14] = [
    ("memory", &["resident_peak_bytes", "resident_rest_bytes"]),
    ("stalls", &["put_ops_per_s", "put_p50_ns", "put_p99_ns", "put_p999_ns", "put_max_ns"]),
    ("snapshots", &["put_ops_per_s", "snapshot_p999_ns", "snapshot_max_ns"]),
    ("overwrites", &["disk_peak_bytes", "overwrite_peak_disk_per_byte", "overwrite_written_per_byte"]),
    ("deletes", &["disk_loaded_bytes", "disk_idle_bytes"]),
    ("ranges", &["range_delete_ns", "scan_across_ratio", "disk_idle_bytes"]),
    ("opening", &["closed_open_and_get_ns", "killed_replay_ops_per_s", "killed_first_get_ns"]),
    ("growth", &["growth_ns@5000", "growth_first_ns", "growth_ratio", "growth_written_per_byte"]),
    ("closing", &["close_ns", "kept_percent"]),
    ("headline", &["resident_peak_bytes", "disk_peak_bytes", "disk_rest_bytes"]),
    ("queue", &["pop_first_ns", "pop_last_ns"]),
    ("values", &[]),
    ("ingest", &["ingest_ns", "ingest_settle_s"]),
    ("transfers", &["transfer_ops_per_s", "transfer_met_percent"]),
];

/// What a run printed and recorded of a scenario.
fn pressed(scenario: &str) -> (String, Vec<Value>) {
    let path = scratch(&format!("pressure-{scenario}.jsonl"));
    let directory = tempfile::tempdir().expect("a directory for the stores");
    let places = [directory.path(), path.as_path()].map(|path| path.to_str().unwrap());
    let out = done(&["pressure", scenario, "--quick", "--directory", places[0], "--json", places[1]]);
    assert!(!out.contains("FAILED"), "{out}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "the stores are removed");
    (out, records(&path))
}

/// At once, because each of them waits for its store to be at rest, again and again.
#[test]
fn every_scenario_prints_its_lines_and_is_recorded() {
    let ran = at_once(&SCENARIOS, |(scenario, _)| pressed(scenario));
    let (mut all, mut goals) = (String::new(), 0);
    for ((scenario, names), (out, records)) in SCENARIOS.iter().zip(ran) {
        let kind = format!("pressure {scenario}");
        assert!(out.contains(&format!("\n{kind}, ")), "{kind}: {out}");
        let of_scenario = |record: &&Value| {
            record["record"] == "figures" && record["kind"] == kind && record["subject"] == "forrest"
        };
        let record = records.iter().find(of_scenario).expect(&kind);
        for name in *names {
            assert!(record["figures"][name]["median"].as_f64().is_some(), "{kind}, {name}: {record}");
        }
        if *scenario == "closing" {
            assert_eq!(record["figures"]["kept_percent"]["median"], 100.0);
        }
        let judged = records.iter().find(|record| record["record"] == "goals").expect("goals are recorded");
        goals += judged["goals"].as_array().unwrap().len();
        all.push_str(&out);
    }
    for line in ["put, p99.9, us", "snapshot, p99.9, us", "written for a byte", "closed: open and get, ms"] {
        assert!(all.contains(&format!("\n{line} ")), "{line}: {all}");
    }
    assert!(goals >= 16, "{goals}: {all}");
    // They are those of a run that names none; here with no store.
    let path = scratch("pressure.jsonl");
    done(&["pressure", "--quick", "--subjects", "rocksdb", "--no-rocksdb", "--json", path.to_str().unwrap()]);
    let scenarios = &records(&path)[0]["options"]["scenarios"];
    assert_eq!(*scenarios, json!(SCENARIOS.map(|(scenario, _)| scenario)));
}

/// The mixes, tiny, with threads, and one of them at a rate. Values, order and number of pairs are checked in each.
#[test]
fn mixes_are_done_by_several_threads_and_checked() {
    let mixes = ["readwhilewriting", "ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f"];
    let threads = ["--threads", "3"];
    let rate = ["--rate", "1000"];
    // At once, as the scenarios are.
    let mut ran =
        at_once(&[(&mixes[..4], threads), (&mixes[4..], threads), (&mixes[3..4], rate)], |(mixes, more)| {
            let path = scratch(&format!("{}{}.jsonl", mixes[0], more[0]));
            let fixed = ["--quick", "-n", "2000", more[0], more[1], "--json", path.to_str().unwrap()];
            let output = kvbench(&[&["pressure"], *mixes, &fixed[..]].concat());
            let out = text(&output.stdout);
            assert!(output.status.success() && !out.contains("FAILED"), "{out}{}", text(&output.stderr));
            (out, records(&path))
        });
    let (paced, paced_records) = ran.pop().expect("there are three");
    let (outs, mixed): (Vec<_>, Vec<_>) = ran.into_iter().unzip();
    let (out, records) = (outs.concat(), mixed.concat());
    let figure = |mix: &str, name: &str| {
        let kind = format!("pressure {mix}");
        let own = |record: &&Value| record["kind"] == kind && record["subject"] == "forrest";
        let record = records.iter().find(own).unwrap_or_else(|| panic!("{mix} is recorded"));
        record["figures"][name]["median"].as_f64()
    };
    let by = |store: &str| {
        let figures =
            records.iter().filter(|record| record["record"] == "figures" && record["subject"] == store);
        figures.count()
    };
    for store in ["fjall", "lmdb", "redb"] {
        assert_eq!(by(store), if cfg!(feature = "stores") { mixes.len() } else { 0 }, "{store}: {out}");
    }
    for mix in mixes {
        let rates = match mix {
            "readwhilewriting" => &["mix_read_ops_per_s", "mix_write_ops_per_s"][..],
            _ => &["mix_ops_per_s"],
        };
        assert!(rates.iter().all(|name| figure(mix, name).is_some_and(|rate| rate > 0.0)), "{mix}: {out}");
        assert_eq!(figure(mix, "mix_not_begun_ops"), None, "{mix}");
        assert!(figure(mix, "mix_warm_up_s").is_some_and(|seconds| seconds > 0.0), "{mix}: {out}");
    }
    for (mix, is, is_not) in [
        ("readwhilewriting", "write", "scan"),
        ("ycsb-c", "read", "write"),
        ("ycsb-d", "write", "scan"),
        ("ycsb-e", "scan", "read"),
        ("ycsb-f", "modify", "write"),
    ] {
        assert!(figure(mix, &format!("mix_{is}_p999_ns")).is_some_and(|time| time > 0.0), "{mix}: {out}");
        assert_eq!(figure(mix, &format!("mix_{is_not}_p999_ns")), None, "{mix}");
    }
    assert!(paced.contains("\ndue, but not begun"), "{paced}");
    let reached =
        paced_records.iter().find_map(|record| record["figures"]["mix_ops_per_s"]["median"].as_f64());
    assert!(reached.is_some_and(|rate| rate <= 1100.0), "no more are done than are due: {reached:?}");
}

#[test]
fn a_scenario_is_chosen_by_its_name_and_its_sizes_by_options() {
    let out = done(&[
        "pressure",
        "deletes",
        "--subjects",
        "forrest",
        "--quick",
        "-n",
        "3000",
        "--rounds",
        "2",
        "--memtable",
        "128K",
    ]);
    assert!(out.contains("\npressure deletes, 3K pairs, memtables of 128 KiB"), "{out}");
    assert!(out.contains("\n90 % deleted, idle, MiB") && !out.contains("pressure queue"), "{out}");
    // A store that was named and does not do it left no line.
    let out = done(&["pressure", "deletes", "--subjects", "forrest,lmdb", "--quick", "-n", "3000"]);
    assert!(
        out.contains("\nlmdb, pressure deletes, 3K: left out: it has no part in pressure deletes\n"),
        "{out}"
    );
}
