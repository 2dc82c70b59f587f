//! The `kvbench` command: what ordered structures and stores cost, measured so that the figures can be trusted.
//!
//! A run starts a fresh process for each arm (one subject, one kind and number of pairs), checks every answer,
//! and prints medians, a verdict for each goal of the project, and records for `bench/record`.
//! `docs/benchmarks.md` explains each figure.
//!
//! `docs/layers.txt` has the order of the modules.
#![deny(unsafe_code)]

mod affinity;
mod alloc;
mod ancestor_command;
mod arm;
mod cap;
mod chart;
mod chase;
mod chase_command;
mod cli;
mod compare;
mod compare_command;
mod conform;
mod counted;
mod counters;
mod data;
mod doctor_command;
mod errors;
mod explain;
mod files;
mod files_command;
mod goals;
mod hashes;
mod html;
mod job;
mod knobs;
mod latency;
mod list;
mod live;
mod llds;
mod llds_command;
mod lock_file;
mod machine;
mod measure;
mod memory;
mod names;
mod options;
#[path = "../../forrest-cli/src/pages.rs"]
mod pages;
#[cfg(test)]
#[path = "../peers/plan.rs"]
mod peers_plan;
mod pressure_command;
mod pressure_report;
mod record;
mod recorded;
mod registry;
mod remix;
mod remix_command;
mod remix_report;
mod report;
mod run_command;
mod runner;
mod sizes;
mod spoken;
mod statistics;
mod store_command;
mod store_report;
mod stores;
mod subjects;
mod tables;
mod threads;
mod turns;
mod usage;
mod workload;
mod workplace;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
