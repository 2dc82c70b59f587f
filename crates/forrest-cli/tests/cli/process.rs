//! The command among other processes: readers that go away, devices that are full, signals.

use crate::harness::{Place, Ran};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

/// A file of pairs that no pipe can hold at once.
fn large(place: &Place) {
    let lines: String = (0..60_000).map(|i| format!("key {i:05}\tvalue {i}\n")).collect();
    place.write("large.txt", lines);
}

/// Sends SIGINT, as Ctrl-C does.
fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

fn spawn(place: &Place, arguments: &[&str]) -> Child {
    let mut command = place.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_reader_that_goes_away_is_no_reason_to_complain() {
    let place = Place::new();
    large(&place);
    for line in [
        "forrest --load large.txt scan | head -1",
        "forrest --load large.txt dump | head -1",
        "forrest --load large.txt --format jsonl scan | head -1",
        "echo scan | forrest --load large.txt shell | head -1",
        "forrest --load large.txt count --dump - | head -1",
    ] {
        let ran = place.shell(&format!("set -o pipefail; {line}"));
        assert_eq!(ran.code, Some(141), "{line}: {}", ran.stderr);
        assert_eq!(ran.text().lines().count(), 1, "{line}");
        assert_eq!(ran.stderr, "", "{line}");
    }
    let ran = place.shell("set -o pipefail; forrest --help | true");
    assert_eq!(ran.stderr, "");
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let place = Place::new();
    place.write("in.txt", "a\t1\n");
    if !std::path::Path::new("/dev/full").exists() {
        eprintln!("skipped: this system has no /dev/full");
        return;
    }
    for line in ["forrest --load in.txt scan > /dev/full", "forrest --load in.txt count --dump /dev/full"] {
        let ran = place.shell(line);
        assert_eq!(ran.code, Some(4), "{line}");
        assert!(ran.stderr.contains("No space left"), "{line}: {}", ran.stderr);
    }
}

#[test]
fn ctrl_c_while_the_reader_of_the_output_waits() {
    let place = Place::new();
    large(&place);
    let mut child = spawn(&place, &["--load", "large.txt", "scan"]);
    let mut stdout = BufReader::with_capacity(64, child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "key 00000\tvalue 0\n");
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_quiet(child);
}

#[test]
fn ctrl_c_while_input_is_awaited() {
    let place = Place::new();
    let mut child = spawn(&place, &["shell"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"set a 1\nget a\n").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "1\n");
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(stdin);
}

#[test]
fn ctrl_c_during_a_load() {
    let place = Place::new();
    let mut child = spawn(&place, &["load", "-", "--", "count"]);
    let mut stdin = child.stdin.take().unwrap();
    // More than the pipe holds: when the last is written, the first has been read, and the handler is there.
    let lines: String = (0..100_000).map(|i| format!("key {i}\tvalue\n")).collect();
    stdin.write_all(lines.as_bytes()).unwrap();
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_quiet(child);
}

#[test]
fn ctrl_c_during_the_demo() {
    let place = Place::new();
    for i in 0..5_000 {
        place.write(format!("tree/{}/{i}", i % 50), "");
    }
    let mut child = spawn(&place, &["demo", "tree"]);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("Walk") {
        line.clear();
        assert_ne!(stdout.read_line(&mut line).unwrap(), 0);
    }
    interrupt(&child);
    stdout.read_to_string(&mut line).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!line.contains("bytes of a key"), "it went on to the end");
    assert_quiet(child);
}

/// Asserts that standard error is empty or says only that the process was interrupted.
fn assert_quiet(child: Child) {
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert!(["", "forrest: interrupted\n"].contains(&&ran.stderr[..]), "{}", ran.stderr);
}
