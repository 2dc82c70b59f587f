//! Programs in C and C++: they compile without warnings, link with the static and the shared library, and
//! print the expected output on each home.

use crate::tools::{Language, libraries, loaded, own, run, succeeds};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The system libraries that a program linked with libforrest.a needs.
const SYSTEM: &[&str] = &["-lpthread", "-ldl", "-lm"];

/// How a program is linked with the library.
#[derive(Clone, Copy, Debug)]
enum Link {
    Static,
    Shared,
}

const BOTH: &[Link] = &[Link::Static, Link::Shared];

/// Compiles and links a source; None if there is no compiler.
fn build(language: Language, source: &Path, link: Link, flags: &[&str], to: &Path) -> Option<PathBuf> {
    let mut compiler = language.compiler()?;
    let name = source.file_stem().expect("a source has a name").to_string_lossy();
    let program = to.join(format!("{name}-{link:?}"));
    let libraries = libraries();
    compiler.args(flags).arg("-I").arg(own("include")).arg("-I").arg(own("tests/c"));
    compiler.arg("-o").arg(&program).arg(source);
    match link {
        // Without debug information, which takes the linker seconds.
        Link::Static => compiler.arg(libraries.join("libforrest.a")).args(SYSTEM).arg("-Wl,-S"),
        Link::Shared => {
            let (path, loaded) = (libraries.display(), loaded(to));
            compiler.args([
                format!("-L{path}"),
                "-lforrest".into(),
                format!("-Wl,-rpath,{}", loaded.display()),
            ])
        }
    };
    run(&mut compiler);
    Some(program)
}

/// Runs a program with the library that was built for it, because the library path of cargo's tests may lead
/// to an older one. Programs for llds take the URL from the environment.
fn program_prints(program: &Path, url: &str) -> String {
    let mut command = Command::new(program);
    command.env_remove("LD_LIBRARY_PATH").env_remove("DYLD_FALLBACK_LIBRARY_PATH");
    run(command.arg(url).env("FORREST_URL", url))
}

/// Builds a program and runs it on each home. Each time it must print `expected`.
fn prints(language: Language, source: &str, links: &[Link], expected: &str) {
    prints_with(language, source, links, &[], expected);
}

/// Like [`prints`], with flags for the compiler.
fn prints_with(language: Language, source: &str, links: &[Link], flags: &[&str], expected: &str) {
    prints_on(|_| true, language, source, links, flags, expected);
}

/// Like [`prints_with`], on those homes that `is_for` accepts.
fn prints_on(
    is_for: fn(&str) -> bool,
    language: Language,
    source: &str,
    links: &[Link],
    flags: &[&str],
    expected: &str,
) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for &link in links {
        let Some(program) = build(language, &own(source), link, flags, directory.path()) else { return };
        let urls = homes(directory.path(), &named(&format!("{link:?}"), source));
        for url in urls.into_iter().filter(|url| is_for(url)) {
            assert_eq!(program_prints(&program, &url), expected, "{source} on {url}, {link:?}");
        }
    }
}

/// A name for the stores of a program.
fn named(why: &str, source: &str) -> String {
    why.to_owned() + &source.replace(['/', '.'], "-")
}

/// A new store in each home.
fn homes(directory: &Path, name: &str) -> Vec<String> {
    let path = directory.join(format!("store-{name}"));
    let mut homes = vec!["memory:".to_owned(), path.to_str().expect("temporary paths are text").to_owned()];
    if cfg!(feature = "llds-user") {
        homes.push(format!("llds-user:{name}"));
    } else {
        println!("skipped llds-user: the feature llds-user is off");
    }
    homes
}

/// The example of the front page.
#[test]
fn readme_runs() {
    let readme = std::fs::read_to_string(own("../../README.md")).expect("the front page is there");
    let (_, example) = readme.split_once("```c\n").expect("it has an example in C");
    let (example, _) = example.split_once("```").expect("the example ends");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("readme.c");
    std::fs::write(&source, example).expect("it is written");
    let Some(program) = build(Language::C, &source, Link::Shared, &[], directory.path()) else { return };
    assert_eq!(program_prints(&program, "memory:"), "oak\n");
}

#[test]
fn first_runs() {
    prints(
        Language::C,
        "examples/first.c",
        BOTH,
        "oak is Quercus robur\nash: Fraxinus excelsior\nelm: Ulmus glabra\noak: Quercus robur\n",
    );
}

#[test]
fn batch_runs() {
    let first = "in/london/ada\nin/london/mary\n";
    let then = "ada moves\nin/erlangen/emmy\nin/london/mary\nin/turin/ada\n";
    prints(Language::C, "examples/batch.c", &[Link::Shared], &[first, then].concat());
}

#[test]
fn transaction_runs() {
    prints(
        Language::C,
        "examples/transaction.c",
        &[Link::Shared],
        "ada has 5, and emmy has 10\nada has too little\n",
    );
}

#[test]
fn first_runs_in_cpp() {
    // Stores of the kernel have no snapshots.
    prints_on(
        |url| !url.starts_with("llds"),
        Language::Cpp,
        "examples/first.cpp",
        &[Link::Shared],
        &[],
        "it was Quercus robur, and is Quercus petraea\nthere is no fir\nash: Fraxinus excelsior\noak: Quercus petraea\n\
         before, elm: Ulmus glabra\ninvalid argument: unknown home \"mermory:\"; write \"memory:\", \"llds:NAME\" or a \
         path (if this is a path, write \"./mermory:\")\n",
    );
}

