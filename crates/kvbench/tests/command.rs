//! Drives the `kvbench` command as a user would: a smoke run of all subjects, llds's workload, bad command
//! lines, data sets as files, and an arm whose run dies.

#[path = "command/ancestor.rs"]
mod ancestor;
#[path = "command/counted.rs"]
mod counted;
#[path = "command/files.rs"]
mod files;
#[path = "command/foreign.rs"]
mod foreign;
#[path = "command/pressure.rs"]
mod pressure;
#[path = "command/store_data.rs"]
mod store_data;

use forrest_testing::sized;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A directory of few files, for the keys of kind `strings`: each process gets the paths of all.
const TREE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");

fn kvbench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kvbench")).args(arguments).output().expect("the program starts")
}

/// Runs the command, which must succeed, and returns what it printed.
fn done(arguments: &[&str]) -> String {
    let output = kvbench(arguments);
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && error.is_empty(), "{arguments:?}: {out}{error}");
    out
}

/// Does several runs at once, each of which waits more than it works.
fn at_once<A: Sync, T: Send>(all: &[A], run: impl Fn(&A) -> T + Sync) -> Vec<T> {
    let run = &run;
    std::thread::scope(|scope| {
        let runs: Vec<_> = all.iter().map(|one| scope.spawn(move || run(one))).collect();
        runs.into_iter().map(|run| run.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// The words of a line, and more.
fn words<'a>(line: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    line.split_whitespace().chain(more.iter().copied()).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file of this name in the directory for tests, not there yet.
fn scratch(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(std::fs::remove_file(&path));
    path
}

/// The lines of a record, each validated against the schema.
fn records(path: &PathBuf) -> Vec<Value> {
    static SCHEMA: std::sync::LazyLock<jsonschema::Validator> = std::sync::LazyLock::new(|| {
        let schema = serde_json::from_str(include_str!("../schema/record.json")).expect("the schema is JSON");
        jsonschema::validator_for(&schema).expect("the schema is one")
    });
    let lines = std::fs::read_to_string(path).expect("the record was written");
    let line = |line: &str| {
        let record: Value = serde_json::from_str(line).expect("every line is JSON");
        if let Err(error) = SCHEMA.validate(&record) {
            panic!("{}: {error} at {}: {line}", path.display(), error.instance_path());
        }
        record
    };
    lines.lines().map(line).collect()
}

#[test]
fn every_record_of_the_project_is_what_the_schema_says() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/record");
    let paths = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let lines: usize = paths
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .map(|path| records(&path).len())
        .sum();
    assert!(lines > 100, "{lines}");
}

#[test]
fn a_quick_run_measures_every_subject_and_all_agree() {
    let path = scratch("quick.jsonl");
    let pairs = sized("1K", "2K");
    let output =
        kvbench(&["memory", "--quick", "-n", pairs, "--tree", TREE, "--json", path.to_str().unwrap()]);
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}{error}");
    assert!(!out.contains("FAILED") && error.is_empty(), "{out}{error}");
    for kind in ["u64", "strings"] {
        assert!(out.contains(&format!("{pairs} pairs of kind {kind}")), "{out}");
        assert!(out.contains(&format!("Goals, {pairs} {kind}")), "{out}");
    }

    let records = records(&path);
    assert!(records.iter().all(|record| record["kvbench"] == 1 && record["run"] == records[0]["run"]));
    assert_eq!(records[0]["record"], "run");
    assert!(records[0]["machine"]["cpus"].as_u64().unwrap() > 0 && records[0]["date"].is_string());
    let mut subjects: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut sums: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    let figures =
        records.iter().filter(|record| record["record"] == "figures" && record["subject"] != "empty");
    for record in figures {
        let (kind, subject) = (record["kind"].as_str().unwrap(), record["subject"].as_str().unwrap());
        subjects.entry(kind).or_default().insert(subject);
        for (name, figure) in record["figures"].as_object().unwrap() {
            let [least, median, most] = ["min", "median", "max"].map(|of| figure[of].as_f64().unwrap());
            assert!(0.0 <= least && least <= median && median <= most, "{subject} {name}: {figure}");
        }
        for (name, sum) in record["sums"].as_object().unwrap() {
            sums.entry((kind, name)).or_default().insert(sum.as_str().unwrap());
        }
    }
    let both = [
        "forrest",
        "rbtree",
        "btreemap",
        "skiplist",
        "scc",
        "blart",
        "cuckoo+rapidhash",
        "f14+rapidhash",
        "hashbrown+foldhash",
        "hashmap+std",
        "papaya+std",
        "dashmap+std",
        "scc-hash+std",
    ];
    for subject in both {
        assert!(
            subjects["u64"].contains(subject) && subjects["strings"].contains(subject),
            "{subject}: {out}"
        );
    }
    for subject in ["congee", "masstree"] {
        assert!(
            subjects["u64"].contains(subject) && !subjects["strings"].contains(subject),
            "{subject}: {out}"
        );
        assert!(out.contains(&format!("{subject}, strings: left out:")), "{out}");
    }
    for kind in ["u64", "strings"] {
        for name in ["get_ns", "get_dependent_ns", "get_miss_ns", "scan", "iterate", "remove_ns"] {
            assert_eq!(sums[&(kind, name)].len(), 1, "{kind} {name}: subjects differ");
        }
    }
    // A terminal has 80 columns. Remarks and reasons are sentences, which it may break.
    let wide: Vec<_> = out.lines().filter(|line| line.len() > 80 && !line.contains(": ")).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    let goals = records.iter().find(|record| record["record"] == "goals").expect("goals are recorded");
    assert!(goals["goals"].as_array().unwrap().iter().all(|goal| goal["holds"].is_boolean()));
}

#[test]
fn rounds_show_their_spread_and_steps_can_be_chosen() {
    let path = scratch("rounds.jsonl");
    let out = done(&words(
        "memory -n 2000 --rounds 3 --subjects btreemap,rbtree --kinds u64 --only get",
        &["--json", path.to_str().unwrap()],
    ));
    assert!(out.contains("  least") && out.contains("  most"), "{out}");
    let figures = records(&path).into_iter().filter(|record| record["record"] == "figures");
    for record in figures {
        assert_eq!(record["figures"]["get_ns"]["rounds"].as_array().unwrap().len(), 3);
        assert!(record["figures"]["scan_50_ns"].is_null());
    }
}

/// All that is not measured unless it is asked for; ordered, hashed and static subjects, one by itself and one with
/// others. In quick size with numbers for keys only.
#[test]
fn workloads_latencies_and_distributions_are_measured_and_checked() {
    let path = scratch("workloads.jsonl");
    let line = "memory -n 1500 --no-sweep --subjects btreemap,skiplist,hashbrown,papaya,cuckoo,f14,sorted,empty --only \
                     get,batch,hits,update,mixed,reserve,ycsb-a,ycsb-b,ycsb-c,ycsb-d,ycsb-e,ycsb-f,threads,latency,remove,erase --hits 20 \
                     --reads 30 --rate 1000000 --distribution zipfian:0.8 --json";
    let out = done(&words(line, &[path.to_str().unwrap(), "--kinds", sized("u64", "u64,strings")]));
    assert!(out.contains("zipfian:0.8") && !out.contains("Goals"), "{out}");
    assert!(out.contains("ycsb_e") && out.contains("of 1000") && out.contains("op/s"), "{out}");
    let records = records(&path);
    assert_eq!(records[0]["options"]["asked"]["rate"], 1_000_000);
    let figures: BTreeMap<(&str, &str), &Value> = records
        .iter()
        .filter(|record| record["record"] == "figures")
        .map(|record| {
            assert_eq!(record["distribution"], "zipfian:0.8");
            let key = (record["kind"].as_str().unwrap(), record["subject"].as_str().unwrap());
            (key, &record["figures"])
        })
        .collect();
    assert_eq!(figures.len(), sized(8, 16));
    let two = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() >= 2);
    for ((kind, subject), figures) in figures {
        let has = |name: &str| !figures[name].is_null();
        let all = [
            "get_hits_20_ns",
            "ycsb_c_ns",
            "get_p50_ns",
            "get_max_ns",
            "ycsb_c_p999_ns",
            "get_open_p99_ns",
            "get_open_ops_per_s",
        ];
        let writing = [
            "update_ns",
            "update_p99_ns",
            "mixed_30_ns",
            "mixed_30_read_p50_ns",
            "mixed_30_write_open_p50_ns",
            "ycsb_a_ns",
            "ycsb_b_write_p50_ns",
            "ycsb_d_read_p50_ns",
            "ycsb_f_modify_p99_ns",
        ];
        let scanning = ["ycsb_e_ns", "ycsb_e_scan_p50_ns", "ycsb_e_write_open_max_ns"];
        let hashed =
            ["papaya+std", "hashbrown+foldhash", "cuckoo+rapidhash", "f14+rapidhash"].contains(&subject);
        for (names, wanted) in [
            (&all[..], true),
            (&writing, subject != "sorted"),
            (&scanning, ["btreemap", "skiplist"].contains(&subject)),
            (&["insert_reserved_ns"], hashed),
            (&["erase_ns"], !["cuckoo+rapidhash", "sorted", "empty"].contains(&subject)),
            (
                &["update_2t_mops", "mixed_30_1t_mops", "ycsb_d_2t_mops"],
                two && ["skiplist", "papaya+std"].contains(&subject),
            ),
            (&["ycsb_e_2t_mops"], two && subject == "skiplist"),
        ] {
            for name in names {
                assert_eq!(has(name), wanted, "{kind} {subject} {name}: {figures}");
            }
        }
    }
}

/// What vector instructions save, what the library adds to its index, which of them erase while they iterate, and all
/// as they grow, in the chart of one page.
#[test]
fn variants_erase_and_grow_side_by_side() {
    let (path, page) = (scratch("variants.jsonl"), scratch("variants.html"));
    let names = "forrest,forrest-portable,forrest-db,f14,f14-sse2,hashmap,dashmap,scc-hash,btreemap,indexset";
    let out = done(&words(
        "memory -n 1000 --only get,batch,scan,erase --pages auto --sweep 100..1K,100..200/3 --sweep-subjects f14,forrest-db",
        &["--subjects", names, "--tree", TREE, "--json", path.to_str().unwrap()],
    ));
    let records = records(&path);
    let figures = records.iter().filter(|record| record["record"] == "figures");
    let (grown, rows): (Vec<&Value>, Vec<&Value>) =
        figures.partition(|record| record["kind"] == "u64, growing");
    assert_eq!((rows.len(), grown.len()), (20, 2), "{out}");
    for row in rows {
        let erases = row["subject"] != "indexset";
        assert_eq!(row["figures"]["erase_ns"].is_null(), !erases, "{row}");
    }
    for row in grown {
        for size in [100, 150, 200, 300, 1000] {
            assert!(!row["figures"][format!("get_ns@{size}")].is_null(), "{row}");
        }
    }
    let (record, html) = (path.to_str().unwrap(), page.to_str().unwrap());
    assert!(kvbench(&["report", record, "--html", html]).status.success());
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("get, ns, over the number of keys"), "one chart for all sizes");
}

