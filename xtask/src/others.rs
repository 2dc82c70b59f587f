//! `cargo xtask others`: the benchmarks of other projects, with Forrest among their engines.
//!
//! A benchmark is fetched by git at a pinned revision into the target directory. The adapter of `bench/foreign` is put
//! there, and the benchmark is built and run as its project does it. `bench/foreign/README.md` says what is measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::workspace::{self, Workspace};

/// How it is called, after its name.
pub(crate) const ARGUMENTS: &str =
    "crud-bench|redb [--source REPOSITORY] [--engines A,B] [--record FILE] [-- ARGUMENT...]";
/// What it does.
pub(crate) const DOES: &str = "the benchmarks of other projects, with Forrest among their engines";

/// A benchmark.
struct Other {
    name: &'static str,
    repository: &'static str,
    revision: &'static str,
    /// Files of the adapter, and where they go.
    files: &'static [(&'static str, &'static str)],
    /// The engines that are compared by default.
    engines: &'static str,
    run: Run,
}

/// Builds a benchmark in its directory, and runs the engines with these arguments. Returns the table.
type Run = fn(&Workspace, &Path, &[&str], &[String]) -> Result<String, String>;

const OTHERS: &[Other] = &[
    Other {
        name: "crud-bench",
        repository: "https://github.com/surrealdb/crud-bench",
        revision: "a0e0b455e3cb216c223d7885d7f21a9e5593ee76",
        files: &[("forrest.rs", "src/forrest.rs"), ("storage.rs", "src/storage.rs")],
        engines: "forrest,fjall,redb,lmdb,surrealkv",
        run: crud_bench,
    },
    Other {
        name: "redb",
        repository: "https://github.com/cberner/redb",
        revision: "599626be21ad8f58f9b737c9caaba7d6454e8333",
        files: &[("forrest_benchmark.rs", "crates/redb-bench-compare/benches/forrest_benchmark.rs")],
        engines: "forrest,redb,lmdb,fjall,rocksdb",
        run: redb,
    },
];

/// The command.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let usage = |why: &str| Failure::Usage(format!("{why}: others {ARGUMENTS}"));
    let (name, mut rest) = arguments.split_first().ok_or_else(|| usage("nothing is named"))?;
    let other = OTHERS.iter().find(|other| other.name == *name);
    let other = other.ok_or_else(|| usage(&format!("no benchmark is called {name:?}")))?;
    let (mut source, mut engines, mut record) = (other.repository, other.engines, None);
    let more = loop {
        match rest {
            [] => break &[][..],
            [dashes, more @ ..] if dashes == "--" => break more,
            [option, value, more @ ..] => {
                match option.as_str() {
                    "--source" => source = value,
                    "--engines" => engines = value,
                    "--record" => record = Some(value),
                    _ => return Err(usage(&format!("{option:?} is no option"))),
                }
                rest = more;
            }
            [option] => return Err(usage(&format!("{option:?} lacks a value"))),
        }
    };
    let tree = fetch(workspace, other, source).map_err(Failure::Broken)?;
    let names: Vec<&str> = engines.split(',').collect();
    let table = (other.run)(workspace, &tree, &names, more).map_err(Failure::Broken)?;
    print!("\n{table}");
    if let Some(path) = record {
        let given = if more.is_empty() { String::new() } else { format!(" -- {}", more.join(" ")) };
        let head = format!(
            "# {} at {}, {}\n# cargo xtask others {} --engines {engines}{given}\n\n",
            other.repository,
            &other.revision[..12],
            revision(workspace),
            other.name
        );
        fs::write(workspace.root.join(path), head + &table)
            .map_err(|error| Failure::Broken(format!("{path}: {error}")))?;
        println!("written to {path}");
    }
    Ok(())
}

/// The revision of this project.
fn revision(workspace: &Workspace) -> String {
    let described = workspace::capture(workspace.command("git").args(["describe", "--always", "--dirty=+"]));
    described.map_or("an unknown revision".to_owned(), |(text, _)| format!("Forrest {}", text.trim()))
}

/// Provides the source at its revision with the adapter.
fn fetch(workspace: &Workspace, other: &Other, source: &str) -> Result<PathBuf, String> {
    let tree = workspace.target.join("foreign").join(other.name);
    let git = |arguments: &[&str]| {
        let mut git = workspace.command("git");
        git.arg("-C").arg(&tree).args(arguments);
        git
    };
    if !tree.join(".git").exists() {
        fs::create_dir_all(&tree).map_err(|error| format!("{}: {error}", tree.display()))?;
        workspace::run(&mut git(&["init", "-q"]))?;
    }
    let has_it = format!("{}^{{commit}}", other.revision);
    if !workspace::succeeds(&mut git(&["cat-file", "-e", &has_it])) {
        workspace::run(&mut git(&["fetch", "-q", "--depth", "1", source, other.revision]))
            .or_else(|_| workspace::run(&mut git(&["fetch", "-q", source])))?;
    }
    workspace::run(&mut git(&["-c", "advice.detachedHead=false", "checkout", "-q", "-f", other.revision]))?;
    let adapter = workspace.root.join("bench/foreign").join(other.name);
    for (from, to) in other.files {
        let (from, to) = (adapter.join(from), tree.join(to));
        fs::copy(&from, &to).map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))?;
    }
    let patch = adapter.join("register.patch");
    workspace::run(git(&["apply", "--unidiff-zero"]).arg(&patch))?;
    Ok(tree)
}

