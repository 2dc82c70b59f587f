//! What a developer runs, as `cargo xtask COMMAND`; `cargo xtask help` lists the commands.
//!
//! It builds on a clean machine with only a Rust toolchain. It installs what a command needs (components by rustup,
//! Debian packages by apt-get). A step whose requirements are unavailable is skipped, and the reason is printed. It
//! never asks a question. `docs/testing.md` explains what each command runs and why.

#![forbid(unsafe_code)]

mod bench;
mod cluster;
mod collisions;
mod counts;
mod crash;
mod docs;
mod engine;
mod failure;
mod files;
mod foreign;
mod fuzz;
mod go;
mod guide;
mod histories;
mod install;
mod instructions;
mod java;
mod kafka;
mod kafka_suites;
mod lanes;
mod leveldb;
mod models;
mod msrv;
mod mutants;
mod node;
mod others;
mod packages;
mod page;
mod portable;
mod processors;
mod python;
mod races;
mod raft;
mod redis;
mod required;
mod served;
mod setup;
mod soak;
mod sources;
mod steps;
mod surefire;
mod test;
mod tidy;
mod vm;
mod wheels;
mod workspace;

use std::process::ExitCode;

use failure::{Failure, no_arguments};
use workspace::Workspace;

/// Exit code for a usage error.
const USAGE: u8 = 2;

struct Command {
    name: &'static str,
    /// How it is called, after its name.
    arguments: &'static str,
    /// What it does, in one line.
    does: &'static str,
    run: fn(&Workspace, &[String]) -> Result<(), Failure>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "test",
        arguments: "[--full] [STEP...]",
        does: "formatting, lints and tests in quick size; with --full all that CI runs; or some steps",
        run: test::run,
    },
    Command {
        name: "tidy",
        arguments: "[--layers | --words [WORD...] | --record]",
        does: "house rules that no lint knows",
        run: tidy::run,
    },
    Command {
        name: "portable",
        arguments: "",
        does: "unit and model tests for AArch64 under user-mode emulation",
        run: portable::run,
    },
    Command {
        name: "races",
        arguments: "[--long]",
        does: "stress tests under AddressSanitizer and ThreadSanitizer",
        run: races::run,
    },
    Command {
        name: vm::NAME,
        arguments: "[NAME=NUMBER...] [--debug] [--planted [MISTAKE...]] [--costs [--record]]",
        does: vm::DOES,
        run: vm::run,
    },
    Command {
        name: "engine",
        arguments: "",
        does: "the kernel home's engine in user space, against a model, under sanitizers",
        run: engine::run,
    },
    Command {
        name: "crash",
        arguments: "[WORKLOADS]",
        does: "the gates of the store on disk: crashes, failing disks, damage",
        run: crash::run,
    },
    Command { name: soak::NAME, arguments: "[--seconds N] [--seed N]", does: soak::DOES, run: soak::run },
    Command {
        name: "models",
        arguments: "",
        does: "loom models of the lock-free protocols, and weakened mutants, which must fail",
        run: models::run,
    },
    Command { name: raft::NAME, arguments: "", does: raft::DOES, run: raft::run },
    Command { name: histories::NAME, arguments: "", does: histories::DOES, run: histories::run },
    Command { name: "mutants", arguments: "[NAME...]", does: mutants::DOES, run: mutants::run },
    Command {
        name: "fuzz",
        arguments: "[TARGET] [SECONDS]",
        does: "the fuzz targets, each for a bounded time",
        run: fuzz::run,
    },
    Command {
        name: "install",
        arguments: "[--libraries] --prefix DIR",
        does: "the commands, libraries, headers, manual pages and completions below DIR",
        run: install::install,
    },
    Command { name: java::NAME, arguments: "[--here]", does: java::DOES, run: java::run },
    Command { name: "kafka", arguments: cluster::ARGUMENTS, does: cluster::DOES, run: cluster::run },
    Command {
        name: kafka_suites::NAME,
        arguments: "[CLASS...]",
        does: kafka_suites::DOES,
        run: kafka_suites::run,
    },
    Command {
        name: node::NAME,
        arguments: "[--here] [DIR]",
        does: "the npm package forrest-level, tested; --here: for this machine only",
        run: node::run,
    },
    Command {
        name: "package",
        arguments: "[DIR]",
        does: "the same as a Debian package, an archive, and a PKGBUILD for Arch",
        run: install::package,
    },
    Command { name: "wheels", arguments: "[DIR]", does: wheels::DOES, run: wheels::run },
    Command {
        name: "docs",
        arguments: "",
        does: "documentation with warnings denied; links and commands in the Markdown files",
        run: docs::run,
    },
    Command {
        name: "bench",
        arguments: "memory|store|pressure|remix|llds [ARGUMENTS...] | instructions [--record]",
        does: "the benchmark, built with optimization; arguments are passed on",
        run: bench::run,
    },
    Command { name: "others", arguments: others::ARGUMENTS, does: others::DOES, run: others::run },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, arguments)) = arguments.split_first() else {
        eprint!("{}", help());
        return ExitCode::from(USAGE);
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        print!("{}", help());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprint!("error: no command is called {name:?}\n\n{}", help());
        return ExitCode::from(USAGE);
    };
    // What follows belongs to the benchmark, its --help included.
    if command.name != "bench" && arguments.iter().any(|one| one == "--help" || one == "-h") {
        print!("{}", help_of(command));
        return ExitCode::SUCCESS;
    }
    let names = COMMANDS.iter().map(|command| command.name).chain(["help"]).collect();
    let result = Workspace::find().map(|found| found.with_commands(names)).map_err(Failure::Broken);
    match result.and_then(|workspace| (command.run)(&workspace, arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed) => ExitCode::FAILURE,
        Err(Failure::Broken(why)) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
        Err(Failure::Usage(why)) => {
            eprint!("error: {why}\n\n{}", help_of(command));
            ExitCode::from(USAGE)
        }
    }
}

