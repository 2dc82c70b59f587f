//! The tests of libremixdb: its header is what cbindgen makes of the code and declares what the library exports, and programs in C and
//! C++ are compiled against it, linked with it, and run.

#[path = "../../forrest-c/tests/c/tools.rs"]
mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;
use tools::{Language, compare, libraries, loaded, own, run, shared_name, soname, succeeds};

/// The library that is tested.
const LIBRARY: &str = "remixdb";

#[test]
fn the_header_is_what_the_code_makes() {
    let config = cbindgen::Config::from_file(own("cbindgen.toml")).expect("cbindgen.toml is right");
    let builder = cbindgen::Builder::new().with_src(own("src/lib.rs")).with_config(config);
    let mut header = Vec::new();
    builder.generate().expect("the code makes a header").write(&mut header);
    compare("include/remixdb.h", &String::from_utf8(header).expect("the header is text"));
}

#[test]
fn the_library_exports_what_the_header_declares() {
    if !cfg!(target_os = "linux") {
        println!("skipped: symbols are listed for Linux");
        return;
    }
    if !succeeds(Command::new("nm").arg("--version")) || !succeeds(Command::new("readelf").arg("--version")) {
        println!("skipped: there is no nm, or no readelf");
        return;
    }
    let library = libraries().join(shared_name());
    let listed = run(Command::new("nm").args(["-D", "--defined-only"]).arg(&library));
    let mut symbols: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    symbols.sort_unstable();
    let header = std::fs::read_to_string(own("include/remixdb.h")).expect("the header is there");
    let declared = header.lines().filter(|line| !line.starts_with([' ', '#', '/']));
    let mut declared: Vec<&str> = declared
        .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with("remixdb_"))
        .collect();
    declared.sort_unstable();
    assert_eq!(declared, symbols);
    let called = std::fs::read_to_string(own("tests/c/all.c")).expect("the program is there");
    let missing: Vec<&&str> = symbols.iter().filter(|name| !called.contains(&format!("{name}("))).collect();
    assert!(missing.is_empty(), "all.c calls no {missing:?}");
    let shown = run(Command::new("readelf").arg("-d").arg(&library));
    assert!(shown.contains(&format!("soname: [{}]", soname())), "{shown}");
}

#[test]
fn every_function_does_what_the_header_says() {
    prints(Language::C, "tests/c/all.c", &[], "all is as it should be\n");
}

#[test]
fn nothing_is_read_after_its_end_or_leaked() {
    const SANITIZERS: &[&str] = &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(mut compiler) = Language::C.compiler() else { return };
    // A compiler may come without its sanitizers' libraries, and a container may forbid what they do.
    let (source, probe) = (directory.path().join("probe.c"), directory.path().join("probe"));
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("it is written");
    if !succeeds(compiler.args(SANITIZERS).arg("-o").arg(&probe).arg(&source))
        || !succeeds(&mut Command::new(&probe))
    {
        println!("skipped: this C compiler has no -fsanitize=address, or its programs do not run here");
        return;
    }
    prints(Language::C, "tests/c/all.c", SANITIZERS, "all is as it should be\n");
}

#[test]
fn the_demo_runs_in_cpp() {
    prints(Language::Cpp, "tests/c/demo.cpp", &[], "elm\noak\n");
}

/// Builds a program and runs it on a new store; it must print `expected`.
fn prints(language: Language, source: &str, flags: &[&str], expected: &str) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(program) = build(language, &own(source), flags, directory.path()) else { return };
    let store = directory.path().join("store");
    assert_eq!(run(Command::new(program).arg(store).env_remove("LD_LIBRARY_PATH")), expected, "{source}");
}

/// Compiles and links a source; None if there is no compiler.
fn build(language: Language, source: &Path, flags: &[&str], to: &Path) -> Option<PathBuf> {
    let mut compiler = language.compiler()?;
    let program = to.join("program");
    let (path, loaded) = (libraries(), loaded(to));
    compiler
        .arg("-I")
        .arg(own("include"))
        .args(flags)
        .arg("-o")
        .arg(&program)
        .arg(source)
        .arg("-L")
        .arg(path);
    run(compiler.args(["-lremixdb", "-lpthread"]).arg(format!("-Wl,-rpath,{}", loaded.display())));
    Some(program)
}
