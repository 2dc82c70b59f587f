//! The examples run, and what they assert holds.

#![expect(unreachable_pub, reason = "as a program, each needs its `main` for itself alone")]

#[path = "../../examples/counters.rs"]
mod counters;
#[path = "../../examples/quick_start.rs"]
mod quick_start;
#[path = "../../examples/snapshot_range.rs"]
mod snapshot_range;
#[path = "../../examples/transactions.rs"]
mod transactions;

#[test]
fn examples_run() {
    quick_start::main().expect("the quick start runs");
    counters::main().expect("the counters run");
    snapshot_range::main().expect("the snapshot and the range run");
    transactions::main().expect("the transactions run");
}