fn help() -> String {
    let mut help =
        "What a developer of Forrest runs.\n\nUsage: cargo xtask COMMAND\n\nCommands:\n".to_owned();
    for command in COMMANDS {
        help += &format!("  {:<9} {}\n", command.name, command.does);
    }
    help + "\n'cargo xtask COMMAND --help' shows more. docs/testing.md explains what runs where, and why.\n"
}

fn help_of(command: &Command) -> String {
    let call = format!("cargo xtask {} {}", command.name, command.arguments);
    let mut help = format!("{}\n\nUsage: {}\n", sentence(command.does), call.trim_end());
    match command.name {
        "test" => help += &test::help(),
        "tidy" => {
            help += "\n--layers prints docs/layers.txt as the code has it, and cycles of modules.\n\
                     --words prints the most frequent words of docs/words.txt, or the places of those named.\n\
                     --record lowers the count of docs/words.txt to what there is.\n";
        }
        "races" => {
            help += &format!(
                "\nEach stress test runs for {} seconds, with --long for {}.\nThe variable {} sets it to anything else.\n",
                races::SHORT_SECONDS,
                races::LONG_SECONDS,
                races::SECONDS_VARIABLE
            );
        }
        "kafka" => {
            help += "\nIt takes ten minutes by default, and some more to begin and end. With --quick only\nKafka's own tests of stores run, with --bench a comparison with RocksDB's store.\n"
        }
        soak::NAME => help += "\nIt takes an hour by default; CI runs one minute.\n",
        "install" => {
            help += "\n--libraries leaves the commands out: only what programs in C and C++ need, which builds in a minute or two.\n";
        }
        "package" => help += "\nDIR defaults to target/package. Needs dpkg-deb, tar, sha256sum and strip.\n",
        java::NAME => {
            help += "\nThe libraries are then where Maven finds them. A processor that cannot be emulated here is built, not tested.\n"
        }
        node::NAME => {
            help += "\nDIR defaults to target/node. A processor that cannot be emulated here is built, not tested.\n"
        }
        "wheels" => {
            help += "\nDIR defaults to target/python-wheels. A processor that cannot be emulated here is built, not tested.\n"
        }
        "fuzz" => help += &fuzz::help(),
        vm::NAME => help += &vm::help(),
        "bench" => {
            help += "\nstore and pressure compile their peers; RocksDB among them takes many minutes the first time.\n\
                     --no-rocksdb leaves it out, --subjects forrest all of them.\n";
        }
        _ => {}
    }
    help
}

/// A line of help as a sentence.
fn sentence(does: &str) -> String {
    let mut letters = does.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_tells_every_command() {
        let help = help();
        for command in COMMANDS {
            assert!(help.contains(command.does), "{}", command.name);
            assert!(help_of(command).contains(&format!("cargo xtask {}", command.name)));
        }
        for line in help.lines().chain(COMMANDS.iter().map(|command| command.does)) {
            assert!(line.len() <= 100, "{line}");
        }
    }

    #[test]
    fn sentences_begin_large() {
        assert_eq!(sentence("all that CI runs"), "All that CI runs.");
        assert_eq!(sentence(""), ".");
    }
}
