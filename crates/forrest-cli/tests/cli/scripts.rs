//! Sessions as readable text: each file in `scripts/` has commands and their exact output.
//!
//! ```text
//! # a comment
//! $ printf 'apple\t3\n' > in.txt         a line of shell, run in a directory of the script's own
//! $ forrest --load in.txt get apple
//! | 3                                     a line of standard output
//! $ forrest get apple
//! ! forrest: note: not found: apple       a line of standard error
//! ? 1                                     the exit code, if it is not 0
//! ```
//!
//! A command goes on in lines that begin with `> `. Output that does not end in a line feed ends in `\`. With
//! FORREST_BLESS=1 in the environment the files are written anew; read the difference before you keep it.

use crate::harness::{Place, Ran};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn scripts_answer_as_written() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/scripts");
    let mut files: Vec<PathBuf> =
        fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    let mut differences = String::new();
    for file in files {
        let written = fs::read_to_string(&file).unwrap();
        let answered = replay(&written);
        if answered == written {
            continue;
        }
        if std::env::var_os("FORREST_BLESS").is_some() {
            fs::write(&file, answered).unwrap();
            continue;
        }
        let line = written.lines().zip(answered.lines()).take_while(|(a, b)| a == b).count();
        let at = |text: &str| text.lines().nth(line).unwrap_or("(the end)").to_owned();
        let name = file.display();
        writeln!(
            differences,
            "{name}:{}:\n  expected: {}\n  actual:   {}",
            line + 1,
            at(&written),
            at(&answered)
        )
        .unwrap();
    }
    assert!(differences.is_empty(), "\n{differences}\nFORREST_BLESS=1 writes the files anew\n");
}

/// The script with the current output of its commands.
fn replay(script: &str) -> String {
    let place = Place::new();
    let mut out = String::new();
    let mut lines = script.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(first) = line.strip_prefix("$ ") else {
            if !line.starts_with(['|', '!', '?']) {
                writeln!(out, "{line}").unwrap();
            }
            continue;
        };
        writeln!(out, "{line}").unwrap();
        let mut command = first.to_owned();
        while let Some(more) = lines.next_if(|line| *line == ">" || line.starts_with("> ")) {
            writeln!(out, "{more}").unwrap();
            command.push('\n');
            command.push_str(more.get(2..).unwrap_or_default());
        }
        let ran = place.shell(&command);
        show(&ran, place.path(), &mut out);
    }
    out
}

fn show(ran: &Ran, place: &Path, out: &mut String) {
    for (mark, text) in [('|', ran.text()), ('!', &ran.stderr)] {
        let text = text.replace(&place.display().to_string(), "HERE");
        for line in text.split_inclusive('\n') {
            let (line, end) = line.strip_suffix('\n').map_or((line, "\\"), |line| (line, ""));
            writeln!(out, "{}", format!("{mark} {line}{end}").trim_end()).unwrap();
        }
    }
    if ran.code != Some(0) {
        writeln!(out, "? {}", ran.code.map_or("killed".to_owned(), |code| code.to_string())).unwrap();
    }
}
