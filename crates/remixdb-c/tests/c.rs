//! The tests of libremixdb: its header is what cbindgen generates from the code, and declares what the
//! library exports; programs in C and C++ are compiled with it, linked, and run.

#[path = "../../forrest-c/tests/c/tools.rs"]
mod tools;

use std::path::Path;
use std::process::Command;
use tools::{Language, compare, declared, demand_soname, exported, libraries, loaded, own, run, succeeds};

/// The library under test.
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
    demand_soname();
    let Some(symbols) = exported() else { return };
    let header = std::fs::read_to_string(own("include/remixdb.h")).expect("the header is there");
    assert_eq!(declared(&header, "remixdb_"), symbols);
    let called = std::fs::read_to_string(own("tests/c/all.c")).expect("the program is there");
    let missing: Vec<&String> = symbols.iter().filter(|name| !called.contains(&format!("{name}("))).collect();
    assert!(missing.is_empty(), "all.c calls no {missing:?}");
}

#[test]
fn every_function_does_what_the_header_says() {
    prints(Language::C, "tests/c/all.c", &[], "all is as it should be\n");
}

#[test]
fn each_level_keeps_what_the_header_says() {
    prints(Language::C, "tests/c/levels.c", &[], "all is as it should be\n");
}

#[test]
fn the_demo_runs() {
    let walked = "elm: Ulmus glabra\noak: Quercus robur\n";
    let expected = format!(
        "oak is Quercus robur\nelm is there\nfir is not there\nfrom b on:\n{walked}opened again, all:\n\
         ash: Fraxinus excelsior\n{walked}"
    );
    prints(Language::C, "examples/demo.c", &[], &expected);
}

#[test]
fn a_demo_runs_in_cpp() {
    prints(Language::Cpp, "tests/c/demo.cpp", &[], "elm\noak\n");
}

/// The programs that check their results themselves: their arguments, and the end of their output.
const STRESS: Checker = ("examples/stress.c", &["3", "10000", "1000"], "every answer was right\n");
const CRASH: Checker =
    ("examples/crash.c", &["10", "2000", "500"], "nothing synced was lost, nothing was torn\n");
const ROUNDS: Checker = ("examples/rounds.c", &["16", "16", "9", "9", "9", "2"], "stale=0\n");
type Checker = (&'static str, &'static [&'static str], &'static str);

#[test]
fn no_answer_is_wrong_by_several_threads() {
    passes(STRESS, &[]);
}

#[test]
fn nothing_synced_is_lost_by_kills() {
    passes(CRASH, &[]);
}

/// A new store has no stale values; those of an earlier run are found, and fewer from round to round.
#[test]
fn rounds_use_an_existing_store_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let stale = || {
        let mut program = build(Language::C, "examples/rounds.c", &["-pthread"], directory.path())?;
        let printed = run(program.args(["16", "16", "9", "9", "30", "2"]));
        let counts: Vec<u64> =
            printed.lines().map(|line| line.rsplit_once("stale=")?.1.parse().ok()).collect::<Option<_>>()?;
        assert_eq!(counts.len(), 30, "{printed}");
        Some(counts)
    };
    let (Some(first), Some(second)) = (stale(), stale()) else { return };
    assert!(first.iter().all(|count| *count == 0), "{first:?}");
    assert!(second[0] > 0 && second[29] == 0, "{second:?}");
}

/// A library that loses a put now and then is detected.
#[test]
fn losses_are_found() {
    if !cfg!(target_os = "linux") {
        println!("skipped: functions are replaced as Linux's linkers do it");
        return;
    }
    let lossy = own("tests/c/lossy.c");
    let flags = ["-Wl,--wrap=remixdb_put", lossy.to_str().expect("the path is text")];
    for (checker, told) in [(STRESS, "stress.c"), (CRASH, "crash.c"), (ROUNDS, "rounds.c")] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let Some(mut program) = checking(checker, &flags, directory.path()) else { return };
        let output = program.output().expect("it runs");
        // The programs name the missing version.
        let found = String::from_utf8_lossy(&output.stderr).contains("version");
        assert!(output.status.code() == Some(1) && found, "{told}: {output:?}");
    }
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
    prints(Language::C, "tests/c/all.c", SANITIZERS, "all is as it should be\n");
    passes(STRESS, SANITIZERS);
    passes(CRASH, SANITIZERS);
}

/// Builds a program and runs it on a new store; it must print `expected`.
fn prints(language: Language, source: &str, flags: &[&str], expected: &str) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(mut program) = build(language, source, flags, directory.path()) else { return };
    assert_eq!(run(&mut program), expected, "{source}");
}

/// Builds one of the checking programs, and runs it.
fn passes(checker: Checker, flags: &[&str]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(mut program) = checking(checker, flags, directory.path()) else { return };
    let printed = run(&mut program);
    assert!(printed.ends_with(checker.2), "{printed}");
}

/// The call of such a program.
fn checking((source, arguments, _): Checker, flags: &[&str], directory: &Path) -> Option<Command> {
    let mut program = build(Language::C, source, flags, directory)?;
    program.args(arguments);
    Some(program)
}

/// Compiles and links a source; returns the program's call, on a new store. None if there is no compiler.
fn build(language: Language, source: &str, flags: &[&str], to: &Path) -> Option<Command> {
    let mut compiler = language.compiler()?;
    let program = to.join("program");
    let (path, loaded) = (libraries(), loaded(to));
    compiler.arg("-I").arg(own("include")).args(flags).arg("-o").arg(&program).arg(own(source));
    compiler.arg("-L").arg(path).args(["-lremixdb", "-lpthread"]);
    run(compiler.arg(format!("-Wl,-rpath,{}", loaded.display())));
    let mut command = Command::new(program);
    command.arg(to.join("store")).env_remove("LD_LIBRARY_PATH");
    Some(command)
}
