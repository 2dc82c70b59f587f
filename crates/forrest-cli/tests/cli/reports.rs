//! `stat` and `doctor`: for people as tables, for programs as JSON.

use crate::harness::Place;
use serde_json::Value;

#[test]
fn stat_tells_what_the_library_tells() {
    let place = Place::new();
    place.write("in.txt", "a\t1\nb\t2\n#keyspace more\nc\t3\n");
    let stat = |format: &str| place.run(&["--load", "in.txt", "--format", format, "stat"]).ok().to_owned();
    let text = stat("text");
    for (name, value) in [("keys", "3"), ("keyspaces", "2"), ("snapshots", "0"), ("atomic batches", "yes")] {
        let line = text.lines().find(|line| line.trim_start().starts_with(&format!("{name} ")));
        assert!(line.is_some_and(|line| line.ends_with(value)), "{name}:\n{text}");
    }
    let json: Value = serde_json::from_str(&stat("jsonl")).unwrap();
    assert_eq!((&json["home"], &json["keys"]), (&Value::from("memory:"), &Value::from(3)));
    assert_eq!(json["can"]["snapshots"], Value::from(true));
    assert!(json["node_bytes"].is_u64() && json["bytes_per_key"].is_f64());
}

#[test]
fn stat_tells_what_was_done_to_a_store_on_disk() {
    let place = Place::new();
    place.write("in.txt", "a\t1\nb\t2\nc\t3\n");
    let stat = |more: &[&str]| {
        let _gone = std::fs::remove_dir_all(place.path().join("forest"));
        let all = [&["--db", "forest", "--load", "in.txt", "stat"], more].concat();
        place.run(&all).ok().to_owned()
    };
    let text = stat(&[]);
    let line = text.lines().find(|line| line.trim_start().starts_with("changes "));
    assert!(line.is_some_and(|line| line.ends_with(" 3")), "{text}");
    let json: Value = serde_json::from_str(&stat(&["--format", "jsonl"])).unwrap();
    assert_eq!(json["since_opened"]["changes"], Value::from(3));
    let prometheus = stat(&["--prometheus"]);
    assert!(prometheus.lines().any(|line| line == "forrest_changes_total 3"), "{prometheus}");
    let refused = place.run(&["stat", "--prometheus"]);
    assert!(refused.stderr.contains("only stores on disk"), "{}", refused.stderr);
}

#[test]
fn doctor_reports_each_topic_with_advice() {
    let place = Place::new();
    let ran = place.run(&["doctor", "--format", "jsonl"]);
    let findings: Vec<Value> = ran.ok().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text = place.run(&["doctor"]);
    for topic in ["huge pages", "transparent", "counters", "open files", "llds device", "processor"] {
        let finding = findings.iter().find(|finding| finding["topic"] == topic);
        let finding = finding.unwrap_or_else(|| panic!("no {topic} in {findings:?}"));
        assert!(["good", "fair", "poor", "absent"].contains(&finding["state"].as_str().unwrap()));
        assert!(!finding["what"].as_str().unwrap().is_empty());
        assert!(text.ok().contains(topic), "{topic}:\n{}", text.text());
    }
    let advised = findings.iter().filter(|finding| finding["advice"].is_string()).count();
    assert_eq!(text.ok().matches('→').count(), advised);
    assert!(text.ok().lines().all(|line| line.chars().count() <= 80), "{}", text.text());
}
