//! `kvbench store --data`: the keys of a file in every store that is compiled in.

use crate::{kvbench, records, text};
use serde_json::{Value, json};
use std::path::Path;

/// Measures all stores with the keys of a file. Returns what was printed, the options and the figures.
fn measured(file: &Path, more: &[&str]) -> (String, Value, Vec<Value>) {
    let directory = tempfile::tempdir().expect("a directory for the stores");
    let record = file.with_extension("record.jsonl");
    let places = [file, directory.path(), &record].map(|path| path.to_str().unwrap());
    let fixed = ["store", "--data", places[0], "--directory", places[1], "--json", places[2]];
    let output = kvbench(&[&fixed, &["--budget", "16M", "--synced", "10"][..], more].concat());
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
    let head = format!("keys: {} (text), 306 different ones of ", file.display());
    assert!(
        out.contains(&head) && out.contains("; 2 repeated; 1 left out, empty or above 511 bytes\n"),
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
    let file = directory.path().join("paths.jsonl");
    let path = |at: usize| format!("/usr/share/{}/{}/file {at}", "doc".repeat(at % 5), at / 10);
    let write = |first: &str| {
        let mut lines: Vec<_> = (0..500).map(path).collect();
        lines.extend([
            first.to_owned(),
            String::new(),
            "/usr".to_owned(),
            "/usr/share".to_owned(),
            "p".repeat(600),
        ]);
        let lines = lines.iter().map(|path| json!({ "key": path, "value": "v" }).to_string() + "\n");
        std::fs::write(&file, lines.collect::<String>()).unwrap();
    };
    write("/usr/");
    let more = ["-n", "400,503", "--only", "get,miss,many,seek,scan,insert"];
    let (out, options, figures) = measured(&file, &more);
    assert!(out.contains("503 different ones") && out.contains("0 repeated; 2 left out"), "{out}");
    for keys in [400, 503] {
        let figures: Vec<_> = figures.iter().filter(|figure| figure["keys"] == keys).cloned().collect();
        check_sums(&figures, &["scan", "insert", "content"]);
    }
    let (records, refused) = (file.with_extension("record.jsonl"), ["-n", "504", "--subjects", "forrest"]);
    let output = kvbench(&[&["store", "--data", file.to_str().unwrap()], &refused[..]].concat());
    let error = text(&output.stderr);
    assert!(error.contains("504 pairs are asked for, the file has 503"), "{error}");
    // Another file of the same name.
    let first = file.with_extension("first.jsonl");
    std::fs::rename(&records, &first).unwrap();
    write("/lib/");
    let (_, others, _) =
        measured(&file, &["-n", "400", "--only", "get,miss,many,seek,scan,insert", "--subjects", "forrest"]);
    assert_ne!(options["data"]["checksum"], others["data"]["checksum"]);
    let output = kvbench(&["compare", first.to_str().unwrap(), records.to_str().unwrap()]);
    let error = text(&output.stderr);
    assert!(output.status.code() == Some(1) && error.contains("option data checksum ("), "{error}");
}
