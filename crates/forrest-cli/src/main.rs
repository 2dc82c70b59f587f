//! The `forrest` command.
fn main() {}
