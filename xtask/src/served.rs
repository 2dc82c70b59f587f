//! [`Served`]: a program that serves until it is ended, and prints where first.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::workspace;

/// A process, which ends with this.
pub(crate) struct Served {
    process: Child,
    /// The first line that it printed, without the end.
    pub(crate) line: String,
}

impl Served {
    /// Starts a program, and waits for its first line.
    pub(crate) fn start(command: &mut Command) -> Result<Served, String> {
        let process = command.stdout(Stdio::piped()).spawn();
        let process = process.map_err(|error| format!("{}: {error}", workspace::line(command)))?;
        let mut served = Served { process, line: String::new() };
        if let Some(output) = served.process.stdout.take() {
            BufReader::new(output).read_line(&mut served.line).map_err(|error| error.to_string())?;
        }
        served.line.truncate(served.line.trim_end().len());
        Ok(served)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // If it has ended, there is nothing to end.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
