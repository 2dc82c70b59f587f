//! `top` on a store that another process has open.

use crate::harness::Place;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

#[test]
fn a_store_of_another_process_is_shown() {
    let place = Place::new();
    let writer = ["--db", "forest", "--metrics-file", "forest/metrics.prom", "--latencies", "true"];
    let writer = [&writer[..], &["--large-values", "64", "shell"]].concat();
    let mut writer = place.command(&writer).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = writer.stdin.take().unwrap();
    let mut output = BufReader::new(writer.stdout.take().unwrap());
    input
        .write_all(format!("set oak {}\ncompact\nset oak Quercus\nget oak\n", "Q".repeat(200)).as_bytes())
        .unwrap();
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "Quercus\n");

    let text = place.run(&["top", "forest", "-n", "1", "-i", "0.1"]).ok().to_owned();
    for row in [
        "forest  ",
        "  keys         2, tables ",
        "  memory ",
        "  changes ",
        "  log ",
        "  large values ",
        "  written ",
        "  waits ",
    ] {
        assert!(text.lines().any(|line| line.starts_with(row)), "{row}:\n{text}");
    }
    let json =
        place.run(&["-f", "jsonl", "top", "forest/metrics.prom", "-n", "2", "-i", "0.1"]).ok().to_owned();
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["forrest_changes_total"], Value::from(2.0));
    assert_eq!(lines[1]["forrest_call_seconds_count{call=\"get\"}"], Value::from(1.0));
    drop(input);
    assert!(writer.wait().unwrap().success());

    let gone = place.run(&["top", "forest", "-n", "1"]);
    assert!(gone.code == Some(2) && gone.stderr.contains("--metrics-file"), "{}", gone.stderr);
    place.write("other.prom", "nothing\n");
    let other = place.run(&["top", "other.prom", "-n", "1"]);
    assert!(other.code == Some(2) && other.stderr.contains("has no metrics of a store"), "{}", other.stderr);
}
