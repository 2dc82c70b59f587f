//! The `kvbench` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    forrest_kvbench::main([])
}
