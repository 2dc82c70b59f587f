//! Tests of clusters, simulated and as processes. Those of a node's storage are beside the sources.

mod few_processes;
mod fuzzed;
mod history;
mod processes;
mod simulator;
