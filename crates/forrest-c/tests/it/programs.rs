//! Programs in C and C++: they compile without a warning, link with the library, static and shared, and print what they
//! should, on each home.

use crate::tools::{Language, libraries, own, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a program that has libforrest.a in it needs of the system.
const SYSTEM: &[&str] = &["-lpthread", "-ldl", "-lm"];

/// How the library comes to a program.
#[derive(Clone, Copy, Debug)]
enum Link {
    Static,
    Shared,
}

/// Compiles and links a source of this crate; None if there is no compiler.
fn build(language: Language, source: &str, link: Link, flags: &[&str], to: &Path) -> Option<PathBuf> {
    let mut compiler = language.compiler()?;
    let program = to.join(format!("{}-{link:?}", source.replace(['/', '.'], "-")));
    let libraries = libraries();
    compiler.args(flags).arg("-o").arg(&program).arg(own(source));
    match link {
        Link::Static => compiler.arg(libraries.join("libforrest.a")).args(SYSTEM),
        Link::Shared => {
            let path = libraries.display();
            compiler.args([format!("-L{path}"), "-lforrest".into(), format!("-Wl,-rpath,{path}")])
        }
    };
    run(&mut compiler);
    Some(program)
}

/// Builds a program in both ways and runs it on each home; each time it must print `expected`.
fn prints(language: Language, source: &str, expected: &str) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for link in [Link::Static, Link::Shared] {
        let Some(program) = build(language, source, link, &[], directory.path()) else { return };
        for url in homes(directory.path(), &format!("{link:?}")) {
            let told = run(Command::new(&program).arg(&url));
            assert_eq!(told, expected, "{source} on {url}, {link:?}");
        }
    }
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

#[test]
fn first_runs() {
    prints(
        Language::C,
        "examples/first.c",
        "oak is Quercus robur\nash: Fraxinus excelsior\nelm: Ulmus glabra\noak: Quercus robur\n",
    );
}
