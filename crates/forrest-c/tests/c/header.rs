//! The headers equal cbindgen's output, and each compiles by itself as C11 and as C++17.

use crate::tools::{Language, compare, own, run};

/// The headers: the settings of each, and its sources, in the order in which the header has them.
const HEADERS: &[(&str, &str, &[&str])] = &[
    ("include/forrest.h", "cbindgen.toml", SOURCES),
    ("include/llds/forrest.h", "cbindgen_llds.toml", &["llds.rs"]),
];
const SOURCES: &[&str] = &[
    "code.rs",
    "failure.rs",
    "callback.rs",
    "options.rs",
    "db.rs",
    "read.rs",
    "value.rs",
    "reader.rs",
    "change.rs",
    "batch.rs",
    "transaction.rs",
    "ingest.rs",
    "blob.rs",
    "changes.rs",
    "iter.rs",
    "whole.rs",
    "salvage.rs",
    "backup.rs",
    "kernel.rs",
];

#[test]
fn the_headers_are_what_the_code_makes() {
    for (path, config, sources) in HEADERS {
        let config = cbindgen::Config::from_file(own(config)).expect("the configuration is right");
        let sources = sources.iter().map(|name| own("src").join(name));
        let builder = sources.fold(cbindgen::Builder::new(), cbindgen::Builder::with_src);
        let mut header = Vec::new();
        builder.with_config(config).generate().expect("the code makes a header").write(&mut header);
        compare(path, &String::from_utf8(header).expect("the header is text"));
    }
}

#[test]
fn the_headers_compile_by_themselves() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (language, name) in [(Language::C, "alone.c"), (Language::Cpp, "alone.cpp")] {
        let wrapper = (language == Language::Cpp).then_some(("forrest.hpp", "include"));
        let headers =
            [("forrest.h", "include"), ("forrest.h", "include/llds"), ("llds/forrest.h", "include")];
        for (headers, include) in headers.into_iter().chain(wrapper) {
            let Some(mut compiler) = language.compiler() else { continue };
            let path = directory.path().join(name);
            // Twice, as real programs may do.
            let text =
                format!("#include <{headers}>\n#include <{headers}>\nint main(void) {{ return 0; }}\n");
            std::fs::write(&path, text).expect("it is written");
            run(compiler.arg("-fsyntax-only").arg("-I").arg(own(include)).arg(path));
        }
    }
}
