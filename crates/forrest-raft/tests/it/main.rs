//! Tests of the storage for openraft.

mod machine;
mod power;
mod simulator;
mod suite;
