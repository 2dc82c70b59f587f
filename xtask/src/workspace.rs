//! Where things are, and running commands there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// The variable with the size of tests: `quick`, the default, or `full`. `crates/forrest-testing` reads it.
pub(crate) const SIZE_VARIABLE: &str = "FORREST_TESTS";

/// Cargo's option for the engine on disk without optimization, in builds of their own: that takes four minutes of the
/// processor, and their tests a fraction of it without.
pub(crate) const UNOPTIMIZED: &[&str] = &["--config", "profile.dev.package.remixdb.opt-level=0"];

/// The workspace that this was called in.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    /// The directory of the workspace's manifest.
    pub(crate) root: PathBuf,
    /// Where cargo puts what it builds.
    pub(crate) target: PathBuf,
    /// The commands that xtask has, for checking what the documents mention.
    pub(crate) commands: Vec<&'static str>,
    /// Whether tests run in full size, and every step: in CI, or if the caller requests it.
    pub(crate) is_full: bool,
    /// Whether cargo keeps parts of builds: only where it has done so for the engine, for someone who changes it.
    is_incremental: bool,
    /// The cargo that started this.
    cargo: OsString,
}

/// Whether cargo has kept parts of the engine's builds.
fn has_parts(target: &Path) -> bool {
    let Ok(entries) = target.join("debug/incremental").read_dir() else { return false };
    are_of_engine(entries.flatten().map(|entry| entry.file_name()))
}

fn are_of_engine(mut parts: impl Iterator<Item = OsString>) -> bool {
    parts.any(|name| name.to_string_lossy().starts_with("remixdb-"))
}

impl Workspace {
    /// Finds the workspace from the directory of this crate.
    pub(crate) fn find() -> Result<Workspace, String> {
        // The variable at run time, not at build time: two checkouts may share a target directory.
        let own = std::env::var_os("CARGO_MANIFEST_DIR").ok_or("to be called as: cargo xtask COMMAND")?;
        let root = Path::new(&own).parent().ok_or("xtask lies in no workspace")?;
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(path) => std::path::absolute(path).map_err(|error| format!("CARGO_TARGET_DIR: {error}"))?,
            None => root.join("target"),
        };
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let is_full = std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()));
        let is_incremental = !is_full && has_parts(&target);
        Ok(Workspace { root: root.to_owned(), target, commands: Vec::new(), is_full, is_incremental, cargo })
    }

    /// The same, which knows these commands.
    pub(crate) fn with_commands(self, commands: Vec<&'static str>) -> Workspace {
        Workspace { commands, ..self }
    }

    /// The same with tests in full size.
    pub(crate) fn full(&self) -> Workspace {
        Workspace { is_full: true, ..self.clone() }
    }

    /// The first in the quick size, the second in the full size.
    pub(crate) fn sized<T>(&self, quick: T, full: T) -> T {
        if self.is_full { full } else { quick }
    }

    /// A call of cargo at the root; tests get their size.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.cargo);
        command.args(arguments);
        if arguments.first() == Some(&"test") {
            self.size(&mut command);
        }
        if !self.is_incremental && std::env::var_os("CARGO_INCREMENTAL").is_none() {
            // A clean clone builds everything once. What another build could use again takes a third of the time and 6
            // of 11 GB.
            command.env("CARGO_INCREMENTAL", "0");
        }
        command
    }

    /// Gives tests their size.
    pub(crate) fn size(&self, tests: &mut Command) {
        if self.is_full {
            tests.env(SIZE_VARIABLE, "full");
        }
    }

    /// The space that is left where cargo builds, as `df` prints it; empty if there is no `df`.
    pub(crate) fn space(&self) -> String {
        let mut command = self.command("df");
        command.args(["-h", "--output=avail,target"]).arg(&self.root).stderr(Stdio::null());
        match command.output() {
            Ok(output) => String::from_utf8_lossy(&output.stdout).lines().skip(1).collect::<String>(),
            Err(_) => String::new(),
        }
    }

    /// A call of cargo with a directory of its own for what it builds, so that other flags do not drive out what
    /// the usual ones built.
    pub(crate) fn cargo_apart(&self, directory: &str, arguments: &[&str]) -> Command {
        let mut command = self.cargo(arguments);
        command.env("CARGO_TARGET_DIR", self.target.join(directory));
        command
    }

    /// A call of another program at the root. Nothing is ever read from the terminal.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).stdin(Stdio::null());
        command
    }

    /// The names of a package's integration tests as cargo finds them: `tests/NAME.rs` and `tests/NAME/main.rs`.
    /// Sorted; empty if there are none.
    pub(crate) fn integration_tests(&self, package: &str) -> Vec<String> {
        // The name of the folder is another package's in the registry.
        let folder = if package == "forrest-db" { "forrest" } else { package };
        let Ok(entries) = std::fs::read_dir(self.root.join("crates").join(folder).join("tests")) else {
            return Vec::new();
        };
        let name = |entry: std::fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            match name.strip_suffix(".rs") {
                Some(name) => Some(name.to_owned()),
                None => entry.path().join("main.rs").exists().then_some(name),
            }
        };
        let mut names: Vec<String> = entries.filter_map(|entry| name(entry.ok()?)).collect();
        names.sort();
        names
    }
}

