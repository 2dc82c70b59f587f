//! `kvbench store --data`: the keys of a file in every store that is compiled in.

use crate::{at_once, kvbench, records, text};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Measures all stores with the keys of a file, in whose directory the program runs. Returns what was printed, the
/// options and the figures.
fn measured(file: &Path, more: &[&str]) -> (String, Value, Vec<Value>) {
    let directory = tempfile::tempdir().expect("a directory for the stores");
    let record = file.with_extension("record.jsonl");
    let places = [directory.path(), &record].map(|path| path.to_str().unwrap());
    let data = file.file_name().and_then(OsStr::to_str).expect("it has a name");
    let fixed = ["store", "--data", data, "--directory", places[0], "--json", places[1]];
    let mut run = Command::new(env!("CARGO_BIN_EXE_kvbench"));
    run.current_dir(file.parent().expect("it is in a directory"));
    run.args(fixed).args(["--budget", "16M", "--synced", "10"]).args(more);
    let output = run.output().expect("the program starts");
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && error.is_empty() && !out.contains("FAILED"), "{out}{error}");
    let records = records(&record);
    let of = |sort: &str| records.iter().filter(|line| line["record"] == sort).cloned().collect::<Vec<_>>();
    assert_eq!(of("goals")[0]["goals"], json!([]), "they are about random keys");
    (out, of("run")[0]["options"].clone(), of("figures"))
}

/// Checks that each store showed the same.
fn check_sums(figures: &[Value], sums: &[&str]) {
    let peers = if cfg!(feature = "stores") { 5 } else { 1 };
    assert!(figures.len() >= peers, "{figures:?}");
    for figure in figures {
        assert!(sums.iter().all(|sum| figure["sums"][sum].is_string()), "{figure}");
        assert_eq!(figure["sums"], figures[0]["sums"], "{}", figure["subject"]);
    }
}

/// Repeated words, words that others begin with, one that no suffix may follow at once, a long one, and empty lines.
#[test]
fn words_of_a_file_are_the_keys_of_every_store() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("words.txt");
    let mut words: Vec<_> =
        (0..300).map(|word| "abcdefg~"[..1 + word % 7].to_owned() + &word.to_string()).collect();
    words.extend(["a", "ab", "abc", "abc", "a", "a~1", ""].map(str::to_owned));
    words.extend([600, 511, 510].map(|bytes| "x".repeat(bytes)));
    std::fs::write(&file, words.join("\n") + "\n\n").unwrap();
    let (out, options, figures) = measured(&file, &[]);
    assert!(
        out.contains("keys: words.txt (text), 306 different ones of ")
            && out.contains("; 2 repeated; 1 left out, empty or above 511 bytes\n"),
        "{out}"
    );
    assert!(
        out.contains("\n302 pairs of words.txt, writes survive the process: us per operation\n"),
        "{out}"
    );
    assert!(!out.contains("Goals"), "{out}");
    let data = &options["data"];
    assert_eq!((&data["keys"], &data["repeated"], &data["left_out"]), (&json!(306), &json!(2), &json!(1)));
    assert_eq!((&options["key_bytes"], data["checksum"].as_str().map(str::len)), (&Value::Null, Some(16)));
    check_sums(&figures, &["scan", "forward", "backward", "insert", "insert_zipfian", "content"]);
    // A hundredth of the keys and then made ones: by two steps of insertions, a batch, and three of synced ones.
    let of = |figure: &str, name: &str| figures[0]["figures"][figure][name].as_f64();
    assert!(
        figures
            .iter()
            .all(|figure| figure["sums"]["pairs"] == json!(format!("{:x}", 302 + 2 + 2 + 100 + 36))),
        "{}",
        figures[0]["sums"]
    );
    assert_eq!(of("recovered_percent", "min"), Some(100.0));
    assert!(of("load_disk_per_byte", "min").unwrap() > 0.5, "{}", figures[0]);
}

/// Lines of JSON, whose keys may be empty; their values are not taken.
#[test]
fn paths_of_a_file_are_the_keys_of_every_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = |at: usize| format!("/usr/share/{}/{}/file {at}", "doc".repeat(at % 5), at / 10);
    // Two files that the program knows under one name.
    let files = ["/usr/", "/lib/"].map(|first| {
        let file = directory.path().join(&first[1..]).join("paths.jsonl");
        let mut lines: Vec<_> = (0..500).map(path).collect();
        lines.extend([
            first.to_owned(),
            String::new(),
            "/usr".to_owned(),
            "/usr/share".to_owned(),
            "p".repeat(600),
        ]);
        let lines = lines.iter().map(|path| json!({ "key": path, "value": "v" }).to_string() + "\n");
        std::fs::create_dir(file.parent().unwrap()).unwrap();
        std::fs::write(&file, lines.collect::<String>()).unwrap();
        file
    });
    let only = ["--only", "get,miss,many,seek,scan,insert"];
    let runs =
        [(&files[0], ["-n", "400,503"], &[][..]), (&files[1], ["-n", "400"], &["--subjects", "forrest"])];
    let measured = at_once(&runs, |(file, size, more)| measured(file, &[&only, size, *more].concat()));
    let [(out, options, figures), (_, others, _)] = &measured[..] else { unreachable!("two runs") };
    assert!(out.contains("503 different ones") && out.contains("0 repeated; 2 left out"), "{out}");
    for keys in [400, 503] {
        let figures: Vec<_> = figures.iter().filter(|figure| figure["keys"] == keys).cloned().collect();
        check_sums(&figures, &["scan", "insert", "content"]);
    }
    let refused = ["-n", "504", "--subjects", "forrest"];
    let output = kvbench(&[&["store", "--data", files[0].to_str().unwrap()], &refused[..]].concat());
    let error = text(&output.stderr);
    assert!(error.contains("504 pairs are asked for, the file has 503"), "{error}");
    assert_ne!(options["data"]["checksum"], others["data"]["checksum"]);
    let records = files.map(|file| file.with_extension("record.jsonl"));
    let output = kvbench(&["compare", records[0].to_str().unwrap(), records[1].to_str().unwrap()]);
    let error = text(&output.stderr);
    assert!(output.status.code() == Some(1) && error.contains("option data checksum ("), "{error}");
}
