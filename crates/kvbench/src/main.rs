//! The `kvbench` command.
fn main() {}
