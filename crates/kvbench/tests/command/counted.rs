//! Tests of counters: on a simulated processor, whose counts are reproducible, of the system, and of bytes of memory.

use super::{TREE, kvbench, records, scratch, text};
use forrest_testing::sized;
use serde_json::{Map, Value};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

/// The figures of each row of a run.
fn figures(name: &str, arguments: &[&str]) -> Vec<(String, Map<String, Value>)> {
    let path = scratch(name);
    let output = kvbench(&[arguments, &["--json", path.to_str().unwrap()]].concat());
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && error.is_empty() && !out.contains("FAILED"), "{out}{error}");
    let rows = records(&path).into_iter().filter(|record| record["record"] == "figures");
    let row = |record: Value| {
        let subject = format!("{} {}", record["kind"].as_str().unwrap(), record["subject"].as_str().unwrap());
        (subject, record["figures"].as_object().unwrap().clone())
    };
    rows.map(row).collect()
}

fn median(figures: &Map<String, Value>, name: &str) -> f64 {
    figures[name]["median"].as_f64().unwrap_or_else(|| panic!("{name}: {figures:?}"))
}

/// Whether there is a simulator; prints a message if not.
pub(super) fn simulates() -> bool {
    let there =
        Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success());
    let there = there && cfg!(all(target_arch = "x86_64", target_os = "linux"));
    if !there {
        println!("skipped: there is no valgrind for this machine (Debian: apt-get install valgrind)");
    }
    there
}

#[test]
fn a_simulated_processor_counts_the_same_again() {
    if !simulates() {
        return;
    }
    let run = |name| {
        let common = ["memory", "--simulate", "--quick", "-n", "400", "--pages", "auto"];
        // Hashes, arenas, and comparisons by the system's library, which depend on addresses.
        let subjects = ["--subjects", "forrest,hashmap,sorted,empty"];
        let tree = ["--tree", TREE];
        let events = ["--events", "instructions,cycles,llc_references,branch_misses"];
        // In quick size little more than the figures that are checked below.
        let kinds = ["--kinds", sized("u64", "u64,strings")];
        let steps = ["--only", sized("get", "get,miss,scan,remove")];
        figures(name, &[&common[..], &subjects, &kinds, &tree, &events, &steps].concat())
    };
    let (first, second) = (run("simulated-1.jsonl"), run("simulated-2.jsonl"));
    assert_eq!(first, second);
    assert_eq!(first.len(), sized(4, 8));
    for (subject, figures) in &first {
        let told = |name: &String| {
            let counted = ["instructions", "llc_references", "branch_misses"];
            counted.iter().any(|event| name.ends_with(event)) || name.ends_with("live_bytes_per_key")
        };
        assert!(figures.keys().all(told), "{subject}: {figures:?}");
        // A program that counted its own start would have more for so few keys.
        let get = median(figures, "get_instructions");
        assert!((2.0..20_000.0).contains(&get), "{subject}: {get}");
    }
    let of = |subject: &str, name: &str| {
        let row = first.iter().find(|row| row.0 == subject).unwrap_or_else(|| panic!("{subject}: {first:?}"));
        median(&row.1, name)
    };
    let [empty, table] = ["u64 empty", "u64 hashmap+std"].map(|subject| of(subject, "get_instructions"));
    assert!(2.0 * empty < table, "{empty} {table}");
    // Half of the turns of a binary search are taken, and no predictor knows which; some of them are no branches.
    let [empty, search] = ["u64 empty", "u64 sorted"].map(|subject| of(subject, "get_branch_misses"));
    assert!(search > empty + 0.5, "{empty} {search}");
}

/// Eight times the keys, and as many instructions for each: nothing is counted that is done once.
#[test]
fn the_loop_alone_is_simulated() {
    if !simulates() {
        return;
    }
    let each = |keys: &str| {
        let rows = figures(
            &format!("simulated-{keys}.jsonl"),
            &["memory", "--simulate", "-n", keys, "--subjects", "empty", "--kinds", "u64", "--only", "get"],
        );
        median(&rows[0].1, "get_instructions")
    };
    let (few, many) = (each("1K"), each("8K"));
    assert!((few - many).abs() < 0.02 * many, "{few} for each of a thousand, {many} of eight thousand");
}

