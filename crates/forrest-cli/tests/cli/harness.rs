//! Runs the command in a temporary directory.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The command under test.
pub(crate) const FORREST: &str = env!("CARGO_BIN_EXE_forrest");

/// A temporary directory, in which commands run.
pub(crate) struct Place(TempDir);

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Place(TempDir::new().expect("a temporary directory can be made"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, and the directories that lead to it.
    pub(crate) fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("it lies in the directory")).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// The command with some arguments, without environment variables that change its behaviour.
    pub(crate) fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        self.clean(Command::new(FORREST), arguments)
    }

    fn clean(&self, mut command: Command, arguments: &[impl AsRef<OsStr>]) -> Command {
        command.current_dir(self.path()).args(arguments);
        for name in ["FORREST_URL", "NO_COLOR", "LC_CTYPE", "LANG"] {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C.UTF-8").env("TERM", "xterm-256color");
        command
    }

    /// Runs the command with an input.
    pub(crate) fn run_with(&self, arguments: &[impl AsRef<OsStr>], input: impl AsRef<[u8]>) -> Ran {
        finish(self.command(arguments), input.as_ref())
    }

    /// Runs the command without input.
    pub(crate) fn run(&self, arguments: &[impl AsRef<OsStr>]) -> Ran {
        self.run_with(arguments, "")
    }

    /// Runs a line of shell, in which `forrest` is the command.
    pub(crate) fn shell(&self, line: &str) -> Ran {
        let mut command = self.clean(Command::new("bash"), &["-c", line]);
        let mut path = Path::new(FORREST).parent().expect("it lies somewhere").as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command.env("PATH", path);
        finish(command, b"")
    }
}

fn finish(mut command: Command, input: &[u8]) -> Ran {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let mut stdin = child.stdin.take().expect("it is piped");
    let output = std::thread::scope(|scope| {
        // A command that reads nothing closes it early, which is its right.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().expect("its output can be read")
    });
    Ran::from(output)
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let stderr = String::from_utf8(output.stderr).expect("standard error is text");
        assert!(!stderr.contains("panicked"), "{stderr}");
        Ran { code: output.status.code(), stdout: output.stdout, stderr }
    }
}

impl Ran {
    /// Standard output as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("standard output is text")
    }

    /// Asserts success and returns standard output.
    #[track_caller]
    pub(crate) fn ok(&self) -> &str {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self.text()
    }
}
