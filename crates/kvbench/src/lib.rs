//! The `kvbench` command: what ordered structures and stores cost, measured so that the figures can be trusted. As a
//! library it is the same command with structures of your own; see [`main`].
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
mod bench;
mod cap;
mod chart;
mod chase;
mod chase_command;
mod cli;
mod comparable;
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
mod highlights;
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
mod own;
#[path = "../../forrest-cli/src/pages.rs"]
mod pages;
mod peers;
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
#[cfg(test)]
#[path = "../revision.rs"]
mod revision;
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

pub use own::{NumberMap, StringMap, Structure};

use std::process::ExitCode;

/// Does what the `kvbench` command does, with these structures beside its own. They come last in the tables, and are
/// named on the command line like the others: checked first, then measured in processes of their own. These begin with
/// `main` again, so call this function first of all, with the same structures each time.
///
/// A name that is taken, or is no name, is reported, and the exit code is 2.
///
/// ```no_run
/// # use forrest_kvbench as kvbench;
/// use std::collections::HashMap;
/// use std::process::ExitCode;
///
/// #[derive(Default)]
/// struct Mine(HashMap<u64, u64>);
///
/// impl kvbench::NumberMap for Mine {
///     fn insert(&mut self, key: u64, value: u64) {
///         self.0.insert(key, value);
///     }
///     fn get(&self, key: u64) -> Option<u64> {
///         self.0.get(&key).copied()
///     }
///     fn remove(&mut self, key: u64) -> bool {
///         self.0.remove(&key).is_some()
///     }
///     fn each(&self, mut see: impl FnMut(u64, u64)) {
///         self.0.iter().for_each(|(key, value)| see(*key, *value));
///     }
/// }
///
/// fn main() -> ExitCode {
///     kvbench::main([kvbench::Structure::new("mine", "a HashMap of mine").numbers::<Mine>()])
/// }
/// ```
///
/// `cargo run --release -- memory --subjects mine,hashbrown,forrest` then compares it.
pub fn main(structures: impl IntoIterator<Item = Structure>) -> ExitCode {
    match own::register(structures) {
        Ok(()) => cli::run(),
        Err(why) => {
            eprintln!("kvbench: {why}");
            ExitCode::from(2)
        }
    }
}