/// The simulation would take hours. After a kill, neither the run nor its arm continues.
#[test]
fn a_simulation_ends_when_its_run_does() {
    if !simulates() {
        return;
    }
    let mut run = Command::new(env!("CARGO_BIN_EXE_kvbench"))
        .args(["memory", "--simulate", "-n", "50M", "--subjects", "btreemap", "--kinds", "u64"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut said = BufReader::new(run.stdout.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("agree with BTreeMap")), "its arm comes next");
    run.kill().unwrap();
    run.wait().unwrap();
    // All its processes have this pipe: it ends with the last of them.
    run.stderr.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn without_a_simulator_it_says_which_package_has_it() {
    let output = Command::new(env!("CARGO_BIN_EXE_kvbench"))
        .args(["memory", "--simulate", "-n", "10", "--subjects", "empty", "--kinds", "u64"])
        .env("PATH", "/nowhere")
        .output()
        .expect("the program starts");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    if cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        assert!(error.contains("Debian: apt-get install valgrind"), "{error}");
    }
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
}

#[test]
fn who_counts_is_recorded_and_what_nobody_counts_is_null() {
    let path = scratch("counted.jsonl");
    let events = "instructions,cycles,page_faults,context_switches,cpu_migrations,task_clock_ns";
    let common =
        ["memory", "-n", "2K", "--subjects", "btreemap", "--kinds", "u64", "--only", "get", "--no-sweep"];
    let output = kvbench(&[&common[..], &["--events", events, "--json", path.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let record = records(&path).into_iter().find(|record| record["record"] == "figures").unwrap();
    let counted = record["counted"].as_object().expect("who counts is recorded");
    assert_eq!(counted.len(), 6);
    for (event, provider) in counted {
        let figure = &record["figures"][format!("get_{event}")];
        // A counter may miss a part, and has no figure then; without a counter there is never one.
        assert!(!(provider.is_null() && figure.is_object()), "{event}: {record}");
        let by_system = ["software", "getrusage"].contains(&provider.as_str().unwrap_or_default());
        assert!(!by_system || figure.is_object(), "{event}: {record}");
        assert!(!(by_system && ["instructions", "cycles"].contains(&event.as_str())), "{event}: {record}");
    }
    if cfg!(target_os = "linux") {
        assert!(record["figures"]["get_task_clock_ns"]["median"].as_f64().unwrap() > 0.0, "{record}");
    }
}

/// Of pairs of numbers in arrays it is known what they take: 16 bytes, and nothing else.
#[test]
fn bytes_for_a_key_are_within_a_hundredth_of_what_is_known() {
    let known = |bytes: f64| (bytes / 16.0 - 1.0).abs() < 0.01;
    let common =
        ["memory", "--kinds", "u64", "--only", "get", "--no-sweep", "--subjects", "sorted,eytzinger"];
    for (subject, figures) in figures(
        "known.jsonl",
        &[&common[..], &["--quick", "-n", sized("1M", "3M"), "--probes", "1K"]].concat(),
    ) {
        let live = median(&figures, "live_bytes_per_key");
        assert!(known(live), "{subject}: {live} live");
        // More was held before it was all in one place.
        assert!(median(&figures, "peak_live_bytes_per_key") > 2.0 * live, "{subject}: {figures:?}");
        if !cfg!(target_os = "linux") {
            println!("skipped: only Linux tells what is resident");
            continue;
        }
        let resident = median(&figures, "resident_bytes_per_key");
        assert!(known(resident), "{subject}: {resident} resident");
        if let Some(peak) = figures.get("peak_resident_bytes_per_key") {
            assert!(peak["median"].as_f64().unwrap() >= resident, "{subject}: {figures:?}");
        }
        let huge = figures.get("resident_huge_percent").map(|huge| huge["median"].as_f64().unwrap());
        assert!(huge.is_none_or(|huge| (0.0..=100.0).contains(&huge)), "{subject}: {huge:?}");
    }
}
