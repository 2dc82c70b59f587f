//! `cargo xtask vm --ancestor`: the benchmark of the module's ancestor in one boot of the machine that counts
//! instructions: `kvbench llds` with 2, 16 and 24 threads, once with the module's index and once with the kernel's
//! red-black tree, as the ancestor had it (`tree=1`).
//!
//! A second of that machine is a thousand million instructions, of all threads and of the kernel together, and it has
//! one processor. So the figures show work, and neither misses of the caches nor threads that run in parallel.
//!
//! With `--wall`, a kernel in user mode without checkers runs it instead, on the processors of this machine: its
//! figures are time, with misses of the caches. It has one processor too, and the host stops the process at each of its
//! system calls and page faults, which costs microseconds. So there it shows what the module's structures cost, and
//! what a mapping and runs save, and not what a call costs elsewhere.

use std::fs;

use super::bench::{Bench, Kind};
use super::boots::Boot;
use super::client::Client;
use super::machine::Processors;
use crate::steps::{Outcome, Verdict};
use crate::workspace::Workspace;

const RECORD: &str = "bench/record/llds-ancestor.txt";
const RECORD_WALL: &str = "bench/record/llds-ancestor-wall.txt";
const BOOT: Boot = Boot { name: "ancestor", count: 1, nodes: 1, gibibytes: 3, parameters: "ancestor=1" };
/// Lines of init around what kvbench prints.
const BEGINS: &str = "ancestor: ";
const ENDS: &str = "ancestor ended";

/// The command: prints the tables, and with `--record` writes them to the record.
pub(crate) fn run(workspace: &Workspace, words: &[&str], settings: &str) -> Verdict {
    if let Some(word) = words.iter().find(|word| !["--record", "--wall"].contains(word)) {
        return Err(format!("unexpected argument {word:?}: --ancestor takes --wall and --record"));
    }
    let (kind, processors, option, record) = if words.contains(&"--wall") {
        (Kind::Timed, Processors::Process, "--ancestor --wall", RECORD_WALL)
    } else {
        (Kind::Stock, Processors::Counted, "--ancestor", RECORD)
    };
    let bench = match Bench::prepare(workspace, kind)? {
        Ok(bench) => bench,
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    bench.build()?;
    bench.pack(Some(&Client::kvbench(workspace, bench.folder())?))?;
    let said = bench.boot(&BOOT, processors, settings)?;
    let tables = tables(&said)
        .ok_or_else(|| format!("the machine stopped; console output: {}", bench.log(BOOT.name).display()))?;
    print!("{tables}");
    if words.contains(&"--record") {
        let command = format!("cargo xtask vm {option} {settings}");
        let text = format!("# Linux {}, {}\n{tables}", bench.release(), command.trim_end());
        let path = workspace.root.join(record);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("written to {record}");
    }
    Ok(Outcome::Passed)
}

/// What kvbench has printed; `None` if it did not come to its end.
fn tables(said: &str) -> Option<String> {
    let mut text = String::new();
    let mut is_inside = false;
    for line in said.lines().map(|line| line.trim_end()) {
        if line == ENDS {
            return is_inside.then_some(text);
        }
        is_inside |= line.starts_with(BEGINS);
        if is_inside {
            text += line;
            text.push('\n');
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_what_stands_between_the_lines_of_init() {
        let said = "boot\r\nancestor: tree=0, 2 threads\r\na 1\r\nancestor ended\r\nmore\r\n";
        assert_eq!(tables(said).as_deref(), Some("ancestor: tree=0, 2 threads\na 1\n"));
        assert_eq!(tables("ancestor: tree=0, 2 threads\na 1\n"), None);
        assert_eq!(tables("ancestor ended\n"), None);
    }
}
