//! `cargo xtask vm --costs`: counts the instructions of each way to access a store in the kernel, on an emulated
//! machine.
//!
//! One nanosecond of that machine is one instruction, of the program and of the kernel together. So the figures are the
//! same on any host, even a busy one, within 1 %. `crates/llds/examples/costs.rs` measures; this module compares its
//! figures with the goals and with the record. No figure may exceed the record by more than [`GROWTH`]. Caches and
//! memory cost nothing on that machine; only a real machine shows the cost of a miss.

use std::fmt::Write as _;

use super::bench::{Bench, Kind};
use super::boots::Boot;
use super::client::Client;
use super::console;
use super::machine::Processors;
use crate::counts;
use crate::steps::{Outcome, Verdict};
use crate::workspace::Workspace;

/// The last accepted figures.
const RECORD: &str = "bench/record/llds-instructions.txt";
/// Maximum growth of a figure, as a fraction of the record's.
const GROWTH: f64 = 0.03;
/// Maximum number of instructions with the default index. That of a single get is beyond an empty ioctl.
const GOALS: &[(&str, f64)] =
    &[("get-mapped", 80.0), ("get-1024", 130.0), (SINGLE, 450.0), ("set-1024", 150.0)];
/// A call for one get.
const SINGLE: &str = "get-1";
/// A call that does nothing.
const EMPTY: &str = "empty-ioctl";

const BOOT: Boot = Boot { name: "costs", count: 1, nodes: 1, gibibytes: 1, parameters: "costs=1" };
/// Indexes, in the order in which the machine measures them.
const INDEXES: [&str; 2] = ["default", "tree"];

/// The command: compares with the record, or replaces the record with `--record`.
pub(crate) fn run(workspace: &Workspace, words: &[&str]) -> Verdict {
    let records = match words {
        [] => false,
        ["--record"] => true,
        _ => return Err(format!("unexpected arguments {words:?}: --costs takes --record, or nothing")),
    };
    let bench = match Bench::prepare(workspace, Kind::Stock)? {
        Ok(bench) => bench,
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    bench.build()?;
    bench.pack(Some(&Client::costs(workspace, bench.folder())?))?;
    let said = bench.boot(&BOOT, Processors::Counted, "")?;
    let costs =
        read(&said).map_err(|why| format!("{why}\nconsole output: {}", bench.log(BOOT.name).display()))?;
    print!("{}", table(&costs));
    let counts = costs.iter().map(|(index, name, cost)| (format!("{index} {name}"), *cost)).collect();
    if records {
        let made_with = format!("Linux {}, {}", bench.release(), bench.compiler());
        return counts::write(workspace, RECORD, &made_with, &counts);
    }
    counts::compare(workspace, RECORD, |_| GROWTH, &counts)
}

/// A cost: which index, which way, how many instructions.
type Cost = (&'static str, String, f64);

/// The costs in a machine's console output.
fn read(said: &str) -> Result<Vec<Cost>, String> {
    if !said.lines().any(|line| line.starts_with(console::UP)) {
        return Err("the machine did not boot".to_owned());
    }
    let mut costs = Vec::new();
    let mut index = None;
    for line in said.lines().map(str::trim) {
        if let Some(tree) = line.strip_prefix("costs tree=") {
            index = tree.parse().ok().and_then(|tree: usize| INDEXES.get(tree).copied());
        }
        if let Some((name, number)) = line.strip_prefix("cost ").and_then(|line| line.split_once(' ')) {
            let number = number.parse().map_err(|_| format!("{line:?} has no number"))?;
            costs.push((index.ok_or("a cost of no index")?, name.to_owned(), number));
        }
    }
    for index in INDEXES {
        if !costs.iter().any(|cost| cost.0 == index && cost.1 == "get-1024") {
            return Err(format!("there are no costs of the index {index:?}"));
        }
    }
    Ok(costs)
}

fn find(costs: &[Cost], index: &str, name: &str) -> Option<f64> {
    costs.iter().find(|cost| cost.0 == index && cost.1 == name).map(|cost| cost.2)
}

/// Each way with both indexes, and the goals.
fn table(costs: &[Cost]) -> String {
    let mut text = format!("\n{:<20}{:>10}{:>10}{:>10}\n", "instructions", INDEXES[0], INDEXES[1], "goal");
    for (_, name, cost) in costs.iter().filter(|cost| cost.0 == INDEXES[0]) {
        let tree = find(costs, INDEXES[1], name).map_or("-".to_owned(), |cost| format!("{cost:.0}"));
        let goal = GOALS.iter().find(|goal| goal.0 == name);
        let empty = if name == SINGLE { find(costs, INDEXES[0], EMPTY).unwrap_or(0.0) } else { 0.0 };
        let goal = goal.map_or(String::new(), |(_, goal)| {
            let goal = goal + empty;
            format!("{goal:>10.0}  {}", if *cost <= goal { "holds" } else { "missed" })
        });
        let _ = writeln!(text, "{name:<20}{cost:>10.0}{tree:>10}{goal}");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "llds machine: up, 6.1\ncosts tree=0\ncost get-1024 150.0\r\ncost get-mapped 70.5\n\
        costs tree=1\ncost get-1024 900.0\n";

    #[test]
    fn what_the_machine_says_is_read() {
        let costs = read(SAID).expect("costs");
        assert_eq!(find(&costs, "default", "get-mapped"), Some(70.5));
        assert_eq!(find(&costs, "tree", "get-1024"), Some(900.0));
        assert!(table(&costs).contains("get-1024                   150       900       130  missed"));
        assert!(read("nothing").is_err());
        assert!(read("llds machine: up, 6.1\ncosts tree=0\ncost get-1024 1\n").is_err());
        assert!(read("llds machine: up, 6.1\ncost get-1024 1\n").is_err());
        assert!(read("llds machine: up, 6.1\ncosts tree=0\ncost get-1024 many\n").is_err());
    }
}
