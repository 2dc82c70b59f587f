//! The gates of the store, on the simulated disk: its guarantees are checked in every state that a crash, a
//! failing disk or damage can leave.

mod all;
mod backup;
mod beside;
mod bounded;
mod budget;
mod changes;
mod checkpoint;
mod conformance;
mod crash;
mod damage;
#[cfg(feature = "encryption")]
mod encryption;
mod expiry;
mod faults;
mod filter;
mod forged;
mod ingest;
mod large;
mod log_directory;
mod lost;
mod merges;
mod metrics;
mod opening;
mod packed;
mod ranges;
mod reads;
mod resume;
mod salvage;
mod snapshot;
mod sync;
mod value_logs;
mod world;