/// Every class of forrest.hpp, with each C++ compiler and standard that is there.
#[test]
fn every_class_does_what_the_header_says() {
    for standard in ["-std=c++17", "-std=c++20"] {
        prints_with(Language::Cpp, "tests/c/wrapper.cpp", &[Link::Shared], &[standard, "-pthread"], CHECKED);
    }
    if !succeeds(Command::new("clang++").arg("--version")) {
        println!("skipped: there is no clang++");
        return;
    }
    let mut clang = Command::new("clang++");
    clang.args(["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I"]);
    run(clang.arg(own("include")).arg(own("tests/c/wrapper.cpp")));
}

/// A program that was written for llds, as it was and as C++: it says `#include "forrest.h"`.
#[test]
fn llds_runs() {
    let include = format!("-I{}", own("include/llds").display());
    for language in [Language::C, Language::Cpp] {
        let flags = match language {
            Language::C => &[&*include][..],
            Language::Cpp => &[&*include, "-xc++"],
        };
        prints_with(
            language,
            "examples/llds.c",
            &[Link::Shared],
            flags,
            "oak is Quercus\nno fir\n8000 of 8000 are there\n",
        );
    }
}

/// A program may define the maximum length of values, as it could with the library of llds.
#[test]
fn llds_has_the_maximum_that_the_program_defines() {
    for maximum in ["-DFORREST_MAX_VAL_LEN=70000L", "-DFORREST_MAX_VAL_LEN=32"] {
        prints_with(Language::C, "tests/c/llds.c", &[Link::Shared], &[maximum], CHECKED);
    }
}

/// The programs that check all calls, and the calls themselves.
const CHECKS: &[&str] =
    &["tests/c/api.c", "tests/c/store.c", "tests/c/transaction.c", "tests/c/misuse.c", "tests/c/llds.c"];
const EVERY_CPP: &[&str] = &["tests/c/every.cpp", "tests/c/llds.cpp"];
const CHECKED: &str = "all is as it should be\n";

#[test]
fn every_call_answers_as_the_header_says() {
    for checks in CHECKS {
        prints(Language::C, checks, BOTH, CHECKED);
    }
}

#[test]
fn a_large_value_is_read_with_the_memory_of_a_piece() {
    let on_disk = |url: &str| !url.contains(':');
    prints_on(on_disk, Language::C, "tests/c/large.c", &[Link::Shared], &[], CHECKED);
}

#[test]
fn every_call_is_there_for_cpp() {
    for every in EVERY_CPP {
        prints(Language::Cpp, every, BOTH, CHECKED);
    }
}

/// What the programs are that call every function, in each language.
#[test]
fn every_function_is_called() {
    let read =
        |file: &str| std::fs::read_to_string(own(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let symbols = read("symbols.txt");
    for files in [CHECKS, EVERY_CPP] {
        let text: String = files.iter().map(|file| read(file)).collect();
        let words: HashSet<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let missing: Vec<&str> = symbols.lines().filter(|name| !words.contains(name)).collect();
        assert!(missing.is_empty(), "{files:?} call no {missing:?}");
    }
}

/// The programs of `every_call_answers_as_the_header_says`, and with them what the library allocates, whose memory is
/// looked at.
#[test]
fn nothing_is_read_after_its_end_or_leaked() {
    const SANITIZERS: &[&str] = &["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DWATCHED"];
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(mut compiler) = Language::C.compiler() else { return };
    // A compiler may come without its sanitizers' libraries, and a container may forbid what they do.
    let (source, probe) = (directory.path().join("probe.c"), directory.path().join("probe"));
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("it is written");
    if !succeeds(compiler.args(SANITIZERS).arg("-o").arg(&probe).arg(&source)) {
        println!("skipped: this C compiler has no -fsanitize=address");
        return;
    }
    if !succeeds(&mut Command::new(&probe)) {
        println!("skipped: programs with -fsanitize=address do not run here");
        return;
    }
    for checks in CHECKS {
        let built = build(Language::C, &own(checks), Link::Shared, SANITIZERS, directory.path());
        let Some(program) = built else { return };
        for url in homes(directory.path(), &named("sanitized", checks)) {
            assert_eq!(program_prints(&program, &url), CHECKED, "{checks} on {url}");
        }
    }
}

/// The same under valgrind, which looks at the Rust in it as well.
#[test]
fn valgrind_finds_nothing_in_memory() {
    valgrind_finds_nothing(true);
}

#[test]
fn valgrind_finds_nothing_on_disk() {
    valgrind_finds_nothing(false);
}

fn valgrind_finds_nothing(in_memory: bool) {
    const CALL: &[&str] =
        &["-q", "--error-exitcode=9", "--errors-for-leak-kinds=definite", "--fair-sched=yes"];
    if !succeeds(Command::new("valgrind").arg("--version")) {
        println!("skipped: there is no valgrind");
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    for checks in CHECKS {
        let built = build(Language::C, &own(checks), Link::Shared, &["-g", "-DWATCHED"], directory.path());
        let Some(program) = built else { return };
        for url in homes(directory.path(), &named("valgrind", checks)) {
            if url.starts_with("memory:") != in_memory {
                continue;
            }
            if url.starts_with("llds-user:") {
                println!("skipped llds-user: it reserves more addresses than valgrind has");
                continue;
            }
            // In children of a fork that is lost what threads had that are not there.
            let leaks = if checks.contains("misuse") { "--leak-check=no" } else { "--leak-check=full" };
            let mut valgrind = Command::new("valgrind");
            let printed =
                run(valgrind.args(CALL).arg(leaks).arg(&program).arg(&url).env("FORREST_URL", &url));
            assert_eq!(printed, CHECKED, "{checks} on {url}");
        }
    }
}