/// Codes of events are taken as perf writes them, at most four; where the processor counts nothing, a line says so.
#[test]
fn events_are_named_by_their_codes() {
    let run = |codes: &str| {
        let fixed = ["memory", "-n", "2000", "--kinds", "u64", "--only", "get", "--no-sweep", "--subjects"];
        kvbench(&[&fixed[..], &["btreemap", "--raw", codes]].concat())
    };
    let output = run("r01c2,rc0");
    let out = text(&output.stdout);
    assert!(
        output.status.success() && out.contains("raw_1 is r01c2, raw_2 is rc0"),
        "{out}{}",
        text(&output.stderr)
    );
    assert!(out.contains("raw_1 for an operation") || out.contains("not counted: raw_1"), "{out}");
    for (codes, why) in [("r1,r2,r3,r4,r5", "at most 4"), ("no-such", "is no code such as r01c2")] {
        let output = run(codes);
        assert!(!output.status.success() && text(&output.stderr).contains(why), "{}", text(&output.stderr));
    }
}

#[test]
fn subjects_are_named_with_hash_and_allocator() {
    let path = scratch("names.jsonl");
    let names =
        "cuckoo+xxhash:XX3_64bits,f14+city::cityhash64,hashbrown+t1ha::t1ha,hashbrown,btreemap@mimalloc";
    let out = done(&words(
        "memory -n 2000 --kinds strings --only get",
        &["--subjects", names, "--json", path.to_str().unwrap()],
    ));
    let records = records(&path);
    let of = |record: &str, key: &str| -> Vec<String> {
        let records = records.iter().filter(|one| one["record"] == record);
        records.map(|one| one[key].as_str().unwrap_or("-").to_owned()).collect()
    };
    let mut subjects = vec!["cuckoo+xxh3", "f14+cityhash", "hashbrown+t1ha", "hashbrown+foldhash"];
    let mut hashes = vec!["xxh3", "cityhash", "t1ha", "foldhash"];
    if cfg!(feature = "mimalloc") {
        subjects.insert(0, "btreemap@mimalloc");
        hashes.insert(0, "-");
    } else {
        assert!(
            out.contains("btreemap@mimalloc, strings: left out:") && out.contains("--features mimalloc"),
            "{out}"
        );
        assert_eq!(of("left_out", "subject"), ["btreemap@mimalloc"]);
    }
    assert_eq!(of("figures", "subject"), subjects);
    assert_eq!(of("figures", "hash"), hashes);
    assert!(subjects.iter().all(|subject| out.contains(&format!("\n{subject} "))), "{out}");
}

