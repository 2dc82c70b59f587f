//! Scripts: text files of commands for a store, with their expected results.
//!
//! A line that begins with `> ` is a command (see `command`), with `>> ` an operation of the batch above it,
//! and with two spaces an expected result. Lines with `#` and blank lines are comments. Each script runs on a
//! new store. `FORREST_SCRIPTS_BLESS=1` writes the actual results into the files.

use crate::command::Command;
use crate::world::World;
use forrest::Db;
use std::fmt::Write;

/// A script of commands and their results.
pub(crate) fn print<'c>(commands: impl Iterator<Item = (&'c Command, &'c Vec<String>)>) -> String {
    let mut text = String::new();
    for (command, answers) in commands {
        print_command(&mut text, command, answers);
    }
    text
}

fn print_command(text: &mut String, command: &Command, answers: &[String]) {
    writeln!(text, "> {command}").expect("strings take all");
    command.body().iter().for_each(|line| writeln!(text, ">> {line}").expect("strings take all"));
    answers.iter().for_each(|line| writeln!(text, "  {line}").expect("strings take all"));
}

/// Executes a script, and returns it with the actual results.
fn execute(name: &str, script: &str, store: Db) -> String {
    let mut world = World::new(store);
    let mut out = String::new();
    let mut lines = script.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if let Some(text) = line.strip_prefix("> ") {
            let mut body = Vec::new();
            while let Some((_, more)) = lines.next_if(|(_, line)| line.starts_with(">> ")) {
                body.push(&more[3..]);
            }
            let command = Command::parse(text, &body)
                .unwrap_or_else(|error| panic!("{name}, line {}: {error}", number + 1));
            let answers = world.execute(&command);
            writeln!(out, "> {text}").expect("strings take all");
            body.iter().for_each(|line| writeln!(out, ">> {line}").expect("strings take all"));
            answers.iter().for_each(|line| writeln!(out, "  {line}").expect("strings take all"));
        } else if line.is_empty() || line.starts_with('#') {
            writeln!(out, "{line}").expect("strings take all");
        } else {
            assert!(line.starts_with("  "), "{name}, line {}: neither command nor answer", number + 1);
        }
    }
    out
}

/// The script without the results of `keys`, which are estimates on disk.
fn without_counts(script: &str) -> Vec<&str> {
    let mut lines: Vec<_> = script.lines().collect();
    for at in (1..lines.len()).rev() {
        if lines[at - 1] == "> keys" {
            lines.remove(at);
        }
    }
    lines
}

#[test]
fn scripts_answer_as_written() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder of scripts")
        .map(|entry| entry.expect("an entry of it").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no scripts");
    let mut wrong = Vec::new();
    let directory = tempfile::tempdir().expect("a directory");
    for path in paths {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let script = std::fs::read_to_string(&path).expect("a script in UTF-8");
        let memory = Db::open("memory:").expect("a store in memory");
        let answered = execute(&name, &script, memory);
        if std::env::var_os("FORREST_SCRIPTS_BLESS").is_some() {
            std::fs::write(&path, answered).expect("a script that can be written");
            continue;
        }
        let path = directory.path().join(&name);
        // Small sizes, so that scripts read tables as well.
        let disk = Db::builder()
            .memtable_bytes(1 << 10)
            .cache_bytes(1)
            .table_bytes(4 << 10)
            .batch_bytes_max(16 << 20);
        let disk = disk.open(path.to_str().expect("it is text")).expect("a store on disk");
        for (home, answered) in [("memory", answered), ("disk", execute(&name, &script, disk))] {
            if answered == script || home == "disk" && without_counts(&answered) == without_counts(&script) {
                continue;
            }
            let mut pairs = script.lines().zip(answered.lines()).enumerate();
            let differs = pairs.find(|(_, (expected, got))| expected != got);
            wrong.push(match differs {
                Some((at, (expected, got))) => {
                    format!("{name}:{}: expected {expected:?}, got {got:?} from {home}", at + 1)
                }
                None => format!("{name}: as long as the shorter, but the lengths differ ({home})"),
            });
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
