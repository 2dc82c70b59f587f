//! Tools of the tests: compilers, programs, and the libraries that were built. The tests of remixdb-c use it
//! as well; each crate defines the name of its library.

use crate::LIBRARY;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// If this variable is set, committed files are written, not compared.
const BLESS: &str = "FORREST_C_BLESS";

/// A language of the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    C,
    Cpp,
}

impl Language {
    /// Its compiler, from the environment or the usual one, with all warnings as errors. If it cannot be
    /// called, prints the reason and returns None.
    pub(crate) fn compiler(self) -> Option<Command> {
        let (variable, usual, told) = match self {
            Language::C => ("CC", "cc", "C"),
            Language::Cpp => ("CXX", "c++", "C++"),
        };
        let name = std::env::var(variable).unwrap_or_else(|_| usual.to_owned());
        if !succeeds(Command::new(&name).arg("--version")) {
            println!("skipped: there is no {told} compiler called {name}");
            return None;
        }
        let mut command = Command::new(name);
        command.arg(match self {
            Language::C => "-std=c11",
            Language::Cpp => "-std=c++17",
        });
        command.args(["-Wall", "-Wextra", "-Werror", "-pedantic"]);
        Some(command)
    }
}

/// A file of this crate.
pub(crate) fn own(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The directory with the libraries: cargo builds the dependencies of a test into the directory of the test
/// itself.
pub(crate) fn libraries() -> PathBuf {
    let own = std::env::current_exe().expect("a test knows where it is");
    let directory = own.parent().expect("it is in a directory").to_owned();
    for name in [format!("lib{LIBRARY}.a"), shared_name()] {
        let path = directory.join(name);
        assert!(path.exists(), "cargo has built no {}", path.display());
    }
    directory
}

/// The file name of the shared library.
pub(crate) fn shared_name() -> String {
    format!("{}{LIBRARY}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

/// The soname of the shared library, by which linked programs find it.
pub(crate) fn soname() -> String {
    format!("lib{LIBRARY}.so.0")
}

/// Creates a directory below `directory` where programs find the shared library by its soname. Cargo builds
/// it without the number.
pub(crate) fn loaded(directory: &Path) -> PathBuf {
    if cfg!(target_os = "macos") {
        return libraries();
    }
    let loaded = directory.join("loaded");
    std::fs::create_dir_all(&loaded).expect("a directory");
    let (link, library) = (loaded.join(soname()), libraries().join(shared_name()));
    if !link.exists() {
        std::os::unix::fs::symlink(library, link).expect("a link");
    }
    loaded
}

/// Compares a committed file with its expected content, or writes it.
pub(crate) fn compare(file: &str, expected: &str) {
    let path = own(file);
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(&path, expected).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    if found == expected {
        return;
    }
    let at = found.lines().zip(expected.lines()).take_while(|(found, expected)| found == expected).count();
    let line = |text: &str| text.lines().nth(at).unwrap_or("nothing").to_owned();
    panic!(
        "{file} is not what the code makes. In line {} it has:\n{}\nand the code makes:\n{}\n\
         Write it anew, and look at the difference:\n{BLESS}=1 cargo test -p {} --test c",
        at + 1,
        line(&found),
        line(expected),
        env!("CARGO_PKG_NAME"),
    );
}

/// Whether a command runs and succeeds.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Runs a command that must succeed, and returns what it wrote to standard output.
pub(crate) fn run(command: &mut Command) -> String {
    let told = format!("{command:?}");
    let Output { status, stdout, stderr } =
        command.output().unwrap_or_else(|error| panic!("{told}: {error}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{told}: {status}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

/// The functions with a prefix that headers declare, sorted.
pub(crate) fn declared(headers: &str, prefix: &str) -> Vec<String> {
    let lines = headers.lines().filter(|line| !line.starts_with([' ', '#', '/']));
    let mut declared: Vec<String> = lines
        .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with(prefix))
        .map(str::to_owned)
        .collect();
    declared.sort_unstable();
    declared
}

/// The symbols that the shared library exports, sorted; `None` where they cannot be listed.
pub(crate) fn exported() -> Option<Vec<String>> {
    if !cfg!(target_os = "linux") {
        println!("skipped: symbols are listed for Linux");
        return None;
    }
    if !succeeds(Command::new("nm").arg("--version")) {
        println!("skipped: there is no nm");
        return None;
    }
    let listed = run(Command::new("nm").args(["-D", "--defined-only"]).arg(libraries().join(shared_name())));
    let mut symbols: Vec<String> =
        listed.lines().filter_map(|line| line.split_whitespace().nth(2)).map(str::to_owned).collect();
    symbols.sort_unstable();
    Some(symbols)
}

/// Demands that the shared library has its name in it.
pub(crate) fn demand_soname() {
    if !cfg!(target_os = "linux") {
        println!("skipped: the name is that of Linux");
        return;
    }
    if !succeeds(Command::new("readelf").arg("--version")) {
        println!("skipped: there is no readelf");
        return;
    }
    let shown = run(Command::new("readelf").arg("-d").arg(libraries().join(shared_name())));
    assert!(shown.contains(&format!("soname: [{}]", soname())), "{shown}");
}
