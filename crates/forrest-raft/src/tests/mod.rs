//! Tests of a node's storage. Some are gates, which mutants must fail (`cargo xtask mutants`, docs/testing.md).

mod checkpoints;
mod commands;
mod faults;
mod images;
mod left;
mod machine;
mod node;
mod power;
mod removal;
mod suite;