#[test]
fn the_workload_of_llds_runs() {
    let out = done(&["llds", "-n", "30K", "--threads", "3"]);
    let mut subjects = vec!["forrest", "rbtree"];
    if cfg!(feature = "llds-user") {
        subjects.extend(["llds-user", "llds-user-calls"]);
    }
    for subject in subjects {
        assert!(out.contains(&format!("{subject:16}   30K")), "{subject}: {out}");
        let is_told = out.contains(&format!("at 30K keys, wall time: {subject} has"));
        assert_eq!(is_told, subject != "rbtree", "{subject}: {out}");
    }
}

/// In three parts at once, because the store is at rest only seconds after each step that writes. `store_data` does all
/// steps in one run.
#[test]
fn a_store_is_measured_and_its_answers_are_right() {
    let parts = [
        ("get,miss,many,seek,scan,full", 2, &["load", "get", "miss", "seek", "scan", "forward"][..]),
        ("update,insert,synced", 1, &["load", "update", "insert", "synced_1t", "synced_8t"]),
        ("compact,reopen", 2, &["load", "compact"]),
    ];
    let ran = at_once(&parts, |(steps, rounds, _)| {
        let path = scratch(&format!("store-{rounds}-{steps}.jsonl"));
        let directory = tempfile::tempdir().expect("a directory for the store");
        let line = format!(
            "store -n 3000 --subjects forrest --synced 20 --budget 16M --rounds {rounds} --only {steps}"
        );
        let places = ["--directory", directory.path().to_str().unwrap(), "--json", path.to_str().unwrap()];
        let out = done(&words(&line, &places));
        assert!(out.contains("3K pairs, writes survive the process: us per operation"), "{out}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "the stores are removed");
        let mut figures = records(&path);
        figures.retain(|record| record["record"] == "figures");
        assert_eq!(figures.len(), 1, "{out}");
        (out, figures.remove(0))
    });
    for ((_, rounds, names), (_, record)) in parts.iter().zip(&ran) {
        for name in *names {
            let figure = &record["figures"][format!("{name}_ns")];
            assert!(figure["median"].as_f64().unwrap() > 0.0, "{name}: {figure}");
            assert_eq!(figure["rounds"].as_array().unwrap().len(), *rounds, "{name}");
        }
        assert_eq!(
            (&record["durability"], &record["durability_had"]),
            (&"process".into(), &"process".into())
        );
    }
    let [(_, reading), (out, _), (_, opening)] = &ran[..] else { unreachable!("three parts") };
    assert!(out.contains("synced, 8 threads"), "{out}");
    // What a step reads and writes by the way, where the system tells.
    for step in ["get", "miss", "multi_get_64", "seek", "scan"] {
        let reads = &reading["figures"][format!("{step}_block_reads")];
        assert!(reads["min"].is_number(), "{step}: {reading}");
    }
    assert!(reading["sums"]["scan"].is_string());
    for name in ["open_s", "recover_s", "load_max_ns"] {
        assert!(opening["figures"][name]["min"].as_f64().unwrap() > 0.0, "{name}");
    }
    assert_eq!(opening["figures"]["recovered_percent"]["min"], 100.0);
}

/// A store was recorded only after all of its size had ended, so a kill lost hours.
#[test]
fn what_a_record_has_is_not_measured_again() {
    let path = scratch("store-resumed.jsonl");
    let more = ["--json", path.to_str().unwrap(), "--resume"];
    let run = |line: &str| {
        done(&words(&("store --subjects forrest --budget 16M --only get ".to_owned() + line), &more))
    };
    let figures = || records(&path).into_iter().filter(|one| one["record"] == "figures").collect::<Vec<_>>();
    let first = run("-n 1000");
    assert!(figures().len() == 1 && !first.contains("measured before"), "{first}");
    let second = run("-n 1000,1500");
    let of = |figure: &Value| figure["keys"].as_u64();
    assert_eq!(figures().iter().map(of).collect::<Vec<_>>(), [Some(1000), Some(1500)]);
    assert!(second.contains("1K pairs, measured before: forrest\n"), "{second}");
    // The table has both, and the figures that were there.
    let line = |out: &str| out.lines().find(|line| line.starts_with("get, hit")).map(str::to_owned);
    assert!(line(&first).is_some() && line(&first) == line(&second), "{first}{second}");
    let runs = || records(&path).iter().filter(|one| one["record"] == "run").count();
    assert_eq!(runs(), 1, "it is the same run");
    // With other options it is another one.
    assert!(!run("-n 1000 --seed 7").contains("measured before"));
    assert_eq!((figures().len(), runs()), (3, 2));
}

/// Measures a store of `pairs` pairs under a memory limit.
fn within_memory(pairs: &str, memory: &str) -> Output {
    kvbench(&words("store --subjects forrest --only get --budget 16M", &["-n", pairs, "--memory", memory]))
}

/// Whether memory can be limited here.
static LIMITS: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| {
    let error = text(&within_memory("100", "256M").stderr);
    let limits = !error.contains("memory cannot be limited");
    if !limits {
        eprintln!("skipped: limits of memory: {error}");
    }
    limits
});

