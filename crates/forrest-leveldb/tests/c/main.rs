//! The tests of libforrest_leveldb: its header is what cbindgen generates from the code, and declares what the library
//! exports; programs in C and C++ are compiled with it, linked, and run, also under AddressSanitizer and valgrind. The
//! step `leveldb` of `cargo xtask test` builds LevelDB's own test with the library.

#[path = "../../../forrest-c/tests/c/tools.rs"]
mod tools;

use std::path::Path;
use std::process::Command;
use tools::{Language, compare, demand_soname, exported, libraries, loaded, own, run, succeeds};

/// The library under test.
const LIBRARY: &str = "forrest_leveldb";
/// The directory of the header, and the header.
const INCLUDE: &str = "include/forrest-leveldb";
const HEADER: &str = "include/forrest-leveldb/leveldb/c.h";
/// The files of the header, in its order.
const SOURCES: [&str; 8] =
    ["options.rs", "objects.rs", "snapshot.rs", "db.rs", "property.rs", "files.rs", "iter.rs", "batch.rs"];
/// The programs that check their results.
const CHECKS: [&str; 2] = ["tests/c/all.c", "tests/c/misuse.c"];
const CHECKED: &str = "all is as it should be\n";
/// Functions of LevelDB's C API.
const FUNCTIONS: usize = 68;

#[test]
fn the_header_is_what_the_code_makes() {
    let config = cbindgen::Config::from_file(own("cbindgen.toml")).expect("cbindgen.toml is right");
    let sources = SOURCES.iter().chain(&["memory.rs", "failure.rs"]).map(|name| own("src").join(name));
    let builder = sources.fold(cbindgen::Builder::new(), cbindgen::Builder::with_src);
    let mut header = Vec::new();
    builder.with_config(config).generate().expect("the code makes a header").write(&mut header);
    compare(HEADER, &String::from_utf8(header).expect("the header is text"));
}

/// The functions that the header declares, sorted.
fn declared() -> Vec<String> {
    let header = std::fs::read_to_string(own(HEADER)).expect("the header is there");
    tools::declared(&header, "leveldb_")
}

#[test]
fn each_function_is_declared_called_and_documented() {
    let declared = declared();
    assert_eq!(declared.len(), FUNCTIONS, "{declared:?}");
    for file in CHECKS {
        let program = std::fs::read_to_string(own(file)).expect("the program is there");
        let is_missing = |name: &&String| !program.contains(&format!("{name}("));
        // misuse.c has nothing to pass to what takes nothing.
        let is_misuse = file == CHECKS[1];
        let takes_nothing =
            |name: &&String| is_misuse && (name.ends_with("_version") || name.ends_with("default_env"));
        let missing: Vec<_> =
            declared.iter().filter(is_missing).filter(|name| !takes_nothing(name)).collect();
        assert!(missing.is_empty(), "{file} calls no {missing:?}");
    }
    let guide = std::fs::read_to_string(own("../../docs/guides/leveldb.md")).expect("the guide is there");
    let rows = guide.lines().filter_map(|line| line.strip_prefix("| `leveldb_")?.split_once('`'));
    let mut rows: Vec<String> = rows.map(|(name, _)| format!("leveldb_{name}")).collect();
    rows.sort_unstable();
    assert_eq!(rows, declared, "the rows of the guide's table");
}

#[test]
fn the_library_exports_what_the_header_declares() {
    demand_soname();
    let Some(symbols) = exported() else { return };
    assert_eq!(declared(), symbols);
}

#[test]
fn the_header_compiles_by_itself() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let text =
        "#include <leveldb/c.h>\n#include <leveldb/c.h>\nint main(void) { return leveldb_no_compression; }\n";
    for (language, name) in [(Language::C, "alone.c"), (Language::Cpp, "alone.cpp")] {
        let Some(mut compiler) = language.compiler() else { continue };
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("it is written");
        run(compiler.arg("-fsyntax-only").arg("-I").arg(own(INCLUDE)).arg(path));
    }
}

#[test]
fn every_function_does_what_the_header_says() {
    for checks in CHECKS {
        prints(checks, &[], &[], CHECKED);
    }
}

#[test]
fn the_example_runs() {
    prints("examples/first.c", &[], &[], "ash: Fraxinus excelsior\noak: Quercus robur\n");
}

#[test]
fn nothing_is_read_after_its_end_or_leaked() {
    const SANITIZERS: &[&str] = &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(mut compiler) = Language::C.compiler() else { return };
    // A compiler may come without its sanitizers' libraries, and a container may forbid their system calls.
    let (source, probe) = (directory.path().join("probe.c"), directory.path().join("probe"));
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("it is written");
    if !succeeds(compiler.args(SANITIZERS).arg("-o").arg(&probe).arg(&source))
        || !succeeds(&mut Command::new(&probe))
    {
        println!("skipped: this C compiler has no -fsanitize=address, or its programs do not run here");
        return;
    }
    for checks in CHECKS {
        prints(checks, SANITIZERS, &[], CHECKED);
    }
}

#[test]
fn valgrind_finds_nothing() {
    const CALL: &[&str] = &[
        "valgrind",
        "-q",
        "--error-exitcode=9",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite",
        "--fair-sched=yes",
    ];
    if !succeeds(Command::new("valgrind").arg("--version")) {
        println!("skipped: there is no valgrind");
        return;
    }
    for checks in CHECKS {
        prints(checks, &["-g"], CALL, CHECKED);
    }
}

/// Builds a program and runs it on a new store, by another one if `by` names one; it must print `expected`.
fn prints(source: &str, flags: &[&str], by: &[&str], expected: &str) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(program) = build(source, flags, directory.path()) else { return };
    let mut command = match by {
        [] => Command::new(program),
        [other, arguments @ ..] => {
            let mut command = Command::new(other);
            command.args(arguments).arg(program);
            command
        }
    };
    command.arg(directory.path().join("store")).env_remove("LD_LIBRARY_PATH");
    command.env("TEST_TMPDIR", directory.path().join("tests"));
    assert_eq!(run(&mut command), expected, "{source}");
}

/// Compiles and links a source; `None` if there is no compiler.
fn build(source: &str, flags: &[&str], to: &Path) -> Option<std::path::PathBuf> {
    let mut compiler = Language::C.compiler()?;
    let program = to.join("program");
    compiler.arg("-I").arg(own(INCLUDE)).args(flags).arg("-o").arg(&program).arg(own(source));
    compiler.arg("-L").arg(libraries()).arg(format!("-l{LIBRARY}"));
    run(compiler.arg(format!("-Wl,-rpath,{}", loaded(to).display())));
    Some(program)
}