/// Limit of an engine's run.
const LIMIT_SECONDS: &str = "1800";

/// Each engine in a process of its own. The table has operations per second.
fn crud_bench(
    workspace: &Workspace,
    tree: &Path,
    engines: &[&str],
    more: &[String],
) -> Result<String, String> {
    const DEFAULT: &[&str] =
        &["--samples", "100000", "--clients", "2", "--threads", "4", "--key", "string26", "--random"];
    let features = engines.join(",");
    let mut build =
        workspace.cargo(&["build", "--release", "--no-default-features", "--features", &features]);
    workspace::run(build.current_dir(tree))?;
    let mut rows: Vec<String> = Vec::new();
    let mut figures: BTreeMap<(String, &str), String> = BTreeMap::new();
    for engine in engines {
        // Within a limit of time, because an engine may fail in a way that never ends.
        let mut bench = workspace.command("timeout");
        bench.arg(LIMIT_SECONDS).arg(tree.join("target/release/crud-bench")).current_dir(tree);
        bench.args(["--database", engine, "--name", engine, "--color", "never", "--skip-indexes"]);
        if more.is_empty() {
            bench.args(DEFAULT);
        }
        let ran = workspace::run(bench.args(more));
        // Some leave their directory.
        let _ = fs::remove_dir_all(tree.join(engine));
        if let Err(why) = ran {
            println!("{engine} is left out: {why}");
            continue;
        }
        let path = tree.join(format!("result-{engine}.csv"));
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        for (row, rate) in rates(&text)? {
            if !rows.contains(&row) {
                rows.push(row.clone());
            }
            figures.insert((row, engine), rate);
        }
    }
    rows.retain(|row| {
        engines.iter().any(|engine| figures.get(&(row.clone(), *engine)).is_some_and(|rate| rate != "-"))
    });
    let mut table = format!("{:<66}", "operations per second");
    engines.iter().for_each(|engine| table += &format!("{engine:>11}"));
    for row in rows {
        table += &format!("\n{row:<66}");
        for engine in engines {
            table += &format!("{:>11}", figures.get(&(row.clone(), *engine)).map_or("-", String::as_str));
        }
    }
    Ok(table + "\n")
}

/// The rows of a result with their rates; `-` for what an engine does not support.
fn rates(csv: &str) -> Result<Vec<(String, String)>, String> {
    let mut lines = csv.lines();
    let heads: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let at = heads.iter().position(|head| *head == "OPS").ok_or("crud-bench wrote no column OPS")?;
    let row = |line: &str| {
        // A row's title may have commas, and is then in quotes. The figures have none.
        let (title, figures) = match line.strip_prefix('"').and_then(|line| line.split_once("\",")) {
            Some(split) => split,
            None => line.split_once(',')?,
        };
        let rate = figures.split(',').nth(at - 1)?;
        let rate = rate.parse::<f64>().map_or("-".to_owned(), |rate| format!("{rate:.0}"));
        Some((title.replace(" - reads - no-index", ""), rate))
    };
    Ok(lines.filter_map(row).collect())
}

/// All engines in one process, as redb's own comparison has it; the table is its own.
fn redb(workspace: &Workspace, tree: &Path, engines: &[&str], more: &[String]) -> Result<String, String> {
    let bench = ["bench", "--package", "redb-bench-compare", "--bench", "forrest_benchmark", "--"];
    let mut command = workspace.cargo(&bench);
    command.current_dir(tree).args(engines).args(more).env("REDB_BENCHMARK_DIR", tree);
    println!("$ {}", workspace::line(&command));
    let (text, status) = workspace::capture(&mut command)?;
    if !status.success() {
        return Err(format!("{status}:\n{text}"));
    }
    let table = text.lines().filter(|line| line.starts_with('|'));
    Ok(table.map(|line| format!("{line}\n")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        let csv =
            "Test,Total time,OPS,CPU\n[C]reate,1s,4049.81,5\n\"[S]can, all\",2s,17.2,5\n[S]can::x,-,-,-\n";
        let wanted = [("[C]reate", "4050"), ("[S]can, all", "17"), ("[S]can::x", "-")];
        let wanted = wanted.map(|(row, rate)| (row.to_owned(), rate.to_owned()));
        assert_eq!(rates(csv).unwrap(), wanted);
        assert!(rates("Test,Total\n").is_err());
    }

    #[test]
    fn adapters_are_there() {
        let workspace = Workspace::find().unwrap();
        for other in OTHERS {
            let adapter = workspace.root.join("bench/foreign").join(other.name);
            for (file, _) in other.files {
                assert!(adapter.join(file).exists(), "{file}");
            }
            assert!(adapter.join("register.patch").exists() && other.revision.len() == 40);
        }
    }
}
