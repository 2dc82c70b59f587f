//! Tests of the storage for openraft.

mod history;
mod machine;
mod power;
mod processes;
mod simulator;
mod suite;
