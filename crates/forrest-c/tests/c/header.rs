//! The header is what cbindgen makes of the code, and compiles by itself as C11 and as C++17.

use crate::tools::{Language, compare, own, run};

/// The sources with what C sees, in the order in which the header tells of it.
const SOURCES: &[&str] = &[
    "code.rs",
    "failure.rs",
    "options.rs",
    "db.rs",
    "read.rs",
    "value.rs",
    "change.rs",
    "batch.rs",
    "iter.rs",
    "whole.rs",
];

#[test]
fn the_header_is_what_the_code_makes() {
    let config = cbindgen::Config::from_file(own("cbindgen.toml")).expect("cbindgen.toml is right");
    let sources = SOURCES.iter().map(|name| own("src").join(name));
    let builder = sources.fold(cbindgen::Builder::new(), cbindgen::Builder::with_src);
    let mut header = Vec::new();
    builder.with_config(config).generate().expect("the code makes a header").write(&mut header);
    compare("include/forrest.h", &String::from_utf8(header).expect("the header is text"));
}

#[test]
fn the_header_compiles_by_itself() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (language, name) in [(Language::C, "alone.c"), (Language::Cpp, "alone.cpp")] {
        let Some(mut compiler) = language.compiler() else { continue };
        let path = directory.path().join(name);
        // Twice, as happens.
        let text = "#include <forrest.h>\n#include <forrest.h>\nint main(void) { return FORREST_OK; }\n";
        std::fs::write(&path, text).expect("it is written");
        run(compiler.arg("-fsyntax-only").arg(path));
    }
}
