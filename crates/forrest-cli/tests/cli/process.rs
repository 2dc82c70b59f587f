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

/// Waits until a process sleeps, as it does when it waits for input. Returns at once where the system does not say.
fn until_it_sleeps(child: &Child) {
    let stat = format!("/proc/{}/stat", child.id());
    let mut sleeping = 0;
    while sleeping < 200 {
        let Ok(stat) = std::fs::read_to_string(&stat) else { return };
        let is_sleeping = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'));
        sleeping = if is_sleeping { sleeping + 1 } else { 0 };
        std::thread::yield_now();
    }
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

/// What was read before Ctrl-C is loaded, and a note says how much: sorted pairs are in an ingest then.
#[test]
fn ctrl_c_during_a_load() {
    let place = Place::new();
    let pipe = place.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let lines = |step: u32| -> String {
        (0..100_000).map(|i| format!("key {:06}\tvalue of {i}\n", i * step % 100_000)).collect()
    };
    let (sorted, mixed) = (lines(1), lines(7919));
    for (store, source, lines) in
        [("sorted", "-", &sorted), ("mixed", "-", &mixed), ("named", "pipe", &sorted)]
    {
        let mut child = spawn(&place, &["--db", store, "load", source]);
        let mut input: Box<dyn Write> = match source {
            "-" => Box::new(child.stdin.take().unwrap()),
            _ => Box::new(std::fs::File::options().write(true).open(&pipe).unwrap()),
        };
        // More than the pipe holds: when the last is written, the handler is there.
        input.write_all(lines.as_bytes()).unwrap();
        until_it_sleeps(&child);
        interrupt(&child);
        let ran = Ran::from(child.wait_with_output().unwrap());
        drop(input);
        assert_eq!(ran.code, Some(130), "{store}: {}", ran.stderr);
        let (note, end) = ran.stderr.split_once('\n').unwrap();
        assert_eq!(end, "forrest: interrupted\n", "{store}");
        let pairs = note
            .split(": ")
            .nth(3)
            .and_then(|rest| rest.strip_suffix(" pairs loaded before this, which stay"));
        let pairs: usize =
            pairs.unwrap_or_else(|| panic!("{store}: {note}")).replace(',', "").parse().unwrap();
        assert_eq!(pairs, 100_000, "{store}");
        assert_eq!(place.run(&["--db", store, "count"]).ok(), format!("{pairs}\n"), "{store}");
    }
    // In memory there is nothing that stays.
    let mut child = spawn(&place, &["load", "-", "--", "count"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(sorted.as_bytes()).unwrap();
    until_it_sleeps(&child);
    interrupt(&child);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, &ran.stderr[..]), (Some(130), "forrest: interrupted\n"));
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
