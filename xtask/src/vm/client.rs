//! What uses the module in the test machine: the library's tests and the command line, as the step `tests` builds them,
//! and programs of the C library, with the shared libraries that they need.

use std::fs;
use std::path::{Path, PathBuf};

use super::archive::Archive;
use crate::foreign;
use crate::workspace::{self, Workspace};

/// Users and groups of the machine: two users that may use the device, and one that may not.
const FILES: &[(&str, &str)] = &[
    (
        "etc/passwd",
        "root:x:0:0::/:/bin/sh\nmember:x:1000:1000::/:/bin/sh\nother:x:1001:1001::/:/bin/sh\nstranger:x:1002:1002::/:/bin/sh\n",
    ),
    ("etc/group", "root:x:0:\nllds:x:900:member,other\nmember:x:1000:\nother:x:1001:\nstranger:x:1002:\n"),
];

/// The program that measures the cost of operations: an example of llds.
const COSTS: &str = "costs";

/// Files for the machine's archive, by their names in it.
pub(crate) struct Client(Vec<(String, Vec<u8>)>);

/// The C library's directory below the root, and its programs that take a store as argument, with their names in the
/// machine.
const C_LIBRARY: &str = "crates/forrest-c";
const C_PROGRAMS: &[(&str, &str)] = &[
    ("c_api", "tests/c/api.c"),
    ("c_first", "examples/first.c"),
    ("c_llds", "tests/c/llds.c"),
    ("c_old", "examples/llds.c"),
];

impl Client {
    /// Builds all programs, those in C with this compiler, and finds their libraries.
    pub(crate) fn build(workspace: &Workspace, folder: &Path, compiler: &str) -> Result<Client, String> {
        let tests = foreign::test_program(workspace, IT)?;
        // What cargo builds for the tests of the C library lies beside those of the other.
        let library = tests.with_file_name("libforrest.a");
        let mut programs = vec![("it", tests), ("forrest", workspace.target.join("debug/forrest"))];
        for (name, source) in C_PROGRAMS {
            let program = folder.join(format!("{name}.unstripped"));
            c_program(workspace, compiler, source, &library, &program)?;
            programs.push((name, program));
        }
        Client::of(workspace, folder, &programs)
    }

    /// The program that measures the cost of operations.
    pub(crate) fn costs(workspace: &Workspace, folder: &Path) -> Result<Client, String> {
        let arguments = ["build", "--release", "--locked", "--package", "llds", "--example", COSTS];
        workspace::run(&mut workspace.cargo(&arguments))?;
        Client::of(workspace, folder, &[(COSTS, workspace.target.join("release/examples").join(COSTS))])
    }

    /// The benchmark.
    pub(crate) fn kvbench(workspace: &Workspace, folder: &Path) -> Result<Client, String> {
        let package = ["build", "--release", "--locked", "--package", "forrest-kvbench"];
        workspace::run(workspace.cargo(&package).args(["--features", "llds-user"]))?;
        Client::of(workspace, folder, &[("kvbench", workspace.target.join("release/kvbench"))])
    }

    /// Strips programs into a folder, and finds their libraries.
    fn of(workspace: &Workspace, folder: &Path, programs: &[(&str, PathBuf)]) -> Result<Client, String> {
        let mut files: Vec<_> =
            FILES.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect();
        let mut libraries = Vec::new();
        for (name, program) in programs {
            let stripped = folder.join(name);
            // What debuggers want is most of it, and the machine would hold it in memory.
            workspace::run(workspace.command("strip").arg(program).arg("-o").arg(&stripped))?;
            let (said, status) = workspace::capture(workspace.command("ldd").arg(&stripped))?;
            if !status.success() {
                return Err(format!("ldd {}: {said}", stripped.display()));
            }
            libraries.extend(said.lines().filter_map(library));
            files.push(((*name).to_owned(), read(&stripped)?));
        }
        libraries.sort();
        libraries.dedup();
        for library in libraries {
            let name = library.to_string_lossy().trim_start_matches('/').to_owned();
            files.push((name, read(&library)?));
        }
        Ok(Client(files))
    }

    /// Adds the files, and the directories that lead to them, but those that are there.
    pub(crate) fn pack(&self, archive: &mut Archive) {
        let mut directories: Vec<&str> = Vec::new();
        for (name, _) in &self.0 {
            directories.extend(name.match_indices('/').map(|(at, _)| &name[..at]));
        }
        // The shorter come first.
        directories.sort_unstable();
        directories.dedup();
        directories.into_iter().for_each(|directory| archive.directory(directory));
        self.0.iter().for_each(|(name, content)| archive.file(name, content));
    }
}

/// The library's integration tests.
const IT: &str = "crates/forrest/tests/it/main.rs";

/// Builds a program in C, linked with the library's archive.
fn c_program(
    workspace: &Workspace,
    compiler: &str,
    source: &str,
    library: &Path,
    program: &Path,
) -> Result<(), String> {
    let folder = workspace.root.join(C_LIBRARY);
    let mut command = workspace.command(compiler);
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"]).arg(folder.join("include"));
    // Programs written for llds use #include "forrest.h", others <forrest.h>.
    command.arg("-iquote").arg(folder.join("include/llds"));
    command.arg("-o").arg(program).arg(folder.join(source)).arg(library);
    workspace::run(command.args(["-lpthread", "-ldl", "-lm", "-Wl,-S"]))
}

/// The library of a line of ldd; none is one that the kernel itself brings.
fn library(line: &str) -> Option<PathBuf> {
    let path = line.split_once(" => ").map_or(line, |(_, path)| path).trim();
    let (path, _) = path.split_once(" (")?;
    path.starts_with('/').then(|| PathBuf::from(path))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_in_what_ldd_says() {
        let said = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let found: Vec<_> = said.lines().filter_map(library).collect();
        assert_eq!(
            found,
            ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from)
        );
    }
}