/// A command that runs longer has its time printed, to show where a step spends its own.
const LONG_SECONDS: u64 = 5;

/// Prints a command and runs it, its output going where this program's goes.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    println!("$ {}", line(command));
    let start = Instant::now();
    let status =
        command.status().map_err(|error| format!("cannot run {:?}: {error}", command.get_program()))?;
    let took = start.elapsed().as_secs();
    if took >= LONG_SECONDS {
        println!("took {took} s");
    }
    if status.success() { Ok(()) } else { Err(format!("{status} of: {}", line(command))) }
}

/// Runs a command and returns what it wrote to either stream, and how it ended. Prints nothing.
pub(crate) fn capture(command: &mut Command) -> Result<(String, ExitStatus), String> {
    let output = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| format!("cannot run {:?}: {error}", command.get_program()))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text += &String::from_utf8_lossy(&output.stderr);
    Ok((text, output.status))
}

/// Whether a command runs and succeeds. Prints nothing.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    capture(command).is_ok_and(|(_, status)| status.success())
}

/// A command as one would type it.
pub(crate) fn line(command: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            words.push(format!("{}={}", name.to_string_lossy(), quoted(&value.to_string_lossy())));
        }
    }
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    words.push(quoted(&program.to_string_lossy()));
    words.extend(command.get_args().map(|argument| quoted(&argument.to_string_lossy())));
    words.join(" ")
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,@+%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_print_as_typed() {
        let mut command = Command::new("/usr/bin/cargo");
        command.env("RUSTFLAGS", r#"--cfg weak="a""#).env_remove("HOME").args(["test", "it's", ""]);
        assert_eq!(line(&command), r#"RUSTFLAGS='--cfg weak="a"' cargo test 'it'\''s' ''"#);
    }

    #[test]
    fn parts_of_builds_are_kept_where_those_of_the_engine_are() {
        assert!(!are_of_engine(["xtask-1", "remixdb_c-1"].map(OsString::from).into_iter()));
        assert!(are_of_engine(["xtask-1", "remixdb-1"].map(OsString::from).into_iter()));
    }

    #[test]
    fn the_workspace_is_found() {
        let workspace = Workspace::find().expect("this test runs in it");
        // One of either form: a directory, and a file.
        assert!(workspace.integration_tests("forrest-db").contains(&"it".to_owned()));
        assert!(workspace.integration_tests("forrest-index").contains(&"model".to_owned()));
        assert!(workspace.integration_tests("no-such-package").is_empty());
    }
}