#[test]
fn the_memory_of_a_store_is_limited() {
    if !*LIMITS {
        return;
    }
    let output = within_memory("20K", "256M");
    let out = text(&output.stdout);
    assert!(output.status.success(), "{out}{}", text(&output.stderr));
    assert!(out.contains("at most 256 MiB with the page cache") && out.contains("get, hit"), "{out}");
    // Even the program does not fit in the least that the budget allows.
    let output = within_memory("500K", "16M");
    let out = text(&output.stdout);
    assert!(output.status.success() && out.contains("left out: it needs more memory than 16 MiB"), "{out}");
}

#[test]
fn a_remix_is_measured_checked_and_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.jsonl");
    let output = kvbench(&words(
        "remix -n 3000 --runs 1,3 --rounds 2 --probes 500 --no-pin",
        &["--directory", directory.path().to_str().unwrap(), "--json", path.to_str().unwrap()],
    ));
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && error.is_empty(), "{out}{error}");
    assert!(out.contains("3K pairs, strong locality") && out.contains("ancestor"), "{out}");
    let records = records(&path);
    let figures: Vec<_> = records.iter().filter(|record| record["record"] == "figures").collect();
    assert_eq!(figures.len(), 4);
    for figure in figures {
        let several = figure["runs"] == 3;
        for name in ["seek", "seek_merging", "scan", "scan_merging", "hit", "miss"] {
            let rounds = figure["figures"][format!("{name}_ns")]["rounds"].as_array();
            assert_eq!(rounds.map(Vec::len), Some(2), "{name}");
        }
        for name in ["hit_plain", "miss_plain", "build", "rebuild"] {
            assert_eq!(figure["figures"][format!("{name}_ns")].is_object(), several, "{name}");
        }
        assert!(figure["figures"]["order_bytes_per_key"]["median"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "the runs are removed");
}

#[test]
fn bad_command_lines_are_explained() {
    for arguments in [
        &["memory", "-n", "ten"][..],
        &["memory", "-n", "0"],
        &["memory", "--subjects", "btree"],
        &["memory", "--subjects", "btreemap+xxh3"],
        &["memory", "--subjects", "cuckoo+md5"],
        &["memory", "--subjects", "cuckoo@tcmalloc"],
        &["memory", "--threads", "1"],
        &["memory", "--distribution", "zipf"],
        &["memory", "--hits", "101"],
        &["memory", "--batches", "0"],
        &["memory", "--batches", "2000"],
        &["memory", "--rate", "0"],
        &["memory", "--long", "--quick"],
        &["llds", "--max", "-n", "5"],
        &["store", "--subjects", "berkeleydb"],
        &["store", "--budget", "1M"],
        &["store", "-F", "text"],
        &["memory", "--data", "x.kvb", "--tree", "/usr"],
        &["remix", "--runs", "32"],
        &["pressure", "floods"],
        &["pressure", "--subjects", "sqlite"],
        &["pressure", "--quick", "--live", "1G"],
        &["stores"],
        &[],
    ] {
        let output = kvbench(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{arguments:?}");
    }
    let output = kvbench(&["store", "--memory", "64M"]);
    assert!(text(&output.stderr).contains("name a smaller --budget"), "{}", text(&output.stderr));
    let output = kvbench(&["memory", "--quick", "--tree", "/nowhere/at/all"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/nowhere/at/all"), "{}", text(&output.stderr));
    let list = text(&kvbench(&["list"]).stdout);
    for part in ["masstree", "cuckoo", "xxhash:XX3_64bits", "passes", "mimalloc", "lmdb"] {
        assert!(list.contains(part), "{part}: {list}");
    }
}

#[test]
fn an_arm_ends_when_its_run_does() {
    let job = r#"{"task":"Measure","subject":"btreemap","kind":"u64","keys":4000000000000,"seed":1,"probes":1,
        "threads":2,"steps":[],"pages":"auto","margin_bytes":2000000000,"pin":false,"clock":"wall"}"#;
    let mut arm = Command::new(env!("CARGO_BIN_EXE_kvbench"))
        .args(["arm", job])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut stdin = arm.stdin.take().unwrap();
    stdin.write_all(&0u64.to_le_bytes()).unwrap();
    // As many keys would take years; without the other end of the pipe the arm must not go on.
    drop(stdin);
    assert_eq!(arm.wait().unwrap().code(), Some(1));
}

/// A program that replaces a measuring arm and prints the given figures, so that verdicts do not depend on this
/// machine. `lines` is a shell script that sets `ns`; it may read `$job`.
fn says(name: &str, lines: &str) -> String {
    says_with(name, lines, r#""disturbed_percent":0.0"#, "{}")
}

/// The same with other values beside `get_ns`, and the share that others had of each step's time.
fn says_with(name: &str, lines: &str, values: &str, disturbed: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = scratch(name);
    let figures = format!(
        r#"{{"Done":{{"Figures":{{"values":{{"get_ns":'$ns',{values}}},"disturbed":{disturbed},"sums":{{}},"notes":[]}}}}}}"#
    );
    let script = format!("#!/bin/sh\njob=\"$2\"\n{lines}\necho '{figures}'\n");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}=anything", path.display())
}

fn compare(a: &str, b: &str, more: &[&str]) -> (Option<i32>, String) {
    compare_if(a, b, "100", more)
}

/// The same, with the share of others up to which a block counts.
fn compare_if(a: &str, b: &str, disturbed: &str, more: &[&str]) -> (Option<i32>, String) {
    let how = ["-n", "2000", "--probes", "2000", "--blocks", "5", "--disturbed", disturbed];
    let clock = if more.contains(&"--clock") { &[][..] } else { &["--clock", "cpu"] };
    let output = kvbench(&[&["compare", a, b], how.as_slice(), clock, more].concat());
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn a_comparison_ends_with_its_verdict() {
    let (fast, slow) = (says("says-100.sh", "ns=100.0"), says("says-103.sh", "ns=103.0"));
    let wild = says("says-anything.sh", r#"ns=$((50 + $(echo "$job" | cksum | cut -c1-2)))"#);
    for (a, b, code, verdict) in [
        (&fast, &slow, 4, "b is slower"),
        (&slow, &fast, 3, "b is faster"),
        (&fast, &fast, 0, "b is same"),
        (&wild, &fast, 5, "b is inconclusive"),
    ] {
        let (is, out) = compare(a, b, &[]);
        assert!(is == Some(code) && out.contains(verdict), "{a} {b}: {is:?} {out}");
        assert_fits(&out);
    }
}

/// A text whose lines were wrapped, in one line.
fn joined(out: &str) -> String {
    out.replace('\n', " ")
}

/// Asserts that no line is wider than 80 columns, except those that name a file of the tests.
fn assert_fits(out: &str) {
    let long =
        out.lines().filter(|line| line.chars().count() > 80 && !line.contains(env!("CARGO_TARGET_TMPDIR")));
    assert_eq!(long.collect::<Vec<_>>(), [""; 0], "{out}");
}

#[test]
fn subjects_are_compared_in_blocks() {
    let path = scratch("compared.jsonl");
    // Another program that is this one.
    let itself = format!("{}=btreemap", env!("CARGO_BIN_EXE_kvbench"));
    for turns in ["1", "3"] {
        drop(std::fs::remove_file(&path));
        let more = ["--only", "miss", "--turns", turns, "--json", path.to_str().unwrap()];
        let (code, out) = compare(&itself, "skiplist", &more);
        assert!(matches!(code, Some(0 | 3 | 4 | 5)), "{code:?} {out}");
        assert!(
            out.contains("get_miss_ns") && out.contains("insert_ns") && !out.contains("get_ns "),
            "{out}"
        );
    }
    let records = records(&path);
    let compared = &records[1]["compared"];
    assert_eq!(records[1]["record"], "compared");
    let blocks = compared["blocks"]["get_miss_ns"].as_array().unwrap();
    assert!(blocks.len() == 5 && blocks.iter().all(|block| block["b"][1].as_f64().unwrap() > 0.0));
    assert!(compared["judged"]["get_miss_ns"]["ratio"].as_f64().unwrap() > 0.0, "{compared}");
}

#[test]
fn steps_that_write_are_judged() {
    for (steps, figures) in [
        ("remove", &["remove_ns"][..]),
        ("update,mixed,hits", &["update_ns", "mixed_50_ns", "get_hits_50_ns"]),
        ("ycsb-a,latency", &["ycsb_a_ns", "get_p50_ns", "ycsb_a_read_p99_ns"]),
        ("ycsb-d,ycsb-e,ycsb-f", &["ycsb_d_ns", "ycsb_e_ns", "ycsb_f_ns"]),
        ("threads", &["read_2t_ns", "mixed_shared_2t_ns"]),
    ] {
        let figures = if *IS_ONE_CPU && steps == "threads" { &[] } else { figures };
        let (code, out) = compare_if("forrest", "forrest", "100", &["--only", steps]);
        assert!(matches!(code, Some(0 | 3 | 4 | 5)), "{steps}: {code:?} {out}");
        assert!(figures.iter().all(|figure| out.contains(&format!("\n{figure} "))), "{steps}: {out}");
    }
}

/// Whether this machine has one CPU, so that no step has several threads.
static IS_ONE_CPU: std::sync::LazyLock<bool> =
    std::sync::LazyLock::new(|| std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2));

/// The shares are above 100 %, which a machine that is busy itself cannot reach: the host may take time from any block.
#[test]
fn a_block_is_repeated_if_a_step_that_is_judged_was_disturbed() {
    let quiet = says("quiet.sh", "ns=100.0");
    let of = |name: &str, disturbed: &str| says_with(name, "ns=100.0", r#""insert_ns":5.0"#, disturbed);
    let judged = of("disturbed-get.sh", r#"{"get_ns":150.0,"insert_ns":0.0}"#);
    let other = of("disturbed-other.sh", r#"{"get_ns":0.0,"iterate_gb_per_s":150.0}"#);
    let wall = ["--clock", "wall"];
    let (code, out) = compare_if(&quiet, &judged, "100", &wall);
    assert!(code == Some(5) && joined(&out).contains("with --clock cpu, or"), "{code:?} {out}");
    assert_fits(&out);
    // The advice helps: other processes are not in the CPU time.
    let (code, out) = compare_if(&quiet, &judged, "100", &[]);
    assert!(code == Some(0) && !out.contains("repeated"), "{code:?} {out}");
    let (code, out) = compare_if(&quiet, &other, "100", &wall);
    assert!(code == Some(0) && !out.contains("repeated"), "{code:?} {out}");
}

/// The line of a record with a figure that took five rounds, near 100 times this factor.
fn recorded(run: &str, factor: f64) -> Value {
    let rounds: Vec<f64> = (0..5).map(|round| factor * (100.0 + f64::from(round) / 10.0)).collect();
    let figure = json!({ "median": rounds[2], "min": rounds[0], "max": rounds[4], "rounds": rounds });
    json!({
        "kvbench": 1, "record": "figures", "run": run, "subject": "x", "pages": "auto", "kind": "u64",
        "keys": 1000, "figures": { "get_ns": figure },
    })
}

/// A record of these lines.
fn record_of(name: &str, lines: &[Value]) -> PathBuf {
    let path = scratch(name);
    std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    path
}

/// Compares two records: the exit code, and what was printed.
fn compare_records(a: &Path, b: &Path, more: &[&str]) -> (Option<i32>, String) {
    let output = kvbench(&[&["compare", a.to_str().unwrap(), b.to_str().unwrap()], more].concat());
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn records_are_compared() {
    let [base, near, far] = [("base.jsonl", 1.0), ("near.jsonl", 1.05), ("far.jsonl", 1.5)]
        .map(|(name, factor)| record_of(name, &[recorded(name, factor)]));
    for (a, b, code) in [(&base, &base, 0), (&base, &near, 5), (&base, &far, 4), (&far, &base, 3)] {
        let (is, out) = compare_records(a, b, &[]);
        assert_eq!(is, Some(code), "{out}");
        assert_fits(&out);
    }
    std::fs::write(&near, "{\"kvbench\":1,\"record\":\"goals\",\"goals\":[]}\nnonsense").unwrap();
    let (code, out) = compare_records(&base, &near, &[]);
    assert!(code == Some(1) && out.contains("near.jsonl:2: "), "{out}");
}

#[test]
fn records_of_runs_that_differ_are_not_compared() {
    // A run for each clock and factor; all else is the same.
    let record = |name: &str, runs: &[(&str, f64)]| {
        let run = |(at, (clock, factor)): (usize, &(&str, f64))| {
            let run = json!({
                "kvbench": 1, "record": "run", "run": at.to_string(), "date": "2026-11-30T00:00:00Z", "revision": null,
                "command": ["memory", "--rounds", "5"], "options": { "clock": clock, "probes": 1000 },
                "machine": { "cpu": null, "cpus": 2, "memory_bytes": 1024, "system": "x",
                    "huge_pages_free_bytes": 0 },
                "versions": {},
            });
            [run, recorded(&at.to_string(), *factor)]
        };
        record_of(name, &runs.iter().enumerate().flat_map(run).collect::<Vec<_>>())
    };
    let wall = record("wall.jsonl", &[("Wall", 1.0)]);
    let cpu = record("cpu.jsonl", &[("Cpu", 1.5)]);
    let (code, out) = compare_records(&wall, &cpu, &[]);
    assert!(
        code == Some(1) && out.contains("option clock (Wall; Cpu)") && out.contains("--even-if"),
        "{out}"
    );
    let (code, out) = compare_records(&wall, &cpu, &["--even-if-different"]);
    assert!(
        code == Some(4) && joined(&out).contains("may come from that: option clock (Wall; Cpu)"),
        "{code:?} {out}"
    );
    // The runs of a record that differ are apart: pooled, these would be 1.25 times as slow as the first.
    let both = record("both.jsonl", &[("Wall", 1.0), ("Cpu", 1.5)]);
    let (code, out) = compare_records(&wall, &both, &[]);
    assert!(code == Some(0) && out.contains("b is same") && out.contains("Not compared"), "{code:?} {out}");
    let (code, out) = compare_records(&both, &both, &[]);
    assert!(code == Some(0) && out.matches("\nx u64").count() == 2, "{code:?} {out}");
    assert!(out.contains("option clock Cpu") && out.contains("option clock Wall"), "{out}");
}

#[test]
fn sides_that_cannot_be_compared_are_refused() {
    for (a, b, code, why) in [
        ("btreemap", "x.jsonl", 1, "a record is compared with a record"),
        ("btreemap", "nobody", 2, "none of the structures"),
        ("/nowhere/kvbench=btreemap", "btreemap", 1, "/nowhere/kvbench: "),
        ("here.jsonl", "nowhere.jsonl", 1, "here.jsonl: "),
    ] {
        let (is, out) = compare(a, b, &[]);
        assert!(is == Some(code) && out.contains(why), "{a} {b}: {is:?} {out}");
    }
}

#[test]
fn a_calibration_counts_verdicts() {
    // One program obeys the requested slowdown, the other ignores it.
    let obeys = r#"case "$job" in *'"slowdown":3.0'*) ns=103.0;; *) ns=100.0;; esac"#;
    for (program, found, code) in [(says("obeys.sh", obeys), 2, 0), (says("ignores.sh", "ns=100.0"), 0, 1)] {
        let output =
            kvbench(&["calibrate", &program, "--trials", "2", "--blocks", "4", "--disturbed", "100"]);
        let out = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{out}");
        assert!(out.contains("itself           faster    0, slower    0, same    2"), "{out}");
        assert!(out.contains(&format!("itself, slower   faster    0, slower {found:4}")), "{out}");
        assert_fits(&out);
    }
}

#[test]
fn a_record_becomes_a_page_and_rows() {
    let (path, page) = (scratch("reported.jsonl"), scratch("report.html"));
    let (record, html) = (path.to_str().unwrap(), page.to_str().unwrap());
    let line = "memory -n 2000 --kinds u64 --only get --no-sweep --subjects btreemap,rbtree --json";
    assert!(kvbench(&words(line, &[record])).status.success());
    let out = done(&["report", record, "--html", html, "--csv", "-"]);
    assert!(out.contains("\"u64, 2K pairs\",btreemap,get_ns,ns,"), "{out}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<title>rbtree: ") && page.ends_with("</html>\n"));

    std::fs::write(&path, "").unwrap();
    let output = kvbench(&["report", record]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no figures"), "{}", text(&output.stderr));
}

#[test]
fn a_suite_becomes_a_record_and_a_page() {
    let [suite, record, page] = ["own.toml", "own.jsonl", "own.html"].map(scratch);
    let name = |path: &PathBuf| path.to_str().unwrap().to_owned();
    let common = "-n 1000 --probes 1000";
    let steps = format!(
        "about = \"two steps\"\n\
         [[step]]\nwhy = \"figures\"\nrun = \"memory {common} --kinds u64 --subjects rbtree --only get --no-sweep\"\n\
         [[step]]\nwhy = \"a verdict\"\nrun = \"compare btreemap rbtree {common} --blocks 4 --disturbed 100\"\n"
    );
    std::fs::write(&suite, steps).unwrap();
    let arguments =
        ["run", &name(&suite), "--json", &name(&record), "--html", &name(&page)].map(str::to_owned);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let out = done(&arguments);
    assert!(out.contains("== 1/2 kvbench memory") && out.contains("2 of 2 steps went well"), "{out}");
    let kinds: BTreeSet<String> =
        records(&record).iter().map(|record| record["record"].as_str().unwrap().to_owned()).collect();
    assert!(kinds.contains("figures") && kinds.contains("compared"), "{kinds:?}");
    assert!(std::fs::read_to_string(&page).unwrap().contains("<title>rbtree: "));
    // What was measured is not mixed with what will be.
    let output = kvbench(&arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("is there already"), "{}", text(&output.stderr));
}

#[test]
fn the_doctor_tells_and_setup_needs_a_name() {
    let out = done(&["doctor", "--no-noise"]);
    // On any machine, each of these topics is reported.
    let topics: Vec<&str> = out.lines().filter_map(|line| line.get(8..)?.split("  ").next()).collect();
    for name in [
        "processor",
        "memory",
        "huge pages",
        "transparent",
        "system",
        "governor",
        "smt",
        "nmi-watchdog",
        "perf",
        "counters",
        "--simulate",
    ] {
        assert_eq!(topics.iter().filter(|topic| **topic == name).count(), 1, "{name}: {out}");
    }
    let output = kvbench(&["setup"]);
    assert!(output.status.success() && text(&output.stdout).contains("governor=performance"));
    let keep = scratch("keep.json");
    let keep = keep.to_str().unwrap();
    for (arguments, why) in [(["brightness"], "is none of governor"), (["huge-pages-2m"], "needs a value")] {
        let output = kvbench(&[&["setup", "--keep", keep], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
    }
    let output = kvbench(&["setup", "--keep", keep, "--undo"]);
    assert!(text(&output.stdout).contains("0 settings are as they were"), "{}", text(&output.stderr));
}

/// Groups that limit the memory of a run.
fn groups(run: u32) -> usize {
    let mut groups = vec![PathBuf::from("/sys/fs/cgroup")];
    let name = format!("kvbench-memory-{run}");
    let mut found = 0;
    while let Some(group) = groups.pop() {
        found += usize::from(group.ends_with(&name));
        let within = std::fs::read_dir(group).into_iter().flatten().flatten();
        groups.extend(
            within
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
    }
    found
}

/// Whether what this process starts ignores the keyboard's interrupt, as what a shell starts in the background does.
fn ignores_interrupts() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // A bit for each signal; SIGINT is number 2.
    ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).is_some_and(|bits| bits & 2 != 0)
}

/// Interrupted from the keyboard, or killed: no directory, no group and no process stays.
#[test]
fn a_run_that_is_ended_leaves_nothing() {
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::process::CommandExt;
    for signal in ["INT", "KILL"] {
        if signal == "INT" && ignores_interrupts() {
            eprintln!("skipped: an interrupted run, because interrupts are ignored here");
            continue;
        }
        let within = tempfile::tempdir().unwrap();
        let left = || std::fs::read_dir(within.path()).unwrap().count();
        let mut run = Command::new(env!("CARGO_BIN_EXE_kvbench"))
            // It would take long.
            .args(words("store -n 20M --subjects forrest --directory", &[within.path().to_str().unwrap()]))
            .args(LIMITS.then_some("--memory=2G"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let mut said = BufReader::new(run.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        assert!(line.starts_with("kvbench store") && left() == 1, "{line}");
        assert_eq!(groups(run.id()), usize::from(*LIMITS));
        // What the keyboard sends reaches the whole group, what kills may reach the run alone.
        let whom = if signal == "INT" { format!("-{}", run.id()) } else { run.id().to_string() };
        let sent = Command::new("kill").args([&format!("-{signal}"), "--", &whom]).status().unwrap();
        assert!(sent.success() && !run.wait().unwrap().success());
        drop(said);
        // All its processes have this pipe: it ends with the last of them.
        run.stderr.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
        assert_eq!((left(), groups(run.id())), (0, 0), "{signal}");
    }
    let output = kvbench(&["sweep", "/tmp"]);
    assert!(text(&output.stderr).contains("no directory of a run"));
}
